/* Options as tables: a command fills rows with targets, and parsing, checking, help and the
 * suggestion for a misspelled name are derived from them.  Values point into argv; only
 * OPTION_PARAMS allocates, and the owner of the target releases it. */
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
    OPTION_OUTPUT, /* const char *, a file that the command writes at its end; checked before it runs */
    OPTION_ONCE,   /* const char *, initially NULL; may be given once */
    OPTION_JOINED, /* const char *, initially NULL; given again, a comma joins the two */
    OPTION_CHOICE, /* const char *, one of choices */
    OPTION_PARAMS, /* struct params; may be given several times */
    OPTION_LIST,   /* struct option_list; may be given several times */
    OPTION_HINT, /* not an option: another tool's name for one, or a former one; `help` says what to use */
};

enum { OPTION_LIST_MAX = 32 };

struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};

struct option_row {
    char letter; /* 0: none */
    const char *name;
    enum option_type type;
    void *target;
    const char *value; /* its name in the help: "SECONDS" */
    const char *help;
    double least, most;         /* numbers and counts; both 0: no limits */
    const char *const *choices; /* NULL-terminated */
};

struct command {
    const char *name;
    const char *summary;           /* one line */
    const char *usage;             /* what follows "ipw NAME" */
    const char *details;           /* paragraphs for --help; may be NULL */
    const struct option_row *rows; /* ended by a row without name */
    enum {
        WORDS_NONE,   /* options only */
        WORDS_ANY,    /* arguments before, between or after its options */
        WORDS_FOLLOW, /* what follows the first argument is not ours */
        WORDS_APART,  /* as WORDS_FOLLOW, but without "--" none of our options may follow it */
        WORDS_SIDES,  /* as WORDS_ANY, and "--" is an argument that separates others */
    } words;
    bool takes_runs;      /* arguments are runs: a folder of runs stands for those in it */
    bool takes_sweeps;    /* ... and a sweep for itself, not for its runs */
    const char *required; /* the complaint without any argument; NULL: none */
    const struct command *const *tools; /* commands below it, "NAME TOOL", ended by NULL; or NULL */

    /* With the options in the targets of its rows and the arguments in words[0..count). */
    int (*run)(const char **words, size_t count);
};

/* Parses argv[1..] by rows (ended by a row without name).  Stops at "--" or, when stop_at_word,
 * at the first word that is not an option; *rest is the index where it stopped.  "-h" and "--help"
 * set *help.  Anything invalid is ERR_USAGE with one line in *why. */
enum err options_parse(const struct option_row *rows, int argc, char **argv, bool stop_at_word,
                       int *rest, bool *help, struct error *why) MUST_USE;

/* Parses the "KEY=VALUE" words of a list into empty params.  ERR_USAGE for a word without "=" and for
 * a repeated key, whose first value would be lost. */
enum err options_pairs(const char *name, const struct option_list *words, struct params *out,
                       struct error *why) MUST_USE;

/* Usage, details and the table of options. */
void options_help(const struct command *command, const struct option_row *rows, struct text *out);

#endif
