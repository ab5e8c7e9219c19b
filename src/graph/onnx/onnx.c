/* The reader of ONNX files: the front door of this folder. */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/model_files.h"
#include "graph/onnx/file.h"
#include "graph/onnx/infer.h"
#include "graph/reader.h"
#include "port/file.h"

/* A file that begins with a small ir_version and the name of its producer, as they all do, might be one. */
static int probe(const char *source, const unsigned char *head, size_t length)
{
    if (model_path_ends(source, ".onnx"))
        return 90;
    bool looks_like = head && length > 3 && head[0] == 0x08 && head[1] < 0x40 &&
                      (head[2] == 0x12 || head[2] == 0x1a || head[2] == 0x3a || head[2] == 0x42);
    return looks_like ? 40 : 0;
}

/* External weights may be missing: no more than their shapes is needed. */
static void warn_of_missing_weights(const struct onnx_file *file)
{
    struct slice checked = {"", 0};
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct slice name = file->tensors[i].external;
        char label[FILE_PATH_MAX], path[FILE_PATH_MAX];
        if (name.length == 0 || slice_equal(name, checked))
            continue;
        checked = name;
        if (!str_format(label, sizeof label, "%.*s", (int)(name.length & 0xfff), name.start) ||
            !model_path_beside(file->path, label, path, sizeof path) || file_is_regular(path))
            continue;
        log_warn("%s: external weights %s not found; their sizes follow from their shapes",
                 file->path, model_label(name).text);
        return;
    }
}

static enum err open_file(const char *source, struct model *model, struct error *why)
{
    struct onnx_file *file = calloc(1, sizeof *file);
    if (!file)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = onnx_open(source, file, why);
    if (err) {
        free(file);
        return err;
    }
    warn_of_missing_weights(file);
    const char *slash = strrchr(source, '/');
    str_copy(model->name, sizeof model->name, slash ? slash + 1 : source);
    if (model_path_ends(model->name, ".onnx"))
        model->name[strlen(model->name) - strlen(".onnx")] = '\0';
    model->state = file;
    return ERR_OK;
}

static enum err build(const struct model *model, struct graph_options *options, struct graph *out,
                      struct error *why)
{
    str_copy(out->name, sizeof out->name, model->name);
    return onnx_graph(model->state, options, out, why);
}

static void close_file(struct model *model)
{
    onnx_close(model->state);
    free(model->state);
}

const struct graph_reader graph_reader_onnx = {
    .name = "onnx",
    .summary = "ONNX files: shapes are inferred; weights inside, external or in Constant nodes",
    .probe = probe,
    .open = open_file,
    .build = build,
    .close = close_file,
};
