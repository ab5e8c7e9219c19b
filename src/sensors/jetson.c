/* NVIDIA Jetson boards: INA3221 monitors of three rails each, volts times amperes.
 *
 * VDD_IN is the board's input and the total; the other rails are parts of it and are reported beside
 * it.  Boards without an input monitor (the AGX ones) are the sum of their rails, so there each
 * rail is a board-level channel with a location of its own. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/fs.h"
#include "sensors/sysfs_channels.h"
#include "sensors/system/host_info.h"
#include "sensors/system/hwmon_chips.h"
#include "sensors/sensor.h"

enum {
    RAILS_MAX = 12,
    /* The monitor's offset error is two steps of its shunt voltage, at most 40 mA on these
     * boards: an idle rail may read that far below zero. */
    OFFSET_MA = 40,
};

/* Milliamperes here, times millivolts from the second file. */
static const struct sysfs_rule MICROWATT_PRODUCT = {.factor = 1e-6, .min = -OFFSET_MA, .floor = 0};

struct rail {
    char label[32];
    char voltage[FS_PATH_MAX]; /* mV */
    char current[FS_PATH_MAX]; /* mA */
    nanos period;              /* of the monitor's updates; 0 unknown */
};

struct rails {
    struct rail items[RAILS_MAX];
    size_t count;
    size_t monitors;
    bool has_total;
};

static bool is_total(const char *label)
{
    return str_equal(label, "VDD_IN") || str_equal(label, "POM_5V_IN");
}

/* ---- finding the rails ---- */

/* The two sysfs layouts of this monitor: path before and after a rail's number. */
static const struct layout {
    struct affix {
        const char *before, *after;
    } label, voltage, current;
    unsigned first;
} HWMON = {{"in", "_label"}, {"in", "_input"}, {"curr", "_input"}, 1},
  IIO = {{"rail_name_", ""}, {"in_voltage", "_input"}, {"in_current", "_input"}, 0};

static bool rail_path(char *to, size_t size, const char *dir, struct affix affix, unsigned index)
{
    return str_format(to, size, "%s/%s%u%s", dir, affix.before, index, affix.after);
}

static nanos update_interval(const char *dir)
{
    char path[FS_PATH_MAX];
    uint64_t ms;
    if (!chars_format(path, "%s/update_interval", dir) || fs_read_u64(path, &ms) || ms > 60000)
        return 0;
    return (nanos)ms * NS_PER_MS;
}

static void add_rails(struct rails *rails, const char *dir, const struct layout *layout)
{
    nanos period = update_interval(dir);
    rails->monitors++;
    for (unsigned i = layout->first; i < layout->first + 3; i++) {
        if (rails->count == RAILS_MAX)
            return;
        struct rail *rail = &rails->items[rails->count];
        char path[FS_PATH_MAX];
        if (!rail_path(path, sizeof path, dir, layout->label, i) ||
            fs_read_text(path, rail->label, sizeof rail->label) || !rail->label[0] ||
            str_equal_nocase(rail->label, "NC"))
            continue; /* not connected */
        if (!rail_path(rail->voltage, sizeof rail->voltage, dir, layout->voltage, i) ||
            !rail_path(rail->current, sizeof rail->current, dir, layout->current, i) ||
            !fs_exists(rail->voltage) || !fs_exists(rail->current))
            continue;
        rail->period = period;
        rails->has_total |= is_total(rail->label);
        rails->count++;
    }
}

static void find_hwmon_rails(struct rails *rails)
{
    struct hwmon_chips chips;
    if (hwmon_chips_list(&chips))
        return;
    for (size_t i = 0; i < chips.count; i++)
        if (str_equal(chips.items[i].name, "ina3221"))
            add_rails(rails, chips.items[i].dir, &HWMON);
    hwmon_chips_release(&chips);
}

/* Kernels up to 4.9: /sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0 */
static void find_iio_rails(struct rails *rails)
{
    static const char BASE[] = "/sys/bus/i2c/drivers/ina3221x";
    struct fs_names devices, parts;
    char path[FS_PATH_MAX], dir[FS_PATH_MAX];
    if (fs_list(BASE, &devices))
        return;
    for (size_t i = 0; i < devices.count; i++) {
        if (!chars_format(path, "%s/%s", BASE, devices.items[i]) || fs_list(path, &parts))
            continue;
        for (size_t j = 0; j < parts.count; j++)
            if (str_starts(parts.items[j], "iio:device") &&
                chars_format(dir, "%s/%s", path, parts.items[j]))
                add_rails(rails, dir, &IIO);
        fs_names_release(&parts);
    }
    fs_names_release(&devices);
}

static void find_rails(struct rails *rails)
{
    *rails = (struct rails){0};
    find_hwmon_rails(rails);
    if (!rails->count)
        find_iio_rails(rails);
}

/* ---- open ---- */

static enum err add_rail(struct sensor *out, struct sysfs_channels *set, const struct rails *rails,
                         size_t index)
{
    const struct rail *rail = &rails->items[index];
    size_t at = out->channel_count;
    enum err err = sysfs_channels_bind(set, at, rail->current, MICROWATT_PRODUCT);
    if (!err)
        err = sysfs_channels_bind_times(set, at, rail->voltage);
    if (err)
        return err;
    bool total = is_total(rail->label);
    char device[24];
    chars_format(device, "rail:%.18s", rail->label);
    struct sensor_channel *channel =
        sensor_add_channel(out, rail->label, total ? "board" : device, QTY_POWER);
    bool top_level = total || !rails->has_total;
    channel->scope = top_level ? SCOPE_BOARD : SCOPE_RAIL;
    channel->location = total ? -1 : (int)index;
    channel->watts_max = 200;          /* the largest board is rated at 130 W */
    channel->relative_accuracy = 0.03; /* 1 % shunt, plus the offset at light load */
    channel->period = rail->period;
    return ERR_OK;
}

/* The first thermal zone of the GPU: "gpu-thermal", "GPU-therm". */
static void add_temperature(struct sensor *out, struct sysfs_channels *set)
{
    struct fs_names zones;
    if (fs_list("/sys/class/thermal", &zones))
        return;
    struct sensor_channel *channel = NULL;
    for (size_t i = 0; i < zones.count && !channel; i++) {
        char path[FS_PATH_MAX], type[64];
        if (!chars_format(path, "/sys/class/thermal/%s/type", zones.items[i]) ||
            fs_read_text(path, type, sizeof type) ||
            !(str_starts(type, "gpu") || str_starts(type, "GPU")) ||
            !chars_format(path, "/sys/class/thermal/%s/temp", zones.items[i]))
            continue;
        /* A powered-down GPU reads far below zero: no temperature. */
        channel =
            sysfs_channels_add(set, out, "temperature", "board", QTY_TEMPERATURE, path,
                               (struct sysfs_rule){.factor = 1e-3, .min = -60000, .floor = -60000});
    }
    fs_names_release(&zones);
    if (channel)
        channel->group = 1;
}

static struct sensor_channel *add_load(struct sensor *out, struct sysfs_channels *set,
                                       const char *path)
{
    return sysfs_channels_add(set, out, "gpu.utilisation", "board", QTY_UTILIZATION, path,
                              (struct sysfs_rule){.factor = 0.1}); /* permille */
}

/* Load and clock of the GPU, where the kernel exposes them. */
static void add_gpu(struct sensor *out, struct sysfs_channels *set)
{
    static const char *const LOADS[] = {"/sys/devices/gpu.0/load",
                                        "/sys/devices/platform/gpu.0/load"};
    static const char *const NAMES[] = {"gpu", "ga10b", "gv11b", "gp10b", "gm20b"};
    struct sensor_channel *load = NULL, *clock = NULL;
    for (size_t i = 0; i < 2 && !load; i++)
        load = add_load(out, set, LOADS[i]);
    struct fs_names devices;
    if (!fs_list("/sys/class/devfreq", &devices)) {
        for (size_t i = 0; i < devices.count; i++) {
            bool is_gpu = false;
            for (size_t j = 0; j < COUNT_OF(NAMES); j++)
                is_gpu |= strstr(devices.items[i], NAMES[j]) != NULL;
            char path[FS_PATH_MAX];
            if (is_gpu && !load &&
                chars_format(path, "/sys/class/devfreq/%s/device/load", devices.items[i]))
                load = add_load(out, set, path);
            if (is_gpu && !clock &&
                chars_format(path, "/sys/class/devfreq/%s/cur_freq", devices.items[i]))
                clock = sysfs_channels_add(set, out, "gpu.clock", "board", QTY_CLOCK, path,
                                           (struct sysfs_rule){.factor = 1e-6});
        }
        fs_names_release(&devices);
    }
    if (load)
        load->group = 1;
    if (clock)
        clock->group = 1;
}

static void set_groups(struct sensor *out, size_t rail_count)
{
    out->groups[0] = (struct sensor_group){
        .period_default = 100 * NS_PER_MS,
        .period_min = 5 * NS_PER_MS, /* six I2C transfers per monitor */
        .follow_ticks = true,
    };
    out->groups[1] = (struct sensor_group){
        .period_default = 500 * NS_PER_MS,
        .period_min = 20 * NS_PER_MS,
    };
    out->group_count = out->channel_count > rail_count ? 2 : 1;
}

static enum err jetson_open(const struct sensor_finding *finding, struct sensor *out,
                            struct error *why)
{
    (void)finding;
    struct rails rails;
    struct sysfs_channels *set = sysfs_channels_new();
    if (!set)
        return err_set(why, ERR_NO_MEMORY, "jetson: out of memory");
    find_rails(&rails);
    enum err err = rails.count ? ERR_OK : err_set(why, ERR_NOT_FOUND, "no INA3221 rail found");
    /* Every rail or none: a sum that silently lacks a rail would be wrong. */
    for (size_t i = 0; i < rails.count && !err; i++) {
        err = add_rail(out, set, &rails, i);
        if (err)
            err_set(why, err, "cannot open rail %s: %s", rails.items[i].label, err_text(err));
    }
    if (err) {
        sysfs_channels_free(set);
        return err;
    }
    size_t rail_count = out->channel_count;
    add_temperature(out, set);
    add_gpu(out, set);
    set_groups(out, rail_count);
    char model[96];
    if (host_is_jetson(model, sizeof model) && model[0])
        sensor_add_fact(out, "model", model);
    sensor_add_fact(out, "total", rails.has_total ? "input rail" : "sum of the rails");
    out->state = set;
    return ERR_OK;
}

/* ---- probe ---- */

/* A rail without read permission invalidates the sum; an invalid value may be temporary. */
static enum err try_rails(const struct rails *rails, const struct rail **failed)
{
    enum err first = ERR_OK;
    bool any = false;
    for (size_t i = 0; i < rails->count; i++) {
        int64_t current;
        uint64_t voltage;
        enum err err = fs_read_i64(rails->items[i].current, &current);
        if (!err)
            err = fs_read_u64(rails->items[i].voltage, &voltage);
        if (err && (!first || err == ERR_DENIED)) {
            first = err;
            *failed = &rails->items[i];
        }
        any |= !err;
    }
    return any && first != ERR_DENIED ? ERR_OK : first;
}

static void jetson_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    char model[96];
    struct sensor_finding *finding;
    if (!host_is_jetson(model, sizeof model)) {
        finding = sensor_found(out, "jetson", SENSOR_BOARD, SENSOR_ABSENT);
        if (finding)
            chars_copy(finding->reason, "not a Jetson board");
        return;
    }
    struct rails rails;
    find_rails(&rails);
    const struct rail *failed = NULL;
    enum err err = rails.count ? try_rails(&rails, &failed) : ERR_ABSENT;
    finding = sensor_found(out, "jetson", SENSOR_BOARD, sensor_status_of(err, SENSOR_UNSUPPORTED));
    if (!finding)
        return;
    chars_copy(finding->name, model[0] ? model : "NVIDIA Jetson");
    struct sensor sensor = {0};
    if (!err && !jetson_open(finding, &sensor, NULL)) {
        sensor_measures(&sensor, finding->measures, sizeof finding->measures);
        sysfs_channels_free(sensor.state);
    }
    if (!err)
        return;
    if (!rails.count)
        chars_copy(finding->reason, rails.monitors
                                        ? "its INA3221 power monitor has no labeled rail"
                                        : "no INA3221 power monitor under /sys/class/hwmon");
    else
        chars_format(finding->reason, "%.120s: %s", failed->current, err_text(err));
    if (err == ERR_DENIED)
        chars_copy(finding->fix,
                   "sudo chmod a+r /sys/class/hwmon/hwmon*/in*_input "
                   "/sys/class/hwmon/hwmon*/curr*_input (until the next boot), or run as root");
    else if (!rails.monitors)
        chars_copy(finding->fix, "sudo modprobe ina3221");
}

static enum err jetson_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    return sysfs_channels_read(sensor->state, sensor, group, out);
}

static void jetson_close(struct sensor *sensor)
{
    sysfs_channels_free(sensor->state);
}

const struct sensor_driver sensor_jetson = {
    .name = "jetson",
    .summary = "NVIDIA Jetson boards: the INA3221 monitors of their power rails",
    .probe = jetson_probe,
    .open = jetson_open,
    .read = jetson_read,
    .close = jetson_close,
};
