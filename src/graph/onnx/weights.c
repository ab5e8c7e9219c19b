#include "graph/onnx/weights.h"

#include <string.h>

static bool is_weight(const struct known *known)
{
    return known && known->tensor && known->tensor->elements > 1;
}

bool weights_are_real(const struct step *step)
{
    const struct known *in = step_input(step, 0);
    return is_weight(in) && (type_is_real(in->tensor->type) || in->is_weight);
}

static void lead(struct known *out, struct known *in)
{
    out->tensor = in->tensor;
    out->is_constant = in->is_constant;
    out->root = in->root ? in->root : in;
    out->others = in->others;
    out->was_looked_at = true; /* its numbers are no longer in the order of the file */
}

static bool is_named(const struct step *step, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(step->row->name, *names) == 0)
            return true;
    return false;
}

/* ---- one weight ---- */

static bool is_view(const struct step *step)
{
    return step->row->op == GRAPH_VIEW && step->row->rule != rule_shape &&
           step->row->rule != rule_size && step->row->rule != rule_constant;
}

static bool follow_one(struct step *step)
{
    static const char *const WHOLE[] = {"Transpose",        "Cast",           "CastLike",
                                        "DequantizeLinear", "QuantizeLinear", NULL};
    static const char *const PARTS[] = {"Slice", "Split", NULL};
    struct known *in = step_input(step, 0);
    bool cuts = is_named(step, PARTS) && weights_are_real(step);
    if (!is_view(step) && !cuts && !is_named(step, WHOLE))
        return false;
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct known *out = step_output(step, i);
        if (!out)
            continue;
        lead(out, in);
        if (is_view(step) && !in->was_looked_at)
            out->was_looked_at = false;
    }
    struct known *root = in->root ? in->root : in;
    root->is_weight |= step->row->rule == rule_dequantize;
    return true;
}

/* ---- several ---- */

/* Adds to the list what is not in it. */
static bool add_other(struct step *step, struct known *out, struct known *more)
{
    if (more == out->root)
        return true;
    for (const struct known_list *item = out->others; item; item = item->next)
        if (item->known == more)
            return true;
    struct known_list *added = arena_take(&step->work->kept, sizeof *added);
    if (!added)
        return false;
    *added = (struct known_list){more, out->others};
    out->others = added;
    return true;
}

/* It, and what came into it before. */
static bool add_all(struct step *step, struct known *out, struct known *in)
{
    bool added = add_other(step, out, in->root ? in->root : in);
    for (const struct known_list *item = in->others; added && item; item = item->next)
        added = add_other(step, out, item->known);
    return added;
}

/* Gates of a recurrence that are brought into another order, biases of two kinds in a row. */
static bool follow_concat(struct step *step)
{
    enum { MOST_PIECES = 16 };
    struct known *out = step_output(step, 0);
    size_t count = step_input_count(step);
    if (step->row->rule != rule_concat || !weights_are_real(step) || count > MOST_PIECES)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_weight(step_input(step, i)) || !type_is_real(step_input(step, i)->type))
            return false;
    lead(out, step_input(step, 0));
    for (size_t i = 1; i < count; i++) {
        struct known *in = step_input(step, i);
        if (!add_all(step, out, in))
            return false;
    }
    return true;
}

/* ---- whatever is the same at every pass ---- */

static bool is_fixed(const struct known *known)
{
    return known->tensor || known->numbers || known->is_fixed;
}

static bool is_random(const struct step *step)
{
    static const char *const NAMES[] = {
        "Bernoulli",         "Multinomial", "RandomNormal", "RandomUniform", "RandomNormalLike",
        "RandomUniformLike", NULL};
    return is_named(step, NAMES);
}

/* Bytes in a table of rows are quantised; other integers are places and shapes. */
static bool may_be_trained(const struct known *known)
{
    const struct onnx_tensor *tensor = known->tensor;
    bool is_byte = tensor->type == ONNX_INT8 || tensor->type == ONNX_UINT8;
    return type_is_real(tensor->type) || known->is_weight || (is_byte && tensor->rank > 1);
}

/* Of what goes in, the first that leads to a weight; NULL: none. */
static struct known *leading(const struct step *step)
{
    for (size_t i = 0; i < step_input_count(step); i++) {
        struct known *in = step_input(step, i);
        if (is_weight(in) && may_be_trained(in))
            return in;
    }
    return NULL;
}

static bool lead_all(struct step *step, struct known *out, struct known *first)
{
    lead(out, first);
    for (size_t i = 0; i < step_input_count(step); i++) {
        struct known *in = step_input(step, i);
        if (!is_weight(in) || !may_be_trained(in))
            continue;
        if (!add_all(step, out, in))
            return false;
    }
    return true;
}

bool weights_are_fixed(struct step *step)
{
    if (!step->row || step_input_count(step) == 0 || is_random(step))
        return false;
    /* Of what it is cast like, only the type is looked at. */
    size_t count = step->row->rule == rule_cast_like ? 1 : step_input_count(step);
    for (size_t i = 0; i < count; i++)
        if (step_input(step, i) && !is_fixed(step_input(step, i)))
            return false;
    for (size_t i = 0; i < step->node->output_count; i++)
        if (step_output(step, i) && step_output(step, i)->is_output)
            return false;
    struct known *first = leading(step);
    for (size_t i = 0; i < step->node->output_count; i++) {
        struct known *out = step_output(step, i);
        if (out && first && !lead_all(step, out, first))
            return false;
        if (out && !first)
            out->is_fixed = true;
    }
    return true;
}

bool weights_follow(struct step *step)
{
    if (!step->row || !is_weight(step_input(step, 0)))
        return false;
    for (size_t i = 0; i < step->node->output_count; i++)
        if (step_output(step, i) && step_output(step, i)->is_output)
            return false;
    if (!step_output(step, 0))
        return false;
    return follow_one(step) || follow_concat(step);
}
