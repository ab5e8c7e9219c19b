#include "report/export/flat.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"

const struct flat_info FLAT_INFO[FLAT_COLUMNS] = {
#define TEXT(name, place)    {#name, place, FLAT_TEXT},
#define NUMBER(name, place)  {#name, place, FLAT_NUMBER},
#define INTEGER(name, place) {#name, place, FLAT_INTEGER},
#define TRUTH(name, place)   {#name, place, FLAT_TRUTH},
#include "report/export/flat_columns.def"
#undef TEXT
#undef NUMBER
#undef INTEGER
#undef TRUTH
};

/* A model's name may hold dots, so its struct is found before a path is followed. */
static const struct jv *value_at(const struct export_run *run, const struct jv *record,
                                 const struct jv *metrics, const char *place)
{
    if (place[0] == '/')
        return jv_path(record, place + 1);
    if (strcmp(place, "=answer") == 0)
        return jv_get(jv_get(record, "model_answers"), run->model);
    return jv_path(metrics, place);
}

static struct flat_value value_of(const struct jv *value, enum flat_kind kind)
{
    struct flat_value out = {.kind = kind, .text = jv_text(value), .number = jv_number(value)};
    bool known = false;
    switch (kind) {
    case FLAT_TEXT:
        known = out.text != NULL;
        break;
    case FLAT_NUMBER:
        known = is_known(out.number);
        break;
    case FLAT_INTEGER:
        known = jv_integer(value, &out.integer);
        break;
    case FLAT_TRUTH:
        known = jv_is_bool(value);
        out.truth = jv_truth(value, false);
        break;
    case FLAT_NULL:
        break;
    }
    if (!known)
        out.kind = FLAT_NULL;
    return out;
}

void flat_row(const struct export_run *run, const struct jv *record,
              struct flat_value row[static FLAT_COLUMNS])
{
    const struct jv *metrics = jv_get(jv_get(record, "model_metrics"), run->model);
    for (size_t i = 0; i < FLAT_COLUMNS; i++)
        row[i] = value_of(value_at(run, record, metrics, FLAT_INFO[i].place), FLAT_INFO[i].kind);
    row[FLAT_run] = (struct flat_value){.kind = FLAT_TEXT, .text = run->name};
    row[FLAT_model] = (struct flat_value){.kind = FLAT_TEXT, .text = run->model};
}

void flat_add_number(struct text *out, double value)
{
    struct json json;
    json_init(&json, out, false);
    json_number(&json, NULL, value);
}
