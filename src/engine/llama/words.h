/* What the library says while it works: handed to our log as detail, and the first complaint kept for
 * the error that follows.  Kept for each thread apart; nothing is allocated. */
#ifndef IPW_ENGINE_LLAMA_WORDS_H
#define IPW_ENGINE_LLAMA_WORDS_H

/* For llama_log_set. */
void words_take(int level, const char *text, void *data);

/* For ggml_set_abort_callback: an assertion of the library failed and the process ends after this.  One
 * line takes the place of the debugger that it would start. */
void words_last(const char *message);

/* Forgets the complaints of this thread: before a call that may fail. */
void words_forget(void);

/* The first complaint since, without the name of the function that made it; "" when there was none. */
const char *words_complaint(void);

#endif
