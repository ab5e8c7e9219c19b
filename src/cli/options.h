/* Options as tables: a command defines rows with targets, from which parsing, validation, help and suggestions for
 * misspelled names are derived.  Values point into argv; only OPTION_PARAMS allocates, and the owner of the target
 * releases it. */
#ifndef IPW_CLI_OPTIONS_H
#define IPW_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct params;
struct text;

enum option_type {
    OPTION_FLAG,   /* bool */
    OPTION_COUNT,  /* unsigned */
    OPTION_NUMBER, /* double */
    OPTION_TEXT,   /* const char * */
    OPTION_OUTPUT, /* const char *, an output file; checked before the command runs */
    OPTION_ONCE,   /* const char *, initially NULL; at most once */
    OPTION_JOINED, /* const char *, initially NULL; repeated values are joined by commas */
    OPTION_CHOICE, /* const char *, one of choices */
    OPTION_PARAMS, /* struct params; may be repeated */
    OPTION_LIST,   /* struct option_list; may be repeated */
    OPTION_HINT, /* not an option: another tool's name, or a former one; `help` names the replacement */
};

enum { OPTION_LIST_MAX = 32 };

struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};

struct option_row {
    char letter; /* 0: none */
    const char *name;
    const char *former; /* its name in earlier versions, which still is accepted; NULL: none */
    enum option_type type;
    void *target;
    const char *value; /* placeholder in the help: "SECONDS" */
    const char *help;
    double min, max;            /* range of numbers and counts; both 0: none */
    const char *const *choices; /* NULL-terminated */
};

/* Rows: the name, the variable that gets the value, its placeholder in the help, the help, and further members.  A
 * variable of another type does not compile. */
#define OPTION_ROW(name_, type_, c_type, target_, value_, ...)                                     \
    {.name = (name_),                                                                              \
     .type = (type_),                                                                              \
     .target = _Generic(&(target_), c_type *: &(target_)),                                         \
     .value = (value_),                                                                            \
     .help = __VA_ARGS__}
#define FLAG_ROW(name_, target_, ...)                                                              \
    OPTION_ROW(name_, OPTION_FLAG, bool, target_, NULL, __VA_ARGS__)
#define COUNT_ROW(name_, target_, value_, ...)                                                     \
    OPTION_ROW(name_, OPTION_COUNT, unsigned, target_, value_, __VA_ARGS__)
#define NUMBER_ROW(name_, target_, value_, ...)                                                    \
    OPTION_ROW(name_, OPTION_NUMBER, double, target_, value_, __VA_ARGS__)
#define TEXT_ROW(name_, target_, value_, ...)                                                      \
    OPTION_ROW(name_, OPTION_TEXT, const char *, target_, value_, __VA_ARGS__)
#define OUTPUT_ROW(name_, target_, value_, ...)                                                    \
    OPTION_ROW(name_, OPTION_OUTPUT, const char *, target_, value_, __VA_ARGS__)
#define ONCE_ROW(name_, target_, value_, ...)                                                      \
    OPTION_ROW(name_, OPTION_ONCE, const char *, target_, value_, __VA_ARGS__)
#define JOINED_ROW(name_, target_, value_, ...)                                                    \
    OPTION_ROW(name_, OPTION_JOINED, const char *, target_, value_, __VA_ARGS__)
#define CHOICE_ROW(name_, target_, value_, choices_, ...)                                          \
    OPTION_ROW(name_, OPTION_CHOICE, const char *, target_, value_, __VA_ARGS__,                   \
               .choices = (choices_))
#define PARAMS_ROW(name_, target_, value_, ...)                                                    \
    OPTION_ROW(name_, OPTION_PARAMS, struct params, target_, value_, __VA_ARGS__)
#define LIST_ROW(name_, target_, value_, ...)                                                      \
    OPTION_ROW(name_, OPTION_LIST, struct option_list, target_, value_, __VA_ARGS__)
#define HINT_ROW(name_, ...) {.name = (name_), .type = OPTION_HINT, .help = __VA_ARGS__}

struct command {
    const char *name;
    const char *summary;           /* one line */
    const char *usage;             /* text after "ipw NAME" */
    const char *details;           /* paragraphs for --help; may be NULL */
    const struct option_row *rows; /* terminated by a row without a name */
    enum {
        WORDS_NONE,   /* options only */
        WORDS_ANY,    /* options and arguments in any order */
        WORDS_FOLLOW, /* everything after the first argument belongs to the command */
        WORDS_APART,  /* as WORDS_FOLLOW, but our options may not follow it without "--" */
        WORDS_SIDES,  /* as WORDS_ANY, and "--" is a separator among the arguments */
    } words;
    bool takes_runs;                    /* arguments are runs: a folder means all runs in it */
    bool takes_sweeps;                  /* ... and a sweep for itself, not for its runs */
    const char *required;               /* error if there are no arguments; NULL: none */
    const struct command *const *tools; /* subcommands, "NAME TOOL", NULL-terminated; or NULL */

    /* Called with the options in the targets of the rows and the arguments in words[0..count). */
    int (*run)(const char **words, size_t count);
};

/* Parses argv[1..] by rows (terminated by a row without a name).  Stops at "--" or, if stop_at_word, at the first word
 * that is not an option; *rest is the index where it stopped.  "-h" and "--help" set *help.  Invalid input is ERR_USAGE
 * with one line in *why. */
enum err options_parse(const struct option_row *rows, int argc, char **argv, bool stop_at_word,
                       int *rest, bool *help, struct error *why) MUST_USE;

/* The first of these options (names, NULL-terminated) that was given; or NULL. */
const char *options_given(const struct option_row *rows, const char *const *names);

/* Parses "KEY=VALUE" words into empty params.  ERR_USAGE for a word without "=" and for a repeated key, whose first
 * value would be lost. */
enum err options_pairs(const char *name, const struct option_list *words, struct params *out,
                       struct error *why) MUST_USE;

/* The row of a long option; NULL: none. */
const struct option_row *options_row(const struct option_row *rows, const char *name);

/* Usage, details and the table of options. */
void options_help(const struct command *command, const struct option_row *rows, struct text *out);

#endif
