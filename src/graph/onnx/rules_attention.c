/* Attention as one operator: of ONNX (version 23), and of ONNX Runtime. */
#include "graph/onnx/rules.h"

static struct shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){.rank = (uint8_t)rank, .dims = {a, b, c, d}};
}

static int64_t part_of(int64_t whole, int64_t count)
{
    return count > 0 ? whole / count : 0;
}

/* Keys of earlier tokens: the last but one dimension of what lies in the cache. */
static int64_t earlier(const struct step *step, size_t input)
{
    const struct shape *past = step_shape(step, input);
    return past && past->rank == 4 ? past->dims[2] : 0;
}

/* ---- ONNX 23: (batch, tokens, heads x size) or (batch, heads, tokens, size) ---- */

struct lying {
    int64_t batch, heads, tokens, size;
};

static bool lies(const struct shape *shape, int64_t heads, struct lying *out)
{
    if (shape && shape->rank == 4)
        *out = (struct lying){shape->dims[0], shape->dims[1], shape->dims[2], shape->dims[3]};
    else if (shape && shape->rank == 3 && heads > 0)
        *out =
            (struct lying){shape->dims[0], heads, shape->dims[1], part_of(shape->dims[2], heads)};
    else
        return false;
    return true;
}

enum err rule_attention(struct step *step)
{
    int64_t heads = step_integer(step, "q_num_heads", 0);
    int64_t heads_kv = step_integer(step, "kv_num_heads", 0);
    struct lying q, k, v;
    if (!lies(step_shape(step, 0), heads, &q) || !lies(step_shape(step, 1), heads_kv, &k) ||
        !lies(step_shape(step, 2), heads_kv, &v))
        return ERR_OK;
    int64_t before = earlier(step, 4), all = before + k.tokens;
    step->made.as.attention = (struct graph_attention){
        .heads = q.heads,
        .heads_kv = k.heads,
        .key_size = q.size,
        .value_size = v.size,
        .tokens = q.tokens,
        .before = k.tokens == q.tokens ? before : 0,
        .others = k.tokens == q.tokens ? 0 : all,
        .sequences = q.batch,
        .is_causal = step_integer(step, "is_causal", 0) != 0,
    };
    if (v.size > INT32_MAX || q.heads > INT32_MAX)
        return step_fail(step, "its heads are too many or too wide");
    struct shape out = step_shape(step, 0)->rank == 4
                           ? shape_of(4, q.batch, q.heads, q.tokens, v.size)
                           : shape_of(3, q.batch, q.tokens, q.heads * v.size, 0);
    struct shape keys = shape_of(4, q.batch, k.heads, all, k.size);
    struct shape values = shape_of(4, q.batch, v.heads, all, v.size);
    struct shape scores = shape_of(4, q.batch, q.heads, q.tokens, all);
    enum err err = step_give(step, 0, 0, &out);
    if (!err)
        err = step_give(step, 1, 0, &keys);
    if (!err)
        err = step_give(step, 2, 0, &values);
    return err ? err : step_give(step, 3, 0, &scores);
}

/* ---- ONNX Runtime ---- */

static bool heads_are_sensible(int64_t heads)
{
    return heads > 0 && heads <= INT32_MAX;
}

/* The input times one matrix gives queries, keys and values; attention follows. */
enum err rule_packed_attention(struct step *step)
{
    static const uint8_t PRODUCT[] = {0, 1, 2},
                         REST[] = {4, 5}; /* the cache, a bias of the scores */
    const struct shape *in = step_shape(step, 0), *weight = step_shape(step, 1);
    int64_t heads = step_integer(step, "num_heads", 0), sizes[3];
    if (!in || !weight || in->rank != 3 || weight->rank != 2 || !heads_are_sensible(heads))
        return ERR_OK;
    if (step_list(step, "qkv_hidden_sizes", sizes, 3) != 3)
        sizes[0] = sizes[1] = sizes[2] = weight->dims[1] / 3;
    const struct shape *past = step_shape(step, 4); /* (2, batch, heads, tokens, size) */
    int64_t before = past && past->rank == 5 ? past->dims[3] : 0;
    step->made.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads,
        .key_size = part_of(sizes[0], heads),
        .value_size = part_of(sizes[2], heads),
        .tokens = in->dims[1],
        .before = before,
        .sequences = in->dims[0],
        .is_causal = step_integer(step, "unidirectional", 0) != 0,
    };
    step->before.op = GRAPH_LINEAR;
    step->before.inputs = PRODUCT;
    step->before.input_count = sizeof PRODUCT;
    step->before.shape = shape_of(3, in->dims[0], in->dims[1], weight->dims[1], 0);
    step->order = REST;
    step->order_count = sizeof REST;
    struct shape out = shape_of(3, in->dims[0], in->dims[1], sizes[2], 0);
    struct shape present = {
        .rank = 5, .dims = {2, in->dims[0], heads, before + in->dims[1], part_of(sizes[0], heads)}};
    enum err err = step_give(step, 0, 0, &out);
    return err ? err : step_give(step, 1, 0, &present);
}

enum err rule_multi_head_attention(struct step *step)
{
    const struct shape *q = step_shape(step, 0), *k = step_shape(step, 1), *v = step_shape(step, 2);
    int64_t heads = step_integer(step, "num_heads", 0);
    if (!q || !k || !v || q->rank != 3 || k->rank < 3 || v->rank < 3 || !heads_are_sensible(heads))
        return ERR_OK;
    /* Keys and values of another sequence come as (batch, heads, tokens, size). */
    int64_t tokens_k = k->rank == 4 ? k->dims[2] : k->dims[1];
    int64_t width_v = v->rank == 4 ? v->dims[3] : part_of(v->dims[2], heads);
    int64_t before = earlier(step, 6);
    bool is_own = tokens_k == q->dims[1];
    step->made.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads,
        .key_size = part_of(q->dims[2], heads),
        .value_size = width_v,
        .tokens = q->dims[1],
        .before = is_own ? before : 0,
        .others = is_own ? 0 : tokens_k + before,
        .sequences = q->dims[0],
        .is_causal = step_integer(step, "unidirectional", 0) != 0,
    };
    if (width_v > INT32_MAX)
        return step_fail(step, "its values are too wide");
    struct shape out = shape_of(3, q->dims[0], q->dims[1], heads * width_v, 0);
    struct shape keys =
        shape_of(4, q->dims[0], heads, before + tokens_k, part_of(q->dims[2], heads));
    struct shape values = shape_of(4, q->dims[0], heads, before + tokens_k, width_v);
    enum err err = step_give(step, 0, 0, &out);
    if (!err)
        err = step_give(step, 1, 0, &keys);
    return err ? err : step_give(step, 2, 0, &values);
}

enum err rule_group_attention(struct step *step)
{
    const struct shape *q = step_shape(step, 0), *k = step_shape(step, 1);
    int64_t heads = step_integer(step, "num_heads", 0);
    int64_t heads_kv = step_integer(step, "kv_num_heads", 0);
    if (!q || q->rank != 3 || !heads_are_sensible(heads) || !heads_are_sensible(heads_kv))
        return ERR_OK;
    /* Without keys of their own, queries, keys and values lie side by side in the first. */
    int64_t size = part_of(q->dims[2], k ? heads : heads + 2 * heads_kv);
    int64_t before = earlier(step, 3);
    if (size > INT32_MAX)
        return step_fail(step, "its heads are too wide");
    step->made.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads_kv,
        .key_size = size,
        .value_size = size,
        .tokens = q->dims[1],
        .before = before,
        .sequences = q->dims[0],
        .window = step_integer(step, "local_window_size", 0) > 0
                      ? step_integer(step, "local_window_size", 0)
                      : 0,
        .is_causal = true,
    };
    struct shape out = shape_of(3, q->dims[0], q->dims[1], heads * size, 0);
    struct shape cache = shape_of(4, q->dims[0], heads_kv, before + q->dims[1], size);
    enum err err = step_give(step, 0, 0, &out);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_give(step, i, 0, &cache);
    return err;
}
