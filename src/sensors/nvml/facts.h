/* What stays the same about a card while it is open, for reports. */
#ifndef IPW_SENSORS_NVML_FACTS_H
#define IPW_SENSORS_NVML_FACTS_H

#include "sensors/nvml/select.h"
#include "sensors/sensor.h"

/* Adds the facts the driver is willing to tell; what it is not is left out, never guessed. */
void nvml_add_facts(const struct nvml_api *api, const struct nvml_card *card,
                    const struct nvml_cards *all, struct sensor *sensor);

#endif
