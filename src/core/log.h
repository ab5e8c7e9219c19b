/* Logging without printing: the library hands lines to a sink that the program installs.
 * With no sink installed, lines go nowhere (a library must not write to its host's stderr). */
#ifndef IPW_CORE_LOG_H
#define IPW_CORE_LOG_H

#include "core/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

typedef void (*log_sink)(enum log_level level, const char *line);

/* Installs the sink and the least important level that still reaches it. */
void log_to(log_sink sink, enum log_level most_verbose);

/* Another sink at the same level, for as long as a view owns the terminal; returns the one before. */
log_sink log_divert(log_sink sink);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
