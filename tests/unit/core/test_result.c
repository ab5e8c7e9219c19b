/* test: valgrind */
/* The tree of a result: what was added is found by its path, also while it grows. */
#include "core/result.h"

#include "core/energy.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/units.h"
#include "support/unit.h"

static void fill(struct result *result)
{
    result_begin(result, "sample");
    result_text(result, "model", "tiny");
    result_group(result, "energy_j");
    result_figure(result, "total", 12, 0.5, "J");
    result_interval(result, "total", 11, 13);
    result_end(result);
    result_list(result, "points");
    for (int i = 0; i < 3; i++) {
        result_group(result, NULL);
        result_integer(result, "clock", 1000 + i);
        result_flag(result, "best", i == 1);
        result_end(result);
    }
    result_end(result);
    result_null(result, "request");
    result_integer(result, "seed", INT64_MAX);
    result_end(result);
}

static void test_items_are_found_by_path(void **state)
{
    (void)state;
    struct result result = {0};
    fill(&result);
    assert_true(result_number_at(result.items, "energy_j.total") == 12);
    assert_true(result_find(&result, "energy_j.total")->error == 0.5);
    assert_true(result_find(&result, "energy_j.total")->high == 13);
    assert_true(result_number_at(result.items, "points.2.clock") == 1002);
    assert_true(result_flag_at(result.items, "points.1.best"));
    assert_false(result_flag_at(result.items, "points.0.best"));
    assert_string_equal(result_text_at(result.items, "model"), "tiny");
    assert_true(result_find(&result, "seed")->integer == INT64_MAX);
    const struct result_item *points = result_find(&result, "points");
    assert_int_equal(result_length(points), 3);
    assert_true(result_number_at(points, "1.clock") == 1001);
    result_release(&result);
}

static void test_what_is_missing_is_unknown(void **state)
{
    (void)state;
    static const char *const PATHS[] = {"none",      "energy_j.none", "points.3",   "points.x",
                                        "points.1x", "model.below",   "points.0.0", "request"};
    struct result result = {0};
    fill(&result);
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        assert_false(is_known(result_number_at(result.items, PATHS[i])));
        assert_string_equal(result_text_at(result.items, PATHS[i]), "");
        assert_false(result_flag_at(result.items, PATHS[i]));
    }
    assert_null(result_find(&result, "points.3"));
    assert_false(result_is_known(result_find(&result, "request")));
    result_release(&result);
}

struct sample {
    const char *name;
    double joules;
};

static void test_numbers_of_a_struct_have_their_units(void **state)
{
    (void)state;
    static const struct result_member MEMBERS[] = {
        {"energy_j", offsetof(struct sample, joules), "J"},
        {0},
    };
    struct sample sample = {"tiny", 2.5};
    struct result result = {0};
    result_begin(&result, "sample");
    result_members(&result, MEMBERS, &sample);
    result_end(&result);
    assert_true(result_number_at(result.items, "energy_j") == 2.5);
    assert_string_equal(result_find(&result, "energy_j")->unit, "J");
    assert_int_equal(result_length(result.items), 1);
    result_release(&result);
}

static void test_a_json_writer_fills_a_result_with_units_and_errors(void **state)
{
    (void)state;
    struct energy energy = energy_unknown("");
    struct result result = {0};
    struct json json;
    energy.joules = 5;
    energy.plus_minus = 0.25;
    energy.method = METHOD_COUNTER;
    energy.updates = 30;
    result_begin(&result, "sample");
    result_writer(&result, &json);
    energy_to_json(&json, "energy", &energy);
    json_object(&json, "power_w");
    json_number(&json, "mean", 7);
    json_object_end(&json);
    json_number(&json, "cost", 3);
    json_number(&json, "tokens_per_s", 9);
    json_number(&json, "cost_plus_minus", 0.5);
    json_raw(&json, "host", "{\"os\":1}");
    result_end(&result);
    assert_true(result_number_at(result.items, "energy.joules") == 5);
    assert_true(result_find(&result, "energy.joules")->error == 0.25);
    assert_string_equal(result_find(&result, "energy.joules")->unit, "J");
    assert_string_equal(result_find(&result, "energy.plus_minus")->unit, "J");
    assert_string_equal(result_text_at(result.items, "energy.method"), "counter");
    assert_true(result_find(&result, "energy.updates")->integer == 30);
    assert_string_equal(result_find(&result, "power_w.mean")->unit, "W");
    assert_true(result_find(&result, "cost")->error == 0.5);
    assert_string_equal(result_find(&result, "tokens_per_s")->unit, "");
    assert_int_equal(result_find(&result, "host")->kind, RESULT_JSON);
    assert_int_equal(result.depth, 0);
    result_release(&result);
}

static void test_secrets_are_hidden_in_texts(void **state)
{
    (void)state;
    struct result result = {0};
    secret_add("sk-1234567890");
    result_begin(&result, "sample");
    result_text(&result, "command", "curl -H 'sk-1234567890'");
    result_json(&result, "host", "{\"name\":\"sk-1234567890\"}");
    result_text(&result, "other", "plain");
    result_end(&result);
    result_hide_secrets(&result);
    assert_string_equal(result_text_at(result.items, "command"), "curl -H '***'");
    assert_string_equal(result_text_at(result.items, "host"), "{\"name\":\"***\"}");
    assert_string_equal(result_text_at(result.items, "other"), "plain");
    result_release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_found_by_path),
        cmocka_unit_test(test_what_is_missing_is_unknown),
        cmocka_unit_test(test_numbers_of_a_struct_have_their_units),
        cmocka_unit_test(test_a_json_writer_fills_a_result_with_units_and_errors),
        cmocka_unit_test(test_secrets_are_hidden_in_texts),
    };
    return RUN_TESTS(tests);
}
