/* Writing and reading samples.csv.  A reader finds columns by name, so that files of earlier versions, which have
 * fewer, can be read; numbers are parsed only in rows that match the filter. */
#define _GNU_SOURCE
#include "rundir/samples.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

enum column {
    T,
    SENSOR,
    DEVICE,
    CHANNEL,
    SCOPE,
    QUANTITY,
    UNIT,
    VALUE,
    SUM,
    COVERED,
    SIGMA,
    COLUMNS
};

static const char *const NAMES[COLUMNS] = {
    [T] = "t_s",           [SENSOR] = "sensor",        [DEVICE] = "device",
    [CHANNEL] = "channel", [SCOPE] = "scope",          [QUANTITY] = "quantity",
    [UNIT] = "unit",       [VALUE] = "value",          [SUM] = "sum",
    [COVERED] = "covered", [SIGMA] = "t_plus_minus_s",
};

/* ---- writing ---- */

enum { PIECE = 1 << 16 };

enum err samples_create(struct samples_writer *writer, const char *path, bool own,
                        struct error *why)
{
    *writer = (struct samples_writer){.file = {.fd = -1, .folder = -1}};
    enum err opened = own ? file_open_own(path, O_WRONLY | O_CREAT | O_TRUNC, &writer->file.fd, why)
                          : output_open(&writer->file, path, false, why);
    if (opened)
        return opened;
    for (int i = 0; i < COLUMNS; i++)
        text_addf(&writer->text, "%s%s", i ? "," : "", NAMES[i]);
    text_add(&writer->text, "\n");
    enum err err = samples_flush(writer);
    if (err) {
        samples_close(writer);
        return err_set(why, err, "cannot write %s: %s", path, err_text(err));
    }
    return ERR_OK;
}

enum err samples_flush(struct samples_writer *writer)
{
    enum err err = file_write_all(writer->file.fd, text_get(&writer->text), writer->text.length);
    text_clear(&writer->text);
    return err;
}

enum err samples_add(struct samples_writer *writer, const struct sample *sample)
{
    struct text *out = &writer->text;
    text_addf(out, "%.9f,", sample->t_s);
    csv_add(out, sample->sensor);
    text_add(out, ",");
    csv_add(out, sample->device); /* these may contain a board vendor's label */
    text_add(out, ",");
    csv_add(out, sample->channel);
    text_addf(out, ",%s,%s,%s,", sample->scope, sample->quantity, sample->unit);
    if (is_known(sample->value))
        text_addf(out, "%.9g", sample->value);
    text_addf(out, ",%.12g,%.3g,", sample->sum, sample->covered);
    if (is_known(sample->t_plus_minus_s))
        text_addf(out, "%.3g", sample->t_plus_minus_s);
    text_add(out, "\n");
    return out->length >= PIECE ? samples_flush(writer) : ERR_OK;
}

enum err samples_close(struct samples_writer *writer)
{
    enum err err = ERR_OK;
    struct error why;
    if (writer->file.fd >= 0)
        err = output_finish(&writer->file, writer->text.length ? samples_flush(writer) : ERR_OK,
                            &why);
    text_release(&writer->text);
    return err;
}

/* ---- the bytes of a file, or of some pieces of it ---- */

enum { PIECES = 256 };

struct source {
    FILE *file;
    off_t size;     /* of the file; 0: all of it is read */
    int64_t budget; /* bytes per piece */
    int64_t left;   /* of the current piece */
    int piece;      /* the next one */
    char *line;     /* returned to the caller */
    size_t capacity, at, length;
};

/* The next line of a piece.  A piece may start with a partial line, which is skipped, except for the first, which
 * starts with the header. */
static bool next_line(struct source *source)
{
    while (source->left <= 0) {
        if (source->piece == PIECES)
            return false;
        off_t from = source->size / PIECES * source->piece++;
        source->left = source->budget;
        if (fseeko(source->file, from, SEEK_SET) != 0)
            return false;
        ssize_t skipped = from ? getline(&source->line, &source->capacity, source->file) : 0;
        source->left -= skipped > 0 ? skipped : 0;
    }
    ssize_t got = getline(&source->line, &source->capacity, source->file);
    source->left -= got;
    source->at = 0;
    source->length = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static long read_source(void *context, char *to, size_t size)
{
    struct source *source = context;
    if (!source->size) {
        size_t got = fread(to, 1, size, source->file);
        return got || !ferror(source->file) ? (long)got : -1;
    }
    if (source->at == source->length && !next_line(source))
        return 0;
    size_t part = source->length - source->at < size ? source->length - source->at : size;
    memcpy(to, source->line + source->at, part);
    source->at += part;
    return (long)part;
}

static void limit_source(struct source *source, uint64_t bytes_max)
{
    struct stat status;
    if (bytes_max && fstat(fileno(source->file), &status) == 0 &&
        (uint64_t)status.st_size > bytes_max) {
        source->size = status.st_size;
        source->budget = (int64_t)(bytes_max / PIECES);
    }
}

/* ---- rows ---- */

struct samples_reader {
    struct csv_reader csv;
    size_t columns[COLUMNS];
    const struct samples_query *query;
};

static const char *field(const struct samples_reader *reader, const struct csv_row *row,
                         enum column column)
{
    size_t at = reader->columns[column];
    return at < row->count ? row->fields[at].start : "";
}

static double number(const struct samples_reader *reader, const struct csv_row *row,
                     enum column column)
{
    const char *text = field(reader, row, column);
    char *end;
    double value = strtod(text, &end);
    return end != text && *end == '\0' ? value : UNKNOWN;
}

static bool gives_joules(const char *quantity)
{
    return str_equal(quantity, "energy") || str_equal(quantity, "power");
}

static bool is_wanted(const struct samples_reader *reader, const struct csv_row *row)
{
    const struct samples_query *query = reader->query;
    const char *quantity = field(reader, row, QUANTITY);
    if (query->quantity && !str_equal(query->quantity, quantity))
        return false;
    if (query->kind == SAMPLES_ENERGY)
        return gives_joules(quantity);
    return query->kind != SAMPLES_GAUGES || str_equal(field(reader, row, SCOPE), "none");
}

static bool get_sample(const struct samples_reader *reader, const struct csv_row *row,
                       struct sample *out)
{
    *out = (struct sample){
        .t_s = number(reader, row, T),
        .sensor = field(reader, row, SENSOR),
        .device = field(reader, row, DEVICE),
        .channel = field(reader, row, CHANNEL),
        .scope = field(reader, row, SCOPE),
        .quantity = field(reader, row, QUANTITY),
        .unit = field(reader, row, UNIT),
        .value = number(reader, row, VALUE),
        .sum = number(reader, row, SUM),
        .covered = number(reader, row, COVERED),
        .t_plus_minus_s = number(reader, row, SIGMA),
    };
    /* Joules are differences of the sum: a row without it is useless.  Times of more than three years are invalid. */
    return row->count > reader->columns[VALUE] && fabs(out->t_s) < 1e8 &&
           (is_known(out->sum) || !gives_joules(out->quantity));
}

/* By the names in the header; later rows may lack fields at the end, as in earlier versions. */
static enum err find_columns(struct samples_reader *reader, struct error *why)
{
    struct csv_row row;
    bool end;
    enum err err = csv_reader_next(&reader->csv, &row, &end, why);
    for (int i = 0; !err && i < COLUMNS; i++) {
        reader->columns[i] = row.count;
        for (size_t k = row.count; k-- > 0;)
            if (slice_is(row.fields[k], NAMES[i]))
                reader->columns[i] = k;
        if (i <= SUM && reader->columns[i] == row.count)
            err = err_set(why, ERR_BAD_VALUE, "unexpected columns: there is no %s", NAMES[i]);
    }
    return err;
}

static enum err read_rows(struct samples_reader *reader, samples_take *take, void *context,
                          struct samples_found *found, struct error *why)
{
    bool end = false;
    enum err err = find_columns(reader, why);
    while (!err && !end) {
        struct csv_row row;
        struct sample sample;
        err = csv_reader_next(&reader->csv, &row, &end, why);
        if (err == ERR_BAD_VALUE) {
            found->damaged += row.has_line_end; /* otherwise truncated by a kill */
            err = ERR_OK;
            continue;
        }
        if (err || end || !row.has_line_end || !is_wanted(reader, &row))
            continue;
        if (get_sample(reader, &row, &sample))
            err = take(context, &sample);
        else
            found->damaged++;
    }
    return err;
}

enum err samples_read(const char *directory, unsigned start, const struct samples_query *query,
                      samples_take *take, void *context, struct samples_found *found,
                      struct error *why)
{
    struct samples_reader reader = {.query = query};
    struct error reason = {0};
    *found = (struct samples_found){0};
    char *path = run_path_samples(directory, start);
    struct source source = {0};
    enum err err = run_open_file(path, &source.file, why);
    if (err) {
        free(path);
        return err;
    }
    limit_source(&source, query->bytes_max);
    found->in_part = source.size > 0;
    csv_reader_source(&reader.csv, read_source, &source);
    err = read_rows(&reader, take, context, found, &reason);
    if (err && reason.text[0])
        err_set(why, err, "%s: %s", path, reason.text);
    else if (err && why && !why->text[0])
        err_set(why, err, "%s: %s", path, err_text(err));
    csv_reader_release(&reader.csv);
    fclose(source.file);
    free(source.line);
    free(path);
    return err;
}

unsigned samples_starts(const char *directory)
{
    unsigned last = 0;
    const struct dirent *entry;
    DIR *dir = run_open_directory(directory);
    while (dir && (entry = readdir(dir))) {
        unsigned start = run_path_start_of(entry->d_name);
        last = start > last ? start : last;
    }
    if (dir)
        closedir(dir);
    return last;
}

/* ---- power over time ---- */

/* ---- finding channels ---- */

static struct power_channel *find_channel(struct power *power, const struct sample *sample)
{
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (str_equal(channel->name, sample->channel) &&
            str_equal(channel->device, sample->device) &&
            str_equal(channel->sensor, sample->sensor))
            return channel;
    }
    return NULL;
}

enum { CHANNELS_MAX = 256 };

static enum err update_channel(void *context, const struct sample *sample)
{
    struct power *power = context;
    struct power_channel *channel = find_channel(power, sample);
    double t = sample->t_s;
    if (!channel && power->count < CHANNELS_MAX) {
        channel = &power->channels[power->count++];
        *channel = (struct power_channel){.first_t = t, .last_t = t};
        chars_copy(channel->sensor, sample->sensor);
        chars_copy(channel->device, sample->device);
        chars_copy(channel->name, sample->channel);
        chars_copy(channel->scope, sample->scope);
        channel->is_counter = str_equal(sample->quantity, "energy");
    }
    if (!channel)
        return ERR_OK;
    channel->rows++;
    channel->first_t = fmin(channel->first_t, t);
    channel->last_t = fmax(channel->last_t, t);
    return ERR_OK;
}

/* ---- choosing channels ---- */

/* Whether "SENSOR CHANNEL" is one of the parts of a source, joined by " + ". */
static bool source_names(const char *source, const struct power_channel *channel)
{
    char words[200];
    chars_format(words, "%s %s", channel->sensor, channel->name);
    size_t length = strlen(words);
    for (const char *at = source; (at = strstr(at, words)); at += length)
        if ((at == source || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

static bool is_source(const struct power_channel *channel, const struct summary *summary)
{
    for (size_t i = 0; i < summary->device_count; i++) {
        const char *source = summary->devices[i].energy.source;
        if (source && source_names(source, channel))
            return true;
    }
    return false;
}

/* A power meter of the same domain that was read more often shows more detail than the counter. */
static struct power_channel *find_finest(struct power *power, struct power_channel *chosen)
{
    struct power_channel *finest = chosen;
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *other = &power->channels[i];
        if (str_equal(other->device, chosen->device) && str_equal(other->scope, chosen->scope) &&
            str_equal(other->sensor, chosen->sensor) && other->rows > finest->rows)
            finest = other;
    }
    return finest;
}

static enum scope scope_named(const char *name)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        if (str_equal(scope_name((enum scope)scope), name))
            return (enum scope)scope;
    return SCOPE_NONE;
}

/* Its joules are contained in another channel of the same device; or it is the same domain, with fewer samples. */
static bool is_covered(const struct power *power, const struct power_channel *channel)
{
    enum scope scope = scope_named(channel->scope);
    for (const struct power_channel *other = power->channels;
         other < power->channels + power->count; other++) {
        if (other == channel || !str_equal(other->device, channel->device))
            continue;
        bool same = str_equal(other->scope, channel->scope);
        if (same ? other->rows > channel->rows || (other->rows == channel->rows && other < channel)
                 : scope_contains(scope_named(other->scope), scope))
            return true;
    }
    return scope == SCOPE_NONE;
}

static bool choose(struct power *power, const struct summary *summary)
{
    bool any = false;
    for (size_t i = 0; i < power->count; i++)
        if (is_source(&power->channels[i], summary))
            find_finest(power, &power->channels[i])->shown = any = true;
    for (size_t i = 0; i < power->count && !any; i++)
        power->channels[i].shown = !is_covered(power, &power->channels[i]);
    for (size_t i = 0; i < power->count && !any; i++)
        any = power->channels[i].shown;
    return any;
}

/* ---- buckets ---- */

static void make_grid(struct power *power, size_t buckets_max)
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
    size_t count = rows < buckets_max ? (size_t)rows : buckets_max;
    double length = fmax(to - from, 1e-3);
    power->grid = (struct time_grid){from, length / (double)count, count};
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (!channel->shown)
            continue;
        double *all = xcalloc(4 * count, sizeof *all);
        channel->joules = all;
        channel->covered_s = all + count;
        channel->min = all + 2 * count;
        channel->max = all + 3 * count;
        for (size_t b = 0; b < count; b++)
            channel->min[b] = channel->max[b] = UNKNOWN;
        channel->first_t = UNKNOWN; /* until its first row is read again */
    }
}

static size_t bucket_at(const struct time_grid *grid, double t)
{
    double place = floor((t - grid->from) / grid->step);
    return (size_t)fmin(fmax(place, 0), (double)grid->count - 1);
}

/* Distributes the joules between two readings evenly over the buckets between them. */
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
        channel->min[b] = fmin(channel->min[b], joules / length);
        channel->max[b] = fmax(channel->max[b], joules / length);
    }
}

static enum err add_row(void *context, const struct sample *sample)
{
    struct power *power = context;
    struct power_channel *channel = find_channel(power, sample);
    if (!channel || !channel->shown)
        return ERR_OK;
    double t = sample->t_s, value = sample->value;
    size_t b = bucket_at(&power->grid, t);
    if (is_known(channel->first_t) && sample->covered > 0)
        spread_joules(&power->grid, channel, t, sample->sum - channel->last_sum);
    if (!channel->is_counter && is_known(value)) {
        channel->min[b] = fmin(channel->min[b], value);
        channel->max[b] = fmax(channel->max[b], value);
    }
    channel->first_t = is_known(channel->first_t) ? channel->first_t : t;
    channel->last_t = t;
    channel->last_sum = sample->sum;
    return ERR_OK;
}

double power_mean(const struct power_channel *channel, size_t bucket)
{
    double covered = channel->covered_s[bucket];
    return covered > 0 ? channel->joules[bucket] / covered : UNKNOWN;
}

enum err power_read(const char *directory, unsigned start, const struct summary *summary,
                    size_t buckets_max, struct power *out, struct error *why)
{
    const struct samples_query query = {.kind = SAMPLES_ENERGY};
    struct samples_found found = {0};
    *out = (struct power){.channels = xcalloc(CHANNELS_MAX, sizeof *out->channels)};
    enum err err = samples_read(directory, start, &query, update_channel, out, &found, why);
    if (!err && !choose(out, summary))
        err = err_set(why, ERR_NO_DATA, "no reading of energy or power in the samples of start %u",
                      start);
    if (!err) {
        make_grid(out, buckets_max);
        err = samples_read(directory, start, &query, add_row, out, &found, why);
    }
    out->damaged = found.damaged;
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
