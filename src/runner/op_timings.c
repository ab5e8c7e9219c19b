/* The grids of timed operations.  llama.cpp.  Products: every format, by the number of tokens that share the weights
 * and by the size of the matrix; for single tokens, which are limited by reading weights, also by the working set, from
 * the size of a cache to that of memory.  Attention: by queries, earlier tokens and head size.  Others: by rows.  ONNX
 * Runtime.  Convolutions by positions and channels, products by rows and size, others by elements.
 *
 * Interference only adds time, and barriers between threads amplify it.  So the grids are timed in rounds, of which each
 * operation keeps the shortest, and operations whose rounds differ are timed again.  The rounds of both libraries
 * alternate: other virtual machines slow a host down for minutes, and each operation should see all of them. */
#define _GNU_SOURCE
#include "runner/op_timings.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/timers.h"
#include "graph/gguf.h"
#include "port/proc.h"

#define MEBI (1024.0 * 1024.0)

enum {
    BLOCK = 256, /* elements: rows of some formats are multiples of it */
    LARGE_SIDE = 2048,
    MATRICES_MAX = 1024,
    HEADS = 4,
    WIDTH = 1024, /* of rows between products */
    CHAIN = 128,  /* maximum number of operations in a graph, to amortize its start */
    CHAIN_ELEMENTS = 1 << 20,
    FEW_ROWS = 16,
    ROUNDS = 3,
    ROUNDS_MIN = 2, /* if the time budget is small */
    REPEATS_MAX = 6,
    QUICK_REPEATS_MAX = 2,
    DISTURBED_MIN = 12,
};

#define GRAPH_BYTES      (16 * MEBI) /* of weights read by a graph: about a millisecond */
#define SHORT_BUDGET_S   2e-3
#define ROUND_PAUSE      (6 * NS_PER_S)
#define RAN_MIN          0.9  /* of the time: with less, threads waited for a CPU */
#define DIFFERENCE_MAX   0.20 /* between the two shortest rounds */
#define DIFFERENCE_START 0.5
#define UNSETTLED_MAX    (1 / 3.0) /* of the operations */
#define SLOWDOWN_MAX     1.2       /* several threads relative to one */

/* GGUF type numbers. */
static const uint32_t FORMATS[] = {0, 1, 8, 2, 3, 6, 12, 13, 14};
static const int64_t SIDES[] = {128, 512, LARGE_SIDE};
static const int64_t ROWS[] = {1, 4, 16, 64, 512};
static const struct {
    double bytes;
    int64_t min, max; /* sides of the matrices of models of that size */
    bool has_several; /* also timed for several tokens */
} WORKING_SETS[] = {{1 * MEBI, 128, 512, true},
                    {8 * MEBI, 128, LARGE_SIDE, true},
                    {64 * MEBI, 512, LARGE_SIDE, true},
                    {256 * MEBI, LARGE_SIDE, LARGE_SIDE, false}};
static const int64_t QUERIES[] = {1, 16, 63, 64, 512};
static const int64_t CONTEXTS[] = {64, 256, 1024};
static const int64_t HEAD_SIZES[] = {32, 64, 96, 128};
static const int64_t CHAIN_ROWS[] = {1, 4, 64, 512};

/* An operation and the times of its rounds. */
struct point {
    struct hardware_timing timing;
    struct op_timer_shape shape;
    struct ort_shape operator; /* of ONNX Runtime */
    const char *label;
    double best_s, second_s; /* the two shortest undisturbed rounds; INFINITY: none yet */
    double disturbed_s;      /* the shortest disturbed round */
    bool is_missing;         /* not supported by the library */
};

/* Of all grids. */
struct progress {
    unsigned done, all;
};

struct grid {
    const struct timings_options *options;
    struct timings *out;
    timings_clock *clock;
    void *context;
    struct ort_timer *onnx; /* NULL: llama.cpp */
    const char *runtime;
    struct error *why;
    struct point *points;
    size_t count, capacity;
    struct progress *progress;
};

/* Whoever asks for a short calibration does not get every operation three times. */
static bool is_quick(const struct grid *grid)
{
    return grid->options->budget_s < SHORT_BUDGET_S;
}

static enum err report(struct grid *grid, const char *what)
{
    char label[80];
    chars_format(label, "%s %s", grid->runtime, what);
    if (grid->options->progress)
        grid->options->progress(label, grid->progress->done, grid->progress->all);
    grid->progress->done++;
    grid->out->signal = proc_poll_signal(0);
    return grid->out->signal ? err_set(grid->why, ERR_INTERRUPTED, "interrupted") : ERR_OK;
}

static void add(struct grid *grid, const char *label, struct hardware_timing timing,
                const struct op_timer_shape *shape)
{
    *XADD(grid->points, grid->count, grid->capacity) = (struct point){.timing = timing,
                                                                      .shape = *shape,
                                                                      .label = label,
                                                                      .best_s = INFINITY,
                                                                      .second_s = INFINITY,
                                                                      .disturbed_s = INFINITY};
}

/* ---- products ---- */

static void add_product(struct grid *grid, const struct tensor_type *type, int64_t rows,
                        int64_t side, double held)
{
    double bytes = (double)(side * side) * type->block_bytes / type->block_elements;
    int64_t matrices = (int64_t)fmin(fmax(1, held / bytes), MATRICES_MAX);
    double each = fmax(1, floor(GRAPH_BYTES / bytes)); /* matrices of a graph */
    int64_t graphs = (int64_t)fmin(ceil((double)matrices / each), OP_TIMER_GRAPHS_MAX);
    const struct op_timer_shape shape = {.op = OP_TIMER_PRODUCT,
                                         .format = type->number,
                                         .rows = rows,
                                         .depth = side,
                                         .columns = side,
                                         .matrices = matrices,
                                         .graphs = graphs};
    add(grid, type->name,
        (struct hardware_timing){.op = TIMING_PRODUCT,
                                 .format = type->name,
                                 .rows = (double)rows,
                                 .depth = (double)side,
                                 .columns = (double)side,
                                 .held = bytes * (double)matrices},
        &shape);
}

/* Weights used by many tokens are in a cache: two matrices suffice, or enough to amortize the start of a graph.  With
 * large matrices these products take most of the time of all operations, and per element as long as with those of the
 * next smaller side: a quick calibration leaves them out. */
static void add_side(struct grid *grid, const struct tensor_type *type, int64_t side)
{
    double bytes = (double)(side * side) * type->block_bytes / type->block_elements;
    for (size_t r = 0; r < COUNT_OF(ROWS); r++) {
        if (ROWS[r] > FEW_ROWS) {
            if (side < LARGE_SIDE || !is_quick(grid))
                add_product(grid, type, ROWS[r], side, fmax(2 * bytes, 1 * MEBI));
            continue;
        }
        for (size_t h = 0; h < COUNT_OF(WORKING_SETS); h++)
            if (side >= WORKING_SETS[h].min && side <= WORKING_SETS[h].max &&
                (ROWS[r] == 1 || WORKING_SETS[h].has_several))
                add_product(grid, type, ROWS[r], side, fmax(WORKING_SETS[h].bytes, bytes));
    }
}

static void add_format(struct grid *grid, uint32_t number)
{
    const struct tensor_type *type = tensor_type_numbered(number);
    for (size_t s = 0; type && s < COUNT_OF(SIDES); s++) {
        bool is_whole = SIDES[s] % type->block_elements == 0;
        add_side(grid, type, is_whole ? SIDES[s] : BLOCK);
    }
}

/* ---- other operations ---- */

/* Repetitions of an operation in a graph: many for small ones, to amortize its start. */
static int64_t chain_of(int64_t elements)
{
    int64_t min = elements < CHAIN_ELEMENTS ? CHAIN_ELEMENTS / elements : 1;
    return min < CHAIN ? min : CHAIN;
}

static void add_attention(struct grid *grid, int64_t size)
{
    for (size_t c = 0; c < COUNT_OF(CONTEXTS); c++)
        for (size_t q = 0; q < COUNT_OF(QUERIES); q++) {
            int64_t context = CONTEXTS[c] < QUERIES[q] ? QUERIES[q] : CONTEXTS[c];
            if (c > 0 && CONTEXTS[c] <= QUERIES[q])
                continue; /* timed as the previous context */
            add(grid, timing_op_name(TIMING_ATTENTION),
                (struct hardware_timing){.op = TIMING_ATTENTION,
                                         .rows = (double)QUERIES[q],
                                         .depth = (double)size,
                                         .columns = HEADS,
                                         .context = (double)context},
                &(struct op_timer_shape){.op = OP_TIMER_ATTENTION,
                                         .rows = QUERIES[q],
                                         .depth = size,
                                         .heads = HEADS,
                                         .context = context,
                                         .matrices = chain_of(QUERIES[q] * context * size)});
        }
}

static void add_chain(struct grid *grid, enum timing_op op, enum op_timer_op engine_op)
{
    for (size_t i = 0; i < COUNT_OF(CHAIN_ROWS); i++)
        add(grid, timing_op_name(op),
            (struct hardware_timing){.op = op, .rows = (double)CHAIN_ROWS[i], .depth = WIDTH},
            &(struct op_timer_shape){.op = engine_op,
                                     .rows = CHAIN_ROWS[i],
                                     .depth = WIDTH,
                                     .matrices = chain_of(CHAIN_ROWS[i] * WIDTH)});
}

static void add_all(struct grid *grid)
{
    static const struct {
        enum timing_op op;
        enum op_timer_op engine_op;
    } CHAINS[] = {{TIMING_NORM, OP_TIMER_NORM},
                  {TIMING_ADD, OP_TIMER_ADD},
                  {TIMING_ROTATION, OP_TIMER_ROTATION},
                  {TIMING_GATE, OP_TIMER_GATE}};
    const struct op_timer_shape nothing = {.op = OP_TIMER_NOTHING};
    const struct op_timer_shape step = {.op = OP_TIMER_STEP};
    add(grid, timing_op_name(TIMING_PASS), (struct hardware_timing){.op = TIMING_PASS}, &nothing);
    add(grid, timing_op_name(TIMING_STEP), (struct hardware_timing){.op = TIMING_STEP}, &step);
    for (size_t i = 0; i < COUNT_OF(CHAINS); i++)
        add_chain(grid, CHAINS[i].op, CHAINS[i].engine_op);
    for (size_t i = 0; i < COUNT_OF(HEAD_SIZES); i++)
        add_attention(grid, HEAD_SIZES[i]);
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++)
        add_format(grid, FORMATS[i]);
}

/* ---- ONNX Runtime ---- */

static int64_t rows_of(struct ort_shape shape)
{
    if (shape.op == ORT_LINE)
        return shape.side;
    if (shape.side > 0)
        return shape.side * shape.side;
    return shape.elements ? shape.elements : shape.rows;
}

static void add_operator(struct grid *grid, const char *label, enum timing_op op,
                         struct ort_shape shape)
{
    bool is_conv = shape.side > 0;
    bool is_line = shape.op == ORT_LINE;
    struct hardware_timing timing = {
        .op = op,
        .format = op == TIMING_PRODUCT ? "F32" : NULL,
        .rows = (double)rows_of(shape),
        .depth = shape.op == ORT_DEPTHWISE || !shape.channels ? 1 : (double)shape.channels,
        .columns = (double)(is_conv ? shape.outputs : shape.channels),
        .context = (double)(is_line ? shape.window : shape.window * shape.window),
    };
    if (op == TIMING_REORDER)
        timing = (struct hardware_timing){.op = op, .rows = timing.rows * timing.depth, .depth = 1};
    add(grid, label, timing, &(struct op_timer_shape){0});
    grid->points[grid->count - 1].operator= shape;
}

/* Larger windows need fewer channels and positions to fill the time. */
static void add_convs(struct grid *grid)
{
    static const struct {
        enum timing_op op;
        enum ort_op operator;
        int64_t side, channels, outputs, window;
    } CONVS[] = {
        {TIMING_CONV, ORT_CONV, 7, 64, 64, 3},
        {TIMING_CONV, ORT_CONV, 7, 384, 384, 3},
        {TIMING_CONV, ORT_CONV, 14, 16, 16, 3},
        {TIMING_CONV, ORT_CONV, 14, 64, 64, 3},
        {TIMING_CONV, ORT_CONV, 14, 192, 192, 3},
        {TIMING_CONV, ORT_CONV, 56, 16, 16, 3},
        {TIMING_CONV, ORT_CONV, 56, 64, 64, 3},
        {TIMING_POINT_CONV, ORT_CONV, 1, 128, 128, 1},
        {TIMING_POINT_CONV, ORT_CONV, 1, 768, 768, 1},
        {TIMING_POINT_CONV, ORT_CONV, 7, 64, 64, 1},
        {TIMING_POINT_CONV, ORT_CONV, 7, 512, 512, 1},
        {TIMING_POINT_CONV, ORT_CONV, 28, 32, 32, 1},
        {TIMING_POINT_CONV, ORT_CONV, 28, 256, 256, 1},
        {TIMING_POINT_CONV, ORT_CONV, 80, 32, 32, 1},
        {TIMING_POINT_CONV, ORT_CONV, 80, 128, 128, 1},
        {TIMING_LINE_CONV, ORT_LINE, 4, 64, 64, 3},
        {TIMING_LINE_CONV, ORT_LINE, 4, 256, 256, 3},
        {TIMING_LINE_CONV, ORT_LINE, 64, 64, 64, 3},
        {TIMING_LINE_CONV, ORT_LINE, 64, 256, 256, 3},
        {TIMING_LINE_CONV, ORT_LINE, 1024, 64, 64, 3},
        {TIMING_LINE_CONV, ORT_LINE, 1024, 256, 256, 3},
        {TIMING_REORDER, ORT_SCALED, 7, 64, 64, 1},
        {TIMING_REORDER, ORT_SCALED, 28, 32, 32, 1},
        {TIMING_REORDER, ORT_SCALED, 80, 32, 32, 1},
        {TIMING_IMAGE_CONV, ORT_IMAGE, 56, 3, 16, 3},
        {TIMING_IMAGE_CONV, ORT_IMAGE, 56, 3, 32, 3},
        {TIMING_IMAGE_CONV, ORT_IMAGE, 56, 12, 32, 3},
        {TIMING_IMAGE_CONV, ORT_IMAGE, 160, 3, 16, 3},
        {TIMING_IMAGE_CONV, ORT_IMAGE, 160, 3, 32, 3},
        {TIMING_DEPTHWISE_CONV, ORT_DEPTHWISE, 7, 256, 256, 3},
        {TIMING_DEPTHWISE_CONV, ORT_DEPTHWISE, 7, 256, 256, 5},
        {TIMING_DEPTHWISE_CONV, ORT_DEPTHWISE, 28, 64, 64, 3},
        {TIMING_DEPTHWISE_CONV, ORT_DEPTHWISE, 28, 64, 64, 5},
        {TIMING_DEPTHWISE_CONV, ORT_DEPTHWISE, 112, 32, 32, 3},
    };
    for (size_t i = 0; i < COUNT_OF(CONVS); i++)
        add_operator(grid, "convolutions", CONVS[i].op,
                     (struct ort_shape){.op = CONVS[i].operator,
                                        .side = CONVS[i].side,
                                        .channels = CONVS[i].channels,
                                        .outputs = CONVS[i].outputs,
                                        .window = CONVS[i].window});
}

static void add_operators(struct grid *grid)
{
    static const int64_t PRODUCT_ROWS[] = {1, 16, 128};
    static const int64_t WIDTHS[] = {128, 512, 1024};
    static const int64_t STATES[] = {64, 256};
    static const int64_t STEPS[] = {1, 32};
    static const int64_t NORMED[] = {1 << 14, 1 << 18};
    static const int64_t ELEMENTS[] = {1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 23};
    static const struct {
        const char *label;
        enum timing_op op;
        enum ort_op operator;
    } PLAIN[] = {{"additions", TIMING_ADD, ORT_ADD},
                 {"scalings", TIMING_SCALE, ORT_SCALE},
                 {"sigmoids", TIMING_SIGMOID, ORT_SIGMOID}};
    add_operator(grid, "pass", TIMING_PASS, (struct ort_shape){.op = ORT_RUN});
    add_operator(grid, "step", TIMING_STEP, (struct ort_shape){.op = ORT_NOTHING, .rows = 1});
    add_convs(grid);
    for (size_t r = 0; r < COUNT_OF(PRODUCT_ROWS); r++)
        for (size_t w = 0; w < COUNT_OF(WIDTHS); w++)
            add_operator(grid, "products", TIMING_PRODUCT,
                         (struct ort_shape){
                             .op = ORT_PRODUCT, .rows = PRODUCT_ROWS[r], .channels = WIDTHS[w]});
    for (size_t i = 0; i < COUNT_OF(STEPS); i++)
        for (size_t s = 0; s < COUNT_OF(STATES); s++)
            add_operator(
                grid, "lstm", TIMING_LSTM,
                (struct ort_shape){.op = ORT_LSTM, .rows = STEPS[i], .channels = STATES[s]});
    for (size_t e = 0; e < COUNT_OF(NORMED); e++)
        add_operator(grid, "local response norms", TIMING_LRN,
                     (struct ort_shape){.op = ORT_LRN, .elements = NORMED[e]});
    for (size_t p = 0; p < COUNT_OF(PLAIN); p++)
        for (size_t e = 0; e < COUNT_OF(ELEMENTS); e++)
            add_operator(
                grid, PLAIN[p].label, PLAIN[p].op,
                (struct ort_shape){.op = PLAIN[p].operator, .elements = ELEMENTS[e]});
}

/* ---- rounds ---- */

static enum err time_point(struct grid *grid, struct point *point)
{
    const struct timings_options *options = grid->options;
    struct error inner = {0};
    struct op_time took = {0};
    enum err err = grid->onnx ? ort_timer_measure(grid->onnx, &point->operator, options->budget_s,
                                                  &took, &inner)
                              : grid->clock(grid->context, options->threads, &point->shape,
                                            options->budget_s, &took, &inner);
    point->is_missing = err == ERR_UNSUPPORTED;
    if (point->is_missing || (!err && !(took.seconds > 0)))
        return ERR_OK;
    if (err)
        return err_set(grid->why, err, "%s", inner.text);
    if (took.ran < RAN_MIN) {
        point->disturbed_s = fmin(point->disturbed_s, took.seconds);
        return ERR_OK;
    }
    point->second_s = fmin(point->second_s, fmax(point->best_s, took.seconds));
    point->best_s = fmin(point->best_s, took.seconds);
    return ERR_OK;
}

/* The true time may be shorter than the shortest round by as much as the two shortest differ. */
static double differs_by(const struct point *point)
{
    return isinf(point->second_s) ? INFINITY : point->second_s / point->best_s - 1;
}

/* Thread start-up varies more than computation. */
static bool is_unsettled(const struct point *point)
{
    bool is_start = point->timing.op == TIMING_PASS || point->timing.op == TIMING_STEP;
    return differs_by(point) > (is_start ? DIFFERENCE_START : DIFFERENCE_MAX);
}

static bool is_timed(const struct point *point)
{
    return !point->is_missing && (!isinf(point->best_s) || !isinf(point->disturbed_s));
}

/* The same work with fewer tokens. */
static bool is_part_of(const struct point *a, const struct point *b)
{
    const struct hardware_timing *x = &a->timing;
    const struct hardware_timing *y = &b->timing;
    return x->op == y->op && x->format == y->format && x->depth == y->depth &&
           x->columns == y->columns && x->rows < y->rows && x->context <= y->context &&
           (x->rows > FEW_ROWS || x->held <= y->held);
}

/* Longer than an operation with more tokens: possibly another kernel, which then takes as long when it is timed
 * again. */
static bool is_suspect(const struct grid *grid, const struct point *point)
{
    if (is_unsettled(point))
        return true;
    for (size_t i = 0; i < grid->count; i++)
        if (is_part_of(point, &grid->points[i]) &&
            point->best_s > (1 + DIFFERENCE_MAX) * grid->points[i].best_s)
            return true;
    return false;
}

static void describe(const struct point *point, char *to, size_t size)
{
    double off = differs_by(point);
    double rows = fmax(1, point->timing.rows);
    const struct ort_shape *of = &point->operator;
    const char *unit = of->rows || of->side || of->elements ? "rows" : "tokens";
    if (isinf(off))
        str_format(to, size, "%s, %.0f %s: a thread always waited for a CPU", point->label, rows,
                   unit);
    else
        str_format(to, size, "%s, %.0f %s: rounds differ by %.0f %%", point->label, rows, unit,
                   100 * off);
}

/* The rounds of a few operations may differ: these use the shortest, and are reported. */
static enum err check_rounds(struct grid *grid, size_t count)
{
    size_t timed = 0, unsettled = 0;
    const struct point *worst = NULL;
    char named[120];
    for (size_t i = 0; i < count; i++) {
        const struct point *point = &grid->points[i];
        timed += is_timed(point);
        if (!is_timed(point) || !is_unsettled(point))
            continue;
        unsettled++;
        if (!worst || differs_by(point) > differs_by(worst))
            worst = point;
    }
    if (!unsettled)
        return ERR_OK;
    describe(worst, named, sizeof named);
    chars_format(grid->out->unsettled,
                 "%zu of %zu operations of %s could not be timed undisturbed (%s)", unsettled,
                 timed, grid->runtime, named);
    return (double)unsettled > UNSETTLED_MAX * (double)timed
               ? err_set(grid->why, ERR_BUSY, "%s", grid->out->unsettled)
               : ERR_OK;
}

/* On a busy machine waiting threads amplify delays: give up early. */
static bool is_too_busy(const struct grid *grid, size_t timed)
{
    size_t disturbed = 0;
    for (size_t i = 0; i < timed; i++)
        disturbed += isinf(grid->points[i].best_s) && !isinf(grid->points[i].disturbed_s);
    return disturbed >= DISTURBED_MIN && disturbed > timed / 3;
}

static enum err time_round(struct grid *grid)
{
    const char *label = NULL;
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < grid->count; i++) {
        struct point *point = &grid->points[i];
        if (label != point->label)
            err = report(grid, label = point->label);
        if (!err && !point->is_missing)
            err = time_point(grid, point);
        if (!err && is_too_busy(grid, i + 1))
            err = check_rounds(grid, i + 1);
    }
    return err;
}

/* The rounds of a short grid alone are spread over time, as those of llama.cpp's long one are. */
static enum err await_round(struct grid *grid)
{
    if (!grid->onnx || is_quick(grid))
        return ERR_OK;
    grid->out->signal = proc_poll_signal(ROUND_PAUSE);
    return grid->out->signal ? err_set(grid->why, ERR_INTERRUPTED, "interrupted") : ERR_OK;
}

static unsigned count_labels(const struct grid *grid)
{
    unsigned count = 0;
    for (size_t i = 0; i < grid->count; i++)
        count += i == 0 || grid->points[i].label != grid->points[i - 1].label;
    return count;
}

static enum err repeat_suspects(struct grid *grid)
{
    enum err err = report(grid, "repeating operations whose rounds differ");
    int times = is_quick(grid) ? QUICK_REPEATS_MAX : REPEATS_MAX;
    for (int again = 0; !err && again < times; again++)
        for (size_t i = 0; !err && i < grid->count; i++)
            if (is_timed(&grid->points[i]) && is_suspect(grid, &grid->points[i]))
                err = time_point(grid, &grid->points[i]);
    return err;
}

static enum err time_rounds(struct grid *grids, size_t count)
{
    enum err err = ERR_OK;
    int rounds = is_quick(grids) ? ROUNDS_MIN : ROUNDS;
    for (size_t g = 0; g < count; g++)
        grids[g].progress->all += (unsigned)rounds * count_labels(&grids[g]) + 1;
    for (int round = 0; !err && round < rounds; round++) {
        err = round && count == 1 ? await_round(grids) : ERR_OK;
        for (size_t g = 0; !err && g < count; g++)
            err = time_round(&grids[g]);
    }
    for (size_t g = 0; !err && g < count; g++)
        err = repeat_suspects(&grids[g]);
    return err;
}

/* ---- checks of the timings ---- */

/* Parallelized work takes no longer than on one thread if threads run concurrently: rounds alone cannot detect this,
 * since a machine that never runs them concurrently is equally slow each time. */
static enum err check_threads(struct grid *grid)
{
    const struct timings_options *options = grid->options;
    const int64_t most_rows = ROWS[COUNT_OF(ROWS) - 1];
    for (size_t i = 0; options->threads > 1 && !grid->onnx && i < grid->count; i++) {
        const struct point *point = &grid->points[i];
        struct op_time alone = {0};
        double min = INFINITY;
        bool is_large = point->timing.op == TIMING_PRODUCT && point->timing.depth == LARGE_SIDE &&
                        (point->timing.rows == 1 || point->timing.rows == (double)most_rows);
        if (!is_large || isinf(point->best_s))
            continue;
        for (int again = 0; again < 2; again++)
            if (!grid->clock(grid->context, 1, &point->shape, options->budget_s, &alone,
                             &(struct error){0}))
                min = fmin(min, alone.seconds);
        if (point->best_s > SLOWDOWN_MAX * min)
            return err_set(grid->why, ERR_BUSY,
                           "%u threads take %.1f times as long as one (%s, %.0f tokens): they do "
                           "not run concurrently",
                           options->threads, point->best_s / min, point->label, point->timing.rows);
    }
    return ERR_OK;
}

static enum err check_timings(struct grid *grid)
{
    enum err err = check_threads(grid);
    if (!err)
        err = check_rounds(grid, grid->count);
    return err;
}

/* The shortest round. */
static double shortest_s(const struct point *point)
{
    return isinf(point->best_s) ? point->disturbed_s : point->best_s;
}

/* Multiplication of so many elements by a constant, between the timed numbers; INFINITY: not timed. */
static double scaling_s(const struct grid *grid, double elements)
{
    const struct point *below = NULL;
    for (size_t i = 0; i < grid->count; i++) {
        const struct point *point = &grid->points[i];
        if (point->timing.op != TIMING_SCALE || !is_timed(point))
            continue;
        if (point->timing.rows >= elements && below) {
            double low = shortest_s(below);
            double share =
                log(elements / below->timing.rows) / log(point->timing.rows / below->timing.rows);
            return low * pow(shortest_s(point) / low, share);
        }
        if (point->timing.rows >= elements)
            return shortest_s(point) * elements / point->timing.rows;
        below = point;
    }
    return INFINITY;
}

/* A convolution and a multiplication of its result take longer together: the result is converted to the plain layout,
 * and back for the next convolution. */
static double reorder_s(const struct grid *grid, const struct point *both)
{
    const struct ort_shape *wanted = &both->operator;
    double alone = INFINITY;
    for (size_t i = 0; i < grid->count; i++) {
        const struct ort_shape *shape = &grid->points[i].operator;
        if (shape->op == ORT_CONV && shape->side == wanted->side &&
            shape->channels == wanted->channels && shape->window == wanted->window &&
            is_timed(&grid->points[i]))
            alone = shortest_s(&grid->points[i]);
    }
    return (shortest_s(both) - alone - scaling_s(grid, both->timing.rows)) / 2;
}

static void take_table(struct grid *grid)
{
    struct timings *out = grid->out;
    out->items = xcalloc(grid->count + 1, sizeof *out->items);
    for (size_t i = 0; i < grid->count; i++) {
        const struct point *point = &grid->points[i];
        if (!is_timed(point))
            continue;
        double took = point->operator.op == ORT_SCALED ? reorder_s(grid, point) : shortest_s(point);
        if (!(took > 0))
            continue; /* less than the variation between rounds */
        out->items[out->table.count] = point->timing;
        out->items[out->table.count++].seconds = took;
    }
    out->table.runtime = grid->runtime;
    out->table.source = out->source;
    out->table.threads = grid->options->threads;
    out->table.items = out->items;
}

/* ---- llama.cpp's library ---- */

struct timers {
    struct op_timer *all, *one; /* with several threads; with one */
};

static enum err library_clock(void *context, unsigned threads, const struct op_timer_shape *shape,
                              double budget_s, struct op_time *out, struct error *why)
{
    struct timers *timers = context;
    struct op_timer **timer = threads == 1 ? &timers->one : &timers->all;
    enum err err = *timer ? ERR_OK : op_timer_open((int)threads, timer, why);
    return err ? err : op_timer_measure(*timer, shape, budget_s, out, why);
}

static void open_library(const struct timings_options *options, struct timers *timers,
                         struct timings *out)
{
    const struct engine_library *library;
    struct error inner = {0};
    enum err err = op_timer_open((int)options->threads,
                                 options->threads == 1 ? &timers->one : &timers->all, &inner);
    if (!err)
        err = engine_library_open(&library, &inner);
    if (err)
        (void)chars_copy(out->missing, inner.text);
    else
        chars_format(out->source,
                     "minimum over rounds of operations of llama.cpp %s%s%s on %u threads",
                     library->version, library->cpu[0] ? ", " : "", library->cpu, options->threads);
}

/* The grid of a missing library has no points; `missing` is the reason. */
static void open_llama(struct grid *grid, struct timers *timers)
{
    const struct timings_options *options = grid->options;
    grid->runtime = "llama.cpp";
    grid->clock = options->clock ? options->clock : library_clock;
    grid->context = options->clock ? options->context : timers;
    if (!options->clock)
        open_library(options, timers, grid->out);
}

static void open_onnx(struct grid *grid)
{
    struct timings *out = grid->out;
    struct error inner = {0};
    grid->runtime = "onnxruntime";
    if (ort_timer_open(grid->options->threads, &grid->onnx, &inner))
        (void)chars_copy(out->missing, inner.text);
    else
        chars_format(out->source,
                     "minimum over rounds of operators of ONNX Runtime %s on %u threads",
                     ort_timer_version(grid->onnx), grid->options->threads);
}

static enum err measure(struct grid *grids, size_t count)
{
    for (size_t g = 0; g < count; g++)
        if (grids[g].onnx)
            add_operators(&grids[g]);
        else
            add_all(&grids[g]);
    enum err err = count ? time_rounds(grids, count) : ERR_OK;
    for (size_t g = 0; !err && g < count; g++)
        err = check_timings(&grids[g]);
    for (size_t g = 0; !err && g < count; g++)
        take_table(&grids[g]);
    return err;
}

enum err timings_measure(const struct timings_options *options,
                         struct timings out[TIMINGS_RUNTIMES], struct error *why)
{
    struct timers timers = {0};
    struct progress progress = {0};
    struct grid grids[TIMINGS_RUNTIMES];
    size_t count = 0;
    for (int is_onnx = 0; is_onnx < TIMINGS_RUNTIMES; is_onnx++) {
        out[is_onnx] = (struct timings){0};
        if (is_onnx ? options->skips_onnx : options->skips_llama)
            continue;
        struct grid *grid = &grids[count];
        *grid = (struct grid){
            .options = options, .out = &out[is_onnx], .why = why, .progress = &progress};
        if (is_onnx)
            open_onnx(grid);
        else
            open_llama(grid, &timers);
        count += !grid->out->missing[0];
    }
    enum err err = measure(grids, count);
    for (size_t g = 0; g < count; g++) {
        free(grids[g].points);
        if (grids[g].onnx)
            ort_timer_close(grids[g].onnx);
        if (err)
            timings_release(grids[g].out);
    }
    if (timers.all)
        op_timer_close(timers.all);
    if (timers.one)
        op_timer_close(timers.one);
    return err;
}

void timings_release(struct timings *timings)
{
    int signal = timings->signal;
    free(timings->items);
    *timings = (struct timings){.signal = signal};
}
