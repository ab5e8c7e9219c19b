/* Next to each script, array-1.sh, array-1.job has the job id and the same parts, so that a later process knows what is
 * queued.  Slurm's programs are run by argv; of their output only the lines of squeue are parsed, and the plan that this
 * program prints as JSON on a node. */
#define _DEFAULT_SOURCE /* realpath */
#include "runner/slurm.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/jv.h"
#include "core/knob.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/proc.h"
#include "rundir/run_dir.h"
#include "rundir/setting.h"
#include "runner/sweep_dry_run.h"

/* Polling intervals for results and for squeue; both start short and grow, since thousands of users share one
 * controller.  A shared file system may show a file only some seconds after it was written on another node. */
static const nanos PAUSE_FIRST = 100 * NS_PER_MS, PAUSE_MAX = 5 * NS_PER_S;
static const nanos VISIBLE_WITHIN = 3 * NS_PER_S;

/* Slurm's default MaxArraySize is 1001. */
enum { ANSWER_MAX = 1 << 22, JOB_MAX = 24, ARRAY_MAX = 1000 };

/* All paths are absolute, for use on other nodes. */
struct slurm_paths {
    char program[PATH_MAX], directory[PATH_MAX];
    char folder[PATH_MAX + 8];
};

/* ---- programs of Slurm ---- */

/* NULL with the reason if it is not in PATH. */
static char *find_program(const char *name, struct error *why)
{
    char *found = proc_find(name);
    if (!found)
        err_set(why, ERR_NOT_FOUND,
                "Slurm's %s is not in PATH: run this on a host of the cluster "
                "that submits jobs, or install slurm-client",
                name);
    return found;
}

enum err slurm_available(struct error *why)
{
    static const char *const PROGRAMS[] = {"sbatch", "squeue"};
    bool are_there = true;
    for (size_t i = 0; are_there && i < COUNT_OF(PROGRAMS); i++) {
        char *path = find_program(PROGRAMS[i], why);
        are_there = path;
        free(path);
    }
    return are_there ? ERR_OK : ERR_NOT_FOUND;
}

/* argv[0] is looked up in PATH; *out is the program's stdout. */
static enum err run_program(const char *argv[], struct text *out, struct error *why)
{
    const char *name = argv[0];
    char *path = find_program(name, why);
    argv[0] = path;
    enum err err = path ? proc_read(argv, ANSWER_MAX, out, why) : ERR_NOT_FOUND;
    argv[0] = name;
    free(path);
    return err;
}

/* ---- clocks of a node ---- */

enum { WORDS_MAX = 64 };

static int by_highest(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

static size_t clock_knob(const struct sweep_dry_run *plan)
{
    size_t knob = 0;
    while (knob < plan->knob_count && knob_named(plan->knobs[knob].name) != KNOB_GRAPHICS_CLOCK)
        knob++;
    return knob;
}

/* The clocks of a plan; *out is NULL if it has none. */
static void list_clocks(const struct sweep_dry_run *plan, double **out, size_t *count)
{
    const char *name = knob_of(KNOB_GRAPHICS_CLOCK)->name;
    size_t knob = clock_knob(plan);
    size_t capacity = 0;
    for (size_t i = 0; i < plan->setting_count; i++) {
        if (knob >= plan->settings[i].value_count)
            continue;
        struct setting clock = setting_parse(name, plan->settings[i].values[knob]);
        if (clock.kind == SETTING_NUMBER && clock.number > 0) {
            *out = xgrow(*out, &capacity, *count, sizeof **out);
            (*out)[(*count)++] = clock.number;
        }
        setting_release(&clock);
    }
    if (*count)
        qsort(*out, *count, sizeof **out, by_highest);
}

/* Reads the output of `ipw sweep --dry-run --json`. */
static enum err parse_clocks(const struct text *output, double **out, size_t *count,
                             struct error *why)
{
    struct jv *tree = NULL;
    struct sweep_dry_run plan = {0};
    struct error reason = {0};
    enum err err = jv_parse(text_get(output), output->length, &tree, &reason);
    if (!err)
        err = sweep_dry_run_read(tree, &plan, &reason);
    jv_free(tree);
    if (err)
        return err_set(why, err,
                       "`ipw sweep --dry-run --json` on the node allocated by Slurm printed no "
                       "plan of a sweep: %s; is it the same version there?",
                       reason.text);
    list_clocks(&plan, out, count);
    if (!*count)
        err = err_set(why, ERR_UNSUPPORTED, "on the node allocated by Slurm: %s",
                      plan.uncontrolled ? plan.uncontrolled : "it lists no clocks");
    sweep_dry_run_release(&plan);
    return err;
}

enum err slurm_clocks(const struct slurm_options *options, const char *devices, double min,
                      double **out, size_t *count, struct error *why)
{
    char program[PATH_MAX] = "", lowest[32];
    struct text words[4 + WORDS_MAX] = {{0}};
    struct text plan = {0};
    const char *argv[16 + COUNT_OF(words)] = {"srun", "--quiet", "--nodes=1", "--ntasks=1"};
    const char *const names[] = {"partition", "gres", "time", "account"};
    const char *const values[] = {options->partition, options->gres, options->time,
                                  options->account};
    size_t used = 4, made = 0;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (values[i])
            text_addf(&words[made++], "--%s=%s", names[i], values[i]);
    for (size_t i = 0; i < options->more_count && i < WORDS_MAX; i++)
        text_addf(&words[made++], "--%s", options->more[i] + strspn(options->more[i], "-"));
    for (size_t i = 0; i < made; i++)
        argv[used++] = text_get(&words[i]);
    (void)chars_format(lowest, "%.10g", min);
    const char *const rest[] = {program,     "sweep",     "--control",
                                "--mode",    "dvfs",      "--min-clock",
                                lowest,      "--devices", devices ? devices : "",
                                "--dry-run", "--json",    "--",
                                "true"};
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        if (devices || (i != 7 && i != 8))
            argv[used++] = rest[i];
    enum err err = readlink("/proc/self/exe", program, sizeof program - 1) > 0
                       ? run_program(argv, &plan, why)
                       : err_set(why, ERR_IO, "the path of this program is not known");
    if (!err)
        err = parse_clocks(&plan, out, count, why);
    for (size_t i = 0; i < made; i++)
        text_release(&words[i]);
    text_release(&plan);
    return err;
}

/* ---- the folder ---- */

static enum err find_paths(const char *directory, struct slurm_paths *out, struct error *why)
{
    ssize_t length = readlink("/proc/self/exe", out->program, sizeof out->program - 1);
    out->program[length > 0 ? length : 0] = '\0';
    if (length <= 0 || !realpath(directory, out->directory))
        return err_set(why, ERR_IO, "the path of this program or of %s is not known", directory);
    chars_format(out->folder, "%s/" RUN_SLURM, out->directory);
    return ERR_OK;
}

/* The caller frees it. */
static char *array_path(const struct slurm_paths *paths, unsigned number, const char *suffix)
{
    return xformat("%s/array-%u.%s", paths->folder, number, suffix);
}

static bool has_script(const struct slurm_paths *paths, unsigned number)
{
    char *path = array_path(paths, number, "sh");
    bool exists = file_exists(path);
    free(path);
    return exists;
}

bool slurm_was_used(const char *directory)
{
    struct slurm_paths paths;
    return !find_paths(directory, &paths, NULL) && file_is_directory(paths.folder);
}

static enum err write_file(const char *path, const struct text *content, struct error *why)
{
    int fd;
    enum err err = file_open_own(path, O_WRONLY | O_CREAT | O_TRUNC, &fd, why);
    if (err)
        return err;
    if (file_write_all(fd, text_get(content), content->length))
        err = err_set(why, ERR_IO, "cannot write %s", path);
    if (close(fd) && !err)
        err = err_set(why, ERR_IO, "cannot write %s", path);
    return err;
}

/* A job, and the part of each array index. */
struct job {
    char id[JOB_MAX];
    size_t *parts;
    size_t count, capacity;
};

struct jobs {
    struct job *items;
    size_t count, capacity;
};

static void release_jobs(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        free(jobs->items[i].parts);
    free(jobs->items);
    *jobs = (struct jobs){0};
}

/* Parses "4711 3 1 2". */
static void parse_job(struct jobs *jobs, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits >= JOB_MAX)
        return; /* not one of our files */
    struct job *job = XADD(jobs->items, jobs->count, jobs->capacity);
    *job = (struct job){0};
    memcpy(job->id, text, digits);
    text += digits;
    for (char *end; *text == ' '; text = end) {
        size_t part = strtoul(text, &end, 10);
        if (end == text)
            break;
        *XADD(job->parts, job->count, job->capacity) = part;
    }
}

static enum err read_jobs(const struct slurm_paths *paths, struct jobs *out, struct error *why)
{
    enum err err = ERR_OK;
    *out = (struct jobs){0};
    for (unsigned number = 1; !err && has_script(paths, number); number++) {
        struct text text = {0};
        char *path = array_path(paths, number, "job");
        bool is_submitted = file_is_regular(path);
        if (is_submitted)
            err = file_read(path, FILE_SMALL, &text, why);
        if (!err && is_submitted)
            parse_job(out, text_get(&text));
        text_release(&text);
        free(path);
    }
    if (err)
        release_jobs(out);
    return err;
}

/* ---- the queue ---- */

static void release_queue(struct slurm_queue *queue)
{
    free(queue->parts);
    *queue = (struct slurm_queue){0};
}

static void add_part(struct slurm_queue *queue, size_t *capacity, const struct jobs *jobs,
                     const char *id, size_t index)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job *job = &jobs->items[i];
        if (!str_equal(job->id, id) || index >= job->count)
            continue;
        queue->parts = xgrow(queue->parts, capacity, queue->count, sizeof *queue->parts);
        queue->parts[queue->count++] = job->parts[index];
    }
}

/* Parses "12 3 RUNNING None". */
static void parse_element(struct slurm_queue *queue, size_t *capacity, const struct jobs *jobs,
                          const char *line)
{
    char id[JOB_MAX] = "", *end;
    size_t length = strspn(line, "0123456789");
    size_t before = queue->count;
    if (!length || length >= sizeof id || line[length] != ' ')
        return;
    memcpy(id, line, length);
    size_t index = strtoul(line + length + 1, &end, 10);
    if (end == line + length + 1 || *end != ' ')
        return; /* not an array element */
    add_part(queue, capacity, jobs, id, index);
    if (!str_starts(end + 1, "PENDING"))
        queue->running += queue->count - before;
    else if (strchr(end + 1, ' '))
        chars_copy(queue->reason, strchr(end + 1, ' ') + 1);
}

/* Jobs unknown to Slurm have ended.  ERR_LOST: Slurm does not respond. */
static enum err read_queue(const struct jobs *jobs, struct slurm_queue *out, struct error *why)
{
    struct text ids = {0}, answer = {0};
    size_t capacity = 0;
    *out = (struct slurm_queue){0};
    if (!jobs->count)
        return ERR_OK;
    for (size_t i = 0; i < jobs->count; i++)
        text_addf(&ids, "%s%s", i ? "," : "", jobs->items[i].id);
    const char *argv[] = {"squeue",       "--noheader",           "--array", "--jobs",
                          text_get(&ids), "--format=%F %K %T %r", NULL};
    enum err err = run_program(argv, &answer, why);
    if (err == ERR_IO)
        err = strstr(why->text, "Invalid job id") ? ERR_OK : ERR_LOST;
    for (char *line = answer.bytes; !err && line && *line;) {
        char *next = line + strcspn(line, "\n");
        next += *next ? (*next = '\0', 1) : 0;
        parse_element(out, &capacity, jobs, line);
        line = next;
    }
    text_release(&answer);
    text_release(&ids);
    if (err)
        release_queue(out);
    return err;
}

/* ---- submitting ---- */

static enum err add_own_words(struct text *out, struct error *why)
{
    struct text words = {0};
    enum err err = file_read("/proc/self/cmdline", FILE_SMALL, &words, why);
    for (size_t at = 0; !err && at < words.length; at += strlen(words.bytes + at) + 1)
        if (at) { /* skip the program name */
            text_add(out, " ");
            text_add_shell(out, words.bytes + at);
        }
    text_release(&words);
    return err;
}

/* The caller frees *path. */
static enum err write_script(const struct slurm_work *work, const struct slurm_options *options,
                             const struct slurm_paths *paths, const size_t *parts, size_t count,
                             char **path, struct error *why)
{
    struct text script = {0}, command = {0};
    unsigned number = 1;
    while (has_script(paths, number))
        number++;
    *path = array_path(paths, number, "sh");
    text_add_shell(&command, paths->program);
    enum err err = work->same_call ? add_own_words(&command, why) : ERR_OK;
    for (size_t i = 0; work->command[i]; i++) {
        text_add(&command, " ");
        if (work->command[i][0] || work->command[i + 1])
            text_add_shell(&command, work->command[i]);
    }
    const struct slurm_array array = {.options = options,
                                      .name = work->name,
                                      .logs = paths->folder,
                                      .parts = parts,
                                      .count = count,
                                      .command = text_get(&command),
                                      .suffix = work->suffix};
    if (!err)
        err = slurm_script(&array, &script, why);
    if (!err)
        err = write_file(*path, &script, why);
    text_release(&script);
    text_release(&command);
    return err;
}

static enum err submit_script(const char *script, char job[static JOB_MAX], struct error *why)
{
    const char *argv[] = {"sbatch", "--parsable", script, NULL};
    struct text answer = {0};
    enum err err = run_program(argv, &answer, why);
    size_t digits = strspn(text_get(&answer), "0123456789"); /* may be followed by ";cluster" */
    if (!err && (digits == 0 || digits >= JOB_MAX))
        err = err_set(why, ERR_BAD_VALUE, "sbatch printed '%.80s' instead of a job number",
                      text_get(&answer));
    if (!err)
        str_format(job, JOB_MAX, "%.*s", (int)digits, text_get(&answer));
    text_release(&answer);
    return err;
}

/* If we are killed before this, the job is submitted again; its elements skip completed parts. */
static enum err write_job(const char *script, const char *job, const size_t *parts, size_t count,
                          struct error *why)
{
    struct text line = {0};
    text_add(&line, job);
    for (size_t i = 0; i < count; i++)
        text_addf(&line, " %zu", parts[i]);
    text_add(&line, "\n");
    char *path = xformat("%.*sjob", (int)(strlen(script) - strlen("sh")), script);
    enum err err = write_file(path, &line, why);
    free(path);
    text_release(&line);
    return err;
}

/* Excludes parts whose elements have not ended.  The caller frees *parts. */
static enum err list_parts(const struct slurm_work *work, const struct slurm_paths *paths,
                           bool submit, size_t **out, size_t *count, struct error *why)
{
    struct jobs jobs = {0};
    struct slurm_queue queue = {0};
    size_t kept = 0;
    size_t *parts = *out = xcalloc(work->max + 1, sizeof *parts);
    *count = 0;
    enum err err = ERR_OK;
    if (submit)
        err = read_jobs(paths, &jobs, why);
    if (!err && submit)
        err = read_queue(&jobs, &queue, why);
    if (!err)
        err = work->list(work->context, parts, count, why);
    for (size_t i = 0; !err && i < *count; i++) {
        bool queued = false;
        for (size_t j = 0; !queued && j < queue.count; j++)
            queued = queue.parts[j] == parts[i];
        if (!queued)
            parts[kept++] = parts[i];
    }
    *count = kept;
    release_queue(&queue);
    release_jobs(&jobs);
    return err;
}

enum err slurm_submit(const struct slurm_work *work, const struct slurm_options *options,
                      size_t *count, bool submit,
                      void (*wrote)(const char *script, const char *job), struct error *why)
{
    struct slurm_paths paths;
    size_t *parts = NULL;
    char job[JOB_MAX];
    char *folder = path_join(work->directory, RUN_SLURM "/");
    enum err err = file_make_parents(folder, why);
    free(folder);
    if (!err)
        err = find_paths(work->directory, &paths, why);
    if (!err)
        err = list_parts(work, &paths, submit, &parts, count, why);
    for (size_t i = 0; !err && i < *count; i += ARRAY_MAX) {
        size_t some = *count - i < ARRAY_MAX ? *count - i : ARRAY_MAX;
        char *script = NULL;
        err = write_script(work, options, &paths, parts + i, some, &script, why);
        if (!err && submit)
            err = submit_script(script, job, why);
        if (!err && submit)
            err = write_job(script, job, parts + i, some, why);
        if (!err)
            wrote(script, submit ? job : NULL);
        free(script);
    }
    free(parts);
    return err;
}

/* ---- following ---- */

/* Updates *queued; unchanged if Slurm does not respond. */
static enum err poll_jobs(const struct jobs *jobs, const struct slurm_follow *follow, size_t left,
                          bool *queued, struct error *why)
{
    struct slurm_queue queue;
    struct error reason = {0};
    enum err err = read_queue(jobs, &queue, &reason);
    if (err == ERR_LOST) {
        follow->unreachable(follow->context, reason.text);
        return ERR_OK;
    }
    if (err)
        return err_set(why, err, "%s", reason.text);
    *queued = queue.count > 0;
    follow->show(follow->context, left, &queue);
    release_queue(&queue);
    return ERR_OK;
}

enum err slurm_follow(const char *directory, const struct slurm_follow *follow, size_t *left,
                      int *signal, struct error *why)
{
    nanos pause = PAUSE_FIRST, gone = 0;
    struct jobs jobs = {0};
    struct slurm_paths paths;
    *signal = 0;
    enum err err = find_paths(directory, &paths, why);
    if (!err)
        err = read_jobs(&paths, &jobs, why);
    bool queued = jobs.count > 0;
    if (!err)
        err = follow->collect(follow->context, left, why);
    while (!err && *left && !*signal && jobs.count) {
        err = poll_jobs(&jobs, follow, *left, &queued, why);
        if (err == ERR_INTERRUPTED && (*signal = proc_poll_signal(0)))
            err = ERR_OK;
        if (!queued && !gone)
            gone = clock_now();
        else if (queued)
            gone = 0;
        if (!err && !queued && clock_now() - gone > VISIBLE_WITHIN)
            break;
        if (!err && !*signal)
            *signal = proc_poll_signal(queued ? pause : PAUSE_FIRST);
        pause = pause * 5 / 4 < PAUSE_MAX ? pause * 5 / 4 : PAUSE_MAX;
        if (!err && !*signal)
            err = follow->collect(follow->context, left, why);
    }
    release_jobs(&jobs);
    return err;
}
