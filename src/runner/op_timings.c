/* The designed grid.  Products: every format, by the number of tokens that share the weights and by the size of the
 * matrix; for single tokens, whose time is that of reading weights, also by the bytes of all weights, from what a cache
 * holds to what only memory does.  Attention: by queries, earlier tokens and the size of a head.  The rest: by rows. */
#define _GNU_SOURCE
#include "runner/op_timings.h"

#include <math.h>
#include <stdlib.h>

#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "engine/engine.h"
#include "graph/gguf.h"
#include "port/proc.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define MEBI            (1024.0 * 1024.0)

enum {
    BLOCK = 256, /* elements: rows of some formats are multiples of it */
    LARGE_SIDE = 2048,
    MATRICES_MOST = 1024,
    HEADS = 4,
    WIDTH = 1024, /* of rows between products */
    CHAIN = 16,
    FEW_ROWS = 8,
};

/* By their numbers in GGUF files. */
static const uint32_t FORMATS[] = {0, 1, 8, 2, 3, 6, 12, 13, 14};
static const int64_t SIDES[] = {128, 512, LARGE_SIDE};
static const int64_t ROWS[] = {1, 4, 16, 64, 512};
static const struct {
    double bytes;
    int64_t least, most; /* sides of the matrices of models that weigh as much */
    bool has_several;    /* timed for several tokens too */
} HELD[] = {{1 * MEBI, 128, 512, true},
            {8 * MEBI, 128, LARGE_SIDE, false},
            {64 * MEBI, 512, LARGE_SIDE, true},
            {256 * MEBI, LARGE_SIDE, LARGE_SIDE, false}};
static const int64_t QUERIES[] = {1, 16, 63, 64, 512};
static const int64_t CONTEXTS[] = {64, 256, 1024};
static const int64_t HEAD_SIZES[] = {32, 64, 96, 128};
static const int64_t CHAIN_ROWS[] = {1, 4, 64, 512};

struct grid {
    const struct timings_options *options;
    struct timings *out;
    struct op_timer *timer;
    struct error *why;
    unsigned done, all;
};

static enum err report(struct grid *grid, const char *what)
{
    char label[80];
    str_format(label, sizeof label, "llama.cpp %s", what);
    if (grid->options->progress)
        grid->options->progress(label, grid->done, grid->all);
    grid->done++;
    grid->out->signal = proc_poll_signal(0);
    return grid->out->signal ? err_set(grid->why, ERR_INTERRUPTED, "interrupted") : ERR_OK;
}

/* What the library does not compute is left out. */
static enum err add(struct grid *grid, struct hardware_timing timing,
                    const struct op_timer_shape *shape)
{
    struct timings *out = grid->out;
    struct error inner = {0};
    enum err err =
        op_timer_measure(grid->timer, shape, grid->options->budget_s, &timing.seconds, &inner);
    if (err == ERR_UNSUPPORTED || (!err && !(timing.seconds > 0)))
        return ERR_OK;
    if (err)
        return err_set(grid->why, err, "%s", inner.text);
    struct hardware_timing *items =
        grow(out->items, &out->capacity, out->table.count, sizeof *items);
    if (!items)
        return err_set(grid->why, ERR_NO_MEMORY, "out of memory");
    out->items = items;
    items[out->table.count++] = timing;
    return ERR_OK;
}

/* ---- products ---- */

static enum err time_product(struct grid *grid, const struct tensor_type *type, int64_t rows,
                             int64_t side, double held)
{
    double bytes = (double)(side * side) * type->block_bytes / type->block_elements;
    int64_t matrices = (int64_t)fmin(fmax(1, held / bytes), MATRICES_MOST);
    const struct op_timer_shape shape = {.op = OP_TIMER_PRODUCT,
                                         .format = type->number,
                                         .rows = rows,
                                         .depth = side,
                                         .columns = side,
                                         .matrices = matrices};
    return add(grid,
               (struct hardware_timing){.op = TIMING_PRODUCT,
                                        .format = type->name,
                                        .rows = (double)rows,
                                        .depth = (double)side,
                                        .columns = (double)side,
                                        .held = bytes * (double)matrices},
               &shape);
}

/* Many tokens work on weights that are in a cache by then: two matrices are enough. */
static enum err time_side(struct grid *grid, const struct tensor_type *type, int64_t side)
{
    double bytes = (double)(side * side) * type->block_bytes / type->block_elements;
    enum err err = ERR_OK;
    for (size_t r = 0; !err && r < COUNT_OF(ROWS); r++) {
        if (ROWS[r] > FEW_ROWS) {
            err = time_product(grid, type, ROWS[r], side, 2 * bytes);
            continue;
        }
        for (size_t h = 0; !err && h < COUNT_OF(HELD); h++)
            if (side >= HELD[h].least && side <= HELD[h].most &&
                (ROWS[r] == 1 || HELD[h].has_several))
                err = time_product(grid, type, ROWS[r], side, fmax(HELD[h].bytes, bytes));
    }
    return err;
}

static enum err time_format(struct grid *grid, uint32_t number)
{
    const struct tensor_type *type = tensor_type_numbered(number);
    enum err err = type ? report(grid, type->name) : ERR_OK;
    for (size_t s = 0; type && !err && s < COUNT_OF(SIDES); s++) {
        bool is_whole = SIDES[s] % type->block_elements == 0;
        err = time_side(grid, type, is_whole ? SIDES[s] : BLOCK);
    }
    return err;
}

/* ---- the rest ---- */

static enum err time_attention(struct grid *grid, int64_t size)
{
    enum err err = report(grid, "attention");
    for (size_t c = 0; !err && c < COUNT_OF(CONTEXTS); c++)
        for (size_t q = 0; !err && q < COUNT_OF(QUERIES); q++) {
            int64_t context = CONTEXTS[c] < QUERIES[q] ? QUERIES[q] : CONTEXTS[c];
            if (c > 0 && CONTEXTS[c] <= QUERIES[q])
                continue; /* timed as the context before */
            err = add(grid,
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
                                               .matrices = 1});
        }
    return err;
}

static enum err time_chain(struct grid *grid, enum timing_op op, enum op_timer_op engine_op)
{
    enum err err = report(grid, timing_op_name(op));
    for (size_t i = 0; !err && i < COUNT_OF(CHAIN_ROWS); i++)
        err = add(grid,
                  (struct hardware_timing){.op = op, .rows = (double)CHAIN_ROWS[i], .depth = WIDTH},
                  &(struct op_timer_shape){
                      .op = engine_op, .rows = CHAIN_ROWS[i], .depth = WIDTH, .matrices = CHAIN});
    return err;
}

static enum err time_all(struct grid *grid)
{
    static const struct {
        enum timing_op op;
        enum op_timer_op engine_op;
    } CHAINS[] = {{TIMING_NORM, OP_TIMER_NORM},
                  {TIMING_ADD, OP_TIMER_ADD},
                  {TIMING_ROTATION, OP_TIMER_ROTATION},
                  {TIMING_GATE, OP_TIMER_GATE}};
    grid->all = COUNT_OF(FORMATS) + COUNT_OF(HEAD_SIZES) + COUNT_OF(CHAINS);
    const struct op_timer_shape nothing = {.op = OP_TIMER_NOTHING}, step = {.op = OP_TIMER_STEP};
    enum err err = add(grid, (struct hardware_timing){.op = TIMING_PASS}, &nothing);
    if (!err)
        err = add(grid, (struct hardware_timing){.op = TIMING_STEP}, &step);
    for (size_t i = 0; !err && i < COUNT_OF(CHAINS); i++)
        err = time_chain(grid, CHAINS[i].op, CHAINS[i].engine_op);
    for (size_t i = 0; !err && i < COUNT_OF(HEAD_SIZES); i++)
        err = time_attention(grid, HEAD_SIZES[i]);
    for (size_t i = 0; !err && i < COUNT_OF(FORMATS); i++)
        err = time_format(grid, FORMATS[i]);
    return err;
}

enum err timings_measure(const struct timings_options *options, struct timings *out,
                         struct error *why)
{
    const struct engine_library *library;
    struct error inner = {0};
    struct grid grid = {.options = options, .out = out, .why = why};
    *out = (struct timings){0};
    if (op_timer_open((int)options->threads, &grid.timer, &inner) != ERR_OK ||
        engine_library_open(&library, &inner) != ERR_OK) {
        (void)str_copy(out->missing, sizeof out->missing, inner.text);
        return ERR_OK;
    }
    enum err err = time_all(&grid);
    op_timer_close(grid.timer);
    if (err) {
        timings_release(out);
        return err;
    }
    str_format(out->source, sizeof out->source,
               "lower quartiles of operations of llama.cpp %s%s%s on %u threads", library->version,
               library->cpu[0] ? ", " : "", library->cpu, options->threads);
    out->table.runtime = "llama.cpp";
    out->table.source = out->source;
    out->table.threads = options->threads;
    out->table.items = out->items;
    return ERR_OK;
}

void timings_release(struct timings *timings)
{
    int signal = timings->signal;
    free(timings->items);
    *timings = (struct timings){.signal = signal};
}
