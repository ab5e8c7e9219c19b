#include "sensors/system/hwmon_chips.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

/* ---- chips ---- */

/* Drivers of the old registration call keep their files, name included, in the parent device. */
static bool read_name(const char *dir, char *to, size_t size)
{
    char path[FS_PATH_MAX];
    if (chars_format(path, "%s/name", dir) && !fs_read_text(path, to, size) && to[0])
        return true;
    return chars_format(path, "%s/device/name", dir) && !fs_read_text(path, to, size) && to[0];
}

enum err hwmon_chips_list(struct hwmon_chips *out)
{
    struct fs_names names;
    *out = (struct hwmon_chips){0};
    enum err err = fs_list("/sys/class/hwmon", &names);
    if (err)
        return err;
    struct hwmon_chip *items = memory_zeroed(names.count + 1, sizeof *items);
    if (!items) {
        fs_names_release(&names);
        return ERR_NO_MEMORY;
    }
    size_t count = 0;
    for (size_t i = 0; i < names.count; i++) {
        struct hwmon_chip *chip = &items[count];
        *chip = (struct hwmon_chip){0};
        if (!chars_format(chip->dir, "/sys/class/hwmon/%s", names.items[i]) ||
            !read_name(chip->dir, chip->name, sizeof chip->name))
            continue;
        for (size_t j = 0; j < count; j++)
            chip->nth += str_equal(items[j].name, chip->name);
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

/* ---- meters ---- */

/* Parses "power12_average"; false for any other file. */
static bool parse_meter_name(const char *name, bool *is_energy, unsigned *index, bool *is_average)
{
    const char *digits;
    if (str_starts(name, "power"))
        digits = name + strlen("power");
    else if (str_starts(name, "energy"))
        digits = name + strlen("energy");
    else
        return false;
    *is_energy = name[0] == 'e';
    if (!isdigit((unsigned char)*digits))
        return false;
    char *end;
    *index = (unsigned)strtoul(digits, &end, 10);
    *is_average = str_equal(end, "_average") && !*is_energy;
    return *is_average || str_equal(end, "_input");
}

static void read_label(const char *dir, struct hwmon_meter *meter)
{
    static const char *const FILES[] = {"label", "oem_info"};
    const char *what = meter->is_energy ? "energy" : "power";
    char path[FS_PATH_MAX];
    for (size_t i = 0; i < COUNT_OF(FILES); i++)
        if (chars_format(path, "%s/%s%u_%s", dir, what, meter->index, FILES[i]) &&
            !fs_read_text(path, meter->label, sizeof meter->label) && meter->label[0])
            return;
    meter->label[0] = '\0';
}

/* A chip with both powerN_average and powerN_input is read by its average: it covers the time
 * between reads, where an instantaneous value aliases. */
static size_t find_in(const char *dir, const char *only, struct hwmon_meter *to)
{
    struct fs_names names;
    size_t count = 0;
    if (fs_list(dir, &names))
        return 0;
    for (size_t i = 0; i < names.count; i++) {
        struct hwmon_meter found = {0};
        bool is_average;
        if (!parse_meter_name(names.items[i], &found.is_energy, &found.index, &is_average))
            continue;
        size_t at = 0;
        while (at < count && (to[at].is_energy != found.is_energy || to[at].index != found.index))
            at++;
        if ((at < count && !is_average) || at == HWMON_METERS_MAX ||
            !chars_format(found.path, "%s/%s", dir, names.items[i]))
            continue;
        read_label(dir, &found);
        if (!str_starts(found.label, only))
            continue;
        to[at] = found;
        count += at == count;
    }
    fs_names_release(&names);
    return count;
}

size_t hwmon_meters_find(const struct hwmon_chip *chip, const char *only, struct hwmon_meter *to)
{
    char parent[FS_PATH_MAX]; /* where the old registration call puts the files */
    size_t count = find_in(chip->dir, only, to);
    if (!count && chars_format(parent, "%s/device", chip->dir))
        count = find_in(parent, only, to);
    return count;
}

void hwmon_pci_address(const struct hwmon_chip *chip, char *to, size_t size)
{
    char path[FS_PATH_MAX], real[FS_PATH_MAX];
    unsigned domain, bus, slot, function;
    to[0] = '\0';
    if (!chars_format(path, "%s/device", chip->dir) || fs_real(path, real, sizeof real))
        return;
    const char *last = strrchr(real, '/');
    if (last && sscanf(last, "/%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4)
        str_copy(to, size, last + 1);
}

/* ---- the GPUs among them ---- */

enum vendor { VENDOR_OTHER, VENDOR_AMD, VENDOR_INTEL };

static enum vendor vendor_of(const struct hwmon_chip *chip)
{
    if (str_equal(chip->name, "amdgpu"))
        return VENDOR_AMD;
    return str_equal(chip->name, "i915") || str_equal(chip->name, "xe") ? VENDOR_INTEL
                                                                        : VENDOR_OTHER;
}

/* Only integrated GPUs have the north bridge's voltage. */
bool hwmon_is_integrated(const struct hwmon_chip *chip)
{
    char path[FS_PATH_MAX], label[32];
    return vendor_of(chip) == VENDOR_AMD && chars_format(path, "%s/in1_label", chip->dir) &&
           !fs_read_text(path, label, sizeof label) && str_equal(label, "vddnb");
}

bool hwmon_is_integrated_at(const char *pci)
{
    struct hwmon_chips chips;
    bool found = false;
    if (hwmon_chips_list(&chips))
        return false;
    for (size_t i = 0; i < chips.count && !found; i++) {
        char address[24];
        hwmon_pci_address(&chips.items[i], address, sizeof address);
        found =
            address[0] && str_equal_nocase(address, pci) && hwmon_is_integrated(&chips.items[i]);
    }
    hwmon_chips_release(&chips);
    return found;
}

/* The digits of "GPU-..."; 0 when the kernel does not report them. */
static uint64_t unique_id(const struct hwmon_chip *chip)
{
    char path[FS_PATH_MAX], digits[40], *end;
    if (!chars_format(path, "%s/device/unique_id", chip->dir) ||
        fs_read_text(path, digits, sizeof digits))
        return 0;
    uint64_t id = strtoull(digits, &end, 16);
    return *end ? 0 : id;
}

struct card {
    size_t chip;
    char pci[24];
};

static int by_pci_address(const void *a, const void *b)
{
    const struct card *x = a, *y = b;
    int order = strcmp(x->pci, y->pci);
    return order ? order : (x->chip > y->chip) - (x->chip < y->chip);
}

static void select_vendor(const struct hwmon_chips *chips, enum vendor vendor, const char *devices,
                          bool *selected)
{
    struct card found[AMD_DEVICES_MAX] = {0};
    struct amd_cards cards = {0};
    bool visible[AMD_DEVICES_MAX];
    for (size_t i = 0; i < chips->count && cards.count < AMD_DEVICES_MAX; i++) {
        if (vendor_of(&chips->items[i]) != vendor)
            continue;
        struct card *card = &found[cards.count++];
        card->chip = i;
        hwmon_pci_address(&chips->items[i], card->pci, sizeof card->pci);
    }
    qsort(found, cards.count, sizeof *found, by_pci_address);
    for (unsigned i = 0; i < cards.count; i++) {
        cards.hip_order[i] = i;
        cards.ids[i] = unique_id(&chips->items[found[i].chip]);
    }
    amd_select(&cards, devices, visible);
    for (unsigned i = 0; i < cards.count; i++)
        selected[found[i].chip] = visible[i] || hwmon_is_integrated(&chips->items[found[i].chip]);
}

void hwmon_select_gpus(const struct hwmon_chips *chips, const char *devices, bool *selected)
{
    for (size_t i = 0; i < chips->count; i++)
        selected[i] = true;
    select_vendor(chips, VENDOR_AMD, devices, selected);
    if (devices && *devices) /* Intel's cards have no such environment variable */
        select_vendor(chips, VENDOR_INTEL, devices, selected);
}
