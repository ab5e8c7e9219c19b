/* Which of the machine's NVIDIA cards are meant.  Plain values; the caller owns them, and handles
 * in them live as long as its hold on the library. */
#ifndef IPW_SENSORS_NVML_SELECT_H
#define IPW_SENSORS_NVML_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "sensors/nvml/api.h"

enum { NVML_CARDS_MAX = 64, NVML_UUID_SIZE = 96 };

struct nvml_card {
    unsigned index; /* NVML's, in PCI bus order */
    int code;       /* why there is no handle; NVML_OK when there is one */
    nvml_device handle;
    char name[96];
    char uuid[NVML_UUID_SIZE]; /* "" when the driver will not say */
    unsigned key;              /* of the card itself: an index may pass to another card */
    bool chosen;
};

struct nvml_cards {
    struct nvml_card items[NVML_CARDS_MAX];
    size_t count;
};

/* Lists every card the driver shows; returns the driver's code. */
int nvml_cards_list(const struct nvml_api *api, struct nvml_cards *out);

struct nvml_card *nvml_card_by_key(struct nvml_cards *cards, unsigned key);

/* The card an entry names: an index, a GPU UUID, a MIG UUID (its parent card), either in full or
 * as a prefix that fits no other.  NULL when there is none or more than one. */
struct nvml_card *nvml_card_named(const struct nvml_api *api, struct nvml_cards *cards,
                                  const char *entry);

/* Takes the next entry of a comma-separated list, trimmed; false at the end. */
bool nvml_next_entry(const char **list, char *entry, size_t size);

/* Chooses the cards that CUDA would see under CUDA_VISIBLE_DEVICES=visible (NULL: unset, all). */
void nvml_choose_visible(const struct nvml_api *api, struct nvml_cards *cards, const char *visible);

/* "0 (GPU-8932f937), 1 (GPU-12ab34cd)": what there is to choose from. */
void nvml_cards_words(const struct nvml_cards *cards, char *to, size_t size);

/* How many MIG instances a card is cut into now; -1 when MIG is off or not there at all. */
int nvml_mig_count(const struct nvml_api *api, nvml_device card);

#endif
