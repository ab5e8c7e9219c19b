#include "runner/layers.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/layers/campaign.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* ---- signals ---- */

/* The thread that computes cannot wait for signals; this one does, and cancels. */
struct listener {
    pthread_t thread;
    atomic_bool cancel, over;
    atomic_int signal;
};

static void *listen_for_signals(void *argument)
{
    struct listener *listener = argument;
    thread_settle("ipw-signals", -1);
    while (!atomic_load(&listener->over)) {
        int number = proc_poll_signal(50 * NS_PER_MS);
        if (number) {
            atomic_store(&listener->signal, number);
            atomic_store(&listener->cancel, true);
        }
    }
    return NULL;
}

static enum err listener_start(struct listener *listener)
{
    atomic_init(&listener->cancel, false);
    atomic_init(&listener->over, false);
    atomic_init(&listener->signal, 0);
    return thread_start(&listener->thread, listen_for_signals, listener);
}

static int listener_stop(struct listener *listener)
{
    atomic_store(&listener->over, true);
    pthread_join(listener->thread, NULL);
    return atomic_load(&listener->signal);
}

/* ---- all models ---- */

static enum err measure_all(struct session *session, const char *const *models, size_t count,
                            const struct layers_options *options, const atomic_bool *cancel,
                            struct layers_result *out, struct error *why)
{
    sampler_ready(session->sampler);
    for (size_t i = 0; i < count; i++) {
        struct layers_model *model = &out->models[i];
        model->path = models[i];
        enum err err = campaign_run(session, options, cancel, model, why);
        out->count += !err || model->interrupted;
        if (err) {
            if (!model->interrupted)
                layers_model_release(model);
            return err;
        }
    }
    return ERR_OK;
}

enum err layers_measure(struct session *session, const char *const *models, size_t count,
                        const struct layers_options *options, struct layers_result *out,
                        struct error *why)
{
    struct listener listener;
    *out = (struct layers_result){.started_wall = clock_wall()};
    out->models = calloc(count, sizeof *out->models);
    if (!out->models)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = listener_start(&listener);
    if (err)
        return err_set(why, err, "cannot start a thread");
    err = measure_all(session, models, count, options, &listener.cancel, out, why);
    out->signal = listener_stop(&listener);
    return err;
}

void layers_result_release(struct layers_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        layers_model_release(&result->models[i]);
    free(result->models);
    *result = (struct layers_result){0};
}
