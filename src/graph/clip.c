/* CLIP: two stacks of pre-norm blocks, over text and over the patches of an image, projected into one space. */
#include "graph/blocks.h"
#include "graph/transformers.h"

static const struct block_names NAMES = {
    .attention = {"layer_norm1", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                  "self_attn", "self_attn.out_proj", "self_attn.add"},
    .feed_forward = {"layer_norm2", "mlp.fc1", "mlp.activation_fn", "mlp.fc2", "mlp.add"},
};

static struct block block_of(const struct transformer_clip_tower *tower, bool is_causal)
{
    return (struct block){.hidden = tower->hidden,
                          .heads = tower->heads,
                          .intermediate = tower->intermediate,
                          .activation = tower->activation,
                          .is_causal = is_causal};
}

static tensor_id project(struct build *b, const struct transformer_clip *clip, const char *name,
                         tensor_id x)
{
    if (!clip->has_projection)
        return x;
    b->component = DECODER_HEAD;
    x = build_linear(b, name, x, clip->projection, false);
    b->component = DECODER_COMPONENT_COUNT;
    return x;
}

/* The result is the state of the last token. */
static tensor_id encode_text(struct build *b, const struct transformer_clip *clip,
                             const struct graph_options *options)
{
    struct block block = block_of(&clip->text, true);
    tensor_id ids = block_text_input(b, options->batch, options->tokens);
    b->component = DECODER_EMBEDDING;
    build_scope(b, "%s", "text_model.embeddings.");
    tensor_id x = build_embedding(b, "token_embedding", ids, clip->vocabulary, clip->text.hidden);
    tensor_id positions = block_positions(b, "position_embedding", options->tokens, 0,
                                          clip->positions, clip->text.hidden);
    x = build_binary(b, GRAPH_ADD, "add", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &NAMES, &(struct block_pass){0}, clip->text.layers,
                    "text_model.encoder.layers.", x);
    x = block_norm(b, "text_model.final_layer_norm", x);
    x = block_first_token(b, "text_model.last_token", x);
    return project(b, clip, "text_projection", x);
}

static tensor_id embed_image(struct build *b, const struct transformer_clip *clip,
                             const struct graph_options *options)
{
    int64_t batch = options->batch, hidden = clip->vision.hidden;
    int64_t side = options->image / clip->patch, patches = side * side;
    int64_t native = clip->image / clip->patch * (clip->image / clip->patch);
    struct build_conv conv = {
        .channels = hidden, .kernel = (int32_t)clip->patch, .stride = (int32_t)clip->patch};
    tensor_id x = build_input(b, "pixel_values", GRAPH_FLOAT, 4,
                              (int64_t[]){batch, clip->channels, options->image, options->image});
    build_scope(b, "%s", "vision_model.embeddings.");
    x = build_conv(b, "patch_embedding", x, conv);
    x = build_view(b, "flatten", x, 3, (int64_t[]){batch, hidden, patches});
    x = build_rearrange(b, "transpose", x, 3, (int64_t[]){batch, patches, hidden});
    tensor_id token = build_tensor(b, GRAPH_PARAMETER, "class_embedding", 1, &hidden);
    token = build_rearrange(b, "class.expand", token, 3, (int64_t[]){batch, 1, hidden});
    x = build_concat(b, "tokens", 1, (tensor_id[]){token, x}, 2);
    tensor_id positions = build_tensor(b, GRAPH_PARAMETER, "position_embedding.weight", 2,
                                       (int64_t[]){native + 1, hidden});
    if (patches != native)
        positions = build_move(b, "interpolate_pos_encoding", positions, 2,
                               (int64_t[]){patches + 1, hidden});
    return build_binary(b, GRAPH_ADD, "add_positions", x, positions);
}

static tensor_id encode_image(struct build *b, const struct transformer_clip *clip,
                              const struct graph_options *options)
{
    struct block block = block_of(&clip->vision, false);
    if (options->image % clip->patch) {
        b->err = err_set(b->why, ERR_BAD_VALUE,
                         "%s: image size must be a multiple of its patch size %lld, not %lld",
                         b->graph->name, (long long)clip->patch, (long long)options->image);
        return GRAPH_NONE;
    }
    b->component = DECODER_EMBEDDING;
    tensor_id x = embed_image(b, clip, options);
    b->component = DECODER_COMPONENT_COUNT;
    build_scope(b, "%s", "");
    x = block_norm(b, "vision_model.pre_layrnorm", x); /* so it is spelled there */
    x = block_stack(b, &block, &NAMES, &(struct block_pass){0}, clip->vision.layers,
                    "vision_model.encoder.layers.", x);
    x = block_first_token(b, "vision_model.class_token", x);
    x = block_norm(b, "vision_model.post_layernorm", x);
    return project(b, clip, "visual_projection", x);
}

tensor_id transformer_clip(struct build *b, const struct transformer_clip *clip,
                           const struct graph_options *options)
{
    tensor_id text = GRAPH_NONE, image = GRAPH_NONE;
    b->graph->batch = (double)options->batch;
    if (clip->has_text)
        text = encode_text(b, clip, options);
    if (clip->has_image)
        image = encode_image(b, clip, options);
    if (text < 0 || image < 0)
        return text >= 0 ? text : image;
    b->component = DECODER_HEAD;
    tensor_id scale = build_tensor(b, GRAPH_PARAMETER, "logit_scale", 1, (int64_t[]){1});
    image = build_rearrange(b, "images.transpose", image, 2,
                            (int64_t[]){clip->projection, options->batch});
    tensor_id logits = build_matmul(b, "logits", text, image);
    return build_binary(b, GRAPH_MUL, "logits.scale", logits, scale);
}
