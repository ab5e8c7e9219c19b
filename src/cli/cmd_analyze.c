/* ipw analyze: statistics of runs.
 *
 *   $ ipw analyze runs/profile_H100_llama3_2_1b_builtin
 *
 * Text or JSON on stdout; each result of a directory also becomes DIR/analysis/NAME.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/across.h"
#include "analysis/analysis.h"
#include "cli/common.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "report/text/analysis_report.h"
#include "rundir/layers_result.h"
#include "rundir/run_dir.h"
#include "rundir/run_table.h"

struct analyze_options {
    const char *analyses; /* NULL: all */
    const char *model;
    struct params params;
    bool json, verbose;
};

enum { ANALYSES_MOST = 64 };

/* The request, and its results so far. */
struct analyzing {
    const struct analyze_options *options;
    const struct analysis_driver *drivers[ANALYSES_MOST];
    size_t driver_count;
    bool by_name;                 /* --analysis was given: missing data is reported */
    struct layers_results layers; /* of all sources so far */
    size_t layered;               /* sources that had some */
    struct run_point *points;
    size_t point_count;
    struct text out; /* text, or the members of the JSON object */
    size_t answered; /* analyses that had enough data */
};

/* What one DIR or FILE holds: a run, measured layers, or both. */
struct subject {
    const char *path;
    struct run_table table;
    bool has_table, is_file;
    struct layers_results layers; /* borrowed from struct analyzing */
};

/* ---- selection ---- */

static bool is_chosen(const struct analyzing *work, const struct analysis_driver *driver)
{
    for (size_t i = 0; i < work->driver_count; i++)
        if (work->drivers[i] == driver)
            return true;
    return false;
}

static int choose(void *context, const char *name)
{
    struct analyzing *work = context;
    struct error why = {0};
    const struct analysis_driver *driver = analysis_driver_find(name, &why);
    if (!driver)
        return complain(EXIT_USAGE, "%s", why.text);
    if (!is_chosen(work, driver) && work->driver_count < ANALYSES_MOST)
        work->drivers[work->driver_count++] = driver;
    return -1;
}

static int choose_drivers(struct analyzing *work)
{
    work->by_name = work->options->analyses != NULL;
    if (work->by_name)
        return each_name(work->options->analyses, choose, work,
                         "--analysis is empty; see `ipw list analyses`");
    for (size_t i = 0; i < ANALYSES_MOST && ANALYSIS_DRIVERS[i]; i++)
        work->drivers[work->driver_count++] = ANALYSIS_DRIVERS[i];
    return -1;
}

/* Each parameter must be known to at least one of the selected analyses. */
static int check_params(const struct analyzing *work)
{
    struct param_spec known[64] = {{0}};
    struct error why = {0};
    size_t count = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        for (const struct param_spec *spec = work->drivers[i]->params; spec && spec->name; spec++)
            if (count + 1 < sizeof known / sizeof *known)
                known[count++] = *spec;
    if (params_check(&work->options->params, known, "ipw analyze", &why))
        return complain(EXIT_USAGE, "%s", why.text);
    return -1;
}

static struct run_wanted columns_needed(const struct analyzing *work, bool several)
{
    struct run_wanted wanted = {several ? RUN_ACROSS_NEEDS : 0, 0};
    for (size_t i = 0; i < work->driver_count; i++) {
        wanted.numbers |= work->drivers[i]->needs.numbers;
        wanted.words |= work->drivers[i]->needs.words;
    }
    return wanted;
}

static size_t texts_needed(const struct analyzing *work)
{
    size_t texts = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        if (work->drivers[i]->texts > texts)
            texts = work->drivers[i]->texts;
    return texts;
}

/* ---- results ---- */

/* A read-only directory is no error: the result is shown all the same. */
static void save_result(const char *path, const struct result *result, bool *warned)
{
    char file[128];
    struct error why = {0};
    struct text text = {0};
    struct json json;
    json_init(&json, &text, true);
    result_to_json(result, NULL, &json);
    str_format(file, sizeof file, "analysis/%s.json", result->name);
    enum err err = run_dir_put(path, file, &text, &why);
    text_release(&text);
    if (err && !*warned)
        log_warn("results not written: %s", why.text);
    *warned = *warned || err;
}

/* `json` is the open object that it goes into, NULL for text; a result without enough data is shown, too. */
static enum err show_result(struct analyzing *work, const struct result *result, const char *key,
                            struct json *json, struct error *why)
{
    if (result->err && result->err != ERR_NO_DATA)
        return err_set(why, result->err, "%s", result->why.text);
    if (json)
        result_to_json(result, key, json);
    else
        analysis_text(result, work->options->verbose, wants_color(STDOUT_FILENO), &work->out);
    return ERR_OK;
}

static void show_run(struct analyzing *work, const struct run_table *table)
{
    const char *hardware = run_hardware(table);
    text_addf(&work->out, "\n %s: %zu %s %s '%s'%s%s", plain_text(table->directory).text,
              table->rows, run_kind_unit(table->kind, table->rows != 1),
              table->kind == RUN_KIND_PROFILE ? "to" : "of", plain_text(table->model).text,
              hardware[0] ? " on " : "", plain_text(hardware).text);
    if (table->failed)
        text_addf(&work->out, ", %zu failed", table->failed);
    text_add(&work->out, "\n");
    for (size_t i = 0; i < table->note_count; i++)
        text_addf(&work->out, "   note: %s\n", plain_text(table->notes[i].text).text);
}

static void show_heading(struct analyzing *work, const struct subject *subject)
{
    if (subject->has_table)
        show_run(work, &subject->table);
    else
        text_addf(&work->out, "\n %s: layers of %zu model%s\n", plain_text(subject->path).text,
                  subject->layers.count, subject->layers.count == 1 ? "" : "s");
    text_add(&work->out, "\n");
}

/* An analysis of a kind of data that is not there is left out, unless --analysis names it. */
static size_t drivers_for(const struct analyzing *work, const struct subject *subject,
                          const struct analysis_driver **out)
{
    size_t count = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        if (work->by_name ||
            (work->drivers[i]->of_layers ? subject->layers.count > 0 : subject->has_table))
            out[count++] = work->drivers[i];
    return count;
}

static enum err analyze_subject(struct analyzing *work, const struct subject *subject,
                                struct json *json, struct error *why)
{
    const struct analysis_driver *drivers[ANALYSES_MOST];
    struct result results[ANALYSES_MOST];
    const struct analysis_input input = {subject->has_table ? &subject->table : NULL,
                                         &subject->layers};
    size_t count = drivers_for(work, subject, drivers);
    bool warned = false;
    enum err err = ERR_OK;
    if (json)
        json_object(json, subject->path);
    else
        show_heading(work, subject);
    analysis_run_all(drivers, count, &input, &work->options->params, results);
    for (size_t i = 0; i < count; i++) {
        if (!err)
            err = show_result(work, &results[i], results[i].name, json, why);
        if (!err && !results[i].err) {
            work->answered++;
            if (!subject->is_file)
                save_result(subject->path, &results[i], &warned);
        }
        result_release(&results[i]);
    }
    if (json)
        json_object_end(json);
    if (subject->has_table)
        run_point_of(&subject->table, &work->points[work->point_count++]);
    return err;
}

/* Of the runs together; and of the models of all files, as if they were in one. */
static enum err put_across(struct analyzing *work, struct json *json, struct error *why)
{
    const struct analysis_input all_layers = {NULL, &work->layers};
    enum err err = ERR_OK;
    for (size_t i = 0; i < work->driver_count && !err; i++) {
        const struct analysis_driver *driver = work->drivers[i];
        bool of_runs = strcmp(driver->name, "scaling") == 0 && work->point_count > 1;
        struct result result = {0};
        if (!of_runs && !(driver->of_layers && work->layered > 1))
            continue;
        if (of_runs)
            result.err = across_run(work->points, work->point_count, &result);
        else
            analysis_run(driver, &all_layers, &work->options->params, &result);
        if (!json)
            text_add(&work->out, "\n comparison\n\n");
        err = show_result(work, &result, of_runs ? "across" : "across_layers", json, why);
        result_release(&result);
    }
    return err;
}

/* ---- sources ---- */

/* Layers of a file, or of a directory beside its run. */
static enum err load_layers(struct analyzing *work, struct subject *subject, struct error *why)
{
    size_t before = work->layers.count;
    enum err err = layers_results_load(subject->path, &work->layers, why);
    subject->layers = (struct layers_results){.count = work->layers.count - before};
    if (subject->layers.count) /* else there may be no array to point into */
        subject->layers.models = work->layers.models + before;
    work->layered += subject->layers.count > 0;
    return err;
}

/* EXIT_DONE, or EXIT_FAILED after reporting the reason.  A directory may hold layers and no run. */
static int load_subject(struct analyzing *work, struct run_wanted wanted, struct subject *subject)
{
    struct error why = {0};
    int code = EXIT_DONE;
    bool is_directory = file_is_directory(subject->path);
    subject->is_file = !is_directory && file_exists(subject->path);
    if ((subject->is_file || is_directory) && load_layers(work, subject, &why))
        code = complain(EXIT_FAILED, "%s", why.text);
    if (subject->is_file)
        return code;
    enum err err = run_table_load_texts(subject->path, work->options->model, wanted,
                                        texts_needed(work), &subject->table, &why);
    subject->has_table = !err;
    if (err && (err != ERR_NOT_FOUND || !subject->layers.count))
        code = complain(EXIT_FAILED, "%s", why.text);
    return code;
}

/* A directory that cannot be read is reported, and the others are analyzed all the same. */
static int analyze_all(struct analyzing *work, const char **directories, size_t count)
{
    struct run_wanted wanted = columns_needed(work, count > 1);
    struct json writer = {0}, *json = work->options->json ? &writer : NULL;
    struct error why = {0};
    enum err err = ERR_OK;
    int code = EXIT_DONE;
    json_init(&writer, &work->out, true);
    if (json)
        json_object(json, NULL);
    for (size_t i = 0; !err && i < count; i++) {
        struct subject subject = {.path = directories[i]};
        size_t answered = work->answered;
        if (load_subject(work, wanted, &subject) != EXIT_DONE)
            code = EXIT_FAILED;
        if (!subject.has_table && !subject.layers.count)
            continue;
        err = analyze_subject(work, &subject, json, &why);
        if (!err && work->answered == answered)
            code = EXIT_FAILED;
        if (subject.has_table)
            run_table_release(&subject.table);
    }
    if (!err)
        err = put_across(work, json, &why);
    if (json) {
        json_object_end(json);
        text_add(&work->out, "\n");
    }
    if (err)
        return complain(EXIT_FAILED, "%s", why.text);
    if (work->out.length && !json && !work->options->verbose)
        text_add(&work->out, "\n -v shows every figure\n");
    if (work->out.length) {
        int put = put_output(&work->out);
        code = put != EXIT_DONE ? put : code;
    }
    return code;
}

/* Drops repeated directories: keys of the JSON object must be unique. */
static size_t drop_repeated(const char **words, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool before = false;
        for (size_t j = 0; j < kept && !before; j++)
            before = strcmp(words[j], words[i]) == 0;
        if (!before)
            words[kept++] = words[i];
    }
    return kept;
}

static struct analyze_options args;

/* clang-format off */
static const struct option_row ROWS[] = {
    {.name = "analysis", .type = OPTION_TEXT, .target = &args.analyses, .value = "NAMES",
     .help = "comma-separated analyses to run (default: all)"},
    MODEL_OPTION_ROW(args.model),
    {.name = "option", .type = OPTION_PARAMS, .target = &args.params, .value = "K=V",
     .help = "parameter of an analysis; may be repeated"},
    {.name = "json", .type = OPTION_FLAG, .target = &args.json,
     .help = "print one JSON object"},
    {.letter = 'v', .name = "verbose", .type = OPTION_FLAG, .target = &args.verbose,
     .help = "every figure, not only the finding of each analysis"},
    {0},
};
/* clang-format on */

static int analyze_main(const char **words, size_t count)
{
    struct analyzing work = {.options = &args, .points = malloc(count * sizeof *work.points)};
    int code = work.points ? choose_drivers(&work) : complain(EXIT_FAILED, "out of memory");
    if (code < 0)
        code = check_params(&work);
    start_reading_bar(wants_color(STDERR_FILENO));
    if (code < 0)
        code = analyze_all(&work, words, drop_repeated(words, count));
    params_release(&args.params);
    text_release(&work.out);
    layers_results_release(&work.layers);
    free(work.points);
    return code;
}

const struct command command_analyze = {
    .name = "analyze",
    .summary = "statistics of runs: energy, latency, accuracy, outliers, quality",
    .usage = "DIR|FILE... [OPTIONS]",
    .details =
        "Reads run directories (also of the Python IPW) and reports fits with their errors,\n"
        "confidence intervals, percentiles, outliers and data quality. An analysis without enough\n"
        "data is reported with what is missing. Results of `ipw layers` are read as a FILE (-o) "
        "or\n"
        "from layers*.json in a DIR.\n\n"
        "Each result is also written to DIR/analysis/NAME.json. Several DIRs are also compared\n"
        "with each other. `ipw list analyses -v` shows the analyses and their parameters.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .required = "missing run directory",
    .run = analyze_main,
};
