/* An ONNX model as a subject of `ipw layers`: two sessions of it run on the same random inputs.  The plain one gives the
 * energy of a run; the other one is profiled by the runtime, and gives the time of each node.  A node gets its share of
 * the energy above idle by its share of the time of a run. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx_inputs.h"
#include "runner/layers/campaign.h"
#include "runner/layers/node_trace.h"

enum {
    WARM_UPS = 2,
    EVENTS_MAX = 50000, /* of a profile: it has hundreds of bytes for each */
    WINDOWS = 8,        /* timed windows that share them */
    NODES_LEAST = 20,
    NODES_ASSUMED = 500,
};

struct onnx_replay {
    struct onnx_session *plain, *timed;
    struct onnx_inputs inputs;
    char *folder; /* of the profile */
    unsigned long profiled, profiled_max;
};

/* ---- loading ---- */

static enum err open_sessions(struct campaign *c, struct error *why)
{
    struct onnx_replay *onnx = c->onnx;
    struct onnx_options options = {.threads = c->options->threads, .library = c->options->library};
    const char *parent = getenv("TMPDIR");
    onnx->folder = xformat("%s/ipw-layers-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(onnx->folder)) {
        free(onnx->folder);
        onnx->folder = NULL;
        return err_set(why, ERR_IO, "cannot create a temporary folder for the profile");
    }
    char *prefix = path_join(onnx->folder, "nodes");
    enum err err = onnx_session_open(c->model->path, &options, &onnx->plain, why);
    options.profile = prefix;
    if (!err)
        err = onnx_session_open(c->model->path, &options, &onnx->timed, why);
    free(prefix);
    return err;
}

static enum err make_inputs(struct campaign *c, struct error *why)
{
    struct onnx_replay *onnx = c->onnx;
    const struct onnx_facts *facts = onnx_session_facts(onnx->plain);
    const struct onnx_input_options options = {
        .batch = c->options->batch,
        .seed = c->options->seed,
        .dims = c->options->dims,
        .dim_option = "--dim ",
        .value_option = "",
    };
    struct text text = {0};
    enum err err = onnx_inputs_make(onnx->plain, &options, &onnx->inputs, why);
    for (size_t i = 0; !err && i < facts->input_count; i++) {
        text_add(&text, i ? ", " : "");
        onnx_tensor_describe(&facts->inputs[i], &onnx->inputs.tensors[i], &text);
    }
    str_take(&c->model->inputs, &text);
    return err;
}

static enum err open_onnx(struct campaign *c, struct error *why)
{
    c->onnx = XNEW(c->onnx);
    c->times[0].slots = NULL;
    enum err err = open_sessions(c, why);
    if (!err)
        err = make_inputs(c, why);
    if (err)
        return err;
    const struct onnx_facts *facts = onnx_session_facts(c->onnx->plain);
    chars_format(c->model->facts.description, "ONNX Runtime %s, %s", facts->version,
                 facts->provider);
    c->model->threads = (int)facts->threads;
    c->model->granularity = LAYERS_BY_COMPONENT;
    campaign_add_setting(c->model, LAYERS_PREFILL, 0, 0);
    return ERR_OK;
}

static void close_onnx(struct campaign *c)
{
    struct onnx_replay *onnx = c->onnx;
    if (!onnx)
        return;
    if (onnx->timed) { /* it writes its profile when it closes, unless that was done */
        char *path = onnx_session_profile(onnx->timed);
        if (path)
            unlink(path);
        free(path);
    }
    onnx_session_close(onnx->timed);
    onnx_session_close(onnx->plain);
    onnx_inputs_release(&onnx->inputs);
    if (onnx->folder)
        rmdir(onnx->folder);
    free(onnx->folder);
    free(onnx);
    c->onnx = NULL;
}

/* ---- runs ---- */

static enum err run_once(struct campaign *c, bool timed, struct pass_durations *durations,
                         struct error *why)
{
    struct onnx_replay *onnx = c->onnx;
    struct onnx_session *session = timed ? onnx->timed : onnx->plain;
    struct onnx_tensor outputs[ONNX_PORTS_MAX];
    nanos from = clock_now();
    enum err err = onnx_run(session, onnx->inputs.tensors, outputs, NULL, c->cancel, why);
    if (err)
        return err;
    for (size_t i = 0; i < onnx_session_facts(session)->output_count; i++)
        onnx_tensor_release(&outputs[i]);
    if (durations)
        durations->seconds[durations->count++ % DURATIONS_MAX] = seconds(clock_now() - from);
    return ERR_OK;
}

static enum err warm_up(struct campaign *c, struct error *why)
{
    enum err err = ERR_OK;
    size_t nodes = nodes_in_file(c->model->path, c->options->dims);
    if (nodes < NODES_LEAST)
        nodes = nodes ? NODES_LEAST : NODES_ASSUMED;
    c->onnx->profiled_max = EVENTS_MAX / nodes;
    if (c->onnx->profiled_max < WINDOWS)
        c->onnx->profiled_max = WINDOWS;
    campaign_report(c, "warming up", NULL);
    for (int i = 0; !err && i < 2 * WARM_UPS; i++)
        err = run_once(c, i % 2, NULL, why);
    return err;
}

static bool wants(const struct campaign *c, bool timed)
{
    return !timed || c->onnx->profiled < c->onnx->profiled_max;
}

static enum err run_window(struct campaign *c, unsigned setting, struct layers_window *window,
                           struct error *why)
{
    struct onnx_replay *onnx = c->onnx;
    struct replay_times *times = &c->times[setting];
    struct pass_durations *durations = window->timed ? &times->timed : &times->plain;
    unsigned long most = window->timed ? onnx->profiled_max / WINDOWS : ULONG_MAX;
    enum err err = ERR_OK;
    replay_begin_window(c->session, window);
    nanos until = window->from + from_seconds(c->window_s);
    do {
        err = run_once(c, window->timed, durations, why);
        window->passes += !err;
        onnx->profiled += window->timed && !err;
    } while (!err && clock_now() < until && window->passes < most);
    replay_end_window(c->session, window);
    return err;
}

/* ---- nodes ---- */

static void read_trace(struct campaign *c, struct node_trace *trace)
{
    struct error why = {0};
    char *path = onnx_session_profile(c->onnx->timed);
    *trace = (struct node_trace){0};
    if (!path)
        return;
    if (node_trace_read(path, WARM_UPS, trace, &why))
        log_warn("the times of nodes are unknown: %s", why.text);
    unlink(path);
    free(path);
}

/* Shares of the energy by time: what is idle, and what is left of a run outside the nodes, is not theirs. */
static void share_energy(struct layers_model *model)
{
    struct layers_nodes *nodes = &model->nodes;
    const struct layers_setting *setting = &model->settings[0];
    double busy = 0, sum = 0, variance = 0;
    for (size_t i = 0; i < nodes->count; i++)
        busy += known_or(nodes->items[i].share.time_s, 0);
    double pass_s = fmax(known_or(setting->pass_s, busy), busy);
    double idle = model->idle.watts * setting->pass_s;
    double active = model->total.joules - known_or(idle, 0);
    double relative = model->total.statistical / model->total.joules;
    model->idle_joules = model->total.idle_joules = idle;
    model->total.active_joules = is_known(idle) ? active : UNKNOWN;
    for (size_t i = 0; i < nodes->count; i++) {
        struct layers_share *share = &nodes->items[i].share;
        share->joules = active * share->time_s / pass_s;
        share->sigma = share->joules * hypot(relative, share->time_sigma / share->time_s);
        sum += known_or(share->joules, 0);
        variance += known_or(share->sigma, 0) * known_or(share->sigma, 0);
    }
    bool has_energy = is_known(active);
    nodes->rest_s = pass_s - busy;
    nodes->rest_j = has_energy ? active * nodes->rest_s / pass_s : UNKNOWN;
    model->component_joules = has_energy ? sum : UNKNOWN;
    model->component_sigma = has_energy ? sqrt(variance) : UNKNOWN;
    model->unattributed_joules = nodes->rest_j;
}

static void finish(struct campaign *c)
{
    struct layers_model *model = c->model;
    struct node_trace trace;
    attribution_total(model);
    read_trace(c, &trace);
    struct node_question question = {
        .path = model->path,
        .facts = onnx_session_facts(c->onnx->plain),
        .inputs = &c->onnx->inputs,
        .device = c->options->estimate,
    };
    nodes_join(&question, &trace, model);
    share_energy(model);
    node_trace_release(&trace);
}

const struct layers_subject layers_onnx = {
    .open = open_onnx,
    .close = close_onnx,
    .warm_up = warm_up,
    .wants = wants,
    .window = run_window,
    .finish = finish,
};
