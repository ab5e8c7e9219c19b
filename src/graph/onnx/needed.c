#include "graph/onnx/needed.h"

#include <stdlib.h>
#include <string.h>

/* Values whose makers are still to be looked at; each gets in once. */
struct pending {
    struct work *work;
    int32_t *values;
    size_t count;
};

static void want(struct pending *pending, int32_t value)
{
    if (value == ONNX_NONE || pending->work->known[value].is_needed)
        return;
    pending->work->known[value].is_needed = true;
    pending->values[pending->count++] = value;
}

static void want_links(struct pending *pending, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        want(pending, pending->work->file->links[first + i]);
}

static void want_outputs(struct pending *pending, int32_t graph)
{
    if (graph == ONNX_NONE)
        return;
    const struct onnx_graph *inner = &pending->work->file->graphs[graph];
    want_links(pending, inner->first_output, inner->output_count);
}

static void want_node(struct pending *pending, int32_t index)
{
    const struct onnx_file *file = pending->work->file;
    const struct onnx_node *node = &file->nodes[index];
    pending->work->is_needed[index] = true;
    want_links(pending, node->first_input, node->input_count);
    want_outputs(pending, node->called);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        want_outputs(pending, file->attributes[node->first_attribute + i].graph);
}

static void mark_all(struct work *work)
{
    memset(work->is_needed, true, work->file->node_count);
    for (size_t i = 0; i < work->file->value_count; i++)
        work->known[i].is_needed = true;
}

enum err needed_mark(struct work *work)
{
    const struct onnx_file *file = work->file;
    struct pending pending = {.work = work};
    work->is_needed = calloc(file->node_count + 1, sizeof *work->is_needed);
    pending.values = malloc((file->value_count + 1) * sizeof *pending.values);
    if (!work->is_needed || !pending.values) {
        free(pending.values);
        return work_no_memory(work);
    }
    if (file->graphs[0].output_count == 0)
        mark_all(work);
    want_outputs(&pending, 0);
    while (pending.count) {
        int32_t maker = file->values[pending.values[--pending.count]].maker;
        if (maker != ONNX_NONE && !work->is_needed[maker])
            want_node(&pending, maker);
    }
    free(pending.values);
    return ERR_OK;
}
