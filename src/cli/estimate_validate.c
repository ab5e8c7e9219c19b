/* ipw estimate validate: predictions against what was measured.
 *
 *   $ ipw estimate validate --hardware h200 --csv measured.csv
 *   $ ipw estimate validate --hardware-file mine.json runs/profile_H200_m_d --max-mape 30
 *
 * The report goes to stdout; exit 1 when --max-mape is given and not kept. */
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/estimate_queries.h"
#include "cli/estimate_tools.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "catalog/hardware_json.h"
#include "estimate/predictor.h"
#include "estimate/validate.h"
#include "estimate/validate_csv.h"
#include "estimate/validate_layers.h"
#include "report/text/validate_report.h"

#define NAME "estimate validate"

static const struct command COMMAND = {
    .name = NAME,
    .summary = "compare predictions with what was measured",
    .usage = "--hardware ID [--csv FILE] [RUN|LAYERS.json] [OPTIONS]",
    .details =
        "Predicts what was measured and tells how far off the predictions are, for time and "
        "joules,\n"
        "by what limits them. Measured are passes of models or single loads in a CSV file, the\n"
        "queries of a run of `ipw profile`, or the settings of `ipw layers --json`. Joules of "
        "less\n"
        "than a millisecond are not compared.",
};

struct validate_command {
    struct option_list files;
    const char *hardware, *hardware_file, *model, *precision;
    struct option_list where_words;
    struct params where;
    double most_percent;
    bool json, no_fusion;
};

/* ---- a run directory ---- */

struct run_reading {
    struct predictor *predictor;
    struct validation *out;
};

static enum err add_query(void *context, const struct estimate_query *query, struct error *why)
{
    struct run_reading *reading = context;
    struct validate_row row = {.measured_s = query->latency_s,
                               .measured_j = query->joules,
                               .window_s = query->is_short ? 0 : UNKNOWN};
    struct prediction predicted;
    enum err err = predictor_predict(reading->predictor, &query->question, &predicted, why);
    if (err)
        return err;
    (void)str_copy(row.label, sizeof row.label, query->label);
    row.predicted_s = predicted.latency_s;
    row.predicted_j = predicted.joules;
    row.regime = predicted.regime;
    reading->out->is_estimated |= query->is_estimated;
    return validation_add(reading->out, &row, why);
}

/* ---- all that was measured ---- */

static enum err add_measured(const struct validate_command *command, const char *word,
                             struct predictor *predictor, struct validation *out, struct error *why)
{
    const char *dot = strrchr(word, '.');
    if (file_is_directory(word))
        return estimate_queries(word, add_query, &(struct run_reading){predictor, out}, why);
    if (dot && !strcmp(dot, ".json"))
        return validate_layers(word, predictor, out, why);
    return validate_csv(word, &command->where, predictor, out, why);
}

static int validate_all(const struct validate_command *command, const char **words, size_t count,
                        struct predictor *predictor, struct validation *out, struct text *data)
{
    struct error why = {0};
    for (size_t i = 0; i < command->files.count + count; i++) {
        const char *word =
            i < command->files.count ? command->files.items[i] : words[i - command->files.count];
        enum err err = add_measured(command, word, predictor, out, &why);
        if (err)
            return complain(NAME, err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
        text_addf(data, "%s%s", i ? ", " : "", word);
    }
    if (out->count == 0)
        return complain(NAME, EXIT_FAILED, "%s: no row to compare%s", text_get(data),
                        out->other_rows ? " (--where leaves none)" : "");
    return 0;
}

static int deliver(const struct validate_command *command, const struct hardware *hardware,
                   const struct validation *validation, const char *data)
{
    double most = command->most_percent > 0 ? command->most_percent / 100 : UNKNOWN;
    struct validate_report report = {.validation = validation,
                                     .hardware = hardware,
                                     .data = data,
                                     .most = most,
                                     .verdict = validate_verdict(validation, most)};
    struct text out = {0};
    if (command->json)
        validate_json(&report, &out);
    else
        validate_text(&report, wants_colour(STDOUT_FILENO), &out);
    int code = put_output(NAME, &out);
    text_release(&out);
    return code                                                ? code
           : is_known(most) && report.verdict != VALIDATE_PASS ? EXIT_FAILED
                                                               : EXIT_DONE;
}

static int find_hardware(const struct validate_command *command, struct hardware *out)
{
    struct error why = {0};
    if (!command->hardware == !command->hardware_file)
        return complain(NAME, EXIT_USAGE, "which device? give --hardware or --hardware-file");
    enum err err = command->hardware ? hardware_find(command->hardware, out, &why)
                                     : hardware_read(command->hardware_file, out, &why);
    if (err)
        return complain(NAME, command->hardware ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    return 0;
}

static int run(const struct validate_command *command, const char **words, size_t count)
{
    struct hardware hardware = {0};
    struct predictor predictor;
    struct validation validation = {0};
    struct text data = {0};
    struct error why = {0};
    if (command->files.count + count == 0)
        return complain(NAME, EXIT_USAGE, "against what? give --csv, a run or a report of layers");
    int code = find_hardware(command, &hardware);
    if (code)
        return code;
    predictor_init(&predictor, &hardware);
    predictor.model_word = command->model;
    predictor.fusion = command->no_fusion ? PARTITION_PLAIN : PARTITION_FUSED;
    predictor.has_precision = command->precision != NULL;
    if (command->precision &&
        precision_find(command->precision, &predictor.precision, &why) != ERR_OK)
        code = complain(NAME, EXIT_USAGE, "--precision: %s", why.text);
    if (!code)
        code = validate_all(command, words, count, &predictor, &validation, &data);
    if (!code)
        code = deliver(command, &hardware, &validation, text_get(&data));
    predictor_release(&predictor);
    validation_release(&validation);
    hardware_release(&hardware);
    text_release(&data);
    return code;
}

int estimate_validate(int argc, char **argv)
{
    struct validate_command command = {0};
    const struct option_row rows[] = {
        {0, "hardware", OPTION_TEXT, &command.hardware, "ID",
         "of `ipw list hardware`: what predicts", 0, 0, NULL},
        {0, "hardware-file", OPTION_TEXT, &command.hardware_file, "FILE",
         "a device described in a file", 0, 0, NULL},
        {0, "csv", OPTION_LIST, &command.files, "FILE", "measured rows; may be repeated", 0, 0,
         NULL},
        {'m', "model", OPTION_TEXT, &command.model, "FILE|NAME",
         "stands for the model that the measurements name", 0, 0, NULL},
        {'p', "precision", OPTION_TEXT, &command.precision, "FORMAT",
         "predict in this format (default: the measurements')", 0, 0, NULL},
        {0, "where", OPTION_LIST, &command.where_words, "COLUMN=VALUE",
         "only these rows of a CSV; may be repeated", 0, 0, NULL},
        {0, "no-fusion", OPTION_FLAG, &command.no_fusion, NULL,
         "predict every operation as a kernel of its own, as eager programs run them", 0, 0, NULL},
        {0, "max-mape", OPTION_NUMBER, &command.most_percent, "PERCENT",
         "exit 1 unless time and joules are off by no more in the mean", 0.001, 1e6, NULL},
        {0, "json", OPTION_FLAG, &command.json, NULL, "report as JSON", 0, 0, NULL},
        {0},
    };
    const char *words[OPTION_LIST_MAX];
    size_t count;
    if (argc > OPTION_LIST_MAX)
        return complain(NAME, EXIT_USAGE, "too many words");
    int code = parse_with_words(&COMMAND, rows, argc, argv, words, &count);
    struct error why = {0};
    if (code < 0 && options_pairs("where", &command.where_words, &command.where, &why) != ERR_OK)
        code = complain(NAME, EXIT_USAGE, "%s", why.text);
    code = code < 0 ? run(&command, words, count) : code;
    params_release(&command.where);
    return code;
}
