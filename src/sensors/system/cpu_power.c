#include "sensors/system/cpu_power.h"

#include <ctype.h>
#include <string.h>

#include "core/text.h"

/* Why these: published package measurements of cloud servers lie within 15 % of TDP of the model's
 * line (see cpu_model.c), parts of one kind differ by about 10 %, and power at one utilisation
 * differs by 30 % between a vector and a pointer-chasing load: 0.4 together.  A family's parts
 * differ by half in watts per thread, and a general figure may be wrong by a factor of two. */
#define ACCURACY_EXACT   0.4
#define ACCURACY_FAMILY  0.6
#define ACCURACY_GENERAL 0.8

/* Watts of a hardware thread when nothing is known of the processor. */
#define GENERAL_X86_WATTS   3.5
#define GENERAL_OTHER_WATTS 2.0

struct part {
    const char *pattern;
    double watts;
    unsigned cores, threads;
    const char *source;
    double accuracy;
};

static const struct part PARTS[] = {
#define CPU_POWER(pattern, watts, cores, threads, source)                                          \
    {pattern, watts, cores, threads, source, ACCURACY_EXACT},
#define CPU_GUESS(pattern, watts, cores, threads, source)                                          \
    {pattern, watts, cores, threads, source, ACCURACY_FAMILY},
#include "sensors/system/cpu_power.def"
};

static const struct {
    const char *vendor;
    unsigned family, model;
    const char *name;
    double watts_per_thread;
} FAMILIES[] = {
#define CPU_FAMILY(vendor, family, model, name, watts_per_thread)                                  \
    {vendor, family, model, name, watts_per_thread},
#include "sensors/system/cpu_power.def"
};

static const struct {
    unsigned implementer, part;
    const char *name;
    double watts_per_thread;
} CORES[] = {
#define CPU_PART(implementer, part, name, watts_per_thread)                                        \
    {implementer, part, name, watts_per_thread},
#include "sensors/system/cpu_power.def"
};

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '+';
}

/* "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz" becomes "Intel Xeon E5-2680 v4 @ 2.40GHz". */
static void plain_brand(const char *brand, char *to, size_t size)
{
    static const char *const NOISE[] = {"(R)", "(TM)", "(tm)", "(r)", "CPU ", "(", ")"};
    size_t used = 0;
    while (*brand && used + 1 < size) {
        bool dropped = false;
        for (size_t i = 0; i < sizeof NOISE / sizeof *NOISE && !dropped; i++) {
            if (!str_starts(brand, NOISE[i]))
                continue;
            brand += strlen(NOISE[i]);
            dropped = true;
        }
        char c = ' ';
        if (!dropped)
            c = *brand++;
        if (c == ' ' && (used == 0 || to[used - 1] == ' '))
            continue;
        to[used++] = c;
    }
    to[used] = '\0';
}

bool cpu_brand_matches(const char *brand, const char *pattern)
{
    char plain[128];
    plain_brand(brand, plain, sizeof plain);
    size_t length = strlen(pattern);
    for (const char *at = plain; *at; at++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)at[i]) == tolower((unsigned char)pattern[i]))
            i++;
        if (i == length && !is_word_byte(at[length]) && (at == plain || !is_word_byte(at[-1])))
            return true;
    }
    return false;
}

static const struct part *longest_match(const char *brand)
{
    const struct part *best = NULL;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if ((!best || strlen(PARTS[i].pattern) > strlen(best->pattern)) &&
            cpu_brand_matches(brand, PARTS[i].pattern))
            best = &PARTS[i];
    return best;
}

static void fill(struct cpu_figure *out, double watts_per_thread, double accuracy, const char *name,
                 const char *source)
{
    *out = (struct cpu_figure){
        .watts_per_thread = watts_per_thread,
        .relative_accuracy = accuracy,
    };
    str_copy(out->name, sizeof out->name, name);
    str_copy(out->source, sizeof out->source, source);
}

static bool find_part(const struct host_info *host, struct cpu_figure *out)
{
    const char *const NAMES[] = {host->cpu_brand, host->cpu_product, host->board};
    const struct part *part = NULL;
    for (size_t i = 0; i < 3 && !part; i++)
        part = longest_match(NAMES[i]);
    if (!part)
        return false;
    /* A guest's CPU is one thread of a host that uses them all; a machine of our own with its
     * second threads switched off spends the same watts on half as many. */
    unsigned threads = host->smt_off && !host->virtualised ? part->cores : part->threads;
    fill(out, part->watts / threads, part->accuracy, part->pattern, part->source);
    return true;
}

static bool find_family(const struct cpu_identity *cpu, struct cpu_figure *out)
{
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
        if (strcmp(FAMILIES[i].vendor, cpu->vendor) != 0 || FAMILIES[i].family != cpu->family ||
            FAMILIES[i].model != cpu->model)
            continue;
        fill(out, FAMILIES[i].watts_per_thread, ACCURACY_FAMILY, FAMILIES[i].name,
             "usual parts of the family");
        return true;
    }
    for (size_t i = 0; i < sizeof CORES / sizeof *CORES; i++) {
        if (!CORES[i].part || CORES[i].implementer != cpu->implementer ||
            CORES[i].part != cpu->part || CORES[i].watts_per_thread <= 0)
            continue;
        fill(out, CORES[i].watts_per_thread, ACCURACY_FAMILY, CORES[i].name,
             "usual chips with this core");
        return true;
    }
    return false;
}

void cpu_power_find(const struct host_info *host, struct cpu_figure *out)
{
    if (find_part(host, out) || find_family(&host->cpu, out))
        return;
    bool x86 = host->cpu.vendor[0] != '\0';
    fill(out, x86 ? GENERAL_X86_WATTS : GENERAL_OTHER_WATTS, ACCURACY_GENERAL,
         "processor not in the table", "a general figure");
}
