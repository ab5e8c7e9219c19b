/* The table below is the policy.  A call that is not in it fails: with EPERM if it is as old as the table, and with
 * ENOSYS if it is newer, so that the C library falls back to an older one.  A seccomp program finds the entry of a
 * number by binary search.  Its data are registers only, so calls that take their arguments from memory are allowed or
 * refused as a whole.
 *
 * Where Landlock does not restrict signals (before Linux 6.12), they wait for the supervisor, which knows the process
 * tree (SECCOMP_RET_USER_NOTIF).  Forks cannot wait in this way: a signal that arrives before the supervisor has taken
 * notice makes a fork fail with EINTR, for which shells are not prepared.  They are traced instead. */
#define _GNU_SOURCE
#include "port/syscall_filter.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/err.h"

#if defined __x86_64__
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__ && __BYTE_ORDER == __LITTLE_ENDIAN
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* ---- policy ---- */

enum verdict {
    REFUSED, /* EPERM; every call that is not in the table */
    ALLOWED,
    ABSENT, /* ENOSYS: the C library uses an older call instead */
    FORK,   /* the tracer decides, if there is one */
    ASKED,  /* the supervisor decides, if it can be asked */
    /* Depend on what restricts signals to the process tree. */
    SIGNAL,
    SIGNAL_BY_FD, /* the receiver is not among the arguments */
    /* Depend on arguments. */
    CLONE,
    OWN,
    FCNTL,
    IOCTL,
    PRCTL,
    SOCKETPAIR,
};

struct call {
    unsigned short number;
    unsigned char verdict;
};

#ifdef OUR_ARCHITECTURE
/* Numbers that older headers lack; they are the same on every architecture. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake    454
#define SYS_futex_wait    455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat    463
#define SYS_getxattrat    464
#define SYS_listxattrat   465
#define SYS_removexattrat 466
#endif

#define A(name)     {SYS_##name, ALLOWED}
#define B(name, as) {SYS_##name, as}

/* Not here, because they reach beyond the process tree: sockets that have an address (socket, bind, connect, accept),
 * System V and POSIX message queues, semaphores and shared memory, keyrings, other processes (ptrace, process_vm_*,
 * process_madvise, pidfd_getfd, kcmp, move_pages, migrate_pages, setpriority, ioprio_set, get_robust_list), namespaces
 * and mounts (unshare, setns, mount*, move_mount, fs*, open_tree, umount2, chroot, pivot_root), the whole machine
 * (clocks, host name, swap, modules, kexec, reboot, accounting, quotas, syslog, ports), files by handle, fanotify and
 * inotify, which report about files that may not be read, and interfaces that bypass this filter or widen the kernel's
 * attack surface without being needed (io_uring, bpf, perf_event_open, userfaultfd, memfd_secret, personality,
 * modify_ldt, libaio). */
/* clang-format off */
static const struct call CALLS[] = {
    /* Open files: reading, writing, positions, locks. */
    A(read), A(write), A(readv), A(writev), A(pread64), A(pwrite64), A(preadv), A(pwritev), A(preadv2), A(pwritev2),
    A(lseek), A(close), A(close_range), A(dup), A(dup3), A(flock), A(fsync), A(fdatasync), A(sync), A(syncfs),
    A(sync_file_range), A(fadvise64), A(readahead), A(fallocate), A(ftruncate), A(copy_file_range), A(sendfile),
    A(splice), A(tee), A(vmsplice), B(fcntl, FCNTL), B(ioctl, IOCTL),
    /* Paths, which Landlock restricts. */
    A(openat), A(openat2), A(faccessat), A(faccessat2), A(fstat), A(newfstatat), A(statx), A(statfs), A(fstatfs),
    A(readlinkat), A(getcwd), A(chdir), A(fchdir), A(getdents64), A(mkdirat), A(mknodat), A(unlinkat), A(symlinkat),
    A(linkat), A(renameat), A(renameat2), A(truncate), A(umask), A(utimensat), A(fchmod), A(fchmodat), A(fchmodat2),
    A(fchown), A(fchownat),
    A(getxattr), A(lgetxattr), A(fgetxattr), A(getxattrat), A(listxattr), A(llistxattr), A(flistxattr), A(listxattrat),
    A(setxattr), A(lsetxattr), A(fsetxattr), A(setxattrat), A(removexattr), A(lremovexattr), A(fremovexattr),
    A(removexattrat),
    /* Memory of the process itself. */
    A(brk), A(mmap), A(munmap), A(mremap), A(mprotect), A(madvise), A(msync), A(mincore), A(mlock), A(mlock2),
    A(munlock), A(mlockall), A(munlockall), A(mseal), A(memfd_create), A(membarrier), A(pkey_mprotect), A(pkey_alloc),
    A(pkey_free), A(map_shadow_stack), A(mbind), A(get_mempolicy), A(set_mempolicy), A(set_mempolicy_home_node),
    /* Processes and threads.  The flags of clone3 are in memory. */
    B(clone, CLONE), B(clone3, ABSENT), A(execve), A(execveat), A(exit), A(exit_group), A(wait4), A(waitid),
    A(getpid), A(getppid), A(gettid), A(getpgid), A(setpgid), A(getsid), A(setsid), A(set_tid_address),
    A(set_robust_list), A(rseq), A(pidfd_open), B(prctl, PRCTL), A(seccomp), A(restart_syscall),
    /* Users: without capabilities, a process can only set those that it has. */
    A(getuid), A(geteuid), A(getgid), A(getegid), A(getresuid), A(getresgid), A(getgroups), A(setuid), A(setgid),
    A(setreuid), A(setregid), A(setresuid), A(setresgid), A(capget),
    /* Signals. */
    A(rt_sigaction), A(rt_sigprocmask), A(rt_sigreturn), A(rt_sigpending), A(rt_sigtimedwait), A(rt_sigsuspend),
    A(sigaltstack), A(signalfd4), B(kill, SIGNAL), B(tkill, SIGNAL), B(tgkill, SIGNAL), B(rt_sigqueueinfo, SIGNAL),
    B(rt_tgsigqueueinfo, SIGNAL), B(pidfd_send_signal, SIGNAL_BY_FD),
    /* Time and timers. */
    A(nanosleep), A(clock_nanosleep), A(clock_gettime), A(clock_getres), A(gettimeofday), A(times), A(getitimer),
    A(setitimer), A(timer_create), A(timer_settime), A(timer_gettime), A(timer_getoverrun), A(timer_delete),
    A(timerfd_create), A(timerfd_settime), A(timerfd_gettime),
    /* Waiting, and communication within the process tree. */
    A(futex), A(futex_waitv), A(futex_wake), A(futex_wait), A(futex_requeue), A(ppoll), A(pselect6), A(epoll_create1),
    A(epoll_ctl), A(epoll_pwait), A(epoll_pwait2), A(eventfd2), A(pipe2), B(socketpair, SOCKETPAIR), A(sendto),
    A(sendmsg), A(sendmmsg), A(recvfrom), A(recvmsg), A(recvmmsg), A(shutdown), A(getsockname), A(getpeername),
    A(getsockopt), A(setsockopt),
    /* Scheduling and limits: the own ones only. */
    A(sched_yield), A(sched_getaffinity), A(sched_getparam), A(sched_getscheduler), A(sched_getattr),
    A(sched_get_priority_max), A(sched_get_priority_min), A(sched_rr_get_interval), A(getpriority), A(getcpu),
    B(sched_setaffinity, OWN), B(sched_setparam, OWN), B(sched_setscheduler, OWN), B(sched_setattr, OWN),
    A(getrlimit), A(setrlimit), B(prlimit64, OWN), A(getrusage),
    /* The machine: reading. */
    A(uname), A(sysinfo), A(getrandom),
#ifdef __x86_64__
    /* Predecessors of calls above, which newer architectures lack. */
    B(fork, FORK), B(vfork, FORK), A(open), A(creat), A(access), A(stat), A(lstat), A(readlink), A(getdents), A(mkdir),
    A(mknod), A(rmdir), A(unlink), A(symlink), A(link), A(rename), A(chmod), A(chown), A(lchown), A(utime), A(utimes),
    A(futimesat), A(dup2), A(pipe), A(poll), A(select), A(epoll_create), A(epoll_wait), A(eventfd), A(signalfd),
    A(pause), A(alarm), A(time), A(getpgrp), A(arch_prctl),
#endif
};
/* clang-format on */

enum { CALLS_END = SYS_removexattrat + 1 }; /* newer numbers are unknown */

/* Conditions on arguments, in order; the first that applies decides. */
enum test { ALWAYS, EQUAL, ANY_OF };

struct condition {
    unsigned char verdict;
    unsigned char argument;
    unsigned char test;
    unsigned char result; /* a verdict that does not depend on arguments */
    uint32_t mask; /* of the argument's lower half, the only one that the kernel reads here */
    uint32_t value;
};

#define EVERY_BIT UINT32_MAX
#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

enum { SOCKET_TYPE = 0xf };
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#endif
enum { FIOSETOWN_CALL = 0x8901, SIOCSPGRP_CALL = 0x8902 }; /* <linux/sockios.h> conflicts */

static const struct condition CONDITIONS[] = {
    {CLONE, 0, ANY_OF, REFUSED, NAMESPACES, 0},
    {CLONE, 0, ALWAYS, FORK, 0, 0},
    /* Argument 0 is a process; 0 is the caller. */
    {OWN, 0, EQUAL, ALLOWED, EVERY_BIT, 0},
    {OWN, 0, ALWAYS, REFUSED, 0, 0},
    /* Signals to the owner of a file: any process of the user. */
    {FCNTL, 1, EQUAL, REFUSED, EVERY_BIT, F_SETOWN},
    {FCNTL, 1, EQUAL, REFUSED, EVERY_BIT, F_SETOWN_EX},
    {FCNTL, 1, ALWAYS, ALLOWED, 0, 0},
    {IOCTL, 1, EQUAL, REFUSED, EVERY_BIT, FIOSETOWN_CALL},
    {IOCTL, 1, EQUAL, REFUSED, EVERY_BIT, SIOCSPGRP_CALL},
    /* Input for the terminal, which its shell would execute. */
    {IOCTL, 1, EQUAL, REFUSED, EVERY_BIT, TIOCSTI},
    {IOCTL, 1, EQUAL, REFUSED, EVERY_BIT, TIOCLINUX},
    {IOCTL, 1, ALWAYS, ALLOWED, 0, 0},
    {PRCTL, 0, EQUAL, REFUSED, EVERY_BIT, PR_SCHED_CORE}, /* of other processes */
    {PRCTL, 0, ALWAYS, ALLOWED, 0, 0},
    /* A datagram can be sent to any address, also through one of a pair. */
    {SOCKETPAIR, 1, EQUAL, REFUSED, SOCKET_TYPE, SOCK_DGRAM},
    {SOCKETPAIR, 1, EQUAL, REFUSED, SOCKET_TYPE, SOCK_RAW},
    {SOCKETPAIR, 0, EQUAL, ALLOWED, EVERY_BIT, AF_UNIX},
    {SOCKETPAIR, 0, ALWAYS, REFUSED, 0, 0},
    /* 0 is the own process group; -1, every process of the user. */
    {SIGNAL, 0, EQUAL, ALLOWED, EVERY_BIT, 0},
    {SIGNAL, 0, EQUAL, REFUSED, EVERY_BIT, EVERY_BIT},
    {SIGNAL, 0, ALWAYS, ASKED, 0, 0},
};

/* ---- the program ---- */

static void add(struct syscall_filter *filter, struct sock_filter line)
{
    if (filter->length < SYSCALL_FILTER_MAX)
        filter->code[filter->length] = line;
    filter->length++;
}

static void add_result(struct syscall_filter *filter, enum verdict verdict)
{
    uint32_t action = SECCOMP_RET_ALLOW;
    if (verdict == REFUSED)
        action = SECCOMP_RET_ERRNO | EPERM;
    else if (verdict == ABSENT)
        action = SECCOMP_RET_ERRNO | ENOSYS;
    else if (verdict == ASKED && filter->signals == SIGNALS_ASKED)
        action = SECCOMP_RET_USER_NOTIF;
    else if (verdict == FORK && filter->traces_forks)
        action = SECCOMP_RET_TRACE;
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void add_condition(struct syscall_filter *filter, const struct condition *condition)
{
    uint32_t offset = (uint32_t)(offsetof(struct seccomp_data, args) +
                                 condition->argument * sizeof(uint64_t)); /* little-endian */
    if (condition->test != ALWAYS) {
        add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
        add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, condition->mask));
        if (condition->test == EQUAL)
            add(filter,
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, condition->value, 0, 1));
        else
            add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 0, 1));
    }
    add_result(filter, condition->result);
}

static void add_verdict(struct syscall_filter *filter, enum verdict verdict)
{
    if (verdict == SIGNAL_BY_FD)
        verdict = filter->signals == SIGNALS_SCOPED ? ALLOWED : REFUSED;
    if (verdict == SIGNAL && filter->signals == SIGNALS_SCOPED)
        verdict = ALLOWED;
    if (verdict <= ASKED) {
        add_result(filter, verdict);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(CONDITIONS); i++)
        if (CONDITIONS[i].verdict == verdict)
            add_condition(filter, &CONDITIONS[i]);
}

/* Decides about the numbers from `first` to before `end`: one result if they have the same verdict, otherwise two
 * halves.  A jump that depends on a condition reaches 255 lines, one that does not reaches any. */
static void add_search(struct syscall_filter *filter, const unsigned char *verdicts, unsigned first,
                       unsigned end)
{
    unsigned changes = 0, middle = first;
    for (unsigned i = first + 1; i < end; i++)
        changes += verdicts[i] != verdicts[i - 1];
    if (!changes) {
        add_verdict(filter, verdicts[first]);
        return;
    }
    for (unsigned passed = 0; passed < (changes + 1) / 2;) {
        middle++;
        passed += verdicts[middle] != verdicts[middle - 1];
    }
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, middle, 0, 1));
    unsigned short jump = filter->length;
    add(filter, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
    add_search(filter, verdicts, first, middle);
    if (jump < SYSCALL_FILTER_MAX)
        filter->code[jump].k = filter->length - jump - 1U;
    add_search(filter, verdicts, middle, end);
}

void syscall_filter_build(struct syscall_filter *filter)
{
    unsigned char verdicts[CALLS_END] = {REFUSED};
    for (size_t i = 0; i < COUNT_OF(CALLS); i++)
        verdicts[CALLS[i].number] = CALLS[i].verdict;
    filter->length = 0;
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, arch)));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0));
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    add(filter,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CALLS_END, 0, 1));
    add_result(filter, ABSENT); /* also the other ABI of x86-64, x32, whose numbers are large */
    add_search(filter, verdicts, 0, CALLS_END);
    if (filter->length > SYSCALL_FILTER_MAX)
        filter->length = 0; /* a test asserts that it fits */
}
#else
void syscall_filter_build(struct syscall_filter *filter)
{
    filter->length = 0;
}
#endif

/* ---- installation ---- */

/* Declarations that older headers lack. */
#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE (1UL << 0)
#endif

enum {
    NOTICE_MAX = 1024
}; /* bytes of a notice or an answer; a kernel may have larger ones than its headers */

static int filter_calls(unsigned long flags, const struct sock_fprog *program)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
}

/* A descriptor.  Where possible (Linux 5.19), only a fatal signal interrupts a call that the supervisor has seen. */
static int filter_with_listener(const struct sock_fprog *program)
{
    int listener = filter_calls(
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
    if (listener < 0 && errno == EINVAL)
        listener = filter_calls(SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
    return listener;
}

bool syscall_filter_can_ask(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &allow};
    struct seccomp_notif_sizes sizes;
    /* A flag of Linux 5.7 shows that an answer can be "continue" (Linux 5.5): an unknown one is EINVAL. */
    bool can_continue =
        filter_calls(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, NULL) < 0 &&
        errno == EFAULT;
    return can_continue && syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0U, &sizes) == 0 &&
           sizes.seccomp_notif <= NOTICE_MAX && sizes.seccomp_notif_resp <= NOTICE_MAX &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter_with_listener(&program) >= 0;
}

/* A message of one byte with one descriptor, either to send or to receive. */
union descriptor_message {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr describe_message(struct iovec *byte, union descriptor_message *with)
{
    return (struct msghdr){.msg_iov = byte,
                           .msg_iovlen = 1,
                           .msg_control = with->bytes,
                           .msg_controllen = sizeof with->bytes};
}

static bool send_descriptor(int channel, int fd)
{
    char none = 0;
    struct iovec byte = {.iov_base = &none, .iov_len = 1};
    union descriptor_message with = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
                                                .cmsg_level = SOL_SOCKET,
                                                .cmsg_type = SCM_RIGHTS}};
    struct msghdr message = describe_message(&byte, &with);
    memcpy(CMSG_DATA(&with.header), &fd, sizeof fd);
    return sendmsg(channel, &message, 0) == 1;
}

bool syscall_filter_install(const struct syscall_filter *filter, int channel)
{
    struct sock_fprog program = {.len = filter->length,
                                 .filter = (struct sock_filter *)filter->code};
    if (filter->signals != SIGNALS_ASKED)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    int listener = filter_with_listener(&program);
    return listener >= 0 && send_descriptor(channel, listener) && close(listener) == 0;
}

int syscall_filter_receive(int channel)
{
    char none;
    struct iovec byte = {.iov_base = &none, .iov_len = 1};
    union descriptor_message with = {.header = {0}};
    struct msghdr message = describe_message(&byte, &with);
    int listener = -1;
    ssize_t n;
    do
        n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == 1 && message.msg_controllen >= CMSG_LEN(sizeof listener))
        memcpy(&listener, CMSG_DATA(&with.header), sizeof listener);
    return listener;
}

/* ---- answers ---- */

void syscall_filter_answer(int listener, bool (*may_signal)(pid_t receiver))
{
    union {
        struct seccomp_notif notice;
        char size[NOTICE_MAX];
    } asked = {.size = {0}};
    union {
        struct seccomp_notif_resp answer;
        char size[NOTICE_MAX];
    } told = {.size = {0}};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
        return; /* the caller was killed */
    told.answer.id = asked.notice.id;
    /* The argument is in a register, so nobody changes it after the decision. */
    if (may_signal((pid_t)asked.notice.data.args[0]))
        told.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else
        told.answer.error = -EPERM;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &told);
}
