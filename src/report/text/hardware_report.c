#include "report/text/hardware_report.h"

#include "core/text.h"
#include "catalog/hardware.h"
#include "report/text/format.h"
#include "report/text/table.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- all ---- */

/* Four digits, or "-". */
static void add_number(struct table *table, double value)
{
    if (is_known(value))
        table_addf(table, "%.4g", value);
    else
        table_add(table, "-");
}

/* What most models run in; int8 on accelerators that have nothing else. */
static enum precision usual_format(const struct hardware *hardware)
{
    enum precision used;
    return is_known(hardware_matmul_flops(hardware, PRECISION_BF16, &used)) ? PRECISION_BF16
                                                                             : PRECISION_INT8;
}

static void add_device(struct table *table, const struct hardware *hardware)
{
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    enum precision format = usual_format(hardware), used;
    char bytes[FORMAT_MAX];
    table_add(table, hardware->id);
    table_add(table, hardware->name);
    table_add(table, hardware_class_name(hardware->class));
    add_number(table, hardware_matmul_flops(hardware, format, &used) / 1e12);
    table_add(table, precision_name(used));
    add_number(table, memory->bytes_per_s.value / 1e9);
    table_add(table, format_bytes(bytes, memory->capacity_bytes.value));
    add_number(table, hardware->limit_w.value);
    add_number(table, hardware->idle_w.value);
    table_add(table, evidence_name(hardware_evidence(hardware, format)));
}

enum err hardware_report_all(bool colour, struct text *out, struct error *why)
{
    static const struct table_column COLUMNS[] = {
        {"id", false},  {"name", false},  {"class", false},  {"TFLOPS", true}, {"in", false},
        {"GB/s", true}, {"memory", true}, {"limit W", true}, {"idle W", true}, {"evidence", false},
    };
    struct table table;
    enum err err = ERR_OK;
    table_init(&table, COLUMNS, COUNT_OF(COLUMNS));
    for (size_t i = 0; i < hardware_count() && !err; i++) {
        struct hardware hardware;
        err = hardware_find(hardware_at(i)->id, &hardware, why);
        if (!err)
            add_device(&table, &hardware);
        hardware_release(&hardware);
    }
    if (!err)
        table_write(&table, "  ", colour, out);
    table_release(&table);
    return err;
}

/* ---- one ---- */

static void add_figure(struct table *table, const char *what, const struct hardware_figure *figure,
                       double scale, const char *unit)
{
    if (!is_known(figure->value))
        return;
    table_add(table, what);
    table_addf(table, "%.5g", figure->value / scale);
    if (is_known(figure->plus_minus))
        table_addf(table, "%.2g", figure->plus_minus / scale);
    else
        table_add(table, "-");
    table_add(table, unit);
    table_add(table, evidence_name(figure->evidence));
    table_add(table, figure->source);
}

static void add_formats(struct table *table, const char *unit, const struct hardware_figure *flops,
                        const struct hardware_figure *joules)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        char what[64];
        str_format(what, sizeof what, "%s %s peak", unit, precision_name((enum precision)i));
        add_figure(table, what, &flops[i], 1e12, "TFLOPS");
        str_format(what, sizeof what, "%s %s energy", unit, precision_name((enum precision)i));
        add_figure(table, what, &joules[i], 1e-12, "pJ/FLOP");
    }
}

static void add_memories(struct table *table, const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->memory_count; i++) {
        const struct hardware_memory *memory = &hardware->memories[i];
        char what[96];
        str_format(what, sizeof what, "%s bandwidth", memory->name);
        add_figure(table, what, &memory->bytes_per_s, 1e9, "GB/s");
        str_format(what, sizeof what, "%s capacity", memory->name);
        if (memory->capacity_bytes.value < 1e9)
            add_figure(table, what, &memory->capacity_bytes, 1024.0 * 1024, "MiB");
        else
            add_figure(table, what, &memory->capacity_bytes, 1e9, "GB");
        str_format(what, sizeof what, "%s energy", memory->name);
        add_figure(table, what, &memory->joules_per_byte, 1e-12, "pJ/B");
    }
}

static void add_points(const struct hardware *hardware, bool colour, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"point", false}, {"limit W", true}, {"clock", true},   {"memory", true},
        {"energy", true}, {"idle W", true},  {"source", false},
    };
    struct table table;
    if (!hardware->point_count)
        return;
    table_init(&table, COLUMNS, COUNT_OF(COLUMNS));
    for (size_t i = 0; i < hardware->point_count; i++) {
        const struct hardware_point *point = &hardware->points[i];
        table_addf(&table, "@%s", point->name);
        add_number(&table, point->limit_w);
        add_number(&table, point->clock_ratio);
        add_number(&table, point->memory_ratio);
        add_number(&table, point->energy_ratio);
        add_number(&table, point->idle_w);
        table_add(&table, point->source);
    }
    text_add(out, "\n");
    table_write(&table, "  ", colour, out);
    table_release(&table);
}

void hardware_report_one(const struct hardware *hardware, bool colour, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"figure", false}, {"value", true},     {"±", true},
        {"unit", false},   {"evidence", false}, {"source", false},
    };
    struct table table;
    text_addf(out, "%s: %s, %s of %s", hardware->id, hardware->name,
              hardware_class_name(hardware->class), hardware->vendor);
    if (hardware->year)
        text_addf(out, ", %d", hardware->year);
    text_add(out, "\n");
    for (const char *const *alias = hardware->aliases; *alias; alias++)
        text_addf(out, "%s%s%s", alias == hardware->aliases ? "  also: " : ", ", *alias,
                  alias[1] ? "" : "\n");
    table_init(&table, COLUMNS, COUNT_OF(COLUMNS));
    add_formats(&table, "matrix", hardware->matrix_flops, hardware->matrix_joules);
    add_formats(&table, "vector", hardware->vector_flops, hardware->vector_joules);
    add_memories(&table, hardware);
    add_figure(&table, "limit", &hardware->limit_w, 1, "W");
    add_figure(&table, "idle", &hardware->idle_w, 1, "W");
    add_figure(&table, "launch", &hardware->launch_s, 1e-6, "us");
    add_figure(&table, "units", &hardware->units, 1, "");
    add_figure(&table, "compute share", &hardware->compute_share, 1, "");
    add_figure(&table, "memory share", &hardware->memory_share, 1, "");
    add_figure(&table, "link bandwidth", &hardware->link_bytes_per_s, 1e9, "GB/s");
    add_figure(&table, "link latency", &hardware->link_latency_s, 1e-6, "us");
    text_add(out, "\n");
    table_write(&table, "  ", colour, out);
    table_release(&table);
    add_points(hardware, colour, out);
}
