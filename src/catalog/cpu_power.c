/* Power of processors: the last resort where no meter can be read.  The lists (data/hardware/power-*.json) have patterns
 * of brand strings, x86 families for brands masked by a hypervisor, and Arm cores and products; processors that are
 * devices of the catalog have patterns as well.  A lookup parses only the files that it needs. */
#include "catalog/cpu_power.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_file.h"
#include "catalog/hardware.h"
#include "core/json_bind.h"
#include "core/jv.h"
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

/* ---- lists ---- */

struct processor {
    char **names;
    size_t name_count;
    double watts;
    unsigned cores, threads;
    enum evidence evidence;
    const char *source;
};

struct family {
    const char *vendor, *name;
    unsigned family, model;
    double watts_per_thread;
};

struct core {
    unsigned implementer, part;
    const char *name;
    double watts_per_thread; /* UNKNOWN for some */
};

struct product {
    const char *machine_vendor, *name;
    unsigned implementer, part;
};

struct power_list {
    struct jv *tree; /* has the strings */
    const char *id, *note;
    struct processor *processors;
    struct family *families;
    struct core *cores;
    struct product *products;
    size_t processor_count, family_count, core_count, product_count;
};

/* "0x41", as the kernel prints them. */
static enum err read_hex(const struct json_place *at, const struct json_field *field,
                         const struct jv *value, void *object)
{
    const char *text = text_or_empty(jv_text(value));
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 16);
    if (!str_starts(text, "0x") || !text[2] || *end || number > 0xffff)
        return json_refuse(at, field->path, "must be a hexadecimal number, such as \"0x41\"");
    *(unsigned *)(void *)((char *)object + field->offset) = (unsigned)number;
    return ERR_OK;
}

static const struct json_custom HEX = {.read = read_hex};

#define BIND_HEX(of, member_)  BIND_CUSTOM(of, member_, HEX, #member_, .flags = FIELD_REQUIRED)
#define BIND_NAME(of, member_) BIND_TEXT(of, member_, #member_, .flags = FIELD_REQUIRED)
#define BIND_COUNT(of, member_)                                                                    \
    BIND_UNSIGNED(of, member_, #member_, .flags = FIELD_REQUIRED, .min = 1, .max = 65536)
#define BIND_WATTS(of, member_, flags_)                                                            \
    BIND_NUMBER(of, member_, #member_, .flags = FIELD_ABOVE | (flags_), .max = 1e5)

static const struct json_field PROCESSOR_FIELDS[] = {
    BIND_STRINGS(processor, names, name_count, "match", .flags = FIELD_REQUIRED, .least = 1),
    BIND_WATTS(processor, watts, FIELD_REQUIRED),
    BIND_COUNT(processor, cores),
    BIND_COUNT(processor, threads),
    BIND_ENUM(processor, evidence, evidence_at, 0, EVIDENCE_COUNT, "evidence",
              .flags = FIELD_REQUIRED),
    BIND_NAME(processor, source),
    {0},
};

static const struct json_field FAMILY_FIELDS[] = {
    BIND_NAME(family, vendor),
    BIND_COUNT(family, family),
    BIND_COUNT(family, model),
    BIND_NAME(family, name),
    BIND_WATTS(family, watts_per_thread, FIELD_REQUIRED),
    {0},
};

static const struct json_field CORE_FIELDS[] = {
    BIND_HEX(core, implementer),
    BIND_HEX(core, part),
    BIND_NAME(core, name),
    BIND_WATTS(core, watts_per_thread, 0),
    {0},
};

static const struct json_field PRODUCT_FIELDS[] = {
    BIND_NAME(product, machine_vendor),
    BIND_HEX(product, implementer),
    BIND_HEX(product, part),
    BIND_NAME(product, name),
    {0},
};

static const struct json_field LIST_FIELDS[] = {
    BIND_CONSTANT("power-only", "kind"),
    BIND_NAME(power_list, id),
    BIND_TEXT(power_list, note, "note"),
    BIND_LIST(power_list, processors, processor_count, PROCESSOR_FIELDS, "processors"),
    BIND_LIST(power_list, families, family_count, FAMILY_FIELDS, "families"),
    BIND_LIST(power_list, cores, core_count, CORE_FIELDS, "cores"),
    BIND_LIST(power_list, products, product_count, PRODUCT_FIELDS, "products"),
    {0},
};

const struct catalog_format CATALOG_POWER_LIST = {catalog_list_parse, LIST_FIELDS,
                                                  sizeof(struct power_list), NULL};

/* The next list with a key, from *index on; NULL: there is no other. */
static const struct power_list *next_list(size_t *index, const char *key)
{
    while (*index < HARDWARE_FILE_COUNT) {
        struct catalog_file *file = &HARDWARE_FILES[(*index)++];
        const struct power_list *list = NULL;
        if (file->kind == CATALOG_POWER && catalog_file_has(file, key))
            list = catalog_file_get(file, &CATALOG_POWER_LIST);
        if (list)
            return list;
    }
    return NULL;
}

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

/* What a brand was found by. */
struct brand_match {
    struct catalog_file *file; /* NULL: not found */
    char name[sizeof((struct catalog_name *)0)->text];
};

static struct brand_match longest_match(const char *brand)
{
    char plain[128];
    struct brand_match best = {0};
    plain_brand(brand, plain, sizeof plain);
    for (size_t i = 0; plain[0] && i < HARDWARE_FILE_COUNT; i++) {
        struct catalog_name name = catalog_names(&HARDWARE_FILES[i], CATALOG_PROCESSORS);
        while (catalog_name_next(&name))
            if (strlen(name.text) > strlen(best.name) && contains_words(plain, name.text)) {
                best.file = &HARDWARE_FILES[i];
                memcpy(best.name, name.text, sizeof best.name);
            }
    }
    return best;
}

/* ---- lookups ---- */

static double accuracy_of(enum evidence evidence)
{
    return evidence == EVIDENCE_ASSUMED ? ACCURACY_ASSUMED : ACCURACY_PUBLISHED;
}

static bool part_in_list(const struct brand_match *match, bool by_core, struct cpu_power *out)
{
    const struct power_list *list = catalog_file_get(match->file, &CATALOG_POWER_LIST);
    for (size_t i = 0; list && i < list->processor_count; i++)
        for (size_t n = 0; n < list->processors[i].name_count; n++) {
            const struct processor *part = &list->processors[i];
            if (!str_equal(part->names[n], match->name))
                continue;
            *out = (struct cpu_power){part->watts / (by_core ? part->cores : part->threads),
                                      accuracy_of(part->evidence), part->names[n], part->source};
            return true;
        }
    return false;
}

static bool part_of_device(const struct brand_match *match, bool by_core, struct cpu_power *out)
{
    const struct hardware *device = hardware_of(match->file);
    const char *brand = device ? hardware_listed(&device->processor.brands, match->name) : NULL;
    if (!brand)
        return false;
    double sharers = by_core ? device->units.value : device->processor.threads;
    *out =
        (struct cpu_power){device->limit_w.value / sharers, accuracy_of(device->limit_w.evidence),
                           brand, device->processor.source};
    return true;
}

static bool find_part(const struct cpu_power_key *key, struct cpu_power *out)
{
    const char *const NAMES[] = {key->brand, key->product, key->board};
    struct brand_match match = {0};
    for (size_t i = 0; i < COUNT_OF(NAMES) && !match.file; i++)
        match = longest_match(NAMES[i]);
    bool by_core = key->is_single_threaded;
    return match.file && (match.file->kind == CATALOG_POWER ? part_in_list(&match, by_core, out)
                                                            : part_of_device(&match, by_core, out));
}

/* Of x86. */
static bool find_family(const struct cpu_power_key *key, struct cpu_power *out)
{
    const struct power_list *list;
    for (size_t at = 0; key->vendor[0] && (list = next_list(&at, "families"));)
        for (size_t i = 0; i < list->family_count; i++) {
            const struct family *family = &list->families[i];
            if (!str_equal(family->vendor, key->vendor) || family->family != key->family ||
                family->model != key->model)
                continue;
            *out = (struct cpu_power){family->watts_per_thread, ACCURACY_FAMILY, family->name,
                                      "usual parts of the family"};
            return true;
        }
    return false;
}

/* NULL: unknown. */
static const struct core *core_of(unsigned implementer, unsigned part)
{
    const struct power_list *list;
    for (size_t at = 0; implementer && (list = next_list(&at, "implementer"));)
        for (size_t i = 0; i < list->core_count; i++)
            if (list->cores[i].implementer == implementer && list->cores[i].part == part)
                return &list->cores[i];
    return NULL;
}

/* Of Arm. */
static bool find_core(const struct cpu_power_key *key, struct cpu_power *out)
{
    const struct core *core = core_of(key->implementer, key->part);
    if (!core || !is_known(core->watts_per_thread))
        return false;
    *out = (struct cpu_power){core->watts_per_thread, ACCURACY_FAMILY, core->name,
                              "usual chips with this core"};
    return true;
}

struct cpu_power cpu_power_find(const struct cpu_power_key *key)
{
    struct cpu_power found;
    if (find_part(key, &found) || find_family(key, &found) || find_core(key, &found))
        return found;
    return (struct cpu_power){key->vendor[0] ? GENERAL_X86_WATTS : GENERAL_OTHER_WATTS,
                              ACCURACY_GENERAL, "processor not in the table", "a general figure"};
}

const char *cpu_core_name(unsigned implementer, unsigned part)
{
    const struct core *core = core_of(implementer, part);
    return core ? core->name : "";
}

const char *cpu_product_name(const char *machine_vendor, unsigned implementer, unsigned part)
{
    const struct power_list *list;
    for (size_t at = 0; implementer && (list = next_list(&at, "implementer"));)
        for (size_t i = 0; i < list->product_count; i++) {
            const struct product *product = &list->products[i];
            if (product->implementer == implementer && product->part == part &&
                str_equal(product->machine_vendor, machine_vendor))
                return product->name;
        }
    return "";
}
