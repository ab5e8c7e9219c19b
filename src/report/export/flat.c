/* The flat formats, one row per query with units in the names of the columns: CSV (RFC 4180, except for line ends,
 * which are the system's) and JSON lines. */
#include <inttypes.h>

#include "core/csv.h"
#include "core/json.h"
#include "core/units.h"
#include "report/export/export.h"
#include "rundir/record.h"

static bool is_integer(const struct record_field *field)
{
    return field->at.type == FIELD_INTEGER || field->at.type == FIELD_INTEGRAL;
}

/* ---- CSV ---- */

static enum err csv_begin(struct export *export, struct error *why)
{
    (void)why;
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        text_addf(&export->out, "%s%s", i ? "," : "", record_export(i)->export_name);
    text_add(&export->out, "\n");
    return ERR_OK;
}

/* An unknown value is an empty field; a known but empty text is quoted. */
static void put_cell(struct export *export, const struct record_field *field, const char *text,
                     double number)
{
    struct text *out = &export->out;
    if (text && text[0] && export->run->raw)
        csv_add(out, text);
    else if (text && text[0])
        csv_add_text(out, text);
    else if (text)
        text_add(out, "\"\"");
    else if (!is_known(number))
        return;
    else if (field->at.type == FIELD_BOOL)
        text_add(out, number != 0 ? "true" : "false");
    else if (is_integer(field))
        text_addf(out, "%" PRId64, (int64_t)number);
    else
        export_add_number(out, number);
}

static enum err csv_record(struct export *export, const struct export_record *record,
                           struct error *why)
{
    (void)why;
    for (size_t i = 0; i < RECORD_EXPORTS; i++) {
        const struct record_field *field = record_export(i);
        text_add(&export->out, i ? "," : "");
        put_cell(export, field, export_text(export->run, &record->fields, field),
                 json_field_number(&field->at, &record->fields));
    }
    text_add(&export->out, "\n");
    return ERR_OK;
}

const struct export_driver export_csv = {
    .name = "csv",
    .summary = "CSV with a header: one row per query, units in the names",
    .begin = csv_begin,
    .record = csv_record,
};

/* ---- JSON lines ---- */

static void put_member(struct json *json, const struct record_field *field, const char *text,
                       double number)
{
    const char *key = field->export_name;
    if (text)
        json_string(json, key, text);
    else if (is_known(number) && field->at.type == FIELD_BOOL)
        json_bool(json, key, number != 0);
    else if (is_known(number) && is_integer(field))
        json_integer(json, key, (int64_t)number);
    else
        json_number(json, key, number);
}

static enum err jsonl_record(struct export *export, const struct export_record *record,
                             struct error *why)
{
    (void)why;
    struct json json;
    json_init(&json, &export->out, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < RECORD_EXPORTS; i++) {
        const struct record_field *field = record_export(i);
        put_member(&json, field, export_text(export->run, &record->fields, field),
                   json_field_number(&field->at, &record->fields));
    }
    json_object_end(&json);
    text_add(&export->out, "\n");
    return ERR_OK;
}

const struct export_driver export_jsonl = {
    .name = "jsonl",
    .summary = "JSON lines: one flat object per query, units in the names",
    .record = jsonl_record,
};
