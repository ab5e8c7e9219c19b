#include "graph/decoder.h"

#include <stdlib.h>

#include "graph/decoder/keys.h"
#include "graph/decoder/tensors.h"

enum err decoder_read(const struct gguf *gguf, struct decoder *out, struct error *why)
{
    *out = (struct decoder){0};
    enum err err = keys_read(gguf, out, why);
    if (!err)
        err = decoder_tensors_read(gguf, out, why);
    if (err) {
        decoder_release(out);
        return err;
    }
    const struct decoder_layer *first = &out->layers[0];
    out->heads = first->heads;
    out->heads_kv = first->heads_kv;
    out->key_size = first->key_size;
    out->value_size = first->value_size;
    out->feed_forward = first->feed_forward ? first->feed_forward : first->expert_feed_forward;
    return ERR_OK;
}

void decoder_release(struct decoder *decoder)
{
    free(decoder->layers);
    *decoder = (struct decoder){0};
}
