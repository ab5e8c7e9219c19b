#define _GNU_SOURCE
#include "port/term.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "core/text.h"
#include "core/clock.h"
#include "port/file.h"
#include "port/out_of_memory.h"

/* Alternate screen, cursor hidden, no wrapping at the right edge; and the reverse. */
static const char ENTER[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char LEAVE[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASH_COUNT = COUNT_OF(CRASHES) };

static struct {
    struct termios before;
    struct sigaction crash_before[CRASH_COUNT];
    volatile sig_atomic_t is_entered; /* the screen and the modes are set */
    int signals;                      /* signalfd */
    char keys[64];                    /* typed and not yet returned */
    size_t key_count;
    bool input_ended;
} term = {.signals = -1};

/* ---- properties ---- */

bool term_possible(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind && *kind &&
           !str_equal(kind, "dumb");
}

bool term_is_utf8(void)
{
    locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!user)
        return false;
    bool utf8 = str_equal(nl_langinfo_l(CODESET, user), "UTF-8");
    freelocale(user);
    return utf8;
}

void term_size(unsigned *columns, unsigned *rows)
{
    struct winsize size = {0};
    /* A progress bar is drawn on stderr while stdout is a file. */
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ||
                 ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col ? size.ws_col : 80;
    *rows = known && size.ws_row ? size.ws_row : 24;
}

/* ---- entering and leaving ---- */

enum err term_write(const char *bytes, size_t length)
{
    return file_write_all(STDOUT_FILENO, bytes, length);
}

/* Async-signal-safe calls only. */
static void leave_screen(void)
{
    if (!term.is_entered)
        return;
    term.is_entered = 0;
    if (write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1) < 0)
        return; /* the terminal was closed: nothing to restore */
    tcsetattr(STDIN_FILENO, TCSADRAIN, &term.before);
}

static enum err enter_screen(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &raw) < 0)
        return err_from_errno(errno);
    term.before = raw;
    /* Signal keys stay on (Ctrl-C, Ctrl-Z), and so does output processing. */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)IXON; /* Ctrl-S would freeze the view */
    /* 1, not 0: a shell that gets the terminal in this state (after SIGSTOP, which cannot be caught) would take an
     * empty read for end of file. */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return err_from_errno(errno);
    term.is_entered = 1;
    return term_write(ENTER, sizeof ENTER - 1);
}

static void leave_at_last(void *context)
{
    (void)context;
    leave_screen();
}

static struct last_action leaving = {.run = leave_at_last};

static void crash(int number)
{
    leave_screen();
    raise(number); /* SA_RESETHAND has restored the default action */
}

static void watched_signals(sigset_t *set)
{
    static const int WATCHED[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
    sigemptyset(set);
    for (size_t i = 0; i < COUNT_OF(WATCHED); i++)
        sigaddset(set, WATCHED[i]);
}

void term_block_signals(void)
{
    sigset_t set;
    watched_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

enum err term_open(struct error *why)
{
    sigset_t set;
    watched_signals(&set);
    term.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    enum err err = term.signals < 0 ? err_from_errno(errno) : enter_screen();
    if (err) {
        term_close();
        return err_set(why, err, "cannot use the terminal: %s", err_text(err));
    }
    struct sigaction action = {.sa_handler = crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < CRASH_COUNT; i++)
        sigaction(CRASHES[i], &action, &term.crash_before[i]);
    last_action_add(&leaving);
    term.key_count = 0;
    term.input_ended = false;
    return ERR_OK;
}

void term_close(void)
{
    last_action_remove(&leaving);
    if (term.is_entered)
        for (size_t i = 0; i < CRASH_COUNT; i++)
            sigaction(CRASHES[i], &term.crash_before[i], NULL);
    leave_screen();
    if (term.signals >= 0)
        close(term.signals);
    term.signals = -1;
}

/* ---- stop and continue ---- */

/* Stops for Ctrl-Z with the terminal restored; returns when continued. */
static void stop(void)
{
    sigset_t set;
    leave_screen();
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    raise(SIGTSTP); /* pending, since it is blocked: delivered by the next line */
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    /* Discard the SIGCONT that continued us. */
    struct timespec at_once = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    sigtimedwait(&set, NULL, &at_once);
}

/* Another program (a shell, after a kill -STOP) may have changed the modes meanwhile. */
static void resume(void)
{
    term.is_entered = 0;
    if (enter_screen() != ERR_OK)
        term.input_ended = true;
}

/* The next signal that the caller handles; false when there is none. */
static bool next_signal(enum term_event *event, int *value)
{
    struct signalfd_siginfo info;
    while (read(term.signals, &info, sizeof info) == (ssize_t)sizeof info) {
        *value = (int)info.ssi_signo;
        *event = TERM_REDRAW;
        if (*value == SIGTSTP) {
            stop();
            resume();
        } else if (*value == SIGCONT) {
            leave_screen();
            resume();
        } else if (*value != SIGWINCH) {
            *event = TERM_SIGNAL;
        }
        return true;
    }
    return false;
}

/* ---- keys ---- */

/* The key at the start of the buffer; *used is its length in bytes. */
static int parse_key(const char *keys, size_t count, size_t *used)
{
    static const struct {
        const char *bytes;
        int key;
    } SEQUENCES[] = {
        {"\033[A", KEY_UP},   {"\033[B", KEY_DOWN},     {"\033OA", KEY_UP},
        {"\033OB", KEY_DOWN}, {"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN},
        {"\033[H", KEY_HOME}, {"\033[F", KEY_END},      {"\033OH", KEY_HOME},
        {"\033OF", KEY_END},  {"\033[1~", KEY_HOME},    {"\033[4~", KEY_END},
    };
    *used = 1;
    if (keys[0] != '\033')
        return (unsigned char)keys[0];
    for (size_t i = 0; i < COUNT_OF(SEQUENCES); i++) {
        size_t length = strlen(SEQUENCES[i].bytes);
        if (count >= length && !memcmp(keys, SEQUENCES[i].bytes, length)) {
            *used = length;
            return SEQUENCES[i].key;
        }
    }
    if (count < 2 || (keys[1] != '[' && keys[1] != 'O'))
        return KEY_ESCAPE;
    /* An unknown sequence: skip it, up to its final byte (a letter or ~). */
    for (*used = 2; *used < count && (keys[*used] < '@' || keys[*used] > '~');)
        ++*used;
    *used += *used < count;
    return 0;
}

static bool next_key(int *value)
{
    while (term.key_count > 0) {
        size_t used;
        *value = parse_key(term.keys, term.key_count, &used);
        term.key_count -= used;
        memmove(term.keys, term.keys + used, term.key_count);
        if (*value)
            return true;
    }
    return false;
}

static void read_keys(bool hung_up)
{
    size_t used = term.key_count < sizeof term.keys ? term.key_count : sizeof term.keys;
    ssize_t n = read(STDIN_FILENO, term.keys + used, sizeof term.keys - used);
    if (n > 0)
        term.key_count += (size_t)n;
    else if (hung_up || (n < 0 && errno != EINTR && errno != EAGAIN))
        term.input_ended = true; /* only signals and timeouts remain */
}

enum term_event term_wait(nanos until, int *value)
{
    enum term_event event;
    for (;;) {
        if (next_key(value))
            return TERM_KEY;
        if (next_signal(&event, value))
            return event;
        nanos left = until - clock_now();
        if (left <= 0)
            return TERM_TIMEOUT;
        struct timespec limit = {
            .tv_sec = (time_t)(left / NS_PER_S),
            .tv_nsec = (long)(left % NS_PER_S),
        };
        struct pollfd fds[2] = {
            {.fd = term.signals, .events = POLLIN},
            {.fd = term.input_ended ? -1 : STDIN_FILENO, .events = POLLIN},
        };
        if (ppoll(fds, 2, &limit, NULL) > 0 && fds[1].revents)
            read_keys(fds[1].revents & (POLLHUP | POLLERR | POLLNVAL));
    }
}
