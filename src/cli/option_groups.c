#include "cli/option_groups.h"

#include <string.h>

#include "cli/common.h"
#include "core/params.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/file.h"
#include "port/http_server.h"
#include "power/data_checks.h"

int slurm_command_check(struct slurm_command *command)
{
    struct slurm_options *options = &command->options;
    struct error why = {0};
    options->more = command->more.items;
    options->more_count = command->more.count;
    bool given = options->partition || options->gres || options->time || options->account ||
                 options->nodes || options->array_limit || options->more_count ||
                 command->script_only;
    if (given && !command->on)
        return print_error(EXIT_USAGE, "Slurm options need --slurm");
    if (command->on && !command->script_only && slurm_available(&why))
        return print_failure(&why);
    return 0;
}

static bool is_quiet;

static void print_script(const char *script, const char *job)
{
    struct text line = {0};
    text_addf(&line, "%s\n", script);
    if (!job)
        (void)put_output(&line);
    else if (!is_quiet)
        notify("ipw: submitted job %s: %s\n", job, script);
    text_release(&line);
}

enum err slurm_command_submit(const struct slurm_command *command, const struct slurm_work *work,
                              bool quiet, size_t *count, struct error *why)
{
    struct error cause = {0};
    is_quiet = quiet;
    enum err err =
        slurm_submit(work, &command->options, count, !command->script_only, print_script, &cause);
    return err ? err_set(why, err, "%s (in %s)", cause.text, work->directory) : ERR_OK;
}

/* The last printed state. */
struct shown {
    const struct slurm_wait *wait;
    bool reported_unreachable;
    size_t left, running, queued;
};

static enum err collect(void *context, size_t *left, struct error *why)
{
    const struct slurm_wait *wait = ((struct shown *)context)->wait;
    return wait->collect(wait->context, left, why);
}

static void show(void *context, size_t left, const struct slurm_queue *queue)
{
    struct shown *shown = context;
    size_t pending = queue->count - queue->running;
    bool same =
        shown->left == left && shown->running == queue->running && shown->queued == queue->count;
    shown->reported_unreachable = false;
    if (shown->wait->quiet || same)
        return;
    shown->left = left;
    shown->running = queue->running;
    shown->queued = queue->count;
    notify("ipw: %zu %s left; %zu elements running, %zu pending%s%s%s\n", left, shown->wait->unit,
           queue->running, pending, pending && queue->reason[0] ? " (" : "",
           pending ? queue->reason : "", pending && queue->reason[0] ? ")" : "");
}

static void unreachable(void *context, const char *why)
{
    struct shown *shown = context;
    if (!shown->reported_unreachable)
        notify("ipw: Slurm does not respond, retrying: %s\n", why);
    shown->reported_unreachable = true;
}

enum err slurm_command_follow(const char *directory, const struct slurm_wait *wait, size_t *left,
                              int *signal, struct error *why)
{
    struct shown shown = {.wait = wait};
    const struct slurm_follow follow = {collect, show, unreachable, &shown};
    return slurm_follow(directory, &follow, left, signal, why);
}

/* ---- objectives ---- */

const char *const OBJECTIVE_NAMES[] = {"energy", "edp", "ed2p", NULL};

double objective_exponent(const char *name)
{
    int exponent = 0;
    while (!str_equal(OBJECTIVE_NAMES[exponent], name)) /* it is one of them */
        exponent++;
    return exponent;
}

/* ---- listening for HTTP ---- */

int read_listen(const char *given, unsigned default_port, struct listen_at *out)
{
    uint64_t port = default_port;
    if (!given)
        given = "127.0.0.1";
    const char *bracket = strchr(given, ']'), *colon = strrchr(given, ':');
    bool is_port = given[strspn(given, "0123456789")] == '\0';
    if (bracket && colon && colon < bracket)
        colon = NULL;
    size_t length = is_port ? 0 : colon ? (size_t)(colon - given) : strlen(given);
    bool is_v6 = given[0] == '[' && bracket;
    chars_format(out->address, "%.*s", (int)(is_v6 ? (size_t)(bracket - given - 1) : length),
                 given + (is_v6 ? 1 : 0));
    if (is_port)
        chars_copy(out->address, "127.0.0.1");
    if ((is_port || colon) && (parse_u64(is_port ? given : colon + 1, &port) || port > 65535))
        return print_error(
            EXIT_USAGE,
            "--listen %s: '%s' is not a port (0 to 65535); expected PORT, ADDRESS or ADDRESS:PORT",
            given, is_port ? given : colon + 1);
    out->port = (unsigned)port;
    return 0;
}

/* Registers it as a secret. */
static int read_token(const char *path, struct text *out)
{
    struct error why;
    if (file_read(path, FILE_SMALL, out, &why))
        return print_failure(&why);
    size_t length = strcspn(text_get(out), " \t\r\n");
    if (length == 0)
        return print_error(EXIT_USAGE, "%s: contains no token", path);
    out->bytes[out->length = length] = '\0';
    secret_add(out->bytes);
    return 0;
}

int read_access(struct listen_options *options, unsigned default_port,
                struct http_access_options *out)
{
    int code = read_listen(options->listen, default_port, &options->at);
    if (!code && options->token_file)
        code = read_token(options->token_file, &options->token);
    *out = (struct http_access_options){.address = options->at.address,
                                        .port = options->at.port,
                                        .token = str_or_null(text_get(&options->token)),
                                        .allowed = options->hosts.items,
                                        .allowed_count = options->hosts.count};
    return code;
}

struct plain_text listen_url(const struct listen_at *at)
{
    char url[300];
    bool is_v6 = strchr(at->address, ':');
    chars_format(url, "http%s://%s%s%s:%u", at->is_tls ? "s" : "", is_v6 ? "[" : "", at->address,
                 is_v6 ? "]" : "", at->port);
    return plain_text(url);
}

/* ---- measurements at several clocks ---- */

/* Pairs from several words, each of which may have several. */
static enum err pairs(const char *name, const struct option_list *words, struct params *out,
                      struct error *why)
{
    for (size_t i = 0; i < words->count; i++)
        params_add(out, words->items[i]);
    for (size_t i = 0; i < out->count; i++)
        if (!out->items[i].value[0])
            return err_set(why, ERR_USAGE, "--%s: '%s': not NAME=VALUE", name, out->items[i].key);
    return ERR_OK;
}

enum err power_options_pairs(const struct power_options *options, struct params *columns,
                             struct params *where, struct error *why)
{
    enum err err = pairs("columns", &options->columns, columns, why);
    return err ? err : pairs("where", &options->where, where, why);
}

enum err power_options_add(struct power_options *options, const char **words, size_t count,
                           struct error *why)
{
    for (size_t i = 0; i < count; i++) {
        if (options->inputs.count == OPTION_LIST_MAX)
            return err_set(why, ERR_USAGE, "more than %d inputs", OPTION_LIST_MAX);
        options->inputs.items[options->inputs.count++] = words[i];
    }
    return ERR_OK;
}

enum err power_options_read(const struct power_options *options, struct freq_data *out,
                            struct error *why)
{
    struct params columns = {0}, where = {0};
    struct freq_source sources[OPTION_LIST_MAX];
    *out = (struct freq_data){0};
    if (options->inputs.count == 0)
        return err_set(why, ERR_USAGE,
                       "missing measurements: give --input FILE or the directory of a sweep");
    enum err err = power_options_pairs(options, &columns, &where, why);
    for (size_t i = 0; i < options->inputs.count; i++)
        sources[i] = (struct freq_source){options->inputs.items[i], i ? NULL : options->sweep,
                                          &columns, &where, options->gpu};
    if (!err)
        err = freq_data_read(out, sources, options->inputs.count, options->clocks, why);
    params_release(&columns);
    params_release(&where);
    return err;
}
