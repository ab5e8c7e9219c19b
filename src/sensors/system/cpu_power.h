/* Which power figure fits the processors of a host.  Pure over struct host_info; the strings are
 * copied into the caller's struct. */
#ifndef IPW_SENSORS_CPU_POWER_H
#define IPW_SENSORS_CPU_POWER_H

#include "sensors/system/host_info.h"

struct cpu_figure {
    double watts_per_thread;  /* at full load on all threads */
    double relative_accuracy; /* standard uncertainty of modelled power */
    char name[64];            /* what was matched: "EPYC 9654", "Emerald Rapids" */
    char source[64];          /* where the figure is from */
};

/* Always gives a figure: the exact part, else its family or core, else a general one. */
void cpu_power_find(const struct host_info *host, struct cpu_figure *out);

/* Does the pattern stand in the brand as whole words?  Marks such as (R) and the word CPU do not
 * count, case does not, and "7950X" is not in "7950X3D". */
bool cpu_brand_matches(const char *brand, const char *pattern);

#endif
