#include "support/gguf_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/count.h"
#include "graph/decoder.h"
#include "graph/gguf.h"
#include "graph/reader.h"
#include "support/decoders.h"

/* ---- writing ---- */

void gguf_file_release(struct gguf_file *file)
{
    text_release(&file->values);
    text_release(&file->tensors);
    text_release(&file->whole);
    *file = (struct gguf_file){0};
}

static void add_little_endian(struct text *out, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        text_add_bytes(out, (const char[]){(char)(value >> (8 * i))}, 1);
}

static void add_string(struct text *out, const char *string)
{
    add_little_endian(out, strlen(string), 8);
    text_add(out, string);
}

void gguf_file_raw(struct gguf_file *file, const char *key, uint32_t type, const void *bytes,
                   size_t length)
{
    add_string(&file->values, key);
    add_little_endian(&file->values, type, 4);
    text_add_bytes(&file->values, bytes, length);
    file->value_count++;
}

void gguf_file_string(struct gguf_file *file, const char *key, const char *value)
{
    gguf_file_raw(file, key, GGUF_STRING, "", 0);
    add_string(&file->values, value);
}

void gguf_file_u32(struct gguf_file *file, const char *key, uint32_t value)
{
    gguf_file_raw(file, key, GGUF_U32, "", 0);
    add_little_endian(&file->values, value, 4);
}

void gguf_file_array(struct gguf_file *file, const char *key, uint32_t item_type, uint64_t count,
                     const void *bytes, size_t length)
{
    gguf_file_raw(file, key, GGUF_ARRAY, "", 0);
    add_little_endian(&file->values, item_type, 4);
    add_little_endian(&file->values, count, 8);
    text_add_bytes(&file->values, bytes, length);
}

void gguf_file_strings(struct gguf_file *file, const char *key, const char *const *items,
                       size_t count)
{
    gguf_file_array(file, key, GGUF_STRING, count, "", 0);
    for (size_t i = 0; i < count; i++)
        add_string(&file->values, items[i]);
}

static uint64_t alignment_of(const struct gguf_file *file)
{
    return file->alignment ? file->alignment : 32;
}

static uint64_t aligned(const struct gguf_file *file, uint64_t length)
{
    uint64_t alignment = alignment_of(file);
    return (length + alignment - 1) / alignment * alignment;
}

void gguf_file_tensor_at(struct gguf_file *file, const char *name, uint32_t type, uint64_t columns,
                         uint64_t rows, uint64_t depth, uint64_t offset)
{
    unsigned count = depth ? 3 : rows ? 2 : 1;
    add_string(&file->tensors, name);
    add_little_endian(&file->tensors, count, 4);
    const uint64_t sizes[] = {columns, rows, depth};
    for (unsigned i = 0; i < count; i++)
        add_little_endian(&file->tensors, sizes[i], 8);
    add_little_endian(&file->tensors, type, 4);
    add_little_endian(&file->tensors, offset, 8);
    file->tensor_count++;
    uint64_t elements = columns * (rows ? rows : 1) * (depth ? depth : 1);
    const struct tensor_type *known = tensor_type_numbered(type);
    uint64_t bytes = known ? elements / known->block_elements * known->block_bytes : 0;
    if (offset + bytes > file->data_bytes)
        file->data_bytes = offset + bytes;
}

void gguf_file_tensor(struct gguf_file *file, const char *name, uint32_t type, uint64_t columns,
                      uint64_t rows, uint64_t depth)
{
    gguf_file_tensor_at(file, name, type, columns, rows, depth, aligned(file, file->data_bytes));
}

void gguf_file_end(struct gguf_file *file)
{
    struct text *out = &file->whole;
    text_clear(out);
    text_add(out, "GGUF");
    add_little_endian(out, file->version ? file->version : 3, 4);
    add_little_endian(out, file->tensor_count, 8);
    add_little_endian(out, file->value_count, 8);
    text_add_bytes(out, text_get(&file->values), file->values.length);
    text_add_bytes(out, text_get(&file->tensors), file->tensors.length);
    uint64_t end = aligned(file, out->length) + file->data_bytes;
    while (file->tensor_count && out->length < end)
        text_add_bytes(out, "", 1);
}

void gguf_file_model(struct gguf_file *file)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t columns, rows;
    } TENSORS[] = {
        {"attn_norm", 0, 64, 0}, {"attn_q", 2, 64, 64},      {"attn_k", 2, 64, 32},
        {"attn_v", 8, 64, 32},   {"attn_output", 2, 64, 64}, {"ffn_norm", 0, 64, 0},
        {"ffn_gate", 2, 64, 96}, {"ffn_up", 2, 64, 96},      {"ffn_down", 8, 96, 64},
    };
    static const char *const TOKENS[] = {"<s>", "", "a"};
    gguf_file_string(file, "general.architecture", "llama");
    gguf_file_string(file, "general.name", "small");
    gguf_file_u32(file, "llama.block_count", GGUF_MODEL_LAYERS);
    gguf_file_u32(file, "llama.context_length", 512);
    gguf_file_u32(file, "llama.embedding_length", 64);
    gguf_file_u32(file, "llama.feed_forward_length", 96);
    gguf_file_u32(file, "llama.attention.head_count", 4);
    gguf_file_u32(file, "llama.attention.head_count_kv", 2);
    gguf_file_strings(file, "tokenizer.ggml.tokens", TOKENS, 3);
    gguf_file_array(file, "tokenizer.ggml.scores", GGUF_F32, 3, "\0\0\0\0\0\0\200\277\0\0\300\177",
                    12);
    gguf_file_tensor(file, "token_embd.weight", 8, 64, 32, 0);
    for (int layer = 0; layer < GGUF_MODEL_LAYERS; layer++)
        for (size_t i = 0; i < sizeof TENSORS / sizeof *TENSORS; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, TENSORS[i].name);
            gguf_file_tensor(file, name, TENSORS[i].type, TENSORS[i].columns, TENSORS[i].rows, 0);
        }
    gguf_file_tensor(file, "output_norm.weight", 0, 64, 0, 0);
    gguf_file_end(file);
}

/* ---- reading any bytes ---- */

/* Reads every byte, so that a sanitizer detects one out of bounds. */
static unsigned long touch_all(const struct gguf *gguf)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < gguf->value_count; i++) {
        const struct gguf_value *value = &gguf->values[i];
        struct slice text = {0};
        while (gguf_next_string(value, &text))
            for (size_t at = 0; at < text.length; at++)
                sum += (unsigned char)text.start[at];
        for (uint64_t at = 0; at < value->data_bytes; at++)
            sum += value->data[at];
    }
    return sum;
}

static const char *check_tensors(const struct gguf *gguf)
{
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        const struct gguf_tensor *tensor = &gguf->tensors[i];
        char name[256];
        if (tensor->offset > gguf->file_bytes || tensor->bytes > gguf->file_bytes - tensor->offset)
            return "a tensor reaches beyond the file";
        if (tensor->name.length >= sizeof name ||
            memchr(tensor->name.start, 0, tensor->name.length))
            continue;
        memcpy(name, tensor->name.start, tensor->name.length);
        name[tensor->name.length] = '\0';
        if (gguf_tensor_named(gguf, name) != tensor)
            return "a tensor is not found by its name";
    }
    return NULL;
}

static const char *check_decoder(const struct gguf *gguf, const struct decoder *decoder)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf->tensor_count; i++)
        bytes += gguf->tensors[i].bytes;
    return bytes == decoder->bytes && bytes <= gguf->file_bytes
               ? NULL
               : "the parts of the decoder do not add up to the file";
}

/* As a graph: the matrices that the sizes give; unless it lacks what a graph needs. */
static const char *check_graph(const struct decoder *decoder)
{
    static const struct precision_widths WIDTHS = {
        .weight = 2, .activation = 4, .cache = 2, .keeps_stored = true};
    struct graph_options setting = {.phase = GRAPH_PREFILL, .tokens = 3, .cached = 5, .batch = 2};
    struct graph graph = {0};
    struct error why = {0};
    enum err err = decoder_graph(decoder, &setting, &graph, &why);
    if (err)
        return err != ERR_NO_MEMORY && why.text[0] ? NULL : "a graph is refused without a reason";
    struct graph_cost cost = graph_cost_total(&graph);
    double macs = decoders_macs(decoder, &setting);
    graph_release(&graph);
    if (!isfinite(graph_cost_bytes(&cost, &WIDTHS)) || !(graph_flops(&cost) > 0))
        return "the cost is no number";
    return fabs(cost.macs - macs) <= 1e-9 * macs ? NULL : "the graph costs something else";
}

const char *gguf_file_exercise(const void *bytes, size_t length)
{
    struct gguf gguf;
    struct decoder decoder;
    struct error why = {0};
    enum err err = gguf_read("fuzz", bytes, length, &gguf, &why);
    if (err == ERR_NO_MEMORY)
        return "out of memory while reading";
    if (err)
        return why.text[0] && !strchr(why.text, '\n') ? NULL : "an error without one line";
    const char *wrong = touch_all(&gguf) == (unsigned long)-1 ? "no sum" : check_tensors(&gguf);
    err = decoder_read(&gguf, &decoder, &why);
    if (err == ERR_NO_MEMORY)
        wrong = "out of memory while reading the decoder";
    if (!err) {
        wrong = wrong ? wrong : check_decoder(&gguf, &decoder);
        wrong = wrong ? wrong : check_graph(&decoder);
        decoder_release(&decoder);
    }
    gguf_close(&gguf);
    return wrong;
}
