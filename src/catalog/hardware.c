#include "catalog/hardware.h"

#include <string.h>

#include "core/text.h"

const char *evidence_name(enum evidence evidence)
{
    static const char *const NAMES[EVIDENCE_COUNT] = {"measured", "fitted", "published", "derived",
                                                      "assumed"};
    return NAMES[evidence];
}

const char *hardware_class_name(enum hardware_class class)
{
    static const char *const NAMES[HARDWARE_CLASS_COUNT] = {"gpu", "cpu", "tpu", "npu"};
    return NAMES[class];
}

const struct hardware_memory *hardware_main_memory(const struct hardware *hardware)
{
    return &hardware->memories[hardware->memory_count - 1];
}

/* ---- which units compute in which format ---- */

static struct hardware_way way_on(const struct hardware_figure *flops,
                                  const struct hardware_figure *joules, enum precision format,
                                  bool is_matrix)
{
    if (!is_known(flops[format].value))
        return (struct hardware_way){0};
    return (struct hardware_way){&flops[format], &joules[format], format, is_matrix};
}

/* Products run on the units for matrices where those have the format; everything else on the others. */
static struct hardware_way way_in(const struct hardware *hardware, enum precision format,
                                  bool products)
{
    struct hardware_way way = {0};
    if (products)
        way = way_on(hardware->matrix_flops, hardware->matrix_joules, format, true);
    if (!way.flops)
        way = way_on(hardware->vector_flops, hardware->vector_joules, format, false);
    return way;
}

/* Does it cost less?  Where joules are the same, or not known of both: is it faster? */
static bool is_better(const struct hardware_way *a, const struct hardware_way *b)
{
    if (!a->flops || !b->flops)
        return a->flops;
    if (a->joules->value < b->joules->value || a->joules->value > b->joules->value)
        return a->joules->value < b->joules->value;
    return a->flops->value > b->flops->value;
}

/* The best of a list that ends in PRECISION_COUNT; of equals the first. */
static struct hardware_way best_way(const struct hardware *hardware, const enum precision *formats,
                                    bool products)
{
    struct hardware_way best = {0};
    for (; *formats != PRECISION_COUNT; formats++) {
        struct hardware_way way = way_in(hardware, *formats, products);
        if (is_better(&way, &best))
            best = way;
    }
    return best;
}

struct hardware_way hardware_product_way(const struct hardware *hardware, enum precision precision)
{
    struct hardware_way own = way_in(hardware, precision, true);
    return own.flops ? own : best_way(hardware, precision_holders(precision), true);
}

struct hardware_way hardware_other_way(const struct hardware *hardware, enum precision precision)
{
    struct hardware_way way = {0};
    if (precision_is_of_weights(precision)) { /* it is done to activations, which have 16 bits */
        way = best_way(hardware, precision_holders(PRECISION_FP16), false);
    } else {
        way = way_in(hardware, precision, false);
        if (!way.flops)
            way = best_way(hardware, precision_holders(precision), false);
    }
    /* An accelerator without vector units does the rest where it does its products. */
    return way.flops ? way : hardware_product_way(hardware, precision);
}

double hardware_product_flops(const struct hardware *hardware, enum precision precision,
                              enum precision *used)
{
    struct hardware_way way = hardware_product_way(hardware, precision);
    *used = way.flops ? way.used : precision;
    return way.flops ? way.flops->value : UNKNOWN;
}

struct hardware_weakest hardware_weakest(const struct hardware *hardware, enum precision precision)
{
    struct hardware_way way = hardware_product_way(hardware, precision);
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    const struct {
        const struct hardware_figure *figure;
        const char *name;
    } USED[] = {
        {way.flops, "the peak of its products"}, {way.joules, "the joules of an operation"},
        {&memory->bytes_per_s, "the bandwidth"}, {&memory->joules_per_byte, "the joules of a byte"},
        {&hardware->idle_w, "the idle power"},   {&hardware->limit_w, "the power limit"},
    };
    struct hardware_weakest weakest = {EVIDENCE_MEASURED, USED[0].name, true};
    for (size_t i = 0; i < sizeof USED / sizeof *USED; i++) {
        const struct hardware_figure *figure = USED[i].figure;
        if (figure == &hardware->limit_w && !is_known(figure->value))
            continue;
        if (!figure || !is_known(figure->value)) /* whoever goes on without it assumes */
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

/* ---- points ---- */

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

static void run_at(struct hardware *hardware, const struct hardware_point *point)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        scale(&hardware->matrix_flops[i], point->clock_ratio, point->source);
        scale(&hardware->vector_flops[i], point->clock_ratio, point->source);
        scale(&hardware->matrix_joules[i], point->energy_ratio, point->source);
        scale(&hardware->vector_joules[i], point->energy_ratio, point->source);
    }
    for (size_t i = 0; i < hardware->memory_count; i++) /* caches run with the units */
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
            run_at(hardware, &hardware->points[i]);
            str_format(hardware->id + length, sizeof hardware->id - length, "@%s", name);
            hardware->point_count = 0; /* it has been put there: no point of a point */
            text_release(&all);
            return ERR_OK;
        }
        text_addf(&all, "%s%s", i ? ", " : "", name);
    }
    enum err err =
        hardware->point_count
            ? err_set(why, ERR_NOT_FOUND, "%s has no point '%s': it has %s", hardware->id, point,
                      text_get(&all))
            : err_set(why, ERR_NOT_FOUND, "%s has no points: leave out '@%s'", hardware->id, point);
    text_release(&all);
    return err;
}
