/* The processes below the calling one, a supervisor: which they are, and a limit on their number.  The supervisor was
 * forked without exec, so all functions make async-signal-safe calls only; unlike port/proc_tree.h, they always read
 * the real /proc.
 *
 * The caller owns every struct here. */
#ifndef IPW_PORT_SUBTREE_H
#define IPW_PORT_SUBTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SUBTREE_MAX = 8192 };

struct subtree {
    size_t count;   /* of processes */
    unsigned tasks; /* their threads, at least one each */
    pid_t processes[SUBTREE_MAX];
};

/* Finds all, or stops at `most` tasks (at most SUBTREE_MAX).  Sends each the signal as soon as it is found; 0: none.
 * False if /proc cannot be read. */
bool subtree_find(struct subtree *out, unsigned most, int signal);

/* ---- a limit ---- */

/* The tasks below us are traced (ptrace), so that each fork, which a filter reports (SECCOMP_RET_TRACE), waits for us.
 * Beyond the limit it fails with EAGAIN. */
struct subtree_limit {
    unsigned most;    /* tasks; less than SUBTREE_MAX */
    unsigned bound;   /* there are at most so many, with forks in progress */
    bool is_exceeded; /* there was one fork too many */
    size_t forking;   /* number of tasks that may fork, and have not reported it yet */
    pid_t forkers[SUBTREE_MAX];
};

/* In the program, before execve, which then waits for subtree_trace. */
bool subtree_trace_me(void);

/* Starts tracing once the program has called execve.  False if it has ended before. */
bool subtree_trace(pid_t program);

/* Handles a change that waitpid reports, with __WALL. */
void subtree_limit_handle(struct subtree_limit *limit, pid_t task, int status);

/* ---- members ---- */

/* Whether a process or thread is below us. */
bool subtree_has(pid_t pid);

/* Whether a process of this group is below us. */
bool subtree_has_group(pid_t group);

#endif
