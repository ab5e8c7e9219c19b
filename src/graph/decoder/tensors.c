#include "graph/decoder/tensors.h"

#include <string.h>

#include "core/text.h"
#include "graph/decoder/weigh.h"

enum { LARGEST_WIDTH = 1 << 22, OUTSIDE = -1 };

enum width {
    WIDTH_FREE,
    WIDTH_ONE,
    WIDTH_EMBEDDING,
    WIDTH_VOCABULARY,
    WIDTH_QUERY,
    WIDTH_KEY,
    WIDTH_VALUE,
    WIDTH_QUERY_KEY_VALUE,
    WIDTH_ATTENTION,
    WIDTH_QUERY_NORM, /* of one head, or of all */
    WIDTH_KEY_NORM,
    WIDTH_FEED_FORWARD,
    WIDTH_UP, /* twice the feed-forward where gate and up are one */
    WIDTH_EXPERT,
    WIDTH_EXPERT_COUNT,
};

static const struct row {
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

/* One tensor, taken apart. */
struct place {
    const struct row *row;
    int layer;
    bool is_bias;
};

struct reading {
    const struct gguf *gguf;
    struct decoder *decoder;
    struct error *why;
};

static enum err complain(const struct reading *reading, const struct gguf_tensor *tensor,
                         enum err code, const char *what)
{
    char name[80];
    str_format(name, sizeof name, "%.*s",
               (int)(tensor->name.length < 79 ? tensor->name.length : 79), tensor->name.bytes);
    for (char *at = name; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
    return err_set(reading->why, code, "%s: tensor '%s' %s", reading->gguf->file, name, what);
}

/* ---- names ---- */

/* Steps over a beginning. */
static bool take(struct gguf_text *text, const char *start)
{
    size_t length = strlen(start);
    if (text->length < length || memcmp(text->bytes, start, length) != 0)
        return false;
    *text = (struct gguf_text){text->bytes + length, text->length - length};
    return true;
}

static bool drop_end(struct gguf_text *text, const char *end)
{
    size_t length = strlen(end);
    if (text->length < length || memcmp(text->bytes + text->length - length, end, length) != 0)
        return false;
    text->length -= length;
    return true;
}

static bool take_layer(struct gguf_text *text, int *out)
{
    int number = 0, digits = 0;
    for (; text->length && text->bytes[0] >= '0' && text->bytes[0] <= '9' && digits < 6; digits++) {
        number = 10 * number + (text->bytes[0] - '0');
        *text = (struct gguf_text){text->bytes + 1, text->length - 1};
    }
    *out = number;
    return digits && take(text, ".");
}

/* False when the name is none that a decoder has. */
static bool find_place(struct gguf_text name, struct place *out)
{
    *out = (struct place){.layer = OUTSIDE};
    if (take(&name, "blk.") && !take_layer(&name, &out->layer))
        return false;
    out->is_bias = drop_end(&name, ".bias");
    if (!out->is_bias && !drop_end(&name, ".weight"))
        return false;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS && !out->row; i++)
        if (gguf_text_is(name, ROWS[i].name))
            out->row = &ROWS[i];
    return out->row;
}

/* Head, embedding and final norm are outside of the layers, all else but rotations is in them. */
static bool is_in_its_place(const struct place *place)
{
    bool is_rotation = place->row->component == DECODER_ATTN_QKV && place->row->role == ROLE_TABLE;
    bool is_outside = strcmp(place->row->name, "output_norm") == 0 ||
                      place->row->component == DECODER_EMBEDDING ||
                      place->row->component == DECODER_HEAD;
    return is_rotation || is_outside == (place->layer == OUTSIDE);
}

/* ---- shapes ---- */

/* What a width must be; 0: anything. */
static uint64_t width_of(const struct decoder *decoder, const struct decoder_layer *layer,
                         enum width width)
{
    switch (width) {
    case WIDTH_FREE:
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

static bool fits(const struct decoder *decoder, const struct decoder_layer *layer,
                 const struct row *row, const struct gguf_tensor *tensor, bool is_bias)
{
    const uint64_t *size = tensor->dimensions;
    uint64_t columns = width_of(decoder, layer, row->columns);
    uint64_t rows = width_of(decoder, layer, row->rows);
    bool is_norm = row->role == ROLE_NORM || row->role == ROLE_NORM_AFTER;
    bool is_per_head = row->columns == WIDTH_QUERY_NORM || row->columns == WIDTH_KEY_NORM;
    if (is_bias) /* of what comes out */
        return size[0] == (is_norm ? columns : rows) && size[1] == 1 && size[2] == 1;
    if (size[2] != (row->role == ROLE_EXPERTS ? decoder->experts : 1) || size[3] != 1)
        return false;
    if (rows && size[1] != rows)
        return false;
    return !columns || size[0] == columns || (is_per_head && size[0] == layer->key_size);
}

/* ---- adding up ---- */

static enum err add_tensor(const struct reading *reading, const struct gguf_tensor *tensor)
{
    struct decoder *decoder = reading->decoder;
    struct place place;
    if (!find_place(tensor->name, &place) || !is_in_its_place(&place) ||
        (place.is_bias && (place.row->role == ROLE_EXPERTS || place.row->role == ROLE_TABLE)))
        return complain(reading, tensor, ERR_UNSUPPORTED,
                        "is not one that a decoder of a known kind has");
    if (place.layer != OUTSIDE && (size_t)place.layer >= decoder->layer_count)
        return complain(reading, tensor, ERR_BAD_VALUE, "is of a layer that there should not be");
    struct decoder_layer *layer = &decoder->layers[place.layer == OUTSIDE ? 0 : place.layer];
    if (!fits(decoder, layer, place.row, tensor, place.is_bias))
        return complain(reading, tensor, ERR_BAD_VALUE, "has another shape than the keys say");
    struct decoder_added added = {
        .tensor = (enum decoder_tensor)(place.row - ROWS),
        .is_bias = place.is_bias,
        .columns = tensor->dimensions[0],
        .rows = tensor->dimensions[1],
        .matrices = tensor->dimensions[2],
        .bytes = tensor->bytes,
        .type = tensor->type,
        .is_stored = true,
    };
    decoder_weigh(decoder, place.layer, &added);
    return ERR_OK;
}

/* ---- what must be known before, and there afterwards ---- */

static const struct gguf_tensor *layer_tensor(const struct gguf *gguf, size_t layer,
                                              const char *name)
{
    char whole[64];
    str_format(whole, sizeof whole, "blk.%zu.%s.weight", layer, name);
    return gguf_tensor_named(gguf, whole);
}

static enum err read_widths(const struct reading *reading, size_t number)
{
    const struct gguf *gguf = reading->gguf;
    struct decoder_layer *layer = &reading->decoder->layers[number];
    const struct gguf_tensor *dense = layer_tensor(gguf, number, "ffn_down");
    const struct gguf_tensor *shared = layer_tensor(gguf, number, "ffn_down_shexp");
    const struct gguf_tensor *experts = layer_tensor(gguf, number, "ffn_down_exps");
    const struct gguf_tensor *up = layer_tensor(gguf, number, "ffn_up");
    if (dense && shared)
        return complain(reading, shared, ERR_UNSUPPORTED, "stands beside a dense one");
    dense = dense ? dense : shared;
    if ((dense && dense->dimensions[0] > LARGEST_WIDTH) ||
        (experts && experts->dimensions[0] > LARGEST_WIDTH))
        return complain(reading, dense ? dense : experts, ERR_BAD_VALUE, "is absurdly wide");
    layer->feed_forward = dense ? dense->dimensions[0] : 0;
    layer->expert_feed_forward = experts ? experts->dimensions[0] : 0;
    layer->is_fused = up && up->dimensions[1] == 2 * layer->feed_forward;
    layer->is_gated = layer->is_fused || layer_tensor(gguf, number, "ffn_gate") ||
                      layer_tensor(gguf, number, "ffn_gate_shexp") ||
                      layer_tensor(gguf, number, "ffn_gate_exps");
    return ERR_OK;
}

static enum err read_vocabulary(const struct reading *reading)
{
    struct decoder *decoder = reading->decoder;
    const struct gguf_tensor *embedding = gguf_tensor_named(reading->gguf, "token_embd.weight");
    if (!embedding)
        return err_set(reading->why, ERR_BAD_VALUE, "%s: tensor 'token_embd.weight' is missing",
                       reading->gguf->file);
    decoder->vocabulary = embedding->dimensions[1];
    if (decoder->vocabulary == 0 || decoder->vocabulary > UINT32_MAX)
        return complain(reading, embedding, ERR_BAD_VALUE, "has another shape than the keys say");
    decoder->has_tied_head = !gguf_tensor_named(reading->gguf, "output.weight");
    return ERR_OK;
}

static uint64_t matrix_parameters(const struct decoder_layer *layer,
                                  enum decoder_component component)
{
    return layer->parts[component].parameters - layer->parts[component].vector_parameters;
}

static uint64_t elements(const struct gguf_tensor *tensor)
{
    return tensor ? tensor->elements : 0;
}

/* Each matrix has the right shape; have they all come, and none in two forms? */
static enum err check_layer(const struct reading *reading, size_t number)
{
    const struct decoder *decoder = reading->decoder;
    const struct decoder_layer *layer = &decoder->layers[number];
    uint64_t width = layer->feed_forward + decoder->experts * layer->expert_feed_forward;
    uint64_t routers = elements(layer_tensor(reading->gguf, number, "ffn_gate_inp")) +
                       elements(layer_tensor(reading->gguf, number, "ffn_gate_inp_shexp"));
    const struct {
        enum decoder_component component;
        uint64_t wanted;
    } CHECKS[] = {
        {DECODER_ATTN_QKV, decoder->embedding * width_of(decoder, layer, WIDTH_QUERY_KEY_VALUE)},
        {DECODER_ATTN_OUT, decoder->embedding * width_of(decoder, layer, WIDTH_ATTENTION)},
        {DECODER_FFN_GATE_UP, (decoder->embedding * width << layer->is_gated) + routers},
        {DECODER_FFN_DOWN, decoder->embedding * width},
    };
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++)
        if (CHECKS[i].wanted == 0 ||
            matrix_parameters(layer, CHECKS[i].component) != CHECKS[i].wanted)
            return err_set(reading->why, ERR_BAD_VALUE,
                           "%s: layer %zu has %llu parameters of %s, and its shape needs %llu",
                           reading->gguf->file, number,
                           (unsigned long long)matrix_parameters(layer, CHECKS[i].component),
                           decoder_component_words(CHECKS[i].component),
                           (unsigned long long)CHECKS[i].wanted);
    return ERR_OK;
}

enum err decoder_tensors_read(const struct gguf *gguf, struct decoder *out, struct error *why)
{
    struct reading reading = {gguf, out, why};
    enum err err = read_vocabulary(&reading);
    for (size_t i = 0; i < out->layer_count && !err; i++)
        err = read_widths(&reading, i);
    for (size_t i = 0; i < gguf->tensor_count && !err; i++)
        err = add_tensor(&reading, &gguf->tensors[i]);
    for (size_t i = 0; i < out->layer_count && !err; i++)
        err = check_layer(&reading, i);
    return err;
}
