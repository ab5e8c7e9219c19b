/* Reads the vocabulary and the generation rules of a Whisper model.  A vocabulary of byte-level BPE writes each byte as
 * one character: printable bytes as themselves, the others as the characters from U+0100 on, in the order of the
 * bytes. */
#include "workloads/whisper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "workloads/model_files.h"

enum { TOKENS_MAX = 1 << 20, LENGTH_MAX = 1 << 16, BYTE_COUNT = 256, FIRST_MOVED = 0x100 };

/* ---- the vocabulary ---- */

/* <|en|>, <|0.00|> and the like, in files that do not say which tokens are special. */
static bool looks_like_control(const char *text)
{
    return str_starts(text, "<|") && str_ends(text, "|>");
}

static enum err add_piece(struct whisper_vocabulary *vocabulary, const char *text,
                          const struct jv *number, bool is_added, const char *file,
                          struct error *why)
{
    int64_t id;
    if (!text || !jv_integer(number, &id) || id < 0 || id >= TOKENS_MAX)
        return err_set(why, ERR_BAD_VALUE, "%s: token '%s' has no valid id", file,
                       plain_text(text_or_empty(text)).text);
    size_t needed = (size_t)id + 1;
    if (needed > vocabulary->count) {
        vocabulary->pieces = xreallocarray(vocabulary->pieces, needed, sizeof *vocabulary->pieces);
        memset(vocabulary->pieces + vocabulary->count, 0,
               (needed - vocabulary->count) * sizeof *vocabulary->pieces);
        vocabulary->count = needed;
    }
    struct whisper_piece *piece = &vocabulary->pieces[id];
    free(piece->text);
    *piece = (struct whisper_piece){xstrdup(text), is_added, looks_like_control(text)};
    return ERR_OK;
}

/* {"token": id, ...} */
static enum err add_pieces(struct whisper_vocabulary *vocabulary, const struct jv *map,
                           bool is_added, const char *file, struct error *why)
{
    enum err err = ERR_OK;
    JV_EACH (token, jv_first_member(map)) {
        if (!err)
            err = add_piece(vocabulary, jv_key(token), token, is_added, file, why);
    }
    return err;
}

static enum err read_tokenizer(const struct jv *json, struct whisper_vocabulary *out,
                               struct error *why)
{
    static const char FILE_NAME[] = "tokenizer.json";
    const struct jv *map = jv_path(json, "model.vocab");
    if (!jv_is_object(map))
        return err_set(why, ERR_UNSUPPORTED, "%s: no vocabulary of byte-level BPE (model.vocab)",
                       FILE_NAME);
    enum err err = add_pieces(out, map, false, FILE_NAME, why);
    JV_EACH (token, jv_first(jv_get(json, "added_tokens"))) {
        if (!err)
            err = add_piece(out, jv_get_text(token, "content"), jv_get(token, "id"), true,
                            FILE_NAME, why);
        int64_t id;
        if (!err && jv_bool(jv_get(token, "special"), false) &&
            jv_integer(jv_get(token, "id"), &id))
            out->pieces[id].is_control = true;
    }
    return err;
}

static enum err read_vocab(const struct model_files *files, const struct jv *map,
                           struct whisper_vocabulary *out, struct error *why)
{
    struct jv *added;
    enum err err = model_files_json(files, "added_tokens.json", &added, why);
    if (!err)
        err = add_pieces(out, map, false, "vocab.json", why);
    if (!err)
        err = add_pieces(out, added, true, "added_tokens.json", why);
    jv_free(added);
    return err;
}

enum err whisper_vocabulary_read(const struct model_files *files, struct whisper_vocabulary *out,
                                 struct error *why)
{
    struct jv *json = NULL;
    enum err err = model_files_json(files, "tokenizer.json", &json, why);
    if (!err && json) {
        err = read_tokenizer(json, out, why);
    } else if (!err) {
        err = model_files_json(files, "vocab.json", &json, why);
        if (!err && json)
            err = read_vocab(files, json, out, why);
    }
    if (!err && !out->count)
        err = err_set(why, ERR_NOT_FOUND,
                      "%s has no vocabulary: expected tokenizer.json, or vocab.json", files->path);
    jv_free(json);
    if (err)
        whisper_vocabulary_release(out);
    return err;
}

void whisper_vocabulary_release(struct whisper_vocabulary *vocabulary)
{
    for (size_t i = 0; i < vocabulary->count; i++)
        free(vocabulary->pieces[i].text);
    free(vocabulary->pieces);
    *vocabulary = (struct whisper_vocabulary){0};
}

static bool is_printable_byte(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

/* The bytes that are written as characters from U+0100 on, in this order. */
static size_t list_moved_bytes(unsigned char moved[BYTE_COUNT])
{
    size_t count = 0;
    for (unsigned byte = 0; byte < BYTE_COUNT; byte++)
        if (!is_printable_byte(byte))
            moved[count++] = (unsigned char)byte;
    return count;
}

/* The byte that a character stands for; -1: none, in vocabularies that are not byte-level. */
static int byte_of(uint32_t code)
{
    unsigned char moved[BYTE_COUNT];
    if (code < BYTE_COUNT)
        return is_printable_byte(code) ? (int)code : -1;
    size_t count = list_moved_bytes(moved);
    return code >= FIRST_MOVED && code - FIRST_MOVED < count ? moved[code - FIRST_MOVED] : -1;
}

static void add_decoded(const char *piece, struct text *out)
{
    size_t left = strlen(piece), taken;
    for (const char *at = piece; left > 0; at += taken, left -= taken) {
        int byte = byte_of(utf8_decode(at, left, &taken));
        char decoded = (char)byte;
        if (byte < 0)
            text_add_bytes(out, at, taken);
        else
            text_add_bytes(out, &decoded, 1);
    }
}

void whisper_vocabulary_decode(const struct whisper_vocabulary *vocabulary, const int64_t *tokens,
                               size_t count, struct text *out)
{
    struct text bytes = {0};
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || (size_t)tokens[i] >= vocabulary->count)
            continue;
        const struct whisper_piece *piece = &vocabulary->pieces[tokens[i]];
        if (!piece->text || piece->is_control)
            continue;
        if (piece->is_added)
            text_add(&bytes, piece->text);
        else
            add_decoded(piece->text, &bytes);
    }
    text_add_repaired(out, text_get(&bytes), bytes.length);
    text_release(&bytes);
}

/* ---- the rules of generation ---- */

enum { ALWAYS = 1, AT_BEGIN = 2 };

/* A member of generation_config.json, or, where that lacks it or has null, of config.json. */
static const struct jv *find_rule(const struct whisper_rules *rules, const char *key)
{
    const struct jv *found = jv_get(rules->generation, key);
    return jv_is_null(found) ? jv_get(rules->config, key) : found;
}

/* -1: missing. */
static int64_t find_token(const struct whisper_rules *rules, const char *key)
{
    int64_t token;
    return jv_integer(find_rule(rules, key), &token) && token >= 0 ? token : -1;
}

static void suppress(struct whisper_rules *rules, const char *key, uint8_t when)
{
    JV_EACH (item, jv_first(find_rule(rules, key))) {
        int64_t token;
        if (!jv_integer(item, &token) || token < 0 || token >= TOKENS_MAX)
            continue;
        size_t needed = (size_t)token + 1;
        if (needed > rules->suppressed_count) {
            rules->suppressed = xrealloc(rules->suppressed, needed);
            memset(rules->suppressed + rules->suppressed_count, 0,
                   needed - rules->suppressed_count);
            rules->suppressed_count = needed;
        }
        rules->suppressed[token] |= when;
    }
}

/* One id, or a list of them. */
static void read_ends(struct whisper_rules *rules)
{
    const struct jv *ends = find_rule(rules, "eos_token_id");
    int64_t token;
    if (jv_integer(ends, &token))
        rules->ends[rules->end_count++] = token;
    JV_EACH (item, jv_is_array(ends) ? jv_first(ends) : NULL) {
        if (rules->end_count < WHISPER_ENDS_MAX && jv_integer(item, &token))
            rules->ends[rules->end_count++] = token;
    }
}

/* The positions of the decoder bound max_length; 0: unknown, or nonsense. */
static size_t read_length(const struct whisper_rules *rules)
{
    int64_t length = find_token(rules, "max_length");
    int64_t positions = find_token(rules, "max_target_positions");
    if (length < 1 || (positions > 0 && positions < length))
        length = positions;
    return length > 0 && length <= LENGTH_MAX ? (size_t)length : 0;
}

static enum err check_rules(const struct model_files *files, const struct whisper_rules *rules,
                            struct error *why)
{
    const char *type = jv_get_text(rules->config, "model_type");
    if (!rules->config)
        return err_set(why, ERR_NOT_FOUND, "%s has no config.json", files->path);
    if (type && !str_equal(type, "whisper"))
        return err_set(why, ERR_USAGE, "%s: config.json is of a model of type '%s', not whisper",
                       files->path, plain_text(type).text);
    const char *missing = rules->start < 0        ? "decoder_start_token_id"
                          : !rules->end_count     ? "eos_token_id"
                          : rules->length_max < 1 ? "a valid max_length or max_target_positions"
                                                  : NULL;
    if (missing)
        return err_set(why, ERR_BAD_VALUE, "%s: config.json and generation_config.json lack %s",
                       files->path, missing);
    return ERR_OK;
}

enum err whisper_rules_read(const struct model_files *files, struct whisper_rules *out,
                            struct error *why)
{
    enum err err = model_files_json(files, "config.json", &out->config, why);
    if (!err)
        err = model_files_json(files, "generation_config.json", &out->generation, why);
    if (!err) {
        out->start = find_token(out, "decoder_start_token_id");
        out->length_max = read_length(out);
        read_ends(out);
        suppress(out, "suppress_tokens", ALWAYS);
        suppress(out, "begin_suppress_tokens", AT_BEGIN);
        err = check_rules(files, out, why);
    }
    if (err)
        whisper_rules_release(out);
    return err;
}

void whisper_rules_release(struct whisper_rules *rules)
{
    jv_free(rules->config);
    jv_free(rules->generation);
    free(rules->suppressed);
    *rules = (struct whisper_rules){0};
}

bool whisper_rules_ends(const struct whisper_rules *rules, int64_t token)
{
    for (size_t i = 0; i < rules->end_count; i++)
        if (rules->ends[i] == token)
            return true;
    return false;
}

/* ---- the prompt ---- */

/* What forced_decoder_ids ([[1, 50259], [2, 50359]]) has for a position; -1: nothing. */
static int64_t forced_at(const struct whisper_rules *rules, size_t position)
{
    JV_EACH (pair, jv_first(find_rule(rules, "forced_decoder_ids"))) {
        int64_t at, token;
        if (jv_integer(jv_path(pair, "0"), &at) && at == (int64_t)position &&
            jv_integer(jv_path(pair, "1"), &token) && token >= 0)
            return token;
    }
    return -1;
}

/* The token of "en" or "transcribe" in lang_to_id or task_to_id, whose keys may be "<|en|>"; -1: none. */
static int64_t token_named(const struct jv *map, const char *name)
{
    int64_t token;
    char control[64];
    chars_format(control, "<|%s|>", name);
    const struct jv *found = jv_get(map, control);
    if (!found)
        found = jv_get(map, name);
    return jv_integer(found, &token) ? token : -1;
}

static enum err unknown_name(const char *kind, const char *name, const struct jv *map,
                             struct error *why)
{
    struct text known = {0};
    JV_EACH (item, jv_first_member(map)) {
        const char *key = jv_key(item);
        size_t length = strlen(key);
        bool is_control = looks_like_control(key) && length > 4;
        text_add(&known, known.length ? ", " : "");
        text_add_bytes(&known, is_control ? key + 2 : key, is_control ? length - 4 : length);
    }
    enum err err = known.length
                       ? err_set(why, ERR_USAGE, "unknown %s '%.32s': this model knows %s", kind,
                                 name, text_get(&known))
                       : err_set(why, ERR_USAGE,
                                 "%s '%.32s': this model has no choice of it (no %s in "
                                 "generation_config.json)",
                                 kind, name, str_equal(kind, "task") ? "task_to_id" : "lang_to_id");
    text_release(&known);
    return err;
}

/* A language or a task: as given, else as forced, else the usual one if the model has it; -1: none. */
static enum err choose(const struct whisper_rules *rules, const char *kind, const char *map_key,
                       const char *given, const char *usual, size_t position, int64_t *out,
                       struct error *why)
{
    const struct jv *map = find_rule(rules, map_key);
    *out = given ? token_named(map, given) : forced_at(rules, position);
    if (*out < 0 && given)
        return unknown_name(kind, given, map, why);
    if (*out < 0)
        *out = token_named(map, usual);
    return ERR_OK;
}

static void add_to_prompt(struct whisper_prompt *prompt, int64_t token)
{
    if (token >= 0 && prompt->count < WHISPER_PROMPT_MAX)
        prompt->tokens[prompt->count++] = token;
}

static bool prompt_has(const struct whisper_prompt *prompt, int64_t token)
{
    for (size_t i = 0; i < prompt->count; i++)
        if (prompt->tokens[i] == token)
            return true;
    return false;
}

enum err whisper_rules_prompt(const struct whisper_rules *rules, const char *language,
                              const char *task, struct whisper_prompt *out, struct error *why)
{
    int64_t chosen[2];
    *out = (struct whisper_prompt){0};
    enum err err = choose(rules, "language", "lang_to_id", language, "en", 1, &chosen[0], why);
    if (!err)
        err = choose(rules, "task", "task_to_id", task, "transcribe", 2, &chosen[1], why);
    if (err)
        return err;
    add_to_prompt(out, rules->start);
    add_to_prompt(out, chosen[0]);
    add_to_prompt(out, chosen[1]);
    for (size_t position = 3; position < WHISPER_PROMPT_MAX; position++)
        add_to_prompt(out, forced_at(rules, position));
    int64_t no_times = find_token(rules, "no_timestamps_token_id");
    if (!prompt_has(out, no_times))
        add_to_prompt(out, no_times);
    return ERR_OK;
}

/* ---- the choice of a token ---- */

static bool is_suppressed(const struct whisper_rules *rules, size_t token, bool is_first)
{
    uint8_t when = is_first ? ALWAYS | AT_BEGIN : ALWAYS;
    return token < rules->suppressed_count && (rules->suppressed[token] & when);
}

enum err whisper_rules_pick(const struct whisper_rules *rules, const struct onnx_tensor *logits,
                            bool is_first, int64_t *out, struct error *why)
{
    size_t width = logits->rank == 3 ? (size_t)logits->shape[2] : 0;
    if (!width || logits->count < width)
        return err_set(why, ERR_BAD_VALUE, "logits of shape %s: expected 1 x tokens x vocabulary",
                       shape_text(logits->shape, logits->rank).text);
    const float *row =
        logits->type == ONNX_FLOAT ? (const float *)logits->data + (logits->count - width) : NULL;
    double best = -INFINITY;
    *out = -1;
    for (size_t i = 0; i < width; i++) {
        double value = row ? row[i] : onnx_tensor_at(logits, logits->count - width + i);
        if (isnan(value) || value == INFINITY)
            return err_set(why, ERR_BAD_VALUE, "the logit of token %zu is %s", i,
                           isnan(value) ? "NaN" : "infinite");
        if (value > best && !is_suppressed(rules, i, is_first)) {
            best = value;
            *out = (int64_t)i;
        }
    }
    if (*out < 0)
        return err_set(why, ERR_BAD_VALUE, "every token of the vocabulary is suppressed");
    return ERR_OK;
}
