#include "cli/power_options.h"

#include "core/params.h"
#include "power/data_checks.h"

/* Pairs of several words, each of which may hold several. */
static enum err pairs(const char *name, const struct option_list *words, struct params *out,
                      struct error *why)
{
    for (size_t i = 0; i < words->count; i++)
        if (params_add(out, words->items[i]))
            return err_no_memory(why);
    for (size_t i = 0; i < out->count; i++)
        if (!out->items[i].value[0])
            return err_set(why, ERR_USAGE, "--%s: '%s': not NAME=VALUE", name, out->items[i].key);
    return ERR_OK;
}

enum err power_options_pairs(const struct power_options *options, struct params *columns,
                             struct params *where, struct error *why)
{
    enum err err = pairs("columns", &options->columns, columns, why);
    return err ? err : pairs("where", &options->where, where, why);
}

enum err power_options_add(struct power_options *options, const char **words, size_t count,
                           struct error *why)
{
    for (size_t i = 0; i < count; i++) {
        if (options->inputs.count == OPTION_LIST_MAX)
            return err_set(why, ERR_USAGE, "more than %d inputs", OPTION_LIST_MAX);
        options->inputs.items[options->inputs.count++] = words[i];
    }
    return ERR_OK;
}

enum err power_options_read(const struct power_options *options, struct freq_data *out,
                            struct error *why)
{
    struct params columns = {0}, where = {0};
    struct freq_source sources[OPTION_LIST_MAX];
    *out = (struct freq_data){0};
    if (options->inputs.count == 0)
        return err_set(why, ERR_USAGE,
                       "missing measurements: give --input FILE or the directory of a sweep");
    enum err err = power_options_pairs(options, &columns, &where, why);
    for (size_t i = 0; i < options->inputs.count; i++)
        sources[i] = (struct freq_source){options->inputs.items[i], &columns, &where, options->gpu};
    if (!err)
        err = freq_data_read(out, sources, options->inputs.count, options->clocks, why);
    params_release(&columns);
    params_release(&where);
    return err;
}
