/* Names are looked up in the catalog, files are read, lists are split at commas; a device or precision that is
 * given more than once is estimated once. */
#include "estimate/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_json.h"
#include "core/log.h"
#include "core/text.h"
#include "estimate/workload_estimate.h"

enum { HARDWARE_MOST = 512 };

/* The next item of a list with commas between, into `item`; false when it is empty or too long. */
static bool next_item(const char **list, char *item, size_t size)
{
    size_t length = strcspn(*list, ",");
    if (length == 0 || length >= size)
        return false;
    str_format(item, size, "%.*s", (int)length, *list);
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

/* ---- devices ---- */

static enum err check_capacity(const struct candidates *out, struct error *why)
{
    if (out->hardware_count < HARDWARE_MOST)
        return ERR_OK;
    return err_set(why, ERR_USAGE, "at most %d devices", HARDWARE_MOST);
}

static enum err add_named(const char *id, struct candidates *out, struct error *why)
{
    struct hardware found;
    enum err err = check_capacity(out, why);
    if (!err)
        err = hardware_find(id, &found, why);
    if (err)
        return err;
    for (size_t i = 0; i < out->hardware_count; i++)
        if (strcmp(out->hardware[i].id, found.id) == 0) {
            log_warn("--hardware: %s given more than once: it is estimated once", found.id);
            hardware_release(&found);
            return ERR_OK;
        }
    candidates_add(out, &found);
    return ERR_OK;
}

static enum err add_all(struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < hardware_count(); i++)
        err = add_named(hardware_at(i)->id, out, why);
    return err;
}

static enum err add_list(const char *list, struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *rest = list; !err && rest;) {
        char id[128];
        if (!next_item(&rest, id, sizeof id))
            return err_set(why, ERR_USAGE, "--hardware takes ids separated by commas, not '%.80s'",
                           list);
        err = strcmp(id, "all") == 0 ? add_all(out, why) : add_named(id, out, why);
    }
    return err;
}

static enum err add_file(const char *path, struct candidates *out, struct error *why)
{
    enum err err = check_capacity(out, why);
    if (!err)
        err = hardware_read(path, &out->hardware[out->hardware_count], why);
    out->hardware_count += !err;
    return err;
}

void candidates_add(struct candidates *candidates, const struct hardware *hardware)
{
    candidates->hardware[candidates->hardware_count] = *hardware;
    candidates->is_catalogued[candidates->hardware_count++] = true;
}

static enum err find_hardware(const struct candidate_options *options, struct candidates *out,
                              struct error *why)
{
    enum err err = ERR_OK;
    out->hardware = calloc(HARDWARE_MOST, sizeof *out->hardware);
    out->is_catalogued = calloc(HARDWARE_MOST, sizeof *out->is_catalogued);
    if (!out->hardware || !out->is_catalogued)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; !err && i < options->hardware_count; i++)
        err = add_list(options->hardware[i], out, why);
    for (size_t i = 0; !err && i < options->file_count; i++)
        err = add_file(options->files[i], out, why);
    if (!err && !out->hardware_count && options->compare)
        err = add_all(out, why);
    return err;
}

/* ---- precisions ---- */

static enum err add_precision(const char *name, struct candidates *out, struct error *why)
{
    bool is_stored = strcmp(name, "stored") == 0;
    enum precision precision = PRECISION_FP16;
    struct error unknown = {0};
    if (!is_stored && precision_find(name, &precision, &unknown))
        return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    for (size_t i = 0; i < out->precision_count; i++)
        if (out->precisions[i].is_stored == is_stored && out->precisions[i].precision == precision)
            return err_set(why, ERR_USAGE, "--precision: %s given more than once", name);
    out->precisions[out->precision_count].precision = precision;
    out->precisions[out->precision_count++].is_stored = is_stored;
    return ERR_OK;
}

static enum err find_precisions(const char *list, struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *rest = list; !err && rest;) {
        char name[32];
        if (!next_item(&rest, name, sizeof name))
            return err_set(why, ERR_USAGE,
                           "--precision takes names like fp32,fp16,int8; not '%.80s'", list);
        err = add_precision(name, out, why);
    }
    return err;
}

/* ---- public ---- */

enum err candidates_find(const struct candidate_options *options, struct candidates *out,
                         struct error *why)
{
    *out = (struct candidates){0};
    enum err err = find_hardware(options, out, why);
    if (!err)
        err = find_precisions(options->precision, out, why);
    if (err)
        candidates_release(out);
    return err;
}

static void add_item(struct candidates *candidates, size_t device, enum precision precision,
                     bool keeps_stored, int devices)
{
    candidates->items[candidates->count++] = (struct grid_candidate){
        .device = device,
        .config = {.precision = precision, .keeps_stored = keeps_stored, .devices = devices}};
}

enum err candidates_make(const struct candidate_options *options, bool has_stored,
                         struct candidates *candidates, struct error *why)
{
    int devices = options->devices ? (int)options->devices : 1;
    candidates->items =
        calloc(candidates->hardware_count * (PRECISION_COUNT + 1), sizeof *candidates->items);
    if (!candidates->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t d = 0; d < candidates->hardware_count; d++) {
        const struct hardware *hardware = &candidates->hardware[d];
        enum precision usual = estimate_default_precision(hardware);
        for (size_t i = 0; i < candidates->precision_count; i++) {
            bool is_stored = candidates->precisions[i].is_stored;
            if (is_stored && !has_stored)
                return err_set(why, ERR_USAGE,
                               "--precision stored: the weights of this model have no stored "
                               "precision");
            add_item(candidates, d, is_stored ? usual : candidates->precisions[i].precision,
                     is_stored, devices);
        }
        if (candidates->precision_count)
            continue;
        if (has_stored || !options->sweep)
            add_item(candidates, d, usual, has_stored, devices);
        for (enum precision p = 0; options->sweep && p < PRECISION_COUNT; p++)
            if (estimate_offers(hardware, p))
                add_item(candidates, d, p, false, devices);
    }
    return ERR_OK;
}

void candidates_release(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->hardware_count; i++)
        hardware_release(&candidates->hardware[i]);
    free(candidates->hardware);
    free(candidates->is_catalogued);
    free(candidates->items);
    *candidates = (struct candidates){0};
}
