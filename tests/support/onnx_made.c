#include "support/onnx_made.h"

#include <stdio.h>
#include <unistd.h>

#include "core/xalloc.h"
#include "support/onnx_wire.h"
#include "support/unit.h"

enum { IR_VERSION = 8, OPSET = 13, INPUT = 11, OUTPUT = 12, WEIGHT = 5, ATTRIBUTE_INT = 2 };

static void put_info(struct onnx_made *made, unsigned field, const char *name, enum onnx_type type,
                     const int64_t *shape, size_t rank, const char *symbol)
{
    struct text dims = {0}, tensor = {0}, kind = {0}, info = {0};
    for (size_t i = 0; i < rank; i++) {
        struct text dim = {0};
        if (shape[i] >= 0)
            onnx_put_number(&dim, 1, (uint64_t)shape[i]);
        else if (*symbol)
            onnx_put_string(&dim, 2, symbol);
        onnx_put_message(&dims, 1, &dim);
    }
    onnx_put_number(&tensor, 1, (uint64_t)type);
    onnx_put_message(&tensor, 2, &dims);
    onnx_put_message(&kind, 1, &tensor);
    onnx_put_string(&info, 1, name);
    onnx_put_message(&info, 2, &kind);
    onnx_put_message(&made->graph, field, &info);
}

void onnx_made_input(struct onnx_made *made, const char *name, enum onnx_type type,
                     const int64_t *shape, size_t rank, const char *symbol)
{
    put_info(made, INPUT, name, type, shape, rank, symbol);
}

void onnx_made_output(struct onnx_made *made, const char *name, enum onnx_type type,
                      const int64_t *shape, size_t rank, const char *symbol)
{
    put_info(made, OUTPUT, name, type, shape, rank, symbol);
}

static struct text make_node(const char *op, const char *inputs, const char *output)
{
    struct text node = {0};
    char input[64];
    for (const char *at = inputs; at && str_next_item(&at, input, sizeof input);)
        onnx_put_string(&node, 1, input);
    onnx_put_string(&node, 2, output);
    onnx_put_string(&node, 3, output);
    onnx_put_string(&node, 4, op);
    return node;
}

void onnx_made_node(struct onnx_made *made, const char *op, const char *inputs, const char *output)
{
    struct text node = make_node(op, inputs, output);
    onnx_put_message(&made->graph, 1, &node);
}

void onnx_made_node_with(struct onnx_made *made, const char *op, const char *inputs,
                         const char *output, const char *attribute, int64_t value)
{
    struct text node = make_node(op, inputs, output), setting = {0};
    onnx_put_string(&setting, 1, attribute);
    onnx_put_number(&setting, 3, (uint64_t)value);
    onnx_put_number(&setting, 20, ATTRIBUTE_INT);
    onnx_put_message(&node, 5, &setting);
    onnx_put_message(&made->graph, 1, &node);
}

void onnx_made_floats(struct onnx_made *made, const char *name, const float *values,
                      const int64_t *shape, size_t rank)
{
    struct text tensor = {0};
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        onnx_put_number(&tensor, 1, (uint64_t)shape[i]);
        count *= (size_t)shape[i];
    }
    onnx_put_number(&tensor, 2, ONNX_FLOAT);
    onnx_put_string(&tensor, 8, name);
    onnx_put_bytes(&tensor, 9, values, count * sizeof *values);
    onnx_put_message(&made->graph, WEIGHT, &tensor);
}

void onnx_made_metadata(struct onnx_made *made, const char *key, const char *value)
{
    struct text pair = {0};
    onnx_put_string(&pair, 1, key);
    onnx_put_string(&pair, 2, value);
    onnx_put_message(&made->rest, 14, &pair);
}

void onnx_made_file_at(struct onnx_made *made, const char *path)
{
    struct text model = {0}, version = {0};
    onnx_put_string(&made->graph, 2, "made");
    onnx_put_number(&model, 1, IR_VERSION);
    onnx_put_number(&version, 2, (uint64_t)(made->opset ? made->opset : OPSET));
    onnx_put_message(&model, 8, &version);
    onnx_put_message(&model, 7, &made->graph);
    text_add_bytes(&model, text_get(&made->rest), made->rest.length);
    text_release(&made->rest);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text_get(&model), 1, model.length, file), model.length);
    assert_int_equal(fclose(file), 0);
    text_release(&model);
}

char *onnx_made_file(struct onnx_made *made)
{
    char *path = xstrdup("/tmp/ipw-onnx-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    onnx_made_file_at(made, path);
    return path;
}

struct onnx_made onnx_made_sum(void)
{
    static const int64_t ROWS[] = {-1, 3};
    struct onnx_made made = {0};
    onnx_made_input(&made, "x", ONNX_FLOAT, ROWS, 2, "batch");
    onnx_made_output(&made, "y", ONNX_FLOAT, ROWS, 2, "batch");
    onnx_made_node(&made, "Relu", "x", "r");
    onnx_made_node(&made, "Add", "r,x", "y");
    return made;
}
