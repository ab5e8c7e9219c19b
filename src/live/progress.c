/* The progress line: phase, bar, rate and ETA, redrawn in place on a terminal; and the same for reading large files. */
#include "live/live.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "report/text/format.h"
#include "runner/profile/profile.h"

#define BAR_PERIOD  (100 * NS_PER_MS)
#define LINE_PERIOD (10 * NS_PER_S)

enum { BAR_WIDTH = 16 };

void progress_init(struct progress *progress, const char *command, bool terminal, bool utf8,
                   unsigned columns, nanos now)
{
    *progress = (struct progress){
        .command = command, .terminal = terminal, .utf8 = utf8, .columns = columns};
    progress->next = now + (terminal ? 0 : LINE_PERIOD);
}

static void add_bar(const struct progress *progress, double share, struct text *out)
{
    unsigned full = (unsigned)lround(share * BAR_WIDTH);
    const char *done = progress->utf8 ? "█" : "#";
    const char *left = progress->utf8 ? "·" : ".";
    text_add(out, "[");
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        text_add(out, i < full ? done : left);
    text_add(out, "] ");
}

/* Few digits, so that the display is calm: whole seconds, two or three figures. */
static char *format_left(char *to, double s)
{
    if (s < 60)
        str_format(to, FORMAT_MAX, "%.0f s", ceil(s));
    else
        format_duration(to, s);
    return to;
}

static void add_rate(double rate, const char *what, struct text *out)
{
    int decimals = rate >= 9.995 ? 1 : 2;
    if (rate >= 99.95)
        decimals = 0;
    if (rate >= 0.1)
        text_addf(out, "  %.*f%s/s", decimals, rate, what);
    else if (rate > 0)
        text_addf(out, "  %.0f s%s%s", 1 / rate, what[0] ? " a" : " each", what);
}

/* "12/100  4.10/s  21 s left  310 W  152 tok/s  2.1 J/tok" */
static void add_counts(const struct profile_progress *state, struct text *out)
{
    char cell[FORMAT_MAX];
    double rate = state->elapsed_s > 0 ? (double)state->done / state->elapsed_s : 0;
    text_addf(out, "%" PRIu64, state->done);
    if (state->total >= 0)
        text_addf(out, "/%" PRId64, state->total);
    if (state->failed)
        text_addf(out, " (%" PRIu64 " failed)", state->failed);
    if (state->unread)
        text_addf(out, " (%" PRIu64 " unread)", state->unread);
    add_rate(rate, "", out);
    if (rate > 0 && state->total > (int64_t)state->done)
        text_addf(out, "  %s left",
                  format_left(cell, (double)(state->total - (int64_t)state->done) / rate));
    if (is_known(state->watts))
        text_addf(out, "  %s", format_rough(cell, state->watts, "W"));
    if (is_known(state->output_tokens_per_s))
        add_rate(state->output_tokens_per_s, " tok", out);
    if (is_known(state->joules_per_token))
        text_addf(out, "  %s/tok", format_rough(cell, state->joules_per_token, "J"));
}

static bool has_counts(const struct profile_progress *state)
{
    return state->total >= 0 || state->done > 0;
}

static void add_state(const struct progress *progress, const struct profile_progress *state,
                      struct text *out)
{
    char cell[FORMAT_MAX];
    text_addf(out, "%s ", state->phase);
    if (!has_counts(state)) {
        text_add(out, format_left(cell, floor(state->elapsed_s)));
        return;
    }
    if (state->stopping) /* important text first, where the line is not truncated */
        text_add(out, "stopping after requests in flight (Ctrl-C: abort)  ");
    else if (progress->terminal && state->total > 0)
        add_bar(progress, fmin(1, (double)state->done / (double)state->total), out);
    add_counts(state, out);
}

/* Truncated at the terminal's width: a wrapped line could not be redrawn. */
static void fit(struct text *line, unsigned columns)
{
    while (columns > 1 && utf8_width(text_get(line)) >= columns && line->length > 0) {
        do
            line->length--;
        while (line->length > 0 && utf8_is_continuation(line->bytes[line->length]));
        line->bytes[line->length] = '\0';
    }
}

void progress_draw(struct progress *progress, const struct profile_progress *state, nanos now,
                   struct text *out)
{
    struct text line = {0};
    bool new_phase = progress->phase != state->phase;
    if (now < progress->next && !(progress->terminal && new_phase))
        return;
    progress->phase = state->phase;
    progress->next = now + (progress->terminal ? BAR_PERIOD : LINE_PERIOD);
    add_state(progress, state, &line);
    if (progress->terminal) {
        fit(&line, progress->columns);
        text_addf(out, "\r\x1b[K%s", text_get(&line));
        progress->drawn = true;
    } else {
        text_addf(out, "ipw %s: %s\n", progress->command, text_get(&line));
    }
    text_release(&line);
}

void progress_clear(struct progress *progress, struct text *out)
{
    if (progress->drawn)
        text_add(out, "\r\x1b[K");
    progress->drawn = false;
}

/* ---- reading large files ---- */

#define FIRST_READING_TIMEOUT NS_PER_S

enum { MB = 1000000 };

void reading_bar_init(struct reading_bar *reading, const char *command, bool utf8, unsigned columns)
{
    *reading = (struct reading_bar){0};
    progress_init(&reading->bar, command, true, utf8, columns, 0);
}

/* A new file, or the same from its start: resets the rate. */
static void begin(struct reading_bar *reading, const char *path, nanos now)
{
    const char *slash = strrchr(path, '/');
    chars_format(reading->phase, "reading %.60s (MB)", slash ? slash + 1 : path);
    str_plain(reading->phase, sizeof reading->phase);
    reading->began = now;
    reading->first = reading->first ? reading->first : now;
}

void reading_bar_update(struct reading_bar *reading, const char *path, uint64_t done, uint64_t all,
                        nanos now, struct text *out)
{
    uint64_t hash = hash_bytes(HASH_START, path, strlen(path));
    if (reading->path != hash || done < reading->before)
        begin(reading, path, now);
    reading->path = hash;
    reading->before = done;
    if (done >= all)
        reading_bar_clear(reading, out);
    else if (now - reading->first >= FIRST_READING_TIMEOUT)
        progress_draw(&reading->bar,
                      &(struct profile_progress){.phase = reading->phase,
                                                 .done = done / MB,
                                                 .total = (int64_t)(all / MB),
                                                 .elapsed_s = seconds(now - reading->began),
                                                 .watts = UNKNOWN,
                                                 .joules_per_token = UNKNOWN,
                                                 .output_tokens_per_s = UNKNOWN},
                      now, out);
}

void reading_bar_clear(struct reading_bar *reading, struct text *out)
{
    progress_clear(&reading->bar, out);
}
