#include "bench/onnx_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

/* ---- the wire format of protocol buffers ---- */

static void add_varint(struct text *to, uint64_t value)
{
    char byte;
    for (; value >= 128; value >>= 7) {
        byte = (char)(value | 128);
        text_add_bytes(to, &byte, 1);
    }
    byte = (char)value;
    text_add_bytes(to, &byte, 1);
}

static void add_number(struct text *to, unsigned field, int64_t value)
{
    add_varint(to, field << 3);
    add_varint(to, (uint64_t)value);
}

static void add_bytes(struct text *to, unsigned field, const char *bytes, size_t length)
{
    add_varint(to, field << 3 | 2);
    add_varint(to, length);
    text_add_bytes(to, bytes, length);
}

static void add_string(struct text *to, unsigned field, const char *string)
{
    add_bytes(to, field, string, strlen(string));
}

/* An embedded message; takes ownership of it. */
static void add_message(struct text *to, unsigned field, struct text *message)
{
    add_bytes(to, field, text_get(message), message->length);
    text_release(message);
}

/* ---- tensors ---- */

static void add_tensor_name(struct text *to, unsigned field, tensor_id id)
{
    char name[24];
    snprintf(name, sizeof name, "t%d", id);
    add_string(to, field, name);
}

static void add_initializer(struct text *to, const struct graph *graph, tensor_id id)
{
    const struct graph_tensor *tensor = &graph->tensors[id];
    size_t bytes = (size_t)graph_elements(tensor) * sizeof(float);
    struct text message = {0};
    char *zeros = calloc(1, bytes + 1);
    if (!zeros)
        abort();
    for (int i = 0; i < tensor->rank; i++)
        add_number(&message, 1, tensor->dims[i]);
    add_number(&message, 2, 1); /* float */
    add_tensor_name(&message, 8, id);
    add_bytes(&message, 9, zeros, bytes);
    add_message(to, 5, &message);
    free(zeros);
}

/* An input or output of the model, with its shape. */
static void add_value(struct text *to, unsigned field, const struct graph *graph, tensor_id id)
{
    struct text value = {0}, type = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < graph->tensors[id].rank; i++) {
        struct text dim = {0};
        add_number(&dim, 1, graph->tensors[id].dims[i]);
        add_message(&shape, 1, &dim);
    }
    add_number(&tensor, 1, 1);
    add_message(&tensor, 2, &shape);
    add_message(&type, 1, &tensor);
    add_tensor_name(&value, 1, id);
    add_message(&value, 2, &type);
    add_message(to, field, &value);
}

/* ---- nodes ---- */

static const char *type_of(const struct graph_node *node)
{
    switch (node->op) {
    case GRAPH_CONV:
        return "Conv";
    case GRAPH_BATCH_NORM:
        return "BatchNormalization";
    case GRAPH_RELU:
        return "Relu";
    case GRAPH_ADD:
        return "Add";
    case GRAPH_MAX_POOL:
        return "MaxPool";
    case GRAPH_REDUCE:
        return "GlobalAveragePool";
    case GRAPH_VIEW:
        return "Flatten";
    case GRAPH_LINEAR:
        return "Gemm";
    default:
        fprintf(stderr, "onnx_file: %s is not an operator of a residual network\n", node->label);
        exit(1);
    }
}

enum { ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };

static void add_integer(struct text *to, const char *name, int64_t value)
{
    struct text attribute = {0};
    add_string(&attribute, 1, name);
    add_number(&attribute, 3, value);
    add_number(&attribute, 20, ATTRIBUTE_INT);
    add_message(to, 5, &attribute);
}

static void add_integers(struct text *to, const char *name, const int32_t *first, int count,
                         const int32_t *second)
{
    struct text attribute = {0};
    add_string(&attribute, 1, name);
    for (int i = 0; i < count; i++)
        add_number(&attribute, 8, first[i]);
    for (int i = 0; second && i < count; i++)
        add_number(&attribute, 8, second[i]);
    add_number(&attribute, 20, ATTRIBUTE_INTS);
    add_message(to, 5, &attribute);
}

static void add_node(struct text *to, const struct graph *graph, const struct graph_node *node)
{
    struct text message = {0};
    for (size_t i = 0; i < node->input_count; i++)
        add_tensor_name(&message, 1, graph_inputs(graph, node)[i]);
    add_tensor_name(&message, 2, graph_outputs(graph, node)[0]);
    add_string(&message, 3, node->name);
    add_string(&message, 4, type_of(node));
    if (node->op == GRAPH_CONV || node->op == GRAPH_MAX_POOL) {
        const struct graph_window *window = &node->as.window;
        add_integers(&message, "kernel_shape", window->kernel, window->rank, NULL);
        add_integers(&message, "strides", window->stride, window->rank, NULL);
        add_integers(&message, "pads", window->pad_before, window->rank, window->pad_after);
    }
    if (node->op == GRAPH_CONV)
        add_integer(&message, "group", node->as.window.groups);
    if (node->op == GRAPH_LINEAR)
        add_integer(&message, "transB", 1);
    add_message(to, 1, &message);
}

/* ---- the file ---- */

static void write_bytes(const struct text *text, const char *path)
{
    FILE *file = fopen(path, "wbe");
    bool is_written =
        file && !text->failed && fwrite(text->bytes, 1, text->length, file) == text->length;
    if (!file || fclose(file) != 0 || !is_written) {
        fprintf(stderr, "onnx_file: cannot write %s\n", path);
        exit(1);
    }
}

void onnx_file_write(const struct graph *graph, const char *path)
{
    struct text model = {0}, body = {0}, opset = {0};
    for (size_t i = 0; i < graph->node_count; i++)
        add_node(&body, graph, &graph->nodes[i]);
    add_string(&body, 2, graph->name);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        if (tensor->role == GRAPH_PARAMETER || tensor->role == GRAPH_BUFFER)
            add_initializer(&body, graph, (tensor_id)i);
        if (tensor->role == GRAPH_INPUT)
            add_value(&body, 11, graph, (tensor_id)i);
        if (tensor->is_output)
            add_value(&body, 12, graph, (tensor_id)i);
    }
    add_number(&model, 1, 8); /* version of the format */
    add_message(&model, 7, &body);
    add_number(&opset, 2, 13);
    add_message(&model, 8, &opset);
    write_bytes(&model, path);
    text_release(&model);
}
