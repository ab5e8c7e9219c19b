/* Energy figures read back from JSON, and added up over the starts of a run. */
#ifndef IPW_RUNNER_PROFILE_ENERGY_READ_H
#define IPW_RUNNER_PROFILE_ENERGY_READ_H

struct energy;
struct jv;

/* As energy_to_json wrote it; unknown when it is not there. */
void energy_from_json(const struct jv *value, struct energy *out);

/* Windows that follow one another, of the same sensors: calibration errors add up, the others do not.
 * An unknown sum becomes its first known part. */
void energy_add(struct energy *sum, const struct energy *part);

#endif
