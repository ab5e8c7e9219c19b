#include "estimate/precision.h"

#include <stddef.h>
#include <string.h>

#include "core/text.h"

static const struct {
    const char *name;
    double weight, activation, cache; /* bits */
} ROWS[PRECISION_COUNT] = {
#define PRECISION(constant, name, weight, activation, cache) {name, weight, activation, cache},
#include "estimate/precisions.def"
#undef PRECISION
};

const char *precision_name(enum precision precision)
{
    return ROWS[precision].name;
}

enum err precision_find(const char *name, enum precision *out, struct error *why)
{
    const char *names[PRECISION_COUNT];
    struct text all = {0};
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = ROWS[i].name;
        if (str_equal_nocase(name, names[i])) {
            *out = (enum precision)i;
            text_release(&all);
            return ERR_OK;
        }
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_name(name, names, PRECISION_COUNT);
    enum err err =
        near ? err_set(why, ERR_BAD_VALUE, "no precision '%s': did you mean '%s'?", name, near)
             : err_set(why, ERR_BAD_VALUE, "no precision '%s': there are %s", name, text_get(&all));
    text_release(&all);
    return err;
}

struct graph_widths precision_widths(enum precision precision)
{
    return (struct graph_widths){
        .weight = ROWS[precision].weight / 8,
        .activation = ROWS[precision].activation / 8,
        .cache = ROWS[precision].cache / 8,
    };
}

enum precision precision_of_products(enum precision precision)
{
    return ROWS[precision].weight < ROWS[precision].activation ? PRECISION_FP16 : precision;
}
