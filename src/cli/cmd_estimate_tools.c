/* ipw estimate calibrate: the energy of an operation, a byte and a second on a device, fitted to measurements.
 * ipw estimate validate: predictions compared with measurements.
 *
 *   $ ipw estimate calibrate --seconds 60 -o mine.json
 *   $ ipw estimate calibrate --csv gpu.csv --hardware h200 -o mine.json
 *   $ ipw estimate validate --hardware-file mine.json runs/profile_H200_m_d --max-mape 30
 *
 * Reports go to stdout, progress to stderr; a refused calibration is one line and exit status 1, as is a validation
 * that exceeds --max-mape. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "catalog/hardware.h"
#include "catalog/hardware_json.h"
#include "cli/common.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/params.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate.h"
#include "estimate/calibrate_rows.h"
#include "estimate/validate.h"
#include "port/proc.h"
#include "report/text/reports.h"
#include "runner/microbench/microbench.h"
#include "runner/op_timings.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "sensors/system/host_info.h"

#define CALIBRATE     "estimate calibrate"
#define VALIDATE      "estimate validate"

#define CPU_SHARE_MIN 0.9  /* minimum share of a window: with less, other processes disturbed it */
#define BUDGET_SHARE  5e-4 /* share of the windows' time for each timed operation */

/* How the rows of a run are predicted or counted. */
struct predictor_options {
    const char *model, *precision, *runtime;
    bool no_fusion;
    double host_launch_us;
};

static enum err init_predictor(const struct predictor_options *options,
                               const struct hardware *hardware, struct predictor *out,
                               struct error *why)
{
    struct error unknown = {0};
    predictor_init(out, hardware);
    out->model_word = options->model;
    out->fusion = options->no_fusion ? PARTITION_PLAIN : PARTITION_FUSED;
    out->has_precision = options->precision != NULL;
    out->host_launch_s = 1e-6 * options->host_launch_us;
    if (options->runtime && options->no_fusion)
        return err_set(why, ERR_USAGE,
                       "--no-fusion contradicts --runtime, which determines what is fused");
    if (options->runtime && runtime_find(options->runtime, &out->runtime, &unknown))
        return err_set(why, ERR_USAGE, "--runtime: %s", unknown.text);
    out->has_default_runtime = !options->runtime && !options->no_fusion;
    if (options->runtime)
        out->fusion = runtime_fusion(out->runtime, hardware);
    if (options->precision && precision_find(options->precision, &out->precision, &unknown))
        return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    return ERR_OK;
}

/* ---- calibrate ---- */

struct calibrate_command {
    struct measure_options measure;
    struct microbench_options bench;
    struct calibrate_options fit;
    struct predictor_options predictor;
    struct option_list files, runs, given;
    const char *hardware, *output, *rows, *given_source, *runtime;
    unsigned seed;
    bool quiet;
    struct format_options format;
};

/* CPU times, since boot and since the program started. */
struct cpu_use {
    struct cpu_times all;
    double own_s;
    nanos t;
    bool is_known;
};

/* State of a calibration. */
struct calibrate_work {
    struct calibrate_rows rows;
    struct calibration calibration;
    struct hardware base;
    bool has_base;
    struct text data;                         /* source of the rows */
    char device[96];                          /* name in the rows or on this machine */
    struct timings timings[TIMINGS_RUNTIMES]; /* llama.cpp, ONNX Runtime */
    struct cpu_use before;
    char no_energy[240]; /* why no energy was measured; or "" */
};

static void show_progress(const char *load, unsigned done, unsigned all)
{
    bool on_terminal = clear_progress();
    notify(CALIBRATE ": window %u of %u: %s", done + 1, all, load);
    if (!on_terminal)
        notify("\n");
}

static enum err read_rows(const struct calibrate_command *command, struct calibrate_work *work,
                          struct error *why)
{
    struct predictor counter;
    enum err err = init_predictor(&command->predictor, NULL, &counter, why);
    for (size_t i = 0; !err && i < command->files.count; i++) {
        const char *path = command->files.items[i], *slash = strrchr(path, '/');
        err = calibrate_rows_read(path, &work->rows, why);
        text_addf(&work->data, "%s%s", i ? ", " : "", slash ? slash + 1 : path);
    }
    for (size_t i = 0; !err && i < command->runs.count; i++) {
        const char *path = command->runs.items[i];
        err = measurements_calibrate(path, &counter, &work->rows, why);
        text_addf(&work->data, "%s%s", work->data.length ? ", " : "", path);
    }
    predictor_release(&counter);
    chars_copy(work->device, work->rows.hardware);
    str_plain(work->device, sizeof work->device);
    return err;
}

static struct cpu_use read_use(void)
{
    struct cpu_use use = {.own_s = (double)clock() / CLOCKS_PER_SEC, .t = clock_now()};
    use.is_known = proc_stat_now(&use.all);
    return use;
}

/* Other load during the measurement, for a message. */
static void describe_others(const struct calibrate_work *work, char *to, size_t size)
{
    struct cpu_use now = read_use();
    const struct cpu_use *before = &work->before;
    double ticks = (double)sysconf(_SC_CLK_TCK), took = seconds(now.t - before->t);
    double busy = (double)(now.all.busy - before->all.busy) / ticks - (now.own_s - before->own_s);
    double stolen = (double)(now.all.stolen - before->all.stolen) / ticks;
    if (now.is_known && before->is_known && took > 0)
        str_format(to, size,
                   "meanwhile other processes used %.1f CPUs and other virtual machines %.1f",
                   busy > 0 ? busy / took : 0, stolen / took);
    else
        str_copy(to, size, "CPU use of other processes is unknown");
}

static int refuse_busy(struct calibrate_work *work, const struct error *why)
{
    char others[120];
    describe_others(work, others, sizeof others);
    return print_error(
        EXIT_FAILED,
        "refused: %s; %s. Stop them, use fewer threads, or raise the priority: chrt -r 1 "
        "ipw " CALIBRATE,
        why->text, others);
}

static bool runtime_is(const struct calibrate_command *command, const char *runtime)
{
    return str_equal(command->runtime, runtime);
}

static int time_operations(const struct calibrate_command *command, struct calibrate_work *work)
{
    static const char *const NAMES[TIMINGS_RUNTIMES] = {"llama.cpp", "ONNX Runtime"};
    bool is_all = runtime_is(command, "all");
    const struct timings_options options = {
        .threads = microbench_threads(&command->bench),
        .budget_s = command->bench.seconds * BUDGET_SHARE,
        .progress = command->bench.progress,
        .skips_llama = !is_all && !runtime_is(command, "llama.cpp"),
        .skips_onnx = !is_all && !runtime_is(command, "onnxruntime")};
    struct error why = {0};
    enum err err = timings_measure(&options, work->timings, &why);
    clear_progress();
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++) {
        const struct timings *timings = &work->timings[i];
        if (timings->signal)
            return 128 + timings->signal;
        if (!err && timings->missing[0])
            log_warn("operators of %s were not timed: %s", NAMES[i], timings->missing);
        if (!err && timings->unsettled[0])
            log_warn("%s: the shortest time is used for them", timings->unsettled);
    }
    return err == ERR_BUSY ? refuse_busy(work, &why) : err ? print_failure(&why) : 0;
}

/* Rates are over the time that the loads ran; joules include everything that ran. */
static void warn_of_others(struct calibrate_work *work, const struct microbench_meter *meter)
{
    char others[120];
    describe_others(work, others, sizeof others);
    if (meter->min_cpu_share < CPU_SHARE_MIN)
        log_warn("the load's threads had a CPU for only %.0f %% of a window; %s: %s",
                 100 * meter->min_cpu_share, others,
                 meter->no_energy[0] ? "rates are over the time that they ran"
                                     : "energy includes other processes");
}

static int measure_rows(const struct calibrate_command *command, struct calibrate_work *work)
{
    static struct session session; /* not closed: see cmd_run.c */
    struct microbench_meter meter;
    struct error why = {0};
    proc_block_signals();
    int code = open_session(&command->measure, &session);
    if (code)
        return code;
    work->before = read_use();
    struct microbench_options first = command->bench;
    first.only_rates = true; /* repeated after the operations: the best of both is used */
    enum err err = microbench_measure(&session, &first, &work->rows, &meter, &why);
    if (!err)
        code = time_operations(command, work);
    if (code)
        return code;
    if (!err)
        err = microbench_measure(&session, &command->bench, &work->rows, &meter, &why);
    clear_progress();
    if (!err)
        warn_of_others(work, &meter);
    sampler_stop(session.sampler);
    if (meter.signal)
        return 128 + meter.signal;
    if (err)
        return print_error(err == ERR_NO_DATA ? EXIT_NOT_MEASURED : EXIT_FAILED, "%s", why.text);
    chars_copy(work->device, meter.host);
    chars_copy(work->no_energy, meter.no_energy);
    text_addf(&work->data, "built-in loads on %u threads", meter.threads);
    if (!meter.no_energy[0])
        text_addf(&work->data, ", %s (%s)", meter.devices, meter.source);
    return 0;
}

/* Before the fit, so that a refused fit does not lose minutes of measuring. */
static enum err save_rows(const struct calibrate_command *command,
                          const struct calibrate_work *work, struct error *why)
{
    struct text text = {0};
    if (!command->rows)
        return ERR_OK;
    calibrate_rows_csv(&work->rows, work->device, &text);
    enum err err = write_file(command->rows, &text, why);
    text_release(&text);
    return err;
}

static int report_calibration(const struct calibrate_command *command,
                              const struct calibrate_work *work)
{
    struct hardware_timings tables[TIMINGS_RUNTIMES] = {{0}};
    size_t table_count = 0;
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++)
        if (work->timings[i].table.count)
            tables[table_count++] = work->timings[i].table;
    struct calibrate_outcome outcome = {
        .calibration = &work->calibration,
        .origin = {.hardware = work->device,
                   .base = work->has_base ? &work->base : NULL,
                   .data = text_get(&work->data),
                   .given_source =
                       command->given_source ? command->given_source : "given by the user",
                   .timings = tables,
                   .timing_count = table_count},
        .file = command->output,
        .no_energy = work->no_energy,
    };
    struct result result = {0};
    struct text file = {0};
    struct error why = {0};
    int code = 0, written = 0;
    if (command->output &&
        (calibrate_hardware(&work->calibration, &outcome.origin, &file, &why) != ERR_OK ||
         write_file(command->output, &file, &why) != ERR_OK)) {
        code = print_failure(&why);
        outcome.file = NULL;
    }
    calibration_to_result(&outcome, &result);
    if (!is_dash(command->output))
        written =
            deliver_printed(NULL, &result, format_chosen(&command->format, NULL), &CALIBRATE_VIEWS);
    text_release(&file);
    result_release(&result);
    return written ? written : code;
}

static int calibrate(const struct calibrate_command *command, struct calibrate_work *work)
{
    struct error why = {0};
    enum err err = ERR_OK;
    if (command->files.count + command->runs.count == 0) {
        int code = measure_rows(command, work);
        if (code)
            return code;
    } else {
        err = read_rows(command, work, &why);
    }
    if (!err)
        err = save_rows(command, work, &why);
    if (!err && calibrate_find_base(command->hardware, work->device, &work->base, &work->has_base,
                                    &why) != ERR_OK)
        err = ERR_USAGE;
    if (!err && work->no_energy[0])
        err = calibrate_rates(&work->rows, &work->calibration, &why);
    else if (!err)
        err = calibrate_fit(&work->rows, &command->fit, &work->calibration, &why);
    if (err)
        return print_err(err, &why);
    int code = report_calibration(command, work);
    calibration_release(&work->calibration);
    return code;
}

static enum err take_given(struct calibrate_command *command, struct error *why)
{
    struct params given = {0};
    enum err err = options_pairs("given", &command->given, &given, why);
    for (size_t i = 0; i < given.count && !err; i++)
        err = calibrate_give(&command->fit, given.items[i].key, given.items[i].value, why);
    if (!err && command->given_source && !given.count)
        err = err_set(why, ERR_USAGE, "--given-source without --given");
    params_release(&given);
    return err;
}

static struct calibrate_command calibrate_args = {
    .bench = {.seconds = 25}, .seed = 1, .runtime = "all"};

static const struct option_row CALIBRATE_ROWS[] = {
    LIST_ROW("csv", calibrate_args.files, "FILE",
             "fit to the rows of this file; may be repeated (default: measure here)"),
    LIST_ROW("from", calibrate_args.runs, "RUN",
             "fit to a run of `ipw profile` or a result of `ipw layers`; may be repeated"),
    TEXT_ROW("model", calibrate_args.predictor.model, "FILE|NAME",
             "with --from: use this model instead of the recorded one", .letter = 'm'),
    TEXT_ROW("precision", calibrate_args.predictor.precision, "NAME",
             "with --from: compute precision (default: fp32, weights as stored)", .letter = 'p'),
    TEXT_ROW("hardware", calibrate_args.hardware, "ID",
             "device of `ipw list hardware` for unfitted figures (default: by name)"),
    LIST_ROW("given", calibrate_args.given, "KEY=NUMBER",
             "pj-per-byte or constant-w: hold this coefficient fixed"),
    TEXT_ROW("given-source", calibrate_args.given_source, "TEXT",
             "source of that coefficient, for the hardware file"),
    OUTPUT_ROW("output", calibrate_args.output, "FILE", "write the hardware file", .letter = 'o'),
    TEXT_ROW("rows", calibrate_args.rows, "FILE",
             "save the rows as CSV for --csv, even if the fit is refused"),
    NUMBER_ROW("seconds", calibrate_args.bench.seconds, "S",
               "total time of the windows measured here (default: 25)", .min = 1, .max = 86400),
    TEXT_ROW("runtime", calibrate_args.runtime, "NAME",
             "time operators of llama.cpp, onnxruntime, all (default) or none"),
    COUNT_ROW("threads", calibrate_args.bench.threads, "N",
              "threads per load (default: one per CPU)", .min = 1, .max = 4096, .letter = 't'),
    TEXT_ROW("device", calibrate_args.bench.device, "ID",
             "device to measure: cpu0, psys (default: CPUs and their memory)"),
    FLAG_ROW("allow-estimated", calibrate_args.fit.allow_estimated,
             "accept energy estimated by a model, and label the result"),
    COUNT_ROW("seed", calibrate_args.seed, "N",
              "random seed of the bootstrap intervals (default: 1)", .max = 4e9),
    REPORT_FORMAT_OPTION_ROWS(calibrate_args.format),
    FLAG_ROW("quiet", calibrate_args.quiet, "no progress", .letter = 'q'),
    MEASURE_OPTION_ROWS(calibrate_args.measure, NULL),
    {0},
};

static int calibrate_main(const char **words, size_t count)
{
    (void)words, (void)count;
    struct calibrate_command *o = &calibrate_args;
    struct calibrate_work work = {0};
    struct error why = {0};
    if (take_given(o, &why) != ERR_OK)
        return print_error(EXIT_USAGE, "%s", why.text);
    o->fit.seed = o->seed;
    o->fit.allow_estimated &= !o->measure.require_energy;
    o->bench.allow_estimated = o->fit.allow_estimated;
    o->bench.requires_energy = o->measure.require_energy;
    if (!str_equal(o->runtime, "llama.cpp") && !str_equal(o->runtime, "onnxruntime") &&
        !str_equal(o->runtime, "all") && !str_equal(o->runtime, "none"))
        return print_error(EXIT_USAGE, "--runtime %.40s: llama.cpp, onnxruntime, all or none",
                           o->runtime);
    if (!o->quiet)
        o->bench.progress = show_progress;
    int code = calibrate(o, &work);
    calibrate_rows_release(&work.rows);
    if (work.has_base)
        hardware_release(&work.base);
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++)
        timings_release(&work.timings[i]);
    text_release(&work.data);
    return code;
}

const struct command command_estimate_calibrate = {
    .name = CALIBRATE,
    .summary = "fit the energy model of a device to measurements",
    .usage = "[--csv FILE] [--from RUN] [--hardware ID] [-o FILE] [OPTIONS]",
    .details =
        "Fits energy per operation, energy per byte and the constant power of a device to\n"
        "measured windows: from a CSV file, from a run, or from loads that run here (idle,\n"
        "arithmetic, memory, mixtures, matrix products). Rows that cannot separate these\n"
        "coefficients, are too short for the sensor, or make a coefficient negative are refused\n"
        "with the reason.\n\n"
        "When measuring here, it also times operators of llama.cpp on this CPU (products with\n"
        "weights of each precision, attention, norms), from which `ipw estimate --runtime\n"
        "llama.cpp` composes models; operators of ONNX Runtime (convolutions, products,\n"
        "elementwise operators) if libonnxruntime is installed or given by IPW_ONNXRUNTIME_LIB;\n"
        "and the bandwidth of the caches. Without an energy meter the file has times only. This\n"
        "takes one to two minutes by default. Operators are timed in rounds, and the minimum is\n"
        "used; if other processes disturb them so much that the rounds do not agree, or that\n"
        "several threads are slower than one, calibration is refused, and the CPU usage of other\n"
        "processes is reported.\n\n"
        "-o writes a hardware file for `ipw estimate --hardware-file`. research/calibrate-gpu.py\n"
        "measures a CSV on an NVIDIA GPU.",
    .rows = CALIBRATE_ROWS,
    .run = calibrate_main,
};

/* ---- validate ---- */

struct validate_command {
    struct option_list files, where_words;
    const char *hardware, *hardware_file, *leave_out, *output;
    struct predictor_options predictor;
    struct params where;
    double max_percent;
    struct format_options format;
};

static int report_validation(const struct validate_command *command,
                             const struct hardware *hardware, const struct validation *validation,
                             const char *data)
{
    const struct validate_outcome outcome = {
        .validation = validation,
        .hardware = hardware,
        .data = data,
        .max = command->max_percent > 0 ? command->max_percent / 100 : UNKNOWN,
    };
    struct result result = {0};
    validation_to_result(&outcome, &result);
    int code = deliver_printed(command->output, &result,
                               format_chosen(&command->format, command->output), &VALIDATE_VIEWS);
    if (!code && is_known(outcome.max) && !result_flag_at(result.items, "pass"))
        code = EXIT_FAILED;
    result_release(&result);
    return code;
}

static enum err read_measurements(const struct validate_command *command, const char **words,
                                  size_t count, struct predictor *predictor, struct validation *out,
                                  struct text *data, struct error *why)
{
    size_t files = command->files.count;
    for (size_t i = 0; i < files + count; i++) {
        const char *word = i < files ? command->files.items[i] : words[i - files];
        enum err err = measurements_validate(word, &command->where, predictor, out, why);
        if (err)
            return err;
        text_addf(data, "%s%s", i ? ", " : "", word);
    }
    if (out->count == 0)
        return err_set(why, ERR_NO_DATA, "%s: no rows to compare%s", text_get(data),
                       out->other_rows ? " (--where selects none)" : "");
    return ERR_OK;
}

static int validate(const struct validate_command *command, const char **words, size_t count)
{
    struct hardware hardware = {0};
    struct predictor predictor;
    struct validation validation = {.leave_out = command->leave_out};
    struct text data = {0};
    struct error why = {0};
    if (command->files.count + count == 0)
        return print_error(EXIT_USAGE,
                           "missing measurements: give --csv, a run or a result of ipw layers");
    if (!command->hardware == !command->hardware_file)
        return print_error(EXIT_USAGE, "give either --hardware or --hardware-file");
    enum err err = command->hardware ? hardware_find(command->hardware, &hardware, &why)
                                     : hardware_read(command->hardware_file, &hardware, &why);
    if (err)
        return print_error(command->hardware ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    err = init_predictor(&command->predictor, &hardware, &predictor, &why);
    if (!err)
        err = read_measurements(command, words, count, &predictor, &validation, &data, &why);
    int code = err ? print_err(err, &why)
                   : report_validation(command, &hardware, &validation, text_get(&data));
    predictor_release(&predictor);
    validation_release(&validation);
    hardware_release(&hardware);
    text_release(&data);
    return code;
}

static struct validate_command validate_args = {.predictor = {.host_launch_us = UNKNOWN}};

static const struct option_row VALIDATE_ROWS[] = {
    TEXT_ROW("hardware", validate_args.hardware, "ID",
             "device of `ipw list hardware` to predict for"),
    TEXT_ROW("hardware-file", validate_args.hardware_file, "FILE", "a device described in a file"),
    LIST_ROW("csv", validate_args.files, "FILE", "measured rows; may be repeated"),
    TEXT_ROW("model", validate_args.predictor.model, "FILE|NAME",
             "use this model instead of the one named by the measurements", .letter = 'm'),
    TEXT_ROW("precision", validate_args.predictor.precision, "NAME",
             "predict in this precision (default: that of the measurements)", .letter = 'p'),
    LIST_ROW("where", validate_args.where_words, "COLUMN=VALUE",
             "select rows of a CSV; may be repeated"),
    FLAG_ROW("no-fusion", validate_args.predictor.no_fusion,
             "no operator fusion: one kernel per operation, as in eager mode"),
    TEXT_ROW("runtime", validate_args.predictor.runtime, "NAME",
             "runtime: vllm ... (default: that of the rows, or by model and device)"),
    NUMBER_ROW("host-launch-us", validate_args.predictor.host_launch_us, "US",
               "host time to launch an operator (default: by the rows); 0: unknown", .max = 1e5),
    TEXT_ROW("leave-out", validate_args.leave_out, "COLUMN",
             "also correct each group by the others, by this column: family"),
    NUMBER_ROW("max-mape", validate_args.max_percent, "PERCENT",
               "exit 1 if the mean error of time or energy is larger", .min = 0.001, .max = 1e6),
    FORMAT_OPTION_ROWS(validate_args.format),
    OUTPUT_OPTION_ROW(validate_args.output),
    {0},
};

static int validate_main(const char **words, size_t count)
{
    struct validate_command *o = &validate_args;
    struct error why = {0};
    int code = options_pairs("where", &o->where_words, &o->where, &why)
                   ? print_error(EXIT_USAGE, "%s", why.text)
                   : validate(o, words, count);
    params_release(&o->where);
    return code;
}

const struct command command_estimate_validate = {
    .name = VALIDATE,
    .summary = "compare predictions with measurements",
    .usage = "--hardware ID [--csv FILE] [RUN|LAYERS.json] [OPTIONS]",
    .details = "Predicts the measurements and reports the errors of time and energy, by "
               "bottleneck.\nMeasurements are passes of models or single loads in a CSV file, the "
               "queries of a run of\n`ipw profile`, or the settings of `ipw layers --json`. "
               "Energies of windows shorter than a\nmillisecond are not compared.",
    .rows = VALIDATE_ROWS,
    .words = WORDS_ANY,
    .run = validate_main,
};
