/* One NVIDIA card as an open sensor.  The card borrows the caller's hold on the library: release
 * that after nvml_card_close, not before. */
#ifndef IPW_SENSORS_NVML_CARD_H
#define IPW_SENSORS_NVML_CARD_H

#include "sensors/nvml/select.h"
#include "sensors/sensor.h"

/* Fills *out (zeroed, or as open gets it) under the number the card was found with: its index may
 * have changed since.  On failure nothing is left open. */
enum err nvml_card_open(const struct nvml_api *api, const struct nvml_card *card,
                        const struct nvml_cards *all, unsigned number, struct sensor *out,
                        struct error *why) MUST_USE;

/* The read operation of the sensor contract. */
enum err nvml_card_read(struct sensor *sensor, unsigned group, struct observations *out);

void nvml_card_close(struct sensor *sensor);

#endif
