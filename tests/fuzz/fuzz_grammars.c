/* Small grammars of options, addresses and queries: what is accepted can be used, what is not has a reason. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "analysis/compare_set.h"
#include "catalog/model.h"
#include "catalog/precision.h"
#include "core/params.h"
#include "core/units.h"
#include "db/db.h"
#include "estimate/estimate_grid.h"
#include "estimate/serving.h"
#include "estimate/workload.h"
#include "port/url.h"
#include "runner/sweep.h"
#include "wire/completion.h"
#include "core/json.h"
#include "core/jv.h"

static void read_knobs(char *words)
{
    const char *knobs[2] = {words, NULL};
    struct sweep sweep = {0};
    struct error why = {0};
    char *second = strchr(words, '\n');
    if (second)
        *second++ = '\0';
    knobs[1] = second;
    enum err err = sweep_expand(knobs, second ? 2 : 1, false, &sweep, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err || (sweep.point_count > 0 && sweep.point_count <= SWEEP_POINTS_MAX));
    sweep_release(&sweep);
}

static void read_rates(char *words)
{
    struct serving_lengths lengths;
    struct error why = {0};
    double *rates = NULL;
    size_t count = 0;
    enum err err = serving_lengths_parse("--input", words, &lengths, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err || (lengths.low > 0 && lengths.low <= lengths.high));
    err = serving_rates_parse(words, &rates, &count, &why);
    fuzz_check_error(err, &why);
    for (size_t i = 0; !err && i < count; i++)
        fuzz_check(rates[i] > 0 && is_known(rates[i]));
    free(rates);
}

static void read_check(char *words)
{
    struct compare_check check;
    struct error why = {0};
    enum err err = compare_check_parse(words, &check, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err || is_known(check.bound));
}

/* Parameters, and one of them in a request. */
static void read_params(char *words)
{
    struct params params = {0};
    struct error why = {0};
    struct text body = {0};
    struct json json;
    struct jv *tree = NULL;
    static const char *const WORDS[] = {"on", "off", NULL};
    struct params_reader read = {&params, &why, ERR_OK};
    fuzz_check(!params_add(&params, words));
    json_init(&json, &body, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < params.count; i++) {
        message_write_param(&json, params.items[i].key, params.items[i].value);
        params_count(&read, params.items[i].key, 0, 0, 100);
        params_number(&read, params.items[i].key, 0, 0, 100);
        params_bool(&read, params.items[i].key, false);
        params_word(&read, params.items[i].key, WORDS, 0);
    }
    json_object_end(&json);
    if (jv_parse_repaired(body.bytes, body.length, &tree, &why))
        fuzz_fail(why.text);
    jv_free(tree);
    text_release(&body);
    params_release(&params);
}

static void read_addresses(char *words)
{
    struct url url;
    struct error why = {0};
    char shown[200];
    enum err err = url_read(words, &url, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err || (*url.host && url_same_origin(&url, &url)));
    url_hide_login(words, shown, sizeof shown);
    (void)db_address_kind(words);
    free(db_address_display(words));
    free(db_address_without_password(words));
}

/* "MODEL-SIZES": batches, prompts and contexts of an estimate; precisions; names of models. */
static void read_estimate(char *words)
{
    static struct model model;
    struct error why = {0};
    struct workload_list list;
    struct candidates candidates;
    char name[64];
    if (!model.reader && model_open("llama-3.2-1b", &model, &why))
        fuzz_fail(why.text);
    struct workload_options options = {.batch = words, .output_tokens = 8};
    enum err err = workload_list_make(&options, &model, &list, &why);
    fuzz_check_error(err, &why);
    if (!err)
        workload_list_release(&list);
    const char *hardware = "h200";
    err = candidates_find(
        &(struct candidate_options){.hardware = &hardware, .hardware_count = 1, .precision = words},
        &candidates, &why);
    fuzz_check_error(err, &why);
    if (!err)
        candidates_release(&candidates);
    model_name_normalize(words, name, sizeof name);
    (void)model_name_equal(words, name);
}

static void (*const READERS[])(char *words) = {read_knobs,  read_rates,     read_check,
                                               read_params, read_addresses, read_estimate};

static void run(const char *bytes, size_t length)
{
    unsigned choice = fuzz_choose(&bytes, &length, sizeof READERS / sizeof *READERS);
    READERS[choice](fuzz_string(bytes, length));
}

static void seeds(void)
{
    static const struct {
        int choice;
        const char *words;
    } SEEDS[] = {
        {0, "threads=1,2,4\nclock=600-1200:150"},
        {0, "gpu-clock=default,1200"},
        {0, "x=0.1-0.5:0.1"},
        {1, "100..500"},
        {1, "1,2,4"},
        {1, "1:10:0.5"},
        {2, "joules_per_query > +5%"},
        {2, "latency<=-0.25"},
        {3, "a=1, b=[1,2],c={\"d\": 1},e=x\\,y,f=true,g"},
        {4, "https://user:pass@[::1]:8443/v1?x#y"},
        {4, "postgres://u:p%40@h:5432/db?sslmode=require"},
        {4, "sqlite:///a/b.db"},
        {4, "localhost:11434"},
        {5, "1,8,32"},
        {5, "1..64x2"},
        {5, "bf16,int8,stored"},
        {5, "meta-llama/Meta-Llama-3.1-8B-Instruct:q4_K_M"},
    };
    for (size_t i = 0; i < sizeof SEEDS / sizeof *SEEDS; i++)
        fuzz_seed(SEEDS[i].choice, SEEDS[i].words);
}

static const char *const WORDS[] = {
    "..", "default",     ",",         ":",       "=", "1e308", "-1",
    "%",  "postgres://", "sqlite://", "http://", "@", "x2",    "18446744073709551615",
    NULL};

const struct fuzz_target fuzz_grammars = {.run = run, .seeds = seeds, .words = WORDS};
