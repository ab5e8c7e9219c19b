/* GGUF files: their decoder, as a graph. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graph/decoder_graph.h"
#include "graph/reader.h"

static int probe(const char *word, const unsigned char *head, size_t length)
{
    (void)word;
    return length >= 4 && memcmp(head, "GGUF", 4) == 0 ? 100 : 0;
}

static enum err open_file(const char *word, struct model *model, struct error *why)
{
    struct gguf gguf;
    struct decoder *decoder = malloc(sizeof *decoder);
    if (!decoder)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = gguf_open(word, &gguf, why);
    if (!err) {
        err = decoder_read(&gguf, decoder, why);
        gguf_close(&gguf);
    }
    if (err) {
        free(decoder);
        return err;
    }
    model->state = decoder;
    model->has_phases = true;
    model->trained = (int64_t)decoder->context;
    if (decoder->name[0])
        str_copy(model->name, sizeof model->name, decoder->name);
    return ERR_OK;
}

static enum err build(const struct model *model, struct graph_setting *setting, struct graph *out,
                      struct error *why)
{
    return decoder_graph(model->state, setting, out, why);
}

static void close_file(struct model *model)
{
    decoder_release(model->state);
    free(model->state);
}

const struct graph_reader graph_reader_gguf = {
    .name = "gguf",
    .summary = "GGUF files of Llama's kind of decoder, as llama.cpp and Ollama have them",
    .probe = probe,
    .open = open_file,
    .build = build,
    .close = close_file,
};
