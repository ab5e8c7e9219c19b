/* Builds the graphs and partitions of the passes; of the decode steps of a request only a few (see the header). */
#include "estimate/workload.h"

static enum err add_pass(struct workload *work, const struct graph_options *setting, double times,
                         struct error *why)
{
    struct workload_pass *pass = &work->passes[work->count];
    *pass = (struct workload_pass){.setting = *setting, .times = times};
    enum err err = model_graph(work->spec.model, &pass->setting, &pass->graph, why);
    if (err)
        return err;
    err = partition_make(&pass->graph, work->spec.fusion, &pass->partition, why);
    if (err) {
        graph_release(&pass->graph);
        return err;
    }
    work->count++;
    work->has_stored = work->has_stored || pass->partition.total.weights.stored_weights > 0;
    return ERR_OK;
}

static enum err make_pass(struct workload *work, struct error *why)
{
    const struct graph_options *asked = &work->spec.setting;
    enum err err = add_pass(work, asked, 1, why);
    if (err)
        return err;
    const struct workload_pass *pass = &work->passes[0];
    work->spec.setting = pass->setting;
    work->batch = work->units = pass->graph.batch;
    work->unit = "sample";
    if (work->spec.model->has_phases) {
        bool decodes = pass->setting.phase == GRAPH_DECODE;
        work->units = pass->graph.tokens;
        work->unit = decodes ? "output token" : "prompt token";
    }
    return ERR_OK;
}

/* How often step `at` of those built counts: once for itself, and half for each step between it and a
 * neighbor, which is the sum of linear interpolation. */
static double step_times(const int64_t *built, size_t built_count, size_t at)
{
    double times = 1;
    if (at > 0)
        times += (double)(built[at] - built[at - 1] - 1) / 2;
    if (at + 1 < built_count)
        times += (double)(built[at + 1] - built[at] - 1) / 2;
    return times;
}

/* Chooses which of `count` steps are built: the first, the last, and some between. */
static size_t choose_steps(int64_t count, int64_t *built)
{
    size_t most = count < WORKLOAD_STEPS_MOST ? (size_t)count : WORKLOAD_STEPS_MOST;
    for (size_t i = 0; i < most; i++)
        built[i] = most > 1 ? (count - 1) * (int64_t)i / (int64_t)(most - 1) : 0;
    return most;
}

static enum err make_request(struct workload *work, struct error *why)
{
    struct graph_options setting = work->spec.setting;
    int64_t built[WORKLOAD_STEPS_MOST];
    setting.phase = GRAPH_PREFILL;
    enum err err = add_pass(work, &setting, 1, why);
    if (err)
        return err;
    work->spec.setting = work->passes[0].setting;
    work->batch = work->passes[0].graph.batch;
    size_t steps = choose_steps(work->spec.output_tokens - 1, built);
    for (size_t i = 0; !err && i < steps; i++) {
        setting = work->spec.setting;
        setting.phase = GRAPH_DECODE;
        setting.context = setting.tokens + built[i] + 1; /* its own token included */
        err = add_pass(work, &setting, step_times(built, steps, i), why);
    }
    if (err && work->count < steps) {
        /* Of several contexts that are too long for the model, report the longest. */
        setting.context = setting.tokens + built[steps - 1] + 1;
        enum err longest = add_pass(work, &setting, 1, why);
        err = longest ? longest : err;
    }
    work->units = work->batch * (double)work->spec.output_tokens;
    work->unit = "output token";
    return err;
}

enum err workload_make(const struct workload_spec *spec, struct workload *out, struct error *why)
{
    *out = (struct workload){.spec = *spec};
    enum err err = spec->is_request ? make_request(out, why) : make_pass(out, why);
    if (err)
        workload_release(out);
    return err;
}

void workload_drop_graphs(struct workload *work)
{
    for (size_t i = 0; i < work->count; i++) {
        partition_release(&work->passes[i].partition);
        graph_release(&work->passes[i].graph);
    }
}

void workload_release(struct workload *work)
{
    workload_drop_graphs(work);
    *work = (struct workload){0};
}

/* ---- demands ---- */

struct workload_demand workload_demand(const struct workload_spec *spec)
{
    const struct graph_options *setting = &spec->setting;
    if (spec->is_request)
        return (struct workload_demand){setting->tokens, setting->tokens + spec->output_tokens};
    if (spec->model->has_phases && setting->phase == GRAPH_DECODE)
        return (struct workload_demand){0, setting->context};
    return (struct workload_demand){setting->tokens, 0};
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int workload_demand_compare(const struct workload *a, const struct workload *b)
{
    struct workload_demand first = workload_demand(&a->spec), second = workload_demand(&b->spec);
    int by_prompt = compare(first.prompt, second.prompt);
    return by_prompt ? by_prompt : compare(first.context, second.context);
}
