/* A pass over /proc finds the parent of each process.  PIDs are listed in ascending order, so that a process whose
 * parent ends meanwhile is read after it, with its new parent: an orphan belongs to the calling process if that is a
 * subreaper.  Files are read into small buffers on the stack; nothing is allocated.
 *
 * The limit counts in /proc only when as many forks were granted as there was room.  Tracing is also possible for root
 * and in a container, where the kernel's own limits (RLIMIT_NPROC, cgroups) do not apply or are not available. */
#define _GNU_SOURCE
#include "port/subtree.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- one process ---- */

/* Fields of /proc/PID/stat. */
struct process_stat {
    pid_t parent, group;
    unsigned threads;
};

static char *add_number(char *to, pid_t number)
{
    char digits[16];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

static ssize_t read_stat_text(pid_t pid, char *to, size_t size)
{
    char path[32] = "/proc/";
    memcpy(add_number(path + strlen(path), pid), "/stat", sizeof "/stat");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, to, size);
    close(fd);
    return n;
}

/* The name, in parentheses, may contain any byte: fields are counted from its end.  False when it has ended. */
static bool read_stat(pid_t pid, struct process_stat *out)
{
    enum { PARENT = 1, GROUP = 2, THREADS = 17, FIELDS };
    char text[512];
    long fields[FIELDS] = {0};
    ssize_t n = read_stat_text(pid, text, sizeof text), at = n - 1;
    while (at >= 0 && text[at] != ')')
        at--;
    if (at < 0 || at + 2 >= n)
        return false;
    size_t field = 0;
    for (at += 3; at < n && field < FIELDS; at++)
        if (text[at] == ' ')
            field++;
        else if (text[at] >= '0' && text[at] <= '9')
            fields[field] = 10 * fields[field] + (text[at] - '0');
    out->parent = (pid_t)fields[PARENT];
    out->group = (pid_t)fields[GROUP];
    out->threads = fields[THREADS] > 1 ? (unsigned)fields[THREADS] : 1;
    return true;
}

/* An entry of a directory as the kernel returns it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static pid_t read_pid(const char *name)
{
    long pid = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        pid = 10 * pid + (*name - '0');
    return *name ? 0 : (pid_t)pid;
}

/* ---- all of them ---- */

struct search {
    struct subtree *found;
    pid_t root;
    unsigned most;
    int signal;
    bool has_late_parent;
};

static bool has_process(const struct search *search, pid_t pid)
{
    for (size_t i = 0; i < search->found->count; i++)
        if (search->found->processes[i] == pid)
            return true;
    return pid == search->root;
}

static void look_at(struct search *search, pid_t pid)
{
    struct process_stat stat;
    if (pid <= 0 || has_process(search, pid) || !read_stat(pid, &stat))
        return;
    if (has_process(search, stat.parent)) {
        if (search->signal)
            kill(pid, search->signal);
        search->found->processes[search->found->count++] = pid;
        search->found->tasks += stat.threads;
    } else if (stat.parent > pid) {
        search->has_late_parent = true;
    }
}

static bool has_room(const struct search *search)
{
    return search->found->tasks < search->most;
}

static bool search_once(struct search *search)
{
    _Alignas(struct entry) char bytes[8192];
    long n = 0;
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && has_room(search) &&
           (n = syscall(SYS_getdents64, fd, bytes, sizeof bytes)) > 0)
        for (long at = 0; at < n && has_room(search);) {
            const struct entry *entry = (const struct entry *)(bytes + at);
            look_at(search, read_pid(entry->name));
            at += entry->length;
        }
    if (fd >= 0)
        close(fd);
    return fd >= 0 && n >= 0;
}

bool subtree_find(struct subtree *out, unsigned most, int signal)
{
    struct search search = {.found = out,
                            .root = getpid(),
                            .most = most < SUBTREE_MAX ? most : SUBTREE_MAX,
                            .signal = signal};
    size_t before;
    bool was_read;
    out->count = 0;
    out->tasks = 0;
    do {
        before = out->count;
        search.has_late_parent = false;
        was_read = search_once(&search);
        /* Once PIDs have wrapped around, children may come before their parents. */
    } while (was_read && search.has_late_parent && out->count > before && has_room(&search));
    return was_read;
}

/* ---- a limit ---- */

bool subtree_trace_me(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

/* Our memory, which the program has until execve, is hidden, so only it can ask to be traced.  But that kind of tracing
 * cannot tell when a stopped process continues: it is replaced while the program stands still. */
bool subtree_trace(pid_t program)
{
    enum {
        OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
                  PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE
    };
    siginfo_t change;
    int n;
    do
        n = waitid(P_PID, (id_t)program, &change, WEXITED | WSTOPPED | WNOWAIT);
    while (n != 0 && errno == EINTR);
    if (n != 0 || (change.si_code != CLD_TRAPPED && change.si_code != CLD_STOPPED))
        return false;
    return ptrace(PTRACE_DETACH, program, NULL, (void *)(intptr_t)SIGSTOP) == 0 &&
           ptrace(PTRACE_SEIZE, program, NULL, (void *)(intptr_t)OPTIONS) == 0 &&
           kill(program, SIGCONT) == 0;
}

/* Skips the system call of a stopped task. */
static bool refuse(pid_t task)
{
#if defined __x86_64__
    return ptrace(PTRACE_POKEUSER, task, (void *)offsetof(struct user_regs_struct, orig_rax),
                  (void *)-1L) == 0 &&
           ptrace(PTRACE_POKEUSER, task, (void *)offsetof(struct user_regs_struct, rax),
                  (void *)(intptr_t)-EAGAIN) == 0;
#elif defined __aarch64__
    enum { SYSTEM_CALL = 0x404 }; /* NT_ARM_SYSTEM_CALL */
    int none = -1;
    struct user_regs_struct registers;
    struct iovec number = {&none, sizeof none}, all = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, task, (void *)(intptr_t)NT_PRSTATUS, &all) != 0)
        return false;
    registers.regs[0] = (uint64_t)-EAGAIN;
    return ptrace(PTRACE_SETREGSET, task, (void *)(intptr_t)NT_PRSTATUS, &all) == 0 &&
           ptrace(PTRACE_SETREGSET, task, (void *)(intptr_t)SYSTEM_CALL, &number) == 0;
#else
    (void)task;
    return false;
#endif
}

/* Its fork has happened, or failed. */
static void forget_forker(struct subtree_limit *limit, pid_t task)
{
    for (size_t i = 0; i < limit->forking; i++)
        if (limit->forkers[i] == task)
            limit->forkers[i--] = limit->forkers[--limit->forking];
}

static bool may_fork(struct subtree_limit *limit, pid_t task)
{
    struct subtree found;
    forget_forker(limit, task);
    if (limit->bound >= limit->most) {
        if (!subtree_find(&found, limit->most, 0))
            found.tasks = limit->most;
        limit->bound = found.tasks + (unsigned)limit->forking;
    }
    if (limit->bound >= limit->most)
        return false;
    limit->bound++;
    limit->forkers[limit->forking++] = task;
    return true;
}

static bool stops_group(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void subtree_limit_handle(struct subtree_limit *limit, pid_t task, int status)
{
    int event = status >> 16, signal = WSTOPSIG(status);
    if (!WIFSTOPPED(status)) {
        forget_forker(limit, task);
        return;
    }
    if (event == PTRACE_EVENT_STOP && stops_group(signal)) {
        ptrace(PTRACE_LISTEN, task, NULL, NULL); /* stays stopped until SIGCONT */
        return;
    }
    if (event == PTRACE_EVENT_SECCOMP && !may_fork(limit, task)) {
        limit->is_exceeded = true;
        if (!refuse(task))
            return; /* stays stopped until it is killed */
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
        forget_forker(limit, task);
    }
    /* Without an event, it is about to receive the signal. */
    ptrace(PTRACE_CONT, task, NULL, (void *)(intptr_t)(event ? 0 : signal));
}

/* ---- members ---- */

bool subtree_has(pid_t pid)
{
    struct process_stat stat;
    pid_t self = getpid();
    while (pid > 1 && pid != self && read_stat(pid, &stat)) {
        if (stat.parent == self)
            return true;
        pid = stat.parent;
    }
    return false;
}

bool subtree_has_group(pid_t group)
{
    struct subtree all;
    struct process_stat stat;
    subtree_find(&all, SUBTREE_MAX, 0);
    for (size_t i = 0; i < all.count; i++)
        if (read_stat(all.processes[i], &stat) && stat.group == group)
            return true;
    return false;
}
