/* The Levenshtein distance of two sequences: the fewest insertions, deletions and substitutions that turn one into the
 * other, for error rates of words and characters.  Pure; memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_EDIT_DISTANCE_H
#define IPW_STATS_EDIT_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

/* Elements are compared as numbers.  Time is a count x b count / 64, memory a count + b count. */
size_t edit_distance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count);

#endif
