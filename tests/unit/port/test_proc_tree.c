/* Who listens on a port, and the CPU time of a process with its descendants, in a fake /proc. */
#include "port/proc_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/units.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static void put_process(int pid, const char *name, int parent, int own, int waited)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    tree_write(&tree, path, "%d (%s) S %d 1 1 0 -1 4194560 10 20 30 40 %d 0 %d 0 20 0 1 0 5 6 7\n",
               pid, name, parent, own, waited);
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    tree_write(&tree, path, "%s\n", name);
}

static void put_socket(int pid, int fd, int inode)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    snprintf(target, sizeof target, "socket:[%d]", inode);
    tree_link(&tree, path, target);
}

/* 100 serves port 8080 with the workers 101 and 102, of which 103 is a child; 200 is a client of
 * it, 300 the listener of another port, and 50 the shell that started all of them. */
static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    tree_write(&tree, "/proc/net/tcp", "%s",
               "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
               "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000"
               "        0 7001 1 0000000000000000 100 0 0 10 0\n"
               "   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000"
               "        0 7002 1 0000000000000000 20 4 30 10 -1\n"
               "   2: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000"
               "        0 7004 1 0000000000000000 20 4 30 10 -1\n");
    tree_write(
        &tree, "/proc/net/tcp6", "%s",
        "  sl  local_address                         remote_address\n"
        "   0: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A "
        "00000000:00000000 00:00000000 00000000     0        0 7003 1 0000000000000000 100\n");
    put_process(50, "bash", 1, 7000, 0);
    put_process(100, "serve) R 9 (", 50, 100, 30);
    put_process(101, "worker", 100, 200, 0);
    put_process(103, "thread pool", 102, 800, 0); /* out of order: before its parent */
    put_process(102, "worker", 100, 400, 0);
    put_process(200, "client", 50, 5000, 0);
    put_process(300, "other", 50, 6000, 0);
    put_socket(100, 3, 7001);
    put_socket(200, 5, 7002);
    put_socket(300, 4, 7003);
    return 0;
}

static void test_listeners_of_a_port(void **state)
{
    (void)state;
    int pids[PROC_LISTENERS_MAX];
    assert_int_equal(proc_listeners(8080, pids), 1);
    assert_int_equal(pids[0], 100); /* neither the client, nor its own connections */
    assert_int_equal(proc_listeners(8081, pids), 1); /* over IPv6 */
    assert_int_equal(pids[0], 300);
    assert_int_equal(proc_listeners(8082, pids), 0);
}

static void test_a_port_forwarder_is_not_the_server(void **state)
{
    (void)state;
    int pids[PROC_LISTENERS_MAX];
    tree_write(&tree, "/proc/100/comm", "docker-proxy\n");
    assert_int_equal(proc_listeners(8080, pids), 0);
}

static void test_cpu_time_of_a_process_tree(void **state)
{
    (void)state;
    const int server = 100, gone = 400;
    double tick = (double)sysconf(_SC_CLK_TCK);
    assert_true(proc_tree_cpu_s(&server, 1) * tick == 100 + 30 + 200 + 400 + 800);
    /* A root given twice, or inside the tree, counts once. */
    assert_true(proc_tree_cpu_s((int[]){100, 102}, 2) == proc_tree_cpu_s(&server, 1));
    assert_false(is_known(proc_tree_cpu_s(&gone, 1)));
    assert_false(is_known(proc_tree_cpu_s(NULL, 0)));
    assert_true(proc_tree_has(&server, 1, 103));
    assert_false(proc_tree_has(&server, 1, 200));
}

static void test_ancestry_and_name_of_a_process(void **state)
{
    (void)state;
    int ancestry[PROC_ANCESTRY_MAX];
    char name[16];
    assert_int_equal(proc_ancestry(103, ancestry), 4);
    assert_memory_equal(ancestry, ((int[]){103, 102, 100, 50}), 4 * sizeof *ancestry);
    assert_int_equal(proc_ancestry(400, ancestry), 0);
    proc_name(200, name, sizeof name);
    assert_string_equal(name, "client");
    put_process(201, "fifteen letters", 50, 1, 0); /* the longest name that Linux has */
    proc_name(201, name, 16);
    assert_string_equal(name, "fifteen letters");
    proc_name(400, name, sizeof name);
    assert_string_equal(name, "");
}

static void test_pid_namespaces_are_detected(void **state)
{
    (void)state;
    assert_false(proc_sees_host_pids());
    tree_link(&tree, "/proc/self/ns/pid", "pid:[4026532281]");
    assert_false(proc_sees_host_pids());
    tree_remove(&tree, "/proc/self/ns/pid");
    tree_link(&tree, "/proc/self/ns/pid", "pid:[4026531836]");
    assert_true(proc_sees_host_pids());
}

static void test_own_cpu_time_of_each_process(void **state)
{
    (void)state;
    struct proc_time *times;
    size_t count = proc_times(&times), seen = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || times[i].pid > times[i - 1].pid);
        if (times[i].pid == 100) { /* without its waited-for children */
            seen++;
            assert_int_equal(times[i].ticks, 100);
            assert_int_equal(times[i].started, 5);
        }
    }
    assert_int_equal(seen, 1);
    free(times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_cpu_time_of_each_process, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_listeners_of_a_port, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_a_port_forwarder_is_not_the_server, set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_cpu_time_of_a_process_tree, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(test_ancestry_and_name_of_a_process, set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_pid_namespaces_are_detected, set_up, tree_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
