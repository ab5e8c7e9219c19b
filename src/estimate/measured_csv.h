/* Rows of measurements in a CSV file, accessed by column name.  The first error is kept: it names file, line and
 * column, and later reads return unknown.  Ownership: measured_csv_close frees what measured_csv_open allocates, also
 * after an error. */
#ifndef IPW_ESTIMATE_MEASURED_CSV_H
#define IPW_ESTIMATE_MEASURED_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/precision.h"
#include "core/csv.h"
#include "core/err.h"
#include "core/text.h"

struct measured_csv {
    const char *path;
    struct text bytes;
    struct csv_grid grid;
    size_t row; /* current row */
    enum err err;
    struct error *why;
};

void measured_csv_open(struct measured_csv *csv, const char *path, struct error *why);
void measured_csv_close(struct measured_csv *csv);

bool measured_csv_has(const struct measured_csv *csv, const char *column);
const char *measured_csv_cell(const struct measured_csv *csv, const char *column); /* "": none */
void measured_csv_fail(struct measured_csv *csv, const char *column, const char *rule);

/* Non-negative; UNKNOWN if the cell is empty or the column missing. */
double measured_csv_number(struct measured_csv *csv, const char *column);
/* False, with *out unchanged, if the cell is empty or the column missing. */
bool measured_csv_precision(struct measured_csv *csv, const char *column, enum precision *out);

#endif
