/* Fixtures of tab-separated fields, one row per line; lines that begin with # are comments. */
#ifndef TESTS_SUPPORT_TSV_H
#define TESTS_SUPPORT_TSV_H

#include <stddef.h>

enum { TSV_FIELDS_MAX = 24 };

/* Calls `row` for each line of a file under tests/fixtures, which must have `count` fields. Fails
 * the test when the file cannot be read or a line has a different number of fields. Returns the
 * number of rows. */
size_t tsv_each(const char *path, size_t count, void (*row)(char **fields));

/* A number, or UNKNOWN for "-". */
double tsv_number(const char *field);

#endif
