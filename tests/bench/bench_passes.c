/* Times passes of GGUF models in llama.cpp on this CPU, as CSV for `ipw estimate validate`:
 * bench_passes THREADS PROMPT,... MODEL... For each model a prefill of each length, and a decoded
 * token after each: the minimum of the lower quartiles of some rounds, as in a calibration, since
 * other programs only add time. Models and lengths alternate, so that none has the quiet moments to
 * itself. Without arguments it does nothing: bench_cpu runs it. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "engine/engine.h"

enum { LENGTHS_MAX = 12, MODELS_MAX = 16, SAMPLES_MAX = 400, ROUNDS = 5, DECODED = 8 };
#define ROUND_S 0.1 /* per length of a model in a round */

struct samples {
    double values[SAMPLES_MAX];
    size_t count;
};

struct subject {
    const char *path;
    struct engine_model *model;
    struct engine_context *context;
    double prefill[LENGTHS_MAX], decode[LENGTHS_MAX]; /* seconds; 0: none yet */
};

static void fail(const char *what, const struct error *why)
{
    fprintf(stderr, "bench_passes: %s: %s\n", what, why->text);
    exit(1);
}

static void add_sample(struct samples *to, double value)
{
    if (to->count < SAMPLES_MAX)
        to->values[to->count++] = value;
}

static double quartile(struct samples *of)
{
    qsort(of->values, of->count, sizeof *of->values, bench_by_value);
    return of->values[of->count / 4];
}

static double decode(struct subject *s, const engine_token *tokens, size_t count)
{
    struct error why = {0};
    nanos from = clock_now();
    if (engine_decode(s->context, tokens, count, 1, &why))
        fail(s->path, &why);
    return seconds(clock_now() - from);
}

static void keep_least(double *min, struct samples *of)
{
    double took = quartile(of);
    if (!(*min > 0) || took < *min)
        *min = took;
}

/* Times one length: the prompt, then a few tokens after it. */
static void time_length(struct subject *s, size_t length, double *prefill_s, double *decoded_s)
{
    static engine_token tokens[4096];
    static struct samples prefill, decoded;
    prefill.count = decoded.count = 0;
    nanos end = clock_now() + from_seconds(ROUND_S);
    for (size_t i = 0; i < length + DECODED; i++)
        tokens[i] = (engine_token)(5 + i * 7 % 400);
    engine_clear(s->context);
    (void)decode(s, tokens, length); /* warm-up */
    do {
        engine_clear(s->context);
        add_sample(&prefill, decode(s, tokens, length));
        for (size_t i = 0; i < DECODED; i++)
            add_sample(&decoded, decode(s, tokens + length + i, 1));
    } while (clock_now() < end);
    keep_least(prefill_s, &prefill);
    keep_least(decoded_s, &decoded);
}

static void open_subject(struct subject *s, const char *path, int threads, uint32_t longest)
{
    struct error why = {0};
    const struct engine_context_options options = {.context = longest + DECODED,
                                                   .threads = threads,
                                                   .threads_batch = threads,
                                                   .flash_attention = -1};
    *s = (struct subject){.path = path};
    if (engine_model_open(path, &(struct engine_model_options){0}, &s->model, &why) ||
        engine_context_open(s->model, &options, &s->context, &why))
        fail(path, &why);
}

int main(int count, char **words)
{
    static struct subject subjects[MODELS_MAX];
    size_t lengths[LENGTHS_MAX], length_count = 0, models = 0;
    if (count < 4)
        return 0;
    int threads = atoi(words[1]);
    for (char *word = strtok(words[2], ","); word && length_count < LENGTHS_MAX;
         word = strtok(NULL, ","))
        lengths[length_count++] = (size_t)atoi(word);
    for (; length_count && models < (size_t)count - 3 && models < MODELS_MAX; models++)
        open_subject(&subjects[models], words[3 + models], threads,
                     (uint32_t)lengths[length_count - 1]);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t m = 0; m < models; m++)
            for (size_t i = 0; i < length_count; i++)
                time_length(&subjects[m], lengths[i], &subjects[m].prefill[i],
                            &subjects[m].decode[i]);
    printf("model,family,phase,prompt_tokens,context,latency_s\n");
    for (size_t m = 0; m < models; m++)
        for (size_t i = 0; i < length_count; i++) {
            struct subject *s = &subjects[m];
            const char *slash = strrchr(s->path, '/');
            const char *name = slash ? slash + 1 : s->path;
            printf("%s,%s,prefill,%zu,,%.9g\n", s->path, name, lengths[i], s->prefill[i]);
            printf("%s,%s,decode,,%zu,%.9g\n", s->path, name, lengths[i] + (DECODED + 1) / 2,
                   s->decode[i]);
        }
    return 0;
}
