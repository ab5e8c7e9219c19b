#include "analysis/quality/checks.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/json.h"

void check_put(struct checks *checks, const char *check, enum verdict verdict, const char *format,
               ...)
{
    static const char *const NAMES[] = {"good", "warning", "unknown"};
    char detail[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    checks->counts[verdict]++;
    json_object(checks->json, NULL);
    json_string(checks->json, "check", check);
    json_string(checks->json, "verdict", NAMES[verdict]);
    json_string(checks->json, "detail", detail);
    json_object_end(checks->json);
}
