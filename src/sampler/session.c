#define _GNU_SOURCE
#include "sampler/session.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"
#include "port/fs.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sensors/registry.h"

/* ---- the list of drivers ---- */

/* One item of the list: "rapl", or "remote=HOST", whose argument follows the "=".  NULL: no argument. */
struct wanted {
    char name[256];
    const char *argument;
};

static bool next_wanted(const char **list, struct wanted *out)
{
    out->argument = NULL;
    if (!str_next_item(list, out->name, sizeof out->name))
        return false;
    char *mark = strchr(out->name, '=');
    if (mark) {
        *mark = '\0';
        out->argument = mark + 1;
    }
    return true;
}

/* Whether the list names a driver; its arguments are appended, separated by commas. */
static bool names_driver(const char *list, const char *name, struct text *arguments)
{
    struct wanted word;
    bool is_named = false;
    while (list) {
        if (!next_wanted(&list, &word) || !str_equal(word.name, name))
            continue;
        is_named = true;
        if (word.argument)
            text_addf(arguments, "%s%s", arguments->length ? "," : "", word.argument);
    }
    return is_named;
}

static enum err check_names(const char *list, struct error *why)
{
    struct wanted word;
    while (list) {
        if (!next_wanted(&list, &word))
            return err_set(why, ERR_USAGE, "--sensors: empty or too long name");
        const struct sensor_driver *driver = sensor_driver_find(word.name, why);
        if (!driver)
            return ERR_USAGE;
        if (word.argument && !driver->argument)
            return err_set(why, ERR_USAGE, "--sensors: %s takes no argument", driver->name);
        if (driver->argument && (!word.argument || !*word.argument))
            return err_set(why, ERR_USAGE, "--sensors: %s needs an argument: %s=%s", driver->name,
                           driver->name, driver->argument);
    }
    return ERR_OK;
}

/* ---- finding ---- */

struct probing {
    const struct sensor_driver *driver;
    struct sensor_config config;
    char *devices;
    struct text arguments;
    struct sensor_findings findings;
};

static void *probe_main(void *argument)
{
    struct probing *work = argument;
    sensors_probe(&work->config, work->driver->name, &work->findings);
    return NULL;
}

static enum err add_finding(struct session *session, const struct sensor_finding *finding)
{
    struct sensor_finding *added =
        sensor_found(&session->findings, finding->id, finding->kind, finding->status);
    if (!added)
        return ERR_NO_MEMORY;
    *added = *finding;
    return ERR_OK;
}

static enum err add_hung(struct session *session, const struct sensor_driver *driver)
{
    struct sensor_finding hung = {.driver = driver, .kind = SENSOR_HOST, .status = SENSOR_DEAD};
    chars_copy(hung.id, driver->name);
    chars_copy(hung.reason, "the driver does not return from a call");
    log_warn("%s: %s; measuring without it", hung.id, hung.reason);
    return add_finding(session, &hung);
}

/* Probes in a separate thread, because a driver may hang: its memory is then left to that thread. */
static enum err probe(struct session *session, const struct sensor_config *config,
                      const struct sensor_driver *driver, struct text *arguments)
{
    enum err err = ERR_OK;
    struct probing *work = memory_zeroed(1, sizeof *work);
    if (!work) {
        text_release(arguments);
        return ERR_NO_MEMORY;
    }
    *work = (struct probing){.driver = driver, .config = *config, .arguments = *arguments};
    if (work->arguments.length)
        work->config.arguments = text_get(&work->arguments);
    if (config->devices)
        work->config.devices = work->devices = memory_string(config->devices);
    if ((config->devices && !work->devices) || work->arguments.failed)
        err = ERR_NO_MEMORY;
    else if (!thread_run(probe_main, work, SENSOR_CALL_TIMEOUT))
        return add_hung(session, driver);
    for (size_t i = 0; i < work->findings.count && !err; i++)
        err = add_finding(session, &work->findings.items[i]);
    sensor_findings_release(&work->findings);
    text_release(&work->arguments);
    free(work->devices);
    free(work);
    return err;
}

static enum err probe_all(struct session *session, const struct session_options *options)
{
    enum err err = ERR_OK;
    for (const struct sensor_driver *const *d = SENSOR_DRIVERS; *d && !err; d++) {
        struct text arguments = {0};
        if (!options->drivers || names_driver(options->drivers, (*d)->name, &arguments))
            err = probe(session, &options->sensors, *d, &arguments); /* takes ownership */
    }
    return err;
}

/* ---- opening ---- */

static enum sensor_status status_of(enum err err)
{
    switch (err) {
    case ERR_DENIED:
        return SENSOR_DENIED;
    case ERR_DEAD:
    case ERR_TIMEOUT:
        return SENSOR_DEAD;
    case ERR_ABSENT:
    case ERR_NOT_FOUND:
        return SENSOR_ABSENT;
    default:
        return SENSOR_UNSUPPORTED;
    }
}

/* Opens every readable finding; one that cannot be opened gets the reason. */
static enum err add_sources(struct session *session)
{
    session->source_of =
        memory_resize(NULL, (session->findings.count + 1) * sizeof *session->source_of);
    if (!session->source_of)
        return ERR_NO_MEMORY;
    struct error why = {0};
    const struct sensor_driver *hung = NULL; /* its other devices are skipped */
    for (size_t i = 0; i < session->findings.count; i++) {
        struct sensor_finding *finding = &session->findings.items[i];
        session->source_of[i] = -1;
        if (finding->status != SENSOR_OK && finding->status != SENSOR_ESTIMATED)
            continue;
        enum err err = ERR_TIMEOUT;
        if (finding->driver != hung)
            err = sampler_add(session->sampler, finding, &why);
        if (err == ERR_TIMEOUT)
            hung = finding->driver;
        if (err == ERR_NO_MEMORY)
            return err;
        if (err) {
            bool named = str_starts(why.text, finding->id);
            if (err != ERR_UNSUPPORTED)
                log_warn("%s%s%s", named ? "" : finding->id, named ? "" : ": ", why.text);
            finding->status = status_of(err);
            chars_copy(finding->reason, why.text);
            continue;
        }
        session->source_of[i] = (long)sampler_count(session->sampler) - 1;
    }
    return ERR_OK;
}

/* A sensor requested by address must be available: a sum that silently lacks a host would be wrong. */
static enum err check_named(const struct session *session, struct error *why)
{
    for (size_t i = 0; i < session->findings.count; i++) {
        const struct sensor_finding *finding = &session->findings.items[i];
        if (finding->driver->argument && finding->status != SENSOR_ABSENT &&
            session->source_of[i] < 0)
            return err_set(why, ERR_NOT_FOUND, "%s: %s%s%s%s", finding->id, finding->reason,
                           finding->fix[0] ? " (fix: " : "", finding->fix,
                           finding->fix[0] ? ")" : "");
    }
    return ERR_OK;
}

/* Which GPUs are measured must never be ambiguous: a name that matched none is reported, unless another vendor's
 * driver may have matched it. */
static void warn_unmatched(const struct session *session, const char *devices)
{
    const struct sensor_finding *unmatched = NULL;
    const struct sensor_driver *matched_by = NULL;
    for (size_t i = 0; i < session->findings.count; i++) {
        const struct sensor_finding *finding = &session->findings.items[i];
        if (finding->kind != SENSOR_GPU)
            continue;
        if (session->source_of[i] >= 0)
            matched_by = finding->driver;
        else if (finding->status == SENSOR_ABSENT && strchr(finding->id, ':'))
            unmatched = finding;
    }
    if (unmatched && (!matched_by || matched_by == unmatched->driver))
        log_warn("--devices: %s", unmatched->reason);
    else if (!matched_by)
        log_warn("--devices: no readable GPU matches \"%s\"", devices);
}

enum err session_open(struct session *session, const struct session_options *options,
                      struct error *why)
{
    *session = (struct session){0};
    if (options->drivers) {
        enum err err = check_names(options->drivers, why);
        if (err)
            return err;
    }
    const char *root = getenv("IPW_SYSROOT");
    if (root && *root)
        fs_set_root(root);
    session->sampler = sampler_new(options->period);
    if (!session->sampler)
        return err_set(why, ERR_NO_MEMORY, "cannot start sampling: out of memory or descriptors");
    if (options->recent)
        sampler_keep_recent(session->sampler);
    if (options->low_overhead)
        sampler_set_low_overhead(session->sampler, options->tick_period);
    sampler_set_counter_period(session->sampler, options->counter_period);
    nanos began = clock_now();
    unsigned failures = memory_failures();
    enum err err = probe_all(session, options);
    nanos probed = clock_now();
    if (!err)
        err = add_sources(session);
    if (!err && memory_failures() != failures)
        err = ERR_NO_MEMORY; /* a driver may have taken it for an absent device */
    log_debug("probed in %.1f ms, opened %zu sensors in %.1f ms", 1e3 * seconds(probed - began),
              sampler_count(session->sampler), 1e3 * seconds(clock_now() - probed));
    if (!err && options->sensors.devices && *options->sensors.devices)
        warn_unmatched(session, options->sensors.devices);
    if (err)
        err_set(why, err, "cannot start sampling: %s", err_text(err));
    else if (!options->may_lack)
        err = check_named(session, why);
    if (!err)
        err = sampler_start(session->sampler, why);
    if (err) {
        session_close(session);
        return err;
    }
    session->started = clock_now();
    return ERR_OK;
}

void session_close(struct session *session)
{
    sampler_free(session->sampler);
    sensor_findings_release(&session->findings);
    free(session->source_of);
    *session = (struct session){0};
}
