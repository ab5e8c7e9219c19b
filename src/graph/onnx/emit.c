#include "graph/onnx/emit.h"

#include <string.h>

#include "core/text.h"

/* ---- names ---- */

struct name_text {
    char text[512];
};

static struct name_text text_of(struct slice slice)
{
    struct name_text name;
    size_t length = slice.length < sizeof name.text - 1 ? slice.length : sizeof name.text - 1;
    if (length)
        memcpy(name.text, slice.bytes, length);
    name.text[length] = '\0';
    return name;
}

static struct slice node_name(const struct step *step)
{
    const struct onnx_file *file = step->work->file;
    if (step->node->name.length)
        return step->node->name;
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        int32_t value = file->links[step->node->first_output + i];
        if (value != ONNX_NONE)
            return file->values[value].name;
    }
    return step->node->op;
}

/* With the calls of functions around it before. */
static struct name_text whole_name(const struct step *step)
{
    const struct work *work = step->work;
    struct name_text own = text_of(node_name(step)), whole = {{0}};
    str_format(whole.text, sizeof whole.text, "%.*s%s", (int)work->inside_length, work->inside,
               own.text);
    return whole;
}

static bool is_break(char byte)
{
    return byte == '.' || byte == '/';
}

/* The number after one of these words, between dots or slashes, as exporters write layers. */
static int32_t layer_in(struct slice name)
{
    static const char *const WORDS[] = {"layers", "layer", "blocks", "block", "h", "resblocks"};
    size_t begin = 0;
    bool is_after = false;
    for (size_t i = 0; i <= name.length; i++) {
        if (i < name.length && !is_break(name.bytes[i]))
            continue;
        struct slice part = {name.bytes + begin, i - begin};
        int32_t number = 0;
        size_t digits = 0;
        while (digits < part.length && digits < 5 && part.bytes[digits] >= '0' &&
               part.bytes[digits] <= '9')
            number = 10 * number + (part.bytes[digits++] - '0');
        if (is_after && digits > 0 && digits == part.length)
            return number;
        is_after = false;
        for (size_t k = 0; k < sizeof WORDS / sizeof WORDS[0]; k++)
            is_after |= slice_is(part, WORDS[k]);
        begin = i + 1;
    }
    return GRAPH_NONE;
}

static int32_t layer_of(const struct step *step)
{
    int32_t layer = layer_in(step->node->name);
    for (size_t i = 0; i < step_input_count(step) && i < 4 && layer == GRAPH_NONE; i++) {
        const struct known *known = step_input(step, i);
        if (known && known->tensor && !known->is_constant)
            layer = layer_in(known->tensor->name);
    }
    if (layer == GRAPH_NONE)
        layer = layer_in((struct slice){step->work->inside, step->work->inside_length});
    return layer;
}

/* ---- tensors ---- */

static enum graph_numbers numbers_of(int32_t type)
{
    if (type == 0 || type_is_real(type))
        return GRAPH_NUMBERS;
    switch (type) {
    case ONNX_INT64:
    case ONNX_UINT64:
        return GRAPH_INTEGERS_64;
    case ONNX_BOOL:
    case ONNX_INT8:
    case ONNX_UINT8:
    case ONNX_INT4:
    case ONNX_UINT4:
        return GRAPH_BYTES;
    default:
        return GRAPH_INTEGERS_32;
    }
}

/* Bytes of one number whose own format decides, 0 where the precision that is asked for does. */
static double stored_width(int32_t type)
{
    switch (type) {
    case ONNX_INT8:
    case ONNX_UINT8:
        return 1;
    case ONNX_INT4:
    case ONNX_UINT4:
    case ONNX_FLOAT4:
        return 0.5;
    case ONNX_INT32:
        return 4;
    default:
        return type >= ONNX_FLOAT8_FIRST && type <= ONNX_FLOAT8_LAST ? 1 : 0;
    }
}

/* Frameworks name what is trained by where it stands ("head.bias"), exporters what they made up do not. */
static bool has_dot(struct slice name)
{
    return name.length && memchr(name.bytes, '.', name.length);
}

/* "unsqueeze_14": the output of a node, which the exporter computed and wrote down in its place. */
static bool is_numbered(struct slice name)
{
    size_t at = name.length;
    while (at > 0 && name.bytes[at - 1] >= '0' && name.bytes[at - 1] <= '9')
        at--;
    return at > 1 && at < name.length && name.bytes[at - 1] == '_' && !has_dot(name);
}

static bool ends_with(struct slice name, const char *end)
{
    size_t length = strlen(end);
    return name.length >= length && memcmp(name.bytes + name.length - length, end, length) == 0;
}

/* Tables of positions and masks, as they are added or multiplied with every head.  What was trained in them
 * (Swin's biases) cannot be told, and is far less than the rest. */
static bool is_computed_table(const struct step *step, const struct onnx_tensor *tensor)
{
    int wide = 0; /* weights of channels are wide in one dimension alone */
    for (int i = 0; i < tensor->rank; i++)
        wide += tensor->dims[i] > 1;
    return ends_with(tensor->name, "inv_freq") ||
           (tensor->rank >= 3 && wide > 1 && is_numbered(tensor->name) &&
            graph_op_kind(step->made.op) == GRAPH_KIND_ELEMENTWISE);
}

/* Exporters write a norm of groups as one of single channels, which needs weights: ones and zeros. */
static bool is_filled_in(const struct step *step, struct known *known)
{
    bool may_be = step->made.op == GRAPH_GROUP_NORM &&
                  (known->is_constant || is_numbered(known->tensor->name));
    const double *numbers = may_be ? known_numbers(step->work, known) : NULL;
    if (!numbers)
        return false;
    for (int64_t i = 1; i < known->tensor->elements; i++)
        if (numbers[i] != numbers[0])
            return false;
    return true;
}

static enum graph_role role_of(const struct step *step, size_t index, struct known *known)
{
    const struct operator_row *row = step->row;
    const struct onnx_tensor *tensor = known->tensor;
    unsigned bit = index < 16 ? 1u << index : 0;
    enum graph_kind kind = graph_op_kind(step->made.op);
    bool takes_weights = kind == GRAPH_KIND_PRODUCT || kind == GRAPH_KIND_NORM ||
                         kind == GRAPH_KIND_RECURRENT || (row && strcmp(row->name, "PRelu") == 0);
    bool is_lone = tensor && tensor->elements <= 1 && !takes_weights;
    if (!tensor || tensor->rank == 0 || (is_lone && (known->is_constant || !has_dot(tensor->name))))
        return GRAPH_CONSTANT;
    if (row && (row->buffers & bit))
        return GRAPH_BUFFER;
    bool is_quantised = known->is_weight || (row && (row->quantised & bit));
    if (!type_is_real(tensor->type))
        return is_quantised && stored_width(tensor->type) > 0 ? GRAPH_PARAMETER : GRAPH_CONSTANT;
    /* Numbers written into the graph that are taken away, compared or divided by. */
    bool is_plain =
        row && (row->op == GRAPH_SUB || row->op == GRAPH_DIV || row->op == GRAPH_POW ||
                row->op == GRAPH_WHERE || row->op == GRAPH_MOVE || row->op == GRAPH_REARRANGE);
    if (known->is_constant && is_plain && step->made.op != GRAPH_EMBEDDING)
        return GRAPH_CONSTANT;
    return is_computed_table(step, tensor) || is_filled_in(step, known) ? GRAPH_BUFFER
                                                                        : GRAPH_PARAMETER;
}

static enum err add_tensor(struct work *work, struct known *known, enum graph_role role,
                           struct slice name)
{
    struct name_text text = text_of(name);
    struct graph_tensor tensor = {.name = text.text,
                                  .role = role,
                                  .numbers = numbers_of(known->type),
                                  .rank = known->shape.rank};
    memcpy(tensor.dims, known->shape.dims, sizeof tensor.dims);
    if (role == GRAPH_PARAMETER)
        tensor.stored_bytes = known->stored_bytes > 0
                                  ? known->stored_bytes
                                  : stored_width(known->type) * graph_elements(&tensor);
    return graph_add_tensor(work->graph, &tensor, &known->id, work->why);
}

static struct slice name_of(const struct work *work, const struct known *known)
{
    return work->file->values[known - work->known].name;
}

enum err emit_input(struct work *work, int32_t value)
{
    return add_tensor(work, &work->known[value], GRAPH_INPUT, work->file->values[value].name);
}

static enum err root_id(struct step *step, size_t index, struct known *root, tensor_id *out)
{
    struct graph *graph = step->work->graph;
    enum err err = ERR_OK;
    if (root->id == GRAPH_NONE && (root->tensor || root->numbers || root->is_fixed))
        err = add_tensor(step->work, root, role_of(step, index, root), name_of(step->work, root));
    else if (root->id != GRAPH_NONE && root->tensor &&
             graph->tensors[root->id].role == GRAPH_CONSTANT)
        graph->tensors[root->id].role = role_of(step, index, root);
    *out = root->id;
    return err;
}

static enum err input_id(struct step *step, size_t index, tensor_id *out)
{
    struct known *known = step_input(step, index);
    *out = GRAPH_NONE;
    return known ? root_id(step, index, known->root ? known->root : known, out) : ERR_OK;
}

/* ---- nodes ---- */

struct links {
    tensor_id *ids;
    size_t count;
};

static enum err link_input(struct step *step, size_t index, struct links *to)
{
    return input_id(step, index, &to->ids[to->count++]);
}

/* One that gives a single tensor between the two. */
static enum err add_before(struct step *step, const struct graph_node *like, enum graph_op op,
                           const uint8_t *inputs, size_t count, const struct shape *shape,
                           tensor_id *out)
{
    tensor_id ids[8];
    struct links links = {ids, 0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < count && !err; i++)
        if (i < 2 || step_input(step, inputs[i]))
            err = link_input(step, inputs[i], &links);
    struct graph_tensor tensor = {.name = like->name, .rank = shape->rank};
    memcpy(tensor.dims, shape->dims, sizeof tensor.dims);
    if (!err)
        err = graph_add_tensor(step->work->graph, &tensor, out, step->work->why);
    struct graph_node node = {.op = op,
                              .name = like->name,
                              .label = like->label,
                              .layer = like->layer,
                              .component = like->component};
    node_id id;
    return err ? err
               : graph_add_node(step->work->graph, &node, links.ids, links.count, out, 1, &id,
                                step->work->why);
}

/* A product is counted by the last dimension of its first input: where that is not what is summed over, it
 * is made so. */
static enum err view_summed(struct step *step, const struct graph_node *node, tensor_id *out)
{
    static const uint8_t FIRST[] = {0};
    const struct known *first = step_input(step, 0);
    int64_t elements = first && first->has_shape ? shape_elements(&first->shape) : 0;
    bool is_product = step->made.op == GRAPH_MATMUL || step->made.op == GRAPH_LINEAR;
    *out = GRAPH_NONE;
    if (!is_product || elements == 0 || first->shape.rank == 0)
        return ERR_OK;
    int64_t last = first->shape.dims[first->shape.rank - 1];
    int64_t summed = step->summed > 0 ? step->summed : last;
    if (summed == last && !first->root)
        return ERR_OK;
    struct shape rows = {.rank = 2, .dims = {elements / summed, summed}};
    return add_before(step, node, GRAPH_VIEW, FIRST, 1, &rows, out);
}

/* Of a weight that was put together the other pieces are read as well. */
static enum err link_others(struct step *step, struct links *to, size_t room)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < step_input_count(step); i++) {
        const struct known *known = step_input(step, i);
        const struct known_list *item = known ? known->others : NULL;
        for (; item && to->count < room && !err; item = item->next)
            err = root_id(step, i, item->known, &to->ids[to->count++]);
    }
    return err;
}

/* Filters are counted by their shape: one that was cut or put together needs its own. */
static enum err view_filters(struct step *step, const struct graph_node *node, struct links *to)
{
    static const uint8_t FILTERS[] = {1};
    const struct known *known = step_input(step, 1);
    bool is_conv = step->made.op == GRAPH_CONV || step->made.op == GRAPH_CONV_TRANSPOSE;
    if (!is_conv || step->order || !known || !known->root || to->count < 2 ||
        memcmp(&known->shape.dims, &known->root->shape.dims,
               known->shape.rank * sizeof known->shape.dims[0]) == 0)
        return ERR_OK;
    return add_before(step, node, GRAPH_VIEW, FILTERS, 1, &known->shape, &to->ids[1]);
}

/* What a node reads of a weight that was cut. */
static double share_of(const struct step *step)
{
    for (size_t i = 0; i < step_input_count(step) && i < 16; i++) {
        const struct known *known = step_input(step, i);
        if (!known || !known->root || known->others)
            continue;
        double part = (double)shape_elements(&known->shape);
        double whole = (double)shape_elements(&known->root->shape);
        if (part > 0 && part < whole)
            return part / whole;
    }
    return 1;
}

static enum err link_inputs(struct step *step, tensor_id first, struct links *to)
{
    unsigned settings = step->row ? step->row->settings : 0;
    bool is_replaced = first != GRAPH_NONE;
    enum err err = ERR_OK;
    if (is_replaced)
        to->ids[to->count++] = first;
    if (step->order) {
        size_t skipped = is_replaced && !step->before.input_count ? 1 : 0;
        for (size_t i = skipped; i < step->order_count && !err; i++)
            if (step_input(step, step->order[i]))
                err = link_input(step, step->order[i], to);
        return err;
    }
    for (size_t i = is_replaced; i < step_input_count(step) && !err; i++)
        if (i >= 16 || !(settings & 1u << i))
            err = link_input(step, i, to);
    return err;
}

static enum err link_outputs(struct step *step, struct links *to)
{
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct known *known = step_output(step, i);
        enum err err =
            known ? add_tensor(step->work, known, GRAPH_ACTIVATION, name_of(step->work, known))
                  : ERR_OK;
        if (err)
            return err;
        to->ids[to->count++] = known ? known->id : GRAPH_NONE;
    }
    return ERR_OK;
}

enum err emit_node(struct step *step)
{
    struct name_text name = whole_name(step), label = text_of(step->node->op);
    struct graph_node node = step->made;
    node.name = name.text;
    node.label = label.text;
    node.layer = layer_of(step);
    node.component = DECODER_COMPONENT_COUNT;
    node.weight_share = share_of(step);
    enum { MOST_OTHERS = 32 };
    size_t most = step_input_count(step) + step->node->output_count + 2 + MOST_OTHERS;
    struct links in = {arena_take(&step->work->passing, most * sizeof(tensor_id)), 0};
    struct links out = {arena_take(&step->work->passing, most * sizeof(tensor_id)), 0};
    if (!in.ids || !out.ids)
        return work_no_memory(step->work);
    tensor_id first = GRAPH_NONE;
    enum err err = step->before.input_count
                       ? add_before(step, &node, step->before.op, step->before.inputs,
                                    step->before.input_count, &step->before.shape, &first)
                       : view_summed(step, &node, &first);
    if (!err)
        err = link_inputs(step, first, &in);
    if (!err)
        err = view_filters(step, &node, &in);
    if (!err)
        err = link_others(step, &in, most);
    if (!err)
        err = link_outputs(step, &out);
    node_id id;
    return err ? err
               : graph_add_node(step->work->graph, &node, in.ids, in.count, out.ids, out.count, &id,
                                step->work->why);
}
