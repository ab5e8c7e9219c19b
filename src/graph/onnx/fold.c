/* Constant folding: operations that a runtime computes once, when it loads the model, have no node in the graph.
 * Exporters write a reshape as a chain of Shape, Gather, Concat etc., whose result determines shapes; and they
 * transpose, slice or concatenate weights, whose parameters remain those of the file. */
#include <math.h>
#include <string.h>

#include "graph/onnx/infer.h"
#include "core/text.h"
#include "graph/onnx/operators.h"

static const double *input_data(struct step *step, size_t index)
{
    struct operand *operand = step_input(step, index);
    return operand ? operand_data(step->infer, operand) : NULL;
}

/* ---- from shapes and attributes ---- */

bool fold_shape(struct step *step, double *out, int64_t count)
{
    const struct shape *in = step_shape(step, 0);
    if (!in)
        return false;
    int64_t begin = step_int(step, "start", 0);
    begin = begin < 0 ? begin + in->rank : begin;
    begin = begin < 0 ? 0 : begin;
    for (int64_t i = 0; i < count && begin + i < in->rank; i++)
        out[i] = (double)in->dims[begin + i];
    return true;
}

bool fold_size(struct step *step, double *out, int64_t count)
{
    const struct shape *in = step_shape(step, 0);
    if (in && count == 1)
        out[0] = (double)shape_elements(in);
    return in && count == 1;
}

bool fold_constant(struct step *step, double *out, int64_t count)
{
    if (step_attribute(step, "value"))
        return false; /* a tensor, read where it is needed */
    for (uint32_t i = 0; i < step->node->attribute_count; i++) {
        const struct onnx_attribute *from =
            &step->infer->file->attributes[step->node->first_attribute + i];
        int64_t ints[MAX_FOLDED];
        if (from->has_int && count == 1)
            out[0] = (double)from->int_value;
        else if (from->has_float && count == 1)
            out[0] = (double)from->float_value;
        size_t int_count = onnx_attribute_ints(from, ints, (size_t)count);
        for (size_t k = 0; k < int_count; k++)
            out[k] = (double)ints[k];
        onnx_attribute_floats(from, out, (size_t)count);
    }
    return !step_attribute(step, "value_string") && !step_attribute(step, "value_strings");
}

bool fold_fill(struct step *step, double *out, int64_t count)
{
    const struct onnx_attribute *value = step_attribute(step, "value");
    struct proto_tensor tensor;
    double fill = 0;
    if (value && value->tensor.start &&
        (onnx_tensor_decode(value->tensor, &tensor) || tensor.elements != 1 ||
         !onnx_tensor_data(&tensor, &fill, 1)))
        return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = fill;
    return true;
}

bool fold_range(struct step *step, double *out, int64_t count)
{
    const double *begin = input_data(step, 0), *delta = input_data(step, 2);
    for (int64_t i = 0; i < count && begin && delta; i++)
        out[i] = begin[0] + (double)i * delta[0];
    return begin && delta;
}

/* ---- from elements ---- */

bool fold_copy(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    const struct shape *shape = step_shape(step, 0);
    if (!in || !shape || shape_elements(shape) != count)
        return false;
    for (int64_t i = 0; i < count; i++) {
        out[i] = onnx_dtype_is_float(step->folded->dtype) ? in[i] : trunc(in[i]);
        if (step->folded->dtype == ONNX_BOOL)
            out[i] = in[i] != 0;
    }
    return true;
}

/* Along the first dimension only. */
bool fold_gather(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0), *which = input_data(step, 1);
    const struct shape *shape = step_shape(step, 0);
    int axis;
    if (!in || !which || shape->rank < 1 || shape->dims[0] < 1 ||
        !resolve_axis(step_int(step, "axis", 0), shape->rank, &axis) || axis != 0)
        return false;
    int64_t row = shape_elements(shape) / shape->dims[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t from = clamp_to_int(which[i / row]);
        from = from < 0 ? from + shape->dims[0] : from;
        if (from < 0 || from >= shape->dims[0])
            return false;
        out[i] = in[from * row + i % row];
    }
    return true;
}

bool fold_concat(struct step *step, double *out, int64_t count)
{
    const struct shape *first = step_shape(step, 0);
    int64_t filled = 0;
    int axis;
    if (!first || !resolve_axis(step_int(step, "axis", 1), first->rank, &axis) || axis != 0)
        return false;
    for (size_t i = 0; i < step->node->input_count; i++) {
        const double *in = input_data(step, i);
        int64_t length = in ? shape_elements(step_shape(step, i)) : 0;
        if (!in || filled + length > count)
            return false;
        memcpy(out + filled, in, (size_t)length * sizeof *in);
        filled += length;
    }
    return filled == count;
}

/* Along one dimension. */
bool fold_slice(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    const struct shape *shape = step_shape(step, 0);
    int64_t begin, stride = 1, which = 0, row = 1;
    int axis;
    if (!in || step_ints_or_input(step, "starts", 1, &begin, 1) != 1 ||
        (step_input(step, 4) && step_input_ints(step, 4, &stride, 1) != 1))
        return false;
    bool has_axes = step_attribute(step, "axes") || step_input(step, 3);
    if ((has_axes && step_ints_or_input(step, "axes", 3, &which, 1) != 1) ||
        !resolve_axis(which, shape->rank, &axis) || step->folded->shape.rank != shape->rank)
        return false;
    for (int i = axis + 1; i < shape->rank; i++)
        row *= shape->dims[i];
    int64_t size = shape->dims[axis];
    int64_t last = stride > 0 ? size : size - 1;
    int64_t taken = step->folded->shape.dims[axis];
    begin = begin < 0 ? begin + size : begin;
    begin = begin < 0 ? 0 : begin > last ? last : begin;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = begin + i / row % taken * stride;
        int64_t at = (i / row / taken * size + from) * row + i % row;
        if (from < 0 || from >= size || at >= shape_elements(shape))
            return false;
        out[i] = in[at];
    }
    return true;
}

bool fold_transpose(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    const struct shape *shape = step_shape(step, 0);
    int64_t order[GRAPH_MAX_RANK], strides[GRAPH_MAX_RANK] = {0}, stride = 1;
    if (!in || shape_elements(shape) != count)
        return false;
    bool has_perm = step_ints(step, "perm", order, GRAPH_MAX_RANK) == shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, from = 0;
        for (int k = shape->rank - 1; k >= 0; k--) {
            int axis = shape->rank - 1 - k;
            if (has_perm && !resolve_axis(order[k], shape->rank, &axis))
                return false;
            from += rest % shape->dims[axis] * strides[axis];
            rest /= shape->dims[axis];
        }
        if (from >= count) /* duplicate dimension in perm */
            return false;
        out[i] = in[from];
    }
    return true;
}

bool fold_split(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    const struct shape *shape = step_shape(step, 0);
    int64_t from = 0;
    if (!in || shape->rank != 1)
        return false;
    for (size_t i = 0; step_output(step, i) != step->folded; i++) {
        const struct operand *before = step_output(step, i);
        if (!before || !before->has_shape)
            return false;
        from += shape_elements(&before->shape);
    }
    if (from + count > shape->dims[0])
        return false;
    memcpy(out, in + from, (size_t)count * sizeof *out);
    return true;
}

/* ---- element by element, with broadcasting ---- */

/* The element of an input, which has this data, for element `index` of the output. */
static double element(const struct step *step, size_t input, const double *data, int64_t index)
{
    const struct shape *in = step_shape(step, input), *out = &step->folded->shape;
    int64_t at = 0, stride = 1;
    for (int i = 1; i <= out->rank; i++) {
        int64_t dim = out->dims[out->rank - i];
        int64_t digit = dim ? index % dim : 0;
        index = dim ? index / dim : 0;
        if (i > in->rank)
            continue;
        int64_t has = in->dims[in->rank - i];
        at += has <= 1 ? 0 : digit % has * stride; /* inside the input, whatever the shapes */
        stride *= has;
    }
    return data[at];
}

bool fold_expand(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    for (int64_t i = 0; i < count && in; i++)
        out[i] = element(step, 0, in, i);
    return in != NULL;
}

bool fold_where(struct step *step, double *out, int64_t count)
{
    const double *which = input_data(step, 0), *a = input_data(step, 1);
    const double *b = input_data(step, 2);
    if (!which || !a || !b)
        return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = element(step, 0, which, i) != 0 ? element(step, 1, a, i) : element(step, 2, b, i);
    return true;
}

static double reduce_two(struct slice op, double sum, double next)
{
    if (slice_is(op, "ReduceProd"))
        return sum * next;
    if (slice_is(op, "ReduceSum"))
        return sum + next;
    return slice_is(op, "ReduceMax") ? fmax(sum, next) : fmin(sum, next);
}

/* Reduces all elements to one. */
bool fold_reduce(struct step *step, double *out, int64_t count)
{
    const double *in = input_data(step, 0);
    struct slice op = step->node->op;
    int64_t length = in ? shape_elements(step_shape(step, 0)) : 0;
    if (!in || count != 1 || length < 1)
        return false;
    double sum = in[0];
    for (int64_t i = 1; i < length; i++)
        sum = reduce_two(op, sum, in[i]);
    out[0] = sum;
    return true;
}

/* ---- arithmetic ---- */

static double divide(double a, double b, bool is_float)
{
    return is_float ? a / b : b == 0 ? 0 : trunc(a / b);
}

static double modulo(double a, double b)
{
    double rest = b == 0 ? 0 : fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest; /* the sign of b */
}

/* name in ONNX, identifier, number of inputs, result */
#define ARITHMETIC(ROW)                                                                            \
    ROW("Abs", abs, 1, fabs(a))                                                                    \
    ROW("Add", add, 2, a + b)                                                                      \
    ROW("And", and, 2, a != 0 && b != 0)                                                           \
    ROW("Ceil", ceil, 1, ceil(a))                                                                  \
    ROW("Div", div, 2, divide(a, b, is_float))                                                     \
    ROW("Equal", equal, 2, a == b)                                                                 \
    ROW("Floor", floor, 1, floor(a))                                                               \
    ROW("Greater", greater, 2, a > b)                                                              \
    ROW("GreaterOrEqual", greater_or_equal, 2, a >= b)                                             \
    ROW("Less", less, 2, a < b)                                                                    \
    ROW("LessOrEqual", less_or_equal, 2, a <= b)                                                   \
    ROW("Max", max, 2, fmax(a, b))                                                                 \
    ROW("Min", min, 2, fmin(a, b))                                                                 \
    ROW("Mod", mod, 2, modulo(a, b))                                                               \
    ROW("Mul", mul, 2, a *b)                                                                       \
    ROW("Neg", neg, 1, -a)                                                                         \
    ROW("Not", not, 1, a == 0)                                                                     \
    ROW("Or", or, 2, a != 0 || b != 0)                                                             \
    ROW("Pow", pow, 2, pow(a, b))                                                                  \
    ROW("Round", round, 1, nearbyint(a))                                                           \
    ROW("Sqrt", sqrt, 1, sqrt(a))                                                                  \
    ROW("Sub", sub, 2, a - b)                                                                      \
    ROW("Xor", xor, 2, (a != 0) != (b != 0))

#define FUNCTION(name, identifier, inputs, result)                                                 \
    static double math_##identifier(double a, double b, bool is_float)                             \
    {                                                                                              \
        (void)a, (void)b, (void)is_float;                                                          \
        return result;                                                                             \
    }
ARITHMETIC(FUNCTION)
#undef FUNCTION

static const struct {
    const char *name;
    double (*function)(double a, double b, bool is_float);
    size_t inputs;
} FUNCTIONS[] = {
#define ROW(name, identifier, inputs, result) {name, math_##identifier, inputs},
    ARITHMETIC(ROW)
#undef ROW
};

bool fold_math(struct step *step, double *out, int64_t count)
{
    const struct operand *first = step_input(step, 0);
    for (size_t i = 0; i < COUNT_OF(FUNCTIONS); i++) {
        if (!slice_is(step->node->op, FUNCTIONS[i].name))
            continue;
        size_t inputs = FUNCTIONS[i].inputs;
        const double *a = input_data(step, 0);
        const double *b = inputs == 2 ? input_data(step, 1) : a;
        if (!a || !b || step->node->input_count != inputs)
            return false;
        bool is_float = onnx_dtype_is_float(first->dtype);
        for (int64_t k = 0; k < count; k++)
            out[k] = FUNCTIONS[i].function(element(step, 0, a, k), element(step, inputs - 1, b, k),
                                           is_float);
        return true;
    }
    return false;
}

/* ---- small values ---- */

/* Integers are shapes and indices; floats only if they are as few as scales. */
static bool is_small(const struct operand *out)
{
    enum { MAX_FLOATS = 8 };
    int64_t elements = shape_elements(&out->shape);
    return onnx_dtype_is_float(out->dtype) ? elements <= MAX_FLOATS && out->shape.rank <= 1
                                           : elements <= MAX_FOLDED;
}

/* True if the elements of every output are known. */
static bool fold_outputs(struct step *step)
{
    bool is_folded = step->node->output_count > 0;
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct operand *out = step_output(step, i);
        if (!out)
            continue;
        int64_t count = shape_elements(&out->shape);
        double *data =
            step->row->fold && is_small(out) ? infer_alloc_data(step->infer, count) : NULL;
        step->folded = out;
        if (data && step->row->fold(step, data, count))
            out->data = data;
        is_folded = is_folded && out->data && !out->is_output;
    }
    return is_folded;
}

/* ---- weights: transposed, sliced or concatenated before use ---- */

static bool is_trained(const struct operand *operand)
{
    return operand_is_weight(operand) &&
           (onnx_dtype_is_float(operand->tensor->dtype) || operand->is_quantized);
}

/* `out` is a view, a part or another layout of the weight `in`. */
static void alias_weight(struct operand *out, struct operand *in)
{
    out->tensor = in->tensor;
    out->is_constant_node = in->is_constant_node;
    out->root = in->root ? in->root : in;
    out->others = in->others;
    out->is_data_read = true; /* its elements are no longer in file order */
}

static bool is_one_of(const struct step *step, const char *const *names)
{
    while (*names && !step_is(step, *names))
        names++;
    return *names;
}

static bool is_view(const struct step *step)
{
    return step->row->op == GRAPH_VIEW && step->row->rule != rule_shape &&
           step->row->rule != rule_size && step->row->rule != rule_constant;
}

/* Weights that are quantized when the model is loaded (quantization-aware training) are stored as codes. */
static void store_codes(struct step *step, const struct operand *in, struct operand *root)
{
    const struct operand *out = step_output(step, 0);
    if (step_is(step, "QuantizeLinear") && root == in && in->uses == 1 && root->id == GRAPH_NONE)
        root->stored_bytes =
            onnx_dtype_stored_width(out->dtype) * (double)shape_elements(&in->shape);
}

static bool fold_view(struct step *step)
{
    static const char *const WHOLE[] = {"Transpose",        "Cast",           "CastLike",
                                        "DequantizeLinear", "QuantizeLinear", NULL};
    static const char *const PARTS[] = {"Slice", "Split", NULL};
    struct operand *in = step_input(step, 0);
    bool is_part = is_one_of(step, PARTS) && is_trained(in);
    if (!is_view(step) && !is_part && !is_one_of(step, WHOLE))
        return false;
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct operand *out = step_output(step, i);
        if (!out)
            continue;
        alias_weight(out, in);
        if (is_view(step) && !in->is_data_read)
            out->is_data_read = false;
    }
    struct operand *root = in->root ? in->root : in;
    root->is_quantized |= step_is(step, "DequantizeLinear");
    store_codes(step, in, root);
    return true;
}

static void add_other(struct step *step, struct operand *out, struct operand *other)
{
    if (other == out->root)
        return;
    for (const struct operand_list *item = out->others; item; item = item->next)
        if (item->operand == other)
            return;
    struct operand_list *added = arena_alloc(&step->infer->arena, sizeof *added);
    *added = (struct operand_list){other, out->others};
    out->others = added;
}

/* Adds a weight, and those concatenated with it before. */
static void add_weights(struct step *step, struct operand *out, struct operand *in)
{
    add_other(step, out, in->root ? in->root : in);
    for (const struct operand_list *item = in->others; item; item = item->next)
        add_other(step, out, item->operand);
}

/* Exporters reorder the gates of a recurrence, or join two kinds of biases, in this way. */
static bool fold_weight_concat(struct step *step)
{
    enum { MAX_PIECES = 16 };
    struct operand *out = step_output(step, 0);
    size_t count = step->node->input_count;
    if (step->row->rule != rule_concat || !is_trained(step_input(step, 0)) || count > MAX_PIECES)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!operand_is_weight(step_input(step, i)) ||
            !onnx_dtype_is_float(step_input(step, i)->dtype))
            return false;
    alias_weight(out, step_input(step, 0));
    for (size_t i = 1; i < count; i++)
        add_weights(step, out, step_input(step, i));
    return true;
}

static bool has_model_output(const struct step *step)
{
    for (size_t i = 0; i < step->node->output_count; i++)
        if (step_output(step, i) && step_output(step, i)->is_output)
            return true;
    return false;
}

static bool fold_weight(struct step *step)
{
    if (!operand_is_weight(step_input(step, 0)) || !step_output(step, 0) || has_model_output(step))
        return false;
    return fold_view(step) || fold_weight_concat(step);
}

/* ---- quantized activations: codes of 8 bits instead of floats ---- */

static bool is_code(int32_t dtype)
{
    return dtype == ONNX_INT8 || dtype == ONNX_UINT8 ||
           (dtype >= ONNX_FLOAT8E4M3FN && dtype <= ONNX_FLOAT8E5M2FNUZ);
}

/* All data inputs have codes, and the operator passes them on. */
static int32_t passed_codes(const struct step *step)
{
    int32_t codes = 0;
    enum graph_op op = step->row->op;
    bool moves =
        op == GRAPH_VIEW || op == GRAPH_REARRANGE || op == GRAPH_MOVE || op == GRAPH_MAX_POOL;
    for (size_t i = 0; moves && i < step->node->input_count; i++) {
        const struct operand *in = step_input(step, i);
        bool is_data = in && (i == 0 || (step->row->rule == rule_concat));
        if (is_data && !in->codes)
            return 0;
        codes = is_data ? in->codes : codes;
    }
    return codes;
}

void fold_mark_codes(struct step *step)
{
    struct operand *out = step_output(step, 0);
    const struct operand *in = step_input(step, 0);
    if (!step->row || !out)
        return;
    out->viewed = step->row->op == GRAPH_VIEW ? step_input(step, 0) : NULL;
    bool makes = step_is(step, "QuantizeLinear") || step_is(step, "DynamicQuantizeLinear") ||
                 str_starts(step->row->name, "QLinear") || step_is(step, "QGemm");
    int32_t codes = 0;
    if (step_is(step, "DequantizeLinear"))
        codes = in ? in->dtype : 0;
    else
        codes = makes ? out->dtype : passed_codes(step);
    bool is_weight = in && in->tensor; /* four bits may be codes of a weight */
    out->codes = is_code(codes) || (is_weight && onnx_dtype_stored_width(codes) > 0 &&
                                    onnx_dtype_stored_width(codes) < 1)
                     ? codes
                     : 0;
    for (size_t i = 1; i < step->node->output_count && step->row->op == GRAPH_REARRANGE; i++)
        if (step_output(step, i))
            step_output(step, i)->codes = out->codes;
}

/* Whether the producer can write codes instead, since nothing else reads the floats; also through views. */
static bool may_narrow(const struct graph *graph, const struct operand *operand)
{
    if (operand->id == GRAPH_NONE || operand->root || operand->is_output || operand->uses != 1)
        return false;
    const struct graph_tensor *tensor = &graph->tensors[operand->id];
    return tensor->role == GRAPH_ACTIVATION && tensor->dtype == GRAPH_FLOAT &&
           tensor->producer != GRAPH_NONE &&
           (!operand->viewed || may_narrow(graph, operand->viewed));
}

static void narrow(struct graph *graph, const struct operand *operand)
{
    for (; operand; operand = operand->viewed)
        graph->tensors[operand->id].dtype = GRAPH_QUANTIZED;
}

/* Kernels quantize their outputs and dequantize their inputs.  Quantizing is a separate kernel only for an input of the
 * model, and for a tensor that is also read as floats. */
static bool fold_quantized(struct step *step)
{
    struct operand *in = step_input(step, 0), *out = step_output(step, 0);
    bool is_quantize = step_is(step, "QuantizeLinear");
    if ((!is_quantize && !step_is(step, "DequantizeLinear")) || !in || !out || !out->codes ||
        in->id == GRAPH_NONE || in->tensor || out->is_output)
        return false;
    if (is_quantize && !in->codes) {
        if (!may_narrow(step->infer->graph, in))
            return false;
        narrow(step->infer->graph, in);
    }
    out->id = in->id;
    out->root = in->root;
    return true;
}

/* ---- other nodes that do not depend on the model's inputs ---- */

static bool is_random(const struct step *step)
{
    static const char *const NAMES[] = {
        "Bernoulli",         "Multinomial", "RandomNormal", "RandomUniform", "RandomNormalLike",
        "RandomUniformLike", NULL};
    return is_one_of(step, NAMES);
}

/* Bytes in a matrix are quantized weights; other integers are indices and shapes. */
static bool may_be_trained(const struct operand *operand)
{
    if (!operand_is_weight(operand))
        return false;
    const struct proto_tensor *tensor = operand->tensor;
    bool is_byte = tensor->dtype == ONNX_INT8 || tensor->dtype == ONNX_UINT8;
    return is_trained(operand) || (is_byte && tensor->rank > 1);
}

static void alias_weights(struct step *step, struct operand *out, struct operand *first)
{
    alias_weight(out, first);
    for (size_t i = 0; i < step->node->input_count; i++) {
        struct operand *in = step_input(step, i);
        if (may_be_trained(in))
            add_weights(step, out, in);
    }
}

static bool fold_invariant(struct step *step)
{
    if (step->node->input_count == 0 || is_random(step) || has_model_output(step))
        return false;
    /* CastLike uses only the dtype of its second input. */
    size_t count = step_is(step, "CastLike") ? 1 : step->node->input_count;
    for (size_t i = 0; i < count; i++) {
        const struct operand *in = step_input(step, i);
        if (in && !in->tensor && !in->data && !in->is_invariant)
            return false;
    }
    struct operand *weight = NULL;
    for (size_t i = 0; i < step->node->input_count && !weight; i++)
        weight = may_be_trained(step_input(step, i)) ? step_input(step, i) : NULL;
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct operand *out = step_output(step, i);
        if (out && weight)
            alias_weights(step, out, weight);
        else if (out)
            out->is_invariant = true;
    }
    return true;
}

bool fold_node(struct step *step)
{
    if (!step->row)
        return false;
    const struct operand *out = step_output(step, 0);
    if (step->row->rule == rule_constant && out && out->tensor && !out->is_output)
        return true; /* the tensor of a Constant node is a tensor of the model */
    /* Integers are folded first: they may be a shape. */
    return (is_trained(step_input(step, 0)) && fold_weight(step)) || fold_outputs(step) ||
           fold_weight(step) || fold_quantized(step) || fold_invariant(step);
}
