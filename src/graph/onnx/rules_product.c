/* Products of matrices, and recurrence. */
#include "graph/onnx/rules.h"

#include <string.h>

/* Numbers of the model, which a product with counts as a layer of its own. */
static bool is_weight(const struct known *known)
{
    return known && known->tensor && known->tensor->elements > 1;
}

/* One of the two is of the model: a linear layer. */
static void choose_op(struct step *step, size_t a, size_t b)
{
    bool left = is_weight(step_input(step, a)), right = is_weight(step_input(step, b));
    step->made.op = left != right ? GRAPH_LINEAR : GRAPH_MATMUL;
}

/* ---- matmul ---- */

/* The dimensions before the last two, the smaller repeated; false when they do not fit. */
static bool join_batches(const struct shape *a, const struct shape *b, struct shape *out)
{
    int of_a = a->rank - 2, of_b = b->rank - 2, rank = of_a > of_b ? of_a : of_b;
    out->rank = (uint8_t)rank;
    for (int i = 1; i <= rank; i++) {
        int64_t x = i <= of_a ? a->dims[of_a - i] : 1, y = i <= of_b ? b->dims[of_b - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        out->dims[rank - i] = x == 1 ? y : x;
    }
    return true;
}

static void swap_last(struct shape *shape)
{
    if (shape->rank < 2)
        return;
    int64_t last = shape->dims[shape->rank - 1];
    shape->dims[shape->rank - 1] = shape->dims[shape->rank - 2];
    shape->dims[shape->rank - 2] = last;
}

/* As numpy does: a vector is a row on the left and a column on the right, and goes away. */
static enum err multiply(struct step *step, struct shape a, struct shape b, int32_t type)
{
    bool is_row = a.rank == 1, is_column = b.rank == 1;
    struct shape out;
    if (a.rank == 0 || b.rank == 0)
        return step_fail(step, "it multiplies with a single number");
    if (is_row)
        a = (struct shape){.rank = 2, .dims = {1, a.dims[0]}};
    if (is_column)
        b = (struct shape){.rank = 2, .dims = {b.dims[0], 1}};
    if (a.dims[a.rank - 1] != b.dims[b.rank - 2] || !join_batches(&a, &b, &out))
        return step_fail(step, "its matrices do not fit: %lld columns and %lld rows",
                         (long long)a.dims[a.rank - 1], (long long)b.dims[b.rank - 2]);
    if (!is_row)
        out.dims[out.rank++] = a.dims[a.rank - 2];
    if (!is_column)
        out.dims[out.rank++] = b.dims[b.rank - 1];
    return step_give(step, 0, type, &out);
}

static enum err matmul(struct step *step, size_t second, int32_t type)
{
    const struct shape *a = step_shape(step, 0), *b = step_shape(step, second);
    choose_op(step, 0, second);
    return a && b ? multiply(step, *a, *b, type) : ERR_OK;
}

enum err rule_matmul(struct step *step)
{
    return matmul(step, 1, 0);
}

enum err rule_matmul_integer(struct step *step)
{
    static const uint8_t ORDER[] = {0, 1};
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return matmul(step, 1, ONNX_INT32);
}

enum err rule_qlinear_matmul(struct step *step)
{
    static const uint8_t ORDER[] = {0, 3};
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return matmul(step, 3, 0);
}

/* ONNX Runtime's: the scale and the zero point stand between the matrix and the bias. */
enum err rule_dynamic_matmul(struct step *step)
{
    static const uint8_t ORDER[] = {0, 1, 4};
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return matmul(step, 1, 0);
}

/* A matrix of few bits, N x K, packed in blocks: the bytes are those of the file. */
enum err rule_matmul_bits(struct step *step)
{
    static const uint8_t ORDER[] = {0, 1,
                                    5}; /* scales, zero points and the order of groups left out */
    const struct shape *in = step_shape(step, 0);
    struct known *packed = step_input(step, 1);
    int64_t rows = step_integer(step, "N", 0), columns = step_integer(step, "K", 0);
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    if (!in || in->rank == 0 || !packed || !packed->tensor)
        return ERR_OK;
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX ||
        in->dims[in->rank - 1] != columns)
        return step_fail(step, "its matrix does not fit its input");
    struct known *root = packed->root ? packed->root : packed;
    root->stored_bytes = (double)packed->tensor->elements;
    root->shape = (struct shape){.rank = 2, .dims = {rows, columns}};
    root->numbers = NULL; /* they are not those of this shape */
    root->was_looked_at = true;
    struct shape out = *in;
    out.dims[out.rank - 1] = rows;
    return step_give(step, 0, 0, &out);
}

/* Rows before the batches, as they lie before heads are put first: (rows, batches, columns). */
static void rows_behind_batches(struct shape *shape)
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
    choose_op(step, 0, 1);
    if (!first || !second)
        return ERR_OK;
    struct shape a = *first, b = *second;
    if (step_integer(step, "transBatchA", 0))
        rows_behind_batches(&a);
    if (step_integer(step, "transBatchB", 0))
        rows_behind_batches(&b);
    if (step_integer(step, "transA", 0))
        swap_last(&a);
    if (step_integer(step, "transB", 0))
        swap_last(&b);
    step->summed = a.rank ? a.dims[a.rank - 1] : 0;
    return multiply(step, a, b, 0);
}

static enum err gemm(struct step *step, size_t right)
{
    const struct shape *first = step_shape(step, 0), *second = step_shape(step, right);
    choose_op(step, 0, right);
    if (!first || !second)
        return ERR_OK;
    if (first->rank != 2 || second->rank != 2)
        return step_fail(step, "its inputs are no matrices");
    struct shape a = *first, b = *second;
    if (step_integer(step, "transA", 0)) {
        swap_last(&a);
        step->summed = a.dims[1];
    }
    if (step_integer(step, "transB", 0))
        swap_last(&b);
    return multiply(step, a, b, 0);
}

enum err rule_gemm(struct step *step)
{
    return gemm(step, 1);
}

enum err rule_qgemm(struct step *step)
{
    static const uint8_t ORDER[] = {0, 3, 6}; /* scales and zero points are left out */
    step->order = ORDER;
    step->order_count = sizeof ORDER;
    return gemm(step, 3);
}

/* ---- einsum ---- */

enum { LETTERS = 128 };

struct equation {
    struct shape dims[8]; /* of each input */
    int64_t sizes[LETTERS];
    int seen[LETTERS]; /* how often */
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
        if (text.bytes[i] == '-' && text.bytes[i + 1] == '>') {
            equation->left.length = i;
            equation->right = (struct slice){text.bytes + i + 2, text.length - i - 2};
            equation->has_right = true;
            return;
        }
}

/* Gives each letter the size of its dimension; false: it is none that is understood, or does not fit. */
static bool read_terms(const struct step *step, struct equation *equation)
{
    size_t input = 0;
    int place = 0;
    const struct shape *shape = step_shape(step, 0);
    for (size_t i = 0; i <= equation->left.length; i++) {
        char byte = (char)(i < equation->left.length ? equation->left.bytes[i] : ',');
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
    return input == step_input_count(step);
}

static bool give_letter(struct shape *out, const struct equation *equation, char letter)
{
    if (out->rank == GRAPH_MOST_DIMENSIONS || !equation->seen[(int)letter])
        return false;
    out->dims[out->rank++] = equation->sizes[(int)letter];
    return true;
}

static bool einsum_shape(const struct equation *equation, struct shape *out, bool *is_kept)
{
    bool is_right = true;
    for (size_t i = 0; i < equation->right.length && is_right; i++)
        if (equation->right.bytes[i] != ' ') {
            is_right = is_letter(equation->right.bytes[i]) &&
                       give_letter(out, equation, equation->right.bytes[i]);
            if (is_right)
                is_kept[(int)equation->right.bytes[i]] = true;
        }
    for (int i = 0; i < LETTERS && !equation->has_right && is_right; i++)
        if (equation->seen[i] == 1) { /* without a right side: the letters that are there once */
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
    split_equation(step_text(step, "equation"), &equation);
    choose_op(step, 0, 1);
    if (!read_terms(step, &equation) || !einsum_shape(&equation, &out, is_kept))
        return ERR_OK;
    double summed = 1;
    for (int i = 0; i < LETTERS; i++)
        if (equation.seen[i] && !is_kept[i])
            summed *= (double)equation.sizes[i];
    step->summed = summed < 1e15 ? (int64_t)summed : 0;
    if (step_input_count(step) == 1) {
        step->made.op = summed > 1 ? GRAPH_REDUCE : GRAPH_REARRANGE;
        step->summed = 0;
    } else if (summed <= 1) {
        step->made.op = GRAPH_MUL;
        step->summed = 0;
    }
    return step_give(step, 0, 0, &out);
}

/* ---- recurrence ---- */

static struct shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){.rank = (uint8_t)rank, .dims = {a, b, c, d}};
}

enum err rule_recurrent(struct step *step)
{
    const struct shape *in = step_shape(step, 0), *back = step_shape(step, 2);
    if (!in || in->rank != 3)
        return ERR_OK;
    int64_t ways = slice_is(step_text(step, "direction"), "bidirectional") ? 2 : 1;
    int64_t hidden = step_integer(step, "hidden_size", back && back->rank == 3 ? back->dims[2] : 0);
    bool batch_first = step_integer(step, "layout", 0) != 0;
    int64_t steps = in->dims[batch_first], batch = in->dims[!batch_first];
    if (hidden < 1 || hidden > INT32_MAX)
        return step_fail(step, "its hidden_size is none");
    struct shape all = batch_first ? shape_of(4, batch, steps, ways, hidden)
                                   : shape_of(4, steps, ways, batch, hidden);
    struct shape last =
        batch_first ? shape_of(3, batch, ways, hidden, 0) : shape_of(3, ways, batch, hidden, 0);
    step->made.as.recurrent =
        (struct graph_recurrent){.steps = steps, .hidden = hidden, .directions = ways};
    enum err err = step_give(step, 0, 0, &all);
    for (size_t i = 1; i < 3 && !err; i++)
        err = step_give(step, i, 0, &last);
    return err;
}
