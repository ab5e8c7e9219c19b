#include "graders/text_encoder.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "graders/clip_tokens.h"
#include "graders/features.h"

enum { INPUTS_MAX = 2, RANK = 2 };

struct text_encoder {
    struct onnx_session *session;
    struct clip_tokenizer *tokenizer;
    size_t length;   /* of a text, in tokens */
    size_t output;   /* the embedding */
    int64_t *ids;    /* of the text, and 1 for each token before the padding */
    int64_t *values; /* of the inputs, as the model takes them: of its integer type */
};

/* ---- opening ---- */

static bool is_mask(const struct onnx_port *port)
{
    return str_equal(port->name, "attention_mask");
}

static enum err check_inputs(const struct text_encoder *encoder, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    bool fits = facts->input_count >= 1 && facts->input_count <= INPUTS_MAX;
    for (size_t i = 0; i < facts->input_count && fits; i++) {
        const struct onnx_port *port = &facts->inputs[i];
        bool has_length =
            port->rank == RANK && (port->shape[1] < 0 || (size_t)port->shape[1] == encoder->length);
        fits = has_length && (port->type == ONNX_INT32 || port->type == ONNX_INT64) &&
               (facts->input_count == 1 || i == 0 || is_mask(port) || is_mask(&facts->inputs[0]));
    }
    return fits ? ERR_OK
                : err_set(why, ERR_USAGE,
                          "%.200s: expected token ids as input (int32 or int64, 1 x %zu), and at "
                          "most their attention_mask",
                          facts->path, encoder->length);
}

static enum err find_output(struct text_encoder *encoder, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    int named = onnx_output(encoder->session, "text_embeds");
    encoder->output = named >= 0 ? (size_t)named : 0;
    while (named < 0 && encoder->output < facts->output_count &&
           facts->outputs[encoder->output].rank != RANK)
        encoder->output++;
    return encoder->output < facts->output_count
               ? ERR_OK
               : err_set(why, ERR_USAGE, "%.200s: no output text_embeds, or of two dimensions",
                         facts->path);
}

enum err text_encoder_open(const char *path, const char *tokenizer, struct text_encoder **out,
                           struct error *why)
{
    const struct onnx_options options = {0};
    struct text_encoder *encoder = XNEW(encoder);
    enum err err = clip_tokenizer_load(tokenizer, &encoder->tokenizer, why);
    if (!err) {
        encoder->length = clip_tokenizer_length(encoder->tokenizer);
        encoder->ids = xcalloc(encoder->length, sizeof *encoder->ids);
        encoder->values = xcalloc(INPUTS_MAX * encoder->length, sizeof *encoder->values);
        err = onnx_session_open(path, &options, &encoder->session, why);
    }
    if (!err)
        err = check_inputs(encoder, why);
    if (!err)
        err = find_output(encoder, why);
    if (err) {
        text_encoder_close(encoder);
        encoder = NULL;
    }
    *out = encoder;
    return err;
}

void text_encoder_close(struct text_encoder *encoder)
{
    if (!encoder)
        return;
    if (encoder->session)
        onnx_session_close(encoder->session);
    clip_tokenizer_free(encoder->tokenizer);
    free(encoder->ids);
    free(encoder->values);
    free(encoder);
}

/* ---- running ---- */

static struct onnx_tensor input_of(struct text_encoder *encoder, size_t which, size_t used)
{
    const struct onnx_port *port = &onnx_session_facts(encoder->session)->inputs[which];
    int64_t *wide = &encoder->values[which * encoder->length];
    int32_t *narrow = (int32_t *)wide;
    for (size_t i = 0; i < encoder->length; i++) {
        int64_t value = is_mask(port) ? i < used : encoder->ids[i];
        if (port->type == ONNX_INT64)
            wide[i] = value;
        else
            narrow[i] = (int32_t)value;
    }
    return onnx_tensor_of(port->type, wide, RANK, (const int64_t[]){1, (int64_t)encoder->length});
}

static enum err add_embedding(const struct onnx_tensor *tensor, struct features *out,
                              struct error *why)
{
    if (tensor->count > FEATURES_WIDTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "the text encoder gives %zu numbers: expected 1 to %d",
                       tensor->count, FEATURES_WIDTH_MAX);
    double *row = xcalloc(tensor->count + 1, sizeof *row);
    for (size_t i = 0; i < tensor->count; i++)
        row[i] = onnx_tensor_at(tensor, i);
    enum err err = features_add(out, row, tensor->count, why);
    free(row);
    return err;
}

enum err text_encoder_add(struct text_encoder *encoder, const char *text, struct features *out,
                          struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    struct onnx_tensor inputs[INPUTS_MAX] = {0};
    struct onnx_tensor *outputs = xcalloc(facts->output_count + 1, sizeof *outputs);
    bool *wanted = xcalloc(facts->output_count + 1, sizeof *wanted);
    size_t used = clip_tokenize(encoder->tokenizer, text, encoder->ids);
    wanted[encoder->output] = true;
    for (size_t i = 0; i < facts->input_count; i++)
        inputs[i] = input_of(encoder, i, used);
    enum err err = onnx_run(encoder->session, inputs, outputs, wanted, NULL, why);
    if (!err)
        err = add_embedding(&outputs[encoder->output], out, why);
    for (size_t i = 0; i < facts->output_count; i++)
        onnx_tensor_release(&outputs[i]);
    free(outputs);
    free(wanted);
    return err;
}
