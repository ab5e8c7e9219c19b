/* One table per kind of line serves its writer and its reader. */
#include "rundir/sweep_lines.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"

/* A header with more points is invalid: such a sweep would take years. */
enum { POINTS_MAX = 100000 };

/* ---- the tables ---- */

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
    ((struct sweep *)object)->profile = kind && str_equal(kind, "profile");
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
            json_string(json, NULL, sweep_point(sweep, p)[k].text);
        json_array_end(json);
    }
    json_array_end(json);
}

/* Appends a point, a value for each knob. */
static enum err read_point(const struct json_place *at, const struct json_field *field,
                           const struct jv *point, struct sweep *sweep, const char **values)
{
    size_t found = 0;
    if (!jv_is_array(point) || jv_count(point) != sweep->knob_count)
        return json_refuse(at, field->path, "a point must be an array of %zu values",
                           sweep->knob_count);
    JV_EACH (item, jv_first(point))
        if (!(values[found++] = jv_text(item)))
            return json_refuse(at, field->path, "values must be text");
    sweep_add_point(sweep, values);
    return ERR_OK;
}

static enum err read_points(const struct json_place *at, const struct json_field *field,
                            const struct jv *points, void *object)
{
    struct sweep *sweep = object;
    enum err err = ERR_OK;
    if (!jv_is_array(points) || jv_count(points) > field->most)
        return json_refuse(at, field->path, "must be an array of at most %zu points", field->most);
    const char **values = xcalloc(sweep->knob_count, sizeof *values);
    for (const struct jv *point = jv_first(points); !err && point; point = jv_next(point))
        err = read_point(at, field, point, sweep, values);
    free(values);
    return err;
}

static void clear_points(const struct json_field *field, void *object)
{
    struct sweep *sweep = object;
    (void)field;
    sweep->settings = NULL;
    sweep->point_count = sweep->point_capacity = 0;
}

static void release_points(const struct json_field *field, void *object)
{
    struct sweep *sweep = object;
    (void)field;
    for (size_t i = 0; i < sweep->point_count * sweep->knob_count; i++)
        setting_release(&sweep->settings[i]);
    free(sweep->settings);
}

static const struct json_custom POINTS = {
    .write = write_points, .read = read_points, .clear = clear_points, .release = release_points};

enum { WORDS = FIELD_REQUIRED | FIELD_ANY_TEXT };

static const struct json_field SETTINGS_FIELDS[] = {
    BIND_STRINGS(sweep, knobs, knob_count, "knobs", .flags = WORDS),
    BIND_CUSTOM(sweep, settings, POINTS, "points", .flags = FIELD_REQUIRED, .most = POINTS_MAX),
    BIND_CUSTOM(sweep, profile, PROFILE, "kind", .former = "points_are"),
    BIND_STRING(sweep, mode, "mode", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(sweep, time_exponent, "time_exponent"),
    BIND_NUMBER(sweep, min_mhz, "min_mhz", .former = "least_mhz"),
    BIND_NUMBERS(sweep, clocks, clock_count, "clocks"),
    BIND_FLAG(sweep, control, "control"),
    BIND_STRING(sweep, uncontrolled, "uncontrolled", .flags = FIELD_ANY_TEXT),
    BIND_STRINGS(sweep, options, option_count, "options", .flags = WORDS),
    BIND_STRINGS(sweep, command, word_count, "command", .flags = WORDS),
    BIND_CONSTANT("random", "order"),
    BIND_UNSIGNED(sweep, seed, "seed"),
    BIND_UNSIGNED(sweep, repeats, "repeats", .max = SWEEP_REPEATS_MAX),
    BIND_UNSIGNED(sweep, max_repeats, "max_repeats", .max = SWEEP_REPEATS_MAX,
                  .former = "most_repeats"),
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

void sweep_word(char ***words, size_t *count, const char *word)
{
    *words = xreallocarray(*words, *count + 2, sizeof **words);
    (*words)[(*count)++] = xstrdup(word);
    (*words)[*count] = NULL;
}

void sweep_add_point(struct sweep *sweep, const char *const *values)
{
    size_t width = sweep->knob_count;
    sweep->settings = xgrow(sweep->settings, &sweep->point_capacity, sweep->point_count,
                            width * sizeof *sweep->settings);
    for (size_t k = 0; k < width; k++)
        sweep->settings[sweep->point_count * width + k] = setting_parse(sweep->knobs[k], values[k]);
    sweep->point_count++;
}

void sweep_keep_attempt(struct sweep *sweep, const struct sweep_attempt *attempt)
{
    struct sweep_attempt mine = *attempt;
    mine.tries = 1;
    mine.flag_bits = attempt_flags_parse(mine.flags);
    for (size_t i = 0; i < sweep->count; i++) {
        struct sweep_attempt *before = &sweep->attempts[i];
        if (before->point != mine.point || before->repeat != mine.repeat)
            continue;
        mine.tries = before->tries + 1;
        sweep_attempt_release(before);
        *before = mine;
        return;
    }
    *XADD(sweep->attempts, sweep->count, sweep->capacity) = mine;
}

void sweep_drop_attempt(struct sweep *sweep, size_t i)
{
    sweep_attempt_release(&sweep->attempts[i]);
    sweep->count--;
    memmove(&sweep->attempts[i], &sweep->attempts[i + 1],
            (sweep->count - i) * sizeof *sweep->attempts);
}

void sweep_set_repeats(struct sweep *sweep, unsigned repeats)
{
    sweep->repeats = repeats;
    if (sweep->max_repeats < repeats)
        sweep->max_repeats = repeats;
    sweep->ended = false;
}

/* ---- writing ---- */

struct jv *sweep_settings_value(const struct sweep *sweep)
{
    return json_fields_value(SETTINGS_FIELDS, sweep);
}

static void put_line(const struct json_field *fields, const void *object, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_fields_write_object(&json, NULL, fields, object);
}

void sweep_put_attempt(const struct sweep *sweep, const struct sweep_attempt *attempt,
                       struct text *out)
{
    const struct setting *settings = sweep_point(sweep, attempt->point);
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_fields_write(&json, POINT_FIELDS, attempt);
    json_object(&json, "settings");
    for (size_t k = 0; k < sweep->knob_count; k++)
        json_string(&json, settings[k].knob, settings[k].text);
    json_object_end(&json);
    json_fields_write(&json, ATTEMPT_FIELDS, attempt);
    json_object_end(&json);
}

void sweep_put_added(const char *const *values, size_t count, struct text *out)
{
    const struct added added = {(char **)values, count};
    put_line(ADDED_FIELDS, &added, out);
}

void sweep_put_retry(const struct sweep_attempt *attempt, struct text *out)
{
    put_line(RETRY_FIELDS, attempt, out);
}

void sweep_put_repeats(unsigned repeats, struct text *out)
{
    const struct sweep more = {.repeats = repeats};
    put_line(REPEATS_FIELDS, &more, out);
}

void sweep_put_end(struct text *out)
{
    put_line(END_FIELDS, NULL, out);
}

enum err sweep_append(struct run_writer *writer, const struct text *line, struct error *why)
{
    enum err err = journal_append(&writer->records, line, why);
    return err ? err : journal_sync(&writer->records, why);
}

/* ---- reading ---- */

static enum err read_header(const struct jv *line, struct sweep *sweep, struct error *why)
{
    struct error reason = {0};
    sweep->starts++;
    if (sweep->starts > 1) /* a resumed sweep has the settings of its first start */
        return ERR_OK;
    sweep->started_at = jv_get_number(line, "started_at");
    enum err err =
        json_fields_read_strict(jv_get(line, "settings"), SETTINGS_FIELDS, sweep, NULL, &reason);
    if (err)
        return err_set(why, err, "the header of the sweep cannot be read: %s", reason.text);
    if (!sweep->mode)
        sweep->mode = xstrdup("custom");
    return ERR_OK;
}

enum err sweep_take_attempt(struct sweep *sweep, const struct jv *line, struct error *why)
{
    struct sweep_attempt attempt = {.point = SIZE_MAX};
    json_fields_clear(ATTEMPT_FIELDS, &attempt);
    attempt.exit_code = INT_MIN;
    (void)json_fields_read(line, POINT_FIELDS, &attempt);
    (void)json_fields_read(line, ATTEMPT_FIELDS, &attempt);
    bool is_attempt =
        attempt.point < sweep->point_count && attempt.repeat > 0 && attempt.exit_code != INT_MIN;
    enum err err = ERR_OK;
    if (is_attempt && attempt.path && !run_path_is_below(attempt.path))
        err = err_set(why, ERR_BAD_VALUE,
                      "the run '%.100s' of setting %zu is not below the directory of the sweep: "
                      "remove that line",
                      plain_text(attempt.path).text, attempt.point + 1);
    if (err || !is_attempt) {
        sweep_attempt_release(&attempt);
        return err;
    }
    if (!attempt.flags)
        attempt.flags = xstrdup("");
    sweep_keep_attempt(sweep, &attempt);
    return ERR_OK;
}

static void read_retry(const struct jv *line, struct sweep *sweep)
{
    struct sweep_attempt retry = {.point = SIZE_MAX};
    (void)json_fields_read(line, RETRY_FIELDS, &retry);
    for (size_t i = sweep->count; i-- > 0;)
        if (sweep->attempts[i].point == retry.point && sweep->attempts[i].repeat == retry.repeat)
            sweep_drop_attempt(sweep, i);
    sweep->ended = false;
}

static void read_repeats(const struct jv *line, struct sweep *sweep)
{
    struct sweep more = {0};
    (void)json_fields_read(line, REPEATS_FIELDS, &more);
    if (more.repeats > sweep->repeats)
        sweep_set_repeats(sweep, more.repeats);
}

static enum err read_added(const struct jv *line, struct sweep *sweep, struct error *why)
{
    struct added added;
    struct error reason = {0};
    enum err err = json_fields_read_strict(line, ADDED_FIELDS, &added, NULL, &reason);
    if (!err && added.count != sweep->knob_count)
        err = err_set(&reason, ERR_BAD_VALUE, "it must have one value for each knob");
    if (!err && sweep->point_count >= POINTS_MAX)
        err = err_set(&reason, ERR_BAD_VALUE, "there are more than %d points", POINTS_MAX);
    if (err)
        err_set(why, err, "an added point cannot be read: %s", reason.text);
    else
        sweep_add_point(sweep, (const char *const *)added.values);
    json_fields_release(ADDED_FIELDS, &added);
    return err;
}

enum err sweep_take_line(struct sweep *sweep, const struct jv *line, struct error *why)
{
    const char *kind = text_or_empty(jv_get_text(line, "kind"));
    if (str_equal(kind, KIND_RUN))
        return read_header(line, sweep, why);
    if (str_equal(kind, KIND_POINT))
        return sweep_take_attempt(sweep, line, why);
    if (str_equal(kind, KIND_ADDED))
        return read_added(line, sweep, why);
    if (str_equal(kind, KIND_RETRY))
        read_retry(line, sweep);
    else if (str_equal(kind, KIND_REPEATS))
        read_repeats(line, sweep);
    else if (str_equal(kind, KIND_END))
        sweep->ended = true;
    return ERR_OK;
}
