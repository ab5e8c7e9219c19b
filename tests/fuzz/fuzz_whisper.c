/* The configuration and the vocabulary of a Whisper model: what was read starts, chooses and decodes tokens. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "engine/onnx.h"
#include "workloads/model_files.h"
#include "workloads/whisper.h"

enum { RULES, VOCABULARY, READERS };

/* The directory of a file with these bytes; each file has one of its own. */
static const char *write_file(const char *name, const char *bytes, size_t length)
{
    static char folder[256];
    chars_copy(folder, fuzz_file(name, bytes, length));
    *strrchr(folder, '/') = '\0';
    return folder;
}

static void check_prompt(const struct whisper_rules *rules, const char *language, const char *task)
{
    struct whisper_prompt prompt;
    struct error why = {0};
    enum err err = whisper_rules_prompt(rules, language, task, &prompt, &why);
    fuzz_check_error(err, &why);
    fuzz_check(prompt.count <= WHISPER_PROMPT_MAX);
    fuzz_check(err || prompt.tokens[0] == rules->start);
    for (size_t i = 0; i < prompt.count; i++)
        fuzz_check(prompt.tokens[i] >= 0);
}

static void check_pick(const struct whisper_rules *rules, bool is_first)
{
    float values[] = {0.5F, 3, -1, 2, 2, -INFINITY};
    const int64_t shape[] = {1, 1, COUNT_OF(values)};
    const struct onnx_tensor logits = onnx_tensor_of(ONNX_FLOAT, values, 3, shape);
    struct error why = {0};
    int64_t token;
    enum err err = whisper_rules_pick(rules, &logits, is_first, &token, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err || (token >= 0 && token < (int64_t)COUNT_OF(values) - 1));
    fuzz_check(err || (size_t)token >= rules->suppressed_count ||
               !(rules->suppressed[token] & (is_first ? 3 : 1)));
}

static void run_rules(const char *bytes, size_t length)
{
    char *folder = (char *)write_file("rules/config.json", bytes, length);
    const struct model_files files = {.path = folder, .directory = folder};
    struct whisper_rules rules = {0};
    struct error why = {0};
    enum err err = whisper_rules_read(&files, &rules, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err ? !rules.config && !rules.suppressed : rules.length_max > 0);
    if (err)
        return;
    check_prompt(&rules, NULL, NULL);
    check_prompt(&rules, "en", "translate");
    check_pick(&rules, true);
    check_pick(&rules, false);
    whisper_rules_release(&rules);
}

static void run_vocabulary(const char *bytes, size_t length)
{
    enum { DECODED = 64 };
    char *folder = (char *)write_file("words/tokenizer.json", bytes, length);
    const struct model_files files = {.path = folder, .directory = folder};
    struct whisper_vocabulary vocabulary = {0};
    struct error why = {0};
    enum err err = whisper_vocabulary_read(&files, &vocabulary, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err ? !vocabulary.pieces : vocabulary.count > 0);
    if (err)
        return;
    int64_t tokens[DECODED];
    struct text text = {0};
    for (size_t i = 0; i < DECODED; i++)
        tokens[i] = (int64_t)i - 1;
    whisper_vocabulary_decode(&vocabulary, tokens, DECODED, &text);
    fuzz_check(utf8_valid_prefix(text_get(&text), text.length) == text.length);
    text_release(&text);
    whisper_vocabulary_release(&vocabulary);
}

static void run(const char *bytes, size_t length)
{
    if (fuzz_choose(&bytes, &length, READERS) == RULES)
        run_rules(bytes, length);
    else
        run_vocabulary(bytes, length);
}

static void seeds(void)
{
    fuzz_seed_file(RULES, IPW_FIXTURES "/whisper/config.json", 1 << 16);
    fuzz_seed(RULES, "{\"decoder_start_token_id\":2,\"eos_token_id\":[1,0],\"max_length\":9,"
                     "\"suppress_tokens\":[1,4],\"begin_suppress_tokens\":[3],"
                     "\"forced_decoder_ids\":[[1,null],[2,3]],\"lang_to_id\":{\"<|en|>\":4},"
                     "\"task_to_id\":{\"translate\":5},\"no_timestamps_token_id\":6}");
    fuzz_seed_file(VOCABULARY, IPW_FIXTURES "/whisper/tokenizer.json", 1 << 16);
    fuzz_seed(VOCABULARY,
              "{\"model\":{\"vocab\":{\"a\":0,\"\\u0120b\":1,\"\\u00c3\":2,\"\\u0100\":3,"
              "\"<|en|>\":4}},\"added_tokens\":[{\"id\":5,\"content\":\"x\",\"special\":"
              "true},{\"id\":6,\"content\":\" y\",\"special\":false}]}");
}

static const char *const WORDS[] = {"null",
                                    "-1",
                                    "[]",
                                    "[[1,null]]",
                                    "{}",
                                    "1048576",
                                    "\"<|en|>\"",
                                    "\"lang_to_id\"",
                                    "\"forced_decoder_ids\"",
                                    "\"added_tokens\"",
                                    NULL};

const struct fuzz_target fuzz_whisper = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
