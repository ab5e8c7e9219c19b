/* What `ipw analyze` prints: results of analyses, by their layout alone, so that a new analysis needs no code here; and,
 * before them, what runs come to in words (conclusion.c). */
#ifndef IPW_REPORT_ANALYSIS_REPORT_H
#define IPW_REPORT_ANALYSIS_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct result;
struct run_figures;
struct text;

/* The finding of each, and the warnings of all, within about so many lines. */
void analysis_findings(const struct result *results, size_t count, size_t lines, struct text *out);

/* The finding in full, then its tables, of long ones `rows` rows and how many more there are, then the warnings. */
void analysis_brief(const struct result *result, size_t rows, bool color, struct text *out);

/* One in full: a summary as a list, a list or group of like groups as a table. */
void analysis_text(const struct result *result, bool color, struct text *out);

/* Words wrapped behind a label and an indent; what is longer than `most` lines ends in "...".  Returns the lines. */
size_t analysis_wrap(struct text *out, const char *label, size_t indent, size_t most,
                     const char *words);

/* ---- the conclusion ---- */

/* A run in a sentence, `each` what it consists of: "query". */
void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out);

/* Several runs, which are settled: a sentence and a table, of some of them unless verbose. */
enum err conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                            bool color, struct text *out) MUST_USE;

#endif
