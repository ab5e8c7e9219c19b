/* A user's file of embeddings, .npy or CSV: what is read are rows of finite numbers. */
#include "fuzz/fuzz.h"

#include "core/units.h"
#include "graders/features.h"

static void run(const char *bytes, size_t length)
{
    struct text text = {0};
    struct features features;
    struct error why = {0};
    text_add_bytes(&text, length ? bytes : "\n", length ? length : 1);
    enum err err = features_parse(&text, &features, &why);
    fuzz_check_error(err, &why);
    for (size_t i = 0; i < features.count * features.width; i++)
        fuzz_check(is_known(features.values[i]));
    features_release(&features);
    text_release(&text);
}

static void seeds(void)
{
    static const char HEADER[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
    struct text npy = {0};
    const char start[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(sizeof HEADER - 1), 0};
    text_add_bytes(&npy, start, sizeof start);
    text_add(&npy, HEADER);
    text_add_bytes(&npy, (const char *)(const float[]){1, 2, 3, 4}, 4 * sizeof(float));
    fuzz_seed_bytes(-1, npy.bytes, npy.length);
    text_release(&npy);
    fuzz_seed(-1, "a,b\n1,2\n3,4e5\n");
}

static const char *const WORDS[] = {"<f4", "<f8", "'shape': (", "\x93NUMPY", "1e999", "nan", NULL};

const struct fuzz_target fuzz_features = {.run = run, .seeds = seeds, .words = WORDS};
