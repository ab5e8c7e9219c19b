/* The contract of an agent's tool: what a model may call between its turns, with a JSON object of arguments, and the
 * text that it gets back.
 *
 * A driver is one .c file that exports one `const struct tool_driver` and one line in tools.def.  Most have one tool; an
 * MCP server has as many as it lists.  A driver's state belongs to a whole run and its calls may come from several
 * threads at a time; what belongs to one query (its workspace, a server that works in it) is in a struct tool_session.
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
}; /* bytes of a name, which has letters, digits, _ and - only, as servers require */

enum { TOOL_TEXTS_MAX = 2, TOOL_OUTPUT_DEFAULT = 16 << 10 };

struct tool_spec {
    const char *name; /* by which a model calls it */
    const char *description;
    const char *parameters; /* JSON schema of its arguments: an object */
    bool has_effects; /* it changes what another call may see: calls are then made in their order */
    const char *texts[TOOL_TEXTS_MAX]; /* arguments that must be there, as strings; NULL: no more */
};

/* A directory of one query.  Tools that take paths resolve them below it, and follow no symbolic link. */
struct workspace {
    int fd; /* the directory */
    char path[1024];
};

struct tool_request {
    const struct jv *arguments;        /* an object */
    const char *json;                  /* the same as text */
    const char *texts[TOOL_TEXTS_MAX]; /* those that the spec names */
    const struct workspace *workspace;
    void *session;             /* what the driver's begin returned; NULL */
    nanos timeout;             /* of the whole call; 0: none */
    const atomic_bool *cancel; /* may be NULL */
    size_t output_limit;       /* bytes */
};

struct tool_result {
    struct text
        output; /* for the model: valid UTF-8, at most output_limit and a note that the rest was dropped */
    bool is_error; /* the tool failed, and the output says why */
    bool timed_out;
    bool is_truncated;
    double cpu_s; /* of processes that the call started; UNKNOWN without any */
};
void tool_result_release(struct tool_result *result);

struct tool_config {
    const struct params *params; /* of this driver; may be NULL */
};

struct tool_driver {
    const char *name;
    const char *summary; /* one line for `ipw list` */
    const struct param_spec
        *params; /* accepted by --tool-param NAME.KEY=VALUE; ends with a NULL name; NULL: none */
    bool must_be_named; /* runs programs or reaches a network: never among the default tools */

    /* Can this build and machine use it?  NULL: always. */
    enum err (*available)(struct error *why);
    /* Is a program of its kept to the workspace here?  An error says why not.  NULL: it runs none. */
    enum err (*confined)(struct error *why);

    /* Reads the parameters into the state, which is zeroed and of state_size bytes.  On failure close is not called. */
    size_t state_size;
    enum err (*open)(const struct tool_config *config, void *state, struct error *why);
    void (*close)(void *state); /* NULL: nothing to free */

    struct tool_spec spec; /* its tool; unless it lists several */
    /* Optional: its tools, at least one; valid until close. */
    const struct tool_spec *(*list)(void *state, size_t *count);

    /* Optional: what it keeps for one query. */
    enum err (*begin)(void *state, const struct workspace *workspace, void **session,
                      struct error *why);
    void (*end)(void *state, void *session);

    /* ERR_OK whenever there is a result, of failure too; an error only when the call itself could not be made (out of
     * memory, canceled).  *out is zeroed with cpu_s unknown. */
    enum err (*call)(void *state, const struct tool_spec *spec, const struct tool_request *call,
                     struct tool_result *out, struct error *why);
};

/* NULL-terminated, in the order of tools.def. */
extern const struct tool_driver *const TOOL_DRIVERS[];

/* ---- all tools of a run ---- */

struct toolset_options {
    const char *names; /* comma-separated drivers; NULL: those that need not be named; "none" */
    const struct params *params; /* "DRIVER.KEY"; may be NULL */
    const char *const *servers;  /* MCP servers: "COMMAND" or "PREFIX=COMMAND" */
    size_t server_count;
    nanos timeout;       /* of one call; 0: 30 s */
    size_t output_limit; /* bytes; 0: 16 KiB */
};

struct tool {
    struct tool_spec spec;
    size_t box; /* whose it is */
};

struct toolset {
    struct tool_box *boxes; /* one for each opened driver */
    size_t box_count;
    struct tool *tools;
    size_t count;
    nanos timeout;
    size_t output_limit;
};

/* ERR_USAGE for an unknown name or parameter, or two tools of one name. */
enum err toolset_open(const struct toolset_options *options, struct toolset *out, struct error *why)
    MUST_USE;
void toolset_close(struct toolset *set);

struct tool_session {
    const struct toolset *set;
    struct workspace workspace;
    void **states;  /* one for each box */
    nanos deadline; /* when the time of its query is up, which the caller sets; 0: never */
};

/* For one query; `directory` exists, and is kept. */
enum err tool_session_open(const struct toolset *set, const char *directory,
                           struct tool_session *out, struct error *why) MUST_USE;
void tool_session_close(struct tool_session *session);

/* Calls a tool, as a model asked: an unknown name, or arguments that are no JSON object, are results like any failure.
 * From several threads at a time.  The caller releases *out in any case. */
enum err tool_session_call(const struct tool_session *session, const char *name,
                           const char *arguments, const atomic_bool *cancel,
                           struct tool_result *out, struct error *why) MUST_USE;

/* ---- for drivers ---- */

/* A failed call: the text is for the model.  Returns ERR_OK. */
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
