#include "support/unit.h"

#include "port/json_read.h"

#include "core/text.h"
#include "datasets/dataset.h"
#include "runner/profile/supply.h"

static char ID[] = "x7", PROBLEM[] = "Why {id}?", SUBJECT[] = "physics", NOTHING[] = "";
static const char METADATA[] =
    "{\"level\": 3, \"by\": {\"name\": \"Ada\"}, \"tags\": [\"a\", \"b\"], "
    "\"none\": null, \"sure\": true, \"text\": \"a \\\"b\\\"\"}";

static struct jv *read_metadata(void)
{
    struct jv *metadata;
    assert_int_equal(jv_parse(METADATA, strlen(METADATA), &metadata, NULL), ERR_OK);
    return metadata;
}

static void a_template_is_filled(void **state)
{
    (void)state;
    static const struct {
        const char *template_text, *expected;
    } CASES[] = {
        {NULL, "Why {id}?"},
        {"", ""},
        {"{problem}", "Why {id}?"}, /* inserted text is not expanded again */
        {"{id}/{subject}: {problem}!", "x7/physics: Why {id}?!"},
        {"{level}{level}", "33"},
        {"{sure} {tags}", "true [\"a\",\"b\"]"},
        {"{text}", "a \"b\""},
        {"{by.name}", "Ada"},
        {"{} { id} {\"no\"}", "{} { id} {\"no\"}"},
        {"\\{none\\} \\{id} \\\\{id} \\boxed{}", "{none} {id} \\x7 \\boxed{}"},
        {"{\"a\": {id}}", "{\"a\": x7}"},
        {"{{id}}", "{x7}"},
        {"{id", "{id"},
        {"id}", "id}"},
        {"{\nid}", "{\nid}"},
        {"a\\nb\\tc\\d\\", "a\nb\tc\\d\\"},
        {"{id}\xc3\xb6{id}", "x7\xc3\xb6x7"},
    };
    const struct item item = {ID, PROBLEM, NOTHING, SUBJECT, read_metadata(), NOTHING, 0};
    struct text out = {0}; /* expanded at each occurrence */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(
            prompt_render(&(struct prompt_form){CASES[i].template_text, NULL}, &item, &out, NULL),
            ERR_OK);
        assert_string_equal(text_get(&out), CASES[i].expected);
    }
    jv_free(item.metadata);
    text_release(&out);
}

static void an_unknown_placeholder_lists_the_known_ones(void **state)
{
    (void)state;
    static const char *const TEMPLATES[] = {"{typo}", "{id} {typo}", "{by.nome}", "{none}",
                                            "{two words}"};
    const struct item item = {ID, PROBLEM, NOTHING, SUBJECT, read_metadata(), NOTHING, 0};
    struct text out = {0};
    for (size_t i = 0; i < sizeof TEMPLATES / sizeof *TEMPLATES; i++) {
        struct error why = {0};
        assert_int_equal(
            prompt_render(&(struct prompt_form){TEMPLATES[i], NULL}, &item, &out, &why), ERR_USAGE);
        assert_non_null(strstr(why.text, strrchr(TEMPLATES[i], '{')));
        assert_non_null(strstr(
            why.text, "has {problem}, {subject}, {id}, {level}, {by}, {tags}, {sure}, {text}"));
    }
    jv_free(item.metadata);
    text_release(&out);
}

static void an_item_without_metadata_has_its_own_fields(void **state)
{
    (void)state;
    struct jv *const METADATA_OF[] = {NULL, jv_new_object(), jv_new_array()};
    for (size_t i = 0; i < sizeof METADATA_OF / sizeof *METADATA_OF; i++) {
        const struct item item = {ID, PROBLEM, NOTHING, SUBJECT, METADATA_OF[i], NOTHING, 0};
        struct text out = {0};
        struct error why = {0};
        assert_int_equal(
            prompt_render(&(struct prompt_form){"{id} {subject}", NULL}, &item, &out, &why),
            ERR_OK);
        assert_string_equal(text_get(&out), "x7 physics");
        assert_int_equal(
            prompt_render(&(struct prompt_form){"{id} {level}", NULL}, &item, &out, &why),
            ERR_USAGE);
        jv_free(item.metadata);
        text_release(&out);
    }
}

/* It belongs to the question, wherever that is in the prompt; a template without the question asks for nothing. */
static void the_answer_format_follows_the_problem(void **state)
{
    (void)state;
    static const struct {
        const char *template_text, *expected;
    } CASES[] = {
        {NULL, "Why {id}?\n\nEnd with {id}."},
        {"Q: {problem}\\nA:", "Q: Why {id}?\n\nEnd with {id}.\nA:"},
        {"{subject}", "physics"},
    };
    const struct item item = {ID, PROBLEM, NOTHING, SUBJECT, NULL, NOTHING, 0};
    struct text out = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct prompt_form form = {CASES[i].template_text, "End with {id}."};
        assert_int_equal(prompt_render(&form, &item, &out, NULL), ERR_OK);
        assert_string_equal(text_get(&out), CASES[i].expected);
    }
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_is_filled),
        cmocka_unit_test(an_unknown_placeholder_lists_the_known_ones),
        cmocka_unit_test(an_item_without_metadata_has_its_own_fields),
        cmocka_unit_test(the_answer_format_follows_the_problem),
    };
    return RUN_TESTS(tests);
}
