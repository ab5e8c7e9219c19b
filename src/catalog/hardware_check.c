/* Consistency checks of a hardware entry.  docs/estimate.md, "Hardware", lists them and explains the margins. */
#include "catalog/hardware_json.h"

/* Maximum of (joules x rate + idle) / limit.  A derived figure is near 1, because it was derived from the limit at
 * the attained rate; a measured one may exceed it, because a device at its power limit does not reach the published
 * rate (an H200: two thirds of it). */
#define MARGIN_COMPUTED 1.5
#define MARGIN_MEASURED 2.0

struct check_context {
    const struct hardware *hardware;
    struct error *why;
};

static double bits_of(enum precision precision)
{
    return precision_widths(precision).weight * 8;
}

static bool is_measured(const struct hardware_figure *figure)
{
    return figure->evidence == EVIDENCE_MEASURED || figure->evidence == EVIDENCE_FITTED;
}

/* A measured figure contradicts the limit only beyond its own uncertainty. */
static double lower_bound(const struct hardware_figure *joules)
{
    bool is_uncertain = is_measured(joules) && is_known(joules->plus_minus);
    return joules->value - (is_uncertain ? 2 * joules->plus_minus : 0);
}

/* The power of one resource at its peak. */
static enum err check_draw(const struct check_context *check, const char *what, const char *name,
                           const struct hardware_figure *rate, const struct hardware_figure *joules)
{
    double limit = check->hardware->limit_w.value, idle = check->hardware->idle_w.value;
    double margin = is_measured(joules) ? MARGIN_MEASURED : MARGIN_COMPUTED;
    double watts = rate->value * lower_bound(joules) + (is_known(idle) ? idle : 0);
    if (!is_known(watts) || !is_known(limit) || watts <= margin * limit)
        return ERR_OK;
    return err_set(check->why, ERR_BAD_VALUE,
                   "%s: %s.%s: at its peak it would draw %.3g W with idle, above %.1f x the limit "
                   "of %.3g W: energy, peak or limit is wrong",
                   check->hardware->id, what, name, watts, margin, limit);
}

/* A narrower precision is neither slower nor more expensive. */
static enum err check_order(const struct check_context *check, const char *what,
                            const struct hardware_figure *flops,
                            const struct hardware_figure *joules)
{
    for (size_t wide = 0; wide < PRECISION_COUNT; wide++)
        for (size_t narrow = wide + 1; narrow < PRECISION_COUNT; narrow++) {
            const char *names[] = {precision_name((enum precision)narrow),
                                   precision_name((enum precision)wide)};
            if (bits_of((enum precision)narrow) >= bits_of((enum precision)wide))
                continue;
            if (flops[narrow].value < flops[wide].value)
                return err_set(check->why, ERR_BAD_VALUE,
                               "%s: %s.%s.peak: is below that of %s, which is wider",
                               check->hardware->id, what, names[0], names[1]);
            if (joules[narrow].value > joules[wide].value)
                return err_set(check->why, ERR_BAD_VALUE,
                               "%s: %s.%s.energy: is above that of %s, which is wider",
                               check->hardware->id, what, names[0], names[1]);
        }
    return ERR_OK;
}

static bool can_represent(enum precision wide, enum precision narrow)
{
    const enum precision *holder = precision_holders(narrow);
    while (*holder != PRECISION_COUNT && *holder != wide)
        holder++;
    return *holder == wide;
}

/* The same for matrix products, on whichever units execute them: numbers of a narrow precision can be computed in a
 * wider one, so units of their own that are slower or more expensive would be useless.  fp16 and bf16 are
 * equivalent: either may be the better one. */
static enum err check_products(const struct check_context *check)
{
    for (enum precision narrow = 0; narrow < PRECISION_COUNT; narrow++)
        for (enum precision wide = 0; wide < PRECISION_COUNT; wide++) {
            struct hardware_path a = hardware_matmul_path(check->hardware, narrow);
            struct hardware_path b = hardware_matmul_path(check->hardware, wide);
            bool are_both = a.flops && b.flops && a.used == narrow && b.used == wide;
            if (!are_both || !can_represent(wide, narrow) || can_represent(narrow, wide))
                continue;
            bool is_slower = a.flops->value < b.flops->value;
            if (is_slower || a.joules->value > b.joules->value)
                return err_set(
                    check->why, ERR_BAD_VALUE, "%s: %s.%s.%s that of the wider %s on the %s units",
                    check->hardware->id, a.is_matrix ? "matrix" : "vector", precision_name(narrow),
                    is_slower ? "peak: is below" : "energy: is above", precision_name(wide),
                    b.is_matrix ? "matrix" : "vector");
        }
    return ERR_OK;
}

static enum err check_units(const struct check_context *check, const char *what,
                            const struct hardware_figure *flops,
                            const struct hardware_figure *joules)
{
    enum err err = check_order(check, what, flops, joules);
    for (size_t i = 0; i < PRECISION_COUNT && !err; i++)
        err = check_draw(check, what, precision_name((enum precision)i), &flops[i], &joules[i]);
    return err;
}

/* A level closer to the compute units is faster and cheaper; the last one has the largest capacity. */
static enum err check_memories(const struct check_context *check)
{
    const struct hardware *hardware = check->hardware;
    const struct hardware_memory *main = hardware_main_memory(hardware);
    enum err err = ERR_OK;
    for (size_t i = 0; i < hardware->memory_count && !err; i++) {
        const struct hardware_memory *near = &hardware->memories[i];
        err = check_draw(check, "memories", near->name, &near->bytes_per_s, &near->joules_per_byte);
        if (!err && near->capacity_bytes.value > main->capacity_bytes.value)
            err = err_set(check->why, ERR_BAD_VALUE,
                          "%s: memories.%s.capacity: is above that of %s, the last one",
                          hardware->id, near->name, main->name);
        for (size_t j = i + 1; j < hardware->memory_count && !err; j++) {
            const struct hardware_memory *far = &hardware->memories[j];
            const char *which =
                near->bytes_per_s.value < far->bytes_per_s.value           ? "bandwidth: below"
                : near->joules_per_byte.value > far->joules_per_byte.value ? "energy: above"
                                                                           : NULL;
            if (which)
                err = err_set(
                    check->why, ERR_BAD_VALUE,
                    "%s: memories.%s.%s that of %s, which is farther from the compute units",
                    hardware->id, near->name, which, far->name);
        }
    }
    return err;
}

static enum err check_points(const struct check_context *check)
{
    const struct hardware *hardware = check->hardware;
    for (size_t i = 0; i < hardware->point_count; i++) {
        const struct hardware_point *point = &hardware->points[i];
        double idle = is_known(point->idle_w) ? point->idle_w : hardware->idle_w.value;
        double limit = is_known(point->limit_w) ? point->limit_w : hardware->limit_w.value;
        bool is_default = point->clock_ratio == 1 && point->memory_ratio == 1 &&
                          point->energy_ratio == 1 && !is_known(point->idle_w) &&
                          !(limit != hardware->limit_w.value);
        if (i == 0 && !is_default)
            return err_set(
                check->why, ERR_BAD_VALUE,
                "%s: points.%s: the first must be the device itself: no other limit, idle "
                "or ratio",
                hardware->id, point->name);
        if (idle >= limit)
            return err_set(check->why, ERR_BAD_VALUE,
                           "%s: points.%s: idle of %.3g W is not below the limit of %.3g W",
                           hardware->id, point->name, idle, limit);
    }
    return ERR_OK;
}

static bool has_any(const struct hardware_figure *flops)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        if (is_known(flops[i].value))
            return true;
    return false;
}

enum err hardware_check(const struct hardware *hardware, struct error *why)
{
    struct check_context check = {hardware, why};
    if (!has_any(hardware->matrix_flops) && !has_any(hardware->vector_flops))
        return err_set(why, ERR_BAD_VALUE, "%s: has no peak, neither matrix nor vector",
                       hardware->id);
    if (hardware->idle_w.value >= hardware->limit_w.value)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: power.idle: %.3g W is not below the limit of %.3g W", hardware->id,
                       hardware->idle_w.value, hardware->limit_w.value);
    enum err err = check_units(&check, "matrix", hardware->matrix_flops, hardware->matrix_joules);
    if (!err)
        err = check_units(&check, "vector", hardware->vector_flops, hardware->vector_joules);
    if (!err)
        err = check_products(&check);
    if (!err)
        err = check_memories(&check);
    if (!err)
        err = check_points(&check);
    return err;
}
