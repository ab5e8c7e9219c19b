#include "cli/reading_view.h"

#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "port/term.h"
#include "report/live/progress.h"

static struct reading_bar view;

static void put(struct text *text)
{
    if (text->length)
        fwrite(text_get(text), 1, text->length, stderr);
    text_release(text);
}

static void look(const char *path, uint64_t done, uint64_t all)
{
    struct text text = {0};
    reading_bar_tell(&view, path, done, all, clock_now(), &text);
    put(&text);
}

void reading_view_start(const char *command, bool terminal)
{
    unsigned columns, rows;
    if (!terminal)
        return;
    term_size(&columns, &rows);
    reading_bar_init(&view, command, term_is_utf8(), columns);
    log_progress_to(look);
}

void reading_view_wipe(void)
{
    struct text text = {0};
    reading_bar_wipe(&view, &text);
    put(&text);
}
