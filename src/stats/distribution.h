/* Distributions that tests and intervals need: the normal and Student's.  Pure. */
#ifndef IPW_STATS_DISTRIBUTION_H
#define IPW_STATS_DISTRIBUTION_H

/* The share of a standard normal distribution below z, and the z below which a share of p lies
 * (p in 0..1; the ends are infinite). */
double normal_below(double z);
double normal_quantile(double p);

/* Student's t with `freedom` degrees (more than 0): what lies beyond |t| on both sides, and the t
 * beyond which, on both sides, a share of `outside` lies (in 0..1).  UNKNOWN for anything else. */
double student_outside(double t, double freedom);
double student_quantile(double outside, double freedom);

#endif
