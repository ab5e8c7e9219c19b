#include "estimate/validate_layers.h"

#include "core/text.h"
#include "estimate/layers_report.h"
#include "port/json_read.h"

static enum err add_setting(const struct layers_file *file, const struct jv *model,
                            const struct jv *setting, struct predictor *predictor,
                            struct validation *out, struct error *why)
{
    struct layers_pass pass;
    struct validate_row row = {.measured_s = jv_number(jv_get(setting, "time_s")),
                               .measured_j = jv_number(jv_get(setting, "energy_j")),
                               /* Passes are run again and again for as long as the sensors need. */
                               .window_s = VALIDATE_ENERGY_LEAST_S};
    struct prediction predicted;
    struct error inner = {0};
    enum err err = layers_pass_of(file, model, setting, &pass, why);
    if (err)
        return err;
    err = predictor_predict(predictor, &pass.question, &predicted, &inner);
    if (err)
        return err_set(why, err, "%s: %s (--model names the model's file)", file->path, inner.text);
    (void)str_copy(row.label, sizeof row.label, pass.label);
    row.predicted_s = pass.times * predicted.latency_s;
    row.predicted_j = pass.times * predicted.joules;
    row.regime = predicted.regime;
    return validation_add(out, &row, why);
}

enum err validate_layers(const char *path, struct predictor *predictor, struct validation *out,
                         struct error *why)
{
    struct layers_file file;
    enum err err = layers_file_open(path, &file, why);
    if (err)
        return err;
    for (const struct jv *model = NULL; !err && (model = layers_file_model(&file, model));) {
        const struct jv *setting = jv_first(jv_get(model, "settings"));
        out->is_estimated |= layers_model_is_estimated(model);
        for (; !err && setting; setting = jv_next(setting))
            err = add_setting(&file, model, setting, predictor, out, why);
    }
    layers_file_close(&file);
    return err;
}
