/* Shape rules of elementwise operators and those along some dimensions: arithmetic, casts, norms, reductions. */
#include "graph/onnx/operators.h"

enum err rule_same(struct step *step)
{
    return step_set_result(step, step_shape(step, 0));
}

enum err rule_broadcast(struct step *step)
{
    struct shape joined = *step_shape(step, 0);
    bool is_old = step_int(step, "broadcast", 0) != 0; /* before version 7: shaped like the first */
    for (size_t i = 1; i < step_order_count(step) && !is_old; i++) {
        const struct shape *more = step_shape(step, step_order_at(step, i));
        if (!more)
            return ERR_OK;
        if (!shape_broadcast(&joined, more))
            return step_fail(step, "input shapes cannot be broadcast");
    }
    return step_set_result(step, &joined);
}

/* ---- dtypes ---- */

enum err rule_cast(struct step *step)
{
    int64_t to = step_int(step, "to", step_int(step, "dtype", 0));
    return step_set_output(step, 0, to > 0 && to < 64 ? (int32_t)to : 0, step_shape(step, 0));
}

enum err rule_dynamic_quantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct shape scalar = {0};
    if (in)
        step_set_output(step, 0, ONNX_UINT8, in);
    step_set_output(step, 1, ONNX_FLOAT, &scalar);
    return step_set_output(step, 2, ONNX_UINT8, &scalar);
}

enum err rule_dropout(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    step_set_result(step, in);
    return step_set_output(step, 1, ONNX_BOOL, in);
}

/* ---- norms ---- */

enum err rule_batch_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *scale = step_shape(step, 1);
    if (in)
        step_set_result(step, in);
    for (size_t i = 1; i < 5 && scale; i++) /* statistics, in training mode */
        step_set_output(step, i, 0, scale);
    return step->err;
}

enum err rule_layer_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int axis;
    if (step_axis(step, -1, in->rank, &axis))
        return ERR_BAD_VALUE;
    struct shape means = *in;
    for (int i = axis; i < means.rank; i++)
        means.dims[i] = 1;
    for (size_t i = 1; i < 3; i++)
        step_set_output(step, i, ONNX_FLOAT, &means);
    return step_set_result(step, in);
}

enum err rule_skip_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in || in->rank == 0)
        return ERR_OK;
    step->prologue.op = GRAPH_ADD;
    step->prologue.inputs = "01";
    step->prologue.shape = *in;
    step->order = "23";
    struct shape means = *in;
    means.dims[means.rank - 1] = 1;
    step_set_result(step, in);
    for (size_t i = 1; i < 3; i++)
        step_set_output(step, i, ONNX_FLOAT, &means);
    return step_set_output(step, 3, 0, in);
}

/* ---- reductions ---- */

/* Removes the reduced dimensions, or keeps them as 1. */
static struct shape reduced(const struct shape *in, const bool *is_reduced, bool keeps)
{
    struct shape out = {0};
    for (int i = 0; i < in->rank; i++)
        if (!is_reduced[i] || keeps)
            out.dims[out.rank++] = is_reduced[i] ? 1 : in->dims[i];
    return out;
}

enum err rule_reduce(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MAX_RANK];
    bool is_reduced[GRAPH_MAX_RANK] = {0};
    bool is_given = step_attribute(step, "axes") || step_input(step, 1);
    int count = is_given ? step_ints_or_input(step, "axes", 1, axes, GRAPH_MAX_RANK) : 0;
    if (count < 0)
        return ERR_OK;
    if (count == 0 && step_int(step, "noop_with_empty_axes", 0))
        return step_set_result(step, in);
    for (int i = 0; i < in->rank; i++)
        is_reduced[i] = count == 0;
    for (int i = 0, axis; i < count; i++) {
        if (!resolve_axis(axes[i], in->rank, &axis))
            return step_fail(step, "axis out of range");
        is_reduced[axis] = true;
    }
    struct shape out = reduced(in, is_reduced, step_int(step, "keepdims", 1) != 0);
    return step_set_result(step, &out);
}

enum err rule_arg_reduce(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    bool is_reduced[GRAPH_MAX_RANK] = {0};
    int axis;
    if (step_axis(step, 0, in->rank, &axis))
        return ERR_BAD_VALUE;
    is_reduced[axis] = true;
    struct shape out = reduced(in, is_reduced, step_int(step, "keepdims", 1) != 0);
    return step_set_output(step, 0, ONNX_INT64, &out);
}

enum err rule_det(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (in->rank < 2)
        return ERR_OK;
    struct shape out = *in;
    out.rank -= 2;
    return step_set_result(step, &out);
}
