/* Shape rules of operators that reshape, create a tensor from a shape, or repeat it. */
#include "graph/onnx/operators.h"

#include <math.h>
#include <string.h>

/* ---- views ---- */

/* 0 copies a dimension of the input, -1 is inferred. */
static enum err fill_shape(struct step *step, const struct shape *in, const int64_t *wanted,
                           int count, struct shape *out)
{
    bool keeps_zero = step_int(step, "allowzero", 0) != 0;
    int64_t elements = shape_elements(in);
    int inferred = -1;
    double product = 1;
    out->rank = (uint8_t)count;
    for (int i = 0; i < count; i++) {
        int64_t dim = wanted[i];
        if (dim == 0 && !keeps_zero && i < in->rank)
            dim = in->dims[i];
        if (dim < -1 || (dim == -1 && inferred >= 0))
            return step_fail(step, "its shape has more than one dimension of -1");
        if (dim == -1)
            inferred = i;
        else
            product *= (double)dim;
        out->dims[i] = dim;
    }
    if (inferred >= 0) {
        if (product > 0 && fmod((double)elements, product) == 0)
            out->dims[inferred] = (int64_t)((double)elements / product);
        else if (elements == 0)
            out->dims[inferred] = 0;
        else
            return step_fail(step, "cannot reshape %.0f elements to its shape", (double)elements);
    } else if (product != (double)elements) {
        return step_fail(step, "cannot reshape %.0f elements to %.0f", (double)elements, product);
    }
    return ERR_OK;
}

enum err rule_reshape(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t wanted[GRAPH_MAX_RANK];
    struct shape out = {0};
    int count = step_ints_or_input(step, "shape", 1, wanted, GRAPH_MAX_RANK);
    if (count < 0)
        return ERR_OK;
    enum err err = fill_shape(step, in, wanted, count, &out);
    return err ? err : step_set_result(step, &out);
}

enum err rule_flatten(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axis = step_int(step, "axis", 1);
    struct shape out = {.rank = 2, .dims = {1, 1}};
    if (axis < -in->rank || axis > in->rank)
        return step_fail(step, "axis out of range");
    axis = axis < 0 ? axis + in->rank : axis;
    for (int i = 0; i < in->rank; i++)
        out.dims[i >= axis] *= in->dims[i];
    return step_set_result(step, &out);
}

/* False when an axis is out of range. */
static bool mark_axes(const int64_t *axes, int count, int rank, bool *marked)
{
    for (int i = 0, axis; i < count; i++) {
        if (!resolve_axis(axes[i], rank, &axis))
            return false;
        marked[axis] = true;
    }
    return true;
}

enum err rule_squeeze(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MAX_RANK];
    bool is_removed[GRAPH_MAX_RANK] = {0};
    bool is_given = step_attribute(step, "axes") || step_input(step, 1);
    int count = is_given ? step_ints_or_input(step, "axes", 1, axes, GRAPH_MAX_RANK) : 0;
    struct shape out = {0};
    if (count < 0)
        return ERR_OK;
    if (!mark_axes(axes, count, in->rank, is_removed))
        return step_fail(step, "axis out of range");
    for (int i = 0; i < in->rank; i++) {
        bool is_gone = is_given ? is_removed[i] : in->dims[i] == 1;
        if (is_gone && in->dims[i] != 1)
            return step_fail(step, "cannot squeeze a dimension of size %lld",
                             (long long)in->dims[i]);
        if (!is_gone)
            out.dims[out.rank++] = in->dims[i];
    }
    return step_set_result(step, &out);
}

enum err rule_unsqueeze(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MAX_RANK];
    bool is_new[GRAPH_MAX_RANK] = {0};
    int count = step_ints_or_input(step, "axes", 1, axes, GRAPH_MAX_RANK);
    if (count < 0)
        return ERR_OK;
    if (in->rank + count > GRAPH_MAX_RANK)
        return step_fail(step, "its output has more than 8 dimensions");
    struct shape out = {.rank = (uint8_t)(in->rank + count)};
    if (!mark_axes(axes, count, out.rank, is_new))
        return step_fail(step, "axis out of range");
    int from = 0;
    for (int i = 0; i < out.rank; i++) {
        if (!is_new[i] && from == in->rank)
            return step_fail(step, "axis given more than once");
        out.dims[i] = is_new[i] ? 1 : in->dims[from++];
    }
    return step_set_result(step, &out);
}

enum err rule_transpose(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t order[GRAPH_MAX_RANK];
    int count = step_ints(step, "perm", order, GRAPH_MAX_RANK);
    struct shape out = {.rank = in->rank};
    if (step_attribute(step, "perm") && count != in->rank)
        return step_fail(step, "perm must have one entry per input dimension");
    for (int i = 0; i < in->rank; i++) {
        int from = in->rank - 1 - i;
        if (count && !resolve_axis(order[i], in->rank, &from))
            return step_fail(step, "perm entry out of range");
        out.dims[i] = in->dims[from];
    }
    return step_set_result(step, &out);
}

/* ---- tensors created from a shape ---- */

enum err rule_shape(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t begin = step_int(step, "start", 0), end = step_int(step, "end", in->rank);
    begin = begin < 0 ? begin + in->rank : begin;
    end = end < 0 ? end + in->rank : end;
    begin = begin < 0 ? 0 : begin > in->rank ? in->rank : begin;
    end = end < begin ? begin : end > in->rank ? in->rank : end;
    struct shape out = {.rank = 1, .dims = {end - begin}};
    return step_set_output(step, 0, ONNX_INT64, &out);
}

enum err rule_size(struct step *step)
{
    return step_set_output(step, 0, ONNX_INT64, &(struct shape){0});
}

static enum err constant_tensor(struct step *step, struct slice body)
{
    struct proto_tensor *tensor = arena_alloc(&step->infer->arena, sizeof *tensor);
    struct operand *out = step_output(step, 0);
    const char *wrong = onnx_tensor_decode(body, tensor);
    if (wrong)
        return step_fail(step, "its tensor %s", wrong);
    struct shape shape = {.rank = tensor->rank};
    memcpy(shape.dims, tensor->dims, sizeof shape.dims);
    if (out) {
        out->tensor = tensor;
        out->is_constant_node = true;
    }
    return step_set_output(step, 0, tensor->dtype, &shape);
}

enum err rule_constant(struct step *step)
{
    static const struct {
        const char *name;
        int32_t dtype;
        bool is_list;
    } ATTRIBUTES[] = {{"value_int", ONNX_INT64, false},
                      {"value_float", ONNX_FLOAT, false},
                      {"value_string", ONNX_STRING, false},
                      {"value_ints", ONNX_INT64, true},
                      {"value_floats", ONNX_FLOAT, true}};
    const struct onnx_attribute *value = step_attribute(step, "value");
    if (value && value->tensor.start)
        return constant_tensor(step, value->tensor);
    for (size_t i = 0; i < COUNT_OF(ATTRIBUTES); i++) {
        const struct onnx_attribute *attribute = step_attribute(step, ATTRIBUTES[i].name);
        if (!attribute)
            continue;
        struct shape out = {.rank = ATTRIBUTES[i].is_list,
                            .dims = {(int64_t)attribute->int_count + attribute->float_count}};
        return step_set_output(step, 0, ATTRIBUTES[i].dtype, &out);
    }
    return ERR_OK;
}

enum err rule_constant_of_shape(struct step *step)
{
    const struct onnx_attribute *value = step_attribute(step, "value");
    struct proto_tensor tensor = {.dtype = ONNX_FLOAT};
    struct shape out = {0};
    if (value && value->tensor.start && onnx_tensor_decode(value->tensor, &tensor))
        return step_fail(step, "its value is corrupt");
    int count = step_input_ints(step, 0, out.dims, GRAPH_MAX_RANK);
    out.rank = (uint8_t)(count < 0 ? 0 : count);
    return count < 0 ? ERR_OK : step_set_output(step, 0, tensor.dtype, &out);
}

enum err rule_range(struct step *step)
{
    double ends[3];
    for (size_t i = 0; i < 3; i++) {
        struct operand *end = step_input(step, i);
        const double *number = end ? operand_data(step->infer, end) : NULL;
        if (!number || shape_elements(&end->shape) < 1)
            return ERR_OK;
        ends[i] = number[0];
    }
    double count = ends[2] != 0 ? ceil((ends[1] - ends[0]) / ends[2]) : 0;
    struct shape out = {.rank = 1, .dims = {count > 0 ? clamp_to_int(count) : 0}};
    return step_set_result(step, &out);
}

enum err rule_random(struct step *step)
{
    struct shape out = {0};
    out.rank = (uint8_t)step_ints(step, "shape", out.dims, GRAPH_MAX_RANK);
    return step_set_output(step, 0, ONNX_FLOAT, &out);
}

/* ---- repetition ---- */

enum err rule_expand(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t wanted[GRAPH_MAX_RANK];
    int count = step_input_ints(step, 1, wanted, GRAPH_MAX_RANK);
    if (count < 0)
        return ERR_OK;
    struct shape out = {.rank = (uint8_t)(in->rank > count ? in->rank : count)};
    for (int i = 1; i <= out.rank; i++) {
        int64_t has = i <= in->rank ? in->dims[in->rank - i] : 1;
        int64_t wants = i <= count ? wanted[count - i] : 1;
        if (has != wants && has != 1 && wants != 1)
            return step_fail(step, "its input cannot be expanded to its shape");
        out.dims[out.rank - i] = has == 1 ? wants : has;
    }
    return step_set_result(step, &out);
}

enum err rule_tile(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t times[GRAPH_MAX_RANK];
    int count = step_input_ints(step, 1, times, GRAPH_MAX_RANK);
    if (count < 0)
        return ERR_OK;
    if (count != in->rank)
        return step_fail(step, "repeats must have one entry per input dimension");
    struct shape out = *in;
    for (int i = 0; i < count; i++) {
        if (times[i] < 0 || (out.dims[i] > 0 && times[i] > (INT64_C(1) << 50) / out.dims[i]))
            return step_fail(step, "its output has too many elements");
        out.dims[i] *= times[i];
    }
    return step_set_result(step, &out);
}

enum err rule_depth_to_space(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t size = step_int(step, "blocksize", 1);
    if (in->rank != 4)
        return ERR_OK;
    if (size < 1 || size > 64 || in->dims[1] % (size * size))
        return step_fail(step, "channels are not a multiple of blocksize squared");
    struct shape out = {
        .rank = 4,
        .dims = {in->dims[0], in->dims[1] / (size * size), in->dims[2] * size, in->dims[3] * size}};
    return step_set_result(step, &out);
}

enum err rule_space_to_depth(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t size = step_int(step, "blocksize", 1);
    if (in->rank != 4)
        return ERR_OK;
    if (size < 1 || size > 64)
        return step_fail(step, "invalid blocksize");
    struct shape out = {
        .rank = 4,
        .dims = {in->dims[0], in->dims[1] * size * size, in->dims[2] / size, in->dims[3] / size}};
    return step_set_result(step, &out);
}
