#include "rundir/setting.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

struct setting setting_parse(const char *knob, const char *text)
{
    struct setting setting = {
        .knob = knob, .gpu = knob_named(knob), .text = xstrdup(text), .number = UNKNOWN};
    double number;
    if (str_equal_nocase(text, "default")) {
        setting.kind = SETTING_DEFAULT;
    } else if (parse_double(text, &number) == ERR_OK) {
        setting.kind = SETTING_NUMBER;
        setting.number = number;
    }
    return setting;
}

void setting_release(struct setting *setting)
{
    free(setting->text);
    *setting = (struct setting){0};
}

static bool has_same_value(const struct setting *a, const struct setting *b)
{
    if (a->gpu == KNOB_COUNT || a->kind == SETTING_TEXT)
        return str_equal(a->text, b->text);
    return a->kind == SETTING_DEFAULT || a->number == b->number;
}

bool setting_same(const struct setting *a, const struct setting *b)
{
    return a->kind == b->kind && str_equal(a->knob, b->knob) && has_same_value(a, b);
}

bool settings_same(const struct setting *a, const struct setting *b, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!setting_same(&a[k], &b[k]))
            return false;
    return true;
}

bool setting_is(const struct setting *setting, const char *text)
{
    struct setting named = setting_parse(setting->knob, text);
    bool same = setting_same(setting, &named) || str_equal_nocase(setting->text, text);
    setting_release(&named);
    return same;
}

void settings_text(const struct setting *settings, size_t count, struct text *out)
{
    for (size_t k = 0; k < count; k++)
        text_addf(out, "%s%s=%s", k ? ", " : "", settings[k].knob, settings[k].text);
}

bool setting_range(const char *text, double *low, double *high, double *step)
{
    char copy[1024];
    bool fits = chars_copy(copy, text);
    char *colon = strchr(copy, ':');
    char *dash = copy[0] ? strchr(copy + 1, '-') : NULL;
    if (!fits || !colon || !dash || dash > colon)
        return false;
    *colon = *dash = '\0';
    return parse_double(copy, low) == ERR_OK && parse_double(dash + 1, high) == ERR_OK &&
           parse_double(colon + 1, step) == ERR_OK;
}
