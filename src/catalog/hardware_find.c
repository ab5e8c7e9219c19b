/* The devices of the catalog: one file each, parsed when it is first used, found by id or alias. */
#include "catalog/hardware.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_file.h"
#include "catalog/hardware_json.h"
#include "catalog/near_names.h"
#include "core/memory.h"
#include "core/text.h"

/* ---- devices ---- */

struct device {
    struct hardware owner; /* of what the entry points to */
    struct hardware entry;
};

static enum err parse_device(const struct catalog_format *format, const char *name,
                             const char *bytes, size_t length, void **out, struct error *why)
{
    (void)format;
    struct device *device = memory_zeroed(1, sizeof *device);
    if (!device)
        return err_no_memory(why);
    enum err err = hardware_parse(name, bytes, length, &device->owner, why);
    if (err) {
        free(device);
        return err;
    }
    device->entry = device->owner;
    device->entry.storage = NULL;
    *out = device;
    return ERR_OK;
}

const struct hardware *hardware_of(struct catalog_file *file)
{
    static const struct catalog_format FORMAT = {.parse = parse_device};
    const struct device *device = catalog_file_get(file, &FORMAT);
    return device ? &device->entry : NULL;
}

size_t hardware_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++)
        count += HARDWARE_FILES[i].kind == CATALOG_DEVICE;
    return count;
}

static struct catalog_file *file_at(size_t index)
{
    struct catalog_file *file = HARDWARE_FILES;
    for (; file->kind != CATALOG_DEVICE || index > 0; file++)
        index -= file->kind == CATALOG_DEVICE;
    return file;
}

const char *hardware_id(size_t index)
{
    return file_at(index)->id;
}

const struct hardware *hardware_at(size_t index)
{
    return hardware_of(file_at(index));
}

/* ---- names ---- */

static bool has_alias(const struct catalog_file *file, const char *name)
{
    struct catalog_name alias = catalog_names(file, CATALOG_ALIASES);
    while (catalog_name_next(&alias))
        if (str_equal_nocase(alias.text, name))
            return true;
    return false;
}

/* By id, else by alias. */
static struct catalog_file *find_file(const char *name)
{
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++)
        if (HARDWARE_FILES[i].kind == CATALOG_DEVICE &&
            str_equal_nocase(HARDWARE_FILES[i].id, name))
            return &HARDWARE_FILES[i];
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++)
        if (has_alias(&HARDWARE_FILES[i], name))
            return &HARDWARE_FILES[i];
    return NULL;
}

const struct hardware *hardware_named(const char *name)
{
    struct catalog_file *file = find_file(name);
    return file ? hardware_of(file) : NULL;
}

static enum err unknown_hardware(const char *name, struct error *why)
{
    size_t count = hardware_count();
    const char **ids = memory_zeroed(count, sizeof *ids);
    if (!ids)
        return err_no_memory(why);
    for (size_t i = 0; i < count; i++)
        ids[i] = hardware_id(i);
    char near[160];
    bool is_near = near_names(name, ids, count, near, sizeof near);
    free(ids);
    return is_near ? err_set(why, ERR_NOT_FOUND, "unknown hardware '%.64s': did you mean %s?", name,
                             near)
                   : err_set(why, ERR_NOT_FOUND,
                             "unknown hardware '%.64s': see `ipw list hardware`", name);
}

enum err hardware_find(const char *id, struct hardware *out, struct error *why)
{
    struct text device = {0};
    const char *point = strrchr(id, '@');
    struct catalog_file *file = find_file(id); /* a processor's name may contain an '@' */
    *out = (struct hardware){0};
    if (!file && point) {
        text_add_bytes(&device, id, (size_t)(point - id));
        id = text_get(&device);
        file = find_file(id);
    } else {
        point = NULL;
    }
    const struct hardware *entry = file ? hardware_of(file) : NULL;
    enum err err = entry ? ERR_OK : file ? err_no_memory(why) : unknown_hardware(id, why);
    if (entry)
        *out = *entry;
    if (!err && point)
        err = hardware_at_point(out, point + 1, why);
    if (err)
        *out = (struct hardware){0};
    text_release(&device);
    return err;
}
