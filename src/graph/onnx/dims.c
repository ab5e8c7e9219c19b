#include "graph/onnx/dims.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/params.h"
#include "core/text.h"
#include "graph/onnx/tensor.h"

/* ---- names ---- */

static bool is_one_of(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (str_equal_nocase(name, *words))
            return true;
    return false;
}

/* What exporters call a dimension whose size is a setting of its own; 0: none of these. */
static int64_t by_meaning(const struct graph_setting *setting, const char *name)
{
    static const char *const BATCHES[] = {"batch", "batch_size", "batchsize", "N", NULL};
    static const char *const TOKENS[] = {"sequence", "sequence_length", "seq_len", "seq_length",
                                         "seqlen",   "tokens",          NULL};
    static const char *const SIDES[] = {"height", "width", "H", "W", "image_size", NULL};
    return is_one_of(name, BATCHES)  ? setting->batch
           : is_one_of(name, TOKENS) ? setting->tokens
           : is_one_of(name, SIDES)  ? setting->image
                                     : 0;
}

static enum err bind(struct work *work, const char *name, int64_t size)
{
    enum { MOST_BOUND = 256 }; /* names of dimensions: a model has a handful */
    if (work->bound_count == MOST_BOUND)
        return ERR_OK;
    struct bound_dim *bound =
        grow(work->bound, &work->bound_room, work->bound_count, sizeof *bound);
    if (!bound)
        return work_no_memory(work);
    work->bound = bound;
    bound[work->bound_count++] = (struct bound_dim){name, size};
    return ERR_OK;
}

static bool find_bound(const struct work *work, const char *name, int64_t *out)
{
    for (size_t i = 0; i < work->bound_count; i++)
        if (strcmp(work->bound[i].name, name) == 0) {
            *out = work->bound[i].size;
            return true;
        }
    return false;
}

/* ---- one open dimension ---- */

enum { MOST_LOOKED_AT = 8 };

struct binding {
    struct work *work;
    struct graph_setting *setting;
    bool *is_used;       /* of each of setting->dims */
    struct text missing; /* names of those that are open */
    const char *one;     /* of them, for the example */
    size_t missing_count;
    int looked_at;         /* inputs, for what reads them */
    int64_t batch;         /* of the first input; 0: none yet */
    int64_t batch_in_file; /* the first dimension of the first input, where the file has it; -1 */
};

static const struct param *find_given(struct binding *binding, const char *name)
{
    const struct params *dims = binding->setting->dims;
    for (size_t i = 0; dims && i < dims->count; i++) {
        if (strcmp(dims->items[i].key, name) != 0)
            continue;
        binding->is_used[i] = true;
        return &dims->items[i];
    }
    return NULL;
}

/* "batch=8", or by place: "input.0=8". */
static enum err given_size(struct binding *binding, const char *name, int64_t *out)
{
    const struct param *given = find_given(binding, name);
    uint64_t size;
    if (!given)
        return ERR_OK;
    if (parse_u64(given->value, &size) || size == 0 || size > INT32_MAX)
        return err_set(binding->work->why, ERR_USAGE, "--dim %s=%s: not a size", name,
                       given->value);
    *out = (int64_t)size;
    return ERR_OK;
}

static void note_missing(struct binding *binding, const char *name)
{
    enum { MOST_NAMED = 4 };
    if (binding->missing_count == 0)
        binding->one = name;
    if (binding->missing_count < MOST_NAMED)
        text_addf(&binding->missing, "%s%s", binding->missing_count ? ", " : "",
                  onnx_words((struct slice){name, strlen(name)}).text);
    else if (binding->missing_count == MOST_NAMED)
        text_add(&binding->missing, " and more");
    binding->missing_count++;
}

static enum err open_dim(struct binding *binding, const char *place, const char *name,
                         bool is_first, int64_t *out)
{
    *out = 0;
    enum err err = given_size(binding, place, out);
    if (err || *out > 0)
        return err;
    if (name && find_bound(binding->work, name, out))
        return ERR_OK;
    if (name)
        err = given_size(binding, name, out);
    if (!err && *out == 0 && name)
        *out = by_meaning(binding->setting, name);
    if (!err && *out == 0 && is_first)
        *out = binding->setting->batch;
    if (err || *out == 0) {
        *out = 1;
        if (!err)
            note_missing(binding, name ? name : place);
    }
    /* One that is missing is bound too, so that it is named once. */
    return err || !name ? err : bind(binding->work, name, *out);
}

/* ---- one input ---- */

static enum err input_failed(const struct binding *binding, int32_t value, const char *what)
{
    const struct onnx_file *file = binding->work->file;
    return err_set(binding->work->why, ERR_BAD_VALUE, "%.160s: input '%s' %s", file->path,
                   onnx_words(file->values[value].name).text, what);
}

static const char *place_name(struct work *work, int32_t value, size_t index)
{
    struct slice name = work->file->values[value].name;
    size_t room = name.length + 16;
    char *place = arena_take(&work->kept, room);
    if (place)
        str_format(place, room, "%.*s.%zu", (int)(name.length & 0xffff), name.bytes, index);
    return place;
}

static enum err fill_dims(struct binding *binding, int32_t value, const struct message_type *type,
                          int batch, struct shape *out)
{
    out->rank = (uint8_t)type->rank;
    for (size_t i = 0; i < type->rank; i++) {
        out->dims[i] = type->dims[i].size;
        if (type->dims[i].size >= 0)
            continue;
        const char *place = place_name(binding->work, value, i);
        if (!place)
            return work_no_memory(binding->work);
        enum err err = open_dim(binding, place, type->dims[i].name, (int)i == batch, &out->dims[i]);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* ---- an input of which the file says nothing ---- */

/* "1x3x224x224". */
static bool parse_shape(const char *words, struct shape *out)
{
    char number[16];
    out->rank = 0;
    for (const char *word = words; word;) {
        size_t length = strcspn(word, "x");
        uint64_t size;
        if (length >= sizeof number || out->rank == GRAPH_MOST_DIMENSIONS)
            return false;
        str_format(number, sizeof number, "%.*s", (int)length, word);
        if (parse_u64(number, &size) || size == 0 || size > INT32_MAX)
            return false;
        out->dims[out->rank++] = (int64_t)size;
        word = word[length] ? word + length + 1 : NULL;
    }
    return true;
}

/* Nothing that is computed of it would be known, so it is asked for: "x=1x3x224x224". */
static enum err bind_shapeless(struct binding *binding, int32_t value)
{
    struct work *work = binding->work;
    struct known *known = &work->known[value];
    struct slice name = work->file->values[value].name;
    char *key = arena_take(&work->kept, name.length + 1);
    int64_t elements;
    if (!key)
        return work_no_memory(work);
    str_format(key, name.length + 1, "%.*s", (int)(name.length & 0xffff), name.bytes);
    const struct param *given = find_given(binding, key);
    if (!given)
        return err_set(work->why, ERR_USAGE,
                       "%.120s: input '%s' has no shape: give it, for example --dim "
                       "%s=1x3x224x224",
                       work->file->path, onnx_words(name).text, onnx_words(name).text);
    if (!parse_shape(given->value, &known->shape))
        return err_set(work->why, ERR_USAGE,
                       "--dim %.60s=%.60s: not a shape: up to %d sizes like 1x3x224x224", key,
                       given->value, GRAPH_MOST_DIMENSIONS);
    const char *wrong = shape_check(known->shape.rank, known->shape.dims, &elements);
    if (wrong)
        return input_failed(binding, value, wrong);
    known->has_shape = true;
    if (binding->batch == 0)
        binding->batch = known->shape.dims[0];
    return ERR_OK;
}

/* ---- any input ---- */

/* Recurrence reads steps first and samples second. */
static int batch_place(const struct work *work, int32_t value)
{
    const struct onnx_graph *graph = &work->file->graphs[0];
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct onnx_node *node = &work->file->nodes[graph->first_node + i];
        bool is_recurrent =
            slice_is(node->op, "LSTM") || slice_is(node->op, "GRU") || slice_is(node->op, "RNN");
        if (!is_recurrent || node->input_count == 0 ||
            work->file->links[node->first_input] != value)
            continue;
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (slice_is(work->file->attributes[node->first_attribute + k].name, "layout"))
                return 0;
        return 1;
    }
    return 0;
}

/* A batch that is asked for takes the place of the one that the file was written with. */
static void change_batch(struct binding *binding, int place, const struct message_type *type,
                         struct shape *shape)
{
    int64_t wanted = binding->setting->batch;
    if (place >= shape->rank || type->dims[place].size < 0)
        return;
    if (binding->batch_in_file < 0)
        binding->batch_in_file = shape->dims[place];
    if (wanted > 0 && shape->dims[place] == binding->batch_in_file && shape->rank > 1)
        shape->dims[place] = wanted;
}

static enum err bind_input(struct binding *binding, int32_t value)
{
    struct work *work = binding->work;
    struct known *known = &work->known[value];
    struct message_type type = {0};
    int64_t elements;
    struct slice info = work->file->values[value].info;
    enum err err = info.bytes ? message_type(&work->kept, info, &type) : ERR_OK;
    if (err == ERR_UNSUPPORTED)
        return message_available(work->why);
    if (err)
        return input_failed(binding, value, "has a type that is damaged");
    if (type.has_shape && type.rank > GRAPH_MOST_DIMENSIONS)
        return input_failed(binding, value, "has more dimensions than are read (8)");
    known->type = type.element;
    known->is_made = true;
    if (!type.has_shape && !known->is_needed)
        return ERR_OK;
    if (!type.has_shape && !type.is_other)
        return bind_shapeless(binding, value);
    if (!type.has_shape) { /* a sequence or a map */
        known->has_shape = false;
        work->is_guessed = true;
        return ERR_OK;
    }
    int place =
        type.rank == 3 && binding->looked_at++ < MOST_LOOKED_AT ? batch_place(work, value) : 0;
    err = fill_dims(binding, value, &type, place, &known->shape);
    if (err)
        return err;
    change_batch(binding, place, &type, &known->shape);
    if (binding->batch == 0 && place < known->shape.rank)
        binding->batch = known->shape.dims[place];
    known->has_shape = true;
    const char *wrong = shape_check(known->shape.rank, known->shape.dims, &elements);
    return wrong ? input_failed(binding, value, wrong) : ERR_OK;
}

/* ---- all ---- */

static enum err tell_missing(const struct binding *binding)
{
    if (binding->missing_count == 0)
        return ERR_OK;
    struct slice one = {binding->one, strlen(binding->one)};
    return err_set(binding->work->why, ERR_USAGE,
                   "%.120s leaves the size of %s open: give %s, for example --dim %s=8",
                   binding->work->file->path, text_get(&binding->missing),
                   binding->missing_count == 1 ? "it" : "each", onnx_words(one).text);
}

static enum err tell_unused(const struct binding *binding)
{
    const struct params *dims = binding->setting->dims;
    for (size_t i = 0; dims && i < dims->count; i++)
        if (!binding->is_used[i])
            return err_set(binding->work->why, ERR_USAGE,
                           "--dim %.60s: %.120s has no open dimension of that name",
                           dims->items[i].key, binding->work->file->path);
    return ERR_OK;
}

/* What the inputs say of batch and tokens. */
static void tell_setting(struct binding *binding)
{
    struct work *work = binding->work;
    const struct onnx_graph *graph = &work->file->graphs[0];
    struct graph_setting *setting = binding->setting;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct known *known = &work->known[work->file->links[graph->first_input + i]];
        if (known->tensor || !known->has_shape)
            continue;
        if (known->shape.rank == 2 && (known->type == ONNX_INT64 || known->type == ONNX_INT32) &&
            work->graph->tokens == 0) {
            work->graph->tokens = (double)known->shape.dims[0] * (double)known->shape.dims[1];
            setting->tokens = known->shape.dims[1];
        }
    }
    setting->batch = binding->batch > 0 ? binding->batch : 1;
    work->graph->batch = (double)setting->batch;
}

static enum err bind_all(struct binding *binding)
{
    const struct onnx_file *file = binding->work->file;
    const struct onnx_graph *graph = &file->graphs[0];
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < graph->input_count && !err; i++) {
        int32_t value = file->links[graph->first_input + i];
        if (file->values[value].tensor == ONNX_NONE)
            err = bind_input(binding, value);
    }
    if (!err)
        err = tell_missing(binding);
    return err ? err : tell_unused(binding);
}

enum err dims_bind(struct work *work, struct graph_setting *setting)
{
    struct binding binding = {.work = work, .setting = setting, .batch_in_file = -1};
    size_t given = setting->dims ? setting->dims->count : 0;
    binding.is_used = calloc(given + 1, sizeof *binding.is_used);
    if (!binding.is_used)
        return work_no_memory(work);
    bool is_asked = setting->batch > 0;
    enum err err = bind_all(&binding);
    if (!err)
        tell_setting(&binding);
    work->batch_in_file = is_asked ? binding.batch_in_file : -1;
    free(binding.is_used);
    text_release(&binding.missing);
    return err;
}

/* ---- what the file says of others ---- */

bool dims_told(struct work *work, int32_t value, int32_t *type, struct shape *out)
{
    struct message_type told;
    struct slice info = work->file->values[value].info;
    int64_t elements;
    *type = 0;
    if (!info.bytes || message_type(&work->passing, info, &told))
        return false;
    *type = told.element;
    if (!told.has_shape || told.rank > GRAPH_MOST_DIMENSIONS)
        return false;
    *out = (struct shape){.rank = (uint8_t)told.rank};
    for (size_t i = 0; i < told.rank; i++) {
        out->dims[i] = told.dims[i].size;
        if (out->dims[i] < 0 &&
            !(told.dims[i].name && find_bound(work, told.dims[i].name, &out->dims[i])))
            return false;
    }
    return shape_check(out->rank, out->dims, &elements) == NULL;
}

enum err dims_check_batch(struct work *work, const struct graph_setting *setting)
{
    const struct onnx_graph *graph = &work->file->graphs[0];
    if (work->batch_in_file < 0 || work->batch_in_file == setting->batch)
        return ERR_OK;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        int32_t value = work->file->links[graph->first_output + i], type;
        const struct known *known = &work->known[value];
        struct shape told;
        if (!known->has_shape || known->shape.rank == 0 || !dims_told(work, value, &type, &told) ||
            told.rank == 0 || told.dims[0] != work->batch_in_file)
            continue;
        if (known->shape.dims[0] != setting->batch)
            return err_set(
                work->why, ERR_UNSUPPORTED,
                "%.120s: a batch of %lld is written into its graph (output '%s' does not "
                "follow another): leave the batch out, or export it with an open one",
                work->file->path, (long long)work->batch_in_file,
                onnx_words(work->file->values[value].name).text);
    }
    return ERR_OK;
}
