/* A name is read as its numbers, each with its decimals: those with a unit of size (1.7b, 40gb) are sizes, all others are
 * versions.  Two names may mean one product only if these agree. */
#include "catalog/near_names.h"

#include <ctype.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"

enum { NUMBERS_MAX = 12, DIGITS_MAX = 12, LETTERS_MAX = 2, NAME_MAX_LENGTH = 64 };

struct number {
    char digits[DIGITS_MAX];       /* "3.1", without leading zeros */
    char letters[LETTERS_MAX + 1]; /* directly before it; "" if there are more */
    char unit[LETTERS_MAX + 1];    /* "b" of 8b, "gb"; of a version "" */
};

struct numbers {
    struct number items[NUMBERS_MAX];
    size_t count;
};

/* ---- reading ---- */

static const char *const UNITS[] = {"b", "m", "t", "g", "gb", "mb", "tb"};

static size_t letters_at(const char *at)
{
    size_t length = 0;
    while (isalpha((unsigned char)at[length]))
        length++;
    return length;
}

static void copy_lower(const char *from, size_t length, char *to, size_t size)
{
    if (length >= size)
        length = 0;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)tolower((unsigned char)from[i]);
    to[length] = '\0';
}

/* Digits with decimals; "1_6" is 1.6. */
static size_t length_of_number(const char *at)
{
    size_t length = strspn(at, "0123456789");
    while ((at[length] == '.' || at[length] == '_') && isdigit((unsigned char)at[length + 1]))
        length += 1 + strspn(at + length + 1, "0123456789");
    return length;
}

static const char *read_number(const char *at, size_t letters, struct number *out)
{
    copy_lower(at - letters, letters, out->letters, sizeof out->letters);
    while (at[0] == '0' && isdigit((unsigned char)at[1]))
        at++;
    size_t digits = length_of_number(at);
    copy_lower(at, digits, out->digits, sizeof out->digits);
    for (char *mark = out->digits; (mark = strchr(mark, '_'));)
        *mark = '.';
    at += digits;
    copy_lower(at, letters_at(at), out->unit, sizeof out->unit);
    if (!str_is_listed(out->unit, UNITS, COUNT_OF(UNITS)))
        out->unit[0] = '\0';
    return at;
}

/* Of one kind: sizes, or versions. */
static struct numbers numbers_of(const char *name, bool are_sizes)
{
    struct numbers numbers = {.count = 0};
    size_t letters = 0;
    for (const char *at = name; *at;) {
        struct number number;
        if (!isdigit((unsigned char)*at)) {
            letters = isalpha((unsigned char)*at) ? letters + 1 : 0;
            at++;
            continue;
        }
        at = read_number(at, letters, &number);
        letters = 0;
        if ((number.unit[0] != '\0') == are_sizes && numbers.count < NUMBERS_MAX)
            numbers.items[numbers.count++] = number;
    }
    return numbers;
}

/* ---- comparing ---- */

static bool is_same_number(const struct number *a, const struct number *b)
{
    bool has_both = a->letters[0] && b->letters[0];
    return str_equal(a->digits, b->digits) && (!has_both || str_equal(a->letters, b->letters));
}

static bool has_versions(const struct numbers *word, const struct numbers *listed)
{
    if (word->count > listed->count)
        return false;
    for (size_t i = 0; i < word->count; i++)
        if (!is_same_number(&word->items[i], &listed->items[i]))
            return false;
    return true;
}

static bool has_sizes(const struct numbers *word, const struct numbers *listed)
{
    size_t found = 0;
    for (size_t i = 0; i < listed->count && found < word->count; i++)
        found += str_equal(word->items[found].digits, listed->items[i].digits) &&
                 word->items[found].unit[0] == listed->items[i].unit[0];
    return found == word->count;
}

/* Whether the numbers that `word` has are those of `listed`: versions in their order, from the first on ("llama-3" and
 * "llama-3-8b", but neither "llama-2-7b" nor "llama-3.1-8b"), sizes in their order ("qwen-7b" and "qwen2.5-7b"), and the
 * one or two letters that a number directly follows ("b200" is not "h200"). */
static bool is_same_product(const char *word, const char *listed)
{
    struct numbers mine = numbers_of(word, false), theirs = numbers_of(listed, false);
    if (!has_versions(&mine, &theirs))
        return false;
    mine = numbers_of(word, true);
    theirs = numbers_of(listed, true);
    return has_sizes(&mine, &theirs);
}

/* ---- suggesting ---- */

/* In lower case, without separators; "" if it does not fit. */
static void squeeze(const char *name, char to[NAME_MAX_LENGTH])
{
    size_t length = 0;
    for (; *name && length + 1 < NAME_MAX_LENGTH; name++)
        if (!strchr("-_: ", *name))
            to[length++] = (char)tolower((unsigned char)*name);
    to[*name ? 0 : length] = '\0';
}

static bool has_letters_of(const char *listed, const char *word)
{
    for (; *listed && *word; listed++)
        word += *listed == *word;
    return *word == '\0';
}

/* 0: it begins with the word; 1: it contains it; 2: it has more parts; else the letters that differ, and more. */
static size_t distance(const char *word, const char *listed)
{
    enum { ELSE = 2 };
    char mine[NAME_MAX_LENGTH], theirs[NAME_MAX_LENGTH];
    squeeze(word, mine);
    squeeze(listed, theirs);
    if (!mine[0])
        return NAME_MAX_LENGTH;
    const char *found = mine[1] ? strstr(theirs, mine) : NULL;
    if (found)
        return found != theirs;
    if (strpbrk(mine, "0123456789") && has_letters_of(theirs, mine))
        return ELSE;
    size_t whole = name_distance(mine, theirs);
    if (strlen(mine) < strlen(theirs))
        theirs[strlen(mine)] = '\0';
    size_t beginning = name_distance(mine, theirs);
    return ELSE + (beginning < whole ? beginning : whole);
}

struct nearest {
    const char *names[NEAR_NAMES_MAX];
    size_t distances[NEAR_NAMES_MAX], count;
};

static void insert(struct nearest *nearest, const char *name, size_t far)
{
    size_t at = nearest->count;
    for (size_t i = 0; i < nearest->count; i++)
        if (str_equal_nocase(nearest->names[i], name))
            return;
    while (at > 0 && nearest->distances[at - 1] > far)
        at--;
    if (at == NEAR_NAMES_MAX)
        return;
    nearest->count += nearest->count < NEAR_NAMES_MAX;
    for (size_t k = nearest->count - 1; k > at; k--) {
        nearest->names[k] = nearest->names[k - 1];
        nearest->distances[k] = nearest->distances[k - 1];
    }
    nearest->names[at] = name;
    nearest->distances[at] = far;
}

/* The letter O at the end of a number stands for a zero. */
static void replace_letter_o(const char *word, char to[NAME_MAX_LENGTH])
{
    size_t length = strlen(word) < NAME_MAX_LENGTH ? strlen(word) : 0;
    for (size_t i = 0; i < length; i++) {
        bool is_last = !isalpha((unsigned char)word[i + 1]) || strchr("oO", word[i + 1]);
        bool is_zero = strchr("oO", word[i]) && i > 0 && isdigit((unsigned char)to[i - 1]);
        to[i] = is_zero && is_last ? '0' : word[i];
    }
    to[length] = '\0';
}

bool near_names(const char *written, const char *const *names, size_t count, char *to, size_t size)
{
    struct nearest nearest = {.count = 0};
    char word[NAME_MAX_LENGTH];
    replace_letter_o(written, word);
    size_t max = strlen(word) / 3 + 2, used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t far = distance(word, names[i]);
        if (far <= max && is_same_product(word, names[i]))
            insert(&nearest, names[i], far);
    }
    to[0] = '\0';
    for (size_t i = 0; i < nearest.count; i++) {
        const char *before = i == 0 ? "" : i + 1 < nearest.count ? ", " : " or ";
        if (!str_join(to + used, size - used, before, nearest.names[i], "")) {
            to[used] = '\0';
            break;
        }
        used += strlen(to + used);
    }
    return to[0] != '\0';
}
