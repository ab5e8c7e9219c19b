/* Shape rules of elementwise operators and those along some dimensions: arithmetic, casts, norms, reductions. */
#include "graph/onnx/operators.h"

enum err rule_same(struct step *step)
{
    return step_set_result(step, step_shape(step, 0));
}

enum err rule_predicate(struct step *step)
{
    return step_set_output(step, 0, ONNX_BOOL, step_shape(step, 0));
}

/* ---- broadcasting ---- */

static enum err broadcast(struct step *step, int32_t dtype)
{
    struct shape joined = *step_shape(step, 0);
    bool is_old = step_int(step, "broadcast", 0) != 0; /* before version 7: shaped like the first */
    for (size_t i = 1; i < step->node->input_count && !is_old; i++) {
        const struct shape *more = step_shape(step, i);
        if (!more)
            return ERR_OK;
        if (!shape_broadcast(&joined, more))
            return step_fail(step, "input shapes cannot be broadcast");
    }
    return step_set_output(step, 0, dtype, &joined);
}

/* Each input is followed by its scale and its zero point. */
enum err rule_qlinear_binary(struct step *step)
{
    static const uint8_t ORDER[] = {0, 3};
    const struct shape *first = step_shape(step, 0), *second = step_shape(step, 3);
    step_select(step, ORDER, sizeof ORDER);
    if (!first || !second)
        return ERR_OK;
    struct shape joined = *first;
    if (!shape_broadcast(&joined, second))
        return step_fail(step, "input shapes cannot be broadcast");
    return step_set_result(step, &joined);
}

enum err rule_broadcast(struct step *step)
{
    return broadcast(step, 0);
}

enum err rule_compare(struct step *step)
{
    return broadcast(step, ONNX_BOOL);
}

enum err rule_where(struct step *step)
{
    const struct operand *chosen = step_input(step, 1);
    return broadcast(step, chosen ? chosen->dtype : 0);
}

/* ---- dtypes ---- */

enum err rule_cast(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t to = step_int(step, "to", 0);
    return step_set_output(step, 0, to > 0 && to < 64 ? (int32_t)to : 0, in);
}

enum err rule_cast_like(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct operand *like = step_input(step, 1);
    return step_set_output(step, 0, like ? like->dtype : 0, in);
}

enum err rule_eye_like(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t dtype = step_int(step, "dtype", 0);
    return step_set_output(step, 0, dtype > 0 && dtype < 64 ? (int32_t)dtype : 0, in);
}

enum err rule_quantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct operand *zero = step_input(step, 2);
    return step_set_output(step, 0, zero && zero->dtype ? zero->dtype : ONNX_UINT8, in);
}

enum err rule_dequantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct operand *scale = step_input(step, 1);
    return step_set_output(step, 0, scale && scale->dtype ? scale->dtype : ONNX_FLOAT, in);
}

enum err rule_dynamic_quantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct shape scalar = {0};
    enum err err = in ? step_set_output(step, 0, ONNX_UINT8, in) : ERR_OK;
    if (!err)
        err = step_set_output(step, 1, ONNX_FLOAT, &scalar);
    return err ? err : step_set_output(step, 2, ONNX_UINT8, &scalar);
}

enum err rule_dropout(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    enum err err = step_set_result(step, in);
    return err ? err : step_set_output(step, 1, ONNX_BOOL, in);
}

/* ---- norms ---- */

enum err rule_batch_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *scale = step_shape(step, 1);
    enum err err = in ? step_set_result(step, in) : ERR_OK;
    for (size_t i = 1; i < 5 && scale && !err; i++) /* statistics, in training mode */
        err = step_set_output(step, i, 0, scale);
    return err;
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
    enum err err = step_set_result(step, in);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_set_output(step, i, ONNX_FLOAT, &means);
    return err;
}

enum err rule_skip_norm(struct step *step)
{
    static const uint8_t SUM[] = {0, 1}, REST[] = {2, 3};
    const struct shape *in = step_shape(step, 0);
    if (!in || in->rank == 0)
        return ERR_OK;
    step->prologue.op = GRAPH_ADD;
    step->prologue.inputs = SUM;
    step->prologue.input_count = sizeof SUM;
    step->prologue.shape = *in;
    step_select(step, REST, sizeof REST);
    struct shape means = *in;
    means.dims[means.rank - 1] = 1;
    enum err err = step_set_result(step, in);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_set_output(step, i, ONNX_FLOAT, &means);
    return err ? err : step_set_output(step, 3, 0, in);
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
