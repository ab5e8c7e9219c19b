/* Shape inference over the nodes of an ONNX file, and construction of the graph: shared by the modules of this folder.
 * onnx.c walks the nodes in order; for each, inputs.c and the rules give shapes, fold.c computes what a runtime would
 * compute at load time, and emit.c adds a node to the graph for the others.
 *
 * Every shape is concrete: a data-dependent one (boxes after non-maximum suppression) gets its upper bound and is
 * marked as a guess.
 *
 * Ownership: infer_release frees a struct infer; the file, the options and the graph belong to the caller. */
#ifndef IPW_GRAPH_ONNX_INFER_H
#define IPW_GRAPH_ONNX_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "graph/graph.h"
#include "graph/onnx/file.h"

struct graph_options;
struct params;

/* Fills an empty graph and finishes it; batch and tokens are written back to the options. */
enum err onnx_graph(const struct onnx_file *file, struct graph_options *options, struct graph *out,
                    struct error *why) MUST_USE;

/* ---- values ---- */

enum {
    MAX_FOLDED = 1024,         /* elements of one value that are computed: shapes, indices */
    MAX_FOLDED_TOTAL = 1 << 22 /* so that a file cannot exhaust memory */
};

struct shape {
    uint8_t rank;
    int64_t dims[GRAPH_MAX_RANK];
};

struct operand_list {
    struct operand *operand;
    const struct operand_list *next;
};

struct operand {
    bool has_shape;
    int32_t dtype; /* enum onnx_dtype; 0: not known */
    struct shape shape;
    const double *data;                /* all elements in row-major order; NULL: not known */
    const struct proto_tensor *tensor; /* its elements in the file; NULL: none */
    tensor_id id;                      /* in the graph; GRAPH_NONE: not added yet */
    struct operand *root;         /* the weight that this is a view or slice of; NULL: itself */
    const struct operand *viewed; /* the tensor that this is a view of; NULL: none */
    const struct operand_list *others; /* weights concatenated with the root */
    double stored_bytes;               /* size of a packed weight in the file; 0: by its dtype */
    bool is_constant_node; /* from a Constant node, not one of the file's initializers */
    bool is_data_read;     /* the tensor's elements were read */
    bool is_guess;         /* its shape is a guess, or follows from one */
    bool is_invariant;     /* not a weight, but the same in every pass: a position table, a mask */
    bool is_quantized;     /* integers that represent a quantized weight */
    int32_t codes;         /* dtype of its narrow codes, dequantized or not; 0: none */
    uint32_t uses;         /* nodes that read it, and outputs of graphs */
    bool is_defined;       /* an input, a tensor, or its node was walked */
    bool is_live;          /* an output of the model depends on it */
    bool is_output;        /* an output of the model */
};

struct dim_binding {
    struct slice name;
    int64_t size;
};

struct infer {
    const struct onnx_file *file;
    struct graph *graph;
    struct operand *operands; /* per value of the file */
    bool *is_live;            /* per node: an output of the model depends on it */
    struct arena arena;       /* lifetime of this struct */
    struct arena scratch;     /* for one node */
    size_t data_count;        /* elements in the arena */
    bool is_guessed;
    double float_elements[PRECISION_COUNT]; /* elements of tensors in the graph, by their dtype */
    char scope[256]; /* enclosing function calls, each followed by a slash: "layer.0/attention/" */
    size_t scope_length;
    const struct params *dims; /* from the options */
    bool *is_given_used;       /* per entry of dims */
    size_t walked;             /* nodes of subgraphs, including repeated walks */
    enum err (*walk)(struct infer *infer, int32_t graph); /* over the nodes of a graph, in order */
    struct dim_binding *bindings;                         /* sizes of named dimensions */
    size_t binding_count, binding_capacity;
    /* The batch declared in the file, if another one was requested; -1: none. */
    int64_t declared_batch;
    struct error *why;
};

void infer_init(struct infer *infer, const struct onnx_file *file, struct graph *graph,
                struct error *why);
void infer_release(struct infer *infer);
double *infer_alloc_data(struct infer *infer, int64_t count); /* NULL: over a limit */

int64_t shape_elements(const struct shape *shape);
bool shape_equal(const struct shape *a, const struct shape *b);
/* Broadcasts *shape with another one; false if they are incompatible. */
bool shape_broadcast(struct shape *shape, const struct shape *other);
bool operand_is_weight(
    const struct operand *operand); /* more than a scalar, from the file; NULL: false */
/* The elements of a value, if few and known; NULL otherwise. */
const double *operand_data(struct infer *infer, struct operand *operand);

/* Makes `to` an alias of the same value. */
void operand_alias(struct operand *to, const struct operand *from);

/* A negative axis counts from the end; false: out of range. */
bool resolve_axis(int64_t axis, int rank, int *out);
int64_t clamp_to_int(double number); /* to +-2^62; NaN becomes 0 */

/* ---- inputs.c: shapes of the model's inputs ---- */

/* Sets the shape of every input of the model, and writes back batch and tokens.  ERR_USAGE names the dynamic dimensions
 * that need a size, and lists the inputs. */
enum err inputs_bind(struct infer *infer, struct graph_options *options) MUST_USE;
/* After the walk: ERR_USAGE names a given dimension that was not used. */
enum err inputs_check_given(const struct infer *infer, const struct graph_options *options)
    MUST_USE;
/* The declared shape of a value; false unless all dimensions are known.  *dtype is the declared one, else 0. */
bool inputs_declared(const struct infer *infer, int32_t value, int32_t *dtype, struct shape *out);
/* The name of a dynamic dimension of a value whose size the user has not given; empty: none. */
struct slice inputs_open_dim(const struct infer *infer, int32_t value, int64_t axis);
/* The number of iterations given by the user for a loop of that name. */
enum err inputs_given_trips(struct infer *infer, struct slice loop, int64_t *out, bool *is_given)
    MUST_USE;
/* After the walk: whether the outputs have the requested batch instead of the declared one.  With a constant shape in
 * the graph they would not. */
enum err inputs_check_batch(const struct infer *infer, const struct graph_options *options)
    MUST_USE;

/* ---- one node ---- */

struct step {
    struct infer *infer;
    const struct onnx_node *node;
    const struct onnx_operator *row; /* NULL: unknown operator */
    struct graph_node emitted;       /* op, window, attention, recurrent: set by the rule */
    const char *order;               /* the inputs of the emitted node, a digit each; NULL: all */
    /* The contracted dimension of a product, if it is not the last of the first input; 0: it is. */
    int64_t inner;
    bool is_guessed; /* the output shapes are a guess */
    /* A node before the emitted one, whose output is its first input: for operators that fuse two. */
    struct {
        enum graph_op op;
        const char *inputs; /* as in `order`; NULL: there is no such node */
        struct shape shape;
    } prologue;
    const struct operand *folded; /* the output whose elements are computed at load time */
    enum err err;                 /* the first failure, after which outputs are not set */
};

/* "FILE: node 'NAME' (Conv): ..." */
enum err step_fail(struct step *step, const char *format, ...) PRINTF_LIKE(2, 3);

struct operand *step_input(const struct step *step, size_t index);  /* NULL: omitted */
struct operand *step_output(const struct step *step, size_t index); /* NULL: unused */
/* Inputs and outputs of a subgraph of the node; NULL: index out of range. */
struct operand *step_body_input(const struct step *step, int32_t graph, uint32_t index);
struct operand *step_body_output(const struct step *step, int32_t graph, uint32_t index);
/* The input's shape; NULL: omitted or not known. */
const struct shape *step_shape(const struct step *step, size_t index);
/* All elements of the input as integers; -1: not known, or more than `capacity`. */
int step_input_ints(const struct step *step, size_t index, int64_t *out, int capacity);
/* Whether it is the operator of that name. */
bool step_is(const struct step *step, const char *name);
/* The inputs of the emitted node: their number, and the index of one of them among those of the operator. */
size_t step_order_count(const struct step *step);
size_t step_order_at(const struct step *step, size_t index);
/* dtype 0: that of the operator's row.  Returns step->err. */
enum err step_set_output(struct step *step, size_t index, int32_t dtype, const struct shape *shape);
/* The first output, with that dtype. */
enum err step_set_result(struct step *step, const struct shape *shape);

const struct onnx_attribute *step_attribute(const struct step *step,
                                            const char *name); /* or NULL */
int64_t step_int(const struct step *step, const char *name, int64_t otherwise);
/* The attribute "axis", from 0; ERR_BAD_VALUE if it is out of range. */
enum err step_axis(struct step *step, int64_t otherwise, int rank, int *out) MUST_USE;
struct slice step_string(const struct step *step, const char *name);
/* The list's length, up to `capacity`; 0 when it is not set. */
int step_ints(const struct step *step, const char *name, int64_t *out, int capacity);
/* Reads a list from an attribute or, in newer versions of an operator, from an input; -1: neither, or not known. */
int step_ints_or_input(const struct step *step, const char *name, size_t input, int64_t *out,
                       int capacity);

/* An output without a shape rule: as declared in the file, else like the first input. */
void inputs_assume_output(struct step *step, size_t index);

/* ---- control.c: If, Loop and Scan ---- */

bool control_is(const struct onnx_node *node);
/* Walks the subgraphs of the node, and sets its outputs. */
enum err control_step(struct step *step) MUST_USE;

/* ---- fold.c: computed by a runtime at load time ---- */

/* True if the node needs no computation in a pass, so that no node is emitted: the elements of its outputs are known,
 * or the outputs are views or slices of weights, or depend only on constants; or it quantizes an output that its
 * producer can write as codes, or dequantizes one that its consumers can read as codes. */
bool fold_node(struct step *step);
/* Propagates codes from inputs to outputs: of quantized operators, and of those that only move elements. */
void fold_mark_codes(struct step *step);

/* ---- emit.c: tensors and nodes of the graph ---- */

void emit_input(struct infer *infer, int32_t value);
void emit_node(struct step *step);
/* The output of a loop, from one tensor per iteration; GRAPH_NONE for constants. */
void emit_stack(struct step *step, const tensor_id *parts, size_t count, struct operand *out);
/* A part of a tensor, read in place. */
void emit_view(struct step *step, tensor_id of, struct operand *out);
/* The compute precision of products and the dtype of floats of the whole graph. */
struct graph_precision emit_precision(const struct infer *infer);

#endif
