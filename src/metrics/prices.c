#include "metrics/prices.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/energy.h"
#include "core/units.h"
#include "catalog/model.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

struct model_price {
    const char *id; /* points into the tree */
    double input, output, cached;
};

struct prices {
    struct jv *tree;
    const char *currency; /* points into the tree */
    struct tariff tariff;
    struct model_price *models;
    size_t count;
};

/* Position in the file, for errors. */
struct position {
    const char *file;
    const char *model; /* NULL: at the top level */
    struct error *why;
};

static enum err refuse(const struct position *at, const char *key, const char *problem)
{
    return err_set(at->why, ERR_BAD_VALUE, "%s: %s%s%s%s: %s", at->file, at->model ? "models." : "",
                   text_or_empty(at->model), at->model && key[0] ? "." : "", key, problem);
}

/* Rejects unknown and duplicate keys: a misspelled price must not count as missing.  Remarks are text. */
static enum err check_keys(const struct position *at, const struct jv *object,
                           const char *const *known)
{
    static const char *const REMARKS[] = {"source", "date", "note"};
    for (const struct jv *child = jv_first_member(object); child; child = jv_next(child)) {
        const char *key = jv_key(child);
        if (jv_get(object, key) != child)
            return refuse(at, key, "given more than once");
        bool found = false;
        for (size_t i = 0; known[i] && !found; i++)
            found = str_equal(key, known[i]);
        for (size_t i = 0; i < 3 && !found; i++)
            found = str_equal(key, REMARKS[i]) && jv_text(child);
        if (!found)
            return refuse(at, key, "unknown key, or wrong type");
    }
    return ERR_OK;
}

/* A missing or null price is UNKNOWN; any other must be a number of 0 or more. */
static enum err read_price(const struct position *at, const struct jv *object, const char *key,
                           bool required, double *out)
{
    const struct jv *value = jv_get(object, key);
    *out = jv_number(value);
    if (jv_is_null(value))
        return required ? refuse(at, key, "missing") : ERR_OK;
    if (!is_known(*out) || *out < 0)
        return refuse(at, key, "must be a number, 0 or more");
    return ERR_OK;
}

static enum err read_model(const struct position *at, const struct jv *object,
                           struct model_price *out)
{
    static const char *const KEYS[] = {"input_per_million", "output_per_million",
                                       "cached_input_per_million", NULL};
    if (!jv_is_object(object))
        return refuse(at, "", "must be an object with input_per_million and output_per_million");
    enum err err = check_keys(at, object, KEYS);
    if (!err)
        err = read_price(at, object, KEYS[0], true, &out->input);
    if (!err)
        err = read_price(at, object, KEYS[1], true, &out->output);
    if (!err)
        err = read_price(at, object, KEYS[2], false, &out->cached);
    out->id = at->model;
    return err;
}

static enum err read_models(const struct position *top, const struct jv *models,
                            struct prices *prices)
{
    if (jv_is_null(models))
        return ERR_OK;
    if (!jv_is_object(models))
        return refuse(top, "models", "must be an object with a key for each model");
    size_t count = jv_count(models);
    prices->models = xcalloc(count, sizeof *prices->models);
    for (const struct jv *child = jv_first_member(models); child; child = jv_next(child)) {
        struct position at = {top->file, jv_key(child), top->why};
        if (jv_get(models, at.model) != child)
            return refuse(&at, "", "given more than once");
        enum err err = read_model(&at, child, &prices->models[prices->count]);
        if (err)
            return err;
        prices->count++;
    }
    return ERR_OK;
}

static enum err read_top(const struct position *at, struct prices *prices)
{
    static const char *const KEYS[] = {"currency",        "models",       "electricity_per_kwh",
                                       "device_per_hour", "gco2_per_kwh", NULL};
    struct tariff *tariff = &prices->tariff;
    if (!jv_is_object(prices->tree))
        return err_set(at->why, ERR_BAD_VALUE, "%s: must be one JSON object", at->file);
    enum err err = check_keys(at, prices->tree, KEYS);
    if (err)
        return err;
    prices->currency = jv_get_text(prices->tree, "currency");
    if (!prices->currency || !prices->currency[0])
        return refuse(at, "currency", "missing (for example \"USD\")");
    err = read_price(at, prices->tree, "electricity_per_kwh", false, &tariff->price_per_kwh);
    if (!err)
        err =
            read_price(at, prices->tree, "device_per_hour", false, &tariff->device_price_per_hour);
    if (!err)
        err = read_price(at, prices->tree, "gco2_per_kwh", false, &tariff->gco2_per_kwh);
    if (!err)
        err = read_models(at, jv_get(prices->tree, "models"), prices);
    if (!err && prices->count == 0 && !tariff_given(tariff))
        return err_set(at->why, ERR_BAD_VALUE,
                       "%s: no prices: neither models nor electricity_per_kwh, device_per_hour or "
                       "gco2_per_kwh",
                       at->file);
    return err;
}

enum err prices_load(const char *path, struct prices **out, struct error *why)
{
    struct position top = {path, NULL, why};
    *out = NULL;
    struct prices *prices = XNEW(prices);
    enum err err = jv_read(path, FILE_SMALL, &prices->tree, why);
    if (!err)
        err = read_top(&top, prices);
    if (err) {
        prices_free(prices);
        return err;
    }
    *out = prices;
    return ERR_OK;
}

void prices_free(struct prices *prices)
{
    if (!prices)
        return;
    jv_free(prices->tree);
    free(prices->models);
    free(prices);
}

const char *prices_currency(const struct prices *prices)
{
    return prices->currency;
}

static const struct model_price *find_model(const struct prices *prices, const char *model)
{
    char wanted[MODEL_NAME_MAX], name[MODEL_NAME_MAX];
    const struct model_price *found = NULL;
    for (size_t i = 0; i < prices->count; i++)
        if (str_equal(prices->models[i].id, model))
            return &prices->models[i];
    model_name_normalize(model, wanted, sizeof wanted);
    for (size_t i = 0; wanted[0] && i < prices->count; i++) {
        model_name_normalize(prices->models[i].id, name, sizeof name);
        if (!str_equal(name, wanted))
            continue;
        if (found)
            return NULL;
        found = &prices->models[i];
    }
    return found;
}

static bool is_count(double value)
{
    return is_known(value) && value >= 0;
}

struct token_cost prices_tokens(const struct prices *prices, const char *model,
                                double prompt_tokens, double cached_tokens, double output_tokens)
{
    struct token_cost cost = {UNKNOWN, UNKNOWN, UNKNOWN};
    const struct model_price *price = find_model(prices, model);
    if (!price)
        return cost;
    double cached = known_or(cached_tokens, 0);
    double cached_price = known_or(price->cached, price->input);
    if (is_count(prompt_tokens) && cached >= 0 && cached <= prompt_tokens)
        cost.input = ((prompt_tokens - cached) * price->input + cached * cached_price) / 1e6;
    if (is_count(output_tokens))
        cost.output = output_tokens * price->output / 1e6;
    cost.total = cost.input + cost.output;
    return cost;
}

const struct tariff *prices_tariff(const struct prices *prices)
{
    return &prices->tariff;
}
