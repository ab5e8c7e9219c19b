/* Child processes with a ready/go handshake, and what this process itself costs.
 *
 * The child is forked early and waits; everything that must be running before it starts can be
 * set up in peace, and child_go then costs one write.  A struct child owns the process until
 * child_wait has reported its end. */
#ifndef IPW_PORT_PROC_H
#define IPW_PORT_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/err.h"
#include "core/units.h"

struct child {
    pid_t pid;
    int go;      /* write end: a byte lets the child run */
    int failure; /* read end: errno of an exec that failed; end of file when it worked */
};

struct child_end {
    int exit_code; /* the command's own, or 128 + signal */
    int signal;    /* that ended it; 0 when it exited */
    double user_s; /* its CPU time and that of the children it waited for */
    double system_s;
    double rss_mb; /* its largest resident set */
};

/* Forks; the child waits for child_go. */
enum err child_prepare(struct child *child, char *const argv[], struct error *why) MUST_USE;

/* Lets it run and waits until it has become the command.  When the command cannot be run, the
 * error says so, the child is gone, and *exit_code is 127 (not found) or 126. */
enum err child_go(struct child *child, int *exit_code, struct error *why) MUST_USE;

/* Ends a child that was prepared but will not be let go. */
void child_abandon(struct child *child);

/* Waits for the child's end or for a signal to this process.  Returns 0 at the child's end with
 * *end filled, otherwise the number of the signal (SIGINT, SIGTERM, SIGHUP), with *from_terminal
 * set when the terminal sent it (the child then got it too). */
int child_wait(struct child *child, struct child_end *end, bool *from_terminal);

/* Makes orphans of our children ours, so that a command that daemonises is noticed. */
void proc_adopt_orphans(void);

/* How many adopted processes still run. */
unsigned proc_orphans(void);

/* Returns when none does, with 0, or with the number of a signal that came before. */
int proc_await_orphans(void);

/* A standard descriptor that we were started without is held, so that no file or sensor we open
 * takes its number and gets what was meant for it.  Using it fails as before, and a child finds it
 * closed as we did.  Call first of all. */
void proc_hold_standard_files(void);

/* Signals that child_wait reports; blocked in the calling thread and those it starts.  One that
 * was ignored when we were started stays so.  Call once, before any thread starts. */
void proc_take_signals(void);

/* A closed pipe becomes a failed write for us; a child finds SIGPIPE as we found it.  Call once. */
void proc_ignore_pipe(void);

/* One of those signals if it is pending or comes within `patience`; 0 otherwise. */
int proc_poll_signal(nanos patience);

struct own_cost {
    double cpu_s;
    double rss_mb; /* largest resident set so far */
};
void proc_own_cost(struct own_cost *out);

/* For a program of many threads that hand their memory on: the C library gives each thread a heap of its
 * own, up to eight a CPU, and every heap keeps what it once needed.  Call before the threads start. */
void proc_limit_heaps(void);

#endif
