/* Any bytes as a run directory: its files concatenated, with RUN_FILES_BREAK between them. For the
 * tests of damage and the fuzzers, without a test library. */
#ifndef TESTS_SUPPORT_RUN_FILES_H
#define TESTS_SUPPORT_RUN_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

enum { RUN_FILES_BREAK = 1, RUN_FILES_MAX = 1 << 16 };

/* Adds the journal, the summary, the samples and the spans of a directory of tests/fixtures/runs,
 * limited to some lines each; false when they cannot be read. */
bool run_files_add(struct text *out, const char *name);

/* Damages them as manual edits would: another value, a line more or less, a truncated line. Returns
 * the new length, at most RUN_FILES_MAX, which is the capacity of `bytes`. The same seed gives the
 * same damage everywhere. */
size_t run_files_damage(char *bytes, size_t length, uint64_t seed);

/* Writes them to a directory and runs every command that reads runs: analyze, report, compare,
 * plot, export. Returns what is wrong, NULL when nothing is; an error with a reason is not wrong. */
const char *run_files_exercise(const char *bytes, size_t length);

#endif
