/* Where graphs come from: one driver a kind of file or name, and one line in readers.def.
 *
 * model_open looks at what it was given (a path, or the name of an architecture of the zoo) and takes the
 * driver that knows it.  A struct model is the caller's; model_close takes it back.  model_graph may be
 * called again and again with other settings. */
#ifndef IPW_GRAPH_READER_H
#define IPW_GRAPH_READER_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct params;

enum graph_phase {
    GRAPH_WHOLE,   /* one pass over the input; of a decoder: prefill */
    GRAPH_PREFILL, /* `tokens` of a prompt in one pass, one row of logits */
    GRAPH_DECODE,  /* one token that sees `context` tokens, itself included */
};

/* 0 means the model's own default, which model_graph writes back. */
struct graph_setting {
    enum graph_phase phase;
    int64_t batch;   /* samples or sequences */
    int64_t tokens;  /* of a prompt, or of a text that is read whole */
    int64_t context; /* tokens that a decoded one sees: itself, the others are in the cache */
    int64_t image;   /* pixels of a side */
    const struct params *dims; /* "batch=8": dynamic dimensions of an ONNX file; NULL: none */
};

struct model;

struct graph_reader {
    const char *name;    /* "onnx" */
    const char *summary; /* one line for `ipw list` */
    /* How sure it is that this is for it, 0 (no) to 100, from the word as given and, where that is a file,
     * its first bytes. */
    int (*probe)(const char *word, const unsigned char *head, size_t length);
    /* Sets state, name, has_phases and trained of a zeroed model. */
    enum err (*open)(const char *word, struct model *model, struct error *why);
    /* Fills a zeroed graph and finishes it. */
    enum err (*build)(const struct model *model, struct graph_setting *setting, struct graph *out,
                      struct error *why);
    void (*close)(struct model *model);
};

struct model {
    const struct graph_reader *reader;
    void *state;     /* the driver's */
    char word[256];  /* as it was given */
    char name[128];  /* for people */
    bool has_phases; /* prefill and decode are two: a decoder */
    int64_t
        trained; /* tokens, of prompt and answer together, that it was trained for; 0: not told */
};

enum err model_open(const char *word, struct model *out, struct error *why) MUST_USE;
enum err model_graph(const struct model *model, struct graph_setting *setting, struct graph *out,
                     struct error *why) MUST_USE;
void model_close(struct model *model);

size_t graph_reader_count(void);
const struct graph_reader *graph_reader_at(size_t index);

#endif
