/* The reader "zoo": names of architectures instead of files.  Entries are those of zoo.def and the decoders of the
 * model catalog, which also has their alternative names. */
#include "graph/zoo/zoo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog/model.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
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

static struct zoo_entry *decoders; /* of the model catalog */

static void load_decoders(void)
{
    decoders = xcalloc(model_shape_count(), sizeof *decoders);
    for (size_t i = 0; i < model_shape_count(); i++) {
        const struct model_shape *shape = model_shape_at(i);
        decoders[i] = (struct zoo_entry){shape->name,
                                         "decoder",
                                         shape->summary,
                                         shape->source,
                                         0,
                                         DECODER_DEFAULT_TOKENS,
                                         DECODER_DEFAULT_TOKENS,
                                         NULL,
                                         shape->context};
    }
}

size_t zoo_count(void)
{
    return BUILT_IN_COUNT + model_shape_count();
}

const struct zoo_entry *zoo_at(size_t index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_decoders);
    return index < BUILT_IN_COUNT ? &BUILT_IN[index] : &decoders[index - BUILT_IN_COUNT];
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

static bool is_separator(char byte)
{
    return byte == '-' || byte == '_' || byte == '.' || byte == ' ';
}

/* Whether separators are at the same positions: regnet_x_16gf and regnet_x_1_6gf are different models. */
static bool has_same_separators(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (is_separator(*a) != is_separator(*b))
            return false;
    return *a == *b;
}

static const struct zoo_entry *find_name(const char *name)
{
    const struct zoo_entry *found = NULL;
    for (size_t i = 0; i < zoo_count(); i++) {
        const struct zoo_entry *entry = zoo_at(i);
        if (!model_name_equal(entry->name, name))
            continue;
        if (has_same_separators(entry->name, name))
            return entry;
        found = found ? found : entry;
    }
    return found;
}

const struct zoo_entry *zoo_find(const char *source)
{
    const char *name = strip_owner(source);
    const struct zoo_entry *entry = name ? find_name(name) : NULL;
    const char *architecture = name && !entry ? model_architecture(name) : NULL;
    return architecture ? find_name(architecture) : entry;
}

const char *zoo_nearest(const char *source)
{
    const char **names = NULL, *name = strip_owner(source);
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < zoo_count(); i++) {
        *XADD(names, count, capacity) = zoo_at(i)->name;
    }
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        for (const char *const *at = card->names; card->architecture && *at; at++) {
            *XADD(names, count, capacity) = *at;
        }
    }
    const char *nearest = name ? nearest_name(name, names, count) : NULL;
    free(names);
    return nearest;
}

/* ---- decoders: Llama, SmolLM, Mistral, Qwen, Gemma, Phi ---- */

static struct decoder_shape shape_of(const struct model_shape *model)
{
    struct decoder_shape shape = {0};
    decoder_shape_for_kind(model->kind, &shape);
    shape.name = model->name;
    shape.layers = model->layers;
    shape.embedding = model->hidden_size;
    shape.heads = model->heads;
    shape.heads_kv = model->kv_heads;
    shape.head_size = model->head_size;
    shape.vocabulary = model->vocabulary;
    shape.context = model->context;
    shape.has_tied_embeddings = model->has_tied_embeddings;
    shape.window = model->window;
    shape.experts = model->experts;
    shape.experts_used = model->experts_used;
    *(model->experts ? &shape.expert_feed_forward : &shape.feed_forward) = model->feed_forward;
    return shape;
}

static enum err build_decoder(const char *name, struct graph_options options, struct graph *out,
                              struct error *why)
{
    struct decoder_shape shape = shape_of(model_shape_find(name));
    struct decoder decoder;
    enum err err = decoder_from_shape(&shape, &decoder, why);
    if (err)
        return err;
    err = decoder_graph(&decoder, &options, out, why);
    decoder_release(&decoder);
    return err;
}

/* ---- graphs ---- */

enum err zoo_build(const struct zoo_entry *entry, struct graph_options *options, struct graph *out,
                   struct error *why)
{
    const struct graph_options defaults = {
        .image = entry->image, .tokens = entry->tokens, .context = entry->context};
    enum err err =
        graph_options_complete(options, entry->name, zoo_has_phases(entry), &defaults, why);
    if (err || !entry->build)
        return err ? err : build_decoder(entry->name, *options, out, why);
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
    .nearest = zoo_nearest,
};
