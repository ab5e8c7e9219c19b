/* The registry of readers: the one with the highest score for a source opens it. */
#include "graph/reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"

#define READER(name) extern const struct graph_reader graph_reader_##name;
#include "graph/readers.def"
#undef READER

static const struct graph_reader *const READERS[] = {
#define READER(name) &graph_reader_##name,
#include "graph/readers.def"
#undef READER
};
enum { READER_COUNT = COUNT_OF(READERS) };

size_t graph_reader_count(void)
{
    return READER_COUNT;
}

const struct graph_reader *graph_reader_at(size_t index)
{
    return READERS[index];
}

/* The first bytes of a file; 0 when there is no such file. */
static size_t read_head(const char *path, unsigned char *head, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t length = fread(head, 1, size, file);
    fclose(file);
    return length;
}

static const struct graph_reader *reader_for(const char *source)
{
    unsigned char head[512];
    size_t length = read_head(source, head, sizeof head);
    const struct graph_reader *best = NULL;
    int best_score = 0;
    for (size_t i = 0; i < READER_COUNT; i++) {
        int score = READERS[i]->probe(source, length ? head : NULL, length);
        if (score > best_score) {
            best_score = score;
            best = READERS[i];
        }
    }
    return best;
}

static enum err not_found(const char *source, struct error *why)
{
    if (file_is_regular(source))
        return err_set(
            why, ERR_BAD_VALUE,
            "%.120s is not a model file: expected ONNX, GGUF, safetensors or config.json", source);
    char near[160] = "";
    for (size_t i = 0; i < READER_COUNT && !near[0]; i++)
        if (READERS[i]->suggest)
            (void)READERS[i]->suggest(source, near, sizeof near);
    if (near[0])
        return err_set(why, ERR_NOT_FOUND,
                       "%.120s: neither a supported model file nor the name of a model: did you "
                       "mean %s?",
                       source, near);
    return err_set(why, ERR_NOT_FOUND,
                   "%.120s: neither a supported model file nor the name of a model: see `ipw list "
                   "models`",
                   source);
}

enum err model_open(const char *source, struct model *out, struct error *why)
{
    const struct graph_reader *reader = reader_for(source);
    *out = (struct model){0};
    return reader ? model_open_with(reader, source, out, why) : not_found(source, why);
}

enum err model_open_with(const struct graph_reader *reader, const char *source, struct model *out,
                         struct error *why)
{
    *out = (struct model){.reader = reader,
                          .state = reader->state_size ? xcalloc(1, reader->state_size) : NULL};
    out->source = xstrdup(source);
    chars_copy(out->name, source);
    enum err err = reader->open(source, out, why);
    str_plain(out->name, sizeof out->name);
    if (err)
        model_close(out);
    return err;
}

enum err model_graph(const struct model *model, struct graph_options *options, struct graph *out,
                     struct error *why)
{
    *out = (struct graph){0};
    enum err err = model->reader->build(model, options, out, why);
    str_plain(out->name, sizeof out->name);
    if (err)
        graph_release(out);
    return err;
}

void model_close(struct model *model)
{
    if (model->state && model->reader->close)
        model->reader->close(model);
    if (model->state && model->reader->state_size)
        free(model->state);
    free(model->source);
    *model = (struct model){0};
}
