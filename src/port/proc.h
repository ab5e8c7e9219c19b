/* Child processes with a ready/go handshake, programs as filters, signals, and the resource usage of this process.
 *
 * A measured child is forked early and waits; everything that must run before it starts can be set up meanwhile, and
 * child_go then costs one write.  A struct child owns the process until child_wait has reported its end. */
#ifndef IPW_PORT_PROC_H
#define IPW_PORT_PROC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"
#include "core/units.h"

struct child {
    pid_t pid;
    int go;      /* write end: a byte starts the child */
    int failure; /* read end: errno of a failed exec; end of file on success */
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

/* The same for a helper: it writes to `output`, has no input, and receives SIGTERM when we are killed. */
enum err child_prepare_helper(struct child *child, char *const argv[], int output,
                              struct error *why) MUST_USE;

/* Starts it and waits until it has executed the command.  On failure *why is set, the child has ended, and
 * *exit_code is 127 (not found) or 126. */
enum err child_go(struct child *child, int *exit_code, struct error *why) MUST_USE;

/* Ends a child that was prepared but will not run. */
void child_abandon(struct child *child);

/* Whether the child has ended, with *end filled then; does not wait. */
bool child_poll(struct child *child, struct child_end *end);

/* What a wait returns: the number of a signal to this process (SIGINT, SIGTERM, SIGHUP), or one of these. */
enum { WAIT_ENDED = 0, WAIT_TIMEOUT = -1 };

/* Waits for the child's end, with *end filled then, until a signal arrives or the clock is at `until` (INT64_MAX: no
 * limit).  *from_terminal: the terminal has sent the signal, to its foreground process group. */
int child_wait(struct child *child, struct child_end *end, nanos until, bool *from_terminal);

/* Whether it is in our process group, which it may leave. */
bool child_is_in_our_group(const struct child *child);

/* Sends a signal to the child's process group, as far as that is below us; or to every process below us, except
 * helpers.  Where /proc cannot be read the child alone gets it. */
void child_signal_group(const struct child *child, int number);
void child_signal_all(const struct child *child, int number);

/* Adopts orphans of our children, so that a command that daemonizes is noticed. */
void proc_adopt_orphans(void);

/* How many adopted processes still run. */
unsigned proc_orphans(void);

/* Waits until none runs, as child_wait. */
int proc_await_orphans(nanos until);

/* Occupies standard descriptors that are closed, so that no file or sensor gets their number and the output written
 * to them.  Using them fails as before, and children inherit them closed.  Call first. */
void proc_hold_standard_files(void);

/* Blocks the signals that child_wait reports, in the calling thread and those it starts.  One that was ignored when we
 * were started stays ignored.  One that arrives while output stalls (port/file.h) still ends the process.  Call once,
 * before any thread starts. */
void proc_block_signals(void);

/* Until proc_defer_signals, a signal blocked by proc_block_signals ends the process at once, with status 128 + its
 * number: for work that may block for long, in a driver or a file, and leaves no partial result. */
void proc_end_by_signals(void);
void proc_defer_signals(void);

/* Detects from now on that this process was stopped and continued (SIGSTOP, Ctrl-Z, fg).  Call before threads start. */
void proc_watch_stops(void);
/* Incremented when it was, since the last call by any thread. */
unsigned proc_stops(void);

/* Turns a closed pipe and the file size limit (ulimit -f) into failed writes; children get the original dispositions
 * of SIGPIPE and SIGXFSZ.  Call once. */
void proc_ignore_write_signals(void);

/* Whether one of those signals is pending; it stays so. */
bool proc_signal_is_pending(void);

/* Returns one of those signals if it is pending or arrives within `timeout`; 0 otherwise. */
int proc_poll_signal(nanos timeout);

/* Receives those signals in a thread while the caller is busy: the first sets `cancel`.  The caller owns it, and stops
 * it in any case; signal_listener_stop returns the last signal, or 0. */
struct signal_listener {
    pthread_t thread;
    atomic_bool cancel, over;
    atomic_int signal;
};
enum err signal_listener_start(struct signal_listener *listener, struct error *why) MUST_USE;
int signal_listener_stop(struct signal_listener *listener);

/* A descriptor that is readable while one is pending, for an event loop; the caller closes it.  -1 on failure. */
int proc_signal_fd(void);

/* A process that outlives this one, even after SIGKILL, and then runs a command: for settings that must be restored
 * in any case.  It is not our child and ignores terminal signals; call before proc_adopt_orphans, which would adopt
 * it. */
struct watchdog {
    int alive; /* write end: closed when we end, which triggers the command */
};

/* argv[0] is a path.  The command inherits our standard error; its input and output are /dev/null.  `hold` is a
 * descriptor that stays open until the command runs: a lock. */
enum err watchdog_start(struct watchdog *watchdog, int hold, char *const argv[], struct error *why)
    MUST_USE;
/* Ends the watchdog; `run_command`: after running its command. */
void watchdog_end(struct watchdog *watchdog, bool run_command);

/* A program that runs in the background while its output is read; neither an orphan nor measured. */
struct helper {
    pid_t pid;  /* 0: none */
    int output; /* read end of its standard output; non-blocking */
};

/* argv[0] is a path.  Its standard input and error are /dev/null; it receives no terminal signals. */
enum err helper_start(struct helper *helper, const char *const argv[], struct error *why) MUST_USE;
/* Ends it if it is still running. */
void helper_end(struct helper *helper);

struct text;

/* The path of a program in PATH, to be freed; NULL when there is no executable, or in libipw out of memory. */
char *proc_find(const char *name) MUST_USE;

/* Runs argv[0] (a path) with `input` as standard input and `output` as standard output, and waits.  No shell is
 * involved, so no byte of the input can become a command.  A program that fails, or is killed by a signal, is ERR_IO
 * with the first line of its standard error.  ERR_INTERRUPTED: a signal is pending, and the program was killed. */
enum err proc_filter(const char *const argv[], const struct text *input, int output,
                     struct error *why) MUST_USE;
/* The same without input, for output of at most `limit` bytes. */
enum err proc_read(const char *const argv[], size_t limit, struct text *out, struct error *why)
    MUST_USE;

struct own_cost {
    double cpu_s;
    double rss_mb; /* largest resident set so far */
};
void proc_own_cost(struct own_cost *out);

/* Limits the number of malloc arenas, of which glibc creates up to eight per CPU and shrinks none: for a program
 * whose threads pass memory to one another.  Call before the threads start. */
void proc_limit_heaps(void);

/* Raises the limit on open files to `wanted`, or to the hard limit. */
void proc_raise_file_limit(unsigned wanted);

#endif
