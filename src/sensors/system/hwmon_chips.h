/* The chips under /sys/class/hwmon, their power and energy meters, and the GPUs among them.
 * hwmon_chips_list allocates; release with hwmon_chips_release. */
#ifndef IPW_SENSORS_HWMON_CHIPS_H
#define IPW_SENSORS_HWMON_CHIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/fs.h"

/* Which of the machine's AMD GPUs are selected (amd_select.c), for the drivers that see them.  Plain values that the
 * caller owns. */

enum { AMD_DEVICES_MAX = 128 };

/* Properties of the cards that selection needs; the numbering is the driver's. */
struct amd_cards {
    unsigned count;
    unsigned hip_order[AMD_DEVICES_MAX]; /* the cards as HIP counts them when nothing is hidden */
    uint64_t ids[AMD_DEVICES_MAX];       /* the digits of ROCr's GPU-...; 0 unknown */
};

/* Sets selected[0..count): `devices` (--devices) unless NULL or "", else the cards visible through
 * ROCR_VISIBLE_DEVICES and then HIP_VISIBLE_DEVICES. */
void amd_select(const struct amd_cards *cards, const char *devices, bool *selected);

struct hwmon_chip {
    char dir[64];  /* "/sys/class/hwmon/hwmon3" */
    char name[40]; /* "amdgpu"; as the kernel driver reports it */
    unsigned nth;  /* among the chips of this name, from 0 */
};

struct hwmon_chips {
    struct hwmon_chip *items;
    size_t count;
};

/* In the kernel's order.  Chips without a readable name are skipped.  ERR_NOT_FOUND: no hwmon. */
enum err hwmon_chips_list(struct hwmon_chips *out) MUST_USE;
void hwmon_chips_release(struct hwmon_chips *chips);

enum { HWMON_METERS_MAX = 16 };

/* powerN_average or powerN_input (microwatts), or energyN_input (microjoules). */
struct hwmon_meter {
    unsigned index;
    bool is_energy;
    char path[FS_PATH_MAX];
    char label[64]; /* "" when the chip has none */
};

/* Fills to[HWMON_METERS_MAX] with the chip's meters whose label starts with `only` ("" takes all)
 * and returns how many. */
size_t hwmon_meters_find(const struct hwmon_chip *chip, const char *only, struct hwmon_meter *to);

/* "0000:03:00.0"; "" when the chip belongs to no PCI device. */
void hwmon_pci_address(const struct hwmon_chip *chip, char *to, size_t size);

/* Whether the chip is of a GPU inside the processor package.  Its power is then that of the whole
 * package, processor cores included. */
bool hwmon_is_integrated(const struct hwmon_chip *chip);

/* The same for the GPU at a PCI address ("0000:c5:00.0"); false when no chip is there. */
bool hwmon_is_integrated_at(const char *pci);

/* Sets selected[i] for each chip: false for a GPU that `devices` (--devices; NULL or "": not given)
 * or, for AMD, the environment excludes.  Indices count the cards of one vendor in PCI bus order, as
 * their libraries do.  A chip that is not a card of its own is always selected. */
void hwmon_select_gpus(const struct hwmon_chips *chips, const char *devices, bool *selected);

#endif
