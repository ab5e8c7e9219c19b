/* Shape rules of matrix products, recurrence and attention. */
#include <string.h>

#include "graph/onnx/operators.h"

static struct shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){.rank = (uint8_t)rank, .dims = {a, b, c, d}};
}

/* A product with a weight is a linear layer. */
static void choose_op(struct step *step)
{
    bool left = operand_is_weight(step_input(step, 0));
    bool right = operand_is_weight(step_input(step, step_order_at(step, 1)));
    step->emitted.op = left != right ? GRAPH_LINEAR : GRAPH_MATMUL;
}

/* ---- matmul ---- */

/* Broadcasts the dimensions before the last two; false when they are not compatible. */
static bool broadcast_batches(struct shape a, struct shape b, struct shape *out)
{
    a.rank -= 2;
    b.rank -= 2;
    *out = a;
    return shape_broadcast(out, &b);
}

static void swap_last(struct shape *shape)
{
    if (shape->rank < 2)
        return;
    int64_t last = shape->dims[shape->rank - 1];
    shape->dims[shape->rank - 1] = shape->dims[shape->rank - 2];
    shape->dims[shape->rank - 2] = last;
}

/* Like numpy.matmul: a vector is a row on the left and a column on the right, and that dimension is removed. */
static enum err multiply(struct step *step, struct shape a, struct shape b)
{
    bool is_row = a.rank == 1, is_column = b.rank == 1;
    struct shape out;
    if (a.rank == 0 || b.rank == 0)
        return step_fail(step, "an input is a scalar, not a matrix");
    if (is_row)
        a = (struct shape){.rank = 2, .dims = {1, a.dims[0]}};
    if (is_column)
        b = (struct shape){.rank = 2, .dims = {b.dims[0], 1}};
    if (a.dims[a.rank - 1] != b.dims[b.rank - 2] || !broadcast_batches(a, b, &out))
        return step_fail(step, "inner dimensions differ: %lld and %lld",
                         (long long)a.dims[a.rank - 1], (long long)b.dims[b.rank - 2]);
    if (!is_row)
        out.dims[out.rank++] = a.dims[a.rank - 2];
    if (!is_column)
        out.dims[out.rank++] = b.dims[b.rank - 1];
    return step_set_result(step, &out);
}

enum err rule_matmul(struct step *step)
{
    const struct shape *a = step_shape(step, 0), *b = step_shape(step, step_order_at(step, 1));
    choose_op(step);
    return a && b ? multiply(step, *a, *b) : ERR_OK;
}

/* An N x K matrix of few bits per element, packed in blocks: its bytes are those of the file. */
enum err rule_matmul_bits(struct step *step)
{
    const struct shape *in = step_shape(step, 0);
    struct operand *packed = step_input(step, 1);
    int64_t rows = step_int(step, "N", 0), columns = step_int(step, "K", 0);
    if (!in || in->rank == 0 || !packed || !packed->tensor)
        return ERR_OK;
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX ||
        in->dims[in->rank - 1] != columns)
        return step_fail(step, "N or K does not match its input");
    struct operand *root = packed->root ? packed->root : packed;
    root->stored_bytes = (double)packed->tensor->elements;
    root->shape = (struct shape){.rank = 2, .dims = {rows, columns}};
    root->data = NULL; /* packed elements do not correspond to this shape */
    root->is_data_read = true;
    struct shape out = *in;
    out.dims[out.rank - 1] = rows;
    return step_set_result(step, &out);
}

/* (rows, batches..., columns), as before the transpose of heads, to (batches..., rows, columns). */
static void move_rows_inside(struct shape *shape)
{
    if (shape->rank < 3)
        return;
    int64_t rows = shape->dims[0];
    int last = shape->rank - 2;
    memmove(shape->dims, shape->dims + 1, (size_t)last * sizeof shape->dims[0]);
    shape->dims[last] = rows;
}

enum err rule_fused_matmul(struct step *step)
{
    const struct shape *first = step_shape(step, 0), *second = step_shape(step, 1);
    choose_op(step);
    if (!first || !second)
        return ERR_OK;
    struct shape a = *first, b = *second;
    if (step_int(step, "transBatchA", 0))
        move_rows_inside(&a);
    if (step_int(step, "transBatchB", 0))
        move_rows_inside(&b);
    if (step_int(step, "transA", 0))
        swap_last(&a);
    if (step_int(step, "transB", 0))
        swap_last(&b);
    step->inner = a.rank ? a.dims[a.rank - 1] : 0;
    return multiply(step, a, b);
}

enum err rule_gemm(struct step *step)
{
    const struct shape *first = step_shape(step, 0);
    const struct shape *second = step_shape(step, step_order_at(step, 1));
    choose_op(step);
    if (!first || !second)
        return ERR_OK;
    if (first->rank != 2 || second->rank != 2)
        return step_fail(step, "an input is not a matrix");
    struct shape a = *first, b = *second;
    if (step_int(step, "transA", 0)) {
        swap_last(&a);
        step->inner = a.dims[1];
    }
    if (step_int(step, "transB", 0))
        swap_last(&b);
    return multiply(step, a, b);
}

/* ---- einsum ---- */

enum { LETTERS = 128 };

struct equation {
    struct shape dims[8]; /* per input */
    int64_t sizes[LETTERS];
    int seen[LETTERS]; /* number of occurrences */
    struct slice left, right;
    bool has_right;
};

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static void split_equation(struct slice text, struct equation *equation)
{
    equation->left = text;
    for (size_t i = 0; i + 1 < text.length; i++)
        if (text.start[i] == '-' && text.start[i + 1] == '>') {
            equation->left.length = i;
            equation->right = (struct slice){text.start + i + 2, text.length - i - 2};
            equation->has_right = true;
            return;
        }
}

/* Sets the size of each letter; false: not supported (an ellipsis), or it does not match the inputs. */
static bool read_terms(const struct step *step, struct equation *equation)
{
    size_t input = 0;
    int place = 0;
    const struct shape *shape = step_shape(step, 0);
    for (size_t i = 0; i <= equation->left.length; i++) {
        char byte = (char)(i < equation->left.length ? equation->left.start[i] : ',');
        if (byte == ' ')
            continue;
        if (!shape || (byte == ',' && place != shape->rank))
            return false;
        if (byte == ',') {
            shape = step_shape(step, ++input);
            place = 0;
            continue;
        }
        if (!is_letter(byte) || place >= shape->rank)
            return false;
        int64_t size = shape->dims[place++], *known = &equation->sizes[(int)byte];
        *known = equation->seen[(int)byte]++ && *known != 1 ? *known : size;
    }
    return input == step->node->input_count;
}

static bool give_letter(struct shape *out, const struct equation *equation, char letter)
{
    if (out->rank == GRAPH_MAX_RANK || !equation->seen[(int)letter])
        return false;
    out->dims[out->rank++] = equation->sizes[(int)letter];
    return true;
}

static bool einsum_shape(const struct equation *equation, struct shape *out, bool *is_kept)
{
    bool is_right = true;
    for (size_t i = 0; i < equation->right.length && is_right; i++)
        if (equation->right.start[i] != ' ') {
            is_right = is_letter(equation->right.start[i]) &&
                       give_letter(out, equation, equation->right.start[i]);
            if (is_right)
                is_kept[(int)equation->right.start[i]] = true;
        }
    for (int i = 0; i < LETTERS && !equation->has_right && is_right; i++)
        if (equation->seen[i] == 1) { /* implicit output: letters that occur once */
            is_right = give_letter(out, equation, (char)i);
            is_kept[i] = true;
        }
    return is_right;
}

enum err rule_einsum(struct step *step)
{
    struct equation equation = {.right = {"", 0}};
    struct shape out = {0};
    bool is_kept[LETTERS] = {0};
    split_equation(step_string(step, "equation"), &equation);
    choose_op(step);
    if (!read_terms(step, &equation) || !einsum_shape(&equation, &out, is_kept))
        return ERR_OK;
    double summed = 1;
    for (int i = 0; i < LETTERS; i++)
        if (equation.seen[i] && !is_kept[i])
            summed *= (double)equation.sizes[i];
    step->inner = summed < 1e15 ? (int64_t)summed : 0;
    if (step->node->input_count == 1) {
        step->emitted.op = summed > 1 ? GRAPH_REDUCE : GRAPH_REARRANGE;
        step->inner = 0;
    } else if (summed <= 1) {
        step->emitted.op = GRAPH_MUL;
        step->inner = 0;
    }
    return step_set_result(step, &out);
}

/* ---- recurrence ---- */

enum err rule_recurrent(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *back = step_shape(step, 2);
    if (!in || in->rank != 3)
        return ERR_OK;
    int64_t directions = slice_is(step_string(step, "direction"), "bidirectional") ? 2 : 1;
    int64_t hidden = step_int(step, "hidden_size", back && back->rank == 3 ? back->dims[2] : 0);
    bool batch_first = step_int(step, "layout", 0) != 0;
    int64_t steps = in->dims[batch_first], batch = in->dims[!batch_first];
    if (hidden < 1 || hidden > INT32_MAX)
        return step_fail(step, "invalid hidden_size");
    struct shape all = batch_first ? shape_of(4, batch, steps, directions, hidden)
                                   : shape_of(4, steps, directions, batch, hidden);
    struct shape last = batch_first ? shape_of(3, batch, directions, hidden, 0)
                                    : shape_of(3, directions, batch, hidden, 0);
    step->emitted.as.recurrent =
        (struct graph_recurrent){.steps = steps, .hidden = hidden, .directions = directions};
    for (size_t i = 1; i < 3; i++)
        step_set_output(step, i, 0, &last);
    return step_set_result(step, &all);
}

/* ---- attention ---- */

static int64_t divided(int64_t whole, int64_t count)
{
    return count > 0 ? whole / count : 0;
}

/* Tokens in the KV cache: (batch, heads, tokens, size). */
static int64_t cached_tokens(const struct step *step, size_t input)
{
    const struct shape *past = step_shape(step, input);
    return past && past->rank == 4 ? past->dims[2] : 0;
}

/* ONNX 23: (batch, tokens, heads x size) or (batch, heads, tokens, size). */

struct qkv_layout {
    int64_t batch, heads, tokens, size;
};

static bool read_layout(const struct shape *shape, int64_t heads, struct qkv_layout *out)
{
    if (shape && shape->rank == 4)
        *out = (struct qkv_layout){shape->dims[0], shape->dims[1], shape->dims[2], shape->dims[3]};
    else if (shape && shape->rank == 3 && heads > 0)
        *out = (struct qkv_layout){shape->dims[0], heads, shape->dims[1],
                                   divided(shape->dims[2], heads)};
    else
        return false;
    return true;
}

enum err rule_attention(struct step *step)
{
    int64_t heads = step_int(step, "q_num_heads", 0);
    int64_t heads_kv = step_int(step, "kv_num_heads", 0);
    struct qkv_layout q, k, v;
    if (!read_layout(step_shape(step, 0), heads, &q) ||
        !read_layout(step_shape(step, 1), heads_kv, &k) ||
        !read_layout(step_shape(step, 2), heads_kv, &v))
        return ERR_OK;
    int64_t before = cached_tokens(step, 4), total = before + k.tokens;
    step->emitted.as.attention = (struct graph_attention){
        .heads = q.heads,
        .heads_kv = k.heads,
        .key_size = q.size,
        .value_size = v.size,
        .tokens = q.tokens,
        .cached = k.tokens == q.tokens ? before : 0,
        .cross_tokens = k.tokens == q.tokens ? 0 : total,
        .sequences = q.batch,
        .is_causal = step_int(step, "is_causal", 0) != 0,
    };
    if (v.size > INT32_MAX || q.heads > INT32_MAX)
        return step_fail(step, "number or size of heads out of range");
    struct shape out = step_shape(step, 0)->rank == 4
                           ? shape_of(4, q.batch, q.heads, q.tokens, v.size)
                           : shape_of(3, q.batch, q.tokens, q.heads * v.size, 0);
    struct shape keys = shape_of(4, q.batch, k.heads, total, k.size);
    struct shape values = shape_of(4, q.batch, v.heads, total, v.size);
    struct shape scores = shape_of(4, q.batch, q.heads, q.tokens, total);
    step_set_result(step, &out);
    step_set_output(step, 1, 0, &keys);
    step_set_output(step, 2, 0, &values);
    return step_set_output(step, 3, 0, &scores);
}

/* ---- attention of ONNX Runtime ---- */

static bool heads_are_valid(int64_t heads)
{
    return heads > 0 && heads <= INT32_MAX;
}

/* A fused QKV projection, then attention. */
enum err rule_packed_attention(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *weight = step_shape(step, 1);
    int64_t heads = step_int(step, "num_heads", 0), sizes[3];
    if (!in || !weight || in->rank != 3 || weight->rank != 2 || !heads_are_valid(heads))
        return ERR_OK;
    if (step_ints(step, "qkv_hidden_sizes", sizes, 3) != 3)
        sizes[0] = sizes[1] = sizes[2] = weight->dims[1] / 3;
    const struct shape *past = step_shape(step, 4); /* (2, batch, heads, tokens, size) */
    int64_t before = past && past->rank == 5 ? past->dims[3] : 0;
    step->emitted.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads,
        .key_size = divided(sizes[0], heads),
        .value_size = divided(sizes[2], heads),
        .tokens = in->dims[1],
        .cached = before,
        .sequences = in->dims[0],
        .is_causal = step_int(step, "unidirectional", 0) != 0,
    };
    step->prologue.op = GRAPH_LINEAR;
    step->prologue.inputs = "012";
    step->prologue.shape = shape_of(3, in->dims[0], in->dims[1], weight->dims[1], 0);
    step->order = "45"; /* KV cache, attention bias */
    struct shape out = shape_of(3, in->dims[0], in->dims[1], sizes[2], 0);
    struct shape present = {
        .rank = 5, .dims = {2, in->dims[0], heads, before + in->dims[1], divided(sizes[0], heads)}};
    step_set_result(step, &out);
    return step_set_output(step, 1, 0, &present);
}

enum err rule_multi_head_attention(struct step *step)
{
    const struct shape *q = step_shape(step, 0), *k = step_shape(step, 1), *v = step_shape(step, 2);
    int64_t heads = step_int(step, "num_heads", 0);
    if (!q || !k || !v || q->rank != 3 || k->rank < 3 || v->rank < 3 || !heads_are_valid(heads))
        return ERR_OK;
    /* K and V of cross-attention are (batch, heads, tokens, size). */
    int64_t tokens_k = k->rank == 4 ? k->dims[2] : k->dims[1];
    int64_t width_v = v->rank == 4 ? v->dims[3] : divided(v->dims[2], heads);
    int64_t before = cached_tokens(step, 6);
    bool is_own = tokens_k == q->dims[1];
    step->emitted.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads,
        .key_size = divided(q->dims[2], heads),
        .value_size = width_v,
        .tokens = q->dims[1],
        .cached = is_own ? before : 0,
        .cross_tokens = is_own ? 0 : tokens_k + before,
        .sequences = q->dims[0],
        .is_causal = step_int(step, "unidirectional", 0) != 0,
    };
    if (width_v > INT32_MAX)
        return step_fail(step, "head size of V out of range");
    struct shape out = shape_of(3, q->dims[0], q->dims[1], heads * width_v, 0);
    struct shape keys =
        shape_of(4, q->dims[0], heads, before + tokens_k, divided(q->dims[2], heads));
    struct shape values = shape_of(4, q->dims[0], heads, before + tokens_k, width_v);
    step_set_result(step, &out);
    step_set_output(step, 1, 0, &keys);
    return step_set_output(step, 2, 0, &values);
}

enum err rule_group_attention(struct step *step)
{
    const struct shape *q = step_shape(step, 0), *k = step_shape(step, 1);
    int64_t heads = step_int(step, "num_heads", 0);
    int64_t heads_kv = step_int(step, "kv_num_heads", 0);
    if (!q || q->rank != 3 || !heads_are_valid(heads) || !heads_are_valid(heads_kv))
        return ERR_OK;
    /* Without a second input, the first one holds Q, K and V. */
    int64_t size = divided(q->dims[2], k ? heads : heads + 2 * heads_kv);
    int64_t before = cached_tokens(step, 3);
    if (size > INT32_MAX)
        return step_fail(step, "head size out of range");
    step->emitted.as.attention = (struct graph_attention){
        .heads = heads,
        .heads_kv = heads_kv,
        .key_size = size,
        .value_size = size,
        .tokens = q->dims[1],
        .cached = before,
        .sequences = q->dims[0],
        .window =
            step_int(step, "local_window_size", 0) > 0 ? step_int(step, "local_window_size", 0) : 0,
        .is_causal = true,
    };
    struct shape out = shape_of(3, q->dims[0], q->dims[1], heads * size, 0);
    struct shape cache = shape_of(4, q->dims[0], heads_kv, before + q->dims[1], size);
    for (size_t i = 1; i < 3; i++)
        step_set_output(step, i, 0, &cache);
    return step_set_result(step, &out);
}
