#include "estimate/validate_layers.h"

#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "port/small_file.h"

struct reading {
    const char *path;
    struct predictor *predictor;
    struct validation *out;
    struct error *why;
};

static enum err refuse(const struct reading *r, const char *what)
{
    return err_set(r->why, ERR_BAD_VALUE, "%s: not a report of ipw layers: %s", r->path, what);
}

/* Tokens that were decoded one after another cost a straight line in the length of the cache: the step in
 * their middle, as often as there are tokens. */
static double set_pass(const struct jv *setting, int64_t prompt, int64_t tokens,
                       struct graph_setting *out)
{
    const char *phase = jv_text(jv_get(setting, "phase"));
    if (phase && !strcmp(phase, "decode")) {
        out->phase = GRAPH_DECODE;
        out->context = prompt + (tokens + 1) / 2;
        return (double)tokens;
    }
    out->phase = GRAPH_PREFILL;
    out->tokens = prompt;
    return 1;
}

static enum err add_setting(const struct reading *r, const struct jv *model,
                            const struct jv *setting)
{
    struct predict_question question = {.model = jv_text(jv_get(model, "model"))};
    struct validate_row row = {.measured_s = jv_number(jv_get(setting, "time_s")),
                               .measured_j = jv_number(jv_get(setting, "energy_j")),
                               /* Passes are run again and again for as long as the sensors need. */
                               .window_s = VALIDATE_ENERGY_LEAST_S};
    struct predicted predicted;
    struct error inner = {0};
    int64_t prompt, tokens, batch = 1;
    if (!question.model || !jv_integer(jv_get(setting, "prompt_tokens"), &prompt) ||
        !jv_integer(jv_get(setting, "tokens"), &tokens) || tokens < 1)
        return refuse(r, "a setting without model, prompt_tokens or tokens");
    (void)jv_integer(jv_path(model, "workload.batch"), &batch);
    question.setting.batch = batch;
    /* Its tokens are of all sequences together. */
    double times =
        set_pass(setting, prompt, batch > 0 ? tokens / batch : tokens, &question.setting);
    const char *slash = strrchr(question.model, '/');
    str_format(row.label, sizeof row.label, "%.60s %s at %lld tokens",
               slash ? slash + 1 : question.model,
               question.setting.phase == GRAPH_DECODE ? "decode" : "prefill", (long long)prompt);
    enum err err = predict_model(r->predictor, &question, &predicted, &inner);
    if (err)
        return err_set(r->why, err, "%s: %s (--model names the model's file)", r->path, inner.text);
    row.predicted_s = times * predicted.latency_s;
    row.predicted_j = times * predicted.joules;
    row.regime = predicted.regime;
    return validation_add(r->out, &row, r->why);
}

static enum err add_model(const struct reading *r, const struct jv *model)
{
    const struct jv *settings = jv_get(model, "settings");
    const char *method = jv_text(jv_get(model, "method"));
    if (!jv_is_array(settings))
        return refuse(r, "no settings");
    r->out->is_estimated |= method && !strcmp(method, "estimated");
    for (const struct jv *setting = jv_first(settings); setting; setting = jv_next(setting)) {
        enum err err = add_setting(r, model, setting);
        if (err)
            return err;
    }
    return ERR_OK;
}

enum err validate_layers(const char *path, struct predictor *predictor, struct validation *out,
                         struct error *why)
{
    struct text bytes = {0};
    struct jv *report = NULL;
    struct error inner = {0};
    struct reading r = {.path = path, .predictor = predictor, .out = out, .why = why};
    enum err err = small_file_read(path, "a report of ipw layers", &bytes, why);
    if (!err) {
        err = jv_parse(text_get(&bytes), bytes.length, &report, &inner);
        if (err)
            err_set(why, err, "%s: %s", path, inner.text);
    }
    const struct jv *models = jv_get(report, "models");
    if (!err && !jv_is_array(models))
        err = add_model(&r, report);
    for (const struct jv *model = jv_first(models); !err && model; model = jv_next(model))
        err = add_model(&r, model);
    jv_free(report);
    text_release(&bytes);
    return err;
}
