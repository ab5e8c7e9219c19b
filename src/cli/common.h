/* Shared by the commands: exit codes, messages, output, and the options of every measuring command. Arguments are not
 * retained. */
#ifndef IPW_CLI_COMMON_H
#define IPW_CLI_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "report/print/print.h"

struct energy;
struct profile_progress;
struct result;
struct session;
struct summary_conditions;
struct text;

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_MEASURED =
        3, /* --require-energy: energy, or idle power with --idle, was not measured */
    EXIT_NOT_COMPARABLE = 4, /* bound not checked: conditions differ, or a side has one run */
};

/* Parses the options and arguments, prints the help or runs the command, and returns the exit code.  A command may
 * call another one. */
int command_call(const struct command *command, int argc, char **argv);

/* Prints "ipw COMMAND: text" on stderr and returns the code. */
int print_error(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same with the text of an error: EXIT_USAGE for ERR_USAGE, else EXIT_FAILED.  Nothing is printed for
 * ERR_CLOSED_PIPE, and EXIT_DONE returned: a reader such as `head` has seen enough. */
int print_err(enum err err, const struct error *why);
/* The same, and EXIT_USAGE for ERR_NOT_FOUND: of a name on the command line. */
int print_name_err(enum err err, const struct error *why);
int print_failure(const struct error *why); /* EXIT_FAILED, whatever the error */

/* Prints a line, or a part of one, to stderr.  Quoted strings are escaped (core/text.h); only this module and views
 * that own the terminal write to it. */
void notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* Says that what was interrupted by `signals` signals, the latest one `number`, has not ended yet. */
void notify_slow(bool is_profile, int number, unsigned signals);

/* Options of every measuring command; former_rate is the earlier name of --sample-rate, or NULL. */
struct measure_options {
    const char *devices;
    const char *sensors;
    double rate_hz;
    bool require_energy;
    bool low_overhead;    /* low-overhead session: set by the command, not by an option */
    bool may_lack;        /* set by the command, see session.h */
    nanos counter_period; /* set by the command, see session.h */
    double idle_s;        /* for commands with --idle; UNKNOWN: not given */
};
/* clang-format off */
#define MEASURE_OPTION_ROWS(m, former_rate)                                                        \
    TEXT_ROW("devices", (m).devices, "LIST", "GPUs by index or UUID (default: all visible)"),      \
    JOINED_ROW("sensors", (m).sensors, "LIST",                                                     \
               "only these sensor drivers, e.g. nvml,remote=HOST (default: all)"),                 \
    NUMBER_ROW("sample-rate", (m).rate_hz, "HZ",                                                   \
               "sampling rate (default: chosen for each sensor)", .former = former_rate,           \
               .min = 0.01, .max = 1000),                                                          \
    FLAG_ROW("require-energy", (m).require_energy, "exit 3 unless the energy was measured")

#define IDLE_OPTION_ROW(m, text, shortest)                                                         \
    NUMBER_ROW("idle", (m).idle_s, "S", text, .min = shortest, .max = 86400)
#define MAX_FAILED_OPTION_ROW(limit)                                                               \
    TEXT_ROW("max-failed", (limit).given, "N|P%",                                                  \
             "exit status 1 if more queries fail (default: 5%)")

/* Options with the same meaning in all commands; `text` and `flag` are the targets. */
#define MODEL_OPTION_ROW(text) TEXT_ROW("model", (text), "NAME", "select one model's records")
#define OUTPUT_OPTION_ROW(text)                                                                    \
    OUTPUT_ROW("output", (text), "FILE", "write to FILE instead of stdout", .letter = 'o')
#define JSON_FORMAT_OPTION_ROW(flag) FLAG_ROW("json", (flag), "same as --format json")

/* --format and --json of every command that prints a result; f: a struct format_options. */
#define FORMAT_OPTION_ROWS(f)                                                                      \
    CHOICE_ROW("format", (f).name, "NAME", PRINT_FORMATS,                                          \
               "table, json, csv or md (default: by FILE's suffix, else table)"),                  \
    JSON_FORMAT_OPTION_ROW((f).json)
/* The same for commands whose FILE is not the report. */
#define REPORT_FORMAT_OPTION_ROWS(f)                                                               \
    CHOICE_ROW("format", (f).name, "NAME", PRINT_FORMATS,                                          \
               "format of the report: table (default), json, csv or md"),                          \
    JSON_FORMAT_OPTION_ROW((f).json)

/* t: a struct tariff, initially TARIFF_NONE. */
#define TARIFF_OPTION_ROWS(t)                                                                      \
    NUMBER_ROW("price-per-kwh", (t).price_per_kwh, "P",                                            \
               "price of electricity, for operating cost", .max = 1e6),                            \
    NUMBER_ROW("device-price-per-hour", (t).device_price_per_hour, "P",                            \
               "price of one device per hour of wall time, for operating cost", .max = 1e6),       \
    NUMBER_ROW("gco2-per-kwh", (t).gco2_per_kwh, "G",                                              \
               "carbon intensity of electricity, gCO2e/kWh, for emissions", .max = 10000)

#define DB_OPTION_ROW(text, what) TEXT_ROW("db", (text), "URL", what)
#define DB_PUSH_OPTION_ROW(text)                                                                   \
    DB_OPTION_ROW(text, "push the run to this database when it ends; see `ipw db --help`")

/* For commands that show progress and write their result at the end; o has a struct format_options `format`. */
#define RESULT_OPTION_ROWS(o, quiet_help)                                                          \
    CHOICE_ROW("format", (o).format.name, "NAME", PRINT_FORMATS,                                   \
               "print the result to stdout at the end: table, json, csv or md"),                   \
    JSON_FORMAT_OPTION_ROW((o).format.json),                                                       \
    OUTPUT_ROW("output", (o).output, "FILE",                                                       \
               "write it to FILE (default: as JSON, or by the suffix .csv or .md)",                \
               .letter = 'o'),                                                                     \
    FLAG_ROW("quiet", (o).quiet, quiet_help, .letter = 'q')
/* clang-format on */

/* The first of these options (names, NULL-terminated) that was given to the running command; or NULL. */
const char *option_given(const char *const *names);

/* "PROBLEM; usage: ipw COMMAND ..."; returns EXIT_USAGE. */
int usage_error(const char *problem);

/* Clears the progress line on stderr; false if stderr is not a terminal, and each step has its own line. */
bool clear_progress(void);

/* For --require-energy: 0 without it, or if the total was measured with enough coverage and, with --idle, idle power
 * too; else EXIT_NOT_MEASURED after reporting the reason.  NULL: the command has no --idle. */
int require_measured(const struct measure_options *options, const struct energy *total,
                     const struct summary_conditions *conditions);

/* --max-failed: how many queries of a run may fail.  failed_limit_read returns 0, or prints an error and returns
 * EXIT_USAGE; require_answers returns 0 if the limit is met, else EXIT_FAILED after reporting it.  model: its name, or
 * "". */
struct failed_limit {
    const char *given;   /* "5%", "10"; NULL: the default */
    double share, count; /* limits; UNKNOWN: none */
};
int failed_limit_read(struct failed_limit *limit);
int require_answers(const struct failed_limit *limit, int64_t queries, int64_t failed,
                    const char *model, const char *directory);

/* --db: 0 if the address is valid or NULL, else EXIT_USAGE after an error message, also for a password if `scripted`.
 * And the push of a saved run, whose failure is a warning: the run stays pending for `ipw db push`. */
int check_db(const char *address, bool scripted);
void push_saved(const char *address, const char *directory, bool quiet);

/* Opens a session by the options; returns 0, or the exit code after printing the error. */
int open_session(const struct measure_options *options, struct session *session);

/* Writes lines to a descriptor or a file, escaped for a terminal (text_add_lines), or raw data to a file (port/file.h;
 * NULL and "-" are stdout), reporting every failure: a full disk must not go unnoticed.  ERR_CLOSED_PIPE: a loop that
 * prints rows should end. */
enum err write_all(int fd, const struct text *text, struct error *why) MUST_USE;
enum err write_lines(const char *path, const struct text *text, struct error *why) MUST_USE;
enum err write_file(const char *path, const struct text *text, struct error *why) MUST_USE;

/* Writes to stdout, or to the file at `path` unless it is NULL; on failure prints an error and returns EXIT_FAILED
 * (a closed pipe is none, so that the command's verdict decides its exit status).  Lines are escaped for a terminal; JSON stays equivalent; CSV and pages are written unchanged. */
int put_output(const struct text *text);
int deliver(const char *path, const struct text *text);
int deliver_data(const char *path, const struct text *text);

/* Writes a page and prints its path, unless it went to stdout. */
int deliver_page(const char *path, const struct text *page);

/* FORMAT_OPTION_ROWS: the format given by --format or --json, else by the suffix of the output file, else a table. */
struct format_options {
    const char *name; /* NULL: not given */
    bool json;
};
enum print_format format_chosen(const struct format_options *options, const char *path);

/* Prints the result to stdout, or to the file at `path` unless it is NULL. */
int deliver_printed(const char *path, const struct result *result, enum print_format format,
                    const struct print_views *views);

/* The same in the chosen format, and releases the result. */
int deliver_chosen(const char *path, struct result *result, const struct format_options *options,
                   const struct print_views *views);

/* Whether an output is "-". */
bool is_dash(const char *path);

/* Output of RESULT_OPTION_ROWS: the result to the file of -o, and to stdout with --format, --json or -o -.  Otherwise
 * stdout gets a table if `has_table`. */
typedef void print_result(const void *context, enum print_format format, bool color,
                          struct text *out);
int deliver_result(const char *path, const struct format_options *options, print_result *print,
                   const void *context, bool has_table);
/* Whether the result goes to stdout in another format than a table. */
bool format_is_data(const struct format_options *options);

/* Calls take for each name of a list separated by commas or spaces, until it returns an exit code other than -1.  An
 * empty list is EXIT_USAGE with the message `empty`. */
int each_name(const char *list, int (*take)(void *context, const char *name), void *context,
              const char *empty);

/* True for a terminal, unless NO_COLOR or TERM=dumb is set. */
bool wants_color(int fd);

/* Shows the progress of reading a large run, if `terminal`; print_error and put_output clear it. */
void start_reading_bar(bool terminal);

/* ---- progress ---- */

/* Progress and warnings of a profile on stderr.  There is one view per process. */

/* quiet: only warnings. */
void profile_view_start(const char *command, bool quiet);

/* For profile_options.progress and .warn. */
void profile_view_show(const struct profile_progress *state);
void profile_view_warn(const char *line);

/* Clears the progress line, so that something else can be printed. */
void profile_view_clear(void);

/* Writes to stderr; an error ends the view. */
void profile_view_put(const struct text *text);

#endif
