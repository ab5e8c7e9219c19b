/* Judging: after the queries, answers that only a model can grade are sent to a judge; with --judge-unread also those
 * that their grader could not read.  A reader thread queues them from the journal, several workers query the judge, and
 * the energy of each judgment is attributed separately from the queries'. */
#include "runner/profile/phases.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "clients/client.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "rundir/record.h"
#include "runner/profile/profile.h"
#include "runner/profile/records.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"

/* The grader of unread answers; without parameters it only decides whether an answer is right. */
static const char JUDGE[] = "judge";

enum { QUEUE_MAX = 64 };

#define HEALTH_TICK (20 * NS_PER_MS)

/* One answer to be judged. */
struct job {
    struct judgment *judgment; /* owned by attribution once the judge was queried */
    char *problem, *expected, *answer;
    char grader[64]; /* that could not read it; "": its grader is the judge */
};

struct judge_worker {
    struct judge_pool *pool;
    struct client client;
    struct graders graders;
    struct grader truth; /* for unread answers: is the answer right, by no other rules */
    struct judge judge;
    struct completion reply; /* of the last request; sent is that of the first */
    bool asked;
    struct text line;
    pthread_t thread;
    bool open, has_truth, started;
};

struct judge_pool {
    struct profile *profile;
    const char *grader; /* the grader that needs a judge */
    struct job queue[QUEUE_MAX];
    size_t first, waiting;
    bool all_read;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t reader;
    bool reader_started;
    struct judge_worker *workers;
    size_t count;
};

static void job_release(struct job *job)
{
    free(job->judgment);
    free(job->problem);
    free(job->expected);
    free(job->answer);
    *job = (struct job){0};
}

/* ---- which answers need a judge ---- */

/* Whether a judge gave no verdict, perhaps because it could not be reached: it is queried again. */
static bool has_no_verdict(const struct record *record)
{
    struct evaluation evaluation;
    record_evaluation(record, &evaluation);
    return evaluation.grader[0] && graders_is_judge(evaluation.grader);
}

/* The grader of a record is the user's or the dataset's: only these can be a judge. */
static bool has_judge_grader(const struct profile *profile)
{
    const char *named = profile->options->grader;
    const char *grader = named ? named : profile->shared.supply.dataset.grader;
    return grader[0] && graders_is_judge(grader);
}

static bool needs_judge(const struct profile *profile, const struct record *record)
{
    bool completed = record->status && str_equal(record->status, "completed");
    if (!completed || record->correct >= 0)
        return false;
    if (grading_is_unread(record->grading) == 1)
        return profile->options->judge_unread;
    return has_judge_grader(profile) && (!record->evaluation || has_no_verdict(record));
}

struct job_count {
    const struct profile *profile;
    uint64_t count;
};

static enum err count_job(void *context, const struct jv *tree)
{
    struct job_count *jobs = context;
    struct record record;
    record_from_json(tree, jobs->profile->options->model, &record);
    jobs->count += needs_judge(jobs->profile, &record);
    return ERR_OK;
}

static enum err count_jobs(const struct profile *profile, uint64_t *out, struct error *why)
{
    struct job_count jobs = {profile, 0};
    uint64_t damaged;
    enum err err = journal_records(profile->files.journal_path, count_job, &jobs, &damaged, why);
    *out = jobs.count;
    return err;
}

/* ---- the queue ---- */

static char *copy_text(const char *text)
{
    return xstrdup(text ? text : "");
}

static struct judgment *new_judgment(struct profile *profile, const struct record *record)
{
    struct judgment *judgment = XNEW(judgment);
    judgment->id = atomic_fetch_add(&profile->shared.next_request, 1);
    chars_copy(judgment->key, record->key ? record->key : "");
    judgment->gpu_joules = record->gpu_joules;
    judgment->cpu_joules = record->cpu_joules;
    record_energy_get(&record->judge_energy, &judgment->earlier);
    judgment->earlier_gpu_joules = record->judge_gpu_joules;
    judgment->earlier_cpu_joules = record->judge_cpu_joules;
    return judgment;
}

static void fill_job(struct profile *profile, const struct record *record, struct job *job)
{
    struct evaluation evaluation;
    record_evaluation(record, &evaluation);
    if (grading_is_unread(record->grading) == 1)
        chars_copy(job->grader, evaluation.grader);
    job->judgment = new_judgment(profile, record);
    job->problem = copy_text(record->problem);
    job->expected = copy_text(record->expected);
    job->answer = copy_text(record->model_answer);
}

static enum err push_job(void *context, const struct jv *tree)
{
    struct judge_pool *pool = context;
    struct job job = {0};
    struct record record;
    record_from_json(tree, pool->profile->options->model, &record);
    if (!needs_judge(pool->profile, &record))
        return ERR_OK;
    fill_job(pool->profile, &record, &job);
    pthread_mutex_lock(&pool->lock);
    while (pool->waiting == QUEUE_MAX && !atomic_load(&pool->profile->shared.stop))
        thread_wait(&pool->changed, &pool->lock, 50 * NS_PER_MS);
    bool full = pool->waiting == QUEUE_MAX;
    if (!full)
        pool->queue[(pool->first + pool->waiting++) % QUEUE_MAX] = job;
    thread_wake(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    if (full)
        job_release(&job);
    return full ? ERR_INTERRUPTED : ERR_OK;
}

static bool pop_job(struct judge_pool *pool, struct job *out)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->waiting == 0 && !pool->all_read && !atomic_load(&pool->profile->shared.stop))
        thread_wait(&pool->changed, &pool->lock, 50 * NS_PER_MS);
    bool found = pool->waiting > 0 && !atomic_load(&pool->profile->shared.stop);
    if (found) {
        *out = pool->queue[pool->first];
        pool->first = (pool->first + 1) % QUEUE_MAX;
        pool->waiting--;
        thread_wake(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void *reader_main(void *argument)
{
    struct judge_pool *pool = argument;
    struct error why = {0};
    uint64_t damaged;
    enum err err =
        journal_records(pool->profile->files.journal_path, push_job, pool, &damaged, &why);
    if (err && err != ERR_INTERRUPTED)
        profile_fail(pool->profile, err, &why);
    pthread_mutex_lock(&pool->lock);
    pool->all_read = true;
    thread_wake(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    atomic_fetch_sub(&pool->profile->shared.working, 1);
    return NULL;
}

/* ---- querying the judge ---- */

static enum err ask_judge(void *context, const char *prompt, struct text *reply, struct error *why)
{
    struct judge_worker *worker = context;
    const struct profile_options *options = worker->pool->profile->options;
    nanos first_sent = worker->reply.sent;
    struct client_request request = {
        .model = options->judge_model,
        .prompt = prompt,
        .params = &options->judge_params,
        .timeout = from_seconds(options->timeout_s),
        .cancel = &worker->pool->profile->shared.cancel,
    };
    completion_release(&worker->reply);
    completion_init(&worker->reply);
    enum err err = worker->client.driver->ask(&worker->client, &request, &worker->reply, why);
    if (worker->asked)
        worker->reply.sent = first_sent;
    worker->asked = true;
    if (!err)
        text_add(reply, text_get(&worker->reply.content));
    return err;
}

/* Passes the judgment to attribution. */
static enum err submit_judgment(struct judge_worker *worker, struct judgment *judgment)
{
    struct completion *reply = &worker->reply;
    struct request_trace trace = {
        .id = judgment->id,
        .context = judgment,
        .from = reply->sent,
        .first_token = reply->first_token,
        .to = reply->done,
        .prompt_tokens = known_count(reply->prompt_tokens),
        .output_tokens = known_count(reply->output_tokens),
        .arrivals = reply->arrivals.times,
        .arrival_count = reply->arrivals.count,
    };
    reply->arrivals = (struct arrivals){0}; /* owned by the trace now */
    enum err err = sharing_end(worker->pool->profile->shared.sharing, &trace);
    if (err)
        request_trace_release(&trace);
    return err;
}

/* Passes the judgment to attribution, unless the judge was not queried or the request was aborted. */
static enum err end_judgment(struct judge_worker *worker, struct job *job, bool aborted,
                             struct error *why)
{
    struct profile *profile = worker->pool->profile;
    struct judgment *judgment = job->judgment;
    if (!worker->asked || aborted) {
        journal_unreserve(&profile->files.journal, profile->files.energy_space);
        sharing_forget(profile->shared.sharing, judgment->id);
        return ERR_OK;
    }
    records_span(profile, SPAN_JUDGE, judgment->key, 1, &worker->reply, &worker->line);
    enum err err = journal_append(&profile->files.spans, &worker->line, why);
    enum err lost = submit_judgment(worker, judgment);
    if (!lost)
        job->judgment = NULL;
    return err || !lost ? err : err_set(why, lost, "%s", err_text(lost));
}

static void grade_job(struct judge_worker *worker, const struct job *job, struct grade *grade)
{
    struct item item = {
        .id = "", .problem = job->problem, .answer = job->expected, .subject = "", .grader = ""};
    if (job->grader[0])
        grade_answer(&worker->truth, &item, job->answer, grade);
    else
        graders_grade(&worker->graders, worker->pool->grader, &item, job->answer, grade);
}

static void write_grade(struct judge_worker *worker, const struct job *job, const char *key,
                        const struct grade *grade)
{
    const struct profile_options *options = worker->pool->profile->options;
    const struct graded_by by = {
        .grader = job->grader[0] ? job->grader : worker->pool->grader,
        .judge = job->grader[0] ? options->judge_model : NULL,
    };
    records_grade(options->model, key, &by, grade, &worker->line);
}

static enum err run_job(struct judge_worker *worker, struct job *job, struct error *why)
{
    struct profile *profile = worker->pool->profile;
    struct grade grade;
    char key[sizeof job->judgment->key];
    chars_copy(key, job->judgment->key);
    enum err err = journal_reserve(&profile->files.journal, profile->files.energy_space, why);
    if (err)
        return err;
    err = sharing_begin(profile->shared.sharing, job->judgment->id, clock_now());
    if (err)
        return err_explain(why, err);
    worker->asked = false;
    grade_job(worker, job, &grade);
    bool aborted = atomic_load(&profile->shared.cancel);
    err = end_judgment(worker, job, aborted, why);
    if (err || aborted)
        return err;
    write_grade(worker, job, key, &grade);
    atomic_fetch_add(&profile->shared.done, 1);
    if (grade.verdict == VERDICT_NULL)
        atomic_fetch_add(&profile->shared.failed, 1);
    return journal_append(&profile->files.journal, &worker->line, why);
}

static void *judge_main(void *argument)
{
    struct judge_worker *worker = argument;
    struct job job;
    struct error why = {0};
    while (pop_job(worker->pool, &job)) {
        enum err err = run_job(worker, &job, &why);
        job_release(&job);
        if (err)
            profile_fail(worker->pool->profile, err, &why);
    }
    atomic_fetch_sub(&worker->pool->profile->shared.working, 1);
    return NULL;
}

static void take_share(void *context, const struct share *share)
{
    struct profile *profile = context;
    struct judgment *judgment = share->trace->context;
    struct text line = {0};
    struct error why = {0};
    records_judge_energy(profile->options->model, judgment, share, &line);
    enum err err =
        journal_append_reserved(&profile->files.journal, &line, profile->files.energy_space, &why);
    if (err)
        profile_fail(profile, err, &why);
    text_release(&line);
    free(judgment);
}

/* ---- starting and ending ---- */

static enum err open_worker(struct judge_pool *pool, const struct client_driver *driver,
                            struct judge_worker *worker, struct error *why)
{
    const struct profile_options *options = pool->profile->options;
    struct client_config config = {.base_url = options->judge_url,
                                   .probe_timeout = from_seconds(options->timeout_s)};
    worker->pool = pool;
    completion_init(&worker->reply);
    enum err err = client_open(driver, &config, &worker->client, why);
    if (err)
        return err;
    worker->open = true;
    worker->judge = (struct judge){ask_judge, worker};
    graders_init(&worker->graders, options, &pool->profile->shared.supply.dataset);
    worker->graders.judge = &worker->judge;
    if (!options->judge_unread)
        return ERR_OK;
    const struct grader_driver *judge = grader_driver_find(JUDGE, why);
    const struct grader_config truth = {.judge = &worker->judge};
    err = judge ? grader_open(judge, &truth, &worker->truth, why) : ERR_NOT_FOUND;
    worker->has_truth = !err;
    return err;
}

/* Whether the service responds, found out in a thread: a signal need not wait for it. */
struct health_check {
    struct client *client;
    enum err err;
    struct error why;
    atomic_bool done;
};

static void *check_main(void *argument)
{
    struct health_check *check = argument;
    check->err = check->client->driver->health(check->client, &check->why);
    atomic_store(&check->done, true);
    return NULL;
}

/* After a signal, which is stored, *is_abandoned: the thread still uses the client. */
static enum err check_health(struct client *client, int *signal, bool *is_abandoned,
                             struct error *why)
{
    pthread_t thread;
    struct health_check *check = XNEW(check);
    *is_abandoned = false;
    check->client = client;
    enum err err = thread_start(&thread, check_main, check);
    if (err) {
        free(check);
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    }
    while (!atomic_load(&check->done) && !*signal)
        *signal = proc_poll_signal(HEALTH_TICK);
    *is_abandoned = *signal && !thread_join(thread, clock_now());
    if (*is_abandoned)
        return ERR_OK;
    if (!*signal)
        pthread_join(thread, NULL);
    err = check->err;
    *why = check->why;
    free(check);
    return err;
}

static enum err open_workers(struct judge_pool *pool, size_t count, struct error *why)
{
    const struct client_driver *driver =
        client_driver_find(pool->profile->options->judge_client, why);
    if (!driver)
        return ERR_NOT_FOUND;
    pool->workers = xcalloc(count, sizeof *pool->workers);
    enum err err = ERR_OK;
    for (; !err && pool->count < count; pool->count++)
        err = open_worker(pool, driver, &pool->workers[pool->count], why);
    return err;
}

static enum err start_threads(struct judge_pool *pool, struct error *why)
{
    struct profile *profile = pool->profile;
    enum err err = ERR_OK;
    for (size_t i = 0; i < pool->count && !err; i++) {
        struct judge_worker *worker = &pool->workers[i];
        atomic_fetch_add(&profile->shared.working, 1);
        err = thread_start(&worker->thread, judge_main, worker);
        worker->started = !err;
    }
    if (!err) {
        atomic_fetch_add(&profile->shared.working, 1);
        err = thread_start(&pool->reader, reader_main, pool);
        pool->reader_started = !err;
    }
    if (!err)
        return ERR_OK;
    atomic_fetch_sub(&profile->shared.working, 1);
    return err_set(why, err, "cannot start the judge's threads: %s", err_text(err));
}

static void join_pool(struct judge_pool *pool)
{
    if (pool->reader_started)
        pthread_join(pool->reader, NULL);
    for (size_t i = 0; i < pool->count; i++) {
        struct judge_worker *worker = &pool->workers[i];
        if (worker->started)
            pthread_join(worker->thread, NULL);
        completion_release(&worker->reply);
        graders_release(&worker->graders);
        if (worker->has_truth)
            grader_close(&worker->truth);
        text_release(&worker->line);
        if (worker->open)
            client_close(&worker->client);
    }
    while (pool->waiting > 0) {
        job_release(&pool->queue[pool->first]);
        pool->first = (pool->first + 1) % QUEUE_MAX;
        pool->waiting--;
    }
    free(pool->workers);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Opens a client for each worker and checks that the judge's service responds.  *out is NULL after a signal in the
 * meantime. */
static enum err start_pool(struct profile *profile, struct judge_pool **out, struct error *why)
{
    struct judge_pool *pool = XNEW(pool);
    size_t count = profile->options->concurrency;
    pool->profile = profile;
    pool->grader =
        profile->options->grader ? profile->options->grader : profile->shared.supply.dataset.grader;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    atomic_store(&profile->shared.done, 0);
    atomic_store(&profile->shared.failed, 0);
    bool is_abandoned = false;
    enum err err = open_workers(pool, count, why);
    if (!err)
        err = check_health(&pool->workers[0].client, &profile->result->signal, &is_abandoned, why);
    if (is_abandoned)
        return ERR_OK; /* with the pool */
    bool is_interrupted = profile->result->signal;
    if (!err && !is_interrupted)
        err = start_threads(pool, why);
    *out = pool;
    if (err || is_interrupted) {
        bool stopped = atomic_exchange(&profile->shared.stop, true);
        join_pool(pool);
        atomic_store(&profile->shared.stop, stopped);
        *out = NULL;
    }
    return err;
}

/* ---- the phase ---- */

enum err profile_judge(struct profile *profile, struct error *why)
{
    struct judge_pool *pool = NULL;
    uint64_t jobs;
    bool has_work = has_judge_grader(profile) || profile->options->judge_unread;
    if (!has_work || profile->result->signal || profile->shared.err)
        return ERR_OK;
    if (!profile->options->judge_model) {
        chars_copy(profile->report.ungraded_reason,
                   "the judge has no model: pass --eval-model and --resume");
        profile_warn(profile, "answers not graded: pass --eval-model and --resume");
        return ERR_OK;
    }
    enum err err = count_jobs(profile, &jobs, why);
    if (err || jobs == 0)
        return err;
    profile_begin_phase(profile, "judge", (int64_t)jobs);
    settle_begin(profile, clock_now(), take_share);
    err = start_pool(profile, &pool, why);
    if (err)
        return err;
    err = pool ? profile_loop(profile) : ERR_OK;
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "interrupted three times");
    if (pool)
        join_pool(pool);
    err = settle_rest(profile, why);
    profile_write_samples(profile);
    return err;
}
