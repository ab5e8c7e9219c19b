#include "core/params.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"

static struct param *find(const struct params *params, const char *key)
{
    for (size_t i = 0; params && i < params->count; i++)
        if (str_equal(params->items[i].key, key))
            return &params->items[i];
    return NULL;
}

enum err params_set(struct params *params, const char *key, const char *value)
{
    struct param *known = find(params, key);
    char *copy = memory_string(value);
    if (!copy)
        return ERR_NO_MEMORY;
    if (known) {
        free(known->value);
        known->value = copy;
        return ERR_OK;
    }
    struct param *items = grow(params->items, &params->capacity, params->count, sizeof *items);
    if (items)
        params->items = items;
    char *key_copy = items ? memory_string(key) : NULL;
    if (!key_copy) {
        free(copy);
        return ERR_NO_MEMORY;
    }
    params->items[params->count++] = (struct param){.key = key_copy, .value = copy};
    return ERR_OK;
}

/* Parses one "key=value" in place. */
static enum err add_piece(struct params *params, char *piece)
{
    char *equals = strchr(piece, '=');
    const char *value = "";
    if (equals) {
        *equals = '\0';
        value = str_trim(equals + 1);
    }
    const char *key = str_trim(piece);
    return *key ? params_set(params, key, value) : ERR_OK;
}

enum err params_add(struct params *params, const char *words)
{
    char *piece = memory_resize(NULL, strlen(words) + 1);
    if (!piece)
        return ERR_NO_MEMORY;
    enum err err = ERR_OK;
    size_t length = 0;
    int depth = 0; /* bracket depth: a JSON list or object is one value */
    for (const char *c = words; !err; c++) {
        depth += (*c == '[' || *c == '{') - (*c == ']' || *c == '}');
        if (*c == '\\' && c[1] == ',') {
            piece[length++] = *++c;
        } else if ((*c == ',' && depth <= 0) || *c == '\0') {
            piece[length] = '\0';
            length = 0;
            err = add_piece(params, piece);
            if (*c == '\0')
                break;
        } else {
            piece[length++] = *c;
        }
    }
    free(piece);
    return err;
}

enum err params_copy(struct params *to, const struct params *from)
{
    enum err err = ERR_OK;
    for (size_t i = 0; from && i < from->count && !err; i++)
        err = params_set(to, from->items[i].key, from->items[i].value);
    return err;
}

void params_release(struct params *params)
{
    for (size_t i = 0; i < params->count; i++) {
        free(params->items[i].key);
        free(params->items[i].value);
    }
    free(params->items);
    *params = (struct params){0};
}

const char *params_get(const struct params *params, const char *key)
{
    const struct param *param = find(params, key);
    return param ? param->value : NULL;
}

/* ---- values of other types ---- */

static void refuse(struct params_reader *reader, const char *key, const char *expected)
{
    if (!reader->err)
        reader->err = err_set(reader->why, ERR_USAGE, "%s=%s: expected %s", key,
                              params_get(reader->params, key), expected);
}

static void refuse_range(struct params_reader *reader, const char *key, double min, double max)
{
    char expected[80];
    if (max < (double)INT64_MAX)
        chars_format(expected, "%.15g to %.15g", min, max);
    else
        chars_format(expected, "%.15g or more", min);
    refuse(reader, key, expected);
}

uint64_t params_count(struct params_reader *reader, const char *key, uint64_t otherwise,
                      uint64_t min, uint64_t max)
{
    const char *text = params_get(reader->params, key);
    uint64_t value;
    if (!text)
        return otherwise;
    if (parse_u64(text, &value))
        refuse(reader, key, "a whole number, 0 or more");
    else if (value < min || value > max)
        refuse_range(reader, key, (double)min, (double)max);
    else
        return value;
    return otherwise;
}

double params_number(struct params_reader *reader, const char *key, double otherwise, double min,
                     double max)
{
    const char *text = params_get(reader->params, key);
    double value;
    if (!text)
        return otherwise;
    if (parse_double(text, &value))
        refuse(reader, key, "a number");
    else if (!(value >= min && value <= max))
        refuse_range(reader, key, min, max);
    else
        return value;
    return otherwise;
}

bool params_bool(struct params_reader *reader, const char *key, bool otherwise)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    const char *text = params_get(reader->params, key);
    if (!text)
        return otherwise;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        for (int value = 0; value < 2; value++)
            if (str_equal_nocase(text, words[i][value]))
                return value == 1;
    refuse(reader, key, "true or false");
    return otherwise;
}

int params_word(struct params_reader *reader, const char *key, const char *const *words,
                int otherwise)
{
    const char *text = params_get(reader->params, key);
    char known[160] = ""; /* "auto, on or off" */
    if (!text || !*text)
        return otherwise;
    for (int i = 0; words[i]; i++) {
        size_t used = strlen(known);
        const char *before = words[i + 1] ? ", " : " or ";
        if (str_equal(text, words[i]))
            return i;
        str_join(known + used, sizeof known - used, i ? before : "", words[i], "");
    }
    refuse(reader, key, known);
    return otherwise;
}

static bool is_known_key(const struct param_spec *specs, const char *key)
{
    for (; specs && specs->name; specs++) {
        size_t stem = strcspn(specs->name, "*");
        if (specs->name[stem] ? strncmp(specs->name, key, stem) == 0 && key[stem]
                              : str_equal(specs->name, key))
            return true;
    }
    return false;
}

enum err params_check(const struct params *params, const struct param_spec *specs,
                      const char *owner, struct error *why)
{
    const char *names[64] = {NULL};
    size_t count = 0;
    for (const struct param_spec *s = specs; s && s->name && count < 64; s++)
        names[count++] = s->name;
    for (size_t i = 0; params && i < params->count; i++) {
        const char *key = params->items[i].key;
        if (is_known_key(specs, key))
            continue;
        const char *near = nearest_name(key, names, count);
        if (near)
            return err_set(why, ERR_USAGE, "%s has no parameter '%s': did you mean '%s'?", owner,
                           key, near);
        return err_set(why, ERR_USAGE, "%s has no parameter '%s': see `ipw list -v`", owner, key);
    }
    return ERR_OK;
}
