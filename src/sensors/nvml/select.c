/* An index here is NVML's, which follows the PCI bus.  CUDA numbers cards the same way only where
 * all are alike or CUDA_DEVICE_ORDER=PCI_BUS_ID is set; by default it puts the fastest first.
 * CUDA's own order cannot be had without starting CUDA (which would put a load on the cards), so
 * on a mixed machine indices in CUDA_VISIBLE_DEVICES are read as NVML's and a fact says so. */
#include "sensors/nvml/select.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* FNV-1a: the key must be a number, must be the same in every process, and must follow the card
 * when the cards before it vanish. */
static unsigned hash(const char *text)
{
    unsigned h = 2166136261U;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619U;
    return h;
}

static void describe(const struct nvml_api *api, unsigned index, struct nvml_card *card)
{
    *card = (struct nvml_card){.index = index};
    card->code = api->device(index, &card->handle);
    if (card->code == NVML_OK) {
        if (api->name(card->handle, card->name, sizeof card->name) != NVML_OK)
            card->name[0] = '\0';
        if (api->uuid(card->handle, card->uuid, sizeof card->uuid) != NVML_OK)
            card->uuid[0] = '\0';
    }
    char stand_in[16];
    str_format(stand_in, sizeof stand_in, "%u", index);
    card->key = hash(card->uuid[0] ? card->uuid : stand_in);
}

int nvml_cards_list(const struct nvml_api *api, struct nvml_cards *out)
{
    out->count = 0;
    unsigned count = 0;
    int code = api->device_count(&count);
    if (code != NVML_OK)
        return code;
    for (unsigned i = 0; i < count && i < NVML_CARDS_MAX; i++)
        describe(api, i, &out->items[out->count++]);
    return NVML_OK;
}

struct nvml_card *nvml_card_by_key(struct nvml_cards *cards, unsigned key)
{
    for (size_t i = 0; i < cards->count; i++)
        if (cards->items[i].key == key)
            return &cards->items[i];
    return NULL;
}

/* Slots of MIG instances on a card, used or not; 0 when MIG is off. */
static unsigned mig_slots(const struct nvml_api *api, nvml_device card)
{
    unsigned now = 0, after_reset = 0, slots = 0;
    if (NVML_CALL(api, mig_mode, card, &now, &after_reset) != NVML_OK || now != 1)
        return 0;
    return NVML_CALL(api, mig_max, card, &slots) == NVML_OK ? slots : 0;
}

int nvml_mig_count(const struct nvml_api *api, nvml_device card)
{
    unsigned now = 0, after_reset = 0;
    if (NVML_CALL(api, mig_mode, card, &now, &after_reset) != NVML_OK || now != 1)
        return -1;
    int count = 0;
    unsigned slots = mig_slots(api, card);
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

struct nvml_card *nvml_card_named(const struct nvml_api *api, struct nvml_cards *cards,
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

bool nvml_next_entry(const char **list, char *entry, size_t size)
{
    const char *start = *list;
    if (!start)
        return false;
    size_t length = strcspn(start, ",");
    *list = start[length] == ',' ? start + length + 1 : NULL;
    char whole[160];
    snprintf(whole, sizeof whole, "%.*s", (int)(length < sizeof whole ? length : sizeof whole - 1),
             start);
    str_copy(entry, size, str_trim(whole));
    return true;
}

void nvml_choose_visible(const struct nvml_api *api, struct nvml_cards *cards, const char *visible)
{
    for (size_t i = 0; i < cards->count; i++)
        cards->items[i].chosen = visible == NULL;
    char entry[128];
    while (nvml_next_entry(&visible, entry, sizeof entry)) {
        struct nvml_card *card = nvml_card_named(api, cards, entry);
        if (!card)
            return; /* CUDA stops at the first entry it cannot resolve: "0,-1,1" is card 0 alone */
        card->chosen = true;
    }
}

void nvml_cards_words(const struct nvml_cards *cards, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; i < cards->count && used + 1 < size; i++) {
        const struct nvml_card *card = &cards->items[i];
        /* Twelve bytes of a UUID are "GPU-" and its first group: enough to tell cards apart. */
        str_format(to + used, size - used, "%s%u (%.12s)", i ? ", " : "", card->index,
                   card->uuid[0] ? card->uuid : card->name);
        used += strlen(to + used);
    }
}
