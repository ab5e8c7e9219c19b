/* Devices and their capabilities: which units of a device execute an operation of a given precision, the evidence for
 * its figures, and its operating points.  catalog/hardware_find.c has the catalog, catalog/hardware_json.c reads files. */
#include "catalog/hardware.h"

#include <string.h>

#include "core/text.h"

/* ---- names ---- */

const char *evidence_name(enum evidence evidence)
{
    static const char *const NAMES[EVIDENCE_COUNT] = {"measured", "fitted", "published", "derived",
                                                      "assumed"};
    return NAMES[evidence];
}

const char *evidence_at(int value)
{
    return evidence_name((enum evidence)value);
}

const char *hardware_class_name(enum hardware_class class)
{
    static const char *const NAMES[HARDWARE_CLASS_COUNT] = {"gpu", "cpu", "tpu", "npu"};
    return NAMES[class];
}

const char *hardware_listed(const struct hardware_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_equal(names->items[i], name))
            return names->items[i];
    return NULL;
}

const struct hardware_memory *hardware_main_memory(const struct hardware *hardware)
{
    return &hardware->memories[hardware->memory_count - 1];
}

const char *kernel_class_name(enum kernel_class class)
{
    static const char *const NAMES[KERNEL_COUNT] = {
#define KERNEL(constant, name) [KERNEL_##constant] = name,
#include "catalog/kernels.def"
#undef KERNEL
    };
    return NAMES[class];
}

/* ---- selecting compute units ---- */

static struct hardware_path path_on(const struct hardware_figure *flops,
                                    const struct hardware_figure *joules, enum precision precision,
                                    bool is_matrix)
{
    if (!is_known(flops[precision].value))
        return (struct hardware_path){0};
    return (struct hardware_path){&flops[precision], &joules[precision], precision, is_matrix};
}

/* Matrix products run on the matrix units where those support the precision; everything else on the vector units. */
static struct hardware_path path_in(const struct hardware *hardware, enum precision precision,
                                    bool is_matmul)
{
    struct hardware_path path = {0};
    if (is_matmul)
        path = path_on(hardware->matrix_flops, hardware->matrix_joules, precision, true);
    if (!path.flops)
        path = path_on(hardware->vector_flops, hardware->vector_joules, precision, false);
    return path;
}

/* Whether a uses less energy; if the joules are equal or unknown, whether it is faster. */
static bool is_better(const struct hardware_path *a, const struct hardware_path *b)
{
    if (!a->flops || !b->flops)
        return a->flops;
    if (a->joules->value < b->joules->value || a->joules->value > b->joules->value)
        return a->joules->value < b->joules->value;
    return a->flops->value > b->flops->value;
}

/* The best of a list that ends in PRECISION_COUNT; the first of equals. */
static struct hardware_path best_path(const struct hardware *hardware,
                                      const enum precision *candidates, bool is_matmul)
{
    struct hardware_path best = {0};
    for (; *candidates != PRECISION_COUNT; candidates++) {
        struct hardware_path path = path_in(hardware, *candidates, is_matmul);
        if (is_better(&path, &best))
            best = path;
    }
    return best;
}

struct hardware_path hardware_matmul_path(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path own = path_in(hardware, precision, true);
    return own.flops ? own : best_path(hardware, precision_holders(precision), true);
}

struct hardware_path hardware_elementwise_path(const struct hardware *hardware,
                                               enum precision precision)
{
    struct hardware_path path = {0};
    if (precision_is_weight_only(precision)) { /* applied to activations, which have 16 bits */
        path = best_path(hardware, precision_holders(PRECISION_FP16), false);
    } else {
        path = path_in(hardware, precision, false);
        if (!path.flops)
            path = best_path(hardware, precision_holders(precision), false);
    }
    /* An accelerator without vector units uses its matrix units for other operations. */
    return path.flops ? path : hardware_matmul_path(hardware, precision);
}

double hardware_matmul_flops(const struct hardware *hardware, enum precision precision,
                             enum precision *used)
{
    struct hardware_path path = hardware_matmul_path(hardware, precision);
    *used = path.flops ? path.used : precision;
    return path.flops ? path.flops->value : UNKNOWN;
}

struct hardware_weakest hardware_weakest(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path path = hardware_matmul_path(hardware, precision);
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    const struct {
        const struct hardware_figure *figure;
        const char *name;
    } USED[] = {
        {path.flops, "the peak of matrix products"},
        {path.joules, "the energy per operation"},
        {&memory->bytes_per_s, "the bandwidth"},
        {&memory->joules_per_byte, "the energy per byte"},
        {&hardware->idle_w, "the idle power"},
        {&hardware->limit_w, "the power limit"},
    };
    struct hardware_weakest weakest = {EVIDENCE_MEASURED, USED[0].name, true};
    for (size_t i = 0; i < COUNT_OF(USED); i++) {
        const struct hardware_figure *figure = USED[i].figure;
        if (figure == &hardware->limit_w && !is_known(figure->value))
            continue;
        if (!figure || !is_known(figure->value)) /* estimates assume a missing figure */
            return (struct hardware_weakest){EVIDENCE_ASSUMED, USED[i].name, false};
        if (figure->evidence > weakest.evidence)
            weakest = (struct hardware_weakest){figure->evidence, USED[i].name, true};
    }
    return weakest;
}

enum evidence hardware_evidence(const struct hardware *hardware, enum precision precision)
{
    return hardware_weakest(hardware, precision).evidence;
}

/* ---- operating points ---- */

static void scale(struct hardware_figure *figure, double ratio, const char *source)
{
    if (!is_known(figure->value) || ratio == 1)
        return;
    figure->value *= ratio;
    figure->plus_minus *= ratio;
    figure->source = source;
    if (figure->evidence < EVIDENCE_DERIVED)
        figure->evidence = EVIDENCE_DERIVED;
}

static void replace(struct hardware_figure *figure, double value, const char *source)
{
    if (!is_known(value) || value == figure->value)
        return;
    figure->value = value;
    figure->plus_minus = UNKNOWN;
    figure->source = source;
}

static void apply_point(struct hardware *hardware, const struct hardware_point *point)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        scale(&hardware->matrix_flops[i], point->clock_ratio, point->source);
        scale(&hardware->vector_flops[i], point->clock_ratio, point->source);
        scale(&hardware->matrix_joules[i], point->energy_ratio, point->source);
        scale(&hardware->vector_joules[i], point->energy_ratio, point->source);
    }
    for (size_t i = 0; i < hardware->memory_count; i++) /* caches share the clock of the units */
        scale(&hardware->memories[i].bytes_per_s,
              i + 1 == hardware->memory_count ? point->memory_ratio : point->clock_ratio,
              point->source);
    replace(&hardware->limit_w, point->limit_w, point->source);
    replace(&hardware->idle_w, point->idle_w, point->source);
}

enum err hardware_at_point(struct hardware *hardware, const char *point, struct error *why)
{
    struct text all = {0};
    for (size_t i = 0; i < hardware->point_count; i++) {
        const char *name = hardware->points[i].name;
        if (str_equal_nocase(name, point)) {
            size_t length = strlen(hardware->id);
            apply_point(hardware, &hardware->points[i]);
            str_format(hardware->id + length, sizeof hardware->id - length, "@%s", name);
            hardware->point_count = 0; /* already applied */
            text_release(&all);
            return ERR_OK;
        }
        text_addf(&all, "%s%s", i ? ", " : "", name);
    }
    enum err err = hardware->point_count
                       ? err_set(why, ERR_NOT_FOUND, "%s has no operating point '%s': it has %s",
                                 hardware->id, point, text_get(&all))
                       : err_set(why, ERR_NOT_FOUND, "%s has no operating points: omit '@%s'",
                                 hardware->id, point);
    text_release(&all);
    return err;
}

/* ---- timed operations ---- */

const struct hardware_timings *hardware_timings(const struct hardware *hardware,
                                                const char *runtime)
{
    for (size_t i = 0; i < hardware->timing_count; i++)
        if (str_equal(hardware->timings[i].runtime, runtime))
            return &hardware->timings[i];
    return NULL;
}
