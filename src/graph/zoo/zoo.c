/* The reader "zoo": names of architectures instead of files.  Entries are those of zoo.def, and those of the model
 * catalog, which are built from their config.json as a file is; the catalog also has alternative names of all. */
#include "graph/zoo/zoo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog/model.h"
#include "catalog/near_names.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/hf.h"
#include "graph/zoo/family.h"

static const struct zoo_entry BUILT_IN[] = {
#define ZOO(name, family, image, tokens, context, summary, source)                                 \
    {name, #family, summary, source, image, tokens, context, zoo_build_##family, 0},
#define TORCHVISION(name, family, image, summary)                                                  \
    ZOO(name, family, image, 0, 0, summary, "torchvision")
#include "graph/zoo/zoo.def"
#undef TORCHVISION
#undef ZOO
};
enum { BUILT_IN_COUNT = COUNT_OF(BUILT_IN) };

static struct zoo_entry *listed; /* those of the model catalog */

static enum err parse_listed(const struct model_shape *shape, struct hf_config *out,
                             struct error *why)
{
    return hf_config_parse(shape->name, shape->name, shape->config, out, why);
}

/* Decoders are many, and parsing one allocates its layers; the others are parsed for their default sizes. */
static struct zoo_entry entry_of(const struct model_shape *shape)
{
    struct zoo_entry entry = {
        .name = shape->name, .summary = shape->summary, .source = shape->source};
    const char *type = jv_get_text(shape->config, "model_type");
    struct decoder_shape decoder;
    struct hf_config config;
    if (type && decoder_shape_for_kind(type, &decoder)) {
        entry.family = "decoder";
        entry.tokens = entry.context = DECODER_DEFAULT_TOKENS;
        (void)jv_integer(jv_get(shape->config, "max_position_embeddings"), &entry.context_length);
    } else if (parse_listed(shape, &config, &(struct error){0}) == ERR_OK) {
        entry.family = type ? "transformer" : "diffusion";
        entry.image = config.image;
        entry.tokens = config.tokens;
        hf_config_release(&config);
    }
    return entry;
}

static void load_listed(void)
{
    listed = xcalloc(model_shape_count(), sizeof *listed);
    for (size_t i = 0; i < model_shape_count(); i++)
        listed[i] = entry_of(model_shape_at(i));
}

size_t zoo_count(void)
{
    return BUILT_IN_COUNT + model_shape_count();
}

const struct zoo_entry *zoo_at(size_t index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_listed);
    return index < BUILT_IN_COUNT ? &BUILT_IN[index] : &listed[index - BUILT_IN_COUNT];
}

/* ---- names ---- */

/* The name without the organization before a slash; NULL for a path (several slashes, or one at either end). */
static const char *strip_owner(const char *source)
{
    const char *slash = strchr(source, '/');
    if (!slash)
        return source;
    bool is_path =
        slash == source || source[0] == '.' || source[0] == '~' || strchr(slash + 1, '/');
    return is_path || slash[1] == '\0' ? NULL : slash + 1;
}

static const struct zoo_entry *find_name(const char *name)
{
    for (size_t i = 0; i < zoo_count(); i++)
        if (model_name_equal(zoo_at(i)->name, name))
            return zoo_at(i);
    return NULL;
}

const struct zoo_entry *zoo_find(const char *source)
{
    const char *name = strip_owner(source);
    const struct zoo_entry *entry = name ? find_name(name) : NULL;
    const char *architecture = name && !entry ? model_architecture(source) : NULL;
    return architecture ? find_name(architecture) : entry;
}

bool zoo_suggest(const char *source, char *to, size_t size)
{
    const char **names = NULL;
    size_t count = 0, capacity = 0;
    to[0] = '\0';
    if (!strip_owner(source))
        return false;
    for (size_t i = 0; i < zoo_count(); i++) {
        *XADD(names, count, capacity) = zoo_at(i)->name;
    }
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        for (const char *const *at = card->names; card->architecture && *at; at++) {
            *XADD(names, count, capacity) = *at;
        }
    }
    bool is_near = near_names(strip_owner(source), names, count, to, size);
    free(names);
    return is_near;
}

/* ---- graphs ---- */

static enum err build_listed(const char *name, struct graph_options *options, struct graph *out,
                             struct error *why)
{
    struct hf_config config;
    enum err err = parse_listed(model_shape_find(name), &config, why);
    if (err)
        return err;
    err = hf_config_graph(&config, options, out, why);
    hf_config_release(&config);
    return err;
}

enum err zoo_build(const struct zoo_entry *entry, struct graph_options *options, struct graph *out,
                   struct error *why)
{
    if (!entry->build)
        return build_listed(entry->name, options, out, why);
    const struct graph_options defaults = {
        .image = entry->image, .tokens = entry->tokens, .context = entry->context};
    enum err err =
        graph_options_complete(options, entry->name, zoo_has_phases(entry), &defaults, why);
    if (err)
        return err;
    struct build b = build_begin(out, entry->name, why);
    out->batch = (double)options->batch;
    build_output(&b, entry->build(&b, options));
    return build_end(&b);
}

/* ---- the reader ---- */

/* A file or directory of the same name belongs to the reader that recognizes it. */
static int probe(const char *source, const unsigned char *head, size_t length)
{
    (void)length;
    if (!zoo_find(source))
        return 0;
    return head || access(source, F_OK) == 0 ? 5 : 90;
}

static enum err open_entry(const char *source, struct model *model, struct error *why)
{
    const struct zoo_entry *entry = zoo_find(source);
    if (!entry)
        return err_set(why, ERR_NOT_FOUND, "unknown architecture %.120s", source);
    model->state = (void *)entry;
    chars_copy(model->name, entry->name);
    model->has_phases = zoo_has_phases(entry);
    model->context_length = entry->context_length;
    return ERR_OK;
}

static enum err build_entry(const struct model *model, struct graph_options *options,
                            struct graph *out, struct error *why)
{
    return zoo_build(model->state, options, out, why);
}

const struct graph_reader graph_reader_zoo = {
    .name = "zoo",
    .summary = "named architectures, built in code (`ipw list models`)",
    .probe = probe,
    .open = open_entry,
    .build = build_entry,
    .suggest = zoo_suggest,
};
