/* Machine properties for the RAPL driver: the CPU model, the CPU that reads each package, and counters that mirror
 * another one. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"
#include "port/thread.h"
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
    chars_copy(cpu->brand, identity.brand);
    if (str_equal(identity.vendor, "GenuineIntel"))
        cpu->vendor = RAPL_INTEL;
    else if (str_equal(identity.vendor, "AuthenticAMD") ||
             str_equal(identity.vendor, "HygonGenuine"))
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
    chars_format(path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
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

/* ---- mirrored counters ---- */

/* Which package counters are one counter seen twice?
 *
 * On AMD Zen 1 and Zen 2 parts with several dies (Threadripper, EPYC) the kernel shows a package
 * domain for every die, and each shows the same socket-wide counter: 68 W become 137 W.  Names
 * and topology do not distinguish that from two dies or sockets that each have their own, so the
 * counters themselves are compared.
 *
 * A round reads every counter, then every counter again in the opposite order.  A counter whose
 * two readings are the same did not tick in between, so every other reading of the same register
 * made inside that bracket must agree with it exactly.  What "agree" means depends on the path:
 *
 *   powercap, MSR   the readings are the register itself: equal, and not 0.  Two sockets would
 *                   have to have spent the same energy since power-on to the microjoule.
 *   perf            counts start at 0 when opened, so near-equal values prove nothing.  Both
 *                   must have changed since the last round, by exactly the same count.  Two sockets
 *                   do not: they tick at different moments, and a millisecond is hundreds of
 *                   units whose noise is their own.
 *
 * A pair is a mirror after HOLDS_ENOUGH agreeing rounds and is rejected at the third
 * disagreement (one stray reading counts as two: into it and out of it).  A genuine two-socket
 * machine is thus cleared after three or four rounds.  Counters that never change (perf) or stay
 * at 0 prove nothing and are kept: whether they work is checked elsewhere. */

enum {
    ROUNDS_MAX = 20,
    HOLDS_ENOUGH = 8,
    BREAKS_ALLOWED = 2,
    PAUSE_US = 1100, /* a little over the update period of 1 ms, so that each round sees a tick */
};

struct steady_count {
    uint64_t count;
    bool steady; /* read twice with the same result */
};

struct evidence {
    unsigned holds;
    unsigned breaks;
};

static void take_round(const struct rapl_path *path, const struct rapl_domain *counters,
                       size_t count, struct steady_count *round)
{
    for (size_t i = 0; i < count; i++)
        round[i].steady = path->read(&counters[i], &round[i].count) == ERR_OK;
    for (size_t i = count; i-- > 0;) {
        uint64_t again;
        if (path->read(&counters[i], &again) || again != round[i].count)
            round[i].steady = false;
    }
}

/* Evaluates one pair in one round.  `before` holds the last steady reading of each. */
static void compare_pair(bool by_increments, const struct steady_count *a,
                         const struct steady_count *b, const struct steady_count *a_before,
                         const struct steady_count *b_before, struct evidence *evidence)
{
    if (!a->steady || !b->steady)
        return;
    if (!by_increments) {
        if (a->count != b->count)
            evidence->breaks++;
        else if (a->count != 0)
            evidence->holds++;
        return;
    }
    if (!a_before->steady || !b_before->steady)
        return;
    uint64_t a_step = a->count - a_before->count, b_step = b->count - b_before->count;
    if (a_step != b_step)
        evidence->breaks++;
    else if (a_step != 0)
        evidence->holds++;
}

static bool is_mirror(const struct evidence *evidence)
{
    return evidence->breaks <= BREAKS_ALLOWED && evidence->holds >= HOLDS_ENOUGH;
}

static bool is_undecided(const struct evidence *evidence)
{
    return evidence->breaks <= BREAKS_ALLOWED && evidence->holds < HOLDS_ENOUGH;
}

/* Compares every pair; returns whether any is still undecided. */
static bool compare_all(bool by_increments, size_t count, const struct steady_count *now,
                        const struct steady_count *before,
                        struct evidence evidence[RAPL_UNITS_MAX][RAPL_UNITS_MAX])
{
    bool undecided = false;
    for (size_t b = 1; b < count; b++) {
        for (size_t a = 0; a < b; a++) {
            struct evidence *pair = &evidence[a][b];
            if (is_undecided(pair))
                compare_pair(by_increments, &now[a], &now[b], &before[a], &before[b], pair);
            undecided |= is_undecided(pair);
        }
    }
    return undecided;
}

void rapl_find_mirrors(const struct rapl_path *path, const struct rapl_domain *counters,
                       size_t count, int *mirror_of)
{
    struct evidence evidence[RAPL_UNITS_MAX][RAPL_UNITS_MAX] = {0};
    struct steady_count now[RAPL_UNITS_MAX], before[RAPL_UNITS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        mirror_of[i] = -1;
    if (count < 2)
        return;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        take_round(path, counters, count, now);
        if (!compare_all(path->counts_from_open, count, now, before, evidence))
            break;
        /* A pair is compared over the same two rounds, so an unsteady round of one is void for
         * all: it would stretch only that counter's interval. */
        memcpy(before, now, sizeof before);
        thread_sleep(PAUSE_US * NS_PER_US);
    }
    for (size_t b = 1; b < count; b++)
        for (size_t a = 0; a < b && mirror_of[b] < 0; a++)
            if (mirror_of[a] < 0 && is_mirror(&evidence[a][b]))
                mirror_of[b] = (int)a;
}
