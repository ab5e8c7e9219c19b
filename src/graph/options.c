#include "graph/options.h"

#include <stddef.h>

/* Products of such sizes stay far below 2^63. */
enum { MAX_BATCH = 1 << 20, MAX_IMAGE = 100000, MAX_TOKENS = 1 << 28 };

enum err graph_options_complete(struct graph_options *options, const char *model_name,
                                bool has_phases, const struct graph_options *defaults,
                                struct error *why)
{
    const struct {
        const char *name;
        int64_t *value, otherwise, most;
    } SIZES[] = {
        {"batch", &options->batch, 1, MAX_BATCH},
        {"image size", &options->image, defaults->image, MAX_IMAGE},
        {"token count", &options->tokens, defaults->tokens, MAX_TOKENS},
        {"context", &options->context, defaults->context, MAX_TOKENS},
    };
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        if (*SIZES[i].value == 0)
            *SIZES[i].value = SIZES[i].otherwise;
        if (*SIZES[i].value < 0 || *SIZES[i].value > SIZES[i].most)
            return err_set(why, ERR_USAGE, "%s: %s of %lld: must be 1 to %lld", model_name,
                           SIZES[i].name, (long long)*SIZES[i].value, (long long)SIZES[i].most);
    }
    if (options->image_width > 0 && options->image_width != options->image)
        return err_set(why, ERR_USAGE, "%s takes square images: give --image N, not HxW",
                       model_name);
    if (options->phase == GRAPH_DECODE && !has_phases)
        return err_set(why, ERR_UNSUPPORTED, "%s is not a decoder: it has no decode phase",
                       model_name);
    return ERR_OK;
}
