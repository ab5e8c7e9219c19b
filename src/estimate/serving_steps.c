/* Time and energy of a step from a few estimates.  A step computes all its tokens together, except for attention.  So
 * it is the sum of
 *   - everything except attention, by the number of tokens: from passes over prompts;
 *   - the logits of more than one sequence: the difference to a decode pass of as many sequences;
 *   - attention of prompts, by pairs of tokens: from the same passes;
 *   - attention of decoding, by sequences and their mean context: from decode passes.
 * A step of a single kind thus equals the result of `ipw estimate`.  Between estimates it is interpolated linearly.
 *
 * An encoder runs once per request, over its prompt or over audio.  Then everything except attention is that of decode
 * passes, by the tokens of the decoder, and a prompt adds the remainder of a pass over it.
 *
 * Measured steps replace the times by a fit to them; the power remains that of the estimate. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/measured_csv.h"
#include "estimate/pass_estimate.h"
#include "estimate/serving.h"
#include "estimate/workload.h"
#include "stats/least_squares.h"

enum { KNOTS_MAX = 24, CONTEXTS = 4, MEASURED_TERMS = 5, MEASURED_MIN = 3 };
enum { CONTEXT_MIN = 2 }; /* a prompt and the token after it */
#define MEMORY_SHARE 0.92 /* share of the device memory: default gpu_memory_utilization of vLLM */

struct serving_steps {
    struct serving_cost *dense;              /* by tokens, up to max_tokens */
    struct serving_cost *logits;             /* by sequences, up to max_sequences */
    struct serving_cost (*decode)[CONTEXTS]; /* attention, by sequences and context */
    double contexts[CONTEXTS];
    size_t context_count;
    double pairs[KNOTS_MAX]; /* per entry of `prompt`: token pairs; with an encoder, prompts */
    struct serving_cost prompt[KNOTS_MAX];
    size_t knots;
    unsigned max_tokens, max_sequences;
    bool has_encoder, encodes_prompt; /* over the prompt; else over audio of fixed length */
    double prompt_length;             /* mean prompt length */
    double weights, activations, kv_bytes, capacity, idle_w; /* bytes of one device */
    struct serving_cost relative;
    bool is_measured;
    double measured[MEASURED_TERMS];
};

/* ---- costs ---- */

static struct serving_cost add_cost(struct serving_cost a, struct serving_cost b, double times)
{
    return (struct serving_cost){a.seconds + times * b.seconds, a.joules + times * b.joules};
}

static struct serving_cost lerp(struct serving_cost a, struct serving_cost b, double share)
{
    return (struct serving_cost){a.seconds + share * (b.seconds - a.seconds),
                                 a.joules + share * (b.joules - a.joules)};
}

/* Unknown joules stay unknown. */
static struct serving_cost clamp_cost(struct serving_cost cost)
{
    return (struct serving_cost){fmax(0, cost.seconds), cost.joules < 0 ? 0 : cost.joules};
}

/* Linear interpolation between ascending knots; extrapolated from the last two. */
static struct serving_cost interpolate(const double *x, const struct serving_cost *y, size_t count,
                                       double at)
{
    size_t i = 1;
    if (count == 1)
        return y[0];
    while (i + 1 < count && x[i] < at)
        i++;
    double share = (at - x[i - 1]) / (x[i] - x[i - 1]);
    return clamp_cost(lerp(y[i - 1], y[i], share));
}

static struct serving_cost decode_attention(const struct serving_steps *steps, double sequences,
                                            double context)
{
    unsigned row = (unsigned)fmin(sequences, steps->max_sequences);
    struct serving_cost one =
        interpolate(steps->contexts, steps->decode[row], steps->context_count, context / sequences);
    return add_cost((struct serving_cost){0, 0}, one, sequences / row);
}

/* Prompts encoded in this step. */
static double prompts_of(const struct serving_steps *steps, const struct serving_step *step)
{
    return steps->encodes_prompt ? step->prompt_tokens / steps->prompt_length : step->begun;
}

/* After an encoder of the prompt the decoder starts with one token. */
static double decoder_tokens(const struct serving_steps *steps, const struct serving_step *step)
{
    return step->sequences +
           (steps->encodes_prompt ? ceil(prompts_of(steps, step)) : step->prompt_tokens);
}

/* A chunk after the first reads at least the KV cache, as decoding does. */
static struct serving_cost prompt_attention(const struct serving_steps *steps,
                                            const struct serving_step *step)
{
    double amount = steps->has_encoder ? prompts_of(steps, step) : step->pairs;
    struct serving_cost cost = interpolate(steps->pairs, steps->prompt, steps->knots, amount);
    if (step->continued > 0 && !steps->has_encoder) {
        struct serving_cost read =
            decode_attention(steps, step->continued, step->continued_context);
        cost = read.seconds > cost.seconds ? read : cost;
    }
    return cost;
}

static struct serving_cost estimated_cost(const struct serving_steps *steps,
                                          const struct serving_step *step)
{
    unsigned tokens = (unsigned)decoder_tokens(steps, step);
    struct serving_cost sum = steps->dense[tokens < steps->max_tokens ? tokens : steps->max_tokens];
    if (step->sampled > 1)
        sum = add_cost(sum, steps->logits[(unsigned)fmin(step->sampled, steps->max_sequences)], 1);
    if (step->prompt_tokens > 0)
        sum = add_cost(sum, prompt_attention(steps, step), 1);
    if (step->sequences > 0)
        sum = add_cost(sum, decode_attention(steps, step->sequences, step->context), 1);
    return sum;
}

static void terms_of(const struct serving_step *step, double terms[MEASURED_TERMS])
{
    terms[0] = 1;
    terms[1] = step->prompt_tokens;
    terms[2] = step->pairs;
    terms[3] = step->sequences;
    terms[4] = step->context;
}

static struct serving_cost cost_of(const void *context, const struct serving_step *step)
{
    const struct serving_steps *steps = context;
    struct serving_cost cost = estimated_cost(steps, step);
    if (!steps->is_measured)
        return cost;
    double terms[MEASURED_TERMS], seconds = 0;
    terms_of(step, terms);
    for (size_t i = 0; i < MEASURED_TERMS; i++)
        seconds += terms[i] * steps->measured[i];
    return (struct serving_cost){seconds, cost.joules / cost.seconds * seconds};
}

/* ---- estimates ---- */

struct pass_cost {
    struct serving_cost dense, attention;
    struct estimate_memory memory; /* without its timeline */
    int64_t encoded;               /* tokens or states that the decoder attends to; 0: no encoder */
};

static enum err estimate_pass(const struct serving_question *question, enum graph_phase phase,
                              int64_t batch, int64_t length, struct pass_cost *out,
                              struct error *why)
{
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct workload_spec spec = *question->spec;
    spec.is_request = false;
    spec.setting = (struct graph_options){.phase = phase, .batch = batch};
    *(phase == GRAPH_DECODE ? &spec.setting.context : &spec.setting.tokens) = length;
    enum err err = workload_make(&spec, &work, why);
    if (err)
        return err;
    err = workload_estimate_make(&work, question->hardware, &question->candidate->config, true,
                                 &estimate, why);
    if (!err) {
        const struct partition *partition = &work.passes[0].partition;
        const struct subgraph_estimate *rows = estimate.passes[0].rows;
        *out = (struct pass_cost){.memory = estimate.memory};
        out->memory.timeline = NULL;
        for (size_t i = 0; i < partition->count; i++)
            if (partition->subgraphs[i].op == GRAPH_ATTENTION)
                out->attention =
                    add_cost(out->attention,
                             (struct serving_cost){rows[i].latency_s, rows[i].joules.total}, 1);
        out->dense = clamp_cost(
            add_cost((struct serving_cost){estimate.total.latency_s, estimate.total.joules.total},
                     out->attention, -1));
        const struct graph *graph = &work.passes[0].graph;
        for (size_t i = 0; i < graph->node_count; i++)
            if (graph->nodes[i].op == GRAPH_ATTENTION && graph->nodes[i].as.attention.cross_tokens)
                out->encoded = graph->nodes[i].as.attention.cross_tokens;
        workload_estimate_release(&estimate);
    }
    workload_release(&work);
    return err;
}

/* Everything except attention, by tokens; attention of prompts, by pairs. */
static enum err fill_prompts(const struct serving_question *question, struct serving_steps *steps,
                             struct error *why)
{
    double tokens[KNOTS_MAX];
    struct serving_cost dense[KNOTS_MAX];
    int64_t longest = question->load->longest_input, before = 0;
    for (int64_t wanted = 1; before < steps->max_tokens && steps->knots < KNOTS_MAX; wanted *= 2) {
        struct pass_cost pass;
        int64_t total = wanted < steps->max_tokens ? wanted : steps->max_tokens;
        int64_t length = total < longest ? total : longest;
        int64_t batch = (total + length - 1) / length;
        enum err err = estimate_pass(question, GRAPH_PREFILL, batch, length, &pass, why);
        if (err)
            return err;
        before = batch * length;
        tokens[steps->knots] = (double)before;
        dense[steps->knots] = pass.dense;
        steps->pairs[steps->knots] = (double)(batch * length * length);
        steps->prompt[steps->knots++] = pass.attention;
        steps->activations = fmax(steps->activations, pass.memory.activations_peak);
    }
    for (unsigned n = 1; n <= steps->max_tokens; n++)
        steps->dense[n] = interpolate(tokens, dense, steps->knots, n);
    return ERR_OK;
}

static void choose_contexts(int64_t longest, struct serving_steps *steps)
{
    static const int PARTS[CONTEXTS] = {16, 4, 2, 1};
    for (size_t i = 0; i < CONTEXTS; i++) {
        int64_t part = longest / PARTS[i];
        double context = part > CONTEXT_MIN ? (double)part : CONTEXT_MIN;
        if (!steps->context_count || context > steps->contexts[steps->context_count - 1])
            steps->contexts[steps->context_count++] = context;
    }
}

/* Attention of decoding and the logits of several sequences. */
static enum err fill_decode(const struct serving_question *question, struct serving_steps *steps,
                            struct error *why)
{
    double sequences[KNOTS_MAX];
    struct serving_cost dense[KNOTS_MAX], logits[KNOTS_MAX], attention[CONTEXTS][KNOTS_MAX];
    size_t knots = 0;
    for (unsigned wanted = 1, last = 0; last < steps->max_sequences && knots < KNOTS_MAX;
         wanted *= 2) {
        struct pass_cost pass = {0};
        last = wanted < steps->max_sequences ? wanted : steps->max_sequences;
        for (size_t c = 0; c < steps->context_count; c++) {
            enum err err = estimate_pass(question, GRAPH_DECODE, last, (int64_t)steps->contexts[c],
                                         &pass, why);
            if (err)
                return err;
            attention[c][knots] = pass.attention;
        }
        sequences[knots] = last;
        dense[knots++] = pass.dense;
        steps->weights = pass.memory.weights;
        steps->capacity = pass.memory.capacity;
        steps->has_encoder = pass.encoded > 0;
    }
    for (unsigned n = 1; steps->has_encoder && n <= steps->max_tokens; n++)
        steps->dense[n] = interpolate(sequences, dense, knots, n);
    for (size_t i = 0; i < knots; i++)
        logits[i] = clamp_cost(add_cost(dense[i], steps->dense[(unsigned)sequences[i]], -1));
    for (unsigned n = 1; n <= steps->max_sequences; n++) {
        steps->logits[n] = interpolate(sequences, logits, knots, n);
        for (size_t c = 0; c < steps->context_count; c++)
            steps->decode[n][c] = interpolate(sequences, attention[c], knots, n);
    }
    return ERR_OK;
}

/* Cost of a pass over prompts of mean length, minus that of its decoder tokens. */
static enum err fill_encoder(const struct serving_question *question, struct serving_steps *steps,
                             struct error *why)
{
    int64_t length = (int64_t)fmax(1, question->load->mean_input), last = 0;
    steps->prompt_length = (double)length;
    steps->knots = 0;
    for (int64_t prompts = 1; last < steps->max_tokens && steps->knots < KNOTS_MAX; prompts *= 2) {
        struct pass_cost pass;
        enum err err = estimate_pass(question, GRAPH_PREFILL, prompts, length, &pass, why);
        if (err)
            return err;
        last = prompts * length;
        steps->encodes_prompt = pass.encoded == length;
        int64_t tokens = steps->encodes_prompt ? prompts : last;
        tokens = tokens < steps->max_tokens ? tokens : steps->max_tokens;
        steps->pairs[steps->knots] = (double)prompts;
        steps->prompt[steps->knots++] =
            clamp_cost(add_cost(add_cost(pass.dense, pass.attention, 1), steps->dense[tokens], -1));
    }
    return ERR_OK;
}

/* Errors are those of a mean request, and the KV cache per token that of its mean context. */
static enum err fill_request(const struct serving_question *question, struct serving_steps *steps,
                             struct error *why)
{
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct pass_cost pass;
    struct workload_spec spec = *question->spec;
    const struct serving_load *load = question->load;
    double context = fmax(CONTEXT_MIN, floor(load->mean_input + load->mean_output / 2));
    spec.is_request = true;
    spec.setting = (struct graph_options){.batch = 1, .tokens = (int64_t)load->mean_input};
    spec.output_tokens = (int64_t)fmax(1, load->mean_output);
    enum err err = estimate_pass(question, GRAPH_DECODE, 1, (int64_t)context, &pass, why);
    if (!err)
        err = workload_make(&spec, &work, why);
    if (err)
        return err;
    err = workload_estimate_make(&work, question->hardware, &question->candidate->config, false,
                                 &estimate, why);
    if (!err) {
        const struct estimate_totals *total = &estimate.total;
        steps->kv_bytes = pass.memory.kv_cache / context;
        steps->relative = (struct serving_cost){total->latency_plus_minus / total->latency_s,
                                                total->joules_plus_minus / total->joules.total};
        steps->idle_w = question->hardware->idle_w.value * question->candidate->config.devices;
        workload_estimate_release(&estimate);
    }
    workload_release(&work);
    return err;
}

/* ---- measured steps ---- */

static void read_step(struct measured_csv *csv, struct serving_step *step, double *seconds)
{
    static const char *const COLUMNS[] = {"prompt_tokens", "sequences", "context"};
    double values[3];
    for (size_t i = 0; i < 3; i++) {
        values[i] = measured_csv_number(csv, COLUMNS[i]);
        values[i] = is_known(values[i]) ? values[i] : 0;
    }
    *seconds = measured_csv_number(csv, "seconds");
    if (!csv->err && !(*seconds > 0))
        measured_csv_fail(csv, "seconds", "must be above 0");
    *step = (struct serving_step){.sequences = values[1],
                                  .context = values[1] * values[2],
                                  .prompt_tokens = values[0],
                                  .pairs = values[0] * values[0]};
}

/* Relative residuals, so that short steps count as much as long ones.  With as many rows as terms the fit is exact,
 * whatever their error: the ± is then unknown. */
static enum err fit_measured(const double *rows, const double *ones, size_t count,
                             struct serving_steps *steps, struct error *why)
{
    double squares = 0;
    enum err err = least_squares_nonnegative(rows, ones, count, MEASURED_TERMS, steps->measured);
    if (err)
        return err_explain(why, err);
    for (size_t i = 0; i < count; i++) {
        double residual = -1;
        for (size_t k = 0; k < MEASURED_TERMS; k++)
            residual += rows[i * MEASURED_TERMS + k] * steps->measured[k];
        squares += residual * residual;
    }
    steps->relative.seconds =
        count > MEASURED_TERMS ? sqrt(squares / (double)(count - MEASURED_TERMS)) : UNKNOWN;
    steps->is_measured = true;
    return ERR_OK;
}

static enum err read_measured(const char *path, struct serving_steps *steps, struct error *why)
{
    struct measured_csv csv;
    measured_csv_open(&csv, path, why);
    size_t count = csv.err ? 0 : csv.grid.rows;
    double *rows = xcalloc(count + 1, MEASURED_TERMS * sizeof *rows);
    double *ones = xcalloc(count + 1, sizeof *ones);
    if (!csv.err && (count < MEASURED_MIN || !measured_csv_has(&csv, "seconds")))
        csv.err = err_set(why, ERR_BAD_VALUE,
                          "%s: measured steps are at least %d rows of prompt_tokens, sequences, "
                          "context and seconds",
                          path, MEASURED_MIN);
    for (csv.row = 0; !csv.err && csv.row < count; csv.row++) {
        struct serving_step step;
        double seconds, *terms = &rows[csv.row * MEASURED_TERMS];
        read_step(&csv, &step, &seconds);
        terms_of(&step, terms);
        for (size_t k = 0; k < MEASURED_TERMS; k++)
            terms[k] /= seconds;
        ones[csv.row] = 1;
    }
    enum err err = csv.err ? csv.err : fit_measured(rows, ones, count, steps, why);
    free(rows);
    free(ones);
    measured_csv_close(&csv);
    return err;
}

/* ---- policy ---- */

/* Defaults of vLLM 0.32's server, by device memory; an A100 has those of a small device. */
static const struct batch_defaults {
    double bytes_min;
    unsigned sequences, tokens;
} VLLM[] = {{160.0 * (1 << 30), 1024, 16384}, {70.0 * (1 << 30), 1024, 8192}, {0, 256, 2048}};

static struct batch_defaults vllm_defaults(const struct hardware *hardware)
{
    double bytes =
        hardware->memory_count ? hardware_main_memory(hardware)->capacity_bytes.value : UNKNOWN;
    size_t last = COUNT_OF(VLLM) - 1;
    size_t i = str_starts(hardware->id, "a100") ? last : 0;
    if (hardware->class == HARDWARE_CPU)
        return (struct batch_defaults){0, 128, 2048};
    while (i < last && !(bytes >= VLLM[i].bytes_min))
        i++;
    return VLLM[i];
}

/* Servers, in the order of SERVE_SERVERS.  TensorRT-LLM admits a request only when its whole KV cache is free
 * (GUARANTEED_NO_EVICT), and llama.cpp has a slot for it. */
static const struct server {
    const char *name;
    struct batch_defaults usual; /* zeroed: by device */
    unsigned block_tokens;
    bool reserves;
} SERVERS[] = {{"vllm", {0, 0, 0}, 16, false},
               {"tensorrt-llm", {0, 2048, 8192}, 32, true},
               {"llama.cpp", {0, 4, 2048}, 1, true}};
enum { VLLM_SERVER, TENSORRT_SERVER, LLAMA_SERVER };

/* The given one, or that of the runtime. */
static const struct server *server_of(const char *name, enum runtime_id runtime,
                                      const struct hardware *hardware)
{
    for (size_t i = 0; name && i < COUNT_OF(SERVERS); i++)
        if (str_equal(SERVERS[i].name, name))
            return &SERVERS[i];
    bool is_cpu = runtime != RUNTIME_VLLM && hardware->class == HARDWARE_CPU;
    if (runtime == RUNTIME_LLAMA_CPP || is_cpu)
        return &SERVERS[LLAMA_SERVER];
    return &SERVERS[runtime == RUNTIME_TENSORRT ? TENSORRT_SERVER : VLLM_SERVER];
}

static enum err complete_policy(const struct serving_question *question,
                                struct serving_policy *policy, struct error *why)
{
    const struct hardware *hardware = question->hardware;
    const struct server *server = server_of(policy->server, question->spec->runtime, hardware);
    struct batch_defaults usual = server->usual.sequences ? server->usual : vllm_defaults(hardware);
    int64_t limit = question->spec->model->context_length;
    if (limit && question->load->longest > limit)
        return err_set(why, ERR_USAGE,
                       "a request of %" PRId64 " tokens exceeds the context of %" PRId64
                       " tokens of %.100s",
                       question->load->longest, limit, question->spec->model->name);
    if (!policy->max_sequences)
        policy->max_sequences = usual.sequences;
    if (!policy->max_tokens)
        policy->max_tokens = usual.tokens;
    if (policy->max_sequences > policy->max_tokens)
        return err_set(why, ERR_USAGE,
                       "--max-num-seqs %u is above --max-num-batched-tokens %u: a step could not "
                       "decode them all",
                       policy->max_sequences, policy->max_tokens);
    policy->server = server->name;
    policy->block_tokens = server->block_tokens;
    policy->reserves = server->reserves;
    policy->replicas = policy->replicas ? policy->replicas : 1;
    return ERR_OK;
}

/* Memory of the device minus weights and the activations of the largest step; no limit if memory is unknown. */
static enum err limit_cache(const struct serving_question *question,
                            const struct serving_steps *steps, struct serving_policy *policy,
                            struct error *why)
{
    bool is_given = is_known(question->kv_cache_bytes);
    double share = is_given ? 1 : MEMORY_SHARE;
    double left = share * steps->capacity - steps->weights - steps->activations;
    double available = is_given ? question->kv_cache_bytes : left;
    policy->kv_tokens =
        is_known(available) && steps->kv_bytes > 0 ? floor(available / steps->kv_bytes) : INFINITY;
    if (left <= 0)
        return err_set(why, ERR_USAGE,
                       "no memory is left for the KV cache: %.3g GB of weights and %.2g GB of "
                       "activations on a device of %.3g GB (%g of it used); try --tensor-parallel, "
                       "a narrower --precision or a larger device",
                       steps->weights / 1e9, steps->activations / 1e9, steps->capacity / 1e9,
                       share);
    if (available > left)
        return err_set(why, ERR_USAGE,
                       "--kv-cache-gb %.4g exceeds the %.4g GB that %.3g GB of weights and %.2g GB "
                       "of activations leave on a device of %.3g GB",
                       available / 1e9, left / 1e9, steps->weights / 1e9, steps->activations / 1e9,
                       steps->capacity / 1e9);
    double usable = floor(policy->kv_tokens / policy->block_tokens) * policy->block_tokens;
    if ((double)question->load->longest > usable)
        return err_set(why, ERR_USAGE,
                       "a request of %" PRId64 " tokens exceeds the KV cache, which holds %.0f "
                       "tokens (%.3g GB)",
                       question->load->longest, usable, available / 1e9);
    return ERR_OK;
}

/* ---- the complete model ---- */

static void allocate(struct serving_steps *steps)
{
    steps->dense = xcalloc(steps->max_tokens + 1, sizeof *steps->dense);
    steps->logits = xcalloc(steps->max_sequences + 1, sizeof *steps->logits);
    steps->decode = xcalloc(steps->max_sequences + 1, sizeof *steps->decode);
}

enum err serving_steps_make(const struct serving_question *question, struct serving_policy *policy,
                            struct serving_steps **out, struct error *why)
{
    *out = NULL;
    enum err err = complete_policy(question, policy, why);
    struct serving_steps *steps = err ? NULL : XNEW(steps);
    if (!err) {
        steps->max_tokens = policy->max_tokens;
        steps->max_sequences = policy->max_sequences;
        choose_contexts(question->load->longest, steps);
        allocate(steps);
        err = fill_prompts(question, steps, why);
    }
    if (!err)
        err = fill_decode(question, steps, why);
    if (!err && steps->has_encoder)
        err = fill_encoder(question, steps, why);
    if (!err)
        err = fill_request(question, steps, why);
    if (!err)
        err = limit_cache(question, steps, policy, why);
    if (!err && question->measured)
        err = read_measured(question->measured, steps, why);
    if (err)
        serving_steps_release(steps);
    else
        *out = steps;
    return err;
}

void serving_steps_release(struct serving_steps *steps)
{
    if (!steps)
        return;
    free(steps->dense);
    free(steps->logits);
    free(steps->decode);
    free(steps);
}

struct serving_model serving_steps_model(const struct serving_steps *steps)
{
    return (struct serving_model){.cost = cost_of,
                                  .context = steps,
                                  .idle_w = steps->idle_w,
                                  .relative_s = steps->relative.seconds,
                                  .relative_j = steps->relative.joules,
                                  .kv_bytes = steps->kv_bytes};
}
