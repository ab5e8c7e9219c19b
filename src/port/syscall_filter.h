/* The system calls of a confined program (port/confine.h): a list of those that it may make, enforced by seccomp.
 *
 * The caller owns every struct here; all functions but syscall_filter_build make async-signal-safe calls only. */
#ifndef IPW_PORT_SYSCALL_FILTER_H
#define IPW_PORT_SYSCALL_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SYSCALL_FILTER_MAX = 1024 };

/* What restricts signals to the program's process tree. */
enum signal_scope {
    SIGNALS_SCOPED, /* Landlock */
    SIGNALS_ASKED,  /* the supervisor, which is asked about each */
    SIGNALS_OPEN,   /* nothing */
};

struct syscall_filter {
    enum signal_scope signals;
    bool traces_forks; /* reports forks to a tracer (port/subtree.h); without one they fail */
    unsigned short length;
    struct sock_filter code[SYSCALL_FILTER_MAX];
};

/* Sets length and code; the rest is given.  Length 0: no filter for this architecture. */
void syscall_filter_build(struct syscall_filter *filter);

/* Filters the calling process from now on.  `channel` is a socket to the supervisor; used with SIGNALS_ASKED only.
 * False with errno. */
bool syscall_filter_install(const struct syscall_filter *filter, int channel);

/* Whether a supervisor can be asked on this machine.  Filters the calling process. */
bool syscall_filter_can_ask(void);

/* The supervisor's side: a descriptor that is readable when a call waits, which the caller closes; -1 if the channel
 * was closed before. */
int syscall_filter_receive(int channel);

/* Answers one waiting call: whether it may signal the receiver, a process, a thread, or a process group if negative. */
void syscall_filter_answer(int listener, bool (*may_signal)(pid_t receiver));

#endif
