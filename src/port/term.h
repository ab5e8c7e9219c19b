/* The terminal for a full-screen view: raw keys, the alternate screen, its size, and signals, all through one wait.
 * Plain VT sequences and termios rather than curses: the measuring core may need only libc, pthreads and libdl.
 *
 * One terminal per process.  term_open switches to the view; term_close restores the terminal, and so do every stop
 * (Ctrl-Z), every signal that term_wait reports, and a crash. */
#ifndef IPW_PORT_TERM_H
#define IPW_PORT_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

enum term_event {
    TERM_TIMEOUT,
    TERM_KEY,    /* value: a character, or one of enum term_key */
    TERM_REDRAW, /* the size changed, or the program was continued after a stop */
    TERM_SIGNAL, /* value: SIGINT, SIGTERM, SIGHUP or SIGQUIT */
};

enum term_key {
    KEY_UP = 0x100,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_ESCAPE,
};

/* Whether a full-screen view can be shown: input and output are terminals with cursor movement. */
bool term_possible(void);

/* Whether the user's locale uses UTF-8.  Does not change the program's own locale. */
bool term_is_utf8(void);

/* Blocks the signals that term_wait reports, in the calling thread and those it starts.  Call once,
 * before any thread starts. */
void term_block_signals(void);

enum err term_open(struct error *why) MUST_USE;
void term_close(void);

/* Columns and rows; 80 x 24 when the terminal does not report them. */
void term_size(unsigned *columns, unsigned *rows);

/* Waits for an event, at most until the monotonic time `until`. */
enum term_event term_wait(nanos until, int *value);

/* Writes one frame, in one write(2) where possible. */
enum err term_write(const char *bytes, size_t length) MUST_USE;

#endif
