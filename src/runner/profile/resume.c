/* Reads the journal once, line by line.  A start lasts from its run line to its end line, or to the next run
 * line when it was killed. */
#include "runner/profile/resume.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/json_read.h"
#include "port/url.h"
#include "runner/profile/records.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"
#include "rundir/record.h"

struct run_energy run_energy_unknown(const char *note)
{
    return (struct run_energy){
        .energy = energy_unknown(note),
        .accounted_joules = UNKNOWN,
        .idle_joules = UNKNOWN,
        .unattributed_joules = UNKNOWN,
        .requests_joules = UNKNOWN,
        .busy.joules = UNKNOWN,
    };
}

struct resume resume_nothing(void)
{
    return (struct resume){.spent = run_energy_unknown("no earlier start measured anything")};
}

void resume_put_params(struct json *json, const char *key, const struct params *params)
{
    json_object(json, key);
    for (size_t i = 0; i < params->count; i++) {
        const struct param *item = &params->items[i];
        char address[1024];
        if (str_starts(item->key, "header.")) {
            json_string(json, item->key, "(not kept)"); /* may hold an API key */
        } else if (strstr(item->value, "://")) {
            url_hide_login(item->value, address, sizeof address);
            json_string(json, item->key, address);
        } else {
            json_string(json, item->key, item->value);
        }
    }
    json_object_end(json);
}

/* Not in the journals of earlier versions. */
#define DATASET_HASH "dataset_hash"

void resume_settings(const struct profile_options *options, const char *dataset_hash,
                     struct text *out)
{
    struct json json;
    char shard[RUN_PART_MAX];
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_string(&json, "client", options->client);
    json_string(&json, "task", options->is_perplexity ? "perplexity" : NULL);
    json_string(&json, "model", options->model);
    json_string(&json, "dataset", options->dataset);
    json_string(&json, DATASET_HASH, dataset_hash[0] ? dataset_hash : NULL);
    json_string(&json, "system", options->system);
    json_string(&json, "template", options->template_text);
    if (options->agent)
        json_raw(&json, "agent", options->agent->settings);
    json_integer(&json, "repeat", options->repeat);
    run_part_name(&(struct run_part){options->shard, options->shards}, shard, sizeof shard);
    json_string(&json, RUN_PART_KEY, str_or_null(shard));
    resume_put_params(&json, "dataset_params", &options->dataset_params);
    resume_put_params(&json, "request_params", &options->request_params);
    json_object_end(&json);
    secret_hide_json(out); /* as the journal keeps them, to be compared with it */
}

/* Of a sum of joules, relative; what differs by less is the same. */
#define ROUNDING 1e-9

struct reading {
    struct resume *resume;
    const char *settings; /* of this start; NULL for whatever they are */
    bool in_start;        /* after a run line, before its end line */
    struct energy spent;  /* by the requests of this start */
    double journaled;     /* joules of those of them that are in its records */
    double busy_joules;   /* as its end line has them; UNKNOWN without one */
    struct early {        /* energies that stand before their query, or have none */
        uint64_t index;
        unsigned repeat;
        double joules;
    } *early;
    size_t early_count, early_capacity;
    struct error why;
};

static enum err differs(void *context, const char *key, const char *then, const char *now)
{
    struct reading *reading = context;
    bool is_hash = strcmp(key, DATASET_HASH) == 0;
    if (is_hash && !then)
        return ERR_OK;
    if (is_hash)
        return err_set(&reading->why, ERR_USAGE,
                       "cannot resume: the dataset has changed since the run began (hash %s, was "
                       "%s); --overwrite starts a new run",
                       now, then);
    return err_set(&reading->why, ERR_USAGE,
                   "cannot resume: %s was %s and is now %s; --overwrite starts a new run", key,
                   then ? then : "not set", now);
}

/* A key that is not ours was damaged and is skipped. */
static enum err add_key(struct query_set *set, const struct jv *line)
{
    uint64_t index;
    unsigned repeat;
    if (!query_key_parse(jv_text(jv_get(line, "key")), &index, &repeat))
        return ERR_OK;
    return query_set_add(set, index, repeat);
}

static void note_index(struct resume *resume, const struct jv *line)
{
    uint64_t index;
    unsigned repeat;
    if (query_key_parse(jv_text(jv_get(line, "key")), &index, &repeat) &&
        index >= resume->next_index)
        resume->next_index = index + 1;
}

static enum err take_query(struct reading *reading, const struct jv *line)
{
    struct resume *resume = reading->resume;
    const char *status = jv_text(jv_path(line, "ipw.status"));
    enum err err = add_key(&resume->ended_queries, line);
    if (err || !status || strcmp(status, "completed") != 0)
        return err;
    return add_key(&resume->done, line);
}

static struct energy energy_from_json(const struct jv *value)
{
    struct record_energy read;
    struct energy energy;
    record_energy_from_json(value, &read);
    record_energy_get(&read, &energy);
    return energy;
}

static void add_journaled(struct reading *reading, double joules)
{
    add_known(&reading->resume->spent.requests_joules, joules);
    reading->journaled += is_known(joules) ? joules : 0;
}

static double take_attempt(struct reading *reading, const struct jv *value)
{
    struct energy energy = energy_from_json(value);
    energy_add(&reading->spent, &energy);
    return energy.joules;
}

/* The energy of a query whose own line was refused by a full disk is in no record. */
static enum err take_query_energy(struct reading *reading, const struct jv *line, double joules)
{
    struct early early = {.joules = joules};
    const char *key = jv_text(jv_get(line, "key"));
    if (!is_known(joules) || !query_key_parse(key, &early.index, &early.repeat))
        return ERR_OK;
    if (query_set_has(&reading->resume->ended_queries, early.index, early.repeat)) {
        add_journaled(reading, joules);
        return ERR_OK;
    }
    struct early *all =
        grow(reading->early, &reading->early_capacity, reading->early_count, sizeof *all);
    if (!all)
        return ERR_NO_MEMORY;
    reading->early = all;
    all[reading->early_count++] = early;
    return ERR_OK;
}

static enum err take_energy(struct reading *reading, const struct jv *line)
{
    struct resume *resume = reading->resume;
    const struct jv *own = jv_get(line, "ipw");
    enum err err = take_query_energy(reading, line, take_attempt(reading, jv_get(own, "energy")));
    for (const struct jv *one = jv_first(jv_get(own, "failed_attempts")); one; one = jv_next(one))
        add_journaled(reading, take_attempt(reading, one));
    if (!err && jv_get(own, "energy"))
        err = add_key(&resume->settled_queries, line);
    if (!err && jv_get(own, "judge_energy"))
        err = add_key(&resume->judge_settled, line);
    return err;
}

static void take_end(struct reading *reading, const struct jv *line)
{
    struct resume *resume = reading->resume;
    struct run_energy *spent = &resume->spent;
    struct energy energy = energy_from_json(jv_get(line, "energy"));
    double joules = jv_number(jv_get(line, "busy_joules"));
    double busy_s = jv_number(jv_get(line, "busy_s"));
    double covered_s = jv_number(jv_get(line, "busy_covered_s"));
    int64_t unrecorded;
    reading->in_start = false;
    resume->ended++;
    if (jv_integer(jv_get(line, "unrecorded_requests"), &unrecorded) && unrecorded > 0)
        resume->unrecorded += (uint64_t)unrecorded;
    spent->busy_s += busy_s;
    if (energy.method == METHOD_NONE) {
        resume->unmeasured += busy_s > 0;
        return;
    }
    energy_add(&spent->energy, &energy);
    add_known(&spent->busy.joules, joules);
    reading->busy_joules = joules;
    if (is_known(joules)) {
        spent->busy.seconds += is_known(covered_s) ? covered_s : busy_s; /* older ones lack it */
        spent->busy.plus_minus += joules * energy.plus_minus / energy.joules;
    }
    add_known(&spent->idle_joules, jv_number(jv_get(line, "idle_joules")));
    add_known(&spent->unattributed_joules, jv_number(jv_get(line, "unattributed_joules")));
}

/* Of a killed start only the energies of its requests are known. */
static void close_start(struct reading *reading)
{
    struct resume *resume = reading->resume;
    double spent = reading->in_start ? reading->spent.joules : reading->busy_joules;
    if (reading->in_start)
        energy_add(&resume->spent.energy, &reading->spent);
    for (size_t i = 0; i < reading->early_count; i++)
        if (query_set_has(&resume->ended_queries, reading->early[i].index,
                          reading->early[i].repeat))
            add_journaled(reading, reading->early[i].joules);
    if (spent - reading->journaled > ROUNDING * spent)
        resume->spent.lost_joules += spent - reading->journaled;
    reading->in_start = false;
    reading->spent = energy_unknown("");
    reading->journaled = 0;
    reading->busy_joules = UNKNOWN;
    reading->early_count = 0;
}

/* Queries of the start before are settled, or were closed before this one wrote its first line. */
static enum err begin_start(struct reading *reading, const struct jv *line)
{
    struct resume *resume = reading->resume;
    close_start(reading);
    reading->in_start = true;
    if (resume->starts++ == 0)
        resume->started_at = jv_number(jv_get(line, "started_at"));
    query_set_release(&resume->ended_queries);
    query_set_release(&resume->settled_queries);
    query_set_release(&resume->graded);
    return reading->settings ? journal_compare_settings(line, reading->settings, differs, reading)
                             : ERR_OK;
}

static enum err take_line(void *context, const struct jv *line)
{
    struct reading *reading = context;
    const char *kind = jv_text(jv_get(line, "kind"));
    if (!kind)
        return ERR_OK;
    note_index(reading->resume, line);
    if (strcmp(kind, "run") == 0)
        return begin_start(reading, line);
    if (strcmp(kind, "query") == 0)
        return take_query(reading, line);
    if (strcmp(kind, "energy") == 0)
        return take_energy(reading, line);
    if (strcmp(kind, "grade") == 0)
        return add_key(&reading->resume->graded, line);
    if (strcmp(kind, "end") == 0)
        take_end(reading, line);
    return ERR_OK;
}

static enum err read_starts(const char *journal, unsigned repeats, const char *settings,
                            struct resume *out, struct error *why)
{
    struct reading reading = {
        .resume = out, .settings = settings, .spent = energy_unknown(""), .busy_joules = UNKNOWN};
    uint64_t damaged;
    *out = resume_nothing();
    out->done.repeats = out->ended_queries.repeats = out->settled_queries.repeats =
        out->graded.repeats = out->judge_settled.repeats = repeats;
    enum err err = journal_read(journal, take_line, &reading, &damaged, why);
    close_start(&reading);
    if (reading.why.text[0])
        *why = reading.why;
    free(reading.early);
    if (err)
        resume_release(out);
    return err;
}

enum err resume_read(const char *journal, const struct profile_options *options,
                     const char *dataset_hash, struct resume *out, struct error *why)
{
    struct text text = {0};
    *out = resume_nothing();
    resume_settings(options, dataset_hash, &text);
    enum err err = text.failed ? err_no_memory(why)
                               : read_starts(journal, options->repeat, text.bytes, out, why);
    text_release(&text);
    return err;
}

enum err resume_read_any(const char *journal, unsigned repeats, struct resume *out,
                         struct error *why)
{
    return read_starts(journal, repeats, NULL, out, why);
}

/* ---- after a kill ---- */

struct closing {
    struct journal journal;
    struct text line;
    struct error *why;
};

/* Writes an unknown energy for those that ended and were not settled. */
static enum err close_set(struct closing *closing, const struct query_set *ended,
                          const struct query_set *settled, bool judge, uint64_t *count)
{
    uint64_t at = 0, index;
    unsigned repeat;
    enum err err = ERR_OK;
    while (!err && query_set_next(ended, &at, &index, &repeat)) {
        char key[QUERY_KEY_MAX];
        if (query_set_has(settled, index, repeat))
            continue;
        query_key(index, repeat, key);
        records_no_energy(key, judge, "the run was killed before its energy was settled",
                          &closing->line);
        err = journal_append(&closing->journal, &closing->line, closing->why);
        ++*count;
    }
    return err;
}

enum err resume_close_unsettled(const struct resume *resume, const char *journal,
                                uint64_t *unsettled, struct error *why)
{
    struct closing closing = {.why = why};
    uint64_t judgments = 0;
    *unsettled = 0;
    if (resume->starts == 0)
        return ERR_OK;
    enum err err = journal_open(&closing.journal, journal, why);
    if (err)
        return err;
    err = close_set(&closing, &resume->ended_queries, &resume->settled_queries, false, unsettled);
    if (!err)
        err = close_set(&closing, &resume->graded, &resume->judge_settled, true, &judgments);
    if (!err)
        err = journal_sync(&closing.journal, why);
    journal_close(&closing.journal);
    text_release(&closing.line);
    return err;
}

void resume_release(struct resume *resume)
{
    query_set_release(&resume->done);
    query_set_release(&resume->ended_queries);
    query_set_release(&resume->settled_queries);
    query_set_release(&resume->graded);
    query_set_release(&resume->judge_settled);
}
