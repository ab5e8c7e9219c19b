/* RAPL through the powercap tree.  It covers parts that the perf PMU does not (TPMI servers),
 * and on some laptops it shows one package twice: read by MSR and read by MMIO. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "port/fs.h"
#include "sensors/rapl/rapl.h"

#define CLASS "/sys/class/powercap"

/* ---- zones ---- */

static bool zone_label(const char *zone, char *to, size_t size)
{
    char path[160];
    return chars_format(path, CLASS "/%s/name", zone) && !fs_read_text(path, to, size);
}

/* "package-1" or "package-0-die-1" */
static bool package_location(const char *label, struct rapl_location *location)
{
    int end = 0;
    *location = (struct rapl_location){0};
    if (sscanf(label, "package-%d%n", &location->package, &end) != 1 || location->package < 0)
        return false;
    return !label[end] ||
           (sscanf(label + end, "-die-%d", &location->die) == 1 && location->die >= 0);
}

/* A zone below a package is located where its parent is: "intel-rapl:1:0" under "intel-rapl:1". */
static bool parent_location(const char *zone, struct rapl_location *location)
{
    char parent[64], label[64];
    chars_copy(parent, zone);
    char *colon = strrchr(parent, ':');
    if (!colon)
        return false;
    *colon = '\0';
    return zone_label(parent, label, sizeof label) && package_location(label, location);
}

static bool classify(const char *zone, const char *label, enum rapl_kind *kind,
                     struct rapl_location *location)
{
    *location = (struct rapl_location){0};
    if (package_location(label, location)) {
        *kind = RAPL_PACKAGE;
        return true;
    }
    if (str_equal(label, "psys") || sscanf(label, "psys-%d", &location->package) == 1) {
        *kind = RAPL_PSYS; /* "psys" is the first package's, or the only one */
        return true;
    }
    if (str_equal(label, "core"))
        *kind = RAPL_CORE;
    else if (str_equal(label, "uncore"))
        *kind = RAPL_UNCORE;
    else if (str_equal(label, "dram"))
        *kind = RAPL_DRAM;
    else
        return false;
    return parent_location(zone, location);
}

/* A CPU of the location; where the zone does not name a die, any CPU of the package will do. */
static int cpu_of(struct rapl_location location, const struct rapl_reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rapl_same_location(readers[i].location, location))
            return readers[i].cpu;
    for (size_t i = 0; i < count; i++)
        if (readers[i].location.package == location.package)
            return readers[i].cpu;
    return -1;
}

/* energy_uj runs from 0 to max_energy_range_uj inclusive.  Without that file the modulus is not
 * known; 0 makes a wrap look like a reset, which loses one interval instead of inventing one. */
static uint64_t read_modulus(const char *directory)
{
    char path[160];
    uint64_t max;
    chars_format(path, "%s/max_energy_range_uj", directory);
    if (fs_read_u64(path, &max) || max == 0 || max == UINT64_MAX)
        return 0;
    return max + 1;
}

/* Returns whether the zone could be read at all. */
static bool add_zone(struct rapl_table *out, const char *zone, const struct rapl_reader *readers,
                     size_t reader_count)
{
    char label[64], directory[sizeof out->domains->source];
    enum rapl_kind kind;
    struct rapl_location location;
    if (!chars_format(directory, CLASS "/%s", zone) || !zone_label(zone, label, sizeof label))
        return false;
    if (!classify(zone, label, &kind, &location))
        return true;
    struct rapl_domain *domain = rapl_table_add(out, kind, location);
    if (!domain)
        return true;
    domain->cpu = cpu_of(location, readers, reader_count);
    domain->joules_per_count = 1e-6;
    domain->wraps_at = read_modulus(directory);
    chars_copy(domain->source, directory);
    return true;
}

/* MSR and TPMI zones are called "intel-rapl:..." (on AMD, too); MMIO ones "intel-rapl-mmio:...". */
static bool is_primary(const char *zone)
{
    return str_starts(zone, "intel-rapl:");
}

static bool is_other(const char *zone)
{
    return str_starts(zone, "intel-rapl-") && strchr(zone, ':');
}

static enum err powercap_list(const struct rapl_cpu *cpu, struct rapl_table *out,
                              struct rapl_note *note)
{
    (void)cpu;
    struct fs_names zones;
    struct rapl_reader readers[RAPL_UNITS_MAX];
    size_t found = 0, readable = 0;
    if (fs_list(CLASS, &zones))
        zones = (struct fs_names){0};
    size_t reader_count = zones.count ? rapl_readers(readers, RAPL_UNITS_MAX) : 0;
    /* Primary zones first, so that an MMIO zone enters only where it is the sole view. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < zones.count; i++) {
            const char *zone = zones.items[i];
            if (pass == 0 ? !is_primary(zone) : !is_other(zone))
                continue;
            found++;
            readable += add_zone(out, zone, readers, reader_count);
        }
    }
    fs_names_release(&zones);
    if (out->count)
        return ERR_OK;
    if (found && !readable) {
        chars_copy(note->reason, "powercap zones are hidden (container runtimes mask them)");
        return ERR_UNSUPPORTED;
    }
    if (found) {
        chars_copy(note->reason, "powercap has no known RAPL zone");
        return ERR_UNSUPPORTED;
    }
    chars_copy(note->reason, "no powercap zone intel-rapl");
    return ERR_ABSENT;
}

/* ---- reading ---- */

static enum err powercap_open(struct rapl_domain *domain)
{
    char path[160];
    chars_format(path, "%s/energy_uj", domain->source);
    return fs_open(path, &domain->fd);
}

static enum err powercap_read(const struct rapl_domain *domain, uint64_t *count)
{
    return fs_pread_u64(domain->fd, count);
}

static void powercap_denied(const struct rapl_domain *domain, struct rapl_note *note)
{
    const char *zone = domain->source + strlen(CLASS "/");
    chars_copy(note->reason,
               "energy_uj is readable by root only since CVE-2020-8694 (a power side channel)");
    chars_format(note->fix,
                 "sudo chmod a+r " CLASS
                 "/%.*s:*/energy_uj (until the next boot), or sudo ipw-reader --group GROUP",
                 (int)strcspn(zone, ":"), zone);
}

const struct rapl_path rapl_path_powercap = {
    .name = "powercap",
    .list = powercap_list,
    .open = powercap_open,
    .read = powercap_read,
    .denied = powercap_denied,
};
