#include "estimate/layers_report.h"

#include <string.h>

#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

static enum err refuse(const struct layers_file *file, const char *what, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%s: not a report of ipw layers: %s", file->path, what);
}

enum err layers_file_open(const char *path, struct layers_file *out, struct error *why)
{
    struct text bytes = {0};
    struct error inner = {0};
    *out = (struct layers_file){.path = path};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err) {
        err = jv_parse(text_get(&bytes), bytes.length, &out->report, &inner);
        if (err)
            err_set(why, err, "%s: %s", path, inner.text);
    }
    text_release(&bytes);
    for (const struct jv *model = NULL; !err && (model = layers_file_model(out, model));)
        if (!jv_is_array(jv_get(model, "settings")))
            err = refuse(out, "no settings", why);
    if (err)
        layers_file_close(out);
    return err;
}

void layers_file_close(struct layers_file *file)
{
    jv_free(file->report);
    file->report = NULL;
}

const struct jv *layers_file_model(const struct layers_file *file, const struct jv *before)
{
    const struct jv *models = jv_get(file->report, "models");
    if (jv_is_array(models))
        return before ? jv_next(before) : jv_first(models);
    return before ? NULL : file->report;
}

bool layers_model_is_estimated(const struct jv *model)
{
    const char *method = jv_text(jv_get(model, "method"));
    return method && !strcmp(method, "estimated");
}

enum err layers_pass_of(const struct layers_file *file, const struct jv *model,
                        const struct jv *setting, struct layers_pass *out, struct error *why)
{
    const char *phase = jv_text(jv_get(setting, "phase"));
    int64_t prompt, tokens, batch = 1;
    *out = (struct layers_pass){.question = {.model = jv_text(jv_get(model, "model"))}, .times = 1};
    if (!out->question.model || !phase || !jv_integer(jv_get(setting, "prompt_tokens"), &prompt) ||
        !jv_integer(jv_get(setting, "tokens"), &tokens) || tokens < 1)
        return refuse(file, "a setting without model, phase, prompt_tokens or tokens", why);
    if (!jv_integer(jv_path(model, "workload.batch"), &batch) || batch < 1)
        batch = 1;
    struct graph_options *pass = &out->question.setting;
    pass->batch = batch;
    pass->phase = strcmp(phase, "decode") ? GRAPH_PREFILL : GRAPH_DECODE;
    if (pass->phase == GRAPH_DECODE) { /* its tokens are of all sequences together */
        out->times = (double)tokens / (double)batch;
        pass->context = prompt + (tokens / batch + 1) / 2;
    } else {
        pass->tokens = prompt;
    }
    const char *slash = strrchr(out->question.model, '/');
    str_format(out->label, sizeof out->label, "%.60s %s at %lld tokens",
               slash ? slash + 1 : out->question.model, phase, (long long)prompt);
    return ERR_OK;
}
