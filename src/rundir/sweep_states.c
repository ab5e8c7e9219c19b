/* The attempts of a sweep that are measured by a process for each point: each has a file in its folder once it has
 * ended, which the process that owns the journal collects. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/sweep_lines.h"

/* In the folder of the attempt: its line, until sweep_collect has added it to the journal. */
static const char STATE_FILE[] = "attempt.json";

static char *state_path(const char *directory, size_t point, unsigned repeat)
{
    char *folder = sweep_folder(directory, point, repeat);
    char *path = path_join(folder, STATE_FILE);
    free(folder);
    return path;
}

/* ---- writing ---- */

/* An attempt that will be repeated has not ended. */
static enum err put_state(const struct sweep *sweep, const char *directory, size_t point,
                          unsigned repeat, const struct text *line, struct error *why)
{
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *made = &sweep->attempts[i];
        if (made->point == point && made->repeat == repeat && sweep_is_rejected(made) &&
            made->tries <= sweep->reruns)
            return ERR_OK;
    }
    char *folder = sweep_folder(directory, point, repeat);
    enum err err = run_dir_put(folder, STATE_FILE, line, why);
    free(folder);
    return err;
}

enum err sweep_add(struct sweep *sweep, struct run_writer *writer,
                   const struct sweep_attempt *attempt, struct error *why)
{
    struct text line = {0};
    size_t point = attempt->point;
    unsigned repeat = attempt->repeat;
    sweep_put_attempt(sweep, attempt, &line);
    sweep_keep_attempt(sweep, attempt);
    enum err err = sweep->only ? put_state(sweep, writer->directory, point, repeat, &line, why)
                               : sweep_append(writer, &line, why);
    text_release(&line);
    return err;
}

/* ---- reading ---- */

static enum err take_state(struct sweep *sweep, const char *path, size_t point, unsigned repeat,
                           const struct jv *line, struct error *why)
{
    struct error reason = {0};
    size_t before = sweep->count;
    enum err err = sweep_take_attempt(sweep, line, &reason);
    if (err)
        return err_set(why, err, "%s: %s", path, reason.text);
    const struct sweep_attempt *read = before < sweep->count ? &sweep->attempts[before] : NULL;
    if (read && read->point == point && read->repeat == repeat)
        return ERR_OK;
    if (read)
        sweep_drop_attempt(sweep, before);
    return err_set(why, ERR_BAD_VALUE, "%s is not of this attempt: delete it", path);
}

/* *found: whether the attempt has ended. */
static enum err read_state(struct sweep *sweep, const char *directory, size_t point,
                           unsigned repeat, bool *found, struct error *why)
{
    char *path = state_path(directory, point, repeat);
    struct jv *line = NULL;
    enum err err = ERR_OK;
    *found = run_has_regular(path);
    if (*found)
        err = run_read_json(path, FILE_SMALL, &line, why);
    if (*found && !err)
        err = take_state(sweep, path, point, repeat, line, why);
    jv_free(line);
    free(path);
    return err;
}

static enum err read_states(struct sweep *sweep, const char *directory, size_t point,
                            unsigned first, struct error *why)
{
    bool found = true;
    enum err err = ERR_OK;
    for (unsigned repeat = first; !err && found && repeat <= sweep->max_repeats; repeat++)
        err = read_state(sweep, directory, point, repeat, &found, why);
    return err;
}

/* For each point the first repeat without an attempt. */
static unsigned *next_repeats(const struct sweep *sweep)
{
    unsigned *next = xcalloc(sweep->point_count, sizeof *next);
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->repeat > next[attempt->point])
            next[attempt->point] = attempt->repeat;
    }
    for (size_t p = 0; p < sweep->point_count; p++)
        next[p]++;
    return next;
}

enum err sweep_collect(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    size_t before = sweep->count;
    unsigned *next = next_repeats(sweep);
    enum err err = ERR_OK;
    for (size_t p = 0; !err && p < sweep->point_count; p++)
        err = read_states(sweep, writer->directory, p, next[p], why);
    for (size_t i = before; !err && i < sweep->count; i++) {
        struct text line = {0};
        sweep_put_attempt(sweep, &sweep->attempts[i], &line);
        err = sweep_append(writer, &line, why);
        text_release(&line);
    }
    free(next);
    return err;
}

static enum err lock_point(const char *directory, size_t point, struct run_writer *writer,
                           struct error *why)
{
    char *folder = sweep_folder(directory, point, 1);
    enum err err = run_dir_make(folder, why);
    if (!err)
        err = run_dir_lock(folder, &writer->lock_fd, why);
    free(folder);
    return err;
}

enum err sweep_open_point(struct sweep *sweep, const char *directory, size_t point,
                          struct run_writer *writer, struct error *why)
{
    enum err err = sweep_load(directory, sweep, why);
    if (err)
        return err;
    *writer = (struct run_writer){.lock_fd = -1, .records = {.fd = -1}, .spans = {.fd = -1}};
    if (point >= sweep->point_count)
        err = err_set(why, ERR_USAGE, "--point %zu: the sweep has %zu settings", point + 1,
                      sweep->point_count);
    writer->directory = xstrdup(directory);
    if (!err)
        err = lock_point(directory, point, writer, why);
    if (!err) {
        unsigned *next = next_repeats(sweep); /* after the lock: another may have just ended */
        sweep->only = point + 1;
        err = read_states(sweep, directory, point, next[point], why);
        free(next);
    }
    if (err) {
        run_writer_close(writer);
        sweep_release(sweep);
    }
    return err;
}

/* ---- retrying ---- */

static enum err record_retry(const struct sweep_attempt *attempt, struct run_writer *writer,
                             struct error *why)
{
    struct text line = {0};
    sweep_put_retry(attempt, &line);
    enum err err = sweep_append(writer, &line, why);
    text_release(&line);
    if (err)
        return err;
    char *path = state_path(writer->directory, attempt->point, attempt->repeat);
    unlink(path);
    free(path);
    return ERR_OK;
}

enum err sweep_retry_failed(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = sweep->count; !err && i-- > 0;) {
        if (!sweep->attempts[i].exit_code)
            continue;
        if (writer)
            err = record_retry(&sweep->attempts[i], writer, why);
        if (!err)
            sweep_drop_attempt(sweep, i);
    }
    return err;
}
