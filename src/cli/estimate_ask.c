#include "cli/estimate_ask.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_json.h"
#include "core/log.h"
#include "core/text.h"
#include "port/fs.h"
#include "runner/host_report.h"
#include "sensors/registry.h"

enum { HARDWARE_MOST = 512 };

/* ---- devices ---- */

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "out of memory");
}

static enum err room_for_hardware(struct estimate_asked *out, struct error *why)
{
    out->hardware = calloc(HARDWARE_MOST, sizeof *out->hardware);
    out->is_catalogued = calloc(HARDWARE_MOST, sizeof *out->is_catalogued);
    if (out->hardware && out->is_catalogued)
        return ERR_OK;
    no_memory(why);
    return ERR_NO_MEMORY;
}

static enum err add_named(const char *id, struct estimate_asked *out, struct error *why)
{
    if (out->hardware_count == HARDWARE_MOST)
        return err_set(why, ERR_USAGE, "at most %d devices", HARDWARE_MOST);
    struct hardware *found = &out->hardware[out->hardware_count];
    enum err err = hardware_find(id, found, why);
    if (err)
        return err;
    for (size_t i = 0; i < out->hardware_count; i++)
        if (strcmp(out->hardware[i].id, found->id) == 0) {
            log_warn("--hardware: %s stands there twice: it is estimated once", found->id);
            hardware_release(found);
            return ERR_OK;
        }
    out->is_catalogued[out->hardware_count++] = true;
    return ERR_OK;
}

/* "a,b" is two, "all" the whole catalogue. */
static enum err add_list(const char *list, struct estimate_asked *out, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *word = list; !err && word;) {
        char id[128];
        size_t length = strcspn(word, ",");
        if (length == 0 || length >= sizeof id)
            return err_set(why, ERR_USAGE, "--hardware wants ids with commas between, not '%.80s'",
                           list);
        str_format(id, sizeof id, "%.*s", (int)length, word);
        if (strcmp(id, "all") == 0)
            for (size_t i = 0; !err && i < hardware_count(); i++)
                err = add_named(hardware_at(i)->id, out, why);
        else
            err = add_named(id, out, why);
        word = word[length] ? word + length + 1 : NULL;
    }
    return err;
}

static enum err add_file(const char *path, struct estimate_asked *out, struct error *why)
{
    if (out->hardware_count == HARDWARE_MOST)
        return err_set(why, ERR_USAGE, "at most %d devices", HARDWARE_MOST);
    enum err err = hardware_read(path, &out->hardware[out->hardware_count], why);
    out->hardware_count += !err;
    return err;
}

/* The device of this machine: its first GPU, else its processor. */
static enum err add_own(struct estimate_asked *out, struct error *why)
{
    struct sensor_findings findings = {0};
    struct host_report host;
    const char *gpu = NULL, *root = getenv("IPW_SYSROOT");
    if (root && *root)
        fs_set_root(root);
    sensors_probe(&(struct sensor_config){0}, NULL, &findings);
    host_report_take(&findings, &host);
    for (size_t i = 0; i < findings.count && !gpu; i++)
        if (findings.items[i].kind == SENSOR_GPU && findings.items[i].status == SENSOR_OK)
            gpu = findings.items[i].name;
    const char *name = gpu && gpu[0] ? gpu : host.info.cpu_brand;
    bool found = name[0] && hardware_find_device(name, &out->hardware[0]);
    enum err err = ERR_OK;
    if (found)
        out->is_catalogued[out->hardware_count++] = true;
    else
        err = err_set(why, ERR_USAGE,
                      "on which device? This machine's (%.80s) is not in the catalogue: give "
                      "--hardware ID (`ipw list hardware`), or --hardware-file with what `ipw "
                      "estimate calibrate` finds",
                      name[0] ? name : "of unknown name");
    sensor_findings_release(&findings);
    return err;
}

static enum err ask_hardware(const struct estimate_options *options, struct estimate_asked *out,
                             struct error *why)
{
    enum err err = room_for_hardware(out, why);
    for (size_t i = 0; !err && i < options->hardware.count; i++)
        err = add_list(options->hardware.items[i], out, why);
    for (size_t i = 0; !err && i < options->hardware_files.count; i++)
        err = add_file(options->hardware_files.items[i], out, why);
    if (!err && !out->hardware_count)
        err = options->compare ? add_list("all", out, why) : add_own(out, why);
    return err;
}

/* ---- formats ---- */

static enum err add_format(const char *name, struct estimate_formats *out, struct error *why)
{
    bool stored = strcmp(name, "stored") == 0;
    enum precision precision = PRECISION_FP16;
    if (!stored) {
        struct error unknown = {0};
        if (precision_find(name, &precision, &unknown))
            return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    }
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].keeps_stored == stored && out->items[i].precision == precision)
            return err_set(why, ERR_USAGE, "--precision: %s stands there twice", name);
    out->items[out->count].precision = precision;
    out->items[out->count++].keeps_stored = stored;
    return ERR_OK;
}

static enum err ask_formats(const char *list, struct estimate_formats *out, struct error *why)
{
    for (const char *word = list; word;) {
        char name[32];
        size_t length = strcspn(word, ",");
        if (length == 0 || length >= sizeof name)
            return err_set(why, ERR_USAGE,
                           "--precision wants formats like fp32,fp16,int8; not "
                           "'%.80s'",
                           list);
        str_format(name, sizeof name, "%.*s", (int)length, word);
        enum err err = add_format(name, out, why);
        if (err)
            return err;
        word = word[length] ? word + length + 1 : NULL;
    }
    return ERR_OK;
}

/* ---- all ---- */

enum err estimate_ask(const struct estimate_options *options, struct estimate_asked *out,
                      struct error *why)
{
    *out = (struct estimate_asked){0};
    enum err err = ask_hardware(options, out, why);
    if (!err && options->precision)
        err = ask_formats(options->precision, &out->formats, why);
    if (err)
        estimate_asked_release(out);
    return err;
}

static void add_candidate(struct estimate_asked *asked, size_t device, enum precision precision,
                          bool keeps_stored, int devices)
{
    asked->candidates[asked->candidate_count++] = (struct grid_candidate){
        .device = device,
        .choice = {.precision = precision, .keeps_stored = keeps_stored, .devices = devices}};
}

enum err estimate_ask_candidates(const struct estimate_options *options, bool has_stored,
                                 struct estimate_asked *asked, struct error *why)
{
    const struct estimate_formats *formats = &asked->formats;
    int devices = options->devices ? (int)options->devices : 1;
    asked->candidates =
        calloc(asked->hardware_count * (PRECISION_COUNT + 1), sizeof *asked->candidates);
    if (!asked->candidates)
        return no_memory(why);
    for (size_t d = 0; d < asked->hardware_count; d++) {
        const struct hardware *hardware = &asked->hardware[d];
        enum precision usual = estimate_default_precision(hardware);
        for (size_t i = 0; i < formats->count; i++) {
            if (formats->items[i].keeps_stored && !has_stored)
                return err_set(why, ERR_USAGE,
                               "--precision stored: the weights of this model have no format of "
                               "their own");
            add_candidate(asked, d,
                          formats->items[i].keeps_stored ? usual : formats->items[i].precision,
                          formats->items[i].keeps_stored, devices);
        }
        if (formats->count)
            continue;
        if (has_stored || !options->sweep)
            add_candidate(asked, d, usual, has_stored, devices);
        for (enum precision p = 0; options->sweep && p < PRECISION_COUNT; p++)
            if (estimate_offers(hardware, p))
                add_candidate(asked, d, p, false, devices);
    }
    return ERR_OK;
}

static double in_units(double value, double unit)
{
    return value > 0 ? value * unit : UNKNOWN;
}

struct budget estimate_ask_budget(const struct estimate_options *options)
{
    struct budget budget = budget_none();
    budget.most[BUDGET_LATENCY] = in_units(options->max_latency_ms, 1e-3);
    budget.most[BUDGET_ENERGY] = in_units(options->max_energy_mj, 1e-3);
    budget.most[BUDGET_MEMORY] = in_units(options->max_memory_gb, 1e9);
    budget.most[BUDGET_POWER] = in_units(options->max_power_w, 1);
    return budget;
}

void estimate_asked_release(struct estimate_asked *asked)
{
    for (size_t i = 0; i < asked->hardware_count; i++)
        hardware_release(&asked->hardware[i]);
    free(asked->hardware);
    free(asked->is_catalogued);
    free(asked->candidates);
    *asked = (struct estimate_asked){0};
}
