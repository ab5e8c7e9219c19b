/* test: real time, tsan */
/* One counter under two names is counted once; two counters are never merged. */
#include "support/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/machines.h"
#include "support/sensing.h"
#include "support/tree.h"

/* Simulated hardware: a thread that advances perf package counters. */
struct hardware {
    struct tree *tree;
    atomic_bool stop;
    const int *cpus; /* whose counters it advances */
    size_t cpu_count;
    unsigned noise; /* maximum difference of a step between counters */
};

/* A package at about 65 W: a step of 2^-14 J every quarter of a millisecond, plus independent noise. */
static void *run_counters(void *argument)
{
    struct hardware *hardware = argument;
    const struct timespec pause = {.tv_nsec = 250000};
    uint64_t counts[2] = {UINT64_C(6868) << 32, UINT64_C(7000) << 32};
    unsigned seed = 7;
    while (!atomic_load(&hardware->stop)) {
        for (size_t i = 0; i < hardware->cpu_count; i++) {
            unsigned noise = hardware->noise ? (unsigned)rand_r(&seed) % hardware->noise : 0;
            counts[i] += (uint64_t)(266 + noise) << 18;
            machine_set_perf(hardware->tree, PERF_PACKAGE, hardware->cpus[i], counts[i]);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void probe_while_running(struct fixture *f, const int *cpus, size_t count, unsigned noise)
{
    struct hardware hardware = {.tree = &f->tree, .cpus = cpus, .cpu_count = count, .noise = noise};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_counters, &hardware), 0);
    sensing_probe(&f->s, "rapl");
    atomic_store(&hardware.stop, true);
    pthread_join(thread, NULL);
}

static void assert_mirrored(const struct sensing *s)
{
    assert_int_equal(s->findings.count, 2);
    assert_int_equal(sensing_find(s, "rapl:0")->status, SENSOR_OK);
    const struct sensor_finding *mirror = sensing_find(s, "rapl:0.1");
    assert_non_null(mirror);
    assert_int_equal(mirror->status, SENSOR_UNSUPPORTED);
    assert_memory_equal(mirror->reason, "mirrors rapl:0", strlen("mirrors rapl:0"));
    assert_string_equal(mirror->fix, "");
}

static void assert_all_ok(const struct sensing *s, size_t count)
{
    assert_int_equal(s->findings.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(s->findings.items[i].status, SENSOR_OK);
}

static void two_dies_that_share_a_register_are_one(void **state)
{
    static const unsigned PATHS[] = {MACHINE_POWERCAP, MACHINE_MSR};
    for (size_t i = 0; i < 2; i++) {
        fixture_setup(state);
        struct fixture *f = *state;
        machine_amd_mirrored(&f->tree, PATHS[i]);
        sensing_probe(&f->s, "rapl");
        assert_mirrored(&f->s);
        assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
        assert_int_equal(sensing_channel(&f->s, "package")->location, 0);
        fixture_teardown(state);
    }
}

static void perf_counters_that_advance_together_are_one(void **state)
{
    static const int CPUS[] = {0}; /* CPU 8's counter is a symlink to this one */
    struct fixture *f = *state;
    machine_amd_mirrored(&f->tree, MACHINE_PERF);
    /* On a busy machine the thread that simulates the hardware may be starved; real hardware is not. */
    for (int i = 0; i < 10; i++) {
        probe_while_running(f, CPUS, 1, 20);
        if (sensing_find(&f->s, "rapl:0.1")->status == SENSOR_UNSUPPORTED)
            break;
    }
    assert_mirrored(&f->s);
}

static void sockets_that_advance_independently_stay_two(void **state)
{
    static const int CPUS[] = {0, 28};
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF);
    for (int i = 0; i < 10; i++) { /* the same mean power, with less than 1 % of noise */
        probe_while_running(f, CPUS, 2, 3);
        assert_all_ok(&f->s, 2);
    }
}

static void equal_counters_that_do_not_advance_are_not_merged(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF);
    machine_set_perf(&f->tree, PERF_PACKAGE, 0, 4096);
    machine_set_perf(&f->tree, PERF_PACKAGE, 28, 4096);
    sensing_probe(&f->s, "rapl");
    assert_all_ok(&f->s, 2);
}

static void registers_that_differ_or_read_zero_are_not_merged(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    machine_set_uj(&f->tree, "intel-rapl:0", 5000000000);
    machine_set_uj(&f->tree, "intel-rapl:1", 5000000061); /* one unit apart */
    sensing_probe(&f->s, "rapl");
    assert_all_ok(&f->s, 2);
    machine_set_uj(&f->tree, "intel-rapl:0", 0);
    machine_set_uj(&f->tree, "intel-rapl:1", 0);
    sensing_probe(&f->s, "rapl");
    assert_all_ok(&f->s, 2);
}

static void of_three_dies_only_the_copy_is_dropped(void **state)
{
    struct fixture *f = *state;
    machine_amd_mirrored(&f->tree, MACHINE_POWERCAP);
    machine_zone(&f->tree, "intel-rapl:2", "package-1", 42000000);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 3);
    assert_int_equal(sensing_find(&f->s, "rapl:0")->status, SENSOR_OK);
    assert_int_equal(sensing_find(&f->s, "rapl:0.1")->status, SENSOR_UNSUPPORTED);
    assert_int_equal(sensing_find(&f->s, "rapl:1")->status, SENSOR_OK);
}

static void one_platform_counter_seen_from_two_packages_is_the_whole_machine(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    machine_zone(&f->tree, "intel-rapl:2", "psys", 1234567);
    machine_zone(&f->tree, "intel-rapl:3", "psys-1", 1234567);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_find(&f->s, "rapl:psys")->status, SENSOR_OK);
    assert_int_equal(sensing_find(&f->s, "rapl:psys1")->status, SENSOR_UNSUPPORTED);
    assert_non_null(strstr(sensing_find(&f->s, "rapl:psys1")->reason, "mirrors rapl:psys"));
    assert_int_equal(sensing_open(&f->s, "rapl:psys"), ERR_OK);
    assert_int_equal(sensing_channel(&f->s, "psys")->location, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_dies_that_share_a_register_are_one),
        FIXTURE_TEST(perf_counters_that_advance_together_are_one),
        FIXTURE_TEST(sockets_that_advance_independently_stay_two),
        FIXTURE_TEST(equal_counters_that_do_not_advance_are_not_merged),
        FIXTURE_TEST(registers_that_differ_or_read_zero_are_not_merged),
        FIXTURE_TEST(of_three_dies_only_the_copy_is_dropped),
        FIXTURE_TEST(one_platform_counter_seen_from_two_packages_is_the_whole_machine),
    };
    return RUN_TESTS(tests);
}
