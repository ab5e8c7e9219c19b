#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/energy.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/record.h"
#include "rundir/run_table.h"

static struct jv *parse(const char *text)
{
    struct jv *tree;
    assert_int_equal(jv_parse(text, strlen(text), &tree, NULL), ERR_OK);
    return tree;
}

/* ---- the table ---- */

static void test_every_view_has_consecutive_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        for (size_t before = 0; before < i; before++)
            assert_ptr_not_equal(record_export(i), record_export(before));
    for (size_t i = 0; i < RECORD_STATISTICS; i++)
        for (size_t before = 0; before < i; before++)
            assert_int_not_equal(record_statistic_at(i), record_statistic_at(before));
    for (int i = 0; i < RUN_NUMBERS; i++)
        assert_int_equal(record_column(COLUMN_NUMBER, i)->column, i);
    for (int i = 0; i < RUN_FLAGS; i++)
        assert_int_equal(record_column(COLUMN_FLAG, i)->column, i);
    for (int i = 0; i < RUN_WORDS; i++)
        assert_int_equal(record_column(COLUMN_WORD, i)->column, i);
    assert_null(record_column(COLUMN_NONE, 0));
    assert_string_equal(record_export(0)->export_name, "run");
    assert_string_equal(record_export(84)->export_name, "gap_energy_plus_minus_j");
    assert_int_equal(record_statistic_at(0), STATISTIC_ENERGY);
    assert_string_equal(record_statistic(STATISTIC_POWER)->statistic_key, "power_watts");
    assert_string_equal(record_column(COLUMN_NUMBER, RUN_TTFT)->unit, "s");
}

static void test_rows_of_earlier_versions_come_first(void **state)
{
    static const char *const NAMES[] = {"a", "new", "b", "c", "newer"};
    static const char *const FROZEN[] = {"c", "removed", "a", "b"};
    static const size_t EXPECTED[] = {3, 0, 2, 1, 4};
    size_t order[5];
    (void)state;
    record_order(NAMES, 5, FROZEN, 4, order);
    assert_memory_equal(order, EXPECTED, sizeof order);
}

static bool is_member(const struct record_field *field)
{
    return field->role == ROLE_FIELD || field->role == ROLE_PART || field->role == ROLE_EXTRA;
}

static void test_paths_and_export_names_are_unique(void **state)
{
    (void)state;
    for (const struct record_field *a = RECORD_FIELDS; a->at.path; a++) {
        assert_true(a->role != ROLE_FIELD || a->description[0]);
        for (const struct record_field *b = RECORD_FIELDS; b != a; b++) {
            if (is_member(a) && is_member(b)) {
                assert_string_not_equal(a->at.path, b->at.path);
                assert_int_not_equal(a->at.offset, b->at.offset);
            }
            if (a->export_name && b->export_name)
                assert_string_not_equal(a->export_name, b->export_name);
        }
    }
}

/* Fields of one object must be adjacent: it is opened once. */
static void test_fields_of_an_object_are_adjacent(void **state)
{
    (void)state;
    struct record record;
    struct text text = {0};
    record_init(&record);
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++) {
        void *member = (char *)&record + field->at.offset;
        if (!is_member(field))
            continue;
        if (field->at.type == FIELD_TEXT)
            *(const char **)member = "word";
        if (field->at.type == FIELD_NUMBER || field->at.type == FIELD_INTEGRAL)
            *(double *)member = 2.5;
        if (field->at.type == FIELD_INTEGER)
            *(int64_t *)member = 7;
        if (field->at.type == FIELD_BOOL)
            *(int8_t *)member = 1;
        if (field->at.type == FIELD_JSON || field->at.type == FIELD_METADATA)
            ((struct json_any *)member)->text = "{\"a\":[1]}";
    }
    record_line(&record, "some/model.v1", "query", "q000000", &text);
    static const char *const OBJECTS[] = {
        "\"model_metrics\":",   "\"ipw\":",    "\"gpu\":{\"per_query",
        "\"latency_metrics\":", "\"energy\":", "\"evaluation\":"};
    for (size_t i = 0; i < sizeof OBJECTS / sizeof *OBJECTS; i++) {
        const char *first = strstr(text_get(&text), OBJECTS[i]);
        assert_non_null(first);
        assert_null(strstr(first + 1, OBJECTS[i]));
    }

    struct jv *tree = parse(text_get(&text));
    struct record again;
    record_from_json(tree, "some/model.v1", &again);
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++) {
        if (!is_member(field))
            continue;
        assert_true(json_field_is_known(&field->at, &again));
        if (field->at.type == FIELD_TEXT)
            assert_string_equal(json_field_text(&field->at, &again), "word");
        else if (field->at.type != FIELD_JSON && field->at.type != FIELD_METADATA)
            assert_true(json_field_number(&field->at, &again) ==
                        json_field_number(&field->at, &record));
    }
    assert_true(jv_number(jv_first(jv_get(again.dataset_metadata.value, "a"))) == 1);
    jv_free(tree);
    text_release(&text);
}

/* ---- lines ---- */

static void test_unknown_fields_are_not_written(void **state)
{
    (void)state;
    struct record record;
    struct text line = {0};
    record_init(&record);
    record_line(&record, "m", "query", "q000001", &line);
    assert_string_equal(text_get(&line), "{\"kind\":\"query\",\"key\":\"q000001\"}");
    record.problem = "1 + 1?";
    record.model_answer = "2";
    record.output_tokens = 0; /* known to be zero */
    record.latency_s = 0.25;
    record.correct = 0;
    record.index = 12;
    record_line(&record, "a.b", "query", "q000012", &line);
    assert_string_equal(
        text_get(&line),
        "{\"kind\":\"query\",\"key\":\"q000012\",\"problem\":\"1 + "
        "1?\",\"model_answers\":{\"a.b\":\"2\"},"
        "\"model_metrics\":{\"a.b\":{\"latency_metrics\":{\"total_query_seconds\":0.25},"
        "\"token_metrics\":{\"output\":0},\"evaluation\":{\"is_correct\":false}}},"
        "\"ipw\":{\"index\":12}}");
    text_release(&line);
}

static void test_energy_is_written_with_its_uncertainty_and_source(void **state)
{
    (void)state;
    struct record record;
    struct text line = {0};
    struct energy unknown = energy_unknown("no sensor");
    record_init(&record);
    record.energy = record_energy_of(&unknown);
    record_line(&record, "m", "energy", "q1", &line);
    assert_string_equal(
        text_get(&line),
        "{\"kind\":\"energy\",\"key\":\"q1\",\"ipw\":{\"energy\":{\"joules\":null,\"plus_minus\":"
        "null,"
        "\"plus_minus_statistical\":null,\"method\":null,\"source\":null,\"coverage\":null,"
        "\"idle_joules\":null,\"active_joules\":null,\"updates\":null,\"low_confidence\":false,"
        "\"note\":\"no sensor\"}}}");

    struct energy known = {.joules = 5,
                           .plus_minus = 0.5,
                           .statistical = 0.25,
                           .coverage = 1,
                           .idle_joules = UNKNOWN,
                           .active_joules = UNKNOWN,
                           .method = METHOD_COUNTER,
                           .updates = 12};
    strcpy(known.source, "rapl package");
    record.energy = record_energy_of(&known);
    record_line(&record, "m", "energy", "q1", &line);
    struct jv *tree = parse(text_get(&line));
    struct record again;
    struct energy back;
    record_from_json(tree, "m", &again);
    record_energy_get(&again.energy, &back);
    assert_true(back.joules == 5 && back.statistical == 0.25 && back.method == METHOD_COUNTER);
    assert_int_equal(back.updates, 12);
    assert_string_equal(back.source, "rapl package");
    assert_true(isnan(back.idle_joules));
    assert_int_equal(again.judge_energy.low_confidence, -1);
    record_energy_get(&again.judge_energy, &back);
    assert_int_equal(back.method, METHOD_NONE);
    assert_string_equal(back.note, "not recorded");
    jv_free(tree);
    text_release(&line);
}

static void read_back(const struct energy *energy, struct energy *out)
{
    struct text text = {0};
    struct json json;
    struct jv *value;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    energy_to_json(&json, "energy", energy);
    json_object_end(&json);
    assert_int_equal(jv_parse(text_get(&text), text.length, &value, NULL), ERR_OK);
    struct record_energy read;
    record_energy_from_json(jv_get(value, "energy"), &read);
    record_energy_get(&read, out);
    jv_free(value);
    text_release(&text);
}

static void test_an_energy_round_trips(void **state)
{
    (void)state;
    struct energy out;
    for (enum method method = METHOD_COUNTER; method <= METHOD_ESTIMATED; method++) {
        struct energy energy = {.joules = 12.5,
                                .plus_minus = 0.25,
                                .statistical = 0.125,
                                .coverage = 0.75,
                                .idle_joules = 2,
                                .active_joules = 10.5,
                                .method = method,
                                .updates = 42,
                                .low_confidence = true,
                                .source = "rapl:0 package + nvml:0 energy",
                                .note = "a note"};
        read_back(&energy, &out);
        assert_near(out.joules, 12.5, 0);
        assert_near(out.plus_minus, 0.25, 0);
        assert_near(out.statistical, 0.125, 0);
        assert_near(out.coverage, 0.75, 0);
        assert_near(out.idle_joules, 2, 0);
        assert_near(out.active_joules, 10.5, 0);
        assert_int_equal(out.method, method);
        assert_int_equal(out.updates, 42);
        assert_true(out.low_confidence);
        assert_string_equal(out.source, energy.source);
        assert_string_equal(out.note, "a note");
    }
}

static void test_an_unknown_energy_stays_unknown(void **state)
{
    (void)state;
    struct energy out, unknown = energy_unknown("no sensor here");
    read_back(&unknown, &out);
    assert_int_equal(out.method, METHOD_NONE);
    assert_false(is_known(out.joules));
    assert_string_equal(out.note, "no sensor here");
    struct record_energy read;
    record_energy_from_json(NULL, &read);
    record_energy_get(&read, &out);
    assert_int_equal(out.method, METHOD_NONE);
    assert_false(is_known(out.joules));
    assert_true(out.note[0] != '\0');
}

static void test_values_of_another_type_are_unknown(void **state)
{
    (void)state;
    struct record record;
    struct jv *tree =
        parse("{\"problem\":3,\"ipw\":{\"index\":1.5,\"queue_s\":\"x\",\"restored\":1},"
              "\"model_metrics\":{\"m\":{\"token_metrics\":[],"
              "\"compute_metrics\":{\"total_flops\":1.5e13}}}}");
    record_from_json(tree, "m", &record);
    assert_null(record.problem);
    assert_true(record.index == INTEGER_UNKNOWN);
    assert_false(is_known(record.queue_s));
    assert_int_equal(record.restored, -1);
    assert_true(record.output_tokens == INTEGER_UNKNOWN);
    assert_true(record.total_flops == 1.5e13);
    record_from_json(tree, "another", &record);
    assert_false(is_known(record.total_flops));
    jv_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_view_has_consecutive_rows),
        cmocka_unit_test(test_rows_of_earlier_versions_come_first),
        cmocka_unit_test(test_paths_and_export_names_are_unique),
        cmocka_unit_test(test_fields_of_an_object_are_adjacent),
        cmocka_unit_test(test_unknown_fields_are_not_written),
        cmocka_unit_test(test_energy_is_written_with_its_uncertainty_and_source),
        cmocka_unit_test(test_an_energy_round_trips),
        cmocka_unit_test(test_an_unknown_energy_stays_unknown),
        cmocka_unit_test(test_values_of_another_type_are_unknown),
    };
    return RUN_TESTS(tests);
}
