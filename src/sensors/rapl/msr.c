/* RAPL through the MSR device: for kernels without the PMU and without powercap.  The registers
 * are 32 bits wide and we apply the unit. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"
#include "sensors/rapl/rapl.h"

enum { INTEL_UNIT = 0x606 };
static const uint64_t AMD_UNIT = 0xC0010299;

struct reg {
    enum rapl_kind kind;
    uint64_t address;
};
static const struct reg INTEL_REGS[] = {
    {RAPL_PACKAGE, 0x611}, {RAPL_CORE, 0x639}, {RAPL_UNCORE, 0x641},
    {RAPL_DRAM, 0x619},    {RAPL_PSYS, 0x64D},
};
/* AMD's core register (0xC001029A) belongs to one core, not to the package. */
static const struct reg AMD_REGS[] = {{RAPL_PACKAGE, 0xC001029B}};

static bool device_path(int cpu, char *to, size_t size)
{
    return str_format(to, size, "/dev/cpu/%d/msr", cpu);
}

static enum err read_register(int fd, uint64_t address, uint64_t *out)
{
    uint64_t value = 0;
    ssize_t n;
    do
        n = pread(fd, &value, sizeof value, (off_t)address);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_from_errno(errno);
    if (n != (ssize_t)sizeof value)
        return ERR_BAD_VALUE;
    *out = value;
    return ERR_OK;
}

/* Silvermont and Airmont count in powers of two of a microjoule; the powercap driver handles them. */
static bool unit_differs(const struct rapl_cpu *cpu)
{
    static const unsigned char MODELS[] = {55, 74, 76, 77, 90, 93};
    for (size_t i = 0; i < sizeof MODELS; i++)
        if (cpu->vendor == RAPL_INTEL && cpu->family == 6 && cpu->model == MODELS[i])
            return true;
    return false;
}

static void add_domain(struct rapl_table *out, const struct reg *reg, struct rapl_reader reader,
                       double unit)
{
    struct rapl_location location = reader.location;
    if (reg->kind == RAPL_PSYS)
        location.die = 0;
    struct rapl_domain *domain = rapl_table_add(out, reg->kind, location);
    if (!domain)
        return;
    domain->cpu = reader.cpu;
    domain->selector = reg->address;
    domain->joules_per_count = unit;
    domain->wraps_at = UINT64_C(1) << 32;
    chars_format(domain->source, "/dev/cpu/%d/msr, register 0x%" PRIx64, reader.cpu, reg->address);
}

static double unit_of(const struct rapl_cpu *cpu, enum rapl_kind kind, double unit)
{
    if (kind == RAPL_DRAM && rapl_dram_unit_fixed(cpu))
        return ldexp(1, -16);
    if (kind == RAPL_PSYS && rapl_psys_whole_joules(cpu))
        return 1;
    return unit;
}

/* Lists the registers that respond on one CPU.  One that does not exist fails to read; one that reads
 * 0 is not wired (the kernel's own powercap driver applies the same rule). */
static void add_reader(const struct rapl_cpu *cpu, struct rapl_reader reader,
                       struct rapl_table *out)
{
    bool amd = cpu->vendor == RAPL_AMD;
    const struct reg *regs = amd ? AMD_REGS : INTEL_REGS;
    size_t count = amd ? COUNT_OF(AMD_REGS) : COUNT_OF(INTEL_REGS);
    char path[64];
    int fd;
    uint64_t value = 0;
    device_path(reader.cpu, path, sizeof path);
    enum err err = fs_open(path, &fd);
    if (err == ERR_DENIED)
        add_domain(out, &regs[0], reader, 0); /* opening it will report denied, and why */
    if (err)
        return;
    if (!read_register(fd, amd ? AMD_UNIT : INTEL_UNIT, &value)) {
        double unit = ldexp(1, -(int)(value >> 8 & 0x1f));
        for (size_t i = 0; i < count; i++)
            if (!read_register(fd, regs[i].address, &value) && (value & UINT32_MAX))
                add_domain(out, &regs[i], reader, unit_of(cpu, regs[i].kind, unit));
    }
    close(fd);
}

static enum err msr_list(const struct rapl_cpu *cpu, struct rapl_table *out, struct rapl_note *note)
{
    struct rapl_reader readers[RAPL_UNITS_MAX] = {0};
    char path[64];
    size_t count = rapl_readers(readers, RAPL_UNITS_MAX);
    if (count == 0)
        count = 1; /* no topology visible: CPU 0 of socket 0 */
    if (!device_path(readers[0].cpu, path, sizeof path) || !fs_exists(path)) {
        chars_format(note->reason, "no %s", path);
        return ERR_ABSENT;
    }
    if ((cpu->vendor != RAPL_INTEL && cpu->vendor != RAPL_AMD) || unit_differs(cpu)) {
        chars_copy(note->reason, "MSR layout of this CPU is unknown");
        return ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < count; i++)
        add_reader(cpu, readers[i], out);
    if (out->count)
        return ERR_OK;
    chars_copy(note->reason, "no energy MSR responds");
    return ERR_UNSUPPORTED;
}

static enum err msr_open(struct rapl_domain *domain)
{
    char path[64];
    device_path(domain->cpu, path, sizeof path);
    return fs_open(path, &domain->fd);
}

static enum err msr_read(const struct rapl_domain *domain, uint64_t *count)
{
    uint64_t value = 0;
    enum err err = read_register(domain->fd, domain->selector, &value);
    if (!err)
        *count = value & UINT32_MAX; /* the upper half is reserved */
    return err;
}

static void msr_denied(const struct rapl_domain *domain, struct rapl_note *note)
{
    chars_format(note->reason, "/dev/cpu/%d/msr needs CAP_SYS_RAWIO and read permission",
                 domain->cpu);
    chars_copy(note->fix, "sudo setcap cap_sys_rawio,cap_dac_read_search+ep $(command -v ipw)");
}

const struct rapl_path rapl_path_msr = {
    .name = "msr",
    .list = msr_list,
    .open = msr_open,
    .read = msr_read,
    .denied = msr_denied,
};
