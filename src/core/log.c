#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static log_sink current_sink;
static enum log_level verbosity = LOG_WARN;

void log_to(log_sink sink, enum log_level most_verbose)
{
    current_sink = sink;
    verbosity = most_verbose;
}

void log_line(enum log_level level, const char *format, ...)
{
    if (!current_sink || level > verbosity)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    current_sink(level, line);
}
