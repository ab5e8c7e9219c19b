/* The GPUs among the hwmon chips.  Pure but for reading their files. */
#ifndef IPW_SENSORS_HWMON_GPUS_H
#define IPW_SENSORS_HWMON_GPUS_H

#include <stdbool.h>

#include "sensors/system/hwmon_chips.h"

/* Is the chip of a GPU inside the processor's package?  Its power is then the whole package's,
 * the processor cores' included. */
bool hwmon_is_integrated(const struct hwmon_chip *chip);

/* The same of the GPU at a PCI address ("0000:c5:00.0"); false when no chip is there. */
bool hwmon_is_integrated_at(const char *pci);

/* Sets wanted[i] for each chip: false for a GPU that `devices` (--devices; NULL or "": none given)
 * or, an AMD one, the environment leaves out.  A number counts the cards of one maker along the
 * PCI bus, as their libraries do.  What is not a card of its own is always wanted. */
void hwmon_choose_gpus(const struct hwmon_chips *chips, const char *devices, bool *wanted);

#endif
