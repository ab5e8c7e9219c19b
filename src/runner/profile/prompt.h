/* What is sent: the item's problem, or the user's template around it. */
#ifndef IPW_RUNNER_PROFILE_PROMPT_H
#define IPW_RUNNER_PROFILE_PROMPT_H

struct item;
struct text;

/* {problem}, {subject}, {id} and {KEY} of the item's metadata are replaced; other braces stay as they
 * are.  \n and \t in the template are a line break and a tab.  NULL: the problem as it is. */
void prompt_render(const char *template_text, const struct item *item, struct text *out);

#endif
