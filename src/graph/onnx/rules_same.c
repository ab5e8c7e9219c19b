/* Operators that work number by number, or over some dimensions that stay or fall to 1. */
#include "graph/onnx/rules.h"

enum err rule_same(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    return in ? step_give(step, 0, 0, in) : ERR_OK;
}

enum err rule_test(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    return in ? step_give(step, 0, ONNX_BOOL, in) : ERR_OK;
}

/* ---- broadcasting ---- */

/* Makes *sum the shape of both; false when they do not fit. */
static bool join(struct shape *sum, const struct shape *more)
{
    struct shape joined = {.rank = sum->rank > more->rank ? sum->rank : more->rank};
    for (int i = 1; i <= joined.rank; i++) {
        int64_t a = i <= sum->rank ? sum->dims[sum->rank - i] : 1;
        int64_t b = i <= more->rank ? more->dims[more->rank - i] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        joined.dims[joined.rank - i] = a == 1 ? b : a;
    }
    *sum = joined;
    return true;
}

static enum err broadcast(struct step *step, int32_t type)
{
    const struct shape *first = step_shape(step, 0);
    if (!first)
        return ERR_OK;
    struct shape sum = *first;
    bool is_old = step_integer(step, "broadcast", 0) != 0; /* before version 7: as the first is */
    for (size_t i = 1; i < step_input_count(step) && !is_old; i++) {
        const struct shape *more = step_shape(step, i);
        if (!more)
            return ERR_OK;
        if (!join(&sum, more))
            return step_fail(step, "the shapes of its inputs do not fit each other");
    }
    return step_give(step, 0, type, &sum);
}

/* Each of the two with its scale and its zero point behind. */
enum err rule_qlinear_binary(struct step *step)
{
    static const uint8_t ORDER[] = {0, 3};
    const struct shape *first = step_shape(step, 0), *second = step_shape(step, 3);
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    if (!first || !second)
        return ERR_OK;
    struct shape sum = *first;
    if (!join(&sum, second))
        return step_fail(step, "the shapes of its inputs do not fit each other");
    return step_give(step, 0, 0, &sum);
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
    const struct known *chosen = step_input(step, 1);
    return broadcast(step, chosen ? chosen->type : 0);
}

/* ---- types ---- */

enum err rule_cast(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t to = step_integer(step, "to", 0);
    return in ? step_give(step, 0, to > 0 && to < 64 ? (int32_t)to : 0, in) : ERR_OK;
}

enum err rule_cast_like(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct known *like = step_input(step, 1);
    return in ? step_give(step, 0, like ? like->type : 0, in) : ERR_OK;
}

enum err rule_eye_like(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t type = step_integer(step, "dtype", 0);
    return in ? step_give(step, 0, type > 0 && type < 64 ? (int32_t)type : 0, in) : ERR_OK;
}

enum err rule_quantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct known *zero = step_input(step, 2);
    return in ? step_give(step, 0, zero && zero->type ? zero->type : ONNX_UINT8, in) : ERR_OK;
}

enum err rule_dequantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct known *scale = step_input(step, 1);
    return in ? step_give(step, 0, scale && scale->type ? scale->type : ONNX_FLOAT, in) : ERR_OK;
}

enum err rule_dynamic_quantize(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    const struct shape scalar = {0};
    enum err err = in ? step_give(step, 0, ONNX_UINT8, in) : ERR_OK;
    if (!err)
        err = step_give(step, 1, ONNX_FLOAT, &scalar);
    return err ? err : step_give(step, 2, ONNX_UINT8, &scalar);
}

enum err rule_dropout(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in)
        return ERR_OK;
    enum err err = step_give(step, 0, 0, in);
    return err ? err : step_give(step, 1, ONNX_BOOL, in);
}

/* ---- norms ---- */

enum err rule_batch_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *scale = step_shape(step, 1);
    enum err err = in ? step_give(step, 0, 0, in) : ERR_OK;
    for (size_t i = 1; i < 5 && scale && !err; i++) /* means and variances of training */
        err = step_give(step, i, 0, scale);
    return err;
}

enum err rule_layer_norm(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int axis;
    if (!in)
        return ERR_OK;
    if (!axis_of(step_integer(step, "axis", -1), in->rank, &axis))
        return step_fail(step, "its axis is none of its input's dimensions");
    struct shape means = *in;
    for (int i = axis; i < means.rank; i++)
        means.dims[i] = 1;
    enum err err = step_give(step, 0, 0, in);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_give(step, i, ONNX_FLOAT, &means);
    return err;
}

enum err rule_skip_norm(struct step *step)
{
    static const uint8_t SUM[] = {0, 1}, REST[] = {2, 3};
    const struct shape *in = step_shape(step, 0);
    if (!in || in->rank == 0)
        return ERR_OK;
    step->before.op = GRAPH_ADD;
    step->before.inputs = SUM;
    step->before.input_count = sizeof SUM;
    step->before.shape = *in;
    step->order = REST;
    step->order_count = sizeof REST;
    struct shape means = *in;
    means.dims[means.rank - 1] = 1;
    enum err err = step_give(step, 0, 0, in);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_give(step, i, ONNX_FLOAT, &means);
    return err ? err : step_give(step, 3, 0, in);
}

/* ---- over some dimensions ---- */

/* Lets go of the marked dimensions, or keeps them as 1. */
static struct shape reduced(const struct shape *in, const bool *gone, bool keeps)
{
    struct shape out = {0};
    for (int i = 0; i < in->rank; i++)
        if (!gone[i] || keeps)
            out.dims[out.rank++] = gone[i] ? 1 : in->dims[i];
    return out;
}

enum err rule_reduce(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    int64_t axes[GRAPH_MOST_DIMENSIONS];
    bool gone[GRAPH_MOST_DIMENSIONS] = {0};
    bool is_given = step_has(step, "axes") || step_input(step, 1);
    int count = is_given ? step_list_or_input(step, "axes", 1, axes, GRAPH_MOST_DIMENSIONS) : 0;
    if (!in || count < 0)
        return ERR_OK;
    if (count == 0 && step_integer(step, "noop_with_empty_axes", 0))
        return step_give(step, 0, 0, in);
    for (int i = 0; i < in->rank; i++)
        gone[i] = count == 0;
    for (int i = 0, axis; i < count; i++) {
        if (!axis_of(axes[i], in->rank, &axis))
            return step_fail(step, "an axis is none of its input's dimensions");
        gone[axis] = true;
    }
    struct shape out = reduced(in, gone, step_integer(step, "keepdims", 1) != 0);
    return step_give(step, 0, 0, &out);
}

enum err rule_arg(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    bool gone[GRAPH_MOST_DIMENSIONS] = {0};
    int axis;
    if (!in)
        return ERR_OK;
    if (!axis_of(step_integer(step, "axis", 0), in->rank, &axis))
        return step_fail(step, "its axis is none of its input's dimensions");
    gone[axis] = true;
    struct shape out = reduced(in, gone, step_integer(step, "keepdims", 1) != 0);
    return step_give(step, 0, ONNX_INT64, &out);
}

enum err rule_det(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    if (!in || in->rank < 2)
        return ERR_OK;
    struct shape out = *in;
    out.rank -= 2;
    return step_give(step, 0, 0, &out);
}
