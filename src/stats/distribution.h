/* The normal distribution and Student's t.  Pure. */
#ifndef IPW_STATS_DISTRIBUTION_H
#define IPW_STATS_DISTRIBUTION_H

/* The standard normal distribution function, and its inverse (p in 0..1; the ends are infinite). */
double normal_below(double z);
double normal_quantile(double p);

/* Student's t with `freedom` degrees (more than 0): the two-sided tail probability beyond |t|, and the t whose
 * two-sided tail probability is `outside` (in 0..1).  UNKNOWN for anything else. */
double student_outside(double t, double freedom);
double student_quantile(double outside, double freedom);

#endif
