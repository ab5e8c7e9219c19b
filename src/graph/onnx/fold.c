#include "graph/onnx/fold.h"

#include <math.h>
#include <string.h>

#include "graph/onnx/tensor.h"

bool fold_none(struct step *step, size_t index, double *out, int64_t count)
{
    (void)step, (void)index, (void)out, (void)count;
    return false;
}

static const double *input_numbers(struct step *step, size_t index)
{
    struct known *known = step_input(step, index);
    return known ? known_numbers(step->work, known) : NULL;
}

/* ---- of shapes and settings ---- */

bool fold_shape(struct step *step, size_t index, double *out, int64_t count)
{
    const struct shape *in = step_shape(step, 0);
    (void)index;
    if (!in)
        return false;
    int64_t begin = step_integer(step, "start", 0);
    begin = begin < 0 ? begin + in->rank : begin;
    begin = begin < 0 ? 0 : begin;
    for (int64_t i = 0; i < count && begin + i < in->rank; i++)
        out[i] = (double)in->dims[begin + i];
    return true;
}

bool fold_size(struct step *step, size_t index, double *out, int64_t count)
{
    const struct shape *in = step_shape(step, 0);
    (void)index;
    if (in && count == 1)
        out[0] = (double)shape_elements(in);
    return in && count == 1;
}

bool fold_constant(struct step *step, size_t index, double *out, int64_t count)
{
    (void)index;
    if (step_attribute(step, "value"))
        return false; /* a tensor, whose numbers are read where they are needed */
    for (uint32_t i = 0; i < step->node->attribute_count; i++) {
        const struct message_setting *from = &step->settings[i];
        if (from->has_integer && count == 1)
            out[0] = (double)from->integer;
        else if (from->has_real && count == 1)
            out[0] = from->real;
        for (size_t k = 0; k < from->integer_count && (int64_t)k < count; k++)
            out[k] = (double)from->integers[k];
        for (size_t k = 0; k < from->real_count && (int64_t)k < count; k++)
            out[k] = (double)from->reals[k];
    }
    return !step_has(step, "value_string") && !step_has(step, "value_strings");
}

bool fold_fill(struct step *step, size_t index, double *out, int64_t count)
{
    const struct onnx_attribute *value = step_attribute(step, "value");
    struct onnx_tensor tensor;
    double number = 0;
    (void)index;
    if (value && value->tensor.bytes &&
        (tensor_read(value->tensor, &tensor) || tensor.elements != 1 ||
         !tensor_numbers(&tensor, &number, 1)))
        return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = number;
    return true;
}

bool fold_range(struct step *step, size_t index, double *out, int64_t count)
{
    const double *begin = input_numbers(step, 0), *delta = input_numbers(step, 2);
    (void)index;
    for (int64_t i = 0; i < count && begin && delta; i++)
        out[i] = begin[0] + (double)i * delta[0];
    return begin && delta;
}

/* ---- of numbers ---- */

bool fold_copy(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    const struct shape *shape = step_shape(step, 0);
    const struct known *made = step_output(step, index);
    if (!in || !shape || !made || shape_elements(shape) != count)
        return false;
    for (int64_t i = 0; i < count; i++) {
        out[i] = type_is_real(made->type) ? in[i] : trunc(in[i]);
        if (made->type == ONNX_BOOL)
            out[i] = in[i] != 0;
    }
    return true;
}

/* Of a list or, along the first dimension, of rows. */
bool fold_gather(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0), *which = input_numbers(step, 1);
    const struct shape *shape = step_shape(step, 0);
    (void)index;
    int axis;
    if (!in || !which || shape->rank < 1 || shape->dims[0] < 1 ||
        !axis_of(step_integer(step, "axis", 0), shape->rank, &axis) || axis != 0)
        return false;
    int64_t row = shape_elements(shape) / shape->dims[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t from = integer_of(which[i / row]);
        from = from < 0 ? from + shape->dims[0] : from;
        if (from < 0 || from >= shape->dims[0])
            return false;
        out[i] = in[from * row + i % row];
    }
    return true;
}

bool fold_concat(struct step *step, size_t index, double *out, int64_t count)
{
    const struct shape *first = step_shape(step, 0);
    int64_t filled = 0;
    int axis;
    (void)index;
    if (!first || !axis_of(step_integer(step, "axis", 1), first->rank, &axis) || axis != 0)
        return false;
    for (size_t i = 0; i < step_input_count(step); i++) {
        const double *in = input_numbers(step, i);
        int64_t length = in ? shape_elements(step_shape(step, i)) : 0;
        if (!in || filled + length > count)
            return false;
        memcpy(out + filled, in, (size_t)length * sizeof *in);
        filled += length;
    }
    return filled == count;
}

/* Along one dimension, of whatever lies behind it. */
bool fold_slice(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    const struct shape *shape = step_shape(step, 0);
    const struct known *made = step_output(step, index);
    int64_t begin, stride = 1, which = 0, row = 1;
    int axis;
    if (!in || step_list_or_input(step, "starts", 1, &begin, 1) != 1 ||
        (step_input(step, 4) && step_integers(step, 4, &stride, 1) != 1))
        return false;
    bool has_axes = step_has(step, "axes") || step_input(step, 3);
    if ((has_axes && step_list_or_input(step, "axes", 3, &which, 1) != 1) ||
        !axis_of(which, shape->rank, &axis) || made->shape.rank != shape->rank)
        return false;
    for (int i = axis + 1; i < shape->rank; i++)
        row *= shape->dims[i];
    int64_t size = shape->dims[axis], last = stride > 0 ? size : size - 1;
    int64_t taken = made->shape.dims[axis];
    begin = begin < 0 ? begin + size : begin;
    begin = begin < 0 ? 0 : begin > last ? last : begin;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = begin + i / row % taken * stride;
        int64_t place = (i / row / taken * size + from) * row + i % row;
        if (from < 0 || from >= size || place >= shape_elements(shape))
            return false;
        out[i] = in[place];
    }
    return true;
}

bool fold_transpose(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    const struct shape *shape = step_shape(step, 0);
    int64_t order[GRAPH_MOST_DIMENSIONS], strides[GRAPH_MOST_DIMENSIONS] = {0}, stride = 1;
    (void)index;
    if (!in || shape_elements(shape) != count)
        return false;
    bool is_told = step_list(step, "perm", order, GRAPH_MOST_DIMENSIONS) == shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, from = 0;
        for (int k = shape->rank - 1; k >= 0; k--) {
            int axis = shape->rank - 1 - k;
            if (is_told && !axis_of(order[k], shape->rank, &axis))
                return false;
            from += rest % shape->dims[axis] * strides[axis];
            rest /= shape->dims[axis];
        }
        if (from >= count) /* a dimension that stands twice */
            return false;
        out[i] = in[from];
    }
    return true;
}

bool fold_split(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    const struct shape *shape = step_shape(step, 0);
    int64_t from = 0;
    if (!in || shape->rank != 1)
        return false;
    for (size_t i = 0; i < index; i++) {
        const struct known *before = step_output(step, i);
        if (!before || !before->has_shape)
            return false;
        from += shape_elements(&before->shape);
    }
    if (from + count > shape->dims[0])
        return false;
    memcpy(out, in + from, (size_t)count * sizeof *out);
    return true;
}

/* ---- number by number, the smaller repeated ---- */

/* Which number of an input goes into the output's number `place`. */
static int64_t place_in(const struct shape *in, const struct shape *out, int64_t place)
{
    int64_t at = 0, stride = 1;
    for (int i = 1; i <= out->rank; i++) {
        int64_t dim = out->dims[out->rank - i], digit = dim ? place % dim : 0;
        place = dim ? place / dim : 0;
        if (i > in->rank)
            continue;
        int64_t has = in->dims[in->rank - i];
        at += has <= 1 ? 0 : digit % has * stride; /* within it, whatever the shapes are */
        stride *= has;
    }
    return at;
}

bool fold_expand(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    const struct known *made = step_output(step, index);
    for (int64_t i = 0; i < count && in; i++)
        out[i] = in[place_in(step_shape(step, 0), &made->shape, i)];
    return in != NULL;
}

bool fold_where(struct step *step, size_t index, double *out, int64_t count)
{
    const double *which = input_numbers(step, 0), *a = input_numbers(step, 1);
    const double *b = input_numbers(step, 2);
    const struct known *made = step_output(step, index);
    if (!which || !a || !b)
        return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = which[place_in(step_shape(step, 0), &made->shape, i)] != 0
                     ? a[place_in(step_shape(step, 1), &made->shape, i)]
                     : b[place_in(step_shape(step, 2), &made->shape, i)];
    return true;
}

/* Of all numbers to one. */
bool fold_reduce(struct step *step, size_t index, double *out, int64_t count)
{
    const double *in = input_numbers(step, 0);
    struct slice op = step->node->op;
    (void)index;
    int64_t length = in ? shape_elements(step_shape(step, 0)) : 0;
    if (!in || count != 1 || length < 1)
        return false;
    double sum = in[0];
    for (int64_t i = 1; i < length; i++)
        sum = slice_is(op, "ReduceProd")  ? sum * in[i]
              : slice_is(op, "ReduceSum") ? sum + in[i]
              : slice_is(op, "ReduceMax") ? fmax(sum, in[i])
                                          : fmin(sum, in[i]);
    out[0] = sum;
    return true;
}

/* ---- arithmetic ---- */

static double divide(double a, double b, bool is_real)
{
    return is_real ? a / b : b == 0 ? 0 : trunc(a / b);
}

static double modulo(double a, double b)
{
    double rest = b == 0 ? 0 : fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest; /* the sign of b */
}

typedef double math_function(double a, double b, bool is_real);

#define MATH(name, result)                                                                         \
    static double math_##name(double a, double b, bool is_real)                                    \
    {                                                                                              \
        (void)a, (void)b, (void)is_real;                                                           \
        return result;                                                                             \
    }
MATH(abs, fabs(a))
MATH(add, a + b)
MATH(and, a != 0 && b != 0)
MATH(ceil, ceil(a))
MATH(div, divide(a, b, is_real))
MATH(equal, a == b)
MATH(floor, floor(a))
MATH(greater, a > b)
MATH(greater_or_equal, a >= b)
MATH(less, a < b)
MATH(less_or_equal, a <= b)
MATH(max, fmax(a, b))
MATH(min, fmin(a, b))
MATH(mod, modulo(a, b))
MATH(mul, a *b)
MATH(neg, -a)
MATH(not, a == 0)
MATH(or, a != 0 || b != 0)
MATH(pow, pow(a, b))
MATH(round, nearbyint(a))
MATH(sqrt, sqrt(a))
MATH(sub, a - b)
MATH(xor, (a != 0) != (b != 0))

static const struct {
    const char *name;
    math_function *function;
    size_t inputs;
} MATHS[] = {
    {"Abs", math_abs, 1},
    {"Add", math_add, 2},
    {"And", math_and, 2},
    {"Ceil", math_ceil, 1},
    {"Div", math_div, 2},
    {"Equal", math_equal, 2},
    {"Floor", math_floor, 1},
    {"Greater", math_greater, 2},
    {"GreaterOrEqual", math_greater_or_equal, 2},
    {"Less", math_less, 2},
    {"LessOrEqual", math_less_or_equal, 2},
    {"Max", math_max, 2},
    {"Min", math_min, 2},
    {"Mod", math_mod, 2},
    {"Mul", math_mul, 2},
    {"Neg", math_neg, 1},
    {"Not", math_not, 1},
    {"Or", math_or, 2},
    {"Pow", math_pow, 2},
    {"Round", math_round, 1},
    {"Sqrt", math_sqrt, 1},
    {"Sub", math_sub, 2},
    {"Xor", math_xor, 2},
};

bool fold_math(struct step *step, size_t index, double *out, int64_t count)
{
    const struct known *made = step_output(step, index), *first = step_input(step, 0);
    for (size_t i = 0; i < sizeof MATHS / sizeof MATHS[0]; i++) {
        if (!slice_is(step->node->op, MATHS[i].name))
            continue;
        size_t inputs = MATHS[i].inputs;
        const double *a = input_numbers(step, 0);
        const double *b = inputs == 2 ? input_numbers(step, 1) : a;
        if (!a || !b || step_input_count(step) != inputs)
            return false;
        bool is_real = type_is_real(first->type);
        for (int64_t k = 0; k < count; k++)
            out[k] = MATHS[i].function(
                a[place_in(step_shape(step, 0), &made->shape, k)],
                b[inputs == 2 ? place_in(step_shape(step, 1), &made->shape, k) : k], is_real);
        return true;
    }
    return false;
}
