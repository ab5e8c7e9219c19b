/* Decoders by their numbers: Llama, SmolLM, Mistral, Qwen, Gemma, Phi. */
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/zoo/family.h"

enum head { OWN, TIED };

static const struct row {
    const char *name, *kind;
    uint64_t layers, embedding, heads, heads_kv, head_size, feed_forward, vocabulary, context;
    enum head head;
    uint64_t experts, experts_used, window;
} ROWS[] = {
#define ZOO_DECODER(name, summary, source, kind, ...) {name, kind, __VA_ARGS__},
#include "graph/zoo_decoders.def"
#undef ZOO_DECODER
};

static struct decoder_shape shape_of(const struct row *row)
{
    struct decoder_shape shape = {0};
    decoder_shape_for_kind(row->kind, &shape);
    shape.name = row->name;
    shape.layers = row->layers;
    shape.embedding = row->embedding;
    shape.heads = row->heads;
    shape.heads_kv = row->heads_kv;
    shape.head_size = row->head_size;
    shape.vocabulary = row->vocabulary;
    shape.context = row->context;
    shape.has_tied_embeddings = row->head == TIED;
    shape.window = row->window;
    shape.experts = row->experts;
    shape.experts_used = row->experts_used;
    *(row->experts ? &shape.expert_feed_forward : &shape.feed_forward) = row->feed_forward;
    return shape;
}

enum err zoo_build_decoder(const char *name, const struct graph_options *setting, struct graph *out,
                           struct error *why)
{
    struct decoder_shape shape = shape_of(ZOO_ROW(ROWS, name));
    struct graph_options complete = *setting;
    struct decoder decoder;
    enum err err = decoder_from_shape(&shape, &decoder, why);
    if (err)
        return err;
    err = decoder_graph(&decoder, &complete, out, why);
    decoder_release(&decoder);
    return err;
}
