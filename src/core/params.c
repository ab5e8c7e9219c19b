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

enum err params_count(const struct params *params, const char *key, uint64_t fallback,
                      uint64_t *out, struct error *why)
{
    const char *text = params_get(params, key);
    *out = fallback;
    if (text && parse_u64(text, out) != ERR_OK)
        return err_set(why, ERR_USAGE, "%s=%s: expected a whole number, 0 or more", key, text);
    return ERR_OK;
}

enum err params_number(const struct params *params, const char *key, double fallback, double *out,
                       struct error *why)
{
    const char *text = params_get(params, key);
    *out = fallback;
    if (text && parse_double(text, out) != ERR_OK)
        return err_set(why, ERR_USAGE, "%s=%s: expected a number", key, text);
    return ERR_OK;
}

enum err params_bool(const struct params *params, const char *key, bool fallback, bool *out,
                     struct error *why)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    const char *text = params_get(params, key);
    *out = fallback;
    if (!text)
        return ERR_OK;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        for (int value = 0; value < 2; value++)
            if (str_equal_nocase(text, words[i][value])) {
                *out = value == 1;
                return ERR_OK;
            }
    return err_set(why, ERR_USAGE, "%s=%s: expected true or false", key, text);
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
