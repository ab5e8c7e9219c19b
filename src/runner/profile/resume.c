/* Reads the journal once, line by line.  A start lasts from its run line to its end line, or to the next run line if it
 * was killed. */
#include "runner/profile/resume.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "port/url.h"
#include "runner/profile/phases.h"
#include "runner/profile/records.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"
#include "workloads/workload.h"

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

struct jv *resume_params(const struct params *params)
{
    struct jv *object = jv_new_object();
    for (size_t i = 0; i < params->count; i++) {
        const struct param *item = &params->items[i];
        const char *value = item->value;
        char address[1024];
        if (str_starts(item->key, "header.")) {
            value = "(not kept)"; /* may contain an API key */
        } else if (strstr(value, "://")) {
            url_hide_login(value, address, sizeof address);
            value = address;
        }
        jv_add(object, item->key, jv_new_text(value));
    }
    jv_hide_secrets(object);
    return object;
}

/* Missing in journals of earlier versions. */
#define DATASET_HASH "dataset_hash"

struct jv *resume_settings(const struct profile_options *options, const char *dataset_hash)
{
    const struct profile_agent *agent = options->agent;
    char shard[RUN_PART_MAX];
    run_part_name(&(struct run_part){options->shard, options->shards}, shard, sizeof shard);
    const struct jv_member MEMBERS[] = {
        {"client", jv_new_text(options->client)},
        {"task", jv_new_text(options->is_perplexity ? "perplexity" : NULL)},
        {options->workload ? "workload" : NULL,
         options->workload ? jv_new_text(options->workload->name) : NULL},
        {"model", jv_new_text(options->model)},
        {"dataset", jv_new_text(options->dataset)},
        {DATASET_HASH, jv_new_text(dataset_hash[0] ? dataset_hash : NULL)},
        {"system", jv_new_text(options->system)},
        {"template", jv_new_text(options->template_text)},
        {"answer_format", jv_new_text(profile_prompts(options).answer_format)},
        {agent ? "agent" : NULL, agent ? jv_copy(agent->settings) : NULL},
        {"repeat", jv_new_integer(options->repeat)},
        {RUN_PART_KEY, jv_new_text(str_or_null(shard))},
        {"dataset_params", resume_params(&options->dataset_params)},
        {"request_params", resume_params(&options->request_params)},
    };
    struct jv *settings = jv_new_members(MEMBERS, COUNT_OF(MEMBERS));
    jv_hide_secrets(settings);
    return settings;
}

/* Relative difference of a sum of joules below which it is rounding. */
#define ROUNDING 1e-9

struct journal_reader {
    struct resume *resume;
    const struct jv *settings; /* of this start; NULL: not compared */
    bool in_start;             /* after a run line, before its end line */
    struct energy spent;       /* by the requests of this start */
    double journaled;          /* joules of those requests that are in its records */
    double busy_joules;        /* from its end line; UNKNOWN without one */
    struct early {             /* energies before the line of their query, or without one */
        uint64_t index;
        unsigned repeat;
        double joules;
    } *early;
    size_t early_count, early_capacity;
    struct error why;
};

static enum err differs(void *context, const char *key, const char *then, const char *now)
{
    struct journal_reader *reader = context;
    bool is_hash = str_equal(key, DATASET_HASH);
    if (is_hash && !then)
        return ERR_OK;
    if (is_hash)
        return err_set(&reader->why, ERR_USAGE,
                       "cannot resume: the dataset has changed since the run began (hash %s, was "
                       "%s); --overwrite starts a new run",
                       now, then);
    return err_set(&reader->why, ERR_USAGE,
                   "cannot resume: %s was %s and is now %s; --overwrite starts a new run", key,
                   then ? then : "not set", now);
}

/* An unknown key was damaged and is skipped. */
static void add_key(struct query_set *set, const char *key)
{
    uint64_t index;
    unsigned repeat;
    if (query_key_parse(key, &index, &repeat))
        query_set_add(set, index, repeat);
}

static void update_next_index(struct resume *resume, const char *key)
{
    uint64_t index;
    unsigned repeat;
    if (query_key_parse(key, &index, &repeat) && index >= resume->next_index)
        resume->next_index = index + 1;
}

static void read_query(struct journal_reader *reader, const struct journal_line *line)
{
    struct resume *resume = reader->resume;
    add_key(&resume->ended_queries, line->key);
    if (line->completed)
        add_key(&resume->done, line->key);
}

static void add_journaled(struct journal_reader *reader, double joules)
{
    add_known(&reader->resume->spent.requests_joules, joules);
    reader->journaled += is_known(joules) ? joules : 0;
}

/* The energy of a query whose own line could not be written (disk full) is in no record. */
static void read_query_energy(struct journal_reader *reader, const struct journal_line *line)
{
    struct early early = {.joules = line->energy.joules};
    if (!is_known(early.joules) || !query_key_parse(line->key, &early.index, &early.repeat))
        return;
    if (query_set_has(&reader->resume->ended_queries, early.index, early.repeat)) {
        add_journaled(reader, early.joules);
        return;
    }
    *XADD(reader->early, reader->early_count, reader->early_capacity) = early;
}

static void read_energy(struct journal_reader *reader, struct journal_line *line)
{
    struct resume *resume = reader->resume;
    struct energy attempt;
    energy_add(&reader->spent, &line->energy);
    read_query_energy(reader, line);
    while (journal_line_attempt(line, &attempt)) {
        energy_add(&reader->spent, &attempt);
        add_journaled(reader, attempt.joules);
    }
    if (line->settled)
        add_key(&resume->settled_queries, line->key);
    if (line->judged)
        add_key(&resume->judge_settled, line->key);
}

static void read_end(struct journal_reader *reader, const struct jv *tree)
{
    struct resume *resume = reader->resume;
    struct run_energy *spent = &resume->spent;
    struct journal_end end;
    journal_end_read(tree, &end);
    reader->in_start = false;
    resume->ended++;
    if (end.unrecorded_requests > 0)
        resume->unrecorded += (uint64_t)end.unrecorded_requests;
    if (end.unknown_inference > 0) {
        resume->unknown += (uint64_t)end.unknown_inference;
        resume->unknown_joules += is_known(end.unknown_joules) ? end.unknown_joules : 0;
        if (end.unknown_path && !resume->unknown_path[0])
            chars_copy(resume->unknown_path, end.unknown_path);
    }
    spent->busy_s += end.busy_s;
    if (end.energy.method == METHOD_NONE) {
        resume->unmeasured += end.busy_s > 0;
        return;
    }
    energy_add(&spent->energy, &end.energy);
    add_known(&spent->busy.joules, end.busy_joules);
    reader->busy_joules = end.busy_joules;
    if (is_known(end.busy_joules)) {
        spent->busy.seconds += is_known(end.busy_covered_s) ? end.busy_covered_s : end.busy_s;
        spent->busy.plus_minus += end.busy_joules * end.energy.plus_minus / end.energy.joules;
    }
    add_known(&spent->idle_joules, end.idle_joules);
    add_known(&spent->unattributed_joules, end.unattributed_joules);
}

/* A killed start recorded only the energy of its requests. */
static void close_start(struct journal_reader *reader)
{
    struct resume *resume = reader->resume;
    double spent = reader->in_start ? reader->spent.joules : reader->busy_joules;
    if (reader->in_start)
        energy_add(&resume->spent.energy, &reader->spent);
    for (size_t i = 0; i < reader->early_count; i++)
        if (query_set_has(&resume->ended_queries, reader->early[i].index, reader->early[i].repeat))
            add_journaled(reader, reader->early[i].joules);
    if (spent - reader->journaled > ROUNDING * spent)
        resume->spent.lost_joules += spent - reader->journaled;
    reader->in_start = false;
    reader->spent = energy_unknown("");
    reader->journaled = 0;
    reader->busy_joules = UNKNOWN;
    reader->early_count = 0;
}

/* Queries of the previous start are settled, or were closed before this one wrote its first line. */
static enum err begin_start(struct journal_reader *reader, double started_at, const struct jv *tree)
{
    struct resume *resume = reader->resume;
    close_start(reader);
    reader->in_start = true;
    if (resume->starts++ == 0)
        resume->started_at = started_at;
    query_set_release(&resume->ended_queries);
    query_set_release(&resume->settled_queries);
    query_set_release(&resume->graded);
    return reader->settings ? journal_compare_settings(tree, reader->settings, differs, reader)
                            : ERR_OK;
}

static enum err take_line(void *context, const struct jv *tree)
{
    struct journal_reader *reader = context;
    struct journal_line line;
    journal_line_read(tree, &line);
    if (line.kind != JOURNAL_OTHER)
        update_next_index(reader->resume, line.key);
    switch (line.kind) {
    case JOURNAL_RUN:
        return begin_start(reader, line.started_at, tree);
    case JOURNAL_QUERY:
        read_query(reader, &line);
        break;
    case JOURNAL_ENERGY:
        read_energy(reader, &line);
        break;
    case JOURNAL_GRADE:
        add_key(&reader->resume->graded, line.key);
        break;
    case JOURNAL_END:
        read_end(reader, tree);
        break;
    case JOURNAL_OTHER:
        break;
    }
    return ERR_OK;
}

static enum err read_starts(const char *journal, unsigned repeats, const struct jv *settings,
                            struct resume *out, struct error *why)
{
    struct journal_reader reader = {
        .resume = out, .settings = settings, .spent = energy_unknown(""), .busy_joules = UNKNOWN};
    uint64_t damaged;
    *out = resume_nothing();
    out->done.repeats = out->ended_queries.repeats = out->settled_queries.repeats =
        out->graded.repeats = out->judge_settled.repeats = repeats;
    enum err err = journal_read(journal, take_line, &reader, &damaged, why);
    close_start(&reader);
    if (reader.why.text[0])
        *why = reader.why;
    free(reader.early);
    if (err)
        resume_release(out);
    return err;
}

enum err resume_read(const char *journal, const struct profile_options *options,
                     const char *dataset_hash, struct resume *out, struct error *why)
{
    struct jv *settings = resume_settings(options, dataset_hash);
    *out = resume_nothing();
    enum err err = read_starts(journal, options->repeat, settings, out, why);
    jv_free(settings);
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

/* Writes an unknown energy for queries that ended and were not settled. */
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
