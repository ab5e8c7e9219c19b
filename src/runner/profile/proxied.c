/* A run whose requests come through a proxy.  The proxy's thread announces each request to attribution and queues it
 * when it has ended; the recorder, a thread of this module, journals it, so that no stream waits for the disk.  The
 * queue is bounded: when it exceeds QUEUE_MAX, requests are forwarded and counted, but not recorded.  Energies are
 * settled in the main thread, which passes them to the proxy for its clients. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/conditions.h"
#include "attribute/share.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "port/thread.h"
#include "proxy/proxy.h"
#include "runner/profile/records.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define WAIT_PERIOD (100 * NS_PER_MS)
/* Before a batch of records: a client that got its answer sends its next request meanwhile, and waking the recorder
 * for every request costs more than recording. */
#define PAUSE (5 * NS_PER_MS)
#define DRAIN (50 * NS_PER_MS)

/* Bytes: half a minute of a thousand requests per second without their contents, and some dozens of them. */
enum { QUEUE_MAX = 64 << 20, BATCH_MAX = 128 << 10 };

struct ended {
    struct proxy_request *request;
    struct pending *pending; /* NULL: without a record */
    size_t size;
    struct ended *next;
};

/* A time in which nothing is forwarded, for the idle power; used by the main thread. */
struct quiet_time {
    bool is_open;
    struct conditions_mark mark; /* its start */
    uint64_t forwarded;          /* requests until then */
    unsigned tries;
    nanos not_before; /* the next one */
};

struct proxied {
    struct profile *profile;
    struct proxy *proxy;
    struct quiet_time quiet;
    pthread_t recorder;
    struct text line, question, metadata; /* used by the recorder */
    pthread_mutex_t lock;                 /* guards the following fields */
    pthread_cond_t not_empty;
    struct ended *oldest, **newest; /* queue of requests for the recorder */
    size_t queued;                  /* bytes not recorded yet */
    bool is_open;                   /* the proxy runs: energies may be passed to it */
};

/* ---- from the proxy's thread ---- */

static void on_begins(void *context, uint64_t id, nanos at)
{
    struct proxied *proxied = context;
    struct error why = {0};
    enum err err = request_begin_as(&proxied->profile->shared, id, at, &why);
    if (err)
        profile_fail(proxied->profile, err, &why);
}

static size_t size_of(const struct proxy_request *request)
{
    const struct completion *reply = &request->reply;
    size_t size = sizeof(struct ended) + sizeof *request + request->body.length +
                  reply->content.length + reply->reasoning.length +
                  reply->arrivals.capacity * sizeof *reply->arrivals.times;
    for (size_t i = 0; i < reply->calls.count; i++)
        size += sizeof reply->calls.items[i] + reply->calls.items[i].arguments.length;
    return size;
}

static void drop(struct proxied *proxied, struct proxy_request *request)
{
    request_drop(&proxied->profile->shared, request->id, &request->reply);
    atomic_fetch_add(&proxied->profile->shared.unrecorded, 1);
    proxy_count_unrecorded(proxied->proxy);
    proxy_request_free(request);
}

static void on_ended(void *context, struct proxy_request *request)
{
    struct proxied *proxied = context;
    struct ended *ended = xmalloc(sizeof *ended);
    *ended = (struct ended){.request = request, .size = size_of(request)};
    pthread_mutex_lock(&proxied->lock);
    /* A request larger than the queue is accepted if it is alone. */
    bool fits = !proxied->queued || proxied->queued + ended->size <= QUEUE_MAX;
    if (fits) {
        proxied->queued += ended->size;
        *proxied->newest = ended;
        proxied->newest = &ended->next;
        thread_wake(&proxied->not_empty);
    }
    pthread_mutex_unlock(&proxied->lock);
    if (!fits) {
        free(ended);
        drop(proxied, request);
    }
}

static void on_unknown_ended(void *context, const struct proxy_unknown *request)
{
    struct profile *profile = ((struct proxied *)context)->profile;
    if (!request->is_inference) {
        request_withdraw(&profile->shared, request->id);
        return;
    }
    request_end_unknown(&profile->shared, request->id, request->from, request->to);
    if (atomic_fetch_add(&profile->shared.unknown, 1) == 0) {
        pthread_mutex_lock(&profile->shared.lock);
        chars_copy(profile->shared.unknown_path, request->path);
        pthread_mutex_unlock(&profile->shared.lock);
    }
}

/* ---- the recorder ---- */

static void write_metadata(const struct proxy_request *request, struct text *out)
{
    struct json json;
    text_clear(out);
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_string(&json, "path", request->path);
    json_string(&json, "model", str_or_null(request->model));
    json_string(&json, "query", str_or_null(request->query));
    json_string(&json, "turn", str_or_null(request->turn));
    json_string(&json, "key", str_or_null(request->key));
    json_bool(&json, "stream", request->is_stream);
    json_bool(&json, "canceled", request->canceled);
    json_object_end(&json);
}

static enum err record(struct proxied *proxied, struct ended *ended, struct error *why)
{
    struct profile *profile = proxied->profile;
    struct proxy_request *request = ended->request;
    struct query query = {.index = request->id, .repeat = 0};
    query_key(query.index, 0, query.key);
    struct pending *pending = pending_new(request->id, query.key, 1);
    enum err err = journal_reserve(&profile->files.journal, profile->files.energy_space, why);
    if (err) {
        free(pending);
        return err;
    }
    ended->pending = pending;
    pending->last = true;
    proxy_request_question(request, &proxied->question);
    if (!profile->options->proxy->keep_content) {
        text_clear(&request->reply.content);
        text_clear(&request->reply.reasoning);
    }
    secret_hide_text(&proxied->question); /* clients' keys, which the journal does not know */
    secret_hide_text(&request->reply.content);
    secret_hide_text(&request->reply.reasoning);
    char none[] = "", general[] = "general";
    query.item = (struct item){
        .id = request->query[0] ? request->query : query.key,
        .problem = proxied->question.length ? proxied->question.bytes : none,
        .answer = none,
        .subject = request->model[0] ? request->model : general,
    };
    write_metadata(request, &proxied->metadata);
    struct answer answer = {.query = &query,
                            .reply = &request->reply,
                            .err = request->err,
                            .why = request->why,
                            .metadata = text_get(&proxied->metadata),
                            .canceled = request->canceled,
                            .attempts = 1,
                            .first_sent = request->reply.sent};
    return request_record(profile, &answer, &proxied->line, why);
}

/* Whether a request has ended, waiting a while for one. */
static bool await_ended(struct proxied *proxied)
{
    pthread_mutex_lock(&proxied->lock);
    if (!proxied->oldest)
        thread_wait(&proxied->not_empty, &proxied->lock, WAIT_PERIOD);
    bool any = proxied->oldest;
    pthread_mutex_unlock(&proxied->lock);
    return any;
}

static struct ended *take_ended(struct proxied *proxied)
{
    pthread_mutex_lock(&proxied->lock);
    struct ended *list = proxied->oldest;
    proxied->oldest = NULL;
    proxied->newest = &proxied->oldest;
    pthread_mutex_unlock(&proxied->lock);
    return list;
}

static void check(struct proxied *proxied, enum err err, const struct error *why)
{
    if (err)
        profile_fail(proxied->profile, err, why);
}

/* Records a list of requests with few system calls.  The records first: after a kill, ids continue after them, and none
 * may be used twice. */
static void record_batch(struct proxied *proxied, struct ended *list)
{
    struct profile *profile = proxied->profile;
    struct error why = {0};
    journal_batch_begin(&profile->files.journal);
    for (struct ended *ended = list; ended; ended = ended->next)
        check(proxied, record(proxied, ended, &why), &why);
    check(proxied, journal_batch_end(&profile->files.journal, &why), &why);
    journal_batch_begin(&profile->files.spans);
    for (struct ended *ended = list; ended; ended = ended->next)
        if (ended->pending)
            check(
                proxied,
                request_end(profile, ended->pending, &ended->request->reply, &proxied->line, &why),
                &why);
    check(proxied, journal_batch_end(&profile->files.spans, &why), &why);
}

/* Splits off the first requests, up to about BATCH_MAX bytes of them, which a kill before they are written loses. */
static struct ended *take_batch(struct ended **list, size_t *size)
{
    struct ended *first = *list;
    struct ended *last = first;
    for (*size = first->size; last->next && *size < BATCH_MAX; last = last->next)
        *size += last->next->size;
    *list = last->next;
    last->next = NULL;
    return first;
}

static void free_ended(struct ended *list)
{
    while (list) {
        struct ended *next = list->next;
        proxy_request_free(list->request);
        free(list);
        list = next;
    }
}

static void record_ended(struct proxied *proxied)
{
    struct ended *list = take_ended(proxied);
    while (list) {
        size_t size;
        struct ended *batch = take_batch(&list, &size);
        record_batch(proxied, batch);
        free_ended(batch);
        pthread_mutex_lock(&proxied->lock);
        proxied->queued -= size;
        pthread_mutex_unlock(&proxied->lock);
    }
}

static void *recorder_main(void *argument)
{
    struct proxied *proxied = argument;
    struct profile *profile = proxied->profile;
    thread_name("ipw-record", -1);
    thread_set_background(0); /* streams must not wait for records, nor may these fall behind */
    while (!atomic_load(&profile->shared.stop)) {
        if (await_ended(proxied) && !profile->options->proxy->energy_header)
            thread_sleep(PAUSE);
        record_ended(proxied);
    }
    while (!proxy_drain(proxied->proxy, DRAIN) && !atomic_load(&profile->shared.cancel))
        record_ended(proxied);
    pthread_mutex_lock(&proxied->lock);
    proxied->is_open = false;
    pthread_mutex_unlock(&proxied->lock);
    proxy_stop(proxied->proxy);
    record_ended(proxied);
    atomic_fetch_sub(&profile->shared.working, 1);
    return NULL;
}

/* ---- energies ---- */

/* For settle_begin, instead of request_take_share. */
static void take_share(void *context, const struct share *share)
{
    struct profile *profile = context;
    struct proxied *proxied = profile->proxied;
    const struct pending *pending = share->trace->context;
    struct energy energy = share->total;
    if (share->is_provisional && !energy.note[0])
        chars_copy(energy.note, "idle power is not measured yet");
    pthread_mutex_lock(&proxied->lock);
    if (proxied->is_open && !pending->is_unknown)
        proxy_settle(proxied->proxy, share->trace->id, &energy, pending->is_written);
    pthread_mutex_unlock(&proxied->lock);
    request_take_share(context, share);
}

/* ---- idle power ---- */

/* The proxy listens at once; idle power is measured in the first quiet time, in which nothing is forwarded. */

enum { IDLE_TRIES = 3 }; /* in a row; then one per IDLE_PERIOD */
#define IDLE_PERIOD (60 * NS_PER_S)

/* Call at the end of a quiet time that began at the mark; has_idle says whether the machine was idle. */
static void take_idle(struct profile *profile, const struct conditions_mark *mark, nanos to)
{
    struct ledger ledger;
    struct sampler *sampler = profile->session->sampler;
    sampler_settle(sampler, to);
    ledger_take(sampler, mark->t, to, NULL, &ledger);
    conditions_check_idle_since(&profile->conditions, mark, &ledger, &profile->idle);
    ledger_release(&ledger);
    profile->has_idle = profile->conditions.has_idle;
    if (!profile->has_idle)
        return;
    profile->settling.unknown_joules = 0; /* all is attributed again */
    sharing_set_idle(profile->shared.sharing, &profile->idle);
}

/* Called often. */
static void measure_idle(struct profile *profile)
{
    struct proxied *proxied = profile->proxied;
    struct quiet_time *quiet = &proxied->quiet;
    nanos idle = from_seconds(profile->options->idle_s);
    nanos now = clock_now();
    unsigned in_flight = 0;
    uint64_t forwarded = 0;
    if (profile->has_idle || idle <= 0 || now < quiet->not_before)
        return;
    pthread_mutex_lock(&proxied->lock);
    bool is_running = proxied->is_open; /* the recorder stops the proxy afterwards */
    if (is_running)
        forwarded = proxy_forwarded(proxied->proxy, &in_flight);
    pthread_mutex_unlock(&proxied->lock);
    if (!is_running)
        return;
    if (in_flight || forwarded != quiet->forwarded || !quiet->is_open) {
        quiet->is_open = !in_flight;
        quiet->forwarded = forwarded;
        if (quiet->is_open) {
            sampler_mark(profile->session->sampler);
            conditions_mark(&profile->conditions, &quiet->mark);
        }
        return;
    }
    if (now - quiet->mark.t < idle)
        return;
    quiet->is_open = false;
    quiet->tries++;
    quiet->not_before = quiet->tries < IDLE_TRIES ? 0 : now + IDLE_PERIOD;
    take_idle(profile, &quiet->mark, now);
}

enum err proxied_measure_idle_last(struct profile *profile, struct error *why)
{
    nanos settled = sharing_settled(profile->shared.sharing);
    enum err err = ERR_OK;
    double idle_s = profile->options->idle_s;
    if (profile->has_idle || idle_s <= 0 || !atomic_load(&profile->shared.sent))
        return ERR_OK;
    profile_begin_phase(profile, "idle", -1);
    for (int i = 0; i < IDLE_TRIES && !profile->has_idle && profile->loop.signals < 2; i++) {
        struct conditions_mark mark;
        sampler_mark(profile->session->sampler);
        conditions_mark(&profile->conditions, &mark);
        profile->loop.signals += proc_poll_signal(from_seconds(idle_s)) != 0;
        if (profile->loop.signals < 2)
            take_idle(profile, &mark, clock_now());
    }
    if (profile->has_idle) /* up to the same time: the run has ended */
        err = sharing_advance(profile->shared.sharing, settled, profile->settling.take_share,
                              profile);
    conditions_refuse_idle(&profile->conditions, "requests were in flight, and its measurement at "
                                                 "the end was interrupted");
    return err ? err_set(why, err, "cannot attribute the energy: %s", err_text(err)) : ERR_OK;
}

/* ---- starting and ending ---- */

enum err proxied_check(struct profile *profile, struct error *why)
{
    struct json json;
    enum err err = proxy_check(profile->options->proxy, profile->setup.base_url,
                               sizeof profile->setup.base_url, why);
    if (err)
        return err;
    json_init(&json, &profile->setup.client_info, false);
    json_object(&json, NULL);
    json_string(&json, "client", profile->options->client);
    json_string(&json, "base_url", profile->setup.base_url);
    json_object_end(&json);
    return ERR_OK;
}

void proxied_free(struct proxied *proxied)
{
    if (!proxied)
        return;
    text_release(&proxied->line);
    text_release(&proxied->question);
    text_release(&proxied->metadata);
    pthread_mutex_destroy(&proxied->lock);
    pthread_cond_destroy(&proxied->not_empty);
    free(proxied);
}

enum err proxied_start(struct profile *profile, struct error *why)
{
    struct proxied *proxied = XNEW(proxied);
    struct proxy_options options = *profile->options->proxy;
    proxied->profile = profile;
    proxied->newest = &proxied->oldest;
    proxied->is_open = true;
    pthread_mutex_init(&proxied->lock, NULL);
    pthread_cond_init(&proxied->not_empty, NULL);
    options.begins = on_begins;
    options.ended = on_ended;
    options.unknown_ended = on_unknown_ended;
    options.context = proxied;
    profile->proxied = proxied;
    profile->settling.take_share = take_share;
    profile->loop.tick = measure_idle;
    options.first_id = profile->files.resume.next_index;
    enum err err = proxy_start(&options, &proxied->proxy, why);
    if (!err) {
        atomic_store(&profile->shared.working, 1);
        err = err_explain(why, thread_start(&proxied->recorder, recorder_main, proxied));
        if (err)
            proxy_stop(proxied->proxy);
    }
    if (err) {
        atomic_store(&profile->shared.working, 0);
        profile->proxied = NULL;
        proxied_free(proxied);
        return err;
    }
    thread_set_background(10); /* so is settling in this thread, which may fall behind */
    if (profile->options->listening)
        profile->options->listening(proxy_port(proxied->proxy), profile->setup.base_url,
                                    profile->files.directory);
    return ERR_OK;
}

void proxied_join(struct profile *profile)
{
    pthread_join(profile->proxied->recorder, NULL);
}
