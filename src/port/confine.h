/* Sandbox for a program that we did not write (a model's shell command): it can make only the system calls that
 * programs need for themselves, so that it has no sockets and no access to other processes; it writes only to its own
 * directory and reads only that and the files that programs need to run; and the number of its processes is limited.
 * Enforced by the kernel (seccomp, Landlock) and inherited by its child processes. */
#ifndef IPW_PORT_CONFINE_H
#define IPW_PORT_CONFINE_H

#include <stdbool.h>

#include "core/err.h"
#include "port/syscall_filter.h"

/* Whether the kernel can enforce the sandbox; it cannot without seccomp. */
enum err confine_available(struct error *why) MUST_USE;

/* Whether file access can be restricted too.  ERR_UNSUPPORTED without Landlock (Linux 5.13): the program can then
 * access the files that this user can. */
enum err confine_files_available(struct error *why) MUST_USE;

/* Whether the limit on tasks is exact.  ERR_UNSUPPORTED where neither the kernel can enforce it, which it does in a
 * user namespace, but not for root, nor a tracer: a program that exceeds it is then killed soon after. */
enum err confine_tasks_available(struct error *why) MUST_USE;

/* How the limit on tasks is enforced. */
enum task_limit {
    TASKS_BY_KERNEL,
    TASKS_BY_TRACER, /* see port/subtree.h; the program must have called subtree_trace_me */
    TASKS_BY_COUNT,  /* the supervisor kills a program that has exceeded it */
};

/* Prepared before the fork; confine_release frees it. */
struct confinement {
    int directory;       /* the caller's */
    int files;           /* Landlock rules; -1 if the kernel has no Landlock */
    bool has_own_mounts; /* all others are read-only, and /dev/shm is its own */
    enum task_limit limit;
    unsigned tasks_max; /* 0: no limit */
    struct syscall_filter filter;
};

/* The program may access the directory (a descriptor; -1: none), `readable` (paths, NULL-terminated; may be NULL;
 * paths that do not exist are ignored) and system files. */
enum err confine_prepare(int directory, const char *const *readable, unsigned tasks_max,
                         struct confinement *out, struct error *why) MUST_USE;
void confine_release(struct confinement *confinement);

/* Confines the calling process, and changes to the directory, between fork and execve: makes async-signal-safe calls
 * only.  `channel` as for syscall_filter_install.  False with errno. */
bool confine_self(const struct confinement *confinement, int channel);

/* Between the two calls, which nest, programs of the same user cannot read our memory or environment, which may
 * hold keys; unconfined programs of root can. */
void confine_guard(void);
void confine_unguard(void);

#endif
