#include "sensors/nvml/facts.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

static const char *architecture_name(unsigned number)
{
    static const char *const NAMES[] = {NULL,     NULL,     "Kepler",   "Maxwell",
                                        "Pascal", "Volta",  "Turing",   "Ampere",
                                        "Ada",    "Hopper", "Blackwell"};
    return number < sizeof NAMES / sizeof *NAMES ? NAMES[number] : NULL;
}

static void add_architecture(const struct nvml_api *api, const struct nvml_card *card,
                             struct sensor *sensor)
{
    unsigned number = 0;
    int major, minor;
    if (NVML_CALL(api, architecture, card->handle, &number) == NVML_OK && architecture_name(number))
        sensor_add_fact(sensor, "architecture", architecture_name(number));
    if (NVML_CALL(api, compute, card->handle, &major, &minor) == NVML_OK) {
        char text[24];
        str_format(text, sizeof text, "%d.%d", major, minor);
        sensor_add_fact(sensor, "compute_capability", text);
    }
}

static void add_identity(const struct nvml_api *api, const struct nvml_card *card,
                         struct sensor *sensor)
{
    struct nvml_pci pci = {0};
    char version[72] = "";
    if (card->uuid[0])
        sensor_add_fact(sensor, "uuid", card->uuid);
    if (NVML_CALL(api, pci, card->handle, &pci) == NVML_OK)
        sensor_add_fact(sensor, "pci_bus_id", pci.bus_id);
    if (NVML_CALL(api, driver_version, version, sizeof version) == NVML_OK)
        sensor_add_fact(sensor, "driver_version", version);
}

static void add_settings(const struct nvml_api *api, const struct nvml_card *card,
                         struct sensor *sensor)
{
    unsigned min_mw, max_mw, persistence;
    char text[72];
    if (NVML_CALL(api, limit_range, card->handle, &min_mw, &max_mw) == NVML_OK) {
        str_format(text, sizeof text, "%g to %g W", min_mw * 1e-3, max_mw * 1e-3);
        sensor_add_fact(sensor, "power_limit_range", text);
    }
    if (NVML_CALL(api, persistence, card->handle, &persistence) == NVML_OK)
        sensor_add_fact(sensor, "persistence_mode", persistence ? "enabled" : "disabled");
}

static void add_mig(const struct nvml_api *api, const struct nvml_card *card, struct sensor *sensor)
{
    unsigned now, after_reset;
    if (NVML_CALL(api, mig_mode, card->handle, &now, &after_reset) != NVML_OK)
        return; /* a card that cannot be cut */
    int instances = nvml_mig_count(api, card->handle);
    if (instances < 0) {
        sensor_add_fact(sensor, "mig", "disabled");
        return;
    }
    char text[72];
    str_format(text, sizeof text, "enabled, %d instance%s", instances, instances == 1 ? "" : "s");
    sensor_add_fact(sensor, "mig", text);
    /* Repeating the card's watts on each instance would count them several times over. */
    sensor_add_fact(sensor, "mig_energy",
                    "whole card: the hardware measures no energy per MIG instance");
}

static void add_order(const struct nvml_cards *all, struct sensor *sensor)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (order && !strcmp(order, "PCI_BUS_ID"))
        return;
    for (size_t i = 1; i < all->count; i++) {
        if (!strcmp(all->items[i].name, all->items[0].name))
            continue;
        sensor_add_fact(sensor, "index_order",
                        "PCI bus; CUDA's may differ without CUDA_DEVICE_ORDER=PCI_BUS_ID");
        return;
    }
}

void nvml_add_facts(const struct nvml_api *api, const struct nvml_card *card,
                    const struct nvml_cards *all, struct sensor *sensor)
{
    add_identity(api, card, sensor);
    add_architecture(api, card, sensor);
    add_settings(api, card, sensor);
    add_mig(api, card, sensor);
    add_order(all, sensor);
}
