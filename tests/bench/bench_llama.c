/* The overhead of the llama client over llama.cpp itself. The reference is the simplest loop over
 * libllama, called directly: the prompt's tokens in one call, then the greedy sampler of the
 * library and one token per call, as in its own examples. The same library, weights, threads and
 * options, in short turns, because the load of a busy machine changes from second to second. The
 * client's times are those of its reply, as a run records them. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "clients/client.h"
#include "core/clock.h"
#include "engine/engine.h"
#include "engine/llama_api.h"

enum { MOST_ROUNDS = 101, CONTEXT = 1024 };

/* `bench_llama 128 11` uses long turns instead: each steadier, but further apart. */
static int answer_tokens = 13, rounds = 41;

/* 58 million parameters: a token takes about 10 ms, mostly reading weights, as in larger ones. */
#define LAYERS "8"
#define HIDDEN "768"
#define HEADS  "12"

static char prompt[200];
static char model_path[] = "/tmp/ipw-bench-XXXXXX";

struct rates {
    double prefill, decode; /* tokens per second, including all overhead */
    size_t tokens;          /* of the prompt */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_llama: %s\n", what);
    unlink(model_path);
    exit(1);
}

static void make_model(void)
{
    int file = mkstemp(model_path);
    if (file < 0)
        die("no temporary file");
    close(file);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(1);
        execlp("python3", "python3", IPW_MAKE_GGUF, model_path, "--layers", LAYERS, "--hidden",
               HIDDEN, "--heads", HEADS, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        die("make_gguf.py made no model");
    for (size_t i = 0; i + 1 < sizeof prompt; i++)
        prompt[i] = (char)(i % 6 == 5 ? ' ' : 'a' + (i * 7 + i / 6) % 26);
}

/* ---- the reference loop ---- */

struct plain {
    struct llama_model *model;
    struct llama_context *context;
    struct llama_sampler *sampler;
    const struct llama_vocab *vocabulary;
};

static struct plain plain_open(void)
{
    const struct llama_api *api = engine_api();
    struct llama_model_params of_model = api->model_params;
    struct llama_context_params of_context = api->context_params;
    struct plain plain = {.model = api->llama_model_load_from_file(model_path, of_model)};
    if (!plain.model)
        die("llama.cpp does not load the model");
    of_context.n_ctx = CONTEXT;
    of_context.n_batch = CONTEXT;
    of_context.n_threads = of_context.n_threads_batch = 1;
    plain.context = api->llama_init_from_model(plain.model, of_context);
    plain.sampler =
        api->llama_sampler_chain_init((struct llama_sampler_chain_params){.no_perf = true});
    if (!plain.context || !plain.sampler)
        die("llama.cpp opens no context");
    api->llama_sampler_chain_add(plain.sampler, api->llama_sampler_init_greedy());
    plain.vocabulary = api->llama_model_get_vocab(plain.model);
    return plain;
}

static struct rates plain_ask(const struct plain *plain)
{
    const struct llama_api *api = engine_api();
    llama_token tokens[CONTEXT];
    char piece[64];
    api->llama_memory_clear(api->llama_get_memory(plain->context), false);
    nanos began = clock_now();
    int32_t count = api->llama_tokenize(plain->vocabulary, prompt, (int32_t)strlen(prompt), tokens,
                                        CONTEXT, true, true);
    struct llama_batch batch = {.n_tokens = count, .token = tokens};
    nanos first = 0;
    llama_token token;
    for (int i = 0; i < answer_tokens; i++) {
        if (count <= 0 || api->llama_decode(plain->context, batch))
            die("llama.cpp does not decode");
        token = api->llama_sampler_sample(plain->sampler, plain->context, -1);
        if (i == 0)
            first = clock_now();
        api->llama_token_to_piece(plain->vocabulary, token, piece, sizeof piece, 0, false);
        batch = (struct llama_batch){.n_tokens = 1, .token = &token};
    }
    nanos last = clock_now();
    return (struct rates){count / seconds(first - began),
                          (answer_tokens - 1) / seconds(last - first), (size_t)count};
}

/* ---- the client ---- */

static struct rates client_rates(struct client *client)
{
    struct params params = {0};
    struct completion reply;
    struct error why = {0};
    char limit[16];
    snprintf(limit, sizeof limit, "%d", answer_tokens);
    if (params_set(&params, "max_tokens", limit))
        die("out of memory");
    const struct client_request request = {
        .model = model_path, .prompt = prompt, .params = &params};
    if (client->driver->ask(client, &request, &reply, &why) || reply.output_tokens != answer_tokens)
        die(why.text[0] ? why.text : "the answer has another length");
    struct rates rates = {(double)reply.prompt_tokens / seconds(reply.first_token - reply.sent),
                          (answer_tokens - 1) / seconds(reply.last_token - reply.first_token),
                          (size_t)reply.prompt_tokens};
    completion_release(&reply);
    params_release(&params);
    return rates;
}

static int parse_count(const char *word, int max)
{
    char *end;
    long number = strtol(word, &end, 10);
    if (*end || number < 2 || number > max)
        die("usage: bench_llama [TOKENS OF AN ANSWER [TURNS]]");
    return (int)number;
}

int main(int count, char **words)
{
    if (count > 1)
        answer_tokens = parse_count(words[1], CONTEXT / 2);
    if (count > 2)
        rounds = parse_count(words[2], MOST_ROUNDS);
    const struct engine_library *library;
    struct error why = {0};
    if (engine_library_open(&library, &why)) {
        printf("bench_llama: skipped: %s\n", why.text);
        return 0;
    }
    make_model();
    struct client client;
    struct params params = {0};
    const struct client_driver *driver = client_driver_find("llama", &why);
    if (params_add(&params, "threads=1,chat=off,context=1024,batch=1024"))
        die("out of memory");
    const struct client_config config = {.params = &params};
    if (!driver || client_open(driver, &config, &client, &why))
        die(why.text);
    struct plain plain = plain_open();
    double prefill[MOST_ROUNDS] = {0}, decode[MOST_ROUNDS] = {0};
    double plain_prefill[MOST_ROUNDS] = {0}, plain_decode[MOST_ROUNDS] = {0};
    for (int round = -1; round < rounds; round++) { /* the first is a warm-up */
        bool is_client_first = round % 2 == 0;
        struct rates ours = {0};
        if (is_client_first)
            ours = client_rates(&client);
        struct rates reference = plain_ask(&plain);
        if (!is_client_first)
            ours = client_rates(&client);
        if (ours.tokens != reference.tokens)
            die("the two have different prompts");
        if (round < 0)
            continue;
        plain_prefill[round] = reference.prefill;
        plain_decode[round] = reference.decode;
        prefill[round] = ours.prefill / reference.prefill;
        decode[round] = ours.decode / reference.decode;
    }
    bench_report("llama.cpp's plain loop, prefill", bench_median(plain_prefill, rounds),
                 "tokens/s");
    bench_report("llama.cpp's plain loop, decode", bench_median(plain_decode, rounds), "tokens/s");
    bench_at_least("client llama against llama.cpp's plain loop, prefill",
                   bench_median(prefill, rounds), "ratio", 0.97);
    bench_at_least("client llama against llama.cpp's plain loop, decode",
                   bench_median(decode, rounds), "ratio", 0.97);
    client_close(&client);
    engine_api()->llama_sampler_free(plain.sampler);
    engine_api()->llama_free(plain.context);
    engine_api()->llama_model_free(plain.model);
    params_release(&params);
    unlink(model_path);
    return 0;
}
