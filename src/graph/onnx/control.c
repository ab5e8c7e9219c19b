/* Nodes with subgraphs: If, Loop and Scan.  A body is unrolled: it is walked as often as it runs, each time with the
 * values of that iteration, so that the graph has every kernel that a runtime launches, with its shapes; weights are
 * added once.  For a data-dependent If both branches are walked, and the larger one is kept: the weights of both are
 * loaded. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/count.h"
#include "graph/model_files.h"
#include "graph/onnx/infer.h"

enum {
    MAX_WALKED = 1 << 17,  /* nodes of bodies, over all iterations of a file */
    MAX_STACKED = 1 << 20, /* tensors stacked into outputs of a loop */
};

static enum err find_graph(struct step *step, const char *name, int32_t *out)
{
    const struct onnx_attribute *attribute = step_attribute(step, name);
    *out = attribute ? attribute->graph : ONNX_NONE;
    return *out == ONNX_NONE ? step_fail(step, "missing graph '%s'", name) : ERR_OK;
}

static struct model_label label_of(const struct step *step)
{
    return model_label(onnx_node_name(step->infer->file, step->node));
}

/* ---- If ---- */

static double flops_since(const struct graph *graph, size_t first)
{
    double flops = 0;
    for (size_t i = first; i < graph->node_count; i++) {
        struct graph_cost cost = graph_node_cost(graph, &graph->nodes[i]);
        flops += graph_flops(&cost);
    }
    return flops;
}

static void take_branch(struct step *step, int32_t branch)
{
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        struct operand *out = step_output(step, i), *from = step_body_output(step, branch, i);
        if (out && from)
            operand_alias(out, from);
    }
}

/* A branch that contradicts the shapes is not taken. */
static enum err walk_both(struct step *step, int32_t then_branch, int32_t else_branch)
{
    struct infer *infer = step->infer;
    struct graph *graph = infer->graph;
    size_t first = graph->node_count;
    enum err err = infer->walk(infer, then_branch);
    if (err && err != ERR_BAD_VALUE)
        return err;
    double flops = err ? -1 : flops_since(graph, first);
    size_t second = graph->node_count;
    enum err other = infer->walk(infer, else_branch);
    if (other && (err || other != ERR_BAD_VALUE))
        return other;
    bool is_else = !other && flops_since(graph, second) > flops;
    if (is_else)
        graph_remove_nodes(graph, first, second - first);
    else
        graph_remove_nodes(graph, second, graph->node_count - second);
    take_branch(step, is_else ? else_branch : then_branch);
    infer->is_guessed = true;
    graph_note(
        graph,
        "If '%s' depends on data: its larger branch (%s) is counted, and the weights of both "
        "are in memory",
        label_of(step).text, is_else ? "else" : "then");
    return ERR_OK;
}

static enum err walk_if(struct step *step)
{
    struct operand *condition = step_input(step, 0);
    const double *chosen = condition ? operand_data(step->infer, condition) : NULL;
    bool is_known = chosen && shape_elements(&condition->shape) == 1;
    int32_t then_branch, else_branch;
    enum err err = find_graph(step, "then_branch", &then_branch);
    if (!err)
        err = find_graph(step, "else_branch", &else_branch);
    if (err)
        return err;
    if (!is_known)
        return walk_both(step, then_branch, else_branch);
    int32_t branch = chosen[0] == 0 ? else_branch : then_branch;
    err = step->infer->walk(step->infer, branch);
    if (!err)
        take_branch(step, branch);
    return err;
}

/* ---- iterations of a body ---- */

struct loop {
    struct step *step;
    int32_t body;
    uint32_t states;              /* values carried from one iteration to the next */
    uint32_t state_in, state_out; /* the first of them among the inputs and outputs of the body */
    uint32_t stacks;          /* outputs that collect one value per iteration, after the states */
    int64_t iterations, done; /* total, and completed */
    bool is_exact;            /* the number of iterations is known */
    struct operand *carried;  /* value of each state after the last iteration */
    int32_t *inner;           /* values of the body and of its subgraphs */
    size_t inner_count;
    tensor_id *stacked; /* per stack, one tensor per iteration; NULL: too many to list */
};

static void loop_release(struct loop *loop)
{
    free(loop->carried);
    free(loop->inner);
    free(loop->stacked);
}

static bool is_inside(const struct onnx_file *file, int32_t graph, int32_t body)
{
    while (graph >= 0 && graph != body)
        graph = file->graphs[graph].parent;
    return graph == body;
}

/* Tensors keep their place in the graph, including those of Constant nodes. */
static bool is_kept(const struct infer *infer, int32_t value)
{
    const struct operand *operand = &infer->operands[value];
    return infer->file->values[value].tensor != ONNX_NONE ||
           (operand->tensor && operand->is_constant_node && !operand->root);
}

static void list_inner(struct loop *loop)
{
    const struct onnx_file *file = loop->step->infer->file;
    for (size_t i = 0; i < file->value_count; i++)
        if (is_inside(file, file->values[i].graph, loop->body))
            loop->inner[loop->inner_count++] = (int32_t)i;
}

static void loop_init(struct loop *loop, struct step *step)
{
    const struct infer *infer = step->infer;
    const struct onnx_graph *body = &infer->file->graphs[loop->body];
    int64_t left = MAX_WALKED - (int64_t)infer->walked;
    int64_t max = left / (body->node_count ? body->node_count : 1);
    loop->step = step;
    if (loop->iterations > max) {
        graph_note(infer->graph,
                   "%s '%s' runs %lld times, too many to unroll: the first %lld are counted",
                   model_label(step->node->op).text, label_of(step).text,
                   (long long)loop->iterations, (long long)(max > 1 ? max : 1));
        loop->step->infer->is_guessed = true;
        loop->iterations = max > 1 ? max : 1;
    }
    loop->carried = xcalloc(loop->states + 1, sizeof *loop->carried);
    loop->inner = xreallocarray(NULL, infer->file->value_count + 1, sizeof *loop->inner);
    if (loop->stacks && loop->iterations <= MAX_STACKED / loop->stacks)
        loop->stacked =
            xreallocarray(NULL, (size_t)loop->iterations * loop->stacks, sizeof *loop->stacked);
    list_inner(loop);
}

/* A copy that outlives its iteration. */
static void copy_state(struct operand *to, struct operand *from)
{
    *to = *from;
    to->root = from->root ? from->root : from->tensor ? from : NULL;
    to->viewed = NULL;
}

/* Resets the values of the body after an iteration. */
static void reset_values(const struct loop *loop)
{
    struct infer *infer = loop->step->infer;
    for (size_t i = 0; i < loop->inner_count; i++) {
        struct operand *operand = &infer->operands[loop->inner[i]];
        if (!is_kept(infer, loop->inner[i]))
            *operand = (struct operand){.id = GRAPH_NONE,
                                        .uses = operand->uses,
                                        .is_live = operand->is_live,
                                        .is_output = operand->is_output};
    }
}

static void bind_states(const struct loop *loop)
{
    for (uint32_t i = 0; i < loop->states; i++) {
        struct operand *to = step_body_input(loop->step, loop->body, loop->state_in + i);
        if (!to || !loop->carried[i].is_defined)
            continue;
        operand_alias(to, &loop->carried[i]);
        to->root = loop->carried[i].root;
        if (!loop->is_exact)
            to->data = NULL; /* changes between iterations */
    }
}

/* "loop.3.": reports group names that differ only in such a number. */
static void enter_iteration(const struct loop *loop)
{
    struct infer *infer = loop->step->infer;
    size_t space = sizeof infer->scope - infer->scope_length;
    struct slice name = onnx_node_name(infer->file, loop->step->node);
    char text[128];
    if (chars_format(text, "%.*s.%lld.", (int)(name.length & 0x3f), name.start,
                     (long long)loop->done) &&
        strlen(text) < space) {
        memcpy(infer->scope + infer->scope_length, text, strlen(text));
        infer->scope_length += strlen(text);
    }
}

static enum err walk_iteration(struct loop *loop)
{
    struct step *step = loop->step;
    size_t outer = step->infer->scope_length;
    bind_states(loop);
    enter_iteration(loop);
    enum err err = step->infer->walk(step->infer, loop->body);
    step->infer->scope_length = outer;
    for (uint32_t i = 0; i < loop->states && !err; i++) {
        struct operand *from = step_body_output(step, loop->body, loop->state_out + i);
        if (from)
            copy_state(&loop->carried[i], from);
    }
    for (uint32_t i = 0; i < loop->stacks && loop->stacked && !err; i++) {
        const struct operand *from =
            step_body_output(step, loop->body, loop->state_out + loop->states + i);
        tensor_id tensor = GRAPH_NONE;
        if (from)
            tensor = from->root ? from->root->id : from->id;
        loop->stacked[i * loop->iterations + loop->done] = tensor;
    }
    loop->done++;
    return err;
}

/* The values of all iterations, stacked along a new dimension. */
static void stack(const struct loop *loop, uint32_t index, int64_t axis)
{
    struct step *step = loop->step;
    struct operand *to = step_output(step, loop->states + index);
    const struct operand *from =
        step_body_output(step, loop->body, loop->state_out + loop->states + index);
    if (!to || !from || !loop->done || !from->has_shape || from->shape.rank >= GRAPH_MAX_RANK)
        return;
    int rank = from->shape.rank + 1;
    int at = axis < 0 ? (int)(axis + rank) : (int)axis;
    at = at < 0 || at >= rank ? 0 : at;
    to->dtype = from->dtype;
    to->has_shape = true;
    to->shape.rank = (uint8_t)rank;
    for (int i = 0, k = 0; i < rank; i++)
        to->shape.dims[i] = i == at ? loop->done : from->shape.dims[k++];
    if (loop->stacked)
        emit_stack(step, loop->stacked + index * loop->iterations, (size_t)loop->done, to);
}

static void end_loop(const struct loop *loop, const int64_t *axes)
{
    for (uint32_t i = 0; i < loop->states; i++) {
        struct operand *out = step_output(loop->step, i);
        if (!out || !loop->carried[i].is_defined)
            continue;
        operand_alias(out, &loop->carried[i]);
        out->root = loop->carried[i].root;
        if (!loop->is_exact)
            out->data = NULL;
    }
    for (uint32_t i = 0; i < loop->stacks; i++)
        stack(loop, i, axes && i < GRAPH_MAX_RANK ? axes[i] : 0);
}

/* ---- Loop ---- */

static void set_scalar(const struct loop *loop, uint32_t input, int32_t dtype, double value)
{
    struct operand *to = step_body_input(loop->step, loop->body, input);
    if (!to)
        return;
    *to = (struct operand){.has_shape = true,
                           .is_defined = true,
                           .dtype = dtype,
                           .id = GRAPH_NONE,
                           .uses = to->uses,
                           .is_live = to->is_live};
    double *data = loop->is_exact ? infer_alloc_data(loop->step->infer, 1) : NULL;
    if (data)
        data[0] = value;
    to->data = data;
}

/* 1: true, 0: false, -1: data-dependent. */
static int condition_of(struct infer *infer, struct operand *operand)
{
    const double *data = operand ? operand_data(infer, operand) : NULL;
    return data && shape_elements(&operand->shape) == 1 ? data[0] != 0 : -1;
}

/* Maximum number of iterations, from its first input or given by the user.  Exporters write an infinite loop as the
 * largest number. */
static enum err find_trips(struct step *step, struct loop *loop)
{
    int64_t trips = -1;
    bool is_stated = step_input_ints(step, 0, &trips, 1) == 1 && trips >= 0 && trips < INT32_MAX;
    bool is_given = false;
    enum err err = ERR_OK;
    if (!is_stated)
        err = inputs_given_trips(step->infer, onnx_node_name(step->infer->file, step->node), &trips,
                                 &is_given);
    loop->is_exact = is_stated || is_given;
    loop->iterations = loop->is_exact ? trips : 1;
    if (step_input(step, 1) && condition_of(step->infer, step_input(step, 1)) == 0)
        loop->iterations = 0;
    if (err || loop->is_exact)
        return err;
    step->infer->is_guessed = step->is_guessed = true;
    graph_note(step->infer->graph,
               "Loop '%s' runs an unknown number of times: counted once; give it with --dim %s=N",
               label_of(step).text, label_of(step).text);
    return ERR_OK;
}

static enum err walk_loop(struct step *step)
{
    struct loop loop = {.state_in = 2, .state_out = 1};
    bool may_end = false;
    enum err err = find_graph(step, "body", &loop.body);
    if (!err)
        err = find_trips(step, &loop);
    if (err)
        return err;
    loop.states = step->node->input_count > 2 ? step->node->input_count - 2 : 0;
    if (step->node->output_count > loop.states)
        loop.stacks = step->node->output_count - loop.states;
    loop_init(&loop, step);
    for (uint32_t i = 0; i < loop.states; i++)
        if (step_input(step, i + 2))
            copy_state(&loop.carried[i], step_input(step, i + 2));
    while (loop.done < loop.iterations && !err) {
        reset_values(&loop);
        set_scalar(&loop, 0, ONNX_INT64, (double)loop.done);
        set_scalar(&loop, 1, ONNX_BOOL, 1);
        err = walk_iteration(&loop);
        int goes_on = condition_of(step->infer, step_body_output(step, loop.body, 0));
        may_end |= goes_on < 0 && loop.done < loop.iterations;
        if (goes_on == 0 || step->infer->walked > MAX_WALKED)
            break;
    }
    if (may_end && loop.is_exact && !err) {
        step->infer->is_guessed = true;
        graph_note(step->infer->graph, "Loop '%s' may end early: all %lld iterations are counted",
                   label_of(step).text, (long long)loop.done);
    }
    if (!err)
        end_loop(&loop, NULL);
    loop_release(&loop);
    return err;
}

/* ---- Scan ---- */

/* Returns its size; 0: there is no such dimension. */
static int64_t drop_dim(struct shape *shape, int64_t axis)
{
    int at;
    if (!resolve_axis(axis, shape->rank, &at))
        return 0;
    int64_t size = shape->dims[at];
    shape->rank--;
    memmove(shape->dims + at, shape->dims + at + 1,
            (size_t)(shape->rank - at) * sizeof shape->dims[0]);
    return size;
}

struct scan {
    struct loop loop;
    int64_t axes[GRAPH_MAX_RANK];
    uint32_t axis_count, scanned;
    bool is_batched; /* version 8: batch dimension, and lengths as the first input */
};

static struct operand *scanned_input(const struct scan *scan, uint32_t index)
{
    return step_input(scan->loop.step, scan->loop.states + index + scan->is_batched);
}

static int64_t axis_of(const struct scan *scan, uint32_t index)
{
    return index < scan->axis_count ? scan->axes[index] : 0;
}

/* One slice of each scanned input. */
static void bind_slices(const struct scan *scan)
{
    struct step *step = scan->loop.step;
    for (uint32_t i = 0; i < scan->scanned; i++) {
        struct operand *to = step_body_input(step, scan->loop.body, scan->loop.states + i);
        const struct operand *from = scanned_input(scan, i);
        if (!to || !from)
            continue;
        operand_alias(to, from);
        to->data = NULL;
        to->is_data_read = true;
        if (scan->is_batched)
            drop_dim(&to->shape, 0);
        drop_dim(&to->shape, axis_of(scan, i));
        if (from->id != GRAPH_NONE && !from->root && !from->tensor)
            emit_view(step, from->id, to);
    }
}

static int64_t scan_length(const struct scan *scan)
{
    const struct operand *first = scanned_input(scan, 0);
    if (!first || !first->has_shape)
        return 1;
    struct shape shape = first->shape;
    int64_t batch = scan->is_batched ? drop_dim(&shape, 0) : 1;
    int64_t length = drop_dim(&shape, axis_of(scan, 0));
    return batch * length > 0 ? batch * length : 1;
}

/* The initial states. */
static void begin_states(const struct scan *scan)
{
    for (uint32_t i = 0; i < scan->loop.states; i++) {
        struct operand *from = step_input(scan->loop.step, i + scan->is_batched);
        if (!from)
            continue;
        copy_state(&scan->loop.carried[i], from);
        if (scan->is_batched)
            drop_dim(&scan->loop.carried[i].shape, 0);
    }
}

/* A first dimension without a size is taken as the batch; that of a sequence may be its length instead. */
static void note_length(const struct scan *scan)
{
    const struct step *step = scan->loop.step;
    uint32_t index = scan->loop.states + scan->is_batched;
    if (index >= step->node->input_count || scan->loop.iterations != 1)
        return;
    int32_t value = step->infer->file->links[step->node->first_input + index];
    struct slice dim = inputs_open_dim(step->infer, value, axis_of(scan, 0) + scan->is_batched);
    if (!dim.length)
        return;
    struct model_label name = model_label(dim);
    step->infer->is_guessed = true;
    graph_note(step->infer->graph,
               "Scan '%s' runs over '%s', taken as a batch of 1: give its length with --dim %s=N",
               label_of(step).text, name.text, name.text);
}

static enum err walk_scan(struct step *step)
{
    struct scan scan = {0};
    struct loop *loop = &scan.loop;
    int64_t scanned = step_int(step, "num_scan_inputs", 0), out_axes[GRAPH_MAX_RANK] = {0};
    enum err err = find_graph(step, "body", &loop->body);
    if (err)
        return err;
    uint32_t inputs = step->infer->file->graphs[loop->body].input_count;
    scan.scanned = scanned > 0 && scanned < inputs ? (uint32_t)scanned : inputs;
    scan.is_batched = step->node->input_count > inputs;
    scan.axis_count = (uint32_t)step_ints(step, "scan_input_axes", scan.axes, GRAPH_MAX_RANK);
    (void)step_ints(step, "scan_output_axes", out_axes, GRAPH_MAX_RANK);
    loop->states = inputs - scan.scanned;
    if (step->node->output_count > loop->states)
        loop->stacks = step->node->output_count - loop->states;
    loop->step = step;
    loop->is_exact = true;
    loop->iterations = scan_length(&scan);
    note_length(&scan);
    step->is_guessed = scan.is_batched;
    step->infer->is_guessed |= scan.is_batched;
    loop_init(loop, step);
    begin_states(&scan);
    while (loop->done < loop->iterations && !err) {
        reset_values(loop);
        bind_slices(&scan);
        err = walk_iteration(loop);
        if (step->infer->walked > MAX_WALKED)
            break;
    }
    if (!err && !scan.is_batched)
        end_loop(loop, out_axes);
    loop_release(loop);
    return err;
}

/* ---- all of these ---- */

/* Outputs computed by the body are in the graph already; the others are as declared in the file. */
static void end_subgraph(struct step *step)
{
    bool is_missing = false;
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        struct operand *out = step_output(step, i);
        int32_t dtype;
        struct shape declared;
        if (!out)
            continue;
        /* After an unknown number of iterations, the declared shape is better. */
        if (step->is_guessed &&
            inputs_declared(step->infer, step->infer->file->links[step->node->first_output + i],
                            &dtype, &declared) &&
            (!out->has_shape || !shape_equal(&declared, &out->shape)))
            *out = (struct operand){.has_shape = true,
                                    .dtype = dtype,
                                    .shape = declared,
                                    .id = GRAPH_NONE,
                                    .uses = out->uses,
                                    .is_output = out->is_output};
        is_missing |= out->id == GRAPH_NONE && !out->tensor && !out->data;
        inputs_assume_output(step, i);
    }
    if (!is_missing)
        return;
    step->emitted.op = GRAPH_MOVE; /* gathers the outputs of the iterations */
    emit_node(step);
}

typedef enum err control_walk(struct step *step);

static control_walk *walk_of(const struct onnx_node *node)
{
    if (node->domain.length && !slice_is(node->domain, "ai.onnx"))
        return NULL;
    if (slice_is(node->op, "If"))
        return walk_if;
    if (slice_is(node->op, "Loop"))
        return walk_loop;
    return slice_is(node->op, "Scan") ? walk_scan : NULL;
}

bool control_is(const struct onnx_node *node)
{
    return walk_of(node) != NULL;
}

enum err control_step(struct step *step)
{
    enum err err = walk_of(step->node)(step);
    if (!err)
        end_subgraph(step);
    return err;
}
