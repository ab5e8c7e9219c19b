#define _GNU_SOURCE
#include "rundir/run_table_builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/record.h"

/* Limit of distinct words; further ones become "(others)". */
enum { WORDS_MAX = 65535, SLOTS_FIRST = 64, ROWS_FIRST = 1024 };

_Static_assert(RUN_NUMBERS <= 128 && RUN_WORDS <= 128, "a column is a bit of run_wanted");

/* ---- paths ---- */

/* The paths of a field, the former one last: the first known value is used. */
static void field_paths_init(struct field_paths *paths, const struct json_field *from)
{
    *paths = (struct field_paths){.text = xformat("%s%s%s", from->path, from->former ? "|" : "",
                                                  text_or_empty(from->former))};
    char *rest = NULL;
    for (char *part = strtok_r(paths->text, "|", &rest); part; part = strtok_r(NULL, "|", &rest)) {
        assert(paths->count < PATHS_MAX); /* by record.def */
        struct field_path *field = &paths->items[paths->count++];
        field->from_top = part[0] == '/';
        char *colon = strchr(part, ':');
        if (colon) {
            *colon = '\0';
            field->inside = colon + 1;
        }
        char *more = NULL;
        for (char *name = strtok_r(part + field->from_top, ".", &more); name;
             name = strtok_r(NULL, ".", &more)) {
            assert(field->count < PATH_NAMES_MAX);
            field->names[field->count++] = name;
        }
    }
}

static void field_paths_release(struct field_paths *paths)
{
    free(paths->text);
    *paths = (struct field_paths){0};
}

const struct jv *field_path_find(const struct field_path *field, const struct jv *record,
                                 const struct jv *metrics)
{
    const struct jv *value = field->from_top ? record : metrics;
    for (size_t i = 0; value && i < field->count; i++)
        value = jv_get(value, field->names[i]);
    return value;
}

/* ---- words ---- */

/* The slot of the word, or the free slot for it. */
static size_t slot_of(const struct word_index *index, const struct run_words *words,
                      const char *bytes, size_t length)
{
    size_t slot = hash_mix(hash_bytes(HASH_START, bytes, length)) & (index->size - 1);
    for (; index->slots[slot]; slot = (slot + 1) & (index->size - 1)) {
        const char *text = words->texts[index->slots[slot] - 1];
        if (strncmp(text, bytes, length) == 0 && text[length] == '\0')
            break;
    }
    return slot;
}

static void widen(struct word_index *index, const struct run_words *words)
{
    struct word_index wider = *index;
    wider.size = index->size ? 2 * index->size : SLOTS_FIRST;
    wider.slots = xcalloc(wider.size, sizeof *wider.slots);
    for (uint32_t id = 0; id < words->count; id++)
        wider.slots[slot_of(&wider, words, words->texts[id], strlen(words->texts[id]))] = id + 1;
    free(index->slots);
    *index = wider;
}

static void add_text(struct word_index *index, struct run_words *words, const char *bytes,
                     size_t length)
{
    *XADD(words->texts, words->count, index->capacity) = xstrndup(bytes, length);
}

/* The id of the word. */
static uint32_t intern(struct word_index *index, struct run_words *words, const char *bytes,
                       size_t length)
{
    if (2 * ((size_t)words->count + 1) > index->size)
        widen(index, words);
    size_t slot = slot_of(index, words, bytes, length);
    if (!index->slots[slot] && words->count >= WORDS_MAX) {
        bytes = "(others)";
        length = strlen(bytes);
        slot = slot_of(index, words, bytes, length);
    }
    if (!index->slots[slot]) {
        add_text(index, words, bytes, length);
        index->slots[slot] = words->count;
    }
    return index->slots[slot] - 1;
}

void builder_word(struct builder *builder, enum run_word column, const char *bytes, size_t length)
{
    struct run_words *words = &builder->table->words[column];
    struct word_index *index = &builder->index[column];
    const char *nul = bytes ? memchr(bytes, '\0', length) : NULL; /* truncate at a NUL */
    if (nul)
        length = (size_t)(nul - bytes);
    uint32_t id = bytes ? intern(index, words, bytes, length) : 0;
    size_t row = index->seen++;
    if (row == 0)
        words->same = id;
    if (!words->ids && id == words->same)
        return;
    if (!words->ids) {
        words->ids = xmalloc(builder->capacity * sizeof *words->ids);
        for (size_t i = 0; i < row; i++)
            words->ids[i] = words->same;
    }
    words->ids[row] = id;
}

double builder_fingerprint(const char *bytes, size_t length)
{
    if (!bytes)
        return UNKNOWN;
    uint64_t hash = hash_bytes(HASH_START, bytes, length);
    hash ^= hash >> 32; /* mixes the last bytes into all bits */
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return (double)(hash >> 11);
}

/* ---- numbers and flags ---- */

static bool is_any_known(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]))
            return true;
    return false;
}

void builder_word_of(struct builder *builder, enum run_word column, const struct jv *value)
{
    char digits[32];
    const char *word =
        jv_is_bool(value) ? (jv_bool(value, false) ? "true" : "false") : jv_text(value);
    if (!word && is_known(jv_number(value))) {
        chars_format(digits, "%.15g", jv_number(value));
        word = digits;
    }
    builder_word(builder, column, word, word ? strlen(word) : 0);
}

void builder_word_inside(struct builder *builder, enum run_word column, const char *bytes,
                         size_t length)
{
    const struct field_paths *paths = &builder->words[column];
    const struct jv *value = NULL;
    struct jv *tree = NULL;
    bool named = false; /* most texts do not contain it, and need not be parsed */
    for (size_t i = 0; bytes && i < paths->count && !named; i++)
        named = paths->items[i].inside &&
                memmem(bytes, length, paths->items[i].inside, strlen(paths->items[i].inside));
    if (named && jv_parse(bytes, length, &tree, NULL) != ERR_OK)
        tree = NULL; /* not JSON: the value is unknown */
    for (size_t i = 0; i < paths->count && jv_is_null(value); i++)
        if (paths->items[i].inside)
            value = jv_get(tree, paths->items[i].inside);
    builder_word_of(builder, column, value);
    jv_free(tree);
}

/* ---- texts ---- */

bool builder_wants_texts(const struct builder *builder, size_t row)
{
    const struct run_excerpts *kept = &builder->table->excerpts;
    return builder->excerpts && row == kept->count * (kept->stride ? kept->stride : 1);
}

/* Truncated at a character boundary, with an ellipsis. */
static void keep_text(struct slice text, char **out)
{
    static const char MORE[] = " …";
    bool cut = text.length > RUN_EXCERPT_MAX;
    if (!text.start)
        return;
    if (cut)
        for (text.length = RUN_EXCERPT_MAX;
             text.length && utf8_is_continuation(text.start[text.length]);)
            text.length--;
    *out = xmalloc(text.length + sizeof MORE);
    memcpy(*out, text.start, text.length);
    memcpy(*out + text.length, cut ? MORE : "", cut ? sizeof MORE : 1);
}

static void excerpt_release(struct run_excerpt *excerpt)
{
    free(excerpt->problem);
    free(excerpt->expected);
    free(excerpt->answer);
}

/* Drops every other one when there are twice as many as requested. */
static void downsample_excerpts(struct run_excerpts *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        if (i % 2)
            excerpt_release(&kept->items[i]);
        else
            kept->items[i / 2] = kept->items[i];
    kept->count = (kept->count + 1) / 2;
    kept->stride *= 2;
}

void builder_texts(struct builder *builder, const struct slice texts[static ROW_TEXTS])
{
    struct run_excerpts *kept = &builder->table->excerpts;
    if (!kept->items) {
        kept->items = xmalloc(2 * builder->excerpts * sizeof *kept->items);
        kept->stride = 1;
    }
    struct run_excerpt *excerpt = &kept->items[kept->count];
    *excerpt = (struct run_excerpt){0};
    char **const to[ROW_TEXTS] = {&excerpt->problem, &excerpt->expected, &excerpt->answer};
    for (size_t i = 0; i < ROW_TEXTS; i++)
        keep_text(texts[i], to[i]);
    kept->count++;
    if (kept->count == 2 * builder->excerpts)
        downsample_excerpts(kept);
}

/* ---- numbers ---- */

static void fill_unknown(double *column, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        column[i] = UNKNOWN;
}

void builder_numbers(struct builder *builder, enum run_number column, const double *values,
                     size_t count)
{
    double **to = &builder->table->numbers[column];
    size_t rows = builder->table->rows;
    if (!is_any_known(values, count))
        return;
    if (!*to)
        *to = xmalloc(builder->capacity * sizeof **to);
    fill_unknown(*to, builder->filled[column], rows);
    memcpy(*to + rows, values, count * sizeof *values);
    builder->filled[column] = rows + count;
}

void builder_flags(struct builder *builder, enum run_flag column, const double *values,
                   size_t count)
{
    int8_t *to = builder->table->flags[column] + builder->table->rows;
    for (size_t i = 0; i < count; i++)
        to[i] = (int8_t)(is_known(values[i]) ? values[i] != 0 : -1);
}

/* ---- rows ---- */

static void resize(void *pointer_to_array, size_t count, size_t size)
{
    void **array = pointer_to_array;
    *array = xreallocarray(*array, count, size);
}

void builder_reserve(struct builder *builder, size_t more)
{
    struct run_table *table = builder->table;
    size_t capacity = builder->capacity ? builder->capacity : ROWS_FIRST;
    while (capacity - table->rows < more)
        capacity *= 2;
    if (capacity == builder->capacity)
        return;
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (table->numbers[i])
            resize(&table->numbers[i], capacity, sizeof *table->numbers[i]);
    for (size_t i = 0; i < RUN_WORDS; i++)
        if (table->words[i].ids)
            resize(&table->words[i].ids, capacity, sizeof *table->words[i].ids);
    for (size_t i = 0; i < RUN_FLAGS; i++)
        resize(&table->flags[i], capacity, sizeof *table->flags[i]);
    builder->capacity = capacity;
}

void builder_advance(struct builder *builder, size_t count)
{
    builder->table->rows += count;
}

void builder_finish(struct builder *builder)
{
    struct run_table *table = builder->table;
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (table->numbers[i])
            fill_unknown(table->numbers[i], builder->filled[i], table->rows);
}

double *builder_new_column(const struct run_table *table)
{
    double *column = xmalloc((table->rows ? table->rows : 1) * sizeof *column);
    fill_unknown(column, 0, table->rows);
    return column;
}

/* ---- start and end ---- */

static void init_paths(enum record_column_kind kind, size_t count, struct field_paths *out)
{
    for (size_t i = 0; i < count; i++)
        field_paths_init(&out[i], &record_column(kind, (int)i)->at);
}

void builder_init(struct builder *builder, struct run_table *table, struct run_wanted wanted)
{
    *builder = (struct builder){.table = table, .wanted = wanted};
    init_paths(COLUMN_NUMBER, RUN_NUMBERS, builder->numbers);
    init_paths(COLUMN_FLAG, RUN_FLAGS, builder->flags);
    init_paths(COLUMN_WORD, RUN_WORDS, builder->words);
    for (size_t i = 0; i < RUN_WORDS; i++)
        (void)intern(&builder->index[i], &table->words[i], "", 0);
    builder_reserve(builder, 1);
}

void builder_release(struct builder *builder)
{
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        field_paths_release(&builder->numbers[i]);
    for (size_t i = 0; i < RUN_FLAGS; i++)
        field_paths_release(&builder->flags[i]);
    for (size_t i = 0; i < RUN_WORDS; i++) {
        field_paths_release(&builder->words[i]);
        free(builder->index[i].slots);
    }
}

void excerpts_release(struct run_excerpts *excerpts)
{
    for (size_t i = 0; i < excerpts->count; i++)
        excerpt_release(&excerpts->items[i]);
    free(excerpts->items);
    *excerpts = (struct run_excerpts){0};
}

void table_add_model(struct run_table *table, const char *name)
{
    if (str_is_listed(name, (const char *const *)table->models, table->model_count))
        return;
    table->models =
        xrealloc((void *)table->models, (table->model_count + 1) * sizeof *table->models);
    table->models[table->model_count++] = xstrdup(name);
}

void table_note(struct run_table *table, const char *format, ...)
{
    va_list arguments;
    table->notes = xrealloc(table->notes, (table->note_count + 1) * sizeof *table->notes);
    va_start(arguments, format);
    vsnprintf(table->notes[table->note_count++].text, sizeof table->notes->text, format, arguments);
    va_end(arguments);
}
