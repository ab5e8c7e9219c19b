/* What RAPL there is.
 *
 * Two sets of domains are looked for apart, because they fail apart: the sockets (package, core,
 * uncore, DRAM) and psys.  Each set takes the first of three paths that it can be read by:
 * perf_event, powercap, MSR.  A set that exists and cannot be read is reported with the first
 * path's cure; sockets that exist nowhere are reported as absent with what each path lacked. */
#include "core/text.h"
#include "sensors/rapl/paths.h"
#include "sensors/sensor.h"

static const struct rapl_path *const PATHS[] = {&rapl_path_perf, &rapl_path_powercap,
                                                &rapl_path_msr};
enum { PATH_COUNT = sizeof PATHS / sizeof *PATHS };

const struct rapl_path *rapl_path_at(unsigned index)
{
    return index < PATH_COUNT ? PATHS[index] : NULL;
}

/* ---- domains of a set ---- */

static enum rapl_set set_of(const struct rapl_domain *domain)
{
    return domain->kind == RAPL_PSYS ? RAPL_PLATFORM : RAPL_SOCKETS;
}

/* A package that shows one die only is just a package, whatever number the die has. */
static void drop_lone_dies(struct rapl_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct rapl_place place = table->domains[i].place;
        bool alone = true;
        for (size_t k = 0; k < table->count; k++)
            if (table->domains[k].place.package == place.package &&
                table->domains[k].kind != RAPL_PSYS && table->domains[k].place.die != place.die)
                alone = false;
        if (alone)
            for (size_t k = 0; k < table->count; k++)
                if (table->domains[k].place.package == place.package)
                    table->domains[k].place.die = 0;
    }
}

enum err rapl_list_set(const struct rapl_path *path, enum rapl_set set, const struct rapl_cpu *cpu,
                       struct rapl_table *out, struct rapl_note *note)
{
    size_t kept = 0;
    out->count = 0;
    enum err err = path->list(cpu, out, note);
    if (err)
        return err;
    drop_lone_dies(out);
    for (size_t i = 0; i < out->count; i++)
        if (set_of(&out->domains[i]) == set)
            out->domains[kept++] = out->domains[i];
    out->count = kept;
    if (kept)
        return ERR_OK;
    str_format(note->reason, sizeof note->reason, "%s has %s", path->name,
               set == RAPL_PLATFORM ? "no psys" : "psys only");
    return ERR_ABSENT;
}

/* The first domain of every place, in table order: the package where there is one. */
static size_t pick_leads(const struct rapl_table *table, struct rapl_domain *leads)
{
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t k = 0;
        while (k < count && !rapl_same_place(leads[k].place, table->domains[i].place))
            k++;
        if (k == count && count < RAPL_UNITS_MAX)
            leads[count++] = table->domains[i];
    }
    return count;
}

static enum err try_open(const struct rapl_path *path, struct rapl_domain *domain)
{
    uint64_t ignored;
    enum err err = path->open(domain);
    if (!err)
        err = path->read(domain, &ignored);
    if (err)
        rapl_domain_close(domain);
    return err;
}

/* ---- findings ---- */

/* The places of one set on one path; leads that could be read are open. */
struct survey {
    unsigned path;
    size_t count;
    struct rapl_domain leads[RAPL_UNITS_MAX];
    enum err errs[RAPL_UNITS_MAX];
    int mirror_of[RAPL_UNITS_MAX];
};

static void survey_release(struct survey *survey)
{
    for (size_t i = 0; i < survey->count; i++)
        rapl_domain_close(&survey->leads[i]);
    survey->count = 0;
}

/* The best thing that can be said of a survey: readable, denied, otherwise broken. */
static enum err survey_verdict(const struct survey *survey)
{
    enum err verdict = ERR_ABSENT;
    for (size_t i = 0; i < survey->count; i++) {
        if (!survey->errs[i])
            return ERR_OK;
        if (verdict != ERR_DENIED)
            verdict = survey->errs[i] == ERR_DENIED ? ERR_DENIED : ERR_BAD_VALUE;
    }
    return verdict;
}

static enum err survey_path(unsigned path, enum rapl_set set, const struct rapl_cpu *cpu,
                            struct survey *out, struct rapl_note *note)
{
    struct rapl_table table;
    out->path = path;
    out->count = 0;
    enum err err = rapl_list_set(PATHS[path], set, cpu, &table, note);
    if (err)
        return err;
    out->count = pick_leads(&table, out->leads);
    for (size_t i = 0; i < out->count; i++) {
        out->errs[i] = try_open(PATHS[path], &out->leads[i]);
        out->mirror_of[i] = -1;
    }
    return survey_verdict(out);
}

/* Is this a better answer than the one at hand?  A counter that is there and broken says more
 * than a path without counters; denied can be mended. */
static bool is_better(enum err verdict, enum err than)
{
    static const enum err RANK[] = {ERR_ABSENT, ERR_UNSUPPORTED, ERR_BAD_VALUE, ERR_DENIED, ERR_OK};
    size_t a = 0, b = 0;
    for (size_t i = 0; i < sizeof RANK / sizeof *RANK; i++) {
        if (RANK[i] == verdict)
            a = i;
        if (RANK[i] == than)
            b = i;
    }
    return a > b;
}

/* Surveys the set by the first path that can be read.  lacking collects what each path misses. */
static enum err survey_set(enum rapl_set set, const struct rapl_cpu *cpu, struct survey *best,
                           struct text *lacking)
{
    enum err verdict = ERR_ABSENT;
    struct survey next;
    best->count = 0;
    for (unsigned path = 0; path < PATH_COUNT && verdict != ERR_OK; path++) {
        struct rapl_note note = {0};
        enum err err = survey_path(path, set, cpu, &next, &note);
        if (note.reason[0])
            text_addf(lacking, "%s%s", lacking->length ? "; " : "", note.reason);
        if (is_better(err, verdict)) {
            survey_release(best);
            *best = next;
            verdict = err;
        } else {
            survey_release(&next);
        }
    }
    return verdict;
}

/* Mirrors are looked for among the leads that are open. */
static void mark_mirrors(struct survey *survey)
{
    struct rapl_domain open[RAPL_UNITS_MAX];
    size_t at[RAPL_UNITS_MAX], count = 0;
    int mirror_of[RAPL_UNITS_MAX];
    for (size_t i = 0; i < survey->count; i++) {
        if (!survey->errs[i]) {
            at[count] = i;
            open[count++] = survey->leads[i];
        }
    }
    rapl_find_mirrors(PATHS[survey->path], open, count, mirror_of);
    for (size_t i = 0; i < count; i++)
        if (mirror_of[i] >= 0)
            survey->mirror_of[at[i]] = (int)at[mirror_of[i]];
}

/* path 2 bits, set 1, whole 1, die 8, package 20 */
static unsigned key_pack(struct rapl_key key)
{
    return key.path | (unsigned)(key.set == RAPL_PLATFORM) << 2 | (unsigned)key.whole << 3 |
           ((unsigned)key.place.die & 0xff) << 4 | (unsigned)key.place.package << 12;
}

struct rapl_key rapl_key_unpack(unsigned packed)
{
    return (struct rapl_key){
        .path = packed & 3,
        .set = packed >> 2 & 1 ? RAPL_PLATFORM : RAPL_SOCKETS,
        .whole = packed >> 3 & 1,
        .place = {.package = (int)(packed >> 12), .die = (int)(packed >> 4 & 0xff)},
    };
}

void rapl_place_label(struct rapl_place place, char *to, size_t size)
{
    if (place.die)
        str_format(to, size, "%d.%d", place.package, place.die);
    else
        str_format(to, size, "%d", place.package);
}

static void finding_id(const struct survey *survey, size_t i, bool whole, char *to, size_t size)
{
    char label[24];
    bool psys = set_of(&survey->leads[i]) == RAPL_PLATFORM;
    rapl_place_label(survey->leads[i].place, label, sizeof label);
    str_format(to, size, "rapl:%s%s", psys ? "psys" : "", psys && whole ? "" : label);
}

static void describe(const struct survey *survey, size_t i, bool whole,
                     struct sensor_finding *finding)
{
    const struct rapl_path *path = PATHS[survey->path];
    struct rapl_note note = {0};
    if (survey->mirror_of[i] >= 0) {
        char original[48];
        finding_id(survey, (size_t)survey->mirror_of[i], whole, original, sizeof original);
        finding->status = SENSOR_UNSUPPORTED;
        str_format(note.reason, sizeof note.reason, "mirrors %s: the same counter, counted once",
                   original);
    } else if (survey->errs[i] == ERR_DENIED) {
        finding->status = SENSOR_DENIED;
        path->denied(&survey->leads[i], &note);
    } else if (survey->errs[i]) {
        finding->status = SENSOR_UNSUPPORTED;
        str_format(note.reason, sizeof note.reason, "%s: %s", survey->leads[i].source,
                   err_text(survey->errs[i]));
    }
    str_copy(finding->reason, sizeof finding->reason, note.reason);
    str_copy(finding->fix, sizeof finding->fix, note.fix);
}

static void report_set(enum rapl_set set, const struct rapl_cpu *cpu, struct survey *survey,
                       struct sensor_findings *out)
{
    const char *brand = cpu->brand[0] ? cpu->brand : "CPU";
    size_t originals = 0;
    mark_mirrors(survey);
    for (size_t i = 0; i < survey->count; i++)
        originals += survey->mirror_of[i] < 0;
    for (size_t i = 0; i < survey->count; i++) {
        char id[48];
        /* The one psys that is not a copy speaks for the whole machine. */
        bool whole = set == RAPL_PLATFORM && originals == 1;
        finding_id(survey, i, whole && survey->mirror_of[i] < 0, id, sizeof id);
        struct sensor_finding *finding =
            sensor_found(out, id, set == RAPL_PLATFORM ? SENSOR_HOST : SENSOR_CPU, SENSOR_OK);
        if (!finding)
            return;
        str_format(finding->name, sizeof finding->name, "%s%s", brand,
                   set == RAPL_PLATFORM ? " platform" : "");
        str_copy(finding->measures, sizeof finding->measures, "energy");
        finding->key =
            key_pack((struct rapl_key){survey->path, set, whole, survey->leads[i].place});
        describe(survey, i, whole, finding);
    }
}

/* No socket gives energy by any path. */
static void report_lack(const struct rapl_cpu *cpu, enum err verdict, const char *lacking,
                        struct sensor_findings *out)
{
    struct sensor_finding *finding = sensor_found(
        out, "rapl", SENSOR_CPU, verdict == ERR_UNSUPPORTED ? SENSOR_UNSUPPORTED : SENSOR_ABSENT);
    if (!finding)
        return;
    str_copy(finding->name, sizeof finding->name, cpu->brand);
    if (cpu->vendor == RAPL_NOT_X86) {
        str_copy(finding->reason, sizeof finding->reason, "RAPL is an x86 facility");
        return;
    }
    str_format(finding->reason, sizeof finding->reason, "%s%s",
               cpu->guest ? "a virtual machine, whose host keeps the counters: " : "", lacking);
    if (!cpu->guest && cpu->vendor != RAPL_VENDOR_UNKNOWN)
        str_copy(finding->fix, sizeof finding->fix, "sudo modprobe intel_rapl_msr");
}

void rapl_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    struct rapl_cpu cpu;
    struct survey survey;
    rapl_cpu_read(&cpu);
    if (cpu.vendor == RAPL_NOT_X86) {
        report_lack(&cpu, ERR_ABSENT, "", out);
        return;
    }
    for (enum rapl_set set = RAPL_SOCKETS; set < RAPL_SETS; set++) {
        struct text lacking = {0};
        enum err verdict = survey_set(set, &cpu, &survey, &lacking);
        if (survey.count)
            report_set(set, &cpu, &survey, out);
        else if (set == RAPL_SOCKETS)
            report_lack(&cpu, verdict, text_get(&lacking), out);
        survey_release(&survey);
        text_release(&lacking);
    }
}
