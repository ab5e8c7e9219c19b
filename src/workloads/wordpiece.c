/* Tokenization in two steps, as in BERT: a text is split into words, punctuation marks and ideographs, in lower case
 * without accents where the model has been trained so; a word is then divided into the longest pieces of the
 * vocabulary, from its start on. */
#include "workloads/model_files.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/fold.h"
#include "port/file.h"

enum { TOKENS_MAX = 1 << 24, WORD_CHARACTERS_MAX = 100 };

struct entry {
    char *token;
    int64_t id;
};

struct wordpiece {
    struct entry *entries; /* sorted by token */
    size_t count, capacity;
    bool is_words;      /* no pieces */
    bool keeps_case;    /* and accents */
    bool keeps_accents; /* in lower case */
    bool has_marks;     /* adds [CLS] and [SEP] */
    int64_t unknown, begin, end, padding;
};

void token_ids_release(struct token_ids *tokens)
{
    free(tokens->ids);
    *tokens = (struct token_ids){0};
}

/* ---- the vocabulary ---- */

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return strcmp(a->token, b->token);
}

static void add_entry(struct wordpiece *tokenizer, const char *token, int64_t id)
{
    *XADD(tokenizer->entries, tokenizer->count, tokenizer->capacity) =
        (struct entry){xstrdup(token), id};
}

/* -1: not in the vocabulary. */
static int64_t find_token(const struct wordpiece *tokenizer, const char *token)
{
    struct entry key = {(char *)token, 0};
    const struct entry *found =
        bsearch(&key, tokenizer->entries, tokenizer->count, sizeof key, compare_entries);
    return found ? found->id : -1;
}

static int64_t find_either(const struct wordpiece *tokenizer, const char *token, const char *other)
{
    int64_t id = find_token(tokenizer, token);
    return id >= 0 ? id : find_token(tokenizer, other);
}

static enum err index_vocabulary(struct wordpiece *tokenizer, const char *path, struct error *why)
{
    if (tokenizer->count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s: the vocabulary is empty", path);
    qsort(tokenizer->entries, tokenizer->count, sizeof *tokenizer->entries, compare_entries);
    tokenizer->is_words = true;
    for (size_t i = 0; i < tokenizer->count && tokenizer->is_words; i++)
        tokenizer->is_words = !str_starts(tokenizer->entries[i].token, "##");
    tokenizer->unknown = find_either(tokenizer, "[UNK]", "<unk>");
    tokenizer->padding = find_either(tokenizer, "[PAD]", "<pad>");
    tokenizer->begin = find_token(tokenizer, "[CLS]");
    tokenizer->end = find_token(tokenizer, "[SEP]");
    if (tokenizer->unknown < 0)
        return err_set(why, ERR_BAD_VALUE, "%s: the vocabulary has no token [UNK]", path);
    return ERR_OK;
}

/* ---- vocab.txt ---- */

static enum err read_lines(struct wordpiece *tokenizer, const char *path, struct error *why)
{
    enum { BYTES_MAX = 256 << 20 };
    struct text text = {0};
    enum err err = file_read(path, BYTES_MAX, &text, why);
    char *line = err ? NULL : text.bytes;
    for (int64_t id = 0; line && *line && id < TOKENS_MAX; id++) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : NULL;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        add_entry(tokenizer, line, id);
        line = next;
    }
    text_release(&text);
    if (!err)
        err = index_vocabulary(tokenizer, path, why);
    tokenizer->has_marks = !tokenizer->is_words && tokenizer->begin >= 0 && tokenizer->end >= 0;
    return err;
}

/* The case as tokenizer_config.json says; lower case is the default, in which BERT has no accents. */
static enum err read_case(const struct model_files *files, struct wordpiece *tokenizer,
                          struct error *why)
{
    struct jv *json;
    enum err err = model_files_json(files, "tokenizer_config.json", &json, why);
    tokenizer->keeps_case = !jv_bool(jv_get(json, "do_lower_case"), true);
    tokenizer->keeps_accents = !jv_bool(jv_get(json, "strip_accents"), !tokenizer->is_words);
    jv_free(json);
    return err;
}

/* ---- tokenizer.json ---- */

static enum err read_normalizer(const struct jv *json, struct wordpiece *tokenizer,
                                struct error *why)
{
    const struct jv *normalizer = jv_get(json, "normalizer");
    const char *type = jv_get_text(normalizer, "type");
    if (type && str_equal(type, "BertNormalizer")) {
        tokenizer->keeps_case = !jv_bool(jv_get(normalizer, "lowercase"), true);
        tokenizer->keeps_accents =
            !jv_bool(jv_get(normalizer, "strip_accents"), !tokenizer->keeps_case);
    } else if (type && str_equal(type, "Lowercase")) {
        tokenizer->keeps_accents = true;
    } else if (jv_is_null(normalizer)) {
        tokenizer->keeps_case = true;
    } else {
        return err_set(why, ERR_UNSUPPORTED,
                       "tokenizer.json: normalizer %s: expected BertNormalizer or Lowercase",
                       plain_text(text_or_empty(type)).text);
    }
    return ERR_OK;
}

/* Others split a text differently. */
static enum err check_pre_tokenizer(const struct jv *json, struct error *why)
{
    const char *type = text_or_empty(jv_get_text(jv_get(json, "pre_tokenizer"), "type"));
    if (str_equal(type, "BertPreTokenizer"))
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED,
                   "tokenizer.json: pre_tokenizer %s: expected BertPreTokenizer",
                   *type ? plain_text(type).text : "(none)");
}

static enum err check_type(const struct jv *model, struct error *why)
{
    const char *type = text_or_empty(jv_get_text(model, "type"));
    if (str_equal(type, "WordPiece") || str_equal(type, "WordLevel"))
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED,
                   "tokenizer.json: a tokenizer of the type %s: expected WordPiece or WordLevel",
                   *type ? plain_text(type).text : "(none)");
}

static enum err read_json(struct wordpiece *tokenizer, const struct jv *json, struct error *why)
{
    const struct jv *model = jv_get(json, "model");
    enum err err = check_type(model, why);
    if (!err)
        err = check_pre_tokenizer(json, why);
    if (!err)
        err = read_normalizer(json, tokenizer, why);
    if (err)
        return err;
    JV_EACH (token, jv_first_member(jv_get(model, "vocab"))) {
        int64_t id;
        if (!jv_integer(token, &id) || id < 0)
            return err_set(why, ERR_BAD_VALUE, "tokenizer.json: vocab: %s has no id",
                           plain_text(jv_key(token)).text);
        add_entry(tokenizer, jv_key(token), id);
    }
    err = index_vocabulary(tokenizer, "tokenizer.json", why);
    bool has_template = !jv_is_null(jv_get(json, "post_processor"));
    tokenizer->has_marks = has_template && tokenizer->begin >= 0 && tokenizer->end >= 0;
    return err;
}

/* ---- loading ---- */

static enum err load_from(const struct model_files *files, struct wordpiece *tokenizer,
                          struct error *why)
{
    struct jv *json;
    enum err err = model_files_json(files, "tokenizer.json", &json, why);
    if (err || json) {
        if (!err)
            err = read_json(tokenizer, json, why);
        jv_free(json);
        return err;
    }
    char *path = model_files_beside(files, "vocab.txt");
    if (!path)
        path = model_files_find(files, "vocab.txt");
    if (!path)
        return err_set(why, ERR_NOT_FOUND,
                       "no vocabulary beside %s: expected vocab.txt or tokenizer.json",
                       files->path);
    err = read_lines(tokenizer, path, why);
    if (!err)
        err = read_case(files, tokenizer, why);
    free(path);
    return err;
}

enum err wordpiece_load(const struct model_files *files, struct wordpiece **out, struct error *why)
{
    struct wordpiece *tokenizer = XNEW(tokenizer);
    enum err err = load_from(files, tokenizer, why);
    *out = err ? NULL : tokenizer;
    if (err)
        wordpiece_free(tokenizer);
    return err;
}

void wordpiece_free(struct wordpiece *tokenizer)
{
    if (!tokenizer)
        return;
    for (size_t i = 0; i < tokenizer->count; i++)
        free(tokenizer->entries[i].token);
    free(tokenizer->entries);
    free(tokenizer);
}

int64_t wordpiece_padding(const struct wordpiece *tokenizer)
{
    return tokenizer->padding >= 0 ? tokenizer->padding : 0;
}

size_t wordpiece_size(const struct wordpiece *tokenizer)
{
    return tokenizer->count;
}

const char *wordpiece_kind(const struct wordpiece *tokenizer)
{
    return tokenizer->is_words ? "words" : "WordPiece";
}

/* ---- characters ---- */

/* The letters below the accents of U+00C0 to U+017F; a space: no accent. */
static const char BASE_LETTERS[] =
    "AAAAAA CEEEEIIII NOOOOO  UUUUY  aaaaaa ceeeeiiii nooooo  uuuuy y"
    "AaAaAaCcCcCcCcDd  EeEeEeEeEeGgGgGgGgHh  IiIiIiIiI   JjKk LlLlLl "
    "   NnNnNn   OoOoOo  RrRrRrSsSsSsSsTtTt  UuUuUuUuUuUuWwYyYZzZzZz ";
enum { BASE_FIRST = 0xC0, MARK_FIRST = 0x300, MARK_LAST = 0x36F };

/* 0: dropped. */
static uint32_t normalize(const struct wordpiece *tokenizer, uint32_t c)
{
    bool is_control = (c < 0x20 && !char_is_space(c)) || (c >= 0x7F && c < 0xA0);
    if (is_control || c == UTF8_REPLACEMENT || c == 0x200D || c == 0xFEFF)
        return 0;
    if (!tokenizer->keeps_accents && !tokenizer->keeps_case) {
        size_t index = c - BASE_FIRST;
        if (c >= MARK_FIRST && c <= MARK_LAST)
            return 0;
        if (c >= BASE_FIRST && index < sizeof BASE_LETTERS - 1 && BASE_LETTERS[index] != ' ')
            c = (unsigned char)BASE_LETTERS[index];
    }
    return tokenizer->keeps_case ? c : char_lower(c);
}

static bool is_ideograph(uint32_t c)
{
    return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x2FA1F);
}

/* ---- words ---- */

static void add_id(struct token_ids *out, int64_t id)
{
    *XADD(out->ids, out->count, out->capacity) = id;
}

/* The longest token at the start of bytes[length], which continues a word unless `is_first`; its length, 0: none. */
static size_t longest_piece(const struct wordpiece *tokenizer, const char *bytes, size_t length,
                            bool is_first, int64_t *id)
{
    char piece[2 + WORD_CHARACTERS_MAX * UTF8_BYTES_MAX + 1] = "##";
    size_t prefix = is_first ? 0 : 2;
    for (size_t part = length; part > 0; part--) {
        if (part < length && utf8_is_continuation(bytes[part]))
            continue;
        memcpy(piece + prefix, bytes, part);
        piece[prefix + part] = '\0';
        *id = find_token(tokenizer, piece);
        if (*id >= 0)
            return part;
    }
    return 0;
}

/* One [UNK] for a word that cannot be divided. */
static void add_pieces(const struct wordpiece *tokenizer, const char *word, struct token_ids *out)
{
    size_t begin = out->count, length = strlen(word);
    for (size_t at = 0, part; at < length; at += part) {
        int64_t id;
        part = longest_piece(tokenizer, word + at, length - at, at == 0, &id);
        if (part == 0) {
            out->count = begin;
            add_id(out, tokenizer->unknown);
            return;
        }
        add_id(out, id);
    }
}

/* The tokens of a word, or of a punctuation mark or ideograph by itself, which is then cleared. */
static void end_word(const struct wordpiece *tokenizer, struct text *word, struct token_ids *out)
{
    if (word->length == 0)
        return;
    if (utf8_width(text_get(word)) > WORD_CHARACTERS_MAX) {
        add_id(out, tokenizer->unknown);
    } else if (tokenizer->is_words) {
        int64_t id = find_token(tokenizer, text_get(word));
        add_id(out, id >= 0 ? id : tokenizer->unknown);
    } else {
        add_pieces(tokenizer, text_get(word), out);
    }
    text_clear(word);
}

static void add_character(struct text *word, uint32_t c)
{
    char bytes[UTF8_BYTES_MAX];
    text_add_bytes(word, bytes, utf8_encode(c, bytes));
}

static void encode_words(const struct wordpiece *tokenizer, const char *text, size_t max,
                         struct token_ids *out)
{
    struct text word = {0};
    size_t left = strlen(text), limit = out->count + max;
    for (size_t length; left > 0 && out->count < limit; text += length, left -= length) {
        uint32_t c = normalize(tokenizer, char_at((struct slice){text, left}, &length));
        bool is_alone = char_is_punctuation(c) || is_ideograph(c), is_space = char_is_space(c);
        if (c == 0)
            continue;
        if (is_alone || is_space)
            end_word(tokenizer, &word, out);
        if (!is_space)
            add_character(&word, c);
        if (is_alone)
            end_word(tokenizer, &word, out);
    }
    end_word(tokenizer, &word, out);
    text_release(&word);
    if (out->count > limit)
        out->count = limit;
}

void wordpiece_encode(const struct wordpiece *tokenizer, const char *text, size_t max,
                      struct token_ids *out)
{
    if (tokenizer->has_marks)
        add_id(out, tokenizer->begin);
    encode_words(tokenizer, text, tokenizer->has_marks ? max - 2 : max, out);
    if (tokenizer->has_marks)
        add_id(out, tokenizer->end);
}
