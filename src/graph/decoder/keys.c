#include "graph/decoder/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

/* Beyond any model; so bounded, products of three sizes fit into 64 bits. */
enum {
    MOST_LAYERS = 1 << 16,
    LARGEST_SIZE = 1 << 22,
    MOST_HEADS = 1 << 16,
    MOST_EXPERTS = 1 << 16
};

static const struct profile_family {
    const char *name;
    enum decoder_activation activation;
    uint64_t period, window;
} FAMILIES[] = {
#define DECODER_FAMILY(name, activation, period, window)                                           \
    {name, DECODER_##activation, period, window},
#include "graph/decoder_families.def"
#undef DECODER_FAMILY
};

struct keys {
    const struct gguf *gguf;
    const char *architecture;
    struct error *why;
};

/* ---- one key ---- */

struct key_name {
    char text[128];
};

static struct key_name key_name(const struct keys *keys, const char *key)
{
    struct key_name name = {{0}};
    str_format(name.text, sizeof name.text, "%s.%s", keys->architecture, key);
    return name;
}

static enum err complain(const struct keys *keys, const char *key, const char *what)
{
    return err_set(keys->why, ERR_BAD_VALUE, "%s: key '%s' %s", keys->gguf->file,
                   key_name(keys, key).text, what);
}

/* 1 .. most.  A missing key leaves *out as it is, and is an error when that is 0. */
static enum err read_size(const struct keys *keys, const char *key, uint64_t most, uint64_t *out)
{
    const struct gguf_value *value = gguf_find(keys->gguf, key_name(keys, key).text);
    if (!value)
        return *out ? ERR_OK : complain(keys, key, "is missing");
    if (value->is_array || !gguf_item_u64(value, 0, out) || *out == 0 || *out > most)
        return complain(keys, key, "is not a sensible number");
    return ERR_OK;
}

/* The same for each layer: one number for all of them, or an array with one each. */
static enum err read_layer_size(const struct keys *keys, const char *key, size_t layers,
                                size_t layer, uint64_t *out)
{
    const struct gguf_value *value = gguf_find(keys->gguf, key_name(keys, key).text);
    if (!value)
        return *out ? ERR_OK : complain(keys, key, "is missing");
    if (value->is_array && value->count != layers)
        return complain(keys, key, "does not have one number a layer");
    if (!gguf_item_u64(value, value->is_array ? layer : 0, out) || *out == 0 || *out > MOST_HEADS)
        return complain(keys, key, "is not a sensible number");
    return ERR_OK;
}

/* ---- parts of the model ---- */

static const struct profile_family *find_family(struct gguf_text architecture)
{
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        if (gguf_text_is(architecture, FAMILIES[i].name))
            return &FAMILIES[i];
    return NULL;
}

/* As much of a text of the file as is printable and fits. */
static void copy_plain(struct gguf_text from, char *to, size_t size)
{
    size_t length = from.length < size - 1 ? from.length : size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)(from.bytes[i] ? from.bytes[i] : '?');
    to[length] = '\0';
    str_plain(to);
}

static enum err read_architecture(const struct gguf *gguf, struct decoder *out,
                                  const struct profile_family **family, struct error *why)
{
    struct gguf_text architecture, name;
    uint64_t parts;
    if (gguf_u64(gguf, "split.count", &parts) && parts > 1)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: is one of %llu parts of a model, which are not read: join them first "
                       "(llama-gguf-split --merge)",
                       gguf->file, (unsigned long long)parts);
    if (!gguf_string(gguf, "general.architecture", &architecture))
        return err_set(why, ERR_BAD_VALUE, "%s: key 'general.architecture' is missing", gguf->file);
    copy_plain(architecture, out->architecture, sizeof out->architecture);
    if (gguf_string(gguf, "general.name", &name))
        copy_plain(name, out->name, sizeof out->name);
    *family = find_family(architecture);
    if (!*family)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: the architecture '%s' is not one whose layers are known", gguf->file,
                       out->architecture);
    out->activation = (*family)->activation;
    return ERR_OK;
}

static enum err read_experts(const struct keys *keys, struct decoder *out)
{
    const struct gguf_value *count = gguf_find(keys->gguf, key_name(keys, "expert_count").text);
    uint64_t experts = 0;
    if (!count || (gguf_item_u64(count, 0, &experts) && experts == 0))
        return ERR_OK;
    enum err err = read_size(keys, "expert_count", MOST_EXPERTS, &out->experts);
    if (!err)
        err = read_size(keys, "expert_used_count", out->experts ? out->experts : 1,
                        &out->experts_used);
    return err;
}

static enum err read_heads(const struct keys *keys, struct decoder *out, size_t number)
{
    struct decoder_layer *layer = &out->layers[number];
    enum err err =
        read_layer_size(keys, "attention.head_count", out->layer_count, number, &layer->heads);
    if (err)
        return err;
    layer->heads_kv = layer->heads;
    layer->key_size = layer->value_size = out->embedding / layer->heads;
    err = read_layer_size(keys, "attention.head_count_kv", out->layer_count, number,
                          &layer->heads_kv);
    if (!err)
        err = read_size(keys, "attention.key_length", MOST_HEADS, &layer->key_size);
    if (!err)
        err = read_size(keys, "attention.value_length", MOST_HEADS, &layer->value_size);
    if (!err && layer->heads % layer->heads_kv)
        return complain(keys, "attention.head_count_kv", "does not divide the number of heads");
    return err;
}

/* Does this layer see a window only?  Files may tell the period, or each layer. */
static enum err read_window(const struct keys *keys, const struct profile_family *family,
                            struct decoder *out)
{
    static const char PATTERN[] = "attention.sliding_window_pattern";
    const struct gguf_value *pattern = gguf_find(keys->gguf, key_name(keys, PATTERN).text);
    uint64_t window = family->window, period = family->period;
    if (!period)
        return ERR_OK;
    if (gguf_find(keys->gguf, key_name(keys, "attention.sliding_window").text)) {
        enum err err = read_size(keys, "attention.sliding_window", UINT32_MAX, &window);
        if (err)
            return err;
    }
    if (pattern && pattern->is_array && pattern->count != out->layer_count)
        return complain(keys, PATTERN, "does not have one item a layer");
    if (pattern && !pattern->is_array && (!gguf_item_u64(pattern, 0, &period) || period == 0))
        return complain(keys, PATTERN, "is not a sensible number");
    for (size_t i = 0; i < out->layer_count; i++) {
        int64_t sees_window = i % period < period - 1;
        if (pattern && pattern->is_array && !gguf_item_i64(pattern, i, &sees_window))
            return complain(keys, PATTERN, "is not a list of numbers");
        out->layers[i].window = sees_window ? window : 0;
    }
    return ERR_OK;
}

static enum err make_layers(const struct keys *keys, struct decoder *out)
{
    uint64_t count = 0;
    enum err err = read_size(keys, "block_count", MOST_LAYERS, &count);
    if (err)
        return err;
    if (count == 0 || count > keys->gguf->tensor_count)
        return complain(keys, "block_count", "is larger than the number of tensors");
    out->layers = calloc(count, sizeof *out->layers);
    if (!out->layers)
        return err_set(keys->why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    out->layer_count = count;
    return ERR_OK;
}

enum err keys_read(const struct gguf *gguf, struct decoder *out, struct error *why)
{
    const struct profile_family *family = NULL;
    enum err err = read_architecture(gguf, out, &family, why);
    struct keys keys = {gguf, out->architecture, why};
    if (!err)
        err = make_layers(&keys, out);
    if (!err)
        err = read_size(&keys, "embedding_length", LARGEST_SIZE, &out->embedding);
    if (!err && gguf_find(gguf, key_name(&keys, "context_length").text))
        err = read_size(&keys, "context_length", UINT32_MAX, &out->context);
    if (!err)
        err = read_experts(&keys, out);
    for (size_t i = 0; i < out->layer_count && !err; i++)
        err = read_heads(&keys, out, i);
    return err || !family ? err : read_window(&keys, family, out);
}
