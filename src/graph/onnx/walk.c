#include "graph/onnx/walk.h"

#include <stdlib.h>
#include <string.h>

#include "graph/onnx/dims.h"
#include "graph/onnx/emit.h"
#include "graph/onnx/needed.h"
#include "graph/onnx/order.h"
#include "graph/onnx/weights.h"

static enum err walk_graph(struct work *work, int32_t graph);

/* ---- shapes that no rule gives ---- */

static int32_t output_value(const struct step *step, size_t index)
{
    return step->work->file->links[step->node->first_output + index];
}

/* As the file says, or as the first input is. */
static void assume(struct step *step, size_t index)
{
    struct known *out = step_output(step, index);
    int32_t type;
    struct shape told;
    bool is_told = dims_told(step->work, output_value(step, index), &type, &told);
    if (out->type == 0)
        out->type = type;
    if (is_told && (!out->has_shape || step->is_guessed)) {
        out->shape = told;
        out->has_shape = true;
        return;
    }
    out->is_guess = step->is_guessed || !out->has_shape;
    step->work->is_guessed |= out->is_guess;
    if (out->has_shape)
        return;
    out->has_shape = true;
    out->shape = (struct shape){.rank = 1, .dims = {1}};
    for (size_t i = 0; i < step_input_count(step); i++) {
        const struct known *in = step_input(step, i);
        if (!in || !in->has_shape)
            continue;
        out->shape = in->shape;
        out->type = out->type ? out->type : in->type;
        return;
    }
}

/* ---- small numbers ---- */

/* Integers are shapes and indices; of other numbers only as few as scales are. */
static bool is_small(const struct known *out)
{
    enum { MOST_REALS = 8 };
    int64_t elements = shape_elements(&out->shape);
    return type_is_real(out->type) ? elements <= MOST_REALS && out->shape.rank <= 1
                                   : elements <= MOST_NUMBERS;
}

/* True when every output is known by its numbers: nothing is left to be done for it. */
static bool fold(struct step *step)
{
    bool is_folded = step->row && step->node->output_count > 0;
    for (size_t i = 0; step->row && i < step->node->output_count; i++) {
        struct known *out = step_output(step, i);
        if (!out)
            continue;
        int64_t count = shape_elements(&out->shape);
        double *numbers = is_small(out) ? work_numbers(step->work, count) : NULL;
        if (numbers && step->row->fold(step, i, numbers, count))
            out->numbers = numbers;
        is_folded = is_folded && out->numbers && !out->is_output;
    }
    return is_folded;
}

/* The tensor of a Constant node is a tensor of the model; no node is left. */
static bool is_constant(const struct step *step)
{
    const struct known *out = step_output(step, 0);
    return step->row && step->row->rule == rule_constant && out && out->tensor && !out->is_output;
}

/* ---- graphs inside of nodes ---- */

static enum err need_graph(const struct step *step, const char *name, int32_t *out)
{
    const struct onnx_attribute *attribute = step_attribute(step, name);
    *out = ONNX_NONE;
    if (!attribute || attribute->graph == ONNX_NONE)
        return step_fail(step, "it has no graph '%s'", name);
    *out = attribute->graph;
    return ERR_OK;
}

/* Two names of one value. */
static void share(struct known *to, const struct known *from)
{
    bool is_output = to->is_output;
    struct known *root = from->root;
    *to = *from;
    to->is_output = is_output;
    to->root = root ? root : from->tensor ? (struct known *)from : NULL;
    to->is_made = true;
}

static struct known *graph_end(const struct step *step, uint32_t first, uint32_t count,
                               uint32_t index)
{
    return index < count ? &step->work->known[step->work->file->links[first + index]] : NULL;
}

static struct known *body_input(const struct step *step, int32_t graph, uint32_t index)
{
    const struct onnx_graph *body = &step->work->file->graphs[graph];
    return graph_end(step, body->first_input, body->input_count, index);
}

static struct known *body_output(const struct step *step, int32_t graph, uint32_t index)
{
    const struct onnx_graph *body = &step->work->file->graphs[graph];
    return graph_end(step, body->first_output, body->output_count, index);
}

static enum err walk_if(struct step *step)
{
    struct known *condition = step_input(step, 0);
    const double *chosen = condition ? known_numbers(step->work, condition) : NULL;
    bool is_known = chosen && shape_elements(&condition->shape) == 1;
    int32_t graph;
    enum err err =
        need_graph(step, is_known && chosen[0] == 0 ? "else_branch" : "then_branch", &graph);
    step->work->is_guessed |= !is_known;
    if (!err)
        err = walk_graph(step->work, graph);
    for (uint32_t i = 0; i < step->node->output_count && !err; i++) {
        struct known *out = step_output(step, i), *from = body_output(step, graph, i);
        if (out && from)
            share(out, from);
    }
    return err;
}

/* A dimension more in front: what a body gives at each turn, put together. */
static void stack(struct known *to, const struct known *from, int64_t turns)
{
    to->type = from->type;
    to->has_shape = from->has_shape && from->shape.rank < GRAPH_MOST_DIMENSIONS;
    to->shape.rank = (uint8_t)(from->shape.rank + 1);
    to->shape.dims[0] = turns;
    if (to->has_shape)
        memcpy(to->shape.dims + 1, from->shape.dims, from->shape.rank * sizeof(int64_t));
}

static void set_scalar(struct known *to, int32_t type)
{
    *to = (struct known){.has_shape = true, .is_made = true, .type = type, .id = GRAPH_NONE};
}

/* Once: how often depends on data, or on a number that is not looked at here. */
static enum err walk_loop(struct step *step)
{
    int32_t graph;
    int64_t turns = 1;
    if (step_integers(step, 0, &turns, 1) != 1 || turns < 1 || turns > INT32_MAX)
        turns = 1;
    enum err err = need_graph(step, "body", &graph);
    if (err)
        return err;
    step->work->is_guessed = true;
    uint32_t carried = step->node->input_count > 2 ? step->node->input_count - 2 : 0;
    const int32_t types[] = {ONNX_INT64, ONNX_BOOL};
    for (uint32_t i = 0; i < 2; i++)
        if (body_input(step, graph, i))
            set_scalar(body_input(step, graph, i), types[i]);
    for (uint32_t i = 0; i < carried; i++) {
        struct known *to = body_input(step, graph, i + 2), *from = step_input(step, i + 2);
        if (to && from)
            share(to, from);
        if (to)
            to->numbers = NULL; /* at another turn it is another */
    }
    err = walk_graph(step->work, graph);
    for (uint32_t i = 0; i < step->node->output_count && !err; i++) {
        struct known *out = step_output(step, i), *from = body_output(step, graph, i + 1);
        if (out && from && i < carried)
            share(out, from);
        else if (out && from)
            stack(out, from, turns);
        if (out)
            out->numbers = NULL;
    }
    return err;
}

static void drop_first(struct known *known, int64_t *turns)
{
    if (!known->has_shape || known->shape.rank == 0)
        return;
    *turns = known->shape.dims[0];
    known->shape.rank--;
    memmove(known->shape.dims, known->shape.dims + 1, known->shape.rank * sizeof(int64_t));
}

/* Once as well; along the first dimension, as scans are written. */
static enum err walk_scan(struct step *step)
{
    int32_t graph;
    int64_t scanned = step_integer(step, "num_scan_inputs", 0), turns = 1;
    enum err err = need_graph(step, "body", &graph);
    if (err)
        return err;
    step->work->is_guessed = true;
    uint32_t inputs = step->work->file->graphs[graph].input_count;
    uint32_t skipped = step->node->input_count > inputs ? 1 : 0; /* version 8: lengths come first */
    int64_t states = (int64_t)inputs - scanned;
    for (uint32_t i = 0; i < inputs; i++) {
        struct known *to = body_input(step, graph, i), *from = step_input(step, i + skipped);
        if (!from)
            continue;
        share(to, from);
        to->numbers = NULL;
        if (skipped)
            drop_first(to, &turns); /* the batch */
        if ((int64_t)i >= states)
            drop_first(to, &turns);
    }
    err = walk_graph(step->work, graph);
    for (uint32_t i = 0; i < step->node->output_count && !err; i++) {
        struct known *out = step_output(step, i), *from = body_output(step, graph, i);
        if (out && from && (int64_t)i < states && !skipped)
            share(out, from);
        else if (out && from && !skipped)
            stack(out, from, turns);
        if (out)
            out->numbers = NULL;
    }
    return err;
}

/* ---- functions of the file ---- */

static void pass_arguments(const struct step *step, int32_t graph)
{
    for (uint32_t i = 0; i < step->node->input_count; i++) {
        struct known *to = body_input(step, graph, i), *from = step_input(step, i);
        if (to && from)
            share(to, from);
    }
}

static enum err take_results(const struct step *step, int32_t graph)
{
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        struct known *out = step_output(step, i), *from = body_output(step, graph, i);
        if (!out)
            continue;
        if (!from || !from->is_made)
            return step_fail(step, "the function does not make what is its output %u", i);
        share(out, from);
    }
    return ERR_OK;
}

/* A name that does not fit is left out. */
static void enter(struct work *work, struct slice name)
{
    if (work->inside_length + name.length + 1 > sizeof work->inside)
        return;
    memcpy(work->inside + work->inside_length, name.bytes, name.length);
    work->inside_length += name.length;
    work->inside[work->inside_length++] = '/';
}

/* The nodes of the function in the place of the call. */
static enum err walk_call(struct step *step)
{
    struct work *work = step->work;
    int32_t graph = step->node->called;
    size_t outside = work->inside_length;
    pass_arguments(step, graph);
    enter(work, step->node->name.length ? step->node->name : step->node->op);
    enum err err = walk_graph(work, graph);
    work->inside_length = outside;
    step->settings = NULL; /* the nodes inside had the room */
    return err ? err : take_results(step, graph);
}

/* An operator that is known needs no function to say what it does. */
static bool is_call(const struct onnx_node *node)
{
    return node->called != ONNX_NONE && !operator_find(node->domain, node->op);
}

typedef enum err control_function(struct step *step);

static control_function *control_of(const struct onnx_node *node)
{
    if (node->domain.length && !slice_is(node->domain, "ai.onnx"))
        return NULL;
    return slice_is(node->op, "If")     ? walk_if
           : slice_is(node->op, "Loop") ? walk_loop
           : slice_is(node->op, "Scan") ? walk_scan
                                        : NULL;
}

static bool is_same_shape(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

/* The file knows better than one turn of a loop does. */
static void set_told(struct known *out, int32_t type, const struct shape *told)
{
    bool is_output = out->is_output;
    *out = (struct known){
        .has_shape = true, .type = type, .shape = *told, .id = GRAPH_NONE, .is_output = is_output};
}

/* What a graph inside gave has its tensors already; what it did not give is taken from the file. */
static enum err end_control(struct step *step)
{
    bool is_missing = false;
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        struct known *out = step_output(step, i);
        int32_t type;
        struct shape told;
        if (!out)
            continue;
        if (dims_told(step->work, output_value(step, i), &type, &told) &&
            (!out->has_shape || !is_same_shape(&told, &out->shape)))
            set_told(out, type, &told);
        is_missing |= out->id == GRAPH_NONE && !out->tensor && !out->numbers;
        assume(step, i);
    }
    if (!is_missing)
        return ERR_OK;
    step->made.op = GRAPH_MOVE; /* puts together what the turns gave */
    return emit_node(step);
}

/* ---- one node ---- */

static enum err check_inputs(const struct step *step)
{
    for (size_t i = 0; i < step_input_count(step); i++) {
        const struct known *in = step_input(step, i);
        if (in && !in->is_made) {
            int32_t value = step->work->file->links[step->node->first_input + i];
            return step_fail(step, "it reads '%s', which nothing makes",
                             onnx_words(step->work->file->values[value].name).text);
        }
    }
    return ERR_OK;
}

/* A rule that works with a guess makes another, and a contradiction is then no mistake of the file. */
static bool reads_guess(const struct step *step)
{
    for (size_t i = 0; i < step_input_count(step); i++)
        if (step_input(step, i) && step_input(step, i)->is_guess)
            return true;
    return false;
}

static enum err walk_operator(struct step *step)
{
    bool is_guess = reads_guess(step);
    step->row = operator_find(step->node->domain, step->node->op);
    step->made.op = step->row ? step->row->op : GRAPH_UNKNOWN;
    enum err err = step->row ? step->row->rule(step) : ERR_OK;
    if (err && !(err == ERR_BAD_VALUE && is_guess))
        return err;
    step->is_guessed |= is_guess;
    for (size_t i = 0; i < step->node->output_count; i++)
        if (step_output(step, i))
            assume(step, i);
    /* Of integers the numbers come first: they may be a shape. */
    bool is_done = is_constant(step) || (weights_are_real(step) && weights_follow(step)) ||
                   fold(step) || weights_follow(step) || weights_are_fixed(step);
    if (is_done)
        return ERR_OK;
    return emit_node(step);
}

static enum err walk_node(struct work *work, const struct onnx_node *node)
{
    struct step step;
    enum err err = step_init(&step, work, node);
    if (!err)
        err = check_inputs(&step);
    if (err)
        return err;
    control_function *control = control_of(node);
    if (is_call(node)) {
        err = walk_call(&step);
    } else if (control) {
        err = control(&step);
        step.settings = NULL; /* the nodes inside had the room */
        if (!err)
            err = end_control(&step);
    } else {
        err = walk_operator(&step);
    }
    for (size_t i = 0; i < node->output_count; i++)
        if (step_output(&step, i))
            step_output(&step, i)->is_made = true;
    return err;
}

static enum err walk_graph(struct work *work, int32_t graph)
{
    uint32_t *order;
    enum err err = order_nodes(work->file, graph, &order, work->why);
    for (uint32_t i = 0; i < work->file->graphs[graph].node_count && !err; i++)
        err = work->is_needed[order[i]] ? walk_node(work, &work->file->nodes[order[i]]) : ERR_OK;
    free(order);
    return err;
}

/* ---- the whole ---- */

static void mark_outputs(struct work *work)
{
    const struct onnx_graph *graph = &work->file->graphs[0];
    for (uint32_t i = 0; i < graph->output_count; i++)
        work->known[work->file->links[graph->first_output + i]].is_output = true;
}

static enum err add_inputs(struct work *work)
{
    const struct onnx_graph *graph = &work->file->graphs[0];
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < graph->input_count && !err; i++) {
        int32_t value = work->file->links[graph->first_input + i];
        const struct known *known = &work->known[value];
        if (!known->tensor && known->id == GRAPH_NONE && (known->is_needed || known->has_shape))
            err = emit_input(work, value);
    }
    return err;
}

/* An output that nothing makes is a mistake in the file. */
static enum err end_outputs(struct work *work)
{
    const struct onnx_graph *graph = &work->file->graphs[0];
    for (uint32_t i = 0; i < graph->output_count; i++) {
        int32_t value = work->file->links[graph->first_output + i];
        const struct known *known = &work->known[value];
        if (!known->is_made)
            return err_set(work->why, ERR_BAD_VALUE, "%.160s: nothing makes its output '%s'",
                           work->file->path, onnx_words(work->file->values[value].name).text);
        tensor_id id = known->root ? known->root->id : known->id;
        if (id != GRAPH_NONE)
            work->graph->tensors[id].is_output = true;
    }
    return ERR_OK;
}

static enum err walk(struct work *work, struct graph_setting *setting)
{
    enum err err = needed_mark(work);
    if (!err)
        err = dims_bind(work, setting);
    if (err)
        return err;
    mark_outputs(work);
    err = add_inputs(work);
    if (!err)
        err = walk_graph(work, 0);
    if (!err)
        err = end_outputs(work);
    return err ? err : dims_check_batch(work, setting);
}

enum err onnx_graph(const struct onnx_file *file, struct graph_setting *setting, struct graph *out,
                    struct error *why)
{
    struct work work;
    enum err err = work_init(&work, file, out, why);
    if (!err)
        err = walk(&work, setting);
    out->is_guessed = work.is_guessed;
    work_release(&work);
    return err ? err : graph_finish(out, why);
}
