/* Text classification: tokens in, a value per class out.  It is named after the recurrent networks of its shipped
 * model; classifiers that optimum exports from BERT and its relatives have the same files. */
#include <stdlib.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "wire/completion.h"
#include "workloads/labels.h"
#include "workloads/model_files.h"
#include "workloads/workload.h"

enum { DEFAULT_LENGTH = 512, LENGTH_MIN = 2, LENGTH_MAX = 1 << 20 };
enum { DEFAULT_TOP = 10, TOP_MAX = 1000, INPUTS_MAX = 4 };

/* What an input of the model takes. */
enum role { TOKENS, MASK, SEGMENTS, LENGTHS };

struct text_classifier {
    struct onnx_session *session;
    struct wordpiece *tokenizer;
    struct labels labels;
    enum role roles[INPUTS_MAX];
    int64_t length;    /* of the input; -1: free */
    size_t max_length; /* to which texts are truncated */
    int output;
};

/* ---- opening ---- */

static bool find_role(const struct onnx_port *input, enum role *out)
{
    static const struct {
        const char *name;
        enum role role;
    } ROLES[] = {
        {"input_ids", TOKENS},    {"input", TOKENS},   {"tokens", TOKENS},
        {"attention_mask", MASK}, {"mask", MASK},      {"token_type_ids", SEGMENTS},
        {"lengths", LENGTHS},     {"length", LENGTHS},
    };
    for (size_t i = 0; i < COUNT_OF(ROLES); i++)
        if (str_equal(ROLES[i].name, input->name)) {
            *out = ROLES[i].role;
            return true;
        }
    return false;
}

static bool is_integer(const struct onnx_port *port)
{
    return port->type == ONNX_INT64 || port->type == ONNX_INT32;
}

static enum err check_input(struct text_classifier *out, size_t index, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(out->session);
    const struct onnx_port *input = &facts->inputs[index];
    if (!find_role(input, &out->roles[index]))
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: unknown input %s: expected input_ids, attention_mask, token_type_ids "
                       "or lengths",
                       facts->path, input->name);
    size_t rank = out->roles[index] == LENGTHS ? 1 : 2;
    if (!is_integer(input) || input->rank != rank || input->shape[0] > 1)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: input %s is %s of the shape %s: expected %zu dimension%s of int64 or "
                       "int32, for one text",
                       facts->path, input->name, onnx_type_name(input->type),
                       shape_text(input->shape, input->rank).text, rank, str_plural((double)rank));
    if (out->roles[index] == TOKENS)
        out->length = input->shape[1];
    return ERR_OK;
}

static enum err check_inputs(struct text_classifier *out, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(out->session);
    enum err err = ERR_OK;
    out->length = 0;
    if (facts->input_count > INPUTS_MAX)
        return err_set(why, ERR_UNSUPPORTED, "%s: has %zu inputs: expected a text only",
                       facts->path, facts->input_count);
    for (size_t i = 0; i < facts->input_count && !err; i++)
        err = check_input(out, i, why);
    if (!err && out->length == 0)
        err = err_set(why, ERR_UNSUPPORTED, "%s: has no input for tokens: expected input_ids",
                      facts->path);
    if (!err && out->length > LENGTH_MAX)
        err = err_set(why, ERR_UNSUPPORTED, "%s: takes %lld tokens: more than %d", facts->path,
                      (long long)out->length, LENGTH_MAX);
    if (!err && out->length == 1)
        err = err_set(why, ERR_UNSUPPORTED, "%s: takes a single token", facts->path);
    return err;
}

static size_t longest(const struct text_classifier *classifier, const struct jv *config)
{
    double trained = jv_get_number(config, "max_position_embeddings");
    if (classifier->length > 0)
        return (size_t)classifier->length;
    return trained >= LENGTH_MIN && trained <= LENGTH_MAX ? (size_t)trained : DEFAULT_LENGTH;
}

static enum err open_files(const struct model_files *files, void *state, struct error *why)
{
    struct text_classifier *out = state;
    static const char *const NAMES[] = {"model.onnx", "onnx/model.onnx", NULL};
    struct jv *config = NULL;
    enum err err = model_files_session(files, NAMES, &out->session, why);
    if (!err)
        err = check_inputs(out, why);
    if (!err)
        err = wordpiece_load(files, &out->tokenizer, why);
    if (!err)
        err = model_files_json(files, "config.json", &config, why);
    if (!err)
        err = labels_load(files, out->session, config, &out->labels, why);
    if (!err) {
        int logits = onnx_output(out->session, "logits");
        out->output = logits >= 0 ? logits : 0;
        out->max_length = longest(out, config);
    }
    jv_free(config);
    return err;
}

static void close_classifier(struct workload *workload)
{
    struct text_classifier *classifier = workload->state;
    onnx_session_close(classifier->session);
    wordpiece_free(classifier->tokenizer);
    labels_release(&classifier->labels);
    free(classifier);
}

static enum err open_classifier(const struct workload_config *config, struct workload *out,
                                struct error *why)
{
    return model_files_load(config, sizeof(struct text_classifier), open_files, out, why);
}

/* ---- a query ---- */

struct query {
    struct token_ids tokens; /* padded */
    size_t text_length;      /* without padding */
    uint64_t top;
    void *inputs[INPUTS_MAX]; /* of the model's types */
    struct onnx_tensor output;
};

static enum err read_params(const struct text_classifier *classifier, const struct params *params,
                            struct query *query, size_t *length, struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    *length = (size_t)params_count(&read, "length", classifier->max_length, LENGTH_MIN, LENGTH_MAX);
    query->top = params_count(&read, "top", DEFAULT_TOP, 1, TOP_MAX);
    if (!read.err && classifier->length > 0 && *length > (size_t)classifier->length)
        return err_set(why, ERR_USAGE, "length=%zu: the model takes %lld tokens", *length,
                       (long long)classifier->length);
    return read.err;
}

static void pad(const struct text_classifier *classifier, struct query *query)
{
    struct token_ids *tokens = &query->tokens;
    query->text_length = tokens->count;
    while ((int64_t)tokens->count < classifier->length)
        *XADD(tokens->ids, tokens->count, tokens->capacity) =
            wordpiece_padding(classifier->tokenizer);
}

static int64_t input_value(const struct query *query, enum role role, size_t i)
{
    switch (role) {
    case TOKENS:
        return query->tokens.ids[i];
    case MASK:
        return i < query->text_length;
    case LENGTHS:
        return (int64_t)query->text_length;
    case SEGMENTS:
        break;
    }
    return 0;
}

static void *make_input(const struct query *query, enum role role, enum onnx_type type)
{
    size_t count = role == LENGTHS ? 1 : query->tokens.count;
    int64_t *wide = xcalloc(count, sizeof *wide);
    int32_t *narrow = (int32_t *)wide;
    for (size_t i = 0; i < count; i++)
        if (type == ONNX_INT32)
            narrow[i] = (int32_t)input_value(query, role, i);
        else
            wide[i] = input_value(query, role, i);
    return wide;
}

static enum err prepare(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct text_classifier *classifier = workload->state;
    const struct onnx_facts *facts = onnx_session_facts(classifier->session);
    struct query *state = XNEW(state);
    size_t length = 0;
    query->state = state;
    enum err err = read_params(classifier, query->params, state, &length, why);
    if (err)
        return err;
    wordpiece_encode(classifier->tokenizer, query->input, length, &state->tokens);
    if (state->tokens.count == 0)
        return err_set(why, ERR_BAD_VALUE, "a text without words: \"%.40s\"",
                       plain_text(query->input).text);
    pad(classifier, state);
    for (size_t i = 0; i < facts->input_count; i++)
        state->inputs[i] = make_input(state, classifier->roles[i], facts->inputs[i].type);
    query->input_tokens = (int64_t)state->text_length;
    return ERR_OK;
}

static enum err run(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct text_classifier *classifier = workload->state;
    const struct onnx_facts *facts = onnx_session_facts(classifier->session);
    struct query *state = query->state;
    struct onnx_tensor inputs[INPUTS_MAX], outputs[ONNX_PORTS_MAX] = {0};
    bool wanted[ONNX_PORTS_MAX] = {false};
    const int64_t shape[] = {1, (int64_t)state->tokens.count};
    for (size_t i = 0; i < facts->input_count; i++)
        inputs[i] = onnx_tensor_of(facts->inputs[i].type, state->inputs[i],
                                   classifier->roles[i] == LENGTHS ? 1 : 2, shape);
    wanted[classifier->output] = true;
    onnx_tensor_release(&state->output);
    enum err err = onnx_run(classifier->session, inputs, outputs, wanted, query->cancel, why);
    state->output = outputs[classifier->output];
    return err;
}

static enum err finish(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why)
{
    const struct text_classifier *classifier = workload->state;
    const struct onnx_facts *facts = onnx_session_facts(classifier->session);
    const struct query *state = query->state;
    const struct onnx_tensor *output = &state->output;
    enum err err = model_output_check(classifier->session, classifier->output, output, 2, why);
    if (!err && output->shape[0] != 1)
        err = err_set(why, ERR_BAD_VALUE,
                      "%s: output %s has the shape %s for one text: expected a value per class",
                      facts->path, facts->outputs[classifier->output].name,
                      shape_text(output->shape, output->rank).text);
    if (!err)
        err = labels_check(&classifier->labels, output->count, facts->path, why);
    if (err)
        return err;
    float *values = xcalloc(output->count, sizeof *values);
    for (size_t i = 0; i < output->count; i++)
        values[i] = (float)onnx_tensor_at(output, i);
    labels_answer(&classifier->labels, values, output->count, state->top, &out->content);
    free(values);
    return ERR_OK;
}

static void discard(struct workload *workload, struct workload_query *query)
{
    struct query *state = query->state;
    (void)workload;
    if (!state)
        return;
    for (size_t i = 0; i < INPUTS_MAX; i++)
        free(state->inputs[i]);
    token_ids_release(&state->tokens);
    onnx_tensor_release(&state->output);
    free(state);
    query->state = NULL;
}

static void describe(const struct workload *workload, struct json *json)
{
    const struct text_classifier *classifier = workload->state;
    model_describe_runtime(classifier->session, json);
    model_describe(classifier->session, "model", json);
    json_string(json, "tokenizer", wordpiece_kind(classifier->tokenizer));
    json_integer(json, "vocabulary", (int64_t)wordpiece_size(classifier->tokenizer));
    json_integer(json, "max_length", (int64_t)classifier->max_length);
    json_integer(json, "labels", (int64_t)classifier->labels.count);
}

/* ---- the driver ---- */

static const char *const GRADERS[] = {"top_1", "top_5", NULL};

static const struct param_spec PARAMS[] = {MODEL_PARAMS, {NULL, NULL, NULL}};

static const struct param_spec QUERY_PARAMS[] = {
    {"length", "TOKENS", "longer texts are truncated to this (the model's length, 512 if free)"},
    {"top", "COUNT", "most probable classes in the answer (10)"},
    {NULL, NULL, NULL},
};

const struct workload_driver workload_lstm = {
    .name = "lstm",
    .summary = "text classification with an LSTM or another encoder",
    .inputs = "a text",
    .takes_text = true,
    .model_layout =
        "an ONNX file with vocab.txt, or a directory of optimum (model.onnx, config.json, "
        "tokenizer.json of WordPiece)",
    .default_model = "topics-lstm",
    .default_dataset = "topics",
    .graders = GRADERS,
    .params = PARAMS,
    .query_params = QUERY_PARAMS,
    .open = open_classifier,
    .close = close_classifier,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .discard = discard,
    .describe = describe,
};
