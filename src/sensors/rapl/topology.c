/* What the RAPL driver must know about the machine: the CPU model, and which CPU reads which package. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"
#include "sensors/rapl/rapl.h"
#include "sensors/system/host_info.h"

bool rapl_same_location(struct rapl_location a, struct rapl_location b)
{
    return a.package == b.package && a.die == b.die;
}

struct rapl_domain *rapl_table_add(struct rapl_table *table, enum rapl_kind kind,
                                   struct rapl_location location)
{
    if (table->count == RAPL_DOMAINS_MAX)
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        if (table->domains[i].kind == kind &&
            rapl_same_location(table->domains[i].location, location))
            return NULL;
    struct rapl_domain *domain = &table->domains[table->count++];
    *domain = (struct rapl_domain){.kind = kind, .location = location, .cpu = -1, .fd = -1};
    return domain;
}

void rapl_domain_close(struct rapl_domain *domain)
{
    if (domain->fd >= 0)
        close(domain->fd);
    domain->fd = -1;
}

/* ---- the CPU ---- */

void rapl_cpu_read(struct rapl_cpu *cpu)
{
    struct cpu_identity identity;
    cpu_identity_read(&identity);
    *cpu = (struct rapl_cpu){
        .family = identity.family, .model = identity.model, .guest = identity.hypervisor};
    str_copy(cpu->brand, sizeof cpu->brand, identity.brand);
    if (!strcmp(identity.vendor, "GenuineIntel"))
        cpu->vendor = RAPL_INTEL;
    else if (!strcmp(identity.vendor, "AuthenticAMD") || !strcmp(identity.vendor, "HygonGenuine"))
        cpu->vendor = RAPL_AMD;
    else if (identity.implementer)
        cpu->vendor = RAPL_NOT_X86;
}

static bool is_model(const struct rapl_cpu *cpu, const unsigned char *models, size_t count)
{
    if (cpu->vendor != RAPL_INTEL || cpu->family != 6)
        return false;
    for (size_t i = 0; i < count; i++)
        if (cpu->model == models[i])
            return true;
    return false;
}

bool rapl_dram_unit_fixed(const struct rapl_cpu *cpu)
{
    /* Haswell-X, Broadwell-X and -D, Skylake-X, Knights Landing and Mill, Ice Lake-X and -D. */
    static const unsigned char MODELS[] = {63, 79, 86, 85, 87, 133, 106, 108};
    return is_model(cpu, MODELS, sizeof MODELS);
}

bool rapl_psys_whole_joules(const struct rapl_cpu *cpu)
{
    static const unsigned char MODELS[] = {143, 207};
    return is_model(cpu, MODELS, sizeof MODELS);
}

/* ---- topology ---- */

static bool topology_number(int cpu, const char *what, int *out)
{
    char path[96];
    int64_t value;
    str_format(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    if (fs_read_i64(path, &value) || value < 0 || value > 0xfffff)
        return false;
    *out = (int)value;
    return true;
}

struct rapl_location rapl_location_of(int cpu, int otherwise)
{
    struct rapl_location location = {otherwise, 0};
    bool has_package = topology_number(cpu, "physical_package_id", &location.package);
    bool has_die = topology_number(cpu, "die_id", &location.die);
    if (!has_package && has_die)
        return (struct rapl_location){location.die, 0};
    return location;
}

size_t rapl_readers(struct rapl_reader *readers, size_t max)
{
    struct fs_names names;
    size_t count = 0;
    if (fs_list("/sys/devices/system/cpu", &names))
        return 0;
    for (size_t i = 0; i < names.count; i++) {
        int cpu, known, end = 0;
        if (sscanf(names.items[i], "cpu%d%n", &cpu, &end) != 1 || names.items[i][end])
            continue;
        if (!topology_number(cpu, "physical_package_id", &known) &&
            !topology_number(cpu, "die_id", &known))
            continue; /* offline CPUs have no topology */
        struct rapl_location location = rapl_location_of(cpu, 0);
        size_t at = 0;
        while (at < count && !rapl_same_location(readers[at].location, location))
            at++;
        if (at == count && count < max)
            readers[count++] = (struct rapl_reader){location, cpu};
    }
    fs_names_release(&names);
    return count;
}
