/* The tensors of a decoder, each added once to its layer and to the sums of the model. */
#include "graph/decoder.h"

#include <stdlib.h>

/* ---- tensors by component ---- */

static const struct {
    const char *name;
    enum decoder_component component;
} TENSORS[DECODER_TENSOR_COUNT] = {
#define DECODER_TENSOR(constant, name, component, role, columns, rows) {name, DECODER_##component},
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
};

enum graph_op decoder_activation_op(enum decoder_activation activation)
{
    static const enum graph_op OPS[] = {[DECODER_SILU] = GRAPH_SILU,
                                        [DECODER_GELU] = GRAPH_GELU,
                                        [DECODER_GELU_NEW] = GRAPH_GELU_NEW,
                                        [DECODER_RELU] = GRAPH_RELU,
                                        [DECODER_RELU2] = GRAPH_RELU2};
    return OPS[activation];
}

const char *decoder_tensor_name(enum decoder_tensor tensor)
{
    return TENSORS[tensor].name;
}

enum decoder_component decoder_tensor_component(enum decoder_tensor tensor)
{
    return TENSORS[tensor].component;
}

static uint64_t elements(const struct decoder_entry *entry)
{
    return entry->columns * entry->rows * entry->matrices;
}

static void add_weight(struct decoder_weight *weight, const struct decoder_entry *entry)
{
    weight->is_stored = entry->is_stored;
    if (entry->is_bias) {
        weight->bias_elements = elements(entry);
        weight->bias_bytes = entry->bytes;
        return;
    }
    weight->columns = entry->columns;
    weight->rows = entry->rows;
    weight->matrices = entry->matrices;
    weight->bytes = entry->bytes;
    weight->type = entry->type;
}

void decoder_add_tensor(struct decoder *decoder, int layer, const struct decoder_entry *entry)
{
    struct decoder_layer *inside = layer < 0 ? NULL : &decoder->layers[layer];
    enum decoder_component component = TENSORS[entry->tensor].component;
    add_weight(inside ? &inside->weights[entry->tensor] : &decoder->outside_weights[entry->tensor],
               entry);
    if (inside && component == DECODER_NORM && entry->is_bias)
        inside->has_layer_norm = true;
    decoder->parameters += elements(entry);
    decoder->bytes += entry->bytes;
}

void decoder_release(struct decoder *decoder)
{
    free(decoder->layers);
    *decoder = (struct decoder){0};
}
