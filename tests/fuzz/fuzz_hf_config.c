/* A config.json of each known architecture: parsed, built and counted. */
#include "fuzz/fuzz.h"

#include "port/json_read.h"
#include "support/model_bytes.h"

static void run(const char *bytes, size_t length)
{
    const char *wrong = model_config_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
}

static void seeds(void)
{
    struct jv *models;
    struct error why = {0};
    fuzz_seed(-1, model_config_text());
    if (jv_read(IPW_FIXTURES "/configs/models.json", 1 << 20, &models, &why))
        fuzz_fail(why.text);
    for (const struct jv *model = jv_first(jv_get(models, "models")); model;
         model = jv_next(model)) {
        struct text config = {0};
        if (jv_is_object(jv_get(model, "config")) && !jv_print(jv_get(model, "config"), &config))
            fuzz_seed_bytes(-1, config.bytes, config.length);
        text_release(&config);
    }
    jv_free(models);
}

static const char *const WORDS[] = {"null",
                                    "true",
                                    "[]",
                                    "[1]",
                                    "{}",
                                    "-1",
                                    "1e9",
                                    "\"model_type\"",
                                    "\"text_config\"",
                                    "\"layer_types\"",
                                    "\"architectures\"",
                                    "\"quantization_config\"",
                                    NULL};

const struct fuzz_target fuzz_hf_config = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
