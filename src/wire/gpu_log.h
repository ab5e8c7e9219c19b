/* Logs of GPU profilers, line by line: the table of `dcgmi dmon` (DCGM 2 and 3) and the CSV of `nvidia-smi
 * --query-gpu=... --format=csv`, with or without a header and units.
 *
 * Headers may be repeated and may change the columns; cells may have units or be "N/A"; the name of a GPU may contain
 * spaces.  Unlisted columns are skipped.  Nothing is owned: zero-initialize a struct gpu_log. */
#ifndef IPW_WIRE_GPU_LOG_H
#define IPW_WIRE_GPU_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum gpu_log_value {
    GPU_LOG_POWER_W,
    GPU_LOG_ENERGY_J, /* counter */
    GPU_LOG_TEMPERATURE_C,
    GPU_LOG_CLOCK_MHZ,        /* of the SMs, measured */
    GPU_LOG_TARGET_CLOCK_MHZ, /* application clock: requested */
    GPU_LOG_UTILIZATION,      /* this and the following: shares, 0..1 */
    GPU_LOG_MEMORY_UTILIZATION,
    GPU_LOG_GRAPHICS,
    GPU_LOG_SM,
    GPU_LOG_OCCUPANCY,
    GPU_LOG_TENSOR,
    GPU_LOG_DRAM,
    GPU_LOG_FP64,
    GPU_LOG_FP32,
    GPU_LOG_FP16,
    GPU_LOG_VALUES
};

enum { GPU_LOG_COLUMNS_MAX = 64 };

/* Parser state of a log. */
struct gpu_log {
    bool is_table;      /* dcgmi, else CSV */
    size_t count;       /* columns; 0: no header yet */
    long name, time_at; /* columns; -1: none */
    long index;
    long columns[GPU_LOG_VALUES];
    double scales[GPU_LOG_VALUES]; /* by the units of the header */
    char gpu_name[96];             /* of the last row with one; "": none so far */
};

struct gpu_log_row {
    double time_s; /* of a clock without a time zone; UNKNOWN in a table */
    unsigned gpu;  /* index */
    double values[GPU_LOG_VALUES];
};

enum gpu_log_line {
    GPU_LOG_OTHER, /* header, units, blank, a message */
    GPU_LOG_ROW,
    GPU_LOG_DAMAGED, /* a row with missing or unreadable cells */
};

/* Parses one line, without its newline; the line is modified. */
enum gpu_log_line gpu_log_line(struct gpu_log *log, char *line, struct gpu_log_row *out);

/* Whether a text looks like the start of such a log. */
bool gpu_log_is(const char *bytes, size_t length);

#endif
