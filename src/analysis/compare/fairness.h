/* What makes a comparison of two runs unfair, and whether the same sensors measured them.  Nothing here
 * keeps state. */
#ifndef IPW_ANALYSIS_COMPARE_FAIRNESS_H
#define IPW_ANALYSIS_COMPARE_FAIRNESS_H

#include <stdbool.h>

struct comparison;
struct run_table;

/* Adds the warnings; the comparison's counts must be there. */
void fairness_check(const struct run_table *a, const struct run_table *b, struct comparison *out);

/* The same sensors on the same machine are wrong alike, and what they are wrong by is in no
 * difference. */
bool same_sensors(const struct run_table *a, const struct run_table *b);

#endif
