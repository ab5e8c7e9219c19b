#include "support/onnx_file.h"

#include <math.h>
#include <string.h>

#include "graph/count.h"
#include "graph/onnx/infer.h"
#include "graph/reader.h"

/* ---- parts of a model ---- */

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static struct text make_tensor(const char *name, unsigned type, const int64_t *dims, size_t rank)
{
    struct text out = {0};
    size_t elements = 1;
    for (size_t i = 0; i < rank; i++) {
        onnx_put_number(&out, 1, (uint64_t)dims[i]);
        elements *= (size_t)dims[i];
    }
    onnx_put_number(&out, 2, type);
    onnx_put_string(&out, 8, name);
    struct text data = {0};
    for (size_t i = 0; type == FLOAT && i < elements; i++)
        text_add_bytes(&data, "\0\0\x80\x3f", 4);
    if (type == FLOAT)
        onnx_put_message(&out, 9, &data);
    return out;
}

static void put_floats(struct text *graph, const char *name, const int64_t *dims, size_t rank)
{
    struct text weight = make_tensor(name, FLOAT, dims, rank);
    onnx_put_message(graph, 5, &weight);
}

/* Elements as packed varints; none negative. */
static void put_integers(struct text *graph, const char *name, unsigned type,
                         const int64_t *numbers, size_t count, size_t rank)
{
    int64_t length = (int64_t)count;
    struct text out = make_tensor(name, type, &length, rank), packed = {0};
    for (size_t i = 0; i < count; i++)
        onnx_put_varint(&packed, (uint64_t)numbers[i]);
    onnx_put_message(&out, type == INT64 ? 7 : 5, &packed);
    onnx_put_message(graph, 5, &out);
}

static struct text make_node(const char *op, const char *const *inputs, const char *output)
{
    struct text out = {0};
    for (; *inputs; inputs++)
        onnx_put_string(&out, 1, *inputs);
    onnx_put_string(&out, 2, output);
    onnx_put_string(&out, 3, output);
    onnx_put_string(&out, 4, op);
    return out;
}

static void set_integers(struct text *to, const char *name, const int64_t *numbers, size_t count)
{
    struct text setting = {0};
    onnx_put_string(&setting, 1, name);
    for (size_t i = 0; i < count; i++)
        onnx_put_number(&setting, 8, (uint64_t)numbers[i]);
    onnx_put_number(&setting, 20, 7);
    onnx_put_message(to, 5, &setting);
}

static void set_integer(struct text *to, const char *name, int64_t number)
{
    struct text setting = {0};
    onnx_put_string(&setting, 1, name);
    onnx_put_number(&setting, 3, (uint64_t)number);
    onnx_put_number(&setting, 20, 2);
    onnx_put_message(to, 5, &setting);
}

static void set_message(struct text *to, const char *name, unsigned field, struct text *message)
{
    struct text setting = {0};
    onnx_put_string(&setting, 1, name);
    onnx_put_message(&setting, field, message);
    onnx_put_message(to, 5, &setting);
}

static void put_node(struct text *graph, const char *op, const char *const *inputs,
                     const char *output)
{
    struct text out = make_node(op, inputs, output);
    onnx_put_message(graph, 1, &out);
}

/* A negative size is the symbolic dimension "batch". */
static void put_info(struct text *graph, unsigned field, const char *name, unsigned type,
                     const int64_t *dims, size_t rank)
{
    struct text info = {0}, kind = {0}, of_tensor = {0}, shape = {0};
    for (size_t i = 0; i < rank; i++) {
        struct text dim = {0};
        if (dims[i] < 0)
            onnx_put_string(&dim, 2, "batch");
        else
            onnx_put_number(&dim, 1, (uint64_t)dims[i]);
        onnx_put_message(&shape, 1, &dim);
    }
    onnx_put_number(&of_tensor, 1, type);
    onnx_put_message(&of_tensor, 2, &shape);
    onnx_put_message(&kind, 1, &of_tensor);
    onnx_put_string(&info, 1, name);
    onnx_put_message(&info, 2, &kind);
    onnx_put_message(graph, field, &info);
}

/* ---- the model ---- */

static void put_space(struct text *graph)
{
    put_floats(graph, "conv.weight", (int64_t[]){4, 2, 3, 3}, 4);
    struct text conv = make_node("Conv", (const char *[]){"image", "conv.weight", NULL}, "conv");
    set_integers(&conv, "kernel_shape", (int64_t[]){3, 3}, 2);
    set_integers(&conv, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    onnx_put_message(graph, 1, &conv);
    for (int i = 0; i < 4; i++)
        put_floats(graph, (const char *[]){"g", "b", "m", "v"}[i], (int64_t[]){4}, 1);
    put_node(graph, "BatchNormalization", (const char *[]){"conv", "g", "b", "m", "v", NULL}, "bn");
    put_node(graph, "Relu", (const char *[]){"bn", NULL}, "relu");
}

static void put_reshape(struct text *graph)
{
    put_integers(graph, "zero", INT64, (int64_t[]){0}, 1, 1);
    put_integers(graph, "rest", INT64, (int64_t[]){16, 16}, 2, 1);
    put_node(graph, "Shape", (const char *[]){"relu", NULL}, "shape");
    put_node(graph, "Gather", (const char *[]){"shape", "zero", NULL}, "first");
    struct text concat = make_node("Concat", (const char *[]){"first", "rest", NULL}, "wanted");
    set_integer(&concat, "axis", 0);
    onnx_put_message(graph, 1, &concat);
    put_node(graph, "Reshape", (const char *[]){"relu", "wanted", NULL}, "steps");
}

static struct text make_branch(const char *op, const char *output)
{
    struct text graph = {0};
    put_node(&graph, op, (const char *[]){"steps", NULL}, output);
    put_info(&graph, 12, output, FLOAT, (int64_t[]){-1, 16, 16}, 3);
    return graph;
}

static void put_rest(struct text *graph)
{
    put_integers(graph, "choice", BOOL, (int64_t[]){1}, 1, 0);
    struct text condition = make_node("If", (const char *[]){"choice", NULL}, "chosen");
    struct text one = make_branch("Tanh", "then"), other = make_branch("Sigmoid", "else");
    set_message(&condition, "then_branch", 6, &one);
    set_message(&condition, "else_branch", 6, &other);
    onnx_put_message(graph, 1, &condition);
    struct text constant = make_node("Constant", (const char *[]){NULL}, "matrix");
    struct text value = make_tensor("", FLOAT, (int64_t[]){16, 8}, 2);
    set_message(&constant, "value", 5, &value);
    onnx_put_message(graph, 1, &constant);
    put_node(graph, "MatMul", (const char *[]){"chosen", "matrix", NULL}, "product");
    put_floats(graph, "w", (int64_t[]){1, 12, 8}, 3);
    put_floats(graph, "r", (int64_t[]){1, 12, 3}, 3);
    struct text lstm = make_node("LSTM", (const char *[]){"product", "w", "r", NULL}, "all");
    set_integer(&lstm, "hidden_size", 3);
    onnx_put_message(graph, 1, &lstm);
    struct text call = make_node("Bent", (const char *[]){"all", NULL}, "bent");
    onnx_put_string(&call, 7, "ours");
    set_integers(&call, "order", (int64_t[]){1, 0, 2, 3}, 4);
    onnx_put_message(graph, 1, &call);
    put_node(graph, "Oddity", (const char *[]){"bent", NULL}, "out");
}

/* Transposes its input as the call says; the call omits its optional input. */
static struct text make_function(void)
{
    struct text out = {0}, order = {0};
    struct text turn = make_node("Transpose", (const char *[]){"x", NULL}, "turned");
    onnx_put_string(&order, 1, "perm");
    onnx_put_string(&order, 21, "order");
    onnx_put_message(&turn, 5, &order);
    struct text clip = make_node("Clip", (const char *[]){"turned", "low", NULL}, "y");
    onnx_put_string(&out, 1, "Bent");
    onnx_put_string(&out, 4, "x");
    onnx_put_string(&out, 4, "low");
    onnx_put_string(&out, 5, "y");
    onnx_put_string(&out, 6, "order");
    onnx_put_message(&out, 7, &turn);
    onnx_put_message(&out, 7, &clip);
    onnx_put_string(&out, 10, "ours");
    return out;
}

void onnx_file_model(struct text *to)
{
    struct text graph = {0}, version = {0};
    put_space(&graph);
    put_reshape(&graph);
    put_rest(&graph);
    onnx_put_string(&graph, 2, "made");
    put_info(&graph, 11, "image", FLOAT, (int64_t[]){-1, 2, 8, 8}, 4);
    put_info(&graph, 12, "out", FLOAT, (int64_t[]){-1}, 1);
    put_info(&graph, 13, "relu", FLOAT, (int64_t[]){-1, 4, 8, 8}, 4);
    onnx_put_number(to, 1, 8);
    onnx_put_string(to, 2, "tests");
    onnx_put_message(to, 7, &graph);
    onnx_put_number(&version, 2, 17);
    onnx_put_message(to, 8, &version);
    struct text called = make_function();
    onnx_put_message(to, 25, &called);
}

/* ---- reading ---- */

static const char *check_graph(const struct graph *graph)
{
    struct text drawn = {0};
    struct graph_cost cost = graph_cost_total(graph);
    if (!(graph_flops(&cost) >= 0) || !(graph_parameters(graph) >= 0) || isinf(graph_flops(&cost)))
        return "a cost that is no number";
    for (size_t i = 0; i < graph->tensor_count; i++)
        for (unsigned k = 0; k < graph->tensors[i].rank; k++)
            if (graph->tensors[i].dims[k] < 0)
                return "a negative dimension";
    for (size_t i = 0; i < graph->link_count; i++)
        if (graph->links[i] < GRAPH_NONE || graph->links[i] >= (tensor_id)graph->tensor_count)
            return "a link to nothing";
    graph_write_dot(graph, &drawn);
    graph_write_mermaid(graph, &drawn);
    bool has_failed = drawn.failed;
    text_release(&drawn);
    return has_failed ? "a drawing that failed" : NULL;
}

static const char *check_refusal(const struct error *why)
{
    return why->text[0] == '\0' || strchr(why->text, '\n') ? "a refusal that is not one line"
                                                           : NULL;
}

const char *onnx_file_exercise(const void *bytes, size_t length)
{
    struct onnx_file file = {0};
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options setting = {.batch = 2, .tokens = 3, .image = 4};
    if (onnx_read("made.onnx", (struct slice){bytes, length}, &file, &why))
        return check_refusal(&why);
    const char *wrong =
        onnx_graph(&file, &setting, &graph, &why) ? check_refusal(&why) : check_graph(&graph);
    graph_release(&graph);
    onnx_close(&file);
    return wrong;
}
