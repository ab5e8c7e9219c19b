/* Labels as exporters write them, and the most probable classes of an output. */
#include "support/unit.h"

#include "core/text.h"
#include "workloads/labels.h"

static void check_names(const char *literal, const char *joined)
{
    struct labels labels;
    struct error why = {0};
    struct text found = {0};
    enum err err = labels_parse(literal, &labels, &why);
    if (err)
        print_error("%s: %s\n", literal, why.text);
    assert_int_equal(err, ERR_OK);
    for (size_t i = 0; i < labels.count; i++)
        text_addf(&found, "%s%s", i ? "|" : "", labels_text(&labels, i).text);
    assert_string_equal(text_get(&found), joined);
    text_release(&found);
    labels_release(&labels);
}

static void dictionaries_and_lists_are_read(void **state)
{
    (void)state;
    check_names("{0: 'person', 1: 'bicycle'}", "person|bicycle");
    check_names(" { 0 : \"driver's seat\" , 1:'a \"b\"', } ", "driver's seat|a \"b\"");
    check_names("{\"0\": \"person\", \"1\": \"caf\\u00e9\"}", "person|café");
    check_names("['a', 'b\\'c', 'd\\\\e']", "a|b'c|d\\e");
    check_names("['\\x41\\n', 'füße', '\\U0001f600']", "A |füße|😀");
    check_names("{2: 'c', 0: 'a'}", "a|1|c"); /* a class without a name has its number */
    check_names("{0: 'a', 0: 'b'}", "b");
    check_names("{}", "");
    check_names("[]", "");
}

static void damaged_literals_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *literal, *expected;
    } CASES[] = {
        {"", "a dictionary or a list"},
        {"person", "a dictionary or a list"},
        {"{0: 'a'", "a comma"},
        {"{0: 'a' 1: 'b'}", "a comma"},
        {"{0 'a'}", "a colon"},
        {"{x: 'a'}", "the number of a class"},
        {"{-1: 'a'}", "the number of a class"},
        {"{99999999: 'a'}", "the number of a class"},
        {"{123456789012345678901: 'a'}", "the number of a class"},
        {"{'0: 'a'}", "the end of a quoted number"},
        {"{0: a}", "a quoted name"},
        {"['a', 'b", "the end of a quoted name"},
        {"['a\\", "the end of a quoted name"},
        {"['a', {", "a quoted name"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct labels labels;
        struct error why = {0};
        assert_int_equal(labels_parse(CASES[i].literal, &labels, &why), ERR_BAD_VALUE);
        if (!strstr(why.text, CASES[i].expected))
            print_error("%s: %s\n", CASES[i].literal, why.text);
        assert_non_null(strstr(why.text, CASES[i].expected));
        assert_null(labels.names);
        assert_int_equal(labels.count, 0);
    }
}

static void check_answer(const float *values, size_t count, size_t top, const char *expected)
{
    struct labels labels;
    struct text answer = {0};
    assert_int_equal(labels_parse("['a', 'b', 'c']", &labels, NULL), ERR_OK);
    labels_answer(&labels, values, count, top, &answer);
    assert_string_equal(text_get(&answer), expected);
    text_release(&answer);
    labels_release(&labels);
}

static void logits_become_probabilities(void **state)
{
    (void)state;
    static const float PROBABILITIES[] = {0.2F, 0.7F, 0.1F};
    static const float LOGITS[] = {1, 1, -1};
    static const float LARGE[] = {1000, 999, -1000};
    static const float EQUAL[] = {0, 0, 0};
    check_answer(PROBABILITIES, 3, 2,
                 "[{\"label\":\"b\",\"score\":0.7},{\"label\":\"a\",\"score\":0.2}]");
    check_answer(LOGITS, 3, 3,
                 "[{\"label\":\"a\",\"score\":0.468311},{\"label\":\"b\",\"score\":0.468311},"
                 "{\"label\":\"c\",\"score\":0.0633789}]");
    check_answer(LARGE, 3, 2,
                 "[{\"label\":\"a\",\"score\":0.731059},{\"label\":\"b\",\"score\":0.268941}]");
    check_answer(EQUAL, 3, 1, "[{\"label\":\"a\",\"score\":0.333333}]");
    check_answer(EQUAL, 3, 10,
                 "[{\"label\":\"a\",\"score\":0.333333},{\"label\":\"b\",\"score\":0.333333},"
                 "{\"label\":\"c\",\"score\":0.333333}]");
}

static void the_number_of_labels_is_checked(void **state)
{
    (void)state;
    struct labels labels = {0};
    struct error why = {0};
    assert_int_equal(labels_check(&labels, 7, "m.onnx", &why), ERR_OK); /* none: numbers */
    assert_int_equal(labels_parse("['a', 'b', 'c']", &labels, &why), ERR_OK);
    assert_int_equal(labels_check(&labels, 3, "m.onnx", &why), ERR_OK);
    assert_int_equal(labels_check(&labels, 4, "m.onnx", &why), ERR_BAD_VALUE);
    assert_string_equal(why.text, "m.onnx: the model has 4 classes, but 3 labels");
    labels_release(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dictionaries_and_lists_are_read),
        cmocka_unit_test(damaged_literals_are_refused),
        cmocka_unit_test(logits_become_probabilities),
        cmocka_unit_test(the_number_of_labels_is_checked),
    };
    return RUN_TESTS(tests);
}
