#include "graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const char NO_INPUT[] = "has no input of a shape that it can take";

/* ---- from begin to end ---- */

struct build build_begin(struct graph *graph, const char *model_name, struct error *why)
{
    *graph = (struct graph){0};
    str_copy(graph->name, sizeof graph->name, model_name);
    return (struct build){
        .graph = graph, .why = why, .layer = GRAPH_NONE, .component = DECODER_COMPONENT_COUNT};
}

enum err build_end(struct build *build)
{
    if (!build->err)
        build->err = graph_finish(build->graph, build->why);
    if (build->err)
        graph_release(build->graph);
    return build->err;
}

void build_inside(struct build *build, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(build->prefix, sizeof build->prefix, format, arguments);
    va_end(arguments);
}

tensor_id build_fail(struct build *build, const char *name, const char *what)
{
    if (!build->err)
        build->err = err_set(build->why, ERR_BAD_VALUE, "%s: %s%s %s", build->graph->name,
                             build->prefix, name, what);
    return GRAPH_NONE;
}

/* ---- tensors ---- */

static tensor_id add_tensor(struct build *build, enum graph_role role, enum graph_numbers numbers,
                            const char *name, const char *suffix, int rank, const int64_t *dims)
{
    tensor_id id = GRAPH_NONE;
    char full[192];
    if (build->err)
        return id;
    if (rank < 0 || rank > GRAPH_MOST_DIMENSIONS)
        return build_fail(build, name, "has too many dimensions");
    str_join(full, sizeof full, build->prefix, name, suffix);
    struct graph_tensor tensor = {
        .name = full, .role = role, .numbers = numbers, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        if ((tensor.dims[i] = dims[i]) <= 0)
            return build_fail(build, name, "would have no numbers: its input is too small");
    build->err = graph_add_tensor(build->graph, &tensor, &id, build->why);
    return id;
}

tensor_id build_input(struct build *build, const char *name, enum graph_numbers numbers, int rank,
                      const int64_t *dims)
{
    return add_tensor(build, GRAPH_INPUT, numbers, name, "", rank, dims);
}

tensor_id build_tensor(struct build *build, enum graph_role role, const char *name, int rank,
                       const int64_t *dims)
{
    return add_tensor(build, role, GRAPH_NUMBERS, name, "", rank, dims);
}

void build_output(struct build *build, tensor_id tensor)
{
    if (!build->err && tensor >= 0)
        build->graph->tensors[tensor].is_output = true;
}

static const struct graph_tensor *tensor_of(const struct build *build, tensor_id id)
{
    return build->err || id < 0 ? NULL : &build->graph->tensors[id];
}

int build_rank(const struct build *build, tensor_id id)
{
    const struct graph_tensor *tensor = tensor_of(build, id);
    return tensor ? tensor->rank : 0;
}

int64_t build_dim(const struct build *build, tensor_id id, int index)
{
    const struct graph_tensor *tensor = tensor_of(build, id);
    int place = tensor && index < 0 ? tensor->rank + index : index;
    return tensor && place >= 0 && place < tensor->rank ? tensor->dims[place] : 0;
}

/* ---- nodes ---- */

tensor_id build_node(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int input_count, int rank, const int64_t *dims)
{
    tensor_id out = add_tensor(build, GRAPH_ACTIVATION, GRAPH_NUMBERS, node->name, "", rank, dims);
    if (build->err)
        return GRAPH_NONE;
    char full[192];
    str_join(full, sizeof full, build->prefix, node->name, "");
    struct graph_node named = *node;
    named.name = full;
    named.layer = build->layer;
    named.component = build->component;
    node_id id;
    build->err =
        graph_add_node(build->graph, &named, inputs, (size_t)input_count, &out, 1, &id, build->why);
    return build->err ? GRAPH_NONE : out;
}

/* One that gives the shape of `like`. */
static tensor_id node_like(struct build *build, const struct graph_node *node,
                           const tensor_id *inputs, int count, tensor_id like)
{
    int64_t dims[GRAPH_MOST_DIMENSIONS] = {0};
    const struct graph_tensor *tensor = tensor_of(build, like);
    if (!tensor)
        return build_fail(build, node->name, NO_INPUT);
    memcpy(dims, tensor->dims, sizeof dims);
    return build_node(build, node, inputs, count, tensor->rank, dims);
}

tensor_id build_op(struct build *build, enum graph_op op, const char *name, tensor_id x)
{
    struct graph_node node = {.op = op, .name = name};
    return node_like(build, &node, &x, 1, x);
}

tensor_id build_binary(struct build *build, enum graph_op op, const char *name, tensor_id a,
                       tensor_id b)
{
    int rank_a = build_rank(build, a), rank_b = build_rank(build, b);
    int rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[GRAPH_MOST_DIMENSIONS];
    for (int i = 1; i <= rank; i++) {
        int64_t of_a = i <= rank_a ? build_dim(build, a, -i) : 1;
        int64_t of_b = i <= rank_b ? build_dim(build, b, -i) : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return build_fail(build, name, "joins two shapes that do not fit");
        dims[rank - i] = of_a > of_b ? of_a : of_b;
    }
    struct graph_node node = {.op = op, .name = name};
    return build_node(build, &node, (tensor_id[]){a, b}, 2, rank, dims);
}

/* ---- products of matrices ---- */

tensor_id build_linear_with(struct build *build, const char *name, tensor_id x, tensor_id weight,
                            tensor_id bias, int64_t out)
{
    const struct graph_tensor *in = tensor_of(build, x);
    int64_t dims[GRAPH_MOST_DIMENSIONS] = {0};
    if (!in || in->rank == 0)
        return build_fail(build, name, NO_INPUT);
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank - 1] = out;
    struct graph_node node = {.op = GRAPH_LINEAR, .name = name};
    return build_node(build, &node, (tensor_id[]){x, weight, bias}, bias >= 0 ? 3 : 2, in->rank,
                      dims);
}

tensor_id build_linear(struct build *build, const char *name, tensor_id x, int64_t out,
                       bool has_bias)
{
    int64_t dims[] = {out, build_dim(build, x, -1)};
    tensor_id weight = add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight", 2, dims);
    tensor_id bias = has_bias
                         ? add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".bias", 1, dims)
                         : GRAPH_NONE;
    return build_linear_with(build, name, x, weight, bias, out);
}

tensor_id build_matmul(struct build *build, const char *name, tensor_id a, tensor_id b)
{
    const struct graph_tensor *left = tensor_of(build, a);
    int64_t dims[GRAPH_MOST_DIMENSIONS] = {0};
    if (!left || left->rank < 2)
        return build_fail(build, name, NO_INPUT);
    if (build_dim(build, a, -1) != build_dim(build, b, -2))
        return build_fail(build, name, "multiplies matrices that do not fit");
    memcpy(dims, left->dims, sizeof dims);
    dims[left->rank - 1] = build_dim(build, b, -1);
    struct graph_node node = {.op = GRAPH_MATMUL, .name = name};
    return build_node(build, &node, (tensor_id[]){a, b}, 2, left->rank, dims);
}

tensor_id build_attention(struct build *build, const char *name, tensor_id q, tensor_id k,
                          tensor_id v, tensor_id extra_k, tensor_id extra_v,
                          struct graph_attention attention)
{
    int64_t dims[] = {build_dim(build, q, 0), build_dim(build, q, 1),
                      attention.heads * attention.value_size};
    struct graph_node node = {.op = GRAPH_ATTENTION, .name = name, .as.attention = attention};
    return build_node(build, &node, (tensor_id[]){q, k, v, extra_k, extra_v}, extra_k >= 0 ? 5 : 3,
                      3, dims);
}

/* ---- norms and tables ---- */

tensor_id build_batch_norm(struct build *build, const char *name, tensor_id x)
{
    int64_t channels[] = {build_dim(build, x, 1)};
    tensor_id inputs[] = {
        x,
        add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight", 1, channels),
        add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".bias", 1, channels),
        add_tensor(build, GRAPH_BUFFER, GRAPH_NUMBERS, name, ".running_mean", 1, channels),
        add_tensor(build, GRAPH_BUFFER, GRAPH_NUMBERS, name, ".running_var", 1, channels),
    };
    struct graph_node node = {.op = GRAPH_BATCH_NORM, .name = name};
    return node_like(build, &node, inputs, 5, x);
}

tensor_id build_norm(struct build *build, enum graph_op op, const char *name, tensor_id x,
                     bool has_bias)
{
    int64_t features[] = {build_dim(build, x, op == GRAPH_GROUP_NORM ? 1 : -1)};
    tensor_id inputs[] = {
        x, add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight", 1, features),
        has_bias ? add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".bias", 1, features)
                 : GRAPH_NONE};
    struct graph_node node = {.op = op, .name = name};
    return node_like(build, &node, inputs, has_bias ? 3 : 2, x);
}

tensor_id build_embedding_with(struct build *build, const char *name, tensor_id ids,
                               tensor_id table)
{
    int rank = build_rank(build, ids);
    int64_t dims[GRAPH_MOST_DIMENSIONS + 1] = {0};
    for (int i = 0; i < rank; i++)
        dims[i] = build_dim(build, ids, i);
    dims[rank] = build_dim(build, table, -1);
    struct graph_node node = {.op = GRAPH_EMBEDDING, .name = name};
    return build_node(build, &node, (tensor_id[]){ids, table}, 2, rank + 1, dims);
}

tensor_id build_embedding(struct build *build, const char *name, tensor_id ids, int64_t rows,
                          int64_t features)
{
    tensor_id table = add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight", 2,
                                 (int64_t[]){rows, features});
    return build_embedding_with(build, name, ids, table);
}

tensor_id build_recurrent(struct build *build, enum graph_op op, const char *name, tensor_id x,
                          int64_t hidden, bool both_ways)
{
    int64_t gates = op == GRAPH_LSTM ? 4 : op == GRAPH_GRU ? 3 : 1, ways = both_ways ? 2 : 1;
    int64_t in[] = {ways, gates * hidden, build_dim(build, x, -1)};
    int64_t back[] = {ways, gates * hidden, hidden}, biases[] = {ways, 2 * gates * hidden};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), ways * hidden};
    tensor_id inputs[] = {
        x, add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight_ih", 3, in),
        add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".weight_hh", 3, back),
        add_tensor(build, GRAPH_PARAMETER, GRAPH_NUMBERS, name, ".bias", 2, biases)};
    struct graph_node node = {
        .op = op,
        .name = name,
        .as.recurrent = {.steps = dims[1], .hidden = hidden, .directions = ways}};
    return build_node(build, &node, inputs, 4, 3, dims);
}
