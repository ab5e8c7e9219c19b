/* The reader "assumed": a decoder of which nothing but its parameters is known, "671B,37B" (all, and those active per
 * token) or a model of the catalog that has no architecture.
 *
 * Layers and widths are assumed as they are in most decoders of the catalog: heads of 128 features, 8 of them for K and
 * V, a gated feed-forward, 110 features per layer.  The width of the feed-forward follows from the parameters, so their
 * number is kept.  With fewer active than all, every layer has experts, of which a token uses 8: their width follows from
 * the active parameters, their number from all.  Graphs are marked as guessed (docs/estimate.md has the ±). */
#include <math.h>
#include <stdlib.h>

#include "catalog/model.h"
#include "core/text.h"
#include "core/units.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/reader.h"
#include "port/file.h"

enum {
    HEAD_SIZE = 128,
    KV_HEADS = 8,
    EXPERTS_USED = 8,
    FEATURES_PER_LAYER = 110,
    LAYERS_MIN = 16,
    LAYERS_MAX = 128,
    HEADS_MAX = 256,
    VOCABULARY = 128256,
    SMALL_VOCABULARY = 32000,
};

#define SMALL    1e9 /* below, the vocabulary is smaller */
#define TIED     4e9 /* below, the token table is the head too */
#define FEWEST   1e8 /* below, models differ too much */
#define MOST     1e13
#define WIDENING 3.5 /* of the feed-forward, relative to the features */
#define DENSE_SHARE                                                                                \
    0.75 /* of the active parameters of a mixture: those of a dense model of the same features */
#define ALL_ACTIVE 0.9 /* above, the rest is no experts but another part, such as one for images */

/* ---- sizes ---- */

/* Parameters outside the feed-forward: tables, and query, key, value and output of every layer. */
static double parameters_beside(const struct decoder_shape *shape)
{
    double embedding = (double)shape->embedding;
    double tables = (double)shape->vocabulary * embedding * (shape->has_tied_embeddings ? 1 : 2);
    double of_kv = 2 * (double)(shape->heads_kv * shape->head_size);
    return tables + (double)shape->layers * embedding * (2 * embedding + of_kv);
}

/* The width that a feed-forward of all layers needs for so many parameters; at most 0: none are left. */
static double width_for(const struct decoder_shape *shape, double parameters)
{
    return (parameters - parameters_beside(shape)) /
           (3 * (double)shape->embedding * (double)shape->layers);
}

static struct decoder_shape shape_with_heads(uint64_t heads, double parameters)
{
    struct decoder_shape shape;
    decoder_shape_for_kind("mixtral", &shape); /* also without experts: see below */
    shape.heads = heads;
    shape.heads_kv = heads < KV_HEADS ? heads : KV_HEADS;
    while (heads % shape.heads_kv)
        shape.heads_kv--;
    shape.head_size = HEAD_SIZE;
    shape.embedding = heads * HEAD_SIZE;
    shape.layers = (uint64_t)lround((double)shape.embedding / FEATURES_PER_LAYER);
    shape.layers = shape.layers < LAYERS_MIN ? LAYERS_MIN : shape.layers;
    shape.layers = shape.layers > LAYERS_MAX ? LAYERS_MAX : shape.layers;
    shape.has_tied_embeddings = parameters < TIED;
    shape.vocabulary = parameters < SMALL ? SMALL_VOCABULARY : VOCABULARY;
    return shape;
}

/* Of all numbers of heads that for which the feed-forward has its usual width. */
static struct decoder_shape dense_shape(double parameters)
{
    struct decoder_shape best = {0};
    double least = INFINITY;
    for (uint64_t heads = 4; heads <= HEADS_MAX; heads++) {
        struct decoder_shape shape = shape_with_heads(heads, parameters);
        double width = width_for(&shape, parameters);
        double far = width > 0 ? fabs(log(width / (WIDENING * (double)shape.embedding))) : INFINITY;
        if (far < least) {
            least = far;
            best = shape;
            best.feed_forward = (uint64_t)fmax(lround(width), 1);
        }
    }
    return best;
}

static struct decoder_shape mixture_shape(double total, double active)
{
    struct decoder_shape shape = dense_shape(DENSE_SHARE * active);
    double beside = parameters_beside(&shape);
    double width = width_for(&shape, active) / EXPERTS_USED;
    shape.feed_forward = 0;
    shape.expert_feed_forward = (uint64_t)fmax(lround(width), 1);
    shape.experts_used = EXPERTS_USED;
    shape.experts = (uint64_t)lround(EXPERTS_USED * (total - beside) / (active - beside));
    return shape;
}

/* ---- the reader ---- */

static const struct model_card *card_of(const char *source)
{
    const struct model_card *card = model_card_find(source);
    return card && !card->architecture && is_known(card->size.total) ? card : NULL;
}

/* Only names of the catalog: sizes alone are never taken for a name, and a file or folder of such a name is read. */
static int probe(const char *source, const unsigned char *head, size_t length)
{
    (void)length;
    return !head && !file_exists(source) && card_of(source) ? 60 : 0;
}

static enum err check_size(const char *source, const struct model_size *size, struct error *why)
{
    if (size->active < FEWEST)
        return err_set(why, ERR_UNSUPPORTED,
                       "%.60s: %.3g M parameters are too few to assume an architecture (100 M): "
                       "give its file",
                       source, size->active / 1e6);
    if (size->total > MOST)
        return err_set(why, ERR_UNSUPPORTED,
                       "%.60s: more parameters than any model has (10 T at most)", source);
    return ERR_OK;
}

static enum err open_size(const char *source, struct model *model, struct error *why)
{
    const struct model_card *card = card_of(source);
    struct model_size size = {0};
    enum err err = ERR_OK;
    if (card)
        size = card->size;
    else
        err = model_size_parse(source, &size, why);
    if (!err)
        err = check_size(source, &size, why);
    if (err)
        return err;
    struct decoder_shape shape = size.active < ALL_ACTIVE * size.total
                                     ? mixture_shape(size.total, size.active)
                                     : dense_shape(size.total);
    shape.name = source;
    model->has_phases = true;
    return decoder_from_shape(&shape, model->state, why);
}

static enum err build_decoder(const struct model *model, struct graph_options *options,
                              struct graph *out, struct error *why)
{
    const struct decoder *decoder = model->state;
    enum err err = decoder_graph(decoder, options, out, why);
    if (err)
        return err;
    out->is_guessed = true;
    graph_note(out,
               "only its parameters are known: %zu layers of %llu features%s are assumed, "
               "16 bits per weight and a KV cache of 8 heads",
               decoder->layer_count, (unsigned long long)decoder->embedding,
               decoder->experts ? " with experts" : "");
    return ERR_OK;
}

static void close_decoder(struct model *model)
{
    decoder_release(model->state);
}

const struct graph_reader graph_reader_assumed = {
    .name = "assumed",
    .summary = "models of which only the number of parameters is known (--parameters)",
    .probe = probe,
    .state_size = sizeof(struct decoder),
    .open = open_size,
    .build = build_decoder,
    .close = close_decoder,
};
