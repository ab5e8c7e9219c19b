#include "runner/sweep_control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "port/thread.h"
#include "runner/gpu_control.h"
#include "sensors/registry.h"

static const char DEFAULT[] = "default";
static const struct {
    const char *name, *unit;
} KNOBS[KNOB_COUNT] = {
    [KNOB_GRAPHICS_CLOCK] = {"gpu-clock", "MHz"},
    [KNOB_MEMORY_CLOCK] = {"mem-clock", "MHz"},
    [KNOB_POWER_LIMIT] = {"power-limit", "W"},
};

static char *const RESTORE[] = {"/proc/self/exe", "sweep", "--restore", NULL};
static const nanos WATCH_PERIOD = 100 * NS_PER_MS, WATCH_TIMEOUT = 3 * NS_PER_S;

/* A point is flagged if this share of the readings under load was off target: a clock takes a moment to change. */
static const double FLAG_SHARE = 0.1;
enum { SEEN_MIN = 5 };

struct sweep_control {
    struct gpu_control *gpu;
    struct deadline stop;
    pthread_t watcher;
    unsigned seen[GPU_CLOCK_OFF_TARGET + 1];
    bool lost;
    bool is_stuck; /* the watcher thread is blocked in the driver: its data must stay allocated */
};

/* The sensor must not be used while another thread is in its driver. */
static enum err check_answers(const struct sweep_control *control, struct error *why)
{
    return control->is_stuck ? err_set(why, ERR_LOST, "the driver of %s does not respond",
                                       sweep_control_device(control))
                             : ERR_OK;
}

/* ---- the knobs ---- */

/* KNOB_COUNT: only a placeholder of the command. */
static enum sensor_knob knob_of(const struct sweep *sweep, size_t index)
{
    enum sensor_knob knob = 0;
    while (knob < KNOB_COUNT && strcmp(KNOBS[knob].name, sweep->knobs[index]) != 0)
        knob++;
    return sweep->control ? knob : KNOB_COUNT;
}

static bool is_controlled(const struct sweep *sweep, size_t knob)
{
    return knob_of(sweep, knob) != KNOB_COUNT;
}

static const char *value_at(const struct sweep *sweep, size_t point, size_t knob)
{
    return sweep->values[point * sweep->knob_count + knob];
}

/* UNKNOWN: the default. */
static double number_at(const struct sweep *sweep, size_t point, size_t knob)
{
    double number;
    return parse_double(value_at(sweep, point, knob), &number) == ERR_OK ? number : UNKNOWN;
}

enum err sweep_control_check(const struct sweep *sweep, struct error *why)
{
    size_t found = 0;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        if (!is_controlled(sweep, k))
            continue;
        found++;
        for (size_t p = 0; p < sweep->point_count; p++)
            if (strcmp(value_at(sweep, p, k), DEFAULT) != 0 && !(number_at(sweep, p, k) > 0))
                return err_set(why, ERR_USAGE, "--knob %s: '%.80s' is not a number of %s",
                               sweep->knobs[k], value_at(sweep, p, k),
                               KNOBS[knob_of(sweep, k)].unit);
    }
    return found ? ERR_OK
                 : err_set(why, ERR_USAGE,
                           "--control needs a --knob gpu-clock, mem-clock or power-limit");
}

/* ---- supported values ---- */

/* Whether the wanted clock is supported (clocks: highest first); drivers round 7.5 MHz steps. */
static enum err check_clock(const char *device, const char *name, double wanted,
                            const double *clocks, size_t count, struct error *why)
{
    size_t above = 0;
    while (above < count && clocks[above] > wanted + 0.5)
        above++;
    if (above < count && fabs(clocks[above] - wanted) <= 0.5)
        return ERR_OK;
    char low[32] = "", high[32] = "";
    if (above < count)
        str_format(low, sizeof low, "%g", clocks[above]);
    if (above > 0)
        str_format(high, sizeof high, "%g", clocks[above - 1]);
    return err_set(why, ERR_USAGE, "--knob %s: %g MHz is not a clock of %s (nearest: %s%s%s)", name,
                   wanted, device, low, low[0] && high[0] ? ", " : "", high);
}

/* 0 if none is listed. */
static double highest_memory_clock(struct sensor *sensor)
{
    double *clocks, highest = 0;
    size_t count;
    if (!sensor->driver->control->clocks(sensor, KNOB_MEMORY_CLOCK, 0, &clocks, &count, NULL))
        highest = clocks[0];
    free(clocks);
    return highest;
}

/* The memory clock of a point, for which graphics clocks are listed. */
static double memory_clock(const struct sweep *sweep, size_t point, double highest)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (knob_of(sweep, k) == KNOB_MEMORY_CLOCK && is_known(number_at(sweep, point, k)))
            return number_at(sweep, point, k);
    return highest;
}

static enum err usable_clocks(struct sensor *sensor, double min, double **out, size_t *count,
                              struct error *why)
{
    double memory = highest_memory_clock(sensor);
    enum err err =
        sensor->driver->control->clocks(sensor, KNOB_GRAPHICS_CLOCK, memory, out, count, why);
    while (!err && *count && (*out)[*count - 1] < min)
        --*count;
    if (!err && !*count)
        err = err_set(why, ERR_USAGE, "%s has no clock of at least %g MHz", sensor->id, min);
    return err;
}

enum err sweep_control_clocks(const char *devices, double min, double **out, size_t *count,
                              struct error *why)
{
    struct sensor sensor = {0};
    *out = NULL;
    enum err err = gpu_control_query(devices ? devices : "", &sensor, why);
    if (err)
        return err;
    err = usable_clocks(&sensor, min, out, count, why);
    sensor_close(&sensor);
    return err;
}

static enum err check_limit(const struct sensor_limits *limits, const char *device, double watts,
                            struct error *why)
{
    if (watts < limits->limit_min_w || watts > limits->limit_max_w)
        return err_set(why, ERR_USAGE, "--knob power-limit: %g W is outside of %g to %g W of %s",
                       watts, limits->limit_min_w, limits->limit_max_w, device);
    return ERR_OK;
}

/* A driver that lists no clocks refuses an invalid one when it is set. */
static enum err check_value(struct sensor *sensor, const struct sensor_limits *limits,
                            double memory_mhz, const struct sweep *sweep, size_t point, size_t knob,
                            struct error *why)
{
    enum sensor_knob what = knob_of(sweep, knob);
    double value = number_at(sweep, point, knob), *clocks = NULL;
    size_t count;
    if (what == KNOB_COUNT || !is_known(value))
        return ERR_OK;
    if (what == KNOB_POWER_LIMIT)
        return check_limit(limits, sensor->id, value, why);
    enum err err = sensor->driver->control->clocks(
        sensor, what, memory_clock(sweep, point, memory_mhz), &clocks, &count, NULL);
    if (!err)
        err = check_clock(sensor->id, sweep->knobs[knob], value, clocks, count, why);
    else
        err = ERR_OK;
    free(clocks);
    return err;
}

static enum err check_supported(struct gpu_control *gpu, const struct sweep *sweep,
                                struct error *why)
{
    struct sensor *sensor = gpu_control_sensor(gpu);
    struct sensor_limits limits;
    double memory = highest_memory_clock(sensor);
    enum err err = sensor->driver->control->limits(sensor, &limits, why);
    for (size_t p = 0; !err && p < sweep->point_count; p++) {
        /* Memory clocks first: graphics clocks are listed per memory clock. */
        for (size_t k = 0; !err && k < sweep->knob_count; k++)
            if (knob_of(sweep, k) == KNOB_MEMORY_CLOCK)
                err = check_value(sensor, &limits, memory, sweep, p, k, why);
        for (size_t k = 0; !err && k < sweep->knob_count; k++)
            if (knob_of(sweep, k) != KNOB_MEMORY_CLOCK)
                err = check_value(sensor, &limits, memory, sweep, p, k, why);
    }
    return err;
}

/* ---- begin and end ---- */

static const char *devices_of(const struct sweep *sweep)
{
    for (size_t i = 0; i + 1 < sweep->option_count; i++)
        if (strcmp(sweep->options[i], "--devices") == 0)
            return sweep->options[i + 1];
    return "";
}

/* Same check as in sampler/session.c: another vendor's driver may match the remaining names. */
enum err sweep_control_devices(const char *devices, struct error *why)
{
    const struct sensor_config config = {.devices = devices};
    struct sensor_findings findings = {0};
    const struct sensor_finding *unmatched = NULL;
    const struct sensor_driver *matched_by = NULL;
    enum err err = ERR_OK;
    sensors_probe(&config, NULL, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        const struct sensor_finding *finding = &findings.items[i];
        if (finding->kind != SENSOR_GPU)
            continue;
        if (finding->status != SENSOR_ABSENT && finding->status != SENSOR_UNSUPPORTED)
            matched_by = finding->driver;
        else if (finding->status == SENSOR_ABSENT && strchr(finding->id, ':'))
            unmatched = finding;
    }
    if (unmatched && (!matched_by || matched_by == unmatched->driver))
        err = err_set(why, ERR_USAGE, "--devices: %s", unmatched->reason);
    else if (!matched_by)
        err = err_set(why, ERR_USAGE, "--devices: no readable GPU matches \"%.100s\"", devices);
    sensor_findings_release(&findings);
    return err;
}

/* A driver or a container may permit resetting a knob, which gpu_control_begin tries, but not setting it. */
static enum err try_knobs(struct sweep_control *control, const struct sweep *sweep,
                          struct error *why)
{
    enum err err = ERR_OK;
    for (size_t k = 0; !err && k < sweep->knob_count; k++) {
        enum sensor_knob knob = knob_of(sweep, k);
        size_t p = 0;
        while (p < sweep->point_count && !is_known(number_at(sweep, p, k)))
            p++;
        if (knob == KNOB_COUNT || p == sweep->point_count)
            continue;
        err = gpu_control_set(control->gpu, knob, number_at(sweep, p, k), why);
        if (!err)
            err = gpu_control_reset(control->gpu, knob, why);
    }
    return err;
}

enum err sweep_control_begin(const struct sweep *sweep, struct sweep_control **out,
                             struct error *why)
{
    unsigned knobs = 0;
    struct sweep_control *control = *out = NULL;
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (is_controlled(sweep, k))
            knobs |= 1U << knob_of(sweep, k);
    if (!(control = calloc(1, sizeof *control)))
        return err_no_memory(why);
    enum err err = gpu_control_begin(devices_of(sweep), knobs, RESTORE, &control->gpu, why);
    if (!err)
        err = check_supported(control->gpu, sweep, why);
    if (!err)
        err = try_knobs(control, sweep, why);
    if (err) {
        (void)!gpu_control_end(control->gpu, NULL); /* restores the changed knobs */
        free(control);
        return err;
    }
    *out = control;
    return ERR_OK;
}

enum err sweep_control_plan(const struct sweep *sweep, struct error *why)
{
    struct gpu_control *gpu;
    enum err err = gpu_control_open(devices_of(sweep), &gpu, why);
    if (err)
        return err;
    err = gpu_control_is_free(gpu, why);
    if (!err)
        err = check_supported(gpu, sweep, why);
    (void)!gpu_control_end(gpu, NULL); /* nothing to restore */
    return err;
}

const char *sweep_control_device(const struct sweep_control *control)
{
    return gpu_control_sensor(control->gpu)->id;
}

enum err sweep_control_end(struct sweep_control *control, struct error *why)
{
    enum err err = control ? check_answers(control, why) : ERR_OK;
    if (err) /* the watchdog restores it when this process exits */
        return err;
    if (control)
        err = gpu_control_end(control->gpu, why);
    free(control);
    return err;
}

/* ---- without control ---- */

bool sweep_control_is_refused(enum err err)
{
    return err == ERR_DENIED || err == ERR_UNSUPPORTED || err == ERR_ABSENT;
}

static enum err set_defaults(struct sweep *sweep)
{
    for (size_t p = 0; p < sweep->point_count; p++)
        for (size_t k = 0; k < sweep->knob_count; k++) {
            char **value = &sweep->values[p * sweep->knob_count + k];
            if (!is_controlled(sweep, k))
                continue;
            char *copy = strdup(DEFAULT);
            if (!copy)
                return ERR_NO_MEMORY;
            free(*value);
            *value = copy;
        }
    return ERR_OK;
}

/* Keeps the first of equal points. */
static void drop_repeated(struct sweep *sweep)
{
    size_t kept = 0, width = sweep->knob_count;
    for (size_t p = 0; p < sweep->point_count; p++) {
        char **values = sweep->values + p * width;
        bool again = false;
        for (size_t q = 0; !again && q < kept; q++)
            again = sweep_same_point(sweep, q, p);
        for (size_t k = 0; again && k < width; k++)
            free(values[k]);
        if (!again)
            memmove(sweep->values + kept++ * width, values, width * sizeof *values);
    }
    sweep->point_count = kept;
}

enum err sweep_control_disable(struct sweep *sweep, const struct error *reason)
{
    enum err err = set_defaults(sweep);
    if (err)
        return err;
    drop_repeated(sweep);
    sweep->uncontrolled = strdup(reason->text);
    return sweep->uncontrolled ? ERR_OK : ERR_NO_MEMORY;
}

/* ---- a point ---- */

enum err sweep_control_set(struct sweep_control *control, const struct sweep *sweep, size_t point,
                           struct error *why)
{
    enum err err = check_answers(control, why);
    for (size_t k = 0; !err && k < sweep->knob_count; k++) {
        enum sensor_knob knob = knob_of(sweep, k);
        double value = number_at(sweep, point, k);
        if (knob == KNOB_COUNT)
            continue;
        err = is_known(value) ? gpu_control_set(control->gpu, knob, value, why)
                              : gpu_control_reset(control->gpu, knob, why);
    }
    return err;
}

static void *watch(void *argument)
{
    struct sweep_control *control = argument;
    struct gpu_clock clock;
    struct error why;
    while (!deadline_wait(&control->stop, clock_now() + WATCH_PERIOD)) {
        enum err err = gpu_control_reached(control->gpu, 0, &clock, &why);
        control->lost = control->lost || err == ERR_LOST;
        if (!err)
            control->seen[clock.state]++;
    }
    return NULL;
}

enum err sweep_control_watch(struct sweep_control *control, struct error *why)
{
    memset(control->seen, 0, sizeof control->seen);
    control->lost = false;
    deadline_init(&control->stop);
    return err_explain(why, thread_start(&control->watcher, watch, control));
}

const char *sweep_control_unwatch(struct sweep_control *control)
{
    deadline_wake(&control->stop);
    control->is_stuck = !thread_join(control->watcher, clock_now() + WATCH_TIMEOUT);
    if (control->is_stuck)
        return "gpu_lost";
    const unsigned *seen = control->seen;
    double busy = seen[GPU_CLOCK_REACHED] + seen[GPU_CLOCK_THROTTLED] + seen[GPU_CLOCK_OFF_TARGET];
    if (control->lost)
        return "gpu_lost";
    if (seen[GPU_CLOCK_THROTTLED] > FLAG_SHARE * busy)
        return "throttled";
    if (seen[GPU_CLOCK_OFF_TARGET] > FLAG_SHARE * busy)
        return "off_target_clock";
    return busy == 0 && seen[GPU_CLOCK_IDLE] >= SEEN_MIN ? "gpu_idle" : NULL;
}

enum err sweep_control_restore(unsigned *restored, unsigned *held, struct error *why)
{
    struct gpu_restored done;
    enum err err = gpu_control_restore(&done, why);
    *restored = done.restored;
    *held = done.held;
    return err;
}

enum err sweep_control_temperature(struct sweep_control *control, const struct sweep *sweep,
                                   double *celsius, struct error *why)
{
    struct sensor opened = {0}, *sensor = control ? gpu_control_sensor(control->gpu) : &opened;
    struct sensor_limits limits;
    *celsius = UNKNOWN;
    enum err err =
        control ? check_answers(control, why) : gpu_control_query(devices_of(sweep), &opened, why);
    if (err)
        return err;
    err = sensor->driver->control->limits(sensor, &limits, why);
    if (!err)
        *celsius = limits.temperature_c;
    if (!control)
        sensor_close(&opened);
    return err;
}
