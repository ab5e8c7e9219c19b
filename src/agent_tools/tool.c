/* What drivers use: results of failed calls. */
#include "agent_tools/tool.h"

#include <stdarg.h>
#include <stdio.h>

enum err tool_fail(struct tool_result *out, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_clear(&out->output);
    text_addf(&out->output, "Error: %s", line);
    out->is_error = true;
    return ERR_OK;
}
