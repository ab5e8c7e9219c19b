/* ipw energy: power and energy of this machine, now.
 *
 * One snapshot, a stream of rows (table, Markdown, CSV or JSON lines), or a full-screen view.  All three use readings
 * (live/reading.h) of one sampling session. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/proc.h"
#include "port/term.h"
#include "live/live.h"
#include "live/reading.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define ONCE_WINDOW   (500 * NS_PER_MS)
#define ONCE_MORE     (250 * NS_PER_MS)
#define FIRST_TIMEOUT (1500 * NS_PER_MS)
#define TOP_PERIOD    (950 * NS_PER_MS) /* reading every process takes milliseconds */
#define LEAST_ROW     (10 * NS_PER_MS)  /* a shorter last interval is dropped */
#define LATE_ROW      (600 * NS_PER_MS) /* maximum delay of readings */
#define LIVE_WAIT     (60 * NS_PER_MS)  /* wait for readings: keys must not wait longer */

struct energy_options {
    bool once;
    double interval_s; /* 0: not given */
    unsigned count;    /* 0: until a signal */
    struct format_options format;
    const char *output;
    struct measure_options measure;
};

struct stream {
    const struct energy_options *options;
    struct session *session;
    struct output output;
    enum print_format format;
    nanos start;
    nanos interval;
    nanos waited; /* delay of rows while waiting for readings */
    struct reading_table table;
    bool *reported;      /* per device: missing energy was reported */
    struct energy total; /* since the start, at the last row */
    bool is_closed;      /* the reader of the output has closed it */
};

/* ---- rows ---- */

static int put(struct stream *stream, const struct text *text)
{
    struct error why;
    struct text safe = {0};
    bool is_data = stream->format != PRINT_TABLE;
    if (!is_data)
        text_add_lines(&safe, text_get(text), text->length, stream->table.color);
    const struct text *put = is_data ? text : &safe;
    enum err err = output_write(&stream->output, text_get(put), put->length, &why);
    text_release(&safe);
    stream->is_closed = err == ERR_CLOSED_PIPE;
    return err ? print_err(err, &why) : EXIT_DONE;
}

/* Reports, once per device, why an energy sensor has no readings. */
static void report_silent(struct stream *stream, const struct reading *reading)
{
    if (!stream->reported)
        stream->reported = xcalloc(reading->since.count + 1, sizeof *stream->reported);
    for (size_t i = 0; i < reading->since.count; i++) {
        const struct ledger_device *device = &reading->since.devices[i];
        if (!device->has_energy || device->energy.method != METHOD_NONE || stream->reported[i])
            continue;
        stream->reported[i] = true;
        print_error(0, "%s: %s", device->id, device->energy.note);
    }
}

/* One object per line. */
static void print_json(const struct reading *reading, struct text *out)
{
    struct result result = {0};
    struct json json;
    reading_fill(reading, &result);
    json_init(&json, out, false);
    result_to_json(&result, NULL, &json);
    text_add(out, "\n");
    result_release(&result);
}

static int write_reading(struct stream *stream, const struct reading *reading)
{
    struct text text = {0};
    switch (stream->format) {
    case PRINT_TABLE:
        reading_to_table(&stream->table, reading, &text);
        break;
    case PRINT_JSON:
        print_json(reading, &text);
        break;
    case PRINT_CSV:
        reading_to_csv(reading, &text);
        break;
    case PRINT_MARKDOWN:
        reading_to_markdown(&stream->table, reading, &text);
        break;
    }
    int code = put(stream, &text);
    text_release(&text);
    return code;
}

/* How long a row waits for its readings: those of a remote host arrive later. */
static nanos row_delay(const struct sampler *sampler)
{
    nanos behind = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++)
            if (sensor->channels[c].behind > behind)
                behind = sensor->channels[c].behind;
    }
    return LATE_ROW + behind;
}

static int write_row(struct stream *stream, nanos from, nanos to)
{
    struct reading reading;
    nanos began = clock_now(), late = row_delay(stream->session->sampler);
    if (stream->options->once)
        sampler_settle(stream->session->sampler, to);
    else
        sampler_tick(stream->session->sampler, to, late);
    nanos waited = clock_now() - began, left = stream->waited - (to - from);
    stream->waited = waited < left ? left : waited < late ? waited : late;
    reading_take(stream->session->sampler, stream->start, from, to, &reading);
    int code = write_reading(stream, &reading);
    report_silent(stream, &reading);
    stream->total = reading.since.total;
    reading_release(&reading);
    return code;
}

/* Last line of an interrupted table; the other formats have totals in their last row. */
static int write_totals(struct stream *stream, nanos to)
{
    struct reading reading;
    struct text text = {0};
    if (stream->format != PRINT_TABLE)
        return EXIT_DONE;
    reading_take(stream->session->sampler, stream->start, stream->start, to, &reading);
    reading_summary(&reading, stream->table.color, &text);
    int code = put(stream, &text);
    text_release(&text);
    reading_release(&reading);
    return code;
}

/* The number of a signal that arrives before `at`, else 0. */
static int wait_until(nanos at)
{
    int number = 0;
    for (nanos left = at - clock_now(); left > 0 && !number; left = at - clock_now())
        number = proc_poll_signal(left);
    return number ? number : proc_poll_signal(0);
}

/* Rows at start + k x interval.  A missed row is merged into the next, longer interval, so that the rows still add up;
 * but not if it only waited for readings, which arrive twice per second. */
static int stream_rows(struct stream *stream)
{
    nanos from = stream->start;
    for (unsigned done = 0; !stream->options->count || done < stream->options->count; done++) {
        nanos behind = (clock_now() - from - stream->waited) / stream->interval;
        nanos to = from + stream->interval * (behind > 1 ? behind : 1);
        int number = wait_until(to);
        if (number && clock_now() < to)
            to = clock_now();
        int code = number && to - from < LEAST_ROW ? EXIT_DONE : write_row(stream, from, to);
        if (!code && number)
            code = write_totals(stream, to);
        if (code || stream->is_closed)
            return code;
        if (number)
            return 128 + number;
        from = to;
    }
    return EXIT_DONE;
}

/* ---- one snapshot ---- */

static bool is_silent(struct sampler *sampler, nanos from, nanos to)
{
    struct ledger ledger;
    bool silent = false;
    ledger_take(sampler, from, to, NULL, &ledger);
    for (size_t i = 0; i < ledger.count; i++)
        silent = silent ||
                 (ledger.devices[i].has_energy && ledger.devices[i].energy.method == METHOD_NONE);
    ledger_release(&ledger);
    return silent;
}

/* Half a second, longer only for a sensor without a reading so far. */
static int snapshot(struct stream *stream)
{
    nanos window = stream->options->interval_s > 0 ? stream->interval : ONCE_WINDOW;
    nanos to = stream->start + window;
    int number = wait_until(to);
    while (!number && stream->options->interval_s <= 0 && to < stream->start + FIRST_TIMEOUT) {
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
    struct error why;
    if (output_open(&stream->output, path, true, &why))
        return print_failure(&why);
    stream->table.color = wants_color(stream->output.fd);
    stream->table.repeat_header = isatty(stream->output.fd);
    int code = EXIT_DONE;
    if (stream->format == PRINT_CSV) {
        struct text text = {0};
        reading_csv_header(&text);
        code = put(stream, &text);
        text_release(&text);
    }
    bool nothing = sampler_count(stream->session->sampler) == 0;
    if (nothing)
        print_error(0, "no readable sensor; see `ipw doctor`");
    if (!code)
        code = nothing         ? write_row(stream, stream->start, clock_now())
               : options->once ? snapshot(stream)
                               : stream_rows(stream);
    if (output_finish(&stream->output, ERR_OK, &why) && code != EXIT_FAILED)
        code = print_failure(&why);
    return code;
}

struct show {
    struct sampler *sampler;
    nanos start, interval, window;
    struct live live;
    struct top top;
    struct live_view view;
    struct reading shown; /* on the screen: the newest, or the one when paused */
    struct text lines, bytes;
    bool quit;
    int signal; /* signal that ended the view */
};

/* ---- the full-screen view: warnings, which must not be printed over it ---- */

static struct {
    pthread_mutex_t lock;
    char line[160];
    struct text all; /* printed to stderr after the view was closed */
} warnings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_warning(enum log_level level, const char *line)
{
    (void)level;
    pthread_mutex_lock(&warnings.lock);
    chars_copy(warnings.line, line);
    text_addf(&warnings.all, "ipw energy: %s\n", line);
    pthread_mutex_unlock(&warnings.lock);
}

static void print_warnings(void)
{
    struct error why;
    pthread_mutex_lock(&warnings.lock); /* a thread may still be adding its line */
    enum err err = write_all(STDERR_FILENO, &warnings.all, &why);
    (void)err; /* stderr is the last resort */
    text_release(&warnings.all);
    pthread_mutex_unlock(&warnings.lock);
}

/* ---- the full-screen view: frames ---- */

/* Power is the mean over the interval, but at least over two periods of the slowest sensor: otherwise its figures would
 * flicker. */
static nanos live_window(struct sampler *sampler, nanos interval)
{
    nanos window = interval > NS_PER_S / 2 ? interval : NS_PER_S / 2;
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            struct channel_state state;
            if (!quantity_gives_joules(sensor->channels[c].quantity))
                continue;
            sampler_channel(sampler, s, c, &state);
            nanos slow = state.period < 5 * NS_PER_S ? 2 * state.period : 0;
            window = slow > window ? slow : window;
        }
    }
    return window;
}

static void take_reading(struct show *show, struct reading *out)
{
    nanos now = clock_now(), from = now - show->window;
    reading_take(show->sampler, show->start, from > show->start ? from : show->start, now, out);
}

static void show_reading(struct show *show, const struct reading *reading)
{
    reading_release(&show->shown);
    show->shown = *reading;
    show->view.shown = show->live.pushed;
}

/* Shows the newest reading. */
static void refresh(struct show *show)
{
    struct reading reading;
    take_reading(show, &reading);
    show_reading(show, &reading);
}

/* After each interval: adds it to the history, and to the screen unless that is paused. */
static void end_interval(struct show *show)
{
    struct reading reading;
    show->window = live_window(show->sampler, show->interval);
    sampler_tick(show->sampler, clock_now(), LIVE_WAIT);
    take_reading(show, &reading);
    live_push(&show->live, &reading);
    nanos now = clock_now();
    bool due = now - show->top.taken >= TOP_PERIOD || now < show->top.taken;
    if (due && show->view.rows >= LIVE_TOP_ROWS && !show->view.paused)
        top_take(&show->top, show->sampler, &reading, now);
    if (show->view.paused)
        reading_release(&reading);
    else
        show_reading(show, &reading);
}

/* One write per frame, lines overwritten in place: no flicker. */
static enum err draw(struct show *show)
{
    char notice[sizeof warnings.line];
    pthread_mutex_lock(&warnings.lock);
    chars_copy(notice, warnings.line);
    pthread_mutex_unlock(&warnings.lock);
    show->view.notice = notice;
    /* The last column stays free: with the cursor on it, erasing to the end of the line would erase
     * its character. */
    term_size(&show->view.columns, &show->view.rows);
    show->view.columns -= show->view.columns > 0;
    text_clear(&show->lines);
    text_clear(&show->bytes);
    show->view.first = live_render(&show->live, &show->shown, &show->view, &show->lines);
    text_add(&show->bytes, "\033[H");
    for (const char *line = text_get(&show->lines); *line;) {
        size_t length = strcspn(line, "\n");
        text_add_bytes(&show->bytes, line, length);
        text_add(&show->bytes, "\033[K");
        line += length;
        if (*line == '\n') {
            text_add(&show->bytes, "\r\n");
            line++;
        }
    }
    text_add(&show->bytes, "\033[J");
    return term_write(text_get(&show->bytes), show->bytes.length);
}

/* ---- the full-screen view: keys ---- */

static void scroll(struct show *show, long by)
{
    long first = (long)show->view.first + by;
    show->view.first = first > 0 ? (size_t)first : 0;
}

static void handle_key(struct show *show, int key)
{
    long page = show->view.rows > 6 ? (long)show->view.rows - 5 : 1;
    switch (key) {
    case 'q':
    case 'Q':
        show->quit = true;
        break;
    case 'p':
        show->view.paused = !show->view.paused;
        if (!show->view.paused)
            refresh(show);
        break;
    case 'r':
        show->start = clock_now();
        top_release(&show->top);
        sampler_watch_begin(show->sampler);
        refresh(show);
        break;
    case ' ':
        refresh(show);
        break;
    case '?':
    case 'h':
        show->view.help = !show->view.help;
        break;
    case KEY_ESCAPE:
        show->view.help = false;
        break;
    case 'j':
    case KEY_DOWN:
        scroll(show, 1);
        break;
    case 'k':
    case KEY_UP:
        scroll(show, -1);
        break;
    case KEY_PAGE_DOWN:
        scroll(show, page);
        break;
    case KEY_PAGE_UP:
        scroll(show, -page);
        break;
    case KEY_HOME:
        show->view.first = 0;
        break;
    case KEY_END:
        show->view.first = show->live.devices;
        break;
    default:
        break;
    }
}

/* ---- the full-screen view: main loop ---- */

static enum err run_view(struct show *show)
{
    nanos next = clock_now() + show->interval;
    enum err err = ERR_OK;
    while (!err && !show->quit && !show->signal) {
        nanos now = clock_now();
        if (now >= next) {
            end_interval(show);
            next += show->interval;
            if (next <= now) /* stopped or suspended meanwhile */
                next = now + show->interval;
        }
        err = draw(show);
        if (err)
            break;
        int value;
        switch (term_wait(next, &value)) {
        case TERM_KEY:
            handle_key(show, value);
            break;
        case TERM_SIGNAL:
            show->signal = value;
            break;
        case TERM_REDRAW:
        case TERM_TIMEOUT:
            break;
        }
    }
    return err;
}

/* The totals, on the normal screen. */
static int print_totals(struct show *show, struct energy *total)
{
    struct text text = {0};
    nanos now = clock_now();
    sampler_settle(show->sampler, now);
    struct reading reading;
    reading_take(show->sampler, show->start, show->start, now, &reading);
    reading_summary(&reading, show->view.color, &text);
    *total = reading.since.total;
    int code = put_output(&text);
    reading_release(&reading);
    text_release(&text);
    return code;
}

/* Shows the session until the user quits; leaves the totals on the terminal and in *total. */
static int show_live(struct session *session, nanos start, nanos interval, struct energy *total)
{
    struct show show = {
        .sampler = session->sampler,
        .start = start,
        .interval = interval,
        .view = {.utf8 = term_is_utf8(),
                 .color = wants_color(STDOUT_FILENO),
                 .every_s = seconds(interval)},
    };
    struct error why = {0};
    show.window = live_window(show.sampler, interval);
    show.view.top = &show.top;
    sampler_watch_begin(show.sampler);
    refresh(&show);
    live_init(&show.live, show.shown.now.count);
    log_sink before = log_divert(keep_warning);
    enum err err = term_open(&why);
    if (!err) {
        err = run_view(&show);
        term_close();
    }
    log_divert(before);
    print_warnings();
    int code = err ? print_error(EXIT_FAILED, "%s", why.text[0] ? why.text : err_text(err))
                   : print_totals(&show, total);
    reading_release(&show.shown);
    live_release(&show.live);
    top_release(&show.top);
    text_release(&show.lines);
    text_release(&show.bytes);
    return code == EXIT_DONE && show.signal ? 128 + show.signal : code;
}

/* ---- the command ---- */

static int check_options(const struct energy_options *options)
{
    const struct format_options *format = &options->format;
    if (format->json && format->name && !str_equal(format->name, "json"))
        return print_error(EXIT_USAGE, "--json and --format %s are mutually exclusive",
                           format->name);
    if (options->once && options->count)
        return print_error(EXIT_USAGE, "--once and --count are mutually exclusive");
    return 0;
}

static int measure(struct energy_options *options)
{
    struct session session;
    options->measure.low_overhead = !options->once; /* one window: full accuracy */
    bool live = !options->format.name && !options->format.json && !options->once &&
                !options->count && !options->output && term_possible();
    proc_block_signals();
    if (live)
        term_block_signals();
    int code = open_session(&options->measure, &session);
    if (code)
        return code;
    struct stream stream = {
        .options = options,
        .session = &session,
        .format = format_chosen(&options->format, options->output),
        .interval = from_seconds(options->interval_s > 0 ? options->interval_s : 1),
        .total = energy_unknown("ended before the first reading"),
    };
    sampler_ready(session.sampler);
    stream.start = clock_now();
    if (live && sampler_count(session.sampler) > 0)
        code = show_live(&session, stream.start, stream.interval, &stream.total);
    else
        code = run_stream(&stream);
    int missing =
        code == EXIT_FAILED ? 0 : require_measured(&options->measure, &stream.total, NULL);
    code = missing ? missing : code;
    free(stream.reported);
    session_close(&session);
    return code;
}

static struct energy_options args;

static const struct option_row ROWS[] = {
    FLAG_ROW("once", args.once, "one reading over 0.5 s (or --interval), then exit"),
    NUMBER_ROW("interval", args.interval_s, "S", "seconds per row (default: 1)", .min = 0.1,
               .max = 86400, .letter = 'i'),
    COUNT_ROW("count", args.count, "N", "stop after N intervals", .min = 1, .max = 1e9,
              .letter = 'n'),
    FORMAT_OPTION_ROWS(args.format),
    OUTPUT_OPTION_ROW(args.output),
    MEASURE_OPTION_ROWS(args.measure, "rate"),
    {0},
};

static int energy_run(const char **words, size_t count)
{
    (void)words, (void)count;
    int code = check_options(&args);
    return code ? code : measure(&args);
}

const struct command command_energy = {
    .name = "energy",
    .summary = "live power, energy and utilization of every device",
    .usage = "[--once] [--interval S] [--count N] [--format NAME] [-o FILE] "
             "[OPTIONS]",
    .details =
        "On a terminal, and without --once, --count, --format, --json and -o, shows a full-screen\n"
        "view; q quits, ? lists the keys.  Otherwise prints one row per device and interval:\n"
        "power is the mean over the interval, energy the total since the start, \"-\" is unknown\n"
        "(never 0), and \"~\" marks an estimate.  A stream ends with Ctrl-C (exit 130) or "
        "--count.\n"
        "\n"
        "csv columns: time (UTC), elapsed_s, interval_s, device, name, state (ok, lost), power_w,\n"
        "  power_max_w, energy_j and energy_plus_minus_j (in the interval), energy_since_start_j,\n"
        "  energy_since_start_plus_minus_j, method (counter, integral, estimated), coverage,\n"
        "  in_total, utilisation_pct, memory_used_mb, memory_total_mb, temperature_c, clock_mhz,\n"
        "  power_limit_w, throttle (none, or reasons).  An empty field is unknown.  The energy\n"
        "  of the machine is the sum over the rows with in_total = true.\n"
        "json: one object per line: time, interval_s, elapsed_s, energy and energy_since_start of\n"
        "  the machine, devices.",
    .rows = ROWS,
    .run = energy_run,
};
