/* The filter of system calls: its seccomp program, interpreted here as the kernel would, gives the
 * expected result for each family of calls of the architecture that it was compiled for.  The
 * kernel itself is asked in test_confine.c; an emulator of another architecture cannot be. */
#define _GNU_SOURCE
#include "port/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "support/unit.h"

#ifdef __x86_64__
enum { ARCHITECTURE = AUDIT_ARCH_X86_64 & 0x7fffffff };
#else
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 & 0x7fffffff };
#endif

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define ABSENT  (SECCOMP_RET_ERRNO | ENOSYS)
#define ALLOWED SECCOMP_RET_ALLOW
#define ASKS    SECCOMP_RET_USER_NOTIF
#define TRACED  SECCOMP_RET_TRACE

/* Runs the program; every line must be one that the kernel accepts in a filter. */
static uint32_t interpret(const struct syscall_filter *filter, const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (size_t at = 0, steps = 0;; at++, steps++) {
        assert_true(at < filter->length && steps < 200);
        struct sock_filter line = filter->code[at];
        switch (line.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(line.k % 4 == 0 && line.k < sizeof *data);
            memcpy(&a, (const char *)data + line.k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= line.k;
            break;
        case BPF_JMP | BPF_JA:
            at += line.k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == line.k ? line.jt : line.jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= line.k ? line.jt : line.jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += a > line.k ? line.jt : line.jf;
            break;
        case BPF_RET | BPF_K:
            return line.k;
        default:
            print_error("line %zu has code %#x\n", at, line.code);
            fail();
        }
    }
}

static uint32_t result_of(const struct syscall_filter *filter, long number, uint64_t first,
                          uint64_t second)
{
    struct seccomp_data data = {
        .nr = (int)number, .arch = ARCHITECTURE | 0x80000000, .args = {first, second}};
    return interpret(filter, &data);
}

static struct syscall_filter build(enum signal_scope signals, bool traces_forks)
{
    struct syscall_filter filter = {.signals = signals, .traces_forks = traces_forks};
    syscall_filter_build(&filter);
    assert_true(filter.length > 0);
    return filter;
}

struct expected_call {
    const char *name;
    long number;
    uint32_t result;
    uint64_t first, second;
};

static void expect_calls(const struct syscall_filter *filter, const struct expected_call *calls,
                         size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t found = result_of(filter, calls[i].number, calls[i].first, calls[i].second);
        if (found != calls[i].result) {
            print_error("%s(%#llx, %#llx): %#x, expected %#x\n", calls[i].name,
                        (unsigned long long)calls[i].first, (unsigned long long)calls[i].second,
                        found, calls[i].result);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}
#define EXPECT(filter, calls)           expect_calls((filter), (calls), sizeof(calls) / sizeof *(calls))

#define CALL(name)                      #name, SYS_##name
#define NO(name)                        {CALL(name), REFUSED, 0, 0}
#define YES(name)                       {CALL(name), ALLOWED, 0, 0}
#define WITH(name, first, second, what) {CALL(name), (what), (uint64_t)(first), (uint64_t)(second)}
#define NEWER(name, number)             {name, number, REFUSED, 0, 0} /* than some headers */

/* clang-format off */
static const struct expected_call REFUSED_CALLS[] = {
    /* sockets */
    NO(socket), NO(bind), NO(connect), NO(listen), NO(accept), NO(accept4),
    /* System V */
    NO(shmget), NO(shmat), NO(shmctl), NO(shmdt), NO(msgget), NO(msgsnd), NO(msgrcv), NO(msgctl), NO(semget),
    NO(semop), NO(semctl), NO(semtimedop),
    /* POSIX message queues */
    NO(mq_open), NO(mq_unlink), NO(mq_timedsend), NO(mq_timedreceive), NO(mq_notify), NO(mq_getsetattr),
    /* keyrings */
    NO(add_key), NO(request_key), NO(keyctl),
    /* other processes */
    NO(ptrace), NO(process_vm_readv), NO(process_vm_writev), NO(kcmp), NO(setpriority), NO(ioprio_set),
    NO(move_pages), NO(migrate_pages), NO(get_robust_list), NEWER("pidfd_getfd", 438),
    NEWER("process_madvise", 440), NEWER("process_mrelease", 448),
    /* namespaces and mounts */
    NO(unshare), NO(setns), NO(mount), NO(umount2), NO(chroot), NO(pivot_root), NEWER("open_tree", 428),
    NEWER("move_mount", 429), NEWER("fsopen", 430), NEWER("fsconfig", 431), NEWER("fsmount", 432),
    NEWER("fspick", 433), NEWER("mount_setattr", 442),
    /* kernel interfaces */
    NO(bpf), NO(perf_event_open), NO(userfaultfd), NEWER("io_uring_setup", 425), NEWER("io_uring_enter", 426),
    NEWER("io_uring_register", 427), NO(io_setup), NO(io_submit), NO(personality), NEWER("memfd_secret", 447),
    /* the machine */
    NO(quotactl), NO(swapon), NO(swapoff), NO(reboot), NO(init_module), NO(finit_module), NO(delete_module),
    NO(kexec_load), NO(acct), NO(settimeofday), NO(clock_settime), NO(adjtimex), NO(clock_adjtime), NO(sethostname),
    NO(setdomainname), NO(syslog), NO(vhangup), NO(setgroups), NO(capset), NO(nfsservctl),
    /* files that may not be read */
    NO(name_to_handle_at), NO(open_by_handle_at), NO(fanotify_init), NO(fanotify_mark), NO(inotify_init1),
    NO(inotify_add_watch),
#ifdef __x86_64__
    NO(iopl), NO(ioperm), NO(modify_ldt), NO(inotify_init), NO(uselib), NO(kexec_file_load),
#endif
};

static const struct expected_call ALLOWED_CALLS[] = {
    YES(read), YES(write), YES(openat), YES(close), YES(newfstatat), YES(statx), YES(getdents64), YES(unlinkat),
    YES(renameat2), YES(faccessat), YES(mmap), YES(munmap), YES(mprotect), YES(brk), YES(futex), YES(execve),
    YES(exit_group), YES(wait4), YES(rt_sigaction), YES(rt_sigreturn), YES(nanosleep), YES(clock_gettime),
    YES(pipe2), YES(epoll_pwait), YES(sendmsg), YES(recvmsg), YES(sched_getaffinity), YES(getrandom), YES(getrlimit),
    YES(setsid), YES(set_robust_list), YES(uname), YES(memfd_create), YES(fchmodat), YES(getpriority),
    {"faccessat2", 439, ALLOWED, 0, 0}, {"rseq", SYS_rseq, ALLOWED, 0, 0}, {"close_range", 436, ALLOWED, 0, 0},
    {"pidfd_open", 434, ALLOWED, 0, 0}, {"futex_waitv", 449, ALLOWED, 0, 0},
#ifdef __x86_64__
    YES(open), YES(stat), YES(pipe), YES(poll), YES(select), YES(arch_prctl), YES(dup2), YES(access),
#endif
};

static const struct expected_call ARGUMENTS[] = {
    /* Limits and scheduling: the caller's only.  The kernel reads 32 bits of a PID. */
    WITH(prlimit64, 0, 7, ALLOWED), WITH(prlimit64, 1, 7, REFUSED), WITH(prlimit64, 4711, 0, REFUSED),
    WITH(prlimit64, UINT64_C(1) << 32, 7, ALLOWED), WITH(prlimit64, -1, 7, REFUSED),
    WITH(sched_setaffinity, 0, 8, ALLOWED), WITH(sched_setaffinity, 1, 8, REFUSED),
    WITH(sched_setscheduler, 0, 0, ALLOWED), WITH(sched_setscheduler, 1, 0, REFUSED),
    WITH(sched_setparam, 0, 0, ALLOWED), WITH(sched_setparam, 1, 0, REFUSED),
    WITH(sched_setattr, 0, 0, ALLOWED), WITH(sched_setattr, 1, 0, REFUSED),
    /* Namespaces, one flag at a time and with others. */
    WITH(clone, CLONE_NEWUSER, 0, REFUSED), WITH(clone, CLONE_NEWNS, 0, REFUSED),
    WITH(clone, CLONE_NEWPID, 0, REFUSED), WITH(clone, CLONE_NEWNET, 0, REFUSED),
    WITH(clone, CLONE_NEWIPC, 0, REFUSED), WITH(clone, CLONE_NEWUTS, 0, REFUSED),
    WITH(clone, CLONE_NEWCGROUP, 0, REFUSED), WITH(clone, CLONE_NEWUSER | CLONE_VM | 17, 0, REFUSED),
        {"clone3", 435, ABSENT, 0, 0},
    /* Terminals, and signals through the owner of a descriptor. */
    WITH(ioctl, 0, TIOCSTI, REFUSED), WITH(ioctl, 0, TIOCLINUX, REFUSED), WITH(ioctl, 0, 0x8901, REFUSED),
    WITH(ioctl, 0, 0x8902, REFUSED), WITH(ioctl, 0, UINT64_C(0xffffffff00000000) | TIOCSTI, REFUSED),
    WITH(ioctl, 0, TCGETS, ALLOWED), WITH(ioctl, 0, TIOCGWINSZ, ALLOWED), WITH(ioctl, 0, FIONREAD, ALLOWED),
    WITH(fcntl, 0, F_SETOWN, REFUSED), WITH(fcntl, 0, 15, REFUSED), WITH(fcntl, 0, F_SETFL, ALLOWED),
    WITH(fcntl, 0, F_SETLK, ALLOWED), WITH(fcntl, 0, F_DUPFD_CLOEXEC, ALLOWED),
    /* Pairs of sockets without an address. */
    WITH(socketpair, AF_UNIX, SOCK_STREAM, ALLOWED), WITH(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, ALLOWED),
    WITH(socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, ALLOWED),
    WITH(socketpair, AF_UNIX, SOCK_DGRAM, REFUSED), WITH(socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, REFUSED),
    WITH(socketpair, AF_UNIX, SOCK_RAW, REFUSED), WITH(socketpair, AF_INET, SOCK_STREAM, REFUSED),
    WITH(prctl, PR_SET_NAME, 0, ALLOWED), WITH(prctl, PR_SET_NO_NEW_PRIVS, 1, ALLOWED), WITH(prctl, 62, 2, REFUSED),
};

/* Where Landlock does not restrict signals. */
static const struct expected_call SIGNALS_WITH_SUPERVISOR[] = {
    WITH(kill, 0, 15, ALLOWED), WITH(kill, -1, 9, REFUSED), WITH(kill, 4711, 9, ASKS),
    WITH(kill, -4711, 9, ASKS), WITH(tkill, 4711, 9, ASKS), WITH(tgkill, 4711, 4711, ASKS),
    WITH(rt_sigqueueinfo, 4711, 9, ASKS), WITH(rt_tgsigqueueinfo, 4711, 4711, ASKS),
    {"pidfd_send_signal", 424, REFUSED, 3, 9},
};

static const struct expected_call SIGNALS_SCOPED_BY_LANDLOCK[] = {
    WITH(kill, -1, 9, ALLOWED), WITH(kill, 4711, 9, ALLOWED), WITH(tgkill, 4711, 4711, ALLOWED),
    {"pidfd_send_signal", 424, ALLOWED, 3, 9},
};

static const struct expected_call SIGNALS_OF_ALL[] = {
    WITH(kill, 0, 15, ALLOWED), WITH(kill, -1, 9, REFUSED), WITH(kill, 4711, 9, ALLOWED),
    {"pidfd_send_signal", 424, REFUSED, 3, 9},
};

static const struct expected_call FORKS[] = {
    WITH(clone, 17, 0, ALLOWED), WITH(clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, ALLOWED),
#ifdef __x86_64__
    WITH(fork, 0, 0, ALLOWED), WITH(vfork, 0, 0, ALLOWED),
#endif
};

static const struct expected_call FORKS_TRACED[] = {
    WITH(clone, 17, 0, TRACED), WITH(clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, TRACED),
#ifdef __x86_64__
    WITH(fork, 0, 0, TRACED), WITH(vfork, 0, 0, TRACED),
#endif
};
/* clang-format on */

static void expect_families(const struct syscall_filter *filter)
{
    EXPECT(filter, REFUSED_CALLS);
    EXPECT(filter, ALLOWED_CALLS);
    EXPECT(filter, ARGUMENTS);
}

static void each_family_has_its_result(void **state)
{
    (void)state;
    struct syscall_filter filter = build(SIGNALS_SCOPED, false);
    expect_families(&filter);
    EXPECT(&filter, SIGNALS_SCOPED_BY_LANDLOCK);
    EXPECT(&filter, FORKS);
    filter = build(SIGNALS_ASKED, true);
    expect_families(&filter);
    EXPECT(&filter, SIGNALS_WITH_SUPERVISOR);
    EXPECT(&filter, FORKS_TRACED);
    filter = build(SIGNALS_OPEN, false);
    expect_families(&filter);
    EXPECT(&filter, SIGNALS_OF_ALL);
    EXPECT(&filter, FORKS);
}

/* Newer than the table, and those of the other ABI of x86-64. */
static void unknown_calls_do_not_exist(void **state)
{
    (void)state;
    static const uint32_t NUMBERS[] = {
        467, 470, 511, 512, 600, 4095, 0x40000000, 0x40000001, 0x7fffffff, 0x80000000, UINT32_MAX};
    struct syscall_filter filter = build(SIGNALS_ASKED, true);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        assert_int_equal(result_of(&filter, (long)NUMBERS[i], 0, 0), ABSENT);
    for (uint32_t number = 0; number < 467; number++) {
        uint32_t result = result_of(&filter, number, 0, 0);
        assert_true(result == ALLOWED || result == REFUSED || result == ASKS || result == TRACED ||
                    (number == 435 && result == ABSENT));
    }
}

static void other_architectures_are_killed(void **state)
{
    (void)state;
    static const uint32_t OTHERS[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, UINT32_MAX};
    struct syscall_filter filter = build(SIGNALS_ASKED, true);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct seccomp_data data = {.nr = 1, .arch = OTHERS[i]};
        assert_int_equal(interpret(&filter, &data), SECCOMP_RET_KILL_PROCESS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_has_its_result),
        cmocka_unit_test(unknown_calls_do_not_exist),
        cmocka_unit_test(other_architectures_are_killed),
    };
    return RUN_TESTS(tests);
}
