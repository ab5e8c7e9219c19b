/* The CSV form of calibration rows, read and written: columns by name, others ignored; loads whose operations
 * and bytes are not given are counted from the operator and its shape. */
#include "estimate/calibrate_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"

const char *calibrate_unit_name(enum calibrate_unit unit)
{
    static const char *const NAMES[CALIBRATE_UNITS] = {"", "matrix", "vector"};
    return NAMES[unit];
}

enum err calibrate_rows_add(struct calibrate_rows *rows, const struct calibrate_row *row,
                            struct error *why)
{
    struct calibrate_row *items = grow(rows->items, &rows->capacity, rows->count, sizeof *items);
    if (!items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    rows->items = items;
    items[rows->count++] = *row;
    return ERR_OK;
}

void calibrate_rows_release(struct calibrate_rows *rows)
{
    free(rows->items);
    *rows = (struct calibrate_rows){0};
}

/* ---- reading ---- */

struct reader {
    const char *path;
    struct csv_grid grid;
    long hardware, op, shape, dtype, unit, latency, energy, flops, bytes, window, updates, method;
    size_t row;
};

static enum err wrong(const struct reader *r, const char *column, const char *value,
                      const char *rule, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%s:%zu: %s '%.40s': %s", r->path, r->grid.lines[r->row],
                   column, value, rule);
}

/* A number of 0 or more; UNKNOWN where the cell is empty or the column missing. */
static enum err read_number(const struct reader *r, long column, const char *name, double *out,
                            struct error *why)
{
    const char *cell = csv_grid_cell(&r->grid, r->row, column);
    *out = UNKNOWN;
    if (!*cell)
        return ERR_OK;
    if (parse_double(cell, out) != ERR_OK || !(*out >= 0))
        return wrong(r, name, cell, "not a number of 0 or more", why);
    return ERR_OK;
}

/* Parses "64x64x64" into sizes; returns their number, 0 when it is not a shape. */
static size_t read_shape(const char *shape, double *sizes, size_t most)
{
    char copy[96];
    size_t count = 0;
    if (!str_copy(copy, sizeof copy, shape))
        return 0;
    for (char *word = copy, *next; word; word = next) {
        uint64_t size;
        next = strchr(word, 'x');
        if (next)
            *next++ = '\0';
        if (count == most || parse_u64(word, &size) != ERR_OK || size == 0)
            return 0;
        sizes[count++] = (double)size;
    }
    return count;
}

/* Cost of the known operators: each operand passes through memory once. */
static bool count_known_op(const char *op, const char *shape, enum precision precision,
                           struct calibrate_row *row)
{
    double size[3], width = precision_widths(precision).activation;
    size_t count = read_shape(shape, size, 3);
    if (!strcmp(op, "matmul") && count == 3) {
        row->flops = 2 * size[0] * size[1] * size[2];
        row->bytes = width * (size[0] * size[1] + size[1] * size[2] + size[0] * size[2]);
    } else if (!strcmp(op, "vector_add") && count == 1) {
        row->flops = size[0];
        row->bytes = 3 * width * size[0];
    } else if (!strcmp(op, "copy") && count == 1) {
        row->flops = 0;
        row->bytes = 2 * width * size[0];
    } else {
        return false;
    }
    return true;
}

static enum err read_work(const struct reader *r, struct calibrate_row *row, struct error *why)
{
    const char *op = csv_grid_cell(&r->grid, r->row, r->op);
    const char *shape = csv_grid_cell(&r->grid, r->row, r->shape);
    const char *dtype = csv_grid_cell(&r->grid, r->row, r->dtype);
    str_format(row->label, sizeof row->label, "%.40s%s%.20s", *op ? op : "load", *shape ? " " : "",
               shape);
    str_plain(row->label);
    row->precision = PRECISION_FP32;
    if (*dtype && precision_find(dtype, &row->precision, why) != ERR_OK)
        return wrong(r, "dtype", dtype, "unknown precision", why);
    if (!strcmp(op, "idle"))
        row->kind = CALIBRATE_IDLE;
    else if (!strcmp(op, "launch"))
        row->kind = CALIBRATE_LAUNCH;
    else if (!strcmp(op, "launch_graph"))
        row->kind = CALIBRATE_GRAPH;
    row->kernels = 1;
    if (row->kind == CALIBRATE_GRAPH && read_shape(shape, &row->kernels, 1) != 1)
        return wrong(r, "shape", shape, "not the number of kernels in the graph", why);
    enum err err = read_number(r, r->flops, "flops", &row->flops, why);
    if (!err)
        err = read_number(r, r->bytes, "bytes", &row->bytes, why);
    if (err || (is_known(row->flops) && is_known(row->bytes)))
        return err;
    if (row->kind == CALIBRATE_IDLE)
        row->flops = row->bytes = 0;
    else if (!count_known_op(op, shape, row->precision, row))
        return wrong(r, "op", op,
                     "unknown cost: use matmul MxNxK, vector_add N, copy N, or columns flops and "
                     "bytes",
                     why);
    return ERR_OK;
}

static enum err read_unit(const struct reader *r, struct calibrate_row *row, struct error *why)
{
    const char *unit = csv_grid_cell(&r->grid, r->row, r->unit);
    for (unsigned i = 0; i < CALIBRATE_UNITS; i++)
        if (!strcmp(unit, calibrate_unit_name((enum calibrate_unit)i))) {
            row->unit = (enum calibrate_unit)i;
            return ERR_OK;
        }
    return wrong(r, "unit", unit, "not matrix, vector or empty", why);
}

static enum err read_row(const struct reader *r, struct calibrate_row *row, struct error *why)
{
    *row = (struct calibrate_row){.line = r->grid.lines[r->row]};
    enum err err = read_work(r, row, why);
    if (!err)
        err = read_unit(r, row, why);
    if (!err)
        err = read_number(r, r->latency, "latency_s", &row->latency_s, why);
    if (!err && !(row->latency_s > 0))
        err =
            wrong(r, "latency_s", csv_grid_cell(&r->grid, r->row, r->latency), "not above 0", why);
    if (!err)
        err = read_number(r, r->energy, "energy_j", &row->energy_j, why);
    if (!err)
        err = read_number(r, r->window, "window_s", &row->window_s, why);
    if (!err)
        err = read_number(r, r->updates, "updates", &row->updates, why);
    row->is_estimated = !strcmp(csv_grid_cell(&r->grid, r->row, r->method), "estimated");
    return err;
}

static enum err find_columns(struct reader *r, struct error *why)
{
    const struct csv_grid *grid = &r->grid;
    r->hardware = csv_grid_column(grid, "hardware");
    r->op = csv_grid_column(grid, "op");
    r->shape = csv_grid_column(grid, "shape");
    r->dtype = csv_grid_column(grid, "dtype");
    r->unit = csv_grid_column(grid, "unit");
    r->latency = csv_grid_column(grid, "latency_s");
    r->energy = csv_grid_column(grid, "energy_j");
    r->flops = csv_grid_column(grid, "flops");
    r->bytes = csv_grid_column(grid, "bytes");
    r->window = csv_grid_column(grid, "window_s");
    r->updates = csv_grid_column(grid, "updates");
    r->method = csv_grid_column(grid, "method");
    if (r->latency < 0 || r->energy < 0)
        return err_set(why, ERR_BAD_VALUE, "%s: missing column %s", r->path,
                       r->latency < 0 ? "latency_s" : "energy_j");
    if (r->op < 0 && (r->flops < 0 || r->bytes < 0))
        return err_set(why, ERR_BAD_VALUE, "%s: missing column op, or columns flops and bytes",
                       r->path);
    return ERR_OK;
}

static enum err add_rows(struct reader *r, struct calibrate_rows *rows, struct error *why)
{
    enum err err = find_columns(r, why);
    for (r->row = 0; !err && r->row < r->grid.rows; r->row++) {
        struct calibrate_row row;
        const char *hardware = csv_grid_cell(&r->grid, r->row, r->hardware);
        err = read_row(r, &row, why);
        if (!err)
            err = calibrate_rows_add(rows, &row, why);
        if (!err && !*rows->hardware)
            (void)str_copy(rows->hardware, sizeof rows->hardware, hardware);
        else if (!err && *hardware && strcmp(rows->hardware, hardware))
            err = wrong(r, "hardware", hardware, "the rows before are of another device", why);
    }
    return err;
}

enum err calibrate_rows_read(const char *path, struct calibrate_rows *rows, struct error *why)
{
    struct text bytes = {0};
    struct reader r = {.path = path};
    struct error inner = {0};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err) {
        err =
            csv_grid_read(bytes.bytes ? bytes.bytes : (char[]){""}, bytes.length, &r.grid, &inner);
        if (err)
            err_set(why, err, "%s: %s", path, inner.text);
        else
            err = add_rows(&r, rows, why);
        csv_grid_release(&r.grid);
    }
    text_release(&bytes);
    return err;
}

/* ---- writing ---- */

static void put_number(struct text *out, double value)
{
    if (is_known(value))
        text_addf(out, ",%.17g", value);
    else
        text_addf(out, ",");
}

/* The operator from which the reader infers the kind of a row; for a load its label. */
static const char *op_of(const struct calibrate_row *row)
{
    switch (row->kind) {
    case CALIBRATE_IDLE:
        return "idle";
    case CALIBRATE_LAUNCH:
        return "launch";
    case CALIBRATE_GRAPH:
        return "launch_graph";
    case CALIBRATE_LOAD:
        break;
    }
    return row->label;
}

void calibrate_rows_csv(const struct calibrate_rows *rows, const char *hardware, struct text *out)
{
    text_addf(out, "hardware,op,shape,dtype,unit,flops,bytes,latency_s,energy_j,window_s,updates,"
                   "method\n");
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        csv_add(out, hardware);
        text_addf(out, ",");
        csv_add(out, op_of(row));
        if (row->kind == CALIBRATE_GRAPH)
            text_addf(out, ",%.0f", row->kernels);
        else
            text_addf(out, ",");
        text_addf(out, ",%s,%s", precision_name(row->precision), calibrate_unit_name(row->unit));
        put_number(out, row->flops);
        put_number(out, row->bytes);
        put_number(out, row->latency_s);
        put_number(out, row->energy_j);
        put_number(out, row->window_s);
        put_number(out, row->updates);
        text_addf(out, ",%s\n", row->is_estimated ? "estimated" : "measured");
    }
}
