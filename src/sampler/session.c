#define _GNU_SOURCE
#include "sampler/session.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "port/fs.h"
#include "sampler/sampler.h"
#include "sensors/registry.h"

/* Whether name is one of the comma-separated words. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = list; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (!strncmp(word, name, length) && (word[length] == ',' || word[length] == '\0'))
            return true;
    }
    return false;
}

static enum err check_names(const char *list, struct error *why)
{
    char copy[256], *rest = copy, *word;
    if (!str_copy(copy, sizeof copy, list))
        return err_set(why, ERR_USAGE, "the list of sensors is too long");
    while ((word = strsep(&rest, ",")))
        if (!sensor_driver_find(word, why))
            return ERR_USAGE;
    return ERR_OK;
}

static void probe_all(struct session *session, const struct session_options *options)
{
    for (const struct sensor_driver *const *d = SENSOR_DRIVERS; *d; d++)
        if (!options->drivers || is_listed(options->drivers, (*d)->name))
            sensors_probe(&options->sensors, (*d)->name, &session->findings);
}

static enum sensor_status status_of(enum err err)
{
    switch (err) {
    case ERR_DENIED:
        return SENSOR_DENIED;
    case ERR_DEAD:
        return SENSOR_DEAD;
    case ERR_ABSENT:
    case ERR_NOT_FOUND:
        return SENSOR_ABSENT;
    default:
        return SENSOR_UNSUPPORTED;
    }
}

/* Opens every readable finding; one that fails to open gets the reason. */
static enum err add_sources(struct session *session)
{
    session->source_of = malloc((session->findings.count + 1) * sizeof *session->source_of);
    if (!session->source_of)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < session->findings.count; i++) {
        struct sensor_finding *finding = &session->findings.items[i];
        session->source_of[i] = -1;
        if (finding->status != SENSOR_OK && finding->status != SENSOR_ESTIMATED)
            continue;
        struct error why = {0};
        enum err err = sampler_add(session->sampler, finding, &why);
        if (err == ERR_NO_MEMORY)
            return err;
        if (err) {
            bool named = str_starts(why.text, finding->id);
            if (err != ERR_UNSUPPORTED)
                log_warn("%s%s%s", named ? "" : finding->id, named ? "" : ": ", why.text);
            finding->status = status_of(err);
            str_copy(finding->reason, sizeof finding->reason, why.text);
            continue;
        }
        session->source_of[i] = (long)sampler_count(session->sampler) - 1;
    }
    return ERR_OK;
}

/* Which GPUs are measured must never be left to chance: a name that matched none is reported, unless
 * another vendor's driver may have matched it. */
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
    nanos began = clock_now();
    probe_all(session, options);
    nanos probed = clock_now();
    enum err err = add_sources(session);
    log_debug("probed in %.1f ms, opened %zu sensors in %.1f ms", 1e3 * seconds(probed - began),
              sampler_count(session->sampler), 1e3 * seconds(clock_now() - probed));
    if (!err && options->sensors.devices && *options->sensors.devices)
        warn_unmatched(session, options->sensors.devices);
    if (err)
        err_set(why, err, "cannot start sampling: %s", err_text(err));
    else
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
