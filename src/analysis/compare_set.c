/* Grouping runs into sides uses their headers and summaries only; the records of a side are loaded when it is
 * compared. */
#include "analysis/compare_set.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"

/* ---- sides ---- */

/* The part of a run that grouping needs. */
struct candidate {
    const char *directory;
    char group[REPEAT_GROUP_MAX];
    bool has_summary;
    struct summary summary;
    size_t side;
};

static bool is_separator(const char *word)
{
    return str_equal(word, "--");
}

static void read_candidate(const char *directory, struct candidate *out)
{
    *out = (struct candidate){.directory = directory};
    if (run_dir_check_files(directory,
                            NULL)) /* opening a FIFO would block; loading it reports the error */
        return;
    out->has_summary = summary_load(directory, &out->summary, NULL) == ERR_OK;
    if (out->has_summary) {
        chars_copy(out->group, text_or_empty(out->summary.repeat_group));
        return;
    }
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    chars_copy(out->group, journal_facts(path).repeat.group);
    free(path);
}

static bool are_repeats(const struct candidate *a, const struct candidate *b)
{
    size_t stem = run_path_stem(a->directory);
    if (str_equal(a->directory, b->directory))
        return false; /* the same run given twice is not a repeat */
    if (a->group[0] || b->group[0])
        return str_equal(a->group, b->group);
    return stem < strlen(a->directory) && stem == run_path_stem(b->directory) &&
           strncmp(a->directory, b->directory, stem) == 0 && a->has_summary && b->has_summary &&
           compare_same_setting(&a->summary, &b->summary);
}

/* Numbers the sides in the order of their first runs; returns their number. */
static size_t number_repeats(struct candidate *runs, size_t count)
{
    size_t sides = 0;
    for (size_t i = 0; i < count; i++) {
        runs[i].side = sides;
        for (size_t j = 0; j < i && runs[i].side == sides; j++)
            if (are_repeats(&runs[i], &runs[j]))
                runs[i].side = runs[j].side;
        sides += runs[i].side == sides;
    }
    return sides;
}

static size_t number_each(struct candidate *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        runs[i].side = i;
    return count;
}

static void put_sides(const struct candidate *runs, size_t count, size_t sides,
                      struct compare_groups *out)
{
    size_t at = 0;
    out->count = sides;
    for (size_t s = 0; s < sides; s++)
        for (size_t i = 0; i < count; i++)
            if (runs[i].side == s) {
                out->directories[at++] = runs[i].directory;
                out->runs[s]++;
            }
}

/* Copies the runs; *sides is the number of sides separated by "--", 0 without one. */
static size_t take_runs(const char *const *words, size_t count, struct candidate *runs,
                        size_t *sides)
{
    size_t taken = 0, side = 0;
    bool separated = false;
    for (size_t i = 0; i < count; i++) {
        separated = separated || is_separator(words[i]);
        if (!is_separator(words[i]))
            runs[taken++] = (struct candidate){.directory = words[i], .side = side};
        else if (taken && runs[taken - 1].side == side)
            side++;
    }
    *sides = separated && taken ? runs[taken - 1].side + 1 : 0;
    return taken;
}

void compare_groups_find(const char *const *words, size_t count, struct compare_groups *out)
{
    struct candidate *runs = xcalloc(count + 1, sizeof *runs);
    size_t sides = 0;
    *out = (struct compare_groups){.directories = xcalloc(count + 1, sizeof *out->directories),
                                   .runs = xcalloc(count + 1, sizeof *out->runs)};
    size_t taken = take_runs(words, count, runs, &sides);
    if (!sides) {
        for (size_t i = 0; i < taken; i++)
            read_candidate(runs[i].directory, &runs[i]);
        sides = number_repeats(runs, taken);
        for (size_t i = 0; i < taken; i++)
            summary_release(&runs[i].summary);
        out->one_setting = sides == 1 && taken > 1;
        if (sides == 1)
            sides = number_each(runs, taken);
    }
    put_sides(runs, taken, sides, out);
    free(runs);
}

void compare_groups_release(struct compare_groups *groups)
{
    free((void *)groups->directories);
    free(groups->runs);
    *groups = (struct compare_groups){0};
}

/* ---- comparisons ---- */

struct loaded {
    struct run_table *tables;
    size_t count;
};

static void unload(struct loaded *side)
{
    for (size_t i = 0; i < side->count; i++)
        run_table_release(&side->tables[i]);
    free(side->tables);
    *side = (struct loaded){0};
}

static enum err load_run(const char *directory, const struct compare_options *options,
                         struct run_table *out, struct error *why)
{
    enum err err = run_table_load(directory, options->model, compare_needs(), out, why);
    if (!err && options->tariff)
        tariff_override(&out->summary.tariff, options->tariff);
    if (!err && run_completed_count(out) == 0) {
        err = err_set(why, ERR_NO_DATA, "%s: all %zu queries failed: nothing to compare", directory,
                      out->rows);
        run_table_release(out);
    }
    return err;
}

static enum err load_side(const char *const *directories, size_t count,
                          const struct compare_options *options, struct loaded *out,
                          struct error *why)
{
    *out = (struct loaded){.tables = xcalloc(count, sizeof *out->tables)};
    enum err err = ERR_OK;
    while (!err && out->count < count) {
        err = load_run(directories[out->count], options, &out->tables[out->count], why);
        out->count += !err;
    }
    if (err)
        unload(out);
    return err;
}

/* The source of a side's name. */
struct named_side {
    struct run_point point;
    char *path; /* of its runs, without what tells them apart: the directory of the point */
};

static void take_point(const struct loaded *side, struct named_side *out)
{
    run_point_of(&side->tables[0], &out->point);
    const char *directory = out->point.directory;
    out->path = xstrndup(directory, side->count > 1 ? run_path_stem(directory) : strlen(directory));
    out->point.directory = out->path;
}

static void name_sides(const struct named_side *sides, struct compare_set *set)
{
    struct run_names names = {0};
    const struct run_point **all = xmalloc((set->count + 1) * sizeof *all);
    for (size_t i = 0; i <= set->count; i++)
        all[i] = &sides[i].point;
    run_names_of(all, set->count + 1, 0, &names);
    for (size_t i = 0; i <= set->count; i++)
        str_copy(i ? set->comparisons[i - 1].side.name : set->baseline.name, RUN_NAME_MAX,
                 names.names[i]);
    run_names_release(&names);
    free((void *)all);
}

static enum err compare_with(const struct loaded *baseline, const struct compare_groups *groups,
                             const struct compare_options *options, struct named_side *sides,
                             struct compare_set *out, struct error *why)
{
    const struct compare_side a = {baseline->tables, baseline->count};
    const char *const *directories = groups->directories + groups->runs[0];
    enum err err = ERR_OK;
    compare_describe(&a, &out->baseline);
    take_point(baseline, &sides[0]);
    for (size_t i = 0; !err && i < out->count; i++) {
        struct loaded side;
        struct comparison *to = &out->comparisons[i];
        err = load_side(directories, groups->runs[i + 1], options, &side, why);
        if (err)
            break;
        const struct compare_side b = {side.tables, side.count};
        take_point(&side, &sides[i + 1]);
        struct run_spread spread = {0};
        if (a.count == 1 && b.count == 1)
            run_spread_of(a.runs, b.runs, &spread);
        compare_sides(&a, &b, options, &spread, to);
        directories += side.count;
        unload(&side);
    }
    if (!err) {
        name_sides(sides, out);
        compare_verdicts(out->comparisons, out->count);
    }
    return err;
}

enum err compare_set_load(const struct compare_groups *groups,
                          const struct compare_options *options, struct compare_set *out,
                          struct error *why)
{
    struct loaded baseline = {0};
    struct named_side *sides = xcalloc(groups->count, sizeof *sides);
    *out = (struct compare_set){.comparisons = xcalloc(groups->count, sizeof *out->comparisons),
                                .count = groups->count - 1};
    enum err err = load_side(groups->directories, groups->runs[0], options, &baseline, why);
    if (!err)
        err = compare_with(&baseline, groups, options, sides, out, why);
    unload(&baseline);
    for (size_t i = 0; i < groups->count; i++)
        free(sides[i].path);
    free(sides);
    if (err)
        compare_set_release(out);
    return err;
}

void compare_set_release(struct compare_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        findings_release(&set->comparisons[i].findings);
    free(set->comparisons);
    *set = (struct compare_set){0};
}

/* ---- bounds ---- */

static enum err unknown_metric(const char *name, struct error *why)
{
    const char *names[COMPARE_METRICS];
    struct text all = {0};
    for (size_t i = 0; i < COMPARE_METRICS; i++) {
        names[i] = COMPARE_METRIC_INFO[i].name;
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_name(name, names, COMPARE_METRICS);
    enum err err =
        near ? err_set(why, ERR_USAGE, "unknown metric '%s': did you mean '%s'?", name, near)
             : err_set(why, ERR_USAGE, "unknown metric '%s': use one of %s", name, text_get(&all));
    text_release(&all);
    return err;
}

static const char *skip_spaces(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static enum err parse_bound(const char *at, struct compare_check *out)
{
    char number[64];
    size_t length = strlen(at);
    while (length && isspace((unsigned char)at[length - 1]))
        length--;
    out->relative = length && at[length - 1] == '%';
    length -= out->relative;
    if (length >= sizeof number)
        return ERR_BAD_VALUE;
    memcpy(number, at, length);
    number[length] = '\0';
    enum err err = parse_double(number, &out->bound);
    if (out->relative)
        out->bound /= 100;
    return err;
}

enum err compare_check_parse(const char *text, struct compare_check *out, struct error *why)
{
    char name[64];
    const char *at = skip_spaces(text);
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    *out = (struct compare_check){.metric = COMPARE_METRICS};
    const char *sign = skip_spaces(at + length);
    if (!chars_copy(out->text, text) || !length || length >= sizeof name ||
        (*sign != '>' && *sign != '<'))
        return err_set(why, ERR_USAGE,
                       "'%.100s' is not a bound: write METRIC > BOUND or METRIC < BOUND, as in "
                       "'energy_per_output_token > +5%%'",
                       text);
    memcpy(name, at, length);
    name[length] = '\0';
    for (size_t i = 0; i < COMPARE_METRICS; i++)
        if (str_equal(COMPARE_METRIC_INFO[i].name, name))
            out->metric = (enum compare_metric)i;
    if (out->metric == COMPARE_METRICS)
        return unknown_metric(name, why);
    out->above = *sign == '>';
    out->or_equal = sign[1] == '=';
    if (parse_bound(sign + 1 + out->or_equal, out))
        return err_set(
            why, ERR_USAGE,
            "'%.100s' has no number for a bound: +5%% is a share of the baseline, 0.5 is "
            "in the metric's unit",
            text);
    return ERR_OK;
}

static bool fails_at(const struct compare_check *check, double value)
{
    if (value == check->bound)
        return check->or_equal;
    return (value > check->bound) == check->above;
}

enum compare_outcome compare_check_evaluate(const struct compare_check *check,
                                            const struct comparison *comparison, bool confident)
{
    const struct compared *compared = &comparison->metrics[check->metric];
    const struct contrast *found = &compared->found;
    const struct contrast_figure *figure = check->relative ? &found->relative : &found->difference;
    double value = figure->value, scale = check->relative ? fabs(found->a) : 1;
    if (confident)
        value = check->above ? figure->low : figure->high;
    if (check->relative && found->a == 0 && found->b == 0)
        value = 0; /* a relative difference of 0 and 0 is undefined, but there is none */
    else if (!is_known(figure->value))
        return CHECK_UNKNOWN;
    if (compare_is_blocked(comparison, check->metric))
        return CHECK_NOT_COMPARABLE;
    if (confident && !compare_is_repeated(comparison))
        return CHECK_UNREPEATED;
    if (!is_known(value))
        return CHECK_HOLDS; /* too few queries for any conclusion */
    bool is_failure = fails_at(check, value);
    if (value != 0 && (fails_at(check, value - compared->shift_high / scale) != is_failure ||
                       fails_at(check, value - compared->shift_low / scale) != is_failure))
        return CHECK_NOT_COMPARABLE; /* without the difference of conditions it would be another */
    return is_failure ? CHECK_FAILS : CHECK_HOLDS;
}
