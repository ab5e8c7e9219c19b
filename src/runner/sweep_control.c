#include "runner/sweep_control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/thread.h"
#include "rundir/setting.h"
#include "runner/gpu_control.h"
#include "sensors/registry.h"

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

/* Whether the setting is made on the GPU, not only in the command. */
static bool is_controlled(const struct sweep *sweep, const struct setting *setting)
{
    return sweep->control && setting->gpu != KNOB_COUNT;
}

/* A number of the knob's unit, or the default. */
static bool is_valid(const struct setting *setting)
{
    return setting->kind == SETTING_DEFAULT ||
           (setting->kind == SETTING_NUMBER && setting->number > 0);
}

/* "gpu-clock, mem-clock or power-limit" */
static void add_names(struct text *out)
{
    for (enum gpu_knob knob = 0; knob < KNOB_COUNT; knob++) {
        if (knob > 0)
            text_add(out, knob == KNOB_COUNT - 1 ? " or " : ", ");
        text_add(out, knob_of(knob)->name);
    }
}

enum err sweep_control_check(const struct sweep *sweep, struct error *why)
{
    size_t count = sweep->point_count * sweep->knob_count;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct setting *setting = &sweep->settings[i];
        if (!is_controlled(sweep, setting))
            continue;
        found++;
        if (!is_valid(setting))
            return err_set(why, ERR_USAGE, "--knob %s: expected %s in %s, not '%.80s'",
                           setting->knob, knob_of(setting->gpu)->what, knob_of(setting->gpu)->unit,
                           setting->text);
    }
    if (found)
        return ERR_OK;
    struct text names = {0};
    add_names(&names);
    enum err err = err_set(why, ERR_USAGE, "--control needs a --knob %s", text_get(&names));
    text_release(&names);
    return err;
}

/* ---- supported values ---- */

/* Whether the wanted clock is supported (clocks: highest first); drivers round 7.5 MHz steps. */
static enum err check_clock(const char *device, const struct setting *setting, const double *clocks,
                            size_t count, struct error *why)
{
    double wanted = setting->number;
    size_t above = 0;
    while (above < count && clocks[above] > wanted + 0.5)
        above++;
    if (above < count && fabs(clocks[above] - wanted) <= 0.5)
        return ERR_OK;
    char low[32] = "", high[32] = "";
    if (above < count)
        chars_format(low, "%g", clocks[above]);
    if (above > 0)
        chars_format(high, "%g", clocks[above - 1]);
    return err_set(why, ERR_USAGE, "--knob %s: %g MHz is not a clock of %s (nearest: %s%s%s)",
                   setting->knob, wanted, device, low, low[0] && high[0] ? ", " : "", high);
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
    const struct setting *settings = sweep_point(sweep, point);
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (is_controlled(sweep, &settings[k]) && settings[k].gpu == KNOB_MEMORY_CLOCK &&
            settings[k].kind == SETTING_NUMBER)
            return settings[k].number;
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

static enum err check_limit(const struct sensor_limits *limits, const char *device,
                            const struct setting *setting, struct error *why)
{
    double watts = setting->number;
    if (watts < limits->limit_min_w || watts > limits->limit_max_w)
        return err_set(why, ERR_USAGE, "--knob %s: %g W is outside of %g to %g W of %s",
                       setting->knob, watts, limits->limit_min_w, limits->limit_max_w, device);
    return ERR_OK;
}

/* A driver that lists no clocks refuses an invalid one when it is set. */
static enum err check_value(struct sensor *sensor, const struct sensor_limits *limits,
                            double memory_mhz, const struct setting *setting, struct error *why)
{
    double *clocks = NULL;
    size_t count;
    if (setting->kind != SETTING_NUMBER)
        return ERR_OK;
    if (setting->gpu == KNOB_POWER_LIMIT)
        return check_limit(limits, sensor->id, setting, why);
    enum err err = ERR_OK;
    if (!sensor->driver->control->clocks(sensor, setting->gpu, memory_mhz, &clocks, &count, NULL))
        err = check_clock(sensor->id, setting, clocks, count, why);
    free(clocks);
    return err;
}

static enum err check_point(struct sensor *sensor, const struct sensor_limits *limits,
                            double memory_mhz, const struct sweep *sweep, size_t point,
                            struct error *why)
{
    const struct setting *settings = sweep_point(sweep, point);
    enum err err = ERR_OK;
    /* Memory clocks first: graphics clocks are listed per memory clock. */
    for (int others = 0; others < 2; others++)
        for (size_t k = 0; !err && k < sweep->knob_count; k++)
            if (is_controlled(sweep, &settings[k]) &&
                (settings[k].gpu != KNOB_MEMORY_CLOCK) == others)
                err = check_value(sensor, limits, memory_mhz, &settings[k], why);
    return err;
}

static enum err check_supported(struct gpu_control *gpu, const struct sweep *sweep,
                                struct error *why)
{
    struct sensor *sensor = gpu_control_sensor(gpu);
    struct sensor_limits limits;
    double memory = highest_memory_clock(sensor);
    enum err err = sensor->driver->control->limits(sensor, &limits, why);
    for (size_t p = 0; !err && p < sweep->point_count; p++)
        err = check_point(sensor, &limits, memory_clock(sweep, p, memory), sweep, p, why);
    return err;
}

/* ---- begin and end ---- */

static const char *devices_of(const struct sweep *sweep)
{
    for (size_t i = 0; i + 1 < sweep->option_count; i++)
        if (str_equal(sweep->options[i], "--devices"))
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

/* The first point's that is not the default; NULL: none. */
static const struct setting *first_number(const struct sweep *sweep, size_t knob)
{
    for (size_t p = 0; p < sweep->point_count; p++)
        if (sweep_point(sweep, p)[knob].kind == SETTING_NUMBER)
            return &sweep_point(sweep, p)[knob];
    return NULL;
}

/* A driver or a container may permit resetting a knob, which gpu_control_begin tries, but not setting it. */
static enum err try_knobs(struct sweep_control *control, const struct sweep *sweep,
                          struct error *why)
{
    enum err err = ERR_OK;
    for (size_t k = 0; !err && k < sweep->knob_count; k++) {
        const struct setting *setting = first_number(sweep, k);
        if (!setting || !is_controlled(sweep, setting))
            continue;
        err = gpu_control_set(control->gpu, setting->gpu, setting->number, why);
        if (!err)
            err = gpu_control_reset(control->gpu, setting->gpu, why);
    }
    return err;
}

enum err sweep_control_begin(const struct sweep *sweep, struct sweep_control **out,
                             struct error *why)
{
    unsigned knobs = 0;
    struct sweep_control *control = *out = NULL;
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (is_controlled(sweep, &sweep->settings[k]))
            knobs |= 1U << sweep->settings[k].gpu;
    control = XNEW(control);
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

static void set_defaults(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->point_count * sweep->knob_count; i++) {
        struct setting *setting = &sweep->settings[i];
        const char *knob = setting->knob;
        if (!is_controlled(sweep, setting))
            continue;
        setting_release(setting);
        *setting = setting_parse(knob, "default");
    }
}

/* Keeps the first of equal points. */
static void drop_repeated(struct sweep *sweep)
{
    size_t kept = 0;
    size_t width = sweep->knob_count;
    for (size_t p = 0; p < sweep->point_count; p++) {
        struct setting *settings = sweep->settings + p * width;
        bool again = false;
        for (size_t q = 0; !again && q < kept; q++)
            again = settings_same(sweep_point(sweep, q), settings, width);
        for (size_t k = 0; again && k < width; k++)
            setting_release(&settings[k]);
        if (!again)
            memmove(sweep->settings + kept++ * width, settings, width * sizeof *settings);
    }
    sweep->point_count = kept;
}

void sweep_control_disable(struct sweep *sweep, const struct error *reason)
{
    set_defaults(sweep);
    drop_repeated(sweep);
    sweep->uncontrolled = xstrdup(reason->text);
}

/* ---- a point ---- */

enum err sweep_control_set(struct sweep_control *control, const struct sweep *sweep, size_t point,
                           struct error *why)
{
    enum err err = check_answers(control, why);
    for (size_t k = 0; !err && k < sweep->knob_count; k++) {
        const struct setting *setting = &sweep_point(sweep, point)[k];
        if (!is_controlled(sweep, setting))
            continue;
        err = setting->kind == SETTING_NUMBER
                  ? gpu_control_set(control->gpu, setting->gpu, setting->number, why)
                  : gpu_control_reset(control->gpu, setting->gpu, why);
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

enum attempt_flag sweep_control_unwatch(struct sweep_control *control)
{
    deadline_wake(&control->stop);
    control->is_stuck = !thread_join(control->watcher, clock_now() + WATCH_TIMEOUT);
    if (control->is_stuck)
        return ATTEMPT_GPU_LOST;
    const unsigned *seen = control->seen;
    double busy = seen[GPU_CLOCK_REACHED] + seen[GPU_CLOCK_THROTTLED] + seen[GPU_CLOCK_OFF_TARGET];
    if (control->lost)
        return ATTEMPT_GPU_LOST;
    if (seen[GPU_CLOCK_THROTTLED] > FLAG_SHARE * busy)
        return ATTEMPT_THROTTLED;
    if (seen[GPU_CLOCK_OFF_TARGET] > FLAG_SHARE * busy)
        return ATTEMPT_OFF_TARGET_CLOCK;
    return busy == 0 && seen[GPU_CLOCK_IDLE] >= SEEN_MIN ? ATTEMPT_GPU_IDLE : ATTEMPT_FLAGS;
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
    struct sensor opened = {0};
    struct sensor *sensor = control ? gpu_control_sensor(control->gpu) : &opened;
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
