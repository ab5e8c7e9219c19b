/* The model catalog: tables of sizes and names, tables of decoder shapes, and the rules for comparing names. */
#include "catalog/model.h"

#include <ctype.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

/* Fewer parameters than this indicate a missing suffix: 8 for 8B. */
#define FEWEST_PARAMETERS 1000.0

#define COUNT_OF(array)   (sizeof(array) / sizeof *(array))

static const struct model_card CARDS[] = {
#define MODEL(billions, active, source, architecture, ...)                                         \
    {(const char *const[]){__VA_ARGS__, NULL},                                                     \
     {(billions) * 1e9, (active) * 1e9, source},                                                   \
     architecture},
#include "catalog/models.def"
#undef MODEL
};

static const struct model_shape SHAPES[] = {
#define MODEL_SHAPE(...) {__VA_ARGS__},
#include "catalog/model_shapes.def"
#undef MODEL_SHAPE
};

/* ---- names ---- */

/* Suffixes for tuning, storage and tags: none changes the number of parameters. */
static const char *const TAGS[] = {
    "instruct", "chat",  "it",          "base",   "text",    "thinking",  "reasoning", "latest",
    "meta",     "hf",    "gguf",        "ggml",   "gptq",    "awq",       "exl2",      "exl3",
    "mlx",      "onnx",  "bnb",         "hqq",    "aqlm",    "qat",       "ud",        "i1",
    "imatrix",  "f16",   "fp16",        "bf16",   "f32",     "fp32",      "fp8",       "fp4",
    "nf4",      "mxfp4", "nvfp4",       "int4",   "int8",    "4bit",      "8bit",      "w4a16",
    "w8a16",    "w8a8",  "safetensors", "marlin", "dynamic", "quantized",
};

/* Suffixes after the q4 of a llama.cpp quantization: q4_0, q4_K_M, iq3_XXS. */
static const char *const QUANT_ENDS[] = {"0", "1", "k", "s", "m", "l", "xl", "xs", "xxs", "nl"};

static bool is_listed(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, list[i]))
            return true;
    return false;
}

/* "q4", "iq3", "tq1", "q4f16": the start of a quantization's name. */
static bool is_quant(const char *word)
{
    if (*word == 'i' || *word == 't')
        word++;
    if (*word != 'q' || !isdigit((unsigned char)word[1]))
        return false;
    return !word[2] || !strcmp(word + 2, "f16") || !strcmp(word + 2, "f32");
}

static bool is_separator(const char *at)
{
    return strchr("-_: @", *at) || (*at == '.' && !isdigit((unsigned char)at[1]));
}

/* The next word of *at, in lower case; false at the end, or when it does not fit. */
static bool next_word(const char **at, char *word, size_t size)
{
    while (**at && is_separator(*at))
        (*at)++;
    size_t length = 0;
    for (; **at && !is_separator(*at) && length + 1 < size; (*at)++)
        word[length++] = (char)tolower((unsigned char)**at);
    word[length] = '\0';
    return length > 0;
}

/* Whether a new part begins here, as in llama|3.1 and a|3b, but not in 8x7b. */
static bool begins_part(const char *word, size_t i)
{
    if (i == 0 || !isdigit((unsigned char)word[i]) || !isalpha((unsigned char)word[i - 1]))
        return false;
    return !(word[i - 1] == 'x' && i >= 2 && isdigit((unsigned char)word[i - 2]));
}

static bool add_word(char *to, size_t size, size_t *length, const char *word)
{
    for (size_t i = 0; word[i]; i++) {
        bool hyphen = i == 0 ? *length > 0 : begins_part(word, i);
        if (*length + hyphen + 1 >= size)
            return false;
        if (hyphen)
            to[(*length)++] = '-';
        to[(*length)++] = word[i];
        to[*length] = '\0';
    }
    return true;
}

void model_name_normalize(const char *name, char *to, size_t size)
{
    const char *slash = strrchr(name, '/');
    const char *at = slash ? slash + 1 : name;
    char word[MODEL_NAME_MAX];
    size_t length = 0;
    bool in_quant = false;
    to[0] = '\0';
    while (next_word(&at, word, sizeof word)) {
        if (in_quant && is_listed(word, QUANT_ENDS, sizeof QUANT_ENDS / sizeof *QUANT_ENDS))
            continue;
        in_quant = is_quant(word);
        if (in_quant || is_listed(word, TAGS, sizeof TAGS / sizeof *TAGS))
            continue;
        if (!add_word(to, size, &length, word)) {
            to[0] = '\0';
            return;
        }
    }
}

static const char *skip_marks(const char *name)
{
    return name + strspn(name, "-_. ");
}

bool model_name_equal(const char *a, const char *b)
{
    for (;; a++, b++) {
        a = skip_marks(a);
        b = skip_marks(b);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

/* ---- sizes ---- */

/* The next-to-last component of a path, as `length` bytes: "deepseek-ai" of "a/deepseek-ai/x". */
static const char *owner_of(const char *name, size_t *length)
{
    const char *end = strrchr(name, '/');
    const char *start = end;
    while (start && start > name && start[-1] != '/')
        start--;
    *length = start ? (size_t)(end - start) : 0;
    return start;
}

/* A listed name without an owner matches every copy of the model, one with an owner only that owner's. */
static bool owner_fits(const char *listed, const char *name)
{
    size_t wanted, given;
    const char *want = owner_of(listed, &wanted), *have = owner_of(name, &given);
    if (wanted == 0)
        return true;
    if (wanted != given)
        return false;
    for (size_t i = 0; i < wanted; i++)
        if (tolower((unsigned char)want[i]) != tolower((unsigned char)have[i]))
            return false;
    return true;
}

static const struct model_card *find_release(const char *name)
{
    char wanted[MODEL_NAME_MAX], listed[MODEL_NAME_MAX];
    model_name_normalize(name, wanted, sizeof wanted);
    for (size_t i = 0; wanted[0] && i < COUNT_OF(CARDS); i++)
        for (const char *const *at = CARDS[i].names; is_known(CARDS[i].size.total) && *at; at++) {
            model_name_normalize(*at, listed, sizeof listed);
            if (!strcmp(listed, wanted) && owner_fits(*at, name))
                return &CARDS[i];
        }
    return NULL;
}

bool model_size_find(const char *name, struct model_size *out)
{
    const struct model_card *card = find_release(name);
    *out = card ? card->size : (struct model_size){.total = UNKNOWN, .active = UNKNOWN};
    return card;
}

static double suffix_factor(char suffix)
{
    switch (toupper((unsigned char)suffix)) {
    case 'K':
        return 1e3;
    case 'M':
        return 1e6;
    case 'B':
    case 'G':
        return 1e9;
    case 'T':
        return 1e12;
    default:
        return 0;
    }
}

static enum err parse_count(const char *what, const char *string, double *out, struct error *why)
{
    char digits[64];
    double factor = 1, value = 0;
    bool fits = str_copy(digits, sizeof digits, string);
    char *trimmed = str_trim(digits);
    size_t length = strlen(trimmed);
    if (length > 0 && suffix_factor(trimmed[length - 1]) > 0) {
        factor = suffix_factor(trimmed[length - 1]);
        trimmed[length - 1] = '\0';
    }
    if (!fits || parse_double(trimmed, &value) || !is_known(value * factor) || value <= 0)
        return err_set(why, ERR_BAD_VALUE,
                       "%s \"%s\" is not a number of parameters: write 8.03B or "
                       "8.03e9",
                       what, string);
    if (value * factor < FEWEST_PARAMETERS)
        return err_set(why, ERR_BAD_VALUE,
                       "%s \"%s\" is fewer than a thousand: write %sB for "
                       "billions",
                       what, string, trimmed);
    *out = value * factor;
    return ERR_OK;
}

enum err model_size_given(const char *total, const char *active, struct model_size *out,
                          struct error *why)
{
    double all = UNKNOWN, used = UNKNOWN;
    *out = (struct model_size){.total = UNKNOWN, .active = UNKNOWN};
    enum err err = parse_count("parameters", total, &all, why);
    if (!err && active)
        err = parse_count("active parameters", active, &used, why);
    if (err)
        return err;
    if (active && used > all)
        return err_set(why, ERR_BAD_VALUE, "%s active parameters exceed the total of %s", active,
                       total);
    *out = (struct model_size){
        .total = all,
        .active = active ? used : all,
        .source = "given by the user",
    };
    return ERR_OK;
}

double model_flops_per_token(const struct model_size *size)
{
    return is_known(size->active) && size->active > 0 ? 2 * size->active : UNKNOWN;
}

/* ---- architectures ---- */

const char *model_architecture(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(CARDS); i++)
        for (const char *const *at = CARDS[i].names; CARDS[i].architecture && *at; at++)
            if (model_name_equal(*at, name))
                return CARDS[i].architecture;
    return NULL;
}

const struct model_shape *model_shape_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(SHAPES); i++)
        if (!strcmp(SHAPES[i].name, name))
            return &SHAPES[i];
    return NULL;
}

size_t model_card_count(void)
{
    return COUNT_OF(CARDS);
}

const struct model_card *model_card_at(size_t index)
{
    return &CARDS[index];
}
