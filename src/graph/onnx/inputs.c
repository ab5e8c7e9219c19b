/* Shapes of the model's inputs: as declared in the file, with the sizes given by the user for dynamic dimensions: by
 * name, by position ("input.0"), as a complete shape ("input=1x3x224x224"), or by an option if a dimension has that
 * meaning: batch, tokens, height and width.  The batch defaults to 1. */
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx_dims.h"
#include "graph/graph.h"
#include "graph/model_files.h"
#include "graph/onnx/infer.h"

enum { MAX_RECURRENT_CHECKED = 8 };

struct binding {
    struct infer *infer;
    struct graph_options *options;
    struct text missing; /* names of dimensions without a size */
    struct slice first_missing;
    enum onnx_meaning first_meaning;
    size_t missing_count;
    bool is_image_used;     /* --image gave a size */
    bool is_tokens_used;    /* --prompt-tokens gave a size */
    int recurrent_checked;  /* inputs whose readers were searched for a recurrence */
    int64_t batch;          /* batch of the first input; 0: none yet */
    int64_t declared_batch; /* batch of the first input that declares one; -1: none */
};

/* ---- meanings of dimensions ---- */

/* The meaning of a dimension by its name. */
static enum onnx_meaning meaning_of_name(struct slice slice)
{
    char name[64];
    if (slice.length == 0 || slice.length >= sizeof name)
        return ONNX_MEANS_NOTHING;
    chars_format(name, "%.*s", (int)slice.length, slice.start);
    return onnx_meaning_of(name);
}

/* The meaning by name, else by position. */
static enum onnx_meaning meaning_of(const struct proto_type *type, size_t axis, int batch_axis)
{
    int64_t dims[GRAPH_MAX_RANK];
    enum onnx_meaning meaning = meaning_of_name(type->dims[axis].name);
    if (meaning != ONNX_MEANS_NOTHING)
        return meaning;
    for (size_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].size;
    return onnx_meaning_at(dims, type->rank, axis, batch_axis);
}

/* The size given by an option for this meaning; 0: none. */
static int64_t size_by_meaning(struct binding *binding, enum onnx_meaning meaning)
{
    const struct graph_options *options = binding->options;
    int64_t width = options->image_width > 0 ? options->image_width : options->image;
    switch (meaning) {
    case ONNX_MEANS_BATCH:
        return options->batch > 0 ? options->batch : 1;
    case ONNX_MEANS_TOKENS:
        binding->is_tokens_used |= options->tokens > 0;
        return options->tokens;
    case ONNX_MEANS_HEIGHT:
    case ONNX_MEANS_WIDTH:
    case ONNX_MEANS_SIDE:
        binding->is_image_used |= options->image > 0;
        return meaning == ONNX_MEANS_WIDTH ? width : options->image;
    default:
        return 0;
    }
}

/* ---- iterations of loops ---- */

enum err inputs_given_trips(struct infer *infer, struct slice loop, int64_t *out, bool *is_given)
{
    const struct params *dims = infer->dims;
    for (size_t i = 0; dims && i < dims->count; i++) {
        uint64_t trips;
        const struct param *given = &dims->items[i];
        if (!slice_is(loop, given->key))
            continue;
        if (parse_u64(given->value, &trips) || trips > INT32_MAX)
            return err_set(infer->why, ERR_USAGE, "--dim %.80s=%.80s: not a number of iterations",
                           given->key, given->value);
        infer->is_given_used[i] = *is_given = true;
        *out = (int64_t)trips;
    }
    return ERR_OK;
}

struct slice inputs_open_dim(const struct infer *infer, int32_t value, int64_t axis)
{
    const struct slice none = {0};
    const struct onnx_value *declared = &infer->file->values[value];
    struct proto_type type = {0};
    if (!declared->info.start || !onnx_type_decode(declared->info, &type))
        return none;
    axis += axis < 0 ? (int64_t)type.rank : 0;
    if (axis < 0 || axis >= (int64_t)type.rank || axis >= GRAPH_MAX_RANK)
        return none;
    struct slice name = type.dims[axis].name;
    for (size_t i = 0; infer->dims && i < infer->dims->count; i++)
        if (slice_is(name, infer->dims->items[i].key) ||
            slice_is(declared->name, infer->dims->items[i].key))
            return none;
    return name;
}

/* ---- named dimensions ---- */

static void add_binding(struct infer *infer, struct slice name, int64_t size)
{
    enum { MAX_BINDINGS = 256 }; /* a model has a handful */
    if (infer->binding_count == MAX_BINDINGS)
        return;
    *XADD(infer->bindings, infer->binding_count, infer->binding_capacity) =
        (struct dim_binding){name, size};
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
        binding->infer->is_given_used[i] = true;
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
        return err_set(binding->infer->why, ERR_USAGE,
                       "--dim %.80s=%.80s: not a size: must be 1 to %d", given->key, given->value,
                       INT32_MAX);
    *out = (int64_t)size;
    return ERR_OK;
}

static void add_missing(struct binding *binding, struct slice name, enum onnx_meaning meaning)
{
    enum { MAX_NAMED = 4 };
    if (binding->missing_count == 0) {
        binding->first_missing = name;
        binding->first_meaning = meaning;
    }
    if (binding->missing_count < MAX_NAMED)
        text_addf(&binding->missing, "%s%s", binding->missing_count ? ", " : "",
                  model_label(name).text);
    else if (binding->missing_count == MAX_NAMED)
        text_add(&binding->missing, " and more");
    binding->missing_count++;
}

/* The size of a name; a missing one is bound too, so that it is reported once. */
static enum err bind_name(struct binding *binding, struct slice name, enum onnx_meaning meaning,
                          int64_t *out)
{
    if (find_binding(binding->infer, name, out))
        return ERR_OK;
    enum err err = given_size(binding, name, out);
    if (err)
        return err;
    if (*out == 0)
        *out = size_by_meaning(binding, meaning);
    if (*out == 0) {
        *out = 1;
        add_missing(binding, name, meaning);
    }
    add_binding(binding->infer, name, *out);
    return ERR_OK;
}

/* "past_sequence_length + 1": the dimension of a mask in exported decoders. */
static enum err bind_sum(struct binding *binding, struct slice sum, int64_t *out)
{
    enum err err = ERR_OK;
    *out = 0;
    while (sum.length && !err) {
        const char *plus = memchr(sum.start, '+', sum.length);
        size_t length = plus ? (size_t)(plus - sum.start) : sum.length;
        struct slice term = slice_trim((struct slice){sum.start, length});
        size_t taken = length + (plus != NULL);
        int64_t size = 0;
        uint64_t number;
        char digits[16];
        bool is_number = term.length < sizeof digits &&
                         chars_format(digits, "%.*s", (int)term.length, term.start) &&
                         parse_u64(digits, &number) == ERR_OK && number <= INT32_MAX;
        if (is_number)
            size = (int64_t)number;
        else
            err = bind_name(binding, term, meaning_of_name(term), &size);
        *out += size;
        sum = (struct slice){sum.start + taken, sum.length - taken};
    }
    return err;
}

static enum err bind_dim(struct binding *binding, struct slice position, struct slice name,
                         enum onnx_meaning meaning, int64_t *out)
{
    *out = 0;
    enum err err = given_size(binding, position, out);
    if (err || *out > 0)
        return err;
    if (name.length == 0) {
        *out = size_by_meaning(binding, meaning);
        if (*out == 0)
            add_missing(binding, position, meaning);
        *out = *out ? *out : 1;
        return ERR_OK;
    }
    if (find_given(binding, name) || !memchr(name.start, '+', name.length))
        return bind_name(binding, name, meaning, out);
    if (find_binding(binding->infer, name, out))
        return ERR_OK;
    err = bind_sum(binding, name, out);
    if (!err)
        add_binding(binding->infer, name, *out);
    return err;
}

/* ---- one input ---- */

static enum err input_failed(const struct binding *binding, int32_t value, const char *what)
{
    const struct onnx_file *file = binding->infer->file;
    return err_set(binding->infer->why, ERR_BAD_VALUE, "%.160s: input '%s' %s", file->path,
                   model_label(file->values[value].name).text, what);
}

static enum err bind_dims(struct binding *binding, int32_t value, const struct proto_type *type,
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
        str_format(position, capacity, "%.*s.%zu", (int)(name.length & 0xffff), name.start, i);
        err = bind_dim(binding, slice_of(position), type->dims[i].name,
                       meaning_of(type, i, batch_axis), &out->dims[i]);
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
        chars_format(number, "%.*s", (int)length, word);
        if (parse_u64(number, &size) || size == 0 || size > INT32_MAX)
            return false;
        out->dims[out->rank++] = (int64_t)size;
        word = word[length] ? word + length + 1 : NULL;
    }
    return true;
}

/* ---- complete shapes: --dim x=1x3x224x224 ---- */

/* "x [batch, 3, height, width]", with "?" for an unnamed dimension. */
static void describe_input(const struct infer *infer, int32_t value, struct text *out)
{
    struct proto_type type = {0};
    struct slice info = infer->file->values[value].info;
    text_add(out, model_label(infer->file->values[value].name).text);
    if (!info.start || !onnx_type_decode(info, &type) || !type.has_shape) {
        text_add(out, " (no shape)");
        return;
    }
    text_add(out, " [");
    for (size_t i = 0; i < type.rank && i < GRAPH_MAX_RANK; i++) {
        text_add(out, i ? ", " : "");
        if (type.dims[i].size >= 0)
            text_addf(out, "%lld", (long long)type.dims[i].size);
        else
            text_add(out, type.dims[i].name.length ? model_label(type.dims[i].name).text : "?");
    }
    text_add(out, "]");
}

/* All inputs that are not weights. */
static void describe_inputs(const struct infer *infer, struct text *out)
{
    enum { MESSAGE_MAX = 150 }; /* bytes of a message */
    const struct onnx_graph *graph = &infer->file->graphs[0];
    size_t listed = 0, more = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        int32_t value = infer->file->links[graph->first_input + i];
        if (infer->file->values[value].tensor != ONNX_NONE)
            continue;
        if (out->length > MESSAGE_MAX) {
            more++;
            continue;
        }
        text_add(out, listed++ ? "; " : "");
        describe_input(infer, value, out);
    }
    if (more)
        text_addf(out, "; %zu more", more);
}

static enum err wrong_shape(const struct binding *binding, const struct param *given, int32_t value,
                            const char *wrong)
{
    struct text declared = {0};
    describe_input(binding->infer, value, &declared);
    enum err err = err_set(binding->infer->why, ERR_USAGE, "--dim %.60s=%.60s: %s: %.150s",
                           given->key, given->value, wrong, text_get(&declared));
    text_release(&declared);
    return err;
}

/* The complete shape given for an input; NULL: none.  A single size may be that of a dimension of the name. */
static const struct param *given_shape(struct binding *binding, int32_t value,
                                       const struct proto_type *type)
{
    const struct params *dims = binding->options->dims;
    struct slice name = binding->infer->file->values[value].name;
    for (size_t i = 0; dims && i < dims->count; i++)
        if (slice_is(name, dims->items[i].key) &&
            (!type->has_shape || type->rank == 1 || strchr(dims->items[i].value, 'x')))
            return find_given(binding, name);
    return NULL;
}

static enum err read_shape(const struct binding *binding, const struct param *given, int32_t value,
                           struct shape *out)
{
    int64_t elements;
    if (!parse_shape(given->value, out))
        return err_set(binding->infer->why, ERR_USAGE,
                       "--dim %.60s=%.60s: not a shape: up to %d sizes like 1x3x224x224",
                       given->key, given->value, GRAPH_MAX_RANK);
    const char *wrong = onnx_check_shape(out->rank, out->dims, &elements);
    return wrong ? input_failed(binding, value, wrong) : ERR_OK;
}

/* A given shape must agree with the declared one, and sets the dimensions of the same name in other inputs. */
static enum err bind_given_shape(struct binding *binding, int32_t value,
                                 const struct proto_type *type, const struct param *given)
{
    struct operand *operand = &binding->infer->operands[value];
    bool is_dynamic = false;
    enum err err = read_shape(binding, given, value, &operand->shape);
    if (err)
        return err;
    if (type->has_shape && type->rank != operand->shape.rank)
        return wrong_shape(binding, given, value,
                           "the number of dimensions differs from its input's");
    for (size_t i = 0; type->has_shape && i < type->rank && !err; i++) {
        const struct onnx_dim *dim = &type->dims[i];
        int64_t size = operand->shape.dims[i], bound = size;
        is_dynamic |= dim->size < 0;
        if (dim->size >= 0 && dim->size != size)
            return wrong_shape(binding, given, value,
                               i == 0 ? "the file fixes the first dimension (try --batch)"
                                      : "differs from a size that the file fixes");
        if (dim->size >= 0 || dim->name.length == 0)
            continue;
        if (find_binding(binding->infer, dim->name, &bound) && bound != size)
            return wrong_shape(binding, given, value, "dimensions of one name differ in size");
        add_binding(binding->infer, dim->name, size);
    }
    if (!err && type->has_shape && !is_dynamic)
        return wrong_shape(binding, given, value, "no dynamic dimension");
    operand->has_shape = !err;
    return err;
}

/* Before the others, so that dimensions of the same name follow. */
static enum err bind_given_shapes(struct binding *binding)
{
    const struct onnx_file *file = binding->infer->file;
    const struct onnx_graph *graph = &file->graphs[0];
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < graph->input_count && !err; i++) {
        int32_t value = file->links[graph->first_input + i];
        struct slice info = file->values[value].info;
        struct proto_type type = {0};
        if (file->values[value].tensor != ONNX_NONE ||
            (info.start && !onnx_type_decode(info, &type)) || type.rank > GRAPH_MAX_RANK)
            continue; /* reported later */
        const struct param *given = given_shape(binding, value, &type);
        if (given)
            err = bind_given_shape(binding, value, &type, given);
    }
    return err;
}

/* Nothing can be inferred from an input without a shape, so the user must give it. */
static enum err no_shape(const struct binding *binding, int32_t value)
{
    const struct infer *infer = binding->infer;
    struct slice name = infer->file->values[value].name;
    return err_set(infer->why, ERR_USAGE,
                   "%.120s: input '%s' has no shape: give it, for example --dim %s=1x3x224x224",
                   infer->file->path, model_label(name).text, model_label(name).text);
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

/* A requested batch replaces the declared one. */
static void replace_batch(struct binding *binding, int axis, const struct proto_type *type,
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

/* Shape and batch of an input that has none yet. */
static enum err bind_declared(struct binding *binding, int32_t value, const struct proto_type *type)
{
    struct operand *operand = &binding->infer->operands[value];
    int64_t elements;
    int axis = type->rank == 3 && binding->recurrent_checked++ < MAX_RECURRENT_CHECKED
                   ? batch_axis_of(binding->infer, value)
                   : 0;
    enum err err = bind_dims(binding, value, type, axis, &operand->shape);
    if (err)
        return err;
    replace_batch(binding, axis, type, &operand->shape);
    if (binding->batch == 0 && axis < operand->shape.rank)
        binding->batch = operand->shape.dims[axis];
    operand->has_shape = true;
    const char *wrong = onnx_check_shape(operand->shape.rank, operand->shape.dims, &elements);
    return wrong ? input_failed(binding, value, wrong) : ERR_OK;
}

static enum err bind_input(struct binding *binding, int32_t value)
{
    struct infer *infer = binding->infer;
    struct operand *operand = &infer->operands[value];
    struct slice info = infer->file->values[value].info;
    struct proto_type type = {0};
    if (info.start && !onnx_type_decode(info, &type))
        return input_failed(binding, value, "has a damaged type");
    if (type.rank > GRAPH_MAX_RANK)
        return input_failed(binding, value, "has more than 8 dimensions");
    operand->dtype = type.dtype;
    operand->is_defined = true;
    if (operand->has_shape) { /* given completely */
        if (binding->batch == 0)
            binding->batch = operand->shape.dims[0];
        return ERR_OK;
    }
    if (!type.has_shape && !operand->is_live)
        return ERR_OK;
    if (!type.has_shape && !type.is_other)
        return no_shape(binding, value);
    if (!type.has_shape) { /* a sequence or a map */
        infer->is_guessed = true;
        return ERR_OK;
    }
    return bind_declared(binding, value, &type);
}

/* ---- all inputs ---- */

enum err inputs_check_given(const struct infer *infer, const struct graph_options *options)
{
    const struct params *dims = options->dims;
    for (size_t i = 0; dims && i < dims->count; i++) {
        if (infer->is_given_used[i])
            continue;
        struct text inputs = {0};
        describe_inputs(infer, &inputs);
        enum err err = err_set(infer->why, ERR_USAGE,
                               "--dim %.40s: %.80s has no dynamic dimension, input or loop of that "
                               "name; inputs: %s",
                               dims->items[i].key, infer->file->path, text_get(&inputs));
        text_release(&inputs);
        return err;
    }
    return ERR_OK;
}

/* A name that does not occur in the file. */
static bool has_misspelled(const struct binding *binding)
{
    const struct infer *infer = binding->infer;
    const struct params *dims = binding->options->dims;
    for (size_t i = 0; dims && i < dims->count; i++) {
        bool is_node = infer->is_given_used[i];
        for (size_t k = 0; k < infer->file->node_count && !is_node; k++)
            is_node =
                slice_is(onnx_node_name(infer->file, &infer->file->nodes[k]), dims->items[i].key);
        if (!is_node)
            return true;
    }
    return false;
}

static enum err check_missing(const struct binding *binding)
{
    static const char *const EXAMPLES[] = {
        [ONNX_MEANS_NOTHING] = "8",  [ONNX_MEANS_BATCH] = "8",   [ONNX_MEANS_TOKENS] = "128",
        [ONNX_MEANS_HEIGHT] = "224", [ONNX_MEANS_WIDTH] = "224", [ONNX_MEANS_SIDE] = "224"};
    if (binding->missing_count == 0)
        return ERR_OK;
    if (has_misspelled(binding))
        return inputs_check_given(binding->infer, binding->options);
    struct text inputs = {0};
    describe_inputs(binding->infer, &inputs);
    const char *instead = "";
    if (binding->first_meaning >= ONNX_MEANS_HEIGHT)
        instead = "--image HxW or ";
    else if (binding->first_meaning == ONNX_MEANS_TOKENS)
        instead = "--prompt-tokens N or ";
    const char *path = binding->infer->file->path, *slash = strrchr(path, '/');
    enum err err =
        err_set(binding->infer->why, ERR_USAGE,
                "%.60s: unknown size of %s: give %s--dim %s=%s%s; inputs: %s",
                slash ? slash + 1 : path, text_get(&binding->missing), instead,
                model_label(binding->first_missing).text, EXAMPLES[binding->first_meaning],
                binding->missing_count == 1 ? "" : " ...", text_get(&inputs));
    text_release(&inputs);
    return err;
}

static enum err without_effect(const struct binding *binding, const char *option, const char *what)
{
    struct text inputs = {0};
    describe_inputs(binding->infer, &inputs);
    enum err err =
        err_set(binding->infer->why, ERR_USAGE,
                "%s has no effect: %.80s has no input with dynamic %s, or --dim sets it; "
                "inputs: %s",
                option, binding->infer->file->path, what, text_get(&inputs));
    text_release(&inputs);
    return err;
}

static enum err bind_all(struct binding *binding)
{
    const struct onnx_file *file = binding->infer->file;
    const struct onnx_graph *graph = &file->graphs[0];
    enum err err = bind_given_shapes(binding);
    for (uint32_t i = 0; i < graph->input_count && !err; i++) {
        int32_t value = file->links[graph->first_input + i];
        if (file->values[value].tensor == ONNX_NONE)
            err = bind_input(binding, value);
    }
    if (!err)
        err = check_missing(binding);
    if (!err && binding->options->image > 0 && !binding->is_image_used)
        err = without_effect(binding, "--image", "height and width");
    return err;
}

/* The batch, and the tokens: the second dimension of the first integer matrix. */
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
    binding->is_tokens_used |= infer->graph->tokens > 0;
    binding->options->batch = binding->batch > 0 ? binding->batch : 1;
    infer->graph->batch = (double)binding->options->batch;
}

enum err inputs_bind(struct infer *infer, struct graph_options *options)
{
    struct binding binding = {.infer = infer, .options = options, .declared_batch = -1};
    size_t given = options->dims ? options->dims->count : 0;
    infer->is_given_used = xcalloc(given + 1, sizeof *infer->is_given_used);
    infer->dims = options->dims;
    bool is_requested = options->batch > 0, has_tokens = options->tokens > 0;
    enum err err = bind_all(&binding);
    if (!err)
        write_back(&binding);
    if (!err && has_tokens && !binding.is_tokens_used)
        err = without_effect(&binding, "--prompt-tokens", "sequence length");
    infer->declared_batch = is_requested ? binding.declared_batch : -1;
    text_release(&binding.missing);
    return err;
}

/* ---- declared shapes of other values ---- */

bool inputs_declared(const struct infer *infer, int32_t value, int32_t *dtype, struct shape *out)
{
    struct proto_type type;
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

static int32_t output_value(const struct step *step, size_t index)
{
    return step->infer->file->links[step->node->first_output + index];
}

void inputs_assume_output(struct step *step, size_t index)
{
    struct operand *out = step_output(step, index);
    int32_t dtype;
    struct shape declared;
    bool is_declared = inputs_declared(step->infer, output_value(step, index), &dtype, &declared);
    if (out->dtype == 0)
        out->dtype = dtype;
    if (is_declared && (!out->has_shape || step->is_guessed)) {
        out->shape = declared;
        out->has_shape = true;
        return;
    }
    out->is_guess = step->is_guessed || !out->has_shape;
    step->infer->is_guessed |= out->is_guess;
    if (out->has_shape)
        return;
    out->has_shape = true;
    out->shape = (struct shape){.rank = 1, .dims = {1}};
    for (size_t i = 0; i < step->node->input_count; i++) {
        const struct operand *in = step_input(step, i);
        if (!in || !in->has_shape)
            continue;
        out->shape = in->shape;
        out->dtype = out->dtype ? out->dtype : in->dtype;
        return;
    }
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
