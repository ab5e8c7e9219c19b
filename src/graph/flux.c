/* The transformer of Flux: first blocks in which image and text have weights of their own and attend together, then
 * blocks of one stream whose attention and feed-forward are parallel.  A step modulates every norm by the time. */
#include "graph/diffusion.h"

#include "core/text.h"
#include "graph/blocks.h"

enum {
    TIME_FEATURES = 256,
    TEXT_TOKENS = 512,
    PARTS_OF_DOUBLE = 6,
    PARTS_OF_SINGLE = 3,
    WIDENING = 4
};

struct flux {
    struct build *b;
    const struct diffusion_flux *sizes;
    int64_t batch, hidden, image_tokens;
    tensor_id time; /* after its activation */
};

/* The weights that modulate a norm; each part is (batch, 1, hidden). */
static tensor_id modulation(const struct flux *flux, const char *name, int parts)
{
    return build_linear(flux->b, name, flux->time, parts * flux->hidden, true);
}

enum { NAME_SIZE = 64 };

static tensor_id part_of(const struct flux *flux, const char *of, const char *what,
                         tensor_id modulation)
{
    char name[NAME_SIZE];
    chars_format(name, "%s.%s", of, what);
    return build_rearrange(flux->b, name, modulation, DIMS(flux->batch, 1, flux->hidden));
}

static tensor_id combine(const struct flux *flux, enum graph_op op, const char *of,
                         const char *what, tensor_id x, tensor_id y)
{
    char name[NAME_SIZE];
    chars_format(name, "%s.%s", of, what);
    return build_binary(flux->b, op, name, x, y);
}

/* A norm without weights, scaled and shifted. */
static tensor_id modulated_norm(const struct flux *flux, const char *name, tensor_id x,
                                tensor_id modulation)
{
    struct graph_node norm = {.op = GRAPH_LAYER_NORM, .name = name};
    x = build_like(flux->b, &norm, &x, 1, x);
    x = combine(flux, GRAPH_MUL, name, "scaled", x, part_of(flux, name, "scale", modulation));
    return combine(flux, GRAPH_ADD, name, "shifted", x, part_of(flux, name, "shift", modulation));
}

static tensor_id gated_add(const struct flux *flux, const char *name, tensor_id x,
                           tensor_id modulation, tensor_id stream)
{
    x = combine(flux, GRAPH_MUL, name, "gated", x, part_of(flux, name, "gate", modulation));
    return build_binary(flux->b, GRAPH_ADD, name, x, stream);
}

/* ---- attention ---- */

struct qkv {
    tensor_id query, key, value;
};
struct qkv_names {
    const char *query, *key, *value, *query_norm, *key_norm;
};
static const struct qkv_names IMAGE = {"attn.to_q", "attn.to_k", "attn.to_v", "attn.norm_q",
                                       "attn.norm_k"};
static const struct qkv_names TEXT = {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj",
                                      "attn.norm_added_q", "attn.norm_added_k"};

/* One weight for all heads. */
static tensor_id head_norm(const struct flux *flux, const char *name, tensor_id x)
{
    char weight_name[NAME_SIZE];
    chars_format(weight_name, "%s.weight", name);
    struct graph_node norm = {.op = GRAPH_RMS_NORM, .name = name};
    tensor_id weight =
        build_tensor(flux->b, GRAPH_PARAMETER, weight_name, DIMS(flux->sizes->head_size));
    return build_like(flux->b, &norm, (tensor_id[]){x, weight}, 2, x);
}

static struct qkv project(const struct flux *flux, const struct qkv_names *names, tensor_id x)
{
    struct build *b = flux->b;
    return (struct qkv){
        head_norm(flux, names->query_norm, build_linear(b, names->query, x, flux->hidden, true)),
        head_norm(flux, names->key_norm, build_linear(b, names->key, x, flux->hidden, true)),
        build_linear(b, names->value, x, flux->hidden, true)};
}

static tensor_id rotate(struct build *b, const char *name, tensor_id x)
{
    return build_op(b, GRAPH_ROTATION, name, x);
}

static tensor_id attend(const struct flux *flux, const struct qkv *qkv)
{
    struct build *b = flux->b;
    tensor_id query = rotate(b, "rotary_query", qkv->query);
    tensor_id key = rotate(b, "rotary_key", qkv->key);
    return build_attention(b, "attn", query, key, qkv->value, GRAPH_NONE, GRAPH_NONE,
                           build_heads(b, query, flux->sizes->heads, flux->hidden));
}

static tensor_id join(struct build *b, const char *name, tensor_id text, tensor_id image)
{
    return build_concat(b, name, 1, (tensor_id[]){text, image}, 2);
}

/* ---- blocks ---- */

/* Named SCOPE.net.0.proj, SCOPE.net.0.gelu and SCOPE.net.2. */
static tensor_id feed_forward(const struct flux *flux, const char *scope, tensor_id x)
{
    char up[NAME_SIZE], gelu[NAME_SIZE], down[NAME_SIZE];
    chars_format(up, "%s.net.0.proj", scope);
    chars_format(gelu, "%s.net.0.gelu", scope);
    chars_format(down, "%s.net.2", scope);
    x = build_linear(flux->b, up, x, WIDENING * flux->hidden, true);
    x = build_op(flux->b, GRAPH_GELU, gelu, x);
    return build_linear(flux->b, down, x, flux->hidden, true);
}

static void add_double_block(const struct flux *flux, tensor_id *image, tensor_id *text)
{
    struct build *b = flux->b;
    int64_t image_dims[] = {flux->batch, flux->image_tokens, flux->hidden};
    int64_t text_dims[] = {flux->batch, TEXT_TOKENS, flux->hidden};
    tensor_id of_image = modulation(flux, "norm1.linear", PARTS_OF_DOUBLE);
    tensor_id of_text = modulation(flux, "norm1_context.linear", PARTS_OF_DOUBLE);
    struct qkv own = project(flux, &IMAGE, modulated_norm(flux, "norm1", *image, of_image));
    struct qkv other = project(flux, &TEXT, modulated_norm(flux, "norm1_context", *text, of_text));
    struct qkv all = {join(b, "queries", other.query, own.query),
                      join(b, "keys", other.key, own.key),
                      join(b, "values", other.value, own.value)};
    tensor_id both = attend(flux, &all);
    tensor_id x = build_rearrange(b, "attn.image", both, 3, image_dims);
    x = build_linear(b, "attn.to_out.0", x, flux->hidden, true);
    *image = gated_add(flux, "add", x, of_image, *image);
    x = modulated_norm(flux, "norm2", *image, of_image);
    x = feed_forward(flux, "ff", x);
    *image = gated_add(flux, "add_1", x, of_image, *image);
    x = build_rearrange(b, "attn.text", both, 3, text_dims);
    x = build_linear(b, "attn.to_add_out", x, flux->hidden, true);
    *text = gated_add(flux, "add_2", x, of_text, *text);
    x = modulated_norm(flux, "norm2_context", *text, of_text);
    x = feed_forward(flux, "ff_context", x);
    *text = gated_add(flux, "add_3", x, of_text, *text);
}

static tensor_id add_single_block(const struct flux *flux, tensor_id stream)
{
    struct build *b = flux->b;
    tensor_id weights = modulation(flux, "norm.linear", PARTS_OF_SINGLE);
    tensor_id x = modulated_norm(flux, "norm", stream, weights);
    tensor_id wide = build_linear(b, "proj_mlp", x, WIDENING * flux->hidden, true);
    wide = build_op(b, GRAPH_GELU, "act_mlp", wide);
    struct qkv qkv = project(flux, &IMAGE, x);
    tensor_id parts[] = {attend(flux, &qkv), wide};
    x = build_linear(b, "proj_out", build_concat(b, "parts", 2, parts, 2), flux->hidden, true);
    return gated_add(flux, "add", x, weights, stream);
}

/* ---- the model ---- */

static tensor_id embed(const struct flux *flux, const char *scope, const char *input,
                       int64_t features)
{
    struct build *b = flux->b;
    tensor_id x = build_input(b, input, GRAPH_FLOAT, DIMS(flux->batch, features));
    build_scope(b, "time_text_embed.%s.", scope);
    x = build_linear(b, "linear_1", x, flux->hidden, true);
    x = build_op(b, GRAPH_SILU, "act", x);
    x = build_linear(b, "linear_2", x, flux->hidden, true);
    build_root(b);
    return x;
}

static tensor_id embed_conditions(const struct flux *flux)
{
    struct build *b = flux->b;
    tensor_id x = embed(flux, "timestep_embedder", "timestep_features", TIME_FEATURES);
    if (flux->sizes->has_guidance)
        x = build_binary(b, GRAPH_ADD, "add_guidance", x,
                         embed(flux, "guidance_embedder", "guidance_features", TIME_FEATURES));
    x = build_binary(
        b, GRAPH_ADD, "add_text", x,
        embed(flux, "text_embedder", "pooled_projections", flux->sizes->pooled_features));
    return build_op(b, GRAPH_SILU, "conditions.act", x);
}

tensor_id diffusion_flux(struct build *b, const struct diffusion_flux *sizes, int64_t batch,
                         int64_t tokens)
{
    struct flux flux = {.b = b,
                        .sizes = sizes,
                        .batch = batch,
                        .hidden = sizes->heads * sizes->head_size,
                        .image_tokens = tokens};
    tensor_id image =
        build_input(b, "hidden_states", GRAPH_FLOAT, DIMS(batch, tokens, sizes->in_channels));
    tensor_id text = build_input(b, "encoder_hidden_states", GRAPH_FLOAT,
                                 DIMS(batch, TEXT_TOKENS, sizes->text_features));
    b->graph->batch = (double)batch;
    flux.time = embed_conditions(&flux);
    image = build_linear(b, "x_embedder", image, flux.hidden, true);
    text = build_linear(b, "context_embedder", text, flux.hidden, true);
    for (int i = 0; i < sizes->layers; i++) {
        build_scope(b, "transformer_blocks.%d.", i);
        add_double_block(&flux, &image, &text);
    }
    build_root(b);
    tensor_id stream = join(b, "streams", text, image);
    for (int i = 0; i < sizes->single_layers; i++) {
        build_scope(b, "single_transformer_blocks.%d.", i);
        stream = add_single_block(&flux, stream);
    }
    build_root(b);
    image = build_rearrange(b, "image", stream, DIMS(batch, tokens, flux.hidden));
    image = modulated_norm(&flux, "norm_out", image, modulation(&flux, "norm_out.linear", 2));
    return build_linear(b, "proj_out", image, sizes->out_channels, true);
}
