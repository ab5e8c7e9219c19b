/* gguf_show FILE [TOKENS CACHED SEQUENCES all|last|pruned|none]: a GGUF file as JSON on standard output, for the tests
 * that compare our reader with others: keys, tensors, the decoder, and with the numbers what a pass costs by layer and
 * component, with the logits of these tokens ("pruned": of the last, and after the last attention nothing else).  What
 * cannot be read is {"error": ..., "code": ...}; a decoder that cannot be is the same under "decoder". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "estimate/partition.h"
#include "graph/decoder.h"
#include "graph/gguf.h"

static void show_u64(struct json *json, const char *key, uint64_t value)
{
    char digits[24];
    str_format(digits, sizeof digits, "%" PRIu64, value);
    json_raw(json, key, digits);
}

static void show_error(struct json *json, const char *key, const struct error *why)
{
    json_object(json, key);
    json_string(json, "error", why->text);
    json_integer(json, "code", why->code);
    json_object_end(json);
}

static double float_item(const struct gguf_value *value, uint64_t index)
{
    float narrow;
    double wide;
    if (value->type == GGUF_F64) {
        memcpy(&wide, value->data + index * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, value->data + index * sizeof narrow, sizeof narrow);
    return (double)narrow;
}

static void show_item(struct json *json, const struct gguf_value *value, uint64_t index)
{
    uint64_t positive;
    int64_t number;
    if (value->type == GGUF_BOOL && gguf_item_i64(value, index, &number))
        json_bool(json, NULL, number);
    else if (gguf_item_u64(value, index, &positive))
        show_u64(json, NULL, positive);
    else if (gguf_item_i64(value, index, &number))
        json_integer(json, NULL, number);
    else
        json_number(json, NULL, float_item(value, index));
}

static void show_value(struct json *json, const struct gguf_value *value)
{
    struct slice text = {0};
    json_object(json, NULL);
    json_string_bytes(json, "key", value->key.start, value->key.length);
    json_integer(json, "type", value->type);
    json_bool(json, "is_array", value->is_array);
    json_array(json, "items");
    while (gguf_next_string(value, &text))
        json_string_bytes(json, NULL, text.start, text.length);
    for (uint64_t i = 0; value->type != GGUF_STRING && i < value->count; i++)
        show_item(json, value, i);
    json_array_end(json);
    json_object_end(json);
}

static void show_tensor(struct json *json, const struct gguf_tensor *tensor)
{
    json_object(json, NULL);
    json_string_bytes(json, "name", tensor->name.start, tensor->name.length);
    json_string(json, "type", tensor->type->name);
    json_integer(json, "number", tensor->type->number);
    json_array(json, "dimensions");
    for (unsigned i = 0; i < tensor->rank; i++)
        show_u64(json, NULL, tensor->dims[i]);
    json_array_end(json);
    show_u64(json, "elements", tensor->elements);
    show_u64(json, "bytes", tensor->bytes);
    show_u64(json, "offset", tensor->offset);
    json_object_end(json);
}

/* Parameters and bytes by component. */
static void show_parts(struct json *json, const struct decoder_weight *weights)
{
    json_object(json, "parts");
    for (int c = 0; c < DECODER_COMPONENT_COUNT; c++) {
        uint64_t parameters = 0, bytes = 0;
        for (int i = 0; i < DECODER_TENSOR_COUNT; i++) {
            const struct decoder_weight *weight = &weights[i];
            if ((int)decoder_tensor_component((enum decoder_tensor)i) != c)
                continue;
            parameters += weight->columns * weight->rows * weight->matrices + weight->bias_elements;
            bytes += weight->bytes + weight->bias_bytes;
        }
        if (!parameters)
            continue;
        json_object(json, decoder_component_name((enum decoder_component)c));
        show_u64(json, "parameters", parameters);
        show_u64(json, "bytes", bytes);
        json_object_end(json);
    }
    json_object_end(json);
}

static void show_layer(struct json *json, const struct decoder_layer *layer)
{
    json_object(json, NULL);
    show_u64(json, "heads", layer->heads);
    show_u64(json, "heads_kv", layer->heads_kv);
    show_u64(json, "key_size", layer->key_size);
    show_u64(json, "value_size", layer->value_size);
    show_u64(json, "feed_forward", layer->feed_forward);
    show_u64(json, "expert_feed_forward", layer->expert_feed_forward);
    show_u64(json, "window", layer->window);
    json_bool(json, "is_gated", layer->is_gated);
    show_parts(json, layer->weights);
    json_object_end(json);
}

static void show_cost(struct json *json, const char *key, const struct graph_cost *cost)
{
    static const struct precision_widths WIDTHS = {
        .weight = 2, .activation = 4, .cache = 2, .keeps_stored = true};
    json_object(json, key);
    json_number(json, "matrix_flops", 2 * cost->macs);
    json_number(json, "elementwise_flops", cost->elementwise);
    json_number(json, "weight_bytes", graph_bytes(&cost->weights, &WIDTHS));
    json_number(json, "activation_read_bytes", 4 * cost->in.activations);
    json_number(json, "activation_write_bytes", 4 * cost->out.activations);
    json_number(json, "cache_read_bytes", 2 * cost->in.cached);
    json_number(json, "cache_write_bytes", 2 * cost->out.cached);
    json_object_end(json);
}

static struct graph_cost cost_of(const struct partition *partition, int layer,
                                 enum decoder_component component)
{
    struct graph_cost sum = {0};
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph *subgraph = &partition->subgraphs[i];
        if (subgraph->layer == layer && subgraph->component == component)
            graph_cost_add(&sum, &subgraph->cost);
    }
    return sum;
}

static void show_costs(struct json *json, const struct decoder *decoder, struct graph_options pass)
{
    struct graph graph = {0};
    struct partition partition;
    struct error why = {0};
    if (decoder_graph(decoder, &pass, &graph, &why)) {
        show_error(json, "cost", &why);
        graph_release(&graph);
        return;
    }
    partition_make(&graph, PARTITION_BY_COMPONENT, &partition);
    json_object(json, "cost");
    json_array(json, "layers"); /* first those outside the layers */
    for (int layer = DECODER_OUTSIDE; layer < (int)decoder->layer_count; layer++) {
        json_object(json, NULL);
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
            enum decoder_component component = (enum decoder_component)i;
            struct graph_cost cost = cost_of(&partition, layer, component);
            show_cost(json, decoder_component_name(component), &cost);
        }
        json_object_end(json);
    }
    json_array_end(json);
    show_cost(json, "total", &partition.total);
    json_object_end(json);
    partition_release(&partition);
    graph_release(&graph);
}

static void show_decoder(struct json *json, const struct decoder *decoder,
                         const struct graph_options *pass)
{
    json_object(json, "decoder");
    json_string(json, "architecture", decoder->architecture);
    json_string(json, "name", decoder->name);
    show_u64(json, "embedding", decoder->embedding);
    show_u64(json, "vocabulary", decoder->vocabulary);
    show_u64(json, "context", decoder->context);
    show_u64(json, "experts", decoder->experts);
    show_u64(json, "experts_used", decoder->experts_used);
    json_bool(json, "has_tied_head", decoder->has_tied_embeddings);
    show_u64(json, "parameters", decoder->parameters);
    show_u64(json, "bytes", decoder->bytes);
    json_array(json, "layers");
    for (size_t i = 0; i < decoder->layer_count; i++)
        show_layer(json, &decoder->layers[i]);
    json_array_end(json);
    show_parts(json, decoder->outside_weights);
    if (pass)
        show_costs(json, decoder, *pass);
    json_object_end(json);
}

static void show_file(struct json *json, const struct gguf *gguf, const struct graph_options *pass,
                      bool has_all_logits)
{
    struct error why = {0};
    struct decoder decoder;
    json_object(json, NULL);
    json_integer(json, "version", gguf->version);
    json_integer(json, "alignment", gguf->alignment);
    show_u64(json, "data_offset", gguf->data_offset);
    json_array(json, "values");
    for (size_t i = 0; i < gguf->value_count; i++)
        show_value(json, &gguf->values[i]);
    json_array_end(json);
    json_array(json, "tensors");
    for (size_t i = 0; i < gguf->tensor_count; i++)
        show_tensor(json, &gguf->tensors[i]);
    json_array_end(json);
    if (decoder_read(gguf, &decoder, &why)) {
        show_error(json, "decoder", &why);
    } else {
        decoder.has_head_per_token = has_all_logits;
        show_decoder(json, &decoder, pass);
        decoder_release(&decoder);
    }
    json_object_end(json);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 6) {
        fprintf(stderr, "usage: gguf_show FILE [TOKENS CACHED SEQUENCES all|last|pruned|none]\n");
        return 2;
    }
    struct graph_options pass = {.phase = GRAPH_PREFILL};
    bool has_all_logits = false;
    if (argc == 6) {
        pass.tokens = strtoll(argv[2], NULL, 10);
        pass.cached = strtoll(argv[3], NULL, 10);
        pass.batch = strtoll(argv[4], NULL, 10);
        pass.pruning = strcmp(argv[5], "pruned") == 0 ? GRAPH_PRUNE_TO_LAST
                       : strcmp(argv[5], "none") == 0 ? GRAPH_PRUNE_ALL
                                                      : GRAPH_PRUNE_NOTHING;
        has_all_logits = strcmp(argv[5], "all") == 0;
    }
    struct text out = {0};
    struct json json;
    struct gguf gguf;
    struct error why = {0};
    json_init(&json, &out, false);
    enum err err = gguf_open(argv[1], &gguf, &why);
    if (err) {
        show_error(&json, NULL, &why);
    } else {
        show_file(&json, &gguf, argc == 6 ? &pass : NULL, has_all_logits);
        gguf_close(&gguf);
    }
    puts(text_get(&out));
    text_release(&out);
    return err ? 1 : 0;
}
