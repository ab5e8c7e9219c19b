/* Speech recognition with Whisper models in the layout of optimum: log-mel spectrograms, encoder, and a decoder with a
 * KV cache.  Sound of any length is cut into chunks of the model's length, which are transcribed one after another. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/half.h"
#include "core/json.h"
#include "core/jv.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "media/audio.h"
#include "wire/completion.h"
#include "workloads/model_files.h"
#include "workloads/whisper.h"
#include "workloads/workload.h"

static const char PREPROCESSOR[] = "preprocessor_config.json";

struct whisper {
    struct whisper_rules rules;
    struct whisper_vocabulary vocabulary;
    struct mel_options mel;
    struct onnx_session *encoder;
    struct whisper_decoder decoder;
};

/* A query. */
struct speech {
    struct onnx_tensor *features;       /* the spectrogram of each chunk, in the caller's memory */
    struct whisper_sequence *sequences; /* one for each chunk */
    size_t count;
    struct whisper_prompt prompt;
    size_t tokens_max; /* of a chunk */
};

/* ---- opening ---- */

/* A positive integer of preprocessor_config.json; the first failure is kept. */
static uint32_t read_size(const struct jv *json, const char *key, uint32_t max, enum err *err,
                          struct error *why)
{
    int64_t value;
    if (jv_integer(jv_get(json, key), &value) && value > 0 && value <= max)
        return (uint32_t)value;
    if (!*err)
        *err = err_set(why, ERR_BAD_VALUE, "%s: %s must be an integer from 1 to %u", PREPROCESSOR,
                       key, max);
    return 1;
}

static size_t samples_of_chunk(const struct mel_options *mel)
{
    return (size_t)llround(mel->chunk_s * mel->rate);
}

static enum err read_mel_options(const struct model_files *files, struct mel_options *out,
                                 struct error *why)
{
    enum { RATE_MAX = 384000, FFT_MAX = 1 << 16, BINS_MAX = 1024, CHUNK_S_MAX = 600 };
    struct jv *json;
    enum err err = model_files_json(files, PREPROCESSOR, &json, why);
    if (!err && !json)
        err = err_set(why, ERR_NOT_FOUND, "%s has no %s", files->path, PREPROCESSOR);
    if (err)
        return err;
    out->rate = read_size(json, "sampling_rate", RATE_MAX, &err, why);
    out->fft = read_size(json, "n_fft", FFT_MAX, &err, why);
    out->hop = read_size(json, "hop_length", FFT_MAX, &err, why);
    out->bins = read_size(json, "feature_size", BINS_MAX, &err, why);
    out->chunk_s = jv_get_number(json, "chunk_length");
    if (!err && !(out->chunk_s > 0 && out->chunk_s <= CHUNK_S_MAX))
        err = err_set(why, ERR_BAD_VALUE, "%s: chunk_length must be above 0 and at most %d s",
                      PREPROCESSOR, CHUNK_S_MAX);
    if (!err && samples_of_chunk(out) < out->hop)
        err = err_set(why, ERR_BAD_VALUE, "%s: chunk_length is shorter than hop_length",
                      PREPROCESSOR);
    jv_free(json);
    return err;
}

static bool fits(int64_t dimension, uint64_t size)
{
    return dimension < 0 || (uint64_t)dimension == size;
}

/* The encoder must take spectrograms of the sizes in preprocessor_config.json; config.json has the number of bins for one
 * whose sizes are free. */
static enum err check_encoder(const struct whisper *whisper, struct error *why)
{
    int64_t bins;
    const struct onnx_facts *facts = onnx_session_facts(whisper->encoder);
    const struct onnx_port *port = &facts->inputs[0];
    size_t frames = samples_of_chunk(&whisper->mel) / whisper->mel.hop;
    if (facts->input_count != 1 || port->rank != 3 || facts->output_count < 1)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s is no Whisper encoder: expected one input, batch x bins x frames",
                       facts->path);
    if (port->type != ONNX_FLOAT && port->type != ONNX_FLOAT16)
        return err_set(why, ERR_UNSUPPORTED, "%s: input %s is %s, expected float or float16",
                       facts->path, port->name, onnx_type_name(port->type));
    if (!fits(port->shape[1], whisper->mel.bins) || !fits(port->shape[2], frames))
        return err_set(why, ERR_BAD_VALUE, "%s: input %s is %s, but %s gives %u bins x %zu frames",
                       facts->path, port->name, shape_text(port->shape, port->rank).text,
                       PREPROCESSOR, whisper->mel.bins, frames);
    if (jv_integer(jv_get(whisper->rules.config, "num_mel_bins"), &bins) &&
        bins != whisper->mel.bins)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: in %s feature_size is %u, but config.json has num_mel_bins %" PRId64,
                       facts->path, PREPROCESSOR, whisper->mel.bins, bins);
    return ERR_OK;
}

static enum err open_models(const struct model_files *files, const struct params *params,
                            struct whisper *whisper, struct error *why)
{
    struct params_reader reader = {.params = params, .why = why};
    const struct whisper_decoder_options options = {
        .variant = text_or_empty(params_get(params, "variant")),
        .uses_cache = params_bool(&reader, "kv_cache", true)};
    enum err err = reader.err;
    if (!err)
        err = whisper_session_open(files, "encoder_model", options.variant, &whisper->encoder, why);
    if (!err)
        err = check_encoder(whisper, why);
    if (!err)
        err = whisper_decoder_open(files, &whisper->rules, &options, &whisper->decoder, why);
    return err;
}

static void whisper_free(struct whisper *whisper)
{
    whisper_rules_release(&whisper->rules);
    whisper_vocabulary_release(&whisper->vocabulary);
    onnx_session_close(whisper->encoder);
    whisper_decoder_release(&whisper->decoder);
    free(whisper);
}

static enum err open_files(const struct model_files *files, const struct params *params,
                           struct whisper *whisper, struct error *why)
{
    if (files->is_file)
        return err_set(why, ERR_USAGE,
                       "%s is a file: workload whisper needs the directory of an export, with "
                       "encoder_model.onnx, its decoders and config.json",
                       files->path);
    enum err err = whisper_rules_read(files, &whisper->rules, why);
    if (!err)
        err = whisper_vocabulary_read(files, &whisper->vocabulary, why);
    if (!err)
        err = read_mel_options(files, &whisper->mel, why);
    if (!err)
        err = open_models(files, params, whisper, why);
    return err;
}

static enum err open_whisper(const struct workload_config *config, struct workload *out,
                             struct error *why)
{
    struct model_files files;
    enum err err = model_files_open(config, &files, why);
    if (err)
        return err;
    struct whisper *whisper = XNEW(whisper);
    err = open_files(&files, config->params, whisper, why);
    model_files_release(&files);
    if (err)
        whisper_free(whisper);
    else
        out->state = whisper;
    return err;
}

static void close_whisper(struct workload *workload)
{
    whisper_free(workload->state);
}

/* ---- a query ---- */

/* Takes the values of a spectrogram. */
static struct onnx_tensor tensor_of_mel(struct mel *mel, enum onnx_type type)
{
    const int64_t shape[] = {1, (int64_t)mel->bins, (int64_t)mel->frames};
    size_t count = mel->bins * mel->frames;
    void *data = mel->values;
    if (type == ONNX_FLOAT16) {
        uint16_t *halves = xreallocarray(NULL, count, sizeof *halves);
        for (size_t i = 0; i < count; i++)
            halves[i] = half_from_float(mel->values[i]);
        data = halves;
    } else {
        mel->values = NULL;
    }
    mel_release(mel);
    return onnx_tensor_of(type, data, COUNT_OF(shape), shape);
}

/* Spectrograms of chunks as long as the model's files say, without one for less than a frame at the end. */
static void compute_features(const struct whisper *whisper, const struct audio *audio,
                             struct speech *speech)
{
    const struct mel_options *options = &whisper->mel;
    enum onnx_type type = onnx_session_facts(whisper->encoder)->inputs[0].type;
    size_t length = samples_of_chunk(options);
    size_t whole = audio->count - audio->count % options->hop;
    speech->count = whole > length ? (whole + length - 1) / length : 1;
    speech->features = xcalloc(speech->count, sizeof *speech->features);
    speech->sequences = xcalloc(speech->count, sizeof *speech->sequences);
    for (size_t i = 0; i < speech->count; i++) {
        size_t left = audio->count - i * length;
        const struct audio part = {audio->rate, left < length ? left : length,
                                   audio->samples + i * length};
        struct mel mel = {0};
        mel_spectrogram(&part, options, &mel);
        speech->features[i] = tensor_of_mel(&mel, type);
    }
}

static enum err load(const char *path, uint32_t rate, struct audio *out, struct error *why)
{
    struct audio read = {0};
    enum err err = audio_load(path, &read, why);
    if (!err && !read.count)
        err = err_set(why, ERR_BAD_VALUE, "%s: no samples", path);
    if (!err && read.rate != rate) {
        audio_resample(&read, rate, out);
    } else if (!err) {
        *out = read;
        read = (struct audio){0};
    }
    audio_release(&read);
    return err;
}

static enum err prepare(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct whisper *whisper = workload->state;
    const struct whisper_rules *rules = &whisper->rules;
    struct speech *speech = XNEW(speech);
    struct audio audio = {0};
    query->state = speech;
    enum err err = whisper_rules_prompt(rules, params_get(query->params, "language"),
                                        params_get(query->params, "task"), &speech->prompt, why);
    if (err)
        return err;
    size_t most =
        rules->length_max > speech->prompt.count ? rules->length_max - speech->prompt.count : 1;
    struct params_reader reader = {.params = query->params, .why = why};
    speech->tokens_max = params_count(&reader, "max_tokens", most, 1, most);
    err = reader.err;
    if (!err)
        err = load(query->input, whisper->mel.rate, &audio, why);
    if (!err) {
        query->audio_s = audio_seconds(&audio);
        compute_features(whisper, &audio, speech);
    }
    audio_release(&audio);
    return err;
}

/* The states of the encoder, the first of its outputs. */
static enum err encode(const struct whisper *whisper, const struct onnx_tensor *features,
                       const atomic_bool *cancel, struct onnx_tensor *outputs, struct error *why)
{
    const bool wanted[ONNX_PORTS_MAX] = {true};
    enum err err = onnx_run(whisper->encoder, features, outputs, wanted, cancel, why);
    if (!err)
        err = model_output_check(whisper->encoder, 0, &outputs[0], 3, why);
    return err;
}

static enum err run(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct whisper *whisper = workload->state;
    const struct speech *speech = query->state;
    struct onnx_tensor outputs[ONNX_PORTS_MAX] = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < speech->count && !err; i++) {
        const struct whisper_decoding decoding = {.rules = &whisper->rules,
                                                  .prompt = &speech->prompt,
                                                  .states = &outputs[0],
                                                  .tokens_max = speech->tokens_max,
                                                  .cancel = query->cancel};
        err = encode(whisper, &speech->features[i], query->cancel, outputs, why);
        if (!err)
            err = whisper_decoder_run(&whisper->decoder, &decoding, &speech->sequences[i], why);
        onnx_tensor_release(&outputs[0]);
        outputs[0] = (struct onnx_tensor){0};
    }
    return err;
}

/* The chunks' texts, trimmed and separated by a space. */
static void add_chunk(const struct whisper *whisper, const struct whisper_sequence *sequence,
                      struct text *out)
{
    struct text chunk = {0};
    whisper_vocabulary_decode(&whisper->vocabulary, sequence->tokens, sequence->count, &chunk);
    struct slice trimmed = slice_trim((struct slice){text_get(&chunk), chunk.length});
    text_add(out, out->length && trimmed.length ? " " : "");
    text_add_bytes(out, trimmed.start, trimmed.length);
    text_release(&chunk);
}

static enum err finish(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why)
{
    const struct whisper *whisper = workload->state;
    const struct speech *speech = query->state;
    bool is_cut = false;
    (void)why;
    query->output_tokens = 0;
    for (size_t i = 0; i < speech->count; i++) {
        add_chunk(whisper, &speech->sequences[i], &out->content);
        query->output_tokens += (int64_t)speech->sequences[i].steps;
        is_cut = is_cut || speech->sequences[i].is_cut;
    }
    completion_set_reason(out, is_cut ? "length" : "stop");
    return ERR_OK;
}

static void discard(struct workload *workload, struct workload_query *query)
{
    struct speech *speech = query->state;
    (void)workload;
    for (size_t i = 0; speech && i < speech->count; i++) {
        free(speech->features[i].data);
        whisper_sequence_release(&speech->sequences[i]);
    }
    if (speech) {
        free(speech->features);
        free(speech->sequences);
    }
    free(speech);
    query->state = NULL;
}

/* ---- the driver ---- */

static void describe(const struct workload *workload, struct json *json)
{
    const struct whisper *whisper = workload->state;
    const struct whisper_decoder *decoder = &whisper->decoder;
    model_describe(whisper->encoder, "encoder", json);
    model_describe(decoder->first, "decoder", json);
    if (decoder->next && !decoder->is_merged)
        model_describe(decoder->next, "decoder_with_past", json);
    json_bool(json, "kv_cache", decoder->uses_cache);
    json_number(json, "chunk_s", whisper->mel.chunk_s);
    model_describe_runtime(whisper->encoder, json);
}

static const char *const GRADERS[] = {"wer", "cer", NULL};

static const struct param_spec PARAMS[] = {
    MODEL_PARAMS,
    {"variant", "WORD", "suffix of the ONNX files: fp16, quantized (none)"},
    {"kv_cache", "yes|no", "decode with a KV cache; without one, each token repeats all (yes)"},
    {0},
};

static const struct param_spec QUERY_PARAMS[] = {
    {"language", "CODE", "spoken language: en, de (as forced by the model's files, else en)"},
    {"task", "transcribe|translate", "translate: into English (transcribe)"},
    {"max_tokens", "COUNT", "limit for each chunk of sound (what the model's files allow)"},
    {0},
};

const struct workload_driver workload_whisper = {
    .name = "whisper",
    .summary = "speech recognition: encoder, and decoder with KV cache",
    .inputs = "a WAV file of any sampling rate and length",
    .model_layout = "a directory of optimum (encoder_model.onnx, decoder_model*.onnx, config.json, "
                    "preprocessor_config.json, tokenizer.json)",
    .default_model = "digits-whisper",
    .default_dataset = "digits",
    .graders = GRADERS,
    .params = PARAMS,
    .query_params = QUERY_PARAMS,
    .open = open_whisper,
    .close = close_whisper,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .discard = discard,
    .describe = describe,
};
