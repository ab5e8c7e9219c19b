/* Writing and reading samples.csv.  A reader takes the columns by their names, so files of earlier versions,
 * which have fewer, are read too; numbers are parsed only in rows that pass the filter. */
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

#include "core/csv.h"
#include "core/units.h"
#include "rundir/run_path.h"

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
    enum err err = writer->text.failed ? ERR_NO_MEMORY
                                       : file_write_all(writer->file.fd, text_get(&writer->text),
                                                        writer->text.length);
    text_clear(&writer->text);
    return err;
}

enum err samples_add(struct samples_writer *writer, const struct sample *sample)
{
    struct text *out = &writer->text;
    text_addf(out, "%.9f,", sample->t_s);
    csv_add(out, sample->sensor);
    text_add(out, ",");
    csv_add(out, sample->device); /* these may hold a board maker's own label */
    text_add(out, ",");
    csv_add(out, sample->channel);
    text_addf(out, ",%s,%s,%s,", sample->scope, sample->quantity, sample->unit);
    if (is_known(sample->value))
        text_addf(out, "%.9g", sample->value);
    text_addf(out, ",%.12g,%.3g,", sample->sum, sample->covered);
    if (is_known(sample->t_plus_minus_s))
        text_addf(out, "%.3g", sample->t_plus_minus_s);
    text_add(out, "\n");
    return out->length >= PIECE || out->failed ? samples_flush(writer) : ERR_OK;
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
    int64_t budget; /* bytes of a piece */
    int64_t left;   /* of the piece that is read */
    int piece;      /* the next one */
    char *line;     /* being given out */
    size_t capacity, at, length;
};

/* The next line of a piece.  At the beginning of one may be the end of a line, which is left out, but for the
 * first: that begins with the columns' names. */
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

struct reading {
    struct csv_reader csv;
    size_t columns[COLUMNS];
    const struct samples_query *query;
};

static const char *field(const struct reading *reading, const struct csv_row *row,
                         enum column column)
{
    size_t at = reading->columns[column];
    return at < row->count ? row->fields[at].start : "";
}

static double number(const struct reading *reading, const struct csv_row *row, enum column column)
{
    const char *text = field(reading, row, column);
    char *end;
    double value = strtod(text, &end);
    return end != text && *end == '\0' ? value : UNKNOWN;
}

static bool gives_joules(const char *quantity)
{
    return strcmp(quantity, "energy") == 0 || strcmp(quantity, "power") == 0;
}

static bool is_wanted(const struct reading *reading, const struct csv_row *row)
{
    const struct samples_query *query = reading->query;
    const char *quantity = field(reading, row, QUANTITY);
    if (query->quantity && strcmp(query->quantity, quantity) != 0)
        return false;
    if (query->kind == SAMPLES_ENERGY)
        return gives_joules(quantity);
    return query->kind != SAMPLES_GAUGES || strcmp(field(reading, row, SCOPE), "none") == 0;
}

static bool get_sample(const struct reading *reading, const struct csv_row *row, struct sample *out)
{
    *out = (struct sample){
        .t_s = number(reading, row, T),
        .sensor = field(reading, row, SENSOR),
        .device = field(reading, row, DEVICE),
        .channel = field(reading, row, CHANNEL),
        .scope = field(reading, row, SCOPE),
        .quantity = field(reading, row, QUANTITY),
        .unit = field(reading, row, UNIT),
        .value = number(reading, row, VALUE),
        .sum = number(reading, row, SUM),
        .covered = number(reading, row, COVERED),
        .t_plus_minus_s = number(reading, row, SIGMA),
    };
    /* Joules are differences of the sum: without it such a row says nothing.  Three years are no moment of a run. */
    return row->count > reading->columns[VALUE] && fabs(out->t_s) < 1e8 &&
           (is_known(out->sum) || !gives_joules(out->quantity));
}

/* By the names in the first row; later rows may lack fields at their end, as those of earlier versions do. */
static enum err find_columns(struct reading *reading, struct error *why)
{
    struct csv_row row;
    bool end;
    enum err err = csv_reader_next(&reading->csv, &row, &end, why);
    for (int i = 0; !err && i < COLUMNS; i++) {
        reading->columns[i] = row.count;
        for (size_t k = row.count; k-- > 0;)
            if (slice_is(row.fields[k], NAMES[i]))
                reading->columns[i] = k;
        if (i <= SUM && reading->columns[i] == row.count)
            err = err_set(why, ERR_BAD_VALUE, "unexpected columns: there is no %s", NAMES[i]);
    }
    return err;
}

static enum err read_rows(struct reading *reading, samples_take *take, void *context,
                          struct samples_found *found, struct error *why)
{
    bool end = false;
    enum err err = find_columns(reading, why);
    while (!err && !end) {
        struct csv_row row;
        struct sample sample;
        err = csv_reader_next(&reading->csv, &row, &end, why);
        if (err == ERR_BAD_VALUE) {
            found->damaged += row.has_line_end; /* else it was cut by a kill */
            err = ERR_OK;
            continue;
        }
        if (err || end || !row.has_line_end || !is_wanted(reading, &row))
            continue;
        if (get_sample(reading, &row, &sample))
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
    char path[FILE_PATH_MAX];
    struct reading reading = {.query = query};
    struct error reason = {0};
    *found = (struct samples_found){0};
    if (!run_path_samples(directory, start, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    struct source source = {.file = fopen(path, "re")};
    if (!source.file)
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    limit_source(&source, query->bytes_max);
    found->in_part = source.size > 0;
    csv_reader_source(&reading.csv, read_source, &source);
    enum err err = read_rows(&reading, take, context, found, &reason);
    if (err && reason.text[0])
        err_set(why, err, "%s: %s", path, reason.text);
    else if (err && why && !why->text[0])
        err_set(why, err, "%s: %s", path, err_text(err));
    csv_reader_release(&reading.csv);
    fclose(source.file);
    free(source.line);
    return err;
}

unsigned samples_starts(const char *directory)
{
    unsigned last = 0;
    const struct dirent *entry;
    DIR *dir = opendir(directory);
    while (dir && (entry = readdir(dir))) {
        unsigned start = run_path_start_of(entry->d_name);
        last = start > last ? start : last;
    }
    if (dir)
        closedir(dir);
    return last;
}
