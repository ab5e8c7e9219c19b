#include "runner/profile/service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "clients/client.h"
#include "core/json.h"
#include "port/proc.h"
#include "port/thread.h"

/* Loading a large model from a disk takes minutes. */
#define PREPARE_MOST_S 1800.0

struct preparing {
    const struct client_driver *driver;
    struct client_config config;
    const char *model;
    double timeout_s;
    struct service_facts facts;
    enum err err;
    struct error why;
    atomic_bool done;
};

static void describe(struct preparing *work, struct client *client)
{
    struct json json;
    json_init(&json, &work->facts.info, false);
    json_object(&json, NULL);
    json_string(&json, "client", work->driver->name);
    json_string(&json, "base_url", client->base_url[0] ? client->base_url : NULL);
    if (work->driver->describe)
        work->driver->describe(client, work->model, &json);
    json_object_end(&json);
}

static void *prepare_main(void *argument)
{
    struct preparing *work = argument;
    struct client client;
    work->err = client_open(work->driver, &work->config, &client, &work->why);
    if (!work->err) {
        work->err = work->driver->health(&client, &work->why);
        if (!work->err)
            work->err = work->driver->prepare(&client, work->model, from_seconds(work->timeout_s),
                                              &work->why);
        if (!work->err)
            describe(work, &client);
        str_copy(work->facts.base_url, sizeof work->facts.base_url, client.base_url);
        client_close(&client);
    }
    atomic_store(&work->done, true);
    return NULL;
}

enum err service_prepare(const struct client_driver *driver, const struct client_config *config,
                         const char *model, double timeout_s, struct service_facts *out,
                         int *signal_number, void (*tick)(void *context), void *context,
                         struct error *why)
{
    pthread_t thread;
    struct preparing *work = calloc(1, sizeof *work);
    if (!work)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    *work =
        (struct preparing){.driver = driver,
                           .config = *config,
                           .model = model,
                           .timeout_s = timeout_s > PREPARE_MOST_S ? timeout_s : PREPARE_MOST_S};
    enum err err = thread_start(&thread, prepare_main, work);
    if (err) {
        free(work);
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    }
    while (!atomic_load(&work->done)) {
        *signal_number = proc_poll_signal(20 * NS_PER_MS);
        if (*signal_number) {
            pthread_detach(thread);
            return err_set(why, ERR_INTERRUPTED, "interrupted while the service was preparing");
        }
        tick(context);
    }
    pthread_join(thread, NULL);
    err = work->err;
    *why = work->why;
    *out = work->facts;
    free(work);
    if (err)
        text_release(&out->info);
    return err;
}
