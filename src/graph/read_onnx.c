/* Graphs from ONNX files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/onnx/message.h"
#include "graph/onnx/walk.h"
#include "graph/reader.h"

static bool ends_with(const char *word, const char *end)
{
    size_t length = strlen(word), tail = strlen(end);
    return length >= tail && str_equal_nocase(word + length - tail, end);
}

/* A file that begins with a small version and the name of its producer, as they all do, might be one. */
static int probe(const char *word, const unsigned char *head, size_t length)
{
    if (ends_with(word, ".onnx"))
        return 90;
    bool looks_like = head && length > 3 && head[0] == 0x08 && head[1] < 0x40 &&
                      (head[2] == 0x12 || head[2] == 0x1a || head[2] == 0x3a || head[2] == 0x42);
    return looks_like ? 40 : 0;
}

static void name_model(const char *path, struct model *model)
{
    const char *slash = strrchr(path, '/');
    str_copy(model->name, sizeof model->name, slash ? slash + 1 : path);
    if (ends_with(model->name, ".onnx"))
        model->name[strlen(model->name) - strlen(".onnx")] = '\0';
}

/* Weights may lie in a file of their own; shapes are all that is needed of them. */
static void tell_outside(const struct onnx_file *file)
{
    struct slice told = {"", 0};
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct slice name = file->tensors[i].outside;
        if (name.length == 0 ||
            (name.length == told.length && memcmp(name.bytes, told.bytes, name.length) == 0))
            continue;
        told = name;
        const char *slash = strrchr(file->path, '/');
        int folder = slash ? (int)(slash - file->path + 1) : 0;
        char path[1024];
        if (!str_format(path, sizeof path, "%.*s%.*s", folder, file->path,
                        (int)(name.length & 0xfff), name.bytes) ||
            access(path, F_OK) == 0)
            continue;
        log_warn("%s: its weights are in %s, which is not there; their sizes are known from their "
                 "shapes",
                 file->path, onnx_words(name).text);
        return;
    }
}

static enum err open_file(const char *word, struct model *model, struct error *why)
{
    enum err err = message_available(why);
    if (err)
        return err;
    struct onnx_file *file = calloc(1, sizeof *file);
    if (!file)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    err = onnx_open(word, file, why);
    if (err) {
        free(file);
        return err;
    }
    tell_outside(file);
    name_model(word, model);
    model->state = file;
    return ERR_OK;
}

static enum err build(const struct model *model, struct graph_setting *setting, struct graph *out,
                      struct error *why)
{
    str_copy(out->name, sizeof out->name, model->name);
    return onnx_graph(model->state, setting, out, why);
}

static void close_file(struct model *model)
{
    onnx_close(model->state);
    free(model->state);
}

const struct graph_reader graph_reader_onnx = {
    .name = "onnx",
    .summary = "ONNX files: shapes are inferred; weights inside, beside or in Constant nodes",
    .probe = probe,
    .open = open_file,
    .build = build,
    .close = close_file,
    .available = message_available,
};
