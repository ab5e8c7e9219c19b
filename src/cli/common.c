/* Shared by the commands; command_call at the end runs one. */
#include "cli/common.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/result.h"
#include "core/clock.h"
#include "core/energy.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "db/db.h"
#include "port/file.h"
#include "port/proc.h"
#include "port/term.h"
#include "live/live.h"
#include "rundir/run_list.h"
#include "rundir/summary.h"
#include "runner/await.h"
#include "sampler/session.h"

static const struct command *current; /* the running command; NULL before the first */

/* ---- progress of reading a large run, on stderr ---- */

static struct reading_bar bar;

static void put_bar(struct text *text)
{
    if (text->length)
        fwrite(text_get(text), 1, text->length, stderr);
    text_release(text);
}

static void show_reading(const char *path, uint64_t done, uint64_t all)
{
    struct text text = {0};
    reading_bar_update(&bar, path, done, all, clock_now(), &text);
    put_bar(&text);
}

void start_reading_bar(bool terminal)
{
    unsigned columns, rows;
    if (!terminal)
        return;
    term_size(&columns, &rows);
    reading_bar_init(&bar, current->name, term_is_utf8(), columns);
    log_progress_to(show_reading);
}

static void clear_reading_bar(void)
{
    struct text text = {0};
    reading_bar_clear(&bar, &text);
    put_bar(&text);
}

/* ---- messages and output ---- */

/* Newlines in quoted strings are escaped: only the format's own are printed. */
void notify(const char *format, ...)
{
    struct text line = {0};
    va_list args;
    va_start(args, format);
    char *whole = xvformat(format, args);
    va_end(args);
    bool ends = str_ends(format, "\n");
    if (ends)
        whole[strlen(whole) - 1] = '\0';
    text_add_plain(&line, whole);
    text_add(&line, ends ? "\n" : "");
    /* As one write: threads print, too.  There is nowhere to report a failure. */
    (void)!file_write_all(STDERR_FILENO, text_get(&line), line.length);
    text_release(&line);
    free(whole);
}

void notify_slow(bool is_profile, int number, unsigned signals)
{
    const char *again = number == SIGINT ? "press Ctrl-C again" : "send another signal";
    const char *waiting_for = is_profile ? "the profile" : "the command";
    const char *effect;
    switch (signals) {
    case AWAIT_ASKED:
        effect = is_profile ? "abort its queries" : "terminate it";
        break;
    case AWAIT_TERMINATED:
        effect = is_profile ? "end it at once" : "kill it";
        break;
    default: /* of a sweep: the process that measures it hangs */
        waiting_for = "its run";
        effect = "kill it";
    }
    notify("ipw %s: waiting for %s to end; %s to %s\n", current->name, waiting_for, again, effect);
}

int print_error(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = xvformat(format, args);
    va_end(args);
    clear_reading_bar();
    notify("ipw %s: %s\n", current ? current->name : "help", line);
    free(line);
    return code;
}

int print_err(enum err err, const struct error *why)
{
    int number = err == ERR_INTERRUPTED ? proc_poll_signal(0) : 0;
    if (err == ERR_CLOSED_PIPE)
        return EXIT_DONE;
    if (number)
        return print_error(128 + number, "%s", why->text);
    return print_error(err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s", why->text);
}

int print_name_err(enum err err, const struct error *why)
{
    return print_err(err == ERR_NOT_FOUND ? ERR_USAGE : err, why);
}

int print_failure(const struct error *why)
{
    return print_error(EXIT_FAILED, "%s", why->text);
}

const char *option_given(const char *const *names)
{
    return options_given(current->rows, names);
}

int usage_error(const char *problem)
{
    return print_error(EXIT_USAGE, "%s; usage: ipw %s %s", problem, current->name, current->usage);
}

bool clear_progress(void)
{
    bool terminal = wants_color(STDERR_FILENO);
    if (terminal)
        fputs("\r\033[K", stderr);
    return terminal;
}

/* With less coverage an energy counts as not measured, whatever its method. */
#define COVERAGE_REQUIRED 0.9

static const char *refused_baseline(const struct summary_conditions *conditions)
{
    for (size_t i = 0; conditions && i < conditions->finding_count; i++)
        if (str_equal(conditions->findings[i].code, "baseline_refused"))
            return conditions->findings[i].text;
    return NULL;
}

int require_measured(const struct measure_options *options, const struct energy *total,
                     const struct summary_conditions *conditions)
{
    char why[400];
    const char *refused = options->idle_s > 0 ? refused_baseline(conditions) : NULL;
    if (!options->require_energy)
        return 0;
    if (refused)
        return print_error(EXIT_NOT_MEASURED, "--idle is required: %s", refused);
    if (total->method == METHOD_ESTIMATED)
        chars_format(why, "only estimated, by %s", total->source);
    else if (!energy_is_measured(total))
        chars_copy(why, total->note);
    else if (total->coverage < COVERAGE_REQUIRED)
        chars_format(why, "coverage only %.0f %%", 100 * total->coverage);
    else
        return 0;
    return print_error(EXIT_NOT_MEASURED,
                       "energy is required but was not measured: %s; see `ipw doctor`", why);
}

int failed_limit_read(struct failed_limit *limit)
{
    char digits[32];
    if (!limit->given)
        limit->given = "5%";
    size_t length = strlen(limit->given);
    bool is_share = length > 0 && limit->given[length - 1] == '%';
    double value;
    if (!chars_format(digits, "%.*s", (int)(length - is_share), limit->given) ||
        parse_double(digits, &value) != ERR_OK || value < 0 || (is_share && value > 100))
        return print_error(EXIT_USAGE, "--max-failed %s: expected a number or 0%% to 100%%",
                           limit->given);
    limit->share = is_share ? value / 100 : UNKNOWN;
    limit->count = is_share ? UNKNOWN : value;
    return 0;
}

int require_answers(const struct failed_limit *limit, int64_t queries, int64_t failed,
                    const char *model, const char *directory)
{
    const char *colon = model[0] ? ": " : "";
    if (queries > 0 && failed == queries)
        return print_error(EXIT_FAILED, "%s%severy query failed: see records.jsonl in %s", model,
                           colon, directory);
    if ((double)failed > limit->count || (double)failed > limit->share * (double)queries + 1e-9)
        return print_error(EXIT_FAILED,
                           "%s%s%lld of %lld queries failed, more than --max-failed %s allows",
                           model, colon, (long long)failed, (long long)queries, limit->given);
    return 0;
}

int check_db(const char *address, bool scripted)
{
    if (!address)
        return 0;
    bool has_password = db_address_add_secret(address);
    if (scripted && has_password)
        return print_error(
            EXIT_USAGE,
            "--db has a password, which must not go into a batch script: use ~/.pgpass");
    struct error why;
    return db_address_check(address, &why) ? print_error(EXIT_USAGE, "%s", why.text) : 0;
}

void push_saved(const char *address, const char *directory, bool quiet)
{
    struct error why = {0};
    struct db_pushed pushed;
    if (!address || !directory[0])
        return;
    proc_end_by_signals(); /* the run is saved, and a push is complete or has no effect */
    enum err err = db_push_measured(address, directory, &pushed, &why);
    proc_defer_signals();
    if (err)
        log_warn("the run was not pushed: %s; it is saved in %s: `ipw db push %s` pushes it",
                 why.text, directory, directory);
    else if (!quiet)
        notify("ipw %s: pushed to the database as %s\n", current->name, pushed.id);
}

/* Whether any sensor of the driver is read. */
static bool is_read(const struct session *session, const struct sensor_driver *driver)
{
    for (size_t i = 0; i < session->findings.count; i++)
        if (session->findings.items[i].driver == driver && session->source_of[i] >= 0)
            return true;
    return false;
}

/* Only drivers named by --sensors were opened, so each must have a sensor. */
static int report_missing_sensors(const struct session *session)
{
    for (size_t i = 0; i < session->findings.count; i++) {
        const struct sensor_finding *finding = &session->findings.items[i];
        if (!is_read(session, finding->driver))
            return print_error(EXIT_FAILED, "--sensors: %s: %s%s%s%s", finding->id, finding->reason,
                               finding->fix[0] ? " (fix: " : "", finding->fix,
                               finding->fix[0] ? ")" : "");
    }
    return 0;
}

int open_session(const struct measure_options *options, struct session *session)
{
    struct session_options wanted = {
        .sensors = {.devices = options->devices},
        .drivers = options->sensors,
        .period = options->rate_hz > 0 ? from_seconds(1 / options->rate_hz) : 0,
        .counter_period = options->counter_period,
        .low_overhead = options->low_overhead,
        .may_lack = options->may_lack,
    };
    struct error why;
    proc_watch_stops();
    proc_end_by_signals(); /* a driver may not return */
    enum err err = session_open(session, &wanted, &why);
    proc_defer_signals();
    if (err)
        return print_err(err, &why);
    int code = options->sensors && !options->may_lack ? report_missing_sensors(session) : 0;
    if (code)
        session_close(session);
    return code;
}

/* Reports contain names and texts from elsewhere: escape sequences are removed here. */
static struct text safe_lines(const struct text *text, int fd)
{
    struct text safe = {0};
    text_add_lines(&safe, text_get(text), text->length, wants_color(fd));
    return safe;
}

enum err write_all(int fd, const struct text *text, struct error *why)
{
    struct text safe = safe_lines(text, fd);
    enum err err = file_write_all(fd, text_get(&safe), safe.length);
    if (err)
        err_set(why, err, "%s", strerror(errno));
    text_release(&safe);
    return err;
}

enum err write_file(const char *path, const struct text *text, struct error *why)
{
    return output_put(path, text_get(text), text->length, why);
}

enum err write_lines(const char *path, const struct text *text, struct error *why)
{
    struct text safe = safe_lines(text, output_is_stdout(path) ? STDOUT_FILENO : -1);
    if (output_is_stdout(path))
        clear_reading_bar();
    enum err err = write_file(path, &safe, why);
    text_release(&safe);
    return err;
}

int put_output(const struct text *text)
{
    return deliver(NULL, text);
}

int deliver_data(const char *path, const struct text *text)
{
    struct error why;
    if (output_is_stdout(path))
        clear_reading_bar();
    enum err err = write_file(path, text, &why);
    return err ? print_err(err, &why) : EXIT_DONE;
}

int deliver(const char *path, const struct text *text)
{
    struct error why;
    enum err err = write_lines(path, text, &why);
    return err ? print_err(err, &why) : EXIT_DONE;
}

bool is_dash(const char *path)
{
    return path && output_is_stdout(path);
}

enum print_format format_chosen(const struct format_options *options, const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (options->name)
        return print_format_named(options->name);
    if (options->json)
        return PRINT_JSON;
    return dot ? print_format_named(dot + 1) : PRINT_TABLE;
}

int deliver_printed(const char *path, const struct result *result, enum print_format format,
                    const struct print_views *views)
{
    struct text out = {0};
    bool color = !path && wants_color(STDOUT_FILENO);
    result_print(result, format, views, color, &out);
    int code = format == PRINT_CSV ? deliver_data(path, &out) : deliver(path, &out);
    text_release(&out);
    return code;
}

int deliver_chosen(const char *path, struct result *result, const struct format_options *options,
                   const struct print_views *views)
{
    int code = deliver_printed(path, result, format_chosen(options, path), views);
    result_release(result);
    return code;
}

int deliver_page(const char *path, const struct text *page)
{
    struct text said = {0};
    int code = deliver_data(path, page);
    text_add_plain(&said, path);
    text_add(&said, "\n");
    if (!code && !is_dash(path))
        code = put_output(&said);
    text_release(&said);
    return code;
}

bool format_is_data(const struct format_options *options)
{
    return (options->name || options->json) && format_chosen(options, NULL) != PRINT_TABLE;
}

static int deliver_as(const char *path, enum print_format format, print_result *print,
                      const void *context)
{
    struct text out = {0};
    print(context, format, !path && wants_color(STDOUT_FILENO), &out);
    int code = format == PRINT_CSV ? deliver_data(path, &out) : deliver(path, &out);
    text_release(&out);
    return code;
}

int deliver_result(const char *path, const struct format_options *options, print_result *print,
                   const void *context, bool has_table)
{
    bool is_chosen = options->name || options->json;
    enum print_format format = format_chosen(options, path);
    int code = EXIT_DONE, written = EXIT_DONE;
    if (!is_chosen && format == PRINT_TABLE) /* a file, or -o - */
        format = PRINT_JSON;
    if (path && !is_dash(path))
        code = deliver_as(path, format, print, context);
    if (is_chosen || is_dash(path))
        written = deliver_as(NULL, format, print, context);
    else if (has_table)
        written = deliver_as(NULL, PRINT_TABLE, print, context);
    return written ? written : code;
}

int each_name(const char *list, int (*take)(void *context, const char *name), void *context,
              const char *empty)
{
    char *rest = NULL, *copy = xstrdup(list);
    char *name = strtok_r(copy, ", ", &rest);
    int code = name ? -1 : print_error(EXIT_USAGE, "%s", empty);
    for (; name && code < 0; name = strtok_r(NULL, ", ", &rest))
        code = take(context, name);
    free(copy);
    return code;
}

bool wants_color(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return fd >= 0 && isatty(fd) && !(no_color && *no_color) && term && !str_equal(term, "dumb");
}

/* ---- a command ---- */

/* Returns -1 to continue, else the exit code. */
static int parse(const struct command *command, int argc, char **argv, int *rest)
{
    bool help;
    struct error why;
    if (options_parse(command->rows, argc, argv, command->words != WORDS_NONE, rest, &help, &why))
        return print_error(EXIT_USAGE, "%s", why.text);
    if (!help)
        return -1;
    struct text text = {0};
    options_help(command, command->rows, &text);
    int code = put_output(&text);
    text_release(&text);
    return code;
}

/* One of our options after a command without "--" would become an argument of the command. */
static int check_apart(const struct command *command, int count, char **words)
{
    for (int i = 1; i < count; i++)
        for (const struct option_row *row = command->rows; row->name; row++) {
            size_t length = strlen(row->name);
            if (str_starts(words[i], "--") && str_starts(words[i] + 2, row->name) &&
                (words[i][2 + length] == '\0' || words[i][2 + length] == '='))
                return print_error(EXIT_USAGE,
                                   "--%s after '%.60s': options of ipw %s go before the command; "
                                   "write -- before the command if the option belongs to it",
                                   row->name, words[0], command->name);
        }
    return -1;
}

/* Moves the arguments to the front of argv, where the already parsed options are. */
static int parse_words(const struct command *command, int argc, char **argv, size_t *count)
{
    char **words = argv;
    for (*count = 0;;) {
        int rest, code = parse(command, argc, argv, &rest);
        if (code >= 0 || rest >= argc)
            return code;
        bool ended = rest > 1 && str_equal(argv[rest - 1], "--");
        bool sides = ended && command->words == WORDS_SIDES;
        bool apart = command->words == WORDS_APART;
        bool all = command->words == WORDS_FOLLOW || apart || (ended && !sides);
        if (apart && !ended) {
            code = check_apart(command, argc - rest, argv + rest);
            if (code >= 0)
                return code;
        }
        rest -= sides; /* "--" is itself an argument, after which options may follow */
        do
            words[(*count)++] = argv[rest++];
        while (all && rest < argc);
        if (all)
            return -1;
        argc -= rest - 1; /* the word becomes argv[0] of the next iteration */
        argv += rest - 1;
    }
}

/* Checked first, so that hours of measuring do not end with a misspelled folder. */
static int check_outputs(const struct command *command)
{
    for (const struct option_row *row = command->rows; row->name; row++) {
        const char *path = row->type == OPTION_OUTPUT ? *(const char **)row->target : NULL;
        struct error why;
        if (path && output_check(path, &why))
            return print_failure(&why);
    }
    return -1;
}

static int call_with_runs(const struct command *command, const char **words, size_t count)
{
    struct run_inputs inputs;
    run_inputs_find(words, count, command->takes_sweeps, &inputs);
    int code = command->run((const char **)inputs.paths, inputs.count);
    run_inputs_release(&inputs);
    return code;
}

int command_call(const struct command *command, int argc, char **argv)
{
    const struct command *caller = current;
    size_t count;
    for (size_t i = 0; argc > 1 && command->tools && command->tools[i]; i++)
        if (str_equal(argv[1], strchr(command->tools[i]->name, ' ') + 1))
            return command_call(command->tools[i], argc - 1, argv + 1);
    current = command;
    int code = parse_words(command, argc, argv, &count);
    if (code < 0 && !count && command->required)
        code = usage_error(command->required);
    if (code < 0)
        code = check_outputs(command);
    if (code < 0)
        argv[count] = NULL;
    if (code < 0 && command->takes_runs)
        code = call_with_runs(command, (const char **)argv, count);
    else if (code < 0)
        code = command->run((const char **)argv, count);
    current = caller;
    return code;
}

/* ---- progress of a profile ---- */

static struct {
    struct progress bar;
    bool shows_bar;
} view;

void profile_view_start(const char *command, bool quiet)
{
    unsigned columns, rows;
    bool terminal = isatty(STDERR_FILENO) && wants_color(STDERR_FILENO);
    term_size(&columns, &rows);
    progress_init(&view.bar, command, terminal, term_is_utf8(), columns, clock_now());
    view.shows_bar = !quiet;
}

void profile_view_put(const struct text *text)
{
    struct error why;
    if (text->length && write_all(STDERR_FILENO, text, &why) != ERR_OK)
        view.shows_bar = false;
}

/* Overwrites its own line, and quotes nothing. */
static void put_view(struct text *text)
{
    if (text->length && file_write_all(STDERR_FILENO, text_get(text), text->length) != ERR_OK)
        view.shows_bar = false;
    text_release(text);
}

void profile_view_show(const struct profile_progress *state)
{
    struct text text = {0};
    if (!view.shows_bar)
        return;
    progress_draw(&view.bar, state, clock_now(), &text);
    put_view(&text);
}

void profile_view_clear(void)
{
    struct text text = {0};
    progress_clear(&view.bar, &text);
    put_view(&text);
}

void profile_view_warn(const char *line)
{
    profile_view_clear();
    print_error(0, "warning: %s", line);
}
