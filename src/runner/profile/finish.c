#include "runner/profile/finish.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/context.h"
#include "runner/profile/summary.h"
#include "runner/profile/sums.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/summary.h"

static void journal_path(const char *directory, char *to, size_t size)
{
    str_format(to, size, "%s/records.jsonl", directory);
}

/* ---- first pass: sums ---- */

struct summing {
    struct sums *sums;
    const char *model;
};

static enum err take_for_sums(void *context, const struct jv *record)
{
    struct summing *summing = context;
    return sums_add(summing->sums, summing->model, record);
}

static enum err sum_up(const struct profile_context *context, const char *journal,
                       struct journal_index *index, struct sums *sums, struct error *why)
{
    struct summing summing = {sums, context->options->model};
    uint64_t damaged = 0;
    enum err err = journal_index_give(index, take_for_sums, &summing, &damaged, why);
    if (!err && damaged)
        log_warn("%s: %llu damaged lines were left out", journal, (unsigned long long)damaged);
    return err;
}

/* ---- second pass: stores ---- */

enum { STORES_MOST = 8 };

struct storing {
    struct store stores[STORES_MOST];
    size_t count;
    struct jv *constants;
    struct error why;
};

static void close_stores(struct storing *storing)
{
    for (size_t i = 0; i < storing->count; i++)
        store_close(&storing->stores[i]);
    jv_free(storing->constants);
}

/* A store that this build lacks is left out, and said to be. */
static enum err open_stores(const struct profile_context *context, const char *directory,
                            const struct sums *sums, struct storing *storing)
{
    struct store_run run = {directory, context->options->model, sums->metadata};
    struct text constants = {0};
    summary_constants(context, &constants);
    enum err err =
        jv_parse(text_get(&constants), constants.length, &storing->constants, &storing->why);
    text_release(&constants);
    for (size_t i = 0; !err && STORE_DRIVERS[i] && storing->count < STORES_MOST; i++) {
        err = store_open(STORE_DRIVERS[i], &run, &storing->stores[storing->count], &storing->why);
        if (err == ERR_UNSUPPORTED) {
            log_warn("%s is not written: %s", STORE_DRIVERS[i]->name, storing->why.text);
            err = ERR_OK;
        } else if (!err) {
            storing->count++;
        }
    }
    return err;
}

static enum err take_for_stores(void *context, const struct jv *record)
{
    struct storing *storing = context;
    /* The record is ours alone while it is given: what is the same for all is added here, so that the
     * journal need not carry it in every line. */
    enum err err = jv_merge((struct jv *)record, storing->constants);
    for (size_t i = 0; !err && i < storing->count; i++)
        err = storing->stores[i].driver->put(&storing->stores[i], record, &storing->why);
    return err;
}

static enum err finish_stores(struct storing *storing, const struct text *summary)
{
    struct jv *tree;
    struct summary value;
    enum err err = jv_parse(text_get(summary), summary->length, &tree, &storing->why);
    if (!err)
        err = summary_from_json(tree, &value, &storing->why);
    if (err)
        return err;
    for (size_t i = 0; !err && i < storing->count; i++)
        err = storing->stores[i].driver->finish(&storing->stores[i], &value, &storing->why);
    summary_release(&value);
    return err;
}

static enum err fill_stores(const struct profile_context *context, const char *directory,
                            struct journal_index *index, const struct sums *sums,
                            const struct text *summary, struct error *why)
{
    struct storing storing = {0};
    uint64_t damaged;
    enum err err = open_stores(context, directory, sums, &storing);
    if (!err)
        err = journal_index_give(index, take_for_stores, &storing, &damaged, &storing.why);
    if (!err)
        err = finish_stores(&storing, summary);
    if (err)
        err_set(why, err, "%s", storing.why.text[0] ? storing.why.text : err_text(err));
    close_stores(&storing);
    return err;
}

/* ---- all of it ---- */

static void fill_result(const struct sums *sums, const struct finish_facts *facts,
                        struct profile_result *result)
{
    result->queries = sums->queries;
    result->completed = sums->completed;
    result->failed = sums->failed;
    result->correct = sums->tally.correct;
    result->incorrect = sums->tally.incorrect;
    result->ungraded = sums->tally.ungraded;
    result->energy = facts->energy;
}

static enum err finish_with(const struct profile_context *context, const struct finish_facts *facts,
                            const char *journal, struct sums *sums, struct profile_result *result,
                            struct error *why)
{
    struct journal_index *index;
    enum err err = journal_index_new(&index, journal, 0, why);
    if (!err)
        err = sum_up(context, journal, index, sums, why);
    sums_close(sums);
    if (!err) {
        fill_result(sums, facts, result);
        summary_report(context, facts, sums, &result->report);
        summary_write(context, facts, sums, &result->summary);
        if (result->report.failed || result->summary.failed)
            err = err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    if (!err)
        err = run_dir_put(facts->directory, "summary.json", &result->summary, why);
    if (!err && !context->options->no_stores)
        err = fill_stores(context, facts->directory, index, sums, &result->summary, why);
    journal_index_free(index);
    return err;
}

enum err finish_run(const struct profile_context *context, const struct finish_facts *facts,
                    struct profile_result *result, struct error *why)
{
    char journal[600];
    struct sums sums;
    journal_path(facts->directory, journal, sizeof journal);
    enum err err = sums_init(&sums);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    sums.repeats = context->options->repeat > 1;
    err = finish_with(context, facts, journal, &sums, result, why);
    sums_release(&sums);
    return err;
}
