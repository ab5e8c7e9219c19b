/* Sources of graphs: one driver per file format, and one for names of architectures (readers.def).
 *
 * model_open selects the driver that recognizes a path or name.  model_graph may be called repeatedly with different
 * options.  Ownership: the caller closes a struct model with model_close. */
#ifndef IPW_GRAPH_READER_H
#define IPW_GRAPH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct model;

struct graph_reader {
    const char *name;    /* "onnx" */
    const char *summary; /* one line for `ipw list` */
    /* Score of this driver for a source, 0 (no) to 100, from the path or name and the first bytes of the file; head is
     * NULL without a file. */
    int (*probe)(const char *source, const unsigned char *head, size_t length);
    size_t state_size; /* size of the `state` of a model; 0: the driver sets the pointer itself */
    /* Fills the zeroed state, and sets name, has_phases and context_length of a zeroed model. */
    enum err (*open)(const char *source, struct model *model, struct error *why);
    /* Fills a zeroed graph and finishes it. */
    enum err (*build)(const struct model *model, struct graph_options *options, struct graph *out,
                      struct error *why);
    /* Optional: releases resources of the state, also after a failed open. */
    void (*close)(struct model *model);
    /* Optional: writes similar names, "a, b or c"; false: there are none. */
    bool (*suggest)(const char *source, char *to, size_t size);
};

struct model {
    const struct graph_reader *reader;
    void *state;            /* the driver's */
    char *source;           /* as given: a path or a name */
    char name[128];         /* human-readable */
    bool has_phases;        /* a decoder: prefill and decode differ */
    int64_t context_length; /* maximum of prompt and completion; 0: unknown */
};

enum err model_open(const char *source, struct model *out, struct error *why) MUST_USE;
/* The same with a given driver. */
enum err model_open_with(const struct graph_reader *reader, const char *source, struct model *out,
                         struct error *why) MUST_USE;
enum err model_graph(const struct model *model, struct graph_options *options, struct graph *out,
                     struct error *why) MUST_USE;
void model_close(struct model *model);

/* That of models of which only the number of parameters is known: its sources are "671B,37B", all and active per token,
 * and names of the catalog without an architecture (assumed.c). */
extern const struct graph_reader graph_reader_assumed;
/* That of architectures by their names (zoo/). */
extern const struct graph_reader graph_reader_zoo;

size_t graph_reader_count(void);
const struct graph_reader *graph_reader_at(size_t index);

#endif
