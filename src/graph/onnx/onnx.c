/* The reader "onnx", and the walk over the live nodes of a file in topological order.  Subgraphs of If, Loop and Scan
 * (control.c), and calls of functions defined in the file, are walked in place of their node. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graph/graph.h"
#include "graph/model_files.h"
#include "graph/onnx/file.h"
#include "graph/onnx/infer.h"
#include "graph/onnx/operators.h"
#include "graph/reader.h"
#include "port/file.h"

#define DENORMAL_MIN 0.02 /* minimum share of denormal elements in a tensor, to be reported */

/* ---- operators ---- */

static const struct onnx_operator OPERATORS[] = {
#define OPERATOR(name_, function, shapes_, ...)                                                    \
    {.name = name_, .rule = rule_##function, .shapes = shapes_, .op = __VA_ARGS__},
#include "graph/onnx/operators.def"
#undef OPERATOR
};

static int compare_operator(const void *key, const void *row)
{
    const struct slice *name = key;
    const char *other = ((const struct onnx_operator *)row)->name;
    size_t length = strlen(other);
    int order = memcmp(name->start, other, name->length < length ? name->length : length);
    return order ? order : name->length < length ? -1 : name->length > length;
}

const struct onnx_operator *operator_find(struct slice domain, struct slice op)
{
    bool is_microsoft = slice_is(domain, "com.microsoft");
    if (domain.length && !is_microsoft && !slice_is(domain, "ai.onnx"))
        return NULL;
    /* The only name defined in both domains. */
    if (is_microsoft && slice_is(op, "Attention"))
        op = slice_of("com.microsoft.Attention");
    return bsearch(&op, OPERATORS, COUNT_OF(OPERATORS), sizeof *OPERATORS, compare_operator);
}

/* ---- live nodes: a runtime drops dead ones at load time ---- */

struct pending {
    struct infer *infer;
    int32_t *values; /* values whose producers are not visited yet; each is added once */
    size_t count;
};

static void need_values(struct pending *pending, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t value = pending->infer->file->links[first + i];
        if (value == ONNX_NONE || pending->infer->operands[value].is_live)
            continue;
        pending->infer->operands[value].is_live = true;
        pending->values[pending->count++] = value;
    }
}

static void need_outputs(struct pending *pending, int32_t graph)
{
    if (graph == ONNX_NONE)
        return;
    const struct onnx_graph *inner = &pending->infer->file->graphs[graph];
    need_values(pending, inner->first_output, inner->output_count);
}

static void need_node(struct pending *pending, int32_t index)
{
    const struct onnx_file *file = pending->infer->file;
    const struct onnx_node *node = &file->nodes[index];
    pending->infer->is_live[index] = true;
    need_values(pending, node->first_input, node->input_count);
    need_outputs(pending, node->call);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        need_outputs(pending, file->attributes[node->first_attribute + i].graph);
}

/* Everything is live in a file that declares no output. */
static void mark_all(struct infer *infer)
{
    memset(infer->is_live, true, infer->file->node_count);
    for (size_t i = 0; i < infer->file->value_count; i++)
        infer->operands[i].is_live = true;
}

static void count_uses(struct infer *infer)
{
    const struct onnx_file *file = infer->file;
    for (size_t i = 0; i < file->node_count; i++)
        for (uint32_t k = 0; k < file->nodes[i].input_count; k++) {
            int32_t value = file->links[file->nodes[i].first_input + k];
            if (value != ONNX_NONE)
                infer->operands[value].uses += infer->is_live[i];
        }
    for (size_t i = 0; i < file->graph_count; i++)
        for (uint32_t k = 0; k < file->graphs[i].output_count; k++)
            infer->operands[file->links[file->graphs[i].first_output + k]].uses++;
}

static void mark_live(struct infer *infer)
{
    const struct onnx_file *file = infer->file;
    struct pending pending = {.infer = infer};
    if (file->graphs[0].output_count == 0) {
        mark_all(infer);
        return;
    }
    pending.values = xreallocarray(NULL, file->value_count + 1, sizeof *pending.values);
    need_outputs(&pending, 0);
    while (pending.count) {
        int32_t producer = file->values[pending.values[--pending.count]].producer;
        if (producer != ONNX_NONE && !infer->is_live[producer])
            need_node(&pending, producer);
    }
    free(pending.values);
}

/* ---- topological order of one graph ---- */

struct graph_scope {
    const struct onnx_file *file;
    const struct onnx_graph *graph;
};

static int64_t producer_in(const void *data, uint32_t index, uint32_t input)
{
    const struct graph_scope *scope = data;
    uint32_t first = scope->graph->first_node;
    const struct onnx_node *node = &scope->file->nodes[first + index];
    if (input >= node->input_count)
        return ORDER_NO_MORE;
    int32_t value = scope->file->links[node->first_input + input];
    int64_t producer = value == ONNX_NONE ? -1 : scope->file->values[value].producer;
    bool is_inside = producer >= first && producer < (int64_t)first + scope->graph->node_count;
    return is_inside ? producer - first : ORDER_NO_NODE;
}

/* The caller frees *out: node indices within the graph. */
static enum err order_graph(const struct infer *infer, const struct onnx_graph *graph,
                            uint32_t **out)
{
    struct graph_scope scope = {infer->file, graph};
    uint32_t in_cycle;
    *out = xreallocarray(NULL, graph->node_count + 1, sizeof **out);
    enum err err = order_nodes(graph->node_count, producer_in, &scope, *out, &in_cycle);
    if (!err)
        return ERR_OK;
    const struct onnx_node *node = &infer->file->nodes[graph->first_node + in_cycle];
    return err_set(infer->why, err,
                   "%.160s: node '%s' (%s) depends on its own output: the graph has a cycle",
                   infer->file->path, model_label(onnx_node_name(infer->file, node)).text,
                   model_label(node->op).text);
}

static enum err walk_graph(struct infer *infer, int32_t index);

/* ---- functions of the file ---- */

/* A name that does not fit is omitted. */
static void enter_scope(struct infer *infer, struct slice name)
{
    if (infer->scope_length + name.length + 1 > sizeof infer->scope)
        return;
    memcpy(infer->scope + infer->scope_length, name.start, name.length);
    infer->scope_length += name.length;
    infer->scope[infer->scope_length++] = '/';
}

static enum err walk_call(struct step *step)
{
    struct infer *infer = step->infer;
    const struct onnx_node *node = step->node;
    size_t outer = infer->scope_length;
    for (uint32_t i = 0; i < node->input_count; i++) {
        struct operand *to = step_body_input(step, node->call, i), *from = step_input(step, i);
        if (to && from)
            operand_alias(to, from);
    }
    enter_scope(infer, node->name.length ? node->name : node->op);
    enum err err = walk_graph(infer, node->call);
    infer->scope_length = outer;
    for (uint32_t i = 0; i < node->output_count && !err; i++) {
        struct operand *out = step_output(step, i), *from = step_body_output(step, node->call, i);
        if (!out)
            continue;
        if (!from || !from->is_defined)
            return step_fail(step, "the function does not produce its output %u", i);
        operand_alias(out, from);
    }
    return err;
}

/* Known operators need no function definition. */
static bool is_call(const struct onnx_node *node)
{
    return node->call != ONNX_NONE && !operator_find(node->domain, node->op);
}

/* ---- one node ---- */

static enum err check_inputs(struct step *step)
{
    for (size_t i = 0; i < step->node->input_count; i++) {
        const struct operand *in = step_input(step, i);
        if (in && !in->is_defined) {
            int32_t value = step->infer->file->links[step->node->first_input + i];
            return step_fail(step, "its input '%s' is not defined",
                             model_label(step->infer->file->values[value].name).text);
        }
    }
    return ERR_OK;
}

static bool has_guessed_input(const struct step *step)
{
    for (size_t i = 0; i < step->node->input_count; i++)
        if (step_input(step, i) && step_input(step, i)->is_guess)
            return true;
    return false;
}

static enum err apply_rule(struct step *step)
{
    for (size_t i = 0; i < step->row->shapes; i++)
        if (!step_shape(step, i))
            return ERR_OK;
    return step->row->rule(step);
}

static enum err walk_operator(struct step *step)
{
    bool is_guess = has_guessed_input(step);
    step->row = operator_find(step->node->domain, step->node->op);
    step->emitted.op = step->row ? step->row->op : GRAPH_UNKNOWN;
    step->order = step->row ? step->row->order : NULL;
    enum err err = step->row ? apply_rule(step) : ERR_OK;
    /* A contradiction between guesses is not an error of the file. */
    if (err && !(err == ERR_BAD_VALUE && is_guess))
        return err;
    step->is_guessed |= is_guess;
    for (size_t i = 0; i < step->node->output_count; i++)
        if (step_output(step, i))
            inputs_assume_output(step, i);
    fold_mark_codes(step);
    if (!fold_node(step))
        emit_node(step);
    return ERR_OK;
}

static enum err walk_node(struct infer *infer, const struct onnx_node *node)
{
    struct step step = {.infer = infer, .node = node};
    arena_clear(&infer->scratch);
    enum err err = check_inputs(&step);
    if (err)
        return err;
    if (is_call(node)) {
        err = walk_call(&step);
    } else if (control_is(node)) {
        err = control_step(&step);
    } else {
        err = walk_operator(&step);
    }
    for (size_t i = 0; i < node->output_count; i++)
        if (step_output(&step, i))
            step_output(&step, i)->is_defined = true;
    return err;
}

static enum err walk_graph(struct infer *infer, int32_t index)
{
    const struct onnx_graph *graph = &infer->file->graphs[index];
    uint32_t *order;
    enum err err = order_graph(infer, graph, &order);
    infer->walked += index ? graph->node_count : 0;
    for (uint32_t i = 0; i < graph->node_count && !err; i++) {
        uint32_t node = graph->first_node + order[i];
        if (infer->is_live[node])
            err = walk_node(infer, &infer->file->nodes[node]);
    }
    free(order);
    return err;
}

/* ---- the model ---- */

static void add_inputs(struct infer *infer)
{
    const struct onnx_graph *graph = &infer->file->graphs[0];
    for (uint32_t i = 0; i < graph->input_count; i++) {
        int32_t value = infer->file->links[graph->first_input + i];
        const struct operand *operand = &infer->operands[value];
        if (!operand->tensor && operand->id == GRAPH_NONE &&
            (operand->is_live || operand->has_shape))
            emit_input(infer, value);
    }
}

static enum err mark_outputs(struct infer *infer)
{
    const struct onnx_graph *graph = &infer->file->graphs[0];
    for (uint32_t i = 0; i < graph->output_count; i++) {
        int32_t value = infer->file->links[graph->first_output + i];
        const struct operand *operand = &infer->operands[value];
        if (!operand->is_defined)
            return err_set(infer->why, ERR_BAD_VALUE, "%.160s: its output '%s' is not defined",
                           infer->file->path, model_label(infer->file->values[value].name).text);
        tensor_id id = operand->root ? operand->root->id : operand->id;
        if (id != GRAPH_NONE)
            infer->graph->tensors[id].is_output = true;
    }
    return ERR_OK;
}

static enum err walk_model(struct infer *infer, struct graph_options *options)
{
    const struct onnx_graph *graph = &infer->file->graphs[0];
    mark_live(infer);
    count_uses(infer);
    enum err err = inputs_bind(infer, options);
    for (uint32_t i = 0; i < graph->output_count; i++)
        infer->operands[infer->file->links[graph->first_output + i]].is_output = true;
    if (!err) {
        add_inputs(infer);
        err = walk_graph(infer, 0);
    }
    if (!err)
        err = mark_outputs(infer);
    if (!err)
        err = inputs_check_given(infer, options);
    return err ? err : inputs_check_batch(infer, options);
}

enum err onnx_graph(const struct onnx_file *file, struct graph_options *options, struct graph *out,
                    struct error *why)
{
    struct infer infer;
    infer_init(&infer, file, out, why);
    infer.walk = walk_graph;
    enum err err = walk_model(&infer, options);
    out->is_guessed = infer.is_guessed;
    out->file = emit_precision(&infer);
    infer_release(&infer);
    return err ? err : graph_finish(out, why);
}

/* ---- the reader ---- */

/* All files begin with a small ir_version and the name of their producer. */
static int probe(const char *source, const unsigned char *head, size_t length)
{
    if (model_path_ends(source, ".onnx"))
        return 90;
    bool looks_like = head && length > 3 && head[0] == 0x08 && head[1] < 0x40 &&
                      (head[2] == 0x12 || head[2] == 0x1a || head[2] == 0x3a || head[2] == 0x42);
    return looks_like ? 40 : 0;
}

/* External weights may be missing: only their shapes are needed. */
static void warn_of_missing_weights(const struct onnx_file *file)
{
    struct slice checked = {"", 0};
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct slice name = file->tensors[i].external;
        if (name.length == 0 || slice_equal(name, checked))
            continue;
        checked = name;
        char *given = xstrndup(name.start, name.length < PATH_MAX ? name.length : PATH_MAX);
        char *path = model_find_sibling(file->path, given);
        bool is_there = path;
        free(given);
        free(path);
        if (is_there)
            continue;
        log_warn("%s: external weights %s not found; their sizes follow from their shapes",
                 file->path, model_label(name).text);
        return;
    }
}

static enum err open_file(const char *source, struct model *model, struct error *why)
{
    struct onnx_file *file = model->state;
    enum err err = onnx_open(source, file, why);
    if (err)
        return err;
    warn_of_missing_weights(file);
    const char *slash = strrchr(source, '/');
    chars_copy(model->name, slash ? slash + 1 : source);
    if (model_path_ends(model->name, ".onnx"))
        model->name[strlen(model->name) - strlen(".onnx")] = '\0';
    return ERR_OK;
}

/* Share of denormal fp32 elements of a tensor, from an evenly spaced sample. */
static double denormal_share(const struct proto_tensor *tensor)
{
    enum { WINDOWS = 16, EACH = 64 };
    size_t count = tensor->raw.length / sizeof(float), denormal = 0;
    if (tensor->dtype != ONNX_FLOAT || count < WINDOWS * EACH)
        return 0;
    for (size_t i = 0; i < WINDOWS * EACH; i++) {
        size_t at = (count - EACH) / (WINDOWS - 1) * (i / EACH) + i % EACH;
        float element;
        memcpy(&element, tensor->raw.start + at * sizeof element, sizeof element);
        denormal += fpclassify(element) == FP_SUBNORMAL;
    }
    return (double)denormal / (WINDOWS * EACH);
}

/* Training leaves weights that decay to zero; CPUs multiply denormals in microcode. */
static void note_denormals(const struct onnx_file *file, struct graph *graph)
{
    const struct proto_tensor *max = NULL;
    double share = DENORMAL_MIN;
    for (size_t i = 0; i < file->tensor_count; i++) {
        double of = denormal_share(&file->tensors[i]);
        if (of > share) {
            share = of;
            max = &file->tensors[i];
        }
    }
    if (max)
        graph_note(graph,
                   "%.0f %% of the weights '%.40s' are denormal numbers: a CPU may take many times "
                   "as long, unless it flushes them to zero",
                   100 * share, model_label(max->name).text);
}

static enum err build(const struct model *model, struct graph_options *options, struct graph *out,
                      struct error *why)
{
    chars_copy(out->name, model->name);
    enum err err = onnx_graph(model->state, options, out, why);
    if (!err)
        note_denormals(model->state, out);
    return err;
}

static void close_file(struct model *model)
{
    onnx_close(model->state);
}

const struct graph_reader graph_reader_onnx = {
    .name = "onnx",
    .summary = "ONNX files: shapes are inferred; weights inside, external or in Constant nodes",
    .probe = probe,
    .state_size = sizeof(struct onnx_file),
    .open = open_file,
    .build = build,
    .close = close_file,
};
