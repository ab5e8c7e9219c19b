/* Shape rules of operators that copy elements: concatenation, parts, padding and resizing, and selection by data. */
#include "graph/onnx/operators.h"

#include <math.h>

/* Concatenates every `stride`-th input, starting with `first`. */
static enum err concat(struct step *step, size_t first, size_t stride)
{
    const struct shape *begin = step_shape(step, first);
    int axis;
    if (!begin)
        return ERR_OK;
    if (step_axis(step, 1, begin->rank, &axis))
        return ERR_BAD_VALUE;
    struct shape out = *begin;
    for (size_t i = first + stride; i < step->node->input_count; i += stride) {
        const struct shape *more = step_shape(step, i);
        if (!more)
            return ERR_OK;
        for (int k = 0; k < out.rank; k++)
            if (more->rank != out.rank || (k != axis && more->dims[k] != out.dims[k]))
                return step_fail(step, "input shapes do not match");
        out.dims[axis] += more->dims[axis];
        if (out.dims[axis] > INT64_C(1) << 50)
            return step_fail(step, "its output has too many elements");
    }
    return step_set_result(step, &out);
}

enum err rule_concat(struct step *step)
{
    return concat(step, 0, 1);
}

/* Scale and zero point of the output come first, those of each input after it. */
enum err rule_qlinear_concat(struct step *step)
{
    return concat(step, 2, 3);
}

/* ---- split ---- */

enum { MAX_PARTS = MAX_FOLDED };

/* A sequence is treated as one value, with the shape of its first part. */
enum err rule_split_to_sequence(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t parts[MAX_PARTS];
    int axis, count = step_input_ints(step, 1, parts, MAX_PARTS);
    if (step_input(step, 1) && count < 1)
        return ERR_OK;
    if (step_axis(step, 0, in->rank, &axis))
        return ERR_BAD_VALUE;
    struct shape out = *in;
    out.dims[axis] = count > 0 ? parts[0] : 1;
    for (int i = 1; i < count; i++)
        step->is_guessed |= parts[i] != parts[0];
    bool is_squeezed = count < 0 && !step_int(step, "keepdims", 1);
    for (int i = axis; is_squeezed && i + 1 < out.rank; i++)
        out.dims[i] = out.dims[i + 1];
    out.rank = (uint8_t)(out.rank - is_squeezed);
    return step_set_result(step, &out);
}

enum err rule_split(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t parts[MAX_PARTS];
    int axis, count = step_ints_or_input(step, "split", 1, parts, MAX_PARTS);
    if (step_axis(step, 0, in->rank, &axis))
        return ERR_BAD_VALUE;
    bool is_given = step_attribute(step, "split") || step_input(step, 1);
    if (is_given && count < 0)
        return ERR_OK;
    int64_t outputs = step->node->output_count, whole = in->dims[axis];
    int64_t chunk = outputs > 0 ? (whole + outputs - 1) / outputs : 0;
    int64_t left = whole;
    for (int64_t i = 0; i < outputs; i++) {
        struct shape out = *in;
        int64_t part = is_given ? (i < count ? parts[i] : -1) : chunk < left ? chunk : left;
        if (part < 0 || part > left)
            return step_fail(step, "the split does not add up to the dimension");
        left -= part;
        out.dims[axis] = part;
        step_set_output(step, (size_t)i, 0, &out);
    }
    return step->err;
}

/* ---- slice ---- */

/* Number of indices from begin to end of `size`.  Both are clamped to the range; unlike in numpy, a begin before the
 * first element is clamped to it even with a negative step. */
static int64_t slice_count(int64_t size, int64_t begin, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? size : size - 1;
    begin = begin < 0 ? begin + size : begin;
    end = end < 0 ? end + size : end;
    begin = begin < 0 ? 0 : begin > high ? high : begin;
    end = end < low ? low : end > high ? high : end;
    if (step > 0)
        return end > begin ? (end - begin - 1) / step + 1 : 0;
    return begin > end ? (begin - end - 1) / -step + 1 : 0;
}

enum err rule_slice(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t begins[GRAPH_MAX_RANK], ends[GRAPH_MAX_RANK];
    int64_t axes[GRAPH_MAX_RANK], steps[GRAPH_MAX_RANK];
    int count = step_ints_or_input(step, "starts", 1, begins, GRAPH_MAX_RANK);
    int end_count = step_ints_or_input(step, "ends", 2, ends, GRAPH_MAX_RANK);
    int axis_count = step_ints_or_input(step, "axes", 3, axes, GRAPH_MAX_RANK);
    int step_count = step_input_ints(step, 4, steps, GRAPH_MAX_RANK);
    bool is_given = count >= 0 && end_count == count;
    if (!is_given || (axis_count < 0 && step_input(step, 3)) ||
        (step_count < 0 && step_input(step, 4)))
        return ERR_OK;
    struct shape out = *in;
    for (int i = 0, axis; i < count; i++) {
        if (!resolve_axis(i < axis_count ? axes[i] : i, in->rank, &axis))
            return step_fail(step, "axis out of range");
        int64_t stride = i < step_count ? steps[i] : 1;
        if (stride == 0)
            return step_fail(step, "step must not be 0");
        out.dims[axis] = slice_count(in->dims[axis], clamp_to_int((double)begins[i]),
                                     clamp_to_int((double)ends[i]), stride);
    }
    return step_set_result(step, &out);
}

/* ---- gather ---- */

/* Rows of a weight: an embedding. */
static void choose_embedding(struct step *step, int axis)
{
    const struct operand *table = step_input(step, 0);
    if (!table->tensor || axis != 0 || table->shape.rank < 2)
        return;
    step->emitted.op = GRAPH_EMBEDDING;
    step->order = "10"; /* indices, table */
}

enum err rule_gather(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *which = step_shape(step, 1);
    int axis;
    if (step_axis(step, 0, in->rank, &axis))
        return ERR_BAD_VALUE;
    if (in->rank - 1 + which->rank > GRAPH_MAX_RANK)
        return step_fail(step, "its output has more than 8 dimensions");
    struct shape out = {0};
    for (int i = 0; i < axis; i++)
        out.dims[out.rank++] = in->dims[i];
    for (int i = 0; i < which->rank; i++)
        out.dims[out.rank++] = which->dims[i];
    for (int i = axis + 1; i < in->rank; i++)
        out.dims[out.rank++] = in->dims[i];
    choose_embedding(step, axis);
    /* A constant index makes it a slice. */
    if (step->emitted.op == GRAPH_MOVE && shape_elements(which) == 1 &&
        operand_data(step->infer, step_input(step, 1)))
        step->emitted.op = GRAPH_REARRANGE;
    return step_set_result(step, &out);
}

enum err rule_gather_elements(struct step *step)
{
    return step_set_result(step, step_shape(step, 1));
}

enum err rule_gather_nd(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *which = step_shape(step, 1);
    int64_t batches = step_int(step, "batch_dims", 0);
    if (which->rank < 1)
        return ERR_OK;
    int64_t deep = which->dims[which->rank - 1];
    if (batches < 0 || batches >= which->rank || deep > in->rank - batches)
        return step_fail(step, "its indices have more dimensions than its input");
    int rest = in->rank - (int)batches - (int)deep;
    if (which->rank - 1 + rest > GRAPH_MAX_RANK)
        return step_fail(step, "its output has more than 8 dimensions");
    struct shape out = {0};
    for (int i = 0; i < which->rank - 1; i++)
        out.dims[out.rank++] = which->dims[i];
    for (int i = in->rank - rest; i < in->rank; i++)
        out.dims[out.rank++] = in->dims[i];
    return step_set_result(step, &out);
}

/* ---- padding, resizing ---- */

enum err rule_pad(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t pads[2 * GRAPH_MAX_RANK], axes[GRAPH_MAX_RANK];
    const char *name = step_attribute(step, "paddings") ? "paddings" : "pads";
    int count = step_ints_or_input(step, name, 1, pads, 2 * GRAPH_MAX_RANK);
    int axis_count = step_input_ints(step, 3, axes, GRAPH_MAX_RANK);
    if (count < 0 || (axis_count < 0 && step_input(step, 3)))
        return ERR_OK;
    int touched = axis_count < 0 ? in->rank : axis_count;
    if (count != 2 * touched)
        return step_fail(step, "%d pads for %d dimensions", count, touched);
    struct shape out = *in;
    for (int i = 0, axis; i < touched; i++) {
        if (!resolve_axis(axis_count < 0 ? i : axes[i], in->rank, &axis))
            return step_fail(step, "axis out of range");
        double padded = (double)out.dims[axis] + (double)pads[i] + (double)pads[i + touched];
        out.dims[axis] = clamp_to_int(padded);
    }
    bool pads_nothing = true;
    for (int i = 0; i < count; i++)
        pads_nothing &= pads[i] == 0;
    if (pads_nothing)
        step->emitted.op = GRAPH_VIEW;
    return step_set_result(step, &out);
}

/* Sizes are the fourth input; scales are the third, or the second (before version 11, Upsample), or an attribute
 * (the first Upsample). */
static bool resize_by_sizes(struct step *step, const struct shape *in, const int *axes, int count,
                            struct shape *out)
{
    int64_t sizes[GRAPH_MAX_RANK];
    if (step_input_ints(step, 3, sizes, GRAPH_MAX_RANK) != count)
        return false;
    struct slice policy = step_string(step, "keep_aspect_ratio_policy");
    bool not_larger = slice_is(policy, "not_larger"), not_smaller = slice_is(policy, "not_smaller");
    double scale = 0;
    for (int i = 0; i < count; i++) {
        double wanted = (double)sizes[i] / (double)in->dims[axes[i]];
        if (i == 0 || (not_larger ? wanted < scale : wanted > scale))
            scale = wanted;
    }
    for (int i = 0; i < count; i++)
        out->dims[axes[i]] = not_larger || not_smaller
                                 ? clamp_to_int(round(scale * (double)in->dims[axes[i]]))
                                 : sizes[i];
    return true;
}

static bool resize_by_scales(struct step *step, const struct shape *in, const int *axes, int count,
                             struct shape *out)
{
    struct operand *scales = step_input(step, step->node->input_count == 2 ? 1 : 2);
    const double *data = scales ? operand_data(step->infer, scales) : NULL;
    if (!data || shape_elements(&scales->shape) != count)
        return false;
    for (int i = 0; i < count; i++) {
        /* Scales are floats: 3.3 x 10 must not become 32.999.... */
        double scale = data[i], size = (double)in->dims[axes[i]];
        out->dims[axes[i]] = clamp_to_int(floor(size * (double)(float)scale));
    }
    return true;
}

static bool resize_by_attribute(struct step *step, const struct shape *in, struct shape *out)
{
    const struct onnx_attribute *attribute = step_attribute(step, "scales");
    double scales[GRAPH_MAX_RANK];
    if (!attribute || attribute->float_count != in->rank)
        return false;
    onnx_attribute_floats(attribute, scales, in->rank);
    for (int i = 0; i < in->rank; i++)
        out->dims[i] = clamp_to_int(floor((double)in->dims[i] * scales[i]));
    return true;
}

enum err rule_resize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t listed[GRAPH_MAX_RANK];
    int axes[GRAPH_MAX_RANK];
    int count = step_ints(step, "axes", listed, GRAPH_MAX_RANK);
    for (int i = 0; i < in->rank || i < count; i++) {
        int64_t axis = i;
        if (count)
            axis = i < count ? listed[i] : 0;
        if (!resolve_axis(axis, in->rank, &axes[i]))
            return step_fail(step, "axis out of range");
    }
    count = count ? count : in->rank;
    struct shape out = *in;
    bool is_known = resize_by_sizes(step, in, axes, count, &out) ||
                    resize_by_scales(step, in, axes, count, &out) ||
                    resize_by_attribute(step, in, &out);
    return is_known ? step_set_result(step, &out) : ERR_OK;
}

enum err rule_center_crop_pad(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t sizes[GRAPH_MAX_RANK], axes[GRAPH_MAX_RANK];
    int count = step_input_ints(step, 1, sizes, GRAPH_MAX_RANK);
    int axis_count = step_ints(step, "axes", axes, GRAPH_MAX_RANK);
    if (count < 0)
        return ERR_OK;
    struct shape out = *in;
    for (int i = 0, axis; i < count; i++) {
        bool is_listed = axis_count == 0 || i < axis_count;
        if (!is_listed || !resolve_axis(axis_count ? axes[i] : i, in->rank, &axis))
            return step_fail(step, "axis out of range");
        out.dims[axis] = sizes[i];
    }
    return step_set_result(step, &out);
}

/* ---- selection by data ---- */

enum err rule_one_hot(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t depth;
    int axis;
    if (step_input_ints(step, 1, &depth, 1) != 1)
        return ERR_OK;
    if (in->rank == GRAPH_MAX_RANK)
        return step_fail(step, "its output has more than 8 dimensions");
    if (step_axis(step, -1, in->rank + 1, &axis))
        return ERR_BAD_VALUE;
    struct shape out = {.rank = (uint8_t)(in->rank + 1)};
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? depth : in->dims[i - (i > axis)];
    return step_set_result(step, &out);
}

enum err rule_top_k(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t k = step_int(step, "k", -1);
    int axis;
    if (k < 0 && step_input_ints(step, 1, &k, 1) != 1)
        return ERR_OK;
    if (step_axis(step, -1, in->rank, &axis))
        return ERR_BAD_VALUE;
    struct shape out = *in;
    out.dims[axis] = k;
    step_set_result(step, &out);
    return step_set_output(step, 1, ONNX_INT64, &out);
}

/* The upper bound: the number of remaining boxes depends on the image. */
enum err rule_non_max_suppression(struct step *step)
{
    const struct shape *boxes = step_shape(step, 0), *scores = step_shape(step, 1);
    int64_t max = 0;
    if (boxes->rank != 3 || scores->rank != 3)
        return ERR_OK;
    if (step_input_ints(step, 2, &max, 1) != 1 || max > boxes->dims[1] || max < 0)
        max = boxes->dims[1];
    double rows = (double)scores->dims[0] * (double)scores->dims[1] * (double)max;
    struct shape out = {.rank = 2, .dims = {clamp_to_int(rows), 3}};
    step->is_guessed = true;
    return step_set_output(step, 0, ONNX_INT64, &out);
}

enum err rule_non_zero(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct shape out = {.rank = 2, .dims = {in->rank, shape_elements(in)}};
    step->is_guessed = true;
    return step_set_output(step, 0, ONNX_INT64, &out);
}

enum err rule_compress(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    step->is_guessed = true;
    struct shape flat = {.rank = 1, .dims = {shape_elements(in)}};
    return step_set_result(step, step_attribute(step, "axis") ? in : &flat);
}

enum err rule_unique(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    step->is_guessed = true;
    struct shape flat = {.rank = 1, .dims = {shape_elements(in)}};
    int axis = 0;
    bool has_axis =
        step_attribute(step, "axis") && resolve_axis(step_int(step, "axis", 0), in->rank, &axis);
    struct shape one = {.rank = 1, .dims = {has_axis ? in->dims[axis] : flat.dims[0]}};
    for (size_t i = 1; i < 4; i++)
        step_set_output(step, i, ONNX_INT64, &one);
    return step_set_result(step, has_axis ? in : &flat);
}

enum err rule_multinomial(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (in->rank != 2)
        return ERR_OK;
    struct shape out = {.rank = 2, .dims = {in->dims[0], step_int(step, "sample_size", 1)}};
    return step_set_output(step, 0, ONNX_INT32, &out);
}
