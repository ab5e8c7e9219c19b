/* Which AMD GPUs to measure.
 *
 * ROCr hides devices first: ROCR_VISIBLE_DEVICES holds indices or "GPU-<16 hex digits>" and its
 * order is the order that HIP then counts in.  HIP_VISIBLE_DEVICES holds indices into what ROCr
 * left.  Both end at the first entry that matches nothing, and a variable that is set but empty hides
 * everything.
 * ROCr counts the devices in its own order, which AMD SMI reports and which is not always the
 * order of PCI addresses. */
#include "sensors/system/hwmon_chips.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

/* A list of devices in some order. */
struct sequence {
    unsigned devices[AMD_DEVICES_MAX];
    unsigned count;
};

static bool contains(const struct sequence *sequence, unsigned device)
{
    for (unsigned i = 0; i < sequence->count; i++)
        if (sequence->devices[i] == device)
            return true;
    return false;
}

static void append(struct sequence *sequence, unsigned device)
{
    if (!contains(sequence, device))
        sequence->devices[sequence->count++] = device;
}

/* "GPU-" and hexadecimal digits, with or without leading zeros. */
static bool has_unique_id(const struct amd_cards *cards, unsigned device, const char *word)
{
    char *end;
    uint64_t wanted = strtoull(word + 4, &end, 16);
    return end != word + 4 && !*end && wanted && cards->ids[device] == wanted;
}

/* The device that a word names among those of `from`. */
static bool find_device(const struct amd_cards *cards, const struct sequence *from,
                        const char *word, unsigned *device)
{
    if (!strncmp(word, "GPU-", 4)) {
        for (unsigned i = 0; i < from->count; i++) {
            if (has_unique_id(cards, from->devices[i], word)) {
                *device = from->devices[i];
                return true;
            }
        }
        return false;
    }
    uint64_t index;
    if (parse_u64(word, &index) || index >= from->count)
        return false;
    *device = from->devices[index];
    return true;
}

/* Reduces *list to the devices that the comma-separated words name, in their order. */
static void filter(const struct amd_cards *cards, const char *words, bool stop_at_unknown,
                   struct sequence *list)
{
    struct sequence kept = {0};
    while (*words) {
        char word[64];
        size_t length = strcspn(words, ",");
        chars_format(word, "%.*s", (int)(length < 63 ? length : 63), words);
        words += length + (words[length] == ',');
        unsigned device;
        if (find_device(cards, list, str_trim(word), &device))
            append(&kept, device);
        else if (stop_at_unknown)
            break;
    }
    *list = kept;
}

void amd_select(const struct amd_cards *cards, const char *devices, bool *selected)
{
    struct sequence list = {0};
    if (devices && *devices) {
        for (unsigned i = 0; i < cards->count; i++)
            append(&list, i);
        filter(cards, devices, false, &list); /* may name another vendor's GPUs too */
    } else {
        const char *rocr = getenv("ROCR_VISIBLE_DEVICES");
        const char *hip = getenv("HIP_VISIBLE_DEVICES");
        for (unsigned i = 0; i < cards->count; i++)
            append(&list, cards->hip_order[i]);
        if (rocr)
            filter(cards, rocr, true, &list);
        if (hip)
            filter(cards, hip, true, &list);
    }
    for (unsigned i = 0; i < cards->count; i++)
        selected[i] = contains(&list, i);
}
