/* The hardware file of a calibration: the base entry as it stands, and over it what was fitted (joules,
 * constant power) and attained (rates, launches).  Figures of the base that belong to a replaced one, the
 * other formats of the same units and the nearer memories, keep their proportion to it. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate.h"
#include "catalog/hardware.h"
#include "port/json_read.h"
#include "report/text/calibrate_report.h"

enum { SOURCE_MAX = 320 };

struct writing {
    const struct calibrate_report *report;
    const struct calibration *c;
    const struct hardware *base;
    struct json json;
    char fitted[SOURCE_MAX], attained[SOURCE_MAX];
};

/* ---- figures ---- */

static void write_figure(struct writing *w, const char *key, const char *unit, double value,
                         double plus_minus, enum evidence evidence, const char *source)
{
    json_object(&w->json, key);
    json_number(&w->json, "value", value);
    if (unit)
        json_string(&w->json, "unit", unit);
    json_string(&w->json, "evidence", evidence_name(evidence));
    /* Null also covers that of the base, which is of another value. */
    json_number(&w->json, "plus_minus", plus_minus > 0 ? plus_minus : UNKNOWN);
    json_string(&w->json, "source", source);
    json_object_end(&w->json);
}

/* Joules of a model's are never said to be fitted to a meter's. */
static enum evidence fitted_evidence(const struct writing *w)
{
    return w->c->is_estimated ? EVIDENCE_ASSUMED : EVIDENCE_FITTED;
}

static void write_fitted(struct writing *w, const char *key, const char *unit, double times,
                         const struct calibrate_figure *figure)
{
    char source[SOURCE_MAX];
    if (figure->is_given) {
        str_format(source, sizeof source, "given, not fitted: %.160s", w->report->given_source);
        write_figure(w, key, unit, times * figure->value, UNKNOWN, EVIDENCE_ASSUMED, source);
        return;
    }
    str_format(source, sizeof source, "%s; 95 %%: %.3g to %.3g", w->fitted, times * figure->low,
               times * figure->high);
    write_figure(w, key, unit, times * figure->value, times * figure->error, fitted_evidence(w),
                 source);
}

static void write_scaled(struct writing *w, const char *key, const char *unit, double times,
                         const struct hardware_figure *figure, double ratio)
{
    char source[SOURCE_MAX];
    str_format(source, sizeof source, "that of %s x %.3g, as what was fitted: %.200s", w->base->id,
               ratio, figure->source);
    write_figure(w, key, unit, times * ratio * figure->value, times * ratio * figure->plus_minus,
                 EVIDENCE_DERIVED, source);
}

/* ---- formats ---- */

/* Which units a class ran on: its own word, else those that the base has for the format. */
static bool is_on_matrix(const struct writing *w, const struct calibrate_class *class)
{
    if (class->unit != CALIBRATE_ANY)
        return class->unit == CALIBRATE_MATRIX;
    return w->base && is_known(w->base->matrix_flops[class->precision].value);
}

static const struct calibrate_class *find_class(const struct writing *w, bool on_matrix,
                                                enum precision precision)
{
    for (size_t i = 0; i < w->c->class_count; i++)
        if (is_on_matrix(w, &w->c->classes[i]) == on_matrix &&
            w->c->classes[i].precision == precision)
            return &w->c->classes[i];
    return NULL;
}

/* How fitted joules compare with the base's: the geometric mean over the formats of these units that have
 * both; 1 where none has. */
static double base_ratio(const struct writing *w, bool on_matrix,
                         const struct hardware_figure *joules)
{
    double logs = 0;
    size_t count = 0;
    for (size_t p = 0; p < PRECISION_COUNT; p++) {
        const struct calibrate_class *class = find_class(w, on_matrix, (enum precision)p);
        if (class && joules[p].value > 0 && class->joules_per_flop.value > 0) {
            logs += log(class->joules_per_flop.value / joules[p].value);
            count++;
        }
    }
    return count ? exp(logs / (double)count) : 1;
}

/* The base's peak of a class, as far as it can stand: published or better, and not below what was attained
 * (some are of base clocks).  UNKNOWN: what was attained takes its place. */
static double standing_peak(const struct writing *w, const struct calibrate_class *class)
{
    if (!w->base)
        return UNKNOWN;
    const struct hardware_figure *peak =
        is_on_matrix(w, class) ? w->base->matrix_flops : w->base->vector_flops;
    peak += class->precision;
    return peak->evidence <= EVIDENCE_PUBLISHED && peak->value >= class->flops_per_s ? peak->value
                                                                                     : UNKNOWN;
}

/* The largest share of a standing peak that a class attained; 1 where none stands. */
static double compute_share(const struct writing *w)
{
    double share = 0;
    for (size_t i = 0; i < w->c->class_count; i++) {
        double peak = standing_peak(w, &w->c->classes[i]);
        if (is_known(peak))
            share = fmax(share, w->c->classes[i].flops_per_s / peak);
    }
    return share > 0 ? share : 1;
}

static void write_class(struct writing *w, const struct calibrate_class *class)
{
    json_object(&w->json, precision_name(class->precision));
    if (!is_known(standing_peak(w, class)))
        write_figure(w, "peak", "tflops", class->flops_per_s / compute_share(w) / 1e12, UNKNOWN,
                     EVIDENCE_MEASURED, w->attained);
    write_fitted(w, "energy", "pj", 1e12, &class->joules_per_flop);
    json_object_end(&w->json);
}

static void write_units(struct writing *w, const char *key, bool on_matrix)
{
    const struct hardware *base = w->base;
    const struct hardware_figure none[PRECISION_COUNT] = {{0}};
    const struct hardware_figure *joules = !base       ? none
                                           : on_matrix ? base->matrix_joules
                                                       : base->vector_joules;
    double ratio = base_ratio(w, on_matrix, joules);
    json_object(&w->json, key);
    for (size_t p = 0; p < PRECISION_COUNT; p++) {
        const struct calibrate_class *class = find_class(w, on_matrix, (enum precision)p);
        if (class) {
            write_class(w, class);
        } else if (base && ratio != 1 && is_known(joules[p].value)) {
            json_object(&w->json, precision_name((enum precision)p));
            write_scaled(w, "energy", "pj", 1e12, &joules[p], ratio);
            json_object_end(&w->json);
        }
    }
    json_object_end(&w->json);
}

/* ---- memories ---- */

static void write_kept(struct writing *w, const char *key, const char *unit, double times,
                       const struct hardware_figure *figure)
{
    if (is_known(figure->value))
        write_figure(w, key, unit, times * figure->value, times * figure->plus_minus,
                     figure->evidence, figure->source);
}

static void write_main_memory(struct writing *w, const struct hardware_memory *base)
{
    json_object(&w->json, NULL);
    json_string(&w->json, "name", base ? base->name : "memory");
    if (base && base->bytes_per_s.value >= w->c->bytes_per_s)
        write_kept(w, "bandwidth", "gb_per_s", 1e-9, &base->bytes_per_s);
    else
        write_figure(w, "bandwidth", "gb_per_s", w->c->bytes_per_s / 1e9, UNKNOWN,
                     EVIDENCE_MEASURED, w->attained);
    if (base)
        write_kept(w, "capacity", "gib", 1.0 / (1024.0 * 1024.0 * 1024.0), &base->capacity_bytes);
    write_fitted(w, "energy", "pj", 1e12, &w->c->joules_per_byte);
    json_object_end(&w->json);
}

static void write_memories(struct writing *w)
{
    const struct hardware_memory *main = w->base ? hardware_main_memory(w->base) : NULL;
    double ratio = main && main->joules_per_byte.value > 0
                       ? w->c->joules_per_byte.value / main->joules_per_byte.value
                       : 1;
    json_array(&w->json, "memories");
    for (size_t i = 0; w->base && i + 1 < w->base->memory_count; i++) {
        const struct hardware_memory *near = &w->base->memories[i];
        json_object(&w->json, NULL);
        json_string(&w->json, "name", near->name);
        write_kept(w, "bandwidth", "gb_per_s", 1e-9, &near->bytes_per_s);
        write_kept(w, "capacity", "kib", 1.0 / 1024, &near->capacity_bytes);
        if (is_known(near->joules_per_byte.value) && ratio < 1)
            write_scaled(w, "energy", "pj", 1e12, &near->joules_per_byte, ratio);
        else
            write_kept(w, "energy", "pj", 1e12, &near->joules_per_byte);
        json_object_end(&w->json);
    }
    write_main_memory(w, main);
    json_array_end(&w->json);
}

/* ---- the rest ---- */

static void write_shares(struct writing *w)
{
    double memory = 1;
    if (w->base)
        memory = fmin(w->c->bytes_per_s / hardware_main_memory(w->base)->bytes_per_s.value, 1);
    write_figure(w, "compute_share", NULL, compute_share(w), UNKNOWN, EVIDENCE_MEASURED,
                 w->attained);
    write_figure(w, "memory_share", NULL, memory, UNKNOWN, EVIDENCE_MEASURED, w->attained);
}

static void write_power(struct writing *w)
{
    json_object(&w->json, "power");
    write_fitted(w, "idle", "w", 1, &w->c->constant_w);
    json_object_end(&w->json);
    if (is_known(w->c->launch_s))
        write_figure(w, "launch", "us", 1e6 * w->c->launch_s, UNKNOWN, EVIDENCE_MEASURED,
                     w->attained);
}

/* "NVIDIA H200" becomes "nvidia-h200". */
static void make_id(const struct writing *w, char *to, size_t size)
{
    const char *name = w->base                ? w->base->id
                       : *w->report->hardware ? w->report->hardware
                                              : "this-machine";
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

static void write_names(struct writing *w)
{
    char id[48], name[96];
    bool has_matrix = false;
    make_id(w, id, sizeof id);
    for (size_t i = 0; i < w->c->class_count; i++)
        has_matrix |= w->c->classes[i].unit == CALIBRATE_MATRIX;
    str_format(name, sizeof name, "%.80s, calibrated",
               w->base                ? w->base->name
               : *w->report->hardware ? w->report->hardware
                                      : "this machine");
    json_string(&w->json, "id", id);
    json_string(&w->json, "name", name);
    if (!w->base) {
        json_string(&w->json, "vendor", "not told");
        json_string(&w->json, "class", has_matrix ? "gpu" : "cpu");
    }
    json_array(&w->json, "aliases");
    json_array_end(&w->json);
    json_string(&w->json, "note",
                w->c->is_estimated
                    ? "fitted to a model's joules, not to a meter's"
                    : "idle is the constant of the fit: what is drawn while it works");
    json_bool(&w->json, "calibrated", !w->c->is_estimated);
}

/* Only what differs from the base. */
static void write_overlay(struct writing *w, struct text *out)
{
    str_format(w->fitted, sizeof w->fitted,
               "least squares over %zu rows of %.120s%s, R2 %.2f, power off by %.1f %% left out",
               w->c->point_count, w->report->data,
               w->c->is_estimated ? ", whose joules are estimated" : "", w->c->r2,
               100 * w->c->mape_held_out);
    str_format(w->attained, sizeof w->attained, "the most that a row of %.200s attained",
               w->report->data);
    json_init(&w->json, out, false);
    json_object(&w->json, NULL);
    write_names(w);
    write_units(w, "matrix", true);
    write_units(w, "vector", false);
    write_memories(w);
    write_power(w);
    write_shares(w);
    json_object_end(&w->json);
}

/* ---- base and overlay together ---- */

static void print_tree(struct json *json, const char *key, const struct jv *value)
{
    struct text plain = {0};
    if (jv_is_object(value) || jv_is_array(value)) {
        bool is_object = jv_is_object(value);
        (is_object ? json_object : json_array)(json, key);
        for (const struct jv *child = jv_first(value); child; child = jv_next(child))
            print_tree(json, is_object ? jv_key(child) : NULL, child);
        (is_object ? json_object_end : json_array_end)(json);
    } else if (jv_print(value, &plain) == ERR_OK) {
        json_raw(json, key, text_get(&plain));
    }
    text_release(&plain);
}

static enum err merge(const struct hardware *base, const struct text *overlay, struct text *out,
                      struct error *why)
{
    struct text bytes = {0};
    struct jv *whole = NULL, *over = NULL;
    enum err err = base ? jv_print(base->text, &bytes) : ERR_OK;
    if (!base)
        text_add(&bytes, "{}");
    if (!err)
        err = jv_parse(text_get(&bytes), bytes.length, &whole, why);
    if (!err)
        err = jv_parse(text_get(overlay), overlay->length, &over, why);
    if (!err)
        err = jv_merge(whole, over);
    if (!err) {
        struct json json;
        json_init(&json, out, true);
        print_tree(&json, NULL, whole);
        text_add(out, "\n");
    }
    if (!err && (out->failed || bytes.failed))
        err = err_set(why, ERR_NO_MEMORY, "out of memory");
    jv_free(over);
    jv_free(whole);
    text_release(&bytes);
    return err;
}

enum err calibrate_hardware(const struct calibrate_report *report, struct text *out,
                            struct error *why)
{
    struct writing w = {.report = report, .c = report->calibration, .base = report->base};
    struct text overlay = {0};
    struct hardware made = {0};
    write_overlay(&w, &overlay);
    enum err err = merge(report->base, &overlay, out, why);
    if (!err)
        err = hardware_parse("the hardware file", text_get(out), out->length, &made, why);
    if (!err)
        err = hardware_check(&made, why);
    hardware_release(&made);
    text_release(&overlay);
    return err;
}
