/* Tokens of CLIP against those of transformers, recorded by tests/fixtures/workloads/clip_tokens/make. */
#include "support/unit.h"

#include "core/jv.h"
#include "port/json_read.h"
#include "support/tree.h"
#include "graders/clip_tokens.h"

#define FOLDER IPW_FIXTURES "/workloads/clip_tokens"

static void check_text(const struct clip_tokenizer *tokenizer, const struct jv *row)
{
    int64_t ids[77];
    const char *text = jv_get_text(row, "text");
    const struct jv *expected = jv_get(row, "ids");
    size_t count = clip_tokenize(tokenizer, text, ids);
    size_t at = 0;
    if (count != jv_count(expected))
        fail_msg("'%.40s': %zu tokens, not %zu", text, count, jv_count(expected));
    JV_EACH (id, jv_first(expected)) {
        if (ids[at] != (int64_t)jv_number(id))
            fail_msg("'%.40s': token %zu is %d, not %g", text, at, (int)ids[at], jv_number(id));
        at++;
    }
    for (; at < COUNT_OF(ids); at++)
        assert_int_equal(ids[at], 0); /* "!" */
}

static void tokens_are_those_of_transformers(void **state)
{
    (void)state;
    /* A real tokenizer, and its tokens as the script prints them. */
    const char *real = getenv("IPW_CLIP_TOKENIZER");
    struct error why = {0};
    struct clip_tokenizer *tokenizer;
    struct jv *rows = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/tokens.json", real ? real : FOLDER);
    if (clip_tokenizer_load(real ? real : FOLDER, &tokenizer, &why) ||
        jv_read(path, 1 << 20, &rows, &why))
        fail_msg("%s", why.text);
    assert_int_equal(clip_tokenizer_length(tokenizer), 77);
    assert_true(jv_count(rows) > 20);
    JV_EACH (row, jv_first(rows))
        check_text(tokenizer, row);
    jv_free(rows);
    clip_tokenizer_free(tokenizer);
}

/* ---- files ---- */

static void files_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const char GOOD[] = "{\"a\": 0, \"<|startoftext|>\": 1, \"<|endoftext|>\": 2, \"b\": 3}";
    static const struct {
        const char *vocabulary, *config, *error;
    } CASES[] = {
        {GOOD, "{\"pad_token\": {\"content\": \"a\"}, \"model_max_length\": 8}", NULL},
        {GOOD, "{\"pad_token\": \"c\"}", "padding token 'c'"},
        {GOOD, "{", "tokenizer_config.json"},
        {"{\"a\": 0}", "{}", "<|startoftext|>"},
        {"{\"a\": \"b\"}", "{}", "the id of token 'a'"},
        {"[1]", "{}", "no vocabulary of CLIP"},
        {"", "{}", "vocab.json"},
    };
    struct tree tree;
    tree_new(&tree);
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct clip_tokenizer *tokenizer;
        struct error why = {0};
        tree_write(&tree, "/vocab.json", "%s", CASES[i].vocabulary);
        tree_write(&tree, "/merges.txt", "%s", "");
        tree_write(&tree, "/tokenizer_config.json", "%s", CASES[i].config);
        enum err err = clip_tokenizer_load(tree.root, &tokenizer, &why);
        if (!err != !CASES[i].error || (err && !strstr(why.text, CASES[i].error)))
            fail_msg("%zu: %s", i, why.text);
        if (!err) {
            int64_t ids[8];
            assert_int_equal(clip_tokenizer_length(tokenizer), 8);
            /* "b</w>", at the end of a word, is unknown; the padding token is one in texts, too. */
            assert_int_equal(clip_tokenize(tokenizer, "bb ab", ids), 6);
            assert_memory_equal(ids, ((int64_t[]){1, 3, 2, 0, 2, 2, 0, 0}), sizeof ids);
        }
        clip_tokenizer_free(tokenizer);
    }
    tree_free(&tree);
    struct clip_tokenizer *tokenizer;
    struct error why = {0};
    assert_int_equal(clip_tokenizer_load("/nonexistent", &tokenizer, &why), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_those_of_transformers),
        cmocka_unit_test(files_that_do_not_fit_are_named),
    };
    return RUN_TESTS(tests);
}
