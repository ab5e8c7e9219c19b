/* test: valgrind */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "rundir/run_path.h"
#include "rundir/samples.h"
#include "support/tree_fixture.h"

enum { KEPT = 4096 };

struct kept {
    size_t count;
    double t[KEPT], value[KEPT], sum[KEPT], covered[KEPT], sigma[KEPT];
    char texts[KEPT][6][40];
    enum err answer;
};

static enum err keep_sample(void *context, const struct sample *sample)
{
    struct kept *kept = context;
    size_t i = kept->count++;
    const char *const texts[6] = {sample->sensor, sample->device,   sample->channel,
                                  sample->scope,  sample->quantity, sample->unit};
    assert_true(i < KEPT);
    kept->t[i] = sample->t_s;
    kept->value[i] = sample->value;
    kept->sum[i] = sample->sum;
    kept->covered[i] = sample->covered;
    kept->sigma[i] = sample->t_plus_minus_s;
    for (size_t k = 0; k < 6; k++)
        str_copy(kept->texts[i][k], sizeof kept->texts[i][k], texts[k]);
    return kept->answer;
}

static struct kept *read_all(unsigned start, struct samples_query query, enum err expected,
                             struct samples_found *found)
{
    struct kept *kept = calloc(1, sizeof *kept);
    struct error why = {0};
    assert_non_null(kept);
    enum err err = samples_read(tree.root, start, &query, keep_sample, kept, found, &why);
    if (err != expected)
        fail_msg("%s", why.text);
    if (err)
        assert_true(why.text[0]);
    return kept;
}

static void create(struct samples_writer *writer, unsigned start)
{
    struct error why;
    char *path = run_path_samples(tree.root, start);
    assert_int_equal(samples_create(writer, path, true, &why), ERR_OK);
    free(path);
}

/* ---- round trip ---- */

static void test_rows_round_trip(void **state)
{
    (void)state;
    struct samples_writer writer;
    struct samples_found found;
    create(&writer, 1);
    const struct sample first = {
        -1.25,   "hwmon:a \"12V\", main", "board\n1", "in,1", "soc", "energy", "J", UNKNOWN, 0, 0,
        0.000125};
    const struct sample second = {0.123456789, "nvml:0", "gpu0",  "clock", "none", "clock",
                                  "MHz",       1410,     12345.6, 0.5,     UNKNOWN};
    assert_int_equal(samples_add(&writer, &first), ERR_OK);
    assert_int_equal(samples_flush(&writer), ERR_OK);
    assert_int_equal(samples_add(&writer, &second), ERR_OK);
    assert_int_equal(samples_close(&writer), ERR_OK);
    assert_int_equal(samples_close(&writer), ERR_OK); /* harmless */

    struct kept *kept = read_all(1, (struct samples_query){0}, ERR_OK, &found);
    assert_int_equal(kept->count, 2);
    assert_int_equal(found.damaged, 0);
    assert_true(kept->t[0] == -1.25 && kept->sum[0] == 0 && kept->sigma[0] == 0.000125);
    assert_true(isnan(kept->value[0]) && isnan(kept->sigma[1]));
    assert_string_equal(kept->texts[0][0], "hwmon:a \"12V\", main");
    assert_string_equal(kept->texts[0][1], "board\n1");
    assert_true(kept->t[1] == 0.123456789 && kept->value[1] == 1410 && kept->covered[1] == 0.5);
    assert_string_equal(kept->texts[1][5], "MHz");
    free(kept);
}

static void test_queries_filter_rows(void **state)
{
    (void)state;
    static const char *const QUANTITIES[] = {"energy", "power", "clock", "throttle"};
    struct samples_writer writer;
    struct samples_found found;
    create(&writer, 2);
    for (size_t i = 0; i < 4; i++) {
        struct sample sample = {
            (double)i, "s", "d", "c", i < 2 ? "gpu" : "none", QUANTITIES[i], "", 1, 2, 1, UNKNOWN};
        assert_int_equal(samples_add(&writer, &sample), ERR_OK);
    }
    assert_int_equal(samples_close(&writer), ERR_OK);
    static const struct {
        struct samples_query query;
        size_t count;
    } CASES[] = {{{.kind = SAMPLES_ALL}, 4},
                 {{.kind = SAMPLES_ENERGY}, 2},
                 {{.kind = SAMPLES_GAUGES}, 2},
                 {{.quantity = "throttle"}, 1},
                 {{.kind = SAMPLES_ENERGY, .quantity = "clock"}, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct kept *kept = read_all(2, CASES[i].query, ERR_OK, &found);
        assert_int_equal(kept->count, CASES[i].count);
        free(kept);
    }
    struct kept *kept = calloc(1, sizeof *kept);
    const struct samples_query all = {0};
    kept->answer = ERR_INTERRUPTED;
    assert_int_equal(samples_read(tree.root, 2, &all, keep_sample, kept, &found, NULL),
                     ERR_INTERRUPTED);
    assert_int_equal(kept->count, 1);
    free(kept);
}

static void test_starts_are_counted(void **state)
{
    (void)state;
    struct samples_writer writer;
    struct samples_found found;
    assert_int_equal(samples_starts(tree.root), 0);
    assert_int_equal(samples_starts("/nowhere"), 0);
    create(&writer, 1);
    assert_int_equal(samples_close(&writer), ERR_OK);
    assert_int_equal(samples_starts(tree.root), 1);
    create(&writer, 12);
    assert_int_equal(samples_close(&writer), ERR_OK);
    tree_write(&tree, "/samples-99.csvx", "no");
    tree_write(&tree, "/samples-1.csv", "no");
    tree_write(&tree, "/samples-.csv", "no");
    assert_int_equal(samples_starts(tree.root), 12);
    free(read_all(3, (struct samples_query){0}, ERR_NOT_FOUND, &found));
}

/* ---- interrupted runs and earlier versions ---- */

#define COLUMNS "t_s,sensor,device,channel,scope,quantity,unit,value,sum"

static void test_damaged_rows_are_skipped(void **state)
{
    (void)state;
    struct samples_found found;
    tree_write(&tree, "/samples.csv",
               COLUMNS ",covered,t_plus_minus_s\n"
                       "0,s,d,c,gpu,energy,J,,0,0,\n"
                       "not a time,s,d,c,gpu,energy,J,,0,0,\n"
                       "1,s,d,c\n"
                       "1,s,d,c,gpu,energy,J,5,5,1,\n"
                       "2,s,d,c,gpu,energy,J,5,1"); /* truncated: it might have been 10 */
    struct kept *kept = read_all(1, (struct samples_query){0}, ERR_OK, &found);
    assert_int_equal(kept->count, 2);
    assert_int_equal(found.damaged, 2);
    assert_true(kept->sum[1] == 5);
    free(kept);
}

static void test_columns_of_an_earlier_version_are_read(void **state)
{
    (void)state;
    struct samples_found found;
    tree_write(&tree, "/samples.csv", COLUMNS "\n1,s,d,c,gpu,energy,J,5,7\n");
    struct kept *kept = read_all(1, (struct samples_query){0}, ERR_OK, &found);
    assert_int_equal(kept->count, 1);
    assert_true(kept->sum[0] == 7 && isnan(kept->covered[0]));
    free(kept);
    tree_write(&tree, "/samples.csv", "t_s,sensor,device\n1,s,d\n");
    free(read_all(1, (struct samples_query){0}, ERR_BAD_VALUE, &found));
    tree_write(&tree, "/samples.csv", "%s", "");
    free(read_all(1, (struct samples_query){0}, ERR_BAD_VALUE, &found));
}

/* Complete lines from all over the file, and at most the requested number. */
static void test_a_large_file_is_subsampled(void **state)
{
    (void)state;
    enum { ROWS = 40000 };
    struct samples_writer writer;
    struct samples_found found;
    create(&writer, 1);
    for (size_t i = 0; i < ROWS; i++) {
        struct sample sample = {(double)i, "s", "d",       "c", "none", "throttle",
                                "bits",    1,   (double)i, 1,   UNKNOWN};
        assert_int_equal(samples_add(&writer, &sample), ERR_OK);
    }
    assert_int_equal(samples_close(&writer), ERR_OK);
    struct kept *kept = read_all(1, (struct samples_query){.bytes_max = 64 << 10}, ERR_OK, &found);
    assert_true(found.in_part);
    assert_int_equal(found.damaged, 0);
    assert_true(kept->count > 256 && kept->count < 3000);
    for (size_t i = 0; i < kept->count; i++) {
        assert_true(kept->t[i] == kept->sum[i]); /* no row is joined from two */
        assert_true(i == 0 || kept->t[i] > kept->t[i - 1]);
    }
    assert_true(kept->t[0] == 0 && kept->t[kept->count - 1] > 0.98 * ROWS);
    free(kept);
}

static void test_a_file_that_cannot_be_created(void **state)
{
    (void)state;
    struct samples_writer writer;
    struct error why = {0};
    assert_int_not_equal(samples_create(&writer, "/nowhere/samples.csv", true, &why), ERR_OK);
    assert_non_null(strstr(why.text, "/nowhere"));
    assert_int_equal(samples_close(&writer), ERR_OK);
    assert_int_equal(samples_create(&writer, "/dev/full", false, &why), ERR_NO_SPACE);
    assert_int_equal(samples_create(&writer, "/dev/full", true, &why), ERR_BAD_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_round_trip, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_queries_filter_rows, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_starts_are_counted, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_rows_are_skipped, tree_set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_columns_of_an_earlier_version_are_read, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_a_large_file_is_subsampled, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_created, tree_set_up,
                                        tree_tear_down),
    };
    return RUN_TESTS(tests);
}
