/* A text becomes words: runs of letters, single digits, runs of other marks, and English contractions.  A word is written
 * with one printable character for each of its bytes, the last with "</w>", and starts as one symbol per character; then
 * the adjacent pair of symbols that merges.txt lists first becomes one symbol, until no pair is listed.  vocab.json has
 * the number of each symbol.
 *
 * As in transformers' CLIPTokenizer without the optional ftfy package, except that combining characters are not
 * normalized and ideographs are not separated. */
#include "graders/clip_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/fold.h"
#include "port/file.h"
#include "port/json_read.h"

#define START_TOKEN "<|startoftext|>"
#define END_TOKEN   "<|endoftext|>"
#define WORD_END    "</w>"

enum {
    LENGTH = 77,
    LENGTH_MAX = 4096,
    FILE_LIMIT = 64 << 20,
    MERGES_MAX = 49152 - 256 - 2, /* more are not used, whatever the file has */
};

struct merge {
    const char *pair; /* "first second" */
    size_t rank;
};

enum { START, END, PADDING };

struct clip_tokenizer {
    struct jv *vocabulary;
    struct jv_index ids;
    struct text merges_file;
    struct merge *merges; /* by pair */
    size_t merge_count;
    /* A special token is one wherever it stands in a text: start, end and padding. */
    struct special_token {
        char text[64];
        int64_t id;
    } special[3];
    size_t length;
};

void clip_tokenizer_free(struct clip_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    jv_index_release(&tokenizer->ids);
    jv_free(tokenizer->vocabulary);
    text_release(&tokenizer->merges_file);
    free(tokenizer->merges);
    free(tokenizer);
}

/* ---- the files ---- */

/* -1: not in the vocabulary. */
static int64_t token_id(const struct clip_tokenizer *tokenizer, const char *token)
{
    int64_t id = -1;
    return jv_integer(jv_index_get(&tokenizer->ids, token), &id) ? id : -1;
}

/* False if the vocabulary lacks it. */
static bool set_special(struct clip_tokenizer *tokenizer, size_t which, const char *token)
{
    struct special_token *special = &tokenizer->special[which];
    special->id = token_id(tokenizer, token);
    return special->id >= 0 && token[0] && chars_copy(special->text, token);
}

static enum err read_vocabulary(struct clip_tokenizer *tokenizer, const char *directory,
                                struct error *why)
{
    char *path = path_join(directory, "vocab.json");
    enum err err = jv_read(path, FILE_LIMIT, &tokenizer->vocabulary, why);
    if (!err)
        (void)jv_index_init(&tokenizer->ids, tokenizer->vocabulary);
    JV_EACH (token, err ? NULL : jv_first_member(tokenizer->vocabulary)) {
        int64_t id;
        if (!jv_integer(token, &id) || id < 0 || id > INT32_MAX) {
            err = err_set(why, ERR_BAD_VALUE, "%.200s: the id of token '%s' is not a number", path,
                          plain_text(jv_key(token)).text);
            break;
        }
    }
    if (!err) {
        bool has_both =
            set_special(tokenizer, START, START_TOKEN) && set_special(tokenizer, END, END_TOKEN);
        if (!has_both)
            err = err_set(why, ERR_UNSUPPORTED,
                          "%.200s: no vocabulary of CLIP: it lacks " START_TOKEN " or " END_TOKEN,
                          path);
    }
    free(path);
    return err;
}

static int compare_merges(const void *left, const void *right)
{
    return strcmp(((const struct merge *)left)->pair, ((const struct merge *)right)->pair);
}

/* The first line is the version; the others are ranked in their order. */
static enum err read_merges(struct clip_tokenizer *tokenizer, const char *directory,
                            struct error *why)
{
    char *path = path_join(directory, "merges.txt");
    enum err err = file_read(path, FILE_LIMIT, &tokenizer->merges_file, why);
    free(path);
    if (err)
        return err;
    size_t capacity = 0;
    char *rest = NULL;
    char *line = tokenizer->merges_file.length
                     ? strtok_r(tokenizer->merges_file.bytes, "\r\n", &rest)
                     : NULL;
    while (line && (line = strtok_r(NULL, "\r\n", &rest)) && tokenizer->merge_count < MERGES_MAX) {
        size_t rank = tokenizer->merge_count;
        *XADD(tokenizer->merges, tokenizer->merge_count, capacity) = (struct merge){line, rank};
    }
    if (tokenizer->merge_count)
        qsort(tokenizer->merges, tokenizer->merge_count, sizeof *tokenizer->merges, compare_merges);
    return ERR_OK;
}

/* A token of the configuration is a string or an object with one. */
static const char *config_token(const struct jv *config, const char *key)
{
    const struct jv *value = jv_get(config, key);
    const char *content = jv_get_text(value, "content");
    return content ? content : jv_text(value);
}

static enum err read_optional(const char *directory, const char *name, struct jv **out,
                              struct error *why)
{
    char *path = path_join(directory, name);
    enum err err = file_exists(path) ? jv_read(path, FILE_SMALL, out, why) : ERR_OK;
    free(path);
    return err;
}

/* Length and padding: the list of special tokens, which is written for the model, has precedence. */
static enum err read_settings(struct clip_tokenizer *tokenizer, const char *directory,
                              struct error *why)
{
    struct jv *config = NULL;
    struct jv *special = NULL;
    enum err err = read_optional(directory, "tokenizer_config.json", &config, why);
    if (!err)
        err = read_optional(directory, "special_tokens_map.json", &special, why);
    if (!err) {
        const char *padding = config_token(special, "pad_token");
        if (!padding)
            padding = config_token(config, "pad_token");
        double length = jv_get_number(config, "model_max_length");
        tokenizer->length = length >= 3 && length <= LENGTH_MAX ? (size_t)length : LENGTH;
        if (!set_special(tokenizer, PADDING, padding ? padding : END_TOKEN))
            err = err_set(why, ERR_BAD_VALUE, "%.200s: padding token '%s' is not in the vocabulary",
                          directory, plain_text(padding).text);
    }
    jv_free(config);
    jv_free(special);
    return err;
}

enum err clip_tokenizer_load(const char *directory, struct clip_tokenizer **out, struct error *why)
{
    struct clip_tokenizer *tokenizer = XNEW(tokenizer);
    enum err err = read_vocabulary(tokenizer, directory, why);
    if (!err)
        err = read_merges(tokenizer, directory, why);
    if (!err)
        err = read_settings(tokenizer, directory, why);
    if (err) {
        clip_tokenizer_free(tokenizer);
        tokenizer = NULL;
    }
    *out = tokenizer;
    return err;
}

size_t clip_tokenizer_length(const struct clip_tokenizer *tokenizer)
{
    return tokenizer->length;
}

/* ---- words ---- */

enum kind { KIND_SPACE, KIND_LETTER, KIND_NUMBER, KIND_OTHER };

/* Beyond ASCII everything is a letter except for the spaces and marks that graders/fold.h knows and these: numbers,
 * combining characters, symbols and pictures. */
static enum kind kind_of(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        enum kind kind;
    } RANGES[] = {
        {'0', '9', KIND_NUMBER},
        {'A', 'Z', KIND_LETTER},
        {'a', 'z', KIND_LETTER},
        {0, 0xA9, KIND_OTHER},
        {0xAB, 0xB1, KIND_OTHER},
        {0xB2, 0xB3, KIND_NUMBER},
        {0xB4, 0xB4, KIND_OTHER},
        {0xB6, 0xB8, KIND_OTHER},
        {0xB9, 0xB9, KIND_NUMBER},
        {0xBB, 0xBB, KIND_OTHER},
        {0xBC, 0xBE, KIND_NUMBER},
        {0xBF, 0xBF, KIND_OTHER},
        {0xD7, 0xD7, KIND_OTHER},
        {0xF7, 0xF7, KIND_OTHER},
        {0x300, 0x36F, KIND_OTHER},
        {0x660, 0x669, KIND_NUMBER},
        {0x6F0, 0x6F9, KIND_NUMBER},
        {0x966, 0x96F, KIND_NUMBER},
        {0x2000, 0x206F, KIND_OTHER},
        {0x2070, 0x2079, KIND_NUMBER},
        {0x2080, 0x2089, KIND_NUMBER},
        {0x20A0, 0x20FF, KIND_OTHER},
        {0x2150, 0x2189, KIND_NUMBER},
        {0x2190, 0x245F, KIND_OTHER},
        {0x2460, 0x249B, KIND_NUMBER},
        {0x249C, 0x2BFF, KIND_OTHER},
        {0x3001, 0x3004, KIND_OTHER},
        {0x3008, 0x3020, KIND_OTHER},
        {0xE000, 0xF8FF, KIND_OTHER},
        {0xFE00, 0xFE0F, KIND_OTHER},
        {0xFF01, 0xFF0F, KIND_OTHER},
        {0xFF10, 0xFF19, KIND_NUMBER},
        {0x1F000, 0x1FAFF, KIND_OTHER},
        {0xE0000, 0xE0FFF, KIND_OTHER},
        {UTF8_INVALID, UINT32_MAX, KIND_OTHER},
    };
    if (char_is_space(c))
        return KIND_SPACE;
    for (size_t i = 0; i < COUNT_OF(RANGES); i++)
        if (c >= RANGES[i].first && c <= RANGES[i].last)
            return RANGES[i].kind;
    return KIND_LETTER;
}

static void lower(const char *text, struct text *out)
{
    struct text valid = {0};
    text_add_repaired(&valid, text, strlen(text));
    struct slice rest = {text_get(&valid), valid.length};
    while (rest.length) {
        size_t length;
        char bytes[UTF8_BYTES_MAX];
        uint32_t c = char_at(rest, &length);
        text_add_bytes(out, bytes, utf8_encode(char_lower(c), bytes));
        if (c == CHAR_DOTTED_I)
            text_add(out, CHAR_LOWER_MARK);
        rest.start += length;
        rest.length -= length;
    }
    text_release(&valid);
}

/* Length of the run of characters of one kind. */
static size_t run_length(struct slice rest, enum kind kind)
{
    size_t total = 0;
    while (total < rest.length) {
        size_t length;
        struct slice at = {rest.start + total, rest.length - total};
        if (kind_of(char_at(at, &length)) != kind)
            break;
        total += length;
    }
    return total;
}

/* Length of the word at the start, which is no space. */
static size_t word_length(struct slice rest)
{
    static const char *const CONTRACTIONS[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < COUNT_OF(CONTRACTIONS); i++)
        if (slice_starts(rest, CONTRACTIONS[i]))
            return strlen(CONTRACTIONS[i]);
    size_t first;
    enum kind kind = kind_of(char_at(rest, &first));
    return kind == KIND_NUMBER ? first : run_length(rest, kind);
}

/* ---- symbols of a word ---- */

/* The characters that stand for bytes: a printable one for itself, the others from U+0100 on in their order. */
static uint32_t byte_character(unsigned char byte)
{
    uint32_t moved = 0x100;
    for (unsigned other = 0; other <= byte; other++) {
        bool is_printable = (other >= '!' && other <= '~') || (other >= 0xA1 && other != 0xAD);
        if (other == byte)
            return is_printable ? byte : moved;
        moved += !is_printable;
    }
    return moved;
}

/* A word with its characters, and where its symbols end. */
struct word {
    struct text text;
    size_t *ends;
    size_t count, capacity;
    struct text key; /* scratch: a pair, or a symbol */
};

static void word_release(struct word *word)
{
    text_release(&word->text);
    text_release(&word->key);
    free(word->ends);
}

static void start_word(struct word *word, struct slice bytes)
{
    text_clear(&word->text);
    word->count = 0;
    for (size_t i = 0; i < bytes.length; i++) {
        char character[UTF8_BYTES_MAX];
        uint32_t code = byte_character((unsigned char)bytes.start[i]);
        text_add_bytes(&word->text, character, utf8_encode(code, character));
        if (i + 1 == bytes.length)
            text_add(&word->text, WORD_END);
        *XADD(word->ends, word->count, word->capacity) = word->text.length;
    }
}

static void add_symbol(struct word *word, size_t index)
{
    size_t start = index ? word->ends[index - 1] : 0;
    text_add_bytes(&word->key, word->text.bytes + start, word->ends[index] - start);
}

/* Of symbol `index` and the next; SIZE_MAX: not listed. */
static size_t pair_rank(const struct clip_tokenizer *tokenizer, struct word *word, size_t index)
{
    text_clear(&word->key);
    add_symbol(word, index);
    text_add(&word->key, " ");
    add_symbol(word, index + 1);
    struct merge wanted = {.pair = text_get(&word->key)};
    const struct merge *found = tokenizer->merge_count
                                    ? bsearch(&wanted, tokenizer->merges, tokenizer->merge_count,
                                              sizeof wanted, compare_merges)
                                    : NULL;
    return found ? found->rank : SIZE_MAX;
}

/* Joins all pairs of the lowest rank, from the left; false if none is listed. */
static bool merge_best(const struct clip_tokenizer *tokenizer, struct word *word, size_t *ranks)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i + 1 < word->count; i++) {
        ranks[i] = pair_rank(tokenizer, word, i);
        if (ranks[i] < best)
            best = ranks[i];
    }
    if (best == SIZE_MAX)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < word->count; i++) {
        bool joins = i + 1 < word->count && ranks[i] == best;
        i += joins;
        word->ends[kept++] = word->ends[i];
    }
    word->count = kept;
    return true;
}

struct ids {
    int64_t *items;
    size_t count, max;
};

static void add_id(struct ids *ids, int64_t id)
{
    if (ids->count < ids->max)
        ids->items[ids->count++] = id;
}

static void add_word(const struct clip_tokenizer *tokenizer, struct word *word, struct slice bytes,
                     struct ids *ids)
{
    start_word(word, bytes);
    size_t *ranks = xcalloc(word->count, sizeof *ranks);
    while (word->count > 1 && merge_best(tokenizer, word, ranks))
        ;
    free(ranks);
    for (size_t i = 0; i < word->count; i++) {
        text_clear(&word->key);
        add_symbol(word, i);
        int64_t id = token_id(tokenizer, text_get(&word->key));
        add_id(ids, id >= 0 ? id : tokenizer->special[END].id);
    }
}

static void add_words(const struct clip_tokenizer *tokenizer, struct slice text, struct ids *ids)
{
    struct word word = {0};
    while (text.length && ids->count < ids->max) {
        size_t length = run_length(text, KIND_SPACE);
        if (!length) {
            length = word_length(text);
            add_word(tokenizer, &word, (struct slice){text.start, length}, ids);
        }
        text.start += length;
        text.length -= length;
    }
    word_release(&word);
}

/* The first special token of a text and where it is; NULL: none. */
static const struct special_token *find_special(const struct clip_tokenizer *tokenizer,
                                                const char *text, const char **at)
{
    const struct special_token *found = NULL;
    for (size_t i = 0; i < COUNT_OF(tokenizer->special); i++) {
        const char *here = strstr(text, tokenizer->special[i].text);
        if (here && (!found || here < *at)) {
            found = &tokenizer->special[i];
            *at = here;
        }
    }
    return found;
}

size_t clip_tokenize(const struct clip_tokenizer *tokenizer, const char *text, int64_t *ids)
{
    struct text lowered = {0};
    struct ids added = {.items = ids, .max = tokenizer->length - 1};
    add_id(&added, tokenizer->special[START].id);
    lower(text, &lowered);
    const char *rest = text_get(&lowered);
    const char *at = NULL;
    const struct special_token *special;
    while ((special = find_special(tokenizer, rest, &at))) {
        add_words(tokenizer, slice_between(rest, at), &added);
        add_id(&added, special->id);
        rest = at + strlen(special->text);
    }
    add_words(tokenizer, slice_of(rest), &added);
    ids[added.count++] = tokenizer->special[END].id;
    for (size_t i = added.count; i < tokenizer->length; i++)
        ids[i] = tokenizer->special[PADDING].id;
    text_release(&lowered);
    return added.count;
}
