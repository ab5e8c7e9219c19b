/* ipw analyze: statistics of runs.
 *
 *   $ ipw analyze runs/profile_H100_llama3_2_1b_builtin
 *
 * Each result of a directory also becomes DIR/analysis/NAME.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/across.h"
#include "analysis/analysis.h"
#include "cli/common.h"
#include "core/json.h"
#include "core/log.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/file.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "report/text/reports.h"
#include "rundir/layers_result.h"
#include "rundir/traces.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_table.h"
#include "rundir/sweep.h"

struct analyze_options {
    const char *analyses; /* NULL: all */
    const char *model;
    struct params params;
    struct format_options format;
    const char *output; /* NULL: stdout */
    bool verbose;
};

enum { ANALYSES_MAX = 64 };

/* The request, and the results so far. */
struct analyze_state {
    const struct analyze_options *options;
    enum print_format format;
    const struct analysis_driver *drivers[ANALYSES_MAX];
    size_t driver_count;
    bool by_name;            /* --analysis was given: missing data is an error */
    struct run_inputs named; /* the arguments, with sweeps not expanded */
    const char **sweeps;     /* the arguments that are sweeps */
    size_t sweep_count;
    struct layers_results layers; /* layers of all sources so far */
    size_t layered;               /* sources with layers */
    struct run_figures *runs;
    size_t run_count;
    const char *each;            /* unit of a record: "query" */
    struct text out;             /* text, Markdown, or the JSON object */
    struct json json;            /* writes it */
    struct table rows;           /* of the CSV */
    struct text details, others; /* details of each run, and of each layers file */
    struct result quality_notes; /* its notes are the warnings of checks, of all runs */
    size_t warned_runs;          /* runs with a warning */
    size_t answered;             /* analyses with enough data */
};

/* Contents of one DIR or FILE: a run, measured layers, or both. */
struct subject {
    const char *path;
    struct run_table table;
    bool has_table, is_file, has_traces;
    struct layers_results layers; /* borrowed from struct analyze_state */
};

/* ---- selection ---- */

static int choose(void *context, const char *name)
{
    struct analyze_state *work = context;
    struct error why = {0};
    const struct analysis_driver *driver = analysis_driver_find(name, &why);
    if (!driver)
        return print_error(EXIT_USAGE, "%s", why.text);
    if (!registry_has(work->drivers, work->driver_count, driver) &&
        work->driver_count < ANALYSES_MAX)
        work->drivers[work->driver_count++] = driver;
    return -1;
}

static int choose_drivers(struct analyze_state *work)
{
    work->by_name = work->options->analyses != NULL;
    if (work->by_name)
        return each_name(work->options->analyses, choose, work,
                         "--analysis is empty; see `ipw list analyses`");
    for (size_t i = 0; i < ANALYSES_MAX && ANALYSIS_DRIVERS[i]; i++)
        work->drivers[work->driver_count++] = ANALYSIS_DRIVERS[i];
    return -1;
}

/* Each parameter must be known to at least one of the selected analyses. */
static int check_params(const struct analyze_state *work)
{
    struct param_spec known[64] = {{0}};
    struct error why = {0};
    size_t count = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        for (const struct param_spec *spec = work->drivers[i]->params; spec && spec->name; spec++)
            if (count + 1 < COUNT_OF(known))
                known[count++] = *spec;
    if (params_check(&work->options->params, known, "ipw analyze", &why))
        return print_error(EXIT_USAGE, "%s", why.text);
    return -1;
}

static struct run_wanted columns_needed(const struct analyze_state *work, bool several)
{
    struct run_wanted wanted = {several ? RUN_ACROSS_NEEDS : 0, 0};
    if (work->format == PRINT_TABLE)
        wanted = (struct run_wanted){RUN_FIGURES_NEEDS, RUN_FIGURES_WORDS};
    for (size_t i = 0; i < work->driver_count; i++) {
        wanted.numbers |= work->drivers[i]->needs.numbers;
        wanted.words |= work->drivers[i]->needs.words;
    }
    return wanted;
}

static size_t texts_needed(const struct analyze_state *work)
{
    size_t texts = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        if (work->drivers[i]->texts > texts)
            texts = work->drivers[i]->texts;
    return texts;
}

/* ---- results ---- */

static bool in_color(const struct analyze_state *work)
{
    return !work->options->output && wants_color(STDOUT_FILENO);
}

static void put_result(struct analyze_state *work, const char *source, const char *name, int level,
                       const struct result *result)
{
    if (work->format == PRINT_JSON) {
        result_to_json(result, name, &work->json);
    } else if (work->format == PRINT_CSV) {
        result_rows_add(&work->rows, source, name, result);
    } else if (work->format == PRINT_MARKDOWN) {
        text_add(&work->out, work->out.length ? "\n" : "");
        result_to_section(result, name, level, &work->out);
    }
}

/* All results of one source in a format other than text. */
static void put_results(struct analyze_state *work, const char *source,
                        const struct result *results, size_t count)
{
    if (work->format == PRINT_JSON)
        json_object(&work->json, source);
    if (work->format == PRINT_MARKDOWN) {
        text_add(&work->out, work->out.length ? "\n# " : "# ");
        markdown_add(&work->out, source);
        text_add(&work->out, "\n");
    }
    for (size_t i = 0; i < count; i++)
        put_result(work, source, results[i].name, 2, &results[i]);
    if (work->format == PRINT_JSON)
        json_object_end(&work->json);
}

/* A read-only directory is not an error: the result is still shown. */
static void save_result(const char *path, const struct result *result, bool *warned)
{
    char file[128];
    struct error why = {0};
    struct text text = {0};
    struct json json;
    json_init(&json, &text, true);
    result_to_json(result, NULL, &json);
    chars_format(file, RUN_ANALYSES "/%s.json", result->name);
    enum err err = run_dir_put(path, file, &text, &why);
    text_release(&text);
    if (err && !*warned)
        log_warn("results not written: %s", why.text);
    *warned = *warned || err;
}

static enum err check_result(const struct result *result, struct error *why)
{
    if (result->err && result->err != ERR_NO_DATA) /* shown, with what is missing */
        return err_set(why, result->err, "%s", result->why.text);
    return ERR_OK;
}

static void show_heading(struct text *out, const struct subject *subject)
{
    const struct run_table *table = &subject->table;
    const char *hardware = subject->has_table ? run_hardware(table) : "";
    text_add(out, " ");
    text_add_plain(out, subject->path);
    if (!subject->has_table && !subject->layers.count) {
        text_add(out, ": traces of an agent\n");
        return;
    }
    if (!subject->has_table) {
        text_addf(out, ": layers of %zu model%s\n", subject->layers.count,
                  str_plural(subject->layers.count));
        return;
    }
    text_addf(out, ": %zu %s %s '%s'%s%s", table->rows,
              run_kind_unit(table->kind, table->rows != 1),
              run_kind_has_queries(table->kind) ? "to" : "of", plain_text(table->model).text,
              hardware[0] ? " on " : "", plain_text(hardware).text);
    if (table->failed)
        text_addf(out, ", %zu failed", table->failed);
    if (table->canceled)
        text_addf(out, ", %zu canceled", table->canceled);
    if (table->summary.unrecorded_inference > 0)
        text_addf(out, ", %lld more not recorded", (long long)table->summary.unrecorded_inference);
    text_add(out, "\n");
    for (size_t i = 0; i < table->note_count; i++)
        text_addf(out, "   note: %s\n", plain_text(table->notes[i].text).text);
}

/* Height of a terminal, and lines reserved at its end. */
enum { SCREEN_LINES = 25, LAST_LINES = 2 };

static size_t lines_left(const struct text *out, size_t reserved)
{
    size_t lines = LAST_LINES + reserved;
    for (const char *at = text_get(out); (at = strchr(at, '\n')); at++)
        lines++;
    return lines < SCREEN_LINES ? SCREEN_LINES - lines : 0;
}

static void show_results(const struct analyze_state *work, const struct result *results,
                         size_t count, size_t lines, struct text *out)
{
    for (size_t i = 0; work->options->verbose && i < count; i++)
        result_in_full(&results[i], in_color(work), out);
    if (!work->options->verbose)
        result_findings(results, count, lines, out);
}

static void collect_warnings(struct analyze_state *work, const struct result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work->warned_runs += results[i].notes.length > 0;
        for (const char *line = NULL; (line = result_line(&results[i].notes, line));)
            result_note(&work->quality_notes, "%s", line);
    }
}

/* Summarizes the warnings of several runs. */
static void show_warnings(struct analyze_state *work)
{
    static const struct result_phrase FINDING[] = {
        {"warnings in ", "runs", ""}, {" of ", "all", " runs"}, {0}};
    struct result *quality_notes = &work->quality_notes;
    if (!work->warned_runs || work->options->verbose)
        return;
    quality_notes->name = "quality";
    quality_notes->finding = FINDING;
    result_group(quality_notes, NULL);
    result_count(quality_notes, "runs", work->warned_runs);
    result_count(quality_notes, "all", work->run_count);
    result_end(quality_notes);
    show_results(work, quality_notes, 1, lines_left(&work->out, 0), &work->out);
}

/* The conclusion first. */
static void show_subject(struct analyze_state *work, const struct subject *subject,
                         const struct result *results, size_t count)
{
    struct text out = {0};
    text_add(&out, "\n");
    if (subject->has_table) {
        work->each = run_kind_unit(subject->table.kind, false);
        conclusion_of_run(&work->runs[work->run_count - 1], work->each, results, count, &out);
        text_add(&out, "\n");
    }
    show_heading(&out, subject);
    text_add(&out, work->options->verbose ? "\n" : "");
    show_results(work, results, count, lines_left(&out, 0), &out);
    collect_warnings(work, results, count);
    text_add(subject->has_table ? &work->details : &work->others, text_get(&out));
    text_release(&out);
}

/* Analyses without data of their kind are skipped, unless --analysis names them.  Runs of a sweep are not sweeps. */
static bool applies(const struct analyze_state *work, const struct subject *subject,
                    const struct analysis_driver *driver)
{
    if (driver->reads_sweep)
        return work->by_name && !work->sweep_count;
    if (work->by_name)
        return true;
    if (driver->reads_layers)
        return subject->layers.count > 0;
    return driver->reads_traces ? subject->has_traces : subject->has_table;
}

static size_t drivers_for(const struct analyze_state *work, const struct subject *subject,
                          const struct analysis_driver **out)
{
    size_t count = 0;
    for (size_t i = 0; i < work->driver_count; i++)
        if (applies(work, subject, work->drivers[i]))
            out[count++] = work->drivers[i];
    return count;
}

/* Attempts of a sweep are compared by its own analysis: repeats of one setting are not compared with each other. */
static bool is_attempt(const struct analyze_state *work, const char *path)
{
    for (size_t i = 0; i < work->sweep_count; i++) {
        size_t length = strlen(work->sweeps[i]);
        if (strncmp(path, work->sweeps[i], length) == 0 && path[length] == '/')
            return true;
    }
    return false;
}

static enum err analyze_subject(struct analyze_state *work, const struct subject *subject,
                                struct error *why)
{
    const struct analysis_driver *drivers[ANALYSES_MAX];
    struct result results[ANALYSES_MAX];
    const struct analysis_input input = {.table = subject->has_table ? &subject->table : NULL,
                                         .layers = &subject->layers,
                                         .traces = subject->has_traces ? subject->path : NULL};
    size_t count = drivers_for(work, subject, drivers);
    bool warned = false;
    enum err err = ERR_OK;
    bool in_text = work->format == PRINT_TABLE;
    bool is_run = subject->has_table && (in_text || !is_attempt(work, subject->path));
    if (is_run && !in_text)
        run_point_of(&subject->table, &work->runs[work->run_count++].point);
    else if (is_run)
        run_figures_of(&subject->table, &work->runs[work->run_count++]);
    analysis_run_all(drivers, count, &input, &work->options->params, results);
    for (size_t i = 0; i < count && !err; i++) {
        err = check_result(&results[i], why);
        if (!err && !results[i].err) {
            work->answered++;
            if (!subject->is_file)
                save_result(subject->path, &results[i], &warned);
        }
    }
    if (!err && in_text)
        show_subject(work, subject, results, count);
    else if (!err)
        put_results(work, subject->path, results, count);
    for (size_t i = 0; i < count; i++)
        result_release(&results[i]);
    return err;
}

static enum err run_across(const struct analyze_state *work, struct result *out)
{
    struct run_point *points = xcalloc(work->run_count + 1, sizeof *points);
    for (size_t i = 0; i < work->run_count; i++)
        points[i] = work->runs[i].point;
    out->err = across_run(points, work->run_count, out);
    free(points);
    return out->err;
}

/* Analyses across the runs, and across the models of all files. */
static enum err put_across(struct analyze_state *work, struct error *why)
{
    const struct analysis_input all_layers = {.layers = &work->layers};
    enum err err = ERR_OK;
    for (size_t i = 0; i < work->driver_count && !err; i++) {
        const struct analysis_driver *driver = work->drivers[i];
        bool of_runs = str_equal(driver->name, "scaling") && work->run_count > 1;
        struct result result = {0};
        if (!of_runs && !(driver->reads_layers && work->layered > 1))
            continue;
        result.err = of_runs ? run_across(work, &result)
                             : analysis_run(driver, &all_layers, &work->options->params, &result);
        err = check_result(&result, why);
        if (!err && work->format != PRINT_TABLE) {
            put_result(work, "", of_runs ? "across" : "across_layers", 1, &result);
        } else if (!err) {
            text_add(&work->out, of_runs ? "\n" : "\n comparison\n\n");
            show_results(work, &result, 1, lines_left(&work->out, of_runs ? 2 : 0), &work->out);
        }
        result_release(&result);
    }
    return err;
}

/* Several runs are summarized first, with details on request. */
static enum err put_text(struct analyze_state *work, struct error *why)
{
    bool verbose = work->options->verbose, several = work->run_count > 1;
    struct text *out = &work->out;
    if (several) {
        text_add(out, "\n");
        conclusion_of_runs(work->runs, work->run_count, work->options->model, work->each, verbose,
                           in_color(work), out);
    }
    enum err err = put_across(work, why);
    if (!err && several)
        show_warnings(work);
    text_add(out, !several || verbose || work->by_name ? text_get(&work->details) : "");
    text_add(out, text_get(&work->others));
    if (out->length && !verbose)
        text_addf(out, "\n -v shows every figure%s\n",
                  several ? "; `ipw compare` shows all differences" : "");
    return err;
}

/* ---- sources ---- */

/* Layers of a file, or in a directory next to its run. */
static enum err load_layers(struct analyze_state *work, struct subject *subject, struct error *why)
{
    size_t before = work->layers.count;
    enum err err = layers_results_load(subject->path, &work->layers, why);
    subject->layers = (struct layers_results){.count = work->layers.count - before};
    if (subject->layers.count) /* otherwise there may be no array to point into */
        subject->layers.models = work->layers.models + before;
    work->layered += subject->layers.count > 0;
    return err;
}

/* EXIT_DONE, or EXIT_FAILED after reporting the reason.  A directory may contain layers but no run. */
static int load_subject(struct analyze_state *work, struct run_wanted wanted,
                        struct subject *subject)
{
    struct error why = {0};
    int code = EXIT_DONE;
    bool is_directory = file_is_directory(subject->path);
    subject->is_file = !is_directory && file_exists(subject->path);
    if ((subject->is_file || is_directory) && load_layers(work, subject, &why))
        code = print_failure(&why);
    if (subject->is_file)
        return code;
    enum err err = run_table_load_texts(subject->path, work->options->model, wanted,
                                        texts_needed(work), &subject->table, &why);
    subject->has_table = !err;
    subject->has_traces = traces_exist(subject->path);
    if (err && (err != ERR_NOT_FOUND || !(subject->layers.count || subject->has_traces)))
        code = print_failure(&why);
    return code;
}

/* ---- sweeps ---- */

static const struct analysis_driver *sweep_driver(const struct analyze_state *work)
{
    for (size_t i = 0; i < work->driver_count; i++)
        if (work->drivers[i]->reads_sweep)
            return work->drivers[i];
    return NULL;
}

/* Keeps the output below 25 lines. */
enum { SETTINGS_SHOWN = 8 };

/* `several`: prints its name, since there are others. */
static enum err analyze_sweep(struct analyze_state *work, const char *path, bool several,
                              struct error *why)
{
    struct result result;
    bool warned = false, in_text = work->format == PRINT_TABLE;
    const struct analysis_input input = {.sweep = path};
    analysis_run(sweep_driver(work), &input, &work->options->params, &result);
    enum err err = check_result(&result, why);
    if (!err && in_text && several) {
        text_add(&work->out, work->out.length ? "\n " : " ");
        text_add_plain(&work->out, path);
        text_add(&work->out, "\n");
    }
    if (!err && !in_text)
        put_results(work, path, &result, 1);
    else if (!err && work->options->verbose)
        result_in_full(&result, in_color(work), &work->out);
    else if (!err)
        result_brief(&result, SETTINGS_SHOWN, in_color(work), &work->out);
    if (!err && !result.err)
        save_result(path, &result, &warned);
    result_release(&result);
    return err;
}

/* Moves duplicate directories to the end: keys of the JSON object must be unique, and the owner of the words frees each
 * once. */
static size_t drop_repeated(const char **words, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool before = false;
        for (size_t j = 0; j < kept && !before; j++)
            before = str_equal(words[j], words[i]);
        if (!before) {
            const char *word = words[i];
            words[i] = words[kept];
            words[kept++] = word;
        }
    }
    return kept;
}

/* Sweeps are analyzed as a whole; their runs only if other analyses are named or everything is printed. */
static void find_inputs(struct analyze_state *work, const char **words, size_t count,
                        struct run_inputs *out)
{
    if (!sweep_driver(work)) {
        run_inputs_find(words, count, false, out);
        return;
    }
    run_inputs_find(words, count, true, &work->named);
    size_t named = drop_repeated((const char **)work->named.paths, work->named.count);
    const char **runs = xcalloc(named + 1, sizeof *runs);
    work->sweeps = xcalloc(named + 1, sizeof *work->sweeps);
    size_t run_count = 0;
    for (size_t i = 0; i < named; i++)
        if (sweep_is(work->named.paths[i]))
            work->sweeps[work->sweep_count++] = work->named.paths[i];
        else
            runs[run_count++] = work->named.paths[i];
    bool attempts = (work->by_name || work->format != PRINT_TABLE) && work->driver_count > 1;
    for (size_t i = 0; attempts && i < work->sweep_count; i++)
        runs[run_count++] = work->sweeps[i];
    run_inputs_find(runs, run_count, false, out);
    free(runs);
}

/* ---- output ---- */

static void begin_output(struct analyze_state *work)
{
    json_init(&work->json, &work->out, true);
    result_rows_init(&work->rows);
    if (work->format == PRINT_JSON)
        json_object(&work->json, NULL);
}

static enum err end_output(struct analyze_state *work, struct error *why)
{
    enum err err = work->format == PRINT_TABLE ? put_text(work, why) : put_across(work, why);
    if (work->format == PRINT_JSON) {
        json_object_end(&work->json);
        text_add(&work->out, "\n");
    }
    if (work->format == PRINT_CSV)
        table_write_csv(&work->rows, &work->out);
    return err;
}

static int deliver_output(const struct analyze_state *work)
{
    const char *path = work->options->output;
    if (!work->out.length)
        return EXIT_DONE;
    return work->format == PRINT_CSV ? deliver_data(path, &work->out) : deliver(path, &work->out);
}

/* An unreadable directory is reported, and the others are still analyzed. */
static int analyze_all(struct analyze_state *work, const char **directories, size_t count)
{
    struct run_wanted wanted = columns_needed(work, count > 1);
    struct error why = {0};
    enum err err = ERR_OK;
    int code = EXIT_DONE;
    begin_output(work);
    for (size_t i = 0; !err && i < work->sweep_count; i++)
        err = analyze_sweep(work, work->sweeps[i], work->sweep_count + count > 1, &why);
    for (size_t i = 0; !err && i < count; i++) {
        struct subject subject = {.path = directories[i]};
        size_t answered = work->answered;
        if (load_subject(work, wanted, &subject) != EXIT_DONE)
            code = EXIT_FAILED;
        if (!subject.has_table && !subject.layers.count && !subject.has_traces)
            continue;
        err = analyze_subject(work, &subject, &why);
        if (!err && work->answered == answered)
            code = EXIT_FAILED;
        if (subject.has_table)
            run_table_release(&subject.table);
    }
    if (!err)
        err = end_output(work, &why);
    if (err)
        return print_failure(&why);
    int put = deliver_output(work);
    return put != EXIT_DONE ? put : code;
}

static struct analyze_options args;

static const struct option_row ROWS[] = {
    TEXT_ROW("analysis", args.analyses, "NAMES", "comma-separated analyses to run (default: all)"),
    MODEL_OPTION_ROW(args.model),
    PARAMS_ROW("option", args.params, "K=V", "parameter of an analysis; may be repeated"),
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_OPTION_ROW(args.output),
    FLAG_ROW("verbose", args.verbose, "all figures, not only the main finding of each analysis",
             .letter = 'v'),
    {0},
};

static int analyze_main(const char **words, size_t count)
{
    struct analyze_state work = {.options = &args,
                                 .format = format_chosen(&args.format, args.output)};
    struct run_inputs inputs = {0};
    int code = choose_drivers(&work);
    if (code < 0)
        code = check_params(&work);
    if (code < 0)
        find_inputs(&work, words, drop_repeated(words, count), &inputs);
    work.runs = xcalloc(inputs.count + 1, sizeof *work.runs);
    start_reading_bar(wants_color(STDERR_FILENO));
    if (code < 0)
        code = analyze_all(&work, (const char **)inputs.paths,
                           drop_repeated((const char **)inputs.paths, inputs.count));
    params_release(&args.params);
    text_release(&work.out);
    text_release(&work.details);
    text_release(&work.others);
    table_release(&work.rows);
    result_release(&work.quality_notes);
    layers_results_release(&work.layers);
    run_inputs_release(&inputs);
    run_inputs_release(&work.named);
    free(work.sweeps);
    free(work.runs);
    return code;
}

const struct command command_analyze = {
    .name = "analyze",
    .summary = "statistics of runs: energy, latency, accuracy, outliers, quality",
    .usage = "DIR|FILE... [OPTIONS]",
    .details =
        "Reads run directories (also of the Python IPW) and reports fits with their errors,\n"
        "confidence intervals, percentiles, outliers and data quality. If there is not enough\n"
        "data for an analysis, it reports what is missing. Results of `ipw layers` are read from\n"
        "a FILE (-o) or from layers*.json in a DIR.\n\n"
        "Each result is also written to DIR/analysis/NAME.json. Several DIRs are compared with\n"
        "each other, and so are the settings of a sweep, also of one inside a DIR of runs. `ipw\n"
        "list analyses -v` shows the analyses and their parameters.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .required = "missing run directory",
    .run = analyze_main,
};
