/* Student's t distribution.  Pure. */
#ifndef IPW_STATS_DISTRIBUTION_H
#define IPW_STATS_DISTRIBUTION_H

/* Student's t with `freedom` degrees (more than 0): the two-sided tail probability beyond |t|, and the t whose
 * two-sided tail probability is `outside` (in 0..1).  UNKNOWN for anything else. */
double student_two_sided(double t, double freedom);
double student_quantile(double outside, double freedom);

#endif
