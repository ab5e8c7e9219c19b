/* A program that runs beside us in a process group of its own, with pipes, limits and, where asked, confined: for programs
 * whose text we did not write (a model's shell command, an agent, a server of tools).
 *
 * A struct subprocess owns its descriptors and the process until subprocess_end, which kills all that the program started:
 * nothing that it left in the background survives it, in a session of its own neither, nor does it survive us. */
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
    /* As port/confine.h has it, and without descriptors of ours: it writes in `directory` only, and reads there,
     * what the system's programs need and `readable` (paths, NULL-terminated; may be NULL). */
    bool confined;
    const char *const *readable;
};

struct subprocess {
    pid_t pid;    /* of what supervises it; 0: none */
    int input;    /* write end of its standard input; -1 once closed */
    int output;   /* read end of its standard output; reads do not wait */
    int messages; /* the same of its standard error */
    int life;     /* closed, it ends */
    int report;   /* can be read once it has ended, with all that it started */
};

struct subprocess_end {
    int exit_code; /* its own, or 128 + signal */
    int signal;    /* that ended it; 0 when it exited */
    double cpu_s;  /* with all that it started */
};

/* ERR_NOT_FOUND when the program is missing. */
enum err subprocess_start(struct subprocess *process, const struct subprocess_options *options,
                          struct error *why) MUST_USE;

/* Has the program ended?  What it had left in the background is then dead, too. */
bool subprocess_has_ended(const struct subprocess *process);

/* Kills it with what it started, and waits.  *end (may be NULL) tells how it had ended. */
void subprocess_end(struct subprocess *process, struct subprocess_end *end);

struct subprocess_run {
    const char *input; /* may be NULL */
    size_t input_length;
    nanos timeout;             /* 0: none */
    const atomic_bool *cancel; /* may be NULL */
    size_t output_limit;       /* bytes of standard output and error that are kept, together */
    /* Gets standard output as it comes, which is then not kept; may be NULL. */
    void (*take)(void *context, const char *bytes, size_t length);
    /* Called while it runs, when `watched` can be read; may be NULL. */
    void (*ready)(void *context);
    int watched;
    void *context;
};

struct subprocess_result {
    struct subprocess_end end;
    bool timed_out, canceled;
    size_t dropped; /* bytes of output beyond the limit */
};

/* Runs a program to its end; standard output and error, as they came, are appended to *output. */
enum err subprocess_run(const struct subprocess_options *options, const struct subprocess_run *run,
                        struct text *output, struct subprocess_result *result, struct error *why)
    MUST_USE;

/* Appends a command line for `sh -c`: {name} in it, for each of the names (NULL-terminated), is the variable IPW_NAME in
 * quotes, so that no value can become a command. */
void subprocess_command(const char *given, const char *const *names, struct text *out);

#endif
