#include "report/export/samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/file.h"

enum { FIELDS = 8 }; /* t_s, sensor, device, channel, scope, quantity, unit, value; others follow */

/* Cuts the line into its fields, in place; returns how many. */
static size_t cut(char *line, char *fields[FIELDS])
{
    size_t count = 0;
    for (char *at = line; count < FIELDS; at++) {
        char *to = at, *begin = at;
        bool quoted = *at == '"';
        at += quoted;
        while (*at && (quoted || (*at != ',' && *at != '\n'))) {
            bool is_mark = quoted && *at == '"';
            at += is_mark; /* two stand for one; one alone ends it */
            if (is_mark && *at != '"')
                quoted = false;
            else
                *to++ = *at++;
        }
        bool more = *at == ',';
        *to = '\0';
        fields[count++] = begin;
        if (!more)
            break;
    }
    return count;
}

static bool read_row(char *line, struct sample_row *out)
{
    char *fields[FIELDS];
    if (cut(line, fields) < FIELDS || parse_double(fields[0], &out->t_s))
        return false;
    out->device = fields[2];
    out->channel = fields[3];
    out->quantity = fields[5];
    out->unit = fields[6];
    if (parse_double(fields[7], &out->value))
        out->value = UNKNOWN;
    return true;
}

enum err samples_each(const char *directory, unsigned start,
                      enum err (*take)(void *context, const struct sample_row *row), void *context,
                      struct error *why)
{
    char path[FILE_PATH_MAX], number[16] = "";
    if (start > 1)
        str_format(number, sizeof number, "-%u", start);
    if (!str_format(path, sizeof path, "%s/samples%s.csv", directory, number) || !file_exists(path))
        return ERR_OK;
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    enum err err = ERR_OK;
    struct sample_row row;
    while (!err && getline(&line, &size, file) > 0)
        if (read_row(line, &row))
            err = take(context, &row);
    free(line);
    fclose(file);
    return err;
}
