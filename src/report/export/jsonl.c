/* JSON lines: one flat object a query. */
#include "core/json.h"
#include "report/export/export.h"
#include "report/export/flat.h"

static enum err jsonl_begin(struct export *export, struct error *why)
{
    (void)export, (void)why;
    return ERR_OK;
}

static void put_value(struct json *json, const char *key, const struct flat_value *value)
{
    switch (value->kind) {
    case FLAT_NULL:
        json_null(json, key);
        break;
    case FLAT_TEXT:
        json_string(json, key, value->text);
        break;
    case FLAT_NUMBER:
        json_number(json, key, value->number);
        break;
    case FLAT_INTEGER:
        json_integer(json, key, value->integer);
        break;
    case FLAT_TRUTH:
        json_bool(json, key, value->truth);
        break;
    }
}

static enum err jsonl_record(struct export *export, const struct jv *record, struct error *why)
{
    (void)why;
    struct flat_value row[FLAT_COLUMNS];
    struct json json;
    flat_row(export->run, record, row);
    json_init(&json, &export->out, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < FLAT_COLUMNS; i++)
        put_value(&json, flat_name(i), &row[i]);
    json_object_end(&json);
    text_add(&export->out, "\n");
    return ERR_OK;
}

static enum err jsonl_end(struct export *export, struct error *why)
{
    (void)export, (void)why;
    return ERR_OK;
}

const struct export_driver export_jsonl = {
    .name = "jsonl",
    .summary = "JSON lines: one flat object a query, units in the names",
    .begin = jsonl_begin,
    .record = jsonl_record,
    .end = jsonl_end,
};
