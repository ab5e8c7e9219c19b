/* Progress and warnings of a profile on stderr.  There is one view, for the one terminal. */
#ifndef IPW_CLI_PROFILE_VIEW_H
#define IPW_CLI_PROFILE_VIEW_H

#include <stdbool.h>

struct profile_progress;
struct text;

/* quiet: only warnings. */
void profile_view_start(const char *command, bool quiet);

/* For profile_options.progress and .warn. */
void profile_view_show(const struct profile_progress *state);
void profile_view_warn(const char *line);

/* Clears the progress line, so that something else can be written. */
void profile_view_wipe(void);

/* Writes to stderr; an error there ends the view. */
void profile_view_put(const struct text *text);

#endif
