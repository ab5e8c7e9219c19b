/* Processes of this machine as /proc shows them: who listens on a port, the CPU time of a process with all its
 * descendants, and whose child a process is.  Paths go through port/fs.h, so that a test can replace /proc. */
#ifndef IPW_PORT_PROC_TREE_H
#define IPW_PORT_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROC_LISTENERS_MAX = 64 };

/* The processes that accept connections to a port of this machine; 0 when there is none, or none that this user may
 * look into.  A process that only forwards to one that cannot be seen (docker-proxy, ssh) does not count. */
size_t proc_listeners(unsigned port, int pids[static PROC_LISTENERS_MAX]);

/* CPU seconds so far of these processes, their descendants, and the children that those have waited for.  UNKNOWN
 * when one of `pids` is gone. */
double proc_tree_cpu_s(const int *pids, size_t count);

/* The CPU time that each process of this machine has used itself, by pid; 0 where they cannot be seen.  The caller
 * frees *out. */
struct proc_time {
    int pid;
    uint64_t started, ticks; /* in clock ticks: since boot, and of CPU time */
};
size_t proc_times(struct proc_time **out);

/* A process, its parent and so on, as far as they can be seen; 0 when it is gone. */
enum { PROC_ANCESTRY_MAX = 24 };
size_t proc_ancestry(int pid, int out[static PROC_ANCESTRY_MAX]);

/* Whether a process is one of them, or a descendant. */
bool proc_tree_has(const int *pids, size_t count, int pid);

/* Its name, at most 15 bytes; "" when it is gone. */
void proc_name(int pid, char *to, size_t size);

/* Its cgroup in the unified hierarchy, or in that of CPU time: "/system.slice/x.service"; "" when it is gone. */
void proc_cgroup(int pid, char *to, size_t size);

/* Whether our process ids are those that drivers use: in a container they are not. */
bool proc_sees_host_pids(void);

#endif
