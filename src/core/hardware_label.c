#include "core/hardware_label.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/text.h"

enum { LABEL_MAX = 128 };

/* A run of letters and digits inside the name. */
struct token {
    const char *start;
    size_t length;
};

static bool next_token(const char **at, struct token *token)
{
    const char *c = *at;
    while (*c && !isalnum((unsigned char)*c))
        c++;
    token->start = c;
    while (isalnum((unsigned char)*c))
        c++;
    token->length = (size_t)(c - token->start);
    *at = c;
    return token->length > 0;
}

static size_t count(struct token token, int (*is)(int))
{
    size_t n = 0;
    for (size_t i = 0; i < token.length; i++)
        n += is((unsigned char)token.start[i]) != 0;
    return n;
}

/* "RTX" in "RTX 4090": a short family name in one case, or anything that has a number already. */
static bool leads_a_number(struct token token)
{
    size_t letters = count(token, isalpha);
    if (letters == 0)
        return false;
    if (count(token, isdigit) > 0)
        return true;
    return token.length <= 4 &&
           (count(token, isupper) == letters || count(token, islower) == letters);
}

static void append(char *to, size_t size, struct token token)
{
    size_t used = strlen(to);
    str_format(to + used, size - used, "%.*s", (int)token.length, token.start);
}

static void raise_if_no_capitals(char *label)
{
    for (const char *c = label; *c; c++)
        if (isupper((unsigned char)*c))
            return;
    for (char *c = label; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

/* The label of one name; "" when it has neither a letter nor a digit. */
static void label_of(const char *name, char *to, size_t size)
{
    struct token token, previous = {0}, first_number = {0}, last_word = {0};
    const char *at = name;
    bool joined = false;
    to[0] = '\0';
    while (next_token(&at, &token)) {
        bool has_digit = count(token, isdigit) > 0;
        if (previous.length && has_digit && leads_a_number(previous)) {
            append(to, size, previous);
            append(to, size, token);
            joined = true;
            break;
        }
        if (has_digit && !first_number.length)
            first_number = token;
        if (count(token, isalpha) > 0)
            last_word = token;
        previous = token;
    }
    if (!joined)
        append(to, size, first_number.length ? first_number : last_word);
    raise_if_no_capitals(to);
}

static bool has_number(const char *label)
{
    return strpbrk(label, "0123456789") != NULL;
}

void hardware_label(const char *gpu_name, const char *cpu_brand, char *to, size_t size)
{
    char gpu[LABEL_MAX], cpu[LABEL_MAX];
    label_of(gpu_name ? gpu_name : "", gpu, sizeof gpu);
    label_of(cpu_brand ? cpu_brand : "", cpu, sizeof cpu);
    const char *best = "UNKNOWN_HW";
    if (has_number(gpu))
        best = gpu;
    else if (has_number(cpu))
        best = cpu;
    else if (gpu[0])
        best = gpu;
    else if (cpu[0])
        best = cpu;
    str_copy(to, size, best);
}
