/* Builds graphs of one kind of operation with ggml, as llama.cpp does, and computes them repeatedly until the time
 * budget is used.  The overhead of a graph is measured separately and subtracted, so that operations add up to a model.
 * Graphs are kept short, since a short one is less often preempted. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/llama_api.h"
#include "engine/timers.h"
#include "port/dl.h"

struct ggml_context;
struct ggml_cgraph;
struct ggml_backend;
struct ggml_backend_buffer;
struct ggml_backend_buffer_type;
struct ggml_init_params {
    size_t bytes;
    void *memory;
    bool no_alloc;
};

enum {
    TYPE_F32 = 0,
    TYPE_F16 = 1,
    TYPE_I32 = 26,
    DEVICE_CPU = 0,
    HEAD_SIZE = 64,
    CACHE_STEP = 256, /* llama.cpp rounds the length of the KV cache up to this */
    MASK_STEP = 64,
    STEPS = 64, /* default number of operations of a graph */
    SAMPLES_MAX = 256,
    SAMPLES_MIN = 3,
    LONG_BUDGETS = 10, /* an operation that takes longer is timed once */
    GRAPHS_MAX = OP_TIMER_GRAPHS_MAX,
    MORE_BUDGETS = 3, /* maximum wait for a sample during which all threads ran */
    PATTERN_ROWS = 16,
    DEPENDENT = 8, /* operations that depend on each other */
    INPUTS_MAX = 3,
    NODES_EACH = 4, /* maximum number of tensors per operation */
    NODES_EXTRA = 16,
    F16_MINUS_INFINITY = 0xfc00,
};

struct ggml_api {
#define SYMBOL(result, name, arguments) result(*name) arguments;
#include "engine/ggml_api.def"
#undef SYMBOL
};

#define RAN_SHORT_S                                                                                \
    300e-6            /* thread start-up dominates a shorter graph: its CPU time is meaningless */
#define RAN_CLEAN 0.9 /* share of the time, averaged over the threads */

/* Persistent threads.  By default llama.cpp starts threads for each graph, and the kernel may place one on the CPU of
 * its parent, where it stays for the duration of a short graph: half of the samples then take twice as long, even on an
 * idle machine.  Threads that spin between graphs soon run on separate CPUs. */
struct thread_pool {
    struct ggml_threadpool *threads; /* NULL: one thread, or not supported by the library */
    void (*use)(struct ggml_backend *, struct ggml_threadpool *);
};

struct op_timer {
    struct ggml_api api;
    int threads;
    struct ggml_backend_device *device;
    struct ggml_backend *backend;
    struct ggml_backend_buffer_type *plain, **extra; /* extra: NULL, or ends in NULL */
    struct thread_pool pool;
    double empty_s,
        step_s; /* minimum time of a graph without work, and of one more operation; 0: not measured */
    double pooled_s; /* empty_s with the pool, subtracted from samples */
};

/* ---- the library ---- */

static enum err load_api(struct ggml_api *api, struct error *why)
{
    const struct dl_symbol all[] = {
#define SYMBOL(result, name, arguments) {#name, &api->name, true},
#include "engine/ggml_api.def"
#undef SYMBOL
    };
    return engine_load(all, COUNT_OF(all), why);
}

static void start_pool(struct op_timer *timer, int threads)
{
    struct thread_pool *pool = &timer->pool;
    pool->use = (void (*)(struct ggml_backend *, struct ggml_threadpool *))engine_cpu_function(
        "ggml_backend_cpu_set_threadpool");
    if (threads == 1 || !pool->use)
        return;
    pool->threads = engine_pool_new(threads);
    if (pool->threads)
        pool->use(timer->backend, pool->threads);
}

static enum err open_backend(struct op_timer *timer, int threads, struct error *why)
{
    typedef struct ggml_backend_buffer_type **(*extra_types)(struct ggml_backend_device *);
    typedef void (*set_threads)(struct ggml_backend *, int);
    timer->device = engine_api()->ggml_backend_dev_by_type(DEVICE_CPU);
    timer->backend = timer->device ? timer->api.ggml_backend_dev_init(timer->device, NULL) : NULL;
    if (!timer->backend)
        return err_set(why, ERR_UNSUPPORTED, "llama.cpp has no CPU backend here");
    set_threads use = (set_threads)engine_cpu_function("ggml_backend_set_n_threads");
    extra_types extra = (extra_types)engine_cpu_function("ggml_backend_dev_get_extra_bufts");
    if (!use)
        return err_set(why, ERR_UNSUPPORTED, "llama.cpp's CPU backend does not set its threads");
    use(timer->backend, threads);
    timer->threads = threads;
    timer->plain = timer->api.ggml_backend_dev_buffer_type(timer->device);
    timer->extra = extra ? extra(timer->device) : NULL;
    start_pool(timer, threads);
    return ERR_OK;
}

enum err op_timer_open(int threads, struct op_timer **out, struct error *why)
{
    const struct engine_library *library;
    enum err err = engine_library_open(&library, why);
    if (err)
        return err;
    struct op_timer *timer = XNEW(timer);
    err = load_api(&timer->api, why);
    if (!err)
        err = open_backend(timer, threads, why);
    if (err) {
        op_timer_close(timer);
        return err;
    }
    *out = timer;
    return ERR_OK;
}

void op_timer_close(struct op_timer *timer)
{
    if (timer->backend)
        timer->api.ggml_backend_free(timer->backend);
    engine_pool_free(timer->pool.threads);
    free(timer);
}

/* ---- one graph ---- */

struct bench {
    struct op_timer *timer;
    const struct op_timer_shape *shape;
    int64_t operations; /* operations of all graphs */
    struct ggml_context *weights, *work;
    struct ggml_backend_buffer *weights_buffer, *work_buffer;
    struct ggml_cgraph *graphs[GRAPHS_MAX];
    int64_t graph_operations[GRAPHS_MAX];
    int64_t graph_count, next;            /* next: the next operation to be added */
    struct ggml_tensor *mask, *positions; /* separate inputs; NULL: none */
    struct {
        struct ggml_tensor *tensor;
        int type;
        int64_t columns;
    } inputs[INPUTS_MAX]; /* filled with ordinary numbers */
    size_t input_count;
};

static struct ggml_tensor *tensor(struct bench *b, int type, int64_t n0, int64_t n1, int64_t n2)
{
    return b->timer->api.ggml_new_tensor_4d(b->work, type, n0, n1, n2, 1);
}

static struct ggml_tensor *input(struct bench *b, int type, int64_t n0, int64_t n1, int64_t n2)
{
    struct ggml_tensor *made = tensor(b, type, n0, n1, n2);
    b->inputs[b->input_count].tensor = made;
    b->inputs[b->input_count].type = type;
    b->inputs[b->input_count++].columns = n0;
    return made;
}

/* Adds the operation to the current graph. */
static void expand(struct bench *b, struct ggml_tensor *result)
{
    int64_t graph = b->next++ * b->graph_count / b->operations;
    b->graph_operations[graph]++;
    b->timer->api.ggml_build_forward_expand(b->graphs[graph], result);
}

static struct ggml_context *new_context(struct bench *b, size_t tensors, size_t nodes)
{
    const struct ggml_api *api = &b->timer->api;
    size_t bytes = tensors * api->ggml_tensor_overhead();
    if (nodes)
        bytes += (size_t)b->graph_count * api->ggml_graph_overhead_custom(nodes, false);
    return xneed(api->ggml_init((struct ggml_init_params){.bytes = bytes, .no_alloc = true}));
}

/* Fills tensors of one shape with numbers of ordinary size in separate buffers: pages that were never written would all
 * map to the same zero page. */
static enum err fill(struct bench *b, struct ggml_tensor *const *to, int64_t count, int type,
                     int64_t columns)
{
    const struct ggml_api *api = &b->timer->api;
    size_t bytes = api->ggml_nbytes(to[0]), part = 0;
    float *from = xreallocarray(NULL, (size_t)(PATTERN_ROWS * columns), sizeof *from);
    void *pattern = xreallocarray(NULL, (size_t)(PATTERN_ROWS * columns), sizeof *from);
    char *all = xmalloc(bytes + 1);
    for (int64_t i = 0; i < PATTERN_ROWS * columns; i++)
        from[i] = (float)((i * 37 + 11) % 61 - 30) / 60;
    part = api->ggml_quantize_chunk(type, from, pattern, 0, PATTERN_ROWS, columns, NULL);
    for (size_t at = 0; part && at < bytes; at += part)
        memcpy(all + at, pattern, part < bytes - at ? part : bytes - at);
    for (int64_t i = 0; part && i < count; i++)
        api->ggml_backend_tensor_set(to[i], all, 0, bytes);
    free(pattern);
    free(from);
    free(all);
    return part ? ERR_OK : ERR_UNSUPPORTED;
}

/* Weights are placed as llama.cpp does: repacked for the instructions of this CPU, where supported. */
static enum err place_weights(struct bench *b, struct ggml_tensor **matrices)
{
    const struct ggml_api *api = &b->timer->api;
    const struct op_timer_shape *s = b->shape;
    struct ggml_tensor *x = input(b, TYPE_F32, s->depth, s->rows, 1);
    struct ggml_backend_buffer_type **extra = b->timer->extra;
    bool is_last = false;
    while (!is_last) {
        struct ggml_backend_buffer_type *type = extra && *extra ? *extra++ : b->timer->plain;
        is_last = type == b->timer->plain;
        b->weights = new_context(b, (size_t)b->operations + 1, 0);
        for (int64_t i = 0; i < b->operations; i++)
            matrices[i] =
                api->ggml_new_tensor_4d(b->weights, (int)s->format, s->depth, s->columns, 1, 1);
        b->weights_buffer = xneed(api->ggml_backend_alloc_ctx_tensors_from_buft(b->weights, type));
        if (api->ggml_backend_dev_supports_op(b->timer->device,
                                              api->ggml_mul_mat(b->work, matrices[0], x)))
            break;
        if (is_last)
            return ERR_UNSUPPORTED;
        api->ggml_backend_buffer_free(b->weights_buffer);
        api->ggml_free(b->weights);
        b->weights_buffer = NULL;
        b->weights = NULL;
    }
    for (int64_t i = 0; i < b->operations; i++)
        expand(b, api->ggml_mul_mat(b->work, matrices[i], x));
    return fill(b, matrices, b->operations, (int)s->format, s->depth);
}

static enum err add_products(struct bench *b)
{
    struct ggml_tensor **matrices = xcalloc((size_t)b->operations, sizeof(void *));
    enum err err = place_weights(b, matrices);
    free(matrices);
    return err;
}

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static void add_attention(struct bench *b)
{
    const struct op_timer_shape *s = b->shape;
    int64_t cells = round_up(s->context, CACHE_STEP);
    struct ggml_tensor *q = input(b, TYPE_F32, s->depth, s->rows, s->heads);
    struct ggml_tensor *k = input(b, TYPE_F16, s->depth, cells, s->heads);
    struct ggml_tensor *v = input(b, TYPE_F16, s->depth, cells, s->heads);
    b->mask = tensor(b, TYPE_F16, cells, round_up(s->rows, MASK_STEP), 1);
    for (int64_t i = 0; i < b->operations; i++)
        expand(b, b->timer->api.ggml_flash_attn_ext(b->work, q, k, v, b->mask, 0.125F, 0, 0));
}

/* Each operation depends on the previous one, as in a model; but only a limited number, since their products would
 * become denormal numbers, which are ten times slower. */
static void add_chain(struct bench *b)
{
    const struct ggml_api *api = &b->timer->api;
    const struct op_timer_shape *s = b->shape;
    bool is_rotation = s->op == OP_TIMER_ROTATION;
    int64_t width = is_rotation ? HEAD_SIZE : s->depth;
    struct ggml_tensor *x = is_rotation ? input(b, TYPE_F32, width, s->depth / width, s->rows)
                                        : input(b, TYPE_F32, width, s->rows, 1);
    struct ggml_tensor *other = input(b, TYPE_F32, width, s->op == OP_TIMER_NORM ? 1 : s->rows, 1);
    if (is_rotation)
        b->positions = tensor(b, TYPE_I32, s->rows, 1, 1);
    struct ggml_tensor *first = x;
    for (int64_t i = 0; i < b->operations; i++) {
        if (i % DEPENDENT == 0)
            x = first;
        switch (s->op) {
        case OP_TIMER_NORM:
            x = api->ggml_mul(b->work, api->ggml_rms_norm(b->work, x, 1e-5F), other);
            break;
        case OP_TIMER_ROTATION:
            x = api->ggml_rope_ext(b->work, x, b->positions, NULL, HEAD_SIZE, 0, 0, 10000, 1, 0, 1,
                                   32, 1);
            break;
        case OP_TIMER_GATE:
            x = api->ggml_swiglu_split(b->work, x, other);
            break;
        default:
            x = api->ggml_add(b->work, x, other);
        }
        expand(b, x);
    }
}

static void fill_mask(struct bench *b)
{
    int64_t cells = round_up(b->shape->context, CACHE_STEP), rows = b->shape->rows;
    int64_t before = b->shape->context - rows;
    uint16_t *row = xreallocarray(NULL, (size_t)cells, sizeof *row);
    for (int64_t i = 0; i < round_up(rows, MASK_STEP); i++) {
        for (int64_t j = 0; j < cells; j++)
            row[j] = i < rows && j <= before + i ? 0 : F16_MINUS_INFINITY;
        b->timer->api.ggml_backend_tensor_set(b->mask, row, (size_t)(i * cells) * sizeof *row,
                                              (size_t)cells * sizeof *row);
    }
    free(row);
}

static void fill_positions(struct bench *b)
{
    for (int32_t i = 0; i < b->shape->rows; i++)
        b->timer->api.ggml_backend_tensor_set(b->positions, &i, (size_t)i * sizeof i, sizeof i);
}

static enum err build(struct bench *b)
{
    const struct ggml_api *api = &b->timer->api;
    size_t nodes = (size_t)b->operations * NODES_EACH + NODES_EXTRA;
    b->graph_count = b->shape->graphs > 0 ? b->shape->graphs : 1;
    if (b->graph_count > b->operations || b->graph_count > GRAPHS_MAX)
        return ERR_BAD_VALUE;
    size_t nodes_each = (size_t)(b->operations / b->graph_count + 1) * NODES_EACH + NODES_EXTRA;
    b->work = new_context(b, nodes, nodes_each);
    for (int64_t i = 0; i < b->graph_count; i++)
        b->graphs[i] = api->ggml_new_graph_custom(b->work, nodes_each, false);
    enum err err = ERR_OK;
    if (b->shape->op == OP_TIMER_PRODUCT)
        err = add_products(b);
    else if (b->shape->op == OP_TIMER_ATTENTION)
        add_attention(b);
    else
        add_chain(b);
    if (err)
        return err;
    b->work_buffer = xneed(api->ggml_backend_alloc_ctx_tensors_from_buft(b->work, b->timer->plain));
    for (size_t i = 0; !err && i < b->input_count; i++)
        err = fill(b, &b->inputs[i].tensor, 1, b->inputs[i].type, b->inputs[i].columns);
    if (b->mask)
        fill_mask(b);
    if (b->positions)
        fill_positions(b);
    return err;
}

static void release(struct bench *b)
{
    const struct ggml_api *api = &b->timer->api;
    if (b->weights_buffer)
        api->ggml_backend_buffer_free(b->weights_buffer);
    if (b->work_buffer)
        api->ggml_backend_buffer_free(b->work_buffer);
    if (b->weights)
        api->ggml_free(b->weights);
    if (b->work)
        api->ggml_free(b->work);
}

/* ---- time ---- */

struct samples {
    double all[SAMPLES_MAX], clean[SAMPLES_MAX]; /* seconds per operation */
    size_t count, clean_count;
    double ran_max; /* share of the time in which the threads had a CPU, for the best sample */
};

/* A single thread is timed by its CPU time.  Several threads wait for each other, spinning, so wall time counts while
 * all had a CPU: their CPU time shows whether they did. */
static enum err take_sample(struct bench *b, int64_t graph, struct samples *to, double *took)
{
    const struct op_timer *timer = b->timer;
    bool is_alone = timer->threads == 1;
    clockid_t used = is_alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
    double cpu = clock_s(used), from = clock_s(CLOCK_MONOTONIC);
    if (timer->api.ggml_backend_graph_compute(timer->backend, b->graphs[graph]))
        return ERR_UNSUPPORTED;
    double wall = clock_s(CLOCK_MONOTONIC) - from;
    cpu = clock_s(used) - cpu;
    double ran = wall > RAN_SHORT_S ? cpu / (wall * timer->threads) : 1;
    double each = ((is_alone ? cpu : wall) - timer->pooled_s) / (double)b->graph_operations[graph];
    *took = wall;
    if (!to)
        return ERR_OK;
    if (is_alone || ran >= RAN_CLEAN)
        to->clean[to->clean_count++] = each;
    to->all[to->count++] = each;
    to->ran_max = fmax(to->ran_max, is_alone ? 1 : fmin(ran, 1));
    return ERR_OK;
}

static enum err time_graphs(struct bench *b, double budget_s, struct op_time *out)
{
    struct samples samples = {0};
    double took = 0, first = 0;
    enum err err = ERR_OK;
    for (int64_t i = 0; !err && i < b->graph_count; i++) {
        err = take_sample(b, i, NULL, &took);
        first = fmax(first, took);
    }
    size_t min = first > LONG_BUDGETS * budget_s ? 1 : SAMPLES_MIN;
    nanos end = clock_now() + from_seconds(budget_s);
    for (size_t i = 0; !err && samples.count < SAMPLES_MAX; i++) {
        bool is_late = clock_now() >= end;
        if (samples.count >= min && is_late &&
            (samples.clean_count || clock_now() >= end + from_seconds(MORE_BUDGETS * budget_s)))
            break;
        err = take_sample(b, (int64_t)i % b->graph_count, &samples, &took);
    }
    if (err)
        return err;
    bool is_clean = samples.clean_count > 0;
    size_t count = is_clean ? samples.clean_count : samples.count;
    double *from = is_clean ? samples.clean : samples.all;
    *out = (struct op_time){lower_quartile(from, count), samples.ran_max};
    return ERR_OK;
}

static enum err run_graphs(struct op_timer *timer, const struct op_timer_shape *shape,
                           int64_t operations, double budget_s, struct op_time *out)
{
    struct bench b = {.timer = timer, .shape = shape, .operations = operations};
    enum err err = build(&b);
    if (!err)
        err = time_graphs(&b, budget_s, out);
    release(&b);
    return err;
}

static double min(double before, double now)
{
    return before > 0 ? fmin(before, now) : now;
}

/* Overhead of a graph without work, with persistent threads and with started ones; the minimum of all measurements. */
static enum err measure_empty(struct op_timer *timer, double budget_s, struct op_time *out)
{
    const struct op_timer_shape tiny = {.op = OP_TIMER_ADD, .rows = 1, .depth = HEAD_SIZE};
    const struct thread_pool *pool = &timer->pool;
    double pooled = timer->pooled_s;
    struct op_time one, many, started;
    timer->pooled_s = 0;
    enum err err = run_graphs(timer, &tiny, 1, budget_s, &one);
    if (!err)
        err = run_graphs(timer, &tiny, 1 + STEPS, budget_s, &many);
    started = one;
    if (!err && pool->threads) {
        pool->use(timer->backend, NULL);
        err = run_graphs(timer, &tiny, 1, budget_s, &started);
        pool->use(timer->backend, pool->threads);
    }
    timer->pooled_s = pooled;
    if (err)
        return err;
    double step = fmax(0, many.seconds * (1 + STEPS) - one.seconds) / STEPS;
    timer->step_s = min(timer->step_s, step);
    timer->pooled_s = min(pooled, fmax(0, one.seconds - step));
    timer->empty_s = min(timer->empty_s, fmax(0, started.seconds - step));
    *out = (struct op_time){0, fmin(one.ran, many.ran)};
    return ERR_OK;
}

enum err op_timer_measure(struct op_timer *timer, const struct op_timer_shape *shape,
                          double budget_s, struct op_time *out, struct error *why)
{
    bool is_empty = shape->op == OP_TIMER_NOTHING || shape->op == OP_TIMER_STEP;
    int64_t operations = shape->matrices > 0 ? shape->matrices : 1;
    enum err err = ERR_OK;
    if (is_empty || !(timer->empty_s > 0))
        err = measure_empty(timer, budget_s, out);
    if (!err && !is_empty)
        err = run_graphs(timer, shape, operations, budget_s, out);
    if (err)
        return err_set(why, err, "llama.cpp could not compute an operation here: %s",
                       err_text(err));
    if (is_empty)
        out->seconds = shape->op == OP_TIMER_NOTHING ? timer->empty_s : timer->step_s;
    out->seconds = fmax(0, out->seconds);
    return ERR_OK;
}
