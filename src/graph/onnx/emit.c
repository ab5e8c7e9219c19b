/* Emits tensors and nodes of the graph for the nodes that remain after folding.  The role of a tensor (trained, buffer,
 * constant) is not stored in the file: it is inferred from its use and its name. */
#include <string.h>

#include "core/text.h"
#include "graph/count.h"
#include "graph/onnx/infer.h"
#include "graph/onnx/operators.h"

/* ---- names ---- */

struct name_text {
    char text[512];
};

static struct name_text text_of(struct slice slice)
{
    struct name_text name;
    size_t length = slice.length < sizeof name.text - 1 ? slice.length : sizeof name.text - 1;
    if (length)
        memcpy(name.text, slice.start, length);
    name.text[length] = '\0';
    return name;
}

/* Prefixed by the enclosing function calls. */
static struct name_text full_name(const struct step *step)
{
    const struct infer *infer = step->infer;
    struct name_text own = text_of(onnx_node_name(step->infer->file, step->node)), full = {{0}};
    chars_format(full.text, "%.*s%s", (int)infer->scope_length, infer->scope, own.text);
    return full;
}

/* The number after one of these words, separated by dots or slashes: "encoder.layer.3.output". */
static int32_t layer_in(struct slice name)
{
    static const char *const WORDS[] = {"layers", "layer", "blocks", "block", "h", "resblocks"};
    size_t begin = 0;
    bool is_after = false;
    for (size_t i = 0; i <= name.length; i++) {
        if (i < name.length && name.start[i] != '.' && name.start[i] != '/')
            continue;
        struct slice part = {name.start + begin, i - begin};
        int32_t number = 0;
        size_t digits = 0;
        while (digits < part.length && digits < 5 && part.start[digits] >= '0' &&
               part.start[digits] <= '9')
            number = 10 * number + (part.start[digits++] - '0');
        if (is_after && digits > 0 && digits == part.length)
            return number;
        is_after = false;
        for (size_t k = 0; k < COUNT_OF(WORDS); k++)
            is_after |= slice_is(part, WORDS[k]);
        begin = i + 1;
    }
    return GRAPH_NONE;
}

static int32_t layer_of(const struct step *step)
{
    int32_t layer = layer_in(step->node->name);
    for (size_t i = 0; i < step->node->input_count && i < 4 && layer == GRAPH_NONE; i++) {
        const struct operand *operand = step_input(step, i);
        if (operand && operand->tensor && !operand->is_constant_node)
            layer = layer_in(operand->tensor->name);
    }
    if (layer == GRAPH_NONE)
        layer = layer_in((struct slice){step->infer->scope, step->infer->scope_length});
    return layer;
}

/* ---- tensors ---- */

/* Frameworks name parameters by their path in the model ("head.bias"), constants of exporters have no dot. */
static bool has_dot(struct slice name)
{
    return name.length && memchr(name.start, '.', name.length);
}

/* "unsqueeze_14": the output of a node folded by the exporter. */
static bool is_numbered(struct slice name)
{
    size_t at = name.length;
    while (at > 0 && name.start[at - 1] >= '0' && name.start[at - 1] <= '9')
        at--;
    return at > 1 && at < name.length && name.start[at - 1] == '_' && !has_dot(name);
}

static bool ends_with(struct slice name, const char *end)
{
    size_t length = strlen(end);
    return name.length >= length && memcmp(name.start + name.length - length, end, length) == 0;
}

/* Tables of positions and masks that are added to or multiplied with every head.  Trained ones (the position biases of
 * Swin) cannot be distinguished, and are comparatively small. */
static bool is_computed_table(const struct step *step, const struct proto_tensor *tensor)
{
    int wide = 0; /* per-channel weights have one such dimension */
    for (int i = 0; i < tensor->rank; i++)
        wide += tensor->dims[i] > 1;
    return ends_with(tensor->name, "inv_freq") ||
           (tensor->rank >= 3 && wide > 1 && is_numbered(tensor->name) &&
            graph_op_kind(step->emitted.op) == GRAPH_KIND_ELEMENTWISE);
}

/* Exporters write a group norm as an instance norm, which requires weights: ones and zeros. */
static bool is_filler(const struct step *step, struct operand *operand)
{
    bool may_be = step->emitted.op == GRAPH_GROUP_NORM &&
                  (operand->is_constant_node || is_numbered(operand->tensor->name));
    const double *data = may_be ? operand_data(step->infer, operand) : NULL;
    if (!data)
        return false;
    for (int64_t i = 1; i < operand->tensor->elements; i++)
        if (data[i] != data[0])
            return false;
    return true;
}

static enum graph_role role_of(const struct step *step, size_t index, struct operand *operand)
{
    const struct onnx_operator *row = step->row;
    const struct proto_tensor *tensor = operand->tensor;
    unsigned bit = index < 16 ? 1u << index : 0;
    enum graph_kind kind = graph_op_kind(step->emitted.op);
    bool takes_weights = kind == GRAPH_KIND_PRODUCT || kind == GRAPH_KIND_NORM ||
                         kind == GRAPH_KIND_RECURRENT || step_is(step, "PRelu");
    bool is_scalar = tensor && tensor->elements <= 1 && !takes_weights;
    if (!tensor || tensor->rank == 0 ||
        (is_scalar && (operand->is_constant_node || !has_dot(tensor->name))))
        return GRAPH_CONSTANT;
    if (row && (row->buffers & bit))
        return GRAPH_BUFFER;
    bool is_quantized = operand->is_quantized || (row && (row->quantized & bit));
    if (!onnx_dtype_is_float(tensor->dtype))
        return is_quantized && onnx_dtype_stored_width(tensor->dtype) > 0 ? GRAPH_PARAMETER
                                                                          : GRAPH_CONSTANT;
    /* Constants that are subtracted, compared or divided by. */
    bool is_plain_constant =
        row && (row->op == GRAPH_SUB || row->op == GRAPH_DIV || row->op == GRAPH_POW ||
                row->op == GRAPH_WHERE || row->op == GRAPH_MOVE || row->op == GRAPH_REARRANGE);
    if (operand->is_constant_node && is_plain_constant && step->emitted.op != GRAPH_EMBEDDING)
        return GRAPH_CONSTANT;
    return is_computed_table(step, tensor) || is_filler(step, operand) ? GRAPH_BUFFER
                                                                       : GRAPH_PARAMETER;
}

static enum precision float_precision(int32_t dtype)
{
    switch (dtype) {
    case ONNX_DOUBLE:
        return PRECISION_FP64;
    case ONNX_FLOAT16:
        return PRECISION_FP16;
    case ONNX_BFLOAT16:
        return PRECISION_BF16;
    default:
        return PRECISION_FP32;
    }
}

static void add_tensor(struct infer *infer, struct operand *operand, enum graph_role role,
                       struct slice name)
{
    struct name_text text = text_of(name);
    bool is_quantized = role == GRAPH_ACTIVATION && operand->codes;
    struct graph_tensor tensor = {.name = text.text,
                                  .role = role,
                                  .dtype = is_quantized ? GRAPH_QUANTIZED
                                                        : onnx_dtype_in_graph(operand->dtype),
                                  .rank = operand->shape.rank};
    memcpy(tensor.dims, operand->shape.dims, sizeof tensor.dims);
    if (tensor.dtype == GRAPH_FLOAT)
        infer->float_elements[float_precision(operand->dtype)] += graph_elements(&tensor);
    if (role == GRAPH_PARAMETER)
        tensor.stored_bytes = operand->stored_bytes > 0 ? operand->stored_bytes
                                                        : onnx_dtype_stored_width(operand->dtype) *
                                                              graph_elements(&tensor);
    operand->id = graph_add_tensor(infer->graph, &tensor);
}

static struct slice name_of(const struct infer *infer, const struct operand *operand)
{
    return infer->file->values[operand - infer->operands].name;
}

void emit_input(struct infer *infer, int32_t value)
{
    add_tensor(infer, &infer->operands[value], GRAPH_INPUT, infer->file->values[value].name);
}

static tensor_id root_id(struct step *step, size_t index, struct operand *root)
{
    struct graph *graph = step->infer->graph;
    if (root->id == GRAPH_NONE && (root->tensor || root->data || root->is_invariant))
        add_tensor(step->infer, root, role_of(step, index, root), name_of(step->infer, root));
    else if (root->id != GRAPH_NONE && root->tensor &&
             graph->tensors[root->id].role == GRAPH_CONSTANT)
        graph->tensors[root->id].role = role_of(step, index, root);
    return root->id;
}

static tensor_id input_id(struct step *step, size_t index)
{
    struct operand *operand = step_input(step, index);
    return operand ? root_id(step, index, operand->root ? operand->root : operand) : GRAPH_NONE;
}

/* ---- compute precision of products ---- */

static int32_t codes_of(const struct operand *operand)
{
    bool is_byte = operand->dtype == ONNX_INT8 || operand->dtype == ONNX_UINT8;
    return operand->codes ? operand->codes : is_byte ? operand->dtype : 0;
}

/* A product is in 8 bits if both operands have codes, else in the precision of its floats: weights are widened. */
static void set_precision(const struct step *step, struct graph_node *node)
{
    enum graph_kind kind = graph_op_kind(node->op);
    bool has_right = step_order_count(step) > 1 && !step->prologue.inputs;
    size_t right = has_right ? step_order_at(step, 1) : 1;
    const struct operand *a = step_input(step, 0), *b = step_input(step, right);
    if ((kind != GRAPH_KIND_PRODUCT && kind != GRAPH_KIND_RECURRENT) || !a || !b)
        return;
    bool is_dynamic = step_is(step, "DynamicQuantizeMatMul");
    bool has_codes = codes_of(b) && (codes_of(a) || is_dynamic);
    bool is_fp8 = has_codes && onnx_dtype_is_float(codes_of(b));
    node->has_precision = true;
    if (has_codes)
        node->precision = is_fp8 ? PRECISION_FP8 : PRECISION_INT8;
    else
        node->precision = float_precision(codes_of(a) ? b->dtype : a->dtype);
}

struct graph_precision emit_precision(const struct infer *infer)
{
    struct graph_precision found = {.floats = PRECISION_FP32};
    double macs[PRECISION_COUNT] = {0}, all = 0;
    for (size_t i = 0; i < infer->graph->node_count; i++) {
        const struct graph_node *node = &infer->graph->nodes[i];
        double own = node->has_precision ? graph_node_cost(infer->graph, node).macs : 0;
        macs[node->precision] += own;
        all += own;
    }
    for (enum precision p = 0; p < PRECISION_COUNT; p++) {
        found.is_known |= infer->float_elements[p] > 0 || macs[p] > 0;
        if (infer->float_elements[p] > infer->float_elements[found.floats])
            found.floats = p;
    }
    found.products = found.floats;
    for (enum precision p = 0; p < PRECISION_COUNT; p++)
        if (macs[p] > macs[found.products])
            found.products = p;
    found.share = all > 0 ? macs[found.products] / all : 1;
    return found;
}

/* ---- nodes ---- */

struct links {
    tensor_id *ids;
    size_t count;
};

static void link_input(struct step *step, size_t index, struct links *to)
{
    to->ids[to->count++] = input_id(step, index);
}

/* A node with one output, which the emitted node reads. */
static tensor_id add_prologue(struct step *step, const struct graph_node *like, enum graph_op op,
                              const char *inputs, const struct shape *shape)
{
    tensor_id ids[8];
    struct links links = {ids, 0};
    for (size_t i = 0; inputs[i]; i++) {
        size_t input = (size_t)(inputs[i] - '0');
        if (i < 2 || step_input(step, input))
            link_input(step, input, &links);
    }
    struct graph_tensor tensor = {.name = like->name, .rank = shape->rank};
    memcpy(tensor.dims, shape->dims, sizeof tensor.dims);
    tensor_id out = graph_add_tensor(step->infer->graph, &tensor);
    struct graph_node node = {.op = op,
                              .name = like->name,
                              .label = like->label,
                              .layer = like->layer,
                              .component = like->component};
    graph_add_node(step->infer->graph, &node, links.ids, links.count, &out, 1);
    return out;
}

/* A product is counted by the last dimension of its first input: if another one is contracted, it is reshaped. */
static tensor_id view_inner(struct step *step, const struct graph_node *node)
{
    const struct operand *first = step_input(step, 0);
    int64_t elements = first && first->has_shape ? shape_elements(&first->shape) : 0;
    bool is_product = step->emitted.op == GRAPH_MATMUL || step->emitted.op == GRAPH_LINEAR;
    if (!is_product || elements == 0 || first->shape.rank == 0)
        return GRAPH_NONE;
    int64_t last = first->shape.dims[first->shape.rank - 1];
    int64_t inner = step->inner > 0 ? step->inner : last;
    if (inner == last && !first->root)
        return GRAPH_NONE;
    struct shape rows = {.rank = 2, .dims = {elements / inner, inner}};
    return add_prologue(step, node, GRAPH_VIEW, "0", &rows);
}

/* The other parts of a concatenated weight are read as well. */
static void link_others(struct step *step, struct links *to, size_t capacity)
{
    for (size_t i = 0; i < step->node->input_count; i++) {
        const struct operand *operand = step_input(step, i);
        const struct operand_list *item = operand ? operand->others : NULL;
        for (; item && to->count < capacity; item = item->next)
            to->ids[to->count++] = root_id(step, i, item->operand);
    }
}

/* A convolution is counted by the shape of its weight: a sliced or concatenated one needs its own. */
static void view_conv_weight(struct step *step, const struct graph_node *node, struct links *to)
{
    const struct operand *operand = step_input(step, 1);
    bool is_conv = step->emitted.op == GRAPH_CONV || step->emitted.op == GRAPH_CONV_TRANSPOSE;
    if (!is_conv || step->order || !operand || !operand->root || to->count < 2 ||
        memcmp(&operand->shape.dims, &operand->root->shape.dims,
               operand->shape.rank * sizeof operand->shape.dims[0]) == 0)
        return;
    to->ids[1] = add_prologue(step, node, GRAPH_VIEW, "1", &operand->shape);
}

/* The share of a sliced weight that is read. */
static double share_of(const struct step *step)
{
    for (size_t i = 0; i < step->node->input_count && i < 16; i++) {
        const struct operand *operand = step_input(step, i);
        if (!operand || !operand->root || operand->others)
            continue;
        double part = (double)shape_elements(&operand->shape);
        double whole = (double)shape_elements(&operand->root->shape);
        if (part > 0 && part < whole)
            return part / whole;
    }
    return 1;
}

static void link_inputs(struct step *step, tensor_id first, struct links *to)
{
    unsigned shape_inputs = step->row ? step->row->shape_inputs : 0;
    bool is_replaced = first != GRAPH_NONE;
    if (is_replaced)
        to->ids[to->count++] = first;
    if (step->order) {
        for (size_t i = is_replaced && !step->prologue.inputs; i < step_order_count(step); i++)
            if (step_input(step, step_order_at(step, i)))
                link_input(step, step_order_at(step, i), to);
        return;
    }
    for (size_t i = is_replaced; i < step->node->input_count; i++)
        if (i >= 16 || !(shape_inputs & 1u << i))
            link_input(step, i, to);
}

static void link_outputs(struct step *step, struct links *to)
{
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct operand *operand = step_output(step, i);
        if (operand)
            add_tensor(step->infer, operand, GRAPH_ACTIVATION, name_of(step->infer, operand));
        to->ids[to->count++] = operand ? operand->id : GRAPH_NONE;
    }
}

static void emit_from(struct step *step, enum graph_op op, const tensor_id *ids, size_t count,
                      struct operand *out)
{
    struct name_text name = full_name(step), label = text_of(step->node->op);
    struct graph_node node = {.op = op,
                              .name = name.text,
                              .label = label.text,
                              .layer = GRAPH_NONE,
                              .component = DECODER_COMPONENT_COUNT};
    add_tensor(step->infer, out, GRAPH_ACTIVATION, name_of(step->infer, out));
    graph_add_node(step->infer->graph, &node, ids, count, &out->id, 1);
}

void emit_stack(struct step *step, const tensor_id *parts, size_t count, struct operand *out)
{
    emit_from(step, GRAPH_MOVE, parts, count, out);
}

void emit_view(struct step *step, tensor_id of, struct operand *out)
{
    emit_from(step, GRAPH_VIEW, &of, 1, out);
}

void emit_node(struct step *step)
{
    struct name_text name = full_name(step), label = text_of(step->node->op);
    struct graph_node node = step->emitted;
    node.name = name.text;
    node.label = label.text;
    node.layer = layer_of(step);
    node.component = DECODER_COMPONENT_COUNT;
    node.weight_fraction = share_of(step);
    set_precision(step, &node);
    enum { MAX_OTHERS = 32 };
    size_t capacity = step->node->input_count + step->node->output_count + 2 + MAX_OTHERS;
    struct links in = {arena_alloc(&step->infer->scratch, capacity * sizeof(tensor_id)), 0};
    struct links out = {arena_alloc(&step->infer->scratch, capacity * sizeof(tensor_id)), 0};
    tensor_id first = step->prologue.inputs
                          ? add_prologue(step, &node, step->prologue.op, step->prologue.inputs,
                                         &step->prologue.shape)
                          : view_inner(step, &node);
    link_inputs(step, first, &in);
    view_conv_weight(step, &node, &in);
    link_others(step, &in, capacity);
    link_outputs(step, &out);
    graph_add_node(step->infer->graph, &node, in.ids, in.count, out.ids, out.count);
}
