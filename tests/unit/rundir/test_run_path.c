#include "support/unit.h"

#include <stdlib.h>

#include "core/text.h"
#include "rundir/run_path.h"

static void hardware_labels_match_those_of_older_runs(void **state)
{
    (void)state;
    static const struct {
        const char *gpu, *cpu, *label;
    } CASES[] = {
        {"NVIDIA H100 80GB HBM3 x8", NULL, "H10080GB"},
        {"NVIDIA A100-SXM4-80GB x1", NULL, "A100SXM4"},
        {"NVIDIA GeForce RTX 4090 x1", NULL, "RTX4090"},
        {"AMD Instinct MI300X x8", NULL, "MI300Xx8"},
        {"NVIDIA (2 GPUs)", NULL, "2"},
        {"Apple GPU", "Apple M4 Max", "M4"},
        {"NVIDIA Jetson AGX Orin Developer Kit", "Unknown CPU", "Kit"},
        {NULL, "AMD EPYC 9654 96-Core Processor", "EPYC9654"},
        {NULL, "AMD Ryzen 9 7950X 16-Core Processor", "7950X16"},
        /* in order of preference */
        {"NVIDIA H200 x1", "AMD EPYC 9654 96-Core Processor", "H200x1"},
        {"Apple GPU", "Some Processor", "GPU"},
        {"", "Some Processor", "Processor"},
        {"", "", "UNKNOWN_HW"},
        {NULL, NULL, "UNKNOWN_HW"},
        {"--", "()", "UNKNOWN_HW"},
        /* lowercase words are used, in uppercase, only if there is no other */
        {"m4 pro", NULL, "M4"},
        {"some gpu", NULL, "GPU"},
        {"NVIDIA xyz 12 x1", NULL, "XYZ12"},
        {"Long 12", NULL, "12"}, /* words of mixed case are not joined */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char label[64];
        hardware_label(CASES[i].gpu, CASES[i].cpu, label, sizeof label);
        assert_string_equal(label, CASES[i].label);
    }
}

static void a_small_buffer_truncates_the_label(void **state)
{
    (void)state;
    char label[4];
    hardware_label("NVIDIA GeForce RTX 4090 x1", NULL, label, sizeof label);
    assert_string_equal(label, "RTX");
    /* A name far longer than any real one is truncated. */
    char name[400], wide[300];
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = i % 7 ? 'A' : '1';
    name[sizeof name - 1] = '\0';
    hardware_label(name, NULL, wide, sizeof wide);
    assert_true(wide[0] == '1');
}

static void query_keys_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool good;
        uint64_t index;
        unsigned repeat;
    } CASES[] = {
        {"q000000", true, 0, 0},
        {"q000012.r1", true, 12, 1},
        {"q1234567890", true, 1234567890, 0},
        {"q000003.r100", true, 3, 100},
        {NULL, false, 0, 0},
        {"", false, 0, 0},
        {"q", false, 0, 0},
        {"000012", false, 0, 0},
        {"qx", false, 0, 0},
        {"q12x", false, 0, 0},
        {"q12.r", false, 0, 0},
        {"q.r1", false, 0, 0},
        {"q1.rx", false, 0, 0},
        {"q-1", false, 0, 0},
        {"q1.r4294967296", false, 0, 0},
        {"q99999999999999999999999999999999999999", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint64_t index = 77;
        unsigned repeat = 77;
        bool good = query_key_parse(CASES[i].key, &index, &repeat);
        if (good != CASES[i].good)
            print_error("%s\n", CASES[i].key);
        assert_true(good == CASES[i].good);
        if (good) {
            assert_int_equal(index, CASES[i].index);
            assert_int_equal(repeat, CASES[i].repeat);
        }
    }
}

static void stems_omit_repeat_numbers_and_timestamps(void **state)
{
    (void)state;
    static const struct {
        const char *path, *stem;
    } CASES[] = {
        {"runs/x_r1", "runs/x"},
        {"runs/x_r12/", "runs/x"},
        {"run_H100_sleep_1_20260131T235959Z", "run_H100_sleep_1"},
        {"run_H100_sleep_1_20260131T235959Z-2", "run_H100_sleep_1"},
        {"run_H100_sleep_1_20260131T235959Z_r3", "run_H100_sleep_1"},
        {"runs/x", "runs/x"},
        {"runs/v2", "runs/v2"},
        {"runs/build-101", "runs/build-101"},
        {"runs/x_rate2", "runs/x_rate2"},
        {"x_2026-131T235959Z", "x_2026-131T235959Z"},
        {"r1", "r1"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char stem[64];
        str_format(stem, sizeof stem, "%.*s", (int)run_path_stem(CASES[i].path), CASES[i].path);
        assert_string_equal(stem, CASES[i].stem);
    }
}

static void repeat_groups_are_unique(void **state)
{
    (void)state;
    struct run_repeat a = run_repeat_new(), b = run_repeat_new();
    char name[8] = "x";
    assert_string_not_equal(a.group, b.group);
    a.number = 12;
    assert_true(run_repeat_name(&a, name, sizeof name));
    assert_string_equal(name, "x_r12");
    assert_false(run_repeat_name(&a, name, sizeof name)); /* buffer too small */
}

static void parts_are_parsed_and_formatted(void **state)
{
    static const char *const WRONG[] = {"",     "1",    "/",   "0/2",   "3/2",    "1/0",
                                        "-1/2", "1/2x", "a/b", "1/2/3", "1/10001"};
    struct run_part part;
    char text[RUN_PART_MAX], stem[40];
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        assert_false(run_part_parse(WRONG[i], &part));
    assert_true(run_part_parse("2/14", &part));
    run_part_name(&part, text, sizeof text);
    assert_string_equal(text, "2/14");
    char *path = run_part_path("runs", "x_shardy", &part);
    assert_string_equal(path, "runs/x_shardy_shard2of14");
    str_format(stem, sizeof stem, "%.*s", (int)run_part_stem(path), path);
    assert_string_equal(stem, "runs/x_shardy");
    assert_int_equal(run_part_stem("x_shard2of14_c4"), strlen("x_shard2of14_c4"));
    free(path);
}

/* Readers go through all starts up to the last. */
static void a_name_gives_the_number_of_a_possible_start_only(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned start;
    } CASES[] = {
        {"samples.csv", 1},        {"samples-2.csv", 2},          {"samples-100000.csv", 100000},
        {"samples-100001.csv", 0}, {"samples-4294967295.csv", 0}, {"samples-1.csv", 0},
        {"samples-2.csv.gz", 0},   {"samples-.csv", 0},           {"spans.jsonl", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(run_path_start_of(CASES[i].name), CASES[i].start);
}

static void paths_in_files_stay_below_their_directory(void **state)
{
    (void)state;
    static const char *const BELOW[] = {"points/p001_r1/run_x", "x", "..x/y..", ".x", "a//b", "a/"};
    static const char *const OUTSIDE[] = {"",          "/",    "/x", "..",   "../x",
                                          "a/../../x", "a/..", ".",  "a/./b"};
    for (size_t i = 0; i < sizeof BELOW / sizeof *BELOW; i++)
        assert_true(run_path_is_below(BELOW[i]));
    for (size_t i = 0; i < sizeof OUTSIDE / sizeof *OUTSIDE; i++)
        assert_false(run_path_is_below(OUTSIDE[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_parsed_and_formatted),
        cmocka_unit_test(hardware_labels_match_those_of_older_runs),
        cmocka_unit_test(a_small_buffer_truncates_the_label),
        cmocka_unit_test(query_keys_are_parsed),
        cmocka_unit_test(stems_omit_repeat_numbers_and_timestamps),
        cmocka_unit_test(repeat_groups_are_unique),
        cmocka_unit_test(a_name_gives_the_number_of_a_possible_start_only),
        cmocka_unit_test(paths_in_files_stay_below_their_directory),
    };
    return RUN_TESTS(tests);
}
