#include "ipw.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "trace/regions.h"

struct ipw_session {
    struct session session;
    pid_t owner;          /* after a fork the child has the session, but none of its threads */
    pthread_mutex_t lock; /* guards the following fields, except the devices */
    struct regions regions;
    /* Ledger of the region that was read last.  Later readings can refine the calibration of counters and change its
     * figures slightly; devices read afterwards must still add up to the total. */
    struct ledger read;
    nanos read_from, read_to; /* window of `read`; 0: none */
    char (*devices)[DEVICE_NAME_SIZE];
    size_t device_count;
};

static int status_from(enum err err)
{
    switch (err) {
    case ERR_OK:
        return IPW_OK;
    case ERR_NO_MEMORY:
        return IPW_ERROR_MEMORY;
    case ERR_USAGE:
        return IPW_ERROR_ARGUMENT;
    default:
        return IPW_ERROR_SYSTEM;
    }
}

const char *ipw_status_text(int status)
{
    switch (status) {
    case IPW_ERROR_MEMORY:
        return "out of memory";
    case IPW_ERROR_ARGUMENT:
        return "no such region, device or option";
    case IPW_ERROR_OPEN:
        return "the region has not ended yet";
    case IPW_ERROR_SYSTEM:
        return "no threads or descriptors available, or the session belongs to another process";
    default:
        return status >= 0 ? "ok" : "unknown status";
    }
}

const char *ipw_version(void)
{
    return IPW_VERSION;
}

/* Threads that a fork did not copy may hold the locks forever. */
static bool is_ours(const ipw_session *session)
{
    return session->owner == getpid();
}

/* ---- opening ---- */

static bool has_device(const ipw_session *session, const char *device)
{
    for (size_t i = 0; i < session->device_count; i++)
        if (str_equal(session->devices[i], device))
            return true;
    return false;
}

static enum err list_devices(ipw_session *session)
{
    struct sampler *sampler = session->session.sampler;
    session->devices = memory_zeroed(sampler_channel_count(sampler) + 1, sizeof *session->devices);
    if (!session->devices)
        return ERR_NO_MEMORY;
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            const struct sensor_channel *row = &sensor->channels[c];
            if (quantity_gives_joules(row->quantity) && !has_device(session, row->device))
                str_copy(session->devices[session->device_count++], sizeof *session->devices,
                         row->device);
        }
    }
    return ERR_OK;
}

ipw_session *ipw_open(const ipw_options *options, int *status)
{
    struct session_options wanted = {0};
    struct error why;
    /* A caller built against a newer, longer struct: only the known part is used.  One that did not set the size is
     * refused. */
    if (options && options->size < sizeof *options) {
        if (status)
            *status = IPW_ERROR_ARGUMENT;
        return NULL;
    }
    if (options) {
        wanted.sensors.devices = options->devices;
        wanted.drivers = options->sensors;
        if (options->rate_hz > 0)
            wanted.period = from_seconds(1 / options->rate_hz);
    }
    enum err err = ERR_NO_MEMORY;
    ipw_session *session = memory_zeroed(1, sizeof *session);
    if (session) {
        session->owner = getpid();
        pthread_mutex_init(&session->lock, NULL);
        err = session_open(&session->session, &wanted, &why);
        if (!err)
            err = list_devices(session);
        if (!err)
            sampler_ready(session->session.sampler);
    }
    if (status)
        *status = status_from(err);
    if (err) {
        ipw_close(session);
        return NULL;
    }
    return session;
}

void ipw_close(ipw_session *session)
{
    if (!session || !is_ours(session))
        return;
    session_close(&session->session);
    regions_release(&session->regions);
    ledger_release(&session->read);
    free(session->devices);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

/* ---- regions ---- */

int ipw_begin(ipw_session *session, const char *name)
{
    if (!session || !name)
        return IPW_ERROR_ARGUMENT;
    if (!is_ours(session))
        return IPW_ERROR_SYSTEM;
    int number;
    pthread_mutex_lock(&session->lock);
    enum err err = regions_begin(&session->regions, pthread_self(), name, &number);
    if (!err)
        session->regions.items[number].from = clock_now();
    pthread_mutex_unlock(&session->lock);
    return err ? IPW_ERROR_MEMORY : number;
}

int ipw_end(ipw_session *session, int region)
{
    nanos now = clock_now();
    if (!session)
        return IPW_ERROR_ARGUMENT;
    if (!is_ours(session))
        return IPW_ERROR_SYSTEM;
    pthread_mutex_lock(&session->lock);
    enum err err = regions_end(&session->regions, region, now);
    pthread_mutex_unlock(&session->lock);
    return err ? IPW_ERROR_ARGUMENT : IPW_OK;
}

const char *ipw_region_path(ipw_session *session, int region)
{
    const char *path = NULL;
    if (!session || !is_ours(session))
        return NULL;
    pthread_mutex_lock(&session->lock);
    if (regions_find(&session->regions, region))
        path = regions_path(&session->regions, region);
    pthread_mutex_unlock(&session->lock);
    return path;
}

/* ---- results ---- */

static int find_window(ipw_session *session, int region, nanos *from, nanos *to)
{
    int status = IPW_ERROR_ARGUMENT;
    pthread_mutex_lock(&session->lock);
    const struct region *found = regions_find(&session->regions, region);
    if (found) {
        *from = found->from;
        *to = found->to;
        status = *to ? IPW_OK : IPW_ERROR_OPEN;
    }
    pthread_mutex_unlock(&session->lock);
    return status;
}

static void fill(ipw_result *result, const struct energy *energy, double length_s, double watts)
{
    ipw_result full = {
        .size = sizeof full,
        .seconds = length_s,
        .joules = energy->joules,
        .plus_minus = energy->plus_minus,
        .coverage = energy->coverage,
        .watts = watts,
        .method = (int)energy->method,
        .low_confidence = energy->low_confidence,
        .updates = energy->updates,
    };
    chars_copy(full.source, energy->source);
    chars_copy(full.note, energy->note);
    /* A caller built against an older, shorter struct gets the fields that it has. */
    size_t size = result->size < sizeof full ? result->size : sizeof full;
    full.size = size;
    memcpy(result, &full, size);
}

static int fill_from(const struct ledger *ledger, const char *device, double length_s,
                     ipw_result *result)
{
    if (!device) {
        const struct energy *total = &ledger->total;
        fill(result, total, length_s, total->joules / (length_s * total->coverage));
        return IPW_OK;
    }
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->devices[i].has_energy && str_equal(ledger->devices[i].id, device)) {
            fill(result, &ledger->devices[i].energy, length_s, ledger->devices[i].power_mean);
            return IPW_OK;
        }
    return IPW_ERROR_ARGUMENT;
}

/* Fills the result from the previous read if that was of the same window.  Caller holds the lock. */
static bool fill_again(const ipw_session *session, nanos from, nanos to, const char *device,
                       ipw_result *result, int *status)
{
    if (session->read_from != from || session->read_to != to)
        return false;
    *status = fill_from(&session->read, device, seconds(to - from), result);
    return true;
}

static int read_region(ipw_session *session, int region, const char *device, ipw_result *result)
{
    nanos from, to;
    if (!session || !result || result->size < offsetof(ipw_result, source))
        return IPW_ERROR_ARGUMENT;
    if (!is_ours(session))
        return IPW_ERROR_SYSTEM;
    int status = find_window(session, region, &from, &to);
    if (status != IPW_OK)
        return status;
    pthread_mutex_lock(&session->lock);
    bool again = fill_again(session, from, to, device, result, &status);
    pthread_mutex_unlock(&session->lock);
    if (again)
        return status;
    struct ledger taken;
    sampler_settle(session->session.sampler, to); /* waits for readings, so not under the lock */
    if (ledger_take(session->session.sampler, from, to, NULL, &taken) != ERR_OK)
        return IPW_ERROR_MEMORY;
    pthread_mutex_lock(&session->lock);
    if (!fill_again(session, from, to, device, result, &status)) {
        status = fill_from(&taken, device, seconds(to - from), result);
        struct ledger former = session->read;
        session->read = taken;
        session->read_from = from;
        session->read_to = to;
        taken = former;
    }
    pthread_mutex_unlock(&session->lock);
    ledger_release(&taken);
    return status;
}

int ipw_read(ipw_session *session, int region, ipw_result *result)
{
    return read_region(session, region, NULL, result);
}

int ipw_read_device(ipw_session *session, int region, const char *device, ipw_result *result)
{
    return device ? read_region(session, region, device, result) : IPW_ERROR_ARGUMENT;
}

int ipw_device_count(ipw_session *session)
{
    return session ? (int)session->device_count : IPW_ERROR_ARGUMENT;
}

const char *ipw_device_id(ipw_session *session, int index)
{
    if (!session || index < 0 || (size_t)index >= session->device_count)
        return NULL;
    return session->devices[index];
}
