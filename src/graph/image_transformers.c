/* SegFormer: four stages of attention over increasingly coarse patches, and a head that fuses them.  DETR: a ResNet, an
 * encoder over its last feature map, and a decoder over queries.  CLIP: two stacks of pre-norm blocks, over text and
 * over the patches of an image, projected into one space. */
#include "graph/blocks.h"
#include "graph/transformers.h"

/* (batch, channels, side, side) to (batch, tokens, channels) and back. */
static tensor_id to_tokens(struct build *b, const char *name, tensor_id x)
{
    int64_t tokens = build_dim(b, x, 2) * build_dim(b, x, 3);
    return build_rearrange(b, name, x, DIMS(build_dim(b, x, 0), tokens, build_dim(b, x, 1)));
}

static tensor_id to_image(struct build *b, const char *name, tensor_id x, int64_t height,
                          int64_t width)
{
    return build_rearrange(b, name, x,
                           DIMS(build_dim(b, x, 0), build_dim(b, x, -1), height, width));
}

/* ---- SegFormer ---- */

struct stage {
    const struct transformer_segformer *sizes;
    int number;
    int64_t height, width;
};

/* K and V come from an image reduced by a convolution. */
static tensor_id segformer_attention(struct build *b, const struct stage *stage, tensor_id x)
{
    const struct transformer_segformer *sizes = stage->sizes;
    int64_t hidden = sizes->hidden[stage->number];
    int64_t reduction = sizes->reductions[stage->number];
    tensor_id source = x;
    if (reduction > 1) {
        struct build_conv conv = {.channels = hidden,
                                  .kernel = (int32_t)reduction,
                                  .stride = (int32_t)reduction,
                                  .has_bias = true};
        source = to_image(b, "attention.self.image", x, stage->height, stage->width);
        source = build_conv(b, "attention.self.sr", source, conv);
        source = block_norm(b, "attention.self.layer_norm",
                            to_tokens(b, "attention.self.tokens", source));
    }
    tensor_id query = build_linear(b, "attention.self.query", x, hidden, true);
    tensor_id key = build_linear(b, "attention.self.key", source, hidden, true);
    tensor_id value = build_linear(b, "attention.self.value", source, hidden, true);
    struct graph_attention attention = build_heads(b, x, sizes->heads[stage->number], hidden);
    attention.cross_tokens = reduction > 1 ? build_dim(b, source, 1) : 0;
    x = build_attention(b, "attention.self", query, key, value, GRAPH_NONE, GRAPH_NONE, attention);
    return build_linear(b, "attention.output.dense", x, hidden, true);
}

/* MLP with a depthwise convolution between its two matrices (Mix-FFN). */
static tensor_id mix_ffn(struct build *b, const struct stage *stage, tensor_id x)
{
    const struct transformer_segformer *sizes = stage->sizes;
    int64_t hidden = sizes->hidden[stage->number];
    int64_t wide = hidden * sizes->ratios[stage->number];
    struct build_conv conv = {
        .channels = wide, .kernel = 3, .pad = 1, .groups = -1, .has_bias = true};
    x = build_linear(b, "mlp.dense1", x, wide, true);
    x = to_image(b, "mlp.image", x, stage->height, stage->width);
    x = to_tokens(b, "mlp.tokens", build_conv(b, "mlp.dwconv", x, conv));
    x = build_op(b, sizes->activation, "mlp.intermediate_act_fn", x);
    return build_linear(b, "mlp.dense2", x, hidden, true);
}

/* Returns the input of the next stage. */
static tensor_id add_stage(struct build *b, struct stage *stage, tensor_id image)
{
    const struct transformer_segformer *sizes = stage->sizes;
    static const char *const NORMS[] = {"layer_norm.0", "layer_norm.1", "layer_norm.2",
                                        "layer_norm.3"};
    int number = stage->number;
    struct build_conv conv = {.channels = sizes->hidden[number],
                              .kernel = (int32_t)sizes->patches[number],
                              .stride = (int32_t)sizes->strides[number],
                              .pad = (int32_t)sizes->patches[number] / 2,
                              .has_bias = true};
    build_scope(b, "encoder.patch_embeddings.%d.", number);
    tensor_id x = build_conv(b, "proj", image, conv);
    stage->height = build_dim(b, x, 2);
    stage->width = build_dim(b, x, 3);
    x = block_norm(b, "layer_norm", to_tokens(b, "tokens", x));
    for (int64_t i = 0; i < sizes->depths[number]; i++) {
        build_scope(b, "encoder.block.%d.%lld.", number, (long long)i);
        tensor_id out = segformer_attention(b, stage, block_norm(b, "layer_norm_1", x));
        x = build_binary(b, GRAPH_ADD, "add", out, x);
        out = mix_ffn(b, stage, block_norm(b, "layer_norm_2", x));
        x = build_binary(b, GRAPH_ADD, "add_1", out, x);
    }
    build_scope(b, "encoder.");
    x = block_norm(b, NORMS[number], x);
    return to_image(b, "image", x, stage->height, stage->width);
}

/* All stages at the resolution of the first. */
static tensor_id segment(struct build *b, const struct transformer_segformer *sizes,
                         const tensor_id *stages)
{
    tensor_id joined[SEGFORMER_STAGES];
    int64_t height = build_dim(b, stages[0], 2), width = build_dim(b, stages[0], 3);
    int64_t batch = build_dim(b, stages[0], 0), hidden = sizes->head_hidden;
    for (int i = SEGFORMER_STAGES - 1; i >= 0; i--) {
        build_scope(b, "decode_head.linear_c.%d.", i);
        tensor_id x = build_linear(b, "proj", to_tokens(b, "tokens", stages[i]), hidden, true);
        x = to_image(b, "image", x, build_dim(b, stages[i], 2), build_dim(b, stages[i], 3));
        joined[SEGFORMER_STAGES - 1 - i] =
            i == 0 ? x : build_move(b, "resize", x, DIMS(batch, hidden, height, width));
    }
    build_scope(b, "decode_head.");
    tensor_id x = build_concat(b, "concat", 1, joined, SEGFORMER_STAGES);
    x = build_conv(b, "linear_fuse", x, (struct build_conv){.channels = hidden, .kernel = 1});
    x = build_op(b, GRAPH_RELU, "activation", build_batch_norm(b, "batch_norm", x));
    return build_conv(
        b, "classifier", x,
        (struct build_conv){.channels = sizes->classes, .kernel = 1, .has_bias = true});
}

tensor_id transformer_segformer(struct build *b, const struct transformer_segformer *sizes,
                                const struct graph_options *options)
{
    tensor_id stages[SEGFORMER_STAGES];
    tensor_id x = block_image_input(b, sizes->channels, options);
    for (int i = 0; i < SEGFORMER_STAGES; i++) {
        struct stage stage = {.sizes = sizes, .number = i};
        x = stages[i] = add_stage(b, &stage, x);
    }
    build_root(b);
    if (sizes->classes == 0)
        return x;
    if (sizes->head_hidden > 0)
        return segment(b, sizes, stages);
    x = build_flatten(b, "flatten", build_global_pool(b, "mean", x));
    return build_linear(b, "classifier", x, sizes->classes, true);
}

/* ---- DETR: the ResNet ---- */

/* Frozen batch norms: their statistics are not parameters. */
static tensor_id frozen_norm(struct build *b, const char *name, tensor_id x)
{
    tensor_id out = build_batch_norm(b, name, x);
    struct graph *graph = b->graph;
    if (out < 0)
        return out;
    const struct graph_node *node = &graph->nodes[graph->node_count - 1];
    const tensor_id *inputs = graph_inputs(graph, node);
    for (uint32_t i = 1; i < node->input_count; i++)
        graph->tensors[inputs[i]].role = GRAPH_BUFFER;
    return out;
}

static tensor_id conv_norm(struct build *b, const char *conv_name, const char *norm_name,
                           tensor_id x, struct build_conv conv)
{
    return frozen_norm(b, norm_name, build_conv(b, conv_name, x, conv));
}

static tensor_id bottleneck(struct build *b, tensor_id x, int64_t width, int32_t stride)
{
    tensor_id shortcut = x;
    struct build_conv narrow = {.channels = width, .kernel = 1};
    struct build_conv middle = {.channels = width, .kernel = 3, .stride = stride, .pad = 1};
    struct build_conv wide = {.channels = 4 * width, .kernel = 1};
    struct build_conv down = {.channels = 4 * width, .kernel = 1, .stride = stride};
    tensor_id out = build_op(b, GRAPH_RELU, "act1", conv_norm(b, "conv1", "bn1", x, narrow));
    out = build_op(b, GRAPH_RELU, "act2", conv_norm(b, "conv2", "bn2", out, middle));
    out = conv_norm(b, "conv3", "bn3", out, wide);
    if (stride > 1 || build_dim(b, x, 1) != 4 * width)
        shortcut = conv_norm(b, "downsample.0", "downsample.1", x, down);
    return build_op(b, GRAPH_RELU, "act3", build_binary(b, GRAPH_ADD, "add", out, shortcut));
}

static tensor_id resnet(struct build *b, const struct transformer_detr *detr, tensor_id x)
{
    struct build_conv first = {.channels = 64, .kernel = 7, .stride = 2, .pad = 3};
    struct build_pool pool = {.op = GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1};
    build_scope(b, "model.backbone.");
    x = build_op(b, GRAPH_RELU, "act1", conv_norm(b, "conv1", "bn1", x, first));
    x = build_pool(b, "maxpool", x, pool);
    for (int stage = 0; stage < 4; stage++)
        for (int64_t i = 0; i < detr->depths[stage]; i++) {
            build_scope(b, "model.backbone.layer%d.%lld.", stage + 1, (long long)i);
            x = bottleneck(b, x, (int64_t)64 << stage, stage > 0 && i == 0 ? 2 : 1);
        }
    return x;
}

/* ---- DETR: the transformer ---- */

static const struct block_names DETR_NAMES = {
    .attention = {"self_attn_layer_norm", "self_attn.q_proj", "self_attn.k_proj",
                  "self_attn.v_proj", "self_attn", "self_attn.o_proj", "self_attn.add"},
    .feed_forward = {"final_layer_norm", "mlp.fc1", "mlp.activation", "mlp.fc2", "mlp.add"},
};
static const struct block_attention_names DETR_CROSS = {
    "encoder_attn_layer_norm", "encoder_attn.q_proj", "encoder_attn.k_proj",
    "encoder_attn.v_proj",     "encoder_attn",        "encoder_attn.o_proj",
    "encoder_attn.add"};

static tensor_id decode_queries(struct build *b, const struct transformer_detr *detr, int64_t batch,
                                tensor_id states)
{
    int64_t hidden = detr->decoder.hidden;
    struct block block = block_of(&detr->decoder);
    struct block_pass cross = {.cross_tokens = build_dim(b, states, 1), .cross_states = states};
    build_scope(b, "model.");
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "query_position_embeddings.weight",
                                   DIMS(detr->queries, hidden));
    tensor_id x = build_rearrange(b, "queries", table, DIMS(batch, detr->queries, hidden));
    block.is_post_norm = true;
    for (int i = 0; i < detr->decoder.layers; i++) {
        build_scope(b, "model.decoder.layers.%d.", i);
        b->layer = detr->encoder.layers + i;
        x = block_attention(b, &block, &DETR_NAMES.attention, &(struct block_pass){0}, x);
        x = block_attention(b, &block, &DETR_CROSS, &cross, x);
        x = block_feed_forward(b, &block, &DETR_NAMES.feed_forward, x);
    }
    b->layer = GRAPH_NONE;
    build_root(b);
    return block_norm(b, "model.decoder.layernorm", x);
}

tensor_id transformer_detr(struct build *b, const struct transformer_detr *detr,
                           const struct graph_options *options)
{
    int64_t hidden = detr->encoder.hidden;
    struct block block = block_of(&detr->encoder);
    struct build_conv project = {.channels = hidden, .kernel = 1, .has_bias = true};
    tensor_id x = resnet(b, detr, block_image_input(b, detr->channels, options));
    block.is_post_norm = true;
    build_root(b);
    x = to_tokens(b, "model.flatten", build_conv(b, "model.input_projection", x, project));
    x = block_stack(b, &block, &DETR_NAMES, &(struct block_pass){0}, detr->encoder.layers,
                    "model.encoder.layers.", x);
    x = decode_queries(b, detr, options->batch, x);
    if (detr->classes == 0)
        return x;
    build_output(b, build_linear(b, "class_labels_classifier", x, detr->classes + 1, true));
    x = build_linear(b, "bbox_predictor.layers.0", x, hidden, true);
    x = build_op(b, GRAPH_RELU, "bbox_predictor.relu", x);
    x = build_linear(b, "bbox_predictor.layers.1", x, hidden, true);
    x = build_op(b, GRAPH_RELU, "bbox_predictor.relu_1", x);
    x = build_linear(b, "bbox_predictor.layers.2", x, 4, true);
    return build_op(b, GRAPH_SIGMOID, "sigmoid", x);
}

/* ---- CLIP ---- */

static const struct block_names CLIP_NAMES = {
    .attention = {"layer_norm1", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                  "self_attn", "self_attn.out_proj", "self_attn.add"},
    .feed_forward = {"layer_norm2", "mlp.fc1", "mlp.activation_fn", "mlp.fc2", "mlp.add"},
};

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

/* The states of all tokens, also of SigLIP. */
static tensor_id text_states(struct build *b, const struct transformer_tower *tower, bool is_causal,
                             int64_t vocabulary, int64_t positions,
                             const struct graph_options *options)
{
    struct block block = block_of(tower);
    tensor_id ids = block_text_input(b, options->batch, options->tokens);
    block.is_causal = is_causal;
    b->component = DECODER_EMBEDDING;
    build_scope(b, "text_model.embeddings.");
    tensor_id x = build_embedding(b, "token_embedding", ids, vocabulary, tower->hidden);
    tensor_id at =
        block_positions(b, "position_embedding", options->tokens, 0, positions, tower->hidden);
    x = build_binary(b, GRAPH_ADD, "add", x, at);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &CLIP_NAMES, &(struct block_pass){0}, tower->layers,
                    "text_model.encoder.layers.", x);
    return block_norm(b, "text_model.final_layer_norm", x);
}

/* The output is the state of the last token, unless all are wanted. */
static tensor_id encode_text(struct build *b, const struct transformer_clip *clip,
                             const struct graph_options *options)
{
    tensor_id x = text_states(b, &clip->text, true, clip->vocabulary, clip->positions, options);
    if (clip->has_all_states)
        return x;
    x = block_first_token(b, "text_model.last_token", x);
    return project(b, clip, "text_projection", x);
}

static tensor_id encode_image(struct build *b, const struct transformer_clip *clip,
                              const struct graph_options *options)
{
    struct block block = block_of(&clip->vision);
    struct transformer_patches patches = {{"patch_embedding", "flatten", "transpose",
                                           "class_embedding", "class.expand",
                                           "position_embedding.weight"},
                                          clip->image,
                                          clip->patch,
                                          clip->vision.hidden,
                                          .has_bias = false};
    b->component = DECODER_EMBEDDING;
    tensor_id x = block_image_input(b, clip->channels, options);
    build_scope(b, "vision_model.embeddings.");
    x = transformer_patches(b, &patches, x);
    b->component = DECODER_COMPONENT_COUNT;
    build_root(b);
    x = block_norm(b, "vision_model.pre_layrnorm", x); /* sic */
    x = block_stack(b, &block, &CLIP_NAMES, &(struct block_pass){0}, clip->vision.layers,
                    "vision_model.encoder.layers.", x);
    x = block_first_token(b, "vision_model.class_token", x);
    x = block_norm(b, "vision_model.post_layernorm", x);
    return project(b, clip, "visual_projection", x);
}

tensor_id transformer_clip(struct build *b, const struct transformer_clip *clip,
                           const struct graph_options *options)
{
    tensor_id text = GRAPH_NONE, image = GRAPH_NONE;
    if (clip->has_text)
        text = encode_text(b, clip, options);
    if (clip->has_image)
        image = encode_image(b, clip, options);
    if (text < 0 || image < 0)
        return text >= 0 ? text : image;
    b->component = DECODER_HEAD;
    tensor_id scale = build_tensor(b, GRAPH_PARAMETER, "logit_scale", DIMS(1));
    image = build_rearrange(b, "images.transpose", image, DIMS(clip->projection, options->batch));
    tensor_id logits = build_matmul(b, "logits", text, image);
    return build_binary(b, GRAPH_MUL, "logits.scale", logits, scale);
}

/* ---- SigLIP ---- */

static tensor_id siglip_text(struct build *b, const struct transformer_siglip *siglip,
                             const struct graph_options *options)
{
    tensor_id x =
        text_states(b, &siglip->text, false, siglip->vocabulary, siglip->positions, options);
    x = block_first_token(b, "text_model.last_token", x);
    return build_linear(b, "text_model.head", x, siglip->projection, true);
}

/* One query, a parameter, attends to all patches. */
static tensor_id pool_patches(struct build *b, const struct transformer_siglip *siglip, tensor_id x)
{
    const struct transformer_tower *tower = &siglip->vision;
    struct block block = block_of(tower);
    int64_t batch = build_dim(b, x, 0), hidden = tower->hidden;
    static const struct block_feed_forward_names FEED_FORWARD = {
        "layernorm", "mlp.fc1", "mlp.activation_fn", "mlp.fc2", "mlp.add"};
    build_scope(b, "vision_model.head.");
    tensor_id query = build_tensor(b, GRAPH_PARAMETER, "probe", DIMS(1, 1, hidden));
    query = build_rearrange(b, "probe.repeat", query, DIMS(batch, 1, hidden));
    query = build_linear(b, "attention.query", query, hidden, true);
    struct graph_attention attention = build_heads(b, query, tower->heads, hidden);
    attention.cross_tokens = build_dim(b, x, 1);
    tensor_id key = build_linear(b, "attention.key", x, hidden, true);
    tensor_id value = build_linear(b, "attention.value", x, hidden, true);
    x = build_attention(b, "attention", query, key, value, GRAPH_NONE, GRAPH_NONE, attention);
    x = build_linear(b, "attention.out_proj", x, hidden, true);
    x = block_feed_forward(b, &block, &FEED_FORWARD, x);
    x = block_first_token(b, "pooled", x);
    build_root(b);
    return x;
}

static tensor_id siglip_image(struct build *b, const struct transformer_siglip *siglip,
                              const struct graph_options *options)
{
    struct block block = block_of(&siglip->vision);
    struct transformer_patches patches = {
        {"patch_embedding", "flatten", "transpose", NULL, NULL, "position_embedding.weight"},
        siglip->image,
        siglip->patch,
        siglip->vision.hidden,
        .has_bias = true,
        .is_cropped = true};
    b->component = DECODER_EMBEDDING;
    tensor_id x = block_image_input(b, siglip->channels, options);
    build_scope(b, "vision_model.embeddings.");
    x = transformer_patches(b, &patches, x);
    b->component = DECODER_COMPONENT_COUNT;
    build_root(b);
    x = block_stack(b, &block, &CLIP_NAMES, &(struct block_pass){0}, siglip->vision.layers,
                    "vision_model.encoder.layers.", x);
    x = block_norm(b, "vision_model.post_layernorm", x);
    return siglip->has_pooling ? pool_patches(b, siglip, x) : x;
}

tensor_id transformer_siglip(struct build *b, const struct transformer_siglip *siglip,
                             const struct graph_options *options)
{
    tensor_id text = GRAPH_NONE, image = GRAPH_NONE;
    b->graph->batch = (double)options->batch;
    if (siglip->has_text)
        text = siglip_text(b, siglip, options);
    if (siglip->has_image)
        image = siglip_image(b, siglip, options);
    if (text < 0 || image < 0)
        return text >= 0 ? text : image;
    tensor_id scale = build_tensor(b, GRAPH_PARAMETER, "logit_scale", DIMS(1));
    tensor_id bias = build_tensor(b, GRAPH_PARAMETER, "logit_bias", DIMS(1));
    image = build_rearrange(b, "images.transpose", image, DIMS(siglip->projection, options->batch));
    tensor_id logits = build_matmul(b, "logits", text, image);
    logits = build_binary(b, GRAPH_MUL, "logits.scale", logits, scale);
    return build_binary(b, GRAPH_ADD, "logits.bias", logits, bias);
}
