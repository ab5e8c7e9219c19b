/* A series of runs of two settings that alternate is compared as `ipw compare` does, from run directories: at the end,
 * and with --until-decided after each pair. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "cli/against.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "analysis/compare_set.h"
#include "cli/common.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "rundir/run_path.h"
#include "stats/sequential.h"

/* ---- options ---- */

int against_check(const struct against_options *options, const char *name, unsigned *pairs)
{
    if (!options->given && options->until_decided)
        return print_error(EXIT_USAGE, "--until-decided needs --against");
    if (!options->given)
        return EXIT_DONE;
    if (!option_given((const char *const[]){name, NULL}))
        *pairs = options->until_decided ? AGAINST_PAIRS_MOST : AGAINST_PAIRS;
    if (options->until_decided && (*pairs < SEQUENTIAL_FIRST || *pairs > SEQUENTIAL_MAX))
        return print_error(EXIT_USAGE, "--until-decided needs --%s from %d to %d", name,
                           SEQUENTIAL_FIRST, SEQUENTIAL_MAX);
    return EXIT_DONE;
}

struct run_repeat against_repeat(const struct against_options *options, char side, unsigned pairs,
                                 const struct run_repeat *other)
{
    struct run_repeat repeat = {.side = side, .until_decided = options->until_decided ? pairs : 0};
    if (other)
        chars_copy(repeat.series, other->series);
    else
        chars_copy(repeat.series, run_repeat_new().group);
    return repeat;
}

/* ---- the words of a command ---- */

static const char *split_error(int code)
{
    switch (code) {
    case WRDE_BADCHAR:
        return "it has a character that only a shell understands (| & ; < > ( ) { } or a line "
               "break): quote it, or write sh -c '...' in both commands";
    case WRDE_CMDSUB:
        return "command substitution needs a shell: write sh -c '...' in both commands";
    case WRDE_SYNTAX:
        return "unbalanced quotes";
    default:
        return "its words cannot be separated";
    }
}

enum err against_split(const char *line, char ***argv, struct error *why)
{
    static wordexp_t words; /* of the only command of the process */
    int code = wordexp(line, &words, WRDE_NOCMD);
    if (code)
        return err_set(why, ERR_USAGE, "--against '%.200s': %s", line, split_error(code));
    if (words.we_wordc == 0)
        return err_set(why, ERR_USAGE, "--against: missing command");
    *argv = words.we_wordv;
    return ERR_OK;
}

/* ---- runs ---- */

void against_add(struct against_runs *runs, size_t side, const char *directory)
{
    XGROW(runs->directories[side], runs->counts[side], runs->capacities[side]);
    runs->directories[side][runs->counts[side]++] = xstrdup(directory);
}

void against_release(struct against_runs *runs)
{
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < runs->counts[side]; i++)
            free((char *)runs->directories[side][i]);
        free((void *)runs->directories[side]);
    }
    *runs = (struct against_runs){0};
}

/* Borrows the paths. */
static void group(const struct against_runs *runs, struct compare_groups *out)
{
    size_t a = runs->counts[0], b = runs->counts[1];
    *out = (struct compare_groups){.directories = xcalloc(a + b, sizeof *out->directories),
                                   .runs = xcalloc(2, sizeof *out->runs),
                                   .count = 2};
    for (size_t i = 0; i < a + b; i++)
        out->directories[i] = i < a ? runs->directories[0][i] : runs->directories[1][i - a];
    out->runs[0] = a;
    out->runs[1] = b;
}

static enum err compare(const struct against_runs *runs, uint32_t only,
                        struct compare_groups *groups, struct compare_set *out, struct error *why)
{
    const struct compare_options options = {.only = only};
    if (!runs->counts[0] || !runs->counts[1])
        return err_set(why, ERR_NO_DATA, "nothing to compare: no run of %s was measured",
                       runs->counts[0] ? "--against" : "the baseline");
    group(runs, groups);
    enum err err = compare_set_load(groups, &options, out, why);
    if (err)
        compare_groups_release(groups);
    return err;
}

bool against_is_decided(const struct against_runs *runs)
{
    struct compare_groups groups;
    struct compare_set set;
    if (compare(runs, UINT32_C(1) << COMPARE_ENERGY_PER_QUERY, &groups, &set, NULL))
        return false;
    enum compare_verdict verdict = set.comparisons[0].metrics[COMPARE_ENERGY_PER_QUERY].verdict;
    compare_set_release(&set);
    compare_groups_release(&groups);
    return verdict == VERDICT_BETTER || verdict == VERDICT_WORSE;
}

enum err against_result(const struct against_runs *runs, struct result *out, struct error *why)
{
    struct compare_groups groups;
    struct compare_set set;
    enum err err = compare(runs, 0, &groups, &set, why);
    if (err)
        return err;
    const struct compare_report report = {
        .groups = &groups, .set = &set, .is_temporary = runs->is_temporary};
    compare_result(&report, out);
    compare_set_release(&set);
    compare_groups_release(&groups);
    return ERR_OK;
}

/* ---- runs that are not kept ---- */

enum err against_folder(char **to, struct error *why)
{
    const char *given = str_or_null(getenv("TMPDIR"));
    *to = path_join(given ? given : "/tmp", "ipw-against-XXXXXX");
    if (mkdtemp(*to))
        return ERR_OK;
    enum err err = err_errno(why, errno, "cannot create %s", *to);
    free(*to);
    *to = NULL;
    return err;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

void against_remove(char *folder)
{
    enum { OPEN_MAX_FOLDERS = 8 };
    if (folder)
        (void)nftw(folder, remove_entry, OPEN_MAX_FOLDERS, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
