/* Building in code: output shapes, added parameters, and sticky errors. */
#include "graph/build.h"
#include "support/unit.h"

static struct graph graph;
static struct error why;

static struct build begin(void)
{
    graph_release(&graph);
    why = (struct error){0};
    return build_begin(&graph, "model", &why);
}

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    return 0;
}

static tensor_id input(struct build *b, int rank, const int64_t *dims)
{
    return build_input(b, "x", GRAPH_FLOAT, rank, dims);
}
#define INPUT(b, ...) input(b, DIMS(__VA_ARGS__))

static void check_dims(struct build *b, tensor_id x, int rank, const int64_t *dims)
{
    if (b->err)
        print_error("%s\n", why.text);
    assert_int_equal(x < 0 ? 0 : b->graph->tensors[x].rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(build_dim(b, x, i), dims[i]);
}
#define CHECK_DIMS(b, x, ...) check_dims(b, x, DIMS(__VA_ARGS__))

/* ---- windows ---- */

/* Enumerates the windows. With rounds_up one more may overlap the end, if the one before it did not
 * reach it and it begins in the input or in the padding before that. */
static int64_t count_windows(int size, int kernel, int stride, int pad, bool rounds_up)
{
    int64_t count = 0;
    bool has_reached = false;
    for (int first = 0; !has_reached; first += stride) {
        bool is_whole = first + kernel <= size + 2 * pad;
        if (!is_whole && !(rounds_up && first < size + pad))
            break;
        count++;
        has_reached = first + kernel >= size + 2 * pad;
    }
    return count;
}

static void test_pooling_against_enumerated_windows(void **state)
{
    (void)state;
    for (int size = 5; size < 30; size++)
        for (int kernel = 1; kernel <= 5; kernel++)
            for (int stride = 1; stride <= 4; stride++)
                for (int pad = 0; pad <= kernel / 2; pad++)
                    for (int rounds_up = 0; rounds_up < 2; rounds_up++) {
                        struct build b = begin();
                        tensor_id x = INPUT(&b, 2, 3, size, size + 1);
                        struct build_pool pool = {GRAPH_MAX_POOL, kernel, stride, pad, rounds_up};
                        x = build_pool(&b, "pool", x, pool);
                        CHECK_DIMS(&b, x, 2, 3, count_windows(size, kernel, stride, pad, rounds_up),
                                   count_windows(size + 1, kernel, stride, pad, rounds_up));
                    }
}

/* The sizes of a well-known network after each stage. */
static void test_shapes_of_a_resnet_stem(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = INPUT(&b, 4, 3, 224, 224);
    x = build_conv(&b, "conv1", x,
                   (struct build_conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    CHECK_DIMS(&b, x, 4, 64, 112, 112);
    x = build_pool(&b, "maxpool", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    CHECK_DIMS(&b, x, 4, 64, 56, 56);
    x = build_global_pool(&b, "avgpool", x);
    CHECK_DIMS(&b, x, 4, 64, 1, 1);
    x = build_flatten(&b, "flatten", x);
    CHECK_DIMS(&b, x, 4, 64);
    build_output(&b, build_linear(&b, "fc", x, 1000, true));
    assert_int_equal(build_end(&b), ERR_OK);
    assert_int_equal(graph.node_count, 5);
    assert_true(graph_output(&graph, &graph.nodes[4], 0)->is_output);
    assert_true(graph_parameters(&graph) == 64.0 * 3 * 49 + 64.0 * 1000 + 1000);
}

/* ---- shapes ---- */

static void test_output_shapes(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = INPUT(&b, 2, 3, 4), row = INPUT(&b, 4), column = INPUT(&b, 3, 1);
    CHECK_DIMS(&b, build_binary(&b, GRAPH_ADD, "a", x, row), 2, 3, 4);
    CHECK_DIMS(&b, build_binary(&b, GRAPH_ADD, "b", row, x), 2, 3, 4);
    CHECK_DIMS(&b, build_binary(&b, GRAPH_ADD, "c", column, row), 3, 4);
    CHECK_DIMS(&b, build_view(&b, "d", x, 2, (int64_t[]){-1, 6}), 4, 6);
    CHECK_DIMS(&b, build_concat(&b, "e", 1, (tensor_id[]){x, x, x}, 3), 2, 9, 4);
    CHECK_DIMS(&b, build_matmul(&b, "f", x, INPUT(&b, 2, 4, 9)), 2, 3, 9);
    CHECK_DIMS(&b, build_linear(&b, "g", x, 7, false), 2, 3, 7);
    CHECK_DIMS(&b, build_recurrent(&b, GRAPH_GRU, "h", x, 5, true), 2, 3, 10);
    CHECK_DIMS(&b, build_embedding(&b, "i", INPUT(&b, 2, 8), 100, 16), 2, 8, 16);
    CHECK_DIMS(&b, build_move(&b, "j", x, 2, (int64_t[]){4, 3}), 4, 3);
    assert_int_equal(build_dim(&b, x, -1), 4);
    assert_int_equal(build_dim(&b, x, 3), 0);
    assert_int_equal(build_end(&b), ERR_OK);
}

static void test_names_have_the_prefix(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id x = INPUT(&b, 2, 3);
    build_scope(&b, "layer%d.%d.", 3, 1);
    b.layer = 7;
    b.component = DECODER_HEAD;
    x = build_linear(&b, "fc", x, 5, true);
    build_scope(&b, "%s", "");
    b.layer = GRAPH_NONE;
    build_output(&b, build_op(&b, GRAPH_RELU, "relu", x));
    assert_int_equal(build_end(&b), ERR_OK);
    const struct graph_node *fc = &graph.nodes[0], *relu = &graph.nodes[1];
    assert_string_equal(fc->name, "layer3.1.fc");
    assert_string_equal(fc->label, "linear");
    assert_int_equal(fc->layer, 7);
    assert_int_equal(fc->component, DECODER_HEAD);
    assert_string_equal(graph_input(&graph, fc, 1)->name, "layer3.1.fc.weight");
    assert_string_equal(graph_input(&graph, fc, 2)->name, "layer3.1.fc.bias");
    assert_string_equal(relu->name, "relu");
    assert_int_equal(relu->layer, GRAPH_NONE);
}

/* Tied embeddings are one parameter. */
static void test_tied_embeddings_are_counted_once(void **state)
{
    (void)state;
    struct build b = begin();
    tensor_id ids = build_input(&b, "ids", GRAPH_INT64, 2, (int64_t[]){1, 6});
    tensor_id table = build_tensor(&b, GRAPH_PARAMETER, "table", 2, (int64_t[]){100, 8});
    tensor_id x = build_embedding_with(&b, "embed", ids, table);
    x = build_linear_with(&b, "head", x, table, GRAPH_NONE, 100);
    CHECK_DIMS(&b, x, 1, 6, 100);
    build_output(&b, x);
    assert_int_equal(build_end(&b), ERR_OK);
    assert_true(graph_parameters(&graph) == 800);
}

/* ---- failures ---- */

static void small_image(struct build *b)
{
    (void)build_conv(b, "bad", INPUT(b, 1, 3, 4, 4),
                     (struct build_conv){.channels = 8, .kernel = 7});
}
static void bad_groups(struct build *b)
{
    (void)build_conv(b, "bad", INPUT(b, 1, 3, 9, 9),
                     (struct build_conv){.channels = 8, .kernel = 1, .groups = 2});
}
static void bad_rank(struct build *b)
{
    (void)build_conv(b, "bad", INPUT(b, 1, 3), (struct build_conv){.channels = 8, .kernel = 1});
}
static void bad_add(struct build *b)
{
    (void)build_binary(b, GRAPH_ADD, "bad", INPUT(b, 2, 3), INPUT(b, 2, 4));
}
static void bad_matmul(struct build *b)
{
    (void)build_matmul(b, "bad", INPUT(b, 2, 3), INPUT(b, 2, 4));
}
static void bad_inferred_view(struct build *b)
{
    (void)build_view(b, "bad", INPUT(b, 2, 3), 2, (int64_t[]){4, -1});
}
static void bad_view(struct build *b)
{
    (void)build_view(b, "bad", INPUT(b, 2, 3), 1, (int64_t[]){5});
}
static void huge_view(struct build *b)
{
    (void)build_flatten(b, "bad", INPUT(b, 1, INT64_C(1) << 40, INT64_C(1) << 40));
}
static void bad_concat(struct build *b)
{
    (void)build_concat(b, "bad", 1, (tensor_id[]){INPUT(b, 2, 3), INPUT(b, 4, 3)}, 2);
}
static void bad_axis(struct build *b)
{
    (void)build_concat(b, "bad", 2, (tensor_id[]){INPUT(b, 2, 3), INPUT(b, 2, 3)}, 2);
}
static void missing_input(struct build *b)
{
    (void)build_op(b, GRAPH_RELU, "bad", GRAPH_NONE);
}

static void test_the_first_error_is_kept(void **state)
{
    (void)state;
    void (*const REJECTED[])(struct build *) = {
        small_image, bad_groups, bad_rank,   bad_add,  bad_matmul,    bad_inferred_view,
        bad_view,    huge_view,  bad_concat, bad_axis, missing_input,
    };
    for (size_t i = 0; i < sizeof REJECTED / sizeof *REJECTED; i++) {
        struct build b = begin();
        build_scope(&b, "%s", "block.");
        REJECTED[i](&b);
        if (b.err != ERR_BAD_VALUE)
            print_error("case %zu\n", i);
        assert_int_equal(b.err, ERR_BAD_VALUE);
        assert_contains(why.text, "model: block.bad ");
        struct error first = why;
        /* Later calls do nothing. */
        tensor_id x = INPUT(&b, 1, 3, 9, 9);
        assert_int_equal(x, GRAPH_NONE);
        x = build_conv(&b, "c", x, (struct build_conv){.channels = 8, .kernel = 1, .groups = -1});
        x = build_pool(&b, "p", x, (struct build_pool){GRAPH_MAX_POOL, .kernel = 2});
        x = build_flatten(&b, "f", build_global_pool(&b, "g", build_batch_norm(&b, "n", x)));
        x = build_concat(&b, "cat", 1, (tensor_id[]){x, x}, 2);
        x = build_linear(&b, "l", build_matmul(&b, "m", x, x), 3, true);
        x = build_recurrent(&b, GRAPH_LSTM, "r", build_embedding(&b, "e", x, 3, 4), 5, false);
        build_output(&b,
                     build_binary(&b, GRAPH_ADD, "a", x, build_norm(&b, GRAPH_RMS_NORM, "o", x)));
        assert_int_equal(x, GRAPH_NONE);
        assert_int_equal(build_end(&b), ERR_BAD_VALUE);
        assert_string_equal(why.text, first.text);
        assert_null(graph.nodes);
        assert_null(graph.tensors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling_against_enumerated_windows),
        cmocka_unit_test(test_shapes_of_a_resnet_stem),
        cmocka_unit_test(test_output_shapes),
        cmocka_unit_test(test_names_have_the_prefix),
        cmocka_unit_test(test_tied_embeddings_are_counted_once),
        cmocka_unit_test(test_the_first_error_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
