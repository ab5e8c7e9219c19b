/* Every function computes the shape of its output, adds the parameters it needs and then the node. */
#include "graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const char BAD_INPUT[] = "has an input of the wrong rank";
static const char BAD_WINDOW_INPUT[] = "needs an input with one to three spatial dimensions";

/* ---- begin and end ---- */

struct build build_begin(struct graph *graph, const char *model_name, struct error *why)
{
    *graph = (struct graph){0};
    chars_copy(graph->name, model_name);
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

void build_scope(struct build *build, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(build->prefix, sizeof build->prefix, format, arguments);
    va_end(arguments);
}

void build_root(struct build *build)
{
    build->prefix[0] = '\0';
}

tensor_id build_fail(struct build *build, const char *name, const char *what)
{
    if (!build->err)
        build->err = err_set(build->why, ERR_BAD_VALUE, "%s: %s%s %s", build->graph->name,
                             build->prefix, name, what);
    return GRAPH_NONE;
}

/* ---- tensors ---- */

static tensor_id add_tensor(struct build *build, enum graph_role role, enum graph_dtype dtype,
                            const char *name, const char *suffix, int rank, const int64_t *dims)
{
    char full[192];
    if (build->err)
        return GRAPH_NONE;
    if (rank < 0 || rank > GRAPH_MAX_RANK)
        return build_fail(build, name, "has too many dimensions");
    str_join(full, sizeof full, build->prefix, name, suffix);
    struct graph_tensor tensor = {
        .name = full, .role = role, .dtype = dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        if ((tensor.dims[i] = dims[i]) <= 0)
            return build_fail(build, name, "would have no elements: its input is too small");
    return graph_add_tensor(build->graph, &tensor);
}

tensor_id build_input(struct build *build, const char *name, enum graph_dtype dtype, int rank,
                      const int64_t *dims)
{
    return add_tensor(build, GRAPH_INPUT, dtype, name, "", rank, dims);
}

tensor_id build_tensor(struct build *build, enum graph_role role, const char *name, int rank,
                       const int64_t *dims)
{
    return add_tensor(build, role, GRAPH_FLOAT, name, "", rank, dims);
}

static tensor_id add_parameter(struct build *build, const char *name, const char *suffix, int rank,
                               const int64_t *dims)
{
    return add_tensor(build, GRAPH_PARAMETER, GRAPH_FLOAT, name, suffix, rank, dims);
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

static int rank_of(const struct build *build, tensor_id id)
{
    const struct graph_tensor *tensor = tensor_of(build, id);
    return tensor ? tensor->rank : 0;
}

int64_t build_dim(const struct build *build, tensor_id id, int index)
{
    const struct graph_tensor *tensor = tensor_of(build, id);
    int axis = tensor && index < 0 ? tensor->rank + index : index;
    return tensor && axis >= 0 && axis < tensor->rank ? tensor->dims[axis] : 0;
}

/* ---- nodes ---- */

tensor_id build_node(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int input_count, int rank, const int64_t *dims)
{
    tensor_id out = add_tensor(build, GRAPH_ACTIVATION, GRAPH_FLOAT, node->name, "", rank, dims);
    if (build->err)
        return GRAPH_NONE;
    char full[192];
    str_join(full, sizeof full, build->prefix, node->name, "");
    struct graph_node named = *node;
    named.name = full;
    named.layer = build->layer;
    named.component = build->component;
    graph_add_node(build->graph, &named, inputs, (size_t)input_count, &out, 1);
    return out;
}

tensor_id build_like(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int count, tensor_id like)
{
    int64_t dims[GRAPH_MAX_RANK] = {0};
    const struct graph_tensor *tensor = tensor_of(build, like);
    if (!tensor)
        return build_fail(build, node->name, BAD_INPUT);
    memcpy(dims, tensor->dims, sizeof dims);
    return build_node(build, node, inputs, count, tensor->rank, dims);
}

tensor_id build_op(struct build *build, enum graph_op op, const char *name, tensor_id x)
{
    struct graph_node node = {.op = op, .name = name};
    return build_like(build, &node, &x, 1, x);
}

tensor_id build_binary(struct build *build, enum graph_op op, const char *name, tensor_id a,
                       tensor_id b)
{
    int rank_a = rank_of(build, a), rank_b = rank_of(build, b);
    int rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[GRAPH_MAX_RANK];
    for (int i = 1; i <= rank; i++) {
        int64_t of_a = i <= rank_a ? build_dim(build, a, -i) : 1;
        int64_t of_b = i <= rank_b ? build_dim(build, b, -i) : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return build_fail(build, name, "has inputs that cannot be broadcast");
        dims[rank - i] = of_a > of_b ? of_a : of_b;
    }
    struct graph_node node = {.op = op, .name = name};
    return build_node(build, &node, (tensor_id[]){a, b}, 2, rank, dims);
}

/* ---- matrix products ---- */

tensor_id build_linear_with(struct build *build, const char *name, tensor_id x, tensor_id weight,
                            tensor_id bias, int64_t out)
{
    const struct graph_tensor *in = tensor_of(build, x);
    int64_t dims[GRAPH_MAX_RANK] = {0};
    if (!in || in->rank == 0)
        return build_fail(build, name, BAD_INPUT);
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
    tensor_id weight = add_parameter(build, name, ".weight", 2, dims);
    tensor_id bias = has_bias ? add_parameter(build, name, ".bias", 1, dims) : GRAPH_NONE;
    return build_linear_with(build, name, x, weight, bias, out);
}

tensor_id build_matmul(struct build *build, const char *name, tensor_id a, tensor_id b)
{
    const struct graph_tensor *left = tensor_of(build, a);
    int64_t dims[GRAPH_MAX_RANK] = {0};
    if (!left || left->rank < 2)
        return build_fail(build, name, BAD_INPUT);
    if (build_dim(build, a, -1) != build_dim(build, b, -2))
        return build_fail(build, name, "multiplies matrices whose inner dimensions differ");
    memcpy(dims, left->dims, sizeof dims);
    dims[left->rank - 1] = build_dim(build, b, -1);
    struct graph_node node = {.op = GRAPH_MATMUL, .name = name};
    return build_node(build, &node, (tensor_id[]){a, b}, 2, left->rank, dims);
}

struct graph_attention build_heads(const struct build *build, tensor_id x, int64_t heads,
                                   int64_t features)
{
    int64_t size = heads > 0 ? features / heads : 0;
    return (struct graph_attention){.heads = heads,
                                    .heads_kv = heads,
                                    .key_size = size,
                                    .value_size = size,
                                    .tokens = build_dim(build, x, 1),
                                    .sequences = build_dim(build, x, 0)};
}

tensor_id build_attention_biased(struct build *build, const char *name, tensor_id q, tensor_id k,
                                 tensor_id v, tensor_id cache_k, tensor_id cache_v, tensor_id bias,
                                 struct graph_attention attention)
{
    attention.is_unfused |= bias >= 0;
    struct graph_node node = {.op = GRAPH_ATTENTION, .name = name, .as.attention = attention};
    int inputs = bias >= 0 ? 6 : cache_k >= 0 ? 5 : 3;
    return build_node(build, &node, (tensor_id[]){q, k, v, cache_k, cache_v, bias}, inputs,
                      DIMS(build_dim(build, q, 0), build_dim(build, q, 1),
                           attention.heads * attention.value_size));
}

tensor_id build_attention(struct build *build, const char *name, tensor_id q, tensor_id k,
                          tensor_id v, tensor_id cache_k, tensor_id cache_v,
                          struct graph_attention attention)
{
    return build_attention_biased(build, name, q, k, v, cache_k, cache_v, GRAPH_NONE, attention);
}

/* ---- norms, embeddings, recurrence ---- */

tensor_id build_batch_norm(struct build *build, const char *name, tensor_id x)
{
    int64_t channels[] = {build_dim(build, x, 1)};
    tensor_id inputs[] = {
        x,
        add_parameter(build, name, ".weight", 1, channels),
        add_parameter(build, name, ".bias", 1, channels),
        add_tensor(build, GRAPH_BUFFER, GRAPH_FLOAT, name, ".running_mean", 1, channels),
        add_tensor(build, GRAPH_BUFFER, GRAPH_FLOAT, name, ".running_var", 1, channels),
    };
    struct graph_node node = {.op = GRAPH_BATCH_NORM, .name = name};
    return build_like(build, &node, inputs, 5, x);
}

tensor_id build_norm(struct build *build, enum graph_op op, const char *name, tensor_id x)
{
    bool has_bias = op != GRAPH_RMS_NORM;
    int64_t features[] = {build_dim(build, x, op == GRAPH_GROUP_NORM ? 1 : -1)};
    tensor_id inputs[] = {x, add_parameter(build, name, ".weight", 1, features),
                          has_bias ? add_parameter(build, name, ".bias", 1, features) : GRAPH_NONE};
    struct graph_node node = {.op = op, .name = name};
    return build_like(build, &node, inputs, has_bias ? 3 : 2, x);
}

tensor_id build_embedding_with(struct build *build, const char *name, tensor_id ids,
                               tensor_id table)
{
    int rank = rank_of(build, ids);
    int64_t dims[GRAPH_MAX_RANK + 1] = {0};
    for (int i = 0; i < rank; i++)
        dims[i] = build_dim(build, ids, i);
    dims[rank] = build_dim(build, table, -1);
    struct graph_node node = {.op = GRAPH_EMBEDDING, .name = name};
    return build_node(build, &node, (tensor_id[]){ids, table}, 2, rank + 1, dims);
}

tensor_id build_embedding(struct build *build, const char *name, tensor_id ids, int64_t rows,
                          int64_t features)
{
    tensor_id table = add_parameter(build, name, ".weight", DIMS(rows, features));
    return build_embedding_with(build, name, ids, table);
}

tensor_id build_recurrent(struct build *build, enum graph_op op, const char *name, tensor_id x,
                          int64_t hidden, bool is_bidirectional)
{
    int64_t gates = graph_op_gates(op);
    int64_t directions = is_bidirectional ? 2 : 1;
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), directions * hidden};
    tensor_id inputs[] = {
        x,
        add_parameter(build, name, ".weight_ih",
                      DIMS(directions, gates * hidden, build_dim(build, x, -1))),
        add_parameter(build, name, ".weight_hh", DIMS(directions, gates * hidden, hidden)),
        add_parameter(build, name, ".bias", DIMS(directions, 2 * gates * hidden))};
    struct graph_node node = {
        .op = op,
        .name = name,
        .as.recurrent = {.steps = dims[1], .hidden = hidden, .directions = directions}};
    return build_node(build, &node, inputs, 4, 3, dims);
}

/* ---- windows ---- */

static int32_t or_one(int32_t number)
{
    return number > 0 ? number : 1;
}

static struct graph_window window_of(struct build_conv conv, int rank, int64_t groups)
{
    struct graph_window window = {.rank = (uint8_t)rank, .groups = groups};
    for (int i = 0; i < rank; i++) {
        bool is_width = i == rank - 1 && conv.kernel_w > 0;
        window.kernel[i] = is_width ? conv.kernel_w : conv.kernel;
        window.stride[i] = or_one(conv.stride);
        window.dilation[i] = or_one(conv.dilation);
        window.pad_before[i] = window.pad_after[i] = is_width ? conv.pad_w : conv.pad;
    }
    return window;
}

/* The output size along one dimension. */
static int64_t window_output(const struct graph_window *window, int i, int64_t size, bool rounds_up)
{
    int64_t extent = (int64_t)window->dilation[i] * (window->kernel[i] - 1) + 1;
    int64_t space = size + window->pad_before[i] + window->pad_after[i] - extent;
    if (space < 0)
        return 0;
    int64_t steps = space / window->stride[i];
    /* One more that begins inside the input or the padding before it. */
    if (rounds_up && space % window->stride[i] &&
        (steps + 1) * window->stride[i] < size + window->pad_before[i])
        steps++;
    return steps + 1;
}

tensor_id build_conv(struct build *build, const char *name, tensor_id x, struct build_conv conv)
{
    int rank = rank_of(build, x) - 2;
    int64_t in = build_dim(build, x, 1);
    int64_t groups = conv.groups < 0 ? in : conv.groups > 0 ? conv.groups : 1;
    if (rank < 1 || rank > 3)
        return build_fail(build, name, BAD_WINDOW_INPUT);
    if (in % groups || conv.channels % groups)
        return build_fail(build, name, "has channels that are not a multiple of its groups");
    struct graph_window window = window_of(conv, rank, groups);
    int64_t dims[5] = {build_dim(build, x, 0), conv.channels};
    int64_t weight[5] = {conv.channels, in / groups};
    for (int i = 0; i < rank; i++) {
        dims[i + 2] = window_output(&window, i, build_dim(build, x, i + 2), false);
        weight[i + 2] = window.kernel[i];
    }
    tensor_id inputs[] = {x, add_parameter(build, name, ".weight", rank + 2, weight),
                          conv.has_bias ? add_parameter(build, name, ".bias", 1, &conv.channels)
                                        : GRAPH_NONE};
    struct graph_node node = {.op = GRAPH_CONV, .name = name, .as.window = window};
    return build_node(build, &node, inputs, conv.has_bias ? 3 : 2, rank + 2, dims);
}

tensor_id build_pool(struct build *build, const char *name, tensor_id x, struct build_pool pool)
{
    int rank = rank_of(build, x) - 2;
    if (rank < 1 || rank > 3)
        return build_fail(build, name, BAD_WINDOW_INPUT);
    struct build_conv like = {.kernel = pool.kernel, .stride = pool.stride, .pad = pool.pad};
    struct graph_window window = window_of(like, rank, 1);
    int64_t dims[5] = {build_dim(build, x, 0), build_dim(build, x, 1)};
    for (int i = 0; i < rank; i++)
        dims[i + 2] = window_output(&window, i, build_dim(build, x, i + 2), pool.rounds_up);
    struct graph_node node = {.op = pool.op, .name = name, .as.window = window};
    return build_node(build, &node, &x, 1, rank + 2, dims);
}

tensor_id build_global_pool(struct build *build, const char *name, tensor_id x)
{
    int rank = rank_of(build, x);
    int64_t dims[GRAPH_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? build_dim(build, x, i) : 1;
    struct graph_node node = {.op = GRAPH_REDUCE, .name = name};
    return build_node(build, &node, &x, 1, rank, dims);
}

/* ---- shapes ---- */

tensor_id build_view(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims)
{
    int64_t given = 1, total = 1, shape[GRAPH_MAX_RANK];
    bool is_too_large = false, has_inferred = false;
    if (rank < 0 || rank > GRAPH_MAX_RANK)
        return build_fail(build, name, "has too many dimensions");
    for (int i = 0; i < rank_of(build, x); i++)
        is_too_large |= __builtin_mul_overflow(total, build_dim(build, x, i), &total);
    for (int i = 0; i < rank; i++) {
        has_inferred = has_inferred || dims[i] <= 0;
        is_too_large |= __builtin_mul_overflow(given, dims[i] > 0 ? dims[i] : 1, &given);
    }
    if (is_too_large || (has_inferred ? total % given : total - given))
        return build_fail(build, name, "has a shape with another number of elements");
    for (int i = 0; i < rank; i++)
        shape[i] = dims[i] > 0 ? dims[i] : total / given;
    struct graph_node node = {.op = GRAPH_VIEW, .name = name};
    return build_node(build, &node, &x, 1, rank, shape);
}

tensor_id build_flatten(struct build *build, const char *name, tensor_id x)
{
    return build_view(build, name, x, DIMS(build_dim(build, x, 0), -1));
}

tensor_id build_rearrange(struct build *build, const char *name, tensor_id x, int rank,
                          const int64_t *dims)
{
    struct graph_node node = {.op = GRAPH_REARRANGE, .name = name};
    return build_node(build, &node, &x, 1, rank, dims);
}

tensor_id build_move(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims)
{
    struct graph_node node = {.op = GRAPH_MOVE, .name = name};
    return build_node(build, &node, &x, 1, rank, dims);
}

tensor_id build_concat(struct build *build, const char *name, int axis, const tensor_id *parts,
                       int count)
{
    int rank = rank_of(build, parts[0]);
    int64_t dims[GRAPH_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = build_dim(build, parts[0], i);
    if (axis < 0 || axis >= rank)
        return build_fail(build, name, "concatenates along an axis that is out of range");
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < rank; k++)
            if (k != axis && build_dim(build, parts[i], k) != dims[k])
                return build_fail(build, name, "concatenates shapes that do not match");
        dims[axis] += build_dim(build, parts[i], axis);
    }
    struct graph_node node = {.op = GRAPH_MOVE, .name = name, .label = "concat"};
    return build_node(build, &node, parts, count, rank, dims);
}
