#include "estimate/model_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/text.h"

/* How weights are tuned for use, stored and tagged: none of it changes how many there are. */
static const char *const TAGS[] = {
    "instruct", "chat",  "it",          "base",   "text",    "thinking",  "reasoning", "latest",
    "meta",     "hf",    "gguf",        "ggml",   "gptq",    "awq",       "exl2",      "exl3",
    "mlx",      "onnx",  "bnb",         "hqq",    "aqlm",    "qat",       "ud",        "i1",
    "imatrix",  "f16",   "fp16",        "bf16",   "f32",     "fp32",      "fp8",       "fp4",
    "nf4",      "mxfp4", "nvfp4",       "int4",   "int8",    "4bit",      "8bit",      "w4a16",
    "w8a16",    "w8a8",  "safetensors", "marlin", "dynamic", "quantized",
};

/* What may follow the q4 of a llama.cpp quantisation: q4_0, q4_K_M, iq3_XXS. */
static const char *const QUANT_ENDS[] = {"0", "1", "k", "s", "m", "l", "xl", "xs", "xxs", "nl"};

static bool is_listed(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, list[i]))
            return true;
    return false;
}

/* "q4", "iq3", "tq1", "q4f16": the head of a quantisation's name. */
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

/* Does a new part begin here, as in llama|3.1 and a|3b, but not in 8x7b? */
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

void model_name_normalise(const char *name, char *to, size_t size)
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
