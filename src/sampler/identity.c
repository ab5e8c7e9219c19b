#include "sampler/source.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

static const char *fact(const struct sensor *sensor, const char *key)
{
    for (size_t i = 0; i < sensor->fact_count; i++)
        if (str_equal(sensor->facts[i].key, key))
            return sensor->facts[i].text;
    return NULL;
}

/* The bus address without leading zeros: NVIDIA writes eight digits of domain, the kernel four. */
static const char *bus_address(const struct sensor *sensor)
{
    const char *address = fact(sensor, "pci_bus_id");
    while (address && *address == '0' && address[1] != ':')
        address++;
    return address;
}

static bool is_same_card(const struct sensor *a, const struct sensor *b)
{
    const char *of_a = bus_address(a), *of_b = bus_address(b);
    return a->driver != b->driver && of_a && of_b && str_equal_nocase(of_a, of_b);
}

static bool has_device(const struct sensor *sensor, const char *device)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (str_equal(sensor->channels[i].device, device))
            return true;
    return false;
}

static bool is_taken(const struct sensor *const *others, size_t count, const char *device)
{
    for (size_t i = 0; i < count; i++)
        if (has_device(others[i], device))
            return true;
    return false;
}

/* Gives the card the first free number, for its name and its location in sums. */
static void renumber(const struct sensor *const *others, size_t count, struct sensor *added)
{
    char old[sizeof added->channels[0].device], device[sizeof old];
    int number = 0;
    chars_copy(old, added->channels[0].device);
    do
        chars_format(device, "gpu%d", number++);
    while (is_taken(others, count, device));
    for (size_t i = 0; i < added->channel_count; i++) {
        if (!str_equal(added->channels[i].device, old))
            continue;
        chars_copy(added->channels[i].device, device);
        if (added->channels[i].location >= 0)
            added->channels[i].location = number - 1;
    }
}

enum err identity_check(const struct sensor *const *others, size_t count, struct sensor *added,
                        struct error *why)
{
    if (added->kind != SENSOR_GPU || added->channel_count == 0)
        return ERR_OK;
    for (size_t i = 0; i < count; i++)
        if (others[i]->kind == SENSOR_GPU && is_same_card(others[i], added))
            return err_set(why, ERR_UNSUPPORTED, "same device as %s, which is read instead",
                           others[i]->id);
    if (is_taken(others, count, added->channels[0].device))
        renumber(others, count, added);
    return ERR_OK;
}

static bool same_channel(const struct sensor_channel *a, const struct sensor_channel *b)
{
    return str_equal(a->name, b->name) && a->quantity == b->quantity && a->group == b->group &&
           a->wraps_at == b->wraps_at &&
           fabs(a->joules_per_count - b->joules_per_count) <= 1e-9 * a->joules_per_count;
}

/* Whether both report the same identifying facts.  A missing fact contradicts nothing. */
static bool same_identity(const struct sensor *a, const struct sensor *b)
{
    static const char *const KEYS[] = {"uuid", "pci_bus_id", "chip", "label"};
    for (size_t i = 0; i < COUNT_OF(KEYS); i++) {
        const char *of_a = fact(a, KEYS[i]), *of_b = fact(b, KEYS[i]);
        if (of_a && of_b && !str_equal(of_a, of_b))
            return false;
    }
    return true;
}

/* Device names are not compared: the sampler may have renamed the first one. */
bool identity_continues(const struct sensor *before, const struct sensor *now)
{
    if (before->channel_count != now->channel_count || !str_equal(before->name, now->name) ||
        !same_identity(before, now))
        return false;
    for (size_t i = 0; i < before->channel_count; i++)
        if (!same_channel(&before->channels[i], &now->channels[i]))
            return false;
    return true;
}
