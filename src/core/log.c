#include "core/log.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/secret.h"
#include "core/text.h"

/* Atomic, because it is replaced while threads log. */
static _Atomic(log_sink) current_sink;
static enum log_level verbosity = LOG_WARN;
static progress_sink current_progress;

void log_to(log_sink sink, enum log_level most_verbose)
{
    current_sink = sink;
    verbosity = most_verbose;
}

log_sink log_divert(log_sink sink)
{
    return atomic_exchange(&current_sink, sink);
}

void log_line(enum log_level level, const char *format, ...)
{
    log_sink sink = current_sink;
    if (!sink || level > verbosity)
        return;
    char line[PATH_MAX + 1024]; /* space for the longest path */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    secret_hide(line);
    sink(level, str_plain(line, sizeof line));
}

void log_progress_to(progress_sink sink)
{
    current_progress = sink;
}

void log_progress(const char *path, uint64_t done, uint64_t total)
{
    if (current_progress)
        current_progress(path, done, total);
}
