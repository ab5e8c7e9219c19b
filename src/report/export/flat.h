/* A record as one flat row: flat_columns.def.  Texts point into the record and the run. */
#ifndef IPW_REPORT_EXPORTS_FLAT_H
#define IPW_REPORT_EXPORTS_FLAT_H

#include <stdbool.h>
#include <stdint.h>

struct export_run;
struct jv;
struct text;

enum flat_column {
#define TEXT(name, place)    FLAT_##name,
#define NUMBER(name, place)  FLAT_##name,
#define INTEGER(name, place) FLAT_##name,
#define TRUTH(name, place)   FLAT_##name,
#include "report/export/flat_columns.def"
#undef TEXT
#undef NUMBER
#undef INTEGER
#undef TRUTH
    FLAT_COLUMNS
};

enum flat_kind { FLAT_NULL, FLAT_TEXT, FLAT_NUMBER, FLAT_INTEGER, FLAT_TRUTH };

struct flat_info {
    const char *name, *place;
    enum flat_kind kind;
};
extern const struct flat_info FLAT_INFO[FLAT_COLUMNS];

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
