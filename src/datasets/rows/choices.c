#include "datasets/rows/choices.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/random.h"
#include "core/text.h"
#include "datasets/rows/fields.h"
#include "port/json_read.h"

enum err answer_kind_parse(const char *word, enum answer_kind *out, struct error *why)
{
    static const char *const WORDS[] = {
        [ANSWER_ANY] = "any",
        [ANSWER_LETTER] = "letter",
        [ANSWER_INDEX] = "index",
        [ANSWER_TEXT] = "text",
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (word && strcmp(word, WORDS[i]) == 0) {
            *out = (enum answer_kind)i;
            return ERR_OK;
        }
    return err_set(why, ERR_USAGE, "answer_is=%s: expected letter, index, text or any",
                   word ? word : "");
}

static enum err add(struct choices *choices, const struct jv *option, struct error *why)
{
    if (field_is_empty(option))
        return ERR_OK; /* fewer options than the widest row has */
    if (choices->count == CHOICES_MAX)
        return err_set(why, ERR_BAD_VALUE, "more than %d choices", CHOICES_MAX);
    choices->options[choices->count++] = option;
    return ERR_OK;
}

enum err choices_find(const struct jv *row, const char *fields, struct choices *out,
                      struct error *why)
{
    char name[160];
    enum err err = ERR_OK;
    *out = (struct choices){0};
    if (!strchr(fields, '|')) {
        const struct jv *list = field_find(row, fields);
        if (!jv_is_array(list) && !jv_is_object(list))
            return err_set(why, ERR_BAD_VALUE, "%s '%s' is not a list of choices",
                           list ? "the field" : "there is no field; ", fields);
        for (const struct jv *option = jv_first(list); option && !err; option = jv_next(option))
            err = add(out, option, why);
    }
    for (const char *rest = strchr(fields, '|') ? fields : NULL; rest && !err;) {
        rest = field_name_next(rest, name, sizeof name);
        err = add(out, field_find(row, name), why);
    }
    if (!err && out->count < 2)
        return err_set(why, ERR_BAD_VALUE, "fewer than two choices in '%s'", fields);
    return err;
}

void choices_shuffle(struct choices *choices, struct random *random)
{
    random_shuffle(random, choices->options, choices->count, sizeof choices->options[0]);
}

void choices_add_lines(const struct choices *choices, struct text *out)
{
    for (size_t i = 0; i < choices->count; i++) {
        text_addf(out, "%s%c. ", i ? "\n" : "", 'A' + (int)i);
        field_add_text(choices->options[i], out);
    }
}

/* Which option has this text; count when none. */
static size_t by_text(const struct choices *choices, const char *wanted)
{
    size_t found = choices->count;
    struct text option = {0};
    for (size_t i = 0; i < choices->count && found == choices->count; i++) {
        text_clear(&option);
        field_add_text(choices->options[i], &option);
        if (strcmp(text_get(&option), wanted) == 0)
            found = i;
    }
    text_release(&option);
    return found;
}

static size_t by_letter(const struct choices *choices, const char *text)
{
    if (!isalpha((unsigned char)text[0]) || (text[1] && strcmp(text + 1, ".") != 0))
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

/* The option that the answer means, in the given order; count when none; *ambiguous when several. */
static size_t meant(const struct choices *given, const struct jv *answer, const char *text,
                    enum answer_kind kind, bool *ambiguous)
{
    size_t none = given->count;
    *ambiguous = false;
    for (size_t i = 0; i < given->count; i++)
        if (given->options[i] == answer)
            return i; /* its field is itself one of the choices */
    if (kind == ANSWER_LETTER)
        return by_letter(given, text);
    if (kind == ANSWER_INDEX || (kind == ANSWER_ANY && !jv_text(answer)))
        return by_index(given, text); /* a number is an index, as labels of classes are */
    size_t found = by_text(given, text);
    if (kind == ANSWER_TEXT)
        return found;
    size_t letter = by_letter(given, text), index = by_index(given, text);
    size_t other = letter != none ? letter : index; /* no text is both */
    *ambiguous = found != none && other != none && found != other;
    return found != none ? found : other;
}

enum err choices_letter(const struct choices *shown, const struct choices *given,
                        const struct jv *answer, enum answer_kind kind, char *letter,
                        struct error *why)
{
    struct text text = {0};
    bool ambiguous;
    field_add_text(answer, &text);
    size_t option = meant(given, answer, text_get(&text), kind, &ambiguous);
    enum err err = ERR_OK;
    if (ambiguous)
        err = err_set(why, ERR_BAD_VALUE,
                      "the answer '%.40s' is one choice's text and another's letter or index: say "
                      "which with answer_is=",
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
