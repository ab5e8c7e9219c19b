#include "support/nvml_fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "sensors/registry.h"

/* Far from 0 and from each other, so that confusing them is detected. */
static const nanos MONOTONIC_ZERO = 1000 * NS_PER_S;
static const nanos WALL_ZERO = 1700000000 * NS_PER_S;

static struct {
    char folder[256], path[300], settings[300];
    char text[8192];
    double now_s, wall_set_s, drivers_step_s, drivers_step_at;
    bool free_running;
    struct sensing sensing; /* the last probe */
    struct observation items[4096];
    struct observations read;
    size_t room;
} fake;

static nanos fake_monotonic(void)
{
    return nvml_fake_nanos(fake.now_s);
}

static nanos fake_wall(void)
{
    return WALL_ZERO + from_seconds(fake.now_s) + from_seconds(fake.wall_set_s);
}

static const struct clock_source CLOCK = {fake_monotonic, fake_monotonic, fake_wall};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* Replaces the file atomically: the fake never sees a partial script. */
static void write_script(void)
{
    char temporary[320];
    snprintf(temporary, sizeof temporary, "%s.new", fake.path);
    FILE *file = fopen(temporary, "w");
    must(file != NULL, temporary);
    fprintf(file, "%s\n", fake.text);
    if (!fake.free_running)
        fprintf(file, "time %.9f\nwall %lld\nwall_step %.9f %.9f\n", fake.now_s,
                (long long)(WALL_ZERO / NS_PER_S), fake.drivers_step_s, fake.drivers_step_at);
    must(fclose(file) == 0, temporary);
    must(rename(temporary, fake.path) == 0, fake.path);
}

int nvml_fake_start(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    memset(&fake, 0, sizeof fake);
    snprintf(fake.folder, sizeof fake.folder, "%s/ipw-nvml-XXXXXX", base ? base : "/tmp");
    must(mkdtemp(fake.folder) != NULL, "mkdtemp");
    snprintf(fake.path, sizeof fake.path, "%s/script", fake.folder);
    setenv("IPW_NVML", IPW_FAKES "/libfake_nvml.so", 1);
    setenv("IPW_FAKE_NVML", fake.path, 1);
    snprintf(fake.settings, sizeof fake.settings, "%s/settings", fake.folder);
    setenv("IPW_FAKE_NVML_STATE", fake.settings, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    clock_replace(&CLOCK);
    fake.now_s = 10;
    write_script();
    return 0;
}

int nvml_fake_stop(void **state)
{
    (void)state;
    sensing_release(&fake.sensing);
    remove(fake.path);
    remove(fake.settings);
    rmdir(fake.folder);
    unsetenv("IPW_NVML");
    unsetenv("IPW_FAKE_NVML");
    unsetenv("IPW_FAKE_NVML_STATE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    clock_replace(NULL);
    return 0;
}

void nvml_fake_script(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(fake.text, sizeof fake.text, format, args);
    va_end(args);
    must(length >= 0 && (size_t)length < sizeof fake.text, "script too long");
    write_script();
}

const char *nvml_fake_settings(void)
{
    static char line[200];
    FILE *file = fopen(fake.settings, "r");
    line[0] = '\0';
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

void nvml_fake_time(double s)
{
    fake.now_s = s;
    write_script();
}

void nvml_fake_set_wall(double ours_s, double drivers_s)
{
    fake.wall_set_s += ours_s;
    fake.drivers_step_s = drivers_s;
    fake.drivers_step_at = fake.now_s;
    write_script();
}

nanos nvml_fake_nanos(double s)
{
    return MONOTONIC_ZERO + from_seconds(s);
}

void nvml_fake_run_free(void)
{
    fake.free_running = true;
    clock_replace(NULL);
    write_script();
}

const struct sensor_findings *nvml_fake_probe(const char *devices)
{
    fake.sensing.devices = devices;
    sensing_probe(&fake.sensing, "nvml");
    return &fake.sensing.findings;
}

const struct sensor_finding *nvml_fake_finding(const char *id)
{
    return sensing_find(&fake.sensing, id);
}

enum err nvml_fake_open(const char *id, struct sensor *out)
{
    struct error why;
    nvml_fake_probe(NULL);
    const struct sensor_finding *finding = nvml_fake_finding(id);
    if (!finding)
        return ERR_NOT_FOUND;
    return finding->status == SENSOR_OK ? sensor_open(finding, out, &why) : ERR_ABSENT;
}

void nvml_fake_capacity(size_t observations)
{
    fake.room = observations;
}

enum err nvml_fake_read(struct sensor *sensor, const char *channel)
{
    size_t ample = sizeof fake.items / sizeof *fake.items;
    fake.read =
        (struct observations){.items = fake.items, .capacity = fake.room ? fake.room : ample};
    const struct sensor_channel *wanted = channel_named(sensor, channel);
    if (!wanted)
        return ERR_NOT_FOUND;
    return sensor->driver->read(sensor, wanted->group, &fake.read);
}

const struct observation *nvml_fake_get(const struct sensor *sensor, const char *channel, size_t i)
{
    const struct sensor_channel *wanted = channel_named(sensor, channel);
    for (size_t k = 0; k < fake.read.count; k++)
        if (&sensor->channels[fake.read.items[k].channel] == wanted && i-- == 0)
            return &fake.read.items[k];
    return NULL;
}

size_t nvml_fake_count(const struct sensor *sensor, const char *channel)
{
    size_t count = 0;
    while (nvml_fake_get(sensor, channel, count))
        count++;
    return count;
}
