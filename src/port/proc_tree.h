/* Processes of this machine as /proc shows them: listeners on a port, CPU time of a process tree, and ancestry.
 * Paths go through port/fs.h, so that a test can replace /proc. */
#ifndef IPW_PORT_PROC_TREE_H
#define IPW_PORT_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROC_LISTENERS_MAX = 64 };

/* The processes that accept connections to a port of this machine; 0 when there is none, or none that this user may
 * inspect.  A process that only forwards to an invisible one (docker-proxy, ssh) does not count. */
size_t proc_listeners(unsigned port, int pids[static PROC_LISTENERS_MAX]);

/* CPU seconds so far of these processes, their descendants, and their reaped children.  UNKNOWN when one of `pids`
 * has ended. */
double proc_tree_cpu_s(const int *pids, size_t count);

/* CPU time of each process of this machine, by PID; 0 entries where /proc is not accessible.  The caller frees *out. */
struct proc_time {
    int pid;
    uint64_t started, ticks; /* in clock ticks: since boot, and of CPU time */
};
size_t proc_times(struct proc_time **out);
/* The process in such a list; NULL: it is not there, or its PID was reused. */
const struct proc_time *proc_time_find(const struct proc_time *times, size_t count, int pid,
                                       uint64_t started);

/* A process, its parent and so on, as far as visible; 0 when it has ended. */
enum { PROC_ANCESTRY_MAX = 24 };
size_t proc_ancestry(int pid, int out[static PROC_ANCESTRY_MAX]);

/* Whether a process is one of these or a descendant. */
bool proc_tree_has(const int *pids, size_t count, int pid);

/* Process name, at most 15 bytes; "" when it has ended. */
void proc_name(int pid, char *to, size_t size);

/* Its cgroup in the unified hierarchy, or in that of CPU time: "/system.slice/x.service"; "" when it has ended. */
void proc_cgroup(int pid, char *to, size_t size);

/* Whether our PIDs are those that drivers report: they are not in a container with its own PID namespace. */
bool proc_sees_host_pids(void);

#endif
