/* What runs come to, in words: the first thing that `ipw analyze` prints. */
#ifndef IPW_REPORT_CONCLUSION_H
#define IPW_REPORT_CONCLUSION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct result;
struct run_figures;
struct text;

/* A run in a sentence, `each` what it consists of: "query". */
void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out);

/* Several runs, which are settled: a sentence and a table, of some of them unless verbose. */
enum err conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                            bool color, struct text *out) MUST_USE;

#endif
