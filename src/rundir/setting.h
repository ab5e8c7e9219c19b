/* The setting of one knob, typed: parsed once, where it enters (an option, a list, a journal), and compared by one
 * function.  A point of a sweep has one for each knob, in an array.
 *
 * Ownership: a struct setting owns its text, which setting_release frees; its knob's name belongs to the sweep. */
#ifndef IPW_RUNDIR_SETTING_H
#define IPW_RUNDIR_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/knob.h"

struct text;

enum setting_kind {
    SETTING_TEXT,
    SETTING_NUMBER,
    SETTING_DEFAULT, /* "default": the knob is left as it is */
};

struct setting {
    const char *knob;  /* its name */
    enum gpu_knob gpu; /* KNOB_COUNT: a {placeholder} of the command alone */
    enum setting_kind kind;
    char *text;    /* as given: what replaces the placeholder */
    double number; /* in the unit of the knob; UNKNOWN unless SETTING_NUMBER */
};

struct setting setting_parse(const char *knob, const char *text);
void setting_release(struct setting *setting);

/* Whether both set the same knob to the same value.  Values of the GPU's knobs are equal numbers; those of others equal
 * texts, since 1.1 and 1.10 may be two versions of something. */
bool setting_same(const struct setting *a, const struct setting *b);
/* The same of all settings of two points. */
bool settings_same(const struct setting *a, const struct setting *b, size_t count);

/* Whether it is what a user names: the same value, or its text in any case. */
bool setting_is(const struct setting *setting, const char *text);

/* Parses a range of numbers, "600-1200:150"; false for anything else, which is one value. */
bool setting_range(const char *text, double *low, double *high, double *step);

/* "threads=4, batch=8" */
void settings_text(const struct setting *settings, size_t count, struct text *out);

#endif
