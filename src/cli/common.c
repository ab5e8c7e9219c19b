#include "cli/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/energy.h"
#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "port/term.h"
#include "report/live/progress.h"
#include "sampler/session.h"

/* ---- progress of reading a large run, on stderr ---- */

static struct reading_bar bar;

static void put_bar(struct text *text)
{
    if (text->length)
        fwrite(text_get(text), 1, text->length, stderr);
    text_release(text);
}

static void show_reading(const char *path, uint64_t done, uint64_t all)
{
    struct text text = {0};
    reading_bar_tell(&bar, path, done, all, clock_now(), &text);
    put_bar(&text);
}

void start_reading_bar(const char *command, bool terminal)
{
    unsigned columns, rows;
    if (!terminal)
        return;
    term_size(&columns, &rows);
    reading_bar_init(&bar, command, term_is_utf8(), columns);
    log_progress_to(show_reading);
}

static void clear_reading_bar(void)
{
    struct text text = {0};
    reading_bar_wipe(&bar, &text);
    put_bar(&text);
}

/* ---- messages and output ---- */

int complain(const char *command, int code, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    clear_reading_bar();
    fprintf(stderr, "ipw %s: %s\n", command, str_plain(line));
    return code;
}

/* With less coverage a figure counts as missing, whatever its method. */
#define COVERAGE_REQUIRED 0.9

int require_measured(const char *command, const struct energy *total)
{
    char why[400];
    if (total->method == METHOD_ESTIMATED)
        str_format(why, sizeof why, "only estimated, by %s", total->source);
    else if (!energy_is_measured(total))
        str_copy(why, sizeof why, total->note);
    else if (total->coverage < COVERAGE_REQUIRED)
        str_format(why, sizeof why, "coverage only %.0f %%", 100 * total->coverage);
    else
        return 0;
    return complain(command, EXIT_NOT_MEASURED,
                    "energy is required but was not measured: %s; see `ipw doctor`", why);
}

int open_session(const char *command, const struct measure_options *options,
                 struct session *session)
{
    struct session_options wanted = {
        .sensors = {.devices = options->devices},
        .drivers = options->sensors,
        .period = options->rate_hz > 0 ? from_seconds(1 / options->rate_hz) : 0,
    };
    struct error why;
    enum err err = session_open(session, &wanted, &why);
    if (err)
        return complain(command, err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    return 0;
}

enum err write_all(int fd, const struct text *text, struct error *why)
{
    if (text->failed)
        return err_no_memory(why);
    enum err err = file_write_all(fd, text_get(text), text->length);
    return err ? err_set(why, err, "%s", strerror(errno)) : ERR_OK;
}

enum err write_file(const char *path, const struct text *text, struct error *why)
{
    if (text->failed)
        return err_no_memory(why);
    return file_write(path, text_get(text), text->length, why);
}

int put_output(const char *command, const struct text *text)
{
    struct error why;
    clear_reading_bar();
    if (write_all(STDOUT_FILENO, text, &why) != ERR_OK)
        return complain(command, EXIT_FAILED, "cannot write to standard output: %s", why.text);
    return EXIT_DONE;
}

bool wants_color(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

int parse_or_help(const struct command *command, const struct option_row *rows, int argc,
                  char **argv, bool stop_at_word, int *rest)
{
    bool help;
    struct error why;
    if (options_parse(rows, argc, argv, stop_at_word, rest, &help, &why) != ERR_OK)
        return complain(command->name, EXIT_USAGE, "%s", why.text);
    if (!help)
        return -1;
    struct text text = {0};
    options_help(command, rows, &text);
    int code = put_output(command->name, &text);
    text_release(&text);
    return code;
}

int parse_with_words(const struct command *command, const struct option_row *rows, int argc,
                     char **argv, const char **words, size_t *count)
{
    *count = 0;
    for (;;) {
        int rest, code = parse_or_help(command, rows, argc, argv, true, &rest);
        if (code >= 0)
            return code;
        if (rest >= argc)
            return -1;
        bool only_words = strcmp(argv[rest - 1], "--") == 0 && rest > 1;
        while (only_words && rest < argc)
            words[(*count)++] = argv[rest++];
        if (only_words)
            return -1;
        words[(*count)++] = argv[rest]; /* argv[0] of the next round */
        argc -= rest;
        argv += rest;
    }
}
