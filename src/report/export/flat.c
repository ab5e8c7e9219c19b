#include "report/export/flat.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"

const char *flat_name(size_t column)
{
    return record_export(column)->export_name;
}

enum flat_kind flat_kind(size_t column)
{
    switch (record_export(column)->at.type) {
    case FIELD_TEXT:
        return FLAT_TEXT;
    case FIELD_NUMBER:
        return FLAT_NUMBER;
    case FIELD_INTEGER:
    case FIELD_WHOLE:
        return FLAT_INTEGER;
    case FIELD_TRUTH:
        return FLAT_TRUTH;
    case FIELD_JSON:
    case FIELD_METADATA:
        break;
    }
    return FLAT_NULL;
}

static struct flat_value value_of(const struct record_field *field, const struct record *record,
                                  enum flat_kind kind)
{
    struct flat_value out = {.kind = kind};
    if (!json_field_is_known(&field->at, record))
        return (struct flat_value){.kind = FLAT_NULL};
    out.text = json_field_text(&field->at, record);
    out.number = json_field_number(&field->at, record);
    out.integer = kind == FLAT_INTEGER ? (int64_t)out.number : 0;
    out.truth = out.number != 0;
    return out;
}

void flat_row(const struct export_run *run, const struct jv *tree,
              struct flat_value row[static FLAT_COLUMNS])
{
    struct record record;
    record_from_json(tree, run->model, &record);
    for (size_t i = 0; i < FLAT_COLUMNS; i++) {
        const struct record_field *field = record_export(i);
        if (field->role != ROLE_DERIVED)
            row[i] = value_of(field, &record, flat_kind(i));
        else /* what is in no record: the run and the model */
            row[i] = (struct flat_value){
                .kind = FLAT_TEXT,
                .text = strcmp(field->export_name, "run") == 0 ? run->name : run->model};
    }
}

void flat_add_number(struct text *out, double value)
{
    struct json json;
    json_init(&json, out, false);
    json_number(&json, NULL, value);
}
