#include "datasets/rows/mapping.h"

#include <inttypes.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/random.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/item.h"
#include "datasets/rows/fields.h"
#include "datasets/rows/template.h"
#include "port/json_read.h"

/* The fields' usual names, most telling first. */
#define PROBLEM_NAMES "problem|question|prompt|input|instruction"
#define ANSWER_NAMES  "answer|target|output|expected|reference_answer"
#define SUBJECT_NAMES "subject|category|topic|domain|level"
#define ID_NAMES      "id|uuid|question_id|unique_id|task_id"

static const char *given_or(const struct params *params, const char *key, const char *otherwise)
{
    const char *value = params_get(params, key);
    return value && *value ? value : otherwise;
}

enum err mapping_init(struct mapping *out, const struct params *params, struct error *why)
{
    *out = (struct mapping){0};
    if (params_copy(&out->params, params) != ERR_OK) {
        mapping_release(out);
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    const struct params *own = &out->params;
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
    enum err err = params_count(own, "shuffle_choices", 0, &out->seed, why);
    if (!err)
        err = answer_kind_parse(given_or(own, "answer_is", "any"), &out->answer_is, why);
    if (err)
        mapping_release(out);
    return err;
}

void mapping_release(struct mapping *mapping)
{
    params_release(&mapping->params);
    *mapping = (struct mapping){0};
}

bool mapping_filters(const struct mapping *mapping)
{
    return mapping->require || mapping->without;
}

/* ---- does the row fit? ---- */

static enum err no_field(const struct jv *row, const char *names, const char *role,
                         struct error *why)
{
    struct text fields = {0};
    field_list(row, &fields);
    enum err err = err_set(why, ERR_BAD_VALUE,
                           "no field '%.60s' for the %s: the fields are %.160s (choose with %s=)",
                           names, role, text_get(&fields), role);
    text_release(&fields);
    return err;
}

/* A field that was asked for by name must be there, with or without a value. */
static enum err check_asked(const struct mapping *mapping, const struct jv *row, const char *role,
                            struct error *why)
{
    const char *names = params_get(&mapping->params, role);
    if (!names || !*names || field_find(row, names))
        return ERR_OK;
    return no_field(row, names, role, why);
}

enum err mapping_check(const struct mapping *mapping, const struct jv *row, struct error *why)
{
    static const char *const ROLES[] = {"answer", "subject", "id", "grader", "metadata"};
    if (!jv_is_object(row))
        return err_set(why, ERR_BAD_VALUE, "a row must be an object: {\"problem\": ...}");
    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++) {
        enum err err = check_asked(mapping, row, ROLES[i], why);
        if (err)
            return err;
    }
    if (!mapping->template && !field_find(row, mapping->problem))
        return no_field(row, mapping->problem, "problem", why);
    return ERR_OK;
}

/* ---- from a row to an item ---- */

enum { USED_MAX = 64 };

/* One row on its way. */
struct work {
    const struct mapping *mapping;
    const struct jv *row;
    struct choices given, shown;
    const struct jv *used[USED_MAX]; /* what the item shows elsewhere, and metadata need not */
    size_t used_count;
};

static const struct jv *use(struct work *work, const struct jv *value)
{
    if (value && work->used_count < USED_MAX)
        work->used[work->used_count++] = value;
    return value;
}

static bool is_used(const struct work *work, const struct jv *value)
{
    for (size_t i = 0; i < work->used_count; i++)
        if (work->used[i] == value)
            return true;
    return false;
}

static bool any_field(const struct jv *row, const char *names, bool empty)
{
    char name[160];
    while (names) {
        names = field_name_next(names, name, sizeof name);
        if (field_is_empty(field_find(row, name)) == empty)
            return true;
    }
    return false;
}

/* The order of a row's choices follows from its problem, so that a copy of the dataset, or a part of
 * it, has the same. */
static struct random choices_order(const struct work *work)
{
    struct text text = {0};
    field_add_text(field_find(work->row, work->mapping->problem), &text);
    uint64_t problem = hash_mix(hash_string(HASH_START, text_get(&text)));
    struct random random = random_from(work->mapping->seed, problem);
    text_release(&text);
    return random;
}

static enum err find_choices(struct work *work, struct error *why)
{
    const struct mapping *mapping = work->mapping;
    if (!mapping->choices)
        return ERR_OK;
    enum err err = choices_find(work->row, mapping->choices, &work->given, why);
    if (err)
        return err;
    use(work, field_find(work->row, mapping->choices));
    for (size_t i = 0; i < work->given.count; i++)
        use(work, work->given.options[i]);
    work->shown = work->given;
    if (mapping->shuffle_choices) {
        struct random random = choices_order(work);
        choices_shuffle(&work->shown, &random);
    }
    return ERR_OK;
}

static enum err add_template_field(void *context, const char *name, struct text *out,
                                   struct error *why)
{
    struct work *work = context;
    const char *choices = work->mapping->choices;
    if (choices && (strcmp(name, "choices") == 0 || strcmp(name, choices) == 0)) {
        choices_add_lines(&work->shown, out);
        return ERR_OK;
    }
    const struct jv *value = field_find(work->row, name);
    if (!value && strcmp(name, "problem") == 0)
        value = field_find(work->row, work->mapping->problem);
    if (!value)
        return no_field(work->row, name, "template", why);
    field_add_text(use(work, value), out);
    return ERR_OK;
}

static enum err set_problem(struct work *work, struct item *out, struct error *why)
{
    const struct mapping *mapping = work->mapping;
    const struct jv *field = use(work, field_find(work->row, mapping->problem));
    struct text text = {0};
    enum err err = ERR_OK;
    if (mapping->template) {
        struct template_fields fields = {.add = add_template_field, .context = work};
        err = template_expand(mapping->template, &fields, &text, why);
    } else if (!field) {
        err = no_field(work->row, mapping->problem, "problem", why);
    } else if (field_is_empty(field)) {
        err = err_set(why, ERR_BAD_VALUE, "the problem is empty");
    } else {
        field_add_text(field, &text);
        if (work->shown.count)
            text_add(&text, "\n");
        choices_add_lines(&work->shown, &text);
    }
    if (!err && text.length == 0)
        err = err_set(why, ERR_BAD_VALUE, "the problem is empty");
    if (!err)
        err = item_take(&out->problem, &text);
    text_release(&text);
    return err;
}

/* What follows the last mark, without the white space around it. */
static void keep_after(struct text *text, const char *mark)
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

static enum err set_answer(struct work *work, struct item *out, struct error *why)
{
    const struct mapping *mapping = work->mapping;
    const struct jv *field = use(work, field_find(work->row, mapping->answer));
    struct text text = {0};
    enum err err = ERR_OK;
    if (mapping->choices && !field_is_empty(field)) {
        char letter[2] = "";
        err = choices_letter(&work->shown, &work->given, field, mapping->answer_is, letter, why);
        text_add(&text, letter);
    } else {
        field_add_text(field, &text);
        if (mapping->answer_after)
            keep_after(&text, mapping->answer_after);
    }
    if (!err)
        err = item_take(&out->answer, &text);
    text_release(&text);
    return err;
}

/* A field as text, or nothing at all when the row has none. */
static enum err set_plain(struct work *work, const char *names, char **to)
{
    const struct jv *field = names ? field_find(work->row, names) : NULL;
    if (field_is_empty(field))
        return ERR_OK;
    struct text text = {0};
    field_add_text(use(work, field), &text);
    enum err err = item_take(to, &text);
    text_release(&text);
    return err;
}

static enum err set_id(struct work *work, uint64_t number, struct item *out)
{
    enum err err = set_plain(work, work->mapping->id, &out->id);
    if (err || out->id)
        return err;
    char digits[24];
    str_format(digits, sizeof digits, "%" PRIu64, number);
    return item_set(&out->id, digits);
}

/* ---- metadata ---- */

static void add_key(struct text *out, const char *key)
{
    struct json json;
    text_add(out, out->length > 1 ? "," : "");
    json_init(&json, out, false);
    json_string(&json, NULL, key); /* the writer quotes it */
    text_add(out, ":");
}

static void add_value(struct text *out, const struct jv *value)
{
    if (jv_print(value, out) != ERR_OK)
        out->failed = true;
}

static void add_shown_choices(const struct work *work, struct text *out)
{
    if (!work->shown.count)
        return;
    add_key(out, "choices");
    text_add(out, "[");
    for (size_t i = 0; i < work->shown.count; i++) {
        text_add(out, i ? "," : "");
        add_value(out, work->shown.options[i]);
    }
    text_add(out, "]");
}

static void add_rest(const struct work *work, struct text *out)
{
    text_add(out, "{");
    for (const struct jv *child = jv_first(work->row); child; child = jv_next(child)) {
        bool is_ours = work->shown.count && strcmp(jv_key(child), "choices") == 0;
        if (is_ours || is_used(work, child))
            continue;
        add_key(out, jv_key(child));
        add_value(out, child);
    }
    add_shown_choices(work, out);
    text_add(out, "}");
}

/* One field is the metadata: an object, an object as JSON text, or anything, under its own name. */
static void add_field_as_metadata(const struct work *work, struct text *out)
{
    const struct jv *field = field_find(work->row, work->mapping->metadata);
    const char *string = jv_text(field);
    struct jv *parsed = NULL;
    if (string && jv_parse(string, strlen(string), &parsed, NULL) == ERR_OK && jv_is_object(parsed))
        field = parsed;
    if (jv_is_object(field)) {
        add_value(out, field);
    } else {
        text_add(out, "{");
        if (!field_is_empty(field)) {
            add_key(out, work->mapping->metadata);
            add_value(out, field);
        }
        text_add(out, "}");
    }
    jv_free(parsed);
}

static enum err set_metadata(struct work *work, struct item *out)
{
    struct text text = {0};
    if (work->mapping->metadata)
        add_field_as_metadata(work, &text);
    else
        add_rest(work, &text);
    enum err err = item_take(&out->metadata, &text);
    text_release(&text);
    return err;
}

enum err mapping_apply(const struct mapping *mapping, const struct jv *row, uint64_t number,
                       struct item *out, bool *wanted, struct error *why)
{
    struct work work = {.mapping = mapping, .row = row};
    *wanted = true;
    if (!jv_is_object(row))
        return err_set(why, ERR_BAD_VALUE, "a row must be an object: {\"problem\": ...}");
    *wanted = !any_field(row, mapping->require, true) && !any_field(row, mapping->without, false);
    if (!*wanted)
        return ERR_OK;
    enum err err = find_choices(&work, why);
    if (!err)
        err = set_problem(&work, out, why);
    if (!err)
        err = set_answer(&work, out, why);
    if (!err)
        err = set_plain(&work, mapping->subject, &out->subject);
    if (!err)
        err = set_id(&work, number, out);
    if (!err)
        err = set_plain(&work, mapping->grader, &out->grader);
    if (!err)
        err = set_metadata(&work, out);
    if (!err)
        err = item_complete(out);
    if (err == ERR_NO_MEMORY)
        err_set(why, err, "out of memory");
    return err;
}
