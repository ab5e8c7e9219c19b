/* The summary of a run: its overall figures.  The members come from record.def, which also defines their locations in
 * summary.json, in the run index and among the Prometheus gauges.
 *
 * Ownership: a summary owns its arrays and, if it was read, the tree that its strings point into: summary_release frees
 * both.  Strings set by the runner belong to the runner. */
#ifndef IPW_RUNDIR_SUMMARY_H
#define IPW_RUNDIR_SUMMARY_H

#include "core/finding.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/quantity.h"
#include "rundir/quality.h"
#include "rundir/record.h"
#include "rundir/run_path.h"

struct result;
struct traces;

/* A distribution over queries; `count` 0: none. */
struct summary_statistic {
    double avg, median, min, max, std, p95;
    int64_t count;
};

struct summary_interval {
    double low, high;
};

struct summary_idle {
    bool known;
    double seconds;
    struct summary_idle_device {
        const char *id;
        double watts, plus_minus;
    } *devices;
    size_t count;
};

struct summary_device {
    const char *id;
    bool in_total; /* part of the run's energy */
    struct record_energy energy;
    double power_mean_w, power_max_w, residual; /* residual: of the cross-check */
};

/* The state of the machine during the measurement (attribute/conditions.h), and findings that may have affected the
 * figures.  Plain data without pointers: it may be copied. */
/* Shares of time in which units of a GPU were active. */
enum summary_activity {
    SUMMARY_SM_ACTIVE,
    SUMMARY_SM_OCCUPANCY,
    SUMMARY_DRAM_ACTIVE,
    SUMMARY_TENSOR_ACTIVE,
    SUMMARY_FP64_ACTIVE,
    SUMMARY_FP32_ACTIVE,
    SUMMARY_FP16_ACTIVE,
    SUMMARY_UTILIZATION, /* as nvidia-smi has it */
    SUMMARY_ACTIVITIES
};

struct summary_condition { /* of one device; UNKNOWN without such a sensor */
    char id[DEVICE_NAME_SIZE];
    double idle_w, idle_after_w;
    double temperature_begin_c, temperature_end_c;
    double clock_mhz;         /* mean */
    double throttled_share;   /* share of the time */
    char activity_source[16]; /* "gpm", "dcgmi", "utilization"; "": no GPU, or unknown */
    double activity[SUMMARY_ACTIVITIES];
};

struct summary_gpu_process { /* of processes other than the measured ones */
    char device[DEVICE_NAME_SIZE];
    int64_t pid;
    char name[16]; /* "" if unknown */
    double memory_bytes;
    double utilization_pct; /* mean over the measured time */
};

enum { SUMMARY_FINDINGS_MAX = 8, SUMMARY_CONDITIONS_MAX = 32, SUMMARY_GPU_PROCESSES_MAX = 64 };

struct summary_conditions {
    double seconds; /* duration of the measurement */
    int64_t cpus;
    double cpu_busy_s, cpu_own_s; /* CPU time of all processes; of the measured ones and ipw */
    double background_cpus,
        background_cpus_plus_minus; /* mean number of CPUs used by other processes */
    double background_gpu_pct;      /* mean utilization by other processes, of the most used GPU */
    int64_t background_gpu_processes;
    struct summary_gpu_process gpu_processes[SUMMARY_GPU_PROCESSES_MAX];
    size_t gpu_process_count;
    double background_joules; /* active CPU energy of other processes */
    double idle_w, idle_plus_minus, idle_after_w,
        idle_after_plus_minus; /* of the counted devices */
    double idle_cpus;          /* busy CPUs while idle power was measured */
    int64_t idle_tries;        /* attempts until idle power was accepted, or given up */
    struct summary_condition devices[SUMMARY_CONDITIONS_MAX];
    size_t device_count;
    struct finding findings[SUMMARY_FINDINGS_MAX]; /* core/finding.h */
    size_t finding_count;
};

struct summary {
#define SUMMARY(member, type, path, ...) FIELD_C_##type member;
#define SUMMARY_GROUP(type, member)      struct type member;
#include "rundir/record.def"
    struct summary_interval accuracy_interval;
    struct summary_quality qualities[SUMMARY_QUALITIES_MAX]; /* the first is the grader's own */
    size_t quality_count;
    struct summary_statistic statistics[RECORD_STATISTICS];
    struct summary_idle idle;
    struct summary_device *devices;
    size_t device_count;
    const struct traces *traces; /* of an agent's run, to be written; not owned; or NULL */
    struct jv *tree;             /* owner of the strings if it was read; or NULL */
};

/* Sets everything to unknown. */
void summary_init(struct summary *summary);
/* Sets the position among repeats; borrows its strings. */
void summary_set_repeat(struct summary *summary, const struct run_repeat *repeat);
void summary_release(struct summary *summary);

/* summary.json; on one line unless `pretty`. */
void summary_to_json(const struct summary *summary, bool pretty, struct text *out);

/* The result of `ipw profile`: the figures of "ipw", as members of the open group, with secrets hidden. */
void summary_put_report(const struct summary *summary, struct result *out);

/* Computes cost and emissions of the run, in total and per query and token, from its tariff and other figures. */
void summary_charge(struct summary *run);

/* Wall time x devices, in s, as used by summary_charge.  For runs that did not record it, from their devices. */
double summary_device_seconds(const struct summary *summary);

/* The conditions alone, written to or read from a member of an object. */
void summary_conditions_init(struct summary_conditions *conditions); /* sets all to unknown */
/* Sets the findings: the most severe of these, in order. */
void summary_conditions_find(struct summary_conditions *conditions, struct findings *found);
void summary_conditions_to_json(struct json *json, const char *key,
                                const struct summary_conditions *conditions);
void summary_conditions_from_json(const struct jv *value, struct summary_conditions *out);

/* Takes ownership of the tree, also if it fails; ERR_BAD_VALUE: not an object. */
enum err summary_from_json(struct jv *tree, struct summary *out, struct error *why) MUST_USE;

/* Values that records have under the same path, as a tree to be merged into each: the machine, which the journal leaves out.
 * The caller frees it.  `summary` may be NULL. */
struct jv *summary_constants(const struct summary *summary, const char *model);

/* From a run directory.  ERR_NOT_FOUND: no such file: the run has not ended. */
enum err summary_load(const char *directory, struct summary *out, struct error *why) MUST_USE;
/* The mtime of the file, in ns since 1970; INTEGER_UNKNOWN without one. */
int64_t summary_written_at(const char *directory);
/* Whether the run is complete. */
bool summary_is_complete(const char *directory);
enum err summary_save(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Fills in fields that are not figures, such as options and the machine, if all parts have the same value.  Strings
 * point into the first part. */
void summary_common(const struct summary *parts, size_t count, struct summary *out);

/* ---- the table of figures ---- */

enum summary_role { SUMMARY_IS_FIELD, SUMMARY_IS_NULLABLE, SUMMARY_IS_LIST };

struct summary_field {
    struct json_field at;
    enum summary_role role;
    bool report;
    const char *index_name;                            /* column of the run index; NULL: none */
    const char *gauge_name, *gauge_help, *gauge_label; /* NULL: no gauge */
    const char *label, *heading, *unit;                /* NULL: not shown in pages */
    enum better better;
};

extern const struct summary_field SUMMARY_FIELDS[]; /* as in summary.json; the last has no path */

/* Columns of the run index. */
enum summary_index {
    SUMMARY_INDEX_none = -1,
#define INDEX(name, heading) (SUMMARY_INDEX_##name, )
#include "rundir/record.def"
    SUMMARY_INDEXES
};
extern const char *const SUMMARY_HEADINGS[SUMMARY_INDEXES]; /* in tables for a terminal */

/* By their places in the order of the index, from 0. */
const struct summary_field *summary_index(size_t place);
size_t summary_index_place(enum summary_index index);

/* Gauges, from 0, in their order. */
enum {
    SUMMARY_GAUGES = 0
#define GAUGE(name, help, label) (+1)
#include "rundir/record.def"
};
const struct summary_field *summary_gauge(size_t place);

/* "columns" of a run's table and "figures", by their name in the index or the file: {key: {"label", "heading", "unit"}} */
void summary_labels_to_json(struct json *json);

/* The text of a column of the run index; NULL if there is none.  For a run of the Python IPW, `dataset` is its name. */
const char *summary_index_text(const struct summary_field *column, const struct summary *summary);

/* ---- the prediction ---- */

/* Predictions of `ipw estimate` for one request: type, member (the key in the HTML report), path in estimate.json. */
#define RUN_ESTIMATE(FIELD)                                                                        \
    FIELD(TEXT, hardware, "hardware_name")                                                         \
    FIELD(TEXT, precision, "precision")                                                            \
    FIELD(TEXT, confidence, "confidence")                                                          \
    FIELD(NUMBER, batch, "batch")                                                                  \
    FIELD(NUMBER, prompt_tokens, "setting.prompt_tokens")                                          \
    FIELD(NUMBER, output_tokens, "setting.output_tokens")                                          \
    FIELD(NUMBER, joules_per_query, "request.energy_j")                                            \
    FIELD(NUMBER, joules_per_query_plus_minus, "request.plus_minus")                               \
    FIELD(NUMBER, joules_per_output_token, "each.energy_j")                                        \
    FIELD(NUMBER, joules_per_output_token_plus_minus, "each.plus_minus")                           \
    FIELD(NUMBER, busy_watts, "power_w.average")                                                   \
    FIELD(NUMBER, busy_watts_plus_minus, "power_w.plus_minus")                                     \
    FIELD(NUMBER, latency_s, "latency_s")                                                          \
    FIELD(NUMBER, latency_s_plus_minus, "latency_plus_minus")                                      \
    FIELD(NUMBER, time_to_first_token_s, "request.first_token_s")                                  \
    FIELD(NUMBER, output_tokens_per_s, "request.tokens_per_s")

struct run_estimate {
#define MEMBER(type, member, path) FIELD_C_##type member;
    RUN_ESTIMATE(MEMBER)
#undef MEMBER
    struct jv *tree; /* owner of the strings */
};

/* From DIR/estimate.json, placed there by the user: ERR_NOT_FOUND: no file, ERR_BAD_VALUE: not an estimate of a
 * request. Always release it. */
enum err run_estimate_load(const char *directory, struct run_estimate *out, struct error *why)
    MUST_USE;
void run_estimate_release(struct run_estimate *estimate);

#endif
