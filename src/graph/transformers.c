/* BERT, GPT-2 and ViT: embeddings, a stack of blocks, and a head.  Only names and a few flags differ. */
#include "graph/transformers.h"

#include "graph/blocks.h"

/* ---- BERT ---- */

static const struct block_names BERT_NAMES = {
    .attention = {"attention.output.LayerNorm", "attention.self.query", "attention.self.key",
                  "attention.self.value", "attention.self", "attention.output.dense",
                  "attention.output.add"},
    .feed_forward = {"output.LayerNorm", "intermediate.dense", "intermediate.intermediate_act_fn",
                     "output.dense", "output.add"},
};

static const struct block_names DISTILBERT_NAMES = {
    .attention = {"sa_layer_norm", "attention.q_lin", "attention.k_lin", "attention.v_lin",
                  "attention", "attention.out_lin", "attention.add"},
    .feed_forward = {"output_layer_norm", "ffn.lin1", "ffn.activation", "ffn.lin2", "ffn.add"},
};

tensor_id transformer_embed(struct build *b, tensor_id ids, tensor_id table, int64_t types,
                            int64_t positions)
{
    int64_t tokens = build_dim(b, ids, 1), hidden = build_dim(b, table, -1);
    b->component = DECODER_EMBEDDING;
    build_scope(b, "embeddings.");
    tensor_id x = build_embedding_with(b, "word_embeddings", ids, table);
    if (types > 0) {
        tensor_id of =
            build_input(b, "token_type_ids", GRAPH_INT64, DIMS(build_dim(b, ids, 0), tokens));
        of = build_embedding(b, "token_type_embeddings", of, types, hidden);
        x = build_binary(b, GRAPH_ADD, "add_types", x, of);
    }
    if (positions > 0) {
        tensor_id at = block_positions(b, "position_embeddings", tokens, 0, positions, hidden);
        x = build_binary(b, GRAPH_ADD, "add_positions", x, at);
    }
    x = block_norm(b, "LayerNorm", x);
    b->component = DECODER_COMPONENT_COUNT;
    build_root(b);
    return x;
}

tensor_id transformer_pooler(struct build *b, enum graph_op activation, tensor_id x)
{
    int64_t hidden = build_dim(b, x, -1);
    b->component = DECODER_HEAD;
    x = block_first_token(b, "pooler.first_token", x);
    x = build_linear(b, "pooler.dense", x, hidden, true);
    x = build_op(b, activation, "pooler.activation", x);
    b->component = DECODER_COMPONENT_COUNT;
    return x;
}

/* A dense layer with activation and norm, then logits with the tied embedding and a separate bias. */
static void vocabulary_head(struct build *b, enum graph_op activation, tensor_id x, tensor_id table)
{
    int64_t rows = build_dim(b, table, 0);
    b->component = DECODER_HEAD;
    x = build_linear(b, "cls.transform.dense", x, build_dim(b, x, -1), true);
    x = build_op(b, activation, "cls.transform.activation", x);
    x = block_norm(b, "cls.transform.LayerNorm", x);
    tensor_id bias = build_tensor(b, GRAPH_PARAMETER, "cls.decoder.bias", 1, &rows);
    build_output(b, build_linear_with(b, "cls.decoder", x, table, bias, rows));
    b->component = DECODER_COMPONENT_COUNT;
}

tensor_id transformer_heads(struct build *b, const struct transformer_head *head,
                            enum graph_op activation, tensor_id x, tensor_id pooled,
                            tensor_id table)
{
    tensor_id result = pooled >= 0 ? pooled : x;
    if (head->has_vocabulary)
        vocabulary_head(b, activation, x, table);
    if (head->classes == 0)
        return result;
    b->component = DECODER_HEAD;
    if (pooled < 0 && !head->is_per_token)
        result = block_first_token(b, "first_token", x);
    if (head->has_dense) {
        result = build_linear(b, "classifier.dense", result, build_dim(b, result, -1), true);
        result = build_op(b, GRAPH_TANH, "classifier.activation", result);
    }
    result = build_linear(b, "classifier", result, head->classes, true);
    b->component = DECODER_COMPONENT_COUNT;
    return result;
}

tensor_id transformer_bert(struct build *b, const struct transformer_bert *bert,
                           const struct graph_options *options)
{
    struct block block = block_of(&bert->tower);
    tensor_id ids = block_text_input(b, options->batch, options->tokens);
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "embeddings.word_embeddings.weight",
                                   DIMS(bert->vocabulary, bert->tower.hidden));
    block.is_post_norm = true;
    tensor_id x = transformer_embed(b, ids, table, bert->types, bert->positions);
    x = block_stack(b, &block, bert->is_distilled ? &DISTILBERT_NAMES : &BERT_NAMES,
                    &(struct block_pass){0}, bert->tower.layers,
                    bert->is_distilled ? "transformer.layer." : "encoder.layer.", x);
    build_output(b, x);
    tensor_id pooled = bert->has_pooler ? transformer_pooler(b, GRAPH_TANH, x) : GRAPH_NONE;
    return transformer_heads(b, &bert->head, bert->tower.activation, x, pooled, table);
}

/* ---- GPT-2 ---- */

static const struct block_names GPT2_NAMES = {
    .attention = {"ln_1", "attn.c_attn", NULL, NULL, "attn", "attn.c_proj", "attn.add"},
    .feed_forward = {"ln_2", "mlp.c_fc", "mlp.act", "mlp.c_proj", "mlp.add"},
};

tensor_id transformer_gpt2(struct build *b, const struct transformer_gpt2 *gpt2,
                           const struct graph_options *options)
{
    bool is_decode = options->phase == GRAPH_DECODE;
    int64_t tokens = is_decode ? 1 : options->tokens;
    int64_t cached = is_decode ? options->context - 1 : 0;
    int64_t hidden = gpt2->tower.hidden;
    struct block block = block_of(&gpt2->tower);
    tensor_id x = block_text_input(b, options->batch, tokens);
    block.is_causal = block.has_fused_qkv = true;
    b->component = DECODER_EMBEDDING;
    build_scope(b, "transformer.");
    tensor_id table =
        build_tensor(b, GRAPH_PARAMETER, "wte.weight", DIMS(gpt2->vocabulary, hidden));
    x = build_embedding_with(b, "wte", x, table);
    tensor_id positions = block_positions(b, "wpe", tokens, cached, gpt2->positions, hidden);
    x = build_binary(b, GRAPH_ADD, "add", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &GPT2_NAMES,
                    &(struct block_pass){.has_cache = true, .cached = cached}, gpt2->tower.layers,
                    "transformer.h.", x);
    x = block_norm(b, "transformer.ln_f", x);
    if (gpt2->has_no_head)
        return x;
    if (gpt2->classes > 0)
        table = build_tensor(b, GRAPH_PARAMETER, "score.weight", DIMS(gpt2->classes, hidden));
    return block_last_logits(b, gpt2->classes > 0 ? "score" : "lm_head", x, table);
}

/* ---- ViT ---- */

struct vit_names {
    struct patch_names patches;
    const char *layers, *norm, *head;
    struct block_names block;
};

static const struct vit_names TORCHVISION_NAMES = {
    .patches = {"conv_proj", "patches.flatten", "patches.transpose", "class_token",
                "class_token.expand", "encoder.pos_embedding"},
    .layers = "encoder.layers.encoder_layer_",
    .norm = "encoder.ln",
    .head = "heads.head",
    .block = {.attention = {"ln_1", "self_attention.in_proj", NULL, NULL, "self_attention",
                            "self_attention.out_proj", "add"},
              .feed_forward = {"ln_2", "mlp.0", "mlp.1", "mlp.3", "add_1"}},
};

static const struct vit_names HUGGING_FACE_NAMES = {
    .patches = {"embeddings.patch_embeddings.projection", "patches.flatten", "patches.transpose",
                "embeddings.cls_token", "class_token.expand", "embeddings.position_embeddings"},
    .layers = "encoder.layer.",
    .norm = "layernorm",
    .head = "classifier",
    .block = {.attention = {"layernorm_before", "attention.attention.query",
                            "attention.attention.key", "attention.attention.value",
                            "attention.attention", "attention.output.dense", "attention.add"},
              .feed_forward = {"layernorm_after", "intermediate.dense",
                               "intermediate.intermediate_act_fn", "output.dense", "output.add"}},
};

tensor_id transformer_patches(struct build *b, const struct transformer_patches *patches,
                              tensor_id image)
{
    const struct patch_names *names = &patches->names;
    int64_t batch = build_dim(b, image, 0), pixels = build_dim(b, image, 2);
    int64_t hidden = patches->hidden, size = patches->size;
    if (size <= 0 || pixels < size || (pixels % size && !patches->is_cropped)) {
        b->err = err_set(b->why, ERR_BAD_VALUE,
                         "%s: image size must be a multiple of its patch size %lld, not %lld",
                         b->graph->name, (long long)size, (long long)pixels);
        return GRAPH_NONE;
    }
    int64_t native = patches->image / size * (patches->image / size);
    int64_t count = pixels / size * (pixels / size);
    struct build_conv conv = {.channels = hidden,
                              .kernel = (int32_t)size,
                              .stride = (int32_t)size,
                              .has_bias = patches->has_bias};
    tensor_id x = build_conv(b, names->conv, image, conv);
    x = build_view(b, names->flatten, x, DIMS(batch, hidden, count));
    x = build_rearrange(b, names->transpose, x, DIMS(batch, count, hidden));
    int64_t others = names->class_token ? 1 : 0;
    if (others) {
        tensor_id token = build_tensor(b, GRAPH_PARAMETER, names->class_token, DIMS(1, 1, hidden));
        token = build_rearrange(b, names->expand, token, DIMS(batch, 1, hidden));
        x = build_concat(b, "tokens", 1, (tensor_id[]){token, x}, 2);
    }
    tensor_id positions =
        build_tensor(b, GRAPH_PARAMETER, names->positions, DIMS(1, native + others, hidden));
    if (count != native)
        positions =
            build_move(b, "interpolate_pos_encoding", positions, DIMS(1, count + others, hidden));
    return build_binary(b, GRAPH_ADD, "add_positions", x, positions);
}

static tensor_id classifier(struct build *b, const struct transformer_vit *vit,
                            const struct vit_names *names, tensor_id x)
{
    if (vit->classes == 0)
        return vit->has_pooler ? transformer_pooler(b, GRAPH_TANH, x) : x;
    b->component = DECODER_HEAD;
    x = block_first_token(b, "first_token", x);
    x = build_linear(b, names->head, x, vit->classes, true);
    b->component = DECODER_COMPONENT_COUNT;
    return x;
}

tensor_id transformer_vit(struct build *b, const struct transformer_vit *vit,
                          const struct graph_options *options)
{
    const struct vit_names *names = vit->is_torchvision ? &TORCHVISION_NAMES : &HUGGING_FACE_NAMES;
    struct transformer_patches patches = {names->patches, vit->image, vit->patch, vit->tower.hidden,
                                          .has_bias = true};
    struct block block = block_of(&vit->tower);
    block.has_fused_qkv = vit->is_torchvision;
    block.has_no_qkv_bias = vit->has_no_qkv_bias;
    b->component = DECODER_EMBEDDING;
    tensor_id x = transformer_patches(b, &patches, block_image_input(b, vit->channels, options));
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &names->block, &(struct block_pass){0}, vit->tower.layers,
                    names->layers, x);
    return classifier(b, vit, names, block_norm(b, names->norm, x));
}
