#include "core/csv.h"

#include <string.h>

#include "core/text.h"

void csv_add(struct text *out, const char *value)
{
    if (!strpbrk(value, ",\"\r\n")) {
        text_add(out, value);
        return;
    }
    text_add(out, "\"");
    for (const char *at = value; *at; at++)
        text_add_bytes(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    text_add(out, "\"");
}
