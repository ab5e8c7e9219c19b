#include "rundir/run_table_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"

static double number_of(const struct jv *value)
{
    return jv_is_bool(value) ? jv_bool(value, false) : jv_number(value);
}

static double number_at(const struct field_paths *paths, const struct jv *record,
                        const struct jv *metrics)
{
    double value = UNKNOWN;
    for (size_t i = 0; i < paths->count && !is_known(value); i++)
        value = number_of(field_path_find(&paths->items[i], record, metrics));
    return value;
}

/* The question as a fingerprint; any other column unchanged. */
static double value_of(const struct builder *builder, size_t column, const struct jv *record,
                       const struct jv *metrics)
{
    const struct field_paths *paths = &builder->numbers[column];
    if (column != RUN_QUESTION)
        return number_at(paths, record, metrics);
    const char *text = jv_text(field_path_find(&paths->items[0], record, metrics));
    return builder_fingerprint(text, text ? strlen(text) : 0);
}

static void add_word(struct builder *builder, enum run_word column, const struct jv *record,
                     const struct jv *metrics)
{
    const struct field_paths *paths = &builder->words[column];
    for (size_t i = 0; i < paths->count; i++) {
        const struct jv *value = field_path_find(&paths->items[i], record, metrics);
        const char *text = jv_text(value);
        if (paths->items[i].inside && text) {
            builder_word_inside(builder, column, text, strlen(text));
            return;
        }
        if (!paths->items[i].inside && !jv_is_null(value)) {
            builder_word_of(builder, column, value);
            return;
        }
    }
    builder_word(builder, column, NULL, 0);
}

static void add_texts(struct builder *builder, const struct jv *record)
{
    const struct jv *answers = jv_get(record, "model_answers");
    const char *texts[ROW_TEXTS] = {jv_get_text(record, "problem"), jv_get_text(record, "answer"),
                                    jv_get_text(answers, builder->table->model)};
    struct slice slices[ROW_TEXTS] = {{0}};
    for (size_t i = 0; i < ROW_TEXTS; i++)
        if (texts[i])
            slices[i] = slice_of(texts[i]);
    builder_texts(builder, slices);
}

static enum err take_record(void *context, const struct jv *record)
{
    struct builder *builder = context;
    struct run_table *table = builder->table;
    const struct jv *all = record_models(record);
    JV_EACH (model, jv_first_member(all))
        table_add_model(table, jv_key(model));
    if (!table->model && table->model_count)
        table->model = xstrdup(table->models[0]);
    if (!table->model)
        return ERR_OK;
    const struct jv *metrics = jv_get(all, table->model);
    if (jv_is_null(metrics))
        return ERR_OK;
    builder_reserve(builder, 1);
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (builder->wanted.numbers >> i & 1) {
            double value = value_of(builder, i, record, metrics);
            builder_numbers(builder, (enum run_number)i, &value, 1);
        }
    for (size_t i = 0; i < RUN_FLAGS; i++) {
        double value = number_at(&builder->flags[i], record, metrics);
        builder_flags(builder, (enum run_flag)i, &value, 1);
    }
    for (size_t i = 0; i < RUN_WORDS; i++)
        if (builder->wanted.words >> i & 1)
            add_word(builder, (enum run_word)i, record, metrics);
    if (builder_wants_texts(builder, table->rows))
        add_texts(builder, record);
    builder_advance(builder, 1);
    return ERR_OK;
}

/* ---- the header ---- */

/* Takes ownership of the tree.  A summary contains all of it; without one, equal paths have equal meaning. */
static void read_header(struct run_table *table, struct jv *header)
{
    static const struct json_field FIELDS[] = {
#define HEADER(member_, type_, path_)                                                              \
    {.path = (path_), .type = FIELD_##type_, .offset = offsetof(struct summary, member_)}
        HEADER(version, TEXT, "ipw"),
        HEADER(config_client, TEXT, "settings.client"),
        HEADER(dataset, TEXT, "settings.dataset"),
        HEADER(config_system, TEXT, "settings.system"),
        HEADER(config_template, TEXT, "settings.template"),
        HEADER(answer_format, TEXT, "settings.answer_format"),
        HEADER(config_dataset_params, JSON, "settings.dataset_params"),
        HEADER(config_decode_weight, NUMBER, "measuring.decode_weight"),
    };
    struct json_field_reader reader = {.root = header};
    table->format = jv_get_number(header, "format");
    if (table->has_summary) {
        jv_free(header);
        return;
    }
    table->has_header = summary_from_json(header, &table->summary, NULL) == ERR_OK;
    for (size_t i = 0; table->has_header && i < COUNT_OF(FIELDS); i++)
        json_field_read(&reader, &FIELDS[i], &table->summary);
}

enum err journal_rows(const char *path, struct builder *builder, struct error *why)
{
    struct run_table *table = builder->table;
    struct error reason = {0};
    struct jv *header = journal_header(path);
    if (header)
        read_header(table, header);
    enum err err = journal_records(path, take_record, builder, &table->damaged, &reason);
    table->ours = true;
    if (table->damaged)
        table->first_damaged = journal_first_damaged(path);
    if (err)
        return err_set(why, err, "%s", reason.text[0] ? reason.text : err_text(err));
    return ERR_OK;
}
