/* test: valgrind */
/* RAPL readings while counters advance, wrap, break and vanish. */
#define _GNU_SOURCE
#include "support/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "support/machines.h"
#include "support/sensing.h"
#include "support/stepped_clock.h"
#include "support/tree.h"

#define PACKAGE_UJ "/sys/class/powercap/intel-rapl:0/energy_uj"

/* A regular file cannot return ENODEV, as a counter of removed hardware does. This replaces the C
 * library's call and fails on demand. */
static int injected_errno;
static unsigned pread_calls;

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
    pread_calls++;
    if (injected_errno) {
        errno = injected_errno;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, size, offset);
}

static int setup(void **state)
{
    injected_errno = 0;
    return fixture_setup(state);
}

static int teardown(void **state)
{
    injected_errno = 0;
    return fixture_teardown(state);
}

static void open_two_socket(struct fixture *f, unsigned paths)
{
    machine_intel_two_socket(&f->tree, paths);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
}

/* ---- good readings ---- */

static void each_domain_takes_one_read_and_is_dated_within_it(void **state)
{
    static const unsigned PATHS[] = {MACHINE_PERF, MACHINE_POWERCAP, MACHINE_MSR};
    for (size_t i = 0; i < 3; i++) {
        setup(state);
        struct fixture *f = *state;
        open_two_socket(f, PATHS[i]);
        pread_calls = 0;
        nanos before = clock_now();
        assert_int_equal(sensing_read(&f->s), ERR_OK);
        nanos after = clock_now();
        assert_int_equal(pread_calls, f->s.sensor.channel_count);
        for (size_t k = 0; k < f->s.seen.count; k++)
            assert_in_range(f->s.items[k].t, before, after);
        assert_true(f->s.items[0].t <= f->s.items[1].t);
        teardown(state);
    }
}

static void an_open_file_returns_each_new_value(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_POWERCAP);
    for (uint64_t uj = 5000000001; uj < 5000000010; uj++) {
        machine_set_uj(&f->tree, "intel-rapl:0", uj);
        assert_int_equal(sensing_read(&f->s), ERR_OK);
        assert_int_equal(sensing_observation(&f->s, "package")->count, uj);
    }
}

static uint64_t observed(struct fixture *f)
{
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(sensing_observation(&f->s, "package")->missing, 0);
    return sensing_observation(&f->s, "package")->count;
}

static void a_wrap_is_at_the_given_modulus(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_POWERCAP);
    machine_set_uj(&f->tree, "intel-rapl:0", MACHINE_RANGE_UJ - 400);
    uint64_t before = observed(f);
    machine_set_uj(&f->tree, "intel-rapl:0", 599);
    uint64_t after = observed(f);
    uint64_t wraps_at = sensing_channel(&f->s, "package")->wraps_at;
    assert_true(after < before);
    assert_int_equal(after + wraps_at - before, 1000);
}

static void a_register_wraps_at_32_bits_and_its_upper_half_is_ignored(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_MSR);
    machine_set_msr(&f->tree, 0, MSR_PACKAGE, UINT64_C(0xdeadbeeffffffff0));
    uint64_t before = observed(f);
    assert_int_equal(before, 0xfffffff0);
    machine_set_msr(&f->tree, 0, MSR_PACKAGE, 0x10);
    uint64_t wraps_at = sensing_channel(&f->s, "package")->wraps_at;
    assert_int_equal(observed(f) + wraps_at - before, 0x20);
}

static void a_missing_range_is_reported(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    tree_remove(&f->tree, "/sys/class/powercap/intel-rapl:0/max_energy_range_uj");
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_int_equal(sensing_channel(&f->s, "package")->wraps_at, 0);
    assert_int_equal(sensing_channel(&f->s, "dram")->wraps_at, MACHINE_RANGE_UJ + 1);
    assert_non_null(sensing_fact(&f->s, "wrap"));
    assert_int_equal(sensing_open(&f->s, "rapl:1"), ERR_OK);
    assert_null(sensing_fact(&f->s, "wrap"));
}

/* ---- bad readings ---- */

static const char *const BROKEN[] = {
    "",      "\n",    "12" /* truncated */,     "abc\n",  "-5\n",
    "12x\n", "1.5\n", "99999999999999999999\n", "0x10\n",
};

static void an_invalid_value_is_missing_and_the_rest_is_read(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_POWERCAP);
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
        tree_write(&f->tree, PACKAGE_UJ, "%s", BROKEN[i]);
        assert_int_equal(sensing_read(&f->s), ERR_OK);
        assert_int_equal(f->s.seen.count, 2);
        assert_int_equal(sensing_observation(&f->s, "package")->missing, ERR_BAD_VALUE);
        assert_int_equal(sensing_observation(&f->s, "dram")->missing, 0);
        machine_set_uj(&f->tree, "intel-rapl:0", 5000000000);
        assert_int_equal(observed(f), 5000000000);
    }
}

static void a_counter_that_is_invalid_at_probe_is_unsupported(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
        tree_write(&f->tree, PACKAGE_UJ, "%s", BROKEN[i]);
        sensing_probe(&f->s, "rapl");
        const struct sensor_finding *finding = sensing_find(&f->s, "rapl:0");
        assert_int_equal(finding->status, SENSOR_UNSUPPORTED);
        assert_non_null(strstr(finding->reason, "/sys/class/powercap/intel-rapl:0"));
        assert_int_equal(sensing_find(&f->s, "rapl:1")->status, SENSOR_OK);
    }
}

static void a_broken_path_falls_back_to_the_next(void **state)
{
    struct fixture *f = *state;
    machine_amd(&f->tree, MACHINE_POWERCAP | MACHINE_MSR);
    tree_write(&f->tree, PACKAGE_UJ, "nonsense\n");
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_string_equal(sensing_fact(&f->s, "path"), "msr");
}

/* ---- going away ---- */

static void removed_hardware_is_lost(void **state)
{
    static const unsigned PATHS[] = {MACHINE_PERF, MACHINE_POWERCAP, MACHINE_MSR};
    static const int GONE[] = {ENODEV, ENXIO};
    for (size_t i = 0; i < 6; i++) {
        setup(state);
        struct fixture *f = *state;
        open_two_socket(f, PATHS[i % 3]);
        injected_errno = GONE[i / 3];
        assert_int_equal(sensing_read(&f->s), ERR_LOST);
        injected_errno = 0;
        assert_int_equal(sensing_read(&f->s), ERR_OK);
        teardown(state);
    }
}

static void other_read_errors_are_missing(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_POWERCAP);
    injected_errno = EIO;
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(f->s.seen.count, 2);
    assert_int_equal(sensing_observation(&f->s, "package")->missing, ERR_IO);
    assert_int_equal(sensing_observation(&f->s, "dram")->missing, ERR_IO);
}

static void vanished_zones_cannot_be_reopened(void **state)
{
    struct fixture *f = *state;
    open_two_socket(f, MACHINE_POWERCAP);
    tree_remove(&f->tree, PACKAGE_UJ);
    tree_remove(&f->tree, "/sys/class/powercap/intel-rapl:0:0/energy_uj");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_NOT_FOUND);
    assert_non_null(strstr(f->s.why.text, "rapl:0"));
    tree_remove(&f->tree, "/sys/class/powercap");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_ABSENT);
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_int_equal(observed(f), 5000000000);
}

static void a_lost_subdomain_does_not_lose_the_package(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    tree_remove(&f->tree, "/sys/class/powercap/intel-rapl:0:0/energy_uj");
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_int_equal(f->s.sensor.channel_count, 1);
    assert_string_equal(sensing_fact(&f->s, "not_read"), "dram: not found");
    assert_int_equal(observed(f), 5000000000);
}

int main(void)
{
    stepped_clock_start();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_domain_takes_one_read_and_is_dated_within_it),
        TEST(an_open_file_returns_each_new_value),
        TEST(a_wrap_is_at_the_given_modulus),
        TEST(a_register_wraps_at_32_bits_and_its_upper_half_is_ignored),
        TEST(a_missing_range_is_reported),
        TEST(an_invalid_value_is_missing_and_the_rest_is_read),
        TEST(a_counter_that_is_invalid_at_probe_is_unsupported),
        TEST(a_broken_path_falls_back_to_the_next),
        cmocka_unit_test(removed_hardware_is_lost),
        TEST(other_read_errors_are_missing),
        TEST(vanished_zones_cannot_be_reopened),
        TEST(a_lost_subdomain_does_not_lose_the_package),
    };
    return RUN_TESTS(tests);
}
