/* Files of a diffusion pipeline: arrays of NumPy, the tokenizer, and the configuration of the scheduler, with which
 * every scheduler makes some steps. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "core/jv.h"
#include "port/npy.h"
#include "graders/clip_tokens.h"
#include "workloads/scheduler.h"

static void read_array(const char *bytes, size_t length)
{
    struct npy npy;
    struct error why = {0};
    enum err err = npy_parse(bytes, length, &npy, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        size_t count = 1;
        for (size_t i = 0; i < npy.rank; i++)
            count *= (size_t)npy.shape[i];
        fuzz_check(count == npy.count && npy.count * 2 <= length);
    }
    npy_release(&npy);
}

/* The input is the file of this name; the text has all kinds of words. */
static void read_tokenizer(const char *name, const char *bytes, size_t length)
{
    static const struct {
        const char *name, *text;
    } FILES[] = {
        {"vocab.json", "{\"a\":0,\"<|startoftext|>\":1,\"<|endoftext|>\":2,\"ab\":3,\"c</w>\":4}"},
        {"merges.txt", "#version: 0.2\na b\nab c</w>\n"},
        {"special_tokens_map.json", "{\"pad_token\": \"a\"}"},
        {"tokenizer_config.json", "{\"model_max_length\": 16}"},
    };
    enum { LENGTH_MAX = 4096 };
    static int64_t ids[LENGTH_MAX];
    struct clip_tokenizer *tokenizer;
    struct error why = {0};
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        bool is_input = str_equal(FILES[i].name, name);
        (void)fuzz_file(FILES[i].name, is_input ? bytes : FILES[i].text,
                        is_input ? length : strlen(FILES[i].text));
    }
    enum err err = clip_tokenizer_load(fuzz_folder(), &tokenizer, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        size_t most = clip_tokenizer_length(tokenizer);
        fuzz_check(most >= 3 && most <= LENGTH_MAX);
        size_t count = clip_tokenize(tokenizer, "abc it's 12 \xC3\x89t\xC3\xA9 \xFF!!", ids);
        fuzz_check(count >= 2 && count <= most);
    }
    clip_tokenizer_free(tokenizer);
}

static void use_scheduler(const struct scheduler_driver *driver, const struct jv *config)
{
    enum { COUNT = 2, STEPS = 3 };
    static const float OUTPUT[COUNT] = {0.5F, -1};
    struct scheduler scheduler;
    struct error why = {0};
    float sample[COUNT] = {1, -0.5F};
    enum err err = scheduler_open(driver, config, &scheduler, &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    err = scheduler_start(&scheduler, STEPS, COUNT, &why);
    fuzz_check_error(err, &why);
    while (!err && scheduler.index < scheduler.steps) {
        fuzz_check(isfinite(scheduler.timesteps[scheduler.index]));
        scheduler_step(&scheduler, OUTPUT, NULL, sample);
    }
    scheduler_release(&scheduler);
}

static void read_scheduler(const char *bytes, size_t length)
{
    struct jv *config;
    struct error why = {0};
    enum err err =
        scheduler_config_read(fuzz_file("scheduler_config.json", bytes, length), &config, &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    if (!scheduler_of_config(config, &why))
        fuzz_check_error(why.code, &why);
    for (const struct scheduler_driver *const *at = SCHEDULER_DRIVERS; *at; at++)
        use_scheduler(*at, config);
    jv_free(config);
}

static void run(const char *bytes, size_t length)
{
    enum { ARRAY, VOCABULARY, MERGES, SPECIAL, SCHEDULER, COUNT };
    switch (fuzz_choose(&bytes, &length, COUNT)) {
    case ARRAY:
        read_array(bytes, length);
        break;
    case VOCABULARY:
        read_tokenizer("vocab.json", bytes, length);
        break;
    case MERGES:
        read_tokenizer("merges.txt", bytes, length);
        break;
    case SPECIAL:
        read_tokenizer("special_tokens_map.json", bytes, length);
        break;
    default:
        read_scheduler(bytes, length);
        break;
    }
}

static void seeds(void)
{
    static const char FOLDER[] = IPW_FIXTURES "/workloads/";
    static const struct {
        int choice;
        const char *file;
    } FILES[] = {
        {0, "schedulers/noise.npy"},
        {1, "clip_tokens/vocab.json"},
        {2, "clip_tokens/merges.txt"},
        {3, "clip_tokens/special_tokens_map.json"},
        {4, "diffusion/text/scheduler/scheduler_config.json"},
        {4, "diffusion/class/scheduler/scheduler_config.json"},
    };
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        char path[512];
        str_format(path, sizeof path, "%s%s", FOLDER, FILES[i].file);
        fuzz_seed_file(FILES[i].choice, path, 1 << 14);
    }
    fuzz_seed(1, "{\"a\":0,\"<|startoftext|>\":1,\"<|endoftext|>\":2}");
    fuzz_seed(3, "{\"pad_token\": {\"content\": \"ab\"}}");
    fuzz_seed(4, "{\"_class_name\": \"UniPCMultistepScheduler\", \"use_karras_sigmas\": true, "
                 "\"num_train_timesteps\": 10, \"final_sigmas_type\": \"sigma_min\", "
                 "\"beta_schedule\": \"squaredcos_cap_v2\", \"lambda_min_clipped\": -Infinity, "
                 "\"disable_corrector\": [], \"timestep_spacing\": \"trailing\", "
                 "\"prediction_type\": \"v_prediction\", \"solver_order\": 2}");
}

const struct fuzz_target fuzz_diffusion = {.run = run, .seeds = seeds, .has_values = true};
