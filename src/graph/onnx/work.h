/* One pass over the nodes of an ONNX file: what is known of every value (shape, type, small numbers), and
 * the step of one node, with its settings at hand.
 *
 * Every shape is a whole one: what depends on data (boxes that are left over) is given the most it can be,
 * and is_guessed says so.  A struct work is the caller's; work_release takes it back. */
#ifndef IPW_GRAPH_ONNX_WORK_H
#define IPW_GRAPH_ONNX_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"
#include "graph/onnx/arena.h"
#include "graph/onnx/file.h"
#include "graph/onnx/message.h"

enum {
    MOST_NUMBERS = 1024,          /* of one value that are computed: shapes, indices */
    MOST_NUMBERS_IN_ALL = 1 << 22 /* so that a file cannot ask for all memory */
};

struct shape {
    uint8_t rank;
    int64_t dims[GRAPH_MOST_DIMENSIONS];
};

struct known;

struct known_list {
    struct known *known;
    const struct known_list *next;
};

struct known {
    bool has_shape;
    bool is_constant;   /* from a Constant node, not one of the file's tensors */
    bool was_looked_at; /* for numbers of a tensor of the file */
    int32_t type;       /* enum onnx_type; 0: not known */
    struct shape shape;
    const double *numbers;            /* all of them, in order; NULL: not known */
    const struct onnx_tensor *tensor; /* its numbers in the file; NULL: none */
    tensor_id id;                     /* in the graph; GRAPH_NONE: not there yet */
    struct known *root;               /* the weight that this is another shape of; NULL: itself */
    const struct known_list *others;  /* weights that are put together with the root */
    bool is_guess;                    /* its shape is, or comes of one */
    bool is_fixed;  /* of no weight, and the same at every pass: a table of positions, a mask */
    bool is_weight; /* integers that stand for other numbers: a quantised weight */
    double stored_bytes; /* of a weight that is packed: those of the file; 0: by its type */
    bool is_made;        /* an input, a tensor, or its node was passed */
    bool is_needed;      /* for an output of the model */
    bool is_output;      /* of the model */
};

struct bound_dim {
    const char *name;
    int64_t size;
};

struct work {
    const struct onnx_file *file;
    struct graph *graph;
    struct known *known;  /* of each value of the file */
    bool *is_needed;      /* of each node: for an output of the model */
    struct arena kept;    /* numbers, tensors of Constant nodes: as long as the work */
    struct arena passing; /* settings of one node */
    size_t numbers_kept;
    bool is_guessed;
    char inside[256]; /* the calls of functions around, each with a slash: "layer.0/attention/" */
    size_t inside_length;
    struct bound_dim *bound; /* names of dimensions that have got a size */
    size_t bound_count, bound_room;
    int64_t
        batch_in_file; /* the first dimension of the first input, where the file has it and another was asked
                            * for; -1: none */
    struct error *why;
};

enum err work_init(struct work *work, const struct onnx_file *file, struct graph *graph,
                   struct error *why) MUST_USE;
void work_release(struct work *work);
enum err work_no_memory(const struct work *work);

/* ---- values ---- */

int64_t shape_elements(const struct shape *shape);
bool type_is_real(int32_t type);
/* Its numbers, if it is small and they are known; NULL otherwise. */
const double *known_numbers(struct work *work, struct known *known);
double *work_numbers(struct work *work, int64_t count); /* room to keep; NULL: none is given */

/* ---- the step of one node ---- */

struct operator_row;

struct step {
    struct work *work;
    const struct onnx_node *node;
    const struct operator_row *row;
    struct message_setting *settings; /* of each attribute */
    struct graph_node made;           /* op, window, attention, recurrent: what the rule found */
    const uint8_t *order; /* the inputs that the graph gets, where not all as they stand; NULL */
    uint8_t order_count;
    /* The first input is read as rows of so many numbers, the ones that are summed over; 0: as it is.  What
     * is counted of a product goes by its last dimension. */
    int64_t summed;
    bool is_guessed; /* what comes out is no more than a guess */
    /* A node before this one, whose output is this one's first input, with `order` after it: for operators
     * that are two in one.  No inputs: there is none. */
    struct {
        enum graph_op op;
        const uint8_t *inputs;
        uint8_t input_count;
        struct shape shape;
    } before;
};

enum err step_init(struct step *step, struct work *work, const struct onnx_node *node) MUST_USE;
/* "FILE: node 'NAME' (Conv): ..." */
enum err step_fail(const struct step *step, const char *format, ...) PRINTF_LIKE(2, 3);

size_t step_input_count(const struct step *step);
struct known *step_input(const struct step *step, size_t index);  /* NULL: left out */
struct known *step_output(const struct step *step, size_t index); /* NULL: nobody wants it */
/* The input's shape; NULL: left out or not known. */
const struct shape *step_shape(const struct step *step, size_t index);
/* All numbers of the input as integers, at most `room`; -1: not known or more. */
int step_integers(const struct step *step, size_t index, int64_t *out, int room);

/* Sets what comes out; type 0 means that of the first input. */
enum err step_give(struct step *step, size_t index, int32_t type, const struct shape *shape)
    MUST_USE;

/* ---- its settings ---- */

const struct onnx_attribute *step_attribute(const struct step *step, const char *name);
const struct message_setting *step_setting(const struct step *step, const char *name); /* or NULL */
bool step_has(const struct step *step, const char *name);
int64_t step_integer(const struct step *step, const char *name, int64_t otherwise);
double step_real(const struct step *step, const char *name, double otherwise);
/* How many there are, up to `room`; 0 when it is not set. */
int step_list(const struct step *step, const char *name, int64_t *out, int room);
struct slice step_text(const struct step *step, const char *name);
/* The same from a setting, or in newer versions from an input; -1: neither, or not known. */
int step_list_or_input(const struct step *step, const char *name, size_t input, int64_t *out,
                       int room);

/* A dimension counted from the end when it is negative; false: there is none such. */
bool axis_of(int64_t axis, int rank, int *out);
int64_t integer_of(double number); /* held to what fits */

#endif
