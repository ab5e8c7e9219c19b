/* The list of tools, opening the tools of a run by name, and the checks common to all calls: parsing of arguments,
 * output that is valid UTF-8 and within its limit. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"

#define TOOL(name) extern const struct tool_driver tool_##name;
#include "agent_tools/tools.def"
#undef TOOL

const struct tool_driver *const TOOL_DRIVERS[] = {
#define TOOL(name) &tool_##name,
#include "agent_tools/tools.def"
#undef TOOL
    NULL,
};

#define DEFAULT_TIMEOUT (30 * NS_PER_S)
enum { NAMES_MAX = 256 };

struct tool_instance {
    const struct tool_driver *driver;
    void *state;
};

void tool_result_release(struct tool_result *result)
{
    text_release(&result->output);
}

/* ---- opening ---- */

static bool is_valid_name(const char *name)
{
    size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return length > 0 && length <= TOOL_NAME_MAX && !name[length];
}

static enum err add_tool(struct toolset *set, const struct tool_spec *spec, size_t instance,
                         struct error *why)
{
    if (!is_valid_name(spec->name))
        return err_set(why, ERR_BAD_VALUE,
                       "tool '%.80s': a name has 1 to %d letters, digits, _ or -",
                       plain_text(spec->name).text, TOOL_NAME_MAX);
    for (size_t i = 0; i < set->count; i++)
        if (str_equal(set->tools[i].spec.name, spec->name))
            return err_set(
                why, ERR_USAGE,
                "duplicate tool name '%s': give its MCP server a prefix (PREFIX=COMMAND)",
                spec->name);
    set->tools = xreallocarray(set->tools, set->count + 1, sizeof *set->tools);
    set->tools[set->count++] = (struct tool){.spec = *spec, .instance = instance};
    return ERR_OK;
}

static enum err open_instance(struct toolset *set, const struct tool_driver *driver,
                              const struct params *params, const atomic_bool *cancel,
                              struct error *why)
{
    char owner[64];
    chars_format(owner, "tool %s", driver->name);
    enum err err = driver->available ? driver->available(why) : ERR_OK;
    if (!err)
        err = params_check(params, driver->params, owner, why);
    if (err)
        return err;
    set->instances = xreallocarray(set->instances, set->instance_count + 1, sizeof *set->instances);
    struct tool_instance instance = {driver, xcalloc(1, driver->state_size)};
    const struct tool_config config = {.params = params, .cancel = cancel};
    if (driver->open && (err = driver->open(&config, instance.state, why))) {
        free(instance.state);
        return err;
    }
    set->instances[set->instance_count++] = instance;
    size_t count = 1;
    const struct tool_spec *specs =
        driver->list ? driver->list(instance.state, &count) : &driver->spec;
    for (size_t i = 0; i < count && !err; i++)
        err = add_tool(set, &specs[i], set->instance_count - 1, why);
    return err;
}

/* The parameters of one driver, with the prefix "DRIVER." removed. */
static void driver_params(const struct params *all, const char *driver, struct params *out)
{
    size_t length = strlen(driver);
    for (size_t i = 0; all && i < all->count; i++)
        if (str_starts(all->items[i].key, driver) && all->items[i].key[length] == '.')
            params_set(out, all->items[i].key + length + 1, all->items[i].value);
}

static enum err open_driver(struct toolset *set, const struct tool_driver *driver,
                            const struct toolset_options *options, struct error *why)
{
    struct params params = {0};
    driver_params(options->params, driver->name, &params);
    enum err err = open_instance(set, driver, &params, options->cancel, why);
    params_release(&params);
    return err;
}

static enum err open_default(struct toolset *set, const struct toolset_options *options,
                             struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; TOOL_DRIVERS[i] && !err; i++)
        if (!TOOL_DRIVERS[i]->is_opt_in)
            err = open_driver(set, TOOL_DRIVERS[i], options, why);
    return err;
}

static enum err open_named(struct toolset *set, const struct toolset_options *options,
                           struct error *why)
{
    const char *names = options->names;
    enum err err = ERR_OK;
    while (names && !err) {
        char name[TOOL_NAME_MAX];
        if (!str_next_item(&names, name, sizeof name))
            return err_set(why, ERR_USAGE, "tools: expected names separated by commas");
        const struct tool_driver *driver =
            registry_find("tool", TOOL_DRIVERS, name, ERR_USAGE, why);
        if (!driver)
            return ERR_USAGE;
        for (size_t i = 0; i < set->instance_count; i++)
            if (set->instances[i].driver == driver)
                return err_set(why, ERR_USAGE, "tool %s given more than once", name);
        err = open_driver(set, driver, options, why);
    }
    return err;
}

/* "files=npx server": a prefix has no spaces, quotes or slashes, which a command with an assignment would have. */
static enum err open_server(struct toolset *set, const char *given,
                            const struct toolset_options *options, struct error *why)
{
    struct params params = {0};
    char prefix[TOOL_NAME_MAX / 2] = "";
    size_t length = strspn(given, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    bool has_prefix = length > 0 && length < sizeof prefix && given[length] == '=';
    if (has_prefix)
        chars_format(prefix, "%.*s_", (int)length, given);
    driver_params(options->params, tool_mcp.name, &params);
    params_set(&params, "command", given + (has_prefix ? length + 1 : 0));
    if (has_prefix)
        params_set(&params, "prefix", prefix);
    enum err err = open_instance(set, &tool_mcp, &params, options->cancel, why);
    params_release(&params);
    return err;
}

static bool is_driver(const char *name, size_t length)
{
    for (size_t i = 0; TOOL_DRIVERS[i]; i++)
        if (strlen(TOOL_DRIVERS[i]->name) == length &&
            !strncmp(TOOL_DRIVERS[i]->name, name, length))
            return true;
    return false;
}

/* Every parameter must belong to an open driver. */
static enum err check_param_drivers(const struct toolset *set, const struct params *all,
                                    struct error *why)
{
    for (size_t i = 0; all && i < all->count; i++) {
        const char *key = all->items[i].key;
        size_t length = strcspn(key, ".");
        bool found = false;
        for (size_t b = 0; b < set->instance_count && key[length]; b++) {
            const char *name = set->instances[b].driver->name;
            found = found || (strlen(name) == length && !strncmp(name, key, length));
        }
        if (!found && is_driver(key, length))
            return err_set(why, ERR_USAGE,
                           "tool parameter '%.64s': %.*s is not enabled: add it to --tools", key,
                           (int)length, key);
        if (!found)
            return err_set(why, ERR_USAGE, "tool parameter '%.64s': expected TOOL.KEY=VALUE", key);
    }
    return ERR_OK;
}

enum err toolset_open(const struct toolset_options *options, struct toolset *out, struct error *why)
{
    *out = (struct toolset){
        .timeout = options->timeout > 0 ? options->timeout : DEFAULT_TIMEOUT,
        .output_limit = options->output_limit ? options->output_limit : TOOL_OUTPUT_DEFAULT,
    };
    enum err err = ERR_OK;
    if (!options->names)
        err = open_default(out, options, why);
    else if (!str_equal(options->names, "none"))
        err = open_named(out, options, why);
    for (size_t i = 0; i < options->server_count && !err; i++)
        err = open_server(out, options->servers[i], options, why);
    if (!err)
        err = check_param_drivers(out, options->params, why);
    if (err)
        toolset_close(out);
    return err;
}

void toolset_close(struct toolset *set)
{
    for (size_t i = 0; i < set->instance_count; i++) {
        if (set->instances[i].driver->close)
            set->instances[i].driver->close(set->instances[i].state);
        free(set->instances[i].state);
    }
    free(set->instances);
    free(set->tools);
    *set = (struct toolset){0};
}

/* ---- one query ---- */

enum err tool_session_open(const struct toolset *set, const char *directory,
                           struct tool_session *out, struct error *why)
{
    *out = (struct tool_session){.set = set, .workspace = {.fd = -1}};
    out->workspace.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->workspace.fd < 0)
        return err_errno(why, errno, "cannot open the workspace %s", directory);
    out->workspace.path = xstrdup(directory);
    out->states = xcalloc(set->instance_count + 1, sizeof *out->states);
    for (size_t i = 0; i < set->instance_count; i++)
        if (set->instances[i].driver->begin)
            out->states[i] = set->instances[i].driver->begin(set->instances[i].state);
    return ERR_OK;
}

void tool_session_close(struct tool_session *session)
{
    for (size_t i = 0; session->states && i < session->set->instance_count; i++)
        if (session->states[i])
            session->set->instances[i].driver->end(session->set->instances[i].state,
                                                   session->states[i]);
    if (session->set && session->workspace.fd >= 0)
        close(session->workspace.fd);
    free(session->workspace.path);
    free(session->states);
    *session = (struct tool_session){.workspace = {.fd = -1}};
}

/* The model gets text: invalid UTF-8 is repaired, and long output is truncated at a character boundary. */
static void finish_output(struct tool_result *out, size_t limit)
{
    struct text whole = {0};
    size_t length = out->output.length;
    if (length > limit) {
        out->is_truncated = true;
        length = limit;
        while (length > limit - UTF8_BYTES_MAX && length > 0 &&
               utf8_is_continuation(out->output.bytes[length]))
            length--;
    }
    text_add_repaired(&whole, text_get(&out->output), length);
    if (out->is_truncated)
        text_addf(&whole, "\n[output truncated to %zu bytes]", limit);
    text_release(&out->output);
    out->output = whole;
}

static const struct tool *find_tool(const struct toolset *set, const char *name,
                                    struct error *reason)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (str_equal(set->tools[i].spec.name, name))
            return &set->tools[i];
        if (count < NAMES_MAX)
            names[count++] = set->tools[i].spec.name;
    }
    registry_unknown("tool", plain_text(name).text, names, count, ERR_NOT_FOUND, reason);
    return NULL;
}

/* Returns false after tool_fail if one is missing. */
static bool get_text_arguments(struct tool_request *call, struct tool_result *out)
{
    const struct tool_spec *spec = call->spec;
    for (size_t i = 0; i < TOOL_TEXTS_MAX && spec->texts[i]; i++) {
        const struct jv *value = jv_get(call->arguments, spec->texts[i]);
        call->texts[i] = jv_text(value);
        if (!call->texts[i]) {
            tool_fail(out, value ? "argument '%s' must be a string" : "missing argument '%s'",
                      spec->texts[i]);
            return false;
        }
    }
    return true;
}

/* Timeout of a call that starts now, limited by its query's deadline.  False after tool_fail: no time is left. */
static bool set_timeout(const struct tool_session *session, struct tool_request *call,
                        struct tool_result *out)
{
    nanos left = session->deadline - clock_now();
    call->timeout = session->set->timeout;
    if (!session->deadline || left >= call->timeout)
        return true;
    call->timeout = left;
    if (left > 0)
        return true;
    out->timed_out = true;
    tool_fail(out, "not started: the query timed out");
    return false;
}

enum err tool_session_call(const struct tool_session *session, const char *name,
                           const char *arguments, const atomic_bool *cancel,
                           struct tool_result *out, struct error *why)
{
    const struct toolset *set = session->set;
    struct error reason = {0};
    struct jv *tree = NULL;
    *out = (struct tool_result){.cpu_s = UNKNOWN};
    const struct tool *tool = find_tool(set, name, &reason);
    if (!tool) {
        tool_fail(out, "%s", reason.text);
        finish_output(out, set->output_limit);
        return ERR_OK;
    }
    if (!arguments || !*arguments) /* some models send none */
        arguments = "{}";
    enum err err = ERR_OK;
    if (jv_parse(arguments, strlen(arguments), &tree, &reason) != ERR_OK) {
        tool_fail(out, "the arguments are not valid JSON: %s", reason.text);
    } else if (!jv_is_object(tree)) {
        tool_fail(out, "the arguments must be a JSON object");
    } else {
        const struct tool_instance *instance = &set->instances[tool->instance];
        struct tool_request call = {
            .state = instance->state,
            .spec = &tool->spec,
            .arguments = tree,
            .json = arguments,
            .workspace = &session->workspace,
            .session = session->states[tool->instance],
            .cancel = cancel,
            .output_limit = set->output_limit,
        };
        if (get_text_arguments(&call, out) && set_timeout(session, &call, out))
            err = instance->driver->call(&call, out, why);
    }
    jv_free(tree);
    if (!err)
        finish_output(out, set->output_limit);
    return err;
}
