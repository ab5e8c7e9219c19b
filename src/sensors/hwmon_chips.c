#include "sensors/hwmon_chips.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/fs.h"

/* Drivers of the old registration call keep their files, name included, in the parent device. */
static bool read_name(const char *dir, char *to, size_t size)
{
    char path[FS_PATH_MAX];
    if (str_format(path, sizeof path, "%s/name", dir) && !fs_read_text(path, to, size) && to[0])
        return true;
    return str_format(path, sizeof path, "%s/device/name", dir) && !fs_read_text(path, to, size) &&
           to[0];
}

enum err hwmon_chips_list(struct hwmon_chips *out)
{
    struct fs_names names;
    *out = (struct hwmon_chips){0};
    enum err err = fs_list("/sys/class/hwmon", &names);
    if (err)
        return err;
    struct hwmon_chip *items = calloc(names.count + 1, sizeof *items);
    if (!items) {
        fs_names_release(&names);
        return ERR_NO_MEMORY;
    }
    size_t count = 0;
    for (size_t i = 0; i < names.count; i++) {
        struct hwmon_chip *chip = &items[count];
        *chip = (struct hwmon_chip){0};
        if (!str_format(chip->dir, sizeof chip->dir, "/sys/class/hwmon/%s", names.items[i]) ||
            !read_name(chip->dir, chip->name, sizeof chip->name))
            continue;
        for (size_t j = 0; j < count; j++)
            chip->nth += !strcmp(items[j].name, chip->name);
        count++;
    }
    fs_names_release(&names);
    *out = (struct hwmon_chips){.items = items, .count = count};
    return ERR_OK;
}

void hwmon_chips_release(struct hwmon_chips *chips)
{
    free(chips->items);
    *chips = (struct hwmon_chips){0};
}
