/* ipw plot: plots of runs and of measured layers, drawn by gnuplot.
 *
 *   $ ipw plot runs/profile_H100_llama3_2_1b_builtin
 *
 * One file per plot, DIR/plots/NAME.png.  Their paths go to stdout; skipped plots and reasons to stderr. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/registry.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "power/data_checks.h"
#include "power/sweep_points.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "rundir/layers_result.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_path.h"
#include "rundir/run_table.h"

enum { PLOTS_MAX = 64 };

struct plot_options {
    const char *plots, *output, *formats, *model;
    struct power_options data;
    bool dark;
};

/* The request, and the results so far. */
struct plot_state {
    const struct plot_options *options;
    const char **sources;
    size_t source_count;
    const struct plot_driver *drivers[PLOTS_MAX];
    size_t driver_count;
    bool by_name; /* --plot was given: each must be drawn */
    bool formats[FIGURE_FORMATS];
    struct run_figures *runs;
    size_t run_count; /* plotted together */
    bool had_run;
    struct layers_results layers;   /* layers of all sources */
    char *layers_folder;            /* folder for plots of all layers: next to the first; or NULL */
    bool drawn[PLOTS_MAX];          /* by driver */
    struct error missed[PLOTS_MAX]; /* reason, by driver, for the current source */
    struct text paths, notes;       /* notes already printed */
    bool broken;                    /* a plot could not be written: stop */
    bool has_error;
};

/* ---- selection ---- */

static int choose_plot(void *context, const char *name)
{
    struct plot_state *work = context;
    struct error why = {0};
    const struct plot_driver *driver = plot_driver_find(name, &why);
    if (!driver)
        return print_error(EXIT_USAGE, "%s", why.text);
    if (!registry_has(work->drivers, work->driver_count, driver) && work->driver_count < PLOTS_MAX)
        work->drivers[work->driver_count++] = driver;
    return -1;
}

static int choose_format(void *context, const char *name)
{
    struct plot_state *work = context;
    const char *const *format = STR_FIND(name, FIGURE_SUFFIXES);
    if (!format)
        return print_error(EXIT_USAGE, "unknown format '%s': use png, svg or pdf", name);
    work->formats[format - FIGURE_SUFFIXES] = true;
    return -1;
}

static bool is_image_file(const char *name)
{
    const char *dot = name && !file_is_directory(name) ? strrchr(name, '.') : NULL;
    return dot && STR_FIND(dot + 1, FIGURE_SUFFIXES);
}

static int choose(struct plot_state *work)
{
    int code = -1;
    work->by_name = work->options->plots != NULL;
    if (work->by_name)
        code = each_name(work->options->plots, choose_plot, work,
                         "--plot is empty; see `ipw list plots`");
    for (size_t i = 0; !work->by_name && PLOT_DRIVERS[i] && i < PLOTS_MAX; i++)
        work->drivers[work->driver_count++] = PLOT_DRIVERS[i];
    if (code < 0 && is_image_file(work->options->output))
        code = print_error(EXIT_USAGE, "plots are written to a directory: --output-dir DIR");
    if (code < 0)
        code = each_name(work->options->formats ? work->options->formats : "png", choose_format,
                         work, "--format is empty: use png, svg or pdf");
    return code;
}

static struct run_wanted columns_needed(const struct plot_state *work)
{
    struct run_wanted wanted = {work->source_count > 1 ? RUN_FIGURES_NEEDS : 0, RUN_FIGURES_WORDS};
    for (size_t i = 0; i < work->driver_count; i++) {
        wanted.numbers |= work->drivers[i]->needs.numbers;
        wanted.words |= work->drivers[i]->needs.words;
    }
    return wanted;
}

/* ---- paths ---- */

/* Without the suffix of a file of layers; the caller frees it. */
static char *stem_of(const char *path)
{
    return xstrndup(path, strlen(path) - (str_ends(path, ".json") ? strlen(".json") : 0));
}

/* The name in a stem; the caller frees it. */
static char *source_stem(const char *source)
{
    char *stem = stem_of(source);
    struct slice name = slice_path_name(slice_of(stem));
    char *copy = xstrndup(name.start, name.length);
    free(stem);
    return copy;
}

static bool is_name_taken(const struct plot_state *work, size_t source, const char *name)
{
    bool taken = false;
    for (size_t i = 0; i < source && !taken; i++) {
        char *other = source_stem(work->sources[i]);
        taken = str_equal(name, other);
        free(other);
    }
    return taken;
}

/* Next to a source. */
static char *folder_beside(const char *path, bool is_file)
{
    if (!is_file)
        return path_join(path, RUN_PLOTS);
    char *stem = stem_of(path);
    char *folder = xformat("%s-" RUN_PLOTS, stem);
    free(stem);
    return folder;
}

/* The folder of a source's plots.  With --output-dir each of several sources has its own, by name; the number of the
 * source is appended to a duplicate name.  The caller frees it. */
static char *plot_folder(const struct plot_state *work, size_t source, bool is_file)
{
    const char *output = work->options->output;
    if (!output)
        return folder_beside(work->sources[source], is_file);
    if (work->source_count == 1)
        return xstrdup(output);
    char *name = source_stem(work->sources[source]);
    char *folder = is_name_taken(work, source, name)
                       ? xformat("%s/%s-%zu", output, name, source + 1)
                       : path_join(output, name);
    free(name);
    return folder;
}

/* ---- drawing ---- */

/* The path of a folder relative to its run directory; NULL if it is not in one. */
static const char *within_run(const struct plot_state *work, const char *folder, const char **run)
{
    for (size_t i = 0; i < work->source_count && !work->options->output; i++) {
        size_t length = strlen(work->sources[i]);
        *run = work->sources[i];
        if (str_starts(folder, *run) && folder[length] == '/')
            return folder + length + strspn(folder + length, "/");
    }
    return NULL;
}

static enum err open_image(const struct plot_state *work, const char *folder, const char *file,
                           struct output *out, struct error *why)
{
    const char *run, *subfolder = within_run(work, folder, &run);
    char *path = path_join(subfolder ? subfolder : folder, file);
    enum err err = subfolder ? ERR_OK : file_make_parents(path, why);
    if (!err)
        err = subfolder ? output_open_within(out, run, path, why)
                        : output_open(out, path, false, why);
    free(path);
    return err;
}

static enum err draw_file(const struct plot_state *work, const char *folder, const char *name,
                          struct figure *figure, enum figure_format format, struct error *why)
{
    char file[128];
    struct output output;
    chars_format(file, "%s.%s", name, FIGURE_SUFFIXES[format]);
    enum err err = open_image(work, folder, file, &output, why);
    if (!err)
        err = output_finish(&output,
                            gnuplot_draw(figure, format, work->options->dark, &output, why), why);
    return err;
}

static void put_files(struct plot_state *work, size_t which, struct figure *figure,
                      const char *folder)
{
    const char *name = work->drivers[which]->name;
    struct error why = {0};
    for (int format = 0; format < FIGURE_FORMATS && !work->broken; format++) {
        if (!work->formats[format])
            continue;
        if (draw_file(work, folder, name, figure, (enum figure_format)format, &why)) {
            print_error(EXIT_FAILED, "%s: %s", name, why.text);
            work->broken = true;
            continue;
        }
        work->drawn[which] = true;
        text_add_plain(&work->paths, folder);
        text_addf(&work->paths, "/%s.%s\n", name, FIGURE_SUFFIXES[format]);
    }
}

/* Draws every selected plot of this kind; those without data are stored in `missed`. */
static void draw_source(struct plot_state *work, unsigned kind, const struct plot_source *source,
                        const char *folder)
{
    memset(work->missed, 0, sizeof work->missed);
    for (size_t i = 0; i < work->driver_count && !work->broken; i++) {
        struct figure figure = {0};
        struct error why = {0};
        if (!(work->drivers[i]->of & kind))
            continue;
        enum err err = plot_draw(work->drivers[i], source, &figure, &why);
        if (!err) {
            put_files(work, i, &figure, folder);
        } else {
            work->missed[i] = why;
            work->missed[i].code = err;
            work->has_error = work->has_error || err != ERR_NO_DATA;
        }
        figure_release(&figure);
    }
}

/* "skipped: a, b: why", grouping plots with the same reason. */
static void report_missed(struct plot_state *work, const char *source)
{
    for (size_t i = 0; i < work->driver_count; i++) {
        if (!work->missed[i].code)
            continue;
        notify("skipped%s%s: %s", source ? " for " : "", text_or_empty(source),
               work->drivers[i]->name);
        for (size_t j = i + 1; j < work->driver_count; j++)
            if (work->missed[j].code && str_equal(work->missed[i].text, work->missed[j].text)) {
                notify(", %s", work->drivers[j]->name);
                work->missed[j].code = ERR_OK;
            }
        notify(": %s\n", work->missed[i].text);
    }
}

static const char *source_name(const struct plot_state *work, size_t source)
{
    return work->source_count > 1 ? work->sources[source] : NULL;
}

/* ---- sources ---- */

/* Once, even if several runs have it. */
static void print_note(struct plot_state *work, const char *note)
{
    struct text line = {0};
    text_addf(&line, "%s\n", note);
    if (!strstr(text_get(&work->notes), text_get(&line))) {
        notify("note: %s\n", note);
        text_add(&work->notes, text_get(&line));
    }
    text_release(&line);
}

/* may_lack: a directory with measured layers may have no run. */
static void plot_run_directory(struct plot_state *work, size_t source, bool may_lack)
{
    struct run_table table;
    struct error why = {0};
    enum err err = run_table_load(work->sources[source], work->options->model, columns_needed(work),
                                  &table, &why);
    if (err == ERR_NOT_FOUND && may_lack)
        return;
    if (err) {
        work->has_error = true;
        print_failure(&why);
        return;
    }
    work->had_run = true;
    for (size_t i = 0; i < table.note_count; i++)
        print_note(work, table.notes[i].text);
    char *folder = plot_folder(work, source, false);
    draw_source(work, PLOT_OF_RUN, &(struct plot_source){.table = &table}, folder);
    free(folder);
    report_missed(work, source_name(work, source));
    if (work->source_count > 1)
        run_figures_of(&table, &work->runs[work->run_count++]);
    run_table_release(&table);
}

static void plot_model(struct plot_state *work, size_t source, const struct layers_result *model,
                       bool is_file, bool is_one_of_many)
{
    char subfolder[256] = "";
    char *folder = plot_folder(work, source, is_file);
    char *of_layers = xformat("%s%s", folder, is_file ? "" : "/layers");
    if (is_one_of_many)
        model_slug(model->model ? model->model : "model", subfolder, sizeof subfolder);
    char *path = subfolder[0] ? path_join(of_layers, subfolder) : xstrdup(of_layers);
    draw_source(work, PLOT_OF_LAYERS, &(struct plot_source){.layers = model, .layer_count = 1},
                path);
    report_missed(work, subfolder[0] ? subfolder : source_name(work, source));
    if (!work->layers_folder)
        work->layers_folder = xstrdup(of_layers);
    free(path);
    free(of_layers);
    free(folder);
}

/* The layers of a file or directory; returns the number of models. */
static size_t plot_layers(struct plot_state *work, size_t source, bool is_file)
{
    struct error why = {0};
    size_t before = work->layers.count;
    enum err err = layers_results_load(work->sources[source], &work->layers, &why);
    size_t count = work->layers.count - before;
    for (size_t i = before; i < work->layers.count; i++)
        plot_model(work, source, &work->layers.models[i], is_file, count > 1);
    if (err) {
        print_failure(&why);
        work->has_error = true;
    }
    return count;
}

static void plot_sweep(struct plot_state *work, size_t source)
{
    struct sweep_points points;
    struct error why = {0};
    if (sweep_points_load(work->sources[source], &points, &why)) {
        work->has_error = true;
        print_failure(&why);
        return;
    }
    char *folder = plot_folder(work, source, false);
    draw_source(work, PLOT_OF_SWEEP, &(struct plot_source){.sweep = &points}, folder);
    free(folder);
    report_missed(work, source_name(work, source));
    sweep_points_release(&points);
}

/* Each GPU and application of --input, in its own folder if there are several. */
static void plot_curves(struct plot_state *work, const struct freq_curves *curves)
{
    const char *output = work->options->output, *path = work->options->data.inputs.items[0];
    for (size_t i = 0; i < curves->count && !work->broken; i++) {
        const struct freq_curve *curve = &curves->items[i];
        char name[128], subfolder[160] = "";
        chars_format(name, "%s %s", curve->gpu, curve->application);
        if (curves->count > 1)
            model_slug(name, subfolder, sizeof subfolder);
        const char *ending = file_is_directory(path) ? "/" RUN_PLOTS : "-" RUN_PLOTS;
        char *folder = xformat("%s%s%s%s", output ? output : path, output ? "" : ending,
                               subfolder[0] ? "/" : "", subfolder);
        draw_source(work, PLOT_OF_CURVE, &(struct plot_source){.curve = curve}, folder);
        free(folder);
        report_missed(work, curves->count > 1 ? plain_text(name).text : NULL);
    }
}

static void plot_inputs(struct plot_state *work)
{
    struct freq_data data;
    struct error why = {0};
    if (!work->options->data.inputs.count)
        return;
    if (power_options_read(&work->options->data, &data, &why)) {
        work->has_error = true;
        print_failure(&why);
    } else {
        plot_curves(work, &data.curves);
        for (size_t i = 0; i < data.findings.count; i++)
            if (data.findings.items[i].severity != FINDING_NOTE)
                print_note(work, data.findings.items[i].text);
    }
    freq_data_release(&data);
}

static void plot_one(struct plot_state *work, size_t source)
{
    const char *path = work->sources[source];
    if (sweep_points_is(path))
        plot_sweep(work, source);
    else if (file_is_directory(path))
        plot_run_directory(work, source, plot_layers(work, source, false) > 0);
    else if (file_exists(path))
        plot_layers(work, source, true);
    else
        plot_run_directory(work, source, false);
}

/* All results of layers in one plot, and all runs, in the folder of the first. */
static void plot_together(struct plot_state *work)
{
    if (work->layers.count && !work->broken) {
        draw_source(
            work, PLOT_OF_ALL_LAYERS,
            &(struct plot_source){.layers = work->layers.models, .layer_count = work->layers.count},
            work->options->output ? work->options->output : work->layers_folder);
        report_missed(work, NULL);
    }
    if (work->run_count < 2 || work->broken)
        return;
    char *folder = work->options->output ? xstrdup(work->options->output)
                                         : path_join(work->runs[0].point.directory, RUN_PLOTS);
    draw_source(work, PLOT_OF_RUNS,
                &(struct plot_source){.runs = work->runs, .run_count = work->run_count}, folder);
    report_missed(work, NULL);
    free(folder);
}

/* Selected plots without any source of their kind. */
static void report_without_source(struct plot_state *work)
{
    memset(work->missed, 0, sizeof work->missed);
    for (size_t i = 0; i < work->driver_count; i++) {
        unsigned of = work->drivers[i]->of;
        if (of & PLOT_OF_RUNS && work->run_count < 2 && !work->drawn[i])
            err_set(&work->missed[i], ERR_NO_DATA, "needs two runs");
        else if ((of == PLOT_OF_LAYERS || of == PLOT_OF_ALL_LAYERS) && !work->layers.count)
            err_set(&work->missed[i], ERR_NO_DATA, "needs a result of `ipw layers`");
        else if (of == PLOT_OF_RUN && !work->had_run && work->layers.count)
            err_set(&work->missed[i], ERR_NO_DATA, "needs a run directory");
    }
    report_missed(work, NULL);
}

/* ---- the command ---- */

static int plot_all(struct plot_state *work)
{
    for (size_t i = 0; i < work->source_count && !work->broken; i++)
        plot_one(work, i);
    plot_together(work);
    plot_inputs(work);
    if (!work->broken && (work->had_run || work->layers.count))
        report_without_source(work);
    bool none = !work->paths.length, missing = false;
    for (size_t i = 0; i < work->driver_count; i++)
        missing = missing || (work->by_name && !work->drawn[i]);
    int code = work->has_error || work->broken || none || missing ? EXIT_FAILED : EXIT_DONE;
    int put = none ? EXIT_DONE : put_output(&work->paths);
    return put != EXIT_DONE ? put : code;
}

static int check_parts(void)
{
    struct error why = {0};
    if (gnuplot_available(&why))
        return print_failure(&why);
    return -1;
}

static struct plot_options args;

static const struct option_row ROWS[] = {
    TEXT_ROW("plot", args.plots, "NAMES",
             "comma-separated plots (default: all for which there is data)"),
    TEXT_ROW("output-dir", args.output, "DIR", "write the plots to DIR"),
    HINT_ROW("output", "plots are written to a directory: use --output-dir DIR", .letter = 'o'),
    TEXT_ROW("format", args.formats, "LIST",
             "comma-separated formats: png, svg, pdf (default: png)"),
    FLAG_ROW("dark", args.dark, "dark background"),
    MODEL_OPTION_ROW(args.model),
    POWER_OPTION_ROWS(args.data),
    {0},
};

/* A sweep is plotted as a whole; its runs only if a named plot applies only to runs. */
static void find_sources(struct plot_state *work, const char **words, size_t count,
                         struct run_inputs *inputs)
{
    bool path = true;
    for (size_t i = 0; work->by_name && i < work->driver_count; i++)
        path = path && work->drivers[i]->of & PLOT_OF_SWEEP;
    run_inputs_find(words, count, path, inputs);
    work->sources = (const char **)inputs->paths;
    work->source_count = inputs->count;
    work->runs = xcalloc(inputs->count + 1, sizeof *work->runs);
}

#define MISSING "missing run directory, or --input FILE"

static int plot_main(const char **words, size_t count)
{
    struct plot_state work = {.options = &args};
    struct run_inputs inputs = {0};
    int code = count || args.data.inputs.count ? choose(&work) : usage_error(MISSING);
    if (code < 0)
        find_sources(&work, words, count, &inputs);
    if (code < 0)
        code = check_parts();
    start_reading_bar(wants_color(STDERR_FILENO));
    if (code < 0)
        code = plot_all(&work);
    run_inputs_release(&inputs);
    text_release(&work.paths);
    text_release(&work.notes);
    layers_results_release(&work.layers);
    free(work.layers_folder);
    free(work.runs);
    return code;
}

const struct command command_plot = {
    .name = "plot",
    .summary = "plot runs: energy, power, latency, accuracy, layers",
    .usage = "[DIR|FILE...] [--input FILE] [OPTIONS]",
    .details =
        "Plots run directories (also of the Python IPW) and results of `ipw layers`, given as a\n"
        "FILE or as layers*.json in a DIR. Every plot for which there is data is written to\n"
        "DIR/plots/NAME.png, plots of layers to DIR/plots/layers, and plots of FILE.json to\n"
        "FILE-plots. Several runs are also plotted together, in the folder of the first, and so\n"
        "are several results of `ipw layers`. The plot `frequency` shows the settings of a sweep,\n"
        "or measurements at several clocks given by --input: CSV, or logs of GPU profilers.\n"
        "Prints the paths, and which plots were skipped and why.\n\n"
        "Needs gnuplot. `ipw list plots` shows the plots.",
    .rows = ROWS,
    .words = WORDS_ANY,
    .run = plot_main,
};
