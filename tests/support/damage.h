/* Randomly damaged files: a reader accepts them or rejects them with a one-line error, never reads
 * past their end, and never uses more memory than their size warrants. The same seed gives the same
 * damage everywhere. */
#ifndef IPW_TESTS_DAMAGE_H
#define IPW_TESTS_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

/* Returns what is wrong with these bytes; NULL: nothing. */
typedef const char *damage_exercise(const void *bytes, size_t length);

/* Tests thousands of damaged copies; damage is in the first `header` bytes. Limits the memory of
 * this process permanently, so that it must be the last in a test program of its own. */
void damage_test(const char *bytes, size_t length, size_t header, uint64_t seed,
                 damage_exercise *exercise);

#endif
