/* test: real time */
/* GPU control against the fake NVML: however the controlling process ends, the card's settings are
 * restored. The restore command of the watchdog is this program with --restore. */
#include "support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/fs.h"
#include "port/thread.h"
#include "runner/gpu_control.h"
#include "support/nvml_fake.h"
#include "support/stepped_clock.h"
#include "support/tree.h"

#define UUID "GPU-00000000-1111-2222-3333-444444444444"

static char program[4096]; /* not /proc/self/exe, which is valgrind under valgrind */
static char *const RESTORE[] = {program, "--restore", NULL};
static char *const NO_RESTORE[] = {"/bin/true", NULL};
static const unsigned CLOCK = 1U << KNOB_GRAPHICS_CLOCK, LIMIT = 1U << KNOB_POWER_LIMIT,
                      MEMORY = 1U << KNOB_MEMORY_CLOCK;
static const char RESTORED[] = "0 graphics 0 0 memory 0 0 limit 700000";

static struct tree tree;

static int start(void **state)
{
    nvml_fake_start(state);
    nvml_fake_run_free();
    tree_new(&tree);
    tree_write(&tree, "/run/other", "\n");
    setenv("TEST_ROOT", tree.root, 1);
    return 0;
}

static int stop(void **state)
{
    tree_free(&tree);
    unsetenv("TEST_ROOT");
    return nvml_fake_stop(state);
}

#define CONTROL_TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)

static bool state_is_saved(void)
{
    return fs_exists("/run/ipw/" UUID ".state");
}

static struct gpu_control *begin(unsigned knobs)
{
    struct gpu_control *control;
    struct error why = {0};
    enum err err = gpu_control_begin("0", knobs, RESTORE, &control, &why);
    if (err != ERR_OK)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    return control;
}

static void assert_rejected(unsigned knobs, enum err expected, const char *text)
{
    struct gpu_control *control;
    struct error why = {0};
    assert_int_equal(gpu_control_begin("0", knobs, RESTORE, &control, &why), expected);
    assert_null(control);
    assert_contains(why.text, text);
}

static void set_knob(struct gpu_control *control, enum gpu_knob knob, double value)
{
    struct error why = {0};
    assert_int_equal(gpu_control_set(control, knob, value, &why), ERR_OK);
}

static void end_control(struct gpu_control *control)
{
    struct error why = {0};
    assert_int_equal(gpu_control_end(control, &why), ERR_OK);
}

/* Waits for another process; a minute is a failure. */
static void await_settings(const char *expected)
{
    for (int i = 0; i < 3000 && (strcmp(nvml_fake_settings(), expected) || state_is_saved()); i++)
        thread_sleep(20 * NS_PER_MS);
    assert_string_equal(nvml_fake_settings(), expected);
    assert_false(state_is_saved());
}

/* ---- normal operation ---- */

static void settings_are_restored_at_the_end(void **state)
{
    (void)state;
    struct error why = {0};
    struct gpu_control *control = begin(CLOCK | MEMORY | LIMIT);
    assert_true(state_is_saved()); /* before anything was set */
    assert_string_equal(nvml_fake_settings(), RESTORED);
    set_knob(control, KNOB_GRAPHICS_CLOCK, 1005);
    set_knob(control, KNOB_MEMORY_CLOCK, 2619);
    set_knob(control, KNOB_POWER_LIMIT, 400);
    assert_string_equal(nvml_fake_settings(), "0 graphics 1005 1005 memory 2619 2619 limit 400000");
    end_control(control);
    assert_string_equal(nvml_fake_settings(), RESTORED);
    assert_false(state_is_saved());
    /* Knobs that were not requested are not changed. */
    control = begin(CLOCK);
    assert_int_equal(gpu_control_set(control, KNOB_POWER_LIMIT, 400, &why), ERR_USAGE);
    end_control(control);
    assert_int_equal(gpu_control_end(NULL, &why), ERR_OK);
}

static void an_accepted_clock_may_not_be_reached(void **state)
{
    (void)state;
    struct gpu_clock clock;
    struct error why = {0};
    nvml_fake_script("value throttle 0 0\n");
    struct gpu_control *control = begin(CLOCK);
    set_knob(control, KNOB_GRAPHICS_CLOCK, 1005);
    nvml_fake_script("value throttle 0 2\n"); /* limited by the clock that was set */
    assert_int_equal(gpu_control_reached(control, 0, &clock, &why), ERR_OK);
    assert_int_equal(clock.state, GPU_CLOCK_REACHED);
    assert_near(clock.graphics_mhz, 1005, 1e-9);
    static const struct {
        const char *reasons;
        enum gpu_clock_state state;
    } CASES[] = {{"1", GPU_CLOCK_IDLE},
                 {"4", GPU_CLOCK_THROTTLED},
                 {"32", GPU_CLOCK_THROTTLED},
                 {"128", GPU_CLOCK_THROTTLED}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("value throttle 0 %s\n", CASES[i].reasons);
        assert_int_equal(gpu_control_reached(control, 0, &clock, &why), ERR_OK);
        assert_int_equal(clock.state, CASES[i].state);
    }
    /* The driver accepted it and something else unlocked it. */
    const struct sensor_control *direct = gpu_control_sensor(control)->driver->control;
    nvml_fake_script("value throttle 0 0\n");
    assert_int_equal(direct->reset(gpu_control_sensor(control), KNOB_GRAPHICS_CLOCK, &why), ERR_OK);
    assert_int_equal(gpu_control_reached(control, 0, &clock, &why), ERR_OK);
    assert_int_equal(clock.state, GPU_CLOCK_OFF_TARGET);
    assert_near(clock.graphics_mhz, 1980, 1e-9);
    nvml_fake_script("fail nvmlDeviceGetCurrentClocksEventReasons 0 15\n");
    assert_int_equal(gpu_control_reached(control, 0, &clock, &why), ERR_LOST);
    nvml_fake_script("\n");
    end_control(control);
}

/* ---- rejected cards ---- */

static void a_constrained_card_is_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        enum err err;
        const char *text;
    } CASES[] = {
        {"value throttle 0 3\n", ERR_BUSY, "already locked"},
        {"value throttle 0 5\n", ERR_BUSY, "throttled by its power limit"},
        {"value limit_mw 0 500000\n", ERR_BUSY, "500 W, not its default of 700 W"},
        {"mig 0 2\n", ERR_UNSUPPORTED, "MIG mode"},
        {"fail nvmlDeviceGetCurrentClocksEventReasons 0 15\n", ERR_LOST, "fell off the bus"},
        {"devices 0\n", ERR_ABSENT, ""},
        {"fail nvmlDeviceResetGpuLockedClocks 0 4\n", ERR_DENIED, "needs root"},
        {"fail nvmlDeviceResetGpuLockedClocks 0 3\n", ERR_UNSUPPORTED, "this GPU or driver"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("%s", CASES[i].script);
        assert_rejected(CLOCK, CASES[i].err, CASES[i].text);
        assert_false(state_is_saved());
        assert_string_equal(nvml_fake_settings(), "");
    }
    nvml_fake_script("\n"); /* none of them keeps the lock */
    end_control(begin(CLOCK));
}

static void one_process_controls_a_card(void **state)
{
    (void)state;
    struct gpu_control *control = begin(CLOCK);
    set_knob(control, KNOB_GRAPHICS_CLOCK, 1005);
    stepped_clock_start(); /* both wait for the lock, which we do not release */
    assert_rejected(CLOCK, ERR_BUSY, "another process controls " UUID);
    /* Nor is it restored while it is locked. */
    struct gpu_restored restored;
    struct error why = {0};
    assert_int_equal(gpu_control_restore(&restored, &why), ERR_OK);
    stepped_clock_stop();
    assert_int_equal(restored.held, 1);
    assert_int_equal(restored.restored, 0);
    assert_string_equal(nvml_fake_settings(), "0 graphics 1005 1005 memory 0 0 limit 0");
    end_control(control);
    end_control(begin(CLOCK));
}

/* ---- exits of all kinds ---- */

/* A process that takes control, sets a clock and a limit, and ends by a signal, or by exit for 0. */
static void hold_and_die(char *const command[], int number)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gpu_control *control;
        struct error why = {0};
        if (gpu_control_begin("0", CLOCK | LIMIT, command, &control, &why) != ERR_OK ||
            gpu_control_set(control, KNOB_GRAPHICS_CLOCK, 510, &why) != ERR_OK ||
            gpu_control_set(control, KNOB_POWER_LIMIT, 300, &why) != ERR_OK || !state_is_saved())
            _exit(9);
        signal(number ? number : SIGUSR1, SIG_DFL);
        if (number)
            raise(number);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(number ? WTERMSIG(status) : WEXITSTATUS(status), number);
}

static void the_watchdog_restores_after_any_exit(void **state)
{
    (void)state;
    if (getenv("IPW_EMULATED"))
        SKIP("the watchdog would execute this program, which is for another architecture");
    static const int ENDS[] = {SIGKILL, SIGTERM, SIGHUP, SIGUSR1, 0};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        hold_and_die(RESTORE, ENDS[i]);
        await_settings(RESTORED);
    }
    end_control(begin(CLOCK)); /* and the card is unlocked again */
}

/* As when a cgroup kills the watchdog too. */
static void a_leftover_state_is_restored_by_the_restore_command(void **state)
{
    (void)state;
    struct gpu_restored restored;
    struct error why = {0};
    hold_and_die(NO_RESTORE, SIGKILL);
    static const char HELD[] = "0 graphics 510 510 memory 0 0 limit 300000";
    assert_string_equal(nvml_fake_settings(), HELD);
    assert_true(state_is_saved());
    for (int i = 0; i < 3000; i++) { /* until the watchdog has exited and released its lock */
        struct gpu_control *control;
        assert_int_equal(gpu_control_begin("0", CLOCK, RESTORE, &control, &why), ERR_BUSY);
        if (strstr(why.text, "--restore"))
            break;
        thread_sleep(20 * NS_PER_MS);
    }
    assert_contains(why.text, "--restore");
    assert_string_equal(nvml_fake_settings(), HELD);
    /* A failure keeps the file; the power limit is restored although the clocks are not. */
    nvml_fake_script("fail nvmlDeviceResetGpuLockedClocks 0 4\n");
    assert_int_equal(gpu_control_restore(&restored, &why), ERR_DENIED);
    assert_contains(why.text, "needs root");
    assert_int_equal(restored.failed, 1);
    assert_true(state_is_saved());
    assert_string_equal(nvml_fake_settings(), "0 graphics 510 510 memory 0 0 limit 700000");
    nvml_fake_script("\n");
    assert_int_equal(gpu_control_restore(&restored, &why), ERR_OK);
    assert_int_equal(restored.restored, 1);
    assert_string_equal(nvml_fake_settings(), RESTORED);
    assert_false(state_is_saved());
    assert_int_equal(gpu_control_restore(&restored, &why), ERR_OK);
    assert_int_equal(restored.restored + restored.held + restored.failed, 0);
}

static void a_failed_restore_is_retried_by_the_watchdog(void **state)
{
    (void)state;
    struct error why = {0};
    struct gpu_control *control = begin(CLOCK | LIMIT);
    set_knob(control, KNOB_GRAPHICS_CLOCK, 1005);
    nvml_fake_script("fail nvmlDeviceResetGpuLockedClocks 0 15\n");
    assert_int_equal(gpu_control_end(control, &why), ERR_LOST);
    assert_true(state_is_saved());
    nvml_fake_script("\n");
    struct gpu_restored restored; /* whichever is first, the watchdog or this call */
    assert_int_equal(gpu_control_restore(&restored, &why), ERR_OK);
    await_settings(RESTORED);
}

static void a_damaged_state_is_an_error(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",
        "something\n",
        "ipw-gpu-state 1\nuuid " UUID "\nknobs 1\n",
        "ipw-gpu-state 1\nuuid " UUID "\nknobs 4\nend\n",
        "ipw-gpu-state 1\nuuid " UUID "\nknobs 99\nend\n",
        "ipw-gpu-state 1\nuuid GPU-other\nknobs 1\nend\n",
        "ipw-gpu-state 1\nknobs 1\nend\n",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        struct gpu_restored restored;
        struct error why = {0};
        tree_write(&tree, "/run/ipw/" UUID ".state", "%s", TEXTS[i]);
        assert_int_equal(gpu_control_restore(&restored, &why), ERR_BAD_VALUE);
        assert_int_equal(restored.failed, 1);
        assert_true(state_is_saved());
        assert_string_equal(nvml_fake_settings(), "");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--restore")) {
        struct gpu_restored restored;
        struct error why = {0};
        fs_set_root(getenv("TEST_ROOT"));
        return gpu_control_restore(&restored, &why) != ERR_OK;
    }
    snprintf(program, sizeof program, "%s", argv[0]);
    const struct CMUnitTest tests[] = {
        CONTROL_TEST(settings_are_restored_at_the_end),
        CONTROL_TEST(an_accepted_clock_may_not_be_reached),
        CONTROL_TEST(a_constrained_card_is_rejected),
        CONTROL_TEST(one_process_controls_a_card),
        CONTROL_TEST(the_watchdog_restores_after_any_exit),
        CONTROL_TEST(a_leftover_state_is_restored_by_the_restore_command),
        CONTROL_TEST(a_failed_restore_is_retried_by_the_watchdog),
        CONTROL_TEST(a_damaged_state_is_an_error),
    };
    return RUN_TESTS(tests);
}
