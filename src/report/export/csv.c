/* CSV (RFC 4180): a header, then one row a query.  What is not known is an empty field; lines end in a
 * newline alone, as in our other CSV. */
#include "core/csv.h"

#include <inttypes.h>

#include "report/export/export.h"
#include "report/export/flat.h"

static enum err csv_begin(struct export *export, struct error *why)
{
    (void)why;
    for (size_t i = 0; i < FLAT_COLUMNS; i++)
        text_addf(&export->out, "%s%s", i ? "," : "", flat_name(i));
    text_add(&export->out, "\n");
    return ERR_OK;
}

static void put_value(struct text *out, const struct flat_value *value)
{
    switch (value->kind) {
    case FLAT_NULL:
        break;
    case FLAT_TEXT:
        if (value->text[0])
            csv_add(out, value->text);
        else
            text_add(out, "\"\""); /* known, and empty */
        break;
    case FLAT_NUMBER:
        flat_add_number(out, value->number);
        break;
    case FLAT_INTEGER:
        text_addf(out, "%" PRId64, value->integer);
        break;
    case FLAT_TRUTH:
        text_add(out, value->truth ? "true" : "false");
        break;
    }
}

static enum err csv_record(struct export *export, const struct jv *record, struct error *why)
{
    (void)why;
    struct flat_value row[FLAT_COLUMNS];
    flat_row(export->run, record, row);
    for (size_t i = 0; i < FLAT_COLUMNS; i++) {
        text_add(&export->out, i ? "," : "");
        put_value(&export->out, &row[i]);
    }
    text_add(&export->out, "\n");
    return ERR_OK;
}

static enum err csv_end(struct export *export, struct error *why)
{
    (void)export, (void)why;
    return ERR_OK;
}

const struct export_driver export_csv = {
    .name = "csv",
    .summary = "CSV with a header: one row a query, units in the names",
    .begin = csv_begin,
    .record = csv_record,
    .end = csv_end,
};
