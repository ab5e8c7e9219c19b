/* ipw energy: readings of this machine, once, as a stream of rows, or as a full-screen view. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/energy_live.h"
#include "core/clock.h"
#include "core/text.h"
#include "port/proc.h"
#include "port/term.h"
#include "report/live/reading.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define ONCE_WINDOW   (500 * NS_PER_MS)
#define ONCE_MORE     (250 * NS_PER_MS)
#define ONCE_PATIENCE (1500 * NS_PER_MS)
#define LEAST_ROW     (10 * NS_PER_MS) /* a shorter last interval says nothing */

static int energy_run(int argc, char **argv);

const struct command command_energy = {
    .name = "energy",
    .summary = "live readings: watts, joules so far, and what the devices do",
    .usage = "[--once] [--interval S] [--count N] [--format table|csv|json] [-o FILE] "
             "[OPTIONS]",
    .details =
        "On a terminal, and without any of --once, --count, --format, --json and -o, this is a\n"
        "full-screen view; q leaves it, ? lists its keys.  Otherwise one row a device and\n"
        "interval: power is the mean over the interval, energy the joules since the start,\n"
        "\"-\" is unknown (never 0), \"~\" marks a model's estimate.  End a stream with Ctrl-C\n"
        "(exit 130) or --count.\n"
        "\n"
        "csv columns: time (UTC), elapsed_s, interval_s, device, name, state (ok, lost), power_w,\n"
        "  power_max_w, energy_j and energy_plus_minus_j (of the interval), energy_since_start_j,\n"
        "  energy_since_start_plus_minus_j, method (counter, integral, estimated), coverage,\n"
        "  in_total, utilisation_pct, memory_used_mb, memory_total_mb, temperature_c, clock_mhz,\n"
        "  power_limit_w, throttle (none, or reasons).  An empty field is unknown.  The machine's\n"
        "  joules are the sum over the rows with in_total = true.\n"
        "json: one object a line: time, interval_s, elapsed_s, energy and energy_since_start of\n"
        "  the machine, devices.",
    .run = energy_run,
};

struct energy_options {
    bool once, json;
    double interval_s; /* 0: not given */
    unsigned count;    /* 0: until a signal */
    const char *format, *output;
    struct measure_options measure;
};

struct stream {
    const struct energy_options *options;
    struct session *session;
    int fd;
    const char *format;
    nanos start;
    nanos interval;
    struct reading_table table;
    bool *told;          /* per device: the reason for its silence */
    struct energy total; /* since the start, at the last row */
};

/* ---- rows ---- */

static int put(const struct stream *stream, const struct text *text)
{
    struct error why;
    if (write_all(stream->fd, text, &why) == ERR_OK)
        return EXIT_DONE;
    const char *output = stream->options->output;
    return complain("energy", EXIT_FAILED, "cannot write to %s: %s",
                    output ? output : "standard output", why.text);
}

/* Says, once a device, why a sensor that should give joules gives none. */
static void tell_silent(struct stream *stream, const struct reading *reading)
{
    if (!stream->told)
        stream->told = calloc(reading->since.count + 1, sizeof *stream->told);
    for (size_t i = 0; stream->told && i < reading->since.count; i++) {
        const struct ledger_device *device = &reading->since.devices[i];
        if (!device->has_energy || device->energy.method != METHOD_NONE || stream->told[i])
            continue;
        stream->told[i] = true;
        complain("energy", 0, "%s: %s", device->id, device->energy.note);
    }
}

static int write_reading(struct stream *stream, const struct reading *reading)
{
    struct text text = {0};
    if (!strcmp(stream->format, "json"))
        reading_to_json(reading, &text);
    else if (!strcmp(stream->format, "csv"))
        reading_to_csv(reading, &text);
    else
        reading_to_table(&stream->table, reading, &text);
    int code = put(stream, &text);
    text_release(&text);
    return code;
}

static int write_row(struct stream *stream, nanos from, nanos to)
{
    struct reading reading;
    sampler_settle(stream->session->sampler, to);
    if (reading_take(stream->session->sampler, stream->start, from, to, &reading) != ERR_OK)
        return complain("energy", EXIT_FAILED, "out of memory");
    int code = write_reading(stream, &reading);
    tell_silent(stream, &reading);
    stream->total = reading.since.total;
    reading_release(&reading);
    return code;
}

/* What an interrupted table ends with; the other formats have it in their last row. */
static int write_totals(struct stream *stream, nanos to)
{
    struct reading reading;
    struct text text = {0};
    if (strcmp(stream->format, "table") != 0)
        return EXIT_DONE;
    if (reading_take(stream->session->sampler, stream->start, stream->start, to, &reading) !=
        ERR_OK)
        return complain("energy", EXIT_FAILED, "out of memory");
    reading_summary(&reading, stream->table.colour, &text);
    int code = put(stream, &text);
    text_release(&text);
    reading_release(&reading);
    return code;
}

/* A signal's number when one comes before the time `at`, else 0. */
static int wait_until(nanos at)
{
    int number = 0;
    for (nanos left = at - clock_now(); left > 0 && !number; left = at - clock_now())
        number = proc_poll_signal(left);
    return number ? number : proc_poll_signal(0);
}

/* Rows at start + k x interval.  One that could not be made in time is not made up for: the next
 * interval is longer by it, so that the rows still add up. */
static int stream_rows(struct stream *stream)
{
    nanos from = stream->start;
    for (unsigned done = 0; !stream->options->count || done < stream->options->count; done++) {
        nanos behind = (clock_now() - from) / stream->interval;
        nanos to = from + stream->interval * (behind > 1 ? behind : 1);
        int number = wait_until(to);
        if (number && clock_now() < to)
            to = clock_now();
        int code = number && to - from < LEAST_ROW ? EXIT_DONE : write_row(stream, from, to);
        if (!code && number)
            code = write_totals(stream, to);
        if (code || number)
            return code ? code : 128 + number;
        from = to;
    }
    return EXIT_DONE;
}

/* ---- one snapshot ---- */

static bool is_silent(struct sampler *sampler, nanos from, nanos to)
{
    struct ledger ledger;
    bool silent = false;
    if (ledger_take(sampler, from, to, NULL, &ledger) != ERR_OK)
        return false;
    for (size_t i = 0; i < ledger.count; i++)
        silent = silent ||
                 (ledger.devices[i].has_energy && ledger.devices[i].energy.method == METHOD_NONE);
    ledger_release(&ledger);
    return silent;
}

/* Half a second, and longer only for a sensor that has not spoken yet. */
static int snapshot(struct stream *stream)
{
    nanos window = stream->options->interval_s > 0 ? stream->interval : ONCE_WINDOW;
    nanos to = stream->start + window;
    int number = wait_until(to);
    while (!number && stream->options->interval_s <= 0 && to < stream->start + ONCE_PATIENCE) {
        sampler_settle(stream->session->sampler, to);
        if (!is_silent(stream->session->sampler, stream->start, to))
            break;
        number = wait_until(to += ONCE_MORE);
    }
    return number ? 128 + number : write_row(stream, stream->start, to);
}

static int run_stream(struct stream *stream)
{
    const struct energy_options *options = stream->options;
    const char *path = options->output;
    stream->fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDOUT_FILENO;
    if (stream->fd < 0)
        return complain("energy", EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    stream->table.colour = wants_colour(stream->fd);
    stream->table.repeat_header = isatty(stream->fd);
    int code = EXIT_DONE;
    if (!strcmp(stream->format, "csv")) {
        struct text text = {0};
        reading_csv_header(&text);
        code = put(stream, &text);
        text_release(&text);
    }
    bool nothing = sampler_count(stream->session->sampler) == 0;
    if (nothing)
        complain("energy", 0, "no sensor can be read here; `ipw doctor` says why");
    if (!code)
        code = nothing         ? write_row(stream, stream->start, clock_now())
               : options->once ? snapshot(stream)
                               : stream_rows(stream);
    /* A file system may report a full disk or a lost server only now. */
    if (path && close(stream->fd) < 0 && code != EXIT_FAILED)
        code = complain("energy", EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    return code;
}

static int check_options(struct energy_options *options)
{
    if (options->json && options->format && strcmp(options->format, "json") != 0)
        return complain("energy", EXIT_USAGE, "--json and --format %s exclude each other",
                        options->format);
    if (options->once && options->count)
        return complain("energy", EXIT_USAGE, "--once and --count exclude each other");
    if (options->json)
        options->format = "json";
    return 0;
}

static int measure(const struct energy_options *options)
{
    struct session session;
    bool live = !options->format && !options->once && !options->count && !options->output &&
                term_possible();
    proc_block_signals();
    if (live)
        term_block_signals();
    int code = open_session("energy", &options->measure, &session);
    if (code)
        return code;
    struct stream stream = {
        .options = options,
        .session = &session,
        .format = options->format ? options->format : "table",
        .interval = from_seconds(options->interval_s > 0 ? options->interval_s : 1),
        .total = energy_unknown("ended before the first reading"),
    };
    sampler_ready(session.sampler);
    stream.start = clock_now();
    if (live && sampler_count(session.sampler) > 0)
        code = energy_live(&session, stream.start, stream.interval, &stream.total);
    else
        code = run_stream(&stream);
    if (options->measure.require_energy && code != EXIT_FAILED) {
        int missing = require_measured("energy", &stream.total);
        code = missing ? missing : code;
    }
    free(stream.told);
    session_close(&session);
    return code;
}

static int energy_run(int argc, char **argv)
{
    static const char *const FORMATS[] = {"table", "csv", "json", NULL};
    struct energy_options options = {0};
    const struct option_row rows[] = {
        {0, "once", OPTION_FLAG, &options.once, NULL,
         "one reading over half a second (or --interval), then exit", 0, 0, NULL},
        {'i', "interval", OPTION_NUMBER, &options.interval_s, "S", "seconds a row (default 1)", 0.1,
         86400, NULL},
        {'n', "count", OPTION_COUNT, &options.count, "N", "stop after N intervals", 1, 1e9, NULL},
        {0, "format", OPTION_CHOICE, &options.format, "NAME", "table, csv or json", 0, 0, FORMATS},
        {0, "json", OPTION_FLAG, &options.json, NULL, "the same as --format json", 0, 0, NULL},
        {'o', "output", OPTION_TEXT, &options.output, "FILE", "write there, not to stdout", 0, 0,
         NULL},
        MEASURE_OPTION_ROWS(options.measure, "rate"),
        {0},
    };
    int rest, code = parse_or_help(&command_energy, rows, argc, argv, false, &rest);
    if (code >= 0)
        return code;
    code = check_options(&options);
    return code ? code : measure(&options);
}
