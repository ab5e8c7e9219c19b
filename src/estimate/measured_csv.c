/* Cells of a CSV file that is read into memory. */
#include "estimate/measured_csv.h"

#include "core/units.h"
#include "port/file.h"

#define CSV_MAX ((size_t)256 << 20) /* bytes: a trace of requests may be long */

void measured_csv_open(struct measured_csv *csv, const char *path, struct error *why)
{
    struct error inner = {0};
    *csv = (struct measured_csv){.path = path, .why = why};
    csv->err = file_read(path, CSV_MAX, &csv->bytes, why);
    if (csv->err)
        return;
    csv->err = csv->bytes.length
                   ? csv_grid_read(csv->bytes.bytes, csv->bytes.length, &csv->grid, &inner)
                   : err_set(&inner, ERR_BAD_VALUE, "empty");
    if (csv->err)
        err_set(why, csv->err, "%s: %s", path, inner.text);
}

void measured_csv_close(struct measured_csv *csv)
{
    csv_grid_release(&csv->grid);
    text_release(&csv->bytes);
}

bool measured_csv_has(const struct measured_csv *csv, const char *column)
{
    return csv_grid_column(&csv->grid, column) >= 0;
}

const char *measured_csv_cell(const struct measured_csv *csv, const char *column)
{
    return csv_grid_cell(&csv->grid, csv->row, csv_grid_column(&csv->grid, column));
}

void measured_csv_fail(struct measured_csv *csv, const char *column, const char *rule)
{
    if (!csv->err)
        csv->err = err_set(csv->why, ERR_BAD_VALUE, "%s:%zu: %s '%.40s': %s", csv->path,
                           csv->grid.lines[csv->row], column, measured_csv_cell(csv, column), rule);
}

double measured_csv_number(struct measured_csv *csv, const char *column)
{
    const char *cell = measured_csv_cell(csv, column);
    double number = UNKNOWN;
    if (*cell && (parse_double(cell, &number) != ERR_OK || !(number >= 0)))
        measured_csv_fail(csv, column, "must be a number, 0 or more");
    return csv->err ? UNKNOWN : number;
}

bool measured_csv_precision(struct measured_csv *csv, const char *column, enum precision *out)
{
    const char *cell = measured_csv_cell(csv, column);
    struct error unknown = {0};
    if (*cell && precision_find(cell, out, &unknown) != ERR_OK)
        measured_csv_fail(csv, column, "unknown precision");
    return *cell;
}
