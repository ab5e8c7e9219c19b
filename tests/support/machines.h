/* Complete fake machines for a struct tree: /sys, /proc and /dev of real ones, with counters that
 * do not change until a test sets them. tests/fixtures/make-tree writes the same trees from a
 * shell; tests/unit/sensors/test_machines.c checks that they are equal. */
#ifndef TESTS_SUPPORT_MACHINES_H
#define TESTS_SUPPORT_MACHINES_H

#include <stdint.h>

struct tree;

/* The interfaces to the energy counters that the machine has. */
enum machine_path { MACHINE_PERF = 1, MACHINE_POWERCAP = 2, MACHINE_MSR = 4 };

/* Ice Lake servers' CPUs 0, 1 in socket 0 and 28, 29 in socket 1; package and DRAM. */
void machine_intel_two_socket(struct tree *tree, unsigned paths);

/* A laptop: package (by MSR and by MMIO), core, uncore and psys, all in powercap. */
void machine_intel_client(struct tree *tree);

/* One socket of Zen 3: package; powercap adds core. */
void machine_amd(struct tree *tree, unsigned paths);

/* A Threadripper whose two dies (CPUs 0 and 8) share one counter. */
void machine_amd_mirrored(struct tree *tree, unsigned paths);

/* A virtual machine whose PMU has one event, psys, that never changes. */
void machine_psys_only(struct tree *tree);

/* A virtual machine, and a physical one, without any energy counter. */
void machine_guest(struct tree *tree);
void machine_none(struct tree *tree);

/* Sets a counter: a powercap zone ("intel-rapl:0:1"), a perf event (config, CPU), a register. */
void machine_set_uj(struct tree *tree, const char *zone, uint64_t microjoules);
void machine_set_perf(struct tree *tree, unsigned config, int cpu, uint64_t count);
void machine_set_msr(struct tree *tree, int cpu, uint64_t address, uint64_t value);

/* Parts, for machines that only one test needs. */
void machine_zone(struct tree *tree, const char *zone, const char *name, uint64_t microjoules);
void machine_cpu(struct tree *tree, int cpu, int package, int die);

/* MSRs and perf configs by name. */
enum { MSR_UNIT = 0x606, MSR_PACKAGE = 0x611, MSR_DRAM = 0x619, MSR_CORE = 0x639 };
#define MSR_AMD_UNIT    UINT64_C(0xC0010299)
#define MSR_AMD_PACKAGE UINT64_C(0xC001029B)
enum { PERF_CORES = 1, PERF_PACKAGE = 2, PERF_RAM = 3, PERF_GPU = 4, PERF_PSYS = 5 };

#define MACHINE_RANGE_UJ UINT64_C(262143328850) /* max_energy_range_uj of every zone */

#endif
