#define _GNU_SOURCE
#include "report/html/power.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "runner/samples_csv.h"

/* ---- lines ---- */

/* The columns, in the order of SAMPLES_HEADER. */
enum column { T, SENSOR, DEVICE, CHANNEL, SCOPE, QUANTITY, UNIT, VALUE, SUM, COVERED, COLUMNS };

/* A field, cut off in place; *line is then at the next. */
static char *take_field(char **line)
{
    char *field = *line, *to = field, *from = field;
    bool quoted = *from == '"';
    from += quoted;
    for (; *from && (quoted || *from != ','); from++) {
        if (quoted && *from == '"') {
            if (from[1] != '"') { /* one alone ends it, two stand for one */
                quoted = false;
                continue;
            }
            from++;
        }
        *to++ = *from;
    }
    *line = *from ? from + 1 : from;
    *to = '\0';
    return field;
}

static double number_of(const char *field)
{
    char *end;
    double value = strtod(field, &end);
    return end != field && *end == '\0' ? value : UNKNOWN;
}

/* Gives every line of energy or power to `take`; other quantities are passed over unread. */
static enum err each_row(const char *path, struct power *power,
                         void (*take)(struct power *power, char *const *fields), struct error *why)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    if (!file)
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    if (getline(&line, &room, file) < 0 || strcmp(line, SAMPLES_HEADER) != 0) {
        free(line);
        fclose(file);
        return err_set(why, ERR_BAD_VALUE, "%s has not the columns of samples", path);
    }
    while ((length = getline(&line, &room, file)) > 0) {
        char *fields[COLUMNS], *at = line;
        if (line[length - 1] != '\n')
            break; /* cut by a kill */
        line[length - 1] = '\0';
        for (int i = 0; i < COLUMNS; i++)
            fields[i] = take_field(&at);
        bool of_energy = strcmp(fields[QUANTITY], "energy") == 0;
        if (!of_energy && strcmp(fields[QUANTITY], "power") != 0)
            continue;
        if (is_known(number_of(fields[T])) && is_known(number_of(fields[SUM])))
            take(power, fields);
        else
            power->damaged++;
    }
    bool failed = ferror(file);
    free(line);
    fclose(file);
    return failed ? err_set(why, ERR_IO, "cannot read %s to its end", path) : ERR_OK;
}

/* ---- which channels there are ---- */

static struct power_channel *find_channel(struct power *power, char *const *fields)
{
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (!strcmp(channel->name, fields[CHANNEL]) && !strcmp(channel->device, fields[DEVICE]) &&
            !strcmp(channel->sensor, fields[SENSOR]))
            return channel;
    }
    return NULL;
}

enum { CHANNELS_MOST = 256 };

static void note_channel(struct power *power, char *const *fields)
{
    struct power_channel *channel = find_channel(power, fields);
    double t = number_of(fields[T]);
    if (!channel && power->count < CHANNELS_MOST) {
        channel = &power->channels[power->count++];
        *channel = (struct power_channel){.first_t = t, .last_t = t};
        str_copy(channel->sensor, sizeof channel->sensor, fields[SENSOR]);
        str_copy(channel->device, sizeof channel->device, fields[DEVICE]);
        str_copy(channel->name, sizeof channel->name, fields[CHANNEL]);
        str_copy(channel->scope, sizeof channel->scope, fields[SCOPE]);
        channel->is_counter = strcmp(fields[QUANTITY], "energy") == 0;
    }
    if (!channel)
        return;
    channel->rows++;
    channel->first_t = fmin(channel->first_t, t);
    channel->last_t = fmax(channel->last_t, t);
}

/* ---- which of them are drawn ---- */

/* Is "SENSOR CHANNEL" one of the parts of a source, which " + " joins? */
static bool source_names(const char *source, const struct power_channel *channel)
{
    char words[200];
    str_format(words, sizeof words, "%s %s", channel->sensor, channel->name);
    size_t length = strlen(words);
    for (const char *at = source; (at = strstr(at, words)); at += length)
        if ((at == source || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

static bool counts(const struct power *power, const struct power_channel *channel,
                   const struct jv *devices)
{
    if (devices) {
        for (const struct jv *device = jv_first(devices); device; device = jv_next(device)) {
            const char *source = jv_text(jv_path(device, "energy.source"));
            if (source && source_names(source, channel))
                return true;
        }
        return false;
    }
    if (channel->is_counter)
        return true;
    for (size_t i = 0; i < power->count; i++)
        if (power->channels[i].is_counter && !strcmp(power->channels[i].device, channel->device))
            return false;
    return true;
}

/* A power meter of the same thing that was read more often shows more of its course than the counter. */
static struct power_channel *finest_like(struct power *power, struct power_channel *chosen)
{
    struct power_channel *finest = chosen;
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *other = &power->channels[i];
        if (!strcmp(other->device, chosen->device) && !strcmp(other->scope, chosen->scope) &&
            !strcmp(other->sensor, chosen->sensor) && other->rows > finest->rows)
            finest = other;
    }
    return finest;
}

static size_t choose(struct power *power, const struct jv *devices)
{
    size_t shown = 0;
    for (size_t i = 0; i < power->count; i++)
        if (counts(power, &power->channels[i], devices))
            finest_like(power, &power->channels[i])->shown = true;
    for (size_t i = 0; i < power->count; i++)
        shown += power->channels[i].shown;
    return shown;
}

/* ---- buckets ---- */

static enum err lay_grid(struct power *power)
{
    double from = INFINITY, to = -INFINITY;
    uint64_t rows = 1;
    for (size_t i = 0; i < power->count; i++) {
        if (!power->channels[i].shown)
            continue;
        from = fmin(from, power->channels[i].first_t);
        to = fmax(to, power->channels[i].last_t);
        rows = power->channels[i].rows > rows ? power->channels[i].rows : rows;
    }
    size_t count = rows < POWER_BUCKETS_MOST ? (size_t)rows : POWER_BUCKETS_MOST;
    double length = fmax(to - from, 1e-3);
    power->grid = (struct time_grid){from, length / (double)count, count};
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (!channel->shown)
            continue;
        double *all = calloc(4 * count, sizeof *all);
        if (!all)
            return ERR_NO_MEMORY;
        channel->joules = all;
        channel->covered_s = all + count;
        channel->least = all + 2 * count;
        channel->largest = all + 3 * count;
        for (size_t b = 0; b < count; b++)
            channel->least[b] = channel->largest[b] = UNKNOWN;
        channel->first_t = UNKNOWN; /* until its first row is read again */
    }
    return ERR_OK;
}

static size_t bucket_at(const struct time_grid *grid, double t)
{
    double place = floor((t - grid->from) / grid->step);
    return (size_t)fmin(fmax(place, 0), (double)grid->count - 1);
}

/* Joules between two readings, laid evenly over the buckets between them. */
static void spread_joules(const struct time_grid *grid, struct power_channel *channel, double t,
                          double joules)
{
    double begin = channel->last_t, length = t - begin;
    for (size_t b = bucket_at(grid, begin); length > 0 && b <= bucket_at(grid, t); b++) {
        double from = grid->from + (double)b * grid->step, to = from + grid->step;
        if (b + 1 == grid->count)
            to = fmax(to, t);
        double part = fmin(to, t) - fmax(from, begin);
        if (part <= 0)
            continue;
        channel->joules[b] += joules * part / length;
        channel->covered_s[b] += part;
        channel->least[b] = fmin(channel->least[b], joules / length);
        channel->largest[b] = fmax(channel->largest[b], joules / length);
    }
}

static void add_row(struct power *power, char *const *fields)
{
    struct power_channel *channel = find_channel(power, fields);
    if (!channel || !channel->shown)
        return;
    double t = number_of(fields[T]), sum = number_of(fields[SUM]);
    double value = number_of(fields[VALUE]), covered = number_of(fields[COVERED]);
    size_t b = bucket_at(&power->grid, t);
    if (is_known(channel->first_t) && covered > 0)
        spread_joules(&power->grid, channel, t, sum - channel->last_sum);
    if (!channel->is_counter && is_known(value)) {
        channel->least[b] = fmin(channel->least[b], value);
        channel->largest[b] = fmax(channel->largest[b], value);
    }
    channel->first_t = is_known(channel->first_t) ? channel->first_t : t;
    channel->last_t = t;
    channel->last_sum = sum;
}

enum err power_read(const char *path, const struct jv *devices, struct power *out,
                    struct error *why)
{
    *out = (struct power){.channels = calloc(CHANNELS_MOST, sizeof *out->channels)};
    if (!out->channels)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = each_row(path, out, note_channel, why);
    if (!err && !choose(out, devices))
        err = err_set(why, ERR_NO_DATA, "%s has no reading of energy or power", path);
    if (!err && lay_grid(out))
        err = err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    out->damaged = 0;
    if (!err)
        err = each_row(path, out, add_row, why);
    if (err)
        power_release(out);
    return err;
}

void power_release(struct power *power)
{
    for (size_t i = 0; i < power->count; i++)
        free(power->channels[i].joules);
    free(power->channels);
    *power = (struct power){0};
}
