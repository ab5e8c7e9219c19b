#include "support/machines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/tree.h"

#define PMU       "/sys/bus/event_source/devices/power"
#define JOULE     (UINT64_C(1) << 32) /* in counts of the perf PMU */
#define MICRO     UINT64_C(1000000)
#define PERF_TYPE 9

/* ---- pieces ---- */

static void set_cpuinfo(struct tree *tree, const char *vendor, int family, int model,
                        const char *brand, const char *flags)
{
    tree_write(tree, "/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\n"
               "model name\t: %s\nflags\t\t: %s\n\n",
               vendor, family, model, brand, flags);
}

void machine_cpu(struct tree *tree, int cpu, int package, int die)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    tree_write(tree, path, "%d\n", package);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/die_id", cpu);
    tree_write(tree, path, "%d\n", die);
}

static void set_pmu(struct tree *tree, const char *cpumask)
{
    tree_write(tree, PMU "/type", "%d\n", PERF_TYPE);
    tree_write(tree, PMU "/cpumask", "%s\n", cpumask);
    tree_write(tree, "/proc/sys/kernel/perf_event_paranoid", "2\n");
}

static void set_event(struct tree *tree, const char *name, unsigned config)
{
    char path[128];
    snprintf(path, sizeof path, PMU "/events/%s", name);
    tree_write(tree, path, "event=0x%02x\n", config);
    snprintf(path, sizeof path, PMU "/events/%s.scale", name);
    tree_write(tree, path, "2.3283064365386962890625e-10\n");
    snprintf(path, sizeof path, PMU "/events/%s.unit", name);
    tree_write(tree, path, "Joules\n");
}

void machine_set_perf(struct tree *tree, unsigned config, int cpu, uint64_t count)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/perf/%d/%x/cpu%d", PERF_TYPE, config, cpu);
    tree_write(tree, path, "%" PRIu64 "\n", count);
}

void machine_set_uj(struct tree *tree, const char *zone, uint64_t microjoules)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/powercap/%s/energy_uj", zone);
    tree_write(tree, path, "%" PRIu64 "\n", microjoules);
}

void machine_zone(struct tree *tree, const char *zone, const char *name, uint64_t microjoules)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/powercap/%s/name", zone);
    tree_write(tree, path, "%s\n", name);
    snprintf(path, sizeof path, "/sys/class/powercap/%s/max_energy_range_uj", zone);
    tree_write(tree, path, "%" PRIu64 "\n", MACHINE_RANGE_UJ);
    machine_set_uj(tree, zone, microjoules);
}

void machine_set_msr(struct tree *tree, int cpu, uint64_t address, uint64_t value)
{
    char path[64];
    /* Registers are addressed by byte offset in the device, but do not overlap; in a regular file
     * neighbors would. AMD's unit register is two below the package's, so only its two low bytes,
     * which hold the energy unit, are written. */
    size_t size = address == MSR_AMD_UNIT ? 2 : sizeof value;
    snprintf(path, sizeof path, "/dev/cpu/%d/msr", cpu);
    tree_write_bytes(tree, path, (long)address, &value, size);
}

/* ---- machines ---- */

void machine_intel_two_socket(struct tree *tree, unsigned paths)
{
    static const int CPUS[] = {0, 28};
    set_cpuinfo(tree, "GenuineIntel", 6, 106, "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz",
                "fpu vme msr rdtscp constant_tsc");
    for (int socket = 0; socket < 2; socket++)
        for (int i = 0; i < 2; i++)
            machine_cpu(tree, CPUS[socket] + i, socket, 0);
    if (paths & MACHINE_PERF) {
        set_pmu(tree, "0,28");
        set_event(tree, "energy-pkg", PERF_PACKAGE);
        set_event(tree, "energy-ram", PERF_RAM);
    }
    for (int socket = 0; socket < 2; socket++) {
        uint64_t package = 5000 + 731 * (uint64_t)socket, dram = 900 + 53 * (uint64_t)socket;
        if (paths & MACHINE_PERF) {
            machine_set_perf(tree, PERF_PACKAGE, CPUS[socket], package * JOULE);
            machine_set_perf(tree, PERF_RAM, CPUS[socket], dram * JOULE);
        }
        if (paths & MACHINE_POWERCAP) {
            char zone[32], name[32];
            snprintf(zone, sizeof zone, "intel-rapl:%d", socket);
            snprintf(name, sizeof name, "package-%d", socket);
            machine_zone(tree, zone, name, package * MICRO);
            snprintf(zone, sizeof zone, "intel-rapl:%d:0", socket);
            machine_zone(tree, zone, "dram", dram * MICRO);
        }
        if (paths & MACHINE_MSR) {
            machine_set_msr(tree, CPUS[socket], MSR_UNIT, 0xa0e03); /* energy: 2^-14 J */
            machine_set_msr(tree, CPUS[socket], MSR_PACKAGE, package << 14);
            machine_set_msr(tree, CPUS[socket], MSR_DRAM, dram << 16);
        }
    }
}

void machine_intel_client(struct tree *tree)
{
    set_cpuinfo(tree, "GenuineIntel", 6, 140, "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz",
                "fpu vme msr rdtscp constant_tsc");
    machine_cpu(tree, 0, 0, 0);
    machine_cpu(tree, 1, 0, 0);
    tree_write(tree, "/sys/class/powercap/intel-rapl/enabled", "1\n");
    tree_write(tree, "/sys/class/powercap/intel-rapl-mmio/enabled", "1\n");
    machine_zone(tree, "intel-rapl-mmio:0", "package-0", 3001 * MICRO);
    machine_zone(tree, "intel-rapl:0", "package-0", 3000 * MICRO);
    machine_zone(tree, "intel-rapl:0:0", "core", 1200 * MICRO);
    machine_zone(tree, "intel-rapl:0:1", "uncore", 90 * MICRO);
    machine_zone(tree, "intel-rapl:1", "psys", 8000 * MICRO);
}

static void amd_cpus(struct tree *tree, int model, const char *brand, int second, int second_die)
{
    set_cpuinfo(tree, "AuthenticAMD", model < 32 ? 23 : 25, model, brand,
                "fpu vme msr rdtscp constant_tsc rapl");
    machine_cpu(tree, 0, 0, 0);
    machine_cpu(tree, second, 0, second_die);
}

void machine_amd(struct tree *tree, unsigned paths)
{
    amd_cpus(tree, 33, "AMD Ryzen 9 5950X 16-Core Processor", 1, 0);
    if (paths & MACHINE_PERF) {
        set_pmu(tree, "0");
        set_event(tree, "energy-pkg", PERF_PACKAGE);
        machine_set_perf(tree, PERF_PACKAGE, 0, 4321 * JOULE);
    }
    if (paths & MACHINE_POWERCAP) {
        machine_zone(tree, "intel-rapl:0", "package-0", 4321 * MICRO);
        machine_zone(tree, "intel-rapl:0:0", "core", 210 * MICRO);
    }
    if (paths & MACHINE_MSR) {
        machine_set_msr(tree, 0, MSR_AMD_UNIT, 0x1003); /* energy: 2^-16 J */
        machine_set_msr(tree, 0, MSR_AMD_PACKAGE, UINT64_C(4321) << 16);
    }
}

void machine_amd_mirrored(struct tree *tree, unsigned paths)
{
    amd_cpus(tree, 1, "AMD Ryzen Threadripper 1950X 16-Core Processor", 8, 1);
    if (paths & MACHINE_PERF) {
        set_pmu(tree, "0,8");
        set_event(tree, "energy-pkg", PERF_PACKAGE);
        machine_set_perf(tree, PERF_PACKAGE, 0, 6868 * JOULE);
        tree_link(tree, "/dev/perf/9/2/cpu8", "cpu0"); /* one counter, two names */
    }
    if (paths & MACHINE_POWERCAP) {
        machine_zone(tree, "intel-rapl:0", "package-0-die-0", 6868 * MICRO);
        machine_zone(tree, "intel-rapl:1", "package-0-die-1", 6868 * MICRO);
    }
    if (paths & MACHINE_MSR) {
        machine_set_msr(tree, 0, MSR_AMD_UNIT, 0x1003);
        machine_set_msr(tree, 0, MSR_AMD_PACKAGE, UINT64_C(6868) << 16);
        tree_link(tree, "/dev/cpu/8/msr", "../0/msr");
    }
}

void machine_guest(struct tree *tree)
{
    set_cpuinfo(tree, "GenuineIntel", 6, 207, "Intel(R) Xeon(R) Processor",
                "fpu vme msr rdtscp constant_tsc hypervisor");
    machine_cpu(tree, 0, 0, 0);
    machine_cpu(tree, 1, 0, 0);
}

void machine_psys_only(struct tree *tree)
{
    machine_guest(tree);
    set_pmu(tree, "0");
    set_event(tree, "energy-psys", PERF_PSYS);
    machine_set_perf(tree, PERF_PSYS, 0, 0);
    tree_mode(tree, "/dev/perf/9/5/cpu0", 0444); /* tick-tree ignores read-only counters */
}

void machine_none(struct tree *tree)
{
    set_cpuinfo(tree, "GenuineIntel", 6, 106, "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz",
                "fpu vme msr rdtscp constant_tsc");
    machine_cpu(tree, 0, 0, 0);
    machine_cpu(tree, 1, 0, 0);
}
