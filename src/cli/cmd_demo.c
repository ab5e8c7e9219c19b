/* ipw demo: the shipped models on the shipped questions, in this process: accuracy and energy of each, without other
 * software.
 *
 *   $ ipw demo
 *   $ ipw demo --model smollm2 --queries 30
 *
 * If no model can run, it shows what can be measured here, and measures a CPU load. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "clients/client.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "engine/shipped.h"
#include "port/file.h"
#include "port/proc.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/text/reports.h"
#include "rundir/run_dir.h"
#include "runner/host_report.h"
#include "runner/profile/profile.h"
#include "sampler/session.h"
#include "workloads/workload.h"

extern const struct command command_doctor;
extern const struct command command_plot;
extern const struct command command_report;
extern const struct command command_run;

/* Twice the length of any correct answer; limits models that do not stop. */
#define ANSWER_TOKENS "64"

/* ---- options ---- */

static struct demo_command {
    struct measure_options measure;
    struct profile_options profile;
    const char *models, *workloads, *output;
    struct failed_limit max_failed;
    unsigned threads;
    struct format_options format;
    bool quiet;
} command = {
    .measure = {.idle_s = UNKNOWN},
    .threads = 1,
    .profile = {.client = "llama",
                .dataset = "builtin",
                .output_dir = "runs/demo",
                .max_queries = 600,
                .concurrency = 1,
                .repeat = 1,
                .warmup_queries = 3,
                .idle_s = 2,
                .timeout_s = 600,
                .decode_weight = 64, /* same as ipw profile */
                .existing = EXISTING_OVERWRITE,
                .progress = profile_view_show,
                .warn = profile_view_warn},
};

static const struct option_row ROWS[] = {
    TEXT_ROW("model", command.models, "LIST",
             "models to run: shipped ones or GGUF files, comma-separated"),
    TEXT_ROW("workload", command.workloads, "LIST",
             "those of `ipw list workloads` (default: all; text with --model)"),
    COUNT_ROW("queries", command.profile.max_queries, "N", "questions per model (default: 600)",
              .min = 1, .max = 1e6),
    COUNT_ROW("threads", command.threads, "N",
              "compute threads (default: 1: the models are too small for more)", .min = 1,
              .max = 4096, .letter = 't'),
    MAX_FAILED_OPTION_ROW(command.max_failed),
    IDLE_OPTION_ROW(command.measure,
                    "measure idle power for S seconds before each model (default: 2)", 0),
    TEXT_ROW("output-dir", command.profile.output_dir, "DIR",
             "parent of the run directories (default: runs/demo)"),
    RESULT_OPTION_ROWS(command, "no progress on stderr"),
    MEASURE_OPTION_ROWS(command.measure, NULL),
    {0},
};

/* ---- without an engine ---- */

static int show_step(const struct command *step, int argc, char **argv)
{
    struct text text = {0};
    text_add(&text, "$ ipw");
    for (int i = 0; i < argc; i++)
        text_addf(&text, " %s", plain_text(argv[i]).text);
    text_add(&text, "\n\n");
    int code = put_output(&text);
    text_release(&text);
    return code ? code : command_call(step, argc, argv);
}

static int show_load(void)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return print_error(EXIT_FAILED, "cannot find the path of this program: %m");
    self[length] = '\0';
    char *doctor[] = {"doctor", NULL};
    char *run[] = {"run", "-r", "3", "--idle", "1", "--", self, "load", "--seconds", "1", NULL};
    int code = show_step(&command_doctor, 1, doctor);
    if (code)
        return code;
    code = put_output(&(struct text){.bytes = (char[]){"\n"}, .length = 1});
    return code ? code : show_step(&command_run, 10, run);
}

/* ---- selecting models ---- */

/* Prefix of the shipped models among those that the client lists. */
static const char FAMILY[] = "ipw-";

static enum err list_family(struct client_models *out, struct error *why)
{
    struct client client;
    struct client_models all = {0};
    const struct client_config config = {0};
    const struct client_driver *driver = client_driver_find("llama", why);
    enum err err = driver ? client_open(driver, &config, &client, why) : ERR_UNSUPPORTED;
    if (err)
        return err;
    err = driver->models(&client, &all, why);
    for (size_t i = 0; i < all.count && !err; i++)
        if (strncmp(all.names[i], FAMILY, strlen(FAMILY)) == 0)
            client_models_add(out, all.names[i]);
    if (!err && out->count == 0)
        err = err_set(why, ERR_NOT_FOUND,
                      "the shipped models are missing: is the installation complete?");
    client_models_release(&all);
    client_close(&client);
    return err;
}

static void list_named(const char *list, struct client_models *out)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        char *name = xstrndup(list, length);
        if (length)
            client_models_add(out, name);
        free(name);
        list += length + (list[length] == ',');
    }
}

/* ---- what to run ---- */

enum { WORKLOADS_MAX = 16, WORKLOAD_QUERIES = 120 };

static bool is_wanted(const char *workload)
{
    char name[32];
    const char *list = command.workloads;
    if (!list)
        return !command.models || str_equal(workload, WORKLOAD_TEXT);
    while (list && str_next_item(&list, name, sizeof name))
        if (str_equal(name, workload))
            return true;
    return false;
}

static enum err check_wanted(struct error *why)
{
    char name[32];
    const char *list = command.workloads;
    while (list && str_next_item(&list, name, sizeof name))
        if (!str_equal(name, WORKLOAD_TEXT) && !workload_driver_find(name, why))
            return ERR_USAGE;
    return ERR_OK;
}

/* The runs of the demo, with the strings and options that they need. */
struct plan {
    struct profile_entry *entries;
    size_t count, capacity;
    struct profile_options options[WORKLOADS_MAX]; /* one of each workload */
    size_t workload_count;
    struct client_models names; /* owns the strings */
};

static const char *keep(struct plan *plan, const char *string)
{
    client_models_add(&plan->names, string);
    return plan->names.names[plan->names.count - 1];
}

static void add_entry(struct plan *plan, const struct profile_options *profile, const char *model,
                      const char *file, const char *image)
{
    *XADD(plan->entries, plan->count, plan->capacity) =
        (struct profile_entry){profile, keep(plan, model), file ? keep(plan, file) : NULL,
                               image ? keep(plan, image) : NULL};
}

/* The side of the images of a detector that takes any, from its metadata ("[64, 64]"); NULL: it says none. */
static char *image_size(const char *file)
{
    struct onnx_session *session;
    struct error ignored;
    const struct onnx_options options = {.threads = 1};
    if (!str_ends(file, ".onnx") || onnx_session_open(file, &options, &session, &ignored))
        return NULL;
    char *sizes = onnx_session_metadata(session, "imgsz");
    size_t start = sizes ? strcspn(sizes, "0123456789") : 0;
    size_t length = sizes ? strspn(sizes + start, "0123456789") : 0;
    char *side = length ? xstrndup(sizes + start, length) : NULL;
    free(sizes);
    onnx_session_close(session);
    return side;
}

/* The file whose cost is that of the model; NULL for one of several parts. */
static char *file_to_estimate(const char *path)
{
    static const char *const NAMES[] = {"model.onnx", "unet/model.onnx", NULL};
    if (!file_is_directory(path))
        return xstrdup(path);
    for (const char *const *name = NAMES; *name; name++) {
        char *file = path_join(path, *name);
        if (file_exists(file))
            return file;
        free(file);
    }
    return NULL;
}

/* Other sizes of a model differ in its name's last letter: scenes-yolo-n, scenes-yolo-s. */
static bool is_size_of(const char *name, const char *model)
{
    size_t length = strlen(model);
    return strlen(name) == length && length > 2 && model[length - 2] == '-' &&
           strncmp(name, model, length - 1) == 0;
}

static void add_workload(struct plan *plan, const struct workload_driver *driver)
{
    struct shipped_names shipped;
    struct profile_options *options = &plan->options[plan->workload_count++];
    *options = command.profile;
    options->workload = driver;
    options->client = workload_client.name;
    options->dataset = driver->default_dataset;
    options->request_params = (struct params){0};
    if (options->max_queries > WORKLOAD_QUERIES)
        options->max_queries = WORKLOAD_QUERIES;
    shipped_list_onnx(&shipped);
    for (size_t i = 0; i < shipped.count; i++) {
        const char *name = shipped.items[i];
        char *path = NULL, *file = NULL, *image = NULL;
        struct error ignored;
        if (!str_equal(name, driver->default_model) && !is_size_of(name, driver->default_model))
            continue;
        if (shipped_find_onnx(name, &path, &ignored) == ERR_OK)
            file = file_to_estimate(path);
        if (file)
            image = image_size(file);
        add_entry(plan, options, name, file, image);
        free(image);
        free(path);
        free(file);
    }
    shipped_names_release(&shipped);
}

/* Workloads with a shipped model and data; without ONNX Runtime none, with the reason. */
static void add_workloads(struct plan *plan)
{
    const char *version;
    struct error why = {0};
    bool can_run = onnx_available(&version, &why) == ERR_OK;
    bool any = false;
    for (size_t i = 0; WORKLOAD_DRIVERS[i] && plan->workload_count < WORKLOADS_MAX; i++) {
        const struct workload_driver *driver = WORKLOAD_DRIVERS[i];
        if (!driver->default_model || !driver->default_dataset || !is_wanted(driver->name))
            continue;
        any = true;
        if (can_run)
            add_workload(plan, driver);
    }
    if (any && !can_run)
        notify("ipw demo: no vision, speech and diffusion: %s\n", why.text);
}

static void add_models(struct plan *plan, const struct client_models *models)
{
    for (size_t i = 0; i < models->count && is_wanted(WORKLOAD_TEXT); i++) {
        char *path = NULL;
        struct error ignored;
        bool found = shipped_find(models->names[i], &path, &ignored) == ERR_OK;
        add_entry(plan, &command.profile, models->names[i], found ? path : NULL, NULL);
        free(path);
    }
}

/* ---- the command ---- */

static void announce(const char *model, size_t index, size_t count)
{
    profile_view_clear();
    if (!command.quiet)
        notify("%zu of %zu: %s\n", index + 1, count, model);
}

static void print_family(const void *context, enum print_format format, bool color,
                         struct text *out)
{
    result_print(context, format, &FAMILY_VIEWS, color, out);
}

/* Of the completed runs, by the tests of `ipw compare`. */
static void conclude(struct profile_family *family)
{
    struct text words = {0};
    const char **directories = xcalloc(family->count + 1, sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].completed > 0 && !family->members[i].workload)
            directories[count++] = family->members[i].directory;
    conclusion_of_models(directories, count, &words);
    family->conclusion = words.length ? xstrdup(text_get(&words)) : NULL;
    free((void *)directories);
    text_release(&words);
}

static int write_outputs(const struct profile_family *family)
{
    struct result result = {0};
    struct text table = {0};
    profile_family_fill(family, &result);
    if (format_is_data(&command.format) && !command.quiet) {
        print_family(&result, PRINT_TABLE, wants_color(STDERR_FILENO), &table);
        profile_view_put(&table);
    }
    int code = deliver_result(command.output, &command.format, print_family, &result, true);
    text_release(&table);
    result_release(&result);
    return code;
}

/* Calls a command with all completed runs. */
static int call_for_runs(const struct command *step, const struct profile_family *family,
                         char *const *options)
{
    char **words = xcalloc(family->count + 6, sizeof *words);
    int count = 1;
    words[0] = (char *)step->name;
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].completed)
            words[count++] = (char *)family->members[i].directory;
    for (; *options; options++)
        words[count++] = *options;
    int code = command_call(step, count, words);
    free(words);
    return code;
}

/* A page and plots of all runs, by the respective commands, which print the paths of their output. */
static int write_pages(const struct profile_family *family)
{
    char *page = path_join(command.profile.output_dir, RUN_REPORT);
    char *plots = path_join(command.profile.output_dir, RUN_PLOTS);
    struct error why = {0};
    size_t drawn = 0; /* models with known energy */
    for (size_t i = 0; i < family->count; i++)
        drawn += is_known(family->members[i].joules_per_query);
    int code = call_for_runs(&command_report, family, (char *[]){"-o", page, NULL});
    if (!code && gnuplot_available(&why) == ERR_OK && drawn > 1)
        code = call_for_runs(&command_plot, family,
                             (char *[]){"--output-dir", plots, "--plot", "pareto,models", NULL});
    free(page);
    free(plots);
    return code;
}

static int check_members(const struct profile_family *family)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < family->count && !code; i++) {
        const struct profile_member *member = &family->members[i];
        code = require_answers(&command.max_failed, member->queries, member->failed, member->model,
                               member->directory);
        if (!code)
            code = require_measured(&command.measure, &member->energy, &member->conditions);
    }
    return code;
}

static int run_family(const struct plan *plan)
{
    /* Not released, as in cmd_profile.c. */
    static struct session session;
    static struct host_report host;
    const struct profile_family_options options = {
        .entries = plan->entries,
        .count = plan->count,
        .begins = announce,
    };
    struct profile_family family;
    struct error why = {0};
    proc_block_signals();
    int code = open_session(&command.measure, &session);
    if (code)
        return code;
    host_report_fill(&session.findings, &host);
    profile_view_start("demo", command.quiet);
    enum err err = profile_family_run(&session, &host, &options, &family, &why);
    profile_view_clear();
    if (err == ERR_INTERRUPTED)
        _exit(128 + family.signal);
    if (err)
        code = print_failure(&why);
    else {
        conclude(&family);
        code = write_outputs(&family);
    }
    if (!err && !code && !format_is_data(&command.format) && !family.signal)
        code = write_pages(&family);
    if (family.signal)
        code = 128 + family.signal;
    else if (!err) {
        int checked = check_members(&family);
        code = code ? code : checked;
    }
    profile_family_release(&family);
    return code;
}

static void set_params(void)
{
    char threads[16];
    chars_format(threads, "%u", command.threads);
    params_set(&command.profile.client_params, "threads", threads);
    params_set(&command.profile.request_params, "max_tokens", ANSWER_TOKENS);
}

static int demo_main(const char **words, size_t count)
{
    (void)words, (void)count;
    int code;
    static struct plan plan; /* threads may use it until the process exits */
    struct client_models models = {0};
    struct error why = {0};
    if (check_wanted(&why))
        return print_error(EXIT_USAGE, "--workload: %s", why.text);
    if ((code = failed_limit_read(&command.max_failed)))
        return code;
    if (is_known(command.measure.idle_s))
        command.profile.idle_s = command.measure.idle_s;
    enum err err = ERR_OK;
    set_params();
    if (command.models)
        list_named(command.models, &models);
    else if (is_wanted(WORKLOAD_TEXT))
        err = list_family(&models, &why);
    add_models(&plan, &models);
    add_workloads(&plan);
    if (err == ERR_UNSUPPORTED && plan.count) {
        notify("ipw demo: no text: %s\n", why.text);
        err = ERR_OK;
    }
    if (err == ERR_UNSUPPORTED) {
        print_error(0, "no model can run here: %s", why.text);
        return show_load();
    }
    if (!err && plan.count == 0)
        err = err_set(&why, ERR_USAGE, "--%s is empty", command.models ? "model" : "workload");
    if (err)
        code = print_err(err, &why);
    else
        code = run_family(&plan);
    client_models_release(&models);
    client_models_release(&plan.names);
    free(plan.entries);
    return code;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "run the shipped models on the shipped data: accuracy against energy",
    .usage = "[OPTIONS]",
    .details =
        "Profiles six small language models, two sizes in three precisions, trained for the\n"
        "questions that ship with this program, and small models of vision, speech and diffusion\n"
        "on the data that ships with them. The tables show quality, energy, what `ipw estimate`\n"
        "predicts, and which models are Pareto-optimal. Every run keeps its directory, as with\n"
        "`ipw profile`; `ipw report` and `ipw plot` make a page and plots of all runs.\n\n"
        "Without the llama.cpp library no model can run: then `ipw doctor` and `ipw run` show\n"
        "what this machine can measure, with a load of a few seconds.",
    .rows = ROWS,
    .run = demo_main,
};
