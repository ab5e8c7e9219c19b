/* Power of processors: the last resort where no meter can be read.  The tables are patterns of brand strings
 * (CPU_POWER), x86 families for brands masked by a hypervisor (CPU_FAMILY), and Arm cores (CPU_CORE). */
#include "catalog/cpu_power.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

/* Published package measurements of cloud servers deviate from the linear model (see cpu_model.c) by up to 15 % of TDP,
 * parts of one kind differ by about 10 %, and power at one utilization differs by 30 % between a vector and a
 * pointer-chasing load: 0.4 together.  Parts of a family differ by half in watts per thread, and a generic figure may
 * be wrong by a factor of two. */
#define ACCURACY_PUBLISHED 0.4
#define ACCURACY_ASSUMED   0.6
#define ACCURACY_FAMILY    0.6
#define ACCURACY_GENERAL   0.8

/* Watts per hardware thread of an unknown processor. */
#define GENERAL_X86_WATTS   3.5
#define GENERAL_OTHER_WATTS 2.0

/* ---- tables ---- */

struct part {
    const char *pattern;
    double watts;
    unsigned cores, threads;
    const char *source;
    double accuracy;
};

static const struct part PARTS[] = {
#define CPU_POWER(pattern, watts, cores, threads, evidence, source)                                \
    {pattern, watts, cores, threads, source, ACCURACY_##evidence},
#include "catalog/cpu_power.def"
};

static const struct {
    const char *vendor;
    unsigned family, model;
    const char *name;
    double watts_per_thread;
} FAMILIES[] = {
#define CPU_FAMILY(vendor, family, model, name, watts_per_thread)                                  \
    {vendor, family, model, name, watts_per_thread},
#include "catalog/cpu_power.def"
};

static const struct {
    unsigned implementer, part;
    const char *name;
    double watts_per_thread; /* UNKNOWN for some */
} CORES[] = {
#define CPU_CORE(implementer, part, name, watts_per_thread)                                        \
    {implementer, part, name, watts_per_thread},
#include "catalog/cpu_power.def"
};

static const struct {
    const char *machine_vendor;
    unsigned implementer, part;
    const char *name;
} PRODUCTS[] = {
#define CPU_PRODUCT(machine_vendor, implementer, part, name)                                       \
    {machine_vendor, implementer, part, name},
#include "catalog/cpu_power.def"
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- brands ---- */

/* "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz" becomes "Intel Xeon E5-2680 v4 @ 2.40GHz". */
static void plain_brand(const char *brand, char *to, size_t size)
{
    static const char *const NOISE[] = {"(R)", "(TM)", "(tm)", "(r)", "CPU ", "(", ")"};
    size_t used = 0;
    while (*brand && used + 1 < size) {
        bool dropped = false;
        for (size_t i = 0; i < COUNT_OF(NOISE) && !dropped; i++) {
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

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '+';
}

/* Matches whole words, ignoring case: "7950X" does not match "7950X3D". */
static bool contains_words(const char *plain, const char *pattern)
{
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
    char plain[128];
    const struct part *best = NULL;
    plain_brand(brand, plain, sizeof plain);
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        if ((!best || strlen(PARTS[i].pattern) > strlen(best->pattern)) &&
            contains_words(plain, PARTS[i].pattern))
            best = &PARTS[i];
    return best;
}

/* ---- lookups ---- */

static bool find_part(const struct cpu_power_key *key, struct cpu_power *out)
{
    const char *const NAMES[] = {key->brand, key->product, key->board};
    const struct part *part = NULL;
    for (size_t i = 0; i < COUNT_OF(NAMES) && !part; i++)
        part = longest_match(NAMES[i]);
    if (!part)
        return false;
    unsigned sharers = key->is_single_threaded ? part->cores : part->threads;
    *out = (struct cpu_power){part->watts / sharers, part->accuracy, part->pattern, part->source};
    return true;
}

static bool find_family(const struct cpu_power_key *key, struct cpu_power *out)
{
    for (size_t i = 0; i < COUNT_OF(FAMILIES); i++) {
        if (strcmp(FAMILIES[i].vendor, key->vendor) != 0 || FAMILIES[i].family != key->family ||
            FAMILIES[i].model != key->model)
            continue;
        *out = (struct cpu_power){FAMILIES[i].watts_per_thread, ACCURACY_FAMILY, FAMILIES[i].name,
                                  "usual parts of the family"};
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(CORES); i++) {
        if (CORES[i].implementer != key->implementer || CORES[i].part != key->part ||
            !is_known(CORES[i].watts_per_thread))
            continue;
        *out = (struct cpu_power){CORES[i].watts_per_thread, ACCURACY_FAMILY, CORES[i].name,
                                  "usual chips with this core"};
        return true;
    }
    return false;
}

struct cpu_power cpu_power_find(const struct cpu_power_key *key)
{
    struct cpu_power found;
    if (find_part(key, &found) || find_family(key, &found))
        return found;
    return (struct cpu_power){key->vendor[0] ? GENERAL_X86_WATTS : GENERAL_OTHER_WATTS,
                              ACCURACY_GENERAL, "processor not in the table", "a general figure"};
}

const char *cpu_core_name(unsigned implementer, unsigned part)
{
    for (size_t i = 0; i < COUNT_OF(CORES); i++)
        if (CORES[i].implementer == implementer && CORES[i].part == part)
            return CORES[i].name;
    return "";
}

const char *cpu_product_name(const char *machine_vendor, unsigned implementer, unsigned part)
{
    for (size_t i = 0; i < COUNT_OF(PRODUCTS); i++)
        if (PRODUCTS[i].implementer == implementer && PRODUCTS[i].part == part &&
            !strcmp(PRODUCTS[i].machine_vendor, machine_vendor))
            return PRODUCTS[i].name;
    return "";
}
