/* Logging and progress without printing: the library passes lines and progress to sinks that the program installs.
 * Without a sink they are dropped: a library must not write to its host's stderr. */
#ifndef IPW_CORE_LOG_H
#define IPW_CORE_LOG_H

#include <stdint.h>

#include "core/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

typedef void (*log_sink)(enum log_level level, const char *line);

/* Installs the sink and the most verbose level that it receives. */
void log_to(log_sink sink, enum log_level most_verbose);

/* Replaces the sink at the same level, while a view owns the terminal; returns the previous one. */
log_sink log_divert(log_sink sink);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* How many bytes of a large file have been read.  The file may be read again from its start: `done` then falls back. */
typedef void (*progress_sink)(const char *path, uint64_t done, uint64_t total);

/* One thread installs the sink (NULL: none) and reads. */
void log_progress_to(progress_sink sink);
void log_progress(const char *path, uint64_t done, uint64_t total);

#endif
