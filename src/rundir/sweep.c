#include "rundir/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"
#include "rundir/sweep_lines.h"

/* ---- paths ---- */

bool sweep_is(const char *directory)
{
    enum run_dir_state state;
    if (!run_has_directory(directory) || run_dir_inspect(directory, &state, NULL) ||
        state != RUN_DIR_HAS_RUN)
        return false;
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    bool is_sweep = run_has_regular(path) && /* not a FIFO, which would block */
                    journal_facts(path).kind == RUN_KIND_SWEEP;
    free(path);
    return is_sweep;
}

char *sweep_folder(const char *directory, size_t point, unsigned repeat)
{
    return xformat("%s/points/p%03zu_r%u", directory, point + 1, repeat);
}

char *sweep_log(const char *folder)
{
    return path_join(folder, "output.log");
}

void sweep_setting(const struct sweep *sweep, size_t point, struct text *out)
{
    settings_text(sweep_point(sweep, point), sweep->knob_count, out);
}

/* ---- writing ---- */

static void subject_of(const struct sweep *sweep, struct text *out)
{
    text_add(out, sweep->profile ? "profile" : sweep->command[0]);
    for (size_t k = 0; k < sweep->knob_count; k++)
        text_addf(out, " %s", sweep->knobs[k]);
}

enum err sweep_create(const struct sweep *sweep, const char *parent, struct run_writer *writer,
                      struct error *why)
{
    struct text subject = {0};
    struct jv *settings = sweep_settings_value(sweep);
    subject_of(sweep, &subject);
    const struct journal_header header = {
        .kind = RUN_KIND_SWEEP, .start = 1, .started_at = sweep->started_at, .settings = settings};
    enum err err = run_writer_open(writer, parent, text_get(&subject), &header, why);
    if (!err && journal_sync(&writer->records, why)) {
        run_writer_close(writer);
        err = ERR_IO;
    }
    jv_free(settings);
    text_release(&subject);
    return err;
}

enum err sweep_extend(struct sweep *sweep, struct run_writer *writer, const char *const *values,
                      struct error *why)
{
    struct text line = {0};
    sweep_add_point(sweep, values);
    sweep_put_added(values, sweep->knob_count, &line);
    enum err err = sweep_append(writer, &line, why);
    text_release(&line);
    return err;
}

enum err sweep_repeat_more(struct sweep *sweep, unsigned repeats, struct run_writer *writer,
                           struct error *why)
{
    struct text line = {0};
    enum err err = ERR_OK;
    if (repeats <= sweep->repeats)
        return err_set(why, ERR_USAGE,
                       "--repeat %u: the sweep already measures each setting %u time%s: give a "
                       "larger number, or drop it",
                       repeats, sweep->repeats, sweep->repeats == 1 ? "" : "s");
    sweep_put_repeats(repeats, &line);
    if (writer)
        err = sweep_append(writer, &line, why);
    text_release(&line);
    if (!err)
        sweep_set_repeats(sweep, repeats);
    return err;
}

/* A sum of energies of different methods has the weakest method. */
static bool is_weaker(const char *method, const char *than)
{
    return str_equal(method, "estimated") ||
           (str_equal(method, "integral") && str_equal(than, "counter"));
}

static void add_evidence(const struct sweep_attempt *attempt, struct record_energy *sum)
{
    if (!is_known(attempt->joules) || !attempt->method)
        return;
    if (sum->method && !str_equal(sum->method, attempt->method))
        sum->note = "the attempts were measured by different methods: see their records";
    if (!sum->method || is_weaker(attempt->method, sum->method)) {
        sum->method = attempt->method;
        sum->source = attempt->source;
    }
    if (!(sum->coverage <= attempt->coverage))
        sum->coverage = attempt->coverage;
}

static void fill_summary(const struct sweep *sweep, const struct run_writer *writer,
                         struct summary *out)
{
    summary_init(out);
    out->run_kind = run_kind_name(RUN_KIND_SWEEP);
    out->model = writer->subject;
    out->output_dir = out->directory = writer->directory;
    out->version = IPW_VERSION;
    out->started_at = sweep->started_at;
    out->generated_at = seconds(clock_wall());
    out->starts = sweep->starts;
    out->interrupted = 0;
    out->queries = out->total_queries = (int64_t)sweep->count;
    out->completed = out->failed = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        *(attempt->exit_code ? &out->failed : &out->completed) += 1;
        add_known(&out->energy.joules, attempt->joules);
        add_known(&out->energy.plus_minus, attempt->plus_minus); /* sensor errors are correlated */
        add_known(&out->seconds, attempt->seconds);
        add_evidence(attempt, &out->energy);
    }
}

enum err sweep_finish(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    struct text line = {0};
    struct summary summary;
    if (sweep->only) /* other processes measure the others */
        return ERR_OK;
    sweep_put_end(&line);
    enum err err = journal_append(&writer->records, &line, why);
    text_release(&line);
    sweep->ended = !err;
    fill_summary(sweep, writer, &summary);
    if (!err)
        err = run_writer_finish(writer, &summary, why);
    summary_release(&summary);
    return err;
}

/* ---- reading ---- */

struct loading {
    struct sweep *sweep;
    struct error why;
};

static enum err take_line(void *context, const struct jv *line)
{
    struct loading *loading = context;
    return sweep_take_line(loading->sweep, line, &loading->why);
}

static enum err refuse_directory(const char *directory, struct error *why)
{
    size_t sweep = sweep_of_run(directory);
    if (!run_has_directory(directory))
        return err_set(why, ERR_NOT_FOUND, "%s: no such directory", directory);
    if (sweep)
        return err_set(why, ERR_NOT_FOUND, "not a sweep, but one run of it: give %.*s", (int)sweep,
                       directory);
    return err_set(why, ERR_NOT_FOUND, "%s: not a sweep directory", directory);
}

enum err sweep_load(const char *directory, struct sweep *out, struct error *why)
{
    uint64_t damaged;
    *out = (struct sweep){0};
    if (!sweep_is(directory))
        return refuse_directory(directory, why);
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    struct loading loading = {.sweep = out};
    enum err err = journal_read(path, take_line, &loading, &damaged, why);
    if (!err && (!out->point_count || !out->knob_count || !out->word_count))
        err = ERR_BAD_VALUE;
    if (loading.why.text[0])
        err_set(why, err, "%s: %s", path, loading.why.text);
    else if (err == ERR_BAD_VALUE)
        err_set(why, err, "%s: the header of the sweep cannot be read", path);
    free(path);
    if (err)
        sweep_release(out);
    return err;
}

enum err sweep_reopen(struct sweep *sweep, const char *directory, struct run_writer *writer,
                      struct error *why)
{
    struct text subject = {0};
    enum err err = sweep_load(directory, sweep, why);
    if (err)
        return err;
    subject_of(sweep, &subject);
    const struct journal_header header = {
        .kind = RUN_KIND_SWEEP, .start = ++sweep->starts, .started_at = seconds(clock_wall())};
    err = run_writer_reopen(writer, directory, text_get(&subject), &header, why);
    text_release(&subject);
    if (err)
        sweep_release(sweep);
    return err;
}

/* ---- the sweep of a run ---- */

static const char POINTS_FOLDER[] = "/points/p";

/* For a path such as SWEEP/points/p001_r1/run_x, or the common prefix of several. */
size_t sweep_of_run(const char *run)
{
    const char *found = NULL;
    for (const char *at = run; (at = strstr(at, POINTS_FOLDER)); at++) {
        const char *number = at + sizeof POINTS_FOLDER - 1;
        size_t digits = strspn(number, "0123456789");
        if (digits >= 3 && str_starts(number + digits, "_r"))
            found = at;
    }
    return found ? (size_t)(found - run) : 0;
}

void sweep_setting_of_run(const char *run, char *to, size_t size)
{
    size_t length = sweep_of_run(run);
    struct sweep sweep;
    to[0] = '\0';
    if (!length)
        return;
    char *directory = xstrndup(run, length);
    if (!sweep_load(directory, &sweep, NULL)) {
        struct text setting = {0};
        unsigned long point = strtoul(run + length + sizeof POINTS_FOLDER - 1, NULL, 10);
        if (point >= 1 && point <= sweep.point_count)
            sweep_setting(&sweep, point - 1, &setting);
        (void)str_copy(to, size, text_get(&setting));
        text_release(&setting);
        sweep_release(&sweep);
    }
    free(directory);
}
