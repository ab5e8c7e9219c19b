/* RAPL through the perf PMU "power": the path that needs the least privilege (CAP_PERFMON, or
 * perf_event_paranoid at 0) and that the kernel has already widened to 64 bits. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"
#include "sensors/rapl/rapl.h"

#define PMU "/sys/bus/event_source/devices/power"

/* The package first: the driver represents a socket by its first domain. */
static const struct {
    enum rapl_kind kind;
    const char *name;
} EVENTS[] = {
    {RAPL_PACKAGE, "energy-pkg"}, {RAPL_CORE, "energy-cores"}, {RAPL_UNCORE, "energy-gpu"},
    {RAPL_DRAM, "energy-ram"},    {RAPL_PSYS, "energy-psys"},
};

/* "0,28" and "0-1" and mixtures of them.  Returns how many CPUs were taken. */
static size_t parse_cpus(const char *list, int *cpus, size_t max)
{
    size_t count = 0;
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu >= 0 && cpu <= last && count < max; cpu++)
            cpus[count++] = (int)cpu;
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
    return count;
}

/* The file contains "2.3283064365386962890625e-10", with a decimal point in every locale. */
static bool read_scale(const char *event, double *out)
{
    char path[128], text[64], *end;
    chars_format(path, PMU "/events/%s.scale", event);
    if (fs_read_text(path, text, sizeof text))
        return false;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    double value = strtod_l(text, &end, plain);
    freelocale(plain);
    if (end == text || *end || !(value > 0 && value < 1e6))
        return false;
    *out = value;
    return true;
}

static bool read_config(const char *event, uint64_t *out)
{
    char path[128], text[64], *end;
    chars_format(path, PMU "/events/%s", event);
    if (fs_read_text(path, text, sizeof text) || !str_starts(text, "event="))
        return false;
    const char *number = text + strlen("event=");
    *out = strtoull(number, &end, 0);
    return end != number && !*end; /* a further term has no known meaning */
}

static bool counts_joules(const char *event)
{
    char path[128], text[32];
    chars_format(path, PMU "/events/%s.unit", event);
    return fs_read_text(path, text, sizeof text) || str_equal(text, "Joules");
}

static void add_event(struct rapl_table *out, uint32_t type, size_t row, const int *cpus,
                      size_t cpu_count)
{
    uint64_t config;
    double scale;
    const char *name = EVENTS[row].name;
    if (!read_config(name, &config) || !read_scale(name, &scale) || !counts_joules(name))
        return;
    for (size_t i = 0; i < cpu_count; i++) {
        struct rapl_location location = rapl_location_of(cpus[i], (int)i);
        if (EVENTS[row].kind == RAPL_PSYS)
            location.die = 0; /* a platform has no dies */
        struct rapl_domain *domain = rapl_table_add(out, EVENTS[row].kind, location);
        if (!domain)
            continue;
        domain->cpu = cpus[i];
        domain->pmu_type = type;
        domain->selector = config;
        domain->joules_per_count = scale;
        chars_format(domain->source, "PMU power, event %s, CPU %d", name, cpus[i]);
    }
}

static enum err perf_list(const struct rapl_cpu *cpu, struct rapl_table *out,
                          struct rapl_note *note)
{
    (void)cpu;
    uint64_t type;
    char mask[256];
    int cpus[RAPL_UNITS_MAX] = {0};
    if (fs_read_u64(PMU "/type", &type) || type > UINT32_MAX) {
        chars_copy(note->reason, "no perf PMU power");
        return ERR_ABSENT;
    }
    size_t count = 1; /* without a mask there is one counter, which any CPU reads */
    if (!fs_read_text(PMU "/cpumask", mask, sizeof mask)) {
        count = parse_cpus(mask, cpus, RAPL_UNITS_MAX);
        if (count == 0)
            count = 1;
    }
    for (size_t row = 0; row < COUNT_OF(EVENTS); row++)
        add_event(out, (uint32_t)type, row, cpus, count);
    if (out->count)
        return ERR_OK;
    chars_copy(note->reason, "perf PMU power has no known energy event");
    return ERR_UNSUPPORTED;
}

/* ---- the counter ---- */

/* Under a root prefix the counter is the text file ROOT/dev/perf/<pmu type>/<config in hex>/cpu<N>, so that a test can
 * script it. */
static enum err open_scripted(uint32_t pmu_type, uint64_t config, int cpu, int *fd)
{
    char path[FS_PATH_MAX];
    chars_format(path, "/dev/perf/%" PRIu32 "/%" PRIx64 "/cpu%d", pmu_type, config, cpu);
    return fs_open(path, fd);
}

static enum err open_counter(uint32_t pmu_type, uint64_t config, int cpu, int *fd)
{
    if (fs_root()[0])
        return open_scripted(pmu_type, config, cpu, fd);
    struct perf_event_attr attr = {
        .type = pmu_type,
        .size = sizeof attr,
        .config = config,
    };
    long result = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (result < 0) {
        *fd = -1;
        return err_from_errno(errno);
    }
    *fd = (int)result;
    return ERR_OK;
}

static enum err read_counter(int fd, uint64_t *out)
{
    if (fs_root()[0])
        return fs_pread_u64(fd, out);
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    if (n < 0)
        return err_from_errno(errno);
    if (n != (ssize_t)sizeof count)
        return ERR_LOST; /* end of file: the event went into an error state */
    *out = count;
    return ERR_OK;
}

static enum err perf_open(struct rapl_domain *domain)
{
    return open_counter(domain->pmu_type, domain->selector, domain->cpu, &domain->fd);
}

static enum err perf_read(const struct rapl_domain *domain, uint64_t *count)
{
    return read_counter(domain->fd, count);
}

static void perf_denied(const struct rapl_domain *domain, struct rapl_note *note)
{
    (void)domain;
    int64_t paranoid;
    if (fs_read_i64("/proc/sys/kernel/perf_event_paranoid", &paranoid)) {
        chars_copy(note->reason, "perf_event_open is refused: the PMU power needs CAP_PERFMON");
        chars_copy(note->fix, "sudo setcap cap_perfmon+ep $(command -v ipw)");
    } else if (paranoid > 0) {
        chars_format(note->reason,
                     "perf_event_paranoid is %" PRId64
                     "; the PMU power needs 0 or less, or CAP_PERFMON",
                     paranoid);
        chars_copy(note->fix, "sudo sysctl kernel.perf_event_paranoid=0");
    } else {
        /* Allowed by the policy but refused: a container's seccomp filter. */
        chars_format(note->reason,
                     "perf_event_open is refused though perf_event_paranoid is %" PRId64
                     ": a container's seccomp filter forbids it",
                     paranoid);
        chars_copy(note->fix, "docker run --cap-add=PERFMON ...");
    }
}

const struct rapl_path rapl_path_perf = {
    .name = "perf_event",
    .counts_from_open = true,
    .list = perf_list,
    .open = perf_open,
    .read = perf_read,
    .denied = perf_denied,
};
