/* Power of processors, for the power model of a host without a meter, and names of Arm cores and products, from
 * data/hardware (catalog/catalog_file.h).  Strings are the catalog's. */
#ifndef IPW_CATALOG_CPU_POWER_H
#define IPW_CATALOG_CPU_POWER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* Identification of a host's processor; "" and 0 where unknown. */
struct cpu_power_key {
    const char *brand, *product, *board;       /* tried in this order */
    const char *vendor;                        /* vendor on x86: "GenuineIntel" */
    unsigned family, model, implementer, part; /* x86, Arm */
    bool is_single_threaded; /* SMT off: the watts are shared by the cores, not by all threads */
};

struct cpu_power {
    double watts_per_thread;  /* at full load on all threads */
    double relative_accuracy; /* standard uncertainty of modeled power */
    const char *name;         /* the match: "EPYC 9654", "Emerald Rapids" */
    const char *source;       /* source of the figure: "AMD TDP" */
};

/* Never fails: the exact part, else its family or core, else a generic figure. */
struct cpu_power cpu_power_find(const struct cpu_power_key *key);

/* "Neoverse-V2"; "" for an unknown core. */
const char *cpu_core_name(unsigned implementer, unsigned part);
/* A product identified by the machine's vendor ("Amazon EC2"): "AWS Graviton4"; "" when unknown. */
const char *cpu_product_name(const char *machine_vendor, unsigned implementer, unsigned part);

#endif
