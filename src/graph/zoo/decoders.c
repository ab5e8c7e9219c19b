/* Decoders by their numbers, which the model catalog has: Llama, SmolLM, Mistral, Qwen, Gemma, Phi. */
#include "catalog/model.h"
#include "graph/decoder.h"
#include "graph/decoder_shape.h"
#include "graph/zoo/family.h"

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

enum err zoo_build_decoder(const char *name, const struct graph_options *setting, struct graph *out,
                           struct error *why)
{
    struct decoder_shape shape = shape_of(model_shape_find(name));
    struct graph_options complete = *setting;
    struct decoder decoder;
    enum err err = decoder_from_shape(&shape, &decoder, why);
    if (err)
        return err;
    err = decoder_graph(&decoder, &complete, out, why);
    decoder_release(&decoder);
    return err;
}
