#include "cli/slurm_options.h"

#include <string.h>

#include "cli/common.h"

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
        return complain(EXIT_USAGE, "options of Slurm need --slurm");
    if (command->on && !command->script_only && slurm_available(&why))
        return complain(EXIT_FAILED, "%s", why.text);
    return 0;
}

/* What was shown last. */
static struct {
    const char *unit;
    bool quiet, told_unreachable;
    size_t left, running, queued;
} shown;

static void show(void *context, size_t left, const struct slurm_queue *queue)
{
    size_t pending = queue->count - queue->running;
    (void)context;
    shown.told_unreachable = false;
    if (shown.quiet ||
        (shown.left == left && shown.running == queue->running && shown.queued == queue->count))
        return;
    shown.left = left;
    shown.running = queue->running;
    shown.queued = queue->count;
    tell("ipw: %zu %s left; %zu elements running, %zu pending%s%s%s\n", left, shown.unit,
         queue->running, pending, pending && queue->reason[0] ? " (" : "",
         pending ? queue->reason : "", pending && queue->reason[0] ? ")" : "");
}

static void unreachable(void *context, const char *why)
{
    (void)context;
    if (!shown.told_unreachable)
        tell("ipw: Slurm does not answer, trying again: %s\n", why);
    shown.told_unreachable = true;
}

struct slurm_follow slurm_command_view(const char *unit, bool quiet)
{
    shown.unit = unit;
    shown.quiet = quiet;
    return (struct slurm_follow){.show = show, .unreachable = unreachable};
}
