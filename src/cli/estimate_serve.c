/* Simulates a server under load: the load from options or a trace, the step times from estimates of the model on one
 * device, and a report of every rate.  Progress goes to stderr. */
#include "cli/estimate_views.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/result.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "estimate/estimate_grid.h"
#include "estimate/serving.h"
#include "estimate/workload.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/reports.h"

/* Default number of requests per replica, up to 20 000 in total. */
enum { REQUESTS_DEFAULT = 2000, REPLICAS_DEFAULT_MAX = 10 };

const char *const SERVE_PERCENTILES[] = {"p50", "p95", "p99", "mean", NULL};
const char *const SERVE_SERVERS[] = {"vllm", "tensorrt-llm", "llama.cpp", NULL};

struct view {
    const struct serve_command *command;
    struct workload_list list;
    struct serving_load load;
    struct serving_policy policy;
    struct serving_steps *steps;
    struct serving_model model;
    struct serving_slo slo;
    struct serving_curve curve;
    double *rates;
    size_t rate_count;
};

/* ---- options ---- */

enum err estimate_serve_check(const struct estimate_serve_options *o, struct error *why)
{
    static const char *const OWN[] = {"request-rate",
                                      "trace",
                                      "requests",
                                      "replicas",
                                      "server",
                                      "max-num-seqs",
                                      "max-num-batched-tokens",
                                      "kv-cache-gb",
                                      "step-times",
                                      "slo-ttft-ms",
                                      "slo-itl-ms",
                                      "slo-percentile",
                                      "seed",
                                      NULL};
    const char *own = option_given(OWN);
    if (own && !o->serve)
        return err_set(why, ERR_USAGE, "--%s needs --serve", own);
    return ERR_OK;
}

/* Options for single passes or tables of estimates have no effect here. */
static enum err check_options(const struct serve_command *command, struct error *why)
{
    const struct workload_options *work = command->workload;
    const struct estimate_serve_options *o = command->options;
    static const char *const OTHERS[] = {"batch", "phase", "context", "sweep", "compare", NULL};
    const char *other = option_given(OTHERS);
    if (other)
        return err_set(why, ERR_USAGE, "--serve takes no --%s", other);
    if (work->stages > 1)
        return err_set(why, ERR_USAGE,
                       "--serve takes no --pipeline-parallel: it simulates the steps of one stage; "
                       "use --tensor-parallel, or estimate requests without --serve");
    if (!command->model->has_phases)
        return err_set(why, ERR_USAGE,
                       "--serve simulates autoregressive decoders: %.100s is not one",
                       command->model->name);
    if (o->trace && (work->prompt_tokens || command->output_tokens || o->requests || o->seed))
        return err_set(why, ERR_USAGE,
                       "--trace gives the requests: omit --prompt-tokens, --output-tokens, "
                       "--requests and --seed");
    if (o->percentile && !(o->ttft_ms > 0) && !(o->itl_ms > 0))
        return err_set(why, ERR_USAGE, "--slo-percentile needs --slo-ttft-ms or --slo-itl-ms");
    return ERR_OK;
}

static struct serving_slo slo_of(const struct estimate_serve_options *o)
{
    struct serving_slo slo = {.ttft_s = o->ttft_ms > 0 ? o->ttft_ms / 1e3 : UNKNOWN,
                              .itl_s = o->itl_ms > 0 ? o->itl_ms / 1e3 : UNKNOWN,
                              .quantile = -1};
    const char *const *quantile =
        STR_FIND(o->percentile ? o->percentile : "p95", SERVING_QUANTILE_NAME);
    if (quantile)
        slo.quantile = (int)(quantile - SERVING_QUANTILE_NAME);
    return slo;
}

/* ---- the load ---- */

/* Default lengths as for a single request, halved until they fit into the context. */
static void default_lengths(const struct workload_spec *spec, struct serving_lengths *input,
                            struct serving_lengths *output)
{
    int64_t limit = spec->model->context_length, prompt = spec->setting.tokens;
    int64_t made = spec->output_tokens;
    for (; limit && prompt > 1 && prompt + made > limit; prompt /= 2)
        made = made > 1 ? made / 2 : 1;
    *input = (struct serving_lengths){prompt, prompt};
    *output = (struct serving_lengths){made, made};
}

static enum err draw_load(const struct serve_command *command, const struct workload_spec *spec,
                          struct serving_load *out, struct error *why)
{
    const struct estimate_serve_options *o = command->options;
    const char *prompt = command->workload->prompt_tokens;
    struct serving_lengths input, output;
    default_lengths(spec, &input, &output);
    enum err err = prompt ? serving_lengths_parse("prompt-tokens", prompt, &input, why) : ERR_OK;
    if (!err && command->output_tokens)
        err = serving_lengths_parse("output-tokens", command->output_tokens, &output, why);
    if (err)
        return err;
    unsigned replicas = o->replicas < 1 ? 1 : o->replicas;
    if (replicas > REPLICAS_DEFAULT_MAX)
        replicas = REPLICAS_DEFAULT_MAX;
    serving_load_draw(o->requests ? o->requests : REQUESTS_DEFAULT * replicas, input, output,
                      o->seed, out);
    return ERR_OK;
}

/* A server does not run a model in eager mode. */
static void run_on(struct workload_spec *spec, const struct hardware *hardware)
{
    workload_spec_run_on(spec, hardware);
    if (spec->has_default_runtime && spec->runtime == RUNTIME_PYTORCH_EAGER) {
        spec->runtime = RUNTIME_VLLM;
        spec->fusion = runtime_at(spec->runtime)->fusion;
    }
}

static enum err find_load(struct view *view, struct error *why)
{
    const struct serve_command *command = view->command;
    const struct estimate_serve_options *o = command->options;
    struct workload_options common = *command->workload;
    common.prompt_tokens = NULL;
    enum err err = workload_list_make(&common, command->model, &view->list, why);
    if (!err)
        run_on(&view->list.items[0], &command->candidates->hardware[0]);
    if (!err)
        err = o->trace ? serving_load_read(o->trace, &view->load, why)
                       : draw_load(command, &view->list.items[0], &view->load, why);
    if (!err && o->rates)
        return serving_rates_parse(o->rates, &view->rates, &view->rate_count, why);
    if (err || !o->trace)
        return err;
    if (!is_known(view->load.rate))
        return err_set(why, ERR_USAGE,
                       "%s: all requests arrive at the same time: give --request-rate", o->trace);
    view->rates = xmalloc(sizeof *view->rates);
    view->rates[view->rate_count++] = view->load.rate;
    return ERR_OK;
}

/* ---- the simulation ---- */

static void show_progress(unsigned done, unsigned all)
{
    static unsigned shown;
    unsigned percent = all ? 100 * done / all : 100;
    if (!wants_color(STDERR_FILENO) || percent == shown)
        return;
    shown = percent;
    if (clear_progress())
        notify("simulating %u %%", percent);
}

static enum err check_candidates(const struct serve_command *command,
                                 const struct workload_spec *spec, struct error *why)
{
    struct estimate_workload first;
    enum err err = workload_make(spec, &first, why);
    if (err)
        return err;
    err = candidates_make(command->wanted, &first, command->candidates, why);
    workload_release(&first);
    if (!err && command->candidates->count != 1)
        err = err_set(why, ERR_USAGE, "--serve simulates one device and precision, not %zu",
                      command->candidates->count);
    return err;
}

static enum err simulate(struct view *view, struct error *why)
{
    const struct serve_command *command = view->command;
    const struct estimate_serve_options *o = command->options;
    const struct grid_candidate *candidate = &command->candidates->items[0];
    const struct serving_question question = {
        .candidate = candidate,
        .hardware = &command->candidates->hardware[candidate->device],
        .spec = &view->list.items[0],
        .load = &view->load,
        .measured = o->step_times,
        .kv_cache_bytes = o->kv_cache_gb > 0 ? 1e9 * o->kv_cache_gb : UNKNOWN,
    };
    view->policy = (struct serving_policy){.server = o->server,
                                           .max_sequences = o->max_sequences,
                                           .max_tokens = o->max_tokens,
                                           .replicas = o->replicas};
    view->slo = slo_of(o);
    enum err err = serving_steps_make(&question, &view->policy, &view->steps, why);
    if (err)
        return err;
    view->model = serving_steps_model(view->steps);
    const struct serving_run run = {
        .model = &view->model, .policy = &view->policy, .load = &view->load, .time_scale = 1};
    err = serving_curve_make(&run, view->rates, view->rate_count, &view->slo, show_progress,
                             &view->curve, why);
    clear_progress();
    return err;
}

/* ---- output ---- */

static void fill_result(const struct view *view, struct result *result)
{
    const struct serve_command *command = view->command;
    const struct grid_candidate *candidate = &command->candidates->items[0];
    const struct serving_outcome outcome = {
        .spec = &view->list.items[0],
        .hardware = &command->candidates->hardware[candidate->device],
        .config = &candidate->config,
        .model = &view->model,
        .policy = &view->policy,
        .load = &view->load,
        .slo = &view->slo,
        .curve = &view->curve,
        .tariff = command->tariff,
        .trace = command->options->trace,
        .measured = command->options->step_times,
        .seed = command->options->seed,
    };
    serving_to_result(&outcome, result);
}

static enum err draw(const struct serve_command *command, const struct result *result,
                     struct error *why)
{
    struct figure figure = {0};
    if (!command->plot)
        return ERR_OK;
    return gnuplot_draw_file(&figure, serving_figure(result, &figure, why), command->plot, why);
}

/* Whether a simulated or searched load meets the SLO. */
static bool some_load_meets(const struct serving_curve *curve)
{
    bool is_met = curve->largest.rate > 0;
    for (size_t i = 0; i < curve->count; i++)
        is_met = is_met || curve->points[i].meets;
    return is_met;
}

int estimate_serve(const struct serve_command *command)
{
    struct view view = {.command = command};
    struct result result = {0};
    struct error why = {0};
    int code = EXIT_DONE;
    enum err err = check_options(command, &why);
    if (!err)
        err = find_load(&view, &why);
    if (!err)
        err = check_candidates(command, &view.list.items[0], &why);
    if (!err)
        err = simulate(&view, &why);
    if (!err) {
        fill_result(&view, &result);
        err = draw(command, &result, &why);
    }
    if (err)
        code = print_name_err(err, &why);
    else
        code = deliver_printed(command->output, &result, command->format, &SERVING_VIEWS);
    if (!code && !some_load_meets(&view.curve))
        code = EXIT_FAILED;
    serving_curve_release(&view.curve);
    serving_steps_release(view.steps);
    serving_load_release(&view.load);
    workload_list_release(&view.list);
    free(view.rates);
    result_release(&result);
    return code;
}
