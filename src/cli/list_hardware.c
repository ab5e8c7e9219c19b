/* The hardware of `ipw list`: entries of the catalog as they are in their files, and as text a table of all, or one device
 * with every figure and its source. */
#include "cli/listing.h"

#include <string.h>

#include "catalog/hardware_json.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"

/* Four digits, or "-". */
static void add_figure_or_dash(struct table *table, double value)
{
    table_add_known(table, value, "%.4g", value);
}

/* bf16, or int8 on accelerators without it. */
static enum precision usual_precision(const struct hardware *hardware)
{
    enum precision used;
    return is_known(hardware_matmul_flops(hardware, PRECISION_BF16, &used)) ? PRECISION_BF16
                                                                            : PRECISION_INT8;
}

static void add_device(struct table *table, const struct hardware *hardware)
{
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    enum precision usual = usual_precision(hardware), used;
    char bytes[FORMAT_MAX];
    table_add(table, hardware->id);
    table_add(table, hardware->name);
    table_add(table, hardware_class_name(hardware->class));
    add_figure_or_dash(table, hardware_matmul_flops(hardware, usual, &used) / 1e12);
    table_add(table, precision_name(used));
    add_figure_or_dash(table, memory->bytes_per_s.value / 1e9);
    table_add(table, format_bytes(bytes, memory->capacity_bytes.value));
    add_figure_or_dash(table, hardware->limit_w.value);
    add_figure_or_dash(table, hardware->idle_w.value);
    table_add(table, evidence_name(hardware_evidence(hardware, usual)));
}

static const struct table_column COLUMNS[] = {
    {"id", false},  {"name", false},  {"class", false},  {"TFLOPS", true}, {"dtype", false},
    {"GB/s", true}, {"memory", true}, {"limit W", true}, {"idle W", true}, {"evidence", false},
};

enum err listing_hardware_table(bool is_markdown, bool color, struct text *out, struct error *why)
{
    struct table table = TABLE(COLUMNS);
    enum err err = ERR_OK;
    for (size_t i = 0; i < hardware_count() && !err; i++) {
        struct hardware hardware;
        err = hardware_find(hardware_id(i), &hardware, why);
        if (!err)
            add_device(&table, &hardware);
        hardware_release(&hardware);
    }
    if (!err && is_markdown)
        table_write_markdown(&table, out);
    else if (!err)
        table_write(&table, "  ", color, out);
    table_release(&table);
    return err;
}

static void add_figure(struct table *table, const char *what, const struct hardware_figure *figure,
                       double scale, const char *unit)
{
    if (!is_known(figure->value))
        return;
    char cell[FORMAT_MAX];
    table_add(table, what);
    table_add(table, format_in(cell, figure->value / scale, figure->plus_minus / scale, unit));
    table_add(table, evidence_name(figure->evidence));
    table_add(table, figure->source);
}

static void add_precisions(struct table *table, const char *unit,
                           const struct hardware_figure *flops,
                           const struct hardware_figure *joules)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        char what[64];
        chars_format(what, "%s %s peak", unit, precision_name((enum precision)i));
        add_figure(table, what, &flops[i], 1e12, "TFLOPS");
        chars_format(what, "%s %s energy", unit, precision_name((enum precision)i));
        add_figure(table, what, &joules[i], 1e-12, "pJ/FLOP");
    }
}

static void add_memories(struct table *table, const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->memory_count; i++) {
        const struct hardware_memory *memory = &hardware->memories[i];
        char what[96];
        chars_format(what, "%s bandwidth", memory->name);
        add_figure(table, what, &memory->bytes_per_s, 1e9, "GB/s");
        chars_format(what, "%s capacity", memory->name);
        if (memory->capacity_bytes.value < 1e9)
            add_figure(table, what, &memory->capacity_bytes, 1024.0 * 1024, "MiB");
        else
            add_figure(table, what, &memory->capacity_bytes, 1e9, "GB");
        chars_format(what, "%s energy", memory->name);
        add_figure(table, what, &memory->joules_per_byte, 1e-12, "pJ/B");
    }
}

static void add_modes(const struct hardware *hardware, bool color, struct text *out)
{
    static const struct table_column MODES[] = {
        {"mode", false},  {"limit W", true}, {"clock", true},   {"memory", true},
        {"energy", true}, {"idle W", true},  {"source", false},
    };
    struct table table = TABLE(MODES);
    if (!hardware->point_count)
        return;
    for (size_t i = 0; i < hardware->point_count; i++) {
        const struct hardware_point *point = &hardware->points[i];
        table_addf(&table, "@%s", point->name);
        add_figure_or_dash(&table, point->limit_w);
        add_figure_or_dash(&table, point->clock_ratio);
        add_figure_or_dash(&table, point->memory_ratio);
        add_figure_or_dash(&table, point->energy_ratio);
        add_figure_or_dash(&table, point->idle_w);
        table_add(&table, point->source);
    }
    text_add(out, "\n");
    table_print(&table, "  ", color, out);
}

static void write_details(const struct hardware *hardware, bool color, struct text *out)
{
    static const struct table_column FIGURES[] = {
        {"figure", false},
        {"value", true},
        {"evidence", false},
        {"source", false},
    };
    struct table table = TABLE(FIGURES);
    text_addf(out, "%s: %s, %s of %s", hardware->id, hardware->name,
              hardware_class_name(hardware->class), hardware->vendor);
    if (hardware->year)
        text_addf(out, ", %d", hardware->year);
    text_add(out, "\n");
    for (size_t i = 0; i < hardware->aliases.count; i++)
        text_addf(out, "%s%s%s", i ? ", " : "  also: ", hardware->aliases.items[i],
                  i + 1 < hardware->aliases.count ? "" : "\n");
    add_precisions(&table, "matrix", hardware->matrix_flops, hardware->matrix_joules);
    add_precisions(&table, "vector", hardware->vector_flops, hardware->vector_joules);
    add_memories(&table, hardware);
    add_figure(&table, "limit", &hardware->limit_w, 1, "W");
    add_figure(&table, "idle", &hardware->idle_w, 1, "W");
    add_figure(&table, "launch", &hardware->launch_s, 1e-6, "µs");
    add_figure(&table, "units", &hardware->units, 1, "");
    add_figure(&table, "compute share", &hardware->compute_share, 1, "");
    add_figure(&table, "memory share", &hardware->memory_share, 1, "");
    add_figure(&table, "kernels", &hardware->kernels, 1, "");
    add_figure(&table, "host launch", &hardware->host_launch_s, 1e-6, "µs");
    add_figure(&table, "link bandwidth", &hardware->link_bytes_per_s, 1e9, "GB/s");
    add_figure(&table, "link latency", &hardware->link_latency_s, 1e-6, "µs");
    add_figure(&table, "link peers", &hardware->link_peers, 1, "");
    add_figure(&table, "links", &hardware->link_count, 1, "");
    text_add(out, "\n");
    table_print(&table, "  ", color, out);
    add_modes(hardware, color, out);
}

/* ---- the result ---- */

void listing_put_hardware(struct result *out, bool is_brief)
{
    struct json json;
    result_writer(out, &json);
    result_list(out, "hardware");
    for (size_t i = 0; i < hardware_count(); i++)
        if (is_brief)
            result_text(out, NULL, hardware_id(i));
        else
            hardware_write(hardware_at(i), &json);
    result_end(out);
}

/* The whole entry, whatever the @MODE. */
static void put_entry(struct json *json, const struct hardware *hardware)
{
    size_t length = strcspn(hardware->id, "@");
    for (size_t i = 0; i < hardware_count(); i++) {
        const char *id = hardware_id(i);
        if (strlen(id) == length && memcmp(id, hardware->id, length) == 0)
            hardware_write(hardware_at(i), json);
    }
}

enum err listing_put_hardware_named(struct result *out, const char **ids, size_t count, bool color,
                                    struct text *text, struct error *why)
{
    struct json json;
    result_writer(out, &json);
    result_list(out, "hardware");
    for (size_t i = 0; i < count; i++) {
        struct hardware hardware;
        enum err err = hardware_find(ids[i], &hardware, why);
        if (err)
            return err;
        put_entry(&json, &hardware);
        text_add(text, i ? "\n" : "");
        write_details(&hardware, color, text);
        hardware_release(&hardware);
    }
    result_end(out);
    return ERR_OK;
}
