/* The model catalog: sizes, names and decoder shapes of data/models, all parsed when one is first needed, and the rules
 * for comparing names. */
#include "catalog/model.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "catalog/benchmark.h"
#include "catalog/catalog_file.h"
#include "core/json_bind.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

/* Fewer parameters than this indicate a missing suffix: 8 for 8B. */
#define FEWEST_PARAMETERS 1000.0

/* ---- files ---- */

struct shape_row {
    const char *summary, *source; /* NULL: none */
    struct json_any config;
};

struct model_row {
    char **names;
    size_t name_count;
    double billions, active_billions;
    const char *source, *architecture;
    struct shape_row given;
    struct model_shape shape;
};

struct model_list {
    struct jv *tree; /* has the strings */
    const char *id, *note;
    struct model_row *rows;
    struct accuracy_table *accuracies;
    size_t count, accuracy_count;
};

#define BIND_REQUIRED(of, member_, path_) BIND_TEXT(of, member_, path_, .flags = FIELD_REQUIRED)

static const struct json_field SHAPE_FIELDS[] = {
    BIND_REQUIRED(shape_row, summary, "summary"),
    BIND_REQUIRED(shape_row, source, "source"),
    BIND_JSON(shape_row, config, "config", .flags = FIELD_REQUIRED),
    {0},
};

static const struct json_field MODEL_FIELDS[] = {
    BIND_STRINGS(model_row, names, name_count, "names", .flags = FIELD_REQUIRED, .least = 1),
    BIND_NUMBER(model_row, billions, "billions", .flags = FIELD_ABOVE, .max = 1e6),
    BIND_NUMBER(model_row, active_billions, "active_billions", .flags = FIELD_ABOVE, .max = 1e6),
    BIND_TEXT(model_row, source, "source"),
    BIND_TEXT(model_row, architecture, "architecture"),
    BIND_OBJECT(model_row, given, SHAPE_FIELDS, "shape"),
    {0},
};

static const struct json_field LIST_FIELDS[] = {
    BIND_REQUIRED(model_list, id, "id"),
    BIND_TEXT(model_list, note, "note"),
    BIND_LIST(model_list, rows, count, MODEL_FIELDS, "models", .least = 1),
    BIND_LIST(model_list, accuracies, accuracy_count, ACCURACY_TABLE_FIELDS, "accuracies",
              .least = 1),
    {0},
};

/* The rules for more than one value. */
static enum err check_rows(void *parsed, struct error *why)
{
    const struct model_list *list = parsed;
    for (size_t i = 0; i < list->count; i++) {
        struct model_row *row = &list->rows[i];
        row->shape = (struct model_shape){row->architecture, row->given.summary, row->given.source,
                                          row->given.config.value};
        if (!is_known(row->active_billions))
            row->active_billions = row->billions;
        if (is_known(row->billions) && !row->source)
            return err_set(why, ERR_BAD_VALUE, "models.%zu: billions: without a source", i);
        if (row->shape.summary && !row->architecture)
            return err_set(why, ERR_BAD_VALUE,
                           "models.%zu: shape: without the name of an architecture", i);
        if (row->shape.summary && !jv_is_object(row->shape.config))
            return err_set(why, ERR_BAD_VALUE, "models.%zu: shape.config: not an object", i);
    }
    for (size_t i = 0; i < list->accuracy_count; i++) {
        struct error reason = {0};
        if (accuracy_table_check(&list->accuracies[i], &reason) != ERR_OK)
            return err_set(why, ERR_BAD_VALUE, "accuracies.%zu.%s", i, reason.text);
    }
    if (list->count + list->accuracy_count == 0)
        return err_set(why, ERR_BAD_VALUE, "models: is missing");
    return ERR_OK;
}

const struct catalog_format CATALOG_MODEL_LIST = {catalog_list_parse, LIST_FIELDS,
                                                  sizeof(struct model_list), check_rows};

/* ---- all models ---- */

static struct {
    struct model_card *cards;
    const struct model_shape **shapes;
    const struct accuracy_table **accuracies;
    size_t card_count, shape_count, accuracy_count;
} models;

static void add_model(const struct model_row *row)
{
    models.cards[models.card_count++] = (struct model_card){
        .names = (const char *const *)row->names,
        .size = {row->billions * 1e9, row->active_billions * 1e9, row->source},
        .architecture = row->architecture,
    };
    if (row->shape.summary)
        models.shapes[models.shape_count++] = &row->shape;
}

static void load_all(void)
{
    size_t count = 0;
    for (size_t i = 0; i < MODEL_FILE_COUNT; i++) {
        const struct model_list *list = catalog_file_get(&MODEL_FILES[i], &CATALOG_MODEL_LIST);
        if (!list)
            continue;
        models.cards = xreallocarray(models.cards, count + list->count, sizeof *models.cards);
        models.shapes = xreallocarray(models.shapes, count + list->count, sizeof *models.shapes);
        count += list->count;
        for (size_t n = 0; n < list->count; n++)
            add_model(&list->rows[n]);
        models.accuracies =
            xreallocarray(models.accuracies, models.accuracy_count + list->accuracy_count + 1,
                          sizeof *models.accuracies);
        for (size_t n = 0; n < list->accuracy_count; n++)
            models.accuracies[models.accuracy_count++] = &list->accuracies[n];
    }
}

static void load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_all);
}

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

/* "q4", "iq3", "tq1", "q4f16": the start of a quantization's name. */
static bool is_quant(const char *word)
{
    if (*word == 'i' || *word == 't')
        word++;
    if (*word != 'q' || !isdigit((unsigned char)word[1]))
        return false;
    return !word[2] || str_equal(word + 2, "f16") || str_equal(word + 2, "f32");
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
        if (in_quant && str_is_listed(word, QUANT_ENDS, COUNT_OF(QUANT_ENDS)))
            continue;
        in_quant = is_quant(word);
        if (in_quant || str_is_listed(word, TAGS, COUNT_OF(TAGS)))
            continue;
        if (!add_word(to, size, &length, word)) {
            to[0] = '\0';
            return;
        }
    }
}

/* The next character that is not a separator.  Separators count only between two digits, which they keep apart: "3.1-8b"
 * is not "3-18b", nor "1_6gf" "16gf". */
static const char *skip_separators(const char *name, char before, bool *separates)
{
    const char *next = name + strspn(name, "-_. ");
    *separates = next > name && isdigit((unsigned char)before) && isdigit((unsigned char)*next);
    return next;
}

bool model_name_equal(const char *a, const char *b)
{
    char last = '\0';
    for (;; a++, b++) {
        bool separates_a, separates_b;
        a = skip_separators(a, last, &separates_a);
        b = skip_separators(b, last, &separates_b);
        if (separates_a != separates_b || tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        last = *a;
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

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static const struct model_card *find_release(const char *name)
{
    char wanted[MODEL_NAME_MAX], listed[MODEL_NAME_MAX];
    model_name_normalize(name, wanted, sizeof wanted);
    for (size_t i = 0; wanted[0] && i < model_card_count(); i++)
        for (const char *const *at = models.cards[i].names;
             is_known(models.cards[i].size.total) && *at; at++) {
            model_name_normalize(*at, listed, sizeof listed);
            if (str_equal(listed, wanted) && owner_fits(*at, name))
                return &models.cards[i];
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
    bool fits = chars_copy(digits, string);
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

static enum err size_given(const char *total, const char *active, struct model_size *out,
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

enum err model_size_parse(const char *text, struct model_size *out, struct error *why)
{
    char total[64];
    const char *comma = strchr(text, ',');
    chars_format(total, "%.*s", comma ? (int)(comma - text) : 60, text);
    return size_given(total, comma ? comma + 1 : NULL, out, why);
}

double model_flops_per_token(const struct model_size *size)
{
    return is_known(size->active) && size->active > 0 ? 2 * size->active : UNKNOWN;
}

/* ---- architectures ---- */

const char *model_architecture(const char *name)
{
    const struct model_card *card = model_card_find(name);
    return card ? card->architecture : NULL;
}

size_t model_shape_count(void)
{
    load();
    return models.shape_count;
}

const struct model_shape *model_shape_at(size_t index)
{
    load();
    return models.shapes[index];
}

const struct model_shape *model_shape_find(const char *name)
{
    for (size_t i = 0; i < model_shape_count(); i++)
        if (str_equal(models.shapes[i]->name, name))
            return models.shapes[i];
    return NULL;
}

size_t model_card_count(void)
{
    load();
    return models.card_count;
}

const struct model_card *model_card_at(size_t index)
{
    load();
    return &models.cards[index];
}

size_t model_accuracy_table_count(void)
{
    load();
    return models.accuracy_count;
}

const struct accuracy_table *model_accuracy_table_at(size_t index)
{
    load();
    return models.accuracies[index];
}

const struct model_card *model_card_find(const char *name)
{
    for (size_t i = 0; i < model_card_count(); i++)
        for (const char *const *at = models.cards[i].names; *at; at++)
            if (model_name_equal(base_of(*at), base_of(name)) && owner_fits(*at, name))
                return &models.cards[i];
    return NULL;
}
