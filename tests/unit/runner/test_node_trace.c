/* The profile of ONNX Runtime: times by node and run, without nodes inside others. */
#include "runner/layers/node_trace.h"

#include <math.h>
#include <unistd.h>

#include "support/unit.h"

static char path[] = "/tmp/ipw-trace-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define RUN(ts, dur)                                                                               \
    "{\"cat\" : \"Session\",\"pid\" :1,\"dur\" :" #dur ",\"ts\" :" #ts                             \
    ",\"ph\" : \"X\",\"name\" :\"model_run\",\"args\" : {}},\n"
#define NODE(name, op, ts, dur)                                                                    \
    "{\"cat\" : \"Node\",\"dur\" :" #dur ",\"ts\" :" #ts ",\"name\" :\"" name                      \
    "_kernel_time\",\"args\" : {\"op_name\" : \"" op "\"}},\n"

/* Three runs, the first of which is a warm-up; an If contains a Relu; events are written when they end. */
static const char TRACE[] =
    "[\n{\"cat\" : \"Session\",\"dur\" :9,\"ts\" :1,\"name\" :\"session_initialization\",\"args\" "
    ": {}},\n" NODE("conv", "Conv", 101, 900) NODE("inner", "Relu", 1002, 5)
        NODE("branch", "If", 1001, 20) RUN(100, 1000) NODE("conv", "Conv", 2001, 10)
            NODE("inner", "Relu", 2022, 6) NODE("branch", "If", 2021, 30) RUN(2000, 60)
                NODE("conv", "Conv", 3001, 14) NODE("inner", "Relu", 3022, 8)
                    NODE("branch", "If", 3021, 30) NODE("conv", "Conv", 3052, 2)
                        RUN(3000, 61) "]\n";

static void times_are_those_of_the_node_itself(void **state)
{
    (void)state;
    struct node_trace trace;
    struct error why = {0};
    write_file(TRACE);
    assert_int_equal(node_trace_read(path, 1, &trace, &why), ERR_OK);
    assert_int_equal(trace.runs, 2);
    assert_int_equal(trace.count, 3);
    const struct {
        const char *name, *op;
        unsigned long calls;
        double first, second; /* microseconds in the two runs */
    } EXPECTED[] = {
        {"conv", "Conv", 3, 10, 16}, {"inner", "Relu", 2, 6, 8}, {"branch", "If", 2, 24, 22}};
    for (size_t i = 0; i < 3; i++) {
        const struct trace_node *node = &trace.nodes[i];
        double sigma, median = trace_node_seconds(&trace, node, &sigma);
        assert_string_equal(node->name, EXPECTED[i].name);
        assert_string_equal(node->op, EXPECTED[i].op);
        assert_int_equal(node->calls, EXPECTED[i].calls);
        assert_near(1e6 * node->seconds[0], EXPECTED[i].first, 1e-9);
        assert_near(1e6 * node->seconds[1], EXPECTED[i].second, 1e-9);
        assert_near(1e6 * median, (EXPECTED[i].first + EXPECTED[i].second) / 2, 1e-9);
        assert_true(sigma > 0.28e-6); /* whole microseconds */
    }
    node_trace_release(&trace);
    assert_null(trace.nodes);
}

static void a_file_that_is_no_profile_is_refused(void **state)
{
    (void)state;
    struct node_trace trace;
    struct error why = {0};
    write_file("[\n{\"cat\" : \"Session\"}\n]\n");
    assert_int_equal(node_trace_read(path, 0, &trace, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "line 2: no event of a profile");
    write_file("[\n{\"cat\" :\n]\n");
    assert_int_equal(node_trace_read(path, 0, &trace, &why), ERR_BAD_VALUE);
    assert_contains(why.text, path);
    write_file("[\n" RUN(100, 5) "]\n");
    assert_int_equal(node_trace_read(path, 1, &trace, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "a profile of 1 runs");
    unlink(path);
    assert_int_not_equal(node_trace_read(path, 0, &trace, &why), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_the_node_itself),
        cmocka_unit_test(a_file_that_is_no_profile_is_refused),
    };
    int file = mkstemp(path);
    if (file >= 0)
        close(file);
    return RUN_TESTS(tests);
}
