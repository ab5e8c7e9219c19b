/* Turns rows of any source into items: shuffling, offset and limit, mapping, and warnings about skipped rows.
 *
 * For shuffling, rows are written to a scratch file and read back in random order, so that memory use is a few tens of
 * bytes per row.  Rows are JSON in that file: their trees need several times the memory of their text, and the rows of
 * Arrow files and of pages from a server cannot be read one by one at random. */
#include "datasets/row_feed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/random.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "port/json_read.h"
#include "port/file.h"

/* ---- shuffle ---- */

struct stored_row {
    long long offset;
    size_t length;
    uint64_t number;
    bool is_bad; /* the bytes are the error message, not a row */
};

struct shuffled {
    int fd;
    struct stored_row *rows;
    size_t count, capacity;
    size_t next;
};

static void shuffled_close(void *state)
{
    struct shuffled *shuffled = state;
    if (shuffled->fd >= 0)
        close(shuffled->fd);
    free(shuffled->rows);
    free(shuffled);
}

static enum err store_row(struct shuffled *shuffled, const char *bytes, struct stored_row stored,
                          struct error *why)
{
    XGROW(shuffled->rows, shuffled->count, shuffled->capacity);
    enum err err = file_write_at(shuffled->fd, bytes, stored.length, stored.offset);
    if (err)
        return err_set(why, err, "shuffle: scratch file: %s", err_text(err));
    shuffled->rows[shuffled->count++] = stored;
    return ERR_OK;
}

static enum err store_all(struct shuffled *shuffled, const struct row_source *from,
                          struct error *why)
{
    struct text bytes = {0};
    long long offset = 0;
    enum err err = ERR_OK;
    while (!err) {
        struct error reason = {0};
        struct jv *row = NULL;
        uint64_t number = 0;
        err = from->next(from->state, &row, &number, &reason);
        bool is_bad = err == ERR_BAD_VALUE;
        if (!err && !row)
            break;
        if (err && !is_bad) {
            err_set(why, err, "%s", reason.text);
            break;
        }
        text_clear(&bytes);
        if (is_bad)
            text_add(&bytes, reason.text);
        else
            jv_print(row, &bytes);
        jv_free(row);
        struct stored_row stored = {offset, bytes.length, number, is_bad};
        err = store_row(shuffled, text_get(&bytes), stored, why);
        offset += (long long)bytes.length;
    }
    text_release(&bytes);
    return err;
}

static enum err shuffled_next(void *state, struct jv **row, uint64_t *number, struct error *why)
{
    struct shuffled *shuffled = state;
    *row = NULL;
    if (shuffled->next == shuffled->count)
        return ERR_OK;
    const struct stored_row *stored = &shuffled->rows[shuffled->next++];
    *number = stored->number;
    char *bytes = xmalloc(stored->length + 1);
    enum err err = file_read_at(shuffled->fd, bytes, stored->length, stored->offset);
    bytes[stored->length] = '\0';
    if (err)
        err_set(why, err, "scratch file: %s", err_text(err));
    else if (stored->is_bad)
        err = err_set(why, ERR_BAD_VALUE, "%s", bytes);
    else
        err = jv_parse(bytes, stored->length, row, why);
    free(bytes);
    return err;
}

static enum err shuffled_skip(void *state, uint64_t count, struct error *why)
{
    (void)why;
    struct shuffled *shuffled = state;
    size_t left = shuffled->count - shuffled->next;
    shuffled->next += count < left ? (size_t)count : left;
    return ERR_OK;
}

/* Replaces the source by one that yields its rows in random order, and closes it. */
static enum err shuffle_source(struct row_source *source, uint64_t seed, struct error *why)
{
    struct shuffled *shuffled = XNEW(shuffled);
    shuffled->fd = -1;
    enum err err = file_open_scratch(&shuffled->fd, why);
    if (!err)
        err = store_all(shuffled, source, why);
    if (err) {
        shuffled_close(shuffled);
        return err;
    }
    struct random random = random_from(seed, 0);
    random_shuffle(&random, shuffled->rows, shuffled->count, sizeof *shuffled->rows);
    source->close(source->state);
    *source = (struct row_source){
        .next = shuffled_next,
        .skip = shuffled_skip,
        .close = shuffled_close,
        .state = shuffled,
        .unit = source->unit,
        .count = (int64_t)shuffled->count,
    };
    return ERR_OK;
}

/* ---- the feed ---- */

enum {
    LOOK_AHEAD = 16, /* rows that open reads to find a valid one */
    WARNINGS_MAX = 5 /* skipped rows that are reported one by one */
};

/* A row that was read, or the error. */
struct feed_row {
    struct jv *value;
    uint64_t number;
    enum err err;
    struct error why;
};

struct row_feed {
    struct row_source source;
    struct row_mapping mapping;
    uint64_t offset, limit, shuffle_seed;
    bool shuffle, skip_bad;
    char where[160];
    struct feed_row ahead[LOOK_AHEAD]; /* read by open, yielded first */
    size_t ahead_count, ahead_used;
    struct feed_row row; /* the current one */
    uint64_t yielded, skipped;
    bool ended; /* permanent, even if the file grows */
};

/* Replaces *row by the next one; ERR_OK also for an invalid one.  *end at the end. */
static enum err read_row(struct row_feed *feed, struct feed_row *row, bool *end, struct error *why)
{
    jv_free(row->value);
    *row = (struct feed_row){0};
    row->err = feed->source.next(feed->source.state, &row->value, &row->number, &row->why);
    *end = !row->err && !row->value;
    if (row->err && row->err != ERR_BAD_VALUE)
        return err_set(why, row->err, "%.150s: %s", feed->where, row->why.text);
    return ERR_OK;
}

/* *why with the position: "questions.jsonl, line 7: not JSON at byte 3". */
static enum err add_position(const struct row_feed *feed, const struct feed_row *row, enum err err,
                             const char *reason, struct error *why)
{
    char copy[sizeof why->text];
    chars_copy(copy, reason); /* it may be why->text */
    return err_set(why, err, "%.100s, %s %llu: %.190s", feed->where, feed->source.unit,
                   (unsigned long long)row->number, copy);
}

/* ---- open ---- */

static enum err read_params(struct row_feed *feed, const struct params *params, struct error *why)
{
    struct params_reader read = {params, why, row_mapping_init(&feed->mapping, params, why)};
    feed->offset = params_count(&read, "offset", 0, 0, UINT64_MAX);
    feed->limit = params_count(&read, "limit", UINT64_MAX, 0, UINT64_MAX);
    feed->shuffle_seed = params_count(&read, "shuffle", 0, 0, UINT64_MAX);
    feed->skip_bad = params_bool(&read, "skip_bad", false);
    feed->shuffle = params_get(params, "shuffle") != NULL;
    return read.err;
}

static enum err skip_offset(struct row_feed *feed, struct error *why)
{
    struct row_source *source = &feed->source;
    if (feed->offset && source->skip)
        return source->skip(source->state, feed->offset, why);
    bool end = false;
    enum err err = ERR_OK;
    for (uint64_t i = 0; i < feed->offset && !end && !err; i++)
        err = read_row(feed, &feed->row, &end, why);
    return err;
}

/* Reads ahead to the first valid row, and checks it against the mapping. */
static enum err look_ahead(struct row_feed *feed, struct error *why)
{
    const struct feed_row *first = feed->ahead;
    bool end = false;
    while (feed->ahead_count < LOOK_AHEAD) {
        struct feed_row *row = &feed->ahead[feed->ahead_count];
        enum err err = read_row(feed, row, &end, why);
        if (err)
            return err;
        if (end)
            break;
        feed->ahead_count++;
        if (row->err)
            continue;
        struct error reason = {0};
        err = row_mapping_check(&feed->mapping, row->value, &reason);
        return err ? add_position(feed, row, err, reason.text, why) : ERR_OK;
    }
    if (first->err)
        return add_position(feed, first, first->err, first->why.text, why);
    if (feed->offset)
        return err_set(why, ERR_BAD_VALUE, "%.150s has no rows after offset=%llu", feed->where,
                       (unsigned long long)feed->offset);
    return err_set(why, ERR_BAD_VALUE, "%.150s has no rows", feed->where);
}

/* -1 when rows may be skipped. */
static int64_t count_items(const struct row_feed *feed)
{
    if (feed->source.count < 0 || feed->skip_bad || row_mapping_filters(&feed->mapping))
        return -1;
    uint64_t rows = (uint64_t)feed->source.count;
    rows = rows > feed->offset ? rows - feed->offset : 0;
    return (int64_t)(rows < feed->limit ? rows : feed->limit);
}

static void feed_free(struct row_feed *feed)
{
    feed->source.close(feed->source.state);
    row_mapping_release(&feed->mapping);
    for (size_t i = 0; i < LOOK_AHEAD; i++)
        jv_free(feed->ahead[i].value);
    jv_free(feed->row.value);
    free(feed);
}

enum err row_feed_open(const struct params *params, struct row_source source, const char *where,
                       struct dataset *out, struct error *why)
{
    struct row_feed *feed = XNEW(feed);
    feed->source = source;
    chars_copy(feed->where, where);
    enum err err = read_params(feed, params, why);
    if (!err && feed->shuffle)
        err = shuffle_source(&feed->source, feed->shuffle_seed, why);
    if (!err)
        err = skip_offset(feed, why);
    if (!err)
        err = look_ahead(feed, why);
    if (err) {
        feed_free(feed);
        return err;
    }
    out->state = feed;
    out->count = count_items(feed);
    if (feed->mapping.choices && !out->grader[0])
        chars_copy(out->grader, "choice");
    return ERR_OK;
}

/* ---- next ---- */

static void swap_rows(struct feed_row *a, struct feed_row *b)
{
    struct feed_row kept = *a;
    *a = *b;
    *b = kept;
}

static enum err take_row(struct row_feed *feed, bool *end, struct error *why)
{
    *end = false;
    if (feed->ahead_used == feed->ahead_count)
        return read_row(feed, &feed->row, end, why);
    swap_rows(&feed->row, &feed->ahead[feed->ahead_used++]);
    return ERR_OK;
}

static enum err map_row(struct row_feed *feed, struct item *out, bool *wanted, struct error *why)
{
    const struct feed_row *row = &feed->row;
    struct error reason = row->why;
    enum err err = row->err;
    if (!err)
        err = row_mapping_apply(&feed->mapping, row->value, row->number, out, wanted, &reason);
    if (!err)
        return ERR_OK;
    item_release(out);
    return add_position(feed, row, err, reason.text, why);
}

static void report_skipped(struct row_feed *feed, const char *reason)
{
    if (feed->skipped++ < WARNINGS_MAX)
        log_warn("skipped: %s", reason);
}

static void report_total(struct row_feed *feed)
{
    if (feed->skipped > WARNINGS_MAX)
        log_warn("%.150s: %llu rows skipped", feed->where, (unsigned long long)feed->skipped);
    feed->skipped = 0;
}

enum err row_feed_open_file(const struct params *params, const struct row_file *file,
                            struct dataset *out, struct error *why)
{
    struct row_source source = file->source;
    const char *path = params_get(params, "path");
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset %s needs path=%s", out->name, file->placeholder);
    source.state = xcalloc(1, file->state_size);
    enum err err = file->open(out, params, path, source.state, why);
    if (err) {
        free(source.state);
        return err;
    }
    return row_feed_open(params, source, path, out, why);
}

enum err row_feed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    struct row_feed *feed = dataset->state;
    struct error reason = {0};
    while (feed->yielded < feed->limit && !feed->ended) {
        bool wanted = true;
        enum err err = take_row(feed, end, &reason);
        if (!err && *end)
            break;
        if (!err)
            err = map_row(feed, out, &wanted, &reason);
        if (err == ERR_BAD_VALUE && feed->skip_bad) {
            report_skipped(feed, reason.text);
        } else if (err) {
            return err_set(why, err, "%s", reason.text);
        } else if (wanted) {
            feed->yielded++;
            return ERR_OK;
        }
    }
    feed->ended = true;
    report_total(feed);
    *end = true;
    return ERR_OK;
}

void row_feed_close(struct dataset *dataset)
{
    feed_free(dataset->state);
    dataset->state = NULL;
}
