/* A record as one flat row: the exported columns of rundir/record.def.  Texts point into the record and the
 * run. */
#ifndef IPW_REPORT_EXPORTS_FLAT_H
#define IPW_REPORT_EXPORTS_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rundir/record.h"

struct export_run;
struct jv;
struct text;

enum { FLAT_COLUMNS = RECORD_EXPORTS };

enum flat_kind { FLAT_NULL, FLAT_TEXT, FLAT_NUMBER, FLAT_INTEGER, FLAT_TRUTH };

const char *flat_name(size_t column);
enum flat_kind flat_kind(size_t column);

struct flat_value {
    enum flat_kind kind; /* FLAT_NULL, or the column's */
    const char *text;
    double number;
    int64_t integer;
    bool truth;
};

void flat_row(const struct export_run *run, const struct jv *record,
              struct flat_value row[static FLAT_COLUMNS]);

/* A number with the fewest digits that give it back. */
void flat_add_number(struct text *out, double value);

#endif
