/* NVIDIA GPUs through NVML: listing the cards, selecting those to measure, and their constant
 * properties.  card.c turns one card into an open sensor.
 *
 * Probe and open open a card in the same way, so that a run reads what the probe has reported.
 *
 * An index here is NVML's, which follows the PCI bus.  CUDA numbers cards the same way only where
 * all are alike or CUDA_DEVICE_ORDER=PCI_BUS_ID is set; by default it puts the fastest first.
 * CUDA's own order cannot be determined without starting CUDA (which would put a load on the
 * cards), so on a mixed machine indices in CUDA_VISIBLE_DEVICES are read as NVML's and a fact says
 * so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "sensors/nvml/api.h"
#include "sensors/nvml/card.h"
#include "sensors/sensor.h"

enum { CARDS_MAX = 64 };

struct cards {
    struct nvml_card items[CARDS_MAX];
    size_t count;
};

/* ---- listing ---- */

static void describe_card(const struct nvml_api *api, unsigned index, struct nvml_card *card)
{
    *card = (struct nvml_card){.index = index};
    card->code = api->device(index, &card->handle);
    if (card->code == NVML_OK) {
        if (api->name(card->handle, card->name, sizeof card->name) != NVML_OK)
            card->name[0] = '\0';
        if (api->uuid(card->handle, card->uuid, sizeof card->uuid) != NVML_OK)
            card->uuid[0] = '\0';
    }
    /* A number that is the same in every process, and that follows the card when the cards before it vanish. */
    card->key = card->uuid[0] ? (unsigned)hash_string(HASH_START, card->uuid) : index;
}

/* Lists every card the driver shows; returns the driver's code. */
static int list_cards(const struct nvml_api *api, struct cards *out)
{
    out->count = 0;
    unsigned count = 0;
    int code = api->device_count(&count);
    if (code != NVML_OK)
        return code;
    for (unsigned i = 0; i < count && i < CARDS_MAX; i++)
        describe_card(api, i, &out->items[out->count++]);
    return NVML_OK;
}

static struct nvml_card *card_by_key(struct cards *cards, unsigned key)
{
    for (size_t i = 0; i < cards->count; i++)
        if (cards->items[i].key == key)
            return &cards->items[i];
    return NULL;
}

/* ---- MIG: one card partitioned into instances ---- */

static bool mig_is_enabled(const struct nvml_api *api, nvml_device card)
{
    unsigned now = 0, after_reset = 0;
    return NVML_CALL(api, mig_mode, card, &now, &after_reset) == NVML_OK && now == 1;
}

/* Slots of MIG instances on a card, used or not; 0 when MIG is off. */
static unsigned mig_slots(const struct nvml_api *api, nvml_device card)
{
    unsigned slots = 0;
    return mig_is_enabled(api, card) && NVML_CALL(api, mig_max, card, &slots) == NVML_OK ? slots
                                                                                         : 0;
}

static unsigned mig_count(const struct nvml_api *api, nvml_device card)
{
    unsigned count = 0, slots = mig_slots(api, card);
    for (unsigned i = 0; i < slots; i++) {
        nvml_device instance;
        count += NVML_CALL(api, mig_device, card, i, &instance) == NVML_OK;
    }
    return count;
}

/* How many MIG instances of a card have a UUID that starts so. */
static unsigned mig_matches(const struct nvml_api *api, const struct nvml_card *card,
                            const char *prefix)
{
    unsigned matches = 0, slots = mig_slots(api, card->handle);
    for (unsigned i = 0; i < slots; i++) {
        nvml_device instance;
        char uuid[NVML_UUID_SIZE];
        if (NVML_CALL(api, mig_device, card->handle, i, &instance) == NVML_OK &&
            api->uuid(instance, uuid, sizeof uuid) == NVML_OK)
            matches += str_starts(uuid, prefix);
    }
    return matches;
}

/* ---- selecting ---- */

static unsigned matches(const struct nvml_api *api, const struct nvml_card *card, const char *entry)
{
    if (card->code != NVML_OK)
        return 0;
    if (!str_starts(entry, "MIG-"))
        return str_starts(card->uuid, entry);
    if (!str_starts(entry, "MIG-GPU-"))
        return mig_matches(api, card, entry);
    /* Drivers before R470 named an instance after its card: MIG-GPU-<uuid>/<gpu>/<compute>. */
    const char *parent = entry + strlen("MIG-");
    size_t length = strcspn(parent, "/");
    return strlen(card->uuid) == length && strncmp(card->uuid, parent, length) == 0;
}

/* The card an entry names: an index, a GPU UUID, a MIG UUID (its parent card), either in full or
 * as a prefix that matches no other.  NULL when there is none or more than one. */
static struct nvml_card *card_named(const struct nvml_api *api, struct cards *cards,
                                    const char *entry)
{
    uint64_t index;
    if (parse_u64(entry, &index) == ERR_OK)
        return index < cards->count ? &cards->items[index] : NULL;
    if (!str_starts(entry, "GPU-") && !str_starts(entry, "MIG-"))
        return NULL;
    struct nvml_card *found = NULL;
    unsigned total = 0;
    for (size_t i = 0; i < cards->count; i++) {
        unsigned here = matches(api, &cards->items[i], entry);
        if (here)
            found = &cards->items[i];
        total += here;
    }
    return total == 1 ? found : NULL;
}

/* Takes the next entry of a comma-separated list, trimmed; false at the end. */
static bool next_entry(const char **list, char *entry, size_t size)
{
    const char *start = *list;
    if (!start)
        return false;
    size_t length = strcspn(start, ",");
    *list = start[length] == ',' ? start + length + 1 : NULL;
    char untrimmed[160];
    snprintf(untrimmed, sizeof untrimmed, "%.*s",
             (int)(length < sizeof untrimmed ? length : sizeof untrimmed - 1), start);
    str_copy(entry, size, str_trim(untrimmed));
    return true;
}

/* Selects the cards that CUDA would see under CUDA_VISIBLE_DEVICES=visible (NULL: unset, all). */
static void select_visible(const struct nvml_api *api, struct cards *cards, const char *visible)
{
    for (size_t i = 0; i < cards->count; i++)
        cards->items[i].selected = visible == NULL;
    char entry[128];
    while (next_entry(&visible, entry, sizeof entry)) {
        struct nvml_card *card = card_named(api, cards, entry);
        if (!card)
            return; /* CUDA stops at the first entry it cannot resolve: "0,-1,1" is card 0 alone */
        card->selected = true;
    }
}

/* "0 (GPU-8932f937), 1 (GPU-12ab34cd)": the cards to choose from. */
static void describe_cards(const struct cards *cards, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; i < cards->count && used + 1 < size; i++) {
        const struct nvml_card *card = &cards->items[i];
        /* Twelve bytes of a UUID are "GPU-" and its first group: enough to distinguish cards. */
        str_format(to + used, size - used, "%s%u (%.12s)", i ? ", " : "", card->index,
                   card->uuid[0] ? card->uuid : card->name);
        used += strlen(to + used);
    }
}

/* ---- facts for reports ---- */

static const char *architecture_name(unsigned number)
{
    static const char *const NAMES[] = {NULL,     NULL,     "Kepler",   "Maxwell",
                                        "Pascal", "Volta",  "Turing",   "Ampere",
                                        "Ada",    "Hopper", "Blackwell"};
    return number < COUNT_OF(NAMES) ? NAMES[number] : NULL;
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
        chars_format(text, "%d.%d", major, minor);
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

static void add_power_limits(const struct nvml_api *api, const struct nvml_card *card,
                             struct sensor *sensor)
{
    unsigned min_mw, max_mw, persistence;
    char text[72];
    if (NVML_CALL(api, limit_range, card->handle, &min_mw, &max_mw) == NVML_OK) {
        chars_format(text, "%g to %g W", min_mw * 1e-3, max_mw * 1e-3);
        sensor_add_fact(sensor, "power_limit_range", text);
    }
    if (NVML_CALL(api, persistence, card->handle, &persistence) == NVML_OK)
        sensor_add_fact(sensor, "persistence_mode", persistence ? "enabled" : "disabled");
}

static void add_mig(const struct nvml_api *api, const struct nvml_card *card, struct sensor *sensor)
{
    unsigned now, after_reset;
    if (NVML_CALL(api, mig_mode, card->handle, &now, &after_reset) != NVML_OK)
        return; /* a card that cannot be partitioned */
    if (!mig_is_enabled(api, card->handle)) {
        sensor_add_fact(sensor, "mig", "disabled");
        return;
    }
    char text[72];
    unsigned instances = mig_count(api, card->handle);
    chars_format(text, "enabled, %u instance%s", instances, instances == 1 ? "" : "s");
    sensor_add_fact(sensor, "mig", text);
    /* Repeating the card's watts on each instance would count them several times over. */
    sensor_add_fact(sensor, "mig_energy",
                    "whole card: the hardware measures no energy per MIG instance");
}

/* Warns that indices may mean other cards to CUDA, where that is possible. */
static void add_order(const struct cards *all, struct sensor *sensor)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (order && str_equal(order, "PCI_BUS_ID"))
        return;
    for (size_t i = 1; i < all->count; i++) {
        if (str_equal(all->items[i].name, all->items[0].name))
            continue;
        sensor_add_fact(sensor, "index_order",
                        "PCI bus; CUDA's may differ without CUDA_DEVICE_ORDER=PCI_BUS_ID");
        return;
    }
}

/* Adds the facts that the driver reports; others are omitted. */
static void add_facts(const struct nvml_api *api, const struct nvml_card *card,
                      const struct cards *all, struct sensor *sensor)
{
    add_identity(api, card, sensor);
    add_architecture(api, card, sensor);
    add_power_limits(api, card, sensor);
    add_mig(api, card, sensor);
    add_order(all, sensor);
}

/* ---- open and close ---- */

static enum err nvml_open(const struct sensor_finding *finding, struct sensor *out,
                          struct error *why)
{
    const struct nvml_api *api;
    int code;
    enum err err = nvml_acquire(&api, &code, why);
    if (err != ERR_OK)
        return err;
    struct cards cards;
    code = list_cards(api, &cards);
    struct nvml_card *card = card_by_key(&cards, finding->key);
    uint64_t number = 0; /* ours, from "nvml:3": the same through every re-open */
    if (parse_u64(finding->id + strcspn(finding->id, "0123456789"), &number) != ERR_OK && card)
        number = card->index;
    if (card) {
        card->has_counter = str_starts(finding->measures, quantity_name(QTY_ENERGY));
        err = nvml_card_open(api, card, (unsigned)number, out, why);
    } else {
        err = err_set(why, ERR_LOST, "%s (%s) was lost: %s", finding->id, finding->name,
                      code ? nvml_code_text(code) : "the driver no longer lists it");
    }
    if (err == ERR_OK)
        add_facts(api, card, &cards, out);
    else
        nvml_release();
    return err;
}

static void nvml_close(struct sensor *sensor)
{
    if (!sensor->state)
        return;
    nvml_card_close(sensor);
    nvml_release();
}

/* ---- probe ---- */

/* The commands that fix an error; "" if none is known. */
static const char *fix_for(enum err err, int code)
{
    if (code == NVML_VERSION_MISMATCH)
        return "reboot, or with nothing using the GPUs: "
               "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia";
    if (code == NVML_DRIVER_NOT_LOADED)
        return "sudo modprobe nvidia; in a container: start it with --gpus all "
               "(docker) or --device nvidia.com/gpu=all (podman)";
    switch (err) {
    case ERR_DENIED:
        return "see ls -l /dev/nvidia*; sudo usermod -aG video $USER and log in again; in a "
               "container: start it with --gpus all (docker) or --device nvidia.com/gpu=all "
               "(podman)";
    case ERR_LOST:
        return "see sudo dmesg | grep -i xid; sudo nvidia-smi --gpu-reset, or reboot";
    default:
        return "";
    }
}

static void add_failure(struct sensor_findings *out, const char *id, enum err err, int code,
                        const char *reason)
{
    enum sensor_status status =
        sensor_status_of(err, err == ERR_ABSENT ? SENSOR_ABSENT : SENSOR_UNSUPPORTED);
    struct sensor_finding *finding = sensor_found(out, id, SENSOR_GPU, status);
    if (!finding)
        return;
    chars_copy(finding->reason, reason);
    chars_copy(finding->fix, fix_for(err, code));
}

static void probe_card(const struct nvml_api *api, const struct nvml_card *card,
                       struct sensor_findings *out)
{
    char id[48];
    struct error why = {0};
    struct sensor trial = {0};
    chars_format(id, "nvml:%u", card->index);
    enum err err = nvml_card_open(api, card, card->index, &trial, &why);
    if (err == ERR_OK) {
        struct sensor_finding *finding = sensor_found(out, id, SENSOR_GPU, SENSOR_OK);
        if (finding)
            sensor_measures(&trial, finding->measures, sizeof finding->measures);
        nvml_card_close(&trial);
    } else {
        add_failure(out, id, err, card->code, why.text);
    }
    struct sensor_finding *last = out->count ? &out->items[out->count - 1] : NULL;
    if (!last || !str_equal(last->id, id))
        return; /* out of memory */
    chars_copy(last->name, card->name);
    chars_copy(last->uuid, card->uuid);
    last->key = card->key;
}

/* Selects the cards of --devices; each entry that matches no card is a separate finding. */
static void select_requested(const struct nvml_api *api, struct cards *cards, const char *list,
                             struct sensor_findings *out)
{
    char entry[128];
    while (next_entry(&list, entry, sizeof entry)) {
        const char *name =
            str_starts(entry, "nvml:") ? entry + strlen("nvml:") : entry; /* as in reports */
        struct nvml_card *card = card_named(api, cards, name);
        if (card) {
            card->selected = true;
            continue;
        }
        char id[48], available[120], reason[200];
        describe_cards(cards, available, sizeof available);
        chars_format(id, "nvml:%s", name);
        chars_format(reason, "\"%.48s\" does not identify exactly one GPU; available: %s", entry,
                     available);
        add_failure(out, id, ERR_ABSENT, NVML_OK, reason);
    }
}

static void probe_cards(const struct nvml_api *api, const struct sensor_config *config,
                        struct sensor_findings *out)
{
    struct cards cards;
    int code = list_cards(api, &cards);
    if (code != NVML_OK) {
        add_failure(out, "nvml", nvml_err(code), code, nvml_code_text(code));
        return;
    }
    if (cards.count == 0) {
        add_failure(out, "nvml", ERR_ABSENT, NVML_DRIVER_NOT_LOADED,
                    "the NVIDIA driver is loaded but shows no GPU");
        return;
    }
    size_t first = out->count;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (config && config->devices && *config->devices)
        select_requested(api, &cards, config->devices, out);
    else
        select_visible(api, &cards, visible);
    for (size_t i = 0; i < cards.count; i++)
        if (cards.items[i].selected)
            probe_card(api, &cards.items[i], out);
    if (out->count == first) {
        char reason[200];
        chars_format(reason, "hidden by CUDA_VISIBLE_DEVICES=%s", visible);
        add_failure(out, "nvml", ERR_ABSENT, NVML_OK, reason);
    }
}

static void nvml_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    const struct nvml_api *api;
    struct error why = {0};
    int code;
    nvml_release_kept();
    enum err err = nvml_acquire(&api, &code, &why);
    if (err != ERR_OK) {
        add_failure(out, "nvml", err, code, why.text);
        return;
    }
    probe_cards(api, config, out);
    nvml_release_keep();
}

const struct sensor_driver sensor_nvml = {
    .name = "nvml",
    .summary = "NVIDIA GPUs: energy counter, 20 ms power samples, clocks, utilization, throttling",
    .probe = nvml_probe,
    .open = nvml_open,
    .read = nvml_card_read,
    .close = nvml_close,
    .processes = nvml_card_processes,
    .control = &nvml_control,
};
