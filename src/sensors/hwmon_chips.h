/* The chips under /sys/class/hwmon, for the drivers that look there.
 * hwmon_chips_list allocates; release with hwmon_chips_release. */
#ifndef IPW_SENSORS_HWMON_CHIPS_H
#define IPW_SENSORS_HWMON_CHIPS_H

#include <stddef.h>

#include "core/err.h"

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

#endif
