#include "catalog/precision.h"

#include <stddef.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"

const char *const PRECISION_NAMES[PRECISION_COUNT] = {
#define PRECISION(constant, name, weight, activation, cache) name,
#include "catalog/precisions.def"
#undef PRECISION
};

const struct precision_widths PRECISION_WIDTHS[PRECISION_COUNT] = {
#define PRECISION(constant, name, weight, activation, cache)                                       \
    {(weight) / 8.0, (activation) / 8.0, (cache) / 8.0, false},
#include "catalog/precisions.def"
#undef PRECISION
};

enum err precision_find(const char *name, enum precision *out, struct error *why)
{
    const char *names[PRECISION_COUNT];
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = PRECISION_NAMES[i];
        if (str_equal_nocase(name, names[i])) {
            *out = (enum precision)i;
            return ERR_OK;
        }
    }
    return registry_unknown("precision", name, names, PRECISION_COUNT, ERR_BAD_VALUE, why);
}

/* Each list: the precision itself, those of the same width, then wider ones. */
#define FROM_FP32    PRECISION_FP32, PRECISION_FP64, PRECISION_COUNT
#define FROM_16_BITS PRECISION_FP16, PRECISION_BF16, PRECISION_TF32, FROM_FP32

const enum precision *precision_holders(enum precision precision)
{
    static const enum precision HOLDERS[PRECISION_COUNT][PRECISION_COUNT + 1] = {
        [PRECISION_FP64] = {PRECISION_FP64, PRECISION_COUNT},
        [PRECISION_FP32] = {FROM_FP32},
        [PRECISION_TF32] = {PRECISION_TF32, FROM_FP32},
        [PRECISION_FP16] = {FROM_16_BITS},
        [PRECISION_BF16] = {PRECISION_BF16, PRECISION_FP16, PRECISION_TF32, FROM_FP32},
        [PRECISION_FP8] = {PRECISION_FP8, FROM_16_BITS},
        [PRECISION_INT8] = {PRECISION_INT8, FROM_16_BITS},
        [PRECISION_FP4] = {PRECISION_FP4, PRECISION_FP8, FROM_16_BITS},
        [PRECISION_INT4] = {PRECISION_INT4, PRECISION_INT8, FROM_16_BITS},
    };
    return HOLDERS[precision];
}
