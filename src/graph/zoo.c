/* Reader zoo: the name of an architecture, in place of a file. */
#include "graph/zoo.h"

#include <string.h>
#include <unistd.h>

#include "catalog/model.h"
#include "core/registry.h"
#include "core/text.h"
#include "graph/decoder.h"
#include "graph/zoo/family.h"

static const struct zoo_entry ENTRIES[] = {
#define ZOO(name, family, image, tokens, context, summary, source)                                 \
    {name, #family, summary, source, image, tokens, context, zoo_build_##family, 0},
#include "graph/zoo.def"
#define MODEL_SHAPE(name, summary, source, kind, layers, hidden, heads, kv, size, ff, vocabulary,  \
                    longest, ...)                                                                  \
    {name,                                                                                         \
     "decoder",                                                                                    \
     summary,                                                                                      \
     source,                                                                                       \
     0,                                                                                            \
     DECODER_DEFAULT_TOKENS,                                                                       \
     DECODER_DEFAULT_TOKENS,                                                                       \
     zoo_build_decoder,                                                                            \
     longest},
#include "catalog/model_shapes.def"
#undef ZOO
#undef MODEL_SHAPE
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof *ENTRIES, NAMES_MAX = ENTRY_COUNT + 512 };

size_t zoo_count(void)
{
    return ENTRY_COUNT;
}

const struct zoo_entry *zoo_at(size_t index)
{
    return &ENTRIES[index];
}

/* ---- names ---- */

/* The part after an organisation; a path of a file (more than one slash, or one at either end) is none. */
static const char *without_owner(const char *word)
{
    const char *slash = strchr(word, '/');
    if (!slash)
        return word;
    bool is_path = slash == word || word[0] == '.' || word[0] == '~' || strchr(slash + 1, '/');
    return is_path || slash[1] == '\0' ? NULL : slash + 1;
}

static bool is_mark(char byte)
{
    return byte == '-' || byte == '_' || byte == '.' || byte == ' ';
}

/* With marks at the same places: regnet_x_16gf is another than regnet_x_1_6gf. */
static bool has_same_marks(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (is_mark(*a) != is_mark(*b))
            return false;
    return *a == *b;
}

static const struct zoo_entry *find_name(const char *name)
{
    const struct zoo_entry *found = NULL;
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (!model_name_equal(ENTRIES[i].name, name))
            continue;
        if (has_same_marks(ENTRIES[i].name, name))
            return &ENTRIES[i];
        found = found ? found : &ENTRIES[i];
    }
    return found;
}

const struct zoo_entry *zoo_find(const char *word)
{
    const char *name = without_owner(word);
    const struct zoo_entry *entry = name ? find_name(name) : NULL;
    const char *architecture = name && !entry ? model_architecture(name) : NULL;
    return architecture ? find_name(architecture) : entry;
}

const char *zoo_nearest(const char *word)
{
    const char *names[NAMES_MAX];
    const char *name = without_owner(word);
    size_t count = 0;
    for (; count < ENTRY_COUNT; count++)
        names[count] = ENTRIES[count].name;
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        for (const char *const *at = card->names; card->architecture && *at; at++)
            if (count < NAMES_MAX)
                names[count++] = *at;
    }
    return name ? nearest_name(name, names, count) : NULL;
}

/* ---- settings ---- */

/* Bounds that keep every product of dimensions far from what an integer holds. */
enum { MOST_BATCH = 1000000, MOST_PIXELS = 100000, MOST_TOKENS = 10000000 };

static enum err fill_in(const struct zoo_entry *entry, const char *what, int64_t *number,
                        int64_t otherwise, int64_t most, struct error *why)
{
    if (*number == 0)
        *number = otherwise;
    if (*number < 0 || *number > most)
        return err_set(why, ERR_BAD_VALUE, "%s: a %s of %lld: it must be 1 to %lld", entry->name,
                       what, (long long)*number, (long long)most);
    return ERR_OK;
}

enum err zoo_build(const struct zoo_entry *entry, struct graph_options *setting, struct graph *out,
                   struct error *why)
{
    enum err err = fill_in(entry, "batch", &setting->batch, 1, MOST_BATCH, why);
    if (!err)
        err = fill_in(entry, "side of an image", &setting->image, entry->image, MOST_PIXELS, why);
    if (!err)
        err = fill_in(entry, "number of tokens", &setting->tokens, entry->tokens, MOST_TOKENS, why);
    if (!err)
        err = fill_in(entry, "context", &setting->context, entry->context, MOST_TOKENS, why);
    if (!err && setting->phase == GRAPH_DECODE && !zoo_has_phases(entry))
        err = err_set(why, ERR_UNSUPPORTED, "%s does not answer token by token: it has no decode",
                      entry->name);
    return err ? err : entry->build(entry->name, setting, out, why);
}

/* ---- the reader ---- */

/* A file or folder of the same name is for whoever can read it. */
static int probe(const char *word, const unsigned char *head, size_t length)
{
    (void)length;
    if (!zoo_find(word))
        return 0;
    return head || access(word, F_OK) == 0 ? 5 : 90;
}

static enum err open_entry(const char *word, struct model *model, struct error *why)
{
    const struct zoo_entry *entry = zoo_find(word);
    if (!entry)
        return err_set(why, ERR_NOT_FOUND, "no architecture is called %.120s", word);
    str_copy(model->name, sizeof model->name, entry->name);
    model->has_phases = zoo_has_phases(entry);
    model->context_length = entry->context_length;
    return ERR_OK;
}

static enum err build_entry(const struct model *model, struct graph_options *setting,
                            struct graph *out, struct error *why)
{
    return zoo_build(zoo_find(model->name), setting, out, why);
}

static void close_entry(struct model *model)
{
    (void)model; /* nothing was opened */
}

const struct graph_reader graph_reader_zoo = {
    .name = "zoo",
    .summary = "named architectures, built in code (`ipw list models`)",
    .probe = probe,
    .open = open_entry,
    .build = build_entry,
    .close = close_entry,
    .nearest = zoo_nearest,
};
