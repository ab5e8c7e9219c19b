/* The attempts of a sweep, one row each, with a column for every knob: CSV and JSON lines. */

#include "core/csv.h"
#include "core/json.h"
#include "core/units.h"
#include "core/text.h"
#include "metrics/efficiency.h"
#include "power/sweep_points.h"
#include "report/export/export.h"

/* A value of a row: a text, or a number that may be unknown. */
struct cell {
    const char *name;
    const char *text; /* NULL: a number */
    double number;
};

enum { CELLS_FIXED = 22 + SUMMARY_QUALITIES_MAX, KNOBS_SHOWN = 64 };

struct row {
    struct cell cells[CELLS_FIXED + KNOBS_SHOWN];
    char names[KNOBS_SHOWN][72]; /* of knobs whose name equals that of another column */
    size_t count;
};

static void add_text(struct row *row, const char *name, const char *text)
{
    row->cells[row->count++] = (struct cell){name, text_or_empty(text), UNKNOWN};
}

static void add_number(struct row *row, const char *name, double number)
{
    row->cells[row->count++] = (struct cell){name, NULL, number};
}

static bool has_cell(const struct row *row, const char *name)
{
    return str_find(name, row->cells, row->count, sizeof *row->cells);
}

static void add_figures(const struct sweep_points *points, size_t index, struct row *row)
{
    const struct sweep_attempt *attempt = &points->sweep.attempts[index];
    const struct sweep_measurement *m = &points->items[index];
    add_number(row, "point", (double)attempt->point + 1);
    add_number(row, "repeat", attempt->repeat);
    add_number(row, "exit_code", attempt->exit_code);
    add_text(row, "flags", attempt->flags);
    add_text(row, "left_out", m->exclusion ? sweep_exclusion_name(m->exclusion) : "no");
    add_text(row, "per", points->is_per_query ? "query" : "run");
    add_number(row, "energy_j", m->joules);
    add_number(row, "energy_plus_minus_j", m->plus_minus);
    add_text(row, "energy_method", m->method);
    add_number(row, "time_s", m->seconds);
    add_number(row, "power_w", m->watts);
    add_number(row, "edp_js", energy_delay_product(m->joules, m->seconds, 1));
    add_number(row, "ed2p_js2", energy_delay_product(m->joules, m->seconds, 2));
    add_number(row, "accuracy", m->qualities[QUALITY_ACCURACY]);
    add_number(row, "perplexity", m->qualities[QUALITY_PERPLEXITY]);
    for (size_t q = QUALITIES_NAMED; q < points->quality_count; q++)
        add_number(row, points->qualities[q].name, m->qualities[q]);
    add_number(row, "queries", m->queries);
    add_number(row, "idle_w", m->idle_w);
    add_number(row, "temperature_c", m->temperature_c);
    add_text(row, "gpu", m->gpu);
    add_text(row, "application", m->application);
    add_text(row, "directory", attempt->path);
}

/* Knobs come last, since their number differs between sweeps. */
static void fill_row(const struct sweep_points *points, size_t index, struct row *row)
{
    const struct sweep *sweep = &points->sweep;
    row->count = 0;
    add_figures(points, index, row);
    for (size_t k = 0; k < sweep->knob_count && k < KNOBS_SHOWN; k++) {
        chars_format(row->names[k], "%s%s", has_cell(row, sweep->knobs[k]) ? "knob_" : "",
                     sweep->knobs[k]);
        add_text(row, row->names[k], sweep_point(sweep, sweep->attempts[index].point)[k].text);
    }
}

static void row_to_csv(const struct row *row, bool is_header, bool raw, struct text *out)
{
    for (size_t i = 0; i < row->count; i++) {
        const struct cell *cell = &row->cells[i];
        text_add(out, i ? "," : "");
        if (is_header)
            csv_add(out, cell->name);
        else if (cell->text && raw)
            csv_add(out, cell->text);
        else if (cell->text)
            csv_add_text(out, cell->text);
        else if (is_known(cell->number))
            export_add_number(out, cell->number);
    }
    text_add(out, "\n");
}

static void row_to_json(const struct row *row, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < row->count; i++) {
        const struct cell *cell = &row->cells[i];
        if (cell->text)
            json_string(&json, cell->name, cell->text);
        else
            json_number(&json, cell->name, cell->number);
    }
    json_object_end(&json);
    text_add(out, "\n");
}

enum err export_sweep(const char *directory, const char *format, bool raw, struct text *out,
                      struct error *why)
{
    struct sweep_points points;
    struct row row;
    bool is_csv = str_equal(format, "csv");
    if (!is_csv && !str_equal(format, "jsonl"))
        return err_set(
            why, ERR_USAGE,
            "a sweep is exported to csv or jsonl; its runs, each alone, to %s: give one of "
            "%s/points/*/*",
            format, directory);
    enum err err = sweep_points_load(directory, &points, why);
    if (err)
        return err;
    for (size_t i = 0; i < points.sweep.count; i++) {
        fill_row(&points, i, &row);
        if (is_csv && i == 0)
            row_to_csv(&row, true, raw, out);
        if (is_csv)
            row_to_csv(&row, false, raw, out);
        else
            row_to_json(&row, out);
    }
    if (!points.sweep.count)
        err = err_set(why, ERR_NO_DATA, "%s: no attempt has ended yet", directory);
    sweep_points_release(&points);
    return err;
}
