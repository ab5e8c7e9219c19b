/* What some queries asked and what was answered, for the table of queries. */
#ifndef IPW_REPORT_HTML_EXCERPTS_H
#define IPW_REPORT_HTML_EXCERPTS_H

#include <stddef.h>

struct json;
struct run_table;

/* "excerpts": [{"at", "problem", "expected", "answer"}], `at` a place among the listed queries, of which there
 * are at most `most_listed`. */
void excerpts_put(struct json *json, const struct run_table *table, size_t most_listed);

#endif
