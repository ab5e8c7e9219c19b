/* Decoders in GGUF files, as stored by llama.cpp and Ollama.  The keys ("llama.block_count" etc.) give the sizes; every
 * tensor is then looked up in decoder_tensors.def, compared with those sizes and added to its component.  The reader
 * "gguf" is at the end. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/decoder.h"
#include "graph/gguf.h"
#include "graph/model_files.h"
#include "graph/reader.h"

/* Far above any model; products of three such sizes fit into 64 bits. */
enum {
    MAX_LAYERS = 1 << 16,
    MAX_SIZE = 1 << 22,
    MAX_HEADS = 1 << 16,
    MAX_EXPERTS = 1 << 16,
};

/* Supported architectures, by general.architecture.  With a period of n, every n-th layer has full attention, the
 * others a sliding window; 0: all have full attention. */
static const struct gguf_family {
    const char *name;
    enum decoder_activation activation;
    uint64_t period, window; /* in layers, in tokens (the default) */
} FAMILIES[] = {
    {"llama", DECODER_SILU, 0, 0}, /* also Mistral, Mixtral and SmolLM, as usually converted */
    {"mistral3", DECODER_SILU, 0, 0}, {"smollm3", DECODER_SILU, 0, 0},
    {"granite", DECODER_SILU, 0, 0},  {"qwen2", DECODER_SILU, 0, 0},
    {"qwen2moe", DECODER_SILU, 0, 0}, {"qwen3", DECODER_SILU, 0, 0},
    {"qwen3moe", DECODER_SILU, 0, 0}, {"olmo2", DECODER_SILU, 0, 0},
    {"gemma", DECODER_GELU, 0, 0},    {"gemma2", DECODER_GELU, 2, 4096},
    {"gemma3", DECODER_GELU, 6, 0},   {"phi2", DECODER_GELU, 0, 0},
    {"phi3", DECODER_SILU, 0, 0},
};

/* The first failure is kept; sizes read after it are harmless. */
struct reading {
    const struct gguf *gguf;
    struct decoder *decoder;
    enum err err;
    struct error *why;
};

/* ---- one key ---- */

struct key_name {
    char text[128];
};

static struct key_name key_name(const struct reading *reading, const char *key)
{
    struct key_name name = {{0}};
    chars_format(name.text, "%s.%s", reading->decoder->architecture, key);
    return name;
}

static const struct gguf_value *find_key(const struct reading *reading, const char *key)
{
    return gguf_find(reading->gguf, key_name(reading, key).text);
}

static void key_failed(struct reading *reading, const char *key, const char *what)
{
    if (!reading->err)
        reading->err = err_set(reading->why, ERR_BAD_VALUE, "%s: key '%s' %s", reading->gguf->file,
                               key_name(reading, key).text, what);
}

enum { WHOLE_MODEL = -1 }; /* in place of a layer */

/* 1 .. limit.  A missing key gives `otherwise`, and is an error if that is 0.  For a layer there is one number for all
 * of them, or an array with one per layer. */
static uint64_t read_size(struct reading *reading, const char *key, int layer, uint64_t limit,
                          uint64_t otherwise)
{
    const struct gguf_value *value = find_key(reading, key);
    bool is_array = value && value->is_array && layer != WHOLE_MODEL;
    uint64_t size = otherwise;
    if (!value && !otherwise)
        key_failed(reading, key, "is missing");
    else if (is_array && value->count != reading->decoder->layer_count)
        key_failed(reading, key, "does not have one number per layer");
    else if (value && (value->is_array != is_array ||
                       !gguf_item_u64(value, is_array ? (uint64_t)layer : 0, &size) || size == 0 ||
                       size > limit))
        key_failed(reading, key, "is out of range");
    return reading->err || size == 0 ? 1 : size;
}

/* ---- sizes from keys ---- */

static enum err read_architecture(const struct reading *reading, const struct gguf_family **family)
{
    const struct gguf *gguf = reading->gguf;
    struct decoder *decoder = reading->decoder;
    struct slice architecture, name;
    uint64_t parts;
    if (gguf_u64(gguf, "split.count", &parts) && parts > 1)
        return err_set(reading->why, ERR_UNSUPPORTED,
                       "%s: split into %llu files, which is not supported: merge them first "
                       "(llama-gguf-split --merge)",
                       gguf->file, (unsigned long long)parts);
    if (!gguf_string(gguf, "general.architecture", &architecture))
        return err_set(reading->why, ERR_BAD_VALUE, "%s: key 'general.architecture' is missing",
                       gguf->file);
    model_copy_plain(architecture, decoder->architecture, sizeof decoder->architecture);
    if (gguf_string(gguf, "general.name", &name))
        model_copy_plain(name, decoder->name, sizeof decoder->name);
    *family = NULL;
    for (size_t i = 0; i < COUNT_OF(FAMILIES); i++)
        if (slice_is(architecture, FAMILIES[i].name))
            *family = &FAMILIES[i];
    if (!*family)
        return err_set(reading->why, ERR_UNSUPPORTED, "%s: unknown architecture '%s'", gguf->file,
                       decoder->architecture);
    decoder->activation = (*family)->activation;
    return ERR_OK;
}

static void read_layer_count(struct reading *reading)
{
    struct decoder *decoder = reading->decoder;
    uint64_t count = read_size(reading, "block_count", WHOLE_MODEL, MAX_LAYERS, 0);
    if (count > reading->gguf->tensor_count)
        key_failed(reading, "block_count", "is larger than the number of tensors");
    if (reading->err)
        return;
    decoder->layers = xcalloc(count, sizeof *decoder->layers);
    decoder->layer_count = count;
}

static void read_experts(struct reading *reading)
{
    struct decoder *decoder = reading->decoder;
    const struct gguf_value *count = find_key(reading, "expert_count");
    uint64_t experts = 0;
    if (!count || (gguf_item_u64(count, 0, &experts) && experts == 0))
        return;
    decoder->experts = read_size(reading, "expert_count", WHOLE_MODEL, MAX_EXPERTS, 0);
    decoder->experts_used =
        read_size(reading, "expert_used_count", WHOLE_MODEL, decoder->experts, 0);
}

static void read_heads(struct reading *reading, int number)
{
    struct decoder_layer *layer = &reading->decoder->layers[number];
    layer->heads = read_size(reading, "attention.head_count", number, MAX_HEADS, 0);
    layer->heads_kv =
        read_size(reading, "attention.head_count_kv", number, MAX_HEADS, layer->heads);
    uint64_t size = reading->decoder->embedding / layer->heads;
    layer->key_size = read_size(reading, "attention.key_length", WHOLE_MODEL, MAX_HEADS, size);
    layer->value_size = read_size(reading, "attention.value_length", WHOLE_MODEL, MAX_HEADS, size);
    if (layer->heads % layer->heads_kv)
        key_failed(reading, "attention.head_count_kv", "does not divide the number of heads");
}

/* Layers with a sliding window: a file gives the period, or a flag per layer. */
static void read_windows(struct reading *reading, const struct gguf_family *family)
{
    static const char PATTERN[] = "attention.sliding_window_pattern";
    struct decoder *decoder = reading->decoder;
    const struct gguf_value *pattern = find_key(reading, PATTERN);
    uint64_t window = family->window, period = family->period;
    if (!period)
        return;
    if (find_key(reading, "attention.sliding_window"))
        window = read_size(reading, "attention.sliding_window", WHOLE_MODEL, UINT32_MAX, 0);
    if (pattern && pattern->is_array && pattern->count != decoder->layer_count)
        key_failed(reading, PATTERN, "does not have one item per layer");
    if (pattern && !pattern->is_array && (!gguf_item_u64(pattern, 0, &period) || period == 0))
        key_failed(reading, PATTERN, "is out of range");
    for (size_t i = 0; i < decoder->layer_count && !reading->err; i++) {
        int64_t has_window = i % period < period - 1;
        if (pattern && pattern->is_array && !gguf_item_i64(pattern, i, &has_window))
            key_failed(reading, PATTERN, "is not a list of numbers");
        decoder->layers[i].window = has_window ? window : 0;
    }
}

static void read_keys(struct reading *reading)
{
    struct decoder *decoder = reading->decoder;
    const struct gguf_family *family;
    reading->err = read_architecture(reading, &family);
    if (reading->err)
        return;
    read_layer_count(reading);
    decoder->embedding = read_size(reading, "embedding_length", WHOLE_MODEL, MAX_SIZE, 0);
    if (find_key(reading, "context_length"))
        decoder->context = read_size(reading, "context_length", WHOLE_MODEL, UINT32_MAX, 0);
    read_experts(reading);
    for (size_t i = 0; i < decoder->layer_count && !reading->err; i++)
        read_heads(reading, (int)i);
    read_windows(reading, family);
}

/* ---- names of tensors ---- */

enum width {
    WIDTH_FREE,
    WIDTH_NEVER, /* a tensor that occurs only with a config.json */
    WIDTH_ONE,
    WIDTH_EMBEDDING,
    WIDTH_VOCABULARY,
    WIDTH_QUERY,
    WIDTH_KEY,
    WIDTH_VALUE,
    WIDTH_QUERY_KEY_VALUE,
    WIDTH_ATTENTION,
    WIDTH_QUERY_NORM, /* one head, or all of them */
    WIDTH_KEY_NORM,
    WIDTH_FEED_FORWARD,
    WIDTH_UP, /* twice the feed-forward where gate and up are fused */
    WIDTH_EXPERT,
    WIDTH_EXPERT_COUNT,
};

enum decoder_role { ROLE_MATRIX, ROLE_EXPERTS, ROLE_NORM, ROLE_TABLE };

static const struct tensor_row {
    const char *name;
    enum decoder_component component;
    enum decoder_role role;
    enum width columns, rows;
} ROWS[DECODER_TENSOR_COUNT] = {
#define DECODER_TENSOR(constant, name, component, role, columns, rows)                             \
    {name, DECODER_##component, ROLE_##role, WIDTH_##columns, WIDTH_##rows},
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
};

/* A parsed tensor name: "blk.3.attn_q.bias". */
struct tensor_place {
    const struct tensor_row *row;
    int layer; /* or DECODER_OUTSIDE */
    bool is_bias;
};

static void tensor_failed(struct reading *reading, const struct gguf_tensor *tensor, enum err code,
                          const char *what)
{
    if (!reading->err)
        reading->err = err_set(reading->why, code, "%s: tensor '%s' %s", reading->gguf->file,
                               model_label(tensor->name).text, what);
}

static bool strip_prefix(struct slice *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (!slice_starts(*text, prefix))
        return false;
    *text = (struct slice){text->start + length, text->length - length};
    return true;
}

static bool strip_suffix(struct slice *text, const char *suffix)
{
    size_t length = strlen(suffix);
    if (text->length < length || memcmp(text->start + text->length - length, suffix, length) != 0)
        return false;
    text->length -= length;
    return true;
}

static bool strip_layer(struct slice *text, int *out)
{
    int number = 0, digits = 0;
    for (; text->length && text->start[0] >= '0' && text->start[0] <= '9' && digits < 6; digits++) {
        number = 10 * number + (text->start[0] - '0');
        *text = (struct slice){text->start + 1, text->length - 1};
    }
    *out = number;
    return digits && strip_prefix(text, ".");
}

/* False if it is not the name of a decoder's tensor. */
static bool find_place(struct slice name, struct tensor_place *out)
{
    *out = (struct tensor_place){.layer = DECODER_OUTSIDE};
    if (strip_prefix(&name, "blk.") && !strip_layer(&name, &out->layer))
        return false;
    out->is_bias = strip_suffix(&name, ".bias");
    if (!out->is_bias && !strip_suffix(&name, ".weight"))
        return false;
    for (size_t i = 0; i < COUNT_OF(ROWS) && !out->row; i++)
        if (slice_is(name, ROWS[i].name) && ROWS[i].columns != WIDTH_NEVER)
            out->row = &ROWS[i];
    return out->row;
}

/* Head, embedding and final norm are outside the layers; rotary factors may be in either; everything else is inside. */
static bool is_valid_place(const struct tensor_place *place)
{
    const struct tensor_row *row = place->row;
    bool is_rotary = row->component == DECODER_ATTN_QKV && row->role == ROLE_TABLE;
    bool is_outside = str_equal(row->name, "output_norm") || row->component == DECODER_EMBEDDING ||
                      row->component == DECODER_HEAD;
    if (place->is_bias && (row->role == ROLE_EXPERTS || row->role == ROLE_TABLE))
        return false;
    return is_rotary || is_outside == (place->layer == DECODER_OUTSIDE);
}

/* ---- shapes of tensors ---- */

/* The required width; 0: any. */
static uint64_t width_of(const struct decoder *decoder, const struct decoder_layer *layer,
                         enum width width)
{
    switch (width) {
    case WIDTH_FREE:
    case WIDTH_NEVER:
        return 0;
    case WIDTH_ONE:
        return 1;
    case WIDTH_EMBEDDING:
        return decoder->embedding;
    case WIDTH_VOCABULARY:
        return decoder->vocabulary;
    case WIDTH_QUERY:
    case WIDTH_QUERY_NORM:
        return layer->heads * layer->key_size;
    case WIDTH_KEY:
    case WIDTH_KEY_NORM:
        return layer->heads_kv * layer->key_size;
    case WIDTH_VALUE:
        return layer->heads_kv * layer->value_size;
    case WIDTH_QUERY_KEY_VALUE:
        return layer->heads * layer->key_size +
               layer->heads_kv * (layer->key_size + layer->value_size);
    case WIDTH_ATTENTION:
        return layer->heads * layer->value_size;
    case WIDTH_FEED_FORWARD:
        return layer->feed_forward;
    case WIDTH_UP:
        return layer->feed_forward << layer->is_fused;
    case WIDTH_EXPERT:
        return layer->expert_feed_forward;
    case WIDTH_EXPERT_COUNT:
        return decoder->experts;
    }
    return 0;
}

static bool shape_matches(const struct decoder *decoder, const struct decoder_layer *layer,
                          const struct tensor_place *place, const struct gguf_tensor *tensor)
{
    const struct tensor_row *row = place->row;
    const uint64_t *dims = tensor->dims;
    uint64_t columns = width_of(decoder, layer, row->columns);
    uint64_t rows = width_of(decoder, layer, row->rows);
    bool is_norm = row->role == ROLE_NORM;
    bool may_be_per_head = row->columns == WIDTH_QUERY_NORM || row->columns == WIDTH_KEY_NORM;
    if (place->is_bias) /* one per output */
        return dims[0] == (is_norm ? columns : rows) && dims[1] == 1 && dims[2] == 1;
    if (dims[2] != (row->role == ROLE_EXPERTS ? decoder->experts : 1) || dims[3] != 1)
        return false;
    if (rows && dims[1] != rows)
        return false;
    return !columns || dims[0] == columns || (may_be_per_head && dims[0] == layer->key_size);
}

static void add_tensor(struct reading *reading, const struct gguf_tensor *tensor)
{
    struct decoder *decoder = reading->decoder;
    struct tensor_place place;
    if (!find_place(tensor->name, &place) || !is_valid_place(&place)) {
        tensor_failed(reading, tensor, ERR_UNSUPPORTED, "is not one of a known decoder");
        return;
    }
    bool is_inside = place.layer != DECODER_OUTSIDE;
    if (is_inside && (size_t)place.layer >= decoder->layer_count)
        tensor_failed(reading, tensor, ERR_BAD_VALUE, "has a layer beyond block_count");
    else if (!shape_matches(decoder, &decoder->layers[is_inside ? place.layer : 0], &place, tensor))
        tensor_failed(reading, tensor, ERR_BAD_VALUE, "has a shape that contradicts the keys");
    if (reading->err)
        return;
    struct decoder_entry entry = {
        .tensor = (enum decoder_tensor)(place.row - ROWS),
        .is_bias = place.is_bias,
        .columns = tensor->dims[0],
        .rows = tensor->dims[1],
        .matrices = tensor->dims[2],
        .bytes = tensor->bytes,
        .type = tensor->type,
        .is_stored = true,
    };
    decoder_add_tensor(decoder, place.layer, &entry);
}

/* ---- all tensors ---- */

static const struct gguf_tensor *layer_tensor(const struct gguf *gguf, size_t layer,
                                              const char *name)
{
    char full[64];
    chars_format(full, "blk.%zu.%s.weight", layer, name);
    return gguf_tensor_named(gguf, full);
}

static void read_vocabulary(struct reading *reading)
{
    struct decoder *decoder = reading->decoder;
    const struct gguf_tensor *embedding = gguf_tensor_named(reading->gguf, "token_embd.weight");
    if (!embedding) {
        reading->err = err_set(reading->why, ERR_BAD_VALUE,
                               "%s: tensor 'token_embd.weight' is missing", reading->gguf->file);
        return;
    }
    decoder->vocabulary = embedding->dims[1];
    if (decoder->vocabulary == 0 || decoder->vocabulary > UINT32_MAX)
        tensor_failed(reading, embedding, ERR_BAD_VALUE, "has a shape that contradicts the keys");
    decoder->has_tied_embeddings = !gguf_tensor_named(reading->gguf, "output.weight");
}

/* Widths of the feed-forward, which keys do not give for every architecture. */
static void read_widths(struct reading *reading, size_t number)
{
    const struct gguf *gguf = reading->gguf;
    struct decoder_layer *layer = &reading->decoder->layers[number];
    const struct gguf_tensor *dense = layer_tensor(gguf, number, "ffn_down");
    const struct gguf_tensor *shared = layer_tensor(gguf, number, "ffn_down_shexp");
    const struct gguf_tensor *experts = layer_tensor(gguf, number, "ffn_down_exps");
    const struct gguf_tensor *up = layer_tensor(gguf, number, "ffn_up");
    if (dense && shared)
        tensor_failed(reading, shared, ERR_UNSUPPORTED, "conflicts with a dense feed-forward");
    dense = dense ? dense : shared;
    if ((dense && dense->dims[0] > MAX_SIZE) || (experts && experts->dims[0] > MAX_SIZE))
        tensor_failed(reading, dense ? dense : experts, ERR_BAD_VALUE, "is too wide");
    layer->feed_forward = dense ? dense->dims[0] : 0;
    layer->expert_feed_forward = experts ? experts->dims[0] : 0;
    layer->is_fused = up && up->dims[1] == 2 * layer->feed_forward;
    layer->is_gated = layer->is_fused || layer_tensor(gguf, number, "ffn_gate") ||
                      layer_tensor(gguf, number, "ffn_gate_shexp") ||
                      layer_tensor(gguf, number, "ffn_gate_exps");
}

static uint64_t matrix_parameters(const struct decoder_layer *layer,
                                  enum decoder_component component)
{
    uint64_t parameters = 0;
    for (size_t i = 0; i < DECODER_TENSOR_COUNT; i++) {
        const struct decoder_weight *weight = &layer->weights[i];
        if (ROWS[i].component == component && ROWS[i].role != ROLE_TABLE)
            parameters += weight->columns * weight->rows * weight->matrices;
    }
    return parameters;
}

static uint64_t elements(const struct gguf_tensor *tensor)
{
    return tensor ? tensor->elements : 0;
}

/* Each matrix has the right shape: checks that all exist, and none in two forms. */
static void check_layer(struct reading *reading, size_t number)
{
    const struct decoder *decoder = reading->decoder;
    const struct decoder_layer *layer = &decoder->layers[number];
    uint64_t width = layer->feed_forward + decoder->experts * layer->expert_feed_forward;
    uint64_t routers = elements(layer_tensor(reading->gguf, number, "ffn_gate_inp")) +
                       elements(layer_tensor(reading->gguf, number, "ffn_gate_inp_shexp"));
    const struct {
        enum decoder_component component;
        uint64_t expected;
    } CHECKS[] = {
        {DECODER_ATTN_QKV, decoder->embedding * width_of(decoder, layer, WIDTH_QUERY_KEY_VALUE)},
        {DECODER_ATTN_OUT, decoder->embedding * width_of(decoder, layer, WIDTH_ATTENTION)},
        {DECODER_FFN_GATE_UP, (decoder->embedding * width << layer->is_gated) + routers},
        {DECODER_FFN_DOWN, decoder->embedding * width},
    };
    for (size_t i = 0; i < COUNT_OF(CHECKS) && !reading->err; i++) {
        uint64_t found = matrix_parameters(layer, CHECKS[i].component);
        if (CHECKS[i].expected == 0 || found != CHECKS[i].expected)
            reading->err = err_set(reading->why, ERR_BAD_VALUE,
                                   "%s: layer %zu has %llu parameters in %s, expected %llu",
                                   reading->gguf->file, number, (unsigned long long)found,
                                   decoder_component_label(CHECKS[i].component),
                                   (unsigned long long)CHECKS[i].expected);
    }
}

static void read_tensors(struct reading *reading)
{
    size_t layers = reading->decoder->layer_count;
    read_vocabulary(reading);
    for (size_t i = 0; i < layers && !reading->err; i++)
        read_widths(reading, i);
    for (size_t i = 0; i < reading->gguf->tensor_count && !reading->err; i++)
        add_tensor(reading, &reading->gguf->tensors[i]);
    for (size_t i = 0; i < layers && !reading->err; i++)
        check_layer(reading, i);
}

enum err decoder_read(const struct gguf *gguf, struct decoder *out, struct error *why)
{
    struct reading reading = {.gguf = gguf, .decoder = out, .why = why};
    *out = (struct decoder){0};
    read_keys(&reading);
    if (!reading.err)
        read_tensors(&reading);
    if (reading.err)
        decoder_release(out);
    return reading.err;
}

/* ---- the reader ---- */

static int probe(const char *source, const unsigned char *head, size_t length)
{
    (void)source;
    return length >= 4 && memcmp(head, "GGUF", 4) == 0 ? 100 : 0;
}

static enum err open_file(const char *source, struct model *model, struct error *why)
{
    struct gguf gguf;
    struct decoder *decoder = model->state;
    enum err err = gguf_open(source, &gguf, why);
    if (err)
        return err;
    err = decoder_read(&gguf, decoder, why);
    gguf_close(&gguf);
    if (err)
        return err;
    model->has_phases = true;
    model->context_length = (int64_t)decoder->context;
    if (decoder->name[0])
        chars_copy(model->name, decoder->name);
    return ERR_OK;
}

static enum err build(const struct model *model, struct graph_options *options, struct graph *out,
                      struct error *why)
{
    return decoder_graph(model->state, options, out, why);
}

static void close_file(struct model *model)
{
    decoder_release(model->state);
}

const struct graph_reader graph_reader_gguf = {
    .name = "gguf",
    .summary = "GGUF files with a Llama-like decoder, as used by llama.cpp and Ollama",
    .probe = probe,
    .state_size = sizeof(struct decoder),
    .open = open_file,
    .build = build,
    .close = close_file,
};
