#define _GNU_SOURCE
#include "report/plot/samples.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"

/* ---- fields of a line ---- */

enum { T_S, SENSOR, DEVICE, CHANNEL, SCOPE, QUANTITY, UNIT, VALUE, SUM, COVERED, FIELDS };

/* Moves a field in quotes, two of which stand for one, to `to`; returns what follows it. */
static char *unquote(char *line, char **to)
{
    for (line++; *line; line++) {
        if (*line == '"') {
            line++;
            if (*line != '"')
                break;
        }
        *(*to)++ = *line;
    }
    return line;
}

/* Cuts the line at its commas; false when there are too few fields: only what comes behind the sum may be
 * missing, and is empty then. */
static bool split(char *line, char **fields)
{
    for (int i = 0; i < FIELDS; i++) {
        char *to = fields[i] = line;
        if (*line == '"')
            line = unquote(line, &to);
        else
            to = line += strcspn(line, ",\n");
        bool more = *line == ',';
        *to = '\0';
        if (!more) {
            for (int missing = i + 1; missing < FIELDS; missing++)
                fields[missing] = to;
            return i >= SUM;
        }
        line++;
    }
    return true;
}

static double number(const char *field)
{
    char *end;
    double value = strtod(field, &end);
    return end == field ? UNKNOWN : value;
}

/* ---- channels ---- */

static struct power_channel *channel_of(struct power_samples *all, char **fields)
{
    for (size_t i = 0; i < all->count; i++) {
        struct power_channel *channel = &all->channels[i];
        if (strcmp(channel->device, fields[DEVICE]) == 0 &&
            strcmp(channel->channel, fields[CHANNEL]) == 0)
            return channel;
    }
    struct power_channel *channels =
        grow(all->channels, &all->capacity, all->count, sizeof *channels);
    if (!channels)
        return NULL;
    all->channels = channels;
    struct power_channel *channel = &channels[all->count++];
    *channel = (struct power_channel){0};
    str_copy(channel->device, sizeof channel->device, fields[DEVICE]);
    str_copy(channel->channel, sizeof channel->channel, fields[CHANNEL]);
    str_copy(channel->scope, sizeof channel->scope, fields[SCOPE]);
    return channel;
}

static enum err take_line(struct power_samples *all, char *line)
{
    char *fields[FIELDS];
    if (!split(line, fields) || strcmp(fields[SCOPE], "none") == 0 ||
        (strcmp(fields[QUANTITY], "energy") != 0 && strcmp(fields[QUANTITY], "power") != 0))
        return ERR_OK;
    struct power_sample sample = {number(fields[T_S]), number(fields[VALUE]), number(fields[SUM])};
    if (!is_known(sample.t) || !is_known(sample.sum))
        return ERR_OK;
    struct power_channel *channel = channel_of(all, fields);
    struct power_sample *samples =
        channel ? grow(channel->samples, &channel->capacity, channel->count, sizeof *samples)
                : NULL;
    if (!samples)
        return ERR_NO_MEMORY;
    channel->samples = samples;
    samples[channel->count++] = sample;
    return ERR_OK;
}

/* ---- which of them ---- */

static enum scope scope_named(const char *name)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        if (strcmp(scope_name((enum scope)scope), name) == 0)
            return (enum scope)scope;
    return SCOPE_NONE;
}

/* Its joules are in another of the same device; or it is the same part, with fewer samples. */
static bool is_covered(const struct power_samples *all, size_t which)
{
    const struct power_channel *channel = &all->channels[which];
    for (size_t i = 0; i < all->count; i++) {
        const struct power_channel *other = &all->channels[i];
        if (i == which || strcmp(other->device, channel->device) != 0 || !other->count)
            continue;
        if (strcmp(other->scope, channel->scope) != 0 &&
            scope_contains(scope_named(other->scope), scope_named(channel->scope)))
            return true;
        if (strcmp(other->scope, channel->scope) == 0 &&
            (other->count > channel->count || (other->count == channel->count && i < which)))
            return true;
    }
    return false;
}

static void drop_covered(struct power_samples *all)
{
    bool *covered = calloc(all->count + 1, sizeof *covered);
    size_t kept = 0;
    for (size_t i = 0; covered && i < all->count; i++)
        covered[i] = is_covered(all, i);
    for (size_t i = 0; covered && i < all->count; i++)
        if (covered[i])
            free(all->channels[i].samples);
        else
            all->channels[kept++] = all->channels[i];
    all->count = covered ? kept : all->count;
    free(covered);
}

/* ---- files ---- */

static enum err read_lines(const char *directory, const char *name,
                           enum err (*take)(void *all, char *line), void *all, struct error *why)
{
    char path[1024], *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    enum err err = ERR_OK;
    str_format(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return err_set(why, ERR_NO_DATA, "the run has no %s", name);
    if (!file)
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    /* A last line without its end was cut by a kill. */
    while (!err && (length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n')
        err = take(all, line);
    if (!err && ferror(file))
        err = err_set(why, ERR_IO, "cannot read %s", path);
    else if (err)
        err_set(why, err, "%s: %s", path, err_text(err));
    free(line);
    fclose(file);
    return err;
}

static enum err take_sample(void *all, char *line)
{
    return take_line(all, line);
}

enum { FILE_NAME_MAX = 32 };

static const char *file_of(unsigned start, char name[static FILE_NAME_MAX])
{
    str_copy(name, FILE_NAME_MAX, "samples.csv");
    if (start > 1)
        str_format(name, FILE_NAME_MAX, "samples-%u.csv", start);
    return name;
}

enum err power_samples_read(const char *directory, unsigned start, struct power_samples *out,
                            struct error *why)
{
    char name[FILE_NAME_MAX];
    enum err err = read_lines(directory, file_of(start, name), take_sample, out, why);
    if (err)
        return err;
    drop_covered(out);
    return out->count ? ERR_OK : err_set(why, ERR_NO_DATA, "%s has no samples of power", name);
}

void power_samples_release(struct power_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++)
        free(samples->channels[i].samples);
    free(samples->channels);
}

struct gauge_taker {
    enum err (*take)(void *context, const struct gauge_sample *sample);
    void *context;
};

static enum err take_gauge(void *all, char *line)
{
    const struct gauge_taker *taker = all;
    char *fields[FIELDS];
    if (!split(line, fields) || strcmp(fields[SCOPE], "none") != 0)
        return ERR_OK;
    struct gauge_sample sample = {fields[SENSOR],      fields[DEVICE],
                                  fields[QUANTITY],    number(fields[T_S]),
                                  number(fields[SUM]), number(fields[COVERED])};
    if (!is_known(sample.t) || !is_known(sample.sum))
        return ERR_OK;
    return taker->take(taker->context, &sample);
}

enum err gauge_samples_each(const char *directory, unsigned start,
                            enum err (*take)(void *context, const struct gauge_sample *sample),
                            void *context, struct error *why)
{
    char name[FILE_NAME_MAX];
    struct gauge_taker taker = {take, context};
    return read_lines(directory, file_of(start, name), take_gauge, &taker, why);
}

static enum err take_span(void *all, char *line)
{
    struct request_spans *spans = all;
    struct jv *value;
    int64_t start = 0;
    if (jv_parse(line, strlen(line), &value, NULL))
        return ERR_OK; /* damaged: the others are whole */
    const char *kind = jv_text(jv_get(value, "span"));
    struct request_span span = {jv_number(jv_get(value, "from_s")),
                                jv_number(jv_get(value, "first_token_s")),
                                jv_number(jv_get(value, "to_s")), 1};
    bool is_one = jv_integer(jv_get(value, "start"), &start) && start >= 1 && start <= UINT_MAX &&
                  kind && strcmp(kind, "request") == 0 && is_known(span.from) && is_known(span.to);
    span.start = is_one ? (unsigned)start : 1;
    jv_free(value);
    if (!is_one)
        return ERR_OK;
    struct request_span *items = grow(spans->items, &spans->capacity, spans->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    spans->items = items;
    items[spans->count++] = span;
    return ERR_OK;
}

enum err request_spans_read(const char *directory, struct request_spans *out, struct error *why)
{
    enum err err = read_lines(directory, "spans.jsonl", take_span, out, why);
    if (!err && !out->count)
        err = err_set(why, ERR_NO_DATA, "spans.jsonl has no request that ended");
    return err;
}

void request_spans_release(struct request_spans *spans)
{
    free(spans->items);
}
