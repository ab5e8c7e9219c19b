/* Which of the machine's AMD GPUs are selected, for the drivers that see them.  Plain values that the
 * caller owns. */
#ifndef IPW_SENSORS_AMD_SELECT_H
#define IPW_SENSORS_AMD_SELECT_H

#include <stdbool.h>
#include <stdint.h>

enum { AMD_DEVICES_MAX = 128 };

/* What selecting needs to know about the cards; a driver numbers them as it likes. */
struct amd_cards {
    unsigned count;
    unsigned hip_order[AMD_DEVICES_MAX]; /* the cards as HIP counts them when nothing is hidden */
    uint64_t ids[AMD_DEVICES_MAX];       /* the digits of ROCr's GPU-...; 0 unknown */
};

/* Sets selected[0..count): `devices` (--devices) unless NULL or "", else what ROCR_VISIBLE_DEVICES
 * and then HIP_VISIBLE_DEVICES leave. */
void amd_select(const struct amd_cards *cards, const char *devices, bool *selected);

#endif
