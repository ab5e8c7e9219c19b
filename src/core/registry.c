#include "core/registry.h"

#include <stdbool.h>
#include <string.h>

#include "core/text.h"

enum { NAMES_MAX = 128 };

/* With one row of the matrix; names are short. */
size_t name_distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1];
    size_t width = strlen(b);
    if (strlen(a) > LONGEST || width > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t min = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            diagonal = row[j];
            row[j] = change < min ? change : min;
        }
    }
    return row[width];
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2; /* more edits than this: not a misspelling */
    for (size_t i = 0; i < count; i++) {
        size_t distance = name_distance(word, names[i]);
        bool is_prefix = strlen(word) >= 2 && str_starts(names[i], word);
        if (is_prefix)
            distance = distance ? 1 : 0;
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}

enum err registry_unknown(const char *kind, const char *name, const char *const *names,
                          size_t count, enum err code, struct error *why)
{
    const char *near = nearest_name(name, names, count);
    if (near)
        return err_set(why, code, "unknown %s '%.64s': did you mean '%s'?", kind, name, near);
    char known[232] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!str_join(known + used, sizeof known - used, i ? ", " : "", names[i], ""))
            return err_set(why, code, "unknown %s '%.64s': see `ipw list`", kind, name);
        used += strlen(known + used);
    }
    return err_set(why, code, "unknown %s '%.64s' (known: %s)", kind, name, known);
}

static const void *entry_at(const void *list, size_t i)
{
    const void *entry;
    memcpy(&entry, (const char *)list + i * sizeof entry, sizeof entry);
    return entry;
}

bool registry_has(const void *list, size_t count, const void *entry)
{
    for (size_t i = 0; i < count; i++)
        if (entry_at(list, i) == entry)
            return true;
    return false;
}

const void *registry_find(const char *kind, const void *list, const char *name, enum err code,
                          struct error *why)
{
    const char *names[NAMES_MAX];
    const void *entry;
    size_t count = 0;
    for (; count < NAMES_MAX; count++) {
        entry = entry_at(list, count);
        if (!entry)
            break;
        names[count] = *(const char *const *)entry;
        if (str_equal(names[count], name))
            return entry;
    }
    registry_unknown(kind, name, names, count, code, why);
    return NULL;
}
