/* The contract of an agent's tool: a function that a model may call, with JSON arguments and a text as its result.
 *
 * A driver is one .c file that exports one `const struct tool_driver` and one line in tools.def.  Most have one tool;
 * an MCP server has as many as it lists.  A driver's state belongs to a whole run and its calls may come from several
 * threads concurrently; the state of one query (its workspace, a server running there) is in a struct tool_session.
 *
 * Ownership: the caller owns every struct here; toolset_close and tool_session_close free what opening allocated. */
#ifndef IPW_AGENT_TOOLS_TOOL_H
#define IPW_AGENT_TOOLS_TOOL_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/err.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"

struct jv;

enum {
    TOOL_NAME_MAX = 64
}; /* bytes of a name: letters, digits, _ and - only, as servers require */

enum { TOOL_TEXTS_MAX = 2, TOOL_OUTPUT_DEFAULT = 16 << 10 };

struct tool_spec {
    const char *name; /* name for the model */
    const char *description;
    const char *parameters;            /* JSON schema of the arguments: an object */
    bool has_effects;                  /* has side effects: such calls run in order */
    const char *texts[TOOL_TEXTS_MAX]; /* required string arguments; ends with NULL */
};

/* The directory of one query.  Tools resolve paths inside it, and follow no symbolic links. */
struct workspace {
    int fd; /* descriptor of the directory */
    char *path;
};

struct tool_request {
    void *state; /* of the driver */
    const struct tool_spec *spec;
    const struct jv *arguments;        /* an object */
    const char *json;                  /* the same as text */
    const char *texts[TOOL_TEXTS_MAX]; /* values of the spec's required arguments */
    const struct workspace *workspace;
    void *session;             /* result of the driver's begin; or NULL */
    nanos timeout;             /* for the whole call; 0: none */
    const atomic_bool *cancel; /* may be NULL */
    size_t output_limit;       /* bytes */
};

struct tool_result {
    struct text
        output;    /* for the model: valid UTF-8, at most output_limit plus a truncation note */
    bool is_error; /* the tool failed; the output says why */
    bool timed_out;
    bool is_truncated;
    double cpu_s; /* CPU time of the processes that the call started; UNKNOWN if none */
};
void tool_result_release(struct tool_result *result);

struct tool_config {
    const struct params *params; /* parameters of this driver; may be NULL */
    const atomic_bool *cancel;   /* ends a long `open` with ERR_INTERRUPTED; may be NULL */
};

struct tool_driver {
    const char *name;
    const char *summary; /* one line for `ipw list` */
    const struct param_spec
        *params;    /* accepted by --tool-param NAME.KEY=VALUE; ends with a NULL name; NULL: none */
    bool is_opt_in; /* runs programs or uses the network: never enabled by default */

    /* Whether this build and machine support it.  NULL: always. */
    enum err (*available)(struct error *why);
    /* Whether this machine enforces all restrictions of its programs.  An error says which it does not, and why.
     * NULL: it runs none. */
    enum err (*confined)(struct error *why);

    /* Parses the parameters into the state, which is zeroed and has state_size bytes.  close is not called on
     * failure. */
    size_t state_size;
    enum err (*open)(const struct tool_config *config, void *state, struct error *why);
    void (*close)(void *state); /* NULL: nothing to free */

    struct tool_spec spec; /* the tool, unless `list` is set */
    /* Optional: the tools, at least one; valid until close. */
    const struct tool_spec *(*list)(void *state, size_t *count);

    /* Optional: the state of one query; NULL: it has none. */
    void *(*begin)(void *state);
    void (*end)(void *state, void *session);

    /* ERR_OK whenever there is a result, also of a failed tool; an error only if the call itself could not be made
     * (canceled).  *out is zeroed with cpu_s unknown. */
    enum err (*call)(const struct tool_request *call, struct tool_result *out, struct error *why);
};

/* NULL-terminated, in the order of tools.def. */
extern const struct tool_driver *const TOOL_DRIVERS[];

/* ---- all tools of a run ---- */

struct toolset_options {
    const char *names;           /* comma-separated drivers; NULL: the default tools; or "none" */
    const struct params *params; /* keys "DRIVER.KEY"; may be NULL */
    const char *const *servers;  /* MCP servers: "COMMAND" or "PREFIX=COMMAND"; or URLs */
    size_t server_count;
    nanos timeout;       /* timeout per call; 0: 30 s */
    size_t output_limit; /* bytes; 0: 16 KiB */
    const atomic_bool
        *cancel; /* toolset_open returns ERR_INTERRUPTED once it is set; may be NULL */
};

struct tool {
    struct tool_spec spec;
    size_t instance; /* index of its driver's instance */
};

struct toolset {
    struct tool_instance *instances; /* one per open driver */
    size_t instance_count;
    struct tool *tools;
    size_t count;
    nanos timeout;
    size_t output_limit;
};

/* ERR_USAGE: unknown name or parameter, or two tools with the same name. */
enum err toolset_open(const struct toolset_options *options, struct toolset *out, struct error *why)
    MUST_USE;
void toolset_close(struct toolset *set);

struct tool_session {
    const struct toolset *set;
    struct workspace workspace;
    void **states;  /* one per instance */
    nanos deadline; /* end of the query's time limit, set by the caller; 0: none */
};

/* Starts the tools of one query; `directory` must exist, and is not removed. */
enum err tool_session_open(const struct toolset *set, const char *directory,
                           struct tool_session *out, struct error *why) MUST_USE;
void tool_session_close(struct tool_session *session);

/* Calls a tool as requested by a model: an unknown name or invalid arguments give a result with is_error.
 * Thread-safe.  The caller always releases *out. */
enum err tool_session_call(const struct tool_session *session, const char *name,
                           const char *arguments, const atomic_bool *cancel,
                           struct tool_result *out, struct error *why) MUST_USE;

/* ---- for drivers ---- */

/* Result of a failed call, with a text for the model.  Returns ERR_OK. */
static inline PRINTF_LIKE(2, 3) enum err tool_fail(struct tool_result *out, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_clear(&out->output);
    text_addf(&out->output, "Error: %s", line);
    out->is_error = true;
    return ERR_OK;
}

#endif
