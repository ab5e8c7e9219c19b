#include "analysis/across.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

/* Minimum for the model in an abbreviated name, and maximum for a number before the name. */
enum { MODEL_LETTERS = 14, NUMBER_LETTERS = 4 };

struct naming {
    const struct run_point *const *points;
    size_t count;
    size_t family;                                /* length of the common prefix of all models */
    bool models, hardware, datasets, concurrency; /* which of these differ */
    bool
        settings; /* all are of one sweep and distinguished by these: its command differs in nothing else */
};

/* ---- what differs ---- */

static bool differ_in(const struct naming *naming, size_t at)
{
    const char *first = (const char *)naming->points[0] + at;
    for (size_t i = 1; i < naming->count; i++)
        if (!str_equal((const char *)naming->points[i] + at, first))
            return true;
    return false;
}

static bool concurrency_differs(const struct naming *naming)
{
    for (size_t i = 1; i < naming->count; i++)
        if (naming->points[i]->concurrency != naming->points[0]->concurrency)
            return true;
    return false;
}

static bool are_settings(const struct naming *naming)
{
    const struct run_point *first = naming->points[0];
    bool are = first->sweep > 0;
    for (size_t i = 0; are && i < naming->count; i++) {
        const struct run_point *point = naming->points[i];
        are = point->setting[0] && point->sweep == first->sweep &&
              strncmp(point->directory, first->directory, first->sweep) == 0;
    }
    return are && differ_in(naming, offsetof(struct run_point, setting));
}

/* The name without its path or organization, unless that makes two models equal. */
static const char *model_name(const struct naming *naming, size_t run)
{
    const char *model = naming->points[run]->model, *name = str_last_part(model);
    for (size_t i = 0; i < naming->count; i++) {
        const char *other = naming->points[i]->model;
        if (!str_equal(other, model) && str_equal(str_last_part(other), name))
            return model;
    }
    return name;
}

/* Whole words only, and every name keeps at least one. */
static size_t family_of(const struct naming *naming)
{
    const char *first = model_name(naming, 0);
    size_t same = strlen(first), word = 0;
    for (size_t i = 1; i < naming->count; i++) {
        const char *other = model_name(naming, i);
        size_t length = 0;
        while (length < same && first[length] == other[length])
            length++;
        same = length;
        if (!other[same] && same) /* equal to the whole name: its last word stays */
            same--;
    }
    for (size_t i = 0; i < same && first[i + 1]; i++)
        word = strchr("-_: ", first[i]) ? i + 1 : word;
    return word;
}

/* ---- names ---- */

static bool begins_letter(const char *at)
{
    return !utf8_is_continuation(*at);
}

/* A model's name in about `max` letters: its start, and more of its end, which has the precision. */
static void add_model(struct text *out, const char *name, size_t max)
{
    size_t length = strlen(name), head = max / 3, tail = length > max ? length - max + head + 1 : 0;
    if (length <= max) {
        text_add(out, name);
        return;
    }
    while (head && !begins_letter(name + head))
        head--;
    while (tail < length && !begins_letter(name + tail))
        tail++;
    text_add_bytes(out, name, head);
    text_addf(out, "…%s", name + tail);
}

static void name_run(const struct naming *naming, size_t run, size_t letters, char *to)
{
    const struct run_point *point = naming->points[run];
    struct text name = {0}, rest = {0};
    if (naming->settings) {
        str_copy(to, RUN_NAME_MAX, point->setting);
        return;
    }
    if (naming->hardware && point->hardware[0])
        text_addf(&rest, ", %s", point->hardware);
    if (naming->datasets && point->dataset[0])
        text_addf(&rest, ", %s", point->dataset);
    if (naming->concurrency && is_known(point->concurrency))
        text_addf(&rest, ", concurrency %g", point->concurrency);
    if (naming->models)
        add_model(&name, model_name(naming, run) + naming->family,
                  rest.length + MODEL_LETTERS < letters ? letters - rest.length : MODEL_LETTERS);
    if (rest.length)
        text_add(&name, text_get(&rest) + (name.length ? 0 : strlen(", ")));
    str_copy(to, RUN_NAME_MAX, name.length ? text_get(&name) : str_last_part(point->directory));
    text_release(&name);
    text_release(&rest);
}

/* Abbreviation may remove the only difference: runs are then numbered as well. */
static void number_repeated(const struct naming *naming, size_t letters, struct run_names *out,
                            bool *repeated)
{
    for (size_t i = 0; i < out->count; i++)
        for (size_t j = 0; j < out->count && !repeated[i]; j++)
            repeated[i] = i != j && str_equal(out->names[i], out->names[j]);
    for (size_t i = 0; i < out->count; i++) {
        char name[RUN_NAME_MAX];
        if (!repeated[i])
            continue;
        name_run(naming, i, letters - NUMBER_LETTERS, name);
        str_format(out->names[i], RUN_NAME_MAX, "%zu: %s", i + 1, name);
    }
}

void run_names_of(const struct run_point *const *points, size_t count, size_t letters,
                  struct run_names *out)
{
    struct naming naming = {.points = points, .count = count};
    size_t max = letters ? letters : RUN_NAME_MAX;
    bool *repeated = xcalloc(count + 1, sizeof *repeated);
    *out = (struct run_names){.names = xcalloc(count + 1, sizeof *out->names), .count = count};
    if (count) {
        naming.models = differ_in(&naming, offsetof(struct run_point, model));
        naming.hardware = differ_in(&naming, offsetof(struct run_point, hardware));
        naming.datasets = differ_in(&naming, offsetof(struct run_point, dataset));
        naming.concurrency = concurrency_differs(&naming);
        naming.settings = are_settings(&naming);
        naming.family = naming.models ? family_of(&naming) : 0;
        const char *first = model_name(&naming, 0);
        size_t shared = naming.models ? naming.family : strlen(first) + 1;
        chars_format(out->family, "%.*s", shared ? (int)shared - 1 : 0, first);
    }
    for (size_t i = 0; i < count; i++)
        name_run(&naming, i, max, out->names[i]);
    number_repeated(&naming, max, out, repeated);
    free(repeated);
}

void run_names_release(struct run_names *names)
{
    free(names->names);
    *names = (struct run_names){0};
}
