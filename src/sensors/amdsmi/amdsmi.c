/* AMD GPUs through AMD SMI, or ROCm SMI where that is all there is.
 *
 * Energy comes from the card's own accumulator: counts times the resolution that the library
 * reports (about 15.3 µJ), kept as reported so that our joules agree with amd-smi's.  Power is the
 * driver's filtered value: a cross-check, or the only source in a guest, where the accumulator is
 * not supported.
 *
 * Known problems, and where they are handled:
 * - Two threads inside AMD SMI get counts that jump back.  Here: one lock around every call.
 * - Counts that go back nevertheless (driver reload, old ROCm on MI100).  Above: the timeline
 *   treats a step back as a reset, never as negative energy.
 * - MI250: two dies are two devices, and the even one reports the joules of both while the odd one
 *   reports 0 or nothing.  Here: the odd one is unsupported and says where its energy is.
 * - Compute partitions of one card (same PCI bus and device) share one accumulator.  Here: all but
 *   the first are unsupported in the same way, or the sum would count the card several times.
 * - A card that is gone from sysfs reads as "not supported".  Here: when everything that worked at
 *   open stops working at once, the device is lost.  While another sensor keeps the library open,
 *   the library keeps its old list of devices; it is read again when the last one is closed. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "port/fs.h"
#include "sensors/amdsmi/api.h"
#include "sensors/sensor.h"
#include "sensors/system/hwmon_chips.h"

/* AMD publishes no accuracy for the accumulator or for socket power.  Other vendors state +-5 %
 * for the same kind of current sensing, and external meters agree with that; taken as the limits
 * of a uniform distribution, its standard uncertainty is the limit over the square root of 3. */
#define RELATIVE_ACCURACY (0.05 / 1.7320508075688772)

/* Above any accelerator sold (MI355X: 1400 W).  The cap is not used: it may be raised later, and valid joules above
 * it would then look like a reset. */
#define WATTS_MAX      2000

#define FIX_DENIED     "sudo usermod -aG render,video $USER   (then log in again)"

#define FIX_NO_LIBRARY "sudo apt-get install librocm-smi64-1   (or amd-smi-lib from ROCm)"

/* ---- the library: opened for its first user, closed after its last ---- */

static struct {
    pthread_mutex_t calls; /* held around every call into the library */
    pthread_mutex_t users; /* guards the two below, and opening and closing */
    const struct amd_api *api;
    unsigned user_count;
} library = {.calls = PTHREAD_MUTEX_INITIALIZER, .users = PTHREAD_MUTEX_INITIALIZER};

static void lock_calls(void)
{
    pthread_mutex_lock(&library.calls);
}

static void unlock_calls(void)
{
    pthread_mutex_unlock(&library.calls);
}

/* Without the kernel driver there are no devices, and the libraries are not loaded: that takes tens of milliseconds,
 * and ROCm SMI writes to stderr if it finds no driver.  A library that the user names is always opened. */
static bool should_open(void)
{
    return getenv("IPW_AMDSMI") || getenv("IPW_ROCMSMI") || fs_exists("/sys/module/amdgpu") ||
           fs_exists("/dev/kfd");
}

static enum err open_first(struct error *why)
{
    static const struct amd_api *const APIS[] = {&amd_smi_api, &amd_rocm_api};
    if (!should_open())
        return err_set(why, ERR_ABSENT, "the amdgpu kernel driver is not loaded");
    struct error failures[2];
    for (size_t i = 0; i < 2; i++) {
        failures[i] = (struct error){0};
        enum err err = APIS[i]->open(&failures[i]);
        if (!err) {
            library.api = APIS[i];
            return ERR_OK;
        }
        failures[i].code = err;
    }
    if (failures[0].code == ERR_ABSENT && failures[1].code == ERR_ABSENT)
        return err_set(why, fs_exists("/sys/module/amdgpu") ? ERR_NOT_FOUND : ERR_ABSENT,
                       "neither AMD SMI nor ROCm SMI can be opened: %.75s; %.75s", failures[0].text,
                       failures[1].text);
    /* A library that opened and then failed gives a better error than one that is not installed. */
    const struct error *cause = &failures[failures[0].code == ERR_ABSENT];
    return err_set(why, cause->code == ERR_LOST ? ERR_ABSENT : cause->code, "%s", cause->text);
}

/* Returns the open library, opening it for the first user.  Fails with ERR_ABSENT (no driver or no device),
 * ERR_NOT_FOUND (the kernel driver is loaded, but no library is installed), ERR_DENIED or the error of the library. */
static enum err acquire(const struct amd_api **api, struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&library.users);
    if (!library.user_count) {
        lock_calls();
        err = open_first(why);
        unlock_calls();
    }
    if (!err) {
        library.user_count++;
        *api = library.api;
    }
    pthread_mutex_unlock(&library.users);
    return err;
}

static void release(void)
{
    pthread_mutex_lock(&library.users);
    if (--library.user_count == 0) {
        lock_calls();
        library.api->close();
        library.api = NULL;
        unlock_calls();
    }
    pthread_mutex_unlock(&library.users);
}

/* ---- quantities of a device ---- */

enum { GROUP_ENERGY, GROUP_SLOW };

struct amd_sensor {
    const struct amd_api *api;
    unsigned device;
    unsigned char row_of[SENSOR_CHANNELS_MAX]; /* row of ROWS of each channel */
};

/* Channels in order; of two rows with the same name the first that works is used. */
static const struct row {
    const char *name;
    enum quantity quantity;
    unsigned group;
    enum amd_value value; /* not of energy, which is a count */
} ROWS[] = {
    {"energy", QTY_ENERGY, GROUP_ENERGY, 0},
    {"power", QTY_POWER, GROUP_ENERGY, AMD_POWER},
    {"temperature", QTY_TEMPERATURE, GROUP_SLOW, AMD_JUNCTION},
    {"temperature", QTY_TEMPERATURE, GROUP_SLOW, AMD_EDGE},
    {"memory.used", QTY_MEMORY_USED, GROUP_SLOW, AMD_MEMORY_USED},
    {"memory.total", QTY_MEMORY_TOTAL, GROUP_SLOW, AMD_MEMORY_TOTAL},
    {"utilisation", QTY_UTILIZATION, GROUP_SLOW, AMD_BUSY},
    {"utilisation.memory", QTY_MEMORY_UTILIZATION, GROUP_SLOW, AMD_MEMORY_BUSY},
    {"clock", QTY_CLOCK, GROUP_SLOW, AMD_CLOCK},
    {"clock.memory", QTY_MEMORY_CLOCK, GROUP_SLOW, AMD_MEMORY_CLOCK},
    {"power_limit", QTY_POWER_LIMIT, GROUP_SLOW, AMD_POWER_CAP},
};
enum { ROW_COUNT = COUNT_OF(ROWS) };

/* Result of a first read of a device's energy and power.  A counter that is exactly 0 has never counted, and a powered
 * card that draws exactly 0 W is not being measured: both count as unsupported, and neither may become 0 J. */
struct first_read {
    enum err energy;
    enum err power;
    double joules_per_count;
};

static struct first_read read_first(const struct amd_api *api, unsigned device)
{
    struct first_read first = {0};
    uint64_t count = 0;
    double watts = 0;
    first.energy = api->energy(device, &count, &first.joules_per_count);
    if (!first.energy && !count)
        first.energy = ERR_UNSUPPORTED;
    first.power = api->read(device, AMD_POWER, &watts);
    if (!first.power && !(watts > 0))
        first.power = ERR_UNSUPPORTED;
    return first;
}

static bool same_name(const struct amd_api *api, unsigned a, unsigned b)
{
    char name_a[96], name_b[96];
    return !api->name(a, name_a, sizeof name_a) && !api->name(b, name_b, sizeof name_b) &&
           str_equal(name_a, name_b);
}

/* The device whose counter holds this device's energy: itself, except for the second die of a
 * package and for the further partitions of a card. */
static unsigned counter_device_of(const struct amd_api *api, unsigned device)
{
    struct amd_pci own, other;
    if (!api->pci(device, &own))
        for (unsigned i = 0; i < device; i++)
            if (!api->pci(i, &other) && other.domain == own.domain && other.bus == own.bus &&
                other.device == own.device)
                return i;
    if (device % 2 == 0 || !same_name(api, device - 1, device))
        return device;
    struct first_read first = read_first(api, device);
    bool unsupported = first.energy == ERR_UNSUPPORTED && first.power == ERR_UNSUPPORTED;
    return unsupported && !read_first(api, device - 1).energy ? device - 1 : device;
}

/* ---- probing ---- */

/* Of a row's first reading; *value is not that of a counter. */
static enum err first_of(const struct amd_api *api, unsigned device, const struct first_read *first,
                         size_t row, double *value)
{
    if (ROWS[row].quantity == QTY_ENERGY)
        return first->energy;
    if (ROWS[row].quantity == QTY_POWER)
        return first->power;
    return api->read(device, ROWS[row].value, value);
}

static void list_measures(const struct amd_api *api, unsigned device,
                          const struct first_read *first, char *to, size_t size)
{
    to[0] = '\0';
    enum quantity last = QTY_COUNT;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        double value;
        enum err err = first_of(api, device, first, i, &value);
        if (err || ROWS[i].quantity == last)
            continue;
        last = ROWS[i].quantity;
        size_t used = strlen(to);
        str_format(to + used, size - used, "%s%s", used ? "," : "", quantity_name(last));
    }
}

static void set_status(const struct amd_api *api, unsigned device, struct sensor_finding *finding)
{
    unsigned carrier = counter_device_of(api, device);
    struct first_read first = read_first(api, device);
    if (carrier != device) {
        finding->status = SENSOR_UNSUPPORTED;
        chars_format(finding->reason, "energy is reported on amdsmi:%u", carrier);
    } else if (!first.energy || !first.power) {
        finding->status = SENSOR_OK;
        list_measures(api, device, &first, finding->measures, sizeof finding->measures);
    } else if (first.energy == ERR_DENIED || first.power == ERR_DENIED) {
        finding->status = SENSOR_DENIED;
        chars_copy(finding->reason, "no permission to read the GPU");
        chars_copy(finding->fix, FIX_DENIED);
    } else {
        finding->status = SENSOR_UNSUPPORTED;
        chars_format(finding->reason, "no energy (%s) and no power (%s); a guest may get neither",
                     err_text(first.energy), err_text(first.power));
    }
}

static void probe_device(const struct amd_api *api, unsigned device, struct sensor_findings *out)
{
    char id[48];
    chars_format(id, "amdsmi:%u", device);
    struct sensor_finding *finding = sensor_found(out, id, SENSOR_GPU, SENSOR_OK);
    if (!finding)
        return;
    finding->key = device;
    if (api->name(device, finding->name, sizeof finding->name))
        chars_copy(finding->name, "AMD GPU");
    set_status(api, device, finding);
}

static void report_nothing(struct sensor_findings *out, enum err err, const char *reason)
{
    bool is_absent = err == ERR_ABSENT || err == ERR_NOT_FOUND;
    enum sensor_status status =
        sensor_status_of(err, is_absent ? SENSOR_ABSENT : SENSOR_UNSUPPORTED);
    struct sensor_finding *finding = sensor_found(out, "amdsmi", SENSOR_GPU, status);
    if (!finding)
        return;
    chars_copy(finding->reason, reason);
    if (status == SENSOR_DENIED)
        chars_copy(finding->fix, FIX_DENIED);
    else if (err == ERR_NOT_FOUND)
        chars_copy(finding->fix, FIX_NO_LIBRARY);
}

/* Library order, if the library does not report HIP's. */
static void set_hip_order(const struct amd_api *api, struct amd_cards *cards)
{
    bool placed[AMD_DEVICES_MAX] = {false};
    unsigned at = 0;
    for (unsigned index = 0; index < cards->count; index++)
        for (unsigned device = 0; device < cards->count; device++) {
            unsigned hip;
            if (placed[device] || api->hip_index(device, &hip) || hip != index)
                continue;
            placed[device] = true;
            cards->hip_order[at++] = device;
        }
    for (unsigned device = 0; device < cards->count; device++)
        if (!placed[device])
            cards->hip_order[at++] = device;
}

static void list_cards(const struct amd_api *api, struct amd_cards *cards)
{
    *cards = (struct amd_cards){.count = api->count()};
    for (unsigned i = 0; i < cards->count; i++)
        if (api->unique_id(i, &cards->ids[i]))
            cards->ids[i] = 0;
    set_hip_order(api, cards);
}

static void amdsmi_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    const struct amd_api *api;
    struct error why = {0};
    enum err err = acquire(&api, &why);
    if (err) {
        report_nothing(out, err, why.text);
        return;
    }
    bool selected[AMD_DEVICES_MAX];
    size_t before = out->count;
    struct amd_cards cards;
    lock_calls();
    list_cards(api, &cards);
    amd_select(&cards, config ? config->devices : NULL, selected);
    for (unsigned i = 0; i < cards.count; i++)
        if (selected[i])
            probe_device(api, i, out);
    unlock_calls();
    if (!cards.count)
        report_nothing(out, ERR_ABSENT, "no AMD GPU");
    else if (out->count == before)
        report_nothing(out, ERR_ABSENT,
                       "AMD GPUs found, but --devices, ROCR_VISIBLE_DEVICES or "
                       "HIP_VISIBLE_DEVICES selects none");
    release();
}

/* ---- opening ---- */

/* "0000:03:00.0"; "" when the library does not report it. */
static void pci_text(const struct amd_api *api, unsigned device, char *to, size_t size)
{
    struct amd_pci at;
    to[0] = '\0';
    if (!api->pci(device, &at))
        str_format(to, size, "%04x:%02x:%02x.%u", at.domain, at.bus, at.device, at.function);
}

static void add_facts(struct amd_sensor *amd, struct sensor *out)
{
    const struct amd_api *api = amd->api;
    char text[72];
    uint64_t id;
    if (!api->unique_id(amd->device, &id)) {
        chars_format(text, "GPU-%016llx", (unsigned long long)id);
        sensor_add_fact(out, "uuid", text);
    }
    pci_text(api, amd->device, text, sizeof text);
    if (text[0])
        sensor_add_fact(out, "pci_bus_id", text);
    api->describe(text, sizeof text);
    sensor_add_fact(out, "library", text);
    unsigned from = amd->device, last = from;
    for (unsigned i = from + 1; i < api->count() && counter_device_of(api, i) == from; i++)
        last = i;
    if (last > from) {
        chars_format(text, "amdsmi:%u to amdsmi:%u", from, last);
        sensor_add_fact(out, "covers", text);
    }
}

static void add_row(struct amd_sensor *amd, size_t row, struct sensor *out)
{
    size_t index = out->channel_count;
    if (index && str_equal(out->channels[index - 1].name, ROWS[row].name))
        return;
    char device[24];
    chars_format(device, "gpu%u", amd->device);
    struct sensor_channel *channel =
        sensor_add_channel(out, ROWS[row].name, device, ROWS[row].quantity);
    if (!channel)
        return;
    channel->location = (int)amd->device;
    channel->group = ROWS[row].group;
    amd->row_of[index] = (unsigned char)row;
}

/* A failure that does not depend on the device's capabilities. */
static bool is_transient(enum err err)
{
    return err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_INTERRUPTED;
}

/* Common fields of the energy and power channels: scope, location and accuracy. */
static void describe_power(const struct amd_sensor *amd, const struct first_read *first,
                           struct sensor *out)
{
    char pci[24];
    double cap, watts_max = WATTS_MAX;
    pci_text(amd->api, amd->device, pci, sizeof pci);
    bool integrated = hwmon_is_integrated_at(pci);
    if (!amd->api->read(amd->device, AMD_POWER_CAP, &cap))
        watts_max = fmax(WATTS_MAX, 1.5 * cap);
    for (size_t i = 0; i < out->channel_count; i++) {
        struct sensor_channel *channel = &out->channels[i];
        if (!quantity_gives_joules(channel->quantity))
            continue;
        /* Integrated graphics report the whole package, which RAPL counts too. */
        channel->scope = integrated ? SCOPE_PACKAGE : SCOPE_GPU;
        channel->location = integrated ? -1 : channel->location;
        channel->watts_max = watts_max;
        channel->relative_accuracy = RELATIVE_ACCURACY;
        if (channel->quantity == QTY_ENERGY)
            channel->joules_per_count = first->joules_per_count;
        else
            channel->secondary = !first->energy;
    }
}

static enum err add_channels(struct amd_sensor *amd, struct sensor *out)
{
    const struct amd_api *api = amd->api;
    if (amd->device >= api->count() || counter_device_of(api, amd->device) != amd->device)
        return ERR_LOST;
    struct first_read first = read_first(api, amd->device);
    if (is_transient(first.energy))
        return first.energy; /* otherwise power would replace the counter permanently */
    if (first.energy && first.power)
        return first.energy == ERR_UNSUPPORTED ? first.power : first.energy;
    double value;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        enum err err = first_of(api, amd->device, &first, i, &value);
        if (!err || is_transient(err))
            add_row(amd, i, out);
    }
    describe_power(amd, &first, out);
    add_facts(amd, out);
    return ERR_OK;
}

static enum err amdsmi_open(const struct sensor_finding *finding, struct sensor *out,
                            struct error *why)
{
    struct amd_sensor *amd = memory_zeroed(1, sizeof *amd);
    if (!amd)
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", finding->id);
    amd->device = finding->key;
    enum err err = acquire(&amd->api, why);
    if (err) {
        free(amd);
        return err;
    }
    lock_calls();
    err = add_channels(amd, out);
    unlock_calls();
    if (err) {
        release();
        free(amd);
        return err_set(why, err, "%s: %s", finding->id, err_text(err));
    }
    out->groups[GROUP_ENERGY] = (struct sensor_group){
        .period_default = 100 * NS_PER_MS,
        .period_min = 10 * NS_PER_MS,
        .follow_ticks = true,
    };
    out->groups[GROUP_SLOW] = (struct sensor_group){
        .period_default = 500 * NS_PER_MS,
        .period_min = 100 * NS_PER_MS,
    };
    bool has_slow = out->channels[out->channel_count - 1].group == GROUP_SLOW;
    out->group_count = has_slow ? 2 : 1;
    out->state = amd;
    return ERR_OK;
}

/* ---- reading ---- */

/* The timestamp of a reading is the middle of the call, taken with the lock held, so that waiting for other sensors
 * does not count. */
static enum err read_channel(const struct amd_sensor *amd, unsigned channel,
                             struct observations *out)
{
    const struct row *row = &ROWS[amd->row_of[channel]];
    bool is_count = row->quantity == QTY_ENERGY;
    uint64_t count = 0;
    double value = 0, resolution;
    lock_calls();
    nanos before = clock_now();
    enum err err = is_count ? amd->api->energy(amd->device, &count, &resolution)
                            : amd->api->read(amd->device, row->value, &value);
    nanos after = clock_now();
    unlock_calls();
    nanos t = before + (after - before) / 2;
    if (err)
        observe_missing(out, channel, t, err);
    else if (is_count)
        observe_count(out, channel, t, count);
    else
        observe_value(out, channel, t, value);
    return err;
}

static enum err amdsmi_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    const struct amd_sensor *amd = sensor->state;
    bool any = false, gone = true;
    for (unsigned i = 0; i < sensor->channel_count; i++) {
        if (sensor->channels[i].group != group)
            continue;
        enum err err = read_channel(amd, i, out);
        any = true;
        if (err != ERR_LOST && err != ERR_UNSUPPORTED)
            gone = false;
    }
    return any && gone ? ERR_LOST : ERR_OK;
}

static void amdsmi_close(struct sensor *sensor)
{
    if (!sensor->state)
        return; /* never opened */
    free(sensor->state);
    sensor->state = NULL;
    release();
}

const struct sensor_driver sensor_amdsmi = {
    .name = "amdsmi",
    .summary = "AMD GPUs: energy counter and power through AMD SMI or ROCm SMI",
    .probe = amdsmi_probe,
    .open = amdsmi_open,
    .read = amdsmi_read,
    .close = amdsmi_close,
};
