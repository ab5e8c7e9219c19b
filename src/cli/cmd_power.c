/* ipw power fit: models of power, time and energy against the GPU's clock, fitted to measurements. ipw power validate:
 * their errors on held-out data. ipw power predict: predictions for other clocks, applications and GPUs.
 *
 *   $ ipw power fit --input sweep.csv -o model.json
 *   $ ipw power validate --input sweep.csv --model all --max-mape 5
 *   $ ipw power predict model.json --gpu A100 --application llama --freq 810,1410
 *   $ ipw power predict model.json --fmax 1410 --probe 1410:250:12.1 --probe 1050:190:13.0 --freq 510-1410:15
 *
 * Reports go to stdout; excluded data is always reported. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/clock.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "power/data_checks.h"
#include "power/freq_model.h"
#include "power/freq_validate.h"
#include "power/power_result.h"
#include "report/text/power_report.h"
#include "rundir/setting.h"

#define FIT      "power fit"
#define VALIDATE "power validate"
#define PREDICT  "power predict"

/* For fitting, with a struct freq_model_options. */
/* clang-format off */
#define MODEL_OPTION_ROWS(o, seed)                                                                 \
    FLAG_ROW("published", (o).is_published,                                                        \
             "fgcs with its published coefficients instead of refitted ones"),                     \
    NUMBER_ROW("ridge", (o).ridge, "PENALTY",                                                      \
               "L2 penalty of model ridge, on standardized columns (default: 1)", .min = 1e-12,    \
               .max = 1e12),                                                                       \
    COUNT_ROW("trees", (o).trees, "N",                                                             \
              "number of trees of rf (default: 100) and gbt (default: 300)", .min = 1,             \
              .max = 10000),                                                                       \
    COUNT_ROW("seed", seed, "N", "random seed (default: 1)", .max = 4e9)
/* clang-format on */

/* ---- fit ---- */

struct fit_command {
    struct power_options data;
    struct freq_model_options options;
    const char *model, *output;
    unsigned seed;
    struct format_options format;
};

static const char *no_optimum_reason(const struct freq_data *data, const struct freq_curve *curve)
{
    const struct finding *finding = data_findings_invalid(&data->findings, curve);
    return finding ? finding_action(finding) : NULL;
}

static void set_provenance(const struct fit_command *command, const struct freq_data *data,
                           struct freq_model *model)
{
    struct freq_provenance *p = &model->provenance;
    struct text files = {0}, invalid = {0};
    for (size_t i = 0; i < command->data.inputs.count; i++)
        text_addf(&files, "%s%s", i ? ", " : "", str_last_part(command->data.inputs.items[i]));
    chars_copy(p->data, text_get(&files));
    for (size_t i = 0; i < data->curves.count; i++) {
        const struct freq_curve *curve = &data->curves.items[i];
        if (no_optimum_reason(data, curve))
            text_addf(&invalid, "%s%s %s", invalid.length ? ", " : "", curve->gpu,
                      curve->application);
    }
    chars_copy(p->invalid, text_get(&invalid));
    text_release(&invalid);
    text_release(&files);
    p->data_hash = data->points.hash;
    p->created = clock_wall();
    p->rows = data->points.count;
    p->rows_used = freq_data_usable(data);
    findings_codes(&data->findings, p->findings, sizeof p->findings);
}

/* The prediction at fmax for each curve that the model was fitted to. */
static enum err predict_rows(const struct freq_data *data, const struct freq_model *model,
                             struct power_fit_row *rows, struct freq_prediction *at_fmax,
                             size_t *count, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < data->curves.count; i++) {
        const struct freq_curve *curve = &data->curves.items[i];
        struct freq_target target = freq_target_of(curve, NULL, 0);
        target.application = curve->application;
        if (curve->count == 0)
            continue;
        err = freq_model_predict(model, &target, &curve->fmax_mhz, 1, &at_fmax[*count], why);
        rows[*count] = (struct power_fit_row){curve->gpu, curve->application, curve->count,
                                              &at_fmax[*count], no_optimum_reason(data, curve)};
        ++*count;
    }
    return err;
}

static int report_fit(const struct fit_command *command, const struct freq_data *data,
                      const struct freq_model *model)
{
    struct power_fit_row *rows = xcalloc(data->curves.count + 1, sizeof *rows);
    struct freq_prediction *at_fmax = xcalloc(data->curves.count + 1, sizeof *at_fmax);
    struct power_fitted fit = {model, data, rows, 0, command->output};
    struct result result = {0};
    struct error why = {0};
    enum err err = predict_rows(data, model, rows, at_fmax, &fit.count, &why);
    if (!err)
        power_result_fit(&result, &fit);
    int code = err ? print_err(err, &why)
                   : deliver_chosen(NULL, &result, &command->format, &POWER_FIT_VIEWS);
    free(rows);
    free(at_fmax);
    return code;
}

static enum err write_model(const char *path, const struct freq_model *model, struct error *why)
{
    struct text text = {0};
    freq_model_save(model, &text);
    enum err err = write_file(path, &text, why);
    text_release(&text);
    return err;
}

static struct fit_command fit_args = {.model = "roofline", .seed = 1};

/* Whether the model is, or contains, the one with published coefficients. */
static bool has_published(const char *model)
{
    return str_equal(model, "fgcs") || str_equal(model, "ensemble");
}

static int fit_main(const char **words, size_t count)
{
    struct fit_command *o = &fit_args;
    struct freq_data data = {0};
    struct freq_model model = {0};
    struct error why = {0};
    o->options.seed = o->seed;
    if (is_dash(o->output))
        return print_error(EXIT_USAGE,
                           "-o: the model needs a file, since stdout is used for the report");
    if (o->options.is_published && !has_published(o->model))
        return print_error(EXIT_USAGE, "--published applies to fgcs and ensemble, not to %s",
                           o->model);
    enum err err = power_options_add(&o->data, words, count, &why);
    if (!err)
        err = power_options_read(&o->data, &data, &why);
    if (!err)
        err = freq_model_fit(&model, o->model, &data.curves, &o->options, &why);
    if (!err)
        set_provenance(o, &data, &model);
    if (!err && o->output)
        err = write_model(o->output, &model, &why);
    int code = err ? print_err(err, &why) : report_fit(o, &data, &model);
    freq_model_release(&model);
    freq_data_release(&data);
    return code;
}

static const struct option_row FIT_ROWS[] = {
    POWER_OPTION_ROWS(fit_args.data),
    TEXT_ROW("model", fit_args.model, "NAME", "kind of model (default: roofline)", .letter = 'm'),
    MODEL_OPTION_ROWS(fit_args.options, fit_args.seed),
    OUTPUT_ROW("output", fit_args.output, "FILE", "write the model to FILE", .letter = 'o'),
    REPORT_FORMAT_OPTION_ROWS(fit_args.format),
    {0},
};

static const struct command command_power_fit = {
    .name = FIT,
    .summary = "fit power, time and energy as functions of the GPU clock",
    .usage = "INPUT... [-o MODEL.json] [OPTIONS]",
    .details =
        "Checks the measurements (a CSV file, or the directory of a sweep over clocks), fits a\n"
        "model of every application in them, and writes it.\n"
        "Columns of public data sets are recognized (freq_mhz, power_w, time_s, energy_j, gpu,\n"
        "application, run, seq, activities); --columns maps others.",
    .rows = FIT_ROWS,
    .words = WORDS_ANY,
    .run = fit_main,
};

/* ---- validate ---- */

enum { VALIDATIONS_MAX = 64 };

struct validate_command {
    struct power_options data;
    struct freq_validate_options options;
    const char *models, *protocols;
    double max_percent;
    unsigned seed, probes; /* probes: UINT_MAX: not given */
    struct format_options format;
};

/* State of a validation: every kind of model by every protocol. */
struct validate_state {
    const struct validate_command *command;
    struct freq_data *data;
    const struct freq_model_kind *kinds[VALIDATIONS_MAX];
    enum freq_protocol protocols[FREQ_PROTOCOLS];
    size_t kind_count, protocol_count;
    bool is_named; /* the user named the protocols: one that is not possible is an error */
    struct freq_validation results[VALIDATIONS_MAX];
    size_t count;
};

static int take_model(void *context, const char *name)
{
    struct validate_state *v = context;
    struct error why = {0};
    bool is_all = str_equal(name, "all");
    for (size_t i = 0; is_all && FREQ_MODELS[i]; i++)
        v->kinds[v->kind_count++] = FREQ_MODELS[i];
    if (is_all)
        return -1;
    const struct freq_model_kind *kind = freq_model_find(name, &why);
    if (!kind)
        return print_error(EXIT_USAGE, "%s", why.text);
    if (v->kind_count == VALIDATIONS_MAX / FREQ_PROTOCOLS)
        return print_error(EXIT_USAGE, "--model: too many");
    v->kinds[v->kind_count++] = kind;
    return -1;
}

static int take_protocol(void *context, const char *name)
{
    struct validate_state *v = context;
    struct error why = {0};
    if (v->protocol_count == FREQ_PROTOCOLS)
        return print_error(EXIT_USAGE, "--leave-out: too many");
    if (freq_protocol_find(name, &v->protocols[v->protocol_count], &why))
        return print_error(EXIT_USAGE, "%s", why.text);
    v->protocol_count++;
    return -1;
}

/* Unless they were named, protocols that the data does not allow are skipped. */
static bool is_possible(const struct validate_state *v, enum freq_protocol protocol)
{
    const struct freq_curves *curves = &v->data->curves;
    bool several = v->is_named || freq_protocol_leaks(protocol);
    for (size_t i = 1; !several && i < curves->count; i++) {
        const struct freq_curve *one = &curves->items[0], *other = &curves->items[i];
        several = protocol == FREQ_GPU ? !str_equal(one->gpu, other->gpu)
                                       : !str_equal(one->application, other->application);
    }
    return several;
}

static enum err validate_all(struct validate_state *v, struct error *why)
{
    struct freq_validate_options options = v->command->options;
    bool is_one = v->kind_count == 1;
    for (size_t m = 0; m < v->kind_count; m++)
        for (size_t p = 0; p < v->protocol_count; p++) {
            options.protocol = v->protocols[p];
            if (!is_possible(v, options.protocol))
                continue;
            enum err err = freq_validate(v->kinds[m], &v->data->curves, &v->data->findings,
                                         &options, &v->results[v->count], why);
            /* If there are several, one without a library, activities or a second GPU is reported and skipped. */
            if ((err == ERR_NO_DATA || err == ERR_ABSENT) && !(is_one && v->is_named))
                print_error(0, "%s, %s left out: %s", v->kinds[m]->name,
                            freq_protocol_name(options.protocol), why->text);
            else if (err)
                return err;
            else
                v->count++;
        }
    return v->count ? ERR_OK : ERR_NO_DATA;
}

/* Checks all validations without data leakage. */
static bool is_within(const struct validate_state *v, double max)
{
    size_t judged = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct freq_validation *result = &v->results[i];
        if (freq_protocol_leaks(result->protocol) && v->protocol_count > 1)
            continue;
        judged++;
        if (!(result->figures[FREQ_POWER_W].mape <= max) || result->figures[FREQ_TIME_S].mape > max)
            return false;
    }
    return judged > 0;
}

static int report_validation(const struct validate_state *v)
{
    const struct validate_command *command = v->command;
    double max = command->max_percent > 0 ? command->max_percent / 100 : UNKNOWN;
    bool is_failed = is_known(max) && !is_within(v, max);
    struct power_validations validations = {v->results, v->count, v->data, max, !is_failed};
    struct result result = {0};
    power_result_validate(&result, &validations);
    int code = deliver_chosen(NULL, &result, &command->format, &POWER_VALIDATE_VIEWS);
    if (code)
        return code;
    return is_failed ? EXIT_FAILED : EXIT_DONE;
}

static struct validate_command validate_args = {
    .models = "roofline", .seed = 1, .probes = UINT_MAX};

static int validate_main(const char **words, size_t count)
{
    struct validate_command *o = &validate_args;
    static struct validate_state v;
    struct freq_data data = {0};
    struct error why = {0};
    v.command = o;
    v.data = &data;
    v.is_named = o->protocols != NULL;
    o->options.model.seed = o->seed;
    o->options.probes = o->probes == UINT_MAX ? -1 : (int)o->probes;
    int code = each_name(o->models, take_model, &v, "--model is empty");
    if (code <= 0)
        code = each_name(o->protocols ? o->protocols : "random,frequency,application,gpu",
                         take_protocol, &v, "--leave-out is empty");
    bool is_published = !o->options.model.is_published;
    for (size_t i = 0; i < v.kind_count; i++)
        is_published |= has_published(v.kinds[i]->name);
    if (code <= 0 && !is_published)
        code =
            print_error(EXIT_USAGE, "--published applies to fgcs, which --model does not include");
    if (code > 0)
        return code;
    enum err err = power_options_add(&o->data, words, count, &why);
    if (!err)
        err = power_options_read(&o->data, &data, &why);
    if (!err)
        err = validate_all(&v, &why);
    code = err ? print_err(err, &why) : report_validation(&v);
    for (size_t i = 0; i < v.count; i++)
        freq_validation_release(&v.results[i]);
    freq_data_release(&data);
    return code;
}

static const struct option_row VALIDATE_ROWS[] = {
    POWER_OPTION_ROWS(validate_args.data),
    TEXT_ROW("model", validate_args.models, "NAMES",
             "kinds of models, comma-separated, or all (default: roofline)", .letter = 'm'),
    TEXT_ROW("leave-out", validate_args.protocols, "WHAT",
             "random, frequency, application, gpu (default: all that the data allow)"),
    COUNT_ROW("folds", validate_args.options.folds, "K",
              "number of folds of random rows (default: 5)", .min = 2, .max = 1000),
    COUNT_ROW("probes", validate_args.probes, "N",
              "probes of a held-out application (default: 3 for roofline, ensemble, gpu)", .min = 0,
              .max = 7),
    COUNT_ROW("probe-near", validate_args.options.probe_near, "N",
              "number of clocks whose median forms a probe (default: 5)", .min = 1, .max = 15),
    MODEL_OPTION_ROWS(validate_args.options.model, validate_args.seed),
    NUMBER_ROW("max-mape", validate_args.max_percent, "PERCENT",
               "exit 1 if the mean error of power or time is larger", .min = 0.001, .max = 1e6),
    REPORT_FORMAT_OPTION_ROWS(validate_args.format),
    {0},
};

static const struct command command_power_validate = {
    .name = VALIDATE,
    .summary = "score models on held-out data",
    .usage = "INPUT... [--model NAMES] [OPTIONS]",
    .details = "Holds out random rows, clocks, applications or GPUs in turn, predicts them from a "
               "model of\nthe rest, and reports the errors, the coverage of the intervals, and the "
               "regret of\nchoosing a clock by the predictions.",
    .rows = VALIDATE_ROWS,
    .words = WORDS_ANY,
    .run = validate_main,
};

/* ---- predict ---- */

enum { PROBES_MAX = 16, FREQS_MAX = 4096 };

struct predict_command {
    struct option_list probe_words;
    const char *gpu, *application, *freqs;
    double fmax_mhz, idle_w, fp, dram;
    struct format_options format;
};

/* MHZ:WATTS[:SECONDS[:JOULES]] */
static enum err parse_probe(const char *word, struct freq_sample *out, struct error *why)
{
    double values[4] = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    char copy[128], *rest = copy;
    size_t count = 0;
    bool is_valid = chars_copy(copy, word);
    while (is_valid && rest && count < 4) {
        char *end = strchr(rest, ':');
        if (end)
            *end++ = '\0';
        is_valid = parse_double(rest, &values[count]) == ERR_OK && values[count] > 0;
        count++;
        rest = end;
    }
    if (!is_valid || rest || count < 2)
        return err_set(why, ERR_USAGE, "--probe '%.60s': not MHZ:WATTS[:SECONDS[:JOULES]]", word);
    *out = (struct freq_sample){.freq_mhz = values[0], .power_w = values[1], .time_s = values[2]};
    out->window_s = is_known(values[3]) ? values[3] / values[1] : values[2];
    out->energy_j = out->power_w * out->window_s;
    out->runs = 1;
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        out->activity[i] = UNKNOWN;
    return ERR_OK;
}

static int by_clock_falling(const void *a, const void *b)
{
    return compare_numbers(((const struct freq_sample *)b)->freq_mhz,
                           ((const struct freq_sample *)a)->freq_mhz);
}

static enum err take_probes(const struct predict_command *command, struct freq_sample *probes,
                            size_t *count, struct error *why)
{
    enum err err = ERR_OK;
    if (command->probe_words.count > PROBES_MAX)
        return err_set(why, ERR_USAGE, "--probe: more than %d", PROBES_MAX);
    for (*count = 0; !err && *count < command->probe_words.count; ++*count)
        err = parse_probe(command->probe_words.items[*count], &probes[*count], why);
    if (!err && *count)
        qsort(probes, *count, sizeof *probes, by_clock_falling);
    return err;
}

/* Comma-separated clocks: 810, or a range LOW-HIGH:STEP. */
static enum err parse_freqs(const char *list, double *out, size_t *count, struct error *why)
{
    char copy[1024], *state = NULL;
    *count = 0;
    bool is_valid = chars_copy(copy, list);
    for (char *word = strtok_r(copy, ", ", &state); is_valid && word;
         word = strtok_r(NULL, ", ", &state)) {
        double low = UNKNOWN, high, step = 1;
        if (!setting_range(word, &low, &high, &step)) {
            is_valid = parse_double(word, &low) == ERR_OK;
            high = low;
        }
        is_valid = is_valid && low > 0 && step > 0 && high >= low;
        for (size_t i = 0; is_valid && low + (double)i * step <= high + 1e-9; i++) {
            is_valid = *count < FREQS_MAX;
            if (is_valid)
                out[(*count)++] = low + (double)i * step;
        }
    }
    if (!is_valid || *count == 0)
        return err_set(why, ERR_USAGE, "--freq '%.60s': not MHZ,... or LOW-HIGH:STEP (at most %d)",
                       list, FREQS_MAX);
    return ERR_OK;
}

/* The model is relative to fmax: clocks above the highest probe need fmax, from the option or from the model of that
 * GPU. */
static enum err find_fmax(const struct freq_model *model, const double *mhz, size_t count,
                          struct freq_target *target, struct error *why)
{
    struct freq_curve curve;
    double highest = target->probe_count ? target->probes[0].freq_mhz : UNKNOWN, lowest;
    if (is_known(target->fmax_mhz) || !target->probe_count)
        return ERR_OK;
    for (size_t i = 0; target->gpu && model->kind->application &&
                       model->kind->application(model->state, i, &curve, &lowest);
         i++)
        if (str_equal_nocase(curve.gpu, target->gpu))
            target->fmax_mhz = fmax(target->fmax_mhz, curve.fmax_mhz);
    if (target->fmax_mhz >= highest)
        return ERR_OK;
    target->fmax_mhz = highest;
    for (size_t i = 0; i < count; i++)
        if (mhz[i] > 1.001 * highest)
            return err_set(why, ERR_USAGE,
                           "--freq %g is above the highest probe, %g MHz: give --fmax, the highest "
                           "clock of the GPU",
                           mhz[i], highest);
    return ERR_OK;
}

static int predict(const struct predict_command *command, const char *path)
{
    struct freq_sample probes[PROBES_MAX] = {0};
    struct freq_model model = {0};
    struct result result = {0};
    struct error why = {0};
    struct freq_target target = {.gpu = command->gpu,
                                 .application = command->application,
                                 .fmax_mhz = command->fmax_mhz,
                                 .idle_w = command->idle_w};
    double *mhz = xcalloc(FREQS_MAX, sizeof *mhz);
    struct freq_prediction *out = xcalloc(FREQS_MAX, sizeof *out);
    size_t count = 0;
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        target.activity[i] = i == FREQ_FP ? command->fp : i == FREQ_DRAM ? command->dram : UNKNOWN;
    target.probes = probes;
    enum err err = take_probes(command, probes, &target.probe_count, &why);
    if (!err)
        err = parse_freqs(command->freqs, mhz, &count, &why);
    if (!err)
        err = freq_model_load(&model, path, &why);
    if (!err)
        err = find_fmax(&model, mhz, count, &target, &why);
    if (!err)
        err = freq_model_predict(&model, &target, mhz, count, out, &why);
    if (!err)
        power_result_predict(&result, &(struct power_predictions){&model, &target, out, count});
    int code = err ? print_err(err, &why)
                   : deliver_chosen(NULL, &result, &command->format, &POWER_PREDICT_VIEWS);
    freq_model_release(&model);
    free(mhz);
    free(out);
    return code;
}

static struct predict_command predict_args = {
    .fmax_mhz = UNKNOWN, .idle_w = UNKNOWN, .fp = UNKNOWN, .dram = UNKNOWN};

static int predict_main(const char **words, size_t count)
{
    if (count != 1)
        return usage_error("expected one model file");
    if (!predict_args.freqs)
        return usage_error("missing clocks: give --freq");
    return predict(&predict_args, words[0]);
}

static const struct option_row PREDICT_ROWS[] = {
    TEXT_ROW("gpu", predict_args.gpu, "NAME", "GPU of the application, as in the measurements"),
    TEXT_ROW("application", predict_args.application, "NAME",
             "application that the model was fitted to"),
    LIST_ROW("probe", predict_args.probe_words, "POINT",
             "MHZ:WATTS[:SECONDS[:JOULES]] of a new application; may be repeated"),
    NUMBER_ROW("fmax", predict_args.fmax_mhz, "MHZ",
               "highest clock of the GPU (default: from the model, or highest probe)", .min = 1,
               .max = 1e5),
    NUMBER_ROW("idle-power", predict_args.idle_w, "WATTS",
               "idle power of the GPU: lower bound of predictions", .min = 0.001, .max = 1e5),
    NUMBER_ROW("fp", predict_args.fp, "SHARE",
               "FP32 / 2 + FP64 activity at fmax, for models of activities", .min = 0, .max = 2),
    NUMBER_ROW("dram", predict_args.dram, "SHARE",
               "DRAM activity at fmax, for models of activities", .min = 0, .max = 1),
    TEXT_ROW("freq", predict_args.freqs, "LIST",
             "clocks in MHz, comma-separated, or LOW-HIGH:STEP"),
    REPORT_FORMAT_OPTION_ROWS(predict_args.format),
    {0},
};

static const struct command command_power_predict = {
    .name = PREDICT,
    .summary = "predict power, time and energy at other clocks",
    .usage = "MODEL.json --freq LIST [OPTIONS]",
    .details =
        "Predicts for an application that the model was fitted to (--application), or for a new "
        "one\n"
        "by probes: one to four clocks at which it was measured, the highest clock among them.",
    .rows = PREDICT_ROWS,
    .words = WORDS_ANY,
    .run = predict_main,
};

/* ---- power ---- */

static int power_main(const char **words, size_t count)
{
    (void)count;
    return print_error(EXIT_USAGE, "unknown command 'power %s': fit, validate, predict",
                       plain_text(words[0]).text);
}

static const struct command *const TOOLS[] = {&command_power_fit, &command_power_validate,
                                              &command_power_predict, NULL};
static const struct option_row NO_ROWS[] = {{0}};

const struct command command_power = {
    .name = "power",
    .summary = "model power, time and energy as functions of the GPU clock",
    .usage = "fit|validate|predict [OPTIONS]",
    .details = "  fit        fit a model to measurements at several clocks\n"
               "  validate   score models on held-out data\n"
               "  predict    predict other clocks, applications and GPUs\n"
               "\n"
               "Each has its own --help.",
    .rows = NO_ROWS,
    .words = WORDS_ANY,
    .required = "missing command",
    .tools = TOOLS,
    .run = power_main,
};
