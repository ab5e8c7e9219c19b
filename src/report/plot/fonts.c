#define _GNU_SOURCE
#include "report/plot/fonts.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"
#include "port/filter.h"
#include "report/plot/figure.h"

/* ---- what fontconfig tells ---- */

static struct text covered; /* "20-7e a0-17f 6a21", of one font a line; "" where nobody tells */
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void ask(void)
{
    char program[1024], piece[4096];
    const char *const argv[] = {program, "--format", "%{charset}\n", NULL};
    struct text nothing = {0};
    FILE *file = program_find("fc-list", program, sizeof program) ? NULL : tmpfile();
    if (!file)
        return;
    if (!filter_run(argv, &nothing, fileno(file), NULL)) {
        size_t got = fseek(file, 0, SEEK_SET) == 0 ? sizeof piece : 0;
        while (got == sizeof piece) {
            got = fread(piece, 1, sizeof piece, file);
            text_add_bytes(&covered, piece, got);
        }
    }
    fclose(file);
}

static bool some_font_has(uint32_t code)
{
    pthread_once(&asked, ask);
    for (const char *at = text_get(&covered); *at;) {
        char *end;
        unsigned long low = strtoul(at, &end, 16), high = low;
        if (end == at) {
            at++;
            continue;
        }
        if (*end == '-')
            high = strtoul(end + 1, &end, 16);
        if (code >= low && code <= high)
            return true;
        at = end;
    }
    return false;
}

/* ---- texts ---- */

static uint32_t code_of(const char *character, size_t length)
{
    static const unsigned char FIRST[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)character[0] & FIRST[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)character[i] & 0x3F);
    return code;
}

/* Latin, Greek, Cyrillic and the marks that go with them. */
static bool is_common(uint32_t code)
{
    return code < 0x250 || (code >= 0x370 && code < 0x500) || (code >= 0x2010 && code < 0x2028);
}

static bool can_be_shown(uint32_t code)
{
    return is_common(code) || some_font_has(code);
}

static void replace(char text[static FIGURE_TEXT_MAX], void *unused)
{
    (void)unused;
    struct text shown = {0};
    size_t left = strlen(text), length;
    for (const char *at = text; left > 0; at += length, left -= length) {
        size_t character = utf8_length(at, left);
        length = character ? character : 1;
        if (!character || can_be_shown(code_of(at, character)))
            text_add_bytes(&shown, at, length);
        else
            text_addf(&shown, "[U+%04X]", (unsigned)code_of(at, character));
    }
    if (!shown.failed)
        str_copy(text, FIGURE_TEXT_MAX, text_get(&shown));
    text_release(&shown);
}

static void keep(char text[static FIGURE_TEXT_MAX], void *kept)
{
    text_add_bytes(kept, text, FIGURE_TEXT_MAX);
}

static void restore(char text[static FIGURE_TEXT_MAX], void *from)
{
    const char **at = from;
    memcpy(text, *at, FIGURE_TEXT_MAX);
    *at += FIGURE_TEXT_MAX;
}

void fonts_replace(struct figure *figure, struct text *kept)
{
    figure_each_text(figure, keep, kept);
    if (!kept->failed)
        figure_each_text(figure, replace, NULL);
}

void fonts_restore(struct figure *figure, const struct text *kept)
{
    const char *at = text_get(kept);
    if (!kept->failed && kept->length)
        figure_each_text(figure, restore, &at);
}
