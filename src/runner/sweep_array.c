#include <stdlib.h>

#include "core/clock.h"
#include "core/units.h"
#include "port/proc.h"
#include "runner/slurm.h"
#include "runner/sweep.h"

static const nanos LOCK_PATIENCE = 60 * NS_PER_S, LOCK_PAUSE = 100 * NS_PER_MS;

enum err sweep_array_submit(const struct sweep *sweep, const char *directory,
                            const struct slurm_options *options, bool submit,
                            void (*wrote)(const char *script, const char *job), size_t *count,
                            struct error *why)
{
    size_t *points = malloc((sweep->point_count + 1) * sizeof *points);
    if (!points)
        return err_no_memory(why);
    char *command[] = {"sweep", "--resume", (char *)directory, "--point", "", NULL};
    const struct slurm_work work = {directory, "ipw-sweep", command, ""};
    *count = sweep_unfinished(sweep, points);
    for (size_t i = 0; i < *count; i++)
        points[i]++; /* as users count them */
    enum err err = slurm_submit(&work, options, points, count, submit, wrote, why);
    free(points);
    return err;
}

struct following {
    struct sweep *sweep;
    struct run_writer *writer;
    const struct slurm_follow *view;
};

static enum err collect(void *context, size_t *left, struct error *why)
{
    struct following *following = context;
    enum err err = sweep_collect(following->sweep, following->writer, why);
    *left = sweep_unfinished(following->sweep, NULL);
    return err;
}

static void show(void *context, size_t left, const struct slurm_queue *queue)
{
    const struct slurm_follow *view = ((struct following *)context)->view;
    view->show(view->context, left, queue);
}

static void unreachable(void *context, const char *why)
{
    const struct slurm_follow *view = ((struct following *)context)->view;
    view->unreachable(view->context, why);
}

enum err sweep_array_follow(struct sweep *sweep, struct run_writer *writer,
                            const struct slurm_follow *view, size_t *left, int *signal,
                            struct error *why)
{
    struct following following = {sweep, writer, view};
    const struct slurm_follow follow = {collect, show, unreachable, &following};
    enum err err = slurm_follow(writer->directory, &follow, left, signal, why);
    if (!err && !*left && !*signal && !sweep->ended)
        err = sweep_finish(sweep, writer, why);
    return err;
}

enum err sweep_array_open_point(struct sweep *sweep, const char *directory, size_t point,
                                struct run_writer *writer, struct error *why)
{
    nanos until = clock_now() + LOCK_PATIENCE;
    enum err err;
    while ((err = sweep_open_point(sweep, directory, point, writer, why)) == ERR_BUSY &&
           clock_now() < until && !proc_poll_signal(LOCK_PAUSE))
        ;
    return err;
}
