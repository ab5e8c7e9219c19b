/* The list grader: several items, each compared as a number or as text.  Without parameters it is GAIA's
 * rule: an expected number is compared as a number, an expected list item by item in order, anything else
 * as text, ignoring case, white space and punctuation. */
#include <stdlib.h>

#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/prose.h"
#include "graders/reading.h"
#include "graders/tokens.h"
#include "graders/number.h"

/* Items in any order are matched pairwise, which is quadratic: the limit keeps it fast. */
enum { ITEMS_MAX = 2000 };

struct list {
    enum final_rule final;
    struct tolerance tolerance;
    bool any_order;
};

struct items {
    struct slice *at;
    size_t count, capacity;
};

static enum err list_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct list *list = state;
    const char *order = params_get(config->params, "order");
    enum err err = final_read(config->params, &list->final, why);
    if (!err)
        err = tolerance_read(config->params, &list->tolerance, why);
    list->any_order = order && str_equal(order, "any");
    if (!err && order && !list->any_order && !str_equal(order, "keep"))
        err = err_set(why, ERR_USAGE, "order=%s: expected keep or any", order);
    return err;
}

/* ---- splitting ---- */

/* Strips a bullet or number: "- x", "* x", "2. x", "3) x". */
static struct slice strip_bullet(struct slice item)
{
    item = slice_trim(item);
    size_t mark = 0, digits = 0;
    while (digits < item.length && item.start[digits] >= '0' && item.start[digits] <= '9')
        digits++;
    if (digits && digits <= 3 && digits < item.length && strchr(".)", item.start[digits]))
        mark = digits + 1;
    else if (slice_starts(item, "\xE2\x80\xA2")) /* a bullet character needs no space after it */
        return slice_trim((struct slice){item.start + 3, item.length - 3});
    else if (item.length && strchr("-*+", item.start[0]))
        mark = 1;
    if (mark && mark < item.length && slice_is_space(item.start[mark]))
        item = slice_trim((struct slice){item.start + mark, item.length - mark});
    return item;
}

static void add_item(struct items *items, struct slice item, bool starts_line)
{
    if (starts_line)
        item = strip_bullet(item);
    item = slice_trim(item);
    if (slice_starts(item, "and ") || slice_starts(item, "And "))
        item = slice_trim((struct slice){item.start + 4, item.length - 4});
    if (fold_edges(item).length == 0)
        return;
    XGROW(items->at, items->count, items->capacity);
    items->at[items->count++] = item;
}

/* Length of the separator at `at`; 0 if there is none. */
static size_t separator(const char *at, const char *end)
{
    struct slice rest = slice_between(at, end);
    if (strchr(",;\n", *at) && *at)
        return 1;
    return slice_starts(rest, " and ") ? 5 : slice_starts(rest, " & ") ? 3 : 0;
}

static void split(struct items *items, struct slice text)
{
    bool starts_line = true;
    const char *from = text.start, *end = slice_end(text);
    for (const char *c = from; c < end;) {
        size_t length = separator(c, end);
        if (!length) {
            c++;
            continue;
        }
        add_item(items, slice_between(from, c), starts_line);
        starts_line = *c == '\n';
        c += length;
        from = c;
    }
    add_item(items, slice_between(from, end), starts_line);
}

/* [1, 2], {1, 2} and (1, 2) are lists in brackets. */
static struct slice strip_brackets(struct slice text)
{
    static const char PAIRS[][2] = {{'[', ']'}, {'{', '}'}, {'(', ')'}};
    text = slice_trim(text);
    for (size_t i = 0; text.length > 1 && i < COUNT_OF(PAIRS); i++)
        if (text.start[0] == PAIRS[i][0] && text.start[text.length - 1] == PAIRS[i][1])
            return slice_trim((struct slice){text.start + 1, text.length - 2});
    return text;
}

/* ---- comparing ---- */

static bool same_item(const struct list *list, struct slice expected, struct slice item)
{
    static const struct fold FOLD = {.strip = FOLD_ALL};
    struct number wanted, value;
    if (number_whole(fold_edges(expected), &wanted))
        return number_whole(fold_edges(item), &value) &&
               number_equal(&list->tolerance, &wanted, &value);
    return fold_equal(&FOLD, expected, item);
}

static void compare_items(const struct list *list, const struct items *expected,
                          const struct items *answer, struct grade *out)
{
    bool taken[ITEMS_MAX] = {false};
    for (size_t i = 0; i < expected->count; i++) {
        bool same = false;
        size_t first = list->any_order ? 0 : i, end = list->any_order ? answer->count : i + 1;
        for (size_t k = first; k < end && !same; k++) {
            same = !taken[k] && same_item(list, expected->at[i], answer->at[k]);
            taken[k] = taken[k] || same;
        }
        if (!same) {
            grade_false(out,
                        list->any_order ? "item %zu is missing: %.*s"
                                        : "item %zu differs, expected %.*s",
                        i + 1, (int)(expected->at[i].length < 80 ? expected->at[i].length : 80),
                        expected->at[i].start);
            return;
        }
    }
    grade_true(out);
}

static void compare_lists(const struct list *list, struct slice expected, struct slice answer,
                          struct grade *out)
{
    struct items wanted = {0}, found = {0};
    split(&wanted, strip_brackets(expected));
    split(&found, strip_brackets(fold_edges(answer)));
    if (wanted.count == 0 || wanted.count > ITEMS_MAX)
        grade_null(out, "the expected list has %zu items; 1 to %d can be compared", wanted.count,
                   ITEMS_MAX);
    else if (wanted.count != found.count)
        grade_false(out, "%zu items, expected %zu", found.count, wanted.count);
    else
        compare_items(list, &wanted, &found, out);
    free(wanted.at);
    free(found.at);
}

/* A single number: its commas do not separate.  "17.5, Paris" is a list and not 17.5. */
static void grade_number(const struct list *list, const struct number *wanted,
                         const struct marked *marked, struct grade *out)
{
    struct number value;
    struct slice rest = marked->line, last = rest;
    while (!marked->found && sentence_next(&rest, &last))
        ;
    enum number_count count = number_at(marked->line, PLACE_ALONE, &value);
    if (count == NUMBER_NONE && !marked->found && is_definite(last))
        count = number_at(last, PLACE_SENTENCE, &value);
    struct slice rest_of_line = count == NUMBER_ONE ? number_unit(marked->line, &value) : rest;
    if (count == NUMBER_ONE && memchr(rest_of_line.start, ',', rest_of_line.length))
        count = NUMBER_SEVERAL;
    if (count == NUMBER_ONE && !number_first(value.where, &value))
        grade_false(out, "a number in words"); /* no number by GAIA's rule */
    else if (count != NUMBER_ONE)
        grade_unread(out, "no number alone in the answer");
    else if (number_equal(&list->tolerance, wanted, &value))
        grade_true(out);
    else
        grade_false(out, "%.10g, expected %.10g", value.value, wanted->value);
}

static enum err list_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    const struct list *list = state;
    (void)why;
    struct slice expected = expected_value(slice_of(what->expected));
    struct marked marked;
    if (!marked_find(slice_of(what->answer), list->final, &marked)) {
        grade_unread(out, "no marked answer");
        return ERR_OK;
    }
    grade_extracted(out, marked.block);
    struct number wanted;
    if (!number_whole(fold_edges(expected), &wanted)) {
        compare_lists(list, expected, marked.block, out);
        return ERR_OK;
    }
    grade_number(list, &wanted, &marked, out);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"order", "RULE", "keep: the same order, any: any order (keep)"},
    FINAL_PARAM,
    TOLERANCE_PARAMS,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_list = {
    .name = "list",
    .summary = "items separated by commas or lines, as numbers or text (GAIA's rule)",
    .params = PARAMS,
    .expects_answer = true,
    .state_size = sizeof(struct list),
    .configure = list_configure,
    .grade = list_grade,
};
