#include "cli/option_groups.h"

#include "cli/common.h"
#include "core/params.h"
#include "core/text.h"
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
