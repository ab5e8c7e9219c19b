/* A reading: the machine over one interval and since the start, with the other values of a monitor's row.  reading_take
 * fills one that reading_release frees. */
#ifndef IPW_LIVE_READING_H
#define IPW_LIVE_READING_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/ledger.h"
#include "core/err.h"
#include "core/quantity.h"
#include "core/units.h"
#include "report/text/format.h"
#include "sensors/system/host_info.h"

struct proc_time;
struct result;
struct sampler;
struct text;

struct reading {
    nanos wall; /* end of the interval, since the epoch */
    double interval_s;
    double elapsed_s;    /* since the start, or the last reset */
    struct ledger now;   /* over the interval */
    struct ledger since; /* from the start to the interval's end; the same devices in order */
    bool *lost;          /* per device: currently lost */
};

/* The interval is [from, to], the start `start`. */
void reading_take(struct sampler *sampler, nanos start, nanos from, nanos to, struct reading *out);
void reading_release(struct reading *reading);

/* A current value of a device: the mean over the interval for what fluctuates (utilization, clocks), the newest value
 * otherwise; UNKNOWN without a sensor and while the device is lost. */
double reading_gauge(const struct reading *reading, size_t device, enum quantity quantity);

/* "power thermal", "none", or "-" if unknown. */
void reading_throttle(const struct reading *reading, size_t device, char *to, size_t size);

/* Mean watts of the devices in the total; UNKNOWN if there are none. */
double reading_total_power(const struct ledger *ledger);

/* A plain figure for a cell (FORMAT_MAX bytes); an estimate is rounded, and marked with "~". */
void reading_figure(char *to, double value, const char *unit, enum method method);

/* Whether there are several devices to add up (or to exclude from the sum). */
bool reading_wants_total(const struct reading *reading);

/* ---- as rows of a table, CSV, its result, and the totals at the end ---- */

struct reading_table {
    bool color;
    bool repeat_header; /* repeat on a scrolling screen; never in a file */
    bool tenths;        /* show tenths of seconds, if rows are faster than seconds */
    unsigned blocks;    /* written so far */
    size_t widths[TABLE_COLUMNS_MAX];
};

/* A row per device, and the total if there are several. */
void reading_to_table(struct reading_table *state, const struct reading *reading, struct text *out);

/* RFC 4180, except for line ends, which are the system's; an unknown figure is an empty field. */
void reading_csv_header(struct text *out);
void reading_to_csv(const struct reading *reading, struct text *out);

/* Markdown: one table over all readings. */
void reading_to_markdown(struct reading_table *state, const struct reading *reading,
                         struct text *out);

/* Its result; JSON prints it in one line. */
void reading_fill(const struct reading *reading, struct result *out);

/* Joules, mean and peak of each device since the start. */
void reading_summary(const struct reading *reading, bool color, struct text *out);

/* ---- processes ---- */

/* Processes that used the machine recently, and the device power attributed to them by their share of its time: of the
 * processors by CPU time, of a GPU by utilization, if its driver reports it.  Idle power is attributed to no process.
 * Zero-initialize a struct top; top_release frees it. */

enum { TOP_MAX = 24 };

struct top_row {
    int pid;
    char device[DEVICE_NAME_SIZE]; /* "cpu", "gpu0" */
    char name[16];
    double share;         /* of the device's time */
    double watts, joules; /* attributed, recent and total; UNKNOWN if the device's are */
    bool is_estimated;
};

struct top {
    struct top_row rows[TOP_MAX]; /* most watts first */
    size_t count;
    double cpu_watts; /* of the processors, shared by their rows and idle time; or UNKNOWN */
    nanos taken;      /* time of the rows; the following fields are for the next ones */
    struct cpu_times cpus;
    struct proc_time *times;
    double *joules; /* of each of them */
    size_t time_count;
};

/* Recomputes the rows since the last call; a reading has the power of that time. */
void top_take(struct top *top, struct sampler *sampler, const struct reading *reading, nanos now);
void top_release(struct top *top);

#endif
