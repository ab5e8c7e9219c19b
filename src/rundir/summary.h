/* The summary of a run: its figures as a whole.  The members come from record.def, which also says where each
 * is in summary.json, in the run index and among the Prometheus gauges.
 *
 * Ownership: a summary owns its arrays and, when it was read, the tree that its texts point into:
 * summary_release frees both.  Texts that the runner fills in belong to the runner. */
#ifndef IPW_RUNDIR_SUMMARY_H
#define IPW_RUNDIR_SUMMARY_H

#include "core/energy.h"
#include "core/err.h"
#include "core/quantity.h"
#include "rundir/record.h"

struct json;
struct jv;
struct text;
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
    bool in_total; /* its energy is in the run's */
    struct record_energy energy;
    double power_mean_w, power_max_w, residual; /* residual: of the cross-check */
};

/* What the machine was like while it was measured (attribute/conditions.h), and what of it may have changed the
 * figures.  Plain data without pointers: it may be copied. */
enum finding_severity {
    FINDING_NOTE,    /* to know */
    FINDING_WARNING, /* figures are less certain than their ± says */
    FINDING_BREAKS,  /* figures say little of what was measured: not to be compared */
};

struct summary_finding {
    char code[32]; /* "background_cpu" ... (docs/formats.md) */
    enum finding_severity severity;
    char text[240]; /* one sentence */
};

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

struct summary_condition { /* of one device; UNKNOWN where it has no such sensor */
    char id[DEVICE_NAME_SIZE];
    double idle_w, idle_after_w;
    double temperature_begin_c, temperature_end_c;
    double clock_mhz;         /* mean */
    double throttled_share;   /* of the time */
    char activity_source[16]; /* "gpm", "dcgmi", "utilization"; "": no GPU, or nothing known */
    double activity[SUMMARY_ACTIVITIES];
};

struct summary_gpu_process { /* of others than what was measured */
    char device[DEVICE_NAME_SIZE];
    int64_t pid;
    char name[16]; /* "" where it is unknown */
    double memory_bytes;
    double utilization_pct; /* mean over the measured time */
};

enum { SUMMARY_FINDINGS_MAX = 8, SUMMARY_CONDITIONS_MAX = 32, SUMMARY_GPU_PROCESSES_MAX = 64 };

struct summary_conditions {
    double seconds; /* measured */
    int64_t cpus;
    double cpu_busy_s, cpu_own_s; /* CPU time of all processes; of what was measured, with ipw */
    double background_cpus,
        background_cpus_plus_minus; /* mean number that other processes kept busy */
    double background_gpu_pct;      /* mean utilization by other processes, of the most used GPU */
    int64_t background_gpu_processes;
    struct summary_gpu_process gpu_processes[SUMMARY_GPU_PROCESSES_MAX];
    size_t gpu_process_count;
    double background_joules; /* that other processes used on the CPUs, above idle */
    double idle_w, idle_plus_minus, idle_after_w,
        idle_after_plus_minus; /* of the counted devices */
    double idle_cpus;          /* busy CPUs while idle power was measured */
    int64_t idle_tries;        /* measurements of idle power until one was accepted, or none was */
    struct summary_condition devices[SUMMARY_CONDITIONS_MAX];
    size_t device_count;
    struct summary_finding findings[SUMMARY_FINDINGS_MAX];
    size_t finding_count;
};

struct summary {
#define SUMMARY(member, type, path, views) FIELD_C_##type member;
#define SUMMARY_GROUP(type, member)        struct type member;
#include "rundir/record.def"
    struct summary_interval accuracy_interval;
    struct summary_statistic statistics[RECORD_STATISTICS];
    struct summary_idle idle;
    struct summary_device *devices;
    size_t device_count;
    const struct traces *traces; /* of an agent's run, to be written; not owned, NULL without */
    struct jv *tree;             /* what it was read from; NULL when it was filled in */
};

/* All of it unknown. */
void summary_init(struct summary *summary);
void summary_release(struct summary *summary);

/* summary.json; on one line unless `pretty`. */
void summary_to_json(const struct summary *summary, bool pretty, struct text *out);

/* What `ipw profile --json` prints: the figures of "ipw", one object. */
void summary_to_report(const struct summary *summary, struct text *out);

/* Fills in what the run costs and emits, in total and per query and token, from its tariff and its other figures. */
void summary_charge(struct summary *summary);

/* Wall time x devices, s: what summary_charge counts.  Of runs that did not record it, by their devices. */
double summary_device_seconds(const struct summary *summary);

/* The conditions alone, as a member of an open object; and from such a member. */
void summary_conditions_init(struct summary_conditions *conditions); /* all of it unknown */
void summary_conditions_to_json(struct json *json, const char *key,
                                const struct summary_conditions *conditions);
void summary_conditions_from_json(const struct jv *value, struct summary_conditions *out);

/* Takes the tree over, also when it fails; ERR_BAD_VALUE when it is no object. */
enum err summary_from_json(struct jv *tree, struct summary *out, struct error *why) MUST_USE;

/* Of a run directory.  ERR_NOT_FOUND without the file: the run has not ended. */
enum err summary_load(const char *directory, struct summary *out, struct error *why) MUST_USE;
/* Whether a run there is complete. */
bool summary_is_complete(const char *directory);
enum err summary_save(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Fills in what is no figure, such as options and the machine, as far as all of these agree on it.  Texts point into the
 * first. */
void summary_common(const struct summary *parts, size_t count, struct summary *out);

/* ---- the table of figures ---- */

enum summary_role { SUMMARY_IS_FIELD, SUMMARY_IS_NULLABLE, SUMMARY_IS_LIST };

struct summary_field {
    struct json_field at;
    enum summary_role role;
    bool report;
    unsigned index; /* column of the run index, from 1; 0: none */
    const char *index_name;
    unsigned gauge; /* from 1; 0: none */
    const char *gauge_name, *gauge_help, *gauge_label;
};

/* In the order of summary.json; a row without a path ends it. */
extern const struct summary_field SUMMARY_FIELDS[];

/* Columns of the run index and gauges, from 0. */
enum {
    SUMMARY_INDEXES = 0
#define SUMMARY(member, type, path, views)      views
#define SUMMARY_PART(member, type, path, views) views
#define INDEX(n, name)                          +1
#include "rundir/record.def"
};
enum {
    SUMMARY_GAUGES = 0
#define SUMMARY(member, type, path, views)      views
#define SUMMARY_PART(member, type, path, views) views
#define GAUGE(n, name, help, label)             +1
#include "rundir/record.def"
};
const struct summary_field *summary_index(size_t n);
const struct summary_field *summary_gauge(size_t n);

/* The text of a column of the run index; NULL without one.  A run of the Python IPW has `dataset` alone,
 * which then stands for its name.  `summary` may be NULL. */
const char *summary_index_text(const struct summary_field *column, const struct summary *summary);

/* ---- the prediction ---- */

/* What `ipw estimate` predicts for one request: type, member (which is the key of the HTML report too), path in
 * estimate.json. */
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
    struct jv *tree; /* which the texts point into */
};

/* Of DIR/estimate.json, which the user puts there: ERR_NOT_FOUND without it, ERR_BAD_VALUE when it holds no estimate
 * of a request.  Release it in any case. */
enum err run_estimate_load(const char *directory, struct run_estimate *out, struct error *why)
    MUST_USE;
void run_estimate_release(struct run_estimate *estimate);

#endif
