#include "support/tsv.h"

#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "support/unit.h"

size_t tsv_each(const char *path, size_t count, void (*row)(char **fields))
{
    char full[512], line[1024], *fields[TSV_FIELDS_MAX];
    size_t rows = 0;
    str_format(full, sizeof full, "%s/%s", IPW_FIXTURES, path);
    FILE *file = fopen(full, "r");
    if (!file)
        fail_msg("cannot open %s", full);
    while (fgets(line, sizeof line, file)) {
        size_t found = 0;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        for (char *at = line; at && found < TSV_FIELDS_MAX;) {
            fields[found++] = at;
            at = strchr(at, '\t');
            if (at)
                *at++ = '\0';
        }
        if (found != count)
            fail_msg("%s: %zu fields: %s", path, found, line);
        row(fields);
        rows++;
    }
    fclose(file);
    return rows;
}

double tsv_number(const char *field)
{
    return strcmp(field, "-") == 0 ? UNKNOWN : strtod(field, NULL);
}
