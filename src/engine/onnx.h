/* In-process inference of ONNX models with ONNX Runtime, whose C library is opened at run time: IPW_ONNXRUNTIME_LIB,
 * else the one installed with ipw or in third_party, else the system's.
 *
 * Sessions of the same file and options are shared by all of a process: weights are in memory once, and any number of
 * threads may run one at the same time.  Ownership: the caller owns the structs here; a tensor's memory is the caller's,
 * or, for an output, the library's until onnx_tensor_release. */
#ifndef IPW_ENGINE_ONNX_H
#define IPW_ENGINE_ONNX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { ONNX_RANK_MAX = 8, ONNX_PORTS_MAX = 256, ONNX_NAME_MAX = 128 };

/* Element types, with the numbers of TensorProto.DataType. */
enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_BFLOAT16 = 16,
};
/* Bytes of an element; 0 for strings and unknown types. */
size_t onnx_type_size(enum onnx_type type);
/* "float", "int64" ... */
const char *onnx_type_name(enum onnx_type type);

/* An input or output of a model; a dimension is -1 where it is free, with its symbolic name or "". */
struct onnx_port {
    char name[ONNX_NAME_MAX];
    enum onnx_type type;
    size_t rank;
    int64_t shape[ONNX_RANK_MAX];
    char symbols[ONNX_RANK_MAX][64];
};

struct onnx_tensor {
    enum onnx_type type;
    size_t rank;
    int64_t shape[ONNX_RANK_MAX];
    size_t count; /* elements: the product of the shape */
    void *data;   /* host memory */
    void *
        owner; /* the library's value, which may also be given to onnx_run as an input; NULL: the caller's memory */
};
void onnx_tensor_release(struct onnx_tensor *tensor);
/* A tensor over the caller's memory; count is computed. */
struct onnx_tensor onnx_tensor_of(enum onnx_type type, void *data, size_t rank,
                                  const int64_t *shape);
/* Element i as a number: float16, integers and bool are converted. */
double onnx_tensor_at(const struct onnx_tensor *tensor, size_t i);

struct onnx_options {
    unsigned threads;     /* of an operator; 0: the available cores */
    const char *provider; /* "cpu" or "cuda"; NULL: cpu */
    const char *library;  /* libonnxruntime or its directory; NULL: as above */
    const char *
        profile; /* prefix of a file with the time of every node, see onnx_session_profile; NULL: none */
    bool is_optimized_basic; /* only optimizations that keep the graph's nodes recognizable */
};

struct onnx_session;

struct onnx_facts {
    const struct onnx_port *inputs, *outputs;
    size_t input_count, output_count;
    const char *path;
    const char *library;  /* its path */
    const char *version;  /* of the library */
    const char *provider; /* as used */
    unsigned threads;
};

/* ERR_NOT_FOUND without the file; ERR_UNSUPPORTED without the library or provider, or for an opset or operator that the
 * runtime lacks, with its message. */
enum err onnx_session_open(const char *path, const struct onnx_options *options,
                           struct onnx_session **out, struct error *why) MUST_USE;
void onnx_session_close(struct onnx_session *session); /* NULL is ignored */
const struct onnx_facts *onnx_session_facts(const struct onnx_session *session);
/* The index of an input or output by name; -1: none. */
int onnx_input(const struct onnx_session *session, const char *name);
int onnx_output(const struct onnx_session *session, const char *name);
/* Custom metadata of the file ("names" of a YOLO export), to be freed; NULL: none. */
char *onnx_session_metadata(const struct onnx_session *session, const char *key);

/* Runs the model: inputs[i] is input i of the model, outputs[i] becomes output i; all inputs are needed.  wanted: which
 * outputs to compute; NULL: all; others stay empty.  A shape that does not fit is ERR_BAD_VALUE with the runtime's
 * message.  ERR_INTERRUPTED when *cancel (may be NULL) became true. */
enum err onnx_run(struct onnx_session *session, const struct onnx_tensor *inputs,
                  struct onnx_tensor *outputs, const bool *wanted, const atomic_bool *cancel,
                  struct error *why) MUST_USE;

/* Ends profiling and returns the path of the written file (chrome trace format), to be freed; NULL: not profiling. */
char *onnx_session_profile(struct onnx_session *session);

/* Whether the library can be opened, with its version in *version; ERR_UNSUPPORTED says how to get it. */
enum err onnx_available(const char **version, struct error *why) MUST_USE;

#endif
