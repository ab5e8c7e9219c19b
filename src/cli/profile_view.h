/* How a profile's progress and warnings are shown on stderr while it runs.  There is one view, for the
 * one terminal. */
#ifndef IPW_CLI_PROFILE_VIEW_H
#define IPW_CLI_PROFILE_VIEW_H

#include <stdbool.h>

struct profile_progress;
struct text;

/* Of this command from now on; quiet: warnings alone. */
void profile_view_start(const char *command, bool quiet);

/* For profile_options: progress and warn. */
void profile_view_show(const struct profile_progress *state);
void profile_view_warn(const char *line);

/* Takes the progress off the screen, so that something else can be written. */
void profile_view_wipe(void);

/* Writes to stderr; nobody there ends the view. */
void profile_view_put(const struct text *text);

#endif
