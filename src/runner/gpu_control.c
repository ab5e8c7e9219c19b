/* A controlled GPU: its lock, its saved state, its watchdog, and its own open sensor.
 *
 * The order matters.  Locked clocks cannot be read back, so a card that is already constrained is refused, and
 * "unlocked" is the state to restore.  The watchdog starts before the state file is written, and the file before the
 * first change: whenever the process is killed, either nothing was changed or the watchdog finds the file. */
#include "runner/gpu_control.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/fs.h"
#include "port/proc.h"
#include "port/thread.h"
#include "sensors/registry.h"

enum { UUID_SIZE = 96, STATE_MAX = 4096 };
static const char STATE_HEADER[] = "ipw-gpu-state 1";

/* Contents of a state file: enough to restore the GPU from another process. */
struct saved {
    char uuid[UUID_SIZE];
    unsigned knobs;
    double limit_w; /* UNKNOWN unless the power limit is one of the knobs */
};

struct gpu_control {
    struct sensor sensor;
    const struct sensor_control *operations;
    struct saved saved;
    char *directory;
    int lock;
    struct watchdog watchdog;
    bool is_saved;
    bool in_use; /* under load: being throttled by its power limit is no reason to refuse */
    double set[KNOB_COUNT]; /* UNKNOWN: not set */
};

static bool has(unsigned knobs, enum gpu_knob knob)
{
    return knobs & 1U << knob;
}

/* ---- the directory of locks and states ---- */

/* Must be owned by and private to this user: in /tmp anyone could have created it first. */
static bool usable_directory(const char *path)
{
    struct stat status;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & (S_IWGRP | S_IWOTH)) && access(path, W_OK) == 0;
}

/* The path if it is such a directory, which may have to be created; else NULL, and it is freed. */
static char *if_usable(char *path)
{
    if (usable_directory(path))
        return path;
    free(path);
    return NULL;
}

static enum err find_directory(char **out, struct error *why)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    unsigned user = geteuid();
    *out = if_usable(xformat("%s/run/ipw", fs_root()));
    if (!*out && runtime && runtime[0] == '/')
        *out = if_usable(xformat("%s%s/ipw", fs_root(), runtime));
    if (!*out)
        *out = if_usable(xformat("%s/tmp/ipw-%u", fs_root(), user));
    if (*out)
        return ERR_OK;
    return err_set(why, ERR_DENIED,
                   "no directory for the saved GPU state: none of /run/ipw, $XDG_RUNTIME_DIR/ipw "
                   "and /tmp/ipw-%u can be created or is private to this user",
                   user);
}

/* ---- the lock ---- */

/* A child of a killed process, or a watchdog that has just restored, may hold the lock a moment longer. */
static enum err lock_gpu(const char *directory, const char *uuid, int *fd, struct error *why)
{
    char *path = xformat("%s/%s.lock", directory, uuid);
    enum err err = file_open_own(path, O_RDWR | O_CREAT, fd, why);
    nanos until = clock_now() + NS_PER_S;
    while (err == ERR_OK && flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (clock_now() < until) {
            thread_sleep(20 * NS_PER_MS);
            continue;
        }
        close(*fd);
        *fd = -1;
        err = err_set(why, ERR_BUSY, "another process controls %s (lock %s)", uuid, path);
    }
    free(path);
    return err;
}

/* The watchdog has inherited the lock: unlocking releases it for both. */
static void unlock_gpu(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

/* ---- the state file ---- */

static char *state_path(const char *directory, const char *uuid)
{
    return xformat("%s/%s.state", directory, uuid);
}

static enum err write_state(const struct gpu_control *control, struct error *why)
{
    const struct saved *saved = &control->saved;
    char name[UUID_SIZE + 16];
    struct text text = {0};
    text_addf(&text, "%s\nuuid %s\nknobs %u\n", STATE_HEADER, saved->uuid, saved->knobs);
    if (is_known(saved->limit_w))
        text_addf(&text, "limit_mw %lld\n", llround(saved->limit_w * 1e3));
    text_add(&text, "end\n");
    chars_format(name, "%s.state", saved->uuid);
    enum err err = output_put_within(control->directory, name, text_get(&text), text.length, why);
    text_release(&text);
    return err;
}

/* Parses one "key value" line of a state file; false for an unknown line. */
static bool parse_line(char *line, struct saved *out)
{
    uint64_t number;
    char *value = strchr(line, ' ');
    if (!value)
        return false;
    *value++ = '\0';
    if (str_equal(line, "uuid"))
        return chars_copy(out->uuid, value);
    if (parse_u64(value, &number) != ERR_OK)
        return false;
    if (str_equal(line, "knobs") && number < 1U << KNOB_COUNT)
        out->knobs = (unsigned)number;
    else if (str_equal(line, "limit_mw"))
        out->limit_w = (double)number * 1e-3;
    else
        return false;
    return true;
}

static enum err read_state(const char *path, struct saved *out, struct error *why)
{
    struct text text = {0};
    bool ended = false, fine = false;
    *out = (struct saved){.limit_w = UNKNOWN};
    enum err err = file_read(path, STATE_MAX, &text, why);
    char bytes[STATE_MAX + 1], *rest;
    if (err == ERR_OK) {
        chars_copy(bytes, text_get(&text));
        char *line = strtok_r(bytes, "\n", &rest);
        fine = line && str_equal(line, STATE_HEADER);
        while (fine && !ended && (line = strtok_r(NULL, "\n", &rest))) {
            ended = str_equal(line, "end");
            fine = ended || parse_line(line, out);
        }
        if (!fine || !ended || !out->uuid[0] ||
            (has(out->knobs, KNOB_POWER_LIMIT) && !is_known(out->limit_w)))
            err = err_set(why, ERR_BAD_VALUE,
                          "%s is not a saved GPU state: restore the GPU manually (nvidia-smi -rgc, "
                          "-rmc, -pl WATTS), then delete the file",
                          path);
    }
    text_release(&text);
    return err;
}

/* ---- the device ---- */

/* Opens the only finding that can be opened; otherwise *why is the reason. */
static enum err open_finding(const struct sensor_findings *findings, const char *device,
                             struct sensor *out, struct error *why)
{
    const struct sensor_finding *chosen = NULL;
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (finding->status != SENSOR_OK)
            return err_set(why, finding->status == SENSOR_DENIED ? ERR_DENIED : ERR_ABSENT,
                           "cannot control the GPU: %s", finding->reason);
        if (chosen)
            return err_set(why, ERR_USAGE, "there are several GPUs: select one with --devices");
        chosen = finding;
    }
    if (chosen)
        return sensor_open(chosen, out, why);
    return err_set(why, ERR_ABSENT, "no GPU%s%s", device[0] ? " " : "", device);
}

static enum err open_device(const char *device, struct sensor *out, struct error *why)
{
    enum err err = err_set(why, ERR_ABSENT, "no GPU whose clocks can be controlled");
    struct sensor_config config = {.devices = device};
    for (size_t i = 0; SENSOR_DRIVERS[i] && err == ERR_ABSENT; i++) {
        if (!SENSOR_DRIVERS[i]->control)
            continue;
        struct sensor_findings findings = {0};
        sensors_probe(&config, SENSOR_DRIVERS[i]->name, &findings);
        err = open_finding(&findings, device, out, why);
        sensor_findings_release(&findings);
    }
    return err;
}

enum err gpu_control_query(const char *device, struct sensor *out, struct error *why)
{
    *out = (struct sensor){0};
    return open_device(device, out, why);
}

/* Refuses a card that is already constrained: it would not run at the settings, and a locked range cannot be read back
 * to restore it. */
static enum err check_free(struct gpu_control *control, struct sensor_limits *limits,
                           struct error *why)
{
    const char *id = control->sensor.id;
    enum err err = control->operations->limits(&control->sensor, limits, why);
    if (err != ERR_OK)
        return err;
    if (limits->partitioned)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s is in MIG mode: its clocks and power limit are shared by all instances",
                       id);
    unsigned bits = is_known(limits->throttle) ? (unsigned)limits->throttle : 0;
    if (bits & THROTTLE_LIMIT)
        return err_set(why, ERR_BUSY,
                       "the clocks of %s are already locked (nvidia-smi -rgc and -rac reset them)",
                       id);
    if (bits & THROTTLE_POWER && !control->in_use)
        return err_set(why, ERR_BUSY,
                       "%s is throttled by its power limit before the sweep starts: it is in use, "
                       "or the limit is too low",
                       id);
    if (is_known(limits->limit_w) && is_known(limits->limit_default_w) &&
        fabs(limits->limit_w - limits->limit_default_w) > 0.5)
        return err_set(why, ERR_BUSY,
                       "the power limit of %s is %g W, not its default of %g W (nvidia-smi -pl %g "
                       "resets it)",
                       id, limits->limit_w, limits->limit_default_w, limits->limit_default_w);
    if (has(control->saved.knobs, KNOB_POWER_LIMIT) && !is_known(limits->limit_w))
        return err_set(why, ERR_UNSUPPORTED, "%s does not report its power limit", id);
    return ERR_OK;
}

/* Requests the saved state of every knob, even if one fails; returns the first failure. */
static enum err request_saved(struct sensor *sensor, const struct saved *saved, struct error *why)
{
    const struct sensor_control *control = sensor->driver->control;
    enum err first = ERR_OK;
    for (enum gpu_knob knob = 0; knob < KNOB_COUNT; knob++) {
        struct error detail = {0};
        if (!has(saved->knobs, knob))
            continue;
        enum err err = knob == KNOB_POWER_LIMIT
                           ? control->set(sensor, knob, saved->limit_w, &detail)
                           : control->reset(sensor, knob, &detail);
        if (err != ERR_OK && first == ERR_OK) {
            first = err;
            if (why)
                *why = detail;
        }
    }
    return first;
}

/* ---- begin ---- */

static enum err take_lock(struct gpu_control *control, struct error *why)
{
    enum err err = find_directory(&control->directory, why);
    if (err == ERR_OK)
        err = lock_gpu(control->directory, control->saved.uuid, &control->lock, why);
    if (err != ERR_OK)
        return err;
    char *path = state_path(control->directory, control->saved.uuid);
    if (file_exists(path))
        err = err_set(why, ERR_BUSY,
                      "%s may still have the clocks of a run that was killed: restore them first "
                      "(ipw sweep --restore; saved in %s)",
                      control->sensor.id, path);
    free(path);
    return err;
}

/* Requesting the current state changes nothing, and shows whether requests are accepted at all. */
static enum err save_and_probe(struct gpu_control *control, char *const restore_command[],
                               struct error *why)
{
    struct sensor_limits limits;
    enum err err = check_free(control, &limits, why);
    if (err != ERR_OK)
        return err;
    if (has(control->saved.knobs, KNOB_POWER_LIMIT))
        control->saved.limit_w = limits.limit_w;
    err = watchdog_start(&control->watchdog, control->lock, restore_command, why);
    if (err == ERR_OK)
        err = write_state(control, why);
    if (err != ERR_OK)
        return err;
    control->is_saved = true;
    return request_saved(&control->sensor, &control->saved, why);
}

static void remove_state(struct gpu_control *control)
{
    if (!control->is_saved)
        return;
    char *path = state_path(control->directory, control->saved.uuid);
    unlink(path);
    free(path);
    control->is_saved = false;
}

static void release(struct gpu_control *control, bool run_command)
{
    watchdog_end(&control->watchdog, run_command);
    if (control->lock >= 0)
        unlock_gpu(control->lock);
    if (control->sensor.state)
        sensor_close(&control->sensor);
    free(control->directory);
    free(control);
}

enum err gpu_control_open(const char *device, struct gpu_control **out, struct error *why)
{
    struct gpu_control *control = XNEW(control);
    *out = NULL;
    control->lock = control->watchdog.alive = -1;
    control->saved.limit_w = UNKNOWN;
    for (enum gpu_knob knob = 0; knob < KNOB_COUNT; knob++)
        control->set[knob] = UNKNOWN;
    enum err err = open_device(device, &control->sensor, why);
    if (err != ERR_OK) {
        release(control, false);
        return err;
    }
    control->operations = control->sensor.driver->control;
    *out = control;
    return ERR_OK;
}

enum err gpu_control_begin(const char *device, unsigned knobs, char *const restore_command[],
                           struct gpu_control **out, struct error *why)
{
    struct gpu_control *control;
    enum err err = gpu_control_open(device, &control, why);
    *out = NULL;
    if (err != ERR_OK)
        return err;
    control->in_use = knobs & GPU_CONTROL_IN_USE;
    control->saved.knobs = knobs & ~GPU_CONTROL_IN_USE;
    chars_copy(control->saved.uuid, sensor_fact(&control->sensor, "uuid"));
    /* It becomes a file name. */
    if (!control->saved.uuid[0] || strchr(control->saved.uuid, '/'))
        err = err_set(why, ERR_UNSUPPORTED, "%s has no UUID: it cannot be locked",
                      control->sensor.id);
    if (err == ERR_OK)
        err = take_lock(control, why);
    if (err == ERR_OK)
        err = save_and_probe(control, restore_command, why);
    if (err != ERR_OK) { /* nothing was changed */
        remove_state(control);
        release(control, false);
        return err;
    }
    *out = control;
    return ERR_OK;
}

enum err gpu_control_is_free(struct gpu_control *control, struct error *why)
{
    struct sensor_limits limits;
    return check_free(control, &limits, why);
}

/* ---- setting ---- */

struct sensor *gpu_control_sensor(struct gpu_control *control)
{
    return &control->sensor;
}

enum err gpu_control_set(struct gpu_control *control, enum gpu_knob knob, double value,
                         struct error *why)
{
    if (!has(control->saved.knobs, knob))
        return err_set(why, ERR_USAGE, "%s: that knob was not requested", control->sensor.id);
    enum err err = control->operations->set(&control->sensor, knob, value, why);
    if (err == ERR_OK)
        control->set[knob] = value;
    return err;
}

enum err gpu_control_reset(struct gpu_control *control, enum gpu_knob knob, struct error *why)
{
    struct saved one = control->saved;
    if (!has(one.knobs, knob) || !is_known(control->set[knob]))
        return ERR_OK;
    one.knobs = 1U << knob;
    enum err err = request_saved(&control->sensor, &one, why);
    if (err == ERR_OK)
        control->set[knob] = UNKNOWN;
    return err;
}

/* Supported clocks are at least 7 MHz apart. */
static bool near_target(double target, double mhz)
{
    return !is_known(target) || (is_known(mhz) && fabs(mhz - target) <= 5);
}

static void classify_clock(const struct gpu_control *control, const struct sensor_limits *limits,
                           struct gpu_clock *out)
{
    unsigned bits = is_known(limits->throttle) ? (unsigned)limits->throttle : 0;
    double limit_w = control->set[KNOB_POWER_LIMIT];
    bits &= ~(unsigned)THROTTLE_LIMIT; /* expected: we locked the clocks */
    if (is_known(limit_w))
        bits &= ~(unsigned)THROTTLE_POWER;
    *out = (struct gpu_clock){GPU_CLOCK_OFF_TARGET, limits->graphics_mhz};
    if (limits->idle)
        out->state = GPU_CLOCK_IDLE;
    else if (bits)
        out->state = GPU_CLOCK_THROTTLED;
    else if (near_target(control->set[KNOB_GRAPHICS_CLOCK], limits->graphics_mhz) &&
             near_target(control->set[KNOB_MEMORY_CLOCK], limits->memory_mhz) &&
             (!is_known(limit_w) || limits->limit_enforced_w <= limit_w + 0.5))
        out->state = GPU_CLOCK_REACHED;
}

enum err gpu_control_reached(struct gpu_control *control, nanos timeout, struct gpu_clock *out,
                             struct error *why)
{
    nanos until = clock_now() + timeout;
    for (;;) {
        struct sensor_limits limits;
        enum err err = control->operations->limits(&control->sensor, &limits, why);
        if (err != ERR_OK)
            return err;
        classify_clock(control, &limits, out);
        if (out->state == GPU_CLOCK_REACHED || clock_now() >= until)
            return ERR_OK;
        thread_sleep(50 * NS_PER_MS);
    }
}

/* ---- restoring ---- */

enum err gpu_control_end(struct gpu_control *control, struct error *why)
{
    if (!control)
        return ERR_OK;
    enum err err = request_saved(&control->sensor, &control->saved, why);
    if (err == ERR_OK)
        remove_state(control);
    release(control, err != ERR_OK);
    return err;
}

/* With the lock held. */
static enum err restore_from(const char *path, const char *uuid, struct error *why)
{
    struct saved saved;
    struct sensor sensor = {0};
    if (!file_exists(path)) /* another process has restored it meanwhile */
        return ERR_OK;
    enum err err = read_state(path, &saved, why);
    if (err == ERR_OK && !str_equal(saved.uuid, uuid))
        err = err_set(why, ERR_BAD_VALUE, "%s is the state of another GPU (%s)", path, saved.uuid);
    if (err == ERR_OK)
        err = open_device(saved.uuid, &sensor, why);
    if (err == ERR_OK) {
        err = request_saved(&sensor, &saved, why);
        sensor_close(&sensor);
    }
    if (err == ERR_OK)
        unlink(path);
    return err == ERR_BUSY ? ERR_IO : err; /* an error of the device, not of the lock */
}

/* Restores one state file; ERR_BUSY: a running process controls its GPU. */
static enum err restore_one(const char *directory, const char *uuid, struct error *why)
{
    int lock = -1;
    enum err err = lock_gpu(directory, uuid, &lock, why);
    if (err != ERR_OK)
        return err;
    char *path = state_path(directory, uuid);
    err = restore_from(path, uuid, why);
    free(path);
    unlock_gpu(lock);
    return err;
}

static void restore_listed(const char *directory, const char *name, struct gpu_restored *out,
                           enum err *first, struct error *why)
{
    char uuid[UUID_SIZE];
    struct error detail = {0};
    const char *suffix = strstr(name, ".state");
    if (!suffix || suffix[strlen(".state")] || suffix == name ||
        !chars_format(uuid, "%.*s", (int)(suffix - name), name))
        return;
    enum err err = restore_one(directory, uuid, &detail);
    if (err == ERR_OK)
        out->restored++;
    else if (err == ERR_BUSY)
        out->held++;
    else
        out->failed++;
    if (err != ERR_OK && err != ERR_BUSY && *first == ERR_OK) {
        *first = err;
        if (why)
            *why = detail;
    }
}

enum err gpu_control_restore(struct gpu_restored *out, struct error *why)
{
    char *directory;
    struct fs_names names = {0};
    *out = (struct gpu_restored){0};
    enum err err = find_directory(&directory, why);
    if (err != ERR_OK)
        return err;
    err = fs_list(directory + strlen(fs_root()), &names);
    if (err != ERR_OK)
        err_set(why, err, "cannot read %s: %s", directory, err_text(err));
    for (size_t i = 0; i < names.count; i++)
        restore_listed(directory, names.items[i], out, &err, why);
    fs_names_release(&names);
    free(directory);
    return err;
}
