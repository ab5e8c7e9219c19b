#include "graph/onnx/work.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/tensor.h"

enum err work_no_memory(const struct work *work)
{
    return err_set(work->why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

static void know_tensor(struct known *known, const struct onnx_tensor *tensor)
{
    known->has_shape = true;
    known->type = tensor->type;
    known->shape.rank = tensor->rank;
    memcpy(known->shape.dims, tensor->dims, sizeof tensor->dims);
    known->tensor = tensor;
    known->is_made = true;
}

enum err work_init(struct work *work, const struct onnx_file *file, struct graph *graph,
                   struct error *why)
{
    *work = (struct work){.file = file, .graph = graph, .why = why};
    work->known = calloc(file->value_count + 1, sizeof *work->known);
    if (!work->known)
        return work_no_memory(work);
    for (size_t i = 0; i < file->value_count; i++) {
        work->known[i].id = GRAPH_NONE;
        if (file->values[i].tensor != ONNX_NONE)
            know_tensor(&work->known[i], &file->tensors[file->values[i].tensor]);
    }
    return ERR_OK;
}

void work_release(struct work *work)
{
    free(work->known);
    free(work->is_needed);
    free(work->bound);
    arena_release(&work->kept);
    arena_release(&work->passing);
    *work = (struct work){0};
}

/* ---- values ---- */

int64_t shape_elements(const struct shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

bool type_is_real(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE ||
           type == ONNX_BFLOAT16 || (type >= ONNX_FLOAT8_FIRST && type <= ONNX_FLOAT8_LAST) ||
           type == ONNX_FLOAT4;
}

double *work_numbers(struct work *work, int64_t count)
{
    if (count < 0 || count > MOST_NUMBERS ||
        work->numbers_kept + (size_t)count > MOST_NUMBERS_IN_ALL)
        return NULL;
    work->numbers_kept += (size_t)count;
    return arena_take(&work->kept, ((size_t)count + 1) * sizeof(double));
}

const double *known_numbers(struct work *work, struct known *known)
{
    if (known->numbers || !known->tensor || known->was_looked_at)
        return known->numbers;
    known->was_looked_at = true;
    int64_t count = known->tensor->elements;
    double *numbers = count <= MOST_NUMBERS ? work_numbers(work, count) : NULL;
    if (numbers && tensor_numbers(known->tensor, numbers, (size_t)count))
        known->numbers = numbers;
    return known->numbers;
}

int64_t integer_of(double number)
{
    const double most = 4611686018427387904.0; /* 2^62: far enough, and sums still fit */
    if (isnan(number))
        return 0;
    return number > most    ? INT64_C(1) << 62
           : number < -most ? -(INT64_C(1) << 62)
                            : (int64_t)number;
}

bool axis_of(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* ---- the step of one node ---- */

enum err step_init(struct step *step, struct work *work, const struct onnx_node *node)
{
    *step = (struct step){.work = work, .node = node};
    arena_clear(&work->passing);
    if (node->attribute_count == 0)
        return ERR_OK;
    step->settings = arena_take(&work->passing, node->attribute_count * sizeof *step->settings);
    if (!step->settings)
        return work_no_memory(work);
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct onnx_attribute *attribute = &work->file->attributes[node->first_attribute + i];
        step->settings[i] = (struct message_setting){0};
        if (attribute->tensor.bytes || attribute->graph != ONNX_NONE)
            continue; /* walked in place: weights are not copied */
        if (message_setting(&work->passing, attribute->body, &step->settings[i]))
            return step_fail(step, "its setting '%s' is damaged, or too long",
                             onnx_words(attribute->name).text);
    }
    return ERR_OK;
}

enum err step_fail(const struct step *step, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct onnx_file *file = step->work->file;
    struct slice name = step->node->name;
    if (name.length == 0 && step->node->output_count > 0) {
        int32_t output = file->links[step->node->first_output];
        name = output == ONNX_NONE ? name : file->values[output].name;
    }
    return err_set(step->work->why, ERR_BAD_VALUE, "%.100s: node '%s' (%s): %s", file->path,
                   onnx_words(name).text, onnx_words(step->node->op).text, text);
}

size_t step_input_count(const struct step *step)
{
    return step->node->input_count;
}

struct known *step_input(const struct step *step, size_t index)
{
    if (index >= step->node->input_count)
        return NULL;
    int32_t value = step->work->file->links[step->node->first_input + index];
    return value == ONNX_NONE ? NULL : &step->work->known[value];
}

struct known *step_output(const struct step *step, size_t index)
{
    if (index >= step->node->output_count)
        return NULL;
    int32_t value = step->work->file->links[step->node->first_output + index];
    return value == ONNX_NONE ? NULL : &step->work->known[value];
}

const struct shape *step_shape(const struct step *step, size_t index)
{
    const struct known *known = step_input(step, index);
    return known && known->has_shape ? &known->shape : NULL;
}

int step_integers(const struct step *step, size_t index, int64_t *out, int room)
{
    struct known *known = step_input(step, index);
    const double *numbers = known ? known_numbers(step->work, known) : NULL;
    if (!numbers)
        return -1;
    int64_t count = shape_elements(&known->shape);
    for (int64_t i = 0; i < count && count <= room; i++)
        out[i] = integer_of(numbers[i]);
    return count <= room ? (int)count : -1;
}

enum err step_give(struct step *step, size_t index, int32_t type, const struct shape *shape)
{
    struct known *known = step_output(step, index);
    int64_t elements;
    const char *wrong = shape_check(shape->rank, shape->dims, &elements);
    if (wrong)
        return step_fail(step, "what comes out %s", wrong);
    if (!known)
        return ERR_OK;
    const struct known *first = step_input(step, 0);
    known->type = type ? type : first ? first->type : 0;
    known->has_shape = true;
    known->shape = *shape;
    return ERR_OK;
}

/* ---- its settings ---- */

/* Which of the node's attributes has that name; -1: none. */
static int64_t attribute_index(const struct step *step, const char *name)
{
    for (uint32_t i = 0; i < step->node->attribute_count; i++)
        if (slice_is(step->work->file->attributes[step->node->first_attribute + i].name, name))
            return i;
    return -1;
}

const struct onnx_attribute *step_attribute(const struct step *step, const char *name)
{
    int64_t index = attribute_index(step, name);
    return index < 0 ? NULL : &step->work->file->attributes[step->node->first_attribute + index];
}

const struct message_setting *step_setting(const struct step *step, const char *name)
{
    int64_t index = attribute_index(step, name);
    return index < 0 ? NULL : &step->settings[index];
}

bool step_has(const struct step *step, const char *name)
{
    return step_attribute(step, name) != NULL;
}

int64_t step_integer(const struct step *step, const char *name, int64_t otherwise)
{
    const struct message_setting *found = step_setting(step, name);
    return found && found->has_integer ? found->integer : otherwise;
}

double step_real(const struct step *step, const char *name, double otherwise)
{
    const struct message_setting *found = step_setting(step, name);
    return found && found->has_real ? found->real : otherwise;
}

int step_list(const struct step *step, const char *name, int64_t *out, int room)
{
    const struct message_setting *found = step_setting(step, name);
    int count = 0;
    for (size_t i = 0; found && i < found->integer_count && count < room; i++)
        out[count++] = found->integers[i];
    return count;
}

struct slice step_text(const struct step *step, const char *name)
{
    const struct message_setting *found = step_setting(step, name);
    return found && found->text.length ? found->text : (struct slice){"", 0};
}

int step_list_or_input(const struct step *step, const char *name, size_t input, int64_t *out,
                       int room)
{
    if (step_has(step, name))
        return step_list(step, name, out, room);
    return step_integers(step, input, out, room);
}
