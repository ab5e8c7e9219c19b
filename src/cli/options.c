#include "cli/options.h"

#include <math.h>
#include <string.h>

#include "core/params.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"

static const struct option_row *find_long(const struct option_row *rows, const char *name,
                                          size_t length)
{
    for (; rows->name; rows++)
        if ((strlen(rows->name) == length && !strncmp(rows->name, name, length)) ||
            (rows->former && strlen(rows->former) == length &&
             !strncmp(rows->former, name, length)))
            return rows;
    return NULL;
}

/* Rows whose options were given. */
static struct {
    const struct option_row **rows;
    size_t count, capacity;
} given;

const char *options_given(const struct option_row *rows, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < given.count; i++)
            if (given.rows[i] == find_long(rows, *names, strlen(*names)))
                return *names;
    return NULL;
}

const struct option_row *options_row(const struct option_row *rows, const char *name)
{
    return find_long(rows, name, strlen(name));
}

static const struct option_row *find_letter(const struct option_row *rows, char letter)
{
    for (; rows->name; rows++)
        if (rows->letter == letter)
            return rows;
    return NULL;
}

static enum err unknown_option(const struct option_row *rows, const char *word, size_t length,
                               struct error *why)
{
    char name[64];
    enum { NAMES_MAX = 128 };
    const char *names[NAMES_MAX] = {"help"};
    size_t count = 1;
    chars_format(name, "%.*s", (int)length, word);
    for (; rows->name && count < NAMES_MAX; rows++)
        if (rows->type != OPTION_HINT)
            names[count++] = rows->name;
    const char *near = nearest_name(name, names, count);
    if (near)
        return err_set(why, ERR_USAGE, "unknown option '--%s'; did you mean '--%s'?", name, near);
    return err_set(why, ERR_USAGE, "unknown option '--%s'; see --help", name);
}

static enum err set_number(const struct option_row *row, const char *value, struct error *why)
{
    double number;
    bool whole = row->type == OPTION_COUNT;
    if (parse_double(value, &number) != ERR_OK || (whole && number != floor(number)))
        return err_set(why, ERR_USAGE, "--%s takes %s, not '%s'", row->name,
                       whole ? "an integer" : "a number", value);
    bool limited = row->min != 0 || row->max != 0;
    if (limited && (number < row->min || number > row->max))
        return err_set(why, ERR_USAGE, "--%s must be between %g and %g, not %s", row->name,
                       row->min, row->max, value);
    if (whole)
        *(unsigned *)row->target = (unsigned)number;
    else
        *(double *)row->target = number;
    return ERR_OK;
}

/* The list of a repeated option is never freed: each such option has one. */
static enum err join(const char **target, const char *value, struct error *why)
{
    static struct {
        const char **target;
        struct text list;
    } made[4];
    if (!*target) {
        *target = value;
        return ERR_OK;
    }
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        if (made[i].target && made[i].target != target)
            continue;
        if (!made[i].target)
            text_add(&made[i].list, *target);
        made[i].target = target;
        text_addf(&made[i].list, ",%s", value);
        *target = text_get(&made[i].list);
        return ERR_OK;
    }
    return err_set(why, ERR_USAGE, "too many options given more than once");
}

static enum err set_choice(const struct option_row *row, const char *value, struct error *why)
{
    char list[160] = "";
    size_t count = 0;
    for (; row->choices[count]; count++) {
        if (str_equal(row->choices[count], value)) {
            *(const char **)row->target = value;
            return ERR_OK;
        }
        size_t used = strlen(list);
        str_format(list + used, sizeof list - used, "%s%s", count ? ", " : "", row->choices[count]);
    }
    const char *near = nearest_name(value, row->choices, count);
    return err_set(why, ERR_USAGE, "--%s must be one of %s, not '%s'%s%s%s", row->name, list, value,
                   near ? "; did you mean '" : "", text_or_empty(near), near ? "'?" : "");
}

static enum err add_item(const struct option_row *row, const char *value, struct error *why)
{
    struct option_list *list = row->target;
    if (list->count == OPTION_LIST_MAX)
        return err_set(why, ERR_USAGE, "--%s given more than %d times", row->name, OPTION_LIST_MAX);
    list->items[list->count++] = value;
    return ERR_OK;
}

static enum err set_value(const struct option_row *row, const char *value, struct error *why)
{
    *XADD(given.rows, given.count, given.capacity) = row;
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)row->target = true;
        return ERR_OK;
    case OPTION_COUNT:
    case OPTION_NUMBER:
        return set_number(row, value, why);
    case OPTION_TEXT:
    case OPTION_OUTPUT:
        *(const char **)row->target = value;
        return ERR_OK;
    case OPTION_ONCE:
        if (*(const char **)row->target)
            return err_set(why, ERR_USAGE, "--%s given more than once: '%.80s' and '%.80s'",
                           row->name, *(const char **)row->target, value);
        *(const char **)row->target = value;
        return ERR_OK;
    case OPTION_JOINED:
        return join(row->target, value, why);
    case OPTION_CHOICE:
        return set_choice(row, value, why);
    case OPTION_PARAMS:
        if (!strchr(value, '='))
            return err_set(why, ERR_USAGE, "--%s takes KEY=VALUE, not '%.80s'", row->name, value);
        params_add(row->target, value);
        return ERR_OK;
    case OPTION_LIST:
        return add_item(row, value, why);
    case OPTION_HINT:
        break;
    }
    return ERR_USAGE;
}

static enum err add_pairs(const char *name, const char *word, struct params *from,
                          struct params *out, struct error *why)
{
    params_add(from, word);
    for (size_t i = 0; i < from->count; i++) {
        const char *key = from->items[i].key;
        if (params_get(out, key))
            return err_set(why, ERR_USAGE, "--%s %.80s given more than once", name, key);
        params_set(out, key, from->items[i].value);
    }
    return ERR_OK;
}

enum err options_pairs(const char *name, const struct option_list *words, struct params *out,
                       struct error *why)
{
    for (size_t i = 0; i < words->count; i++) {
        struct params pieces = {0};
        if (!strchr(words->items[i], '='))
            return err_set(why, ERR_USAGE, "--%s takes KEY=VALUE, not '%.80s'", name,
                           words->items[i]);
        enum err err = add_pairs(name, words->items[i], &pieces, out, why);
        params_release(&pieces);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* Parses one option word (and its value, from the same word or the next).  *index moves past it. */
static enum err take_option(const struct option_row *rows, int argc, char **argv, int *index,
                            bool *help, struct error *why)
{
    const char *word = argv[(*index)++];
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const char *equals = is_long ? strchr(name, '=') : NULL;
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (str_equal(word, "-h") || str_equal(word, "--help")) {
        *help = true;
        return ERR_OK;
    }
    const struct option_row *row =
        is_long ? find_long(rows, name, length) : find_letter(rows, *name);
    if (!row && is_long)
        return unknown_option(rows, name, length, why);
    if (!row)
        return err_set(why, ERR_USAGE, "unknown option '-%c'; see --help", *name);
    if (row->type == OPTION_HINT)
        return err_set(why, ERR_USAGE, "unknown option '%.*s': %s", (int)(is_long ? length + 2 : 2),
                       word, row->help);
    const char *value = equals ? equals + 1 : NULL;
    if (!is_long && name[1])
        value = name + 1;
    if (row->type == OPTION_FLAG) {
        if (value)
            return err_set(why, ERR_USAGE, "--%s takes no value", row->name);
        return set_value(row, NULL, why);
    }
    if (!value) {
        if (*index >= argc)
            return err_set(why, ERR_USAGE, "missing argument: --%s %s", row->name, row->value);
        value = argv[(*index)++];
    }
    return set_value(row, value, why);
}

enum err options_parse(const struct option_row *rows, int argc, char **argv, bool stop_at_word,
                       int *rest, bool *help, struct error *why)
{
    int index = 1;
    *help = false;
    while (index < argc) {
        const char *word = argv[index];
        if (str_equal(word, "--")) {
            index++;
            break;
        }
        bool is_option = word[0] == '-' && word[1] != '\0';
        if (!is_option) {
            if (stop_at_word)
                break;
            return err_set(why, ERR_USAGE, "unexpected argument '%s'; see --help", word);
        }
        enum err err = take_option(rows, argc, argv, &index, help, why);
        if (err)
            return err;
        if (*help)
            break;
    }
    if (!stop_at_word && !*help && index < argc)
        return err_set(why, ERR_USAGE, "unexpected argument '%s'; see --help", argv[index]);
    *rest = index;
    return ERR_OK;
}

void options_help(const struct command *command, const struct option_row *rows, struct text *out)
{
    text_addf(out, "ipw %s - %s\n\nusage: ipw %s%s%s\n", command->name, command->summary,
              command->name, command->usage[0] ? " " : "", command->usage);
    if (command->details)
        text_addf(out, "\n%s\n", command->details);
    text_add(out, "\noptions:\n");
    for (; rows->name; rows++) {
        if (rows->type == OPTION_HINT)
            continue;
        char left[64], letter[8] = "    ";
        if (rows->letter)
            chars_format(letter, "-%c, ", rows->letter);
        chars_format(left, "  %s--%s%s%s", letter, rows->name, rows->value ? " " : "",
                     text_or_empty(rows->value));
        text_addf(out, "%-30s%s%s\n", left, strlen(left) < 30 ? " " : "  ", rows->help);
    }
    text_addf(out, "%-30s %s\n", "  -h, --help", "show this help");
}
