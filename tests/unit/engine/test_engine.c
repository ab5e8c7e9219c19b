/* test: real time */
/* Models, tokens and contexts of the real library, on a model with random weights. */
#include "engine/engine.h"
#include "engine/timers.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "support/model.h"
#include "support/tree.h"
#include "support/unit.h"

static struct engine_model *model;

/* The model is shared; each test opens its own contexts. */
static int open_model(void **state)
{
    struct error why = {0};
    int failed = model_make(state);
    if (failed || model_available(NULL) != ERR_OK)
        return failed;
    if (engine_model_open(model_path(), &(struct engine_model_options){0}, &model, &why)) {
        print_error("%s\n", why.text);
        return -1;
    }
    return 0;
}

static int close_model(void **state)
{
    engine_model_close(model);
    return model_remove(state);
}

static struct engine_context *context_of(struct engine_context_options options)
{
    struct engine_context *context = NULL;
    struct error why = {0};
    options.threads = 1; /* more threads would wait for each other on a busy machine */
    options.flash_attention = -1;
    if (engine_context_open(model, &options, &context, &why))
        fail_msg("%s", why.text);
    return context;
}

static struct engine_tokens tokens_of(const char *text)
{
    struct engine_tokens tokens = {0};
    struct error why = {0};
    if (engine_tokenize(model, text, strlen(text), true, true, &tokens, &why))
        fail_msg("%s", why.text);
    return tokens;
}

static void choose_likeliest(struct engine_context *context)
{
    const struct engine_sampling likeliest = {.top_p = 1, .repeat_penalty = 1};
    assert_int_equal(engine_set_sampling(context, &likeliest, NULL), ERR_OK);
}

enum { ANSWER = 12 };

/* The next ANSWER tokens after a prompt. */
static void generate(struct engine_context *context, const struct engine_tokens *prompt,
                     uint32_t sequences, engine_token out[ANSWER])
{
    struct error why = {0};
    engine_clear(context);
    assert_int_equal(engine_decode(context, prompt->ids, prompt->count, sequences, &why), ERR_OK);
    for (int i = 0; i < ANSWER; i++) {
        out[i] = engine_sample(context);
        assert_int_equal(engine_decode(context, &out[i], 1, sequences, &why), ERR_OK);
    }
}

static const char PROMPT[] = "the quick brown fox jumps over the lazy dog";

/* ---- the model ---- */

static void a_model_reports_its_shape(void **state)
{
    (void)state;
    const struct engine_model_facts *facts = engine_model_facts(model);
    assert_int_equal(facts->layers, MODEL_LAYERS);
    assert_int_equal(facts->embedding, MODEL_HIDDEN);
    assert_int_equal(facts->heads, MODEL_HEADS);
    assert_int_equal(facts->heads_kv, MODEL_HEADS / 2);
    assert_int_equal(facts->trained_context, MODEL_CONTEXT);
    assert_true(facts->has_chat_template);
    assert_contains(facts->description, "llama");
    /* Two vocabulary tables, the norms, and for each layer the matrices of attention and of the
     * feed-forward network, which is three times as wide. */
    uint64_t h = MODEL_HIDDEN, v = (uint64_t)facts->vocabulary;
    uint64_t layer = 2 * h * h + 2 * h * h / 2 + 3 * 3 * h * h + 2 * h;
    assert_int_equal(facts->parameters, 2 * v * h + h + MODEL_LAYERS * layer);
    assert_int_equal(facts->tensor_bytes, 4 * facts->parameters);
}

static void a_file_that_is_not_a_model_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        size_t length;
        const char *says;
    } FILES[] = {
        {"", 0, "truncated"},
        {"GGUF", 4, "truncated"},
        {"GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 24, "cannot load"},
        {"GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "no tensors"},
        {"GGUF\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "version 7"},
        {"PK\3\4 something else entirely", 28, "not a GGUF"},
    };
    struct engine_model *none = NULL;
    struct error why = {0};
    const struct engine_model_options options = {0};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const char *path =
            model_write("odd.gguf", (const unsigned char *)FILES[i].content, FILES[i].length);
        assert_int_equal(engine_model_open(path, &options, &none, &why), ERR_BAD_VALUE);
        assert_contains(why.text, FILES[i].says);
        assert_contains(why.text, path);
    }
    assert_int_equal(engine_model_open("/no/such.gguf", &options, &none, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such.gguf");
    assert_int_equal(engine_model_open("/tmp", &options, &none, &why), ERR_BAD_VALUE);
    assert_null(none);
}

static void an_unknown_architecture_is_an_error(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = model_bytes(&length);
    assert_non_null(bytes);
    static const char NAME[] = "llama"; /* the first one is the architecture's */
    unsigned char *found = NULL;
    for (size_t i = 0; i + 5 < length && !found; i++)
        if (memcmp(bytes + i, NAME, 5) == 0)
            found = bytes + i;
    assert_non_null(found);
    if (found)
        found[0] = 'z';
    struct engine_model *none;
    struct error why = {0};
    const char *path = model_write("zlama.gguf", bytes, length);
    assert_int_equal(engine_model_open(path, &(struct engine_model_options){0}, &none, &why),
                     ERR_UNSUPPORTED);
    assert_contains(why.text, "unknown model architecture: 'zlama'");
    free(bytes);
}

static void loading_can_be_canceled(void **state)
{
    (void)state;
    atomic_bool cancel = true;
    struct engine_model *none = NULL;
    struct error why = {0};
    const struct engine_model_options options = {.cancel = &cancel};
    assert_int_equal(engine_model_open(model_path(), &options, &none, &why), ERR_INTERRUPTED);
    assert_contains(why.text, "interrupted");
    assert_null(none);
}

/* Each corrupted file takes half a second in the library's reader under valgrind, and a tenth with a sanitizer, for which
 * the library is not instrumented: fewer of them there. */
static unsigned file_count(unsigned broken)
{
    return test_is_instrumented() ? broken / 8 : broken;
}

/* Opens it, and closes it if it opened: a corrupted file may be an error or still a model, but it
 * must not end this process. */
static enum err try_bytes(const unsigned char *bytes, size_t length)
{
    struct engine_model *opened = NULL;
    struct error why = {0};
    const char *path = model_write("broken.gguf", bytes, length);
    enum err err = engine_model_open(path, &(struct engine_model_options){0}, &opened, &why);
    if (err) {
        assert_contains(why.text, "broken.gguf");
        return err;
    }
    struct engine_context *context;
    const struct engine_context_options options = {.context = 64, .threads = 1};
    if (engine_context_open(opened, &options, &context, &why) == ERR_OK)
        engine_context_close(context);
    engine_model_close(opened);
    return ERR_OK;
}

static void a_truncated_file_is_an_error(void **state)
{
    (void)state;
    const size_t cuts = file_count(24);
    size_t length;
    unsigned char *bytes = model_bytes(&length);
    assert_non_null(bytes);
    size_t head = 30000; /* vocabulary and the list of tensors */
    for (size_t i = 0; i < cuts; i++) {
        assert_int_not_equal(try_bytes(bytes, head * i / cuts), ERR_OK);
        assert_int_not_equal(try_bytes(bytes, head + (length - head) * i / cuts), ERR_OK);
    }
    assert_int_not_equal(try_bytes(bytes, length - 1), ERR_OK);
    assert_int_equal(try_bytes(bytes, length), ERR_OK);
    free(bytes);
}

static void a_corrupted_file_does_not_end_the_process(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = model_bytes(&length);
    assert_non_null(bytes);
    uint64_t draw = 12345;
    unsigned refused = 0;
    for (unsigned i = 0; i < file_count(80); i++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(draw >> 33) % 30000;
        unsigned char before = bytes[at];
        bytes[at] = i % 2 ? 0xff : (unsigned char)(before ^ (1u << (draw >> 60) % 8));
        refused += try_bytes(bytes, length) != ERR_OK;
        bytes[at] = before;
    }
    assert_true(refused > 0);
    free(bytes);
}

/* The library asserts that token names are unique. */
static void a_file_that_aborts_the_library_is_an_error(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = model_bytes(&length);
    assert_non_null(bytes);
    unsigned char *name = NULL;
    for (size_t i = 0; i + 6 < length && !name; i++)
        if (memcmp(bytes + i, "<0x41>", 6) == 0)
            name = bytes + i;
    assert_non_null(name);
    name[4] = '2';
    struct engine_model *none;
    struct error why = {0};
    const char *path = model_write("twice.gguf", bytes, length);
    assert_int_equal(engine_model_open(path, &(struct engine_model_options){0}, &none, &why),
                     ERR_BAD_VALUE);
    assert_contains(why.text, "is corrupt");
    assert_contains(why.text, "token_to_id");
    free(bytes);
}

/* ---- tokens ---- */

static void tokens_decode_to_their_text(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        PROMPT, "", "x", "\n\t ", "w\xC3\xB6rld \xF0\x9F\x8E\x89", "a\xFF\xFEz"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        struct engine_tokens tokens = {0};
        struct text back = {0};
        assert_int_equal(
            engine_tokenize(model, TEXTS[i], strlen(TEXTS[i]), false, false, &tokens, NULL),
            ERR_OK);
        for (size_t t = 0; t < tokens.count; t++)
            assert_int_equal(engine_detokenize(model, tokens.ids[t], &back), ERR_OK);
        assert_string_equal(text_get(&back), TEXTS[i]);
        text_release(&back);
        engine_tokens_release(&tokens);
    }
}

static void special_tokens_are_parsed_only_on_request(void **state)
{
    (void)state;
    static const char TEXT[] = "<|im_end|>";
    struct engine_tokens as_mark = {0}, as_text = {0}, begun = {0};
    struct text nothing = {0};
    assert_int_equal(engine_tokenize(model, TEXT, strlen(TEXT), false, true, &as_mark, NULL), 0);
    assert_int_equal(engine_tokenize(model, TEXT, strlen(TEXT), false, false, &as_text, NULL), 0);
    assert_int_equal(engine_tokenize(model, TEXT, strlen(TEXT), true, true, &begun, NULL), 0);
    assert_int_equal(as_mark.count, 1);
    assert_true(as_text.count > 1);
    assert_int_equal(begun.count, 2);
    assert_true(engine_is_end(model, as_mark.ids[0]));
    assert_false(engine_is_end(model, as_text.ids[0]));
    assert_int_equal(engine_detokenize(model, as_mark.ids[0], &nothing), ERR_OK);
    assert_int_equal(nothing.length, 0);
    assert_int_equal(engine_detokenize(model, -1, &nothing), ERR_BAD_VALUE);
    assert_int_equal(engine_detokenize(model, 1 << 30, &nothing), ERR_BAD_VALUE);
    text_release(&nothing);
    engine_tokens_release(&as_mark);
    engine_tokens_release(&as_text);
    engine_tokens_release(&begun);
}

static void a_prompt_is_formatted_by_the_chat_template(void **state)
{
    (void)state;
    struct text text = {0};
    struct error why = {0};
    const struct engine_message messages[] = {
        {"system", "Be brief."}, {"user", "Why?"}, {"assistant", "So."}, {"user", "Oh."}};
    assert_int_equal(engine_apply_chat_template(model, messages, 2, &text, &why), ERR_OK);
    assert_string_equal(
        text_get(&text),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
        "<|im_start|>assistant\n");
    text_clear(&text);
    assert_int_equal(engine_apply_chat_template(model, messages, 4, &text, &why), ERR_OK);
    assert_contains(text_get(&text), "<|im_start|>assistant\nSo.<|im_end|>\n<|im_start|>user\n"
                                     "Oh.<|im_end|>\n<|im_start|>assistant\n");
    text_clear(&text);
    char *large = malloc(100001);
    assert_non_null(large);
    memset(large, 'y', 100000);
    large[100000] = '\0';
    const struct engine_message long_one = {"user", large};
    assert_int_equal(engine_apply_chat_template(model, &long_one, 1, &text, &why), ERR_OK);
    assert_contains(text_get(&text), "yyy<|im_end|>\n<|im_start|>assistant\n");
    assert_true(text.length > 100000 && text.length < 100100);
    free(large);
    text_release(&text);
}

/* ---- computing ---- */

static void greedy_output_does_not_depend_on_batching(void **state)
{
    (void)state;
    static const struct engine_context_options WAYS[] = {
        {0},           {.context = 128}, {.batch = 4},
        {.ubatch = 3}, {.sequences = 4}, {.sequences = 3, .batch = 7},
    };
    struct engine_tokens prompt = tokens_of(PROMPT);
    engine_token first[ANSWER];
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        engine_token tokens[ANSWER];
        struct engine_context *context = context_of(WAYS[i]);
        choose_likeliest(context);
        for (int again = 0; again < 2; again++) {
            generate(context, &prompt, WAYS[i].sequences, tokens);
            if (i == 0 && again == 0)
                memcpy(first, tokens, sizeof first);
            assert_memory_equal(tokens, first, sizeof first);
        }
        engine_context_close(context);
    }
    engine_tokens_release(&prompt);
}

static void the_kv_cache_can_be_truncated(void **state)
{
    (void)state;
    struct engine_tokens prompt = tokens_of(PROMPT);
    struct engine_context *context = context_of((struct engine_context_options){.sequences = 2});
    struct error why = {0};
    engine_token first[ANSWER], again[ANSWER];
    uint32_t kept = (uint32_t)prompt.count - 1;
    choose_likeliest(context);
    generate(context, &prompt, 2, first);
    assert_false(engine_rewind(context, kept + ANSWER + 2)); /* beyond its end */
    assert_true(engine_rewind(context, kept));
    assert_int_equal(engine_sample(context), -1);
    assert_int_equal(engine_decode(context, &prompt.ids[kept], 1, 2, &why), ERR_OK);
    for (int i = 0; i < ANSWER; i++) {
        again[i] = engine_sample(context);
        assert_int_equal(engine_decode(context, &again[i], 1, 2, &why), ERR_OK);
    }
    assert_memory_equal(again, first, sizeof first);
    engine_context_close(context);
    engine_tokens_release(&prompt);
}

static void a_context_reports_its_effective_options(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){0});
    const struct engine_context_options *facts = engine_context_facts(context);
    assert_int_equal(facts->context, MODEL_CONTEXT);
    assert_int_equal(facts->sequences, 1);
    assert_int_equal(facts->threads, 1);
    assert_int_equal(facts->threads_batch, 1);
    assert_true(facts->ubatch > 0 && facts->ubatch <= facts->batch);
    assert_int_equal(engine_sample(context), -1); /* nothing was computed yet */
    engine_context_close(context);
}

static void a_full_context_is_an_error_and_can_be_cleared(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){0});
    struct engine_tokens prompt = tokens_of(PROMPT);
    struct error why = {0};
    size_t fits = MODEL_CONTEXT / prompt.count;
    for (size_t i = 0; i < fits; i++)
        assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_OK);
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_NO_DATA);
    assert_contains(why.text, "context of 256");
    for (size_t i = fits * prompt.count; i < MODEL_CONTEXT;
         i++) /* the rest of the context is usable */
        assert_int_equal(engine_decode(context, prompt.ids, 1, 1, &why), ERR_OK);
    assert_int_equal(engine_decode(context, prompt.ids, 1, 1, &why), ERR_NO_DATA);
    engine_clear(context);
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_OK);
    engine_tokens_release(&prompt);
    engine_context_close(context);
}

static void calls_that_would_abort_the_library_are_rejected(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){.sequences = 2});
    struct error why = {0};
    const engine_token good = 20, negative = -1, beyond = 1 << 20;
    assert_int_equal(engine_decode(context, &good, 0, 1, &why), ERR_USAGE);
    assert_int_equal(engine_decode(context, &negative, 1, 1, &why), ERR_BAD_VALUE);
    assert_int_equal(engine_decode(context, &beyond, 1, 1, &why), ERR_BAD_VALUE);
    assert_int_equal(engine_decode(context, &good, 1, 3, &why), ERR_USAGE);
    assert_int_equal(engine_decode(context, &good, 1, 2, &why), ERR_OK);
    assert_int_equal(engine_decode(context, &good, 1, 1, &why),
                     ERR_USAGE); /* two sequences in lockstep */
    engine_context_close(context);

    static const struct engine_context_options ABSURD[] = {
        {.context = 2000000000},
        {.sequences = 100000},
        {.threads = 100000},
        {.threads = -1},
        {.context = 2000000000, .sequences = 200}};
    for (size_t i = 0; i < sizeof ABSURD / sizeof *ABSURD; i++) {
        struct engine_context *none = NULL;
        why.text[0] = '\0';
        assert_int_not_equal(engine_context_open(model, &ABSURD[i], &none, &why), ERR_OK);
        assert_true(why.text[0] && !none);
    }
    assert_int_equal(engine_context_open(model, &ABSURD[0], &context, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "GB");
}

/* Memory of the machine, and the limit of the container. */
static void a_context_larger_than_memory_is_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *meminfo, *max, *used;
        bool fits;
    } MACHINES[] = {
        {"MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n", NULL, NULL, true},
        {"MemTotal: 9000000 kB\nMemAvailable: 100 kB\n", NULL, NULL, false},
        {"MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n", "max\n", "5\n", true},
        {"MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n", "2000000\n", "1900000\n", false},
        {"MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n", "2000000\n", "3000000\n", false},
        {NULL, NULL, NULL, true}, /* memory is unknown: it is tried */
    };
    for (size_t i = 0; i < sizeof MACHINES / sizeof *MACHINES; i++) {
        struct tree tree;
        struct engine_context *context = NULL;
        struct error why = {0};
        tree_new(&tree);
        if (MACHINES[i].meminfo)
            tree_write(&tree, "/proc/meminfo", "%s", MACHINES[i].meminfo);
        if (MACHINES[i].max) {
            tree_write(&tree, "/sys/fs/cgroup/memory.max", "%s", MACHINES[i].max);
            tree_write(&tree, "/sys/fs/cgroup/memory.current", "%s", MACHINES[i].used);
        }
        const struct engine_context_options options = {.threads = 1};
        enum err err = engine_context_open(model, &options, &context, &why);
        assert_int_equal(err, MACHINES[i].fits ? ERR_OK : ERR_UNSUPPORTED);
        if (!MACHINES[i].fits)
            assert_contains(why.text, "use a smaller context");
        engine_context_close(context);
        tree_free(&tree);
    }
}

struct seen {
    unsigned layers, others;
    atomic_bool cancel;
    bool should_cancel;
};

static bool wants_layer(void *context, const char *node)
{
    (void)context;
    return strncmp(node, "l_out-", 6) == 0;
}

static void reached_layer(void *context, const char *node)
{
    struct seen *seen = context;
    if (strncmp(node, "l_out-", 6) == 0)
        seen->layers++;
    else
        seen->others++;
    if (seen->should_cancel)
        atomic_store(&seen->cancel, true);
}

static void a_watch_is_called_at_the_nodes_it_requested(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct engine_watch watch = {wants_layer, reached_layer, &seen};
    struct engine_context *context = context_of((struct engine_context_options){.watch = &watch});
    struct engine_tokens prompt = tokens_of(PROMPT);
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, NULL), ERR_OK);
    assert_int_equal(seen.layers, MODEL_LAYERS);
    assert_int_equal(engine_decode(context, prompt.ids, 1, 1, NULL), ERR_OK);
    assert_int_equal(seen.layers, 2 * MODEL_LAYERS);
    assert_int_equal(seen.others, 0);
    engine_tokens_release(&prompt);
    engine_context_close(context);
}

static void decoding_can_be_aborted(void **state)
{
    (void)state;
    struct seen seen = {.should_cancel = true};
    const struct engine_watch watch = {wants_layer, reached_layer, &seen};
    struct engine_context *context = context_of((struct engine_context_options){.watch = &watch});
    struct engine_tokens prompt = tokens_of(PROMPT);
    struct error why = {0};
    /* Within a graph: the watch aborts at the end of the first layer. */
    engine_set_abort(context, &seen.cancel, 0);
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_INTERRUPTED);
    assert_int_equal(seen.layers, 1);
    assert_int_equal(engine_sample(context), -1);
    /* Before a graph. */
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_INTERRUPTED);
    assert_int_equal(seen.layers, 1);
    engine_set_abort(context, NULL, clock_now() - 1);
    assert_int_equal(engine_decode(context, prompt.ids, prompt.count, 1, &why), ERR_TIMEOUT);
    /* The context was cleared, and is usable afterwards. */
    engine_set_abort(context, NULL, 0);
    seen.should_cancel = false;
    engine_token tokens[ANSWER], expected[ANSWER];
    choose_likeliest(context);
    generate(context, &prompt, 1, tokens);
    struct engine_context *other = context_of((struct engine_context_options){0});
    choose_likeliest(other);
    generate(other, &prompt, 1, expected);
    assert_memory_equal(tokens, expected, sizeof tokens);
    engine_context_close(other);
    engine_tokens_release(&prompt);
    engine_context_close(context);
}

/* ---- sampling ---- */

static void sampling_is_reproducible_by_seed(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){0});
    struct engine_tokens prompt = tokens_of(PROMPT);
    struct engine_sampling choice = {.temperature = 2, .top_p = 1, .repeat_penalty = 1, .seed = 7};
    engine_token first[ANSWER], again[ANSWER], other[ANSWER], only[ANSWER], likeliest[ANSWER];
    assert_int_equal(engine_set_sampling(context, &choice, NULL), ERR_OK);
    generate(context, &prompt, 1, first);
    assert_int_equal(engine_set_sampling(context, &choice, NULL), ERR_OK);
    generate(context, &prompt, 1, again);
    choice.seed = 8;
    assert_int_equal(engine_set_sampling(context, &choice, NULL), ERR_OK);
    generate(context, &prompt, 1, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    /* With one candidate left, sampling is greedy, however it was narrowed down. */
    choose_likeliest(context);
    generate(context, &prompt, 1, likeliest);
    const struct engine_sampling NARROW[] = {
        {.temperature = 2, .top_p = 1, .repeat_penalty = 1, .top_k = 1},
        {.temperature = 2, .top_p = 1e-6, .repeat_penalty = 1},
        {.temperature = 2, .top_p = 1, .min_p = 1, .repeat_penalty = 1}};
    for (size_t i = 0; i < sizeof NARROW / sizeof *NARROW; i++) {
        assert_int_equal(engine_set_sampling(context, &NARROW[i], NULL), ERR_OK);
        generate(context, &prompt, 1, only);
        assert_memory_equal(only, likeliest, sizeof only);
    }
    engine_tokens_release(&prompt);
    engine_context_close(context);
}

static void a_repeat_penalty_prevents_repetition(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){0});
    struct engine_tokens prompt = tokens_of(PROMPT);
    const struct engine_sampling harsh = {.top_p = 1, .repeat_penalty = 100};
    engine_token tokens[ANSWER];
    assert_int_equal(engine_set_sampling(context, &harsh, NULL), ERR_OK);
    generate(context, &prompt, 1, tokens);
    for (int i = 0; i < ANSWER; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(tokens[i], tokens[j]);
    engine_tokens_release(&prompt);
    engine_context_close(context);
}

static void invalid_sampling_parameters_are_rejected(void **state)
{
    (void)state;
    struct engine_context *context = context_of((struct engine_context_options){0});
    static const struct engine_sampling WRONG[] = {
        {.temperature = -1, .top_p = 1, .repeat_penalty = 1},
        {.top_p = 0, .repeat_penalty = 1},
        {.top_p = 2, .repeat_penalty = 1},
        {.top_p = 1, .min_p = -1, .repeat_penalty = 1},
        {.top_p = 1, .repeat_penalty = 0},
        {.top_p = 1, .repeat_penalty = 1, .top_k = -1},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct error why = {0};
        assert_int_equal(engine_set_sampling(context, &WRONG[i], &why), ERR_USAGE);
        assert_contains(why.text, "expected");
    }
    engine_context_close(context);
}

int main(void)
{
    if (skipped_without(model_available))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_reports_its_shape),
        cmocka_unit_test(a_file_that_is_not_a_model_is_an_error),
        cmocka_unit_test(an_unknown_architecture_is_an_error),
        cmocka_unit_test(a_truncated_file_is_an_error),
        cmocka_unit_test(a_corrupted_file_does_not_end_the_process),
        cmocka_unit_test(a_file_that_aborts_the_library_is_an_error),
        cmocka_unit_test(tokens_decode_to_their_text),
        cmocka_unit_test(special_tokens_are_parsed_only_on_request),
        cmocka_unit_test(a_prompt_is_formatted_by_the_chat_template),
        cmocka_unit_test(greedy_output_does_not_depend_on_batching),
        cmocka_unit_test(the_kv_cache_can_be_truncated),
        cmocka_unit_test(a_context_reports_its_effective_options),
        cmocka_unit_test(a_full_context_is_an_error_and_can_be_cleared),
        cmocka_unit_test(calls_that_would_abort_the_library_are_rejected),
        cmocka_unit_test(a_context_larger_than_memory_is_rejected),
        cmocka_unit_test(a_watch_is_called_at_the_nodes_it_requested),
        cmocka_unit_test(loading_can_be_canceled),
        cmocka_unit_test(decoding_can_be_aborted),
        cmocka_unit_test(sampling_is_reproducible_by_seed),
        cmocka_unit_test(a_repeat_penalty_prevents_repetition),
        cmocka_unit_test(invalid_sampling_parameters_are_rejected),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
