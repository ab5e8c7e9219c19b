/* A run's table out of its directory.  run_table_load gives one that run_table_release takes back,
 * whole. */
#ifndef IPW_ANALYSIS_RUN_LOAD_H
#define IPW_ANALYSIS_RUN_LOAD_H

#include "analysis/run_table.h"

/* `model` is the one to take, or NULL: the summary's, else the one with most records.  ERR_NOT_FOUND:
 * no such directory, no run in it, or no such model; ERR_NO_DATA: a run without a single record;
 * ERR_BAD_VALUE: damaged, with the file and the place in it. */
enum err run_table_load(const char *directory, const char *model, struct run_wanted wanted,
                        struct run_table *out, struct error *why) MUST_USE;
void run_table_release(struct run_table *table);

/* The same, with the texts of some queries, evenly picked: all of up to `excerpts`, and of more at least
 * that many and less than twice. */
enum err run_table_load_texts(const char *directory, const char *model, struct run_wanted wanted,
                              size_t excerpts, struct run_table *out, struct error *why) MUST_USE;

#endif
