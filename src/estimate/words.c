/* Sentences from the fields of an estimate alone: figures with units and prefixes are the business of the reports. */
#include "estimate/words.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

/* A file with quantized products: "int8 as in the file, 3 % of MACs in fp32". */
static void stored_words(char *to, const struct workload_estimate *estimate)
{
    const struct graph_precision *file = &estimate->work->file;
    const char *name = precision_name(estimate->config.precision);
    char computed[64] = "";
    if (estimate->used != estimate->config.precision)
        chars_format(computed, ", computed in %s", precision_name(estimate->used));
    if (!file->is_known || file->products == file->floats ||
        file->products != estimate->config.precision)
        str_format(to, ESTIMATE_WORDS_MAX, "weights as stored, %s%s", name, computed);
    else if (file->share > 0.9995)
        str_format(to, ESTIMATE_WORDS_MAX, "%s as in the file%s", name, computed);
    else
        str_format(to, ESTIMATE_WORDS_MAX, "%s as in the file%s (%.1f %% of MACs; others %s)", name,
                   computed, 100 * file->share, precision_name(file->floats));
}

/* The precision of the model's file if the estimate uses another: "fp32"; else NULL. */
static const char *file_precision(const struct workload_estimate *estimate)
{
    const struct graph_precision *file = &estimate->work->file;
    bool is_kept = estimate->config.keeps_stored || estimate->config.precision == file->products;
    return file->is_known && !is_kept ? precision_name(file->products) : NULL;
}

/* "fp16", "weights as stored, fp16", "int8 (computed in fp16)", "fp16 (the file is fp32)". */
static void precision_words(char *to, const struct workload_estimate *estimate)
{
    const struct estimate_config *config = &estimate->config;
    const char *file = file_precision(estimate);
    char computed[64] = "", of_file[64] = "";
    if (config->keeps_stored) {
        stored_words(to, estimate);
        return;
    }
    bool is_other = estimate->used != config->precision;
    if (is_other)
        chars_format(computed, "computed in %s", precision_name(estimate->used));
    if (file)
        chars_format(of_file, "the file is %s", file);
    str_format(to, ESTIMATE_WORDS_MAX, "%s%s%s%s%s%s", precision_name(config->precision),
               file || is_other ? " (" : "", computed, file && is_other ? "; " : "", of_file,
               file || is_other ? ")" : "");
}

/* ", 512 prompt and 128 output tokens", ", decode at context 1024". */
static void tokens_words(char *to, const struct estimate_workload *work)
{
    const struct graph_options *setting = &work->spec.setting;
    to[0] = '\0';
    if (work->spec.is_request)
        str_format(to, ESTIMATE_WORDS_MAX, ", %" PRId64 " prompt and %" PRId64 " output tokens",
                   setting->tokens, work->spec.output_tokens);
    else if (work->spec.model->has_phases && setting->phase == GRAPH_DECODE)
        str_format(to, ESTIMATE_WORDS_MAX, ", decode at context %" PRId64, setting->context);
    else if (work->spec.model->has_phases)
        str_format(to, ESTIMATE_WORDS_MAX, ", prefill of %" PRId64 " tokens", setting->tokens);
    else if (work->passes[0].graph.tokens > 0 && setting->tokens > 0)
        str_format(to, ESTIMATE_WORDS_MAX, ", %" PRId64 " tokens", setting->tokens);
    else if (setting->image_width > 0)
        str_format(to, ESTIMATE_WORDS_MAX, ", %" PRId64 " x %" PRId64 " pixels", setting->image,
                   setting->image_width);
    else if (setting->image > 0)
        str_format(to, ESTIMATE_WORDS_MAX, ", %" PRId64 " pixels", setting->image);
}

char *words_setting(char *to, const struct workload_estimate *estimate)
{
    const struct estimate_workload *work = estimate->work;
    char precision[ESTIMATE_WORDS_MAX];
    char tokens[ESTIMATE_WORDS_MAX];
    char devices[32] = "";
    char stages[32] = "";
    bool is_plain = work->spec.fusion == PARTITION_PLAIN && work->spec.runtime == RUNTIME_IDEAL;
    precision_words(precision, estimate);
    tokens_words(tokens, work);
    if (estimate_devices(&estimate->config) > 1)
        chars_format(devices, ", %d devices", estimate_devices(&estimate->config));
    if (estimate->config.stages > 1)
        chars_format(stages, ", %d stages", estimate->config.stages);
    str_format(to, ESTIMATE_WORDS_MAX, "%s, batch %.0f%s%s%s%s", precision, work->batch, tokens,
               devices, stages, is_plain ? ", no fusion" : "");
    return to;
}

const char *words_precision(const struct estimate_config *config)
{
    return config->keeps_stored ? "stored" : precision_name(config->precision);
}

const char *words_phase(const struct workload_spec *question)
{
    if (!question->model->has_phases)
        return "whole";
    if (question->is_request)
        return "request";
    return question->setting.phase == GRAPH_DECODE ? "decode" : "prefill";
}

const char *words_unit(const struct estimate_workload *work)
{
    return strstr(work->unit, "token") ? "token" : work->unit;
}

char *words_device(char *to, const struct hardware *hardware)
{
    const char *point = strchr(hardware->id, '@');
    str_format(to, ESTIMATE_WORDS_MAX, "%s%s", hardware->name, point ? point : "");
    return to;
}

const char *words_kernels(const struct workload_spec *spec)
{
    static const char *const KERNELS[RUNTIME_COUNT] = {
#define RUNTIME(constant, name, fusion, rules, host, tf32, error, evidence, about)                 \
    [RUNTIME_##constant] = "kernels of " name,
#include "estimate/runtimes.def"
#undef RUNTIME
    };
    if (spec->runtime != RUNTIME_IDEAL)
        return KERNELS[spec->runtime];
    return workload_is_bound(spec) ? "lower bound with ideal kernels"
                                   : "ideal kernels without fusion";
}

enum evidence words_evidence(const struct workload_spec *spec, const struct hardware *hardware,
                             enum precision precision)
{
    return runtime_evidence(spec->runtime,
                            &(struct runtime_use){hardware, spec->model->has_phases, precision});
}

char *words_runtime(char *to, const struct workload_spec *spec, const struct hardware *hardware,
                    enum precision precision)
{
    if (spec->runtime == RUNTIME_IDEAL)
        str_format(to, ESTIMATE_WORDS_MAX, "ideal (%s)",
                   workload_is_bound(spec) ? "lower bound" : "no fusion");
    else
        str_format(to, ESTIMATE_WORDS_MAX, "%s (%s)", runtime_at(spec->runtime)->name,
                   evidence_name(words_evidence(spec, hardware, precision)));
    return to;
}

struct runtime_host words_runtime_host(const struct workload_estimate *estimate)
{
    const struct estimate_config *config = &estimate->config;
    return runtime_host(config->runtime, estimate->hardware, config->host_launch_s);
}

char *words_basis(char *to, const struct workload_estimate *estimate)
{
    const struct estimate_shipped *shipped = &estimate->shipped;
    const struct runtime *runtime = runtime_at(estimate->config.runtime);
    const char *kernels = words_kernels(&estimate->work->spec);
    if (is_known(shipped->max))
        str_format(to, ESTIMATE_WORDS_MAX, "%s; measured models took %.1f-%.1f times as long",
                   kernels, shipped->min, shipped->max);
    else if (estimate->config.runtime == RUNTIME_IDEAL)
        str_format(to, ESTIMATE_WORDS_MAX, "%s; the ± covers published figures of LLMs", kernels);
    else
        str_format(to, ESTIMATE_WORDS_MAX, "%s%s: %s", kernels,
                   estimate->work->spec.has_default_runtime ? " (default)" : "", runtime->about);
    return to;
}

bool words_host(char *to, const struct workload_estimate *estimate)
{
    const struct runtime_host host = words_runtime_host(estimate);
    if (!(estimate->total.host_plus_minus > 0))
        return false;
    str_format(to, ESTIMATE_WORDS_MAX,
               "host launch time assumed: %.3g µs, ± %.0f %%; set it with --host-launch-us",
               1e6 * host.launch_s, 100 * host.spread);
    return true;
}
