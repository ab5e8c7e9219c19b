#include "datasets/rows/feed.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/rows/shuffle.h"
#include "datasets/rows/utf8.h"
#include "port/json_read.h"

enum {
    LOOK_AHEAD = 16, /* rows that open looks at to find one that can be used */
    WARNINGS_MAX = 5 /* rows left out that are told one by one */
};

/* A row that was read: its text, or why it has none. */
struct row {
    struct text json;
    uint64_t number;
    enum err err;
    struct error why;
};

struct feed {
    struct row_source source;
    struct mapping mapping;
    uint64_t offset, limit, shuffle_seed;
    bool shuffle, skip_bad;
    char where[160];
    struct row ahead[LOOK_AHEAD]; /* read by open, to be given first */
    size_t ahead_count, ahead_given;
    struct row row; /* the one in hand */
    uint64_t given, left_out;
    bool ended; /* for good, even if its file grows */
};

/* Reads a row; ERR_OK also for one that cannot be used.  *end at the end. */
static enum err read_row(struct feed *feed, struct row *row, bool *end, struct error *why)
{
    row->why = (struct error){0};
    *end = false;
    row->err = feed->source.next(feed->source.state, &row->json, &row->number, end, &row->why);
    if (row->err && row->err != ERR_BAD_VALUE)
        return err_set(why, row->err, "%.150s: %s", feed->where, row->why.text);
    if (!row->err && !*end)
        utf8_repair_json(&row->json);
    return row->json.failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}

/* *why, with where it was: "questions.jsonl, line 7: not JSON at byte 3". */
static enum err at_row(const struct feed *feed, const struct row *row, enum err err,
                       const char *reason, struct error *why)
{
    char told[sizeof why->text];
    str_copy(told, sizeof told, reason); /* it may be why->text */
    return err_set(why, err, "%.100s, %s %llu: %.190s", feed->where, feed->source.unit,
                   (unsigned long long)row->number, told);
}

static enum err parse_row(const struct feed *feed, const struct row *row, struct jv **out,
                          struct error *why)
{
    *out = NULL;
    if (row->err)
        return at_row(feed, row, row->err, row->why.text, why);
    struct error reason = {0};
    enum err err = jv_parse(text_get(&row->json), row->json.length, out, &reason);
    return err ? at_row(feed, row, err, reason.text, why) : ERR_OK;
}

/* ---- open ---- */

static enum err read_params(struct feed *feed, const struct params *params, struct error *why)
{
    enum err err = mapping_init(&feed->mapping, params, why);
    if (!err)
        err = params_count(params, "offset", 0, &feed->offset, why);
    if (!err)
        err = params_count(params, "limit", UINT64_MAX, &feed->limit, why);
    if (!err)
        err = params_count(params, "shuffle", 0, &feed->shuffle_seed, why);
    if (!err)
        err = params_truth(params, "skip_bad", false, &feed->skip_bad, why);
    feed->shuffle = params_get(params, "shuffle") != NULL;
    return err;
}

static enum err skip_offset(struct feed *feed, struct error *why)
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

/* Reads ahead to the first row that parses, and holds it to the mapping. */
static enum err look_ahead(struct feed *feed, struct error *why)
{
    struct error first = {0};
    bool end = false;
    while (feed->ahead_count < LOOK_AHEAD) {
        struct row *row = &feed->ahead[feed->ahead_count];
        enum err err = read_row(feed, row, &end, why);
        if (err)
            return err;
        if (end)
            break;
        feed->ahead_count++;
        struct error reason = {0};
        struct jv *parsed;
        err = parse_row(feed, row, &parsed, &reason);
        if (!err) {
            err = mapping_check(&feed->mapping, parsed, &reason);
            if (err)
                err = at_row(feed, row, err, reason.text, why);
            jv_free(parsed);
            return err;
        }
        if (!first.code)
            first = reason;
    }
    if (first.code)
        return err_set(why, first.code, "%s", first.text);
    if (feed->offset)
        return err_set(why, ERR_BAD_VALUE, "%.150s has no rows after offset=%llu", feed->where,
                       (unsigned long long)feed->offset);
    return err_set(why, ERR_BAD_VALUE, "%.150s has no rows", feed->where);
}

/* -1 where rows may turn out not to be items. */
static int64_t count_items(const struct feed *feed)
{
    if (feed->source.count < 0 || feed->skip_bad || mapping_filters(&feed->mapping))
        return -1;
    uint64_t rows = (uint64_t)feed->source.count;
    rows = rows > feed->offset ? rows - feed->offset : 0;
    return (int64_t)(rows < feed->limit ? rows : feed->limit);
}

static void feed_free(struct feed *feed)
{
    feed->source.close(feed->source.state);
    mapping_release(&feed->mapping);
    for (size_t i = 0; i < LOOK_AHEAD; i++)
        text_release(&feed->ahead[i].json);
    text_release(&feed->row.json);
    free(feed);
}

enum err feed_open(const struct params *params, struct row_source source, const char *where,
                   struct dataset *out, struct error *why)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed) {
        source.close(source.state);
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    feed->source = source;
    str_copy(feed->where, sizeof feed->where, where);
    enum err err = read_params(feed, params, why);
    if (!err && feed->shuffle)
        err = row_shuffle(&feed->source, feed->shuffle_seed, why);
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
        str_copy(out->grader, sizeof out->grader, "choice");
    return ERR_OK;
}

/* ---- next ---- */

static void swap_rows(struct row *a, struct row *b)
{
    struct row kept = *a;
    *a = *b;
    *b = kept;
}

static enum err take_row(struct feed *feed, bool *end, struct error *why)
{
    *end = false;
    if (feed->ahead_given == feed->ahead_count)
        return read_row(feed, &feed->row, end, why);
    swap_rows(&feed->row, &feed->ahead[feed->ahead_given++]);
    return ERR_OK;
}

static enum err map_row(struct feed *feed, struct item *out, bool *wanted, struct error *why)
{
    struct jv *parsed;
    enum err err = parse_row(feed, &feed->row, &parsed, why);
    if (err)
        return err;
    struct error reason = {0};
    err = mapping_apply(&feed->mapping, parsed, feed->row.number, out, wanted, &reason);
    jv_free(parsed);
    if (err) {
        item_release(out);
        return at_row(feed, &feed->row, err, reason.text, why);
    }
    return ERR_OK;
}

static void tell_left_out(struct feed *feed, const char *reason)
{
    if (feed->left_out++ < WARNINGS_MAX)
        log_warn("left out: %s", reason);
}

static void tell_sum(struct feed *feed)
{
    if (feed->left_out > WARNINGS_MAX)
        log_warn("%.150s: %llu rows were left out", feed->where,
                 (unsigned long long)feed->left_out);
    feed->left_out = 0;
}

enum err feed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    struct feed *feed = dataset->state;
    struct error reason = {0};
    while (feed->given < feed->limit && !feed->ended) {
        bool wanted = true;
        enum err err = take_row(feed, end, &reason);
        if (!err && *end) {
            break;
        }
        if (!err)
            err = map_row(feed, out, &wanted, &reason);
        if (err == ERR_BAD_VALUE && feed->skip_bad) {
            tell_left_out(feed, reason.text);
        } else if (err) {
            return err_set(why, err, "%s", reason.text);
        } else if (wanted) {
            feed->given++;
            return ERR_OK;
        }
    }
    feed->ended = true;
    tell_sum(feed);
    *end = true;
    return ERR_OK;
}

void feed_close(struct dataset *dataset)
{
    feed_free(dataset->state);
    dataset->state = NULL;
}
