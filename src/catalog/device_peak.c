/* Peak rates of accelerators by the name that a driver reports: those of the catalog's devices, and of lists of further
 * ones (data/hardware/peaks-*.json).  Names are compared as sets of words, because drivers and vendors add words
 * ("NVIDIA", "80GB", "Graphics") that do not distinguish products; only the file with the best name is parsed. */
#include "catalog/device_peak.h"

#include <ctype.h>
#include <string.h>

#include "catalog/catalog_file.h"
#include "catalog/hardware.h"
#include "catalog/hardware_units.h"
#include "core/json_bind.h"
#include "core/units.h"

#define WORDS_MAX   16
#define WORD_LENGTH 24

struct words {
    char items[WORDS_MAX][WORD_LENGTH];
    size_t count;
};

/* Words that do not distinguish products. */
static const char *const PLAIN[] = {
    "nvidia", "amd",         "geforce", "quadro",      "tesla",       "rtx",
    "radeon", "instinct",    "gpu",     "gpus",        "generation",  "graphics",
    "oam",    "mcm",         "ac",      "mba",         "tensor",      "core",
    "inc",    "corporation", "hbm2",    "hbm2e",       "accelerator", "hbm3e",
    "nvgpu",  "developer",   "kit",     "engineering", "reference",
};

/* False for more or longer words than any known device has. */
static bool split(const char *name, struct words *out)
{
    out->count = 0;
    while (*name) {
        size_t length = 0;
        while (isalnum((unsigned char)name[length]))
            length++;
        if (length == 0) {
            name++;
            continue;
        }
        if (length >= WORD_LENGTH || out->count == WORDS_MAX)
            return false;
        char *word = out->items[out->count++];
        for (size_t i = 0; i < length; i++)
            word[i] = (char)tolower((unsigned char)name[i]);
        word[length] = '\0';
        name += length;
    }
    return true;
}

static bool has_word(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (str_equal(words->items[i], word))
            return true;
    return false;
}

static bool is_digits(const char *from, const char *to)
{
    for (const char *at = from; at < to; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return from < to;
}

/* One of those words, a memory size ("80gb", "144g") or a device count ("x8"). */
static bool is_plain(const char *word)
{
    if (str_is_listed(word, PLAIN, COUNT_OF(PLAIN)))
        return true;
    const char *end = word + strlen(word);
    if (*word == 'x')
        return is_digits(word + 1, end);
    if (end > word && end[-1] == 'b')
        end--;
    return end > word && end[-1] == 'g' && is_digits(word, end - 1);
}

static bool row_fits(const struct words *row, const struct words *name)
{
    for (size_t i = 0; i < row->count; i++)
        if (!has_word(name, row->items[i]))
            return false;
    for (size_t i = 0; i < name->count; i++)
        if (!has_word(row, name->items[i]) && !is_plain(name->items[i]))
            return false;
    return true;
}

/* ---- lists of devices that have only peaks ---- */

struct peak_row {
    char **names;
    size_t name_count;
    const char *precision, *hardware, *source;
    double tflops, gb_per_s;
    enum evidence evidence;
};

struct peak_list {
    struct jv *tree; /* has the strings */
    const char *id, *note;
    struct peak_row *rows;
    size_t count;
};

static const struct json_field ROW_FIELDS[] = {
    BIND_STRINGS(peak_row, names, name_count, "match", .flags = FIELD_REQUIRED, .least = 1),
    BIND_TEXT(peak_row, precision, "precision"),
    BIND_NUMBER(peak_row, tflops, "tflops", .flags = FIELD_ABOVE, .max = 1e7),
    BIND_NUMBER(peak_row, gb_per_s, "gb_per_s", .flags = FIELD_ABOVE, .max = 1e7),
    BIND_TEXT(peak_row, hardware, "estimate_as"),
    BIND_ENUM(peak_row, evidence, evidence_at, 0, EVIDENCE_COUNT, "evidence",
              .flags = FIELD_REQUIRED),
    BIND_TEXT(peak_row, source, "source", .flags = FIELD_REQUIRED),
    {0},
};

static const struct json_field LIST_FIELDS[] = {
    BIND_CONSTANT("peak-only", "kind"),
    BIND_TEXT(peak_list, id, "id", .flags = FIELD_REQUIRED),
    BIND_TEXT(peak_list, note, "note"),
    BIND_LIST(peak_list, rows, count, ROW_FIELDS, "devices", .flags = FIELD_REQUIRED, .least = 1),
    {0},
};

const struct catalog_format CATALOG_PEAK_LIST = {catalog_list_parse, LIST_FIELDS,
                                                 sizeof(struct peak_list), NULL};

/* ---- lookups ---- */

static bool peak_in_list(struct catalog_file *file, const char *name, struct device_peak *out)
{
    const struct peak_list *list = catalog_file_get(file, &CATALOG_PEAK_LIST);
    for (size_t i = 0; list && i < list->count; i++)
        for (size_t n = 0; n < list->rows[i].name_count; n++) {
            const struct peak_row *row = &list->rows[i];
            if (!str_equal(row->names[n], name))
                continue;
            *out = (struct device_peak){
                .tflops = row->tflops,
                .gb_per_s = row->gb_per_s,
                .precision = row->precision ? row->precision : precision_name(PRECISION_BF16),
                .name = row->names[n],
                .hardware = row->hardware,
                .source = row->source,
            };
            return true;
        }
    return false;
}

/* bf16, or fp16 on devices without it. */
static bool peak_of_device(struct catalog_file *file, const char *name, struct device_peak *out)
{
    const struct hardware *device = hardware_of(file);
    const char *match = device ? hardware_listed(&device->matches, name) : NULL;
    if (!match)
        return false;
    bool has_bf16 = is_known(device->matrix_flops[PRECISION_BF16].value);
    enum precision precision = has_bf16 ? PRECISION_BF16 : PRECISION_FP16;
    const struct hardware_figure *peak = &device->matrix_flops[precision];
    *out = (struct device_peak){
        .tflops = peak->value / UNIT_tflops,
        .gb_per_s = hardware_main_memory(device)->bytes_per_s.value / UNIT_gb_per_s,
        .precision = precision_name(precision),
        .name = match,
        .hardware = device->id,
        .source = peak->source,
    };
    return true;
}

bool device_peak_find(const char *gpu_name, struct device_peak *out)
{
    struct words name, row;
    struct catalog_file *best = NULL;
    char best_name[sizeof((struct catalog_name *)0)->text];
    size_t max = 0;
    *out = (struct device_peak){.tflops = UNKNOWN, .gb_per_s = UNKNOWN};
    if (!split(gpu_name, &name))
        return false;
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++) {
        struct catalog_name match = catalog_names(&HARDWARE_FILES[i], CATALOG_PEAK_NAMES);
        while (catalog_name_next(&match)) {
            if (!split(match.text, &row) || row.count <= max || !row_fits(&row, &name))
                continue;
            best = &HARDWARE_FILES[i];
            memcpy(best_name, match.text, sizeof best_name);
            max = row.count;
        }
    }
    return best && (best->kind == CATALOG_PEAKS ? peak_in_list(best, best_name, out)
                                                : peak_of_device(best, best_name, out));
}

bool hardware_find_device(const char *driver_name, struct hardware *out)
{
    struct device_peak peak;
    const struct hardware *entry = hardware_named(driver_name);
    /* Drivers add words that do not distinguish products; the names of peaks list them. */
    if (!entry && device_peak_find(driver_name, &peak) && peak.hardware)
        entry = hardware_named(peak.hardware);
    *out = entry ? *entry : (struct hardware){0};
    return entry;
}
