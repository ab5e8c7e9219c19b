/* Child processes with a ready/go handshake, other programs as filters, signals, and the cost of this process itself.
 *
 * A measured child is forked early and waits; whatever must be running before it starts can be set up meanwhile, and
 * child_go then costs one write.  A struct child owns the process until child_wait has reported its end. */
#ifndef IPW_PORT_PROC_H
#define IPW_PORT_PROC_H

#include <stdbool.h>
#include <stddef.h>
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

/* The same for a child that works for us: it writes to `output`, reads nothing, and gets SIGTERM when we are killed. */
enum err child_prepare_helper(struct child *child, char *const argv[], int output,
                              struct error *why) MUST_USE;

/* Lets it run and waits until it has executed the command.  When that fails, the error says why, the child is gone,
 * and *exit_code is 127 (not found) or 126. */
enum err child_go(struct child *child, int *exit_code, struct error *why) MUST_USE;

/* Ends a child that was prepared but will not run. */
void child_abandon(struct child *child);

/* Whether the child has ended, with *end filled then; does not wait. */
bool child_poll(struct child *child, struct child_end *end);

/* Waits for the child's end or for a signal to this process.  Returns 0 at the child's end with
 * *end filled, otherwise the number of the signal (SIGINT, SIGTERM, SIGHUP), with *from_terminal
 * set when the terminal sent it (the child then got it too). */
int child_wait(struct child *child, struct child_end *end, bool *from_terminal);

/* Adopts orphans of our children, so that a command that daemonizes is noticed. */
void proc_adopt_orphans(void);

/* How many adopted processes still run. */
unsigned proc_orphans(void);

/* Waits until none does and returns 0, or the number of a signal that came first. */
int proc_await_orphans(void);

/* Occupies standard descriptors that we were started without, so that no file or sensor we open gets their number and
 * what is written to them.  Using them fails as before, and a child finds them closed as we did.  Call first. */
void proc_hold_standard_files(void);

/* Blocks the signals that child_wait reports, in the calling thread and those it starts.  One that was ignored when we
 * were started stays ignored.  Call once, before any thread starts. */
void proc_block_signals(void);

/* Until proc_defer_signals, a signal that proc_block_signals blocked ends the process at once, with status 128 + its
 * number: for work that may block for long, in a driver or a file, and that leaves nothing half done. */
void proc_end_by_signals(void);
void proc_defer_signals(void);

/* Notes from now on that this process was stopped and continued (SIGSTOP, Ctrl-Z, fg).  Call before threads start. */
void proc_watch_stops(void);
/* Grows by 1 when it was since the last call, of any thread. */
unsigned proc_stops(void);

/* Makes a closed pipe, and a file at the limit of its size (ulimit -f), a failed write for us; a child gets SIGPIPE and
 * SIGXFSZ as we found them.  Call once. */
void proc_ignore_write_signals(void);

/* One of those signals if it is pending or comes within `patience`; 0 otherwise. */
int proc_poll_signal(nanos patience);

/* A descriptor that is readable while one is pending, for an event loop; the caller closes it.  -1 on failure. */
int proc_signal_fd(void);

/* A process that outlives this one, however it ends, SIGKILL included, and then runs a command: for what must be undone
 * in any case.  It is no child of ours and ignores the signals of a terminal; call before proc_adopt_orphans, which
 * would make it one. */
struct watchdog {
    int alive; /* write end: its closing by our end is the signal */
};

/* argv[0] is a path.  The command's standard error is ours, its input and output are /dev/null.  `hold` is a descriptor
 * that stays open until the command runs: a lock. */
enum err watchdog_start(struct watchdog *watchdog, int hold, char *const argv[], struct error *why)
    MUST_USE;
/* Ends it; `run_command`: after it has run its command. */
void watchdog_end(struct watchdog *watchdog, bool run_command);

/* A program that runs beside us while its output is read, and that is neither an orphan nor what is measured. */
struct helper {
    pid_t pid;  /* 0: none */
    int output; /* read end of its standard output; reads do not wait */
};

/* argv[0] is a path.  Its standard input and error are /dev/null; signals of a terminal do not reach it. */
enum err helper_start(struct helper *helper, const char *const argv[], struct error *why) MUST_USE;
/* Ends it, if it has not ended by itself. */
void helper_end(struct helper *helper);

struct text;

/* The file that PATH has for this program; ERR_NOT_FOUND when it has none that may be run. */
enum err proc_find(const char *name, char *to, size_t size) MUST_USE;

/* Runs argv[0] (a path) with `input` to read and `output` to write to, and waits for its end.  No shell is involved, so
 * that no byte of the input can become a command.  A program that fails, or that a signal kills, is ERR_IO with the
 * first line of its standard error. */
enum err proc_filter(const char *const argv[], const struct text *input, int output,
                     struct error *why) MUST_USE;

struct own_cost {
    double cpu_s;
    double rss_mb; /* largest resident set so far */
};
void proc_own_cost(struct own_cost *out);

/* Limits the C library's heaps, of which it creates up to eight per CPU and never shrinks one: for a program whose
 * threads pass memory to one another.  Call before the threads start. */
void proc_limit_heaps(void);

/* Allows this process as many open files, or as many as it may be allowed. */
void proc_raise_file_limit(unsigned wanted);

#endif
