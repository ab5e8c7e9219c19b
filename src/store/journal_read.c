/* Reading a journal: its lines, and the records that they make together. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/json_read.h"
#include "store/journal.h"
#include "store/journal/lines.h"
#include "store/journal/sorter.h"

enum { LEAST_WAITING = 1 << 14 };

/* NULL in *out, and counted, when the line is no JSON object. */
static enum err parse(const struct journal_line *line, struct jv **out, uint64_t *damaged)
{
    *out = NULL;
    enum err err = line->bytes ? jv_parse(line->bytes, line->length, out, NULL) : ERR_BAD_VALUE;
    if (!err && !jv_is_object(*out)) {
        jv_free(*out);
        *out = NULL;
        err = ERR_BAD_VALUE;
    }
    if (err != ERR_BAD_VALUE)
        return err;
    ++*damaged;
    return ERR_OK;
}

/* Gives every line that can be read, with its place. */
static enum err each_line(const char *path,
                          enum err (*take)(void *context, const struct jv *value,
                                           const struct journal_line *line, struct error *why),
                          void *context, uint64_t *damaged, struct error *why)
{
    struct journal_lines lines;
    struct journal_line line;
    bool end = false;
    *damaged = 0;
    enum err err = jv_available(why);
    if (!err)
        err = journal_lines_open(&lines, path, why);
    if (err)
        return err;
    while (!err && !(err = journal_lines_next(&lines, &line, &end, why)) && !end) {
        struct jv *value = NULL;
        if (line.bytes && line.length == 0)
            continue;
        err = parse(&line, &value, damaged);
        if (!err && value)
            err = take(context, value, &line, why);
        jv_free(value);
    }
    journal_lines_close(&lines);
    return err;
}

/* ---- lines ---- */

struct taker {
    enum err (*take)(void *context, const struct jv *value);
    void *context;
};

static enum err pass_line(void *context, const struct jv *value, const struct journal_line *line,
                          struct error *why)
{
    (void)line, (void)why;
    const struct taker *taker = context;
    return taker->take(taker->context, value);
}

enum err journal_read(const char *path, enum err (*take)(void *context, const struct jv *line),
                      void *context, uint64_t *damaged, struct error *why)
{
    struct taker taker = {take, context};
    return each_line(path, pass_line, &taker, damaged, why);
}

/* ---- records ----
 *
 * A grade may stand a million lines after its query, and a resumed run may replace any query, so the
 * file is read twice.  First every line's place is sorted by key, which brings together what makes
 * a record; then the places of what counts are sorted by the query's, which gives the file's order
 * back.  Memory holds one record, and as many places as the caller allows. */

struct finding {
    struct sorter *by_key;
    uint64_t starts; /* `run` lines so far */
};

/* What a place carries while it is sorted by key: whether it is the query's own line, how long it
 * is (less than 2^31), and which start of the run wrote it. */
static uint64_t pack(bool is_query, size_t length, uint64_t start)
{
    return start << 32 | (uint64_t)length << 1 | is_query;
}

static bool is_query(const struct place *place)
{
    return place->length & 1;
}

static uint64_t length_of(const struct place *place)
{
    return (place->length & UINT32_MAX) >> 1;
}

static uint64_t start_of(const struct place *place)
{
    return place->length >> 32;
}

/* 128 bits of a key: two different ones of a run do not share them. */
static void hash_key(const char *key, uint64_t out[2])
{
    uint64_t a = UINT64_C(0xCBF29CE484222325), b = UINT64_C(0x9E3779B97F4A7C15);
    for (const unsigned char *s = (const unsigned char *)key; *s; s++) {
        a = (a ^ *s) * UINT64_C(0x100000001B3);
        b = (b + *s) * UINT64_C(0xD6E8FEB86659FD93);
        b ^= b >> 29;
    }
    out[0] = a ^ (a >> 32);
    out[1] = b;
}

static enum err find_place(void *context, const struct jv *value, const struct journal_line *line,
                           struct error *why)
{
    struct finding *finding = context;
    const char *kind = jv_text(jv_get(value, "kind")), *key = jv_text(jv_get(value, "key"));
    finding->starts += kind && !strcmp(kind, "run");
    if (!kind || !key)
        return ERR_OK;
    bool own = !strcmp(kind, "query");
    if (!own && strcmp(kind, "energy") != 0 && strcmp(kind, "grade") != 0)
        return ERR_OK;
    struct place place = {.length = pack(own, line->length, finding->starts)};
    hash_key(key, place.order);
    place.order[2] = line->at;
    return sorter_add(finding->by_key, &place, why);
}

/* The places of one key, in the order of the file, as they come. */
struct group {
    struct place *places;
    size_t count, capacity;
};

static enum err group_add(struct group *group, const struct place *place, struct error *why)
{
    if (group->count == group->capacity) {
        size_t capacity = group->capacity ? group->capacity * 2 : 16;
        struct place *places = realloc(group->places, capacity * sizeof *places);
        if (!places)
            return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
        group->places = places;
        group->capacity = capacity;
    }
    group->places[group->count++] = *place;
    return ERR_OK;
}

/* Where the lines that belong to the last query line begin.  A line may come before it (the energy of
 * an attempt that failed), but when the query was tried by an earlier start of the run too, what that
 * one wrote is not of this try. */
static size_t first_of_try(const struct group *group, size_t last, size_t queries)
{
    if (queries == 1)
        return 0;
    const struct place *places = group->places;
    size_t first = last;
    while (first > 0 && start_of(&places[first - 1]) == start_of(&places[last])) {
        if (is_query(&places[first - 1]))
            return last; /* one start, two tries: what stands between is the first one's */
        first--;
    }
    return first;
}

/* Keeps the last query line and what belongs to it. */
static enum err group_keep(struct group *group, struct sorter *by_query, struct error *why)
{
    size_t queries = 0, last = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < group->count; i++)
        if (is_query(&group->places[i])) {
            queries++;
            last = i;
        }
    size_t i = first_of_try(group, last, queries);
    for (; !err && queries > 0 && i < group->count; i++) {
        struct place place = {.length = length_of(&group->places[i])};
        place.order[0] = group->places[last].order[2];
        place.order[1] = i != last; /* the query's line comes first */
        place.order[2] = group->places[i].order[2];
        err = sorter_add(by_query, &place, why);
    }
    group->count = 0;
    return err;
}

static enum err choose(struct sorter *by_key, struct sorter *by_query, struct error *why)
{
    struct group group = {0};
    struct place place;
    bool end = false;
    enum err err = sorter_finish(by_key, why);
    while (!err && !(err = sorter_next(by_key, &place, &end, why)) && !end) {
        if (group.count > 0 && memcmp(group.places[0].order, place.order, 2 * sizeof *place.order))
            err = group_keep(&group, by_query, why);
        if (!err)
            err = group_add(&group, &place, why);
    }
    if (!err)
        err = group_keep(&group, by_query, why);
    free(group.places);
    return err;
}

/* Merges one line into the record that it belongs to, or begins it. */
static enum err merge_line(struct journal_lines *lines, const struct place *place,
                           struct jv **record, uint64_t *damaged, struct error *why)
{
    static const char QUERY[] = "{\"kind\":\"query\"}"; /* what a record stays */
    struct journal_line line;
    struct jv *value, *kind = NULL;
    enum err err = journal_lines_at(lines, place->order[2], (size_t)place->length, &line, why);
    if (!err)
        err = parse(&line, &value, damaged);
    if (err || !value)
        return err;
    if (place->order[1] == 0) { /* the query's own */
        *record = value;
        return ERR_OK;
    }
    if (*record)
        err = jv_merge(*record, value);
    jv_free(value);
    if (!err && *record && !(err = jv_parse(QUERY, sizeof QUERY - 1, &kind, why)))
        err = jv_merge(*record, kind);
    jv_free(kind);
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}

static enum err give_records(struct sorter *by_query, struct journal_lines *lines,
                             const struct taker *taker, uint64_t *damaged, struct error *why)
{
    struct jv *record = NULL;
    uint64_t at = 0;
    struct place place;
    bool end = false;
    enum err err = sorter_finish(by_query, why);
    while (!err && !(err = sorter_next(by_query, &place, &end, why)) && !end) {
        if (record && place.order[0] != at) {
            err = taker->take(taker->context, record);
            jv_free(record);
            record = NULL;
        }
        at = place.order[0];
        if (!err)
            err = merge_line(lines, &place, &record, damaged, why);
    }
    if (!err && record)
        err = taker->take(taker->context, record);
    jv_free(record);
    return err;
}

enum err journal_records(const char *path, size_t most_waiting,
                         enum err (*take)(void *context, const struct jv *record), void *context,
                         uint64_t *damaged, struct error *why)
{
    const struct taker taker = {take, context};
    struct sorter by_key, by_query = {.fd = -1};
    struct finding finding = {.by_key = &by_key};
    struct journal_lines lines;
    size_t capacity = most_waiting > LEAST_WAITING ? most_waiting : LEAST_WAITING;
    *damaged = 0;
    enum err err = sorter_init(&by_key, capacity, why);
    if (!err)
        err = each_line(path, find_place, &finding, damaged, why);
    if (!err)
        err = sorter_init(&by_query, capacity, why);
    if (!err)
        err = choose(&by_key, &by_query, why);
    sorter_release(&by_key);
    if (!err && !(err = journal_lines_open(&lines, path, why))) {
        err = give_records(&by_query, &lines, &taker, damaged, why);
        journal_lines_close(&lines);
    }
    sorter_release(&by_query);
    return err;
}
