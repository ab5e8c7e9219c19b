/* A CSV file (RFC 4180) as rows of JSON: the first record names the columns, each later one becomes
 * an object of strings.  A struct table owns its file and texts: csv_table_open, csv_table_close. */
#ifndef IPW_DATASETS_ROWS_TABLE_H
#define IPW_DATASETS_ROWS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/csv.h"
#include "core/err.h"
#include "datasets/rows/bytes.h"

struct text;

struct table {
    struct bytes bytes;
    struct csv_reader reader; /* of those bytes: a struct table must not be moved */
};

enum err csv_table_open(const char *path, char separator, size_t most, struct table *out,
                        struct error *why) MUST_USE;
void csv_table_close(struct table *table);

/* The next record in *row (cleared first) and the line on which it begins.  Blank lines are passed
 * over.  ERR_BAD_VALUE for a record with more or fewer fields than there are columns, with a quote
 * out of place, or that is too long; the next call goes on after it. */
enum err csv_table_next(struct table *table, struct text *row, uint64_t *line, bool *end,
                        struct error *why) MUST_USE;

#endif
