/* Operators whose window slides over space: convolutions and pools. */
#include "graph/onnx/rules.h"

enum { MOST_SPACE = GRAPH_MOST_DIMENSIONS - 2, MOST_STEP = 1 << 30 };

/* A window of any rank; graph_window has room for three dimensions. */
struct window {
    int rank;
    int64_t kernel[MOST_SPACE], stride[MOST_SPACE], dilation[MOST_SPACE];
    int64_t before[MOST_SPACE], after[MOST_SPACE];
    int64_t groups;
    bool is_same; /* as many come out as strides fit in */
    bool rounds_up;
};

/* Held to what a sensible window has, so that sums of them cannot overflow. */
static bool is_sensible(int64_t number, int64_t least)
{
    return number >= least && number <= MOST_STEP;
}

static bool check_window(const struct window *window)
{
    for (int i = 0; i < window->rank; i++)
        if (!is_sensible(window->kernel[i], 1) || !is_sensible(window->stride[i], 1) ||
            !is_sensible(window->dilation[i], 1) || !is_sensible(window->before[i], -MOST_STEP) ||
            !is_sensible(window->after[i], -MOST_STEP))
            return false;
    return is_sensible(window->groups, 1);
}

static void read_list(const struct step *step, const char *name, int rank, int64_t *out)
{
    int64_t list[MOST_SPACE];
    int count = step_list(step, name, list, MOST_SPACE);
    for (int i = 0; i < rank; i++)
        out[i] = i < count ? list[i] : 1;
}

static void read_pads(const struct step *step, struct window *window)
{
    int64_t pads[2 * MOST_SPACE];
    struct slice how = step_text(step, "auto_pad");
    window->is_same = slice_is(how, "SAME_UPPER") || slice_is(how, "SAME_LOWER");
    bool is_valid = slice_is(how, "VALID");
    int count = step_list(step, "pads", pads, 2 * MOST_SPACE);
    for (int i = 0; i < window->rank; i++) {
        bool has = count == 2 * window->rank && !window->is_same && !is_valid;
        window->before[i] = has ? pads[i] : 0;
        window->after[i] = has ? pads[i + window->rank] : 0;
    }
}

/* `kernel` are the dimensions of the weight that the window has where no setting tells it; NULL: none. */
static enum err read_window(struct step *step, const struct shape *in, const int64_t *kernel,
                            struct window *window)
{
    int64_t given[MOST_SPACE];
    if (in->rank < 3)
        return step_fail(step, "its input has %d dimensions, fewer than 3", in->rank);
    *window = (struct window){.rank = in->rank - 2, .groups = step_integer(step, "group", 1)};
    int count = step_list(step, "kernel_shape", given, MOST_SPACE);
    if (count != window->rank && !kernel)
        return step_fail(step, "its kernel has not as many dimensions as its input");
    for (int i = 0; i < window->rank; i++)
        window->kernel[i] = count == window->rank ? given[i] : kernel[i];
    read_list(step, "strides", window->rank, window->stride);
    read_list(step, "dilations", window->rank, window->dilation);
    read_pads(step, window);
    window->rounds_up = step_integer(step, "ceil_mode", 0) != 0;
    if (!check_window(window))
        return step_fail(step, "its window is none: a kernel, stride, dilation or group below 1");
    return ERR_OK;
}

static void tell_window(struct step *step, const struct window *window)
{
    struct graph_window *out = &step->made.as.window;
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

static int64_t reach(const struct window *window, int i)
{
    return window->dilation[i] * (window->kernel[i] - 1) + 1;
}

static int64_t slid(const struct window *window, int i, int64_t size)
{
    int64_t stride = window->stride[i];
    if (window->is_same)
        return (size + stride - 1) / stride;
    int64_t room = size + window->before[i] + window->after[i] - reach(window, i);
    if (room < 0)
        return -1;
    int64_t steps = room / stride;
    /* One more, if it begins inside of the input or the padding before it. */
    if (window->rounds_up && room % stride && (steps + 1) * stride < size + window->before[i])
        steps++;
    return steps + 1;
}

static enum err slide(struct step *step, const struct shape *in, const struct window *window,
                      int64_t channels, struct shape *out)
{
    *out = (struct shape){.rank = in->rank, .dims = {in->dims[0], channels}};
    for (int i = 0; i < window->rank; i++) {
        out->dims[i + 2] = slid(window, i, in->dims[i + 2]);
        if (out->dims[i + 2] < 0)
            return step_fail(step, "its window is larger than its input");
    }
    tell_window(step, window);
    return ERR_OK;
}

static enum err conv(struct step *step, size_t weight, int32_t type)
{
    const struct shape *in = step_shape(step, 0), *filters = step_shape(step, weight);
    struct window window;
    struct shape out;
    if (!in || !filters)
        return ERR_OK;
    if (filters->rank != in->rank)
        return step_fail(step, "its filters have %d dimensions and its input %d", filters->rank,
                         in->rank);
    enum err err = read_window(step, in, filters->dims + 2, &window);
    if (err)
        return err;
    if (filters->dims[1] != in->dims[1] / window.groups)
        return step_fail(step, "its filters are for %.0f channels and its input has %.0f",
                         (double)filters->dims[1] * (double)window.groups, (double)in->dims[1]);
    err = slide(step, in, &window, filters->dims[0], &out);
    return err ? err : step_give(step, 0, type, &out);
}

enum err rule_conv(struct step *step)
{
    const struct known *in = step_input(step, 0);
    return conv(step, 1, in && !type_is_real(in->type) ? ONNX_INT32 : 0);
}

enum err rule_deform_conv(struct step *step)
{
    static const uint8_t ORDER[] = {0, 1, 3, 2, 4}; /* the bias third, as others have it */
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return conv(step, 1, 0);
}

enum err rule_qlinear_conv(struct step *step)
{
    static const uint8_t ORDER[] = {0, 3, 8}; /* scales and zero points are left out */
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return conv(step, 3, 0);
}

enum err rule_conv_transpose(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *filters = step_shape(step, 1);
    struct window window;
    int64_t extra[MOST_SPACE], wanted[MOST_SPACE];
    if (!in || !filters)
        return ERR_OK;
    if (filters->rank != in->rank || filters->dims[0] != in->dims[1])
        return step_fail(step, "its filters do not fit its input");
    enum err err = read_window(step, in, filters->dims + 2, &window);
    if (err)
        return err;
    int extra_count = step_list(step, "output_padding", extra, MOST_SPACE);
    int wanted_count = step_list(step, "output_shape", wanted, MOST_SPACE);
    struct shape out = {.rank = in->rank, .dims = {in->dims[0], filters->dims[1]}};
    if (out.dims[1] > MOST_STEP)
        return step_fail(step, "it has too many channels");
    out.dims[1] *= window.groups;
    for (int i = 0; i < window.rank; i++) {
        int64_t size = in->dims[i + 2], stride = window.stride[i];
        if (size > MOST_STEP)
            return step_fail(step, "its input is too large");
        int64_t more = i < extra_count && is_sensible(extra[i], 0) ? extra[i] : 0;
        out.dims[i + 2] = window.is_same ? size * stride
                                         : (size - 1) * stride + reach(&window, i) + more -
                                               window.before[i] - window.after[i];
        if (wanted_count == window.rank)
            out.dims[i + 2] = wanted[i];
    }
    tell_window(step, &window);
    return step_give(step, 0, 0, &out);
}

enum err rule_pool(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct window window;
    struct shape out;
    if (!in)
        return ERR_OK;
    enum err err = read_window(step, in, NULL, &window);
    if (!err)
        err = slide(step, in, &window, in->dims[1], &out);
    if (!err)
        err = step_give(step, 0, 0, &out);
    return err ? err : step_give(step, 1, ONNX_INT64, &out); /* where the largest were */
}

enum err rule_global_pool(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 2; i < out.rank; i++)
        out.dims[i] = 1;
    return step_give(step, 0, 0, &out);
}

enum err rule_max_unpool(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct window window;
    int64_t wanted[GRAPH_MOST_DIMENSIONS];
    if (!in)
        return ERR_OK;
    enum err err = read_window(step, in, NULL, &window);
    if (err)
        return err;
    bool is_told = step_input(step, 2) != NULL;
    int count = step_integers(step, 2, wanted, GRAPH_MOST_DIMENSIONS);
    if (is_told && count != in->rank)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 0; i < out.rank; i++) {
        if (is_told)
            out.dims[i] = wanted[i];
        else if (i >= 2 && out.dims[i] <= MOST_STEP)
            out.dims[i] = (out.dims[i] - 1) * window.stride[i - 2] + window.kernel[i - 2] -
                          window.before[i - 2] - window.after[i - 2];
    }
    return step_give(step, 0, 0, &out);
}

enum err rule_roi_align(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *boxes = step_shape(step, 1);
    if (!in || !boxes || in->rank < 2 || boxes->rank < 1)
        return ERR_OK;
    struct shape out = {.rank = 4,
                        .dims = {boxes->dims[0], in->dims[1],
                                 step_integer(step, "output_height", 1),
                                 step_integer(step, "output_width", 1)}};
    return step_give(step, 0, 0, &out);
}

enum err rule_max_roi_pool(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *boxes = step_shape(step, 1);
    int64_t size[2];
    if (!in || !boxes || in->rank < 2 || boxes->rank < 1 ||
        step_list(step, "pooled_shape", size, 2) != 2)
        return ERR_OK;
    struct shape out = {.rank = 4, .dims = {boxes->dims[0], in->dims[1], size[0], size[1]}};
    return step_give(step, 0, 0, &out);
}

enum err rule_grid_sample(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *grid = step_shape(step, 1);
    if (!in || !grid || in->rank < 3 || grid->rank != in->rank)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 2; i < out.rank; i++)
        out.dims[i] = grid->dims[i - 1];
    return step_give(step, 0, 0, &out);
}
