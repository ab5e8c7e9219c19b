/* rf and gbt: a random forest and gradient-boosted trees, by the XGBoost library, loaded at run time ($IPW_XGBOOST,
 * else Debian's libxgboost.so.0).  One ensemble of trees predicts power, another relative time; both are stored in
 * the library's own format, so that a saved model gives the same predictions. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/dl.h"
#include "port/json_read.h"
#include "power/activity.h"

/* ---- the library ---- */

typedef void *handle;

struct xgboost {
    int (*matrix_create)(const float *data, uint64_t rows, uint64_t columns, float missing,
                         handle *out);
    int (*matrix_set)(handle matrix, const char *field, const float *values, uint64_t count);
    int (*matrix_free)(handle matrix);
    int (*create)(const handle *matrices, uint64_t count, handle *out);
    int (*set)(handle booster, const char *name, const char *value);
    int (*update)(handle booster, int round, handle matrix);
    int (*predict)(handle booster, handle matrix, const char *config, const uint64_t **shape,
                   uint64_t *dimensions, const float **out);
    int (*save)(handle booster, const char *config, uint64_t *length, const char **bytes);
    int (*load)(handle booster, const void *bytes, uint64_t length);
    int (*free)(handle booster);
    const char *(*last_error)(void);
};

static enum err open_library(struct xgboost *x, struct error *why)
{
    static struct dl library; /* never closed: its threads do not survive unloading */
    static const char *const NAMES[] = {"libxgboost.so.0", "libxgboost.so", NULL};
    const struct dl_symbol symbols[] = {
        {"XGDMatrixCreateFromMat", &x->matrix_create, true},
        {"XGDMatrixSetFloatInfo", &x->matrix_set, true},
        {"XGDMatrixFree", &x->matrix_free, true},
        {"XGBoosterCreate", &x->create, true},
        {"XGBoosterSetParam", &x->set, true},
        {"XGBoosterUpdateOneIter", &x->update, true},
        {"XGBoosterPredictFromDMatrix", &x->predict, true},
        {"XGBoosterSaveModelToBuffer", &x->save, true},
        {"XGBoosterLoadModelFromBuffer", &x->load, true},
        {"XGBoosterFree", &x->free, true},
        {"XGBGetLastError", &x->last_error, true},
    };
    struct error inner = {0};
    if (!library.handle && dl_open(&library, "IPW_XGBOOST", NAMES, &inner))
        return err_set(why, ERR_ABSENT,
                       "rf and gbt need XGBoost's library: apt install libxgboost-dev, or set "
                       "IPW_XGBOOST (%.120s)",
                       inner.text);
    return dl_load(&library, symbols, COUNT_OF(symbols), why);
}

static enum err failed(const struct xgboost *x, struct error *why)
{
    char line[200];
    chars_copy(line, x->last_error());
    line[strcspn(line, "\n")] = '\0';
    return err_set(why, ERR_IO, "XGBoost: %s", str_plain(line, sizeof line));
}

struct trees {
    struct xgboost library;
    handle power, time; /* NULL: no such figure */
};

/* ---- files ---- */

/* XGBoost follows links and indices of a file without checks, so that a damaged one ends the process.  The following
 * functions check what our models have. */

/* XGBoost writes whole numbers as strings. */
static bool is_count(const struct jv *object, const char *key, uint64_t expected)
{
    const char *digits = jv_get_text(object, key);
    uint64_t count;
    return digits && !parse_u64(digits, &count) && count == expected;
}

static bool is_list(const struct jv *object, const char *key, size_t count)
{
    const struct jv *list = jv_get(object, key);
    bool is_valid = jv_is_array(list) && jv_count(list) == count;
    for (const struct jv *item = jv_first(list); is_valid && item; item = jv_next(item))
        is_valid = fabs(jv_number(item)) <= FLT_MAX;
    return is_valid;
}

/* Every node has one parent, and the root none: no path returns to its start. */
static bool are_links(const double *left, const double *right, const double *parents,
                      const double *features, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (left[i] == -1 && right[i] == -1)
            continue;
        if (!(left[i] >= 1 && left[i] < (double)count && right[i] >= 1 &&
              right[i] < (double)count && left[i] != right[i] && features[i] >= 0 &&
              features[i] < ACTIVITY_FEATURES))
            return false;
        if (parents[(size_t)left[i]] != (double)i || parents[(size_t)right[i]] != (double)i)
            return false;
    }
    return true;
}

static bool is_tree(const struct jv *tree, size_t id)
{
    static const char *const LINKS[] = {"left_children", "right_children", "parents",
                                        "split_indices"};
    static const char *const FIGURES[] = {"base_weights", "loss_changes",     "sum_hessian",
                                          "default_left", "split_conditions", "split_type"};
    static const char *const CATEGORIES[] = {"categories", "categories_nodes",
                                             "categories_segments", "categories_sizes"};
    enum { LINK_COUNT = COUNT_OF(LINKS) };
    size_t count = jv_count(jv_get(tree, LINKS[0]));
    double *links = xmalloc((LINK_COUNT * count + 1) * sizeof *links);
    bool is_valid = count && is_count(jv_get(tree, "tree_param"), "num_nodes", count) &&
                    is_count(jv_get(tree, "tree_param"), "num_feature", ACTIVITY_FEATURES) &&
                    jv_get_number(tree, "id") == (double)id;
    for (size_t i = 0; is_valid && i < LINK_COUNT; i++)
        is_valid = is_list(tree, LINKS[i], count) &&
                   jv_numbers(jv_get(tree, LINKS[i]), links + i * count, count);
    for (size_t i = 0; is_valid && i < COUNT_OF(FIGURES); i++)
        is_valid = is_list(tree, FIGURES[i], count);
    for (size_t i = 0; is_valid && i < COUNT_OF(CATEGORIES); i++)
        is_valid = is_list(tree, CATEGORIES[i], 0);
    is_valid =
        is_valid && are_links(links, links + count, links + 2 * count, links + 3 * count, count);
    free(links);
    return is_valid;
}

static bool is_ensemble(const struct jv *root)
{
    const struct jv *model = jv_path(root, "learner.gradient_booster.model");
    const struct jv *trees = jv_get(model, "trees");
    const char *name = jv_text(jv_path(root, "learner.gradient_booster.name"));
    size_t count = jv_count(trees), id = 0;
    bool is_valid =
        name && str_equal(name, "gbtree") && jv_is_array(trees) &&
        is_list(model, "tree_info", count) &&
        is_count(jv_get(model, "gbtree_model_param"), "num_trees", count) &&
        is_count(jv_path(root, "learner.learner_model_param"), "num_feature", ACTIVITY_FEATURES) &&
        is_count(jv_path(root, "learner.learner_model_param"), "num_class", 0);
    for (const struct jv *one = jv_first(jv_get(model, "tree_info")); one; one = jv_next(one))
        is_valid = is_valid && jv_number(one) == 0; /* one output */
    for (const struct jv *tree = jv_first(trees); is_valid && tree; tree = jv_next(tree))
        is_valid = is_tree(tree, id++);
    return is_valid;
}

static void write_booster(struct json *json, const char *key, const struct json_field *field,
                          const void *object)
{
    const struct xgboost *x = &((const struct trees *)object)->library;
    handle booster = *(const handle *)json_field_member(field, object);
    uint64_t length = 0;
    const char *bytes = NULL;
    if (booster && x->save(booster, "{\"format\": \"json\"}", &length, &bytes) == 0)
        json_string_bytes(json, key, bytes, length);
    else
        json_null(json, key);
}

static handle *booster_of(const struct json_field *field, void *object)
{
    return (handle *)(void *)((char *)object + field->offset);
}

static enum err read_booster(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, void *object)
{
    struct xgboost *x = &((struct trees *)object)->library;
    handle *out = booster_of(field, object);
    const char *bytes = jv_text(value);
    struct jv *root = NULL;
    bool is_valid = bytes && !jv_parse(bytes, strlen(bytes), &root, NULL) && is_ensemble(root);
    jv_free(root);
    if (!is_valid)
        return json_refuse(at, field->path, "damaged state of a model of trees");
    enum err err = open_library(x, json_place_why(at));
    if (!err && (x->create(NULL, 0, out) || x->load(*out, bytes, strlen(bytes))))
        err = failed(x, json_place_why(at));
    return err;
}

static void clear_booster(const struct json_field *field, void *object)
{
    *booster_of(field, object) = NULL;
}

static void release_booster(const struct json_field *field, void *object)
{
    if (*booster_of(field, object))
        ((struct trees *)object)->library.free(*booster_of(field, object));
}

static const struct json_custom BOOSTER = {.write = write_booster,
                                           .read = read_booster,
                                           .clear = clear_booster,
                                           .release = release_booster};

static const struct json_field TREES_FIELDS[] = {
    BIND_CUSTOM(trees, power, BOOSTER, "power_w", .flags = FIELD_REQUIRED),
    BIND_CUSTOM(trees, time, BOOSTER, "relative_time"),
    {0},
};

/* ---- fitting ---- */

struct tree_parameter {
    const char *name, *value;
};

struct tree_fit {
    const struct xgboost *library;
    const struct tree_parameter *parameters; /* ends in a NULL name */
    unsigned rounds;
    char parallel[16], seed[16]; /* trees per round */
};

static enum err boost(const struct tree_fit *fit, handle matrix, handle booster)
{
    const struct xgboost *x = fit->library;
    int bad = 0;
    for (const struct tree_parameter *p = fit->parameters; p->name; p++)
        bad |= x->set(booster, p->name, p->value);
    bad |= x->set(booster, "num_parallel_tree", fit->parallel);
    bad |= x->set(booster, "seed", fit->seed);
    for (unsigned i = 0; !bad && i < fit->rounds; i++)
        bad |= x->update(booster, (int)i, matrix);
    return bad ? ERR_IO : ERR_OK;
}

/* Rows of features and target values; rows with unknown values are excluded. */
static enum err fit_booster(const struct tree_fit *fit, const struct activity_rows *rows,
                            bool is_time, handle *out, struct error *why)
{
    const struct xgboost *x = fit->library;
    float *a = xmalloc((rows->count + 1) * ACTIVITY_FEATURES * sizeof *a);
    float *b = xmalloc((rows->count + 1) * sizeof *b);
    size_t count = 0;
    handle matrix = NULL;
    enum err err = ERR_OK;
    for (size_t i = 0; i < rows->count; i++) {
        const struct activity_row *row = &rows->items[i];
        double value = is_time ? row->time_s / row->fmax_time_s : row->power_w;
        if (!is_known(value))
            continue;
        for (size_t j = 0; j < ACTIVITY_FEATURES; j++)
            a[count * ACTIVITY_FEATURES + j] = (float)row->features[j];
        b[count++] = (float)value;
    }
    if (count && (x->matrix_create(a, count, ACTIVITY_FEATURES, NAN, &matrix) ||
                  x->matrix_set(matrix, "label", b, count) || x->create(&matrix, 1, out) ||
                  boost(fit, matrix, *out)))
        err = failed(x, why);
    if (matrix)
        x->matrix_free(matrix);
    free(a);
    free(b);
    return err;
}

static enum err trees_fit(const struct freq_curves *curves, struct tree_fit *fit, uint64_t seed,
                          void **state, struct error *why)
{
    struct activity_rows rows = {0};
    struct trees *trees = XNEW(trees);
    *state = NULL;
    chars_format(fit->seed, "%u", (unsigned)(seed & 0x7fffffff));
    fit->library = &trees->library;
    enum err err = open_library(&trees->library, why);
    if (!err)
        err = activity_rows_of(curves, &rows, why);
    if (!err)
        err = fit_booster(fit, &rows, false, &trees->power, why);
    if (!err)
        err = fit_booster(fit, &rows, true, &trees->time, why);
    activity_rows_release(&rows);
    if (err)
        freq_state_free(TREES_FIELDS, trees);
    else
        *state = trees;
    return err;
}

/* As scikit-learn's random forest with max_features=2 and min_samples_leaf=5: every tree is grown on its own sample of
 * the rows, and all are averaged.  Samples are drawn without replacement, of the size that a bootstrap sample has in
 * distinct rows.  Trees that choose among all features at every node, down to single rows, learn the activities of each
 * application by heart, and are worse for others. */
static enum err rf_fit(const struct freq_curves *curves, const struct freq_model_options *options,
                       void **state, struct error *why)
{
    static const struct tree_parameter PARAMETERS[] = {{"objective", "reg:squarederror"},
                                                       {"tree_method", "exact"},
                                                       {"max_depth", "16"},
                                                       {"learning_rate", "1"},
                                                       {"subsample", "0.632"},
                                                       {"colsample_bynode", "0.67"},
                                                       {"lambda", "0"},
                                                       {"min_child_weight", "5"},
                                                       {"nthread", "1"},
                                                       {"verbosity", "0"},
                                                       {NULL, NULL}};
    struct tree_fit fit = {.parameters = PARAMETERS, .rounds = 1};
    chars_format(fit.parallel, "%u", options->trees ? options->trees : 100);
    return trees_fit(curves, &fit, options->seed, state, why);
}

static enum err gbt_fit(const struct freq_curves *curves, const struct freq_model_options *options,
                        void **state, struct error *why)
{
    static const struct tree_parameter PARAMETERS[] = {{"objective", "reg:squarederror"},
                                                       {"tree_method", "exact"},
                                                       {"max_depth", "6"},
                                                       {"learning_rate", "0.1"},
                                                       {"subsample", "0.8"},
                                                       {"colsample_bytree", "0.8"},
                                                       {"nthread", "1"},
                                                       {"verbosity", "0"},
                                                       {NULL, NULL}};
    struct tree_fit fit = {
        .parameters = PARAMETERS, .rounds = options->trees ? options->trees : 300, .parallel = "1"};
    return trees_fit(curves, &fit, options->seed, state, why);
}

/* ---- predicting ---- */

static enum err predict_with(const struct xgboost *x, handle booster, handle matrix, size_t count,
                             double *out, struct error *why)
{
    static const char CONFIG[] = "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, "
                                 "\"iteration_end\": 0, \"strict_shape\": false}";
    const uint64_t *shape = NULL;
    const float *values = NULL;
    uint64_t dimensions = 0;
    if (booster && x->predict(booster, matrix, CONFIG, &shape, &dimensions, &values))
        return failed(x, why);
    for (size_t i = 0; i < count; i++)
        out[i] = booster ? (double)values[i] : UNKNOWN;
    return ERR_OK;
}

static enum err trees_values(const void *state, const struct freq_target *target,
                             const double (*features)[ACTIVITY_FEATURES], size_t count,
                             double *watts, double *relative, struct error *why)
{
    const struct trees *trees = state;
    const struct xgboost *x = &trees->library;
    float *a = xmalloc((count + 1) * ACTIVITY_FEATURES * sizeof *a);
    handle matrix = NULL;
    (void)target;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < ACTIVITY_FEATURES; j++)
            a[i * ACTIVITY_FEATURES + j] = (float)features[i][j];
    enum err err =
        x->matrix_create(a, count, ACTIVITY_FEATURES, NAN, &matrix) ? failed(x, why) : ERR_OK;
    if (!err)
        err = predict_with(x, trees->power, matrix, count, watts, why);
    if (!err)
        err = predict_with(x, trees->time, matrix, count, relative, why);
    if (matrix)
        x->matrix_free(matrix);
    free(a);
    return err;
}

static enum err trees_predict(const void *state, const struct freq_target *target,
                              const double *mhz, size_t count, struct freq_prediction *out,
                              struct error *why)
{
    return activity_predict(trees_values, state, target, mhz, count, out, why);
}

const struct freq_model_kind freq_model_rf = {
    .name = "rf",
    .summary = "random forest on activities and clock (XGBoost)",
    .is_slow = true,
    .fit = rf_fit,
    .predict = trees_predict,
    .fields = TREES_FIELDS,
    .size = sizeof(struct trees),
};

const struct freq_model_kind freq_model_gbt = {
    .name = "gbt",
    .summary = "gradient-boosted trees on activities and clock (XGBoost)",
    .is_slow = true,
    .fit = gbt_fit,
    .predict = trees_predict,
    .fields = TREES_FIELDS,
    .size = sizeof(struct trees),
};
