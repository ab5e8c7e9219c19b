#include "runner/layers/rest.h"

#include <math.h>

#include "core/clock.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

enum { SPINNERS_MAX = 512 };

/* What an engine's thread does at a barrier: looks, and tells the core that it only waits. */
static void *spin(void *argument)
{
    atomic_bool *stop = argument;
    while (!atomic_load_explicit(stop, memory_order_relaxed)) {
#if defined __x86_64__
        __builtin_ia32_pause();
#elif defined __aarch64__
        __asm__ volatile("yield");
#endif
    }
    return NULL;
}

static bool sleep_for(double length_s, const atomic_bool *cancel)
{
    nanos until = clock_now() + from_seconds(length_s);
    for (nanos now = clock_now(); now < until && !atomic_load(cancel); now = clock_now()) {
        nanos left = until - now;
        thread_sleep(left < 20 * NS_PER_MS ? left : 20 * NS_PER_MS);
    }
    return !atomic_load(cancel);
}

static enum err take_window(struct session *session, double length_s, const atomic_bool *cancel,
                            struct layers_window *window, struct error *why)
{
    struct ledger ledger;
    sampler_mark(session->sampler);
    window->from = clock_now();
    bool whole = sleep_for(length_s, cancel);
    window->to = clock_now();
    if (!whole)
        return err_set(why, ERR_INTERRUPTED, "interrupted");
    sampler_settle(session->sampler, window->to);
    enum err err = ledger_take(session->sampler, window->from, window->to, NULL, &ledger);
    if (err)
        return err_set(why, err, "cannot add up the energy: %s", err_text(err));
    window->energy = ledger.total;
    ledger_release(&ledger);
    return ERR_OK;
}

enum err rest_measure(struct session *session, double length_s, unsigned threads,
                      const atomic_bool *cancel, struct layers_window *window,
                      struct layers_rest *out, struct error *why)
{
    pthread_t spinners[SPINNERS_MAX];
    unsigned started = 0;
    atomic_bool stop;
    atomic_init(&stop, false);
    *out = (struct layers_rest){.watts = UNKNOWN, .sigma = UNKNOWN};
    window->energy = energy_unknown("not measured");
    while (started < threads && started < SPINNERS_MAX &&
           thread_start(&spinners[started], spin, &stop) == ERR_OK)
        started++;
    enum err err = started < threads && started < SPINNERS_MAX
                       ? err_set(why, ERR_BUSY, "cannot start %u threads", threads)
                       : take_window(session, length_s, cancel, window, why);
    atomic_store(&stop, true);
    while (started > 0)
        pthread_join(spinners[--started], NULL);
    if (err)
        return err;
    double length = seconds(window->to - window->from);
    *out = (struct layers_rest){.seconds = length,
                                .watts = window->energy.joules / length,
                                .sigma = window->energy.plus_minus / length};
    return ERR_OK;
}

double rest_update_period(struct session *session, const struct ledger *ledger)
{
    double longest = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        struct channel_state state;
        if (!device->counted || !device->has_energy)
            continue;
        sampler_channel(session->sampler, device->source, device->channel, &state);
        longest = fmax(longest, seconds(state.period));
        if (device->energy.updates)
            longest =
                fmax(longest, seconds(ledger->to - ledger->from) / (double)device->energy.updates);
    }
    return longest;
}
