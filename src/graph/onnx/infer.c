/* The state of an inference: operands, and a node with its inputs, outputs and attributes. */
#include "graph/onnx/infer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/model_files.h"
#include "graph/onnx/operators.h"

static void set_tensor(struct operand *operand, const struct proto_tensor *tensor)
{
    operand->has_shape = true;
    operand->dtype = tensor->dtype;
    operand->shape.rank = tensor->rank;
    memcpy(operand->shape.dims, tensor->dims, sizeof tensor->dims);
    operand->tensor = tensor;
    operand->is_defined = true;
}

void infer_init(struct infer *infer, const struct onnx_file *file, struct graph *graph,
                struct error *why)
{
    *infer = (struct infer){.file = file, .graph = graph, .why = why};
    infer->operands = xcalloc(file->value_count + 1, sizeof *infer->operands);
    infer->is_live = xcalloc(file->node_count + 1, sizeof *infer->is_live);
    for (size_t i = 0; i < file->value_count; i++) {
        infer->operands[i].id = GRAPH_NONE;
        if (file->values[i].tensor != ONNX_NONE)
            set_tensor(&infer->operands[i], &file->tensors[file->values[i].tensor]);
    }
}

void infer_release(struct infer *infer)
{
    free(infer->operands);
    free(infer->is_live);
    free(infer->bindings);
    free(infer->is_given_used);
    arena_release(&infer->arena);
    arena_release(&infer->scratch);
    *infer = (struct infer){0};
}

double *infer_alloc_data(struct infer *infer, int64_t count)
{
    if (count < 0 || count > MAX_FOLDED || infer->data_count + (size_t)count > MAX_FOLDED_TOTAL)
        return NULL;
    infer->data_count += (size_t)count;
    return arena_alloc(&infer->arena, ((size_t)count + 1) * sizeof(double));
}

/* ---- shapes and operands ---- */

int64_t shape_elements(const struct shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool shape_broadcast(struct shape *shape, const struct shape *other)
{
    struct shape joined = {.rank = shape->rank > other->rank ? shape->rank : other->rank};
    for (int i = 1; i <= joined.rank; i++) {
        int64_t a = i <= shape->rank ? shape->dims[shape->rank - i] : 1;
        int64_t b = i <= other->rank ? other->dims[other->rank - i] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        joined.dims[joined.rank - i] = a == 1 ? b : a;
    }
    *shape = joined;
    return true;
}

bool operand_is_weight(const struct operand *operand)
{
    return operand && operand->tensor && operand->tensor->elements > 1;
}

void operand_alias(struct operand *to, const struct operand *from)
{
    bool is_output = to->is_output;
    uint32_t uses = to->uses;
    struct operand *root = from->root;
    *to = *from;
    to->is_output = is_output;
    to->uses = uses;
    to->root = root ? root : from->tensor ? (struct operand *)from : NULL;
    to->viewed = NULL;
    to->is_defined = true;
}

const double *operand_data(struct infer *infer, struct operand *operand)
{
    if (operand->data || !operand->tensor || operand->is_data_read)
        return operand->data;
    operand->is_data_read = true;
    int64_t count = operand->tensor->elements;
    double *data = count <= MAX_FOLDED ? infer_alloc_data(infer, count) : NULL;
    if (data && onnx_tensor_data(operand->tensor, data, (size_t)count))
        operand->data = data;
    return operand->data;
}

int64_t clamp_to_int(double number)
{
    const double limit = 4611686018427387904.0; /* 2^62: sums of two still fit */
    if (isnan(number))
        return 0;
    if (number > limit)
        return INT64_C(1) << 62;
    return number < -limit ? -(INT64_C(1) << 62) : (int64_t)number;
}

bool resolve_axis(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* ---- one node ---- */

enum err step_fail(struct step *step, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct onnx_file *file = step->infer->file;
    step->err = err_set(step->infer->why, ERR_BAD_VALUE, "%.100s: node '%s' (%s): %s", file->path,
                        model_label(onnx_node_name(file, step->node)).text,
                        model_label(step->node->op).text, text);
    return step->err;
}

static struct operand *operand_at(const struct step *step, uint32_t first, uint32_t count,
                                  size_t index)
{
    if (index >= count)
        return NULL;
    int32_t value = step->infer->file->links[first + index];
    return value == ONNX_NONE ? NULL : &step->infer->operands[value];
}

struct operand *step_input(const struct step *step, size_t index)
{
    return operand_at(step, step->node->first_input, step->node->input_count, index);
}

struct operand *step_output(const struct step *step, size_t index)
{
    return operand_at(step, step->node->first_output, step->node->output_count, index);
}

struct operand *step_body_input(const struct step *step, int32_t graph, uint32_t index)
{
    const struct onnx_graph *body = &step->infer->file->graphs[graph];
    return operand_at(step, body->first_input, body->input_count, index);
}

struct operand *step_body_output(const struct step *step, int32_t graph, uint32_t index)
{
    const struct onnx_graph *body = &step->infer->file->graphs[graph];
    return operand_at(step, body->first_output, body->output_count, index);
}

const struct shape *step_shape(const struct step *step, size_t index)
{
    const struct operand *operand = step_input(step, index);
    return operand && operand->has_shape ? &operand->shape : NULL;
}

int step_input_ints(const struct step *step, size_t index, int64_t *out, int capacity)
{
    struct operand *operand = step_input(step, index);
    const double *data = operand ? operand_data(step->infer, operand) : NULL;
    if (!data)
        return -1;
    int64_t count = shape_elements(&operand->shape);
    for (int64_t i = 0; i < count && count <= capacity; i++)
        out[i] = clamp_to_int(data[i]);
    return count <= capacity ? (int)count : -1;
}

bool step_is(const struct step *step, const char *name)
{
    return step->row && str_equal(step->row->name, name);
}

size_t step_order_count(const struct step *step)
{
    return step->order ? strlen(step->order) : step->node->input_count;
}

size_t step_order_at(const struct step *step, size_t index)
{
    return step->order ? (size_t)(step->order[index] - '0') : index;
}

/* That of the input which the row names, else the row's own, else that of the first input. */
static int32_t dtype_of_row(const struct step *step)
{
    const struct operand *first = step_input(step, 0), *like = NULL;
    if (step->row && step->row->like)
        like = step_input(step, step->row->like);
    if (like && like->dtype)
        return like->dtype;
    return step->row && step->row->dtype ? step->row->dtype : first ? first->dtype : 0;
}

enum err step_set_output(struct step *step, size_t index, int32_t dtype, const struct shape *shape)
{
    struct operand *operand = step_output(step, index);
    int64_t elements;
    const char *wrong = step->err ? NULL : onnx_check_shape(shape->rank, shape->dims, &elements);
    if (wrong)
        step_fail(step, "its output %s", wrong);
    if (!operand || step->err)
        return step->err;
    operand->dtype = dtype ? dtype : dtype_of_row(step);
    operand->has_shape = true;
    operand->shape = *shape;
    return ERR_OK;
}

enum err step_set_result(struct step *step, const struct shape *shape)
{
    return step_set_output(step, 0, 0, shape);
}

/* ---- its attributes ---- */

const struct onnx_attribute *step_attribute(const struct step *step, const char *name)
{
    for (uint32_t i = 0; i < step->node->attribute_count; i++) {
        const struct onnx_attribute *attribute =
            &step->infer->file->attributes[step->node->first_attribute + i];
        if (slice_is(attribute->name, name))
            return attribute;
    }
    return NULL;
}

int64_t step_int(const struct step *step, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *found = step_attribute(step, name);
    return found && found->has_int ? found->int_value : otherwise;
}

enum err step_axis(struct step *step, int64_t otherwise, int rank, int *out)
{
    return resolve_axis(step_int(step, "axis", otherwise), rank, out)
               ? ERR_OK
               : step_fail(step, "axis out of range");
}

struct slice step_string(const struct step *step, const char *name)
{
    const struct onnx_attribute *found = step_attribute(step, name);
    return found ? onnx_attribute_string(found) : (struct slice){"", 0};
}

int step_ints(const struct step *step, const char *name, int64_t *out, int capacity)
{
    const struct onnx_attribute *found = step_attribute(step, name);
    return found ? (int)onnx_attribute_ints(found, out, (size_t)capacity) : 0;
}

int step_ints_or_input(const struct step *step, const char *name, size_t input, int64_t *out,
                       int capacity)
{
    if (step_attribute(step, name))
        return step_ints(step, name, out, capacity);
    return step_input_ints(step, input, out, capacity);
}
