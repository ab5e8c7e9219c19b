/* System calls of a confined program, as the kernel answers them: this program, started again in the sandbox, tries one
 * of each family that reaches beyond its process tree, with arguments that do no harm if they are not refused. */
#define _GNU_SOURCE
#include "port/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "port/subprocess.h"
#include "support/unit.h"

#define OTHER "IPW_TEST_OTHER_PROCESS" /* set in the sandbox */

/* ---- in the sandbox ---- */

struct attempt {
    const char *name;
    long number;
    long arguments[5];
};

enum { NO_FD = -1, OF_OTHER = -4711 /* the PID of another process of this user */ };

/* clang-format off */
static const struct attempt ATTEMPTS[] = {
    /* sockets */
    {"socket", SYS_socket, {AF_INET, SOCK_STREAM}}, {"unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM}},
    {"datagram socketpair", SYS_socketpair, {AF_UNIX, SOCK_DGRAM}}, {"connect", SYS_connect, {NO_FD}},
    {"bind", SYS_bind, {NO_FD}}, {"listen", SYS_listen, {NO_FD}}, {"accept", SYS_accept, {NO_FD}},
    /* resources of other processes */
    {"prlimit64", SYS_prlimit64, {OF_OTHER, RLIMIT_NOFILE, 0, 0}},
    {"setpriority", SYS_setpriority, {PRIO_PROCESS, OF_OTHER, 19}},
    {"sched_setaffinity", SYS_sched_setaffinity, {OF_OTHER, 0, 0}},
    {"sched_setscheduler", SYS_sched_setscheduler, {OF_OTHER, 0, 0}},
    {"sched_setparam", SYS_sched_setparam, {OF_OTHER, 0}}, {"ioprio_set", SYS_ioprio_set, {1, OF_OTHER, 0}},
    /* other processes */
    {"ptrace", SYS_ptrace, {16, OF_OTHER}}, {"process_vm_readv", SYS_process_vm_readv, {OF_OTHER}},
    {"process_vm_writev", SYS_process_vm_writev, {OF_OTHER}}, {"kcmp", SYS_kcmp, {OF_OTHER, OF_OTHER}},
    {"move_pages", SYS_move_pages, {OF_OTHER}}, {"migrate_pages", SYS_migrate_pages, {OF_OTHER}},
    {"pidfd_getfd", 438, {NO_FD}}, {"process_madvise", 440, {NO_FD}}, {"process_mrelease", 448, {NO_FD}},
    {"F_SETOWN", SYS_fcntl, {0, F_SETOWN, OF_OTHER}},
    /* keyrings */
    {"keyctl", SYS_keyctl, {6, -3}}, {"add_key", SYS_add_key, {0}}, {"request_key", SYS_request_key, {0}},
    /* System V and POSIX objects, which the whole machine sees */
    {"shmget", SYS_shmget, {0x1234567, 0}}, {"shmat", SYS_shmat, {NO_FD}}, {"shmctl", SYS_shmctl, {NO_FD}},
    {"msgget", SYS_msgget, {0x1234567, 0}}, {"msgsnd", SYS_msgsnd, {NO_FD}}, {"semget", SYS_semget, {0x1234567, 0}},
    {"semop", SYS_semop, {NO_FD}}, {"semctl", SYS_semctl, {NO_FD}}, {"mq_open", SYS_mq_open, {0}},
    {"mq_unlink", SYS_mq_unlink, {0}}, {"mq_timedsend", SYS_mq_timedsend, {NO_FD}},
    /* namespaces and mounts */
    {"unshare", SYS_unshare, {0}}, {"user namespace", SYS_unshare, {CLONE_NEWUSER}}, {"setns", SYS_setns, {NO_FD}},
    {"clone", SYS_clone, {CLONE_NEWUSER | CLONE_THREAD}}, {"mount", SYS_mount, {0}}, {"umount2", SYS_umount2, {0}},
    {"chroot", SYS_chroot, {0}}, {"pivot_root", SYS_pivot_root, {0}}, {"fsopen", 430, {0}}, {"open_tree", 428, {NO_FD}},
    /* kernel interfaces */
    {"io_uring_setup", 425, {1}}, {"io_uring_enter", 426, {NO_FD}}, {"bpf", SYS_bpf, {99}},
    {"perf_event_open", SYS_perf_event_open, {0}}, {"userfaultfd", SYS_userfaultfd, {0}}, {"io_setup", SYS_io_setup, {0}},
    {"personality", SYS_personality, {0xffffffff}},
    /* the machine */
    {"quotactl", SYS_quotactl, {0}}, {"swapon", SYS_swapon, {0}}, {"swapoff", SYS_swapoff, {0}}, {"reboot", SYS_reboot, {0}},
    {"init_module", SYS_init_module, {0}}, {"delete_module", SYS_delete_module, {0}}, {"acct", SYS_acct, {1}},
    {"settimeofday", SYS_settimeofday, {1, 1}}, {"clock_settime", SYS_clock_settime, {0}},
    {"adjtimex", SYS_adjtimex, {0}}, {"sethostname", SYS_sethostname, {1, -1}}, {"syslog", SYS_syslog, {99}},
    /* files that may not be read */
    {"name_to_handle_at", SYS_name_to_handle_at, {NO_FD}}, {"open_by_handle_at", SYS_open_by_handle_at, {NO_FD}},
    {"fanotify_init", SYS_fanotify_init, {-1}}, {"inotify_add_watch", SYS_inotify_add_watch, {NO_FD}},
    {"TIOCSTI", SYS_ioctl, {NO_FD, TIOCSTI}}, {"TIOCLINUX", SYS_ioctl, {NO_FD, TIOCLINUX}},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {99}}, {"ioperm", SYS_ioperm, {0, 0}}, {"modify_ldt", SYS_modify_ldt, {99}},
#endif
};
/* clang-format on */

static long argument(long given, long other)
{
    return given == OF_OTHER ? other : given;
}

/* Prints those that do not fail with EPERM; those of limits are tried with a new one. */
static void try_calls(long other)
{
    const struct rlimit lower = {.rlim_cur = 3, .rlim_max = 3};
    for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++) {
        const struct attempt *call = &ATTEMPTS[i];
        long a[5];
        for (size_t k = 0; k < 5; k++)
            a[k] = argument(call->arguments[k], other);
        if (call->number == SYS_prlimit64)
            a[2] = (long)(intptr_t)&lower;
        errno = 0;
        long result = syscall(call->number, a[0], a[1], a[2], a[3], a[4]);
        if (result != -1 || errno != EPERM)
            dprintf(STDOUT_FILENO, "%s: %ld, errno %d\n", call->name, result, errno);
    }
    if (syscall(435, NULL, 0L) != -1 || errno != ENOSYS) /* the C library then uses clone */
        dprintf(STDOUT_FILENO, "clone3: errno %d\n", errno);
    if (syscall(SYS_prlimit64, 0L, (long)RLIMIT_NOFILE, &lower, NULL))
        dprintf(STDOUT_FILENO, "own limit: errno %d\n", errno);
    dprintf(STDOUT_FILENO, "done\n");
}

/* Before main, which is not that of this file. */
__attribute__((constructor)) static void run_in_sandbox(void)
{
    const char *other = getenv(OTHER);
    if (!other)
        return;
    try_calls(strtol(other, NULL, 10));
    _exit(0);
}

/* ---- outside ---- */

static void expect_refusals(pid_t other)
{
    char path[4096], variable[64];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(n > 0);
    path[n] = '\0';
    snprintf(variable, sizeof variable, OTHER "=%d", (int)other);
    const char *const argv[] = {path, NULL}, *const environment[] = {variable, NULL},
                      *const readable[] = {path, NULL};
    struct subprocess_options options = {.argv = argv,
                                         .environment = environment,
                                         .directory = -1,
                                         .confined = true,
                                         .readable = readable};
    struct subprocess_result result;
    struct text output = {0};
    struct error why = {0};
    enum err err = subprocess_run(&options, &(struct subprocess_run){.output_limit = 1 << 16},
                                  &output, &result, &why);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    assert_string_equal(text_get(&output), "done\n");
    text_release(&output);
}

/* The attempts are about this process; its limits stay as they are. */
static void expect_refusals_about(pid_t other)
{
    struct rlimit before, after;
    assert_int_equal(prlimit(other, RLIMIT_NOFILE, NULL, &before), 0);
    expect_refusals(other);
    assert_int_equal(prlimit(other, RLIMIT_NOFILE, NULL, &after), 0);
    assert_int_equal(before.rlim_cur, after.rlim_cur);
    assert_int_equal(before.rlim_max, after.rlim_max);
}

static void calls_that_reach_beyond_the_process_tree_are_refused(void **state)
{
    (void)state;
    SKIP_WITHOUT(confine_available);
    if (getenv("IPW_EMULATED"))
        SKIP("an emulator has no seccomp");
    pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    assert_true(other > 0);
    expect_refusals_about(other);
    expect_refusals_about(getpid());
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)other), getpriority(PRIO_PROCESS, 0));
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_reach_beyond_the_process_tree_are_refused),
    };
    return RUN_TESTS(tests);
}
