/* The hardware file of a calibration: a copy of the base entry in which figures are replaced by fitted ones (joules,
 * constant power) and attained ones (rates, launches).  Figures of the base that are related to a replaced one, the
 * other precisions of the same units and the nearer memories, are scaled in proportion. */
#include "estimate/calibrate.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "catalog/hardware_json.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"

enum {
    SOURCE_MAX = 320,
    /* Fitted or scaled joules of both kinds of units and of the memories, the constant power, the rates. */
    SOURCES_MAX = 2 * PRECISION_COUNT + CALIBRATE_CLASSES_MAX + HARDWARE_MEMORIES_MAX + 3,
};

struct build {
    const struct calibration *c;
    const struct calibrate_origin *origin;
    const struct hardware *base;
    struct hardware made;
    char sources[SOURCES_MAX][SOURCE_MAX]; /* storage of the sources of `made` */
    size_t source_count;
    const char *fitted, *attained; /* two of them */
};

static char *new_source(struct build *build)
{
    return build->sources[build->source_count++];
}

/* ---- figures ---- */

static struct hardware_figure attained(const struct build *build, double value)
{
    return (struct hardware_figure){value, EVIDENCE_MEASURED, UNKNOWN, build->attained, NULL};
}

/* `times`: factor to the unit in which the source states the interval. */
static struct hardware_figure fitted(struct build *build, const struct calibrate_figure *figure,
                                     double times)
{
    char *source = new_source(build);
    if (figure->is_given) {
        str_format(source, SOURCE_MAX, "given, not fitted: %.160s", build->origin->given_source);
        return (struct hardware_figure){figure->value, EVIDENCE_ASSUMED, UNKNOWN, source, NULL};
    }
    str_format(source, SOURCE_MAX, "%s; 95 %%: %.3g to %.3g", build->fitted, times * figure->low,
               times * figure->high);
    return (struct hardware_figure){
        .value = figure->value,
        /* Joules estimated by a model are never called fitted, unlike those of a meter. */
        .evidence = build->c->is_estimated ? EVIDENCE_ASSUMED : EVIDENCE_FITTED,
        .plus_minus = figure->error > 0 ? figure->error : UNKNOWN,
        .source = source,
    };
}

/* Scaled in proportion to a fitted one. */
static struct hardware_figure scaled(struct build *build, const struct hardware_figure *figure,
                                     double ratio)
{
    char *source = new_source(build);
    str_format(source, SOURCE_MAX, "that of %s x %.3g, scaled like the fitted ones: %.200s",
               build->base->id, ratio, figure->source);
    return (struct hardware_figure){
        .value = ratio * figure->value,
        .evidence = EVIDENCE_DERIVED,
        .plus_minus = figure->plus_minus > 0 ? ratio * figure->plus_minus : UNKNOWN,
        .source = source,
    };
}

/* ---- compute units ---- */

/* The units that a class ran on: those that it names, else those of the base for the precision. */
static bool is_on_matrix(const struct build *build, const struct calibrate_class *class)
{
    if (class->unit != CALIBRATE_ANY)
        return class->unit == CALIBRATE_MATRIX;
    return build->base && is_known(build->base->matrix_flops[class->precision].value);
}

static const struct calibrate_class *find_class(const struct build *build, bool on_matrix,
                                                enum precision precision)
{
    for (size_t i = 0; i < build->c->class_count; i++)
        if (is_on_matrix(build, &build->c->classes[i]) == on_matrix &&
            build->c->classes[i].precision == precision)
            return &build->c->classes[i];
    return NULL;
}

/* Ratio of fitted joules to those of the base: the geometric mean over the precisions of these units that have both; 1
 * if none has. */
static double fitted_ratio(const struct build *build, bool on_matrix,
                           const struct hardware_figure *joules)
{
    double logs = 0;
    size_t count = 0;
    for (size_t p = 0; p < PRECISION_COUNT; p++) {
        const struct calibrate_class *class = find_class(build, on_matrix, (enum precision)p);
        if (class && joules[p].value > 0 && class->joules_per_flop.value > 0) {
            logs += log(class->joules_per_flop.value / joules[p].value);
            count++;
        }
    }
    return count ? exp(logs / (double)count) : 1;
}

/* The base's peak for a class, if it can be kept: published or better, and not below the attained rate (some are at
 * base clocks).  UNKNOWN: the attained rate replaces it. */
static double kept_peak(const struct build *build, const struct calibrate_class *class)
{
    if (!build->base)
        return UNKNOWN;
    const struct hardware_figure *peak =
        is_on_matrix(build, class) ? build->base->matrix_flops : build->base->vector_flops;
    peak += class->precision;
    return peak->evidence <= EVIDENCE_PUBLISHED && peak->value >= class->flops_per_s ? peak->value
                                                                                     : UNKNOWN;
}

/* The largest share of a kept peak that a class attained; 1 if none is kept. */
static double compute_share(const struct build *build)
{
    double share = 0;
    for (size_t i = 0; i < build->c->class_count; i++) {
        double peak = kept_peak(build, &build->c->classes[i]);
        if (is_known(peak))
            share = fmax(share, build->c->classes[i].flops_per_s / peak);
    }
    return share > 0 ? share : 1;
}

static void replace_units(struct build *build, bool on_matrix, struct hardware_figure *flops,
                          struct hardware_figure *joules)
{
    double ratio = fitted_ratio(build, on_matrix, joules);
    for (size_t p = 0; p < PRECISION_COUNT; p++) {
        const struct calibrate_class *class = find_class(build, on_matrix, (enum precision)p);
        if (class) {
            if (!is_known(kept_peak(build, class)))
                flops[p] = attained(build, class->flops_per_s / compute_share(build));
            if (!build->c->has_no_energy)
                joules[p] = fitted(build, &class->joules_per_flop, 1e12);
        } else if (ratio != 1 && is_known(joules[p].value)) {
            joules[p] = scaled(build, &joules[p], ratio);
        }
    }
}

/* ---- memories and power ---- */

static bool is_cpu(const struct build *build)
{
    return build->made.class == HARDWARE_CPU;
}

/* Measured caches replace those that the base states for the whole processor. */
static void replace_caches(struct build *build)
{
    static const char *const NAMES[CALIBRATE_CACHES_MAX] = {"L2", "L3", "L4"};
    const struct hardware_figure NONE = {.value = UNKNOWN, .plus_minus = UNKNOWN};
    struct hardware *made = &build->made;
    struct hardware_memory main = made->memories[made->memory_count - 1];
    if (!build->c->cache_count || !is_cpu(build))
        return;
    made->memory_count = 0;
    for (size_t i = 0; i < build->c->cache_count; i++) {
        const struct calibrate_cache *cache = &build->c->caches[i];
        if (cache->bytes_per_s > build->c->bytes_per_s)
            made->memories[made->memory_count++] = (struct hardware_memory){
                NAMES[i], attained(build, cache->bytes_per_s), attained(build, cache->held), NONE};
    }
    made->memories[made->memory_count++] = main;
}

static void replace_memories(struct build *build)
{
    struct hardware *made = &build->made;
    struct hardware_memory *main = &made->memories[made->memory_count - 1];
    double before = main->joules_per_byte.value, now = build->c->joules_per_byte.value;
    double ratio = before > 0 ? now / before : 1;
    for (size_t i = 0; !build->c->has_no_energy && i + 1 < made->memory_count; i++) {
        struct hardware_figure *joules = &made->memories[i].joules_per_byte;
        if (is_known(joules->value) && ratio < 1)
            *joules = scaled(build, joules, ratio);
    }
    if (!(main->bytes_per_s.value >= build->c->bytes_per_s))
        main->bytes_per_s = attained(build, build->c->bytes_per_s);
    if (!build->c->has_no_energy)
        main->joules_per_byte = fitted(build, &build->c->joules_per_byte, 1e12);
    replace_caches(build);
}

static void replace_rest(struct build *build)
{
    double memory_share = 1;
    if (build->base)
        memory_share =
            fmin(build->c->bytes_per_s / hardware_main_memory(build->base)->bytes_per_s.value, 1);
    if (!build->c->has_no_energy)
        build->made.idle_w = fitted(build, &build->c->constant_w, 1);
    build->made.timing_count = build->origin->timing_count;
    for (size_t i = 0; i < build->made.timing_count; i++)
        build->made.timings[i] = build->origin->timings[i];
    if (is_known(build->c->launch_s))
        build->made.launch_s = attained(build, build->c->launch_s);
    if (is_known(build->c->host_launch_s))
        build->made.host_launch_s = attained(build, build->c->host_launch_s);
    build->made.compute_share = attained(build, compute_share(build));
    build->made.memory_share = attained(build, memory_share);
}

/* ---- identity ---- */

/* "NVIDIA H200" becomes "nvidia-h200-calibrated". */
static void make_id(const char *name, char *to, size_t size)
{
    size_t length = 0;
    for (; *name && length + sizeof "-calibrated" < size; name++) {
        char letter = (char)tolower((unsigned char)*name);
        if (islower((unsigned char)letter) || isdigit((unsigned char)letter))
            to[length++] = letter;
        else if (length && to[length - 1] != '-')
            to[length++] = '-';
    }
    while (length && to[length - 1] == '-')
        length--;
    (void)str_copy(to + length, size - length, "-calibrated");
}

static void replace_identity(struct build *build)
{
    const struct hardware *base = build->base;
    struct hardware *made = &build->made;
    const char *machine = str_or_null(build->origin->hardware);
    const char *id = machine ? machine : "this-machine";
    const char *name = machine ? machine : "this machine";
    make_id(base ? base->id : id, made->id, sizeof made->id);
    chars_format(made->name, "%.80s, calibrated", base ? base->name : name);
    made->aliases = made->matches = (struct hardware_names){0}; /* those of the base */
    made->processor = (struct hardware_processor){0};
    made->note = "idle is the constant term of the fit: power under load, excluding the work";
    if (build->c->has_no_energy)
        made->note = "times were measured; energy was not: no meter";
    else if (build->c->is_estimated)
        made->note = "fitted to estimated energy, not to measured energy";
    made->is_calibrated = !build->c->is_estimated && !build->c->has_no_energy;
}

/* A device with only the fitted figures. */
static struct hardware empty_hardware(const struct calibration *c)
{
    const struct hardware_figure NONE = {.value = UNKNOWN, .plus_minus = UNKNOWN};
    struct hardware made = {
        .vendor = "unknown",
        .class = HARDWARE_CPU,
        .memories = {{"memory", NONE, NONE, NONE}},
        .memory_count = 1,
        .limit_w = NONE,
        .idle_w = NONE,
        .launch_s = NONE,
        .units = NONE,
        .link_bytes_per_s = NONE,
        .link_latency_s = NONE,
        .link_peers = NONE,
        .link_count = NONE,
        .kernels = NONE,
        .host_launch_s = NONE,
    };
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        made.matrix_flops[i] = made.vector_flops[i] = made.matrix_joules[i] =
            made.vector_joules[i] = NONE;
    for (size_t i = 0; i < c->class_count; i++)
        if (c->classes[i].unit == CALIBRATE_MATRIX)
            made.class = HARDWARE_GPU;
    return made;
}

static void set_sources(struct build *build)
{
    const struct calibration *c = build->c;
    char *fit = new_source(build), *rate = new_source(build);
    if (c->has_no_energy)
        str_copy(fit, SOURCE_MAX, "not fitted");
    else
        str_format(fit, SOURCE_MAX,
                   "least squares over %zu rows of %.120s%s, R2 %.2f, leave-one-out error of power "
                   "%.1f %%",
                   c->point_count, build->origin->data,
                   c->is_estimated ? ", with estimated energy" : "", c->r2, 100 * c->mape_held_out);
    str_format(rate, SOURCE_MAX, "highest value attained by a row of %.200s", build->origin->data);
    build->fitted = fit;
    build->attained = rate;
}

enum err calibrate_hardware(const struct calibration *calibration,
                            const struct calibrate_origin *origin, struct text *out,
                            struct error *why)
{
    struct build build = {.c = calibration, .origin = origin, .base = origin->base};
    struct hardware check = {0};
    struct json json;
    build.made = build.base ? *build.base : empty_hardware(calibration);
    set_sources(&build);
    replace_units(&build, true, build.made.matrix_flops, build.made.matrix_joules);
    replace_units(&build, false, build.made.vector_flops, build.made.vector_joules);
    replace_memories(&build);
    replace_rest(&build);
    replace_identity(&build);
    json_init(&json, out, true);
    hardware_write(&build.made, &json);
    text_add(out, "\n");
    /* The output must be readable by --hardware-file. */
    enum err err = hardware_parse("the hardware file", text_get(out), out->length, &check, why);
    if (!err)
        err = hardware_check(&check, why);
    hardware_release(&check);
    return err;
}
