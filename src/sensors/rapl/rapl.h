/* Internal to the RAPL driver.
 *
 * Three access paths lead to the same registers: the perf PMU "power", the powercap tree and the
 * MSR device.  Each is a struct rapl_path that fills one table of domains, so the driver itself
 * (rapl.c) never depends on which one it is.
 *
 * Ownership: everything lives in the caller's structs; a domain that was opened holds one file
 * descriptor, which rapl_domain_close closes. */
#ifndef IPW_SENSORS_RAPL_RAPL_H
#define IPW_SENSORS_RAPL_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum {
    RAPL_DOMAINS_MAX = 160,
    RAPL_UNITS_MAX = 32, /* sockets, or dies where each die has its own counter */
};

enum rapl_kind { RAPL_PACKAGE, RAPL_CORE, RAPL_UNCORE, RAPL_DRAM, RAPL_PSYS, RAPL_KINDS };

/* Where a counter sits.  die is 0 unless the kernel shows several dies of one package. */
struct rapl_location {
    int package;
    int die;
};

struct rapl_domain {
    enum rapl_kind kind;
    struct rapl_location location;
    int cpu; /* a CPU of that location: a read from there needs no cross-call; -1 unknown */
    int fd;  /* -1 until opened */
    double joules_per_count;
    uint64_t wraps_at; /* modulus of the count; 0 for 64 bits */
    uint64_t selector; /* perf: config; MSR: register */
    uint32_t pmu_type; /* perf only */
    char source[64];   /* for display, and the zone's directory for powercap */
};

struct rapl_table {
    struct rapl_domain domains[RAPL_DOMAINS_MAX];
    size_t count;
};

/* Why a path lists no domain, and how to fix it ("" when unknown). */
struct rapl_note {
    char reason[200];
    char fix[240];
};

/* The machine according to /proc/cpuinfo. */
struct rapl_cpu {
    char brand[80];
    enum { RAPL_VENDOR_UNKNOWN, RAPL_INTEL, RAPL_AMD, RAPL_NOT_X86 } vendor;
    unsigned family;
    unsigned model;
    bool guest; /* running under a hypervisor */
};

struct rapl_path {
    const char *name;
    /* perf counts from the moment of opening, so two of its counters compare by increments only;
     * the others show the register itself. */
    bool counts_from_open;

    /* Fills the table without keeping anything open.  ERR_ABSENT: this path does not exist here;
     * ERR_UNSUPPORTED: it does, and has no domain for us.  *note then says so. */
    enum err (*list)(const struct rapl_cpu *cpu, struct rapl_table *out, struct rapl_note *note);

    enum err (*open)(struct rapl_domain *domain);

    /* The hot path: one system call. */
    enum err (*read)(const struct rapl_domain *domain, uint64_t *count);

    /* Why open returned ERR_DENIED. */
    void (*denied)(const struct rapl_domain *domain, struct rapl_note *note);
};

extern const struct rapl_path rapl_path_perf, rapl_path_powercap, rapl_path_msr;

/* Adds a domain with fd and cpu -1; NULL when the table is full or already has that kind at that
 * location, which keeps out a second view of the same counter (MMIO beside MSR). */
struct rapl_domain *rapl_table_add(struct rapl_table *table, enum rapl_kind kind,
                                   struct rapl_location location);
bool rapl_same_location(struct rapl_location a, struct rapl_location b);
void rapl_domain_close(struct rapl_domain *domain);

/* ---- the machine (machine.c) ---- */

void rapl_cpu_read(struct rapl_cpu *cpu);

/* Of the Intel server parts that count DRAM in 2^-16 J whatever the unit register says. */
bool rapl_dram_unit_fixed(const struct rapl_cpu *cpu);
/* Sapphire and Emerald Rapids count psys in whole joules. */
bool rapl_psys_whole_joules(const struct rapl_cpu *cpu);

/* The location of a CPU; `otherwise` is its package number when the kernel does not report one. */
struct rapl_location rapl_location_of(int cpu, int otherwise);

/* One CPU, the lowest, of every location that is online. */
struct rapl_reader {
    struct rapl_location location;
    int cpu;
};
size_t rapl_readers(struct rapl_reader *readers, size_t max);

/* For each of `count` open counters: which earlier one is the same counter, or -1.
 * Takes a few milliseconds, most of them asleep. */
void rapl_find_mirrors(const struct rapl_path *path, const struct rapl_domain *counters,
                       size_t count, int *mirror_of);

#endif
