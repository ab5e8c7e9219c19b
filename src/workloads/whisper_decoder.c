/* Greedy decoding.  The first step takes the whole prompt and the encoder's states, and computes the caches of
 * self-attention and of cross-attention; each later one takes one token and the caches, and gives longer ones of
 * self-attention.  Those of cross-attention do not change.  A merged model has both kinds of step in one file, and an
 * input that selects one; without a KV cache, each step is a first one over all tokens. */
#include "workloads/whisper.h"

#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "workloads/model_files.h"

static const char PAST[] = "past_key_values.", PRESENT[] = "present.";
enum { PAST_LENGTH = sizeof PAST - 1, SHAPE_RANK = 4 };

/* An input of `next` for the KV cache, and the outputs that give it. */
struct whisper_cache {
    int input;
    int from_first;
    int from_next;             /* -1: of cross-attention, which only the first step computes */
    struct onnx_tensor unused; /* zeros, for a first step that has the input */
};

/* ---- opening ---- */

enum err whisper_session_open(const struct model_files *files, const char *name,
                              const char *variant, struct onnx_session **out, struct error *why)
{
    const char *mark = *variant ? "_" : "";
    char *plain = xformat("%s%s%s.onnx", name, mark, variant);
    char *below = xformat("onnx/%s", plain);
    const char *const names[] = {plain, below, NULL};
    enum err err = model_files_session(files, names, out, why);
    free(plain);
    free(below);
    return err;
}

static bool has_file(const struct model_files *files, const char *name, const char *variant)
{
    bool found = false;
    for (int is_below = 0; is_below < 2 && !found; is_below++) {
        char *file =
            xformat("%s%s%s%s.onnx", is_below ? "onnx/" : "", name, *variant ? "_" : "", variant);
        char *path = model_files_find(files, file);
        found = path != NULL;
        free(path);
        free(file);
    }
    return found;
}

static bool is_cache(const struct onnx_port *port)
{
    return str_starts(port->name, PAST);
}

static bool is_of_cross_attention(const struct onnx_port *port)
{
    return strstr(port->name, ".encoder.") != NULL;
}

/* Output "present.0.decoder.key" for input "past_key_values.0.decoder.key"; -1: none. */
static int find_present(const struct onnx_session *session, const struct onnx_port *port)
{
    char name[ONNX_NAME_MAX + sizeof PRESENT];
    chars_format(name, "%s%s", PRESENT, port->name + PAST_LENGTH);
    return onnx_output(session, name);
}

/* For a merged model, whose first step has the caches as inputs and does not use them: one position. */
static enum err shape_unused(const struct whisper_rules *rules, const struct onnx_port *port,
                             struct onnx_tensor *out, struct error *why)
{
    int64_t heads, width;
    bool is_known = jv_integer(jv_get(rules->config, "decoder_attention_heads"), &heads) &&
                    jv_integer(jv_get(rules->config, "d_model"), &width) && heads > 0;
    const int64_t free_sizes[SHAPE_RANK] = {1, is_known ? heads : 0, 1,
                                            is_known ? width / heads : 0};
    int64_t shape[SHAPE_RANK];
    for (size_t i = 0; i < SHAPE_RANK; i++) {
        shape[i] = port->shape[i] > 0 ? port->shape[i] : free_sizes[i];
        if (shape[i] < 1 || shape[i] > UINT16_MAX)
            return err_set(why, ERR_UNSUPPORTED,
                           "cache %s of shape %s: its sizes are neither in the model nor in "
                           "config.json (decoder_attention_heads, d_model)",
                           port->name, shape_text(port->shape, port->rank).text);
    }
    *out = onnx_tensor_of(port->type, NULL, SHAPE_RANK, shape);
    return ERR_OK;
}

static enum err add_cache(struct whisper_decoder *decoder, const struct whisper_rules *rules,
                          int input, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(decoder->next);
    const struct onnx_port *port = &facts->inputs[input];
    struct whisper_cache *cache = &decoder->caches[decoder->cache_count++];
    bool is_fixed = is_of_cross_attention(port);
    cache->input = input;
    cache->from_first = find_present(decoder->first, port);
    cache->from_next = is_fixed ? -1 : find_present(decoder->next, port);
    if (cache->from_first < 0 || (!is_fixed && cache->from_next < 0))
        return err_set(why, ERR_UNSUPPORTED, "%s: no output gives the cache %s", facts->path,
                       port->name);
    return decoder->is_merged ? shape_unused(rules, port, &cache->unused, why) : ERR_OK;
}

static enum err list_caches(struct whisper_decoder *decoder, const struct whisper_rules *rules,
                            struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(decoder->next);
    size_t bytes = 0;
    enum err err = ERR_OK;
    decoder->caches = xcalloc(facts->input_count, sizeof *decoder->caches);
    for (size_t i = 0; i < facts->input_count && !err; i++)
        if (is_cache(&facts->inputs[i]))
            err = add_cache(decoder, rules, (int)i, why);
    for (size_t i = 0; i < decoder->cache_count; i++) {
        const struct onnx_tensor *unused = &decoder->caches[i].unused;
        size_t size = unused->count * onnx_type_size(unused->type);
        bytes = size > bytes ? size : bytes;
    }
    decoder->zeros = xcalloc(1, bytes);
    for (size_t i = 0; i < decoder->cache_count; i++)
        decoder->caches[i].unused.data = decoder->zeros;
    return err;
}

/* An input that an export may have, with its type. */
static bool is_known_input(const struct onnx_port *port)
{
    static const struct {
        const char *name;
        enum onnx_type type;
    } known[] = {
        {"input_ids", ONNX_INT64},
        {"encoder_hidden_states", ONNX_UNDEFINED},
        {"use_cache_branch", ONNX_BOOL},
        {"cache_position", ONNX_INT64},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (str_equal(known[i].name, port->name))
            return known[i].type == ONNX_UNDEFINED || known[i].type == port->type;
    return is_cache(port) && port->rank == SHAPE_RANK && onnx_type_size(port->type);
}

static enum err check_session(const struct onnx_session *session, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(session);
    for (size_t i = 0; i < facts->input_count; i++) {
        const struct onnx_port *port = &facts->inputs[i];
        if (!is_known_input(port))
            return err_set(why, ERR_UNSUPPORTED,
                           "%s: input %s (%s) is not one of a Whisper decoder as optimum "
                           "exports it",
                           facts->path, port->name, onnx_type_name(port->type));
    }
    if (onnx_input(session, "input_ids") < 0 || onnx_output(session, "logits") < 0)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s has no input input_ids or no output logits: it is no decoder",
                       facts->path);
    return ERR_OK;
}

/* Both kinds of step from the merged model, unless there is a file for each that is needed. */
static enum err open_sessions(const struct model_files *files,
                              const struct whisper_decoder_options *options,
                              struct whisper_decoder *out, struct error *why)
{
    static const char MERGED[] = "decoder_model_merged", FIRST[] = "decoder_model",
                      NEXT[] = "decoder_with_past_model";
    const char *variant = options->variant;
    bool is_split =
        has_file(files, FIRST, variant) && (!options->uses_cache || has_file(files, NEXT, variant));
    out->uses_cache = options->uses_cache;
    out->is_merged = !is_split && has_file(files, MERGED, variant);
    if (!is_split && !out->is_merged)
        return err_set(why, ERR_NOT_FOUND, "%s has neither %s%s%s.onnx nor both %s and %s",
                       files->path, MERGED, *variant ? "_" : "", variant, FIRST, NEXT);
    enum err err =
        whisper_session_open(files, out->is_merged ? MERGED : FIRST, variant, &out->first, why);
    if (!err && out->is_merged)
        out->next = out->first;
    else if (!err && options->uses_cache)
        err = whisper_session_open(files, NEXT, variant, &out->next, why);
    return err;
}

enum err whisper_decoder_open(const struct model_files *files, const struct whisper_rules *rules,
                              const struct whisper_decoder_options *options,
                              struct whisper_decoder *out, struct error *why)
{
    enum err err = open_sessions(files, options, out, why);
    if (!err)
        err = check_session(out->first, why);
    if (!err && out->next && !out->is_merged)
        err = check_session(out->next, why);
    if (!err && out->next)
        err = list_caches(out, rules, why);
    if (err)
        whisper_decoder_release(out);
    return err;
}

void whisper_decoder_release(struct whisper_decoder *decoder)
{
    onnx_session_close(decoder->first);
    if (!decoder->is_merged)
        onnx_session_close(decoder->next);
    free(decoder->caches);
    free(decoder->zeros);
    *decoder = (struct whisper_decoder){0};
}

void whisper_sequence_release(struct whisper_sequence *sequence)
{
    free(sequence->tokens);
    *sequence = (struct whisper_sequence){0};
}

/* ---- decoding ---- */

struct loop {
    const struct whisper_decoder *decoder;
    const struct whisper_decoding *decoding;
    struct onnx_tensor *caches;  /* of decoder->caches */
    struct onnx_tensor *inputs;  /* of a step; they borrow everything */
    struct onnx_tensor *outputs; /* of a step */
    bool *wanted;
    int64_t *tokens;    /* the prompt, and what was chosen */
    int64_t *positions; /* 0, 1, ... */
    size_t count;
    bool has_cache; /* the next step continues one */
};

static void loop_init(struct loop *loop, const struct whisper_decoder *decoder,
                      const struct whisper_decoding *decoding)
{
    size_t most = decoding->prompt->count + decoding->tokens_max;
    *loop = (struct loop){.decoder = decoder, .decoding = decoding};
    loop->caches = xcalloc(decoder->cache_count, sizeof *loop->caches);
    loop->inputs = xcalloc(ONNX_PORTS_MAX, sizeof *loop->inputs);
    loop->outputs = xcalloc(ONNX_PORTS_MAX, sizeof *loop->outputs);
    loop->wanted = xcalloc(ONNX_PORTS_MAX, sizeof *loop->wanted);
    loop->tokens = xcalloc(most, sizeof *loop->tokens);
    loop->positions = xcalloc(most, sizeof *loop->positions);
    for (size_t i = 0; i < most; i++)
        loop->positions[i] = (int64_t)i;
    loop->count = decoding->prompt->count;
    memcpy(loop->tokens, decoding->prompt->tokens, loop->count * sizeof *loop->tokens);
}

static void release_outputs(struct loop *loop)
{
    for (size_t i = 0; i < ONNX_PORTS_MAX; i++)
        onnx_tensor_release(&loop->outputs[i]);
    memset(loop->outputs, 0, ONNX_PORTS_MAX * sizeof *loop->outputs);
}

static void loop_release(struct loop *loop)
{
    release_outputs(loop);
    for (size_t i = 0; i < loop->decoder->cache_count; i++)
        onnx_tensor_release(&loop->caches[i]);
    free(loop->caches);
    free(loop->inputs);
    free(loop->outputs);
    free(loop->wanted);
    free(loop->tokens);
    free(loop->positions);
}

static struct onnx_session *session_of_step(const struct loop *loop)
{
    return loop->has_cache ? loop->decoder->next : loop->decoder->first;
}

static void set_input(struct loop *loop, const char *name, struct onnx_tensor tensor)
{
    int input = onnx_input(session_of_step(loop), name);
    if (input >= 0)
        loop->inputs[input] = tensor;
}

static void set_inputs(struct loop *loop)
{
    const struct whisper_decoder *decoder = loop->decoder;
    size_t from = loop->has_cache ? loop->count - 1 : 0;
    const int64_t ids_shape[] = {1, (int64_t)(loop->count - from)}, one[] = {1};
    set_input(loop, "input_ids", onnx_tensor_of(ONNX_INT64, loop->tokens + from, 2, ids_shape));
    set_input(loop, "cache_position",
              onnx_tensor_of(ONNX_INT64, loop->positions + from, 1, ids_shape + 1));
    set_input(loop, "encoder_hidden_states", *loop->decoding->states);
    set_input(loop, "use_cache_branch", onnx_tensor_of(ONNX_BOOL, &loop->has_cache, 1, one));
    bool has_inputs = loop->has_cache || decoder->is_merged;
    for (size_t i = 0; i < decoder->cache_count && has_inputs; i++)
        loop->inputs[decoder->caches[i].input] =
            loop->has_cache ? loop->caches[i] : decoder->caches[i].unused;
}

static int output_of_cache(const struct loop *loop, size_t i)
{
    const struct whisper_cache *cache = &loop->decoder->caches[i];
    return loop->has_cache ? cache->from_next : cache->from_first;
}

/* Moves the new caches out of the outputs. */
static void keep_caches(struct loop *loop)
{
    for (size_t i = 0; i < loop->decoder->cache_count; i++) {
        int output = output_of_cache(loop, i);
        if (output < 0)
            continue;
        onnx_tensor_release(&loop->caches[i]);
        loop->caches[i] = loop->outputs[output];
        loop->outputs[output] = (struct onnx_tensor){0};
    }
    loop->has_cache = true;
}

static enum err pick_token(const struct loop *loop, const struct onnx_session *session,
                           int64_t *out, struct error *why)
{
    const struct whisper_decoding *decoding = loop->decoding;
    struct error reason = {0};
    bool is_first = loop->count == decoding->prompt->count;
    enum err err = whisper_rules_pick(
        decoding->rules, &loop->outputs[onnx_output(session, "logits")], is_first, out, &reason);
    if (err)
        return err_set(why, err, "%s: at token %zu, %s", onnx_session_facts(session)->path,
                       loop->count, reason.text);
    return ERR_OK;
}

/* The token after those that there are. */
static enum err run_step(struct loop *loop, int64_t *out, struct error *why)
{
    struct onnx_session *session = session_of_step(loop);
    bool is_cached = loop->decoder->uses_cache;
    set_inputs(loop);
    memset(loop->wanted, 0, ONNX_PORTS_MAX * sizeof *loop->wanted);
    loop->wanted[onnx_output(session, "logits")] = true;
    for (size_t i = 0; i < loop->decoder->cache_count && is_cached; i++)
        if (output_of_cache(loop, i) >= 0)
            loop->wanted[output_of_cache(loop, i)] = true;
    enum err err =
        onnx_run(session, loop->inputs, loop->outputs, loop->wanted, loop->decoding->cancel, why);
    if (!err)
        err = pick_token(loop, session, out, why);
    if (!err && is_cached)
        keep_caches(loop);
    release_outputs(loop);
    return err;
}

enum err whisper_decoder_run(const struct whisper_decoder *decoder,
                             const struct whisper_decoding *decoding, struct whisper_sequence *out,
                             struct error *why)
{
    struct loop loop;
    bool is_ended = false;
    enum err err = ERR_OK;
    loop_init(&loop, decoder, decoding);
    for (size_t i = 0; i < decoding->tokens_max && !is_ended && !err; i++) {
        int64_t token = -1;
        err = run_step(&loop, &token, why);
        out->steps++;
        is_ended = !err && whisper_rules_ends(decoding->rules, token);
        if (err || is_ended)
            continue;
        loop.tokens[loop.count++] = token;
        *XADD(out->tokens, out->count, out->capacity) = token;
    }
    if (!is_ended)
        out->is_cut = true;
    loop_release(&loop);
    return err;
}
