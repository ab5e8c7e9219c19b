#include "sensors/system/hwmon_gpus.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "sensors/system/amd_select.h"

enum maker { MAKER_NONE, MAKER_AMD, MAKER_INTEL };

static enum maker maker_of(const struct hwmon_chip *chip)
{
    if (!strcmp(chip->name, "amdgpu"))
        return MAKER_AMD;
    return !strcmp(chip->name, "i915") || !strcmp(chip->name, "xe") ? MAKER_INTEL : MAKER_NONE;
}

/* The amdgpu driver shows the north bridge's voltage on those alone. */
bool hwmon_is_integrated(const struct hwmon_chip *chip)
{
    char path[FS_PATH_MAX], label[32];
    return maker_of(chip) == MAKER_AMD &&
           str_format(path, sizeof path, "%s/in1_label", chip->dir) &&
           !fs_read_text(path, label, sizeof label) && !strcmp(label, "vddnb");
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

/* The digits of "GPU-..."; 0 when the kernel does not tell. */
static uint64_t unique_id(const struct hwmon_chip *chip)
{
    char path[FS_PATH_MAX], digits[40], *end;
    if (!str_format(path, sizeof path, "%s/device/unique_id", chip->dir) ||
        fs_read_text(path, digits, sizeof digits))
        return 0;
    uint64_t id = strtoull(digits, &end, 16);
    return *end ? 0 : id;
}

struct card {
    size_t chip;
    char pci[24];
};

static int along_the_bus(const void *a, const void *b)
{
    const struct card *x = a, *y = b;
    int order = strcmp(x->pci, y->pci);
    return order ? order : (x->chip > y->chip) - (x->chip < y->chip);
}

static void choose(const struct hwmon_chips *chips, enum maker maker, const char *devices,
                   bool *wanted)
{
    struct card found[AMD_DEVICES_MAX] = {0};
    struct amd_cards cards = {0};
    bool selected[AMD_DEVICES_MAX];
    for (size_t i = 0; i < chips->count && cards.count < AMD_DEVICES_MAX; i++) {
        if (maker_of(&chips->items[i]) != maker)
            continue;
        struct card *card = &found[cards.count++];
        card->chip = i;
        hwmon_pci_address(&chips->items[i], card->pci, sizeof card->pci);
    }
    qsort(found, cards.count, sizeof *found, along_the_bus);
    for (unsigned i = 0; i < cards.count; i++) {
        cards.hip_order[i] = i;
        cards.ids[i] = unique_id(&chips->items[found[i].chip]);
    }
    amd_select(&cards, devices, selected);
    for (unsigned i = 0; i < cards.count; i++)
        wanted[found[i].chip] = selected[i] || hwmon_is_integrated(&chips->items[found[i].chip]);
}

void hwmon_choose_gpus(const struct hwmon_chips *chips, const char *devices, bool *wanted)
{
    for (size_t i = 0; i < chips->count; i++)
        wanted[i] = true;
    choose(chips, MAKER_AMD, devices, wanted);
    if (devices && *devices) /* Intel's cards know no such environment */
        choose(chips, MAKER_INTEL, devices, wanted);
}
