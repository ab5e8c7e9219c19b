/* Synthetic prompts of a given length, for measuring the effect of length alone.
 *
 * The number of tokens depends on the model's tokenizer.  The prompts therefore consist of short English
 * words that nearly every vocabulary contains, with the space before them, as one token: N words are N
 * tokens, give or take one that a server adds at the start.  The requested length is in the metadata, to be
 * compared with the server's count.  With chars_per_token the length is counted in characters instead, as
 * the Python IPW does.
 *
 * Prompts differ from the first word on, because a server with a prefix cache would otherwise have less
 * work. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/random.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"

#define LENGTH_MAX UINT64_C(4194304)

static const char *const WORDS[] = {
    "the",   "of",     "and",   "to",    "in",     "is",    "it",    "that",    "was",  "for",
    "on",    "are",    "as",    "with",  "his",    "they",  "at",    "be",      "this", "from",
    "have",  "or",     "by",    "one",   "had",    "not",   "but",   "what",    "all",  "were",
    "when",  "we",     "there", "can",   "an",     "your",  "which", "their",   "said", "if",
    "do",    "will",   "each",  "about", "how",    "up",    "out",   "them",    "then", "she",
    "many",  "some",   "so",    "these", "would",  "other", "into",  "has",     "more", "her",
    "two",   "like",   "him",   "see",   "time",   "could", "no",    "make",    "than", "first",
    "been",  "its",    "who",   "now",   "people", "my",    "made",  "over",    "did",  "down",
    "only",  "way",    "find",  "use",   "may",    "water", "long",  "little",  "very", "after",
    "words", "called", "just",  "where", "most",   "know",  "get",   "through", "back", "much",
};

struct lengths {
    uint64_t prompt, output, samples, seed;
    uint64_t chars_per_token; /* 0: words */
    uint64_t yielded;
};

static enum err fixed_open(const struct dataset_config *config, struct dataset *out,
                           struct error *why)
{
    struct params_reader read = {config->params, why, ERR_OK};
    struct lengths *lengths = XNEW(lengths);
    lengths->prompt = params_count(&read, "prompt_length", 100, 1, LENGTH_MAX);
    lengths->output = params_count(&read, "output_length", 0, 0, LENGTH_MAX);
    lengths->samples = params_count(&read, "num_samples", 8, 1, INT64_MAX);
    lengths->chars_per_token = params_count(&read, "chars_per_token", 0, 0, 64);
    lengths->seed = params_count(&read, "seed", 0, 0, UINT64_MAX);
    if (read.err) {
        free(lengths);
        return read.err;
    }
    out->state = lengths;
    out->count = (int64_t)lengths->samples;
    return ERR_OK;
}

static void fixed_close(struct dataset *dataset)
{
    free(dataset->state);
}

/* The first word depends on the prompt number; the others are random. */
static void add_words(const struct lengths *lengths, uint64_t number, struct text *out)
{
    enum { COUNT = COUNT_OF(WORDS) };
    struct random random = random_from(lengths->seed, number);
    uint64_t chars = lengths->chars_per_token * lengths->prompt;
    for (uint64_t i = 0; lengths->chars_per_token ? out->length < chars : i < lengths->prompt;
         i++) {
        uint64_t word = i == 0 ? (number + lengths->seed) % COUNT : random_below(&random, COUNT);
        text_addf(out, "%s%s", i ? " " : "", WORDS[word]);
    }
    if (lengths->chars_per_token && out->bytes) {
        out->length = (size_t)chars;
        out->bytes[out->length] = '\0';
        if (out->bytes[out->length - 1] == ' ')
            out->bytes[out->length - 1] = 's'; /* a trailing space might be stripped */
    }
}

static struct jv *metadata_value(const struct lengths *lengths)
{
    uint64_t output = lengths->output, chars = lengths->chars_per_token;
    const struct jv_member MEMBERS[] = {
        {"prompt_length", jv_new_unsigned(lengths->prompt)},
        {output ? "output_length" : NULL, jv_new_unsigned(output)},
        {"counted_in", jv_new_text(chars ? "characters" : "words")},
        {chars ? "chars_per_token" : NULL, jv_new_unsigned(chars)},
    };
    return jv_new_members(MEMBERS, COUNT_OF(MEMBERS));
}

static enum err fixed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    struct lengths *lengths = dataset->state;
    (void)why;
    *end = lengths->yielded == lengths->samples;
    if (*end)
        return ERR_OK;
    struct text problem = {0};
    char id[24];
    chars_format(id, "%" PRIu64, lengths->yielded);
    add_words(lengths, lengths->yielded++, &problem);
    out->metadata = metadata_value(lengths);
    out->output_length = (int64_t)lengths->output;
    str_set(&out->id, id);
    str_take(&out->problem, &problem);
    str_set(&out->subject, "synthetic");
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"prompt_length", "TOKENS", "length of each prompt (100)"},
    {"output_length", "TOKENS", "max_tokens of the request (the client's default)"},
    {"num_samples", "ITEMS", "number of prompts (8)"},
    {"chars_per_token", "CHARS", "count characters instead, this many per token (0: words)"},
    {"seed", "NUMBER", "random seed (0)"},
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_fixed_length = {
    .name = "fixed_length",
    .summary = "synthetic prompts of a given length in tokens; not graded",
    .params = PARAMS,
    .open = fixed_open,
    .next = fixed_next,
    .close = fixed_close,
};
