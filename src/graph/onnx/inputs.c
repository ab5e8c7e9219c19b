/* Shapes of the model's inputs: as the file declares them, with the sizes that the user gives for dynamic
 * dimensions (by name, or by position: "input.0"), and the batch where a size has that meaning. */
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/params.h"
#include "core/text.h"
#include "graph/model_files.h"
#include "graph/onnx/infer.h"
#include "graph/options.h"

enum { MAX_RECURRENT_CHECKED = 8 };

struct binding {
    struct infer *infer;
    struct graph_options *options;
    bool *is_used;       /* of each of options->dims */
    struct text missing; /* names of dimensions without a size */
    struct slice first_missing;
    size_t missing_count;
    int recurrent_checked;  /* inputs whose readers were searched for a recurrence */
    int64_t batch;          /* of the first input; 0: none yet */
    int64_t declared_batch; /* of the first input that declares one; -1: none */
};

/* ---- named dimensions ---- */

static bool is_one_of(struct slice name, const char *const *words)
{
    char word[32];
    if (name.length >= sizeof word)
        return false;
    str_format(word, sizeof word, "%.*s", (int)name.length, name.start);
    for (; *words; words++)
        if (str_equal_nocase(word, *words))
            return true;
    return false;
}

/* The option that gives the size of a dimension which exporters call this; 0: none. */
static int64_t size_by_meaning(const struct graph_options *options, struct slice name)
{
    static const char *const BATCH[] = {"batch", "batch_size", "batchsize", "N", NULL};
    static const char *const TOKENS[] = {"sequence", "sequence_length", "seq_len", "seq_length",
                                         "seqlen",   "tokens",          NULL};
    static const char *const IMAGE[] = {"height", "width", "H", "W", "image_size", NULL};
    return is_one_of(name, BATCH)    ? options->batch
           : is_one_of(name, TOKENS) ? options->tokens
           : is_one_of(name, IMAGE)  ? options->image
                                     : 0;
}

static enum err add_binding(struct infer *infer, struct slice name, int64_t size)
{
    enum { MAX_BINDINGS = 256 }; /* a model has a handful */
    if (infer->binding_count == MAX_BINDINGS)
        return ERR_OK;
    struct dim_binding *bindings =
        grow(infer->bindings, &infer->binding_capacity, infer->binding_count, sizeof *bindings);
    if (!bindings)
        return err_no_memory(infer->why);
    infer->bindings = bindings;
    bindings[infer->binding_count++] = (struct dim_binding){name, size};
    return ERR_OK;
}

static bool find_binding(const struct infer *infer, struct slice name, int64_t *out)
{
    for (size_t i = 0; i < infer->binding_count; i++)
        if (slice_equal(infer->bindings[i].name, name)) {
            *out = infer->bindings[i].size;
            return true;
        }
    return false;
}

/* ---- one dynamic dimension ---- */

static const struct param *find_given(struct binding *binding, struct slice name)
{
    const struct params *dims = binding->options->dims;
    for (size_t i = 0; dims && i < dims->count; i++) {
        if (!slice_is(name, dims->items[i].key))
            continue;
        binding->is_used[i] = true;
        return &dims->items[i];
    }
    return NULL;
}

static enum err given_size(struct binding *binding, struct slice name, int64_t *out)
{
    const struct param *given = find_given(binding, name);
    uint64_t size;
    if (!given)
        return ERR_OK;
    if (parse_u64(given->value, &size) || size == 0 || size > INT32_MAX)
        return err_set(binding->infer->why, ERR_USAGE, "--dim %s=%s: not a size", given->key,
                       given->value);
    *out = (int64_t)size;
    return ERR_OK;
}

static void add_missing(struct binding *binding, struct slice name)
{
    enum { MAX_NAMED = 4 };
    if (binding->missing_count == 0)
        binding->first_missing = name;
    if (binding->missing_count < MAX_NAMED)
        text_addf(&binding->missing, "%s%s", binding->missing_count ? ", " : "",
                  model_label(name).text);
    else if (binding->missing_count == MAX_NAMED)
        text_add(&binding->missing, " and more");
    binding->missing_count++;
}

static enum err bind_dim(struct binding *binding, struct slice position, struct slice name,
                         bool is_batch, int64_t *out)
{
    *out = 0;
    enum err err = given_size(binding, position, out);
    if (err || *out > 0)
        return err;
    if (name.length && find_binding(binding->infer, name, out))
        return ERR_OK;
    if (name.length)
        err = given_size(binding, name, out);
    if (err)
        return err;
    if (*out == 0 && name.length)
        *out = size_by_meaning(binding->options, name);
    if (*out == 0 && is_batch)
        *out = binding->options->batch;
    if (*out == 0) {
        *out = 1;
        add_missing(binding, name.length ? name : position);
    }
    /* A missing one is bound too, so that it is reported once. */
    return name.length ? add_binding(binding->infer, name, *out) : ERR_OK;
}

/* ---- one input ---- */

static enum err input_failed(const struct binding *binding, int32_t value, const char *what)
{
    const struct onnx_file *file = binding->infer->file;
    return err_set(binding->infer->why, ERR_BAD_VALUE, "%.160s: input '%s' %s", file->path,
                   model_label(file->values[value].name).text, what);
}

static enum err bind_dims(struct binding *binding, int32_t value, const struct onnx_type *type,
                          int batch_axis, struct shape *out)
{
    struct slice name = binding->infer->file->values[value].name;
    enum err err = ERR_OK;
    out->rank = (uint8_t)type->rank;
    for (size_t i = 0; i < type->rank && !err; i++) {
        out->dims[i] = type->dims[i].size;
        if (type->dims[i].size >= 0)
            continue;
        size_t capacity = name.length + 16;
        char *position = arena_alloc(&binding->infer->arena, capacity);
        if (!position)
            return err_no_memory(binding->infer->why);
        str_format(position, capacity, "%.*s.%zu", (int)(name.length & 0xffff), name.start, i);
        err = bind_dim(binding, slice_of(position), type->dims[i].name, (int)i == batch_axis,
                       &out->dims[i]);
    }
    return err;
}

/* "1x3x224x224". */
static bool parse_shape(const char *text, struct shape *out)
{
    char number[16];
    out->rank = 0;
    for (const char *word = text; word;) {
        size_t length = strcspn(word, "x");
        uint64_t size;
        if (length >= sizeof number || out->rank == GRAPH_MAX_RANK)
            return false;
        str_format(number, sizeof number, "%.*s", (int)length, word);
        if (parse_u64(number, &size) || size == 0 || size > INT32_MAX)
            return false;
        out->dims[out->rank++] = (int64_t)size;
        word = word[length] ? word + length + 1 : NULL;
    }
    return true;
}

/* Nothing would be known of what is computed from an input without a shape, so the user must give it. */
static enum err bind_shapeless(struct binding *binding, int32_t value)
{
    struct infer *infer = binding->infer;
    struct operand *operand = &infer->operands[value];
    struct slice name = infer->file->values[value].name;
    int64_t elements;
    const struct param *given = find_given(binding, name);
    if (!given)
        return err_set(infer->why, ERR_USAGE,
                       "%.120s: input '%s' has no shape: give it, for example --dim "
                       "%s=1x3x224x224",
                       infer->file->path, model_label(name).text, model_label(name).text);
    if (!parse_shape(given->value, &operand->shape))
        return err_set(infer->why, ERR_USAGE,
                       "--dim %.60s=%.60s: not a shape: up to %d sizes like 1x3x224x224",
                       given->key, given->value, GRAPH_MAX_RANK);
    const char *wrong = onnx_check_shape(operand->shape.rank, operand->shape.dims, &elements);
    if (wrong)
        return input_failed(binding, value, wrong);
    operand->has_shape = true;
    if (binding->batch == 0)
        binding->batch = operand->shape.dims[0];
    return ERR_OK;
}

static bool has_layout(const struct infer *infer, const struct onnx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (slice_is(infer->file->attributes[node->first_attribute + i].name, "layout"))
            return true;
    return false;
}

/* A recurrence has the steps first and the batch second, unless it has a layout. */
static int batch_axis_of(const struct infer *infer, int32_t value)
{
    const struct onnx_graph *graph = &infer->file->graphs[0];
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct onnx_node *node = &infer->file->nodes[graph->first_node + i];
        bool is_recurrent =
            slice_is(node->op, "LSTM") || slice_is(node->op, "GRU") || slice_is(node->op, "RNN");
        if (is_recurrent && node->input_count > 0 && infer->file->links[node->first_input] == value)
            return has_layout(infer, node) ? 0 : 1;
    }
    return 0;
}

/* A requested batch replaces the one that the file declares. */
static void replace_batch(struct binding *binding, int axis, const struct onnx_type *type,
                          struct shape *shape)
{
    int64_t requested = binding->options->batch;
    if (axis >= shape->rank || type->dims[axis].size < 0)
        return;
    if (binding->declared_batch < 0)
        binding->declared_batch = shape->dims[axis];
    if (requested > 0 && shape->dims[axis] == binding->declared_batch && shape->rank > 1)
        shape->dims[axis] = requested;
}

static enum err bind_input(struct binding *binding, int32_t value)
{
    struct infer *infer = binding->infer;
    struct operand *operand = &infer->operands[value];
    struct slice info = infer->file->values[value].info;
    struct onnx_type type = {0};
    int64_t elements;
    if (info.start && !onnx_type_decode(info, &type))
        return input_failed(binding, value, "has a damaged type");
    if (type.rank > GRAPH_MAX_RANK)
        return input_failed(binding, value, "has more than 8 dimensions");
    operand->dtype = type.dtype;
    operand->is_defined = true;
    if (!type.has_shape && !operand->is_live)
        return ERR_OK;
    if (!type.has_shape && !type.is_other)
        return bind_shapeless(binding, value);
    if (!type.has_shape) { /* a sequence or a map */
        operand->has_shape = false;
        infer->is_guessed = true;
        return ERR_OK;
    }
    int axis = type.rank == 3 && binding->recurrent_checked++ < MAX_RECURRENT_CHECKED
                   ? batch_axis_of(infer, value)
                   : 0;
    enum err err = bind_dims(binding, value, &type, axis, &operand->shape);
    if (err)
        return err;
    replace_batch(binding, axis, &type, &operand->shape);
    if (binding->batch == 0 && axis < operand->shape.rank)
        binding->batch = operand->shape.dims[axis];
    operand->has_shape = true;
    const char *wrong = onnx_check_shape(operand->shape.rank, operand->shape.dims, &elements);
    return wrong ? input_failed(binding, value, wrong) : ERR_OK;
}

/* ---- all inputs ---- */

static enum err check_missing(const struct binding *binding)
{
    if (binding->missing_count == 0)
        return ERR_OK;
    return err_set(binding->infer->why, ERR_USAGE,
                   "%.120s has dynamic dimensions without a size (%s): give %s, for example --dim "
                   "%s=8",
                   binding->infer->file->path, text_get(&binding->missing),
                   binding->missing_count == 1 ? "it" : "each",
                   model_label(binding->first_missing).text);
}

static enum err check_unused(const struct binding *binding)
{
    const struct params *dims = binding->options->dims;
    for (size_t i = 0; dims && i < dims->count; i++)
        if (!binding->is_used[i])
            return err_set(binding->infer->why, ERR_USAGE,
                           "--dim %.60s: %.120s has no dynamic dimension of that name",
                           dims->items[i].key, binding->infer->file->path);
    return ERR_OK;
}

static enum err bind_all(struct binding *binding)
{
    const struct onnx_file *file = binding->infer->file;
    const struct onnx_graph *graph = &file->graphs[0];
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < graph->input_count && !err; i++) {
        int32_t value = file->links[graph->first_input + i];
        if (file->values[value].tensor == ONNX_NONE)
            err = bind_input(binding, value);
    }
    if (!err)
        err = check_missing(binding);
    return err ? err : check_unused(binding);
}

/* The batch, and the tokens: the second dimension of the first matrix of integers. */
static void write_back(struct binding *binding)
{
    struct infer *infer = binding->infer;
    const struct onnx_graph *graph = &infer->file->graphs[0];
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct operand *operand =
            &infer->operands[infer->file->links[graph->first_input + i]];
        if (operand->tensor || !operand->has_shape || operand->shape.rank != 2 ||
            (operand->dtype != ONNX_INT64 && operand->dtype != ONNX_INT32) ||
            infer->graph->tokens != 0)
            continue;
        infer->graph->tokens = (double)operand->shape.dims[0] * (double)operand->shape.dims[1];
        binding->options->tokens = operand->shape.dims[1];
    }
    binding->options->batch = binding->batch > 0 ? binding->batch : 1;
    infer->graph->batch = (double)binding->options->batch;
}

enum err inputs_bind(struct infer *infer, struct graph_options *options)
{
    struct binding binding = {.infer = infer, .options = options, .declared_batch = -1};
    size_t given = options->dims ? options->dims->count : 0;
    binding.is_used = calloc(given + 1, sizeof *binding.is_used);
    if (!binding.is_used)
        return err_no_memory(infer->why);
    bool is_requested = options->batch > 0;
    enum err err = bind_all(&binding);
    if (!err)
        write_back(&binding);
    infer->declared_batch = is_requested ? binding.declared_batch : -1;
    free(binding.is_used);
    text_release(&binding.missing);
    return err;
}

/* ---- what the file declares of other values ---- */

bool inputs_declared(const struct infer *infer, int32_t value, int32_t *dtype, struct shape *out)
{
    struct onnx_type type;
    struct slice info = infer->file->values[value].info;
    int64_t elements;
    *dtype = 0;
    if (!info.start || !onnx_type_decode(info, &type))
        return false;
    *dtype = type.dtype;
    if (!type.has_shape || type.rank > GRAPH_MAX_RANK)
        return false;
    *out = (struct shape){.rank = (uint8_t)type.rank};
    for (size_t i = 0; i < type.rank; i++) {
        out->dims[i] = type.dims[i].size;
        if (out->dims[i] < 0 &&
            !(type.dims[i].name.length && find_binding(infer, type.dims[i].name, &out->dims[i])))
            return false;
    }
    return onnx_check_shape(out->rank, out->dims, &elements) == NULL;
}

enum err inputs_check_batch(const struct infer *infer, const struct graph_options *options)
{
    const struct onnx_graph *graph = &infer->file->graphs[0];
    if (infer->declared_batch < 0 || infer->declared_batch == options->batch)
        return ERR_OK;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        int32_t value = infer->file->links[graph->first_output + i], dtype;
        const struct operand *operand = &infer->operands[value];
        struct shape declared;
        if (!operand->has_shape || operand->shape.rank == 0 ||
            !inputs_declared(infer, value, &dtype, &declared) || declared.rank == 0 ||
            declared.dims[0] != infer->declared_batch)
            continue;
        if (operand->shape.dims[0] != options->batch)
            return err_set(
                infer->why, ERR_UNSUPPORTED,
                "%.120s: a batch of %lld is fixed in its graph (output '%s' does not "
                "follow another one): omit the batch, or export the model with a dynamic "
                "batch",
                infer->file->path, (long long)infer->declared_batch,
                model_label(infer->file->values[value].name).text);
    }
    return ERR_OK;
}
