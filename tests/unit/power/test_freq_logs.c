/* The figures of an imported log that no command prints: activities, the clock, flags. */
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/file.h"
#include "power/freq_points.h"
#include "support/tree.h"

/* Five rows before the workload, ten of it: FP32 0.4 in every other row, FP64 0.1, DRAM 0.5 and one
 * row without values. */
static const char *write_log(const char *folder, const char *name)
{
    static char path[1700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail_msg("cannot write %s", path);
    fputs("#Entity   SMCLK  TMPTR  POWER  TOTEC  GRACT  SMACT  DRAMA  FP64A  FP32A  GPUTL\n", file);
    fputs("ID               C      W      mJ\n", file);
    for (int i = 0; i < 16; i++) {
        if (i == 8)
            fprintf(file, "GPU 0     1305   60     100    %d   N/A  N/A  N/A  N/A  N/A  80\n",
                    1000 + 100 * i);
        else if (i >= 5 && i < 15)
            fprintf(file,
                    "GPU 0     1305   %d     100    %d   0.000  0.600  0.500  0.100  %s  80\n",
                    50 + i, 1000 + 100 * i, i % 2 ? "0.400" : "0.000");
        else
            fprintf(file,
                    "GPU 0     210    %d     30     %d   0.000  0.000  0.000  0.000  0.000  0\n",
                    50 + i, 1000 + 100 * i);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void activities_and_clock_of_a_log(void **state)
{
    (void)state;
    char folder[] = "/tmp/ipw-freq-logs-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct freq_points points = {0};
    struct error why = {0};
    const char *path = write_log(folder, "run_4_02_freq_1410_profile.csv");
    assert_true(freq_points_is_log(path));
    assert_int_equal(freq_points_import(&points, &(struct freq_source){.path = path}, &why),
                     ERR_OK);
    assert_int_equal(points.count, 1);
    const struct freq_point *p = &points.items[0];
    assert_true(p->freq_mhz == 1410 && p->achieved_mhz == 1305);
    assert_true(p->run == 2 && p->seq == 4 && p->temperature_c == 64);
    assert_true(fabs(p->activity[FREQ_FP] - (0.4 / 2 + 0.1)) < 1e-9);
    assert_true(fabs(p->activity[FREQ_DRAM] - 0.5) < 1e-9);
    assert_true(fabs(p->activity[FREQ_SM] - 0.6) < 1e-9); /* the engine's is stuck at 0 */
    assert_true(fabs(p->activity[FREQ_UTIL] - 0.8) < 1e-9);
    assert_true(p->idle_w == 30);
    assert_int_equal(p->flags, FREQ_LOG_IDLE_PARTS);
    freq_points_release(&points);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A copy of a directory is often called "run (2)". */
static void a_directory_may_have_any_name(void **state)
{
    (void)state;
    struct tree tree;
    struct freq_points points = {0};
    struct error why = {0};
    char folder[200];
    tree_new(&tree);
    tree_write(&tree, "/run (2)/timing_summary.log",
               "run_id,frequency_mhz,duration_seconds,exit_code,status\n4_02,1410,114,0,success\n");
    snprintf(folder, sizeof folder, "%s/run (2)", tree.root);
    const struct freq_source source = {.path = write_log(folder, "run_4_02_freq_1410_profile.csv")};
    assert_int_equal(freq_points_import(&points, &source, &why), ERR_OK);
    assert_int_equal(points.count, 1);
    assert_true(points.items[0].freq_mhz == 1410 && points.items[0].raw_time_s == 114);
    freq_points_release(&points);
    tree_free(&tree);
}

static void a_log_may_have_a_long_path(void **state)
{
    (void)state;
    struct tree tree;
    struct freq_points points = {0};
    struct error why = {0};
    char path[1700];
    tree_new(&tree);
    char *deep = tree_deep(&tree, 1600);
    write_log(deep, "run_4_02_freq_1410_profile.csv");
    snprintf(path, sizeof path, "%s/timing_summary.log", deep);
    static const char OUTCOME[] = "run_id,frequency_mhz,duration_seconds,exit_code,status\n"
                                  "4_02,1410,114,0,success\n";
    assert_int_equal(output_put(path, OUTCOME, strlen(OUTCOME), &why), ERR_OK);
    assert_int_equal(freq_points_import(&points, &(struct freq_source){.path = deep}, &why),
                     ERR_OK);
    assert_int_equal(points.count, 1);
    assert_true(points.items[0].raw_time_s == 114);
    freq_points_release(&points);
    free(deep);
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activities_and_clock_of_a_log),
        cmocka_unit_test(a_directory_may_have_any_name),
        cmocka_unit_test(a_log_may_have_a_long_path),
    };
    return RUN_TESTS(tests);
}
