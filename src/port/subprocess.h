/* A program that runs in its own process group with pipes, resource limits and, on request, a sandbox: for programs
 * that we did not write (a model's shell command, an agent, a tool server).
 *
 * A struct subprocess owns its descriptors and the process until subprocess_end, which kills every process that the
 * program started: no background process survives it, not even in a session of its own, and none survives us. */
#ifndef IPW_PORT_SUBPROCESS_H
#define IPW_PORT_SUBPROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"
#include "core/units.h"

struct text;

struct subprocess_options {
    const char *const *argv;        /* argv[0] is a path */
    const char *const *environment; /* ends with NULL; NULL: ours */
    int directory;                  /* descriptor of its working directory; -1: ours */
    size_t memory_bytes;            /* of address space, per process; 0: no limit */
    size_t file_bytes;              /* largest file that it may write; 0: no limit */
    unsigned cpu_s;                 /* of CPU time, per process; 0: no limit */
    /* Sandboxed (port/confine.h) and without our descriptors: it can write only to `directory`, and read that, the
     * files that system programs need and `readable` (paths, NULL-terminated; may be NULL). */
    bool confined;
    const char *const *readable;
    unsigned
        tasks_max; /* its processes and threads at the same time, less than SUBTREE_MAX; 0: no limit */
};

struct subprocess {
    pid_t pid;    /* of its supervisor; 0: none */
    int input;    /* write end of its standard input; -1 once closed */
    int output;   /* read end of its standard output; non-blocking */
    int messages; /* the same for its standard error */
    int life;     /* closing it ends the program */
    int report;   /* readable once the program and all its processes have ended */
};

struct subprocess_end {
    int exit_code;          /* its own, or 128 + signal */
    int signal;             /* that ended it; 0 when it exited */
    bool has_reached_tasks; /* it has reached tasks_max, or was killed beyond it */
    double cpu_s;           /* including all descendants */
};

/* ERR_NOT_FOUND when the program is missing. */
enum err subprocess_start(struct subprocess *process, const struct subprocess_options *options,
                          struct error *why) MUST_USE;

/* Whether the program has ended; its background processes are then dead, too. */
bool subprocess_has_ended(const struct subprocess *process);

/* Kills all its processes and waits.  *end (may be NULL) is how the program had ended. */
void subprocess_end(struct subprocess *process, struct subprocess_end *end);

struct subprocess_run {
    const char *input; /* may be NULL */
    size_t input_length;
    nanos timeout;             /* 0: none */
    const atomic_bool *cancel; /* may be NULL */
    size_t output_limit;       /* bytes of standard output and error that are kept, together */
    /* Receives standard output as it arrives, which is then not kept; may be NULL. */
    void (*take)(void *context, const char *bytes, size_t length);
    /* Called while it runs when `watched` is readable; may be NULL. */
    void (*ready)(void *context);
    int watched;
    void *context;
};

struct subprocess_result {
    struct subprocess_end end;
    bool timed_out, canceled;
    size_t dropped; /* bytes of output beyond the limit */
};

/* Runs a program to completion; its standard output and error are appended to *output in order of arrival. */
enum err subprocess_run(const struct subprocess_options *options, const struct subprocess_run *run,
                        struct text *output, struct subprocess_result *result, struct error *why)
    MUST_USE;

/* Appends a command line for `sh -c`: each {name} (of the NULL-terminated names) is replaced by the quoted variable
 * IPW_NAME, so that no value can become a command. */
void subprocess_command(const char *given, const char *const *names, struct text *out);

#endif
