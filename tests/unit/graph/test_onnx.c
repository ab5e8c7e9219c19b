/* test: valgrind */
/* ONNX files built byte by byte: what is read, and what is rejected. tests/cli/test_onnx_oracle.py
 * compares whole models and the shapes of every operator with the onnx package. */
#include <stdlib.h>

#include "graph/count.h"
#include "graph/onnx/operators.h"
#include "graph/reader.h"
#include "support/onnx_file.h"
#include "support/unit.h"

static struct slice bytes_of(const struct text *text)
{
    return (struct slice){text_get(text), text->length};
}

static const struct graph_node *find_node(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return &graph->nodes[i];
    fail_msg("no node '%s'", name);
    return NULL;
}

static const struct graph_tensor *find_tensor(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (strcmp(graph->tensors[i].name, name) == 0)
            return &graph->tensors[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static void test_model_is_read(void **state)
{
    (void)state;
    struct text bytes = {0};
    struct onnx_file file;
    struct graph graph = {0};
    struct error why = {0};
    struct graph_options options = {.batch = 3};
    onnx_file_model(&bytes);
    assert_int_equal(onnx_read("made.onnx", bytes_of(&bytes), &file, &why), ERR_OK);
    assert_int_equal(onnx_graph(&file, &options, &graph, &why), ERR_OK);

    /* conv 4x2x3x3, two of the norm, the matrix of the Constant node, two of the LSTM */
    assert_near(graph_parameters(&graph), 72 + 8 + 128 + 96 + 36, 0);
    assert_int_equal(find_tensor(&graph, "m")->role, GRAPH_BUFFER);
    assert_int_equal(find_tensor(&graph, "matrix")->role, GRAPH_PARAMETER);
    /* the shape of the reshape was computed through Shape, Gather and Concat, which leave no nodes */
    const struct graph_tensor *steps = find_tensor(&graph, "steps");
    assert_int_equal(steps->rank, 3);
    assert_int_equal(steps->dims[0], 3);
    for (size_t i = 0; i < graph.node_count; i++)
        assert_string_not_equal(graph.nodes[i].label, "Gather");
    /* the selected branch */
    assert_int_equal(find_node(&graph, "then")->op, GRAPH_TANH);
    assert_int_equal(find_node(&graph, "product")->op, GRAPH_LINEAR);
    assert_near(graph_node_cost(&graph, find_node(&graph, "conv")).macs, 3 * 64 * 4 * 18, 0);
    assert_near(graph_node_cost(&graph, find_node(&graph, "all")).macs, 3 * 16 * 12 * (8 + 3), 0);
    /* the function body is inlined: (steps, directions, ...) of the LSTM transposed */
    assert_int_equal(find_node(&graph, "bent/turned")->op, GRAPH_REARRANGE);
    assert_int_equal(find_node(&graph, "bent/y")->op, GRAPH_CLIP);
    assert_int_equal(find_tensor(&graph, "turned")->dims[0], find_tensor(&graph, "all")->dims[1]);
    assert_int_equal(find_tensor(&graph, "turned")->dims[1], find_tensor(&graph, "all")->dims[0]);
    /* the unknown operator */
    assert_int_equal(graph.unknown_count, 1);
    assert_int_equal(find_node(&graph, "out")->op, GRAPH_UNKNOWN);
    assert_true(find_tensor(&graph, "out")->is_output);

    graph_release(&graph);
    onnx_close(&file);
    text_release(&bytes);
}

static void test_truncated_files_are_rejected(void **state)
{
    (void)state;
    struct text bytes = {0};
    onnx_file_model(&bytes);
    for (size_t length = 0; length <= bytes.length; length++) {
        char *exact = malloc(
            length ? length : 1); /* exact size, so that a sanitizer detects a read past the end */
        assert_non_null(exact);
        memcpy(exact, bytes.bytes, length);
        assert_null(onnx_file_exercise(exact, length));
        free(exact);
    }
    text_release(&bytes);
}

static void test_invalid_lengths_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *says;
    } CASES[] = {
        {"\x08\x08", 2, "no graph"},
        {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "byte"}, /* a graph of 2^63 - 1 bytes */
        {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12,
         "byte"},                                     /* an unterminated varint */
        {"\x3a\x05\x0a\xff\xff\x7f\x01", 7, "byte"},  /* a node longer than the graph */
        {"\x3a\x04\x2a\x02\x08\x80", 6, "truncated"}, /* a tensor that ends within a varint */
        {"\x3b", 1, "byte"},                          /* a group, which ONNX does not use */
        {"\x00\x00", 2, "byte"},                      /* a field of number 0 */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct onnx_file file;
        struct error why = {0};
        enum err err =
            onnx_read("made.onnx", (struct slice){CASES[i].bytes, CASES[i].length}, &file, &why);
        assert_int_not_equal(err, ERR_OK);
        assert_contains(why.text, CASES[i].says);
        assert_contains(why.text, "made.onnx");
    }
}

/* x -> Relu -> Relu -> ...; backwards when asked for. */
static void make_chain(struct text *to, unsigned nodes, bool is_backwards)
{
    struct text graph = {0}, info = {0};
    for (unsigned i = 0; i < nodes; i++) {
        unsigned at = is_backwards ? nodes - 1 - i : i;
        struct text node = {0};
        char name[32];
        str_format(name, sizeof name, "x%u", at);
        onnx_put_string(&node, 1, name);
        str_format(name, sizeof name, "x%u", at + 1);
        onnx_put_string(&node, 2, name);
        onnx_put_string(&node, 4, "Relu");
        onnx_put_message(&graph, 1, &node);
    }
    struct text type = {0}, tensor = {0}, shape = {0}, dim = {0};
    onnx_put_number(&dim, 1, 5);
    onnx_put_message(&shape, 1, &dim);
    onnx_put_number(&tensor, 1, 1);
    onnx_put_message(&tensor, 2, &shape);
    onnx_put_message(&type, 1, &tensor);
    onnx_put_string(&info, 1, "x0");
    onnx_put_message(&info, 2, &type);
    onnx_put_message(&graph, 11, &info);
    onnx_put_message(to, 7, &graph);
}

static void test_100000_nodes(void **state)
{
    (void)state;
    unsigned nodes = getenv("IPW_SLOW") ? 10000 : 100000; /* quadratic time would take minutes */
    for (int is_backwards = 0; is_backwards < 2; is_backwards++) {
        struct text bytes = {0};
        struct onnx_file file;
        struct graph graph = {0};
        struct error why = {0};
        struct graph_options options = {0};
        make_chain(&bytes, nodes, is_backwards);
        assert_int_equal(onnx_read("chain.onnx", bytes_of(&bytes), &file, &why), ERR_OK);
        assert_int_equal(onnx_graph(&file, &options, &graph, &why), ERR_OK);
        assert_int_equal(graph.node_count, nodes);
        assert_int_equal(graph.tensors[graph.tensor_count - 1].dims[0], 5);
        assert_int_equal(options.batch, 5);
        graph_release(&graph);
        onnx_close(&file);
        text_release(&bytes);
    }
}

static void test_every_operator_is_found(void **state)
{
    (void)state;
    static const char *const NAMES[] = {
#define OPERATOR(name, ...) name,
#include "graph/onnx/operators.def"
#undef OPERATOR
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const struct onnx_operator *row = operator_find(slice_of(""), slice_of(NAMES[i]));
        assert_non_null(row);
        assert_string_equal(row->name, NAMES[i]);
    }
    assert_null(operator_find(slice_of(""), slice_of("Con")));
    assert_null(operator_find(slice_of("my.own"), slice_of("Conv")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_is_read),
        cmocka_unit_test(test_truncated_files_are_rejected),
        cmocka_unit_test(test_invalid_lengths_are_rejected),
        cmocka_unit_test(test_100000_nodes),
        cmocka_unit_test(test_every_operator_is_found),
    };
    return RUN_TESTS(tests);
}
