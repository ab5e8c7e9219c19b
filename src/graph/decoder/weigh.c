#include "graph/decoder/weigh.h"

static const struct {
    const char *name;
    enum decoder_component component;
    enum decoder_role role;
} TENSORS[DECODER_TENSOR_COUNT] = {
#define DECODER_TENSOR(constant, name, component, role, columns, rows)                             \
    {name, DECODER_##component, ROLE_##role},
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
};

const char *decoder_tensor_name(enum decoder_tensor tensor)
{
    return TENSORS[tensor].name;
}

enum decoder_component decoder_tensor_component(enum decoder_tensor tensor)
{
    return TENSORS[tensor].component;
}

static uint64_t elements(const struct decoder_added *added)
{
    return added->columns * added->rows * added->matrices;
}

/* A matrix gives the type; vectors only where there is none. */
static void note_type(struct decoder_part *part, const struct decoder_added *added, bool is_vector)
{
    bool has_matrix = part->parameters > part->vector_parameters;
    if (is_vector && has_matrix)
        return;
    if (!is_vector && !has_matrix)
        part->largest = 0;
    else if (part->type && part->type != added->type)
        part->is_mixed = true;
    if (added->bytes > part->largest) {
        part->largest = added->bytes;
        part->type = added->type;
    }
}

static void add_to_part(struct decoder_part *part, const struct decoder_added *added)
{
    enum decoder_role role = TENSORS[added->tensor].role;
    bool is_embedding = TENSORS[added->tensor].component == DECODER_EMBEDDING;
    bool is_vector = added->is_bias || role == ROLE_NORM || role == ROLE_NORM_AFTER ||
                     (role == ROLE_TABLE && !is_embedding);
    note_type(part, added, is_vector);
    part->parameters += elements(added);
    part->bytes += added->bytes;
    if (is_vector)
        part->vector_parameters += elements(added);
    if (role == ROLE_EXPERTS) {
        part->expert_parameters += elements(added);
        part->expert_bytes += added->bytes;
    }
    if (added->is_bias)
        part->bias_parameters += elements(added);
}

/* Of norms of heads, one weight may serve all heads. */
static uint64_t numbers_normalised(const struct decoder_layer *layer,
                                   const struct decoder_added *added)
{
    if (added->tensor == DECODER_TENSOR_ATTN_Q_NORM)
        return layer->heads * layer->key_size;
    if (added->tensor == DECODER_TENSOR_ATTN_K_NORM)
        return layer->heads_kv * layer->key_size;
    return added->columns;
}

static void add_norm(struct decoder_layer *layer, const struct decoder_added *added)
{
    if (added->is_bias)
        layer->norm_has_mean = true;
    else if (TENSORS[added->tensor].role == ROLE_NORM)
        layer->norm_numbers += numbers_normalised(layer, added);
    else
        layer->norm_numbers_after += numbers_normalised(layer, added);
}

static void add_weight(struct decoder_weight *weight, const struct decoder_added *added)
{
    weight->is_stored = added->is_stored;
    if (added->is_bias) {
        weight->bias_numbers = elements(added);
        weight->bias_bytes = added->bytes;
        return;
    }
    weight->columns = added->columns;
    weight->rows = added->rows;
    weight->matrices = added->matrices;
    weight->bytes = added->bytes;
}

void decoder_weigh(struct decoder *decoder, int layer, const struct decoder_added *added)
{
    struct decoder_layer *inside = layer < 0 ? NULL : &decoder->layers[layer];
    enum decoder_component component = TENSORS[added->tensor].component;
    add_to_part(inside ? &inside->parts[component] : &decoder->outside[component], added);
    add_weight(inside ? &inside->weights[added->tensor] : &decoder->outside_weights[added->tensor],
               added);
    if (inside && component == DECODER_NORM)
        add_norm(inside, added);
    decoder->parameters += elements(added);
    decoder->bytes += added->bytes;
}
