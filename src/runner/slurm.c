/* The script of an array has its options as #SBATCH lines and the numbers of its parts in a bash array, so that any
 * selection of parts, in any order, is an array of consecutive indices.  Programs of Slurm are run by argv; what
 * squeue prints is the only thing that is read of it. */
#include "runner/slurm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/proc.h"

/* How often results are looked for, and squeue is asked; both begin short and grow: thousands of users ask one
 * controller.  A shared file system may show a file only some seconds after it was written on another node. */
static const nanos PAUSE_FIRST = 100 * NS_PER_MS, PAUSE_MOST = 5 * NS_PER_S;
static const nanos SEEN_LATE = 3 * NS_PER_S;

enum { ANSWER_MAX = 1 << 22 };

/* ---- programs of Slurm ---- */

static enum err find_program(const char *name, char *to, size_t size, struct error *why)
{
    enum err err = proc_find(name, to, size);
    return err ? err_set(why, err,
                         "Slurm's %s is not in PATH: run this on a host of the cluster "
                         "that submits jobs, or install slurm-client",
                         name)
               : ERR_OK;
}

enum err slurm_available(struct error *why)
{
    char path[FILE_PATH_MAX];
    enum err err = find_program("sbatch", path, sizeof path, why);
    return err ? err : find_program("squeue", path, sizeof path, why);
}

/* argv[0] is a name, to be found in PATH; *out is what the program prints. */
static enum err ask(const char *argv[], struct text *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    const struct text nothing = {0};
    int fd;
    enum err err = find_program(argv[0], path, sizeof path, why);
    if (!err)
        err = file_open_scratch(&fd, why);
    if (err)
        return err;
    argv[0] = path;
    err = proc_filter(argv, &nothing, fd, why);
    off_t length = err ? 0 : lseek(fd, 0, SEEK_END);
    char *bytes = length > 0 && length < ANSWER_MAX ? malloc((size_t)length) : NULL;
    if (!err && length > 0 && !bytes)
        err = err_set(why, ERR_BAD_VALUE, "%s printed too much", path);
    if (!err && bytes && (err = file_read_at(fd, bytes, (size_t)length, 0)))
        err_set(why, err, "cannot read what %s printed", path);
    if (!err && bytes)
        text_add_bytes(out, bytes, (size_t)length);
    free(bytes);
    close(fd);
    return !err && out->failed ? err_no_memory(why) : err;
}

/* ---- the script ---- */

/* sbatch reads #SBATCH lines as words, with quotes. */
static enum err add_path(struct text *out, const char *option, const char *path, const char *rest,
                         struct error *why)
{
    if (strpbrk(path, "\"\\%\n\r"))
        return err_set(why, ERR_USAGE,
                       "a path with quotes, %%, \\ or line breaks cannot be used "
                       "with Slurm: %.200s",
                       path);
    text_addf(out, "#SBATCH --%s=\"%s%s\"\n", option, path, rest);
    return ERR_OK;
}

static enum err add_option(struct text *out, const char *option, const char *value,
                           struct error *why)
{
    if (!value)
        return ERR_OK;
    if (!*value || strpbrk(value, " \t\r\n\"'\\#"))
        return err_set(why, ERR_USAGE,
                       "--%s '%.80s': empty, or with spaces, quotes, \\ or #, which sbatch options "
                       "have not",
                       option, value);
    text_addf(out, "#SBATCH --%s=%s\n", option, value);
    return ERR_OK;
}

static enum err add_more(struct text *out, const char *word, struct error *why)
{
    const char *option = word + strspn(word, "-");
    if (!*option || strpbrk(option, " \t\r\n\"'\\#") || str_starts(option, "array") ||
        str_starts(option, "output") || str_starts(option, "chdir"))
        return err_set(why, ERR_USAGE,
                       "--sbatch '%.80s': OPTION or OPTION=VALUE of sbatch without spaces or "
                       "quotes, and not array, output or chdir, which the sweep sets",
                       word);
    text_addf(out, "#SBATCH --%s\n", option);
    return ERR_OK;
}

static enum err add_options(const struct slurm_array *array, struct text *out, struct error *why)
{
    const struct slurm_options *options = array->options;
    char here[FILE_PATH_MAX];
    if (!getcwd(here, sizeof here))
        return err_set(why, ERR_IO, "the working directory has no usable path");
    text_addf(out, "#SBATCH --job-name=%s\n#SBATCH --array=0-%zu", array->name, array->count - 1);
    if (options->array_limit)
        text_addf(out, "%%%u", options->array_limit);
    text_add(out, "\n");
    enum err err = add_path(out, "chdir", here, "", why);
    if (!err)
        err = add_path(out, "output", array->folder, "/%A_%a.log", why);
    /* Whatever was done is not done again. */
    text_add(out, "#SBATCH --open-mode=append\n#SBATCH --requeue\n");
    if (!err)
        err = add_option(out, "partition", options->partition, why);
    if (!err)
        err = add_option(out, "account", options->account, why);
    if (!err)
        err = add_option(out, "time", options->time, why);
    if (!err)
        err = add_option(out, "gres", options->gres, why);
    if (options->nodes)
        text_addf(out, "#SBATCH --nodes=%u\n", options->nodes);
    for (size_t i = 0; !err && i < options->more_count; i++)
        err = add_more(out, options->more[i], why);
    return err;
}

enum err slurm_script(const struct slurm_array *array, struct text *out, struct error *why)
{
    text_add(out, "#!/bin/bash\n");
    enum err err = add_options(array, out, why);
    text_add(out, "parts=(");
    for (size_t i = 0; i < array->count; i++)
        text_addf(out, "%s%zu", i ? " " : "", array->parts[i]);
    text_add(out, ")\nexec");
    for (size_t i = 0; array->command[i]; i++) {
        text_add(out, " ");
        if (array->command[i][0] || array->command[i + 1])
            text_add_shell(out, array->command[i]);
    }
    text_add(out, "\"${parts[SLURM_ARRAY_TASK_ID]}\"");
    if (array->suffix[0])
        text_add_shell(out, array->suffix);
    text_add(out, "\n");
    return !err && out->failed ? err_no_memory(why) : err;
}

enum err slurm_submit(const char *script, char job[static SLURM_JOB_MAX], struct error *why)
{
    const char *argv[] = {"sbatch", "--parsable", script, NULL};
    struct text answer = {0};
    enum err err = ask(argv, &answer, why);
    size_t digits = strspn(text_get(&answer), "0123456789"); /* then ";cluster", maybe */
    if (!err && (digits == 0 || digits >= SLURM_JOB_MAX))
        err = err_set(why, ERR_BAD_VALUE, "sbatch printed no job number but '%.80s'",
                      text_get(&answer));
    if (!err)
        str_format(job, SLURM_JOB_MAX, "%.*s", (int)digits, text_get(&answer));
    text_release(&answer);
    return err;
}

/* ---- the queue ---- */

void slurm_queue_release(struct slurm_queue *queue)
{
    free(queue->elements);
    *queue = (struct slurm_queue){0};
}

/* "12 3 RUNNING None" */
static enum err take_element(struct slurm_queue *queue, size_t *capacity, const char *line)
{
    char job[SLURM_JOB_MAX] = "", *end;
    size_t length = strspn(line, "0123456789");
    if (!length || length >= sizeof job || line[length] != ' ')
        return ERR_OK;
    memcpy(job, line, length);
    size_t index = strtoul(line + length + 1, &end, 10);
    if (end == line + length + 1 || *end != ' ')
        return ERR_OK; /* of no array */
    struct slurm_element *elements =
        grow(queue->elements, capacity, queue->count, sizeof *elements);
    if (!elements)
        return ERR_NO_MEMORY;
    queue->elements = elements;
    elements[queue->count] = (struct slurm_element){.index = index};
    str_copy(elements[queue->count++].job, SLURM_JOB_MAX, job);
    if (!str_starts(end + 1, "PENDING"))
        queue->running++;
    else if (strchr(end + 1, ' '))
        str_copy(queue->reason, sizeof queue->reason, strchr(end + 1, ' ') + 1);
    return ERR_OK;
}

enum err slurm_queue_read(const char *jobs, struct slurm_queue *out, struct error *why)
{
    const char *argv[] = {"squeue", "--noheader",           "--array", "--jobs",
                          jobs,     "--format=%F %K %T %r", NULL};
    struct text answer = {0};
    size_t capacity = 0;
    *out = (struct slurm_queue){0};
    enum err err = ask(argv, &answer, why);
    if (err == ERR_IO && why && strstr(why->text, "Invalid job id")) {
        text_release(&answer);
        return ERR_OK;
    }
    for (char *line = answer.bytes; !err && line && *line;) {
        char *next = line + strcspn(line, "\n");
        next += *next ? (*next = '\0', 1) : 0;
        err = err_explain(why, take_element(out, &capacity, line));
        line = next;
    }
    text_release(&answer);
    if (err)
        slurm_queue_release(out);
    return err == ERR_IO ? ERR_LOST : err;
}

/* ---- following ---- */

/* Sets *queued; what cannot be learned leaves it as it was. */
static enum err look(const char *jobs, const struct slurm_follow *follow, size_t left, bool *queued,
                     struct error *why)
{
    struct slurm_queue queue;
    struct error reason = {0};
    enum err err = slurm_queue_read(jobs, &queue, &reason);
    if (err == ERR_LOST) {
        follow->unreachable(follow->context, reason.text);
        return ERR_OK;
    }
    if (err) {
        *why = reason;
        return err;
    }
    *queued = queue.count > 0;
    follow->show(follow->context, left, &queue);
    slurm_queue_release(&queue);
    return ERR_OK;
}

enum err slurm_follow(const char *jobs, const struct slurm_follow *follow, size_t *left,
                      int *signal, struct error *why)
{
    nanos pause = PAUSE_FIRST, gone = 0;
    bool queued = true;
    *signal = 0;
    enum err err = follow->collect(follow->context, left, why);
    while (!err && *left && !*signal) {
        err = look(jobs, follow, *left, &queued, why);
        if (!queued && !gone)
            gone = clock_now();
        else if (queued)
            gone = 0;
        if (!err && !queued && clock_now() - gone > SEEN_LATE)
            break;
        if (!err)
            *signal = proc_poll_signal(queued ? pause : PAUSE_FIRST);
        pause = pause * 5 / 4 < PAUSE_MOST ? pause * 5 / 4 : PAUSE_MOST;
        if (!err && !*signal)
            err = follow->collect(follow->context, left, why);
    }
    return err;
}
