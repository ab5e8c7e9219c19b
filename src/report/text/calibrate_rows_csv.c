#include "core/csv.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate_rows.h"
#include "report/text/calibrate_report.h"

static void put_number(struct text *out, double value)
{
    if (is_known(value))
        text_addf(out, ",%.17g", value);
    else
        text_addf(out, ",");
}

/* What the reader takes for the kind of a row; else it is a word of ours. */
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
