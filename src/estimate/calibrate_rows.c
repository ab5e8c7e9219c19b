/* The CSV form of calibration rows, read and written: columns by name, others ignored; loads without operations and
 * bytes are counted from the operator and its shape. */
#include "estimate/calibrate_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/measured_csv.h"

const char *calibrate_unit_name(enum calibrate_unit unit)
{
    static const char *const NAMES[CALIBRATE_UNITS] = {"", "matrix", "vector"};
    return NAMES[unit];
}

void calibrate_rows_add(struct calibrate_rows *rows, const struct calibrate_row *row)
{
    XGROW(rows->items, rows->count, rows->capacity);
    rows->items[rows->count++] = *row;
}

void calibrate_rows_release(struct calibrate_rows *rows)
{
    free(rows->items);
    *rows = (struct calibrate_rows){0};
}

/* ---- reading ---- */

/* Parses "64x64x64" into sizes; returns their number, 0 if it is not a shape. */
static size_t read_shape(const char *shape, double *sizes, size_t max)
{
    char copy[96];
    size_t count = 0;
    if (!chars_copy(copy, shape))
        return 0;
    for (char *word = copy, *next; word; word = next) {
        uint64_t size;
        next = strchr(word, 'x');
        if (next)
            *next++ = '\0';
        if (count == max || parse_u64(word, &size) != ERR_OK || size == 0)
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
    if (str_equal(op, "matmul") && count == 3) {
        row->flops = 2 * size[0] * size[1] * size[2];
        row->bytes = width * (size[0] * size[1] + size[1] * size[2] + size[0] * size[2]);
    } else if (str_equal(op, "vector_add") && count == 1) {
        row->flops = size[0];
        row->bytes = 3 * width * size[0];
    } else if (str_equal(op, "copy") && count == 1) {
        row->flops = 0;
        row->bytes = 2 * width * size[0];
    } else {
        return false;
    }
    return true;
}

static void read_work(struct measured_csv *csv, struct calibrate_row *row)
{
    const char *op = measured_csv_cell(csv, "op"), *shape = measured_csv_cell(csv, "shape");
    chars_format(row->label, "%.40s%s%.20s", *op ? op : "load", *shape ? " " : "", shape);
    str_plain(row->label, sizeof row->label);
    row->precision = PRECISION_FP32;
    measured_csv_precision(csv, "dtype", &row->precision);
    if (str_equal(op, "idle"))
        row->kind = CALIBRATE_IDLE;
    else if (str_equal(op, "launch"))
        row->kind = CALIBRATE_LAUNCH;
    else if (str_equal(op, "launch_graph"))
        row->kind = CALIBRATE_GRAPH;
    else if (str_equal(op, "cache"))
        row->kind = CALIBRATE_CACHE;
    else if (str_equal(op, "host_launch"))
        row->kind = CALIBRATE_HOST;
    row->kernels = 1;
    if (row->kind == CALIBRATE_GRAPH && read_shape(shape, &row->kernels, 1) != 1)
        measured_csv_fail(csv, "shape", "must be the number of kernels in the graph");
    if (row->kind == CALIBRATE_CACHE && read_shape(shape, &row->held, 1) != 1)
        measured_csv_fail(csv, "shape", "must be the size of the working set in bytes");
    row->flops = measured_csv_number(csv, "flops");
    row->bytes = measured_csv_number(csv, "bytes");
    if (is_known(row->flops) && is_known(row->bytes))
        return;
    if (row->kind == CALIBRATE_IDLE || row->kind == CALIBRATE_HOST)
        row->flops = row->bytes = 0;
    else if (!count_known_op(op, shape, row->precision, row))
        measured_csv_fail(csv, "op",
                          "unknown cost: use matmul MxNxK, vector_add N, copy N, or columns flops "
                          "and bytes");
}

static void read_row(struct measured_csv *csv, struct calibrate_row *row)
{
    const char *unit = measured_csv_cell(csv, "unit");
    unsigned number = 0;
    *row = (struct calibrate_row){.line = csv->grid.lines[csv->row]};
    read_work(csv, row);
    while (number < CALIBRATE_UNITS &&
           !str_equal(unit, calibrate_unit_name((enum calibrate_unit)number)))
        number++;
    if (number == CALIBRATE_UNITS)
        measured_csv_fail(csv, "unit", "must be matrix, vector or empty");
    row->unit = (enum calibrate_unit)number;
    row->latency_s = measured_csv_number(csv, "latency_s");
    if (!(row->latency_s > 0))
        measured_csv_fail(csv, "latency_s", "must be above 0");
    row->energy_j = measured_csv_number(csv, "energy_j");
    row->window_s = measured_csv_number(csv, "window_s");
    row->updates = measured_csv_number(csv, "updates");
    row->is_estimated = str_equal(measured_csv_cell(csv, "method"), "estimated");
}

static void check_columns(struct measured_csv *csv)
{
    bool has_work = measured_csv_has(csv, "flops") && measured_csv_has(csv, "bytes");
    const char *missing = NULL;
    if (!measured_csv_has(csv, "latency_s"))
        missing = "latency_s";
    else if (!measured_csv_has(csv, "energy_j"))
        missing = "energy_j";
    else if (!measured_csv_has(csv, "op") && !has_work)
        missing = "op, or columns flops and bytes";
    if (missing && !csv->err)
        csv->err = err_set(csv->why, ERR_BAD_VALUE, "%s: missing column %s", csv->path, missing);
}

enum err calibrate_rows_read(const char *path, struct calibrate_rows *rows, struct error *why)
{
    struct measured_csv csv;
    measured_csv_open(&csv, path, why);
    if (!csv.err)
        check_columns(&csv);
    for (; !csv.err && csv.row < csv.grid.rows; csv.row++) {
        struct calibrate_row row;
        const char *hardware = measured_csv_cell(&csv, "hardware");
        read_row(&csv, &row);
        if (!csv.err)
            calibrate_rows_add(rows, &row);
        if (!*rows->hardware)
            (void)chars_copy(rows->hardware, hardware);
        else if (*hardware && strcmp(rows->hardware, hardware))
            measured_csv_fail(&csv, "hardware", "the previous rows are of another device");
    }
    measured_csv_close(&csv);
    return csv.err;
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
    case CALIBRATE_CACHE:
        return "cache";
    case CALIBRATE_HOST:
        return "host_launch";
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
        else if (row->kind == CALIBRATE_CACHE)
            text_addf(out, ",%.0f", row->held);
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
