/* onnx_show FILE [BATCH [DIMS]]: the graph of an ONNX file as JSON on standard output, for tests
 * that compare our reader with others: tensors with their shapes, nodes, and the total cost. DIMS
 * is "batch=8,seq=16". With FILE "-": file names, one per line on standard input, one line of JSON
 * each. "--dot FILE" and "--mermaid FILE" print the drawing instead. A file that cannot be read is
 * {"error": ..., "code": ...}. Warnings go to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/params.h"
#include "core/text.h"
#include "graph/count.h"
#include "graph/reader.h"

static const char *const ROLES[] = {"activation", "input",    "parameter",
                                    "buffer",     "constant", "cache"};

static void show_tensors(struct json *json, const struct graph *graph)
{
    json_array(json, "tensors");
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        json_object(json, NULL);
        json_string(json, "name", tensor->name);
        json_string(json, "role", ROLES[tensor->role]);
        json_integer(json, "numbers", tensor->dtype);
        json_array(json, "dims");
        for (unsigned k = 0; k < tensor->rank; k++)
            json_integer(json, NULL, tensor->dims[k]);
        json_array_end(json);
        json_number(json, "stored_bytes", tensor->stored_bytes);
        json_integer(json, "maker", tensor->producer);
        json_bool(json, "is_output", tensor->is_output);
        json_object_end(json);
    }
    json_array_end(json);
}

static void show_links(struct json *json, const char *key, const tensor_id *ids, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_integer(json, NULL, ids[i]);
    json_array_end(json);
}

static void show_nodes(struct json *json, const struct graph *graph)
{
    json_array(json, "nodes");
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        struct graph_cost cost = graph_node_cost(graph, node);
        json_object(json, NULL);
        json_string(json, "name", node->name);
        json_string(json, "label", node->label);
        json_string(json, "op", graph_op_name(node->op));
        json_integer(json, "layer", node->layer);
        json_number(json, "macs", cost.macs);
        json_number(json, "elementwise", cost.elementwise);
        json_string(json, "precision", node->has_precision ? precision_name(node->precision) : "");
        show_links(json, "inputs", graph_inputs(graph, node), node->input_count);
        show_links(json, "outputs", graph_outputs(graph, node), node->output_count);
        json_object_end(json);
    }
    json_array_end(json);
}

static void show_graph(struct json *json, const struct graph *graph,
                       const struct graph_options *setting)
{
    struct graph_cost cost = graph_cost_total(graph);
    json_string(json, "name", graph->name);
    json_number(json, "parameters", graph_parameters(graph));
    json_number(json, "macs", cost.macs);
    json_number(json, "elementwise", cost.elementwise);
    json_number(json, "flops", graph_flops(&cost));
    json_integer(json, "batch", setting->batch);
    json_number(json, "tokens", graph->tokens);
    json_integer(json, "unknown", (int64_t)graph->unknown_count);
    json_bool(json, "is_guessed", graph->is_guessed);
    json_string(json, "file_precision",
                graph->file.is_known ? precision_name(graph->file.products) : "");
    json_array(json, "notes");
    for (size_t i = 0; i < graph->notes.count; i++)
        json_string(json, NULL, graph->notes.text[i]);
    json_array_end(json);
    json_string(json, "floats", precision_name(graph->file.floats));
    show_tensors(json, graph);
    show_nodes(json, graph);
}

static void show_file(struct json *json, const char *path, int64_t batch, const struct params *dims)
{
    struct error why = {0};
    struct model model = {0};
    struct graph graph = {0};
    struct graph_options setting = {.batch = batch, .dims = dims};
    enum err err = model_open(path, &model, &why);
    if (!err)
        err = model_graph(&model, &setting, &graph, &why);
    json_object(json, NULL);
    if (err) {
        json_string(json, "error", why.text);
        json_integer(json, "code", why.code);
    } else {
        show_graph(json, &graph, &setting);
    }
    json_object_end(json);
    graph_release(&graph);
    model_close(&model);
}

static int draw_file(const char *how, const char *path)
{
    struct error why = {0};
    struct model model = {0};
    struct graph graph = {0};
    struct graph_options setting = {0};
    struct text text = {0};
    enum err err = model_open(path, &model, &why);
    if (!err)
        err = model_graph(&model, &setting, &graph, &why);
    if (!err && strcmp(how, "--dot") == 0)
        graph_write_dot(&graph, &text);
    else if (!err)
        graph_write_mermaid(&graph, &text);
    printf("%s", err ? why.text : text_get(&text));
    text_release(&text);
    graph_release(&graph);
    model_close(&model);
    return err || fflush(stdout) ? 1 : 0;
}

static void write_line(enum log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static int show_one(const char *path, int64_t batch, const struct params *dims)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    show_file(&json, path, batch, dims);
    printf("%s\n", text_get(&text));
    text_release(&text);
    return 0;
}

int main(int argc, char **argv)
{
    struct params dims = {0};
    char line[4096];
    if (argc < 2)
        return 2;
    if (argc == 3 && argv[1][0] == '-' && argv[1][1] == '-')
        return draw_file(argv[1], argv[2]);
    int64_t batch = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    log_to(write_line, LOG_WARN);
    if (argc > 3 && params_add(&dims, argv[3]))
        return 2;
    if (strcmp(argv[1], "-") != 0)
        show_one(argv[1], batch, &dims);
    else
        while (fgets(line, sizeof line, stdin)) {
            line[strcspn(line, "\n")] = '\0';
            show_one(line, batch, &dims);
        }
    params_release(&dims);
    return fflush(stdout) ? 1 : 0;
}
