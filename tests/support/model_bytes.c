#include "graph/reader.h"
#include "support/model_bytes.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "graph/count.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/hf.h"
#include "graph/model_files.h"
#include "port/json_read.h"

/* ---- files ---- */

const char *model_config_text(void)
{
    return "{\"architectures\": [\"Qwen2MoeForCausalLM\"], \"model_type\": \"qwen2_moe\",\n"
           " \"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 4,\n"
           " \"num_key_value_heads\": 2, \"head_dim\": 16, \"intermediate_size\": 96,\n"
           " \"vocab_size\": 32, \"max_position_embeddings\": 512, \"hidden_act\": \"silu\",\n"
           " \"tie_word_embeddings\": false, \"attention_bias\": true, \"mlp_bias\": false,\n"
           " \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 24,\n"
           " \"shared_expert_intermediate_size\": 40, \"decoder_sparse_step\": 2,\n"
           " \"mlp_only_layers\": [], \"sliding_window\": 16, \"use_sliding_window\": true,\n"
           " \"max_window_layers\": 1, \"quantization_config\": {\"quant_method\": \"awq\",\n"
           " \"bits\": 4, \"group_size\": 32}}\n";
}

struct entry {
    const char *name;
    unsigned rows, columns; /* columns 0: a vector */
};

static void add_tensor(struct text *header, const char *place, const struct entry *entry,
                       unsigned *offset)
{
    unsigned numbers = entry->rows * (entry->columns ? entry->columns : 1);
    text_addf(header, "%s\"%s%s.weight\":{\"dtype\":\"F16\",\"shape\":[%u",
              header->length > 1 ? "," : "", place, entry->name, entry->rows);
    if (entry->columns)
        text_addf(header, ",%u", entry->columns);
    text_addf(header, "],\"data_offsets\":[%u,%u]}", *offset, *offset + 2 * numbers);
    *offset += 2 * numbers;
}

void model_safetensors_add(struct text *out)
{
    static const struct entry LAYER[] = {
        {"input_layernorm", 16, 0},   {"post_attention_layernorm", 16, 0},
        {"self_attn.q_proj", 16, 16}, {"self_attn.k_proj", 8, 16},
        {"self_attn.v_proj", 8, 16},  {"self_attn.o_proj", 16, 16},
        {"mlp.gate_proj", 24, 16},    {"mlp.up_proj", 24, 16},
        {"mlp.down_proj", 16, 24},
    };
    static const struct entry OUTSIDE[] = {{"embed_tokens", 20, 16}, {"norm", 16, 0}};
    struct text header = {0};
    unsigned offset = 0;
    text_add(&header, "{");
    for (size_t i = 0; i < sizeof OUTSIDE / sizeof *OUTSIDE; i++)
        add_tensor(&header, "model.", &OUTSIDE[i], &offset);
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < sizeof LAYER / sizeof *LAYER; i++) {
            char place[32];
            snprintf(place, sizeof place, "model.layers.%d.", layer);
            add_tensor(&header, place, &LAYER[i], &offset);
        }
    text_add(&header, ",\"__metadata__\":{\"format\":\"pt\"}}");
    for (unsigned i = 0; i < 8; i++)
        text_add_bytes(out, (const char[]){(char)(header.length >> (8 * i))}, 1);
    text_add_bytes(out, header.bytes, header.length);
    for (unsigned i = 0; i < offset; i++)
        text_add_bytes(out, "", 1);
    text_release(&header);
}

/* ---- reading any bytes ---- */

static const char *check_refusal(enum err err, const struct error *why)
{
    if (err == ERR_NO_MEMORY)
        return "out of memory";
    return why->text[0] && !strchr(why->text, '\n') ? NULL : "an error without one line";
}

static const char *check_graph(const struct graph *graph)
{
    struct graph_cost cost = graph_cost_total(graph);
    if (!isfinite(graph_flops(&cost)) || !(graph_flops(&cost) > 0))
        return "the cost is no number";
    if (!(graph_parameters(graph) > 0))
        return "no parameters";
    for (size_t i = 0; i < graph->tensor_count; i++)
        for (unsigned k = 0; k < graph->tensors[i].rank; k++)
            if (graph->tensors[i].dims[k] <= 0)
                return "a tensor without numbers";
    return NULL;
}

static const char *check_config(const struct hf_config *config)
{
    struct graph_options setting = {.tokens = 3, .context = 5, .batch = 2};
    struct error why = {0};
    struct graph graph = {0};
    if (hf_config_has_phases(config))
        setting.phase = GRAPH_DECODE;
    enum err err = hf_config_graph(config, &setting, &graph, &why);
    const char *wrong = err ? check_refusal(err, &why) : check_graph(&graph);
    graph_release(&graph);
    return wrong;
}

const char *model_config_exercise(const void *bytes, size_t length)
{
    struct hf_config config = {0};
    struct error why = {0};
    struct jv *json = NULL;
    enum err err = model_json_parse("fuzz", bytes, length, &json, &why);
    if (!err)
        err = hf_config_parse("fuzz", "fuzz", json, &config, &why);
    jv_free(json);
    const char *wrong = err ? check_refusal(err, &why) : check_config(&config);
    hf_config_release(&config);
    return wrong;
}

static const char *check_tensors(const struct safetensors *tensors, uint64_t length)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        bytes += tensors->tensors[i].bytes;
        if (safetensors_find(tensors, tensors->tensors[i].name) != &tensors->tensors[i])
            return "a tensor is not found by its name";
    }
    return bytes > length ? "tensors are larger than their file" : NULL;
}

static const char *check_guess(const struct safetensors *tensors)
{
    struct decoder_shape shape;
    struct error why = {0};
    struct hf_config config = {0};
    if (!safetensors_guess(tensors, &shape))
        return NULL;
    shape.name = "fuzz";
    enum err err = decoder_from_shape(&shape, &config.as.decoder, &why);
    const char *wrong = err ? check_refusal(err, &why) : check_config(&config);
    hf_config_release(&config);
    return wrong;
}

const char *model_safetensors_exercise(const void *bytes, size_t length)
{
    struct safetensors tensors = {0};
    struct error why = {0};
    enum err err = safetensors_read("fuzz", bytes, length, length, &tensors, &why);
    if (!err)
        err = safetensors_sort("fuzz", &tensors, &why);
    const char *wrong = err ? check_refusal(err, &why) : check_tensors(&tensors, length);
    if (!err && !wrong)
        wrong = check_guess(&tensors);
    safetensors_release(&tensors);
    return wrong;
}
