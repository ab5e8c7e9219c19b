/* Topological order: each node after its producers, unchanged where that holds already, and cycles reported. */
#include <stdlib.h>

#include "core/text.h"
#include "graph/graph.h"
#include "support/unit.h"

static struct graph graph;
static struct error why;

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    return 0;
}

static void begin(size_t tensors)
{
    graph_release(&graph);
    why = (struct error){0};
    for (size_t i = 0; i < tensors; i++) {
        struct graph_tensor tensor = {.name = "t", .rank = 1, .dims = {4}};
        assert_int_equal(graph_add_tensor(&graph, &tensor), (tensor_id)i);
    }
}

/* Node NUMBER produces tensor NUMBER. */
static void add(int number, const tensor_id *inputs, size_t count)
{
    char name[16];
    tensor_id out = number;
    str_format(name, sizeof name, "n%d", number);
    struct graph_node node = {.op = GRAPH_RELU, .name = name};
    graph_add_node(&graph, &node, inputs, count, &out, 1);
}

static void check_order(void)
{
    for (size_t i = 0; i < graph.node_count; i++) {
        const struct graph_node *node = &graph.nodes[i];
        assert_int_equal(graph_output(&graph, node, 0)->producer, i);
        for (size_t k = 0; k < node->input_count; k++) {
            const struct graph_tensor *in = graph_input(&graph, node, k);
            assert_true(!in || in->producer < (node_id)i);
        }
    }
}

static void test_topological_order_is_unchanged(void **state)
{
    (void)state;
    begin(5);
    add(3, NULL, 0);
    add(1, (tensor_id[]){3, GRAPH_NONE}, 2);
    add(4, (tensor_id[]){1, 3}, 2);
    add(0, (tensor_id[]){2}, 1); /* without a producer */
    assert_int_equal(graph_finish(&graph, &why), ERR_OK);
    static const char *const NAMES[] = {"n3", "n1", "n4", "n0"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(graph.nodes[i].name, NAMES[i]);
    check_order();
}

static int draw(uint32_t *state, int below)
{
    *state = *state * 1664525U + 1013904223U;
    return (int)((*state >> 8) % (uint32_t)below);
}

/* Random graphs, given in random order: node a reads nodes of smaller numbers. */
static void test_random_order_is_sorted(void **state)
{
    (void)state;
    enum { NODES = 60 };
    uint32_t seed = 7;
    for (int round = 0; round < 200; round++) {
        int order[NODES];
        begin(NODES);
        for (int i = 0; i < NODES; i++)
            order[i] = i;
        for (int i = NODES - 1; i > 0; i--) {
            int other = draw(&seed, i + 1), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (int i = 0; i < NODES; i++) {
            tensor_id inputs[3];
            size_t count = order[i] ? (size_t)draw(&seed, 4) : 0;
            for (size_t k = 0; k < count; k++)
                inputs[k] = draw(&seed, order[i]);
            add(order[i], inputs, count);
        }
        assert_int_equal(graph_finish(&graph, &why), ERR_OK);
        assert_int_equal(graph.node_count, NODES);
        check_order();
    }
}

static void test_cycles_are_rejected(void **state)
{
    (void)state;
    begin(1);
    add(0, (tensor_id[]){0}, 1);
    assert_int_equal(graph_finish(&graph, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "n0");
    begin(4);
    add(3, NULL, 0);
    add(0, (tensor_id[]){3, 2}, 2);
    add(1, (tensor_id[]){0}, 1);
    add(2, (tensor_id[]){1}, 1);
    assert_int_equal(graph_finish(&graph, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "cycle");
    assert_null(strstr(why.text, "n3"));
}

/* A chain in reverse order, deeper than a call stack; and one node that reads all. */
static void test_deep_and_wide_graphs(void **state)
{
    (void)state;
    const int nodes =
        getenv("IPW_SLOW") ? 10000 : 100000; /* fewer under valgrind, which covers the same code */
    char last[16];
    begin((size_t)nodes);
    for (int i = nodes - 1; i >= 0; i--) {
        tensor_id before = i - 1;
        add(i, &before, i > 0);
    }
    assert_int_equal(graph_finish(&graph, &why), ERR_OK);
    assert_string_equal(graph.nodes[0].name, "n0");
    str_format(last, sizeof last, "n%d", nodes - 1);
    assert_string_equal(graph.nodes[nodes - 1].name, last);
    check_order();

    tensor_id *all = malloc((size_t)nodes * sizeof *all);
    assert_non_null(all);
    begin((size_t)nodes);
    for (int i = 1; i < nodes; i++)
        all[i - 1] = i;
    add(0, all, nodes - 1);
    for (int i = 1; i < nodes; i++)
        add(i, NULL, 0);
    free(all);
    assert_int_equal(graph_finish(&graph, &why), ERR_OK);
    assert_string_equal(graph.nodes[nodes - 1].name, "n0");
    check_order();
}

static void test_empty_graph(void **state)
{
    (void)state;
    begin(0);
    assert_int_equal(graph_finish(&graph, &why), ERR_OK);
    assert_int_equal(graph.node_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topological_order_is_unchanged),
        cmocka_unit_test(test_random_order_is_sorted),
        cmocka_unit_test(test_cycles_are_rejected),
        cmocka_unit_test(test_deep_and_wide_graphs),
        cmocka_unit_test(test_empty_graph),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
