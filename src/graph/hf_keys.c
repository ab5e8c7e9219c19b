/* Access to keys by name, with checks, and the list of keys that do not affect sizes. */
#include "graph/hf_keys.h"

#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/model_files.h"
#include "port/json_read.h"

struct hf_keys hf_keys_of(const char *file, const struct jv *json, struct error *why)
{
    return (struct hf_keys){.file = file, .json = json, .why = why};
}

/* ---- names ---- */

/* The next of several names; false after the last one. */
static bool next_name(const char **names, char *out, size_t size)
{
    size_t length = strcspn(*names, "|");
    if (!length)
        return false;
    str_format(out, size, "%.*s", (int)length, *names);
    *names += length + ((*names)[length] == '|');
    return true;
}

static void remember(struct hf_keys *keys, const char *names)
{
    if (keys->used_count < HF_KEYS_USED && !str_is_listed(names, keys->used, keys->used_count))
        keys->used[keys->used_count++] = names;
}

/* The alternative that the file has, or the first one. */
static const struct jv *find(const struct hf_keys *keys, const char *names, char *name, size_t size)
{
    const char *rest = names;
    while (next_name(&rest, name, size)) {
        const struct jv *value = jv_get(keys->json, name);
        if (!jv_is_null(value))
            return value;
    }
    rest = names;
    next_name(&rest, name, size);
    return NULL;
}

const struct jv *hf_keys_get(struct hf_keys *keys, const char *names)
{
    char name[64];
    remember(keys, names);
    return find(keys, names, name, sizeof name);
}

void hf_keys_reject(struct hf_keys *keys, enum err code, const char *names, const char *what)
{
    struct text value = {0};
    char name[64];
    const struct jv *found = find(keys, names, name, sizeof name);
    if (keys->err)
        return;
    if (found) {
        jv_print(found, &value);
        keys->err = err_set(keys->why, code, "%s: '%s' is %.60s: %s", keys->file, name,
                            text_get(&value), what);
    } else {
        keys->err = err_set(keys->why, code, "%s: '%s' is missing: %s", keys->file, name, what);
    }
    text_release(&value);
}

/* ---- values ---- */

static void reject_size(struct hf_keys *keys, const char *names, uint64_t min, uint64_t max)
{
    char what[96];
    chars_format(what, "must be an integer from %llu to %llu", (unsigned long long)min,
                 (unsigned long long)max);
    hf_keys_reject(keys, ERR_BAD_VALUE, names, what);
}

uint64_t hf_keys_size(struct hf_keys *keys, const char *names, uint64_t max, uint64_t otherwise)
{
    const struct jv *value = hf_keys_get(keys, names);
    int64_t number;
    if (!value && otherwise)
        return otherwise;
    if (jv_integer(value, &number) && number >= 1 && (uint64_t)number <= max)
        return (uint64_t)number;
    reject_size(keys, names, 1, max);
    return 1; /* harmless until the error is checked */
}

uint64_t hf_keys_optional(struct hf_keys *keys, const char *names, uint64_t max)
{
    const struct jv *value = hf_keys_get(keys, names);
    int64_t number;
    if (!value)
        return 0;
    if (jv_integer(value, &number) && number >= 0 && (uint64_t)number <= max)
        return (uint64_t)number;
    reject_size(keys, names, 0, max);
    return 0;
}

bool hf_keys_bool(struct hf_keys *keys, const char *names, bool otherwise)
{
    const struct jv *value = hf_keys_get(keys, names);
    if (value && !jv_is_bool(value))
        hf_keys_reject(keys, ERR_BAD_VALUE, names, "must be true or false");
    return jv_bool(value, otherwise);
}

const char *hf_keys_string(struct hf_keys *keys, const char *names)
{
    const struct jv *value = hf_keys_get(keys, names);
    if (value && !jv_text(value))
        hf_keys_reject(keys, ERR_BAD_VALUE, names, "must be a string");
    return jv_text(value);
}

void hf_keys_sizes(struct hf_keys *keys, const char *names, uint64_t max, size_t count,
                   const int64_t *otherwise, int64_t *out)
{
    const struct jv *list = hf_keys_get(keys, names);
    const struct jv *one = jv_is_array(list) ? jv_first(list) : NULL;
    memcpy(out, otherwise, count * sizeof *out);
    if (!list)
        return;
    for (size_t i = 0; i < count; i++, one = jv_next(one))
        if (!jv_integer(one, &out[i]) || out[i] < 1 || (uint64_t)out[i] > max) {
            char what[96];
            chars_format(what, "must be a list of %zu integers from 1 to %llu", count,
                         (unsigned long long)max);
            hf_keys_reject(keys, ERR_BAD_VALUE, names, what);
            memcpy(out, otherwise, count * sizeof *out);
            return;
        }
}

int64_t hf_keys_heads(struct hf_keys *keys, const char *names, uint64_t otherwise, int64_t hidden,
                      const char *hidden_name)
{
    int64_t count = (int64_t)hf_keys_size(keys, names, HF_MAX_HEADS, otherwise);
    if (hidden % count) {
        char what[80], name[64];
        (void)find(keys, hidden_name, name, sizeof name);
        chars_format(what, "does not divide '%s'", name);
        hf_keys_reject(keys, ERR_BAD_VALUE, names, what);
    }
    return count;
}

enum graph_op hf_keys_activation(struct hf_keys *keys, const char *names, enum graph_op otherwise)
{
    static const struct {
        const char *name;
        enum graph_op op;
    } NAMES[] = {
        {"gelu", GRAPH_GELU},          {"gelu_new", GRAPH_GELU_NEW},
        {"gelu_fast", GRAPH_GELU_NEW}, {"gelu_pytorch_tanh", GRAPH_GELU},
        {"gelu_10", GRAPH_GELU},       {"relu", GRAPH_RELU},
        {"silu", GRAPH_SILU},          {"swish", GRAPH_SILU},
        {"quick_gelu", GRAPH_SILU}, /* x * sigmoid(1.702 x) */
        {"tanh", GRAPH_TANH},          {"relu2", GRAPH_RELU2},
    };
    const char *name = hf_keys_string(keys, names);
    for (size_t i = 0; name && i < COUNT_OF(NAMES); i++)
        if (str_equal(NAMES[i].name, name))
            return NAMES[i].op;
    if (name)
        hf_keys_reject(keys, ERR_UNSUPPORTED, names,
                       "not supported, only gelu, relu, silu and tanh are");
    return otherwise;
}

int64_t hf_keys_labels(struct hf_keys *keys, uint64_t otherwise)
{
    size_t labels = jv_count(hf_keys_get(keys, "id2label"));
    return (int64_t)hf_keys_size(keys, "num_labels|_num_labels", HF_MAX_CLASSES,
                                 labels ? labels : otherwise);
}

const char *hf_keys_purpose(struct hf_keys *keys)
{
    static const char *const ENDS[] = {"LMHeadModel", "EncoderModel", "Model"};
    const char *name = jv_text(jv_first(hf_keys_get(keys, "architectures")));
    const char *purpose = name ? strstr(name, "For") : NULL;
    if (purpose)
        return purpose;
    for (size_t i = 0; name && i < COUNT_OF(ENDS); i++)
        if (model_path_ends(name, ENDS[i]))
            return name + strlen(name) - strlen(ENDS[i]);
    return name ? name : "";
}

/* ---- unread keys ---- */

/* Keys that affect neither parameters nor operations, by prefix or suffix: of training, of generation, of scaling
 * activations, of storage. */
static bool is_irrelevant(const char *key)
{
    static const char BEGINNINGS[] =
        "_|attention_drop|attn_pdrop|attn_scale|attn_temperature|aux_loss|bbox_|begin_|bos_|cache_"
        "impl|class_cost|"
        "classif_dropout|cls_|conv_dropout|decoder_start|dice_|diversity_|do_sample|dropout|dtype|"
        "early_stop|embd_|embedding_multiplier|encoder_no_|eos_|ep_size|exponential_|"
        "finetuning_|floor_scale|forced_|giou_|id2label|init|is_encoder_decoder|label2id|language|"
        "legacy|"
        "length_pen|logit|mask_|max_length|max_window|n_group|median_|min_length|no_repeat|norm_"
        "eps|"
        "norm_topk|num_beam|num_nextn|num_return|output_|pad_|prefix|pretraining_tp|"
        "original_max_position|pooler_output_size|problem_type|qk_head_dim|query_pre|remove_"
        "invalid|repetition_|rescale_|residual_|resid_|return_|"
        "rope_|rotary_|routed_scaling|router_|scale_|scoring_func|semantic_|sep_token|"
        "lm_head_multiplier|mlp_multipliers|num_logits|partial_rotary|ssm_multipliers|"
        "seq_aux|summary_|suppress_|swiglu_|task_|temperature|time_step_f|time_step_i|"
        "tie_word_embeddings|time_step_l|time_step_m|time_step_s|tokenizer_|top_k|top_p|topk_|"
        "torch|"
        "transformers_version|"
        "typical_|use_associative_scan|use_bfloat|use_cache|use_cross|use_mps|vision_feature";
    static const char ENDS[] =
        "_dropout|_drop|dropout|_eps|_epsilon|_scaling|_std|_range|_token_id|_token_index|"
        "_coef|_multiplier|_softcapping|_loss_coefficient|_drop_rate|_path_rate|layerdrop|_prob|"
        "_scale_init_value";
    const char *rest = BEGINNINGS;
    char word[64];
    while (next_name(&rest, word, sizeof word))
        if (strncmp(key, word, strlen(word)) == 0)
            return true;
    for (rest = ENDS; next_name(&rest, word, sizeof word);)
        if (model_path_ends(key, word))
            return true;
    return false;
}

static bool is_used(const struct hf_keys *keys, const char *key)
{
    char name[64];
    for (size_t i = 0; i < keys->used_count; i++) {
        const char *rest = keys->used[i];
        while (next_name(&rest, name, sizeof name))
            if (str_equal(name, key))
                return true;
    }
    return false;
}

/* Off, empty or a string: only numbers, lists and enabled flags may matter. */
static bool may_matter(const struct jv *value)
{
    int64_t number;
    if (jv_is_bool(value))
        return jv_bool(value, false);
    if (jv_is_null(value) || jv_text(value) || (jv_integer(value, &number) && number == 0))
        return false;
    return !jv_is_array(value) || jv_count(value) > 0;
}

void hf_keys_report(const struct hf_keys *keys)
{
    struct text unknown = {0};
    for (const struct jv *one = jv_first_member(keys->json); one; one = jv_next(one)) {
        const char *key = jv_key(one);
        if (!may_matter(one) || is_irrelevant(key) || is_used(keys, key))
            continue;
        text_addf(&unknown, "%s'%.40s'", text_get(&unknown)[0] ? ", " : "",
                  model_label(slice_of(key)).text);
    }
    if (text_get(&unknown)[0])
        log_warn("%s: unknown keys, not counted: %.300s", keys->file, text_get(&unknown));
    text_release(&unknown);
}
