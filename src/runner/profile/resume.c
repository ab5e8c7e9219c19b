#include "runner/profile/resume.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "port/json_read.h"
#include "runner/profile/energy_read.h"
#include "runner/profile/start_sums.h"
#include "rundir/journal.h"

struct resume resume_nothing(void)
{
    return (struct resume){
        .energy = energy_unknown("no earlier start measured anything"),
        .accounted_joules = UNKNOWN,
        .idle_joules = UNKNOWN,
        .unattributed_joules = UNKNOWN,
        .requests_joules = UNKNOWN,
    };
}

static void put_params(struct json *json, const char *key, const struct params *params)
{
    json_object(json, key);
    for (size_t i = 0; i < params->count; i++)
        json_string(json, params->items[i].key, params->items[i].value);
    json_object_end(json);
}

void resume_settings(const struct profile_options *options, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_string(&json, "client", options->client);
    json_string(&json, "model", options->model);
    json_string(&json, "dataset", options->dataset);
    json_string(&json, "system", options->system);
    json_string(&json, "template", options->template_text);
    json_integer(&json, "repeat", options->repeat);
    put_params(&json, "dataset_params", &options->dataset_params);
    put_params(&json, "request_params", &options->request_params);
    json_object_end(&json);
}

struct reading {
    const struct profile_options *options;
    struct resume *resume;
    struct jv *settings; /* of this start */
    bool under_way;      /* a start has begun and did not end yet */
    bool judging;        /* and so its judge */
    struct energy spent; /* by its requests */
    struct error why;
};

static enum err same_settings(struct reading *reading, const struct jv *line)
{
    const struct jv *then = jv_get(line, "settings");
    for (const struct jv *now = jv_first(reading->settings); now; now = jv_next(now)) {
        struct text a = {0}, b = {0};
        const struct jv *earlier = jv_get(then, jv_key(now));
        enum err err = jv_print(now, &a);
        if (!err && earlier)
            err = jv_print(earlier, &b);
        if (!err && strcmp(text_get(&a), earlier ? text_get(&b) : "null") != 0)
            err = err_set(&reading->why, ERR_USAGE,
                          "cannot resume: %s was %s and is now %s; --overwrite starts afresh",
                          jv_key(now), earlier ? text_get(&b) : "not set", text_get(&a));
        text_release(&a);
        text_release(&b);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err take_query(struct reading *reading, const struct jv *line)
{
    uint64_t index;
    unsigned repeat;
    const char *status = jv_text(jv_path(line, "ipw.status"));
    if (!status || strcmp(status, "completed") != 0 ||
        !query_key_parse(jv_text(jv_get(line, "key")), &index, &repeat) ||
        repeat >= reading->options->repeat)
        return ERR_OK;
    return done_add(&reading->resume->done, index, repeat, reading->options->repeat);
}

static void take_attempt(struct reading *reading, const struct jv *value)
{
    struct energy energy;
    energy_from_json(value, &energy);
    energy_add(&reading->spent, &energy);
    joules_add_known(&reading->resume->requests_joules, energy.joules);
}

static void take_energy(struct reading *reading, const struct jv *line)
{
    const struct jv *own = jv_get(line, "ipw");
    take_attempt(reading, jv_get(own, "energy"));
    for (const struct jv *one = jv_first(jv_get(own, "failed_attempts")); one; one = jv_next(one))
        take_attempt(reading, one);
}

static void take_end(struct reading *reading, const struct jv *line)
{
    struct resume *resume = reading->resume;
    struct energy energy;
    double joules = jv_number(jv_get(line, "busy_joules"));
    double busy_s = jv_number(jv_get(line, "busy_s"));
    double covered_s = jv_number(jv_get(line, "busy_covered_s"));
    energy_from_json(jv_get(line, "energy"), &energy);
    reading->under_way = false;
    resume->ended++;
    resume->busy_s += busy_s;
    if (energy.method == METHOD_NONE) {
        resume->unmeasured += busy_s > 0;
        return;
    }
    energy_add(&resume->energy, &energy);
    if (is_known(joules)) {
        resume->busy.joules += joules;
        resume->busy.seconds += is_known(covered_s) ? covered_s : busy_s; /* older ones lack it */
        resume->busy.plus_minus += joules * energy.plus_minus / energy.joules;
    }
    joules_add_known(&resume->accounted_joules, jv_number(jv_get(line, "accounted_joules")));
    joules_add_known(&resume->idle_joules, jv_number(jv_get(line, "idle_joules")));
    joules_add_known(&resume->unattributed_joules, jv_number(jv_get(line, "unattributed_joules")));
}

/* Of a start that was killed the requests' energies are all there is. */
static void close_start(struct reading *reading)
{
    if (reading->under_way) {
        energy_add(&reading->resume->energy, &reading->spent);
        joules_add_known(&reading->resume->accounted_joules, reading->spent.joules);
    }
    reading->under_way = false;
    reading->spent = energy_unknown("");
}

static enum err take_line(void *context, const struct jv *line)
{
    struct reading *reading = context;
    const char *kind = jv_text(jv_get(line, "kind"));
    if (!kind)
        return ERR_OK;
    if (strcmp(kind, "run") == 0) {
        close_start(reading);
        reading->under_way = true;
        reading->judging = false;
        if (reading->resume->starts++ == 0)
            reading->resume->started_at = jv_number(jv_get(line, "started_at"));
        return same_settings(reading, line);
    }
    if (strcmp(kind, "query") == 0)
        return take_query(reading, line);
    if (strcmp(kind, "end") == 0)
        take_end(reading, line);
    if (strcmp(kind, "energy") == 0)
        take_energy(reading, line);
    if (strcmp(kind, "judge") == 0 || strcmp(kind, "judged") == 0)
        reading->judging = kind[5] == '\0';
    return ERR_OK;
}

enum err resume_read(const char *journal, const struct profile_options *options, struct resume *out,
                     struct error *why)
{
    struct reading reading = {.options = options, .resume = out, .spent = energy_unknown("")};
    struct text settings = {0};
    uint64_t damaged;
    *out = resume_nothing();
    resume_settings(options, &settings);
    enum err err = settings.failed
                       ? err_set(why, ERR_NO_MEMORY, "out of memory")
                       : jv_parse(settings.bytes, settings.length, &reading.settings, why);
    if (!err)
        err = journal_read(journal, take_line, &reading, &damaged, why);
    out->unsettled = reading.under_way || reading.judging;
    close_start(&reading);
    if (reading.why.text[0])
        *why = reading.why;
    jv_free(reading.settings);
    text_release(&settings);
    if (err)
        resume_release(out);
    return err;
}

void resume_release(struct resume *resume)
{
    done_release(&resume->done);
}
