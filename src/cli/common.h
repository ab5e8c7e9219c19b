/* What the commands share: exit codes, output, the options that every measuring command has. */
#ifndef IPW_CLI_COMMON_H
#define IPW_CLI_COMMON_H

#include <stdbool.h>

#include "cli/options.h"
#include "core/err.h"

struct energy;
struct text;
struct session;

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_MEASURED = 3, /* --require-energy, and it was missing or estimated */
};

/* Prints "ipw COMMAND: text" on stderr and returns the code. */
int complain(const char *command, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Options of every command that measures; rate_name is how the reads a second are asked for. */
struct measure_options {
    const char *devices;
    const char *sensors;
    double rate_hz;
    bool require_energy;
};
#define MEASURE_OPTION_ROWS(m, rate_name)                                                          \
    {0,           "devices",                                                                       \
     OPTION_TEXT, &(m).devices,                                                                    \
     "LIST",      "GPUs by index or UUID (default: the visible ones)",                             \
     0,           0,                                                                               \
     NULL},                                                                                        \
        {0,           "sensors",                                                                   \
         OPTION_TEXT, &(m).sensors,                                                                \
         "LIST",      "only these drivers, e.g. nvml,rapl (default: all)",                         \
         0,           0,                                                                           \
         NULL},                                                                                    \
        {0,                                                                                        \
         rate_name,                                                                                \
         OPTION_NUMBER,                                                                            \
         &(m).rate_hz,                                                                             \
         "HZ",                                                                                     \
         "reads a second (default: what suits each sensor)",                                       \
         0.01,                                                                                     \
         1000,                                                                                     \
         NULL},                                                                                    \
    {                                                                                              \
        0, "require-energy", OPTION_FLAG, &(m).require_energy, NULL,                               \
            "exit 3 unless the energy was measured", 0, 0, NULL                                    \
    }

/* For --require-energy: 0 when the total was measured and covers nearly all of its window, else
 * EXIT_NOT_MEASURED after saying why not. */
int require_measured(const char *command, const struct energy *total);

/* Opens a session as the options ask; complains on failure and returns the exit code, else 0. */
int open_session(const char *command, const struct measure_options *options,
                 struct session *session);

/* Writes all of text to stdout, stderr or a file (fd or path), reporting every failure: a full
 * disk must not pass for a written report. */
enum err write_all(int fd, const struct text *text, struct error *why) MUST_USE;
enum err write_file(const char *path, const struct text *text, struct error *why) MUST_USE;

/* Writes to stdout; complains and returns EXIT_FAILED when that fails. */
int put_output(const char *command, const struct text *text);

/* Colour on this descriptor?  A terminal, and neither NO_COLOR nor TERM=dumb. */
bool wants_colour(int fd);

/* Parses; on --help prints it.  Returns -1 to go on, else the exit code. */
int parse_or_help(const struct command *command, const struct option_row *rows, int argc,
                  char **argv, bool stop_at_word, int *rest);

/* The same for a command that takes words as well, before, between or behind its options: they are
 * moved to words[0..*count), which must have room for argc. */
int parse_with_words(const struct command *command, const struct option_row *rows, int argc,
                     char **argv, const char **words, size_t *count);

#endif
