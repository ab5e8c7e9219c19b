/* test: real time, tsan */
/* The client of a workload: what is inside the measured window, batches of several threads, and errors of one query. */
#include "support/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/text.h"
#include "port/thread.h"
#include "workloads/workload.h"

/* ---- a workload that answers with its input, in capitals if it ran in a batch ---- */

#define STEP (20 * NS_PER_MS)
enum { BATCHES_MAX = 64 };

static atomic_size_t batches[BATCHES_MAX + 1]; /* by size */
static atomic_int open_queries;

static enum err fake_open(const struct workload_config *config, struct workload *out,
                          struct error *why)
{
    (void)out;
    return str_equal(config->model, "absent") ? err_set(why, ERR_NOT_FOUND, "no model") : ERR_OK;
}

static void fake_close(struct workload *workload)
{
    (void)workload;
}

static enum err fake_prepare(struct workload *workload, struct workload_query *query,
                             struct error *why)
{
    (void)workload;
    thread_sleep(STEP);
    atomic_fetch_add(&open_queries, 1);
    query->state = strdup(query->input);
    query->images = 1;
    return str_equal(query->input, "damaged")
               ? err_set(why, ERR_BAD_VALUE, "damaged.png: truncated")
               : ERR_OK;
}

static enum err fake_run(struct workload *workload, struct workload_query *query, struct error *why)
{
    (void)workload;
    thread_sleep(STEP);
    atomic_fetch_add(&batches[1], 1);
    return str_equal(query->state, "nan") ? err_set(why, ERR_BAD_VALUE, "the output is NaN")
                                          : ERR_OK;
}

static enum err fake_run_batch(struct workload *workload, struct workload_query *const *queries,
                               size_t count, struct error *why)
{
    (void)workload;
    atomic_fetch_add(&batches[count], 1);
    for (size_t i = 0; i < count; i++)
        if (str_equal(queries[i]->state, "nan"))
            return err_set(why, ERR_BAD_VALUE, "the output is NaN");
    for (size_t i = 0; i < count; i++)
        *(char *)queries[i]->state = 'B';
    thread_sleep(STEP);
    return ERR_OK;
}

static enum err fake_finish(struct workload *workload, struct workload_query *query,
                            struct completion *out, struct error *why)
{
    (void)workload;
    (void)why;
    thread_sleep(STEP);
    text_add(&out->content, query->state);
    return ERR_OK;
}

static void fake_discard(struct workload *workload, struct workload_query *query)
{
    (void)workload;
    if (query->state)
        atomic_fetch_sub(&open_queries, 1);
    free(query->state);
    query->state = NULL;
}

static const char *const GRADERS[] = {"top_1", NULL};
static const struct param_spec PARAMS[] = {{"threads", "COUNT", ""}, {NULL, NULL, NULL}};
static const struct param_spec QUERY_PARAMS[] = {{"size", "PIXELS", ""}, {NULL, NULL, NULL}};

static const struct workload_driver FAKE = {
    .name = "fake",
    .graders = GRADERS,
    .params = PARAMS,
    .query_params = QUERY_PARAMS,
    .open = fake_open,
    .close = fake_close,
    .prepare = fake_prepare,
    .run = fake_run,
    .run_batch = fake_run_batch,
    .finish = fake_finish,
    .discard = fake_discard,
};

static enum err open_fake(const struct workload_driver *driver, const char *params,
                          struct client *out, struct error *why)
{
    struct params given = {0};
    assert_int_equal(params_add(&given, params), ERR_OK);
    const struct client_config config = {.params = &given, .workload = driver, .model = "m"};
    enum err err = client_open(&workload_client, &config, out, why);
    params_release(&given);
    return err;
}

/* ---- the tests ---- */

static void times_only_the_inference(void **state)
{
    (void)state;
    struct client client;
    struct completion reply;
    struct error why = {0};
    assert_int_equal(open_fake(&FAKE, "", &client, &why), ERR_OK);
    const struct client_request request = {.model = "m", .prompt = "a"};
    nanos began = clock_now();
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_OK);
    nanos ended = clock_now();
    assert_string_equal(text_get(&reply.content), "a");
    assert_true(reply.sent - began >= STEP);
    assert_true(ended - reply.done >= STEP);
    assert_true(reply.done - reply.sent >= STEP);
    assert_true(reply.done - reply.sent < ended - began - STEP);
    assert_true(reply.images == 1);
    assert_true(reply.output_tokens < 0);
    assert_string_equal(reply.finish_reason, "stop");
    completion_release(&reply);
    client_close(&client);
    assert_int_equal(atomic_load(&open_queries), 0);
}

static void names_what_is_wrong(void **state)
{
    (void)state;
    static const struct workload_driver ALONE = {
        .name = "alone", .params = PARAMS, .open = fake_open, .close = fake_close};
    struct client client;
    struct completion reply;
    struct params size = {0};
    struct error why = {0};
    assert_int_equal(open_fake(&FAKE, "thread=4", &client, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "did you mean 'threads'?"));
    assert_int_equal(open_fake(&ALONE, "batch=4", &client, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "one query at a time"));
    assert_int_equal(open_fake(&FAKE, "batch=0", &client, &why), ERR_USAGE);
    assert_int_equal(open_fake(&FAKE, "", &client, &why), ERR_OK);
    assert_int_equal(params_add(&size, "sise=3"), ERR_OK);
    struct client_request request = {.model = "m", .prompt = "a", .params = &size};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "did you mean 'size'?"));
    completion_release(&reply);
    request = (struct client_request){.model = "m", .prompt = "damaged"};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_BAD_VALUE);
    assert_string_equal(why.text, "damaged.png: truncated");
    completion_release(&reply);
    params_release(&size);
    client_close(&client);
    assert_int_equal(atomic_load(&open_queries), 0);
}

struct sender {
    pthread_t thread;
    struct client client;
    const char *input;
    enum err err;
    struct error why;
    struct completion reply;
};

static void *send(void *argument)
{
    struct sender *sender = argument;
    const struct client_request request = {.model = "m", .prompt = sender->input};
    sender->err =
        sender->client.driver->ask(&sender->client, &request, &sender->reply, &sender->why);
    return NULL;
}

static void send_together(struct sender *senders, size_t count, const char *params)
{
    for (size_t i = 0; i <= BATCHES_MAX; i++)
        atomic_store(&batches[i], 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(open_fake(&FAKE, params, &senders[i].client, &senders[i].why), ERR_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send, &senders[i]), 0);
    for (size_t i = 0; i < count; i++)
        pthread_join(senders[i].thread, NULL);
}

static void close_all(struct sender *senders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        completion_release(&senders[i].reply);
        client_close(&senders[i].client);
    }
    assert_int_equal(atomic_load(&open_queries), 0);
}

static void runs_queries_of_several_threads_together(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    struct sender senders[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++)
        senders[i].input = "a";
    send_together(senders, COUNT, "batch=4,batch_delay_ms=60000");
    assert_int_equal(atomic_load(&batches[4]), 2);
    for (size_t i = 0; i < COUNT; i++) {
        size_t same = 0;
        assert_int_equal(senders[i].err, ERR_OK);
        assert_string_equal(text_get(&senders[i].reply.content), "B");
        for (size_t k = 0; k < COUNT; k++)
            same += senders[k].reply.sent == senders[i].reply.sent &&
                    senders[k].reply.done == senders[i].reply.done;
        assert_int_equal(same, 4); /* one window for all of a batch */
    }
    close_all(senders, COUNT);
}

static void runs_an_incomplete_batch_after_the_delay(void **state)
{
    (void)state;
    struct sender senders[3] = {{.input = "a"}, {.input = "b"}, {.input = "c"}};
    send_together(senders, 3, "batch=64,batch_delay_ms=500");
    assert_int_equal(atomic_load(&batches[3]), 1);
    close_all(senders, 3);
}

static void fails_only_the_query_at_fault(void **state)
{
    (void)state;
    struct sender senders[3] = {{.input = "a"}, {.input = "nan"}, {.input = "c"}};
    send_together(senders, 3, "batch=3,batch_delay_ms=60000");
    assert_int_equal(senders[0].err, ERR_OK);
    assert_int_equal(senders[1].err, ERR_BAD_VALUE);
    assert_string_equal(senders[1].why.text, "the output is NaN");
    assert_int_equal(senders[2].err, ERR_OK);
    assert_string_equal(text_get(&senders[2].reply.content), "c");
    close_all(senders, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_only_the_inference),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(runs_queries_of_several_threads_together),
        cmocka_unit_test(runs_an_incomplete_batch_after_the_delay),
        cmocka_unit_test(fails_only_the_query_at_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
