/* Builds ONNX models of a few operators of one kind and runs a shorter and a longer one: the difference is the time of
 * the operators, without the overhead of a run and of layout conversions at its ends. */
#define _GNU_SOURCE
#include "engine/timers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "engine/ort_api.h"
#include "engine/ort_library.h"

enum {
    LONG = 9, /* operators of the longer model */
    SAMPLES_MAX = 256,
    SAMPLES_MIN = 4,
    DIMS_MAX = 4,
    OPSET = 13,
    IR_VERSION = 8,
    FLOAT = 1, /* a tensor's data type */
    LRN_SIZE = 5,
    LRN_CHANNELS = 64,
};

struct ort_timer {
    const struct ort_library *library;
    const struct ort_api *api;
    unsigned threads;
};

static enum err check(struct ort_status *status, struct error *why)
{
    struct error reason;
    enum err err = ort_check(status, &reason, "ONNX Runtime");
    return err ? err_set(why, ERR_UNSUPPORTED, "%s", reason.text) : ERR_OK;
}

enum err ort_timer_open(unsigned threads, struct ort_timer **out, struct error *why)
{
    const struct ort_library *library;
    enum err err = ort_library_open(NULL, &library, why);
    if (err)
        return err;
    struct ort_timer *timer = XNEW(timer);
    *timer = (struct ort_timer){library, library->api, threads};
    *out = timer;
    return ERR_OK;
}

void ort_timer_close(struct ort_timer *timer)
{
    free(timer);
}

const char *ort_timer_version(const struct ort_timer *timer)
{
    return timer->library->version;
}

/* ---- ONNX files: protobuf messages ---- */

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_varint(struct text *to, uint64_t value)
{
    char byte;
    for (; value > 0x7f; value >>= 7) {
        byte = (char)(0x80 | (value & 0x7f));
        text_add_bytes(to, &byte, 1);
    }
    byte = (char)value;
    text_add_bytes(to, &byte, 1);
}

static void put_number(struct text *to, unsigned field, int64_t value)
{
    put_varint(to, field << 3 | WIRE_VARINT);
    put_varint(to, (uint64_t)value);
}

static void put_bytes(struct text *to, unsigned field, const char *bytes, size_t length)
{
    put_varint(to, field << 3 | WIRE_BYTES);
    put_varint(to, length);
    text_add_bytes(to, bytes, length);
}

static void put_string(struct text *to, unsigned field, const char *string)
{
    put_bytes(to, field, string, strlen(string));
}

/* Adds a nested message, which is released. */
static void put_message(struct text *to, unsigned field, struct text *message)
{
    put_bytes(to, field, text_get(message), message->length);
    text_release(message);
}

struct dims {
    size_t count;
    int64_t at[DIMS_MAX];
};

static int64_t elements_of(const struct dims *dims)
{
    int64_t product = 1;
    for (size_t i = 0; i < dims->count; i++)
        product *= dims->at[i];
    return product;
}

/* A graph's input or output. */
static void put_value(struct text *graph, unsigned field, const char *name, const struct dims *dims)
{
    struct text shape = {0}, tensor = {0}, type = {0}, info = {0};
    for (size_t i = 0; dims && i < dims->count; i++) {
        struct text dim = {0};
        put_number(&dim, 1, dims->at[i]);
        put_message(&shape, 1, &dim);
    }
    put_number(&tensor, 1, FLOAT);
    if (dims)
        put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_string(&info, 1, name);
    put_message(&info, 2, &type);
    put_message(graph, field, &info);
}

/* Numbers of either sign, so that a chain of products neither overflows nor decays to denormal numbers. */
static void put_weights(struct text *graph, const char *name, const struct dims *dims, double size)
{
    struct text tensor = {0};
    size_t count = (size_t)elements_of(dims);
    float *numbers = xreallocarray(NULL, count, sizeof *numbers);
    uint32_t draw = 2463534242U;
    for (size_t i = 0; i < count; i++) {
        draw ^= draw << 13;
        draw ^= draw >> 17;
        draw ^= draw << 5;
        numbers[i] = (float)(count == 1 || draw & 1 ? size : -size);
    }
    for (size_t i = 0; i < dims->count; i++)
        put_number(&tensor, 1, dims->at[i]);
    put_number(&tensor, 2, FLOAT);
    put_string(&tensor, 8, name);
    put_bytes(&tensor, 9, (const char *)numbers, count * sizeof *numbers);
    free(numbers);
    put_message(graph, 5, &tensor);
}

enum { ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };

static void put_integer(struct text *node, const char *name, int64_t value)
{
    struct text attribute = {0};
    put_string(&attribute, 1, name);
    put_number(&attribute, 3, value);
    put_number(&attribute, 20, ATTRIBUTE_INT);
    put_message(node, 5, &attribute);
}

static void put_integers(struct text *node, const char *name, const int64_t *values, size_t count)
{
    struct text attribute = {0};
    put_string(&attribute, 1, name);
    for (size_t i = 0; i < count; i++)
        put_number(&attribute, 8, values[i]);
    put_number(&attribute, 20, ATTRIBUTE_INTS);
    put_message(node, 5, &attribute);
}

/* ---- models of one operator ---- */

struct model {
    const struct ort_shape *shape;
    struct text graph;
    struct dims input;
    char last[16]; /* input of the next operator */
};

static void name_it(char *to, const char *what, int number)
{
    str_format(to, 16, "%s%d", what, number);
}

static void begin_node(struct text *node, const char *op, const char *input, const char *operand)
{
    put_string(node, 1, input);
    if (operand)
        put_string(node, 1, operand);
    put_string(node, 4, op);
}

static void end_node(struct model *model, struct text *node, const char *output)
{
    put_string(node, 2, output);
    put_message(&model->graph, 1, node);
    chars_copy(model->last, output);
}

static void add_plain(struct model *model, int number, const char *output)
{
    const struct ort_shape *s = model->shape;
    static const char *const NAMES[] = {
        [ORT_RUN] = "Add",   [ORT_NOTHING] = "Add", [ORT_PRODUCT] = "MatMul",  [ORT_ADD] = "Add",
        [ORT_SCALE] = "Mul", [ORT_SCALED] = "Mul",  [ORT_SIGMOID] = "Sigmoid", [ORT_LRN] = "LRN"};
    const struct dims matrix = {2, {s->channels, s->channels}}, one = {1, {1}};
    bool has_weights = s->op == ORT_PRODUCT || s->op == ORT_SCALE || s->op == ORT_SCALED;
    char weights[16];
    struct text node = {0};
    name_it(weights, "p", number);
    if (s->op == ORT_PRODUCT)
        put_weights(&model->graph, weights, &matrix, 1 / sqrt((double)s->channels));
    else if (has_weights)
        put_weights(&model->graph, weights, &one, 0.999);
    const char *second = s->op >= ORT_SIGMOID ? NULL : "x";
    begin_node(&node, NAMES[s->op], model->last, has_weights ? weights : second);
    if (s->op == ORT_LRN)
        put_integer(&node, "size", LRN_SIZE);
    end_node(model, &node, output);
}

static void add_conv(struct model *model, int number, const char *output)
{
    const struct ort_shape *s = model->shape;
    bool is_deep = s->op == ORT_DEPTHWISE, is_image = s->op == ORT_IMAGE;
    size_t rank = s->op == ORT_LINE ? 1 : 2;
    int64_t inputs = is_deep ? 1 : s->channels;
    int64_t pad = (s->window - 1) / 2;
    const struct dims dims = {2 + rank, {s->outputs, inputs, s->window, s->window}};
    const int64_t window[2] = {s->window, s->window}, strides[2] = {2, 2};
    const int64_t pads[4] = {pad, pad, pad, pad};
    char weights[16], middle[16];
    struct text node = {0}, pool = {0};
    name_it(weights, "w", number);
    name_it(middle, "m", number);
    put_weights(&model->graph, weights, &dims,
                1 / sqrt((double)inputs * pow((double)s->window, (double)rank)));
    begin_node(&node, "Conv", is_image ? "x" : model->last, weights);
    put_integers(&node, "kernel_shape", window, rank);
    put_integers(&node, "pads", pads, 2 * rank);
    if (is_image)
        put_integers(&node, "strides", strides, 2);
    if (is_deep)
        put_integer(&node, "group", s->channels);
    end_node(model, &node, is_image || s->op == ORT_SCALED ? middle : output);
    if (s->op == ORT_SCALED)
        add_plain(model, number, output);
    if (!is_image)
        return;
    begin_node(&pool, "GlobalMaxPool", middle, NULL); /* in the layout of convolutions */
    end_node(model, &pool, output);
}

static void add_lstm(struct model *model, int number, const char *output)
{
    int64_t width = model->shape->channels;
    const struct dims dims = {3, {1, 4 * width, width}};
    const struct dims shape = {3, {model->shape->rows, 1, width}};
    char weights[16], state[16], middle[16], wanted[16];
    struct text node = {0}, reshape = {0}, tensor = {0};
    name_it(weights, "w", number);
    name_it(state, "r", number);
    name_it(middle, "m", number);
    name_it(wanted, "s", number);
    put_weights(&model->graph, weights, &dims, 1 / sqrt((double)width));
    put_weights(&model->graph, state, &dims, 1 / sqrt((double)width));
    begin_node(&node, "LSTM", model->last, weights);
    put_string(&node, 1, state);
    put_integer(&node, "hidden_size", width);
    end_node(model, &node, middle);
    put_number(&tensor, 1, 3);
    put_number(&tensor, 2, 7); /* int64 */
    put_string(&tensor, 8, wanted);
    put_bytes(&tensor, 9, (const char *)shape.at, 3 * sizeof *shape.at);
    put_message(&model->graph, 5, &tensor);
    begin_node(&reshape, "Reshape", middle, wanted);
    end_node(model, &reshape, output);
}

static struct dims input_of(const struct ort_shape *s)
{
    switch (s->op) {
    case ORT_LINE:
        return (struct dims){3, {1, s->channels, s->side}};
    case ORT_CONV:
    case ORT_SCALED:
    case ORT_DEPTHWISE:
        return (struct dims){4, {1, s->channels, s->side, s->side}};
    case ORT_IMAGE:
        return (struct dims){4, {1, s->channels, 2 * s->side, 2 * s->side}};
    case ORT_LSTM:
        return (struct dims){3, {s->rows, 1, s->channels}};
    case ORT_LRN:
        return (struct dims){4, {1, LRN_CHANNELS, s->elements / LRN_CHANNELS, 1}};
    case ORT_PRODUCT:
        return (struct dims){2, {s->rows, s->channels}};
    default:
        return (struct dims){2, {1, s->elements > 0 ? s->elements : 1}};
    }
}

/* A chain has one output; operators that all read the input have one each. */
static int outputs_of(const struct ort_shape *shape, int operators)
{
    return shape->op == ORT_IMAGE ? operators : 1;
}

static void make_model(const struct ort_shape *shape, int operators, struct text *out)
{
    struct model model = {.shape = shape, .input = input_of(shape), .last = "x"};
    struct text opset = {0};
    char output[16];
    put_string(&model.graph, 2, "g");
    put_value(&model.graph, 11, "x", &model.input);
    for (int i = 0; i < operators; i++) {
        int left = operators - 1 - i;
        name_it(output, left < outputs_of(shape, operators) ? "y" : "t", left);
        if (shape->side > 0)
            add_conv(&model, i, output);
        else if (shape->op == ORT_LSTM)
            add_lstm(&model, i, output);
        else
            add_plain(&model, i, output);
    }
    for (int i = 0; i < outputs_of(shape, operators); i++) {
        name_it(output, "y", i);
        put_value(&model.graph, 12, output, NULL);
    }
    put_number(out, 1, IR_VERSION);
    put_number(&opset, 2, OPSET);
    put_message(out, 8, &opset);
    put_message(out, 7, &model.graph);
}

/* ---- time ---- */

struct subject {
    struct ort_session *session;
    int outputs;
    double samples[SAMPLES_MAX];
    size_t count;
};

static enum err open_subject(struct ort_timer *timer, const struct ort_shape *shape, int operators,
                             struct subject *out, struct error *why)
{
    const struct ort_api *api = timer->api;
    struct ort_options *options = NULL;
    struct text model = {0};
    out->outputs = outputs_of(shape, operators);
    make_model(shape, operators, &model);
    enum err err = check(api->create_options(&options), why);
    if (!err)
        err = check(api->set_intra_threads(options, (int)timer->threads), why);
    if (!err)
        err = check(api->set_inter_threads(options, 1), why);
    if (!err)
        err = check(api->create_session(timer->library->env, text_get(&model), model.length,
                                        options, &out->session),
                    why);
    if (options)
        api->release_options(options);
    text_release(&model);
    return err;
}

/* A single thread is timed by its CPU time.  Of several threads some sleep if an operator is too small for all: their
 * CPU time does not show whether they were disturbed, only agreement between rounds does. */
static enum err take_sample(struct ort_timer *timer, const struct ort_value *input,
                            struct subject *subject, struct error *why)
{
    static const char *const NAMES[LONG] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8"};
    const char *in = "x";
    struct ort_value *outputs[LONG] = {0};
    bool is_alone = timer->threads == 1;
    clockid_t clock = is_alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    double began = clock_s(clock);
    enum err err = check(timer->api->run(subject->session, NULL, &in, &input, 1, NAMES,
                                         (size_t)subject->outputs, outputs),
                         why);
    double took = clock_s(clock) - began;
    for (int i = 0; i < subject->outputs; i++)
        if (outputs[i])
            timer->api->release_value(outputs[i]);
    subject->samples[subject->count++] = took;
    return err;
}

/* Times a model with this many operators.  No other session is open meanwhile: threads of a session that has just run
 * spin while waiting for work, and would use a CPU. */
static enum err time_model(struct ort_timer *timer, const struct ort_shape *shape, int operators,
                           const struct ort_value *input, double budget_s, double *took,
                           struct error *why)
{
    struct subject subject = {0};
    enum err err = open_subject(timer, shape, operators, &subject, why);
    if (!err)
        err = take_sample(timer, input, &subject, why); /* warm-up */
    subject.count = 0;
    double end = clock_s(CLOCK_MONOTONIC) + budget_s;
    while (!err && subject.count < SAMPLES_MAX &&
           (subject.count < SAMPLES_MIN || clock_s(CLOCK_MONOTONIC) < end))
        err = take_sample(timer, input, &subject, why);
    if (!err)
        *took = lower_quartile(subject.samples, subject.count);
    if (subject.session)
        timer->api->release_session(subject.session);
    return err;
}

enum err ort_timer_measure(struct ort_timer *timer, const struct ort_shape *shape, double budget_s,
                           struct op_time *out, struct error *why)
{
    struct ort_value *input = NULL;
    double shorter = 0, longer = 0;
    const struct dims dims = input_of(shape);
    size_t count = (size_t)elements_of(&dims);
    float *data = xreallocarray(NULL, count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 17) / 8 - 1;
    enum err err = check(timer->api->create_tensor(timer->library->host, data, count * sizeof *data,
                                                   dims.at, dims.count, FLOAT, &input),
                         why);
    bool is_run = shape->op == ORT_RUN;
    if (!err)
        err = time_model(timer, shape, 1, input, is_run ? budget_s : budget_s / 4, &shorter, why);
    if (!err && !is_run)
        err = time_model(timer, shape, LONG, input, budget_s, &longer, why);
    if (!err)
        *out = (struct op_time){is_run ? shorter : (longer - shorter) / (LONG - 1), 1};
    if (input)
        timer->api->release_value(input);
    free(data);
    return err;
}
