/* Text of files that anybody may have written, made fit for a terminal, a table and a line of a message. */
#ifndef IPW_CORE_PLAIN_H
#define IPW_CORE_PLAIN_H

#include <stdbool.h>

/* Nothing but characters that stand for themselves: valid UTF-8, no controls (escapes, line ends, tabs), and
 * none that turn the direction of what follows, by which a line could be made to show another. */
bool str_is_plain(const char *string);

/* Makes it so, in place: what is not becomes "?".  A character that was cut off at the end is left out.
 * Returns its argument. */
char *str_plain(char *string);

/* The same of a copy, cut to fit: plain_text(name).text lives until the end of its statement. */
struct plain_text {
    char text[1024];
};
struct plain_text plain_text(const char *string);

#endif
