/* Building operations over space: windows that slide, and shapes that change. */
#include "core/text.h"
#include "graph/build.h"

static tensor_id parameter(struct build *build, const char *name, const char *what, int rank,
                           const int64_t *dims)
{
    char full[160];
    str_format(full, sizeof full, "%s%s", name, what);
    return build_tensor(build, GRAPH_PARAMETER, full, rank, dims);
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
        bool is_other = i == rank - 1 && conv.kernel_w > 0;
        window.kernel[i] = is_other ? conv.kernel_w : conv.kernel;
        window.stride[i] = or_one(is_other && conv.stride_w > 0 ? conv.stride_w : conv.stride);
        window.dilation[i] = or_one(conv.dilation);
        window.pad_before[i] = window.pad_after[i] = is_other ? conv.pad_w : conv.pad;
    }
    return window;
}

/* What a window of one dimension leaves of `size`. */
static int64_t slid(const struct graph_window *window, int i, int64_t size, bool rounds_up)
{
    int64_t reach = (int64_t)window->dilation[i] * (window->kernel[i] - 1) + 1;
    int64_t room = size + window->pad_before[i] + window->pad_after[i] - reach;
    if (room < 0)
        return 0;
    int64_t steps = room / window->stride[i];
    /* One more that begins inside of the input or its padding before it. */
    if (rounds_up && room % window->stride[i] &&
        (steps + 1) * window->stride[i] < size + window->pad_before[i])
        steps++;
    return steps + 1;
}

static int64_t spread(const struct graph_window *window, int i, int64_t size, int32_t output_pad)
{
    return (size - 1) * window->stride[i] - window->pad_before[i] - window->pad_after[i] +
           (int64_t)window->dilation[i] * (window->kernel[i] - 1) + output_pad + 1;
}

tensor_id build_conv(struct build *build, const char *name, tensor_id x, struct build_conv conv)
{
    int rank = build_rank(build, x) - 2;
    int64_t in = build_dim(build, x, 1);
    int64_t groups = conv.groups < 0 ? in : conv.groups > 0 ? conv.groups : 1;
    if (rank < 1 || rank > 3)
        return build_fail(build, name,
                          "slides over one to three dimensions, and its input has others");
    if (in % groups || conv.channels % groups)
        return build_fail(build, name, "has channels that its groups do not divide");
    struct graph_window window = window_of(conv, rank, groups);
    int64_t dims[5] = {build_dim(build, x, 0), conv.channels};
    int64_t filters[5] = {conv.is_transposed ? in : conv.channels,
                          (conv.is_transposed ? conv.channels : in) / groups};
    for (int i = 0; i < rank; i++) {
        int64_t size = build_dim(build, x, i + 2);
        dims[i + 2] = conv.is_transposed ? spread(&window, i, size, conv.output_pad)
                                         : slid(&window, i, size, false);
        filters[i + 2] = window.kernel[i];
    }
    tensor_id inputs[] = {x, parameter(build, name, ".weight", rank + 2, filters),
                          conv.has_bias ? parameter(build, name, ".bias", 1, &conv.channels)
                                        : GRAPH_NONE};
    struct graph_node node = {.op = conv.is_transposed ? GRAPH_CONV_TRANSPOSE : GRAPH_CONV,
                              .name = name,
                              .as.window = window};
    return build_node(build, &node, inputs, conv.has_bias ? 3 : 2, rank + 2, dims);
}

tensor_id build_pool(struct build *build, const char *name, tensor_id x, struct build_pool pool)
{
    int rank = build_rank(build, x) - 2;
    if (rank < 1 || rank > 3)
        return build_fail(build, name,
                          "slides over one to three dimensions, and its input has others");
    struct build_conv like = {.kernel = pool.kernel, .stride = pool.stride, .pad = pool.pad};
    struct graph_window window = window_of(like, rank, 1);
    int64_t dims[5] = {build_dim(build, x, 0), build_dim(build, x, 1)};
    for (int i = 0; i < rank; i++)
        dims[i + 2] = slid(&window, i, build_dim(build, x, i + 2), pool.rounds_up);
    struct graph_node node = {.op = pool.op, .name = name, .as.window = window};
    return build_node(build, &node, &x, 1, rank + 2, dims);
}

tensor_id build_global_pool(struct build *build, const char *name, tensor_id x)
{
    int rank = build_rank(build, x);
    int64_t dims[GRAPH_MOST_DIMENSIONS];
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? build_dim(build, x, i) : 1;
    struct graph_node node = {.op = GRAPH_REDUCE, .name = name};
    return build_node(build, &node, &x, 1, rank, dims);
}

/* ---- shapes ---- */

tensor_id build_view(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims)
{
    int64_t known = 1, whole = 1, shape[GRAPH_MOST_DIMENSIONS];
    bool is_too_large = false, has_free = false;
    if (rank < 0 || rank > GRAPH_MOST_DIMENSIONS)
        return build_fail(build, name, "has too many dimensions");
    for (int i = 0; i < build_rank(build, x); i++)
        is_too_large |= __builtin_mul_overflow(whole, build_dim(build, x, i), &whole);
    for (int i = 0; i < rank; i++) {
        has_free = has_free || dims[i] <= 0;
        is_too_large |= __builtin_mul_overflow(known, dims[i] > 0 ? dims[i] : 1, &known);
    }
    if (is_too_large || (has_free ? whole % known : whole - known))
        return build_fail(build, name, "is another shape, but not of the same numbers");
    for (int i = 0; i < rank; i++)
        shape[i] = dims[i] > 0 ? dims[i] : whole / known;
    struct graph_node node = {.op = GRAPH_VIEW, .name = name};
    return build_node(build, &node, &x, 1, rank, shape);
}

tensor_id build_flatten(struct build *build, const char *name, tensor_id x)
{
    return build_view(build, name, x, 2, (int64_t[]){build_dim(build, x, 0), -1});
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
    int rank = build_rank(build, parts[0]);
    int64_t dims[GRAPH_MOST_DIMENSIONS];
    for (int i = 0; i < rank; i++)
        dims[i] = build_dim(build, parts[0], i);
    if (axis < 0 || axis >= rank)
        return build_fail(build, name, "joins along a dimension that is not there");
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < rank; k++)
            if (k != axis && build_dim(build, parts[i], k) != dims[k])
                return build_fail(build, name, "joins shapes that do not fit");
        dims[axis] += build_dim(build, parts[i], axis);
    }
    struct graph_node node = {.op = GRAPH_MOVE, .name = name, .label = "concat"};
    return build_node(build, &node, parts, count, rank, dims);
}
