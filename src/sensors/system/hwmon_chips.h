/* The chips under /sys/class/hwmon, for the drivers that look there.
 * hwmon_chips_list allocates; release with hwmon_chips_release. */
#ifndef IPW_SENSORS_HWMON_CHIPS_H
#define IPW_SENSORS_HWMON_CHIPS_H

#include <stdbool.h>
#include <stddef.h>

#include "port/fs.h"

struct hwmon_chip {
    char dir[64];  /* "/sys/class/hwmon/hwmon3" */
    char name[40]; /* "amdgpu"; as the kernel driver gives it */
    unsigned nth;  /* among the chips of this name, from 0 */
};

struct hwmon_chips {
    struct hwmon_chip *items;
    size_t count;
};

/* In the kernel's order.  Chips without a readable name are left out.  ERR_NOT_FOUND: no hwmon. */
enum err hwmon_chips_list(struct hwmon_chips *out) MUST_USE;
void hwmon_chips_release(struct hwmon_chips *chips);

enum { HWMON_METERS_MAX = 16 };

/* powerN_average or powerN_input (microwatts), or energyN_input (microjoules). */
struct hwmon_meter {
    unsigned index;
    bool is_energy;
    char path[FS_PATH_MAX];
    char label[64]; /* "" when the chip gives none */
};

/* Fills to[HWMON_METERS_MAX] with the chip's meters whose label starts with `only` ("" takes all)
 * and returns how many. */
size_t hwmon_meters_find(const struct hwmon_chip *chip, const char *only, struct hwmon_meter *to);

/* "0000:03:00.0"; "" when the chip belongs to no PCI device. */
void hwmon_pci_address(const struct hwmon_chip *chip, char *to, size_t size);

#endif
