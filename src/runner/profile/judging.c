#include "runner/profile/judging.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/text.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "runner/profile/energy_read.h"
#include "runner/profile/grading.h"
#include "runner/profile/record.h"
#include "runner/profile/run.h"

enum { QUEUE_MOST = 64 };

/* One answer that waits for the judge. */
struct job {
    char key[40];
    char *problem, *expected, *answer, *metadata;
    double gpu_joules, cpu_joules; /* of the query, for the task's total */
    struct energy earlier;         /* of judgements in vain */
    double earlier_gpu_joules, earlier_cpu_joules;
};

struct judge_worker {
    struct judging *judging;
    struct client client;
    struct graders graders;
    struct judge judge;
    struct completion reply; /* of the last question; sent is that of the first */
    bool asked;
    struct text line;
    pthread_t thread;
    bool open, started;
};

struct judging {
    struct profile_run *run;
    char journal[600];
    const char *grader; /* the one that needs a judge */
    struct job queue[QUEUE_MOST];
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
    free(job->problem);
    free(job->expected);
    free(job->answer);
    free(job->metadata);
    *job = (struct job){0};
}

/* ---- which answers ---- */

static const char *text_or_empty(const struct jv *value)
{
    return jv_text(value) ? jv_text(value) : "";
}

/* Was it put to a judge, who came to no verdict?  Perhaps it could not be reached: ask again. */
static bool judged_in_vain(const struct jv *evaluation)
{
    const char *text = jv_text(jv_get(evaluation, "metadata"));
    struct jv *metadata;
    if (!text || jv_parse(text, strlen(text), &metadata, NULL) != ERR_OK)
        return false;
    const char *grader = jv_text(jv_get(metadata, "grader"));
    bool judge = grader && graders_is_judge(grader);
    jv_free(metadata);
    return judge;
}

/* The grader of a record is the user's or the dataset's: the only ones that can be a judge. */
static bool waits(const struct profile_run *run, const struct jv *record)
{
    const char *status = jv_text(jv_path(record, "ipw.status"));
    const struct jv *metrics = jv_get(jv_get(record, "model_metrics"), run->context.options->model);
    const struct jv *evaluation = jv_get(metrics, "evaluation");
    if (!status || strcmp(status, "completed") != 0)
        return false;
    return jv_is_null(evaluation) ||
           (!jv_is_bool(jv_get(evaluation, "is_correct")) && judged_in_vain(evaluation));
}

struct counting {
    struct profile_run *run;
    uint64_t count;
};

static enum err count_one(void *context, const struct jv *record)
{
    struct counting *counting = context;
    counting->count += waits(counting->run, record);
    return ERR_OK;
}

enum err judging_count(struct profile_run *run, const char *journal, uint64_t *out,
                       struct error *why)
{
    struct counting counting = {run, 0};
    uint64_t damaged;
    enum err err = journal_records(journal, 0, count_one, &counting, &damaged, why);
    *out = counting.count;
    return err;
}

/* ---- the queue ---- */

static enum err fill_job(const struct profile_run *run, const struct jv *record, struct job *job)
{
    const char *model = run->context.options->model;
    const struct jv *energy =
        jv_get(jv_get(jv_get(record, "model_metrics"), model), "energy_metrics");
    struct text metadata = {0};
    if (jv_is_object(jv_get(record, "dataset_metadata")) &&
        jv_print(jv_get(record, "dataset_metadata"), &metadata) != ERR_OK)
        return ERR_NO_MEMORY;
    str_copy(job->key, sizeof job->key, text_or_empty(jv_get(record, "key")));
    job->problem = strdup(text_or_empty(jv_get(record, "problem")));
    job->expected = strdup(text_or_empty(jv_get(record, "answer")));
    job->answer = strdup(text_or_empty(jv_get(jv_get(record, "model_answers"), model)));
    job->metadata = strdup(metadata.length ? text_get(&metadata) : "{}");
    job->gpu_joules = jv_number(jv_get(energy, "per_query_joules"));
    job->cpu_joules = jv_number(jv_get(energy, "cpu_per_query_joules"));
    energy_from_json(jv_path(record, "ipw.judge_energy"), &job->earlier);
    job->earlier_gpu_joules = jv_number(jv_get(energy, "judge_gpu_joules"));
    job->earlier_cpu_joules = jv_number(jv_get(energy, "judge_cpu_joules"));
    text_release(&metadata);
    if (job->problem && job->expected && job->answer && job->metadata)
        return ERR_OK;
    job_release(job);
    return ERR_NO_MEMORY;
}

static enum err push(void *context, const struct jv *record)
{
    struct judging *judging = context;
    struct job job = {0};
    if (!waits(judging->run, record))
        return ERR_OK;
    enum err err = fill_job(judging->run, record, &job);
    if (err)
        return err;
    pthread_mutex_lock(&judging->lock);
    while (judging->waiting == QUEUE_MOST && !atomic_load(&judging->run->stop))
        thread_wait(&judging->changed, &judging->lock, 50 * NS_PER_MS);
    bool full = judging->waiting == QUEUE_MOST;
    if (!full)
        judging->queue[(judging->first + judging->waiting++) % QUEUE_MOST] = job;
    pthread_cond_broadcast(&judging->changed);
    pthread_mutex_unlock(&judging->lock);
    if (full)
        job_release(&job);
    return full ? ERR_INTERRUPTED : ERR_OK;
}

static bool pop(struct judging *judging, struct job *out)
{
    pthread_mutex_lock(&judging->lock);
    while (judging->waiting == 0 && !judging->all_read && !atomic_load(&judging->run->stop))
        thread_wait(&judging->changed, &judging->lock, 50 * NS_PER_MS);
    bool found = judging->waiting > 0 && !atomic_load(&judging->run->stop);
    if (found) {
        *out = judging->queue[judging->first];
        judging->first = (judging->first + 1) % QUEUE_MOST;
        judging->waiting--;
        pthread_cond_broadcast(&judging->changed);
    }
    pthread_mutex_unlock(&judging->lock);
    return found;
}

static void *reader_main(void *argument)
{
    struct judging *judging = argument;
    struct error why = {0};
    uint64_t damaged;
    enum err err = journal_records(judging->journal, 0, push, judging, &damaged, &why);
    if (err && err != ERR_INTERRUPTED)
        run_fail(judging->run, err, &why);
    pthread_mutex_lock(&judging->lock);
    judging->all_read = true;
    pthread_cond_broadcast(&judging->changed);
    pthread_mutex_unlock(&judging->lock);
    atomic_fetch_sub(&judging->run->working, 1);
    return NULL;
}

/* ---- asking ---- */

static enum err ask_judge(void *context, const char *prompt, struct text *reply, struct error *why)
{
    struct judge_worker *worker = context;
    const struct profile_options *options = worker->judging->run->context.options;
    nanos first_sent = worker->reply.sent;
    struct client_request request = {
        .model = options->judge_model,
        .prompt = prompt,
        .params = &options->judge_params,
        .timeout = from_seconds(options->timeout_s),
        .cancel = &worker->judging->run->cancel,
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

static double count_or_unknown(int64_t count)
{
    return count >= 0 ? (double)count : UNKNOWN;
}

static enum err account(struct judge_worker *worker, struct judgement *judgement)
{
    struct completion *reply = &worker->reply;
    struct request_trace trace = {
        .id = (uint64_t)(uintptr_t)judgement,
        .from = reply->sent,
        .first_token = reply->first_token,
        .to = reply->done,
        .prompt_tokens = count_or_unknown(reply->prompt_tokens),
        .output_tokens = count_or_unknown(reply->output_tokens),
        .arrivals = reply->arrivals.times,
        .arrival_count = reply->arrivals.count,
    };
    reply->arrivals = (struct arrivals){0}; /* the trace has them now */
    enum err err = sharing_end(worker->judging->run->sharing, &trace);
    if (err)
        request_trace_release(&trace);
    return err;
}

static enum err begin_judgement(struct judge_worker *worker, const struct judgement *judgement,
                                struct error *why)
{
    enum err err =
        sharing_begin(worker->judging->run->sharing, (uint64_t)(uintptr_t)judgement, clock_now());
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}

/* Attribution has the judgement afterwards, or it is freed. */
static enum err end_judgement(struct judge_worker *worker, struct judgement *judgement,
                              bool broken_off, struct error *why)
{
    struct profile_run *run = worker->judging->run;
    if (!worker->asked || broken_off) {
        sharing_forget(run->sharing, (uint64_t)(uintptr_t)judgement);
        free(judgement);
        return ERR_OK;
    }
    record_span(&run->context, SPAN_JUDGE, judgement->key, 1, &worker->reply, &worker->line);
    enum err err = journal_append(&run->spans, &worker->line, why);
    enum err lost = account(worker, judgement);
    return err || !lost ? err : err_set(why, lost, "%s", err_text(lost));
}

static void grade_job(struct judge_worker *worker, const struct job *job, struct grade *grade)
{
    struct item item = {.id = "",
                        .problem = job->problem,
                        .answer = job->expected,
                        .subject = "",
                        .metadata = job->metadata,
                        .grader = ""};
    graders_grade(&worker->graders, worker->judging->grader, &item, job->answer, grade);
}

static enum err do_job(struct judge_worker *worker, const struct job *job, struct error *why)
{
    struct profile_run *run = worker->judging->run;
    struct judgement *judgement = calloc(1, sizeof *judgement);
    struct grade grade;
    if (!judgement)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    str_copy(judgement->key, sizeof judgement->key, job->key);
    judgement->gpu_joules = job->gpu_joules;
    judgement->cpu_joules = job->cpu_joules;
    judgement->earlier = job->earlier;
    judgement->earlier_gpu_joules = job->earlier_gpu_joules;
    judgement->earlier_cpu_joules = job->earlier_cpu_joules;
    enum err err = begin_judgement(worker, judgement, why);
    if (err) {
        free(judgement);
        return err;
    }
    worker->asked = false;
    grade_job(worker, job, &grade);
    bool broken_off = atomic_load(&run->cancel);
    err = end_judgement(worker, judgement, broken_off, why);
    if (err || broken_off)
        return err;
    record_grade(&run->context, job->key, worker->judging->grader, &grade, &worker->line);
    atomic_fetch_add(&run->done, 1);
    if (grade.verdict == VERDICT_NULL)
        atomic_fetch_add(&run->failed, 1);
    return journal_append(&run->journal, &worker->line, why);
}

static void *judge_main(void *argument)
{
    struct judge_worker *worker = argument;
    struct job job;
    struct error why = {0};
    while (pop(worker->judging, &job)) {
        enum err err = do_job(worker, &job, &why);
        job_release(&job);
        if (err)
            run_fail(worker->judging->run, err, &why);
    }
    atomic_fetch_sub(&worker->judging->run->working, 1);
    return NULL;
}

void judging_take_share(void *context, const struct share *share)
{
    struct profile_run *run = context;
    struct judgement *judgement =
        (struct judgement *)(uintptr_t)share->trace->id; /* NOLINT(performance-no-int-to-ptr) */
    struct text line = {0};
    struct error why = {0};
    record_judge_energy(&run->context, judgement, share, &line);
    enum err err = journal_append(&run->journal, &line, &why);
    if (err)
        run_fail(run, err, &why);
    text_release(&line);
    free(judgement);
}

/* ---- starting and ending ---- */

static enum err open_worker(struct judging *judging, const struct client_driver *driver,
                            struct judge_worker *worker, struct error *why)
{
    const struct profile_options *options = judging->run->context.options;
    struct client_config config = {.base_url = options->judge_url,
                                   .probe_timeout = from_seconds(options->timeout_s)};
    worker->judging = judging;
    completion_init(&worker->reply);
    enum err err = client_open(driver, &config, &worker->client, why);
    if (err)
        return err;
    worker->open = true;
    worker->judge = (struct judge){ask_judge, worker};
    graders_init(&worker->graders, options, &judging->run->supply.dataset);
    worker->graders.judge = &worker->judge;
    return ERR_OK;
}

/* Opens them all, and looks by the first whether the service is there. */
static enum err open_workers(struct judging *judging, size_t count, struct error *why)
{
    const struct client_driver *driver =
        client_driver_find(judging->run->context.options->judge_client, why);
    if (!driver)
        return ERR_NOT_FOUND;
    judging->workers = calloc(count, sizeof *judging->workers);
    if (!judging->workers) {
        err_set(why, ERR_NO_MEMORY, "out of memory");
        return ERR_NO_MEMORY;
    }
    enum err err = ERR_OK;
    for (; !err && judging->count < count; judging->count++)
        err = open_worker(judging, driver, &judging->workers[judging->count], why);
    return err ? err : driver->health(&judging->workers[0].client, why);
}

static enum err start_threads(struct judging *judging, struct error *why)
{
    struct profile_run *run = judging->run;
    enum err err = ERR_OK;
    for (size_t i = 0; i < judging->count && !err; i++) {
        struct judge_worker *worker = &judging->workers[i];
        atomic_fetch_add(&run->working, 1);
        err = thread_start(&worker->thread, judge_main, worker);
        worker->started = !err;
    }
    if (!err) {
        atomic_fetch_add(&run->working, 1);
        err = thread_start(&judging->reader, reader_main, judging);
        judging->reader_started = !err;
    }
    if (!err)
        return ERR_OK;
    atomic_fetch_sub(&run->working, 1);
    return err_set(why, err, "cannot start the judge's threads: %s", err_text(err));
}

enum err judging_start(struct profile_run *run, const char *journal, struct judging **out,
                       struct error *why)
{
    struct judging *judging = calloc(1, sizeof *judging);
    size_t count = run->context.options->concurrency;
    if (!judging)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    judging->run = run;
    judging->grader =
        run->context.options->grader ? run->context.options->grader : run->supply.dataset.grader;
    str_copy(judging->journal, sizeof judging->journal, journal);
    pthread_mutex_init(&judging->lock, NULL);
    pthread_cond_init(&judging->changed, NULL);
    atomic_store(&run->done, 0);
    atomic_store(&run->failed, 0);
    enum err err = open_workers(judging, count, why);
    if (!err)
        err = start_threads(judging, why);
    *out = judging;
    if (err) {
        bool stopped = atomic_exchange(&run->stop, true);
        judging_join(judging);
        atomic_store(&run->stop, stopped);
        *out = NULL;
    }
    return err;
}

void judging_join(struct judging *judging)
{
    if (judging->reader_started)
        pthread_join(judging->reader, NULL);
    for (size_t i = 0; i < judging->count; i++) {
        struct judge_worker *worker = &judging->workers[i];
        if (worker->started)
            pthread_join(worker->thread, NULL);
        completion_release(&worker->reply);
        graders_release(&worker->graders);
        text_release(&worker->line);
        if (worker->open)
            client_close(&worker->client);
    }
    while (judging->waiting > 0) {
        job_release(&judging->queue[judging->first]);
        judging->first = (judging->first + 1) % QUEUE_MOST;
        judging->waiting--;
    }
    free(judging->workers);
    pthread_cond_destroy(&judging->changed);
    pthread_mutex_destroy(&judging->lock);
    free(judging);
}
