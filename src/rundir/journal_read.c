/* Reading a journal: its lines, and the records merged from them.
 *
 * A grade may be a million lines after its query, and a resumed run may replace any query, so a first pass indexes the
 * lines: 16 bytes each, sorted by key, which groups the lines of a record.  Valid lines are kept and sorted by the
 * query's line, which restores the file's order; a second pass reads the lines again by their offsets and merges them.
 * Memory holds the index and one record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"

enum { BLOCK = 1 << 16 };

struct line {
    const char
        *bytes; /* without its newline; valid until the next call; NULL if truncated or too long */
    size_t length;
    uint64_t at; /* its offset in the file */
};

static enum err cannot_read(const char *path, int problem, struct error *why)
{
    return err_errno(why, problem, "cannot read %s", path);
}

/* ---- a growing buffer over a part of the file ---- */

struct window {
    char *bytes;
    size_t capacity, length;
    uint64_t at; /* offset of bytes[0] */
};

static void window_reserve(struct window *window, size_t wanted)
{
    size_t capacity = window->capacity ? window->capacity : BLOCK;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity == window->capacity)
        return;
    window->bytes = xrealloc(window->bytes, capacity);
    window->capacity = capacity;
}

/* Reads more after the window's contents; *more is false at the end of the file. */
static enum err window_extend(struct window *window, int fd, const char *path, bool *more,
                              struct error *why)
{
    window_reserve(window, window->length + BLOCK / 2);
    ssize_t n;
    do
        n = pread(fd, window->bytes + window->length, window->capacity - window->length,
                  (off_t)(window->at + window->length));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return cannot_read(path, errno, why);
    window->length += (size_t)n;
    *more = n > 0;
    return ERR_OK;
}

/* ---- lines, one after the other ---- */

struct lines {
    int fd;
    struct window window;
    size_t start;  /* of the unread part */
    uint64_t size; /* of the file when it was opened */
    char *path;    /* for messages */
};

static enum err lines_open(struct lines *lines, const char *path, struct error *why)
{
    struct stat status;
    *lines = (struct lines){.fd = run_open(path)};
    if (lines->fd < 0)
        return cannot_read(path, errno, why);
    lines->path = xstrdup(path);
    lines->size = fstat(lines->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    return ERR_OK;
}

static void lines_close(struct lines *lines)
{
    if (lines->fd >= 0)
        close(lines->fd);
    free(lines->window.bytes);
    free(lines->path);
    *lines = (struct lines){.fd = -1};
}

/* Drops lines that were already returned. */
static void drop_consumed(struct lines *lines)
{
    struct window *window = &lines->window;
    window->length -= lines->start;
    memmove(window->bytes, window->bytes + lines->start, window->length);
    window->at += lines->start;
    lines->start = 0;
}

static enum err lines_next(struct lines *lines, struct line *out, bool *end, struct error *why)
{
    struct window *window = &lines->window;
    bool too_long = false, more = true;
    *end = false;
    *out = (struct line){.at = window->at + lines->start};
    for (size_t searched = 0;;) {
        /* Before the first read there is no buffer. */
        const char *from = lines->start ? window->bytes + lines->start : window->bytes;
        size_t have = window->length - lines->start;
        const char *newline =
            have > searched ? memchr(from + searched, '\n', have - searched) : NULL;
        if (newline) {
            out->length = (size_t)(newline - from);
            out->bytes = too_long ? NULL : from;
            lines->start += out->length + 1;
            return ERR_OK;
        }
        if (!more) {
            *end = have == 0 && !too_long;
            lines->start = window->length; /* the remaining bytes are truncated */
            return ERR_OK;
        }
        searched = have;
        if (have >= JOURNAL_LINE_MAX) {
            too_long = true;
            lines->start = window->length;
            searched = 0;
        }
        if (lines->start)
            drop_consumed(lines);
        enum err err = window_extend(window, lines->fd, lines->path, &more, why);
        if (err)
            return err;
        log_progress(lines->path, more ? window->at + window->length : lines->size, lines->size);
    }
}

/* *out is NULL, and the line is counted, if it is not a JSON object. */
static enum err parse(const struct line *line, struct jv **out, uint64_t *damaged)
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

enum err journal_read(const char *path, journal_take *take, void *context, uint64_t *damaged,
                      struct error *why)
{
    struct lines lines;
    struct line line;
    bool end = false;
    *damaged = 0;
    enum err err = lines_open(&lines, path, why);
    if (err)
        return err;
    while (!err && !(err = lines_next(&lines, &line, &end, why)) && !end) {
        struct jv *value = NULL;
        if (line.bytes && line.length == 0)
            continue;
        err = parse(&line, &value, damaged);
        if (!err && value)
            err = take(context, value);
        jv_free(value);
    }
    lines_close(&lines);
    return err;
}

enum journal_line_kind journal_line_kind(const struct jv *tree)
{
    const char *name = jv_get_text(tree, "kind");
    static const char *const NAMES[] = {[JOURNAL_RUN] = "run",
                                        [JOURNAL_QUERY] = "query",
                                        [JOURNAL_ENERGY] = "energy",
                                        [JOURNAL_GRADE] = "grade",
                                        [JOURNAL_END] = "end"};
    const char *const *found = STR_FIND(name, NAMES);
    return found ? (enum journal_line_kind)(found - NAMES) : JOURNAL_OTHER;
}

/* A damaged first line is skipped: the line of the next start has the same facts. */
static enum err take_header(void *context, const struct jv *line)
{
    struct jv **header = context;
    if (journal_line_kind(line) != JOURNAL_RUN)
        return ERR_OK;
    *header = jv_copy(line);
    return ERR_INTERRUPTED; /* only this line is needed */
}

struct jv *journal_header(const char *path)
{
    struct jv *header = NULL;
    uint64_t damaged;
    if (journal_read(path, take_header, &header, &damaged, NULL) == ERR_INTERRUPTED)
        return header;
    jv_free(header);
    return NULL;
}

uint64_t journal_first_damaged(const char *path)
{
    struct lines lines;
    struct line line;
    uint64_t number = 0, found = 0, damaged = 0;
    bool end = false;
    if (lines_open(&lines, path, NULL))
        return 0;
    while (!found && !lines_next(&lines, &line, &end, NULL) && !end) {
        struct jv *value = NULL;
        number++;
        if ((!line.bytes || line.length) && parse(&line, &value, &damaged) == ERR_OK && damaged)
            found = number;
        jv_free(value);
    }
    lines_close(&lines);
    return found;
}

/* ---- scanning a line without parsing it ---- */

struct line_key {
    const char *kind, *key; /* point into the line; not terminated */
    size_t kind_length, key_length;
};

/* Consumes a literal. */
static bool take_fixed(const char **at, const char *end, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(end - *at) < length || memcmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Consumes a string without escapes, from after its opening quote to past its closing quote. */
static bool take_string(const char **at, const char *end, const char **string, size_t *length)
{
    const char *quote = memchr(*at, '"', (size_t)(end - *at));
    if (!quote || memchr(*at, '\\', (size_t)(quote - *at)))
        return false;
    *string = *at;
    *length = (size_t)(quote - *at);
    *at = quote + 1;
    return true;
}

/* Detects a line that was truncated, merged with another or overwritten with zeros. */
static bool is_complete(const char *at, const char *end)
{
    bool control = false;
    for (const char *byte = at; byte < end; byte++)
        control |= (unsigned char)*byte < 0x20;
    return !control && json_skip_value(at, end) == end;
}

/* True for a line that starts as ours do, {"kind":"...","key":"...", and whose strings and brackets are balanced
 * exactly at its end.  Whether it is valid JSON is checked when it is parsed; any other line must be parsed first. */
static bool find_key(const struct line *line, struct line_key *out)
{
    if (!line->bytes)
        return false;
    const char *at = line->bytes, *end = line->bytes + line->length;
    return take_fixed(&at, end, "{\"kind\":\"") &&
           take_string(&at, end, &out->kind, &out->kind_length) &&
           take_fixed(&at, end, ",\"key\":\"") &&
           take_string(&at, end, &out->key, &out->key_length) && at < end &&
           (*at == ',' || *at == '}') && is_complete(line->bytes, end);
}

/* ---- entries of the index ----
 *
 * While lines are scanned, `order` is the key, and `where` the offset, the start that wrote the line, and whether it is
 * the query's own.  For valid lines, `order` then becomes the offset of the query's line, and whether this line is
 * another. */

struct entry {
    uint64_t order, where;
};

enum { START_BITS = 23, OFFSET_SHIFT = START_BITS + 1 };
#define OFFSET_MAX (UINT64_MAX >> OFFSET_SHIFT) /* 1 TiB */
#define START_MAX  ((UINT64_C(1) << START_BITS) - 1)

static uint64_t offset_of(const struct entry *entry)
{
    return entry->where >> OFFSET_SHIFT;
}

static uint64_t start_of(const struct entry *entry)
{
    return entry->where >> 1 & START_MAX;
}

static bool is_query(const struct entry *entry)
{
    return entry->where & 1;
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->where < b->where ? -1 : a->where > b->where;
}

/* Parses a number as printf writes it with at least that many digits; false for anything else. */
static bool take_number(const char **at, const char *end, size_t digits, uint64_t max,
                        uint64_t *out)
{
    const char *from = *at;
    *out = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *out <= max)
        *out = *out * 10 + (uint64_t)(*(*at)++ - '0');
    size_t length = (size_t)(*at - from);
    return length >= digits && (length == digits || from[0] != '0') && *out <= max;
}

/* A key of ours ("q000012", "q000012.r1") as its numbers, so that two keys never share a code; any other key as a hash
 * of 63 bits. */
static uint64_t code_of(const char *key, size_t length)
{
    const uint64_t index_max = (UINT64_C(1) << 40) - 1, repeat_max = (UINT64_C(1) << 22) - 1;
    const char *at = key, *end = key + length;
    uint64_t index, repeat = 0;
    bool ours = take_fixed(&at, end, "q") && take_number(&at, end, 6, index_max, &index);
    if (ours && at < end)
        ours = take_fixed(&at, end, ".r") && take_number(&at, end, 1, repeat_max, &repeat) &&
               repeat > 0;
    if (ours && at == end)
        return index << 22 | repeat;
    return hash_mix(hash_bytes(HASH_START, key, length)) | UINT64_C(1) << 63;
}

/* ---- finding the lines ---- */

struct journal_index {
    struct lines lines;
    struct entry *entries; /* the valid ones */
    size_t count, capacity;
    struct window windows[2]; /* for reading lines again */
    unsigned last_window;
    uint64_t starts;  /* `run` lines so far */
    bool by_key;      /* merged runs: records are returned in the order of their keys */
    uint64_t damaged; /* unreadable lines found so far */
};

static bool is_kind(const struct line_key *line, const char *kind)
{
    return line->kind_length == strlen(kind) && memcmp(line->kind, kind, line->kind_length) == 0;
}

static enum err add_entry(struct journal_index *index, const struct line *line,
                          const struct line_key *scanned, struct error *why)
{
    bool own = is_kind(scanned, "query");
    if (!own && !is_kind(scanned, "energy") && !is_kind(scanned, "reattributed") &&
        !is_kind(scanned, "grade"))
        return ERR_OK;
    if (line->at > OFFSET_MAX)
        return err_set(why, ERR_BAD_VALUE, "%s is larger than can be read", index->lines.path);
    uint64_t start = index->starts < START_MAX ? index->starts : START_MAX;
    *XADD(index->entries, index->count, index->capacity) = (struct entry){
        code_of(scanned->key, scanned->key_length), line->at << OFFSET_SHIFT | start << 1 | own};
    return ERR_OK;
}

/* A line in another format is parsed to find its key. */
static enum err add_parsed(struct journal_index *index, const struct line *line, struct error *why)
{
    struct jv *value;
    enum err err = parse(line, &value, &index->damaged);
    if (err || !value)
        return err;
    const char *kind = jv_get_text(value, "kind"), *key = jv_get_text(value, "key");
    if (journal_line_kind(value) == JOURNAL_RUN) { /* has no key, so it is always parsed */
        index->starts++;
        index->by_key = index->by_key || jv_bool(jv_get(value, JOURNAL_MERGED), false);
    }
    if (kind && key) {
        const struct line_key scanned = {kind, key, strlen(kind), strlen(key)};
        err = add_entry(index, line, &scanned, why);
    }
    jv_free(value);
    return err;
}

static enum err find_lines(struct journal_index *index, struct error *why)
{
    struct line line;
    struct line_key scanned;
    bool end = false;
    enum err err = ERR_OK;
    while (!err && !(err = lines_next(&index->lines, &line, &end, why)) && !end) {
        if (line.bytes && line.length == 0)
            continue;
        err = find_key(&line, &scanned) ? add_entry(index, &line, &scanned, why)
                                        : add_parsed(index, &line, why);
    }
    return err;
}

/* ---- reading a line again ---- */

/* The line at that offset in the window; false if its end is not in it. */
static bool line_within(const struct window *window, uint64_t at, struct line *out)
{
    if (at < window->at || at >= window->at + window->length)
        return false;
    const char *from = window->bytes + (at - window->at);
    const char *newline = memchr(from, '\n', window->length - (size_t)(at - window->at));
    *out = (struct line){newline ? from : NULL, newline ? (size_t)(newline - from) : 0, at};
    return newline;
}

/* Queries and their energies are close together, grades may be far away: one window each. */
static enum err line_at(struct journal_index *index, uint64_t at, struct line *out,
                        struct error *why)
{
    for (unsigned i = 0; i < 2; i++)
        if (line_within(&index->windows[i], at, out)) {
            index->last_window = i;
            return ERR_OK;
        }
    struct window *window = &index->windows[index->last_window = !index->last_window];
    window->at = at;
    window->length = 0;
    for (bool more = true; more && window->length < JOURNAL_LINE_MAX + (size_t)1;) {
        enum err err = window_extend(window, index->lines.fd, index->lines.path, &more, why);
        if (err)
            return err;
        if (line_within(window, at, out))
            return ERR_OK;
    }
    *out = (struct line){.at = at};
    return ERR_OK;
}

/* ---- valid lines ---- */

/* The entries of one key, in the order of the file. */
struct group {
    struct entry *entries;
    size_t count;
};

static size_t count_queries(const struct group *group, size_t *last)
{
    size_t queries = 0;
    for (size_t i = 0; i < group->count; i++)
        if (is_query(&group->entries[i])) {
            queries++;
            *last = i;
        }
    return queries;
}

/* Removes query lines that cannot be parsed from a group: an earlier readable one is preferred. */
static enum err drop_unreadable(struct group *group, struct journal_index *index, struct error *why)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct entry *entry = &group->entries[i];
        struct line line;
        struct jv *value = NULL;
        bool own = is_query(entry);
        enum err err = own ? line_at(index, offset_of(entry), &line, why) : ERR_OK;
        if (!err && own)
            err = parse(&line, &value, &index->damaged);
        if (err)
            return err;
        if (!own || value)
            group->entries[kept++] = *entry;
        jv_free(value);
    }
    group->count = kept;
    return ERR_OK;
}

/* Index of the first line that belongs to the last query line.  A line may precede it (the energy of a failed attempt),
 * but lines written by an earlier start for the same query do not belong to it. */
static size_t first_of_attempt(const struct group *group, size_t last, size_t queries)
{
    const struct entry *entries = group->entries;
    size_t first = last;
    if (queries == 1)
        return 0;
    while (first > 0 && start_of(&entries[first - 1]) == start_of(&entries[last])) {
        if (is_query(&entries[first - 1]))
            return last; /* one start, two query lines: lines in between belong to the first */
        first--;
    }
    return first;
}

/* Keeps the last query line and the lines that belong to it, moved to entries[*kept]. */
static enum err keep_group(struct group group, struct journal_index *index, size_t *kept,
                           struct error *why)
{
    size_t last = 0, queries = count_queries(&group, &last);
    if (queries > 1) {
        enum err err = drop_unreadable(&group, index, why);
        if (err)
            return err;
        queries = count_queries(&group, &last);
    }
    if (queries == 0)
        return ERR_OK;
    uint64_t order = index->by_key ? group.entries[last].order : offset_of(&group.entries[last]);
    for (size_t i = first_of_attempt(&group, last, queries); i < group.count; i++)
        index->entries[(*kept)++] =
            (struct entry){order << 1 | (i != last), group.entries[i].where};
    return ERR_OK;
}

/* Often already sorted: queries are numbered in the order in which they are written. */
static void sort_entries(struct journal_index *index)
{
    size_t sorted = 1;
    while (sorted < index->count &&
           compare_entries(&index->entries[sorted - 1], &index->entries[sorted]) <= 0)
        sorted++;
    if (sorted < index->count)
        qsort(index->entries, index->count, sizeof *index->entries, compare_entries);
}

static enum err select_valid(struct journal_index *index, struct error *why)
{
    size_t kept = 0;
    enum err err = ERR_OK;
    sort_entries(index);
    for (size_t from = 0, to; !err && from < index->count; from = to) {
        for (to = from + 1;
             to < index->count && index->entries[to].order == index->entries[from].order;)
            to++;
        err = keep_group((struct group){index->entries + from, to - from}, index, &kept, why);
    }
    index->count = kept;
    sort_entries(index);
    return err;
}

/* ---- records ---- */

void journal_index_free(struct journal_index *index)
{
    if (!index)
        return;
    lines_close(&index->lines);
    free(index->windows[0].bytes);
    free(index->windows[1].bytes);
    free(index->entries);
    free(index);
}

static enum err fill_index(struct journal_index *index, const char *path, struct error *why)
{
    enum err err = lines_open(&index->lines, path, why);
    if (!err)
        err = find_lines(index, why);
    return err ? err : select_valid(index, why);
}

enum err journal_index_new(struct journal_index **out, const char *path, struct error *why)
{
    struct journal_index *index = XNEW(index);
    *out = NULL;
    index->lines.fd = -1;
    enum err err = fill_index(index, path, why);
    if (err)
        journal_index_free(index);
    else
        *out = index;
    return err;
}

/* Merges one line into its record, or starts one. */
static enum err merge_line(struct journal_index *index, const struct entry *entry,
                           struct jv **record, uint64_t *damaged, struct error *why)
{
    struct line line;
    struct jv *value = NULL;
    enum err err = line_at(index, offset_of(entry), &line, why);
    if (!err)
        err = parse(&line, &value, damaged);
    if (err || !value)
        return err;
    if ((entry->order & 1) == 0) { /* the query's own line */
        log_progress(index->lines.path, offset_of(entry), index->lines.size);
        *record = value;
        return ERR_OK;
    }
    if (*record) {
        jv_merge(*record, value);
        jv_put_text(*record, "kind", "query"); /* that of the merged line is another */
    }
    jv_free(value);
    return ERR_OK;
}

enum err journal_index_read(struct journal_index *index, journal_take *take, void *context,
                            uint64_t *damaged, struct error *why)
{
    struct jv *record = NULL;
    enum err err = ERR_OK;
    *damaged = index->damaged;
    for (size_t i = 0; !err && i < index->count; i++) {
        const struct entry *entry = &index->entries[i];
        err = merge_line(index, entry, &record, damaged, why);
        bool is_last = i + 1 == index->count || entry[1].order >> 1 != entry->order >> 1;
        if (is_last && record) {
            err = err ? err : take(context, record);
            jv_free(record);
            record = NULL;
        }
    }
    jv_free(record);
    log_progress(index->lines.path, index->lines.size, index->lines.size);
    return err;
}

enum err journal_records(const char *path, journal_take *take, void *context, uint64_t *damaged,
                         struct error *why)
{
    struct journal_index *index;
    *damaged = 0;
    enum err err = journal_index_new(&index, path, why);
    if (!err)
        err = journal_index_read(index, take, context, damaged, why);
    journal_index_free(index);
    return err;
}
