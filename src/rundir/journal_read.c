/* Reading a journal: its lines, and the records that they make together. */
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/log.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/journal/lines.h"
#include "rundir/journal/skim.h"
#include "rundir/journal/sorter.h"

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

enum err journal_read(const char *path, enum err (*take)(void *context, const struct jv *line),
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
            err = take(context, value);
        jv_free(value);
    }
    journal_lines_close(&lines);
    return err;
}

static enum err take_format(void *context, const struct jv *line)
{
    const char *kind = jv_text(jv_get(line, "kind"));
    if (kind && strcmp(kind, "run") == 0)
        *(double *)context = jv_number(jv_get(line, "format"));
    return ERR_INTERRUPTED; /* the first is enough */
}

double journal_format(const char *path)
{
    double format = UNKNOWN;
    uint64_t damaged;
    struct error why = {0};
    return journal_read(path, take_format, &format, &damaged, &why) == ERR_INTERRUPTED ? format
                                                                                       : UNKNOWN;
}

/* ---- records ----
 *
 * A grade may stand a million lines after its query, and a resumed run may replace any query, so the
 * file is looked through before it is read.  First every line's place is sorted by key, which brings
 * together what makes a record; then the places of what counts are sorted by the query's, which gives
 * the file's order back.  Memory holds one record, and as many places as the caller allows. */

struct journal_index {
    struct journal_lines lines;
    struct sorter by_query; /* the places that count */
    struct jv *kind;        /* what every record says it is */
    uint64_t damaged;       /* lines that cannot be read, as far as that was seen */
};

struct finding {
    struct sorter *by_key;
    uint64_t starts; /* `run` lines so far */
    uint64_t damaged;
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
static void hash_key(const char *key, size_t length, uint64_t out[2])
{
    uint64_t a = hash_bytes(HASH_START, key, length), b = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < length; i++) {
        b = (b + (unsigned char)key[i]) * UINT64_C(0xD6E8FEB86659FD93);
        b ^= b >> 29;
    }
    out[0] = a ^ (a >> 32);
    out[1] = b;
}

static bool is_kind(const struct skimmed *line, const char *kind)
{
    return line->kind_length == strlen(kind) && memcmp(line->kind, kind, line->kind_length) == 0;
}

static enum err add_place(struct finding *finding, const struct journal_line *line,
                          const struct skimmed *skimmed, struct error *why)
{
    bool own = is_kind(skimmed, "query");
    if (!own && !is_kind(skimmed, "energy") && !is_kind(skimmed, "grade"))
        return ERR_OK;
    struct place place = {.length = pack(own, line->length, finding->starts)};
    hash_key(skimmed->key, skimmed->key_length, place.order);
    place.order[2] = line->at;
    return sorter_add(finding->by_key, &place, why);
}

/* A line that is not written as we write it is read, to see what it is. */
static enum err find_by_reading(struct finding *finding, const struct journal_line *line,
                                struct error *why)
{
    struct jv *value;
    enum err err = parse(line, &value, &finding->damaged);
    if (err || !value)
        return err;
    const char *kind = jv_text(jv_get(value, "kind")), *key = jv_text(jv_get(value, "key"));
    finding->starts += kind && strcmp(kind, "run") == 0; /* it has no key: it is always read */
    if (kind && key) {
        const struct skimmed skimmed = {kind, key, strlen(kind), strlen(key)};
        err = add_place(finding, line, &skimmed, why);
    }
    jv_free(value);
    return err;
}

static enum err find_places(struct journal_lines *lines, struct finding *finding, struct error *why)
{
    struct journal_line line;
    struct skimmed skimmed;
    bool end = false;
    enum err err = ERR_OK;
    while (!err && !(err = journal_lines_next(lines, &line, &end, why)) && !end) {
        if (line.bytes && line.length == 0)
            continue;
        err = journal_skim(&line, &skimmed) ? add_place(finding, &line, &skimmed, why)
                                            : find_by_reading(finding, &line, why);
    }
    return err;
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

/* Takes the query lines that cannot be read out of a group: an earlier try that can be counts more
 * than a later one that cannot. */
static enum err drop_unreadable(struct group *group, struct journal_lines *lines, uint64_t *damaged,
                                struct error *why)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct place *place = &group->places[i];
        struct journal_line line;
        struct jv *value = NULL;
        bool own = is_query(place);
        enum err err =
            own ? journal_lines_at(lines, place->order[2], (size_t)length_of(place), &line, why)
                : ERR_OK;
        if (!err && own)
            err = parse(&line, &value, damaged);
        if (err)
            return err;
        if (!own || value)
            group->places[kept++] = *place;
        jv_free(value);
    }
    group->count = kept;
    return ERR_OK;
}

static size_t group_queries(const struct group *group, size_t *last)
{
    size_t queries = 0;
    for (size_t i = 0; i < group->count; i++)
        if (is_query(&group->places[i])) {
            queries++;
            *last = i;
        }
    return queries;
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
static enum err group_keep(struct group *group, struct journal_index *index, struct error *why)
{
    size_t last = 0, queries = group_queries(group, &last);
    enum err err = ERR_OK;
    if (queries > 1) {
        err = drop_unreadable(group, &index->lines, &index->damaged, why);
        queries = group_queries(group, &last);
    }
    size_t i = first_of_try(group, last, queries);
    for (; !err && queries > 0 && i < group->count; i++) {
        struct place place = {.length = length_of(&group->places[i])};
        place.order[0] = group->places[last].order[2];
        place.order[1] = i != last; /* the query's line comes first */
        place.order[2] = group->places[i].order[2];
        err = sorter_add(&index->by_query, &place, why);
    }
    group->count = 0;
    return err;
}

static enum err choose(struct sorter *by_key, struct journal_index *index, struct error *why)
{
    struct group group = {0};
    struct place place;
    bool end = false;
    enum err err = sorter_finish(by_key, why);
    while (!err && !(err = sorter_next(by_key, &place, &end, why)) && !end) {
        if (group.count > 0 && memcmp(group.places[0].order, place.order, 2 * sizeof *place.order))
            err = group_keep(&group, index, why);
        if (!err)
            err = group_add(&group, &place, why);
    }
    if (!err)
        err = group_keep(&group, index, why);
    free(group.places);
    return err ? err : sorter_finish(&index->by_query, why);
}

void journal_index_free(struct journal_index *index)
{
    if (!index)
        return;
    sorter_release(&index->by_query);
    journal_lines_close(&index->lines);
    jv_free(index->kind);
    free(index);
}

static enum err fill_index(struct journal_index *index, const char *path, size_t capacity,
                           struct error *why)
{
    static const char QUERY[] = "{\"kind\":\"query\"}"; /* what a record stays */
    struct sorter by_key;
    struct finding finding = {.by_key = &by_key};
    enum err err = jv_available(why);
    if (!err)
        err = journal_lines_open(&index->lines, path, why);
    if (!err)
        err = jv_parse(QUERY, sizeof QUERY - 1, &index->kind, why);
    if (err)
        return err;
    err = sorter_init(&by_key, capacity, why);
    if (!err)
        err = find_places(&index->lines, &finding, why);
    index->damaged = finding.damaged;
    if (!err)
        err = sorter_init(&index->by_query, capacity, why);
    if (!err)
        err = choose(&by_key, index, why);
    sorter_release(&by_key);
    return err;
}

enum err journal_index_new(struct journal_index **out, const char *path, size_t most_waiting,
                           struct error *why)
{
    size_t capacity = most_waiting > LEAST_WAITING ? most_waiting : LEAST_WAITING;
    struct journal_index *index = calloc(1, sizeof *index);
    *out = NULL;
    if (!index) {
        err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
        return ERR_NO_MEMORY;
    }
    index->by_query.fd = index->lines.fd = -1;
    enum err err = fill_index(index, path, capacity, why);
    if (err)
        journal_index_free(index);
    else
        *out = index;
    return err;
}

/* Merges one line into the record that it belongs to, or begins it. */
static enum err merge_line(struct journal_index *index, const struct place *place,
                           struct jv **record, uint64_t *damaged, struct error *why)
{
    struct journal_line line;
    struct jv *value = NULL;
    enum err err =
        journal_lines_at(&index->lines, place->order[2], (size_t)place->length, &line, why);
    if (!err)
        err = parse(&line, &value, damaged);
    if (err || !value)
        return err;
    if (place->order[1] == 0) { /* the query's own */
        log_progress(index->lines.path, place->order[0], index->lines.size);
        *record = value;
        return ERR_OK;
    }
    if (*record)
        err = jv_merge(*record, value);
    jv_free(value);
    if (!err && *record)
        err = jv_merge(*record, index->kind);
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}

enum err journal_index_give(struct journal_index *index,
                            enum err (*take)(void *context, const struct jv *record), void *context,
                            uint64_t *damaged, struct error *why)
{
    struct jv *record = NULL;
    uint64_t at = 0;
    struct place place;
    bool end = false;
    *damaged = index->damaged;
    enum err err = sorter_rewind(&index->by_query, why);
    while (!err && !(err = sorter_next(&index->by_query, &place, &end, why)) && !end) {
        if (record && place.order[0] != at) {
            err = take(context, record);
            jv_free(record);
            record = NULL;
        }
        at = place.order[0];
        if (!err)
            err = merge_line(index, &place, &record, damaged, why);
    }
    if (!err && record)
        err = take(context, record);
    jv_free(record);
    log_progress(index->lines.path, index->lines.size, index->lines.size);
    return err;
}

enum err journal_records(const char *path, size_t most_waiting,
                         enum err (*take)(void *context, const struct jv *record), void *context,
                         uint64_t *damaged, struct error *why)
{
    struct journal_index *index;
    *damaged = 0;
    enum err err = journal_index_new(&index, path, most_waiting, why);
    if (!err)
        err = journal_index_give(index, take, context, damaged, why);
    journal_index_free(index);
    return err;
}

uint64_t journal_first_damaged(const char *path)
{
    struct journal_lines lines;
    struct journal_line line;
    uint64_t number = 0, found = 0, damaged = 0;
    bool end = false;
    if (journal_lines_open(&lines, path, NULL))
        return 0;
    while (!found && !journal_lines_next(&lines, &line, &end, NULL) && !end) {
        struct jv *value = NULL;
        number++;
        if ((!line.bytes || line.length) && parse(&line, &value, &damaged) == ERR_OK && damaged)
            found = number;
        jv_free(value);
    }
    journal_lines_close(&lines);
    return found;
}
