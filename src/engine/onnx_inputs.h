/* Inputs for a model without data: random values of the shapes that it declares, for a load or a profile of its nodes.
 *
 * A free dimension has the size that the caller gives, or one by its meaning: the batch, a sequence, an image's side.
 * Ownership: the caller releases the inputs. */
#ifndef IPW_ENGINE_ONNX_INPUTS_H
#define IPW_ENGINE_ONNX_INPUTS_H

#include "core/params.h"
#include "core/text.h"
#include "engine/onnx.h"

struct onnx_input_options {
    uint64_t batch; /* 0: 1 */
    uint64_t seed;
    /* Sizes of free dimensions by name (seq=128), by position (x.0=4), or of a whole input (x=1x3x224x224). */
    const struct params *dims;
    /* Of an input, by name: one number, or LOW:HIGH.  Others are uniform in -1 to 1, and integers 0 or 1. */
    const struct params *values;
    /* How the caller's user gives a size and a value, for messages: "--client-param dim.", "--client-param value.". */
    const char *dim_option, *value_option;
};

struct onnx_inputs {
    struct onnx_tensor tensors[ONNX_PORTS_MAX];
    void *memory[ONNX_PORTS_MAX];
    size_t count;
};

/* ERR_USAGE for a dimension whose size is unknown, a size that the model fixes, and a name that it does not have. */
enum err onnx_inputs_make(const struct onnx_session *session,
                          const struct onnx_input_options *options, struct onnx_inputs *out,
                          struct error *why) MUST_USE;
void onnx_inputs_release(struct onnx_inputs *inputs);

/* Appends "x float[1,3,224,224]". */
void onnx_tensor_describe(const struct onnx_port *port, const struct onnx_tensor *tensor,
                          struct text *to);

/* The index of the first element that is no number (NaN); SIZE_MAX: none. */
size_t onnx_tensor_nan(const struct onnx_tensor *tensor);

#endif
