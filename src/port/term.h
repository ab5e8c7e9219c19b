/* The terminal for a full-screen view: raw keys, the alternate screen, its size, and signals, all
 * through one wait.  Plain VT sequences and termios: the measuring core may need libc, pthreads and
 * libdl alone, so there is no curses here.
 *
 * One terminal a process.  term_open takes it over; term_close gives it back as it was, and so do
 * every stop (Ctrl-Z), every signal that term_wait reports, and a crash. */
#ifndef IPW_PORT_TERM_H
#define IPW_PORT_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

enum term_event {
    TERM_TIMEOUT,
    TERM_KEY,    /* value: a character, or one of enum term_key */
    TERM_REDRAW, /* the size changed, or the program was stopped and goes on */
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

/* Can a full-screen view be shown: are input and output terminals that move a cursor? */
bool term_possible(void);

/* Does the user's locale speak UTF-8?  Leaves the program's own locale alone. */
bool term_is_utf8(void);

/* Blocks the signals that term_wait reports, in the calling thread and those it starts.  Call once,
 * before any thread starts. */
void term_take_signals(void);

enum err term_open(struct error *why) MUST_USE;
void term_close(void);

/* Columns and rows; 80 x 24 when the terminal does not say. */
void term_size(unsigned *columns, unsigned *rows);

/* Waits for something to happen, at most until the monotonic time `until`. */
enum term_event term_wait(nanos until, int *value);

/* One frame, in one write where the terminal takes it. */
enum err term_write(const char *bytes, size_t length) MUST_USE;

#endif
