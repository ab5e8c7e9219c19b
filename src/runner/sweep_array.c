#include "runner/sweep.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "port/proc.h"
#include "runner/slurm.h"

/* Slurm's MaxArraySize is 1001 unless a cluster has another. */
enum { ARRAY_MOST = 1000 };

static const nanos LOCK_PATIENCE = 60 * NS_PER_S, LOCK_PAUSE = 100 * NS_PER_MS;

/* "12,15"; "" for none. */
static void list_jobs(const struct sweep *sweep, struct text *out)
{
    for (size_t i = 0; i < sweep->job_count; i++)
        text_addf(out, "%s%s", i ? "," : "", sweep->jobs[i].id);
}

/* ---- submitting ---- */

static bool is_queued(const struct sweep *sweep, const struct slurm_queue *queue, size_t point)
{
    for (size_t i = 0; i < queue->count; i++)
        for (size_t j = 0; j < sweep->job_count; j++) {
            const struct sweep_job *job = &sweep->jobs[j];
            if (strcmp(job->id, queue->elements[i].job) == 0 &&
                queue->elements[i].index < job->count &&
                job->points[queue->elements[i].index] == point)
                return true;
        }
    return false;
}

/* Drops the points whose elements have not ended. */
static enum err drop_queued(const struct sweep *sweep, size_t *points, size_t *count,
                            struct error *why)
{
    struct text jobs = {0};
    struct slurm_queue queue;
    size_t kept = 0;
    if (!sweep->job_count)
        return ERR_OK;
    list_jobs(sweep, &jobs);
    enum err err = slurm_queue_read(text_get(&jobs), &queue, why);
    text_release(&jobs);
    if (err)
        return err;
    for (size_t i = 0; i < *count; i++)
        if (!is_queued(sweep, &queue, points[i]))
            points[kept++] = points[i];
    *count = kept;
    slurm_queue_release(&queue);
    return ERR_OK;
}

static enum err write_script(const char *directory, const struct slurm_options *options,
                             const size_t *points, size_t count, struct sweep_script *place,
                             struct error *why)
{
    char program[PATH_MAX];
    char *command[] = {program, "sweep", "--resume", place->directory, "--point", "", NULL};
    size_t *numbers = malloc(count * sizeof *numbers); /* as users count them */
    struct text script = {0};
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] = points[i] + 1;
    enum err err = numbers ? ERR_OK : err_no_memory(why);
    if (!err && length <= 0)
        err = err_set(why, ERR_IO,
                      "/proc/self/exe cannot be read: where this program is, is unknown");
    if (!err)
        err = sweep_script_place(directory, place, why);
    const struct slurm_array array = {.options = options,
                                      .name = "ipw-sweep",
                                      .folder = place->folder,
                                      .parts = numbers,
                                      .count = count,
                                      .command = command,
                                      .suffix = ""};
    if (!err)
        err = slurm_script(&array, &script, why);
    if (!err)
        err = sweep_script_write(place, &script, why);
    text_release(&script);
    free(numbers);
    return err;
}

static enum err submit_array(struct sweep *sweep, struct run_writer *writer,
                             const struct slurm_options *options, bool submit,
                             void (*wrote)(const char *script, const char *job),
                             const size_t *points, size_t count, struct error *why)
{
    struct sweep_script place;
    char job[SLURM_JOB_MAX];
    enum err err = write_script(writer->directory, options, points, count, &place, why);
    if (!err && submit)
        err = slurm_submit(place.path, job, why);
    if (err)
        return err;
    wrote(place.path, submit ? job : NULL);
    return submit ? sweep_add_job(sweep, writer, job, points, count, why) : ERR_OK;
}

enum err sweep_array_submit(struct sweep *sweep, struct run_writer *writer,
                            const struct slurm_options *options, bool submit,
                            void (*wrote)(const char *script, const char *job), size_t *count,
                            struct error *why)
{
    size_t *points = malloc((sweep->point_count + 1) * sizeof *points);
    if (!points)
        return err_no_memory(why);
    *count = sweep_unfinished(sweep, points);
    enum err err = submit ? drop_queued(sweep, points, count, why) : ERR_OK;
    for (size_t i = 0; !err && i < *count; i += ARRAY_MOST) {
        size_t some = *count - i < ARRAY_MOST ? *count - i : ARRAY_MOST;
        err = submit_array(sweep, writer, options, submit, wrote, points + i, some, why);
    }
    free(points);
    return err;
}

/* ---- following ---- */

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
    struct text jobs = {0};
    enum err err;
    *signal = 0;
    list_jobs(sweep, &jobs);
    if (jobs.failed)
        err = err_no_memory(why);
    else if (jobs.length)
        err = slurm_follow(text_get(&jobs), &follow, left, signal, why);
    else
        err = collect(&following, left, why);
    text_release(&jobs);
    if (!err && !*left && !*signal && !sweep->ended)
        err = sweep_finish(sweep, writer, why);
    return err;
}

/* ---- an element ---- */

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
