/* Shows on stderr, where that is a terminal, how far the reading of a large run has come. */
#ifndef IPW_CLI_READING_VIEW_H
#define IPW_CLI_READING_VIEW_H

#include <stdbool.h>

/* Without a terminal that can draw over a line, or where results go to it meanwhile, there is no bar. */
void reading_view_start(const char *command, bool terminal);

/* Before anything else is written there. */
void reading_view_wipe(void);

#endif
