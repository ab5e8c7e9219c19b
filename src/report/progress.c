#include "report/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "report/format.h"
#include "report/table.h"
#include "runner/profile.h"

#define BAR_PERIOD  (100 * NS_PER_MS)
#define LINE_PERIOD (10 * NS_PER_S)

enum { BAR_WIDTH = 24 };

void progress_init(struct progress *progress, bool terminal, bool utf8, unsigned columns, nanos now)
{
    *progress = (struct progress){.terminal = terminal, .utf8 = utf8, .columns = columns};
    progress->next = now + (terminal ? 0 : LINE_PERIOD);
}

static void add_bar(const struct progress *progress, double share, struct text *out)
{
    unsigned full = (unsigned)lround(share * BAR_WIDTH);
    text_add(out, "[");
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        text_add(out, i < full ? (progress->utf8 ? "█" : "#") : (progress->utf8 ? "·" : "."));
    text_add(out, "] ");
}

/* "12/100  4.1/s  21 s left" */
static void add_counts(const struct profile_progress *state, struct text *out)
{
    char cell[FORMAT_MAX];
    double rate = state->elapsed_s > 0 ? (double)state->done / state->elapsed_s : 0;
    text_addf(out, "%" PRIu64, state->done);
    if (state->total >= 0)
        text_addf(out, "/%" PRId64, state->total);
    if (state->failed)
        text_addf(out, " (%" PRIu64 " failed)", state->failed);
    if (rate > 0)
        text_addf(out, "  %.3g/s", rate);
    if (rate > 0 && state->total > (int64_t)state->done)
        text_addf(out, "  %s left",
                  format_duration(cell, (double)(state->total - (int64_t)state->done) / rate));
    if (is_known(state->watts))
        text_addf(out, "  %s", format_si(cell, state->watts, "W"));
    if (is_known(state->output_tokens_per_s))
        text_addf(out, "  %.4g tok/s", state->output_tokens_per_s);
    if (is_known(state->joules_per_token))
        text_addf(out, "  %s/tok", format_si(cell, state->joules_per_token, "J"));
}

static bool counts_things(const struct profile_progress *state)
{
    return state->total >= 0 || state->done > 0;
}

static void add_state(const struct progress *progress, const struct profile_progress *state,
                      struct text *out)
{
    char cell[FORMAT_MAX];
    text_addf(out, "%s ", state->phase);
    if (progress->terminal && state->total > 0)
        add_bar(progress, fmin(1, (double)state->done / (double)state->total), out);
    if (counts_things(state))
        add_counts(state, out);
    else
        text_addf(out, "%s", format_duration(cell, state->elapsed_s));
    if (state->stopping)
        text_add(out, "  (stopping: waiting for the queries in flight; again to break them off)");
}

/* Cut at the terminal's edge: a line that wraps cannot be drawn over. */
static void fit(struct text *line, unsigned columns)
{
    while (columns > 1 && display_width(text_get(line)) >= columns && line->length > 0) {
        do
            line->length--;
        while (line->length > 0 && ((unsigned char)line->bytes[line->length] & 0xC0) == 0x80);
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
        text_addf(out, "ipw profile: %s\n", text_get(&line));
    }
    text_release(&line);
}

void progress_clear(struct progress *progress, struct text *out)
{
    if (progress->drawn)
        text_add(out, "\r\x1b[K");
    progress->drawn = false;
}
