/* test: valgrind */
/* From a row to an item: fields, templates, choices, filters, metadata. */
#include "support/unit.h"

#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "port/json_read.h"
#include "support/items.h"

/* Maps one row; `item` is the caller's to release. */
static enum err map(const char *words, const char *row, struct item *item, bool *wanted,
                    struct error *why)
{
    struct params params = {0};
    struct row_mapping mapping;
    struct jv *parsed;
    *item = (struct item){0};
    *why = (struct error){0};
    assert_int_equal(params_add(&params, words), ERR_OK);
    assert_int_equal(jv_parse(row, strlen(row), &parsed, why), ERR_OK);
    enum err err = row_mapping_init(&mapping, &params, why);
    if (!err) {
        err = row_mapping_check(&mapping, parsed, why);
        if (!err)
            err = row_mapping_apply(&mapping, parsed, 7, item, wanted, why);
        row_mapping_release(&mapping);
    }
    jv_free(parsed);
    params_release(&params);
    return err;
}

/* NULL: not checked. */
static const struct sample {
    const char *words, *row;
    const char *problem, *answer, *subject, *id, *metadata;
} SAMPLES[] = {
    /* default field names */
    {"", "{\"question\":\"q\",\"answer\":\"a\"}", "q", "a", "general", "7", "{}"},
    {"", "{\"prompt\":\"p\",\"target\":5,\"category\":\"c\",\"id\":\"x\",\"more\":[1,2]}", "p", "5",
     "c", "x", "{\"more\":[1,2]}"},
    {"", "{\"input\":\"\",\"instruction\":\"i\",\"output\":true}", "i", "true", NULL, NULL,
     "{\"input\":\"\"}"},
    {"", "{\"problem\":\"p\",\"question\":\"q\",\"level\":3}", "p", "", "3", NULL,
     "{\"question\":\"q\"}"},
    /* given field names, and paths */
    {"problem=q.text, answer=a.0, subject=m.s",
     "{\"q\":{\"text\":\"t\"},\"a\":[\"x\",\"y\"],\"m\":{\"s\":\"S\"}}", "t", "x", "S", "7",
     "{\"q\":{\"text\":\"t\"},\"a\":[\"x\",\"y\"],\"m\":{\"s\":\"S\"}}"},
    {"problem=a.b", "{\"a.b\":\"dotted\"}", "dotted", "", NULL, NULL, "{}"},
    {"problem=x|y", "{\"x\":null,\"y\":\"z\"}", "z", "", NULL, NULL, "{\"x\":null}"},
    {"answer=solution", "{\"problem\":\"p\",\"solution\":null}", "p", "", NULL, NULL, "{}"},
    /* templates */
    {"template={question}\\n{options}\\n\\{x\\}\\t\\\\",
     "{\"question\":\"q\",\"options\":[\"o\",2]}", "q\no\n2\n{x}\t\\", "", NULL, NULL, "{}"},
    {"template=Say: {problem}", "{\"prompt\":\"hi\"}", "Say: hi", "", NULL, NULL, "{}"},
    {"template={a}{b}", "{\"a\":\"x\",\"b\":null}", "x", "", NULL, NULL, "{}"},
    /* choices */
    {"choices=options", "{\"question\":\"q\",\"options\":[\"x\",\"y\"],\"answer\":1}",
     "q\nA. x\nB. y", "B", NULL, NULL, "{\"choices\":[\"x\",\"y\"]}"},
    {"choices=options", "{\"question\":\"q\",\"options\":[\"x\",\"y\"],\"answer\":\"y\"}", NULL,
     "B", NULL, NULL, NULL},
    {"choices=options", "{\"question\":\"q\",\"options\":[\"x\",\"y\"],\"answer\":\"a\"}", NULL,
     "A", NULL, NULL, NULL},
    {"choices=options", "{\"question\":\"q\",\"options\":[\"x\",\"y\"],\"answer\":\"1\"}", NULL,
     "B", NULL, NULL, NULL},
    {"choices=options, answer_is=letter",
     "{\"question\":\"q\",\"options\":[\"B\",\"A\"],\"answer\":\"B\"}", NULL, "B", NULL, NULL,
     NULL},
    {"choices=options, answer_is=text",
     "{\"question\":\"q\",\"options\":[\"B\",\"A\"],\"answer\":\"B\"}", NULL, "A", NULL, NULL,
     NULL},
    {"choices=options",
     "{\"question\":\"q\",\"options\":{\"A\":\"x\",\"B\":\"y\"},\"answer\":\"B\"}", "q\nA. x\nB. y",
     "B", NULL, NULL, NULL},
    {"choices=options", "{\"question\":\"q\",\"options\":[\"x\",\"y\"]}", NULL, "", NULL, NULL,
     NULL},
    {"choices=r|w|v, answer=r", "{\"question\":\"q\",\"r\":\"1\",\"w\":\"2\",\"v\":null}",
     "q\nA. 1\nB. 2", "A", NULL, NULL, "{\"v\":null,\"choices\":[\"1\",\"2\"]}"},
    {"choices=options, template={choices} -- {question}",
     "{\"question\":\"q\",\"options\":[\"x\",\"y\"]}", "A. x\nB. y -- q", "", NULL, NULL, NULL},
    /* answers and metadata */
    {"answer_after=####", "{\"question\":\"q\",\"answer\":\"a #### b\\n#### 1,000 \"}", NULL,
     "1,000", NULL, NULL, NULL},
    {"answer_after=####", "{\"question\":\"q\",\"answer\":\"none\"}", NULL, "none", NULL, NULL,
     NULL},
    {"metadata=m", "{\"question\":\"q\",\"m\":\"{\\\"k\\\":1}\",\"rest\":2}", NULL, NULL, NULL,
     NULL, "{\"k\":1}"},
    {"metadata=m", "{\"question\":\"q\",\"m\":{\"k\":1}}", NULL, NULL, NULL, NULL, "{\"k\":1}"},
    {"metadata=m", "{\"question\":\"q\",\"m\":\"words\"}", NULL, NULL, NULL, NULL,
     "{\"m\":\"words\"}"},
    {"metadata=m", "{\"question\":\"q\",\"m\":null}", NULL, NULL, NULL, NULL, "{}"},
};

#define SAME(got, expected)                                                                        \
    do {                                                                                           \
        if (expected)                                                                              \
            assert_string_equal(got, expected);                                                    \
    } while (0)

static void rows_are_mapped_to_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        const struct sample *sample = &SAMPLES[i];
        struct item item;
        bool wanted = false;
        struct error why;
        enum err err = map(sample->words, sample->row, &item, &wanted, &why);
        if (err)
            print_error("row %zu: %s\n", i, why.text);
        assert_int_equal(err, ERR_OK);
        assert_true(wanted);
        SAME(item.problem, sample->problem);
        SAME(item.answer, sample->answer);
        SAME(item.subject, sample->subject);
        SAME(item.id, sample->id);
        SAME(item_metadata_text(&item), sample->metadata);
        item_release(&item);
    }
}

static void unusable_rows_report_the_reason(void **state)
{
    (void)state;
    static const char *const CASES[][3] = {
        {"", "[1]", "must be an object"},
        {"", "{\"text\":\"t\",\"label\":1}", "fields: text, label"},
        {"problem=qestion", "{\"question\":\"q\"}", "no field 'qestion' for the problem"},
        {"answer=gold", "{\"question\":\"q\"}", "no field 'gold' for the answer"},
        {"", "{\"question\":\"\"}", "empty"},
        {"", "{\"question\":null}", "empty"},
        {"template={x}", "{\"question\":\"q\"}", "no field 'x'"},
        {"template={question", "{\"question\":\"q\"}", "without its '}'"},
        {"choices=options", "{\"question\":\"q\"}", "'options'"},
        {"choices=options", "{\"question\":\"q\",\"options\":\"x\"}", "not a list"},
        {"choices=options", "{\"question\":\"q\",\"options\":[\"x\"]}", "fewer than two"},
        {"choices=o", "{\"question\":\"q\",\"o\":[1,2],\"answer\":\"z\"}", "none of the 2 choices"},
        {"choices=o", "{\"question\":\"q\",\"o\":[1,2],\"answer\":2}", "none of the 2 choices"},
        {"choices=o", "{\"question\":\"q\",\"o\":[\"B\",\"A\"],\"answer\":\"B\"}", "answer_is="},
        {"choices=o, answer_is=word", "{\"question\":\"q\"}", "expected letter"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct item item;
        bool wanted = false;
        struct error why;
        assert_int_not_equal(map(CASES[i][0], CASES[i][1], &item, &wanted, &why), ERR_OK);
        assert_contains(why.text, CASES[i][2]);
        item_release(&item);
    }
}

static void too_many_choices_are_rejected(void **state)
{
    (void)state;
    char row[400] = "{\"question\":\"q\",\"o\":[1";
    for (int i = 2; i <= 27; i++)
        snprintf(row + strlen(row), sizeof row - strlen(row), ",%d", i);
    snprintf(row + strlen(row), sizeof row - strlen(row), "]}");
    struct item item;
    bool wanted = false;
    struct error why;
    assert_int_equal(map("choices=o", row, &item, &wanted, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "more than 26");
    item_release(&item);
}

static void rows_are_filtered_by_field(void **state)
{
    (void)state;
    static const struct {
        const char *words, *row;
        bool wanted;
    } CASES[] = {
        {"without=image", "{\"question\":\"q\",\"image\":\"\"}", true},
        {"without=image", "{\"question\":\"q\",\"image\":null}", true},
        {"without=image", "{\"question\":\"q\"}", true},
        {"without=image|file", "{\"question\":\"q\",\"file\":\"f\"}", false},
        {"require=answer", "{\"question\":\"q\",\"answer\":\"a\"}", true},
        {"require=answer", "{\"question\":\"q\",\"answer\":\"\"}", false},
        {"require=problem|answer", "{\"problem\":\"\",\"answer\":\"a\"}", false},
        {"require=n", "{\"question\":\"q\",\"n\":0}", true}, /* 0 is a present value */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct item item;
        bool wanted = false;
        struct error why;
        assert_int_equal(map(CASES[i].words, CASES[i].row, &item, &wanted, &why), ERR_OK);
        assert_int_equal(wanted, CASES[i].wanted);
        assert_int_equal(item.problem != NULL, wanted);
        item_release(&item);
    }
}

/* The position of the correct choice differs between rows, its letter with it, and the same row
 * always gives the same order. */
static void choices_are_shuffled_by_a_hash_of_the_problem(void **state)
{
    (void)state;
    unsigned at[4] = {0};
    for (int i = 0; i < 200; i++) {
        char row[200], line[40];
        struct item item, again;
        bool wanted = false;
        struct error why;
        const char *words = "choices=r|a|b|c, answer=r, answer_is=text, shuffle_choices=3";
        snprintf(row, sizeof row,
                 "{\"question\":\"q%d\",\"r\":\"right\",\"a\":\"x\",\"b\":\"y\",\"c\":\"z\"}", i);
        assert_int_equal(map(words, row, &item, &wanted, &why), ERR_OK);
        assert_int_equal(map(words, row, &again, &wanted, &why), ERR_OK);
        assert_string_equal(item.problem, again.problem);
        snprintf(line, sizeof line, "\n%s. right", item.answer);
        assert_contains(item.problem ? item.problem : "", line);
        at[item.answer[0] - 'A']++;
        item_release(&item);
        item_release(&again);
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(at[i], 25, 75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_mapped_to_items),
        cmocka_unit_test(unusable_rows_report_the_reason),
        cmocka_unit_test(too_many_choices_are_rejected),
        cmocka_unit_test(rows_are_filtered_by_field),
        cmocka_unit_test(choices_are_shuffled_by_a_hash_of_the_problem),
    };
    return RUN_TESTS(tests);
}
