/* ipw estimate calibrate: what an operation, a byte and a second cost on a device, fitted to
 * measurements.
 *
 *   $ ipw estimate calibrate --seconds 60 -o mine.json
 *   $ ipw estimate calibrate --csv gpu.csv --hardware h200 -o mine.json
 *
 * The report goes to stdout, progress to stderr; a refusal is one line and exit status 1. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalog/hardware.h"
#include "cli/common.h"
#include "cli/estimate_queries.h"
#include "cli/estimate_tools.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate.h"
#include "estimate/calibrate_hardware.h"
#include "estimate/calibrate_layers.h"
#include "estimate/predictor.h"
#include "port/file.h"
#include "port/proc.h"
#include "report/text/calibrate_report.h"
#include "runner/host_report.h"
#include "runner/microbench/microbench.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define NAME "estimate calibrate"

static const struct command COMMAND = {
    .name = NAME,
    .summary = "fit the joules of a device to measurements",
    .usage = "[--csv FILE] [--from RUN] [--hardware ID] [-o FILE] [OPTIONS]",
    .details =
        "Fits joules an operation, joules a byte and the power that is drawn all the time to\n"
        "measured windows: of a CSV file or a run, or of loads that run here (rest, arithmetic, "
        "memory,\n"
        "mixtures, products of matrices). Rows that cannot tell these apart, that are too short\n"
        "for a sensor, or that make one of them negative are refused with the reason.\n\n"
        "-o writes a hardware file for `ipw estimate --hardware-file`. tools/calibrate-gpu.py\n"
        "measures a CSV on an NVIDIA GPU.",
};

struct calibrate_command {
    struct measure_options measure;
    struct microbench_options bench;
    struct calibrate_options fit;
    struct option_list files, runs, given_words;
    const char *hardware, *model, *precision, *output, *rows, *given_source;
    double joules_per_byte, constant_w; /* that fit points to, where they are given */
    unsigned seed;
    bool json, quiet;
};

/* What is put together on the way to a report. */
struct calibrate_work {
    struct calibrate_rows rows;
    struct calibration calibration;
    struct hardware base;
    bool has_base;
    struct text data; /* where the rows come from */
    char device[96];  /* as this machine calls it */
};

static bool on_terminal;

static void wipe(void)
{
    if (on_terminal)
        fprintf(stderr, "\r\033[K");
}

static void show_progress(const char *load, unsigned done, unsigned all)
{
    wipe();
    fprintf(stderr, NAME ": window %u of %u: %s%s", done + 1, all, load, on_terminal ? "" : "\n");
}

/* ---- rows ---- */

static int read_files(const struct calibrate_command *command, struct calibrate_work *work)
{
    struct error why = {0};
    for (size_t i = 0; i < command->files.count; i++) {
        const char *path = command->files.items[i], *slash = strrchr(path, '/');
        if (calibrate_rows_read(path, &work->rows, &why) != ERR_OK)
            return complain(NAME, EXIT_FAILED, "%s", why.text);
        text_addf(&work->data, "%s%s", i ? ", " : "", slash ? slash + 1 : path);
    }
    (void)str_copy(work->device, sizeof work->device, work->rows.hardware);
    str_plain(work->device);
    return 0;
}

struct run_reading {
    struct predictor *counter;
    struct calibrate_rows *rows;
};

/* A query that shared the machine has a share of its power, which is none of its own work. */
static enum err add_query(void *context, const struct estimate_query *query, struct error *why)
{
    struct run_reading *reading = context;
    struct predictor *counter = reading->counter;
    struct calibrate_row row = {.precision =
                                    counter->has_precision ? counter->precision : PRECISION_FP32,
                                .latency_s = query->latency_s,
                                .energy_j = query->joules,
                                .window_s = UNKNOWN,
                                .updates = query->is_short ? 0 : UNKNOWN,
                                .kernels = 1,
                                .is_estimated = query->is_estimated};
    if (!query->is_alone || !(query->latency_s > 0))
        return ERR_OK;
    (void)str_copy(row.label, sizeof row.label, query->label);
    enum err err = predictor_count(counter, &query->question, &row.flops, &row.bytes, why);
    return err ? err : calibrate_rows_add(reading->rows, &row, why);
}

static int read_runs(const struct calibrate_command *command, struct calibrate_work *work)
{
    struct predictor counter;
    struct error why = {0};
    enum err err = ERR_OK;
    predictor_init(&counter, NULL);
    counter.model_word = command->model;
    counter.has_precision = command->precision != NULL;
    if (command->precision &&
        precision_find(command->precision, &counter.precision, &why) != ERR_OK)
        return complain(NAME, EXIT_USAGE, "--precision: %s", why.text);
    for (size_t i = 0; !err && i < command->runs.count; i++) {
        const char *path = command->runs.items[i];
        struct run_reading reading = {&counter, &work->rows};
        err = file_is_directory(path) ? estimate_queries(path, add_query, &reading, &why)
                                      : calibrate_layers(path, &counter, &work->rows, &why);
        text_addf(&work->data, "%s%s", work->data.length ? ", " : "", path);
    }
    predictor_release(&counter);
    return err ? complain(NAME, EXIT_FAILED, "%s", why.text) : 0;
}

static int measure_here(const struct calibrate_command *command, struct calibrate_work *work)
{
    static struct session session; /* not closed: see cmd_run.c */
    struct microbench_meter meter;
    struct host_report host;
    struct error why = {0};
    proc_block_signals();
    int code = open_session(NAME, &command->measure, &session);
    if (code)
        return code;
    enum err err = microbench_measure(&session, &command->bench, &work->rows, &meter, &why);
    wipe();
    sampler_stop(session.sampler);
    if (meter.signal)
        return 128 + meter.signal;
    if (err)
        return complain(NAME, err == ERR_NO_DATA ? EXIT_NOT_MEASURED : EXIT_FAILED, "%s", why.text);
    host_report_take(&session.findings, &host);
    (void)str_copy(work->device, sizeof work->device, host.info.cpu_brand);
    text_addf(&work->data, "built-in loads on %u threads, %s (%s)", meter.threads, meter.devices,
              meter.source);
    return 0;
}

/* Minutes of measuring are not lost to a fit that is refused. */
static int keep_rows(const struct calibrate_command *command, const struct calibrate_work *work)
{
    struct text text = {0};
    struct error why = {0};
    if (!command->rows)
        return 0;
    calibrate_rows_csv(&work->rows, work->device, &text);
    enum err err = write_file(command->rows, &text, &why);
    text_release(&text);
    return err ? complain(NAME, EXIT_FAILED, "%s", why.text) : 0;
}

/* ---- the entry that keeps what is not fitted ---- */

/* The one that was named, or the one that the rows' own name means; none is no error. */
static int find_base(const struct calibrate_command *command, struct calibrate_work *work)
{
    struct error why = {0};
    char id[96];
    if (command->hardware) {
        if (hardware_find(command->hardware, &work->base, &why) != ERR_OK)
            return complain(NAME, EXIT_USAGE, "%s", why.text);
        work->has_base = true;
        return 0;
    }
    (void)str_copy(id, sizeof id, work->device);
    for (char *at = id; *at; at++)
        if (*at == '_')
            *at = '-';
    work->has_base = *id && (hardware_find_device(work->device, &work->base) ||
                             hardware_find(id, &work->base, &why) == ERR_OK);
    return 0;
}

/* ---- the report ---- */

static int deliver(const struct calibrate_command *command, const struct calibrate_work *work)
{
    struct calibrate_report report = {
        .calibration = &work->calibration,
        .hardware = work->device,
        .base = work->has_base ? &work->base : NULL,
        .data = text_get(&work->data),
        .given_source = command->given_source ? command->given_source : "by who calibrated",
        .file = command->output,
    };
    const struct calibrate_origin origin = {report.hardware, report.base, report.data,
                                            report.given_source};
    struct text file = {0}, out = {0};
    struct error why = {0};
    int code = 0;
    if (command->output &&
        (calibrate_hardware(&work->calibration, &origin, &file, &why) != ERR_OK ||
         write_file(command->output, &file, &why) != ERR_OK)) {
        code = complain(NAME, EXIT_FAILED, "%s", why.text);
        report.file = NULL;
    }
    if (command->json)
        calibrate_json(&report, &out);
    else
        calibrate_text(&report, wants_colour(STDOUT_FILENO), &out);
    int written = put_output(NAME, &out);
    text_release(&file);
    text_release(&out);
    return written ? written : code;
}

static int calibrate(const struct calibrate_command *command, struct calibrate_work *work)
{
    struct error why = {0};
    bool is_here = command->files.count + command->runs.count == 0;
    int code = is_here ? measure_here(command, work) : read_files(command, work);
    if (!code)
        code = read_runs(command, work);
    if (!code)
        code = keep_rows(command, work);
    if (!code)
        code = find_base(command, work);
    if (code)
        return code;
    if (calibrate_fit(&work->rows, &command->fit, &work->calibration, &why) != ERR_OK)
        return complain(NAME, EXIT_FAILED, "%s", why.text);
    code = deliver(command, work);
    calibration_release(&work->calibration);
    return code;
}

/* ---- what the rows cannot tell ---- */

static enum err take_given(struct calibrate_command *command, struct error *why)
{
    const struct {
        const char *key;
        double unit, *value;
        const double **given;
    } KEYS[] = {
        {"pj-per-byte", 1e-12, &command->joules_per_byte, &command->fit.joules_per_byte},
        {"constant-w", 1, &command->constant_w, &command->fit.constant_w},
    };
    struct params given = {0};
    enum err err = options_pairs("given", &command->given_words, &given, why);
    for (size_t i = 0; i < given.count && !err; i++) {
        size_t k = strcmp(given.items[i].key, KEYS[0].key) != 0;
        double number;
        if (strcmp(given.items[i].key, KEYS[k].key) != 0)
            err = err_set(why, ERR_USAGE, "--given %.60s: pj-per-byte or constant-w can be given",
                          given.items[i].key);
        else if (parse_double(given.items[i].value, &number) != ERR_OK || !(number > 0))
            err = err_set(why, ERR_USAGE, "--given %s=%.40s: a number above 0 is wanted",
                          KEYS[k].key, given.items[i].value);
        if (err)
            break;
        *KEYS[k].value = number * KEYS[k].unit;
        *KEYS[k].given = KEYS[k].value;
    }
    if (!err && command->given_source && !given.count)
        err = err_set(why, ERR_USAGE, "--given-source is of what --given gives: give that too");
    params_release(&given);
    return err;
}

int estimate_calibrate(int argc, char **argv)
{
    struct calibrate_command command = {.bench = {.seconds = 45}, .seed = 1};
    const struct option_row rows[] = {
        {0, "csv", OPTION_LIST, &command.files, "FILE",
         "fit to these measurements; may be given several times (default: measure here)", 0, 0,
         NULL},
        {0, "from", OPTION_LIST, &command.runs, "RUN",
         "fit to a run of `ipw profile` or a report of `ipw layers --json`; may be repeated", 0, 0,
         NULL},
        {'m', "model", OPTION_TEXT, &command.model, "FILE|NAME",
         "with --from: stands for the model that it names", 0, 0, NULL},
        {'p', "precision", OPTION_TEXT, &command.precision, "FORMAT",
         "with --from: in which it was computed (default: fp32, weights as in the file)", 0, 0,
         NULL},
        {0, "hardware", OPTION_TEXT, &command.hardware, "ID",
         "take what is not fitted from this device of `ipw list hardware` (default: by name)", 0, 0,
         NULL},
        {0, "given", OPTION_LIST, &command.given_words, "KEY=NUMBER",
         "pj-per-byte or constant-w: what the rows cannot tell, not fitted", 0, 0, NULL},
        {0, "given-source", OPTION_TEXT, &command.given_source, "TEXT",
         "where that figure comes from, for the file", 0, 0, NULL},
        {'o', "output", OPTION_TEXT, &command.output, "FILE", "write the hardware file there", 0, 0,
         NULL},
        {0, "rows", OPTION_TEXT, &command.rows, "FILE",
         "keep the measured windows there, for --csv, whatever the fit says", 0, 0, NULL},
        {0, "seconds", OPTION_NUMBER, &command.bench.seconds, "S",
         "for all windows that are measured here (default: 45)", 1, 86400, NULL},
        {'t', "threads", OPTION_COUNT, &command.bench.threads, "N",
         "threads of the loads (default: one a CPU)", 1, 4096, NULL},
        {0, "device", OPTION_TEXT, &command.bench.device, "ID",
         "whose joules: cpu0, psys (default: processors and their memory)", 0, 0, NULL},
        {0, "allow-estimated", OPTION_FLAG, &command.fit.allow_estimated, NULL,
         "fit to joules that are a model's, and label the result so", 0, 0, NULL},
        {0, "seed", OPTION_COUNT, &command.seed, "N", "for the intervals (default: 1)", 0, 4e9,
         NULL},
        {0, "json", OPTION_FLAG, &command.json, NULL, "report as JSON", 0, 0, NULL},
        {'q', "quiet", OPTION_FLAG, &command.quiet, NULL, "no progress", 0, 0, NULL},
        MEASURE_OPTION_ROWS(command.measure, "sample-rate"),
        {0},
    };
    struct calibrate_work work = {0};
    int rest, code = parse_or_help(&COMMAND, rows, argc, argv, false, &rest);
    if (code >= 0)
        return code;
    struct error why = {0};
    if (take_given(&command, &why) != ERR_OK)
        return complain(NAME, EXIT_USAGE, "%s", why.text);
    command.fit.seed = command.seed;
    command.fit.allow_estimated &= !command.measure.require_energy;
    command.bench.allow_estimated = command.fit.allow_estimated;
    on_terminal = isatty(STDERR_FILENO) && wants_colour(STDERR_FILENO);
    if (!command.quiet)
        command.bench.progress = show_progress;
    code = calibrate(&command, &work);
    calibrate_rows_release(&work.rows);
    if (work.has_base)
        hardware_release(&work.base);
    text_release(&work.data);
    return code;
}
