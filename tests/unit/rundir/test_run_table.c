/* The table of a run: its columns from either file, and what is reported about unusable runs. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/arrow.h"
#include "rundir/record.h"
#include "rundir/run_table.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/store.h"
#include "support/tree_fixture.h"

/* Four queries: complete, failed, without energy and unread, and correct with a numeric level, of an earlier version. */
static const char JOURNAL[] =
    "{\"kind\":\"run\",\"hardware_label\":\"X9\",\"start\":1}\n"
    "{\"kind\":\"query\",\"key\":\"q000000\",\"subject\":\"law\",\"dataset_metadata\":{\"level\":"
    "\"easy\"},"
    "\"model_metrics\":{\"m.1\":{\"token_metrics\":{\"input\":3,\"output\":5,\"total\":8},"
    "\"latency_metrics\":{\"total_query_seconds\":2},\"evaluation\":{\"is_correct\":false,"
    "\"status\":\"graded\"}}},"
    "\"ipw\":{\"index\":0,\"repeat\":0,\"start\":1,\"status\":\"completed\"}}\n"
    "{\"kind\":\"energy\",\"key\":\"q000000\",\"ipw\":{\"energy\":{\"joules\":10,\"plus_minus\":1,"
    "\"coverage\":0.5,\"method\":\"counter\",\"low_confidence\":true}}}\n"
    "{\"kind\":\"query\",\"key\":\"q000001\",\"subject\":\"law\",\"model_metrics\":{\"m.1\":{}},"
    "\"ipw\":{\"index\":1,\"repeat\":0,\"start\":1,\"status\":\"failed\",\"error\":\"HTTP 500\"}}\n"
    "{\"kind\":\"query\",\"key\":\"q000002.r1\",\"subject\":\"\",\"model_metrics\":{\"m.1\":{"
    "\"token_metrics\":{\"input\":4,\"output\":6},\"evaluation\":{\"status\":\"unread\"}}},"
    "\"ipw\":{\"index\":2,\"repeat\":1,\"start\":2,\"status\":\"completed\"}}\n"
    "{\"kind\":\"query\",\"key\":\"q000003\",\"subject\":\"physics\",\"dataset_metadata\":{"
    "\"level\":\"hard\"},"
    "\"model_metrics\":{\"m.1\":{\"evaluation\":{\"is_correct\":true}}},"
    "\"ipw\":{\"index\":3,\"repeat\":0,\"start\":2,\"status\":\"completed\"}}\n";

static const char *run_with_journal(const char *summary)
{
    tree_write(&tree, "/run/records.jsonl", "%s", JOURNAL);
    if (summary)
        tree_write(&tree, "/run/summary.json", "%s", summary);
    static char path[300];
    str_format(path, sizeof path, "%s/run", tree.root);
    return path;
}

static struct run_table load_table(const char *path, const char *model, struct run_wanted wanted)
{
    struct run_table table;
    struct error why = {0};
    enum err err = run_table_load(path, model, wanted, &table, &why);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    return table;
}

static void check_rows(const struct run_table *table)
{
    char key[RUN_KEY_MAX];
    assert_int_equal(table->rows, 4);
    assert_int_equal(table->failed, 1);
    assert_string_equal(table->model, "m.1");
    assert_true(table->ours);
    assert_near(run_number(table, RUN_JOULES, 0), 10, 0);
    assert_near(run_number(table, RUN_COVERAGE, 0), 0.5, 0);
    assert_near(run_number(table, RUN_WATTS, 0), 5, 0);
    assert_true(isnan(run_number(table, RUN_JOULES, 2)));
    assert_near(run_number(table, RUN_TOTAL_TOKENS, 0), 8, 0);
    assert_near(run_number(table, RUN_TOTAL_TOKENS, 2), 10, 0); /* derived from the two */
    assert_true(isnan(run_number(table, RUN_TOTAL_TOKENS, 3)));
    assert_null(table->numbers[RUN_SOC_JOULES]); /* unknown for all */
    assert_int_equal(run_flag(table, RUN_CORRECT, 0), 0);
    assert_int_equal(run_flag(table, RUN_CORRECT, 1), -1);
    assert_int_equal(run_flag(table, RUN_CORRECT, 2), -1);
    assert_int_equal(run_flag(table, RUN_CORRECT, 3), 1);
    static const int UNREAD[] = {0, -1, 1, -1}, VERDICTS[] = {0, -1, 0, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(run_flag(table, RUN_UNREAD, i), UNREAD[i]);
        assert_int_equal(run_verdict(table, i), VERDICTS[i]);
    }
    assert_int_equal(run_flag(table, RUN_LOW_CONFIDENCE, 0), 1);
    assert_false(run_completed(table, 1));
    assert_string_equal(run_word(table, RUN_ERROR, 1), "HTTP 500");
    assert_string_equal(run_word(table, RUN_SUBJECT, 1), "law");
    assert_string_equal(run_word(table, RUN_SUBJECT, 2), "");
    assert_string_equal(run_word(table, RUN_LEVEL, 3), "hard");
    assert_int_equal(run_word_id(table, RUN_SUBJECT, 0), run_word_id(table, RUN_SUBJECT, 1));
    assert_string_equal(run_key(table, 0, key), "q000000");
    assert_string_equal(run_key(table, 2, key), "q000002.r1");
}

static void test_a_journal_is_loaded(void **state)
{
    (void)state;
    struct run_table table = load_table(run_with_journal(NULL), NULL, RUN_WANT_ALL);
    check_rows(&table);
    assert_int_equal(table.source, RUN_FROM_JOURNAL);
    assert_string_equal(run_hardware(&table), "X9");
    assert_int_equal(table.note_count, 1);
    assert_contains(table.notes[0].text, "unfinished; 4 records");
    run_table_release(&table);
}

static enum err put_record(void *context, const struct jv *record)
{
    struct store *store = context;
    struct error why = {0};
    return store->driver->put(store, record, &why);
}

static void write_arrow(const char *path)
{
    char journal[400];
    struct jv *metadata;
    struct store store;
    struct error why = {0};
    uint64_t damaged;
    const struct store_driver *const *driver = STORE_DRIVERS;
    while (strcmp((*driver)->name, "arrow") != 0)
        driver++;
    assert_int_equal(jv_parse("{\"level\":\"x\"}", 13, &metadata, &why), ERR_OK);
    struct store_run run = {path, "m.1", metadata};
    assert_int_equal(store_open(*driver, &run, &store, &why), ERR_OK);
    str_format(journal, sizeof journal, "%s/records.jsonl", path);
    assert_int_equal(journal_records(journal, put_record, &store, &damaged, &why), ERR_OK);
    assert_int_equal(store.driver->finish(&store, NULL, &why), ERR_OK);
    store_close(&store);
    jv_free(metadata);
}

static void test_arrow_and_journal_agree(void **state)
{
    (void)state;
    const char *path = run_with_journal("{\"model\":\"m.1\",\"hardware_label\":\"H1\"}");
    write_arrow(path);
    struct run_table table = load_table(path, NULL, RUN_WANT_ALL);
    check_rows(&table);
    assert_int_equal(table.source, RUN_FROM_ARROW);
    assert_string_equal(run_hardware(&table), "H1");
    assert_int_equal(table.note_count, 0);
    run_table_release(&table);
}

static void test_only_wanted_columns_are_kept(void **state)
{
    (void)state;
    struct run_wanted wanted = {RUN_WANT(RUN_WATTS), RUN_WANT(RUN_SUBJECT)};
    struct run_table table = load_table(run_with_journal(NULL), "m.1", wanted);
    assert_near(run_number(&table, RUN_WATTS, 0), 5, 0);
    assert_null(table.numbers[RUN_JOULES]); /* loaded as an input, then freed */
    assert_null(table.numbers[RUN_INPUT_TOKENS]);
    assert_int_equal(run_flag(&table, RUN_CORRECT, 3), 1);
    run_table_release(&table);
}

static void check_rejected(const char *path, const char *model, enum err code, const char *words)
{
    struct run_table table;
    struct error why = {0};
    assert_int_equal(run_table_load(path, model, RUN_WANT_ALL, &table, &why), code);
    assert_contains(why.text, words);
    assert_int_equal(table.rows, 0);
}

static void test_unusable_runs_are_rejected(void **state)
{
    (void)state;
    char path[300];
    const char *run = run_with_journal(NULL);
    check_rejected(run, "other", ERR_NOT_FOUND, "no model 'other': it has m.1");
    str_format(path, sizeof path, "%s/none", tree.root);
    check_rejected(path, NULL, ERR_NOT_FOUND, "no such directory");
    check_rejected(tree.root, NULL, ERR_NOT_FOUND, "not a run directory");
    tree_write(&tree, "/bare/records.jsonl", "{\"kind\":\"run\"}\n");
    str_format(path, sizeof path, "%s/bare", tree.root);
    check_rejected(path, NULL, ERR_NO_DATA, "no record");
    tree_write(&tree, "/cut/data-00000-of-00001.arrow", "\xff\xff\xff\xff");
    str_format(path, sizeof path, "%s/cut", tree.root);
    check_rejected(path, NULL, ERR_BAD_VALUE, "truncated");
}

static void test_column_names_are_unique(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_NUMBERS; i++) {
        assert_true(record_column(COLUMN_NUMBER, (int)i)->name[0] &&
                    record_column(COLUMN_NUMBER, (int)i)->label[0]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(record_column(COLUMN_NUMBER, (int)i)->name,
                                    record_column(COLUMN_NUMBER, (int)j)->name);
    }
    for (int i = 0; i < RUN_WORDS; i++)
        assert_true(record_column(COLUMN_WORD, (int)i)->name[0] &&
                    record_column(COLUMN_WORD, (int)i)->label[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_journal_is_loaded, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_arrow_and_journal_agree, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_only_wanted_columns_are_kept, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_unusable_runs_are_rejected, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test(test_column_names_are_unique),
    };
    return RUN_TESTS(tests);
}
