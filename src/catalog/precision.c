#include "catalog/precision.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"
#include "core/units.h"

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

double bits_in_name(const char *model)
{
    static const struct {
        const char *word;
        double bits;
    } WORDS[] = {
        {"fp32", 32}, {"f32", 32},  {"bf16", 16}, {"fp16", 16}, {"f16", 16},  {"fp8", 8},
        {"int8", 8},  {"w8a8", 8},  {"w8a16", 8}, {"8bit", 8},  {"8-bit", 8}, {"q8", 8},
        {"q6", 6},    {"q5", 5},    {"q4", 4},    {"iq4", 4},   {"int4", 4},  {"w4a16", 4},
        {"4bit", 4},  {"4-bit", 4}, {"awq", 4},   {"gptq", 4},  {"fp4", 4},   {"mxfp4", 4},
        {"nvfp4", 4}, {"q3", 3},    {"iq3", 3},   {"q2", 2},    {"iq2", 2},
    };
    double bits = UNKNOWN;
    for (const char *at = model; *at; at++) {
        if (at != model && isalnum((unsigned char)at[-1]))
            continue; /* words begin after a separator */
        for (size_t i = 0; i < COUNT_OF(WORDS); i++) {
            size_t length = strlen(WORDS[i].word), same = 0;
            while (same < length && tolower((unsigned char)at[same]) == WORDS[i].word[same])
                same++;
            if (same == length && !isalnum((unsigned char)at[length]))
                bits = WORDS[i].bits;
        }
    }
    return bits;
}
