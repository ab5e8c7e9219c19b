/* Any bytes as a run directory: its files after one another, RUN_FILES_BREAK between them.  For the tests of damage
 * and the fuzzers, without a test library. */
#ifndef TESTS_SUPPORT_RUN_FILES_H
#define TESTS_SUPPORT_RUN_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

enum { RUN_FILES_BREAK = 1, RUN_FILES_MAX = 1 << 16 };

/* Adds the journal, the summary, the samples and the spans of a directory of tests/fixtures/runs, of each no more
 * lines than a quick look needs; false when they cannot be read. */
bool run_files_add(struct text *out, const char *name);

/* Damages them as a hand would: another value, a line more or less, a line that is cut.  Gives the new length, at
 * most RUN_FILES_MAX, which `bytes` must have room for.  The same seed gives the same damage everywhere. */
size_t run_files_damage(char *bytes, size_t length, uint64_t seed);

/* Writes them to a directory and has every command that reads runs do its work there: analyze, report, compare,
 * plot, export.  Gives what is wrong with our reading, NULL when nothing is; what is refused with a reason is
 * nothing wrong. */
const char *run_files_exercise(const char *bytes, size_t length);

#endif
