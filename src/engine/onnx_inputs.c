/* Sizes of free dimensions, then random elements. */
#include "engine/onnx_inputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/random.h"
#include "core/xalloc.h"
#include "engine/onnx_dims.h"

enum { TOKENS = 128, SIDE = 224 }; /* sizes by meaning */
enum { NAMES_MAX = 64 };           /* names of dimensions; a model has a handful */
static const double BYTES_MAX = 0x1p32;

/* ---- sizes ---- */

struct sizing {
    const struct onnx_facts *facts;
    const struct onnx_input_options *options;
    struct error *why;
    struct {
        const char *name;
        int64_t size;
    } names[NAMES_MAX]; /* from whole shapes */
    size_t name_count;
    bool is_batch_used;
};

static const char *given(const struct sizing *sizing, const char *name)
{
    return sizing->options->dims ? params_get(sizing->options->dims, name) : NULL;
}

static enum err wrong_size(const struct sizing *sizing, const char *name, const char *expected)
{
    return err_set(sizing->why, ERR_USAGE, "%s%.80s=%.80s: %s", sizing->options->dim_option, name,
                   given(sizing, name), expected);
}

/* A size that was given, or -1. */
static enum err given_size(const struct sizing *sizing, const char *name, int64_t *out)
{
    const char *text = given(sizing, name);
    uint64_t size;
    *out = -1;
    if (!text)
        return ERR_OK;
    if (parse_u64(text, &size) || size > INT32_MAX)
        return wrong_size(sizing, name, "expected a size");
    *out = (int64_t)size;
    return ERR_OK;
}

static int64_t size_by_meaning(struct sizing *sizing, enum onnx_meaning meaning)
{
    switch (meaning) {
    case ONNX_MEANS_BATCH:
        sizing->is_batch_used = true;
        return sizing->options->batch ? (int64_t)sizing->options->batch : 1;
    case ONNX_MEANS_TOKENS:
        return TOKENS;
    case ONNX_MEANS_HEIGHT:
    case ONNX_MEANS_WIDTH:
    case ONNX_MEANS_SIDE:
        return SIDE;
    default:
        return -1;
    }
}

/* A cache of earlier tokens is empty, unless its length is given. */
static bool is_past(const char *name)
{
    return str_contains_nocase(name, "past");
}

/* The size of one name, or number: as given, as in a whole shape, by its meaning; -1: unknown. */
static enum err size_of_term(struct sizing *sizing, const char *term, enum onnx_meaning meaning,
                             int64_t *out)
{
    uint64_t number;
    enum err err = given_size(sizing, term, out);
    if (err || *out >= 0)
        return err;
    for (size_t i = 0; i < sizing->name_count; i++)
        if (str_equal(sizing->names[i].name, term)) {
            *out = sizing->names[i].size;
            return ERR_OK;
        }
    if (!parse_u64(term, &number) && number <= INT32_MAX)
        *out = (int64_t)number;
    else
        *out = is_past(term) ? 0 : size_by_meaning(sizing, meaning);
    return ERR_OK;
}

/* "past_sequence_length + 1": the dimension of a mask in exported decoders. */
static enum err size_of_sum(struct sizing *sizing, const char *name, enum onnx_meaning meaning,
                            int64_t *out)
{
    enum err err = given_size(sizing, name, out);
    if (err || *out >= 0 || !strchr(name, '+'))
        return err ? err : size_of_term(sizing, name, meaning, out);
    char *copy = xstrdup(name), *rest = copy;
    int64_t sum = 0;
    while (rest && sum >= 0 && !err) {
        char *term = rest;
        int64_t size;
        rest = strchr(term, '+');
        if (rest)
            *rest++ = '\0';
        term = str_trim(term);
        err = size_of_term(sizing, term, onnx_meaning_of(term), &size);
        sum = size < 0 ? -1 : sum + size;
    }
    free(copy);
    *out = sum;
    return err;
}

static enum err size_axis(struct sizing *sizing, const struct onnx_port *port, size_t axis,
                          int64_t *out)
{
    char position[ONNX_NAME_MAX + 8];
    const char *name = port->symbols[axis];
    enum onnx_meaning meaning = onnx_meaning_of(name);
    if (meaning == ONNX_MEANS_NOTHING)
        meaning = onnx_meaning_at(port->shape, port->rank, axis, 0);
    chars_format(position, "%s.%zu", port->name, axis);
    enum err err = given_size(sizing, position, out);
    if (!err && *out < 0)
        err = *name ? size_of_sum(sizing, name, meaning, out) : ERR_OK;
    if (!err && *out < 0 && !*name)
        *out = size_by_meaning(sizing, meaning);
    if (!err && *out < 0)
        err = err_set(sizing->why, ERR_USAGE,
                      "%s: the size of dimension %s of input %s is free: give it with %s%s=SIZE",
                      sizing->facts->path, *name ? name : position, port->name,
                      sizing->options->dim_option, *name ? name : position);
    return err;
}

/* ---- whole shapes: x=1x3x224x224 ---- */

static const char *whole_shape(const struct sizing *sizing, const struct onnx_port *port)
{
    const char *text = given(sizing, port->name);
    return text && (port->rank == 1 || strchr(text, 'x')) ? text : NULL;
}

/* A given shape must fit the declared one, and sets the dimensions of the same name in other inputs. */
static enum err read_whole(struct sizing *sizing, const struct onnx_port *port, int64_t *shape)
{
    const char *text = whole_shape(sizing, port);
    char number[16];
    size_t rank = 0;
    for (const char *word = text; word; rank++) {
        size_t length = strcspn(word, "x");
        uint64_t size;
        if (rank == port->rank || length >= sizeof number)
            return wrong_size(sizing, port->name, "another number of dimensions than the input");
        chars_format(number, "%.*s", (int)length, word);
        if (parse_u64(number, &size) || size > INT32_MAX)
            return wrong_size(sizing, port->name, "expected a shape like 1x3x224x224");
        if (port->shape[rank] >= 0 && port->shape[rank] != (int64_t)size)
            return wrong_size(sizing, port->name, "differs from a size that the model fixes");
        shape[rank] = (int64_t)size;
        if (port->shape[rank] < 0 && *port->symbols[rank] && sizing->name_count < NAMES_MAX) {
            sizing->names[sizing->name_count].name = port->symbols[rank];
            sizing->names[sizing->name_count++].size = (int64_t)size;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    if (rank != port->rank)
        return wrong_size(sizing, port->name, "another number of dimensions than the input");
    return ERR_OK;
}

static enum err size_input(struct sizing *sizing, const struct onnx_port *port, int64_t *shape)
{
    enum err err = ERR_OK;
    if (whole_shape(sizing, port))
        return read_whole(sizing, port, shape);
    for (size_t i = 0; !err && i < port->rank; i++) {
        shape[i] = port->shape[i];
        if (shape[i] < 0)
            err = size_axis(sizing, port, i, &shape[i]);
    }
    return err;
}

static bool is_axis_name(const struct onnx_port *port, const char *key)
{
    char position[ONNX_NAME_MAX + 8];
    for (size_t i = 0; i < port->rank; i++) {
        if (port->shape[i] >= 0)
            continue;
        chars_format(position, "%s.%zu", port->name, i);
        if (str_equal(key, position) || strstr(port->symbols[i], key))
            return true;
    }
    return str_equal(key, port->name);
}

/* Every given size must be of a dimension. */
static enum err check_names(const struct sizing *sizing)
{
    const struct params *dims = sizing->options->dims;
    const struct onnx_facts *facts = sizing->facts;
    for (size_t i = 0; dims && i < dims->count; i++) {
        bool is_known_name = false;
        for (size_t p = 0; p < facts->input_count; p++)
            is_known_name |= is_axis_name(&facts->inputs[p], dims->items[i].key);
        if (!is_known_name)
            return wrong_size(sizing, dims->items[i].key,
                              "the model's inputs have no free dimension of this name");
    }
    return ERR_OK;
}

/* ---- elements ---- */

struct range {
    double low, high;
};

static bool is_integer(enum onnx_type type)
{
    switch (type) {
    case ONNX_FLOAT:
    case ONNX_FLOAT16:
    case ONNX_BFLOAT16:
    case ONNX_DOUBLE:
        return false;
    default:
        return true;
    }
}

static enum err read_range(const struct onnx_input_options *options, const struct onnx_port *port,
                           struct range *out, struct error *why)
{
    const char *text = options->values ? params_get(options->values, port->name) : NULL;
    *out = is_integer(port->type) ? (struct range){0, 1} : (struct range){-1, 1};
    if (!text)
        return ERR_OK;
    char *copy = xstrdup(text), *colon = strchr(copy, ':');
    if (colon)
        *colon++ = '\0';
    bool is_wrong = parse_double(copy, &out->low) || parse_double(colon ? colon : copy, &out->high);
    free(copy);
    if (is_wrong || out->low > out->high)
        return err_set(why, ERR_USAGE, "%s%s=%.80s: expected a number or LOW:HIGH",
                       options->value_option, port->name, text);
    return ERR_OK;
}

static enum err check_values(const struct onnx_session *session,
                             const struct onnx_input_options *options, struct error *why)
{
    for (size_t i = 0; options->values && i < options->values->count; i++)
        if (onnx_input(session, options->values->items[i].key) < 0)
            return err_set(why, ERR_USAGE, "%s%.80s: the model has no input of this name",
                           options->value_option, options->values->items[i].key);
    return ERR_OK;
}

static void set_element(void *data, enum onnx_type type, size_t i, double value)
{
    uint32_t bits;
    float narrow = (float)value;
    switch (type) {
    case ONNX_FLOAT:
        ((float *)data)[i] = narrow;
        break;
    case ONNX_DOUBLE:
        ((double *)data)[i] = value;
        break;
    case ONNX_FLOAT16:
        ((uint16_t *)data)[i] = half_from_float(narrow);
        break;
    case ONNX_BFLOAT16:
        memcpy(&bits, &narrow, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    default: /* little-endian integers, negative ones in two's complement */
        memcpy((char *)data + i * onnx_type_size(type), &(int64_t){(int64_t)value},
               onnx_type_size(type));
    }
}

static void fill(struct onnx_tensor *tensor, struct range range, struct random *random)
{
    bool is_whole = is_integer(tensor->type);
    for (size_t i = 0; i < tensor->count; i++) {
        double value = range.low + (range.high - range.low) * random_unit(random);
        if (is_whole)
            value = (double)random_between(random, (int64_t)range.low, (int64_t)range.high);
        set_element(tensor->data, tensor->type, i, value);
    }
}

/* ---- inputs ---- */

static enum err make_input(struct sizing *sizing, size_t i, struct onnx_inputs *out)
{
    const struct onnx_port *port = &sizing->facts->inputs[i];
    struct random random = random_from(sizing->options->seed, i);
    int64_t shape[ONNX_RANK_MAX] = {0};
    struct range range;
    double bytes = (double)onnx_type_size(port->type);
    if (bytes == 0)
        return err_set(sizing->why, ERR_UNSUPPORTED,
                       "%s: input %s is of type %s: random inputs are numbers", sizing->facts->path,
                       port->name, onnx_type_name(port->type));
    enum err err = size_input(sizing, port, shape);
    if (!err)
        err = read_range(sizing->options, port, &range, sizing->why);
    for (size_t k = 0; k < port->rank; k++)
        bytes *= (double)shape[k];
    if (!err && bytes > BYTES_MAX)
        err = err_set(sizing->why, ERR_USAGE, "input %s of %.0f GiB is too large (limit 4 GiB)",
                      port->name, bytes / 0x1p30);
    if (err)
        return err;
    out->memory[i] = xmalloc((size_t)bytes + 1);
    out->tensors[i] = onnx_tensor_of(port->type, out->memory[i], port->rank, shape);
    fill(&out->tensors[i], range, &random);
    return ERR_OK;
}

enum err onnx_inputs_make(const struct onnx_session *session,
                          const struct onnx_input_options *options, struct onnx_inputs *out,
                          struct error *why)
{
    struct sizing sizing = {.facts = onnx_session_facts(session), .options = options, .why = why};
    int64_t unused[ONNX_RANK_MAX];
    *out = (struct onnx_inputs){.count = sizing.facts->input_count};
    enum err err = check_names(&sizing);
    if (!err)
        err = check_values(session, options, why);
    for (size_t i = 0; !err && i < out->count; i++) /* for the names in whole shapes */
        if (whole_shape(&sizing, &sizing.facts->inputs[i]))
            err = read_whole(&sizing, &sizing.facts->inputs[i], unused);
    for (size_t i = 0; !err && i < out->count; i++)
        err = make_input(&sizing, i, out);
    if (!err && options->batch > 1 && !sizing.is_batch_used)
        err = err_set(why, ERR_USAGE, "batch=%" PRIu64 ": %s fixes the sizes of its inputs",
                      options->batch, sizing.facts->path);
    if (err)
        onnx_inputs_release(out);
    return err;
}

void onnx_inputs_release(struct onnx_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->memory[i]);
    inputs->count = 0;
}

/* ---- description of tensors ---- */

void onnx_tensor_describe(const struct onnx_port *port, const struct onnx_tensor *tensor,
                          struct text *to)
{
    text_addf(to, "%s %s[", port->name, onnx_type_name(tensor->type));
    for (size_t i = 0; i < tensor->rank; i++)
        text_addf(to, "%s%" PRId64, i ? "," : "", tensor->shape[i]);
    text_add(to, "]");
}

size_t onnx_tensor_nan(const struct onnx_tensor *tensor)
{
    if (is_integer(tensor->type) || !tensor->data)
        return SIZE_MAX;
    for (size_t i = 0; i < tensor->count; i++)
        if (isnan(onnx_tensor_at(tensor, i)))
            return i;
    return SIZE_MAX;
}
