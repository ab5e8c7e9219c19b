/* Power and energy meters under /sys/class/hwmon: ACPI meters (a whole node, or the parts of an
 * NVIDIA Grace module), GPUs (amdgpu, i915, xe), AMD sockets, power supplies.
 *
 * One finding per chip.  A meter whose position in the machine is known gets its scope; every other
 * one is shown with SCOPE_NONE, because a meter that might be inside another must not enter a sum. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"
#include "port/fs.h"
#include "sensors/sysfs_channels.h"
#include "sensors/system/host_info.h"
#include "sensors/system/hwmon_chips.h"
#include "sensors/sensor.h"

static const struct sysfs_rule MICROWATTS = {.factor = 1e-6};

enum role { ROLE_UNKNOWN, ROLE_ACPI, ROLE_GPU, ROLE_SOCKETS, ROLE_SUPPLY };

/* Firmware filters its readings, over times that few drivers report. */
#define ASSUMED_AVERAGING (500 * NS_PER_MS)

/* The chips whose position in the machine is known. */
static const struct known_chip {
    const char *name;
    enum role role;
    enum sensor_kind kind;
    double watts_max;
    double accuracy;
    nanos averaging; /* of its powers, where the driver has no file for it: assumed */
    nanos period_default, period_min;
    const char *title;
} KNOWN[] = {
    {"power_meter", ROLE_ACPI, SENSOR_BOARD, 50e3, 0.05, NS_PER_S, NS_PER_S, 10 * NS_PER_MS,
     "ACPI power meter"},
    {"acpi_power_meter", ROLE_ACPI, SENSOR_BOARD, 50e3, 0.05, NS_PER_S, NS_PER_S, 10 * NS_PER_MS,
     "ACPI power meter"},
    {"amdgpu", ROLE_GPU, SENSOR_GPU, 2500, 0.05, ASSUMED_AVERAGING, 100 * NS_PER_MS, 10 * NS_PER_MS,
     "AMD GPU"},
    {"i915", ROLE_GPU, SENSOR_GPU, 2500, 0.05, ASSUMED_AVERAGING, 100 * NS_PER_MS, 10 * NS_PER_MS,
     "Intel GPU"},
    {"xe", ROLE_GPU, SENSOR_GPU, 2500, 0.05, ASSUMED_AVERAGING, 100 * NS_PER_MS, 10 * NS_PER_MS,
     "Intel GPU"},
    {"amd_energy", ROLE_SOCKETS, SENSOR_CPU, 1500, 0.03, ASSUMED_AVERAGING, 100 * NS_PER_MS,
     10 * NS_PER_MS, "AMD sockets"},
    {"zenergy", ROLE_SOCKETS, SENSOR_CPU, 1500, 0.03, ASSUMED_AVERAGING, 100 * NS_PER_MS,
     10 * NS_PER_MS, "AMD sockets"},
    /* Read over USB, one command per file: read rarely. */
    {"corsairpsu", ROLE_SUPPLY, SENSOR_BOARD, 3000, 0.05, NS_PER_S, NS_PER_S, 250 * NS_PER_MS,
     "Corsair power supply"},
};

static const struct known_chip UNKNOWN_CHIP = {
    "", ROLE_UNKNOWN, SENSOR_BOARD, 50e3, 0.1, ASSUMED_AVERAGING, NS_PER_S, 50 * NS_PER_MS, ""};

struct chip {
    const struct hwmon_chip *at;
    const struct known_chip *known;
    char id[48];
    char device[24]; /* for meters without a scope of their own */
    unsigned gpu;    /* ROLE_GPU: which of the GPUs found here */
    bool is_node;    /* ROLE_ACPI: the first meter that covers the whole machine */
    struct hwmon_meter meters[HWMON_METERS_MAX];
    size_t meter_count;
};

static const struct known_chip *find_known(const char *name)
{
    const struct known_chip *found = STR_FIND(name, KNOWN);
    return found ? found : &UNKNOWN_CHIP;
}

/* ---- Grace ---- */

static const struct grace_part {
    const char *label; /* followed by " Power Socket N" */
    enum scope scope;
    const char *device;
} GRACE_PARTS[] = {
    {"Module", SCOPE_MODULE, "module"},
    {"Grace", SCOPE_GRACE, "grace"},
    {"CPU", SCOPE_GRACE_CPU, "cpu"},
    {"SysIO", SCOPE_SYSIO, "sysio"},
};

/* NULL when the label names no known part; *socket is -1 when it names no socket at all. */
static const struct grace_part *grace_part(const char *label, int *socket)
{
    static const char MARK[] = " Power Socket ";
    const char *mark = strstr(label, MARK);
    *socket = -1;
    if (!mark || !isdigit((unsigned char)mark[strlen(MARK)]))
        return NULL;
    *socket = (int)strtol(mark + strlen(MARK), NULL, 10);
    size_t length = (size_t)(mark - label);
    for (size_t i = 0; i < COUNT_OF(GRACE_PARTS); i++)
        if (strlen(GRACE_PARTS[i].label) == length && !strncmp(label, GRACE_PARTS[i].label, length))
            return &GRACE_PARTS[i];
    return NULL;
}

/* A labeled part of a module that is not in the table is still a part, not the node. */
static bool covers_node(const struct chip *chip)
{
    int socket;
    if (chip->known->role != ROLE_ACPI || !chip->meter_count)
        return false;
    return !grace_part(chip->meters[0].label, &socket) && socket < 0;
}

/* ---- walking the chips ---- */

struct walk {
    struct hwmon_chips chips;
    size_t next;
    unsigned gpus, nodes;
    bool on_jetson;
};

static enum err walk_start(struct walk *walk)
{
    *walk = (struct walk){.on_jetson = host_is_jetson(NULL, 0)};
    return hwmon_chips_list(&walk->chips);
}

/* Loads the next chip that measures power or energy. */
static bool walk_next(struct walk *walk, struct chip *chip)
{
    while (walk->next < walk->chips.count) {
        const struct hwmon_chip *at = &walk->chips.items[walk->next++];
        if (walk->on_jetson && str_equal(at->name, "ina3221"))
            continue; /* the jetson driver reads its rails */
        *chip = (struct chip){.at = at, .known = find_known(at->name)};
        /* Per-core counters would crowd out the sockets they are part of. */
        const char *only = chip->known->role == ROLE_SOCKETS ? "Esocket" : "";
        chip->meter_count = hwmon_meters_find(at, only, chip->meters);
        if (!chip->meter_count)
            continue;
        /* "amdgpu0", but "i915.0": two numbers must not run together. */
        const char *dot = isdigit((unsigned char)at->name[strlen(at->name) - 1]) ? "." : "";
        chars_format(chip->id, "hwmon:%.30s%s%u", at->name, dot, at->nth);
        chars_format(chip->device, "%.18s%s%u", at->name, dot, at->nth);
        if (chip->known->role == ROLE_GPU)
            chip->gpu = walk->gpus++;
        chip->is_node = covers_node(chip) && walk->nodes++ == 0;
        return true;
    }
    return false;
}

/* ---- open ---- */

/* Where a meter is in the machine. */
struct placement {
    enum scope scope;
    int location;
    char device[24];
    bool secondary;
};

static void set_acpi_placement(const struct chip *chip, const struct hwmon_meter *meter,
                               struct placement *placement)
{
    int socket;
    const struct grace_part *part = grace_part(meter->label, &socket);
    if (part) {
        placement->scope = part->scope;
        placement->location = socket;
        chars_format(placement->device, "%s%d", part->device, socket);
    } else if (chip->is_node && meter == &chip->meters[0]) {
        placement->scope = SCOPE_NODE;
        chars_copy(placement->device, "node");
    }
}

/* The whole card is its first meter, an energy counter before a power; the other quantity of the
 * same number cross-checks it, and other numbers are parts of the card. */
static void set_gpu_placement(const struct chip *chip, const struct hwmon_meter *meter,
                              struct placement *placement)
{
    const struct hwmon_meter *main_meter = &chip->meters[0];
    for (size_t i = 0; i < chip->meter_count; i++)
        if (chip->meters[i].is_energy && !main_meter->is_energy)
            main_meter = &chip->meters[i];
    bool integrated = hwmon_is_integrated(chip->at);
    chars_format(placement->device, "gpu%u", chip->gpu);
    placement->location = integrated ? -1 : (int)chip->gpu;
    if (meter->index != main_meter->index)
        return;
    /* It measures the same package as RAPL, and must not be added to it. */
    placement->scope = integrated ? SCOPE_PACKAGE : SCOPE_GPU;
    placement->secondary = meter != main_meter;
}

static struct placement placement_of(const struct chip *chip, const struct hwmon_meter *meter)
{
    struct placement placement = {.scope = SCOPE_NONE, .location = -1};
    chars_copy(placement.device, chip->device);
    switch (chip->known->role) {
    case ROLE_ACPI:
        set_acpi_placement(chip, meter, &placement);
        break;
    case ROLE_GPU:
        set_gpu_placement(chip, meter, &placement);
        break;
    case ROLE_SOCKETS:
        placement.scope = SCOPE_PACKAGE;
        placement.location = (int)strtol(meter->label + strlen("Esocket"), NULL, 10);
        chars_format(placement.device, "cpu%d", placement.location);
        break;
    case ROLE_SUPPLY: /* the first is the total, the others its rails */
        if (meter->index == 1) {
            placement.scope = SCOPE_NODE;
            chars_copy(placement.device, "node");
        }
        break;
    case ROLE_UNKNOWN:
        break;
    }
    return placement;
}

/* "power" alone, else the chip's own label, else "power2". */
static void channel_name(const struct sensor *sensor, const struct chip *chip,
                         const struct hwmon_meter *meter, char *to, size_t size)
{
    const char *what = meter->is_energy ? "energy" : "power";
    str_copy(to, size, what);
    if (chip->meter_count == 1)
        return;
    if (meter->label[0])
        str_copy(to, size, meter->label);
    else
        str_format(to, size, "%s%u", what, meter->index);
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (str_equal(sensor->channels[i].name, to))
            str_format(to, size, "%s%u", what, meter->index);
}

/* The file that holds the averaging interval, in milliseconds. */
static nanos average_interval(const struct hwmon_meter *meter)
{
    char path[FS_PATH_MAX];
    uint64_t ms;
    const uint64_t HOUR_MS = 3600000;
    if (meter->is_energy || !chars_format(path, "%s_interval", meter->path) ||
        fs_read_u64(path, &ms) || ms == 0 || ms > HOUR_MS)
        return 0;
    return (nanos)ms * NS_PER_MS;
}

static enum err add_meter(struct sensor *out, struct sysfs_channels *set, const struct chip *chip,
                          const struct hwmon_meter *meter)
{
    char name[sizeof out->channels[0].name];
    enum err err = sysfs_channels_bind(set, out->channel_count, meter->path, MICROWATTS);
    if (err)
        return err;
    struct placement placement = placement_of(chip, meter);
    channel_name(out, chip, meter, name, sizeof name);
    struct sensor_channel *channel =
        sensor_add_channel(out, name, placement.device, meter->is_energy ? QTY_ENERGY : QTY_POWER);
    channel->scope = placement.scope;
    channel->location = placement.location;
    channel->secondary = placement.secondary;
    channel->watts_max = chip->known->watts_max;
    channel->relative_accuracy = chip->known->accuracy;
    channel->joules_per_count = meter->is_energy ? 1e-6 : 0;
    channel->period = average_interval(meter);
    if (!meter->is_energy)
        channel->averaging = channel->period ? channel->period : chip->known->averaging;
    return ERR_OK;
}

/* Other quantities of a GPU; those that the driver lacks are omitted. */
static void add_gpu_extras(struct sensor *out, struct sysfs_channels *set, const struct chip *chip)
{
    static const struct {
        const char *name;
        enum quantity quantity;
        const char *file;
        double factor;
    } EXTRAS[] = {
        {"temperature", QTY_TEMPERATURE, "temp1_input", 1e-3},
        {"clock", QTY_CLOCK, "freq1_input", 1e-6},
        {"memory.clock", QTY_MEMORY_CLOCK, "freq2_input", 1e-6},
        {"power.limit", QTY_POWER_LIMIT, "power1_cap", 1e-6},
        {"utilisation", QTY_UTILIZATION, "device/gpu_busy_percent", 1},
        {"memory.utilisation", QTY_MEMORY_UTILIZATION, "device/mem_busy_percent", 1},
        {"memory.used", QTY_MEMORY_USED, "device/mem_info_vram_used", 1},
        {"memory.total", QTY_MEMORY_TOTAL, "device/mem_info_vram_total", 1},
    };
    char device[24];
    chars_format(device, "gpu%u", chip->gpu);
    for (size_t i = 0; i < COUNT_OF(EXTRAS); i++) {
        char path[FS_PATH_MAX];
        struct sysfs_rule rule = {.factor = EXTRAS[i].factor};
        if (!chars_format(path, "%s/%s", chip->at->dir, EXTRAS[i].file))
            continue;
        struct sensor_channel *channel =
            sysfs_channels_add(set, out, EXTRAS[i].name, device, EXTRAS[i].quantity, path, rule);
        if (channel) {
            channel->group = 1;
            channel->location = (int)chip->gpu;
        }
    }
}

static void set_groups(struct sensor *out, const struct chip *chip)
{
    nanos period = chip->known->period_default, min = chip->known->period_min;
    if (out->channels[0].period)
        period = out->channels[0].period > min ? out->channels[0].period : min;
    out->groups[0] = (struct sensor_group){
        .period_default = period,
        .period_min = min,
        .follow_ticks = true,
    };
    out->group_count = 1;
    for (size_t i = 0; i < out->channel_count; i++)
        if (out->channels[i].group == 1)
            out->group_count = 2;
    out->groups[1] = (struct sensor_group){
        .period_default = 500 * NS_PER_MS,
        .period_min = 20 * NS_PER_MS,
    };
}

static void add_facts(struct sensor *out, const struct chip *chip)
{
    char pci[24];
    sensor_add_fact(out, "chip", chip->at->name);
    hwmon_pci_address(chip->at, pci, sizeof pci);
    if (pci[0])
        sensor_add_fact(out, "pci_bus_id", pci);
    if (chip->meters[0].label[0])
        sensor_add_fact(out, "label", chip->meters[0].label);
}

static enum err open_chip(const struct chip *chip, struct sensor *out, struct error *why)
{
    struct sysfs_channels *set = sysfs_channels_new();
    if (!set)
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", chip->id);
    enum err err = ERR_OK;
    const struct hwmon_meter *failed = NULL;
    for (size_t i = 0; i < chip->meter_count; i++) {
        enum err this = add_meter(out, set, chip, &chip->meters[i]);
        if (this && !failed) {
            err = this;
            failed = &chip->meters[i];
        }
    }
    if (!out->channel_count) {
        sysfs_channels_free(set);
        return err_set(why, err, "cannot open %.200s: %s", failed->path, err_text(err));
    }
    if (chip->known->role == ROLE_GPU)
        add_gpu_extras(out, set, chip);
    set_groups(out, chip);
    add_facts(out, chip);
    out->state = set;
    return ERR_OK;
}

/* ---- probe ---- */

/* ERR_OK if at least one meter can be opened and read; otherwise the first failure. */
static enum err try_meters(const struct chip *chip, const struct hwmon_meter **failed)
{
    enum err first = ERR_OK;
    for (size_t i = 0; i < chip->meter_count; i++) {
        int fd;
        uint64_t raw;
        enum err err = fs_open(chip->meters[i].path, &fd);
        if (!err) {
            err = fs_pread_u64(fd, &raw);
            close(fd);
            /* Opened, but the read failed: a suspended GPU, which can be read once it resumes. */
            if (err == ERR_DENIED || err == ERR_BUSY)
                err = ERR_OK;
        }
        if (!err)
            return ERR_OK;
        if (!first) {
            first = err;
            *failed = &chip->meters[i];
        }
    }
    return first;
}

static void describe(const struct chip *chip, struct sensor_finding *finding)
{
    char pci[24];
    hwmon_pci_address(chip->at, pci, sizeof pci);
    int socket;
    if (chip->known->role == ROLE_ACPI && grace_part(chip->meters[0].label, &socket))
        chars_format(finding->name, "NVIDIA Grace: %s", chip->meters[0].label);
    else if (chip->known->role == ROLE_UNKNOWN)
        chars_copy(finding->name, chip->at->name);
    else
        chars_format(finding->name, "%s%s%s", chip->known->title, pci[0] ? " " : "", pci);
}

static void report_chip(const struct chip *chip, struct sensor_findings *out)
{
    const struct hwmon_meter *failed = NULL;
    enum err err = try_meters(chip, &failed);
    enum sensor_status status = sensor_status_of(err, SENSOR_UNSUPPORTED);
    struct sensor_finding *finding = sensor_found(out, chip->id, chip->known->kind, status);
    if (!finding)
        return;
    describe(chip, finding);
    if (err)
        chars_format(finding->reason, "%.120s: %s", failed->path, err_text(err));
    if (err == ERR_DENIED)
        chars_format(finding->fix, "sudo chmod a+r %.150s (until the next boot), or run as root",
                     failed->path);
    struct sensor sensor = {0};
    if (!err && !open_chip(chip, &sensor, NULL)) {
        sensor_measures(&sensor, finding->measures, sizeof finding->measures);
        sysfs_channels_free(sensor.state);
    }
}

static void report_none(enum err err, struct sensor_findings *out)
{
    bool denied = err == ERR_DENIED;
    struct sensor_finding *finding =
        sensor_found(out, "hwmon", SENSOR_BOARD, denied ? SENSOR_DENIED : SENSOR_ABSENT);
    if (!finding)
        return;
    if (denied)
        chars_copy(finding->fix, "run as root, or outside the sandbox");
    struct host_info host;
    host_info_read(&host);
    if (!denied && host_is_grace(&host)) {
        chars_copy(finding->reason, "a Grace processor, but its ACPI power meters are missing");
        chars_copy(finding->fix,
                   "boot with acpi_power_meter.force_cap_on=y on the kernel command line, "
                   "then sudo modprobe acpi_power_meter (needs CONFIG_SENSORS_ACPI_POWER)");
    } else if (err) {
        chars_format(finding->reason, "/sys/class/hwmon: %s", err_text(err));
    } else {
        chars_copy(finding->reason, "no chip under /sys/class/hwmon measures power or energy");
    }
}

static void report_hidden(struct sensor_findings *out)
{
    struct sensor_finding *finding = sensor_found(out, "hwmon", SENSOR_BOARD, SENSOR_ABSENT);
    if (finding)
        chars_copy(finding->reason,
                   "GPUs found, but --devices, ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES "
                   "selects none");
}

static void hwmon_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    struct walk walk;
    struct chip chip;
    enum err err = walk_start(&walk);
    bool *selected = memory_zeroed(walk.chips.count + 1, sizeof *selected);
    size_t shown = 0, hidden = 0;
    if (selected)
        hwmon_select_gpus(&walk.chips, config ? config->devices : NULL, selected);
    else
        err = ERR_NO_MEMORY;
    while (!err && walk_next(&walk, &chip)) {
        if (selected[walk.next - 1]) {
            report_chip(&chip, out);
            shown++;
        } else {
            hidden++;
        }
    }
    free(selected);
    hwmon_chips_release(&walk.chips);
    if (!shown && hidden)
        report_hidden(out);
    else if (!shown)
        report_none(err, out);
}

/* Finds the chip by its id, not by number, which changes when the driver is reloaded. */
static enum err hwmon_open(const struct sensor_finding *finding, struct sensor *out,
                           struct error *why)
{
    struct walk walk;
    struct chip chip;
    enum err err = walk_start(&walk);
    if (err)
        return err_set(why, err, "/sys/class/hwmon: %s", err_text(err));
    bool found = false;
    while (!found && walk_next(&walk, &chip))
        found = str_equal(chip.id, finding->id);
    err = found ? open_chip(&chip, out, why)
                : err_set(why, ERR_NOT_FOUND, "%s no longer exists", finding->id);
    hwmon_chips_release(&walk.chips);
    return err;
}

static enum err hwmon_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    return sysfs_channels_read(sensor->state, sensor, group, out);
}

static void hwmon_close(struct sensor *sensor)
{
    sysfs_channels_free(sensor->state);
}

const struct sensor_driver sensor_hwmon = {
    .name = "hwmon",
    .summary = "kernel power meters: Grace modules, whole nodes, GPUs, power supplies",
    .probe = hwmon_probe,
    .open = hwmon_open,
    .read = hwmon_read,
    .close = hwmon_close,
};
