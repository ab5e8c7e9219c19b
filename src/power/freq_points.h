/* Measurements of one workload at several GPU clocks: points as measured (one per run), and curves (one per GPU and
 * application) with one sample per frequency, the median of the usable runs.
 *
 * A point is read from a CSV file or from the log of a GPU profiler, or added by the caller.  power/data_checks.h marks
 * points that must not be used; freq_curves_of excludes them.  Unknown figures are UNKNOWN, never 0.
 *
 * Ownership: a zeroed struct freq_points or freq_curves is empty; the release functions free them. */
#ifndef IPW_POWER_FREQ_POINTS_H
#define IPW_POWER_FREQ_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct params;
struct sweep_points;

/* Shares of time that units of the GPU were active, 0..1. */
enum freq_activity {
    FREQ_FP,   /* FP32 / 2 + FP64 pipes */
    FREQ_DRAM, /* memory interface */
    FREQ_SM,   /* graphics engine or SMs */
    FREQ_UTIL, /* utilization as nvidia-smi reports it */
    FREQ_ACTIVITIES
};

/* Why a point must not be used, or only in part. */
enum freq_flag {
    FREQ_COLD = 1,            /* start-up: downloads, cold caches */
    FREQ_OFF_CLOCK = 2,       /* the achieved clock is not the requested one */
    FREQ_ILLEGAL = 4,         /* not a clock of this GPU */
    FREQ_THROTTLED = 8,       /* power or thermal limit */
    FREQ_INVALID = 16,        /* negative, zero or not a number */
    FREQ_FAILED = 32,         /* the command failed */
    FREQ_TIME_REPLACED = 64,  /* its time was interpolated by the author of the file: usable */
    FREQ_POWER_SUSPECT = 128, /* its power is marked as an outlier in the file: usable */
    FREQ_TIME_COPIED = 256,   /* its time is that of another application: only power is usable */
    /* Of points from logs; all are usable. */
    FREQ_LOG_DAMAGED = 512,     /* rows of the log could not be read */
    FREQ_LOG_UNORDERED = 1024,  /* timestamps of the log decrease, or the clock was set forward */
    FREQ_LOG_IDLE_PARTS = 2048, /* rows before or after the workload were excluded */
    FREQ_GPU_MISMATCH = 4096,   /* the log is of another GPU than its name */
    FREQ_LOG_PAUSES = 8192,     /* the log has pauses within the workload */
    FREQ_UNUSABLE =
        FREQ_COLD | FREQ_OFF_CLOCK | FREQ_ILLEGAL | FREQ_THROTTLED | FREQ_INVALID | FREQ_FAILED,
};

struct freq_point {
    char gpu[40];         /* "": not given */
    char application[64]; /* "": not given */
    unsigned run;         /* repetition at this frequency, from 1; 0: not given */
    double seq;           /* order of measurement */
    double timestamp_s;
    double freq_mhz;     /* requested */
    double achieved_mhz; /* measured under load */
    double time_s;
    double raw_time_s; /* of a second, less processed time column */
    double power_w;    /* mean over window_s */
    double energy_j;
    double pause_error; /* relative, of power and energy, from pauses of its log; 0: none */
    double idle_w;      /* before the workload started */
    double temperature_c;
    double activity[FREQ_ACTIVITIES];
    unsigned flags; /* enum freq_flag */
    size_t line;    /* of its file; 0: none */
};

struct freq_points {
    struct freq_point *items;
    size_t count, capacity;
    size_t other_rows;                         /* excluded by `where` */
    uint64_t hash;                             /* of the files read */
    char time_column[40], raw_time_column[40]; /* of the files read; "": none */
};

/* All figures UNKNOWN. */
struct freq_point freq_point_unknown(void);
void freq_points_add(struct freq_points *points, const struct freq_point *point);
void freq_points_release(struct freq_points *points);

/* How a CSV file, or another source of measurements, is read. */
struct freq_source {
    const char *path;
    const struct sweep_points *sweep; /* at the path, if it was loaded already; or NULL */
    const struct params *columns;     /* our name = the file's; NULL: detected */
    const struct params *where;       /* column = value of the rows to use; NULL: all */
    const char *gpu;                  /* for a file without such a column; NULL: unknown */
};

/* Appends the rows of a file.  ERR_BAD_VALUE names file, line and column. */
enum err freq_points_read(struct freq_points *points, const struct freq_source *source,
                          struct error *why) MUST_USE;

/* ---- logs of GPU profilers (freq_logs.c) ---- */

/* Whether a path is a log of `dcgmi dmon` or of `nvidia-smi --query-gpu`, or a directory of them. */
bool freq_points_is_log(const char *path);
/* Appends a point per log and GPU.  source->columns is ignored; `where` supports gpu, application, run and freq_mhz. */
enum err freq_points_import(struct freq_points *points, const struct freq_source *source,
                            struct error *why) MUST_USE;

/* ---- the points ---- */

/* Sorts by GPU, application, frequency and run; the end of the group (GPU, application) that begins at `first`. */
void freq_points_sort(struct freq_points *points);
size_t freq_points_group(const struct freq_points *points, size_t first);

/* ---- curves: one sample per frequency (freq_curves.c) ---- */

struct freq_sample {
    double freq_mhz;
    double power_w;
    double time_s;
    double window_s; /* of the mean power: energy / power, or the time */
    double energy_j; /* power x window */
    double activity[FREQ_ACTIVITIES];
    unsigned runs;
    double energy_scatter, time_scatter; /* relative_scatter of the runs */
    double pause_error;                  /* mean over the runs */
};

struct freq_curve {
    char gpu[40], application[64];
    double fmax_mhz;             /* the highest measured clock of this GPU */
    double idle_w;               /* UNKNOWN: not measured */
    struct freq_sample *samples; /* ascending in frequency */
    size_t count;
};

struct freq_curves {
    struct freq_curve *items; /* by GPU, then application */
    size_t count;
};

/* Medians of the usable points, which are sorted first.  A frequency may have no sample, a curve may be empty. */
void freq_curves_of(struct freq_points *points, struct freq_curves *out);
void freq_curves_release(struct freq_curves *curves);

/* The mean of the samples' pause_error. */
static inline double freq_samples_pause_error(const struct freq_sample *samples, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += samples[i].pause_error;
    return count ? sum / (double)count : 0;
}

/* The mean of an activity over the samples near fmax, excluding zeros; UNKNOWN if it was not measured. */
double freq_curve_activity(const struct freq_curve *curve, enum freq_activity activity);

/* `wanted` samples (at most those of the curve) for fitting a model: at fmax, and evenly spaced down to 0.45 fmax,
 * each the median of `near` neighboring clocks.  Writes them to out[wanted], fmax first; returns their number. */
size_t freq_curve_probes(const struct freq_curve *curve, size_t wanted, size_t near,
                         struct freq_sample *out);

#endif
