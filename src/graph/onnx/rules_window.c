/* Shape rules of operators with a sliding window: convolution and pooling. */
#include "graph/onnx/operators.h"

enum { MAX_SPACE = GRAPH_MAX_RANK - 2, MAX_EXTENT = 1 << 30 };

/* A window of any rank; struct graph_window has three dimensions. */
struct window {
    int rank;
    int64_t kernel[MAX_SPACE], stride[MAX_SPACE], dilation[MAX_SPACE];
    int64_t before[MAX_SPACE], after[MAX_SPACE];
    int64_t groups;
    bool is_same; /* auto_pad SAME: the output size is the input size / stride, rounded up */
    bool rounds_up;
};

/* Bounded so that sums cannot overflow. */
static bool is_between(int64_t number, int64_t min)
{
    return number >= min && number <= MAX_EXTENT;
}

static bool check_window(const struct window *window)
{
    for (int i = 0; i < window->rank; i++)
        if (!is_between(window->kernel[i], 1) || !is_between(window->stride[i], 1) ||
            !is_between(window->dilation[i], 1) || !is_between(window->before[i], -MAX_EXTENT) ||
            !is_between(window->after[i], -MAX_EXTENT))
            return false;
    return is_between(window->groups, 1);
}

static void read_list(const struct step *step, const char *name, int rank, int64_t *out)
{
    int64_t list[MAX_SPACE];
    int count = step_ints(step, name, list, MAX_SPACE);
    for (int i = 0; i < rank; i++)
        out[i] = i < count ? list[i] : 1;
}

static void read_pads(const struct step *step, struct window *window)
{
    int64_t pads[2 * MAX_SPACE];
    struct slice how = step_string(step, "auto_pad");
    window->is_same = slice_is(how, "SAME_UPPER") || slice_is(how, "SAME_LOWER");
    bool is_valid = slice_is(how, "VALID");
    int count = step_ints(step, "pads", pads, 2 * MAX_SPACE);
    for (int i = 0; i < window->rank; i++) {
        bool has = count == 2 * window->rank && !window->is_same && !is_valid;
        window->before[i] = has ? pads[i] : 0;
        window->after[i] = has ? pads[i + window->rank] : 0;
    }
}

/* `kernel` is the kernel size in the weight's shape, used without a kernel_shape; NULL: none. */
static enum err read_window(struct step *step, const struct shape *in, const int64_t *kernel,
                            struct window *window)
{
    int64_t given[MAX_SPACE];
    if (in->rank < 3)
        return step_fail(step, "its input has rank %d, less than 3", in->rank);
    *window = (struct window){.rank = in->rank - 2, .groups = step_int(step, "group", 1)};
    int count = step_ints(step, "kernel_shape", given, MAX_SPACE);
    if (count != window->rank && !kernel)
        return step_fail(step, "kernel_shape does not match the rank of its input");
    for (int i = 0; i < window->rank; i++)
        window->kernel[i] = count == window->rank ? given[i] : kernel[i];
    read_list(step, "strides", window->rank, window->stride);
    read_list(step, "dilations", window->rank, window->dilation);
    read_pads(step, window);
    window->rounds_up = step_int(step, "ceil_mode", 0) != 0;
    if (!check_window(window))
        return step_fail(step, "kernel, stride, dilation, pad or group out of range");
    return ERR_OK;
}

static void set_window(struct step *step, const struct window *window)
{
    struct graph_window *out = &step->emitted.as.window;
    *out = (struct graph_window){.groups = window->groups,
                                 .rank = (uint8_t)(window->rank < 3 ? window->rank : 3)};
    for (int i = 0; i < out->rank; i++) {
        out->kernel[i] = (int32_t)window->kernel[i];
        out->stride[i] = (int32_t)window->stride[i];
        out->dilation[i] = (int32_t)window->dilation[i];
        out->pad_before[i] = (int32_t)window->before[i];
        out->pad_after[i] = (int32_t)window->after[i];
    }
}

static int64_t extent(const struct window *window, int i)
{
    return window->dilation[i] * (window->kernel[i] - 1) + 1;
}

static int64_t output_size(const struct window *window, int i, int64_t size)
{
    int64_t stride = window->stride[i];
    if (window->is_same)
        return (size + stride - 1) / stride;
    int64_t space = size + window->before[i] + window->after[i] - extent(window, i);
    if (space < 0)
        return -1;
    int64_t steps = space / stride;
    /* One more, if it begins inside the input or the padding before it. */
    if (window->rounds_up && space % stride && (steps + 1) * stride < size + window->before[i])
        steps++;
    return steps + 1;
}

static enum err slide(struct step *step, const struct shape *in, const struct window *window,
                      int64_t channels, struct shape *out)
{
    *out = (struct shape){.rank = in->rank, .dims = {in->dims[0], channels}};
    for (int i = 0; i < window->rank; i++) {
        out->dims[i + 2] = output_size(window, i, in->dims[i + 2]);
        if (out->dims[i + 2] < 0)
            return step_fail(step, "its kernel is larger than its padded input");
    }
    set_window(step, window);
    return ERR_OK;
}

enum err rule_conv(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct shape *filters = step_shape(step, step_order_at(step, 1));
    /* Integers are added up in more bits, unless they are scaled (QLinearConv). */
    bool is_wider = in && !step->order && !onnx_dtype_is_float(step_input(step, 0)->dtype);
    struct window window;
    struct shape out;
    if (!in || !filters)
        return ERR_OK;
    if (filters->rank != in->rank)
        return step_fail(step, "its weight has rank %d and its input %d", filters->rank, in->rank);
    enum err err = read_window(step, in, filters->dims + 2, &window);
    if (err)
        return err;
    if (filters->dims[1] != in->dims[1] / window.groups)
        return step_fail(step, "its weight is for %.0f channels, its input has %.0f",
                         (double)filters->dims[1] * (double)window.groups, (double)in->dims[1]);
    err = slide(step, in, &window, filters->dims[0], &out);
    return err ? err : step_set_output(step, 0, is_wider ? ONNX_INT32 : 0, &out);
}

enum err rule_conv_transpose(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *filters = step_shape(step, 1);
    struct window window;
    int64_t extra[MAX_SPACE], wanted[MAX_SPACE];
    if (filters->rank != in->rank || filters->dims[0] != in->dims[1])
        return step_fail(step, "its weight does not match its input");
    enum err err = read_window(step, in, filters->dims + 2, &window);
    if (err)
        return err;
    int extra_count = step_ints(step, "output_padding", extra, MAX_SPACE);
    int wanted_count = step_ints(step, "output_shape", wanted, MAX_SPACE);
    struct shape out = {.rank = in->rank, .dims = {in->dims[0], filters->dims[1]}};
    if (out.dims[1] > MAX_EXTENT)
        return step_fail(step, "too many channels");
    out.dims[1] *= window.groups;
    for (int i = 0; i < window.rank; i++) {
        int64_t size = in->dims[i + 2], stride = window.stride[i];
        if (size > MAX_EXTENT)
            return step_fail(step, "its input is too large");
        int64_t more = i < extra_count && is_between(extra[i], 0) ? extra[i] : 0;
        out.dims[i + 2] = window.is_same ? size * stride
                                         : (size - 1) * stride + extent(&window, i) + more -
                                               window.before[i] - window.after[i];
        if (wanted_count == window.rank)
            out.dims[i + 2] = wanted[i];
    }
    set_window(step, &window);
    return step_set_result(step, &out);
}

enum err rule_pool(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct window window;
    struct shape out;
    enum err err = read_window(step, in, NULL, &window);
    if (!err)
        err = slide(step, in, &window, in->dims[1], &out);
    if (err)
        return err;
    step_set_result(step, &out);
    return step_set_output(step, 1, ONNX_INT64, &out); /* indices of the maxima */
}

enum err rule_global_pool(struct step *step)
{
    struct shape out = *step_shape(step, 0);
    for (int i = 2; i < out.rank; i++)
        out.dims[i] = 1;
    return step_set_result(step, &out);
}

enum err rule_max_unpool(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct window window;
    int64_t wanted[GRAPH_MAX_RANK];
    enum err err = read_window(step, in, NULL, &window);
    if (err)
        return err;
    bool is_given = step_input(step, 2) != NULL;
    int count = step_input_ints(step, 2, wanted, GRAPH_MAX_RANK);
    if (is_given && count != in->rank)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 0; i < out.rank; i++) {
        if (is_given)
            out.dims[i] = wanted[i];
        else if (i >= 2 && out.dims[i] <= MAX_EXTENT)
            out.dims[i] = (out.dims[i] - 1) * window.stride[i - 2] + window.kernel[i - 2] -
                          window.before[i - 2] - window.after[i - 2];
    }
    return step_set_result(step, &out);
}

enum err rule_roi_align(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *boxes = step_shape(step, 1);
    if (in->rank < 2 || boxes->rank < 1)
        return ERR_OK;
    struct shape out = {.rank = 4,
                        .dims = {boxes->dims[0], in->dims[1], step_int(step, "output_height", 1),
                                 step_int(step, "output_width", 1)}};
    return step_set_result(step, &out);
}

enum err rule_max_roi_pool(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *boxes = step_shape(step, 1);
    int64_t size[2];
    if (in->rank < 2 || boxes->rank < 1 || step_ints(step, "pooled_shape", size, 2) != 2)
        return ERR_OK;
    struct shape out = {.rank = 4, .dims = {boxes->dims[0], in->dims[1], size[0], size[1]}};
    return step_set_result(step, &out);
}

enum err rule_grid_sample(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *grid = step_shape(step, 1);
    if (in->rank < 3 || grid->rank != in->rank)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 2; i < out.rank; i++)
        out.dims[i] = grid->dims[i - 1];
    return step_set_result(step, &out);
}
