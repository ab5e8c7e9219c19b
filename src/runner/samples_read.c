#define _GNU_SOURCE
#include "runner/samples_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/quantity.h"
#include "core/text.h"
#include "runner/samples_csv.h"
#include "sampler/sampler.h"

/* The columns, in the order of SAMPLES_HEADER. */
enum column {
    COL_T,
    COL_SENSOR,
    COL_DEVICE,
    COL_CHANNEL,
    COL_SCOPE,
    COL_QUANTITY,
    COL_UNIT,
    COL_VALUE,
    COL_SUM,
    COL_COVERED,
    COL_SIGMA,
    COL_COUNT
};

/* ---- fields ---- */

/* Takes a quoted field, from after its quote; *to is where its text goes.  NULL when it is not closed. */
static char *unquote(char *from, char *to)
{
    for (;; from++) {
        if (*from == '"' && from[1] != '"')
            break;
        if (!*from)
            return NULL;
        if (*from == '"')
            from++;
        *to++ = *from;
    }
    *to = '\0';
    return from + 1;
}

/* Cuts a line, in place. */
static bool split(char *line, char *fields[COL_COUNT])
{
    for (int i = 0; i < COL_COUNT; i++) {
        char *end;
        fields[i] = line;
        if (*line == '"') {
            fields[i] = line + 1;
            end = unquote(line + 1, line + 1);
        } else {
            end = strchrnul(line, ',');
        }
        bool last = i + 1 == COL_COUNT;
        if (!end || *end != (last ? '\0' : ','))
            return false;
        if (*end) {
            /* A quoted field ended before its closing quote already. */
            *end = '\0';
            line = end + 1;
        }
    }
    return true;
}

static bool number_or(const char *field, double otherwise, double *out)
{
    *out = otherwise;
    return !field[0] || parse_double(field, out) == ERR_OK;
}

/* ---- rows ---- */

struct place {
    size_t source, channel;
};

struct reading {
    struct sampler *sampler;
    nanos zero;
    struct place last; /* rows come channel by channel: where the one before belonged */
    struct samples_found *found;
};

static bool is_place(const struct reading *reading, struct place place, char *const *fields)
{
    if (place.source >= sampler_count(reading->sampler))
        return false;
    const struct sensor *sensor = sampler_sensor(reading->sampler, place.source);
    if (place.channel >= sensor->channel_count || strcmp(sensor->id, fields[COL_SENSOR]) != 0)
        return false;
    const struct sensor_channel *channel = &sensor->channels[place.channel];
    return !strcmp(channel->name, fields[COL_CHANNEL]) &&
           !strcmp(channel->device, fields[COL_DEVICE]) &&
           !strcmp(quantity_name(channel->quantity), fields[COL_QUANTITY]);
}

static bool find_place(struct reading *reading, char *const *fields)
{
    if (is_place(reading, reading->last, fields))
        return true;
    for (size_t s = 0; s < sampler_count(reading->sampler); s++)
        for (size_t c = 0; c < sampler_sensor(reading->sampler, s)->channel_count; c++)
            if (is_place(reading, (struct place){s, c}, fields)) {
                reading->last = (struct place){s, c};
                return true;
            }
    return false;
}

/* Between two readings of a value it ran somewhere from one to the other: the sampler's own rule. */
static double added_variance(const struct sensor_channel *channel,
                             const struct timeline_point *before,
                             const struct timeline_point *point)
{
    if (channel->quantity == QTY_ENERGY || channel->interval_mean ||
        point->covered - before->covered != point->t - before->t)
        return 0;
    double spread = (point->value - before->value) * seconds(point->t - before->t);
    return is_known(spread) ? spread * spread / 12 : 0;
}

static enum err put_row(struct reading *reading, double share, struct timeline_point *point)
{
    struct place place = reading->last;
    const struct sensor_channel *channel =
        &sampler_sensor(reading->sampler, place.source)->channels[place.channel];
    struct timeline_point before;
    if (sampler_newest(reading->sampler, place.source, place.channel, &before)) {
        nanos passed = point->t - before.t;
        point->covered =
            before.covered + (share >= 1 ? passed : (nanos)(fmax(0, share) * (double)passed));
        point->variance = before.variance + added_variance(channel, &before, point);
    }
    enum err err = sampler_put_past(reading->sampler, place.source, place.channel, point);
    if (!err && quantity_gives_joules(channel->quantity) && point->t > reading->found->last)
        reading->found->last = point->t;
    return err;
}

/* Out of memory is an error; a row that cannot be used is counted. */
static enum err take_row(struct reading *reading, char *line)
{
    char *fields[COL_COUNT];
    double t_s = UNKNOWN, share = UNKNOWN;
    struct timeline_point point = {0};
    bool good = split(line, fields) && find_place(reading, fields) &&
                parse_double(fields[COL_T], &t_s) == ERR_OK &&
                parse_double(fields[COL_SUM], &point.sum) == ERR_OK &&
                parse_double(fields[COL_COVERED], &share) == ERR_OK &&
                number_or(fields[COL_VALUE], UNKNOWN, &point.value) &&
                number_or(fields[COL_SIGMA], 0, &point.t_sigma) && fabs(t_s) < 1e9;
    enum err err = ERR_BAD_VALUE;
    if (good) {
        point.t = reading->zero + from_seconds(t_s);
        err = put_row(reading, share, &point);
    }
    reading->found->rows += err == ERR_OK;
    reading->found->damaged += err == ERR_BAD_VALUE;
    return err == ERR_BAD_VALUE ? ERR_OK : err;
}

static enum err read_rows(FILE *file, struct reading *reading)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    enum err err = ERR_OK;
    while (!err && (length = getline(&line, &capacity, file)) > 0) {
        if (line[length - 1] != '\n')
            break;
        line[length - 1] = '\0';
        err = take_row(reading, line);
    }
    if (!err && ferror(file))
        err = ERR_IO;
    free(line);
    return err;
}

static bool has_header(FILE *file)
{
    char line[sizeof SAMPLES_HEADER + 1];
    return fgets(line, sizeof line, file) && strcmp(line, SAMPLES_HEADER) == 0;
}

enum err samples_read(const char *path, struct sampler *sampler, nanos zero,
                      struct samples_found *out, struct error *why)
{
    *out = (struct samples_found){.last = INT64_MIN};
    struct reading reading = {.sampler = sampler, .zero = zero, .found = out};
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(why, err_from_errno(errno), "cannot read %s: %m", path);
    enum err err = ERR_OK;
    if (!has_header(file))
        err = err_set(why, ERR_BAD_VALUE, "%s has not the columns of this version", path);
    else if ((err = read_rows(file, &reading)))
        err_set(why, err, "cannot read %s: %s", path, err_text(err));
    fclose(file);
    return err;
}
