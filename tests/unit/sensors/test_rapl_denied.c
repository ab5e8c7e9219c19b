/* RAPL for an unprivileged user. File modes do not stop root, so the probe runs in a child that has
 * dropped its privileges, and sends its findings back through a pipe. */
#include "support/unit.h"

#include <string.h>
#include <unistd.h>

#include "support/machines.h"
#include "support/sensing.h"
#include "support/tree.h"

enum { FINDINGS_MAX = 8 };

static struct sensor_finding findings[FINDINGS_MAX];

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    tree_mode(&f->tree, "", 0755); /* mkdtemp keeps others out */
    return 0;
}

static int probe_and_send(void *to)
{
    struct sensing s = {0};
    sensing_probe(&s, "rapl");
    size_t count = s.findings.count < FINDINGS_MAX ? s.findings.count : FINDINGS_MAX;
    size_t bytes = count * sizeof *s.findings.items;
    bool sent = write(*(int *)to, s.findings.items, bytes) == (ssize_t)bytes;
    sensing_release(&s);
    return sent ? 0 : 1;
}

/* Probes as nobody into findings[]; returns their number. They fit into the pipe. */
static size_t probe_unprivileged(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int result = as_nobody(probe_and_send, &ends[1]);
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while ((n = read(ends[0], (char *)findings + length, sizeof findings - length)) > 0)
        length += (size_t)n;
    close(ends[0]);
    if (result == NOT_NOBODY)
        SKIP("cannot become an unprivileged user");
    assert_int_equal(result, 0);
    return length / sizeof *findings;
}

static void assert_denied(size_t i, const char *id, const char *reason, const char *fix)
{
    assert_string_equal(findings[i].id, id);
    assert_int_equal(findings[i].status, SENSOR_DENIED);
    assert_contains(findings[i].reason, reason);
    assert_string_equal(findings[i].fix, fix);
}

static void lock_perf(struct tree *tree)
{
    tree_mode(tree, "/dev/perf/9/2/cpu0", 0);
    tree_mode(tree, "/dev/perf/9/2/cpu28", 0);
}

static void lock_powercap(struct tree *tree)
{
    tree_mode(tree, "/sys/class/powercap/intel-rapl:0/energy_uj", 0400);
    tree_mode(tree, "/sys/class/powercap/intel-rapl:1/energy_uj", 0400);
}

static void lock_msr(struct tree *tree)
{
    tree_mode(tree, "/dev/cpu/0/msr", 0600);
    tree_mode(tree, "/dev/cpu/28/msr", 0600);
}

static void perf_event_paranoid_is_reported_with_the_fix(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF | MACHINE_POWERCAP | MACHINE_MSR);
    lock_perf(&f->tree);
    lock_powercap(&f->tree);
    lock_msr(&f->tree);
    assert_int_equal(probe_unprivileged(), 2);
    for (size_t i = 0; i < 2; i++)
        assert_denied(i, i ? "rapl:1" : "rapl:0", "perf_event_paranoid is 2",
                      "sudo sysctl kernel.perf_event_paranoid=0");
}

static void a_filtered_system_call_is_not_blamed_on_perf_event_paranoid(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF);
    tree_write(&f->tree, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
    lock_perf(&f->tree);
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(0, "rapl:0", "seccomp", "docker run --cap-add=PERFMON ...");
    tree_remove(&f->tree, "/proc/sys/kernel/perf_event_paranoid");
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(0, "rapl:0", "CAP_PERFMON", "sudo setcap cap_perfmon+ep $(command -v ipw)");
}

static void root_only_energy_is_reported_with_the_fix(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    lock_powercap(&f->tree);
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(
        1, "rapl:1", "CVE-2020-8694",
        "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj (until the next boot), "
        "or sudo ipw-reader --group GROUP");
}

static void an_inaccessible_msr_device_is_reported_with_the_fix(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_MSR);
    lock_msr(&f->tree);
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(1, "rapl:1", "/dev/cpu/28/msr needs CAP_SYS_RAWIO",
                  "sudo setcap cap_sys_rawio,cap_dac_read_search+ep $(command -v ipw)");
}

static void a_domain_denied_on_one_path_is_read_on_another(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF | MACHINE_POWERCAP);
    lock_perf(&f->tree);
    assert_int_equal(probe_unprivileged(), 2);
    assert_int_equal(findings[0].status, SENSOR_OK);
    assert_int_equal(findings[1].status, SENSOR_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(perf_event_paranoid_is_reported_with_the_fix),
        TEST(a_filtered_system_call_is_not_blamed_on_perf_event_paranoid),
        TEST(root_only_energy_is_reported_with_the_fix),
        TEST(an_inaccessible_msr_device_is_reported_with_the_fix),
        TEST(a_domain_denied_on_one_path_is_read_on_another),
    };
    return RUN_TESTS(tests);
}
