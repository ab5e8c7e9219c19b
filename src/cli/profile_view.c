#include "cli/profile_view.h"

#include <unistd.h>

#include "cli/common.h"
#include "core/clock.h"
#include "core/text.h"
#include "port/file.h"
#include "port/term.h"
#include "report/live/progress.h"

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

/* It is drawn over itself, and quotes nothing. */
static void put_bar(struct text *text)
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
    put_bar(&text);
}

void profile_view_wipe(void)
{
    struct text text = {0};
    progress_clear(&view.bar, &text);
    put_bar(&text);
}

void profile_view_warn(const char *line)
{
    profile_view_wipe();
    complain(0, "warning: %s", line);
}
