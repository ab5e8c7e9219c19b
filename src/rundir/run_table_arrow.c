#include "rundir/run_table_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/arrow.h"
#include "rundir/run_path.h"

/* Location of a column in this file; alternatives that it lacks are omitted. */
struct found {
    size_t count;
    bool is_inside; /* it is inside the JSON text at the first path */
    struct arrow_path paths[PATHS_MAX];
};

struct loading {
    struct arrow_reader *reader;
    struct builder *builder;
    const char *model;
    struct arrow_path metrics; /* the model's struct */
    struct found row_texts[ROW_TEXTS];
    struct found numbers[RUN_NUMBERS], flags[RUN_FLAGS], words[RUN_WORDS];
    size_t rows, capacity; /* rows of the batch; capacity of the arrays below */
    double *values, *more;
    struct arrow_text *texts;
    bool *there; /* whether the record has this model */
    bool all_there;
};

enum err arrow_models(const char *path, struct run_table *table, struct error *why)
{
    struct arrow_reader *reader;
    struct arrow_path top_path;
    const char *top = RECORD_MODELS, *name;
    enum err err = run_read_arrow(path, &reader, why);
    if (err)
        return err;
    if (arrow_reader_find(reader, &top, 1, &top_path))
        for (size_t i = 0; (name = arrow_reader_child(reader, &top_path, i)); i++)
            table_add_model(table, name);
    arrow_reader_close(reader);
    return ERR_OK;
}

/* ---- locating columns ---- */

static void find_paths(const struct loading *loading, const struct field_paths *paths,
                       struct found *out)
{
    *out = (struct found){0};
    for (size_t i = 0; i < paths->count; i++) {
        const struct field_path *field = &paths->items[i];
        if (field->inside && out->count)
            continue; /* a column of its own, or a duplicate */
        const char *names[PATH_NAMES_MAX + 2] = {RECORD_MODELS, loading->model};
        size_t before = field->from_top ? 0 : 2;
        for (size_t n = 0; n < field->count; n++)
            names[before + n] = field->names[n];
        if (!arrow_reader_find(loading->reader, names, before + field->count,
                               &out->paths[out->count]) ||
            (field->inside && out->paths[out->count].kind != ARROW_IS_TEXT))
            continue;
        out->is_inside = field->inside != NULL;
        out->count++;
    }
}

static bool wants(run_columns bits, size_t column)
{
    return bits >> column & 1;
}

static void find_columns(struct loading *loading)
{
    const struct builder *builder = loading->builder;
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (wants(builder->wanted.numbers, i))
            find_paths(loading, &builder->numbers[i], &loading->numbers[i]);
    for (size_t i = 0; i < RUN_FLAGS; i++)
        find_paths(loading, &builder->flags[i], &loading->flags[i]);
    for (size_t i = 0; i < RUN_WORDS; i++)
        if (wants(builder->wanted.words, i))
            find_paths(loading, &builder->words[i], &loading->words[i]);
}

/* ---- one batch ---- */

static void reserve_row(struct loading *loading)
{
    size_t rows = loading->rows;
    if (rows <= loading->capacity)
        return;
    free(loading->values);
    free(loading->more);
    free(loading->texts);
    free(loading->there);
    loading->values = xmalloc(rows * sizeof *loading->values);
    loading->more = xmalloc(rows * sizeof *loading->more);
    loading->texts = xmalloc(rows * sizeof *loading->texts);
    loading->there = xmalloc(rows * sizeof *loading->there);
    loading->capacity = rows;
}

/* Copies values of records with this model; returns their number. */
static size_t take_numbers(struct loading *loading, const struct found *found)
{
    uint64_t *not_finite = &loading->builder->table->not_finite;
    for (size_t i = 0; i < loading->rows && !found->count; i++)
        loading->values[i] = UNKNOWN;
    if (found->count)
        arrow_reader_numbers(loading->reader, &found->paths[0], loading->values, not_finite);
    for (size_t p = 1; p < found->count; p++) {
        arrow_reader_numbers(loading->reader, &found->paths[p], loading->more, not_finite);
        for (size_t i = 0; i < loading->rows; i++)
            if (!is_known(loading->values[i]))
                loading->values[i] = loading->more[i];
    }
    if (loading->all_there)
        return loading->rows;
    size_t kept = 0;
    for (size_t i = 0; i < loading->rows; i++)
        if (loading->there[i])
            loading->values[kept++] = loading->values[i];
    return kept;
}

/* Texts as fingerprints. */
static void take_fingerprints(struct loading *loading, const struct found *found)
{
    size_t kept = 0;
    arrow_reader_texts(loading->reader, &found->paths[0], loading->texts);
    for (size_t i = 0; i < loading->rows; i++)
        if (loading->there[i])
            loading->values[kept++] =
                builder_fingerprint(loading->texts[i].bytes, loading->texts[i].length);
}

/* A number may be used as a word: levels are often numbers. */
static void add_number_words(struct loading *loading, enum run_word column,
                             const struct found *found)
{
    char digits[32];
    size_t count = take_numbers(loading, found);
    for (size_t i = 0; i < count; i++) {
        double value = loading->values[i];
        if (value >= 0 && value <= 9 && value == floor(value)) /* fast path for most levels */
            memcpy(digits, (const char[]){(char)('0' + (int)value), '\0'}, 2);
        else
            chars_format(digits, "%.15g", value);
        builder_word(loading->builder, column, is_known(value) ? digits : NULL, strlen(digits));
    }
}

static void add_words(struct loading *loading, enum run_word column)
{
    const struct found *found = &loading->words[column];
    if (found->count && found->paths[0].kind == ARROW_IS_NUMBER) {
        add_number_words(loading, column, found);
        return;
    }
    if (found->count)
        arrow_reader_texts(loading->reader, &found->paths[0], loading->texts);
    else
        memset(loading->texts, 0, loading->rows * sizeof *loading->texts);
    for (size_t i = 0; i < loading->rows; i++)
        if (loading->there[i])
            (found->is_inside ? builder_word_inside : builder_word)(
                loading->builder, column, loading->texts[i].bytes, loading->texts[i].length);
}

/* ---- texts ---- */

static void find_text(const struct loading *loading, const char *top, const char *below,
                      struct found *out)
{
    const char *names[] = {top, below};
    *out = (struct found){0};
    out->count = arrow_reader_find(loading->reader, names, below ? 2 : 1, &out->paths[0]) &&
                 out->paths[0].kind == ARROW_IS_TEXT;
}

static struct arrow_text *texts_of(const struct loading *loading, const struct found *found)
{
    struct arrow_text *texts = xcalloc(loading->rows + 1, sizeof *texts);
    if (found->count)
        arrow_reader_texts(loading->reader, &found->paths[0], texts);
    return texts;
}

/* Keeps the texts of selected rows of the batch; `rows` are already in the table. */
static void add_texts(struct loading *loading)
{
    struct builder *builder = loading->builder;
    struct arrow_text *texts[ROW_TEXTS];
    for (size_t t = 0; t < ROW_TEXTS; t++)
        texts[t] = texts_of(loading, &loading->row_texts[t]);
    size_t row = builder->table->rows;
    for (size_t i = 0; i < loading->rows; i++) {
        if (!loading->there[i] || !builder_wants_texts(builder, row++))
            continue;
        struct slice slices[ROW_TEXTS];
        for (size_t t = 0; t < ROW_TEXTS; t++)
            slices[t] = (struct slice){texts[t][i].bytes, texts[t][i].length};
        builder_texts(builder, slices);
    }
    for (size_t t = 0; t < ROW_TEXTS; t++)
        free(texts[t]);
}

static size_t count_there(struct loading *loading)
{
    size_t count = 0;
    arrow_reader_known(loading->reader, &loading->metrics, loading->there);
    for (size_t i = 0; i < loading->rows; i++)
        count += loading->there[i];
    loading->all_there = count == loading->rows;
    return count;
}

static void add_batch(struct loading *loading)
{
    struct builder *builder = loading->builder;
    reserve_row(loading);
    size_t count = count_there(loading);
    builder_reserve(builder, count);
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (loading->numbers[i].count) {
            if (i == RUN_QUESTION)
                take_fingerprints(loading, &loading->numbers[i]);
            else
                take_numbers(loading, &loading->numbers[i]);
            builder_numbers(builder, (enum run_number)i, loading->values, count);
        }
    for (size_t i = 0; i < RUN_FLAGS; i++) {
        take_numbers(loading, &loading->flags[i]);
        builder_flags(builder, (enum run_flag)i, loading->values, count);
    }
    for (size_t i = 0; i < RUN_WORDS; i++)
        if (wants(builder->wanted.words, i))
            add_words(loading, (enum run_word)i);
    if (builder->excerpts)
        add_texts(loading);
    builder_advance(builder, count);
}

/* ---- a file ---- */

static enum err read_all(struct loading *loading, struct error *why)
{
    uint64_t records = 0;
    struct error reason = {0};
    for (;;) {
        enum err err = arrow_reader_batch(loading->reader, &loading->rows, &reason);
        if (err)
            return err_set(why, err, "%s, after record %llu", reason.text,
                           (unsigned long long)records);
        if (!loading->rows)
            return ERR_OK;
        records += loading->rows;
        add_batch(loading);
    }
}

enum err arrow_rows(const char *path, const char *model, struct builder *builder, struct error *why)
{
    struct loading loading = {.builder = builder, .model = model};
    const char *names[] = {RECORD_MODELS, model}, *ours = "ipw";
    struct arrow_path ours_path;
    enum err err = run_read_arrow(path, &loading.reader, why);
    if (err)
        return err;
    if (arrow_reader_find(loading.reader, names, 2, &loading.metrics)) {
        find_columns(&loading);
        find_text(&loading, "problem", NULL, &loading.row_texts[ROW_PROBLEM]);
        find_text(&loading, "answer", NULL, &loading.row_texts[ROW_EXPECTED]);
        find_text(&loading, "model_answers", model, &loading.row_texts[ROW_ANSWER]);
        builder->table->ours =
            builder->table->ours || arrow_reader_find(loading.reader, &ours, 1, &ours_path);
        err = read_all(&loading, why);
    }
    arrow_reader_close(loading.reader);
    free(loading.values);
    free(loading.more);
    free(loading.texts);
    free(loading.there);
    return err;
}
