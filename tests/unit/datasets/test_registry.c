/* From a name to a dataset: drivers, presets, paths, and unknown names. */
#include "support/unit.h"

#include "port/json_read.h"

#include "stubs/arrow_fake.h"
#include "stubs/http_fake.h"
#include "support/items.h"
#include "support/tree_fixture.h"

static struct items items;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(arrow_fake_open_count(), 0);
    tree_new(&tree);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    items_release(&items);
    tree_free(&tree);
    return 0;
}

static void unknown_names_are_errors(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"bultin", "did you mean 'builtin'"}, {"mmlu_pro", "did you mean 'mmlu-pro'"},
        {"gpq", "did you mean 'gpqa'"},       {"qwertyuiop", "known: builtin, jsonl"},
        {"nothing/here", "no such file"},     {"questions.csv", "no such file"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(items_read(&items, CASES[i][0], "%s", ""), ERR_NOT_FOUND);
        assert_contains(items.why.text, CASES[i][1]);
    }
}

static void the_driver_follows_from_the_path(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *name;
    } CASES[] = {
        {"a.jsonl", "{\"problem\":\"p\"}\n", "a"},
        {"b.JSON", "[{\"problem\":\"p\"}]", "b"},
        {"c.csv", "problem\np\n", "c"},
        {"d.tsv", "problem\tx\np\ty\n", "d"},
        {"e", "{\"problem\":\"p\"}\n", "e"}, /* no extension: JSON lines */
        {"f.v2.ndjson", "{\"problem\":\"p\"}\n", "f.v2"},
    };
    char path[300];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char file[32];
        snprintf(file, sizeof file, "/%s", CASES[i].file);
        tree_write(&tree, file, "%s", CASES[i].text);
        snprintf(path, sizeof path, "%s%s", tree.root, file);
        assert_int_equal(items_read(&items, path, "%s", ""), ERR_OK);
        assert_string_equal(items.all[0].problem, "p");
        assert_string_equal(items.name, CASES[i].name);
        items_release(&items);
    }
    tree_write(&tree, "/x.parquet", "PAR1");
    snprintf(path, sizeof path, "%s/x.parquet", tree.root);
    assert_int_equal(items_read(&items, path, "%s", ""), ERR_UNSUPPORTED);
    assert_contains(items.why.text, "JSON lines, CSV");
    tree_write(&tree, "/set/state.json", "{\"_data_files\":[{\"filename\":\"a.arrow\"}]}");
    tree_write(&tree, "/set/a.arrow", "{\"problem\":\"p\"}\n");
    snprintf(path, sizeof path, "%s/set/", tree.root);
    assert_int_equal(items_read(&items, path, "%s", ""), ERR_OK);
    assert_string_equal(items.name, "set");
}

static const struct dataset_driver *driver_named(const char *name)
{
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++)
        if (strcmp((*driver)->name, name) == 0)
            return *driver;
    return NULL;
}

/* Every preset names a driver, and parameters that this driver knows. */
static void presets_have_valid_drivers_and_parameters(void **state)
{
    (void)state;
    static const char *const GRADERS = " exact contains choice numeric math list regex f1 bleu "
                                       "rouge_1 rouge_2 rouge_l judge top_1 "
                                       "map wer fid ";
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++) {
        struct params params = {0};
        struct error why = {0};
        char word[64];
        const struct dataset_driver *driver = driver_named(preset->driver);
        assert_non_null(driver);
        assert_true(preset->summary[0] && strlen(preset->summary) < 90);
        assert_int_equal(params_add(&params, preset->params), ERR_OK);
        assert_int_equal(params_check(&params, driver->params, preset->name, &why), ERR_OK);
        snprintf(word, sizeof word, " %.*s ", (int)strcspn(preset->grader, ","), preset->grader);
        assert_contains(GRADERS, word);
        params_release(&params);
    }
}

/* A row of the public dataset, and the item that its preset maps it to. */
static const struct {
    const char *preset, *row, *problem, *answer, *subject, *id, *grader;
} ROWS[] = {
    {"mmlu-pro",
     "{\"question_id\":70,\"question\":\"Which?\",\"options\":[\"B\",\"A\",\"C\"],\"answer\":\"B\","
     "\"answer_index\":1,\"cot_content\":\"\",\"category\":\"law\",\"src\":\"x\"}",
     "Which?\n\nA. B\nB. A\nC. C", "B", "law", "70", "choice"},
    {"supergpqa",
     "{\"uuid\":\"u1\",\"question\":\"Which?\",\"answer\":\"y\",\"answer_letter\":\"B\","
     "\"options\":[\"x\",\"y\"],\"discipline\":\"Law\",\"field\":\"f\",\"subfield\":\"g\"}",
     "Which?\n\nA. x\nB. y", "B", "Law", "u1", "choice"},
    {"gpqa",
     "{\"Record ID\":\"r\",\"Question\":\"Why?\",\"Correct Answer\":\"yes\",\"Incorrect Answer 1\":"
     "\"yes\",\"Incorrect Answer 2\":\"yes\",\"Incorrect Answer 3\":\"yes\",\"High-level domain\":"
     "\"Physics\"}",
     "Why?\n\nA. yes\nB. yes\nC. yes\nD. yes", NULL, "Physics", "r", "choice"},
    {"math500",
     "{\"problem\":\"1+1\",\"solution\":\"s\",\"answer\":\"2\",\"subject\":\"Algebra\",\"level\":1,"
     "\"unique_id\":\"test/1.json\"}",
     "1+1", "2", "Algebra", "test/1.json", "math"},
    {"gsm8k", "{\"question\":\"q\",\"answer\":\"1 + 1 = <<1+1=2>>2\\n#### 2\"}", "q", "2",
     "general", "1", "numeric"},
    {"natural-reasoning", "{\"question\":\"q\",\"reference_answer\":\"r\",\"responses\":[]}", "q",
     "r", "general", "1", "judge"},
    {"wildchat",
     "{\"conversation_hash\":\"h\",\"model\":\"m\",\"language\":\"English\",\"conversation\":["
     "{\"content\":\"hi\",\"role\":\"user\"},{\"content\":\"hello\",\"role\":\"assistant\"}]}",
     "hi", "hello", "English", "h", "judge"},
    {"simpleqa", "{\"metadata\":\"{'topic': 'x'}\",\"problem\":\"p\",\"answer\":\"a\"}", "p", "a",
     "general", "1", "judge"},
    {"hle",
     "{\"id\":\"h\",\"question\":\"q\",\"image\":\"\",\"answer\":\"a\",\"answer_type\":"
     "\"exactMatch\","
     "\"category\":\"Math\"}",
     "q", "a", "Math", "h", "judge"},
    {"gaia",
     "{\"task_id\":\"t\",\"Question\":\"q\",\"Level\":\"1\",\"Final answer\":\"a, b\","
     "\"file_name\":\"\"}",
     "q", "a, b", "1", "t", "list"},
    {"frames",
     "{\"Unnamed: 0\":0,\"Prompt\":\"p\",\"Answer\":\"a\",\"reasoning_types\":\"Tabular\"}", "p",
     "a", "Tabular", "1", "judge"},
};

static void presets_map_rows_of_their_datasets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        tree_write(&tree, "/copy.jsonl", "%s\n", ROWS[i].row);
        enum err err = items_read(&items, ROWS[i].preset, "path=%s/copy.jsonl", tree.root);
        if (err)
            print_error("%s: %s\n", ROWS[i].preset, items.why.text);
        assert_int_equal(err, ERR_OK);
        assert_int_equal(items.count, 1);
        assert_string_equal(items.name, ROWS[i].preset);
        assert_string_equal(items.grader, ROWS[i].grader);
        assert_string_equal(items.all[0].problem, ROWS[i].problem);
        if (ROWS[i].answer)
            assert_string_equal(items.all[0].answer, ROWS[i].answer);
        assert_string_equal(items.all[0].subject, ROWS[i].subject);
        assert_string_equal(items.all[0].id, ROWS[i].id);
        items_release(&items);
    }
}

/* The marker that the grader of the dataset reads is asked for, in no other dataset and not in its problems. */
static void presets_ask_for_the_marker_of_their_grader(void **state)
{
    (void)state;
    static const struct {
        const char *grader, *asked;
    } MARKERS[] = {
        {"choice", "\"Answer: X\""}, {"numeric", "\"Answer: X\""}, {"math", "\\boxed{}"}};
    size_t asking = 0;
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++) {
        const char *format = dataset_answer_format(preset->name), *wanted = NULL;
        for (size_t i = 0; i < sizeof MARKERS / sizeof *MARKERS; i++)
            if (strcmp(preset->grader, MARKERS[i].grader) == 0)
                wanted = MARKERS[i].asked;
        assert_int_equal(format != NULL, wanted != NULL);
        if (wanted)
            assert_contains(format, wanted);
        asking += wanted != NULL;
    }
    assert_int_equal(asking, 5);
    assert_null(dataset_answer_format("builtin"));
    assert_null(dataset_answer_format("/data/gsm8k"));
}

static void presets_skip_rows_with_images(void **state)
{
    (void)state;
    tree_write(&tree, "/copy.jsonl",
               "{\"id\":\"1\",\"question\":\"q\",\"image\":\"data:...\",\"answer\":\"a\","
               "\"category\":\"c\"}\n");
    assert_int_equal(items_read(&items, "hle", "path=%s/copy.jsonl", tree.root), ERR_OK);
    assert_int_equal(items.count, 0);
    assert_int_equal(items.reported, -1);
    items_release(&items);
    assert_int_equal(items_read(&items, "hle", "path=%s/copy.jsonl, without=", tree.root), ERR_OK);
    assert_int_equal(items.count, 1);
}

static enum err answer_404(const char *url, struct text *body, int *status, double *retry_after_s)
{
    (void)url, (void)body, (void)retry_after_s;
    *status = 404;
    return ERR_OK;
}

/* Without a local copy a preset queries the public server, and a user's parameter overrides the preset's. */
static void presets_are_read_from_the_hub(void **state)
{
    (void)state;
    http_fake = (struct http_fake){.answer = answer_404};
    assert_int_equal(items_read(&items, "gsm8k", "split=train, refresh=true"), ERR_NOT_FOUND);
    assert_string_equal(http_fake.urls[0],
                        "https://datasets-server.huggingface.co/rows?dataset=openai%2Fgsm8k"
                        "&config=main&split=train&offset=0&length=100");
    assert_int_equal(items_read(&items, "ipw", "%s", ""), ERR_USAGE);
    assert_contains(items.why.text, "dataset ipw needs path=DIR");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(unknown_names_are_errors),
        TEST(the_driver_follows_from_the_path),
        TEST(presets_have_valid_drivers_and_parameters),
        TEST(presets_map_rows_of_their_datasets),
        TEST(presets_ask_for_the_marker_of_their_grader),
        TEST(presets_skip_rows_with_images),
        TEST(presets_are_read_from_the_hub),
    };
    return RUN_TESTS(tests);
}
