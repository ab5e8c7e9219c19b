/* Files that are damaged at random: a reader reads or refuses them in one line, never beyond their end, and
 * never with more memory than their size warrants.  The same seed gives the same damage everywhere. */
#ifndef IPW_TESTS_DAMAGE_H
#define IPW_TESTS_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

/* What went wrong with these bytes; NULL: nothing. */
typedef const char *damage_exercise(const void *bytes, size_t length);

/* Thousands of damaged copies; damage falls into the first `header` bytes.  Limits the memory of this process
 * for good, so that it comes last in a test of its own. */
void damage_test(const char *bytes, size_t length, size_t header, uint64_t seed,
                 damage_exercise *exercise);

#endif
