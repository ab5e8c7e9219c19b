#include "graph/decoder/making.h"

#include "core/text.h"
#include "graph/decoder/weigh.h"

bool making_has(const struct making *making, enum decoder_tensor tensor)
{
    return making->weights[tensor].columns > 0;
}

static tensor_id parameter(struct making *making, enum decoder_tensor tensor, const char *what,
                           int rank, const int64_t *dims)
{
    const struct decoder_weight *weight = &making->weights[tensor];
    bool is_bias = what[1] == 'b';
    char name[64];
    str_join(name, sizeof name, decoder_tensor_name(tensor), what, "");
    tensor_id id = build_tensor(&making->build, GRAPH_PARAMETER, name, rank, dims);
    if (id >= 0 && weight->is_stored)
        making->build.graph->tensors[id].stored_bytes =
            (double)(is_bias ? weight->bias_bytes : weight->bytes);
    return id;
}

tensor_id making_weight(struct making *making, enum decoder_tensor tensor)
{
    const struct decoder_weight *weight = &making->weights[tensor];
    int64_t dims[] = {(int64_t)weight->matrices, (int64_t)weight->rows, (int64_t)weight->columns};
    int rank = weight->matrices > 1 ? 3 : 2;
    return parameter(making, tensor, ".weight", rank, dims + 3 - rank);
}

static tensor_id bias_of(struct making *making, enum decoder_tensor tensor)
{
    int64_t numbers = (int64_t)making->weights[tensor].bias_numbers;
    return numbers ? parameter(making, tensor, ".bias", 1, &numbers) : GRAPH_NONE;
}

tensor_id making_linear(struct making *making, enum decoder_tensor tensor, tensor_id x)
{
    tensor_id weight = making_weight(making, tensor), bias = bias_of(making, tensor);
    making->build.component = decoder_tensor_component(tensor);
    return build_linear_with(&making->build, decoder_tensor_name(tensor), x, weight, bias,
                             (int64_t)making->weights[tensor].rows);
}

tensor_id making_norm(struct making *making, enum decoder_tensor tensor, tensor_id x)
{
    if (!making_has(making, tensor))
        return x;
    struct build *build = &making->build;
    bool has_mean = making->decoder->layers[0].norm_has_mean;
    struct graph_node node = {.op = has_mean ? GRAPH_LAYER_NORM : GRAPH_RMS_NORM,
                              .name = decoder_tensor_name(tensor)};
    int64_t columns = (int64_t)making->weights[tensor].columns;
    tensor_id inputs[] = {x, parameter(making, tensor, ".weight", 1, &columns),
                          bias_of(making, tensor)};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), build_dim(build, x, 2)};
    build->component = DECODER_NORM;
    return build_node(build, &node, inputs, inputs[2] >= 0 ? 3 : 2, 3, dims);
}

tensor_id making_slice(struct making *making, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_VIEW, .name = name, .label = "slice"};
    int64_t dims[] = {build_dim(&making->build, x, 0), build_dim(&making->build, x, 1), size};
    return build_node(&making->build, &node, &x, 1, 3, dims);
}

tensor_id making_rotation(struct making *making)
{
    static const enum decoder_tensor FACTORS[] = {DECODER_TENSOR_ROPE_FREQS,
                                                  DECODER_TENSOR_ROPE_FACTORS_LONG,
                                                  DECODER_TENSOR_ROPE_FACTORS_SHORT};
    struct build *build = &making->build;
    tensor_id inputs[3];
    int count = 0;
    int64_t numbers = 0;
    for (size_t i = 0; i < sizeof FACTORS / sizeof *FACTORS; i++) {
        if (!making_has(making, FACTORS[i]))
            continue;
        numbers = (int64_t)making->weights[FACTORS[i]].columns;
        inputs[count] = parameter(making, FACTORS[i], ".weight", 1, &numbers);
        if (inputs[count] >= 0) /* set by a rule, not trained */
            build->graph->tensors[inputs[count]].role = GRAPH_BUFFER;
        count++;
    }
    if (!count)
        return GRAPH_NONE;
    struct graph_node node = {.op = GRAPH_MOVE, .name = "rotation_factors"};
    build->component = DECODER_ATTN_QKV;
    return build_node(build, &node, inputs, count, 1, &numbers);
}
