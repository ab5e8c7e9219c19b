/* test: valgrind */
#include "support/unit.h"

#include <math.h>

#include "core/text.h"
#include "port/json_read.h"
#include "rundir/spans.h"
#include "support/tree_fixture.h"

static void a_span_is_written_as_json(void **state)
{
    (void)state;
    static const nanos PIECES[] = {5000000, 7001500, 9003000};
    struct span_line span = {.key = "q000001",
                             .kind = SPAN_FAILED_ATTEMPT,
                             .start = 2,
                             .attempt = 1,
                             .from_s = 0.25,
                             .first_token_s = UNKNOWN,
                             .to_s = 1.5,
                             .input_tokens = -1,
                             .output_tokens = 0,
                             .pieces_from = 5000000,
                             .pieces = PIECES,
                             .piece_count = 3};
    struct text line = {0};
    span_to_json(&span, &line);
    /* The remaining microsecond is in the next gap. */
    assert_string_equal(
        text_get(&line),
        "{\"key\":\"q000001\",\"start\":2,\"span\":\"failed_attempt\",\"attempt\":1,"
        "\"from_s\":0.25,\"to_s\":1.5,\"output_tokens\":0,\"piece_gaps_us\":[0,2001,2002]}");
    span.first_token_s = 0.5;
    span.input_tokens = 12;
    span.piece_count = 0;
    span_to_json(&span, &line);
    assert_non_null(
        strstr(text_get(&line), "\"first_token_s\":0.5,\"to_s\":1.5,\"input_tokens\":12,"));
    assert_non_null(strstr(text_get(&line), "\"piece_gaps_us\":[]}"));
    text_release(&line);
}

static const char LINES[] =
    "{\"key\":\"q000002.r1\",\"start\":2,\"span\":\"request\",\"from_s\":1,\"to_s\":3}\n"
    "{\"key\":\"q000001\",\"start\":1,\"span\":\"request\",\"from_s\":2,\"first_token_s\":2.5,\"to_"
    "s\":4}\n"
    "no JSON\n"
    "{\"key\":\"q000000\",\"start\":1,\"span\":\"sent\",\"from_s\":0}\n"
    "{\"key\":\"q000000\",\"start\":1,\"span\":\"request\",\"from_s\":1,\"to_s\":3}\n"
    "{\"key\":\"q000000\",\"start\":1,\"span\":\"request\",\"from_s\":1,\"to_s\":0.5}\n"
    "{\"key\":\"q00001x\",\"start\":1,\"span\":\"judge\",\"from_s\":3,\"to_s\":5}\n";

static void spans_are_loaded_and_assigned_to_lanes(void **state)
{
    (void)state;
    struct spans spans;
    struct error why = {0};
    tree_write(&tree, "/spans.jsonl", "%s", LINES);
    assert_int_equal(spans_load(tree.root, &spans, &why), ERR_OK);
    assert_int_equal(spans.count, 4);
    assert_int_equal(spans.damaged, 1);
    assert_int_equal(spans.starts, 2);
    assert_int_equal(spans.items[0].index, 0);
    assert_true(isnan(spans.items[0].first_token) && spans.items[1].first_token == 2.5);
    assert_int_equal(spans.items[2].kind, SPAN_JUDGE);
    assert_true(spans.items[2].index == SPAN_NO_QUERY); /* a damaged key belongs to no query */
    assert_int_equal(spans.items[3].index, 2);
    assert_int_equal(spans.items[3].repeat, 1);
    assert_int_equal(spans.items[3].start, 2);
    assert_int_equal(spans_assign_lanes(&spans, 8), 2);
    assert_int_equal(spans.items[0].lane, 0);
    assert_int_equal(spans.items[1].lane, 1);
    assert_int_equal(spans.items[2].lane, 0); /* free again at 3 */
    assert_int_equal(spans.items[3].lane, 0); /* another start */
    assert_int_equal(spans_assign_lanes(&spans, 1), 1);
    spans_release(&spans);
}

static void load_requests_omits_judge_spans(void **state)
{
    (void)state;
    struct spans spans;
    struct error why = {0};
    assert_int_equal(spans_load(tree.root, &spans, &why), ERR_NOT_FOUND);
    assert_int_equal(spans_load_requests(tree.root, &spans, &why), ERR_NO_DATA);
    tree_write(&tree, "/spans.jsonl", "%s", LINES);
    assert_int_equal(spans_load_requests(tree.root, &spans, &why), ERR_OK);
    assert_int_equal(spans.count, 3);
    spans_release(&spans);
    tree_write(&tree, "/spans.jsonl", "{\"span\":\"judge\",\"from_s\":3,\"to_s\":5}\n");
    assert_int_equal(spans_load_requests(tree.root, &spans, &why), ERR_NO_DATA);
    assert_true(why.text[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_is_written_as_json),
        cmocka_unit_test_setup_teardown(spans_are_loaded_and_assigned_to_lanes, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(load_requests_omits_judge_spans, tree_set_up,
                                        tree_tear_down),
    };
    return RUN_TESTS(tests);
}
