/* test: valgrind */
/* JSON lines and CSV files: valid files, invalid files, and parts of files. */
#include "support/unit.h"

#include "port/json_read.h"

#include <stdlib.h>

#include "core/log.h"
#include "support/items.h"
#include "support/tree_fixture.h"

static struct items items;
static unsigned warnings;

static void count_warning(enum log_level level, const char *line)
{
    (void)line;
    warnings += level == LOG_WARN;
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    warnings = 0;
    log_to(count_warning, LOG_WARN);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    items_release(&items);
    tree_free(&tree);
    log_to(NULL, LOG_WARN);
    return 0;
}

/* Reads /q.jsonl (or `file`) with further parameters. */
static enum err read_file(const char *file, const char *words)
{
    char path[256];
    items_release(&items);
    snprintf(path, sizeof path, "%s/%s", tree.root, file);
    return items_read(&items, path, "%s", words);
}

static void write_rows(unsigned count)
{
    char text[2000] = "";
    for (unsigned i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{\"problem\":\"p%u\"}\n", i);
    tree_write(&tree, "/q.jsonl", "%s", text);
}

static void assert_problems(const char *expected)
{
    char all[500] = "";
    for (size_t i = 0; i < items.count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "",
                 items.all[i].problem);
    assert_string_equal(all, expected);
}

static void all_line_endings_are_accepted(void **state)
{
    (void)state;
    tree_write(&tree, "/q.jsonl",
               "\xEF\xBB\xBF{\"problem\":\"p0\",\"answer\":\"a\"}\r\n\r\n{\"problem\":\"p1\"}");
    assert_int_equal(read_file("q.jsonl", ""), ERR_OK);
    assert_problems("p0 p1");
    assert_string_equal(items.name, "q");
    assert_string_equal(items.grader, "");
    assert_string_equal(items.all[0].answer, "a");
    assert_string_equal(items.all[0].id, "1"); /* its line */
    assert_string_equal(items.all[1].id, "3");
}

static void a_json_array_is_a_dataset(void **state)
{
    (void)state;
    tree_write(&tree, "/q.json", "[\n {\"problem\": \"p0\"},\n {\"problem\": \"p1\"}\n]\n");
    assert_int_equal(read_file("q.json", ""), ERR_OK);
    assert_problems("p0 p1");
}

static void invalid_text_is_repaired(void **state)
{
    (void)state;
    static const char ROWS[] = "{\"problem\":\"caf\xE9\",\"answer\":\"a\\u0000b\"}\n"
                               "{\"problem\":\"x\\ud800y\",\"k\":\"\xFF\"}\n"
                               "{\"problem\":\"n\0l\"}\n";
    tree_write_bytes(&tree, "/q.jsonl", 0, ROWS, sizeof ROWS - 1);
    assert_int_equal(read_file("q.jsonl", ""), ERR_OK);
    assert_int_equal(items.count, 3);
    assert_string_equal(items.all[0].problem, "caf\xEF\xBF\xBD");
    assert_string_equal(items.all[0].answer, "a\xEF\xBF\xBD"
                                             "b");
    assert_string_equal(items.all[1].problem, "x\xEF\xBF\xBDy");
    assert_string_equal(item_metadata_text(&items.all[1]), "{\"k\":\"\xEF\xBF\xBD\"}");
    assert_string_equal(items.all[2].problem, "n\xEF\xBF\xBDl");
}

static void invalid_rows_are_reported_with_their_line(void **state)
{
    (void)state;
    tree_write(&tree, "/q.jsonl",
               "{\"problem\":\"p0\"}\nnot json\n{\"other\":1}\n[1]\n{\"problem\":\"\"}\n"
               "{\"problem\":\"p5\"} x\n{\"problem\":\"p6\"}\n");
    assert_int_equal(read_file("q.jsonl", ""), ERR_OK);
    assert_problems("p0 p6");
    assert_int_equal(items.error_count, 5);
    assert_contains(items.errors[0], "q.jsonl, line 2: not JSON");
    assert_contains(items.errors[1], "line 3: no field");
    assert_contains(items.errors[1], "other");
    assert_contains(items.errors[2], "line 4: a row must be an object");
    assert_contains(items.errors[3], "line 5: the problem is empty");
    assert_contains(items.errors[4], "line 6: text after the JSON value");
    assert_int_equal(read_file("q.jsonl", "skip_bad=true"), ERR_OK);
    assert_problems("p0 p6");
    assert_int_equal(items.error_count, 0);
    assert_int_equal(warnings, 5);
}

static void the_first_rows_may_be_invalid(void **state)
{
    (void)state;
    tree_write(&tree, "/q.jsonl", "{bad\n{\"problem\":\"p1\"}\n");
    assert_int_equal(read_file("q.jsonl", ""), ERR_OK);
    assert_problems("p1");
    assert_int_equal(items.error_count, 1);
    assert_contains(items.errors[0], "line 1");
}

static void unusable_files_are_rejected_at_open(void **state)
{
    (void)state;
    assert_int_equal(read_file("nothing.jsonl", ""), ERR_NOT_FOUND);
    assert_contains(items.why.text, "nothing.jsonl");
    tree_write(&tree, "/q.jsonl", "%s", "");
    assert_int_equal(read_file("q.jsonl", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "is empty");
    tree_write(&tree, "/q.jsonl", "\n \n");
    assert_int_equal(read_file("q.jsonl", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "has no rows");
    tree_write(&tree, "/q.jsonl", "one\ntwo\n");
    assert_int_equal(read_file("q.jsonl", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "line 1: not JSON");
    tree_write(&tree, "/q.jsonl", "{\"text\":\"t\",\"gold\":1}\n");
    assert_int_equal(read_file("q.jsonl", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "fields: text, gold");
    assert_int_equal(read_file("q.jsonl", "problm=text"), ERR_USAGE);
    assert_contains(items.why.text, "did you mean 'problem'");
    assert_int_equal(items_read(&items, "jsonl", "limit=1"), ERR_USAGE);
    assert_contains(items.why.text, "path=FILE");
}

static void offset_and_limit_select_rows(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"limit=2", "p0 p1"}, {"offset=3", "p3 p4"},          {"offset=1, limit=2", "p1 p2"},
        {"limit=0", ""},      {"limit=99", "p0 p1 p2 p3 p4"},
    };
    write_rows(5);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(read_file("q.jsonl", CASES[i][0]), ERR_OK);
        assert_problems(CASES[i][1]);
    }
    assert_int_equal(read_file("q.jsonl", "offset=5"), ERR_BAD_VALUE);
    assert_contains(items.why.text, "no rows after offset=5");
    assert_int_equal(read_file("q.jsonl", "offset=x"), ERR_USAGE);
}

/* After the end was reported it stays: after a limit, and when the file has grown since. */
static void end_of_data_is_permanent(void **state)
{
    (void)state;
    static const char *const LIMITS[] = {"limit=1", "limit=99"};
    for (size_t i = 0; i < 2; i++) {
        char words[200];
        struct params params = {0};
        struct dataset dataset;
        struct item item;
        struct error why;
        bool end = false;
        tree_write(&tree, "/q.jsonl", "{\"problem\":\"p0\"}\n");
        snprintf(words, sizeof words, "path=%s/q.jsonl, %s", tree.root, LIMITS[i]);
        assert_int_equal(params_add(&params, words), ERR_OK);
        struct dataset_config config = {.params = &params};
        assert_int_equal(dataset_open("jsonl", &config, &dataset, &why), ERR_OK);
        for (int call = 0; call < 3; call++) {
            assert_int_equal(dataset_next(&dataset, &item, &end, &why), ERR_OK);
            assert_int_equal(end, call > 0);
            item_release(&item);
        }
        write_rows(3);
        assert_int_equal(dataset_next(&dataset, &item, &end, &why), ERR_OK);
        assert_true(end);
        dataset_close(&dataset);
        params_release(&params);
    }
}

static int compare_problems(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->problem, ((const struct item *)b)->problem);
}

static void a_shuffle_keeps_every_row(void **state)
{
    (void)state;
    char first[300], plain[] = "p0 p1 p2 p3 p4 p5 p6 p7 p8 p9";
    write_rows(10);
    assert_int_equal(read_file("q.jsonl", "shuffle=1"), ERR_OK);
    assert_int_equal(items.reported, 10); /* the number of rows is known now */
    first[0] = '\0';
    for (size_t i = 0; i < items.count; i++)
        snprintf(first + strlen(first), sizeof first - strlen(first), "%s%s", i ? " " : "",
                 items.all[i].problem);
    assert_string_not_equal(first, plain);
    assert_int_equal(read_file("q.jsonl", "shuffle=1"), ERR_OK);
    assert_problems(first);
    assert_int_equal(read_file("q.jsonl", "shuffle=1, offset=8"), ERR_OK);
    assert_problems(first + strlen("p0 p1 p2 p3 p4 p5 p6 p7 "));
    assert_int_equal(read_file("q.jsonl", "shuffle=2"), ERR_OK);
    qsort(items.all, items.count, sizeof *items.all, compare_problems);
    assert_problems(plain);
    tree_write(&tree, "/q.jsonl", "bad\n{\"problem\":\"p0\"}\n");
    assert_int_equal(read_file("q.jsonl", "shuffle=0"), ERR_OK);
    assert_contains(items.errors[0], "line 1: not JSON"); /* with its original line number */
}

static void choices_select_their_grader(void **state)
{
    (void)state;
    tree_write(&tree, "/q.jsonl",
               "{\"question\":\"q\",\"options\":[\"x\",\"y\"],\"answer\":1,\"how\":\"choice\"}\n");
    assert_int_equal(read_file("q.jsonl", "choices=options, grader=how"), ERR_OK);
    assert_string_equal(items.grader, "choice");
    assert_string_equal(items.all[0].grader, "choice");
}

static void csv_files_are_mapped_the_same_way(void **state)
{
    (void)state;
    tree_write(&tree, "/q.csv",
               "id,question,answer\r\n7,\"what\nnow?\",x\r\n8,p\r\n9,\"a \"\"b\"\"\",\r\n");
    assert_int_equal(read_file("q.csv", ""), ERR_OK);
    assert_int_equal(items.count, 2);
    assert_string_equal(items.all[0].problem, "what\nnow?");
    assert_string_equal(items.all[0].answer, "x");
    assert_string_equal(items.all[0].id, "7");
    assert_string_equal(items.all[1].problem, "a \"b\"");
    assert_string_equal(items.all[1].answer, "");
    assert_contains(items.errors[0], "q.csv, line 4: 2 fields");
    tree_write(&tree, "/q.tsv", "question\tanswer\na,b\tc\n");
    assert_int_equal(read_file("q.tsv", ""), ERR_OK);
    assert_string_equal(items.all[0].problem, "a,b");
    tree_write(&tree, "/q.csv", "question;answer\na,b;c\n");
    assert_int_equal(read_file("q.csv", "separator=semicolon"), ERR_OK);
    assert_string_equal(items.all[0].problem, "a,b");
    tree_write(&tree, "/q.csv", "question;answer\nab;c\n");
    assert_int_equal(read_file("q.csv", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "question;answer"); /* the fields name the error */
    assert_int_equal(read_file("q.csv", "separator=dot"), ERR_USAGE);
    tree_write(&tree, "/q.csv", "question,answer\n");
    assert_int_equal(read_file("q.csv", ""), ERR_BAD_VALUE);
    assert_contains(items.why.text, "no rows");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_line_endings_are_accepted),     TEST(a_json_array_is_a_dataset),
        TEST(invalid_text_is_repaired),          TEST(invalid_rows_are_reported_with_their_line),
        TEST(the_first_rows_may_be_invalid),     TEST(unusable_files_are_rejected_at_open),
        TEST(offset_and_limit_select_rows),      TEST(end_of_data_is_permanent),
        TEST(a_shuffle_keeps_every_row),         TEST(choices_select_their_grader),
        TEST(csv_files_are_mapped_the_same_way),
    };
    return RUN_TESTS(tests);
}
