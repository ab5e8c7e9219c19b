#include "rundir/sweep.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/grow.h"
#include "core/json.h"
#include "core/json_bind.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"
#include "stats/descriptive.h"

/* A header with more points is invalid: such a sweep would take years. */
enum { POINTS_MAX = 100000 };

/* ---- words ---- */

enum err sweep_word(char ***words, size_t *count, const char *word)
{
    char **longer = realloc(*words, (*count + 2) * sizeof *longer);
    if (longer)
        *words = longer;
    char *copy = longer ? strdup(word) : NULL;
    if (!copy)
        return ERR_NO_MEMORY;
    longer[(*count)++] = copy;
    longer[*count] = NULL;
    return ERR_OK;
}

static void release_words(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
}

/* ---- lines of the journal ----
 *
 * One table per kind of line serves its writer and its reader. */

static const char KIND_RUN[] = "run", KIND_POINT[] = "point", KIND_ADDED[] = "added",
                  KIND_RETRY[] = "retry", KIND_REPEATS[] = "repeats", KIND_END[] = "end";

static void write_profile(struct json *json, const char *key, const struct json_field *field,
                          const void *object)
{
    (void)field;
    json_string(json, key, ((const struct sweep *)object)->profile ? "profile" : "run");
}

static enum err read_profile(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, void *object)
{
    const char *kind = jv_text(value);
    (void)at, (void)field;
    ((struct sweep *)object)->profile = kind && strcmp(kind, "profile") == 0;
    return ERR_OK;
}

static const struct json_custom PROFILE = {.write = write_profile, .read = read_profile};

static void write_points(struct json *json, const char *key, const struct json_field *field,
                         const void *object)
{
    const struct sweep *sweep = object;
    (void)field;
    json_array(json, key);
    for (size_t p = 0; p < sweep->point_count; p++) {
        json_array(json, NULL);
        for (size_t k = 0; k < sweep->knob_count; k++)
            json_string(json, NULL, sweep->values[p * sweep->knob_count + k]);
        json_array_end(json);
    }
    json_array_end(json);
}

/* Appends the values of one point, a value for each knob. */
static enum err read_point(const struct json_place *at, const struct json_field *field,
                           const struct jv *point, struct sweep *sweep, size_t *found)
{
    enum err err = ERR_OK;
    if (!jv_is_array(point) || jv_count(point) != sweep->knob_count)
        return json_refuse(at, field->path, "a point must be an array of %zu values",
                           sweep->knob_count);
    for (const struct jv *item = jv_first(point); !err && item; item = jv_next(item))
        err = jv_text(item) ? sweep_word(&sweep->values, found, jv_text(item))
                            : json_refuse(at, field->path, "values must be text");
    return err;
}

static enum err read_points(const struct json_place *at, const struct json_field *field,
                            const struct jv *points, void *object)
{
    struct sweep *sweep = object;
    size_t found = 0;
    if (!jv_is_array(points) || jv_count(points) > field->most)
        return json_refuse(at, field->path, "must be an array of at most %zu points", field->most);
    enum err err = ERR_OK;
    for (const struct jv *point = jv_first(points); !err && point; point = jv_next(point))
        err = read_point(at, field, point, sweep, &found);
    if (err) {
        release_words(sweep->values, found);
        sweep->values = NULL;
        return err;
    }
    sweep->point_count = jv_count(points);
    return ERR_OK;
}

static void clear_points(const struct json_field *field, void *object)
{
    struct sweep *sweep = object;
    (void)field;
    sweep->values = NULL;
    sweep->point_count = 0;
}

static void release_points(const struct json_field *field, void *object)
{
    struct sweep *sweep = object;
    (void)field;
    release_words(sweep->values, sweep->point_count * sweep->knob_count);
}

static const struct json_custom POINTS = {
    .write = write_points, .read = read_points, .clear = clear_points, .release = release_points};

enum { WORDS = FIELD_REQUIRED | FIELD_ANY_TEXT };

static const struct json_field SETTINGS_FIELDS[] = {
    BIND_STRINGS(sweep, knobs, knob_count, "knobs", .flags = WORDS),
    BIND_CUSTOM(sweep, values, POINTS, "points", .flags = FIELD_REQUIRED, .most = POINTS_MAX),
    BIND_CUSTOM(sweep, profile, PROFILE, "points_are"),
    BIND_STRING(sweep, mode, "mode", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(sweep, time_exponent, "time_exponent"),
    BIND_NUMBER(sweep, min_mhz, "least_mhz"),
    BIND_NUMBERS(sweep, clocks, clock_count, "clocks"),
    BIND_FLAG(sweep, control, "control"),
    BIND_STRING(sweep, uncontrolled, "uncontrolled", .flags = FIELD_ANY_TEXT),
    BIND_STRINGS(sweep, options, option_count, "options", .flags = WORDS),
    BIND_STRINGS(sweep, command, word_count, "command", .flags = WORDS),
    BIND_CONSTANT("random", "order"),
    BIND_UNSIGNED(sweep, seed, "seed"),
    BIND_UNSIGNED(sweep, repeats, "repeats", .max = SWEEP_REPEATS_MAX),
    BIND_UNSIGNED(sweep, max_repeats, "most_repeats", .max = SWEEP_REPEATS_MAX),
    BIND_NUMBER(sweep, until_pct, "until_pct"),
    BIND_UNSIGNED(sweep, reruns, "reruns"),
    BIND_NUMBER(sweep, cooldown_s, "cooldown_s"),
    BIND_NUMBER(sweep, cooldown_c, "cooldown_c"),
    BIND_NUMBER(sweep, cooldown_min_c, "cooldown_min_c"),
    BIND_NUMBER(sweep, cooldown_limit_s, "cooldown_limit_s"),
    {0},
};

#define ATTEMPT_KEYS                                                                               \
    BIND_ORDINAL(sweep_attempt, point, "point"),                                                   \
        BIND_UNSIGNED(sweep_attempt, repeat, "repeat", .min = 1, .max = 1e6)

/* The values of the knobs are between these two. */
static const struct json_field POINT_FIELDS[] = {
    BIND_CONSTANT(KIND_POINT, "kind"), ATTEMPT_KEYS, {0}};
static const struct json_field ATTEMPT_FIELDS[] = {
    BIND_STRING(sweep_attempt, path, "run"),
    BIND_INT(sweep_attempt, exit_code, "exit_code"),
    BIND_STRING(sweep_attempt, flags, "flags"),
    BIND_STRING(sweep_attempt, node, "node"),
    BIND_STRING(sweep_attempt, gpus, "gpu_uuids"),
    BIND_NUMBER(sweep_attempt, waited_s, "waited_s"),
    BIND_NUMBER(sweep_attempt, wall_s, "wall_s"),
    BIND_NUMBER(sweep_attempt, seconds, "seconds"),
    BIND_NUMBER(sweep_attempt, joules, "joules"),
    BIND_NUMBER(sweep_attempt, plus_minus, "plus_minus"),
    BIND_NUMBER(sweep_attempt, statistical, "plus_minus_statistical"),
    BIND_STRING(sweep_attempt, method, "method"),
    BIND_STRING(sweep_attempt, source, "source"),
    BIND_NUMBER(sweep_attempt, coverage, "coverage"),
    {0},
};

static const struct json_field RETRY_FIELDS[] = {
    BIND_CONSTANT(KIND_RETRY, "kind"), ATTEMPT_KEYS, {0}};

static const struct json_field REPEATS_FIELDS[] = {
    BIND_CONSTANT(KIND_REPEATS, "kind"),
    BIND_UNSIGNED(sweep, repeats, "repeats", .max = SWEEP_REPEATS_MAX),
    {0},
};

struct added {
    char **values;
    size_t count;
};

static const struct json_field ADDED_FIELDS[] = {
    BIND_CONSTANT(KIND_ADDED, "kind"),
    BIND_STRINGS(added, values, count, "values", .flags = WORDS),
    {0},
};

static const struct json_field END_FIELDS[] = {
    BIND_CONSTANT(KIND_END, "kind"), BIND_CONSTANT("completed", "state"), {0}};

static void put_line(const struct json_field *fields, const void *object, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_fields_write_object(&json, NULL, fields, object);
}

/* ---- memory ---- */

void sweep_attempt_release(struct sweep_attempt *attempt)
{
    json_fields_release(ATTEMPT_FIELDS, attempt);
}

void sweep_release(struct sweep *sweep)
{
    json_fields_release(SETTINGS_FIELDS, sweep);
    for (size_t i = 0; i < sweep->count; i++)
        sweep_attempt_release(&sweep->attempts[i]);
    free(sweep->attempts);
    free(sweep->expected_s);
    *sweep = (struct sweep){0};
}

/* Takes ownership of the attempt's strings. */
static enum err keep_attempt(struct sweep *sweep, const struct sweep_attempt *attempt)
{
    struct sweep_attempt mine = *attempt;
    mine.tries = 1;
    for (size_t i = 0; i < sweep->count; i++) {
        struct sweep_attempt *before = &sweep->attempts[i];
        if (before->point != mine.point || before->repeat != mine.repeat)
            continue;
        mine.tries = before->tries + 1;
        sweep_attempt_release(before);
        *before = mine;
        return ERR_OK;
    }
    struct sweep_attempt *attempts =
        grow(sweep->attempts, &sweep->capacity, sweep->count, sizeof *attempts);
    if (!attempts) {
        sweep_attempt_release(&mine);
        return ERR_NO_MEMORY;
    }
    sweep->attempts = attempts;
    attempts[sweep->count++] = mine;
    return ERR_OK;
}

bool sweep_is_rejected(const struct sweep_attempt *attempt)
{
    static const char *const FLAGS[] = {"throttled", "off_target_clock", "gpu_lost"};
    const char *rest = attempt->flags;
    char flag[64];
    while (rest && *rest && str_next_item(&rest, flag, sizeof flag))
        for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
            if (strcmp(flag, FLAGS[i]) == 0)
                return true;
    return false;
}

/* ---- paths ---- */

bool sweep_is(const char *directory)
{
    char path[FILE_PATH_MAX];
    enum run_dir_state state;
    return run_has_directory(directory) && run_dir_inspect(directory, &state, NULL) == ERR_OK &&
           state == RUN_DIR_HAS_RUN &&
           run_path_file(directory, RUN_FILE_RECORDS, path, sizeof path) &&
           run_has_regular(path) && /* not a FIFO, which would block */
           journal_facts(path).kind == RUN_KIND_SWEEP;
}

bool sweep_folder(const char *directory, size_t point, unsigned repeat, char *to, size_t size)
{
    return str_format(to, size, "%s/points/p%03zu_r%u", directory, point + 1, repeat);
}

bool sweep_log(const char *folder, char *to, size_t size)
{
    return str_format(to, size, "%s/output.log", folder);
}

void sweep_setting(const struct sweep *sweep, size_t point, struct text *out)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        text_addf(out, "%s%s=%s", k ? ", " : "", sweep->knobs[k],
                  sweep->values[point * sweep->knob_count + k]);
}

bool sweep_knob_is_gpu(const char *name)
{
    return strcmp(name, "gpu-clock") == 0 || strcmp(name, "mem-clock") == 0 ||
           strcmp(name, "power-limit") == 0;
}

bool sweep_same_point(const struct sweep *sweep, size_t a, size_t b)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (strcmp(sweep->values[a * sweep->knob_count + k],
                   sweep->values[b * sweep->knob_count + k]) != 0)
            return false;
    return true;
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
    enum err err = jv_available(why); /* without JSON, neither it nor its runs could be read */
    if (err)
        return err;
    struct jv *settings = json_fields_value(SETTINGS_FIELDS, sweep);
    subject_of(sweep, &subject);
    const struct journal_header header = {
        .kind = RUN_KIND_SWEEP, .start = 1, .started_at = sweep->started_at, .settings = settings};
    err = !settings || subject.failed
              ? err_no_memory(why)
              : run_writer_open(writer, parent, text_get(&subject), &header, why);
    if (!err && journal_sync(&writer->records, why)) {
        run_writer_close(writer);
        err = ERR_IO;
    }
    jv_free(settings);
    text_release(&subject);
    return err;
}

static void put_attempt(const struct sweep *sweep, const struct sweep_attempt *attempt,
                        struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_fields_write(&json, POINT_FIELDS, attempt);
    json_object(&json, "settings");
    for (size_t k = 0; k < sweep->knob_count; k++)
        json_string(&json, sweep->knobs[k], sweep->values[attempt->point * sweep->knob_count + k]);
    json_object_end(&json);
    json_fields_write(&json, ATTEMPT_FIELDS, attempt);
    json_object_end(&json);
}

static enum err append_line(struct run_writer *writer, const struct text *line, struct error *why)
{
    enum err err = line->failed ? err_no_memory(why) : journal_append(&writer->records, line, why);
    return err ? err : journal_sync(&writer->records, why);
}

/* In the folder of the attempt, until sweep_collect has added it to the journal. */
static const char STATE_FILE[] = "attempt.json";

/* An attempt that will be repeated has not ended. */
static enum err put_state(const struct sweep *sweep, const char *directory, size_t point,
                          unsigned repeat, const struct text *line, struct error *why)
{
    char folder[FILE_PATH_MAX];
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *made = &sweep->attempts[i];
        if (made->point == point && made->repeat == repeat && sweep_is_rejected(made) &&
            made->tries <= sweep->reruns)
            return ERR_OK;
    }
    return sweep_folder(directory, point, repeat, folder, sizeof folder)
               ? run_dir_put(folder, STATE_FILE, line, why)
               : err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
}

enum err sweep_add(struct sweep *sweep, struct run_writer *writer,
                   const struct sweep_attempt *attempt, struct error *why)
{
    struct text line = {0};
    size_t point = attempt->point;
    unsigned repeat = attempt->repeat;
    put_attempt(sweep, attempt, &line);
    enum err err = keep_attempt(sweep, attempt) ? err_no_memory(why) : ERR_OK;
    if (!err)
        err = sweep->only ? put_state(sweep, writer->directory, point, repeat, &line, why)
                          : append_line(writer, &line, why);
    text_release(&line);
    return err;
}

/* Adds a point, with copies of the words. */
static enum err keep_point(struct sweep *sweep, char *const *values)
{
    size_t count = sweep->point_count * sweep->knob_count;
    enum err err = sweep->point_count < POINTS_MAX ? ERR_OK : ERR_BAD_VALUE;
    for (size_t k = 0; !err && k < sweep->knob_count; k++)
        err = sweep_word(&sweep->values, &count, values[k]);
    for (size_t i = sweep->point_count * sweep->knob_count; err && i < count; i++)
        free(sweep->values[i]);
    sweep->point_count += !err;
    return err;
}

enum err sweep_extend(struct sweep *sweep, struct run_writer *writer, char *const *values,
                      struct error *why)
{
    const struct added added = {(char **)values, sweep->knob_count};
    struct text line = {0};
    enum err err = err_explain(why, keep_point(sweep, values));
    if (err)
        return err;
    put_line(ADDED_FIELDS, &added, &line);
    err = append_line(writer, &line, why);
    text_release(&line);
    return err;
}

/* A sum of energies of different methods has the weakest method. */
static bool is_weaker(const char *method, const char *than)
{
    return strcmp(method, "estimated") == 0 ||
           (strcmp(method, "integral") == 0 && strcmp(than, "counter") == 0);
}

static void add_evidence(const struct sweep_attempt *attempt, struct record_energy *sum)
{
    if (!is_known(attempt->joules) || !attempt->method)
        return;
    if (sum->method && strcmp(sum->method, attempt->method) != 0)
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
    put_line(END_FIELDS, sweep, &line);
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

static enum err read_header(const struct jv *line, struct sweep *sweep, struct error *why)
{
    struct error reason = {0};
    sweep->starts++;
    if (sweep->starts > 1) /* a resumed sweep has the settings of its first start */
        return ERR_OK;
    sweep->started_at = jv_number(jv_get(line, "started_at"));
    enum err err =
        json_fields_read_strict(jv_get(line, "settings"), SETTINGS_FIELDS, sweep, NULL, &reason);
    if (err == ERR_BAD_VALUE)
        err_set(why, err, "the header of the sweep cannot be read: %s", reason.text);
    return err || sweep->mode ? err : str_set(&sweep->mode, "custom");
}

/* Ignores lines that are not attempts at a point of this sweep. */
static enum err read_attempt(const struct jv *line, struct sweep *sweep, struct error *why)
{
    struct sweep_attempt attempt = {.point = SIZE_MAX};
    json_fields_clear(ATTEMPT_FIELDS, &attempt);
    attempt.exit_code = INT_MIN;
    enum err err = json_fields_read(line, POINT_FIELDS, &attempt);
    if (!err)
        err = json_fields_read(line, ATTEMPT_FIELDS, &attempt);
    bool is_attempt =
        attempt.point < sweep->point_count && attempt.repeat > 0 && attempt.exit_code != INT_MIN;
    if (!err && is_attempt && attempt.path && !run_path_is_below(attempt.path))
        err = err_set(why, ERR_BAD_VALUE,
                      "the run '%.100s' of setting %zu is not below the directory of the sweep: "
                      "remove that line",
                      plain_text(attempt.path).text, attempt.point + 1);
    if (!err && is_attempt && !attempt.flags)
        err = str_set(&attempt.flags, "");
    if (!err && is_attempt)
        return keep_attempt(sweep, &attempt);
    sweep_attempt_release(&attempt);
    return err;
}

static void drop_attempt(struct sweep *sweep, size_t i)
{
    sweep_attempt_release(&sweep->attempts[i]);
    sweep->count--;
    memmove(&sweep->attempts[i], &sweep->attempts[i + 1],
            (sweep->count - i) * sizeof *sweep->attempts);
}

static enum err read_retry(const struct jv *line, struct sweep *sweep)
{
    struct sweep_attempt retry = {.point = SIZE_MAX};
    enum err err = json_fields_read(line, RETRY_FIELDS, &retry);
    for (size_t i = sweep->count; i-- > 0;)
        if (sweep->attempts[i].point == retry.point && sweep->attempts[i].repeat == retry.repeat)
            drop_attempt(sweep, i);
    sweep->ended = false;
    return err;
}

static void set_repeats(struct sweep *sweep, unsigned repeats)
{
    sweep->repeats = repeats;
    if (sweep->max_repeats < repeats)
        sweep->max_repeats = repeats;
    sweep->ended = false;
}

static enum err read_repeats(const struct jv *line, struct sweep *sweep)
{
    struct sweep more = {0};
    enum err err = json_fields_read(line, REPEATS_FIELDS, &more);
    if (more.repeats > sweep->repeats)
        set_repeats(sweep, more.repeats);
    return err;
}

static enum err read_added(const struct jv *line, struct sweep *sweep, struct error *why)
{
    struct added added;
    struct error reason = {0};
    enum err err = json_fields_read_strict(line, ADDED_FIELDS, &added, NULL, &reason);
    if (!err)
        err = added.count == sweep->knob_count ? keep_point(sweep, added.values) : ERR_BAD_VALUE;
    if (err == ERR_BAD_VALUE)
        err_set(why, err, "an added point cannot be read: %s",
                reason.text[0] ? reason.text : "it must have one value for each knob");
    json_fields_release(ADDED_FIELDS, &added);
    return err;
}

struct loading {
    struct sweep *sweep;
    struct error why;
};

static enum err take_line(void *context, const struct jv *line)
{
    struct loading *loading = context;
    struct sweep *sweep = loading->sweep;
    const char *kind = text_or_empty(jv_text(jv_get(line, "kind")));
    if (strcmp(kind, KIND_RETRY) == 0)
        return read_retry(line, sweep);
    if (strcmp(kind, KIND_REPEATS) == 0)
        return read_repeats(line, sweep);
    if (strcmp(kind, KIND_RUN) == 0)
        return read_header(line, sweep, &loading->why);
    if (strcmp(kind, KIND_POINT) == 0)
        return read_attempt(line, sweep, &loading->why);
    if (strcmp(kind, KIND_ADDED) == 0)
        return read_added(line, sweep, &loading->why);
    if (strcmp(kind, KIND_END) == 0)
        sweep->ended = true;
    return ERR_OK;
}

enum err sweep_load(const char *directory, struct sweep *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    uint64_t damaged;
    *out = (struct sweep){0};
    enum err err = jv_available(why);
    if (err)
        return err;
    if (!sweep_is(directory) || !run_path_file(directory, RUN_FILE_RECORDS, path, sizeof path))
        return err_set(why, ERR_NOT_FOUND, "%s holds no sweep", directory);
    struct loading loading = {.sweep = out};
    err = journal_read(path, take_line, &loading, &damaged, why);
    if (!err && (!out->point_count || !out->knob_count || !out->word_count))
        err = ERR_BAD_VALUE;
    if (loading.why.text[0])
        err_set(why, err, "%s: %s", path, loading.why.text);
    else if (err == ERR_BAD_VALUE)
        err_set(why, err, "%s: the header of the sweep cannot be read", path);
    if (err)
        sweep_release(out);
    return err;
}

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
    char directory[FILE_PATH_MAX];
    struct sweep sweep;
    struct text setting = {0};
    to[0] = '\0';
    if (!length || !str_format(directory, sizeof directory, "%.*s", (int)length, run) ||
        sweep_load(directory, &sweep, NULL))
        return;
    unsigned long point = strtoul(run + length + sizeof POINTS_FOLDER - 1, NULL, 10);
    if (point >= 1 && point <= sweep.point_count)
        sweep_setting(&sweep, point - 1, &setting);
    (void)str_copy(to, size, text_get(&setting));
    text_release(&setting);
    sweep_release(&sweep);
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

/* ---- one process for each point ---- */

/* Whether the attempt has ended: its state file is then read like a line of the journal. */
static enum err read_state(struct sweep *sweep, const char *directory, size_t point,
                           unsigned repeat, bool *found, struct error *why)
{
    char path[FILE_PATH_MAX];
    struct jv *line = NULL;
    struct error reason = {0};
    size_t before = sweep->count, length = 0;
    *found = false;
    if (sweep_folder(directory, point, repeat, path, sizeof path))
        length = strlen(path);
    if (!length || !str_format(path + length, sizeof path - length, "/%s", STATE_FILE))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    if (!run_has_regular(path))
        return ERR_OK;
    enum err err = run_read_json(path, FILE_SMALL, &line, why);
    if (!err)
        err = read_attempt(line, sweep, &reason);
    if (err && reason.text[0])
        err_set(why, err, "%s: %s", path, reason.text);
    else if (err == ERR_NO_MEMORY)
        err_no_memory(why);
    if (!err && sweep->count > before) {
        const struct sweep_attempt *read = &sweep->attempts[before];
        *found = read->point == point && read->repeat == repeat;
        if (!*found)
            drop_attempt(sweep, before);
    }
    if (!err && !*found)
        err = err_set(why, ERR_BAD_VALUE, "%s is not of this attempt: delete it", path);
    jv_free(line);
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

/* For each point the first repeat without an attempt; NULL: out of memory. */
static unsigned *next_repeats(const struct sweep *sweep)
{
    unsigned *next = calloc(sweep->point_count, sizeof *next);
    for (size_t i = 0; next && i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->repeat > next[attempt->point])
            next[attempt->point] = attempt->repeat;
    }
    for (size_t p = 0; next && p < sweep->point_count; p++)
        next[p]++;
    return next;
}

enum err sweep_collect(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    size_t before = sweep->count;
    unsigned *next = next_repeats(sweep);
    enum err err = next ? ERR_OK : err_no_memory(why);
    for (size_t p = 0; !err && p < sweep->point_count; p++)
        err = read_states(sweep, writer->directory, p, next[p], why);
    for (size_t i = before; !err && i < sweep->count; i++) {
        struct text line = {0};
        put_attempt(sweep, &sweep->attempts[i], &line);
        err = append_line(writer, &line, why);
        text_release(&line);
    }
    free(next);
    return err;
}

enum err sweep_open_point(struct sweep *sweep, const char *directory, size_t point,
                          struct run_writer *writer, struct error *why)
{
    char folder[FILE_PATH_MAX];
    enum err err = sweep_load(directory, sweep, why);
    if (err)
        return err;
    *writer = (struct run_writer){.lock_fd = -1, .records = {.fd = -1}, .spans = {.fd = -1}};
    if (point >= sweep->point_count)
        err = err_set(why, ERR_USAGE, "--point %zu: the sweep has %zu settings", point + 1,
                      sweep->point_count);
    else if (!str_copy(writer->directory, sizeof writer->directory, directory) ||
             !sweep_folder(directory, point, 1, folder, sizeof folder))
        err = err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    if (!err)
        err = run_dir_make(folder, why);
    if (!err)
        err = run_dir_lock(folder, &writer->lock_fd, why);
    if (!err) {
        unsigned *next = next_repeats(sweep); /* after the lock: another may have just ended */
        sweep->only = point + 1;
        err = next ? read_states(sweep, directory, point, next[point], why) : err_no_memory(why);
        free(next);
    }
    if (err) {
        run_writer_close(writer);
        sweep_release(sweep);
    }
    return err;
}

enum err sweep_retry_failed(struct sweep *sweep, struct run_writer *writer, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = sweep->count; !err && i-- > 0;) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        char folder[FILE_PATH_MAX], path[FILE_PATH_MAX];
        struct text line = {0};
        if (!attempt->exit_code)
            continue;
        if (!writer) {
            drop_attempt(sweep, i);
            continue;
        }
        put_line(RETRY_FIELDS, attempt, &line);
        err = append_line(writer, &line, why);
        if (!err &&
            sweep_folder(writer->directory, attempt->point, attempt->repeat, folder,
                         sizeof folder) &&
            str_format(path, sizeof path, "%s/%s", folder, STATE_FILE))
            unlink(path);
        if (!err)
            drop_attempt(sweep, i);
        text_release(&line);
    }
    return err;
}

enum err sweep_repeat_more(struct sweep *sweep, unsigned repeats, struct run_writer *writer,
                           struct error *why)
{
    const struct sweep more = {.repeats = repeats};
    struct text line = {0};
    enum err err = ERR_OK;
    if (repeats <= sweep->repeats)
        return err_set(why, ERR_USAGE,
                       "--repeat %u: the sweep already measures each setting %u times: give a "
                       "larger number, or drop it",
                       repeats, sweep->repeats);
    put_line(REPEATS_FIELDS, &more, &line);
    if (writer)
        err = append_line(writer, &line, why);
    text_release(&line);
    if (!err)
        set_repeats(sweep, repeats);
    return err;
}

/* ---- figures ---- */

/* The gain error of a sensor is the same at every point: repeats do not reduce it, and it cancels in differences. */
static double common_part(const struct sweep_attempt *attempt)
{
    double square = attempt->plus_minus * attempt->plus_minus;
    if (!is_known(attempt->statistical))
        return attempt->plus_minus;
    return sqrt(fmax(square - attempt->statistical * attempt->statistical, 0));
}

struct sweep_figures sweep_figures(const struct sweep *sweep, size_t point)
{
    struct sweep_figures figures = {0};
    struct online joules = {0}, time = {0}, common = {0}, own = {0};
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->point != point)
            continue;
        figures.failed += attempt->exit_code != 0;
        if (attempt->exit_code || sweep_is_rejected(attempt))
            continue;
        figures.measured++;
        online_add(&joules, attempt->joules);
        online_add(&time, attempt->seconds);
        online_add(&common, common_part(attempt));
        online_add(&own, attempt->statistical);
    }
    double error = online_standard_error(&joules);
    figures.joules = online_mean(&joules);
    figures.independent = is_known(error) ? error : online_mean(&own);
    figures.plus_minus =
        hypot(online_mean(&common), is_known(figures.independent) ? figures.independent : 0);
    figures.seconds = online_mean(&time);
    figures.seconds_error = online_standard_error(&time);
    figures.error_pct = figures.joules > 0 ? 100 * error / figures.joules : UNKNOWN;
    return figures;
}
