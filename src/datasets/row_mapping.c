/* Maps a row of any dataset to an item: which field is which, how the prompt is assembled from a template and choices,
 * and which rows are wanted.
 *
 * A field is named by its key, or by a path with dots ("meta.topic", "turns.0.text").  Of several names separated by
 * "|", the first that has a value is used. */
#include "datasets/row_feed.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "core/hash.h"
#include "core/jv.h"
#include "core/random.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"

/* ---- fields ---- */

enum { NAME_SIZE = 160 };

/* Copies the next of several names to *name and returns the remaining list, NULL after the last.  A name that does not
 * fit is truncated, and then not found. */
static const char *next_name(const char *names, char *name, size_t size)
{
    size_t length = strcspn(names, "|");
    size_t kept = length < size ? length : size - 1;
    memcpy(name, names, kept);
    name[kept] = '\0';
    return names[length] ? names + length + 1 : NULL;
}

/* Missing, null, "", [] or {}. */
static bool field_is_empty(const struct jv *value)
{
    const char *string = jv_text(value);
    if (string)
        return string[0] == '\0';
    if (jv_is_array(value) || jv_is_object(value))
        return !jv_first(value);
    return jv_is_null(value);
}

static const struct jv *find_one(const struct jv *row, const char *name)
{
    const struct jv *value = jv_get(row, name); /* a key may contain dots */
    return value ? value : jv_path(row, name);
}

/* NULL if the row has none of them; an empty value only if none has another. */
static const struct jv *field_find(const struct jv *row, const char *names)
{
    char name[NAME_SIZE];
    const struct jv *first = NULL;
    while (names) {
        names = next_name(names, name, sizeof name);
        const struct jv *value = name[0] ? find_one(row, name) : NULL;
        if (!field_is_empty(value))
            return value;
        if (!first)
            first = value;
    }
    return first;
}

/* A value as the model sees it: a string unchanged, the elements of an array one per line, anything else as
 * JSON. */
static void field_add_text(const struct jv *value, struct text *out)
{
    const char *string = jv_text(value);
    if (string) {
        text_add(out, string);
    } else if (jv_is_array(value)) {
        JV_EACH (element, jv_first(value)) {
            if (element != jv_first(value))
                text_add(out, "\n");
            const char *text = jv_text(element);
            if (text)
                text_add(out, text);
            else
                jv_print(element, out);
        }
    } else if (!jv_is_null(value)) {
        jv_print(value, out);
    }
}

/* "question, options, answer": for the error about a missing field. */
static void list_fields(const struct jv *row, struct text *out)
{
    JV_EACH (child, jv_first(row))
        text_addf(out, "%s%s", child == jv_first(row) ? "" : ", ", jv_key(child));
}

/* ---- choices ---- */

enum { CHOICES_MAX = 26 };

/* The options of a question, shown as lettered lines; they point into the row. */
struct choices {
    const struct jv *options[CHOICES_MAX];
    size_t count;
};

static enum err add_option(struct choices *choices, const struct jv *option, struct error *why)
{
    if (field_is_empty(option))
        return ERR_OK; /* this row has fewer options than others */
    if (choices->count == CHOICES_MAX)
        return err_set(why, ERR_BAD_VALUE, "more than %d choices", CHOICES_MAX);
    choices->options[choices->count++] = option;
    return ERR_OK;
}

/* `fields` names one array or object, or with "|" the fields that hold one option each. */
static enum err choices_find(const struct jv *row, const char *fields, struct choices *out,
                             struct error *why)
{
    char name[160];
    enum err err = ERR_OK;
    *out = (struct choices){0};
    if (!strchr(fields, '|')) {
        const struct jv *list = field_find(row, fields);
        if (!jv_is_array(list) && !jv_is_object(list))
            return err_set(why, ERR_BAD_VALUE, "%s '%s'%s", list ? "the field" : "no field", fields,
                           list ? " is not a list of choices" : "");
        for (const struct jv *option = jv_first(list); option && !err; option = jv_next(option))
            err = add_option(out, option, why);
    }
    for (const char *rest = strchr(fields, '|') ? fields : NULL; rest && !err;) {
        rest = next_name(rest, name, sizeof name);
        err = add_option(out, field_find(row, name), why);
    }
    if (!err && out->count < 2)
        return err_set(why, ERR_BAD_VALUE, "fewer than two choices in '%s'", fields);
    return err;
}

/* "A. first" and so on, one per line. */
static void choices_add_lines(const struct choices *choices, struct text *out)
{
    for (size_t i = 0; i < choices->count; i++) {
        text_addf(out, "%s%c. ", i ? "\n" : "", 'A' + (int)i);
        field_add_text(choices->options[i], out);
    }
}

/* Index of the option with this text; count if there is none. */
static size_t by_text(const struct choices *choices, const char *wanted)
{
    size_t found = choices->count;
    struct text option = {0};
    for (size_t i = 0; i < choices->count && found == choices->count; i++) {
        text_clear(&option);
        field_add_text(choices->options[i], &option);
        if (str_equal(text_get(&option), wanted))
            found = i;
    }
    text_release(&option);
    return found;
}

static size_t by_letter(const struct choices *choices, const char *text)
{
    if (!isalpha((unsigned char)text[0]) || (text[1] && !str_equal(text + 1, ".")))
        return choices->count;
    size_t index = (size_t)(toupper((unsigned char)text[0]) - 'A');
    return index < choices->count ? index : choices->count;
}

static size_t by_index(const struct choices *choices, const char *text)
{
    uint64_t index;
    return parse_u64(text, &index) == ERR_OK && index < choices->count ? (size_t)index
                                                                       : choices->count;
}

/* Index of the option that the answer refers to, in the original order; or count; *ambiguous: several match. */
static size_t find_option(const struct choices *given, const struct jv *answer, const char *text,
                          enum answer_kind kind, bool *ambiguous)
{
    size_t none = given->count;
    *ambiguous = false;
    for (size_t i = 0; i < given->count; i++)
        if (given->options[i] == answer)
            return i; /* the field is itself one of the choices */
    if (kind == ANSWER_LETTER)
        return by_letter(given, text);
    if (kind == ANSWER_INDEX || (kind == ANSWER_ANY && !jv_text(answer)))
        return by_index(given, text); /* a number is an index, as class labels are */
    size_t found = by_text(given, text);
    if (kind == ANSWER_TEXT)
        return found;
    size_t letter = by_letter(given, text), index = by_index(given, text);
    size_t other = letter != none ? letter : index; /* a text cannot be both */
    *ambiguous = found != none && other != none && found != other;
    return found != none ? found : other;
}

/* The letter of the correct option.  A letter or an index (from 0) refers to the original order, `given`. */
static enum err choices_letter(const struct choices *shown, const struct choices *given,
                               const struct jv *answer, enum answer_kind kind, char *letter,
                               struct error *why)
{
    struct text text = {0};
    bool ambiguous;
    field_add_text(answer, &text);
    size_t option = find_option(given, answer, text_get(&text), kind, &ambiguous);
    enum err err = ERR_OK;
    if (ambiguous)
        err = err_set(
            why, ERR_BAD_VALUE,
            "the answer '%.40s' is the text of one choice and the letter or index of another: "
            "set answer_is=",
            text_get(&text));
    else if (option == given->count)
        err = err_set(why, ERR_BAD_VALUE, "the answer '%.80s' is none of the %zu choices",
                      text_get(&text), given->count);
    text_release(&text);
    for (size_t i = 0; !err && i < shown->count; i++)
        if (shown->options[i] == given->options[option])
            *letter = (char)('A' + (int)i);
    return err;
}

/* ---- parameters ---- */

/* Common field names, the most specific first. */
#define PROBLEM_NAMES "problem|question|prompt|input|instruction"
#define ANSWER_NAMES  "answer|target|output|expected|reference_answer"
#define SUBJECT_NAMES "subject|category|topic|domain|level"
#define ID_NAMES      "id|uuid|question_id|unique_id|task_id"

static const char *given_or(const struct params *params, const char *key, const char *otherwise)
{
    const char *value = params_get(params, key);
    return value && *value ? value : otherwise;
}

enum err row_mapping_init(struct row_mapping *out, const struct params *params, struct error *why)
{
    static const char *const KINDS[] = {"letter", "index", "text", "any", NULL};
    *out = (struct row_mapping){0};
    params_copy(&out->params, params);
    const struct params *own = &out->params;
    struct params_reader read = {own, why, ERR_OK};
    out->problem = given_or(own, "problem", PROBLEM_NAMES);
    out->answer = given_or(own, "answer", ANSWER_NAMES);
    out->subject = given_or(own, "subject", SUBJECT_NAMES);
    out->id = given_or(own, "id", ID_NAMES);
    out->grader = given_or(own, "grader", NULL);
    out->metadata = given_or(own, "metadata", NULL);
    out->template = given_or(own, "template", NULL);
    out->choices = given_or(own, "choices", NULL);
    out->answer_after = given_or(own, "answer_after", NULL);
    out->require = given_or(own, "require", NULL);
    out->without = given_or(own, "without", NULL);
    out->shuffle_choices = params_get(own, "shuffle_choices") != NULL;
    out->seed = params_count(&read, "shuffle_choices", 0, 0, UINT64_MAX);
    out->answer_is = (enum answer_kind)params_word(&read, "answer_is", KINDS, ANSWER_ANY);
    if (read.err)
        row_mapping_release(out);
    return read.err;
}

void row_mapping_release(struct row_mapping *mapping)
{
    params_release(&mapping->params);
    *mapping = (struct row_mapping){0};
}

bool row_mapping_filters(const struct row_mapping *mapping)
{
    return mapping->require || mapping->without;
}

/* ---- checking ---- */

static enum err no_field(const struct jv *row, const char *names, const char *role,
                         struct error *why)
{
    struct text fields = {0};
    list_fields(row, &fields);
    enum err err = err_set(why, ERR_BAD_VALUE,
                           "no field '%.60s' for the %s (fields: %.160s): choose with %s=", names,
                           role, text_get(&fields), role);
    text_release(&fields);
    return err;
}

/* A field that was given by name must exist, with or without a value. */
static enum err check_given(const struct row_mapping *mapping, const struct jv *row,
                            const char *role, struct error *why)
{
    const char *names = params_get(&mapping->params, role);
    if (!names || !*names || field_find(row, names))
        return ERR_OK;
    return no_field(row, names, role, why);
}

enum err row_mapping_check(const struct row_mapping *mapping, const struct jv *row,
                           struct error *why)
{
    static const char *const ROLES[] = {"answer", "subject", "id", "grader", "metadata"};
    if (!jv_is_object(row))
        return err_set(why, ERR_BAD_VALUE, "a row must be an object: {\"problem\": ...}");
    for (size_t i = 0; i < COUNT_OF(ROLES); i++) {
        enum err err = check_given(mapping, row, ROLES[i], why);
        if (err)
            return err;
    }
    if (!mapping->template && !field_find(row, mapping->problem))
        return no_field(row, mapping->problem, "problem", why);
    return ERR_OK;
}

/* ---- conversion ---- */

enum { USED_MAX = 64 };

/* One row being converted. */
struct conversion {
    const struct row_mapping *mapping;
    const struct jv *row;
    struct choices given, shown;
    const struct jv *used[USED_MAX]; /* used elsewhere, and not repeated in the metadata */
    size_t used_count;
};

static const struct jv *mark_used(struct conversion *c, const struct jv *value)
{
    if (value && c->used_count < USED_MAX)
        c->used[c->used_count++] = value;
    return value;
}

static bool is_used(const struct conversion *c, const struct jv *value)
{
    for (size_t i = 0; i < c->used_count; i++)
        if (c->used[i] == value)
            return true;
    return false;
}

static bool any_field(const struct jv *row, const char *names, bool empty)
{
    char name[160];
    while (names) {
        names = next_name(names, name, sizeof name);
        if (field_is_empty(field_find(row, name)) == empty)
            return true;
    }
    return false;
}

/* The order of the choices is derived from the problem, so that a copy or subset of the dataset has the same order. */
static struct random choices_order(const struct conversion *c)
{
    struct text text = {0};
    field_add_text(field_find(c->row, c->mapping->problem), &text);
    uint64_t problem = hash_mix(hash_string(HASH_START, text_get(&text)));
    struct random random = random_from(c->mapping->seed, problem);
    text_release(&text);
    return random;
}

static enum err find_choices(struct conversion *c, struct error *why)
{
    const struct row_mapping *mapping = c->mapping;
    if (!mapping->choices)
        return ERR_OK;
    enum err err = choices_find(c->row, mapping->choices, &c->given, why);
    if (err)
        return err;
    mark_used(c, field_find(c->row, mapping->choices));
    for (size_t i = 0; i < c->given.count; i++)
        mark_used(c, c->given.options[i]);
    c->shown = c->given;
    if (mapping->shuffle_choices) {
        struct random random = choices_order(c);
        random_shuffle(&random, c->shown.options, c->shown.count, sizeof c->shown.options[0]);
    }
    return ERR_OK;
}

static enum err add_template_field(struct conversion *c, const char *name, struct text *out,
                                   struct error *why)
{
    const char *choices = c->mapping->choices;
    if (choices && (str_equal(name, "choices") || str_equal(name, choices))) {
        choices_add_lines(&c->shown, out);
        return ERR_OK;
    }
    const struct jv *value = field_find(c->row, name);
    if (!value && str_equal(name, "problem"))
        value = field_find(c->row, c->mapping->problem);
    if (!value)
        return no_field(c->row, name, "template", why);
    field_add_text(mark_used(c, value), out);
    return ERR_OK;
}

size_t template_add_escape(const char *at, struct text *out)
{
    static const char CODES[] = "nt\\{}", BYTES[] = "\n\t\\{}";
    const char *code = at[1] ? strchr(CODES, at[1]) : NULL;
    text_add_bytes(out, code ? &BYTES[code - CODES] : at, 1);
    return code ? 2 : 1;
}

/* Expands "{question}\n{options}"; ERR_USAGE for an unclosed brace. */
static enum err expand_template(struct conversion *c, const char *template, struct text *out,
                                struct error *why)
{
    for (const char *at = template; *at;) {
        size_t plain = strcspn(at, "\\{");
        text_add_bytes(out, at, plain);
        at += plain;
        if (*at == '\\') {
            at += template_add_escape(at, out);
        } else if (*at == '{') {
            char name[160];
            size_t length = strcspn(at + 1, "}");
            if (!at[1 + length] || length >= sizeof name)
                return err_set(why, ERR_USAGE, "template: a '{' without its '}' at \"%.20s\"", at);
            memcpy(name, at + 1, length);
            name[length] = '\0';
            enum err err = add_template_field(c, name, out, why);
            if (err)
                return err;
            at += length + 2;
        }
    }
    return ERR_OK;
}

static enum err set_problem(struct conversion *c, struct item *out, struct error *why)
{
    const struct row_mapping *mapping = c->mapping;
    const struct jv *field = mark_used(c, field_find(c->row, mapping->problem));
    struct text text = {0};
    enum err err = ERR_OK;
    if (mapping->template) {
        err = expand_template(c, mapping->template, &text, why);
    } else if (!field) {
        err = no_field(c->row, mapping->problem, "problem", why);
    } else if (field_is_empty(field)) {
        err = err_set(why, ERR_BAD_VALUE, "the problem is empty");
    } else {
        field_add_text(field, &text);
        if (c->shown.count)
            text_add(&text, "\n");
        choices_add_lines(&c->shown, &text);
    }
    if (!err && text.length == 0)
        err = err_set(why, ERR_BAD_VALUE, "the problem is empty");
    if (!err)
        str_take(&out->problem, &text);
    text_release(&text);
    return err;
}

/* Keeps what follows the last marker, trimmed. */
static void keep_after_marker(struct text *text, const char *mark)
{
    const char *found = NULL, *at = text_get(text);
    while ((at = strstr(at, mark)))
        found = at += strlen(mark);
    if (!found)
        return;
    struct text kept = {0};
    text_add(&kept, found);
    text_clear(text);
    if (kept.bytes)
        text_add(text, str_trim(kept.bytes));
    text_release(&kept);
}

static enum err set_answer(struct conversion *c, struct item *out, struct error *why)
{
    const struct row_mapping *mapping = c->mapping;
    const struct jv *field = mark_used(c, field_find(c->row, mapping->answer));
    struct text text = {0};
    enum err err = ERR_OK;
    if (mapping->choices && !field_is_empty(field)) {
        char letter[2] = "";
        err = choices_letter(&c->shown, &c->given, field, mapping->answer_is, letter, why);
        text_add(&text, letter);
    } else {
        field_add_text(field, &text);
        if (mapping->answer_after)
            keep_after_marker(&text, mapping->answer_after);
    }
    if (!err)
        str_take(&out->answer, &text);
    text_release(&text);
    return err;
}

/* Sets a field as text; unchanged if it is empty. */
static void set_plain(struct conversion *c, const char *names, char **to)
{
    const struct jv *field = names ? field_find(c->row, names) : NULL;
    if (field_is_empty(field))
        return;
    struct text text = {0};
    field_add_text(mark_used(c, field), &text);
    str_take(to, &text);
}

static void set_id(struct conversion *c, uint64_t number, struct item *out)
{
    set_plain(c, c->mapping->id, &out->id);
    if (out->id)
        return;
    char digits[24];
    chars_format(digits, "%" PRIu64, number);
    str_set(&out->id, digits);
}

/* ---- metadata ---- */

static struct jv *shown_choices(const struct conversion *c)
{
    struct jv *list = jv_new_array();
    for (size_t i = 0; i < c->shown.count; i++)
        jv_add(list, NULL, jv_copy(c->shown.options[i]));
    return list;
}

/* The fields that are not used elsewhere, and the choices in the order shown. */
static struct jv *remaining_fields(const struct conversion *c)
{
    struct jv *object = jv_new_object();
    JV_EACH (child, jv_first_member(c->row)) {
        bool is_ours = c->shown.count && str_equal(jv_key(child), "choices");
        if (!is_ours && !is_used(c, child))
            jv_add(object, jv_key(child), jv_copy(child));
    }
    if (c->shown.count)
        jv_add(object, "choices", shown_choices(c));
    return object;
}

/* One field is the metadata: an object, an object as JSON text, or any other value under its own name. */
static struct jv *field_as_metadata(const struct conversion *c)
{
    const struct jv *field = field_find(c->row, c->mapping->metadata);
    const char *string = jv_text(field);
    struct jv *parsed = NULL;
    if (string && jv_parse(string, strlen(string), &parsed, NULL) == ERR_OK && jv_is_object(parsed))
        return parsed;
    jv_free(parsed);
    if (jv_is_object(field))
        return jv_copy(field);
    const struct jv_member member = {field_is_empty(field) ? NULL : c->mapping->metadata,
                                     jv_copy(field)};
    return jv_new_members(&member, 1);
}

static void set_metadata(struct conversion *c, struct item *out)
{
    out->metadata = c->mapping->metadata ? field_as_metadata(c) : remaining_fields(c);
    if (!jv_integer(jv_get(out->metadata, "output_length"), &out->output_length))
        out->output_length = 0;
}

enum err row_mapping_apply(const struct row_mapping *mapping, const struct jv *row, uint64_t number,
                           struct item *out, bool *wanted, struct error *why)
{
    struct conversion c = {.mapping = mapping, .row = row};
    *wanted = true;
    if (!jv_is_object(row))
        return err_set(why, ERR_BAD_VALUE, "a row must be an object: {\"problem\": ...}");
    *wanted = !any_field(row, mapping->require, true) && !any_field(row, mapping->without, false);
    if (!*wanted)
        return ERR_OK;
    enum err err = find_choices(&c, why);
    if (!err)
        err = set_problem(&c, out, why);
    if (!err)
        err = set_answer(&c, out, why);
    if (err)
        return err;
    set_plain(&c, mapping->subject, &out->subject);
    set_id(&c, number, out);
    set_plain(&c, mapping->grader, &out->grader);
    set_metadata(&c, out);
    item_complete(out);
    return ERR_OK;
}
