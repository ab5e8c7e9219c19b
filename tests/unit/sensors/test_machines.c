/* test: real time */
/* The fake machines of the C tests and of tests/fixtures/make-tree are equal, and tick-tree
 * advances their counters. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "support/machines.h"
#include "support/sensing.h"
#include "support/tree.h"

static void intel2(struct tree *tree)
{
    machine_intel_two_socket(tree, MACHINE_PERF | MACHINE_POWERCAP);
}

static void amd(struct tree *tree)
{
    machine_amd(tree, MACHINE_PERF | MACHINE_POWERCAP);
}

static const struct {
    const char *name;
    void (*build)(struct tree *tree);
} MACHINES[] = {
    {"intel2", intel2},       {"amd", amd},
    {"guest", machine_guest}, {"psys-dead", machine_psys_only},
    {"none", machine_none},
};

static int run(const char *script, const char *a, const char *b)
{
    char command[1024];
    snprintf(command, sizeof command, "'%s'/%s %s %s", IPW_FIXTURES, script, a, b);
    return system(command);
}

static void make_tree_writes_the_same_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MACHINES / sizeof *MACHINES; i++) {
        struct tree by_c, by_shell;
        char command[512];
        tree_new(&by_c);
        MACHINES[i].build(&by_c);
        tree_new(&by_shell);
        assert_int_equal(run("make-tree", MACHINES[i].name, by_shell.root), 0);
        snprintf(command, sizeof command, "diff -r %s %s", by_c.root, by_shell.root);
        if (system(command) != 0)
            fail_msg("machine %s differs", MACHINES[i].name);
        tree_free(&by_shell);
        tree_free(&by_c);
    }
}

static void an_unknown_machine_is_rejected(void **state)
{
    (void)state;
    struct tree tree;
    tree_new(&tree);
    assert_int_not_equal(run("make-tree 2>/dev/null", "toaster", tree.root), 0);
    tree_free(&tree);
}

static void counters_advance_by_power_times_time(void **state)
{
    (void)state;
    if (system("command -v python3 >/dev/null") != 0)
        SKIP("no python3 to run tick-tree");
    struct tree tree;
    struct sensing s = {0};
    tree_new(&tree);
    intel2(&tree);
    assert_int_equal(run("tick-tree", tree.root, "100 0.3"), 0);
    sensing_probe(&s, "rapl");
    assert_int_equal(sensing_open(&s, "rapl:0"), ERR_OK);
    assert_int_equal(sensing_read(&s), ERR_OK);
    assert_near(sensing_joules(&s, "package"), 5030, 1e-6);
    assert_near(sensing_joules(&s, "dram"), 906, 1e-6);
    assert_int_equal(sensing_open(&s, "rapl:1"), ERR_OK);
    assert_int_equal(sensing_read(&s), ERR_OK);
    assert_near(sensing_joules(&s, "package"), 5731 + 27.9, 1e-6);
    sensing_release(&s);
    tree_free(&tree);
}

static void a_dead_counter_stays_dead(void **state)
{
    (void)state;
    if (system("command -v python3 >/dev/null") != 0)
        SKIP("no python3 to run tick-tree");
    struct tree tree;
    struct sensing s = {0};
    tree_new(&tree);
    machine_psys_only(&tree);
    assert_int_equal(run("tick-tree", tree.root, "100 0.05"), 0);
    sensing_probe(&s, "rapl");
    assert_int_equal(sensing_open(&s, "rapl:psys"), ERR_OK);
    assert_int_equal(sensing_read(&s), ERR_OK);
    assert_int_equal(sensing_observation(&s, "psys")->count, 0);
    sensing_release(&s);
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(make_tree_writes_the_same_machines),
        cmocka_unit_test(an_unknown_machine_is_rejected),
        cmocka_unit_test(counters_advance_by_power_times_time),
        cmocka_unit_test(a_dead_counter_stays_dead),
    };
    return RUN_TESTS(tests);
}
