#include "runner/sweep_preset.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/knob.h"
#include "core/memory.h"
#include "core/params.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "engine/shipped.h"
#include "workloads/workload.h"

const struct sweep_preset SWEEP_PRESETS[] = {
#define PRESET(name, summary, knobs, options) {name, summary, knobs, options},
#include "runner/sweep_presets.def"
#undef PRESET
    {NULL, NULL, NULL, NULL},
};

enum { WORD_MAX = 512 };

enum err sweep_preset_find(const char *name, const struct sweep_preset **out, struct error *why)
{
    const char *names[COUNT_OF(SWEEP_PRESETS)];
    size_t count = 0;
    for (const struct sweep_preset *preset = SWEEP_PRESETS; preset->name; preset++) {
        names[count++] = preset->name;
        if (str_equal(preset->name, name)) {
            *out = preset;
            return ERR_OK;
        }
    }
    return registry_unknown("preset", name, names, count, ERR_USAGE, why);
}

/* ---- lists of words ---- */

/* The next of words that are separated by spaces; false past the last. */
static bool next_word(const char **at, char *word)
{
    *at += strspn(*at, " ");
    size_t length = strcspn(*at, " ");
    if (!length)
        return false;
    str_format(word, WORD_MAX, "%.*s", (int)length, *at);
    *at += length;
    return true;
}

static void add_word(char ***list, size_t *count, const char *word)
{
    *list = xreallocarray(*list, *count + 2, sizeof **list);
    (*list)[(*count)++] = xstrdup(word);
    (*list)[*count] = NULL;
}

static size_t name_length(const char *knob)
{
    return strcspn(knob, "=");
}

static bool same_name(const char *knob, const char *name, size_t length)
{
    return name_length(knob) == length && strncmp(knob, name, length) == 0;
}

static bool is_option(const char *word)
{
    return str_starts(word, "--") && word[2];
}

/* An option among the user's words, also as --name=value.  Of options with a key (--param K=V) the last one given wins,
 * so that they need not be replaced. */
static bool user_gives(const char *option, const char *const *words, size_t count)
{
    static const char *const KEYED[] = {"--param", "--client-param", "--dataset-param"};
    size_t length = strlen(option);
    if (str_is_listed(option, KEYED, COUNT_OF(KEYED)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strncmp(words[i], option, length) == 0 &&
            (words[i][length] == '\0' || words[i][length] == '='))
            return true;
    return false;
}

/* ---- expansion ---- */

static void add_options(const struct sweep_preset *preset, const char *const *words, size_t count,
                        struct sweep_expansion *out)
{
    char word[WORD_MAX];
    bool skips = false;
    for (const char *at = preset->options; next_word(&at, word);) {
        if (is_option(word))
            skips = user_gives(word, words, count);
        if (!skips)
            add_word(&out->words, &out->word_count, word);
    }
    for (size_t i = 0; i < count; i++)
        add_word(&out->words, &out->word_count, words[i]);
}

/* Whether {name} is in one of the words. */
static bool is_used(const char *knob, const struct sweep_expansion *expansion)
{
    char place[WORD_MAX];
    str_format(place, sizeof place, "{%.*s}", (int)name_length(knob), knob);
    for (size_t i = 0; i < expansion->word_count; i++)
        if (strstr(expansion->words[i], place))
            return true;
    return false;
}

static bool is_installed(const char *model)
{
    struct error ignored;
    char *path = NULL;
    bool found = shipped_find(model, &path, &ignored) == ERR_OK ||
                 shipped_find_onnx(model, &path, &ignored) == ERR_OK;
    free(path);
    return found;
}

/* The knob without the models that are not there; false if none is left. */
static bool keep_installed(const char *knob, struct text *kept, struct text *left_out)
{
    static const char MODEL[] = "model";
    char model[WORD_MAX];
    const char *at = knob + sizeof MODEL;
    size_t count = 0;
    if (!same_name(knob, MODEL, sizeof MODEL - 1)) {
        text_add(kept, knob);
        return true;
    }
    text_addf(kept, "%s=", MODEL);
    while (at && str_next_item(&at, model, sizeof model)) {
        if (is_installed(model))
            text_addf(kept, "%s%s", count++ ? "," : "", model);
        else
            text_addf(left_out, "%s: no such model here\n", model);
    }
    return count > 0;
}

static bool user_sets(const char *knob, const char *const *knobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_name(knobs[i], knob, name_length(knob)))
            return true;
    return false;
}

static enum err add_knobs(const struct sweep_preset *preset, const char *const *knobs, size_t count,
                          struct sweep_expansion *out, struct text *left_out, struct error *why)
{
    char knob[WORD_MAX];
    for (const char *at = preset->knobs; next_word(&at, knob);) {
        struct text kept = {0};
        bool is_kept = !user_sets(knob, knobs, count) && is_used(knob, out);
        bool has_values = !is_kept || keep_installed(knob, &kept, left_out);
        if (is_kept && has_values)
            add_word(&out->knobs, &out->knob_count, text_get(&kept));
        text_release(&kept);
        if (!has_values)
            return err_set(why, ERR_NOT_FOUND,
                           "preset %s: none of its models is installed: give yours with --knob "
                           "model=A,B",
                           preset->name);
    }
    for (size_t i = 0; i < count; i++)
        add_word(&out->knobs, &out->knob_count, knobs[i]);
    if (!out->knob_count)
        return err_set(why, ERR_USAGE,
                       "preset %s varies what the options after -- fix: give the values with "
                       "--knob NAME=A,B",
                       preset->name);
    return ERR_OK;
}

/* Whether the engine of the study's workload runs here: else every attempt would fail. */
static enum err check_engine(const struct sweep_preset *preset, const struct sweep_expansion *words,
                             struct error *why)
{
    const char *version;
    struct error missing = {0};
    bool is_text = false;
    for (size_t i = 0; i < words->word_count && !is_text; i++)
        is_text = str_equal(words->words[i], WORKLOAD_TEXT);
    const struct client_driver *llama = client_driver_find("llama", NULL);
    enum err err = is_text ? llama->available(NULL, &missing) : onnx_available(&version, &missing);
    return err ? err_set(why, ERR_UNSUPPORTED, "preset %s cannot run here: %s", preset->name,
                         missing.text)
               : ERR_OK;
}

enum err sweep_preset_expand(const struct sweep_preset *preset, const char *const *knobs,
                             size_t knob_count, const char *const *words, size_t word_count,
                             struct sweep_expansion *out, struct text *left_out, struct error *why)
{
    *out = (struct sweep_expansion){0};
    add_options(preset, words, word_count, out);
    enum err err = check_engine(preset, out, why);
    if (!err)
        err = add_knobs(preset, knobs, knob_count, out, left_out, why);
    if (err)
        sweep_expansion_release(out);
    return err;
}

/* ---- workloads ---- */

static const char *const OPTION_KNOBS[] = {"model", "dataset", "concurrency"};

static bool has_param(const struct param_spec *specs, const char *name)
{
    for (; specs && specs->name; specs++)
        if (str_equal(specs->name, name))
            return true;
    return false;
}

static void add_names(const struct param_spec *specs, const char **names, size_t *count, size_t max)
{
    for (; specs && specs->name && *count < max; specs++)
        names[(*count)++] = specs->name;
}

static enum err unknown_knob(const struct workload_driver *driver, const char *knob,
                             struct error *why)
{
    const char *names[64];
    size_t count = 0;
    char kind[64];
    for (size_t i = 0; i < COUNT_OF(OPTION_KNOBS); i++)
        names[count++] = OPTION_KNOBS[i];
    names[count++] = WORKLOAD_BATCH;
    add_names(driver ? driver->query_params : NULL, names, &count, COUNT_OF(names));
    add_names(driver ? driver->params : NULL, names, &count, COUNT_OF(names));
    chars_format(kind, "knob of the workload %s", driver ? driver->name : WORKLOAD_TEXT);
    return registry_unknown(kind, knob, names, count, ERR_USAGE, why);
}

/* The options that give the knob's value to `ipw profile`. */
static enum err add_knob_words(const struct workload_driver *driver, const char *knob,
                               struct sweep_expansion *out, struct error *why)
{
    char name[WORD_MAX], value[2 * WORD_MAX];
    str_format(name, sizeof name, "%.*s", (int)name_length(knob), knob);
    bool is_param = driver && has_param(driver->query_params, name);
    bool is_client = driver && (has_param(driver->params, name) || str_equal(name, WORKLOAD_BATCH));
    if (str_is_listed(name, OPTION_KNOBS, COUNT_OF(OPTION_KNOBS))) {
        str_format(value, sizeof value, "--%s", name);
        add_word(&out->words, &out->word_count, value);
        str_format(value, sizeof value, "{%s}", name);
    } else if (is_param || is_client) {
        add_word(&out->words, &out->word_count, is_param ? "--param" : "--client-param");
        str_format(value, sizeof value, "%s={%s}", name, name);
    } else if (knob_named(name) != KNOB_COUNT) {
        return ERR_OK;
    } else {
        return unknown_knob(driver, name, why);
    }
    add_word(&out->words, &out->word_count, value);
    return ERR_OK;
}

enum err sweep_workload_expand(const char *workload, const char *const *knobs, size_t knob_count,
                               const char *const *words, size_t word_count,
                               struct sweep_expansion *out, struct error *why)
{
    bool is_text = str_equal(workload, WORKLOAD_TEXT);
    const struct workload_driver *driver = is_text ? NULL : workload_driver_find(workload, why);
    enum err err = is_text || driver ? ERR_OK : ERR_USAGE;
    *out = (struct sweep_expansion){0};
    add_word(&out->words, &out->word_count, "--workload");
    add_word(&out->words, &out->word_count, workload);
    for (size_t i = 0; i < word_count; i++)
        add_word(&out->words, &out->word_count, words[i]);
    for (size_t i = 0; i < knob_count && !err; i++) {
        add_word(&out->knobs, &out->knob_count, knobs[i]);
        if (!is_used(knobs[i], out))
            err = add_knob_words(driver, knobs[i], out, why);
    }
    if (err)
        sweep_expansion_release(out);
    return err;
}

void sweep_expansion_release(struct sweep_expansion *expansion)
{
    memory_free_strings(expansion->knobs, expansion->knob_count);
    memory_free_strings(expansion->words, expansion->word_count);
    *expansion = (struct sweep_expansion){0};
}
