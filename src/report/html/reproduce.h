/* The command that would make a run again, out of what its summary keeps. */
#ifndef IPW_REPORT_HTML_REPRODUCE_H
#define IPW_REPORT_HTML_REPRODUCE_H

struct json;
struct jv;

/* "command": text, or null where the summary does not tell how it was made. */
void command_put(struct json *json, const struct jv *summary);

#endif
