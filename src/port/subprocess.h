/* A program that runs beside us in a process group of its own, with pipes, limits and, where asked, without network:
 * for programs whose text we did not write (a model's shell command, an agent, a server of tools).
 *
 * A struct subprocess owns its descriptors and the process until subprocess_end, which kills the whole group: nothing
 * that the program left in the background survives it. */
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
    /* Opens no socket and inherits no descriptor of ours, leaves neither its process group nor its session, and looks
     * into no other process.  ERR_UNSUPPORTED where the kernel cannot ensure that. */
    bool confined;
};

struct subprocess {
    pid_t pid;    /* also its process group; 0: none */
    int input;    /* write end of its standard input; -1 once closed */
    int output;   /* read end of its standard output; reads do not wait */
    int messages; /* the same of its standard error */
    bool confined;
};

struct subprocess_end {
    int exit_code; /* its own, or 128 + signal */
    int signal;    /* that ended it; 0 when it exited */
    /* With all that it started, if it was confined; else with the children that it waited for. */
    double cpu_s;
};

/* ERR_NOT_FOUND when the program is missing. */
enum err subprocess_start(struct subprocess *process, const struct subprocess_options *options,
                          struct error *why) MUST_USE;

/* Has the program itself ended?  It stays a zombie until subprocess_end, so that its number is not another's. */
bool subprocess_has_ended(const struct subprocess *process);

/* Kills what is left of its group, and waits.  *end (may be NULL) tells how it had ended. */
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

/* Between the two, which nest, programs of the same user can read neither our memory nor our environment, which may hold
 * keys; those of root can. */
void subprocess_guard(void);
void subprocess_unguard(void);

/* Can the kernel confine one? */
enum err subprocess_can_confine(struct error *why) MUST_USE;

#endif
