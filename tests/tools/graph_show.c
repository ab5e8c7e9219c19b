/* graph_show WORD [phase=decode] [batch=N] [tokens=N] [context=N] [image=N] [nodes=1]: the counts
 * of a model as JSON on standard output, for tests that compare our readers with others. A
 * dimension of an ONNX file is given as dim.NAME=N. A model that cannot be read is {"error": ...,
 * "code": ...}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/params.h"
#include "core/text.h"
#include "graph/count.h"
#include "graph/reader.h"

struct wanted {
    struct graph_options setting;
    struct params dims;
    bool has_nodes;
};

static bool take_dim(struct wanted *wanted, const char *key, const char *value)
{
    return !strncmp(key, "dim.", 4) && params_set(&wanted->dims, key + 4, value) == ERR_OK;
}

static bool take_param(struct wanted *wanted, const struct param *param)
{
    const struct {
        const char *key;
        int64_t *to;
    } NUMBERS[] = {{"batch", &wanted->setting.batch},
                   {"tokens", &wanted->setting.tokens},
                   {"context", &wanted->setting.context},
                   {"image", &wanted->setting.image}};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (!strcmp(param->key, NUMBERS[i].key))
            return parse_i64(param->value, NUMBERS[i].to) == ERR_OK;
    if (!strcmp(param->key, "phase"))
        wanted->setting.phase = !strcmp(param->value, "decode")    ? GRAPH_DECODE
                                : !strcmp(param->value, "prefill") ? GRAPH_PREFILL
                                                                   : GRAPH_FORWARD;
    else if (!strcmp(param->key, "nodes"))
        wanted->has_nodes = true;
    else
        return take_dim(wanted, param->key, param->value);
    return true;
}

static void show_dims(struct json *json, const char *key, const struct graph_tensor *tensor)
{
    json_array(json, key);
    for (unsigned i = 0; tensor && i < tensor->rank; i++)
        json_integer(json, NULL, tensor->dims[i]);
    json_array_end(json);
}

static void show_amount(struct json *json, const char *key, const struct graph_amount *amount)
{
    json_object(json, key);
    json_number(json, "weights", amount->weights + amount->stored_weights);
    json_number(json, "activations", amount->activations);
    json_number(json, "cached", amount->cached);
    json_number(json, "stored_bytes", amount->stored_bytes);
    json_number(json, "fixed_bytes", amount->fixed_bytes);
    json_object_end(json);
}

static void show_cost(struct json *json, const struct graph_cost *cost)
{
    json_number(json, "macs", cost->macs);
    json_number(json, "elementwise", cost->elementwise);
    show_amount(json, "in", &cost->in);
    show_amount(json, "out", &cost->out);
    show_amount(json, "weights", &cost->weights);
}

static void show_nodes(struct json *json, const struct graph *graph)
{
    json_array(json, "nodes");
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct graph_cost cost = graph_node_cost(graph, node);
        json_object(json, NULL);
        json_string(json, "name", node->name);
        json_string(json, "op", graph_op_name(node->op));
        json_string(json, "label", node->label);
        json_integer(json, "layer", node->layer);
        json_string(json, "component",
                    node->component < DECODER_COMPONENT_COUNT
                        ? decoder_component_name(node->component)
                        : NULL);
        show_dims(json, "shape", graph_output(graph, node, 0));
        show_cost(json, &cost);
        json_object_end(json);
    }
    json_array_end(json);
}

static void show_operations(struct json *json, const struct graph *graph)
{
    double macs[GRAPH_OP_COUNT] = {0}, elementwise[GRAPH_OP_COUNT] = {0},
           numbers[GRAPH_OP_COUNT] = {0};
    size_t counts[GRAPH_OP_COUNT] = {0};
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct graph_cost cost = graph_node_cost(graph, node);
        const struct graph_tensor *out = graph_output(graph, node, 0);
        counts[node->op]++;
        macs[node->op] += cost.macs;
        elementwise[node->op] += cost.elementwise;
        numbers[node->op] += out ? graph_elements(out) : 0;
    }
    json_object(json, "operations");
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        if (!counts[op])
            continue;
        json_object(json, graph_op_name((enum graph_op)op));
        json_integer(json, "nodes", (int64_t)counts[op]);
        json_number(json, "macs", macs[op]);
        json_number(json, "elementwise", elementwise[op]);
        json_number(json, "outputs", numbers[op]);
        json_object_end(json);
    }
    json_object_end(json);
}

static void show(struct json *json, const struct model *model, const struct wanted *wanted,
                 const struct graph *graph)
{
    struct graph_cost total = graph_cost_total(graph);
    json_string(json, "name", model->name);
    json_string(json, "reader", model->reader->name);
    json_bool(json, "has_phases", model->has_phases);
    json_integer(json, "batch", wanted->setting.batch);
    json_integer(json, "tokens", wanted->setting.tokens);
    json_integer(json, "context", wanted->setting.context);
    json_integer(json, "image", wanted->setting.image);
    json_number(json, "parameters", graph_parameters(graph));
    json_integer(json, "node_count", (int64_t)graph->node_count);
    json_integer(json, "unknown", (int64_t)graph->unknown_count);
    json_bool(json, "is_guessed", graph->is_guessed);
    json_number(json, "pass_tokens", graph->tokens);
    json_number(json, "pass_batch", graph->batch);
    show_cost(json, &total);
    show_operations(json, graph);
    if (wanted->has_nodes)
        show_nodes(json, graph);
}

int main(int argc, char **argv)
{
    struct wanted wanted = {0};
    struct params params = {0};
    struct text text = {0};
    struct json json;
    struct model model;
    struct graph graph = {0};
    struct error why = {0};
    for (int i = 2; i < argc; i++)
        if (params_add(&params, argv[i]) != ERR_OK)
            return 2;
    for (size_t i = 0; i < params.count; i++)
        if (!take_param(&wanted, &params.items[i])) {
            fprintf(stderr, "graph_show: %s: invalid parameter\n", params.items[i].key);
            return 2;
        }
    wanted.setting.dims = &wanted.dims;
    json_init(&json, &text, true);
    json_object(&json, NULL);
    enum err err = argc < 2 ? ERR_USAGE : model_open(argv[1], &model, &why);
    if (!err) {
        err = model_graph(&model, &wanted.setting, &graph, &why);
        if (!err)
            show(&json, &model, &wanted, &graph);
        model_close(&model);
    }
    if (err) {
        json_string(&json, "error", why.text);
        json_integer(&json, "code", err);
    }
    json_object_end(&json);
    puts(text_get(&text));
    graph_release(&graph);
    text_release(&text);
    params_release(&params);
    params_release(&wanted.dims);
    return err ? 1 : 0;
}
