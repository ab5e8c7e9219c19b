/* Peak rates of accelerators by the name that a driver reports.  Names are compared as sets of words, because
 * drivers and vendors add words ("NVIDIA", "80GB", "Graphics") that do not distinguish products. */
#include "catalog/device_peak.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "core/units.h"

#define WORDS_MAX   16
#define WORD_LENGTH 24

struct words {
    char items[WORDS_MAX][WORD_LENGTH];
    size_t count;
};

static const struct device_peak ROWS[] = {
#define DEVICE(name, precision, tflops, gb_per_s, hardware, source)                                \
    {tflops, gb_per_s, precision, name, hardware, source},
#include "catalog/device_peaks.def"
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
        if (!strcmp(words->items[i], word))
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
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++)
        if (!strcmp(word, PLAIN[i]))
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

bool device_peak_find(const char *gpu_name, struct device_peak *out)
{
    struct words name, row;
    const struct device_peak *best = NULL;
    size_t max = 0;
    *out = (struct device_peak){.tflops = UNKNOWN, .gb_per_s = UNKNOWN};
    if (!split(gpu_name, &name))
        return false;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (!split(ROWS[i].name, &row) || row.count <= max || !row_fits(&row, &name))
            continue;
        best = &ROWS[i];
        max = row.count;
    }
    if (best)
        *out = *best;
    return best;
}
