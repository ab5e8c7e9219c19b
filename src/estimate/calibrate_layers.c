#include "estimate/calibrate_layers.h"

#include "core/text.h"
#include "core/units.h"
#include "estimate/layers_report.h"
#include "port/json_read.h"

struct reading {
    const struct layers_file *file;
    struct predictor *counter;
    struct calibrate_rows *rows;
    struct error *why;
};

static const struct jv *setting_at(const struct jv *model, int64_t index)
{
    const struct jv *setting = jv_first(jv_get(model, "settings"));
    while (setting && index-- > 0)
        setting = jv_next(setting);
    return setting;
}

static enum err count_passes(const struct reading *r, const struct jv *model,
                             const struct jv *window, int64_t index, struct calibrate_row *row)
{
    struct layers_pass pass;
    struct error inner = {0};
    const struct jv *setting = setting_at(model, index);
    double passes = jv_number(jv_get(window, "passes"));
    if (!setting || !is_known(passes))
        return err_set(r->why, ERR_BAD_VALUE, "%s: a window of no setting", r->file->path);
    enum err err = layers_pass_of(r->file, model, setting, &pass, r->why);
    if (err)
        return err;
    err = predictor_count(r->counter, &pass.question, &row->flops, &row->bytes, &inner);
    if (err)
        return err_set(r->why, err, "%s: %s (--model names the model's file)", r->file->path,
                       inner.text);
    row->flops *= pass.times * passes;
    row->bytes *= pass.times * passes;
    (void)str_copy(row->label, sizeof row->label, pass.label);
    return ERR_OK;
}

/* A window that stopped at components was disturbed, and has no joules. */
static enum err add_window(const struct reading *r, const struct jv *model, const struct jv *window)
{
    int64_t index;
    struct calibrate_row row = {
        .kind = CALIBRATE_IDLE,
        .precision = r->counter->has_precision ? r->counter->precision : PRECISION_FP32,
        .label = "idle",
        .latency_s = jv_number(jv_get(window, "time_s")),
        .energy_j = jv_number(jv_get(window, "energy_j")),
        .window_s = jv_number(jv_get(window, "time_s")),
        .updates = jv_number(jv_get(window, "updates")),
        .kernels = 1,
        .is_estimated = layers_model_is_estimated(model),
    };
    if (jv_bool(jv_get(window, "watched"), false) || !is_known(row.energy_j) ||
        !(row.latency_s > 0))
        return ERR_OK;
    if (jv_integer(jv_get(window, "setting"), &index)) {
        row.kind = CALIBRATE_LOAD;
        enum err err = count_passes(r, model, window, index, &row);
        if (err)
            return err;
    }
    return calibrate_rows_add(r->rows, &row, r->why);
}

enum err calibrate_layers(const char *path, struct predictor *counter, struct calibrate_rows *rows,
                          struct error *why)
{
    struct layers_file file;
    enum err err = layers_file_open(path, &file, why);
    if (err)
        return err;
    struct reading r = {.file = &file, .counter = counter, .rows = rows, .why = why};
    for (const struct jv *model = NULL; !err && (model = layers_file_model(&file, model));) {
        const struct jv *window = jv_first(jv_get(model, "windows"));
        for (; !err && window; window = jv_next(window))
            err = add_window(&r, model, window);
    }
    layers_file_close(&file);
    return err;
}
