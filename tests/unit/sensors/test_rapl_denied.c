/* What RAPL says to a user who may not read it.  File modes do not stop root, so the probe runs
 * in a child that has given its privileges up, and sends its findings home through a pipe. */
#define _GNU_SOURCE
#include "support/unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/machines.h"
#include "support/sensing.h"
#include "support/tree.h"

enum { NOBODY = 65534, FINDINGS_MAX = 8 };

static struct tree tree;
static struct sensor_finding findings[FINDINGS_MAX];

static int setup(void **state)
{
    (void)state;
    tree_new(&tree);
    tree_mode(&tree, "", 0755); /* mkdtemp keeps others out */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

static void child(int to)
{
    struct sensing s = {0};
    if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
        _exit(77);
    sensing_probe(&s, "rapl");
    size_t count = s.findings.count < FINDINGS_MAX ? s.findings.count : FINDINGS_MAX;
    size_t bytes = count * sizeof *s.findings.items;
    bool sent = write(to, s.findings.items, bytes) == (ssize_t)bytes;
    sensing_release(&s);
    _exit(sent ? 0 : 1);
}

/* Probes as nobody into findings[]; returns how many. */
static size_t probe_unprivileged(void)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(ends[1]);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while ((n = read(ends[0], (char *)findings + length, sizeof findings - length)) > 0)
        length += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: cannot become an unprivileged user here\n");
        skip();
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return length / sizeof *findings;
}

static void assert_denied(size_t i, const char *id, const char *reason, const char *fix)
{
    assert_string_equal(findings[i].id, id);
    assert_int_equal(findings[i].status, SENSOR_DENIED);
    if (!strstr(findings[i].reason, reason))
        fail_msg("\"%s\" does not say \"%s\"", findings[i].reason, reason);
    assert_string_equal(findings[i].fix, fix);
}

static void lock_perf(void)
{
    tree_mode(&tree, "/dev/perf/9/2/cpu0", 0);
    tree_mode(&tree, "/dev/perf/9/2/cpu28", 0);
}

static void lock_powercap(void)
{
    tree_mode(&tree, "/sys/class/powercap/intel-rapl:0/energy_uj", 0400);
    tree_mode(&tree, "/sys/class/powercap/intel-rapl:1/energy_uj", 0400);
}

static void lock_msr(void)
{
    tree_mode(&tree, "/dev/cpu/0/msr", 0600);
    tree_mode(&tree, "/dev/cpu/28/msr", 0600);
}

static void a_paranoid_kernel_is_named_with_its_cure(void **state)
{
    (void)state;
    machine_intel_two_socket(&tree, MACHINE_PERF | MACHINE_POWERCAP | MACHINE_MSR);
    lock_perf();
    lock_powercap();
    lock_msr();
    assert_int_equal(probe_unprivileged(), 2);
    for (size_t i = 0; i < 2; i++)
        assert_denied(i, i ? "rapl:1" : "rapl:0", "perf_event_paranoid is 2",
                      "sudo sysctl kernel.perf_event_paranoid=0");
}

static void a_filtered_system_call_is_not_blamed_on_the_policy(void **state)
{
    (void)state;
    machine_intel_two_socket(&tree, MACHINE_PERF);
    tree_write(&tree, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
    lock_perf();
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(0, "rapl:0", "seccomp", "docker run --cap-add=PERFMON ...");
    tree_remove(&tree, "/proc/sys/kernel/perf_event_paranoid");
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(0, "rapl:0", "CAP_PERFMON", "sudo setcap cap_perfmon+ep $(command -v ipw)");
}

static void root_only_energy_is_named_with_its_cure(void **state)
{
    (void)state;
    machine_intel_two_socket(&tree, MACHINE_POWERCAP);
    lock_powercap();
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(1, "rapl:1", "CVE-2020-8694",
                  "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
}

static void a_closed_msr_device_is_named_with_its_cure(void **state)
{
    (void)state;
    machine_intel_two_socket(&tree, MACHINE_MSR);
    lock_msr();
    assert_int_equal(probe_unprivileged(), 2);
    assert_denied(1, "rapl:1", "/dev/cpu/28/msr needs CAP_SYS_RAWIO",
                  "sudo setcap cap_sys_rawio,cap_dac_read_search+ep $(command -v ipw)");
}

static void what_is_denied_by_one_path_is_read_by_another(void **state)
{
    (void)state;
    machine_intel_two_socket(&tree, MACHINE_PERF | MACHINE_POWERCAP);
    lock_perf();
    assert_int_equal(probe_unprivileged(), 2);
    assert_int_equal(findings[0].status, SENSOR_OK);
    assert_int_equal(findings[1].status, SENSOR_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_paranoid_kernel_is_named_with_its_cure),
        TEST(a_filtered_system_call_is_not_blamed_on_the_policy),
        TEST(root_only_energy_is_named_with_its_cure),
        TEST(a_closed_msr_device_is_named_with_its_cure),
        TEST(what_is_denied_by_one_path_is_read_by_another),
    };
    return RUN_TESTS(tests);
}
