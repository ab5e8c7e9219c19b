/* --against: two settings whose runs alternate, and their comparison.  struct against_runs owns the paths that were
 * added to it. */
#ifndef IPW_CLI_AGAINST_H
#define IPW_CLI_AGAINST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct result;
struct run_repeat;

enum { AGAINST_PAIRS = 5, AGAINST_PAIRS_MOST = 20 };

struct against_options {
    const char *given; /* the other setting; NULL: none */
    bool until_decided;
};

/* clang-format off */
#define AGAINST_OPTION_ROWS(o, value, help)                                                        \
    ONCE_ROW("against", (o).given, value, help),                                                   \
    FLAG_ROW("until-decided", (o).until_decided,                                                   \
             "end when their energies are decided, or after N pairs (default: 20)")
/* clang-format on */

/* Sets *pairs to its default if the option `name` was not given; 0, or EXIT_USAGE after printing the error. */
int against_check(const struct against_options *options, const char *name, unsigned *pairs);

/* The run of side 'a' or 'b' in a new series, of at most that many pairs. */
struct run_repeat against_repeat(const struct against_options *options, char side, unsigned pairs,
                                 const struct run_repeat *other);

/* Splits the words of a command as a shell does, with quotes, variables and file name patterns, but without running
 * one: the command then differs from one given as arguments in nothing.  The caller never frees them.  ERR_USAGE. */
enum err against_split(const char *line, char ***argv, struct error *why) MUST_USE;

/* Directories of the runs of both sides. */
struct against_runs {
    const char **directories[2];
    size_t counts[2], capacities[2];
    bool is_temporary; /* they are not named in the result */
};
void against_add(struct against_runs *runs, size_t side, const char *directory);
void against_release(struct against_runs *runs);

/* Whether the difference of the energies has a verdict. */
bool against_is_decided(const struct against_runs *runs);

/* The result of `ipw compare`, for COMPARE_VIEWS; the caller releases it. */
enum err against_result(const struct against_runs *runs, struct result *out, struct error *why)
    MUST_USE;

/* A folder for runs that are not kept: its path, which against_remove deletes with all that is in it, and frees. */
enum err against_folder(char **to, struct error *why) MUST_USE;
void against_remove(char *folder);

#endif
