/* Operators that give the same numbers another shape, or make numbers of a shape. */
#include "graph/onnx/rules.h"

#include <math.h>
#include <string.h>

#include "graph/onnx/tensor.h"

/* ---- views ---- */

/* 0 copies a dimension, -1 is what is left. */
static enum err fill_shape(struct step *step, const struct shape *in, const int64_t *wanted,
                           int count, struct shape *out)
{
    bool keeps_zero = step_integer(step, "allowzero", 0) != 0;
    int64_t elements = shape_elements(in);
    int free_place = -1;
    double known = 1;
    out->rank = (uint8_t)count;
    for (int i = 0; i < count; i++) {
        int64_t dim = wanted[i];
        if (dim == 0 && !keeps_zero && i < in->rank)
            dim = in->dims[i];
        if (dim < -1 || (dim == -1 && free_place >= 0))
            return step_fail(step, "the shape that it is given has more than one open dimension");
        if (dim == -1)
            free_place = i;
        else
            known *= (double)dim;
        out->dims[i] = dim;
    }
    if (free_place >= 0) {
        if (known > 0 && fmod((double)elements, known) == 0)
            out->dims[free_place] = (int64_t)((double)elements / known);
        else if (elements == 0)
            out->dims[free_place] = 0;
        else
            return step_fail(step, "%.0f numbers do not fit the shape that it is given",
                             (double)elements);
    } else if (known != (double)elements) {
        return step_fail(step, "%.0f numbers do not fit a shape of %.0f", (double)elements, known);
    }
    return ERR_OK;
}

enum err rule_reshape(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t wanted[GRAPH_MOST_DIMENSIONS];
    struct shape out = {0};
    int count = step_list_or_input(step, "shape", 1, wanted, GRAPH_MOST_DIMENSIONS);
    if (!in || count < 0)
        return ERR_OK;
    enum err err = fill_shape(step, in, wanted, count, &out);
    return err ? err : step_give(step, 0, 0, &out);
}

enum err rule_flatten(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in)
        return ERR_OK;
    int64_t axis = step_integer(step, "axis", 1);
    struct shape out = {.rank = 2, .dims = {1, 1}};
    if (axis < -in->rank || axis > in->rank)
        return step_fail(step, "its axis is none of its input's dimensions");
    axis = axis < 0 ? axis + in->rank : axis;
    for (int i = 0; i < in->rank; i++)
        out.dims[i >= axis] *= in->dims[i];
    return step_give(step, 0, 0, &out);
}

/* Marks the axes; false when one is none of `rank` dimensions. */
static bool mark_axes(const int64_t *axes, int count, int rank, bool *marked)
{
    for (int i = 0, axis; i < count; i++) {
        if (!axis_of(axes[i], rank, &axis))
            return false;
        marked[axis] = true;
    }
    return true;
}

enum err rule_squeeze(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MOST_DIMENSIONS];
    bool gone[GRAPH_MOST_DIMENSIONS] = {0};
    bool is_told = step_has(step, "axes") || step_input(step, 1);
    int count = is_told ? step_list_or_input(step, "axes", 1, axes, GRAPH_MOST_DIMENSIONS) : 0;
    struct shape out = {0};
    if (!in || count < 0)
        return ERR_OK;
    if (!mark_axes(axes, count, in->rank, gone))
        return step_fail(step, "an axis is none of its input's dimensions");
    for (int i = 0; i < in->rank; i++) {
        bool goes = is_told ? gone[i] : in->dims[i] == 1;
        if (goes && in->dims[i] != 1)
            return step_fail(step, "a dimension that it takes away is %lld, not 1",
                             (long long)in->dims[i]);
        if (!goes)
            out.dims[out.rank++] = in->dims[i];
    }
    return step_give(step, 0, 0, &out);
}

enum err rule_unsqueeze(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MOST_DIMENSIONS];
    bool is_new[GRAPH_MOST_DIMENSIONS] = {0};
    int count = step_list_or_input(step, "axes", 1, axes, GRAPH_MOST_DIMENSIONS);
    if (!in || count < 0)
        return ERR_OK;
    if (in->rank + count > GRAPH_MOST_DIMENSIONS)
        return step_fail(step, "what comes out has more dimensions than are read (8)");
    struct shape out = {.rank = (uint8_t)(in->rank + count)};
    if (!mark_axes(axes, count, out.rank, is_new))
        return step_fail(step, "an axis is none of the dimensions that come out");
    int from = 0;
    for (int i = 0; i < out.rank; i++) {
        if (!is_new[i] && from == in->rank)
            return step_fail(step, "an axis is there twice");
        out.dims[i] = is_new[i] ? 1 : in->dims[from++];
    }
    return step_give(step, 0, 0, &out);
}

enum err rule_transpose(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t order[GRAPH_MOST_DIMENSIONS];
    if (!in)
        return ERR_OK;
    int count = step_list(step, "perm", order, GRAPH_MOST_DIMENSIONS);
    struct shape out = {.rank = in->rank};
    if (step_has(step, "perm") && count != in->rank)
        return step_fail(step, "its perm has not as many entries as its input dimensions");
    for (int i = 0; i < in->rank; i++) {
        int from = in->rank - 1 - i;
        if (count && !axis_of(order[i], in->rank, &from))
            return step_fail(step, "its perm names a dimension that is not there");
        out.dims[i] = in->dims[from];
    }
    return step_give(step, 0, 0, &out);
}

/* ---- made of a shape ---- */

enum err rule_shape(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in)
        return ERR_OK;
    int64_t begin = step_integer(step, "start", 0), end = step_integer(step, "end", in->rank);
    begin = begin < 0 ? begin + in->rank : begin;
    end = end < 0 ? end + in->rank : end;
    begin = begin < 0 ? 0 : begin > in->rank ? in->rank : begin;
    end = end < begin ? begin : end > in->rank ? in->rank : end;
    struct shape out = {.rank = 1, .dims = {end - begin}};
    return step_give(step, 0, ONNX_INT64, &out);
}

enum err rule_size(struct step *step)
{
    return step_give(step, 0, ONNX_INT64, &(struct shape){0});
}

/* The tensor of a Constant node lives as long as the work. */
static enum err constant_tensor(struct step *step, struct slice body)
{
    struct onnx_tensor *tensor = arena_take(&step->work->kept, sizeof *tensor);
    struct known *out = step_output(step, 0);
    if (!tensor)
        return work_no_memory(step->work);
    const char *wrong = tensor_read(body, tensor);
    if (wrong)
        return step_fail(step, "its tensor %s", wrong);
    struct shape shape = {.rank = tensor->rank};
    memcpy(shape.dims, tensor->dims, sizeof shape.dims);
    if (out) {
        out->tensor = tensor;
        out->is_constant = true;
    }
    return step_give(step, 0, tensor->type, &shape);
}

enum err rule_constant(struct step *step)
{
    static const struct {
        const char *name;
        int32_t type;
        bool is_list;
    } SETTINGS[] = {{"value_int", ONNX_INT64, false},
                    {"value_float", ONNX_FLOAT, false},
                    {"value_string", ONNX_STRING, false},
                    {"value_ints", ONNX_INT64, true},
                    {"value_floats", ONNX_FLOAT, true}};
    const struct onnx_attribute *value = step_attribute(step, "value");
    if (value && value->tensor.bytes)
        return constant_tensor(step, value->tensor);
    for (size_t i = 0; i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        const struct message_setting *list = step_setting(step, SETTINGS[i].name);
        if (!list)
            continue;
        struct shape out = {.rank = SETTINGS[i].is_list,
                            .dims = {(int64_t)(list->integer_count + list->real_count)}};
        return step_give(step, 0, SETTINGS[i].type, &out);
    }
    return ERR_OK;
}

enum err rule_constant_of_shape(struct step *step)
{
    const struct onnx_attribute *value = step_attribute(step, "value");
    struct onnx_tensor tensor = {.type = ONNX_FLOAT};
    struct shape out = {0};
    if (value && value->tensor.bytes && tensor_read(value->tensor, &tensor))
        return step_fail(step, "the number that it fills with is damaged");
    int count = step_integers(step, 0, out.dims, GRAPH_MOST_DIMENSIONS);
    out.rank = (uint8_t)(count < 0 ? 0 : count);
    return count < 0 ? ERR_OK : step_give(step, 0, tensor.type, &out);
}

enum err rule_range(struct step *step)
{
    double ends[3];
    for (size_t i = 0; i < 3; i++) {
        struct known *end = step_input(step, i);
        const double *number = end ? known_numbers(step->work, end) : NULL;
        if (!number || shape_elements(&end->shape) < 1)
            return ERR_OK;
        ends[i] = number[0];
    }
    double count = ends[2] != 0 ? ceil((ends[1] - ends[0]) / ends[2]) : 0;
    struct shape out = {.rank = 1, .dims = {count > 0 ? integer_of(count) : 0}};
    return step_give(step, 0, 0, &out);
}

enum err rule_random(struct step *step)
{
    struct shape out = {0};
    out.rank = (uint8_t)step_list(step, "shape", out.dims, GRAPH_MOST_DIMENSIONS);
    return step_give(step, 0, ONNX_FLOAT, &out);
}

/* ---- repeated ---- */

enum err rule_expand(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t wanted[GRAPH_MOST_DIMENSIONS];
    int count = step_integers(step, 1, wanted, GRAPH_MOST_DIMENSIONS);
    if (!in || count < 0)
        return ERR_OK;
    struct shape out = {.rank = (uint8_t)(in->rank > count ? in->rank : count)};
    for (int i = 1; i <= out.rank; i++) {
        int64_t has = i <= in->rank ? in->dims[in->rank - i] : 1;
        int64_t wants = i <= count ? wanted[count - i] : 1;
        if (has != wants && has != 1 && wants != 1)
            return step_fail(step, "its input does not fit the shape that it is given");
        out.dims[out.rank - i] = has == 1 ? wants : has;
    }
    return step_give(step, 0, 0, &out);
}

enum err rule_tile(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t times[GRAPH_MOST_DIMENSIONS];
    int count = step_integers(step, 1, times, GRAPH_MOST_DIMENSIONS);
    if (!in || count < 0)
        return ERR_OK;
    if (count != in->rank)
        return step_fail(step, "it has not as many repeats as its input dimensions");
    struct shape out = *in;
    for (int i = 0; i < count; i++) {
        if (times[i] < 0 || (out.dims[i] > 0 && times[i] > (INT64_C(1) << 50) / out.dims[i]))
            return step_fail(step, "what comes out is larger than can be counted");
        out.dims[i] *= times[i];
    }
    return step_give(step, 0, 0, &out);
}

enum err rule_depth_to_space(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t size = step_integer(step, "blocksize", 1);
    if (!in || in->rank != 4)
        return ERR_OK;
    if (size < 1 || size > 64 || in->dims[1] % (size * size))
        return step_fail(step, "its channels are no multiple of its blocks");
    struct shape out = {
        .rank = 4,
        .dims = {in->dims[0], in->dims[1] / (size * size), in->dims[2] * size, in->dims[3] * size}};
    return step_give(step, 0, 0, &out);
}

enum err rule_space_to_depth(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t size = step_integer(step, "blocksize", 1);
    if (!in || in->rank != 4)
        return ERR_OK;
    if (size < 1 || size > 64)
        return step_fail(step, "its blocks are none");
    struct shape out = {
        .rank = 4,
        .dims = {in->dims[0], in->dims[1] * size * size, in->dims[2] / size, in->dims[3] / size}};
    return step_give(step, 0, 0, &out);
}
