/* A run as a row of the run index (run_index.h): the figures of its summary that the index has, and what a list shows
 * of the run besides.  A row borrows its strings; a copy holds them itself and is freed as a whole, by free. */
#ifndef IPW_RUNDIR_RUN_ROW_H
#define IPW_RUNDIR_RUN_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rundir/summary.h"

struct run_list_entry;

/* Columns that are not figures of the summary; they have the same name in the index and in the API. */
#define ROWS_OWN(TEXT, NUMBER)                                                                     \
    TEXT(NAME, "name", none)                                                                       \
    TEXT(KIND, "kind", none)                                                                       \
    TEXT(STATE, "state", none)                                                                     \
    NUMBER(CREATED, "created_at", none)                                                            \
    TEXT(PRECISION, "precision", none)

/* The columns that a list shows: these, and rows of record.def with a name for the API. */
enum run_column {
#define ROW(constant, name, index) ROW_##constant,
    ROWS_OWN(ROW, ROW)
#undef ROW
#define ROW_TEXT(constant, name, index)   (ROW_##constant, )
#define ROW_NUMBER(constant, name, index) (ROW_##constant, )
#include "rundir/record.def"
        ROW_COLUMNS
};
extern const struct run_row_column {
    const char *name;
    int index; /* enum summary_index */
    bool is_text;
} ROW_COLUMN[ROW_COLUMNS];

/* Columns that a search looks at. */
enum { RUN_SEARCHED_COUNT = 5 };
extern const enum run_column RUN_SEARCHED[RUN_SEARCHED_COUNT];

/* The values of a row: the columns of ROWS_OWN, then those of the index in its order. */
enum {
#define ONE(constant, name, index) +1
    ROW_OWN = 0 ROWS_OWN(ONE, ONE),
#undef ONE
    ROW_VALUES = ROW_OWN + SUMMARY_INDEXES
};
size_t run_row_place(enum run_column column);
const char *run_row_name(size_t place); /* in the index */
bool run_row_is_text(size_t place);
/* The figure of record.def that a column has, if pages show its label; else NULL. */
const struct summary_field *run_row_figure(enum run_column column);

/* Unknown numbers are UNKNOWN, unknown texts NULL. */
struct run_row {
    const char *id;
    int64_t written_at; /* mtime of the summary in ns; INTEGER_UNKNOWN: the run has not ended */
    bool is_attempt;    /* of a sweep: found by its id, but not listed */
    union {
        const char *text;
        double number;
    } values[ROW_VALUES];
};

static inline const char *run_row_text(const struct run_row *row, enum run_column column)
{
    return row->values[run_row_place(column)].text;
}
static inline double run_row_number(const struct run_row *row, enum run_column column)
{
    return row->values[run_row_place(column)].number;
}

bool run_row_has(const struct run_row *row, size_t place); /* the value is known */
void run_row_init(struct run_row *row, const char *id);    /* all unknown, but the name */
/* A run that has ended; its strings are those of the summary. */
void run_row_of_summary(const char *id, const struct summary *summary, struct run_row *out);
/* A run of a folder, which may be running; its strings are those of the entry. */
void run_row_of_entry(const char *id, const char *directory, const struct run_list_entry *entry,
                      struct run_row *out);
const char *run_row_precision(const struct run_row *row); /* by the model's name; or NULL */
bool run_row_is_running(const struct run_row *row);

struct run_row *run_row_copy(const struct run_row *row);

/* As strcmp, by one value and then by the id; unknown values are last in both directions. */
int run_row_compare(const struct run_row *a, const struct run_row *b, size_t place,
                    bool is_descending);

#endif
