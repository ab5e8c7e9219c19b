/* The host's utilization, memory, temperature and clock.  Not a source of joules. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "port/fs.h"
#include "sensors/system/host_info.h"
#include "sensors/system/hwmon_chips.h"
#include "sensors/sensor.h"

enum {
    TEMPERATURES_MAX = 8,
    CLOCKS_MAX = 8, /* CPUs whose clock is read: a sample, because each read may cost an
                       interrupt on that CPU */
};

enum { CHANNEL_UTILIZATION, CHANNEL_MEMORY_USED, CHANNEL_MEMORY_TOTAL, CHANNELS_FIXED };
enum { GROUP_FAST, GROUP_SLOW };

struct host {
    struct proc_stat stat;
    int meminfo;
    int temperatures[TEMPERATURES_MAX]; /* millidegrees, one per package */
    unsigned temperature_count;
    unsigned temperature_channel;
    int clocks[CLOCKS_MAX]; /* kHz */
    unsigned clock_count;
    unsigned clock_channel;
};

/* ---- finding the files ---- */

static void add_temperature(struct host *host, const char *path)
{
    int fd;
    int64_t millidegrees;
    if (host->temperature_count == TEMPERATURES_MAX || fs_open(path, &fd))
        return;
    if (fs_pread_i64(fd, &millidegrees))
        close(fd);
    else
        host->temperatures[host->temperature_count++] = fd;
}

/* The file of a CPU temperature chip that covers the whole package. */
static void add_chip(struct host *host, const char *dir)
{
    static const char *const PACKAGE_LABELS[] = {"Package id", "Tdie", "Tctl"};
    char path[FS_PATH_MAX], label[64];
    for (size_t w = 0; w < COUNT_OF(PACKAGE_LABELS); w++)
        for (unsigned i = 1; i <= 4; i++) {
            if (!chars_format(path, "%s/temp%u_label", dir, i) ||
                fs_read_text(path, label, sizeof label) || !str_starts(label, PACKAGE_LABELS[w]))
                continue;
            chars_format(path, "%s/temp%u_input", dir, i);
            add_temperature(host, path);
            return;
        }
    if (chars_format(path, "%s/temp1_input", dir))
        add_temperature(host, path);
}

static void find_hwmon_temperatures(struct host *host)
{
    static const char *const CHIPS[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
    struct hwmon_chips chips;
    if (hwmon_chips_list(&chips))
        return;
    for (size_t i = 0; i < chips.count; i++)
        for (size_t j = 0; j < COUNT_OF(CHIPS); j++)
            if (str_equal(chips.items[i].name, CHIPS[j]))
                add_chip(host, chips.items[i].dir);
    hwmon_chips_release(&chips);
}

static void find_thermal_zones(struct host *host)
{
    struct fs_names zones;
    if (fs_list("/sys/class/thermal", &zones))
        return;
    for (size_t i = 0; i < zones.count; i++) {
        char path[FS_PATH_MAX], type[64];
        if (!chars_format(path, "/sys/class/thermal/%s/type", zones.items[i]) ||
            fs_read_text(path, type, sizeof type))
            continue;
        if (!str_equal(type, "x86_pkg_temp") && !str_starts(type, "cpu-thermal") &&
            !str_starts(type, "cpu_thermal") && !str_equal(type, "CPU-therm"))
            continue;
        if (chars_format(path, "/sys/class/thermal/%s/temp", zones.items[i]))
            add_temperature(host, path);
    }
    fs_names_release(&zones);
}

/* Takes CPUs evenly spread over all of them, so that every socket and core type is read. */
static void find_clocks(struct host *host, unsigned cpus)
{
    unsigned count = cpus < CLOCKS_MAX ? cpus : CLOCKS_MAX;
    for (unsigned i = 0; i < count; i++) {
        char path[FS_PATH_MAX];
        int fd;
        if (chars_format(path, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
                         i * cpus / count) &&
            !fs_open(path, &fd))
            host->clocks[host->clock_count++] = fd;
    }
}

/* ---- open and close ---- */

static void host_close(struct sensor *sensor)
{
    struct host *host = sensor->state;
    if (!host)
        return;
    proc_stat_close(&host->stat);
    if (host->meminfo >= 0)
        close(host->meminfo);
    for (unsigned i = 0; i < host->temperature_count; i++)
        close(host->temperatures[i]);
    for (unsigned i = 0; i < host->clock_count; i++)
        close(host->clocks[i]);
    free(host);
}

static void add_channels(struct sensor *out, struct host *host)
{
    sensor_add_channel(out, "utilisation", "host", QTY_UTILIZATION);
    sensor_add_channel(out, "memory.used", "host", QTY_MEMORY_USED);
    sensor_add_channel(out, "memory.total", "host", QTY_MEMORY_TOTAL);
    if (host->temperature_count) {
        host->temperature_channel = (unsigned)out->channel_count;
        sensor_add_channel(out, "temperature", "host", QTY_TEMPERATURE)->group = GROUP_SLOW;
    }
    if (host->clock_count) {
        host->clock_channel = (unsigned)out->channel_count;
        sensor_add_channel(out, "clock", "host", QTY_CLOCK)->group = GROUP_SLOW;
    }
    out->groups[GROUP_FAST] = (struct sensor_group){
        .period_default = 100 * NS_PER_MS,
        .period_min = 10 * NS_PER_MS,
        .slow_period = 2 * NS_PER_S,
        .slow_period_min = NS_PER_S,
    };
    out->groups[GROUP_SLOW] = (struct sensor_group){
        .period_default = NS_PER_S,
        .period_min = 100 * NS_PER_MS,
        .slow_period = 2 * NS_PER_S,
        .slow_period_min = NS_PER_S,
    };
    out->group_count = out->channel_count > CHANNELS_FIXED ? 2 : 1;
}

static void add_facts(struct sensor *out, const struct host_info *info)
{
    char os[72];
    chars_format(os, "%.47s %.20s", info->os_name, info->os_version);
    const struct {
        const char *key, *text;
    } FACTS[] = {{"os", os},
                 {"kernel", info->kernel},
                 {"machine", info->machine},
                 {"cpu", info->cpu_brand},
                 {"virtual", info->virtualized ? "yes" : "no"}};
    for (size_t i = 0; i < COUNT_OF(FACTS); i++)
        if (FACTS[i].text[0] && !str_equal(FACTS[i].text, " "))
            sensor_add_fact(out, FACTS[i].key, FACTS[i].text);
}

static enum err host_open(const struct sensor_finding *finding, struct sensor *out,
                          struct error *why)
{
    (void)finding;
    struct host *host = memory_zeroed(1, sizeof *host);
    if (!host)
        return err_set(why, ERR_NO_MEMORY, "host: out of memory");
    host->meminfo = -1;
    enum err err = proc_stat_open(&host->stat);
    if (err) {
        free(host);
        return err_set(why, err, "host: cannot read /proc/stat: %s", err_text(err));
    }
    /* Without meminfo the memory channels are missing at every read; the others still work. */
    if (fs_open("/proc/meminfo", &host->meminfo))
        host->meminfo = -1;
    struct host_info info;
    host_info_read(&info);
    find_hwmon_temperatures(host);
    if (!host->temperature_count)
        find_thermal_zones(host);
    find_clocks(host, info.cpu_count);
    add_channels(out, host);
    add_facts(out, &info);
    out->state = host;
    return ERR_OK;
}

/* ---- probe ---- */

static void host_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    struct sensor sensor = {0};
    struct error why;
    enum err err = host_open(NULL, &sensor, &why);
    struct sensor_finding *finding =
        sensor_found(out, "host", SENSOR_HOST, sensor_status_of(err, SENSOR_ABSENT));
    if (finding) {
        struct host_info host;
        host_info_read(&host);
        chars_copy(finding->name, host.host_name);
        if (err)
            chars_format(finding->reason, "/proc/stat: %s", err_text(err));
        if (err == ERR_DENIED)
            chars_copy(finding->fix, PROC_STAT_FIX);
        sensor_measures(&sensor, finding->measures, sizeof finding->measures);
    }
    host_close(&sensor);
}

/* ---- reading ---- */

static enum err kibibytes_after(const char *text, const char *key, double *bytes)
{
    const char *c = strstr(text, key);
    if (!c)
        return ERR_BAD_VALUE;
    c += strlen(key);
    while (*c == ' ')
        c++;
    if (*c < '0' || *c > '9')
        return ERR_BAD_VALUE;
    double value = 0;
    for (; *c >= '0' && *c <= '9'; c++)
        value = value * 10 + (*c - '0');
    *bytes = value * 1024;
    return *c == ' ' || *c == '\n' ? ERR_OK : ERR_BAD_VALUE;
}

static void read_memory(const struct host *host, struct observations *out)
{
    char text[512]; /* total, free and available are the first three lines */
    double total = 0, available = 0;
    ssize_t n = host->meminfo >= 0 ? pread(host->meminfo, text, sizeof text - 1, 0) : -1;
    enum err err = n < 0 ? ERR_IO : ERR_OK;
    if (!err) {
        text[n] = '\0';
        err = kibibytes_after(text, "MemTotal:", &total);
    }
    nanos t = clock_now();
    if (err) {
        observe_missing(out, CHANNEL_MEMORY_USED, t, err);
        observe_missing(out, CHANNEL_MEMORY_TOTAL, t, err);
        return;
    }
    err = kibibytes_after(text, "MemAvailable:", &available);
    if (err || available > total)
        observe_missing(out, CHANNEL_MEMORY_USED, t, ERR_BAD_VALUE);
    else
        observe_value(out, CHANNEL_MEMORY_USED, t, total - available);
    observe_value(out, CHANNEL_MEMORY_TOTAL, t, total);
}

static void read_fast(struct host *host, struct observations *out)
{
    double utilization;
    enum err err = proc_stat_utilization(&host->stat, &utilization);
    nanos t = clock_now();
    if (err)
        observe_missing(out, CHANNEL_UTILIZATION, t, err);
    else
        observe_value(out, CHANNEL_UTILIZATION, t, utilization * 100);
    read_memory(host, out);
}

/* The hottest package: the one that would throttle first. */
static void read_temperature(const struct host *host, struct observations *out)
{
    enum err err = ERR_OK;
    int64_t millidegrees, hottest = INT64_MIN;
    for (unsigned i = 0; i < host->temperature_count; i++) {
        enum err this = fs_pread_i64(host->temperatures[i], &millidegrees);
        if (this)
            err = this;
        else if (millidegrees > hottest)
            hottest = millidegrees;
    }
    if (hottest == INT64_MIN)
        observe_missing(out, host->temperature_channel, clock_now(), err);
    else
        observe_value(out, host->temperature_channel, clock_now(), (double)hottest * 1e-3);
}

static void read_clock(const struct host *host, struct observations *out)
{
    enum err err = ERR_OK;
    double sum = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < host->clock_count; i++) {
        uint64_t khz;
        enum err this = fs_pread_u64(host->clocks[i], &khz);
        if (this) { /* a CPU that went offline: the mean is of the others */
            err = this;
            continue;
        }
        sum += (double)khz;
        count++;
    }
    if (count)
        observe_value(out, host->clock_channel, clock_now(), sum / count * 1e-3);
    else
        observe_missing(out, host->clock_channel, clock_now(), err);
}

static enum err host_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    struct host *host = sensor->state;
    if (group == GROUP_FAST) {
        read_fast(host, out);
        return ERR_OK;
    }
    if (host->temperature_count)
        read_temperature(host, out);
    if (host->clock_count)
        read_clock(host, out);
    return ERR_OK;
}

const struct sensor_driver sensor_host = {
    .name = "host",
    .summary = "the host's utilization, memory, temperature and clock",
    .probe = host_probe,
    .open = host_open,
    .read = host_read,
    .close = host_close,
};
