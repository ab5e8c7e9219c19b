/* Studies: what a preset expands to, with the user's knobs and options. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "runner/sweep_preset.h"

static const struct sweep_preset TWO = {"two", "a study", "model=/dev/null,/dev/absent size=64,96",
                                        "--workload yolo --model {model} --param size={size}"};

static void join(char *const *words, size_t count, struct text *out)
{
    text_clear(out);
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s%s", i ? " " : "", words[i]);
}

static void expands(const char *knobs, const char *words, const char *expected_knobs,
                    const char *expected_words, const char *left_out)
{
    const char *given_knobs[] = {knobs}, *given_words[] = {words, "x"};
    struct sweep_expansion expansion;
    struct text found = {0}, lines = {0};
    struct error why = {0};
    assert_int_equal(sweep_preset_expand(&TWO, given_knobs, knobs != NULL, given_words,
                                         words ? 2 : 0, &expansion, &lines, &why),
                     ERR_OK);
    join(expansion.knobs, expansion.knob_count, &found);
    assert_string_equal(text_get(&found), expected_knobs);
    join(expansion.words, expansion.word_count, &found);
    assert_string_equal(text_get(&found), expected_words);
    assert_string_equal(text_get(&lines), left_out);
    assert_null(expansion.words[expansion.word_count]);
    sweep_expansion_release(&expansion);
    text_release(&found);
    text_release(&lines);
}

static void expands_with_the_users_choices(void **state)
{
    (void)state;
    static const char ABSENT[] = "/dev/absent: no such model here\n";
    static const char WORDS[] = "--workload yolo --model {model} --param size={size}";
    char with[128];
    expands(NULL, NULL, "model=/dev/null size=64,96", WORDS, ABSENT);
    expands("size=128", NULL, "model=/dev/null size=128", WORDS, ABSENT);
    expands("model=a,b", NULL, "size=64,96 model=a,b", WORDS, "");
    expands("iou=0.5,0.7", NULL, "model=/dev/null size=64,96 iou=0.5,0.7", WORDS, ABSENT);
    expands(NULL, "--model", "size=64,96", "--workload yolo --param size={size} --model x", "");
    chars_format(with, "%s --param x", WORDS); /* keyed: the last one given wins */
    expands(NULL, "--param", "model=/dev/null size=64,96", with, ABSENT);
}

static void refuses_what_leaves_nothing(void **state)
{
    (void)state;
    static const struct sweep_preset ABSENT = {"none", "", "model=/dev/absent", "--model {model}"};
    static const char *const MODEL[] = {"--model=x"};
    struct sweep_expansion expansion;
    struct text lines = {0};
    struct error why = {0};
    assert_int_equal(sweep_preset_expand(&ABSENT, NULL, 0, NULL, 0, &expansion, &lines, &why),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "--knob model=A,B"));
    assert_int_equal(sweep_preset_expand(&ABSENT, NULL, 0, MODEL, 1, &expansion, &lines, &why),
                     ERR_USAGE);
    text_release(&lines);
}

static void refuses_a_study_that_cannot_run(void **state)
{
    (void)state;
    struct sweep_expansion expansion;
    struct text lines = {0};
    struct error why = {0};
    setenv("IPW_ONNXRUNTIME_LIB", "/nowhere/libonnxruntime.so", 1);
    assert_int_equal(sweep_preset_expand(&TWO, NULL, 0, NULL, 0, &expansion, &lines, &why),
                     ERR_UNSUPPORTED);
    unsetenv("IPW_ONNXRUNTIME_LIB");
    assert_non_null(strstr(why.text, "preset two cannot run here: "));
    text_release(&lines);
}

static void knobs_are_parameters_of_the_workload(void **state)
{
    (void)state;
    static const struct {
        const char *workload, *knob, *word, *words;
    } CASES[] = {
        {"yolo", "size=64,96", NULL, "--workload yolo --param size={size}"},
        {"vit", "batch=1,4", NULL, "--workload vit --client-param batch={batch}"},
        {"vit", "threads=1,2", NULL, "--workload vit --client-param threads={threads}"},
        {"vit", "model=a,b", "--quiet", "--workload vit --quiet --model {model}"},
        {"text", "concurrency=1,2", NULL, "--workload text --concurrency {concurrency}"},
        {"vit", "top=1,5", "--param=top={top}", "--workload vit --param=top={top}"},
        {"vit", "gpu-clock=900", NULL, "--workload vit"}, /* of --control */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct sweep_expansion expansion;
        struct text found = {0};
        struct error why = {0};
        assert_int_equal(sweep_workload_expand(CASES[i].workload, &CASES[i].knob, 1, &CASES[i].word,
                                               CASES[i].word != NULL, &expansion, &why),
                         ERR_OK);
        join(expansion.words, expansion.word_count, &found);
        assert_string_equal(text_get(&found), CASES[i].words);
        assert_int_equal(expansion.knob_count, 1);
        sweep_expansion_release(&expansion);
        text_release(&found);
    }
}

static void refuses_unknown_knobs_and_workloads(void **state)
{
    (void)state;
    static const char *const KNOB = "siz=64";
    struct sweep_expansion expansion;
    struct error why = {0};
    assert_int_equal(sweep_workload_expand("yolo", &KNOB, 1, NULL, 0, &expansion, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "did you mean 'size'?"));
    assert_int_equal(sweep_workload_expand("yollo", NULL, 0, NULL, 0, &expansion, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "yolo"));
}

static void finds_by_name(void **state)
{
    (void)state;
    const struct sweep_preset *preset;
    struct error why = {0};
    assert_int_equal(sweep_preset_find("vit-batch", &preset, &why), ERR_OK);
    assert_string_equal(preset->name, "vit-batch");
    assert_int_equal(sweep_preset_find("vit-bach", &preset, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "vit-batch"));
}

/* Each knob is used by an option, and each {NAME} is a knob: a misspelled one would only show when it runs. */
static void all_knobs_are_used(void **state)
{
    (void)state;
    for (const struct sweep_preset *preset = SWEEP_PRESETS; preset->name; preset++) {
        size_t knobs = 1, places = 0;
        for (const char *at = preset->knobs; (at = strchr(at, ' ')); at++)
            knobs++;
        for (const char *at = preset->options; (at = strchr(at, '{')); at++) {
            char name[64];
            places++;
            chars_format(name, "%.*s=", (int)strcspn(at + 1, "}"), at + 1);
            assert_non_null(strstr(preset->knobs, name));
        }
        assert_int_equal(knobs, places);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_a_study_that_cannot_run), /* before the library is loaded */
        cmocka_unit_test(expands_with_the_users_choices),
        cmocka_unit_test(refuses_what_leaves_nothing),
        cmocka_unit_test(knobs_are_parameters_of_the_workload),
        cmocka_unit_test(refuses_unknown_knobs_and_workloads),
        cmocka_unit_test(finds_by_name),
        cmocka_unit_test(all_knobs_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
