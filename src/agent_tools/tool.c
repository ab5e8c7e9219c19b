/* What drivers use: results of failed calls, and arguments. */
#include "agent_tools/tool.h"

#include <stdarg.h>
#include <stdio.h>

#include "port/json_read.h"

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

const char *tool_argument(const struct tool_request *call, const char *key, struct tool_result *out)
{
    const struct jv *value = jv_get(call->arguments, key);
    const char *string = jv_text(value);
    if (!string)
        tool_fail(out, value ? "argument '%s' must be a string" : "missing argument '%s'", key);
    return string;
}
