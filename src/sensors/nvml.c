/* NVIDIA GPUs through NVML: what there is, and opening it.
 *
 * A card is opened the same way by probe and by open, so what the probe promises is what a run
 * will read. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "sensors/nvml/card.h"
#include "sensors/nvml/select.h"
#include "sensors/sensor.h"

static enum err nvml_open(const struct sensor_finding *finding, struct sensor *out,
                          struct error *why)
{
    const struct nvml_api *api;
    int code;
    enum err err = nvml_acquire(&api, &code, why);
    if (err != ERR_OK)
        return err;
    struct nvml_cards cards;
    code = nvml_cards_list(api, &cards);
    const struct nvml_card *card = nvml_card_by_key(&cards, finding->key);
    uint64_t number = 0; /* ours, from "nvml:3": the same through every re-open */
    if (parse_u64(finding->id + strcspn(finding->id, "0123456789"), &number) != ERR_OK && card)
        number = card->index;
    if (card)
        err = nvml_card_open(api, card, &cards, (unsigned)number, out, why);
    else
        err = err_set(why, ERR_LOST, "%s (%s) is gone: %s", finding->id, finding->name,
                      code ? nvml_code_text(code) : "the driver no longer lists it");
    if (err != ERR_OK)
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

/* The commands that mend what an error stands for; "" when there is none. */
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
    enum sensor_status status = err == ERR_ABSENT   ? SENSOR_ABSENT
                                : err == ERR_DENIED ? SENSOR_DENIED
                                                    : SENSOR_UNSUPPORTED;
    struct sensor_finding *finding = sensor_found(out, id, SENSOR_GPU, status);
    if (!finding)
        return;
    str_copy(finding->reason, sizeof finding->reason, reason);
    str_copy(finding->fix, sizeof finding->fix, fix_for(err, code));
}

static void probe_card(const struct nvml_api *api, const struct nvml_card *card,
                       const struct nvml_cards *all, struct sensor_findings *out)
{
    char id[48];
    struct error why = {0};
    struct sensor trial = {0};
    str_format(id, sizeof id, "nvml:%u", card->index);
    enum err err = nvml_card_open(api, card, all, card->index, &trial, &why);
    if (err == ERR_OK) {
        struct sensor_finding *finding = sensor_found(out, id, SENSOR_GPU, SENSOR_OK);
        if (finding)
            sensor_measures(&trial, finding->measures, sizeof finding->measures);
        nvml_card_close(&trial);
    } else {
        add_failure(out, id, err, card->code, why.text);
    }
    struct sensor_finding *last = out->count ? &out->items[out->count - 1] : NULL;
    if (!last || strcmp(last->id, id) != 0)
        return; /* out of memory */
    str_copy(last->name, sizeof last->name, card->name);
    last->key = card->key;
}

/* Chooses what --devices names; each entry that names nothing is a finding of its own. */
static void choose_asked(const struct nvml_api *api, struct nvml_cards *cards, const char *list,
                         struct sensor_findings *out)
{
    char entry[128];
    while (nvml_next_entry(&list, entry, sizeof entry)) {
        struct nvml_card *card = nvml_card_named(api, cards, entry);
        if (card) {
            card->chosen = true;
            continue;
        }
        char id[48], there[120], reason[200];
        nvml_cards_words(cards, there, sizeof there);
        str_format(id, sizeof id, "nvml:%s", entry);
        str_format(reason, sizeof reason, "no single GPU is meant by \"%.48s\"; there are: %s",
                   entry, there);
        add_failure(out, id, ERR_ABSENT, NVML_OK, reason);
    }
}

static void probe_cards(const struct nvml_api *api, const struct sensor_config *config,
                        struct sensor_findings *out)
{
    struct nvml_cards cards;
    int code = nvml_cards_list(api, &cards);
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
        choose_asked(api, &cards, config->devices, out);
    else
        nvml_choose_visible(api, &cards, visible);
    for (size_t i = 0; i < cards.count; i++)
        if (cards.items[i].chosen)
            probe_card(api, &cards.items[i], &cards, out);
    if (out->count == first) {
        char reason[200];
        str_format(reason, sizeof reason, "hidden by CUDA_VISIBLE_DEVICES=%s", visible);
        add_failure(out, "nvml", ERR_ABSENT, NVML_OK, reason);
    }
}

static void nvml_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    const struct nvml_api *api;
    struct error why = {0};
    int code;
    nvml_let_go();
    enum err err = nvml_acquire(&api, &code, &why);
    if (err != ERR_OK) {
        add_failure(out, "nvml", err, code, why.text);
        return;
    }
    probe_cards(api, config, out);
    nvml_release_ready();
}

const struct sensor_driver sensor_nvml = {
    .name = "nvml",
    .summary = "NVIDIA GPUs: energy counter, 20 ms power samples, clocks, use, throttling",
    .probe = nvml_probe,
    .open = nvml_open,
    .read = nvml_card_read,
    .close = nvml_close,
};
