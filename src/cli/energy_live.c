#include "cli/energy_live.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "port/term.h"
#include "report/live/live.h"
#include "report/live/reading.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

struct show {
    struct sampler *sampler;
    nanos start, interval, window;
    struct live live;
    struct live_view view;
    struct reading shown; /* what the screen shows: the newest, or the one at the pause */
    struct text lines, bytes;
    bool quit;
    int signal; /* that ended it */
};

/* ---- warnings, which must not be written across the screen ---- */

static struct {
    pthread_mutex_t lock;
    char line[160];
    struct text all; /* for stderr, once the screen is back */
} warnings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_warning(enum log_level level, const char *line)
{
    (void)level;
    pthread_mutex_lock(&warnings.lock);
    str_copy(warnings.line, sizeof warnings.line, line);
    text_addf(&warnings.all, "ipw energy: %s\n", line);
    pthread_mutex_unlock(&warnings.lock);
}

static void tell_warnings(void)
{
    struct error why;
    pthread_mutex_lock(&warnings.lock); /* a thread may still be adding its line */
    enum err err = write_all(STDERR_FILENO, &warnings.all, &why);
    (void)err; /* nowhere left to say so */
    text_release(&warnings.all);
    pthread_mutex_unlock(&warnings.lock);
}

/* ---- frames ---- */

/* Watts over the interval, but over no less than what the slowest sensor needs to say anything:
 * figures that come and go would tell of the sampling, not of the machine. */
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

static enum err take_reading(struct show *show, struct reading *out)
{
    nanos now = clock_now(), from = now - show->window;
    return reading_take(show->sampler, show->start, from > show->start ? from : show->start, now,
                        out);
}

/* Shows the machine as it is now. */
static enum err refresh(struct show *show)
{
    struct reading reading;
    enum err err = take_reading(show, &reading);
    if (err)
        return err;
    reading_release(&show->shown);
    show->shown = reading;
    show->view.shown = show->live.pushed;
    return ERR_OK;
}

/* An interval has passed: it enters the history, and the screen unless that is paused. */
static enum err tick(struct show *show)
{
    struct reading reading;
    show->window = live_window(show->sampler, show->interval);
    enum err err = take_reading(show, &reading);
    if (err)
        return err;
    live_push(&show->live, &reading);
    if (show->view.paused) {
        reading_release(&reading);
        return ERR_OK;
    }
    reading_release(&show->shown);
    show->shown = reading;
    show->view.shown = show->live.pushed;
    return ERR_OK;
}

/* One write a frame, lines overwritten in place: nothing flickers. */
static enum err draw(struct show *show)
{
    char notice[sizeof warnings.line];
    pthread_mutex_lock(&warnings.lock);
    str_copy(notice, sizeof notice, warnings.line);
    pthread_mutex_unlock(&warnings.lock);
    show->view.notice = notice;
    /* The last column stays free: with the cursor at rest on it, erasing to the end of the line
     * would take its character. */
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
    if (show->lines.failed || show->bytes.failed)
        return ERR_NO_MEMORY;
    return term_write(text_get(&show->bytes), show->bytes.length);
}

/* ---- keys ---- */

static void scroll(struct show *show, long by)
{
    long first = (long)show->view.first + by;
    show->view.first = first > 0 ? (size_t)first : 0;
}

static enum err press(struct show *show, int key)
{
    long page = show->view.rows > 6 ? (long)show->view.rows - 5 : 1;
    switch (key) {
    case 'q':
    case 'Q':
        show->quit = true;
        return ERR_OK;
    case 'p':
        show->view.paused = !show->view.paused;
        return show->view.paused ? ERR_OK : refresh(show);
    case 'r':
        show->start = clock_now();
        return refresh(show);
    case ' ':
        return refresh(show);
    case '?':
    case 'h':
        show->view.help = !show->view.help;
        return ERR_OK;
    case KEY_ESCAPE:
        show->view.help = false;
        return ERR_OK;
    case 'j':
    case KEY_DOWN:
        scroll(show, 1);
        return ERR_OK;
    case 'k':
    case KEY_UP:
        scroll(show, -1);
        return ERR_OK;
    case KEY_PAGE_DOWN:
        scroll(show, page);
        return ERR_OK;
    case KEY_PAGE_UP:
        scroll(show, -page);
        return ERR_OK;
    case KEY_HOME:
        show->view.first = 0;
        return ERR_OK;
    case KEY_END:
        show->view.first = show->live.devices;
        return ERR_OK;
    default:
        return ERR_OK;
    }
}

/* ---- the loop ---- */

static enum err run(struct show *show)
{
    nanos next = clock_now();
    enum err err = ERR_OK;
    while (!err && !show->quit && !show->signal) {
        nanos now = clock_now();
        if (now >= next) {
            err = tick(show);
            next += show->interval;
            if (next <= now) /* stopped or suspended meanwhile */
                next = now + show->interval;
        }
        if (!err)
            err = draw(show);
        if (err)
            break;
        int value;
        switch (term_wait(next, &value)) {
        case TERM_KEY:
            err = press(show, value);
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

/* The last word, on the terminal's own screen. */
static int conclude(struct show *show, struct energy *total)
{
    struct text text = {0};
    nanos now = clock_now();
    sampler_settle(show->sampler, now);
    struct reading reading;
    if (reading_take(show->sampler, show->start, show->start, now, &reading) != ERR_OK)
        return complain("energy", EXIT_FAILED, "out of memory");
    reading_summary(&reading, show->view.colour, &text);
    *total = reading.since.total;
    int code = put_output("energy", &text);
    reading_release(&reading);
    text_release(&text);
    return code;
}

int energy_live(struct session *session, nanos start, nanos interval, struct energy *total)
{
    struct show show = {
        .sampler = session->sampler,
        .start = start,
        .interval = interval,
        .view = {.utf8 = term_is_utf8(),
                 .colour = wants_colour(STDOUT_FILENO),
                 .every_s = seconds(interval)},
    };
    struct error why = {0};
    show.window = live_window(show.sampler, interval);
    enum err err = refresh(&show);
    if (!err)
        err = live_init(&show.live, show.shown.now.count);
    log_sink before = log_divert(keep_warning);
    if (!err && !(err = term_open(&why))) {
        err = run(&show);
        term_close();
    }
    log_divert(before);
    tell_warnings();
    int code = err ? complain("energy", EXIT_FAILED, "%s", why.text[0] ? why.text : err_text(err))
                   : conclude(&show, total);
    reading_release(&show.shown);
    live_release(&show.live);
    text_release(&show.lines);
    text_release(&show.bytes);
    return code == EXIT_DONE && show.signal ? 128 + show.signal : code;
}
