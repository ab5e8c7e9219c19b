/* test: valgrind */
/* The journal of a sweep: keys of earlier versions, and which attempts count. */
#include "rundir/sweep.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "support/tree.h"
#include "support/unit.h"

static const char KEYS[] = "\"kind\":\"profile\",\"min_mhz\":510,\"max_repeats\":7",
                  OLD_KEYS[] = "\"points_are\":\"profile\",\"least_mhz\":510,\"most_repeats\":7";

static void write_journal(struct tree *tree, const char *keys, const char *attempts)
{
    struct text text = {0};
    text_addf(&text,
              "{\"kind\":\"run\",\"format\":1,\"run_kind\":\"sweep\",\"start\":1,"
              "\"started_at\":1.5,\"settings\":{\"knobs\":[\"gpu-clock\",\"n\"],\"points\":"
              "[[\"510\",\"a\"],[\"default\",\"a\"]],\"options\":[],\"command\":[\"x\"],"
              "\"repeats\":2,%s}}\n%s",
              keys, attempts);
    tree_write(tree, "/sweep/records.jsonl", "%s", text_get(&text));
    text_release(&text);
}

static void load(const struct tree *tree, struct sweep *out)
{
    char path[200];
    struct error why = {0};
    str_format(path, sizeof path, "%s/sweep", tree->root);
    if (sweep_load(path, out, &why))
        fail_msg("%s", why.text);
}

static void keys_of_earlier_versions_are_read(void **state)
{
    static const char *const VERSIONS[] = {KEYS, OLD_KEYS};
    (void)state;
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++) {
        struct tree tree;
        struct sweep sweep;
        tree_new(&tree);
        write_journal(&tree, VERSIONS[i], "");
        load(&tree, &sweep);
        assert_true(sweep.profile);
        assert_int_equal(sweep.min_mhz, 510);
        assert_int_equal(sweep.max_repeats, 7);
        assert_int_equal(sweep.point_count, 2);
        assert_int_equal(sweep_point(&sweep, 0)[0].number, 510);
        assert_int_equal(sweep_point(&sweep, 1)[0].kind, SETTING_DEFAULT);
        assert_string_equal(sweep_point(&sweep, 1)[1].text, "a");
        sweep_release(&sweep);
        tree_free(&tree);
    }
}

static void flags_decide_which_attempts_count(void **state)
{
    static const struct {
        const char *flags;
        int exit_code;
        const char *joules;
        enum sweep_exclusion exclusion;
        bool is_rejected;
    } CASES[] = {
        {"", 0, "10", SWEEP_USED, false},
        {"background_cpu", 0, "10", SWEEP_USED, false},
        {"throttled", 0, "10", SWEEP_THROTTLED, true},
        {"background_cpu,throttled", 0, "10", SWEEP_THROTTLED, true},
        {"off_target_clock", 0, "10", SWEEP_OFF_TARGET, true},
        {"gpu_lost", 0, "10", SWEEP_OFF_TARGET, true},
        {"gpu_idle", 0, "10", SWEEP_USED, false},
        {"not_cooled", 0, "10", SWEEP_USED, false},
        {"throttled_not", 0, "10", SWEEP_USED, false},
        {"throttled", 2, "10", SWEEP_FAILED, true},
        {"", 0, "null", SWEEP_UNMEASURED, false},
    };
    struct text lines = {0};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        text_addf(&lines,
                  "{\"kind\":\"point\",\"point\":1,\"repeat\":%zu,\"exit_code\":%d,"
                  "\"flags\":\"%s\",\"seconds\":1,\"joules\":%s}\n",
                  i + 1, CASES[i].exit_code, CASES[i].flags, CASES[i].joules);
    struct tree tree;
    struct sweep sweep;
    size_t used = 0;
    tree_new(&tree);
    write_journal(&tree, KEYS, text_get(&lines));
    load(&tree, &sweep);
    assert_int_equal(sweep.count, sizeof CASES / sizeof *CASES);
    for (size_t i = 0; i < sweep.count; i++) {
        if (sweep_exclusion_of(&sweep.attempts[i]) != CASES[i].exclusion ||
            sweep_is_rejected(&sweep.attempts[i]) != CASES[i].is_rejected)
            fail_msg("'%s': %s", CASES[i].flags,
                     sweep_exclusion_name(sweep_exclusion_of(&sweep.attempts[i])));
        used += CASES[i].exclusion == SWEEP_USED;
    }
    struct sweep_figures figures = sweep_figures(&sweep, 0);
    assert_int_equal(figures.measured, used);
    assert_int_equal(figures.failed, 1);
    assert_float_equal(figures.joules, 10, 1e-12);
    sweep_release(&sweep);
    tree_free(&tree);
    text_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_earlier_versions_are_read),
        cmocka_unit_test(flags_decide_which_attempts_count),
    };
    return RUN_TESTS(tests);
}
