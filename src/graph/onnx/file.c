/* A graph is read in three passes over its bytes: declarations (so that a name can be used before the node
 * that produces it), nodes, then inputs and outputs.  Subgraphs and calls are queued as they are met. */
#include "graph/onnx/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/grow.h"
#include "core/hash.h"
#include "graph/model_files.h"
#include "graph/onnx/proto.h"

enum {
    /* Far beyond any model, so that a damaged file cannot exhaust memory. */
    MAX_NODES = 1 << 20,
    MAX_VALUES = 1 << 21,
    MAX_ATTRIBUTES = 1 << 22,
    MAX_LINKS = 1 << 23,
    MAX_GRAPHS = 1 << 16,
    MAX_FUNCTIONS = 1 << 16,
    MAX_CALLED_BYTES = 1 << 28,
    MAX_DEPTH = 16,
    FIRST_TABLE = 1 << 8,
};

enum { /* field numbers */
       MODEL_GRAPH = 7,
       MODEL_FUNCTION = 25,
       GRAPH_NODE = 1,
       GRAPH_INITIALIZER = 5,
       GRAPH_IN = 11,
       GRAPH_OUT = 12,
       GRAPH_VALUE_INFO = 13,
       GRAPH_SPARSE_INITIALIZER = 15,
       FUNCTION_NAME = 1,
       FUNCTION_IN = 4,
       FUNCTION_OUT = 5,
       FUNCTION_NODE = 7,
       FUNCTION_DOMAIN = 10,
       FUNCTION_DEFAULT = 11,
       FUNCTION_OVERLOAD = 13,
       NODE_INPUT = 1,
       NODE_OUTPUT = 2,
       NODE_NAME = 3,
       NODE_OP = 4,
       NODE_ATTRIBUTE = 5,
       NODE_DOMAIN = 7,
       NODE_OVERLOAD = 8,
       ATTRIBUTE_REFERENCE = 21, /* ref_attr_name: the function's attribute whose value it has */
       INFO_NAME = 1,
};

struct slice onnx_node_name(const struct onnx_file *file, const struct onnx_node *node)
{
    if (node->name.length)
        return node->name;
    for (uint32_t i = 0; i < node->output_count; i++) {
        int32_t value = file->links[node->first_output + i];
        if (value != ONNX_NONE)
            return file->values[value].name;
    }
    return node->op;
}

/* ---- failures ---- */

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

static enum err damaged(const struct onnx_file *file, const char *at, const char *what,
                        struct error *why)
{
    return err_set(why, ERR_BAD_VALUE,
                   "%.160s: byte %zu: invalid data in %s; the file is truncated, damaged or not an "
                   "ONNX file",
                   file->path, (size_t)(at - file->bytes.start), what);
}

static enum err bad_name(const struct onnx_file *file, const char *what, struct slice name,
                         const char *wrong, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%.160s: %s '%s' %s", file->path, what,
                   model_label(name).text, wrong);
}

static enum err too_many(const struct onnx_file *file, const char *what, int limit,
                         struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "%.160s: too many %s (limit %d)", file->path, what, limit);
}

/* Ensures capacity for one more element of a list of the file. */
#define RESERVE(file, list, counted, capacity, limit, what, why)                                   \
    do {                                                                                           \
        if ((file)->counted >= (size_t)(limit))                                                    \
            return too_many(file, what, limit, why);                                               \
        void *grown_ =                                                                             \
            grow((file)->list, &(file)->capacity, (file)->counted, sizeof *(file)->list);          \
        if (!grown_)                                                                               \
            return no_memory(why);                                                                 \
        (file)->list = grown_;                                                                     \
    } while (0)

/* ---- values by name ---- */

static size_t hash_of(int32_t graph, struct slice name)
{
    uint64_t hash = hash_bytes(HASH_START ^ (uint64_t)graph, name.start, name.length);
    return (size_t)(hash ^ (hash >> 29));
}

/* The slot of a name in the table: taken by it, or free. */
static size_t slot_of(const struct onnx_file *file, int32_t graph, struct slice name)
{
    size_t mask = file->table_capacity - 1, slot = hash_of(graph, name) & mask;
    for (;; slot = (slot + 1) & mask) {
        if (file->table[slot] == ONNX_NONE)
            return slot;
        const struct onnx_value *value = &file->values[file->table[slot]];
        if (value->graph == graph && slice_equal(value->name, name))
            return slot;
    }
}

static bool grow_table(struct onnx_file *file)
{
    size_t capacity = file->table_capacity ? 2 * file->table_capacity : FIRST_TABLE;
    int32_t *table = malloc(capacity * sizeof *table);
    if (!table)
        return false;
    memset(table, 0xff, capacity * sizeof *table); /* ONNX_NONE everywhere */
    free(file->table);
    file->table = table;
    file->table_capacity = capacity;
    for (size_t i = 0; i < file->value_count; i++)
        table[slot_of(file, file->values[i].graph, file->values[i].name)] = (int32_t)i;
    return true;
}

/* The value of that name in that graph itself, added if there is none. */
static enum err own_value(struct onnx_file *file, int32_t graph, struct slice name, int32_t *out,
                          struct error *why)
{
    bool is_full = !file->table || 2 * (file->value_count + 1) > file->table_capacity;
    if (is_full && !grow_table(file))
        return no_memory(why);
    size_t slot = slot_of(file, graph, name);
    if (file->table[slot] == ONNX_NONE) {
        RESERVE(file, values, value_count, value_capacity, MAX_VALUES, "names", why);
        file->table[slot] = (int32_t)file->value_count;
        file->values[file->value_count++] = (struct onnx_value){
            .name = name, .graph = graph, .tensor = ONNX_NONE, .producer = ONNX_NONE};
    }
    *out = file->table[slot];
    return ERR_OK;
}

static bool is_function_body(const struct onnx_file *file, int32_t graph)
{
    return file->graphs[graph].function != ONNX_NONE;
}

/* The value that a node of that graph refers to: of the innermost graph that defines the name. */
static enum err visible_value(struct onnx_file *file, int32_t graph, struct slice name,
                              int32_t *out, struct error *why)
{
    for (int32_t scope = graph; file->table && scope >= 0;
         scope = is_function_body(file, scope) ? ONNX_NONE : file->graphs[scope].parent) {
        *out = file->table[slot_of(file, scope, name)];
        if (*out != ONNX_NONE)
            return ERR_OK;
    }
    return own_value(file, graph, name, out, why);
}

static enum err add_link(struct onnx_file *file, int32_t value, struct error *why)
{
    RESERVE(file, links, link_count, link_capacity, MAX_LINKS, "edges", why);
    file->links[file->link_count++] = value;
    return ERR_OK;
}

/* ---- first pass: declarations ---- */

static enum err add_tensor(struct onnx_file *file, int32_t graph, const struct wire_field *field,
                           struct error *why)
{
    struct onnx_tensor tensor;
    const char *wrong = field->number == GRAPH_SPARSE_INITIALIZER
                            ? onnx_tensor_decode_sparse(field->bytes, &tensor)
                            : onnx_tensor_decode(field->bytes, &tensor);
    if (wrong)
        return bad_name(file, "tensor", tensor.name, wrong, why);
    int32_t value;
    enum err err = own_value(file, graph, tensor.name, &value, why);
    if (err)
        return err;
    if (file->values[value].tensor != ONNX_NONE)
        return bad_name(file, "tensor", tensor.name, "is defined more than once", why);
    RESERVE(file, tensors, tensor_count, tensor_capacity, MAX_VALUES, "tensors", why);
    file->values[value].tensor = (int32_t)file->tensor_count;
    file->tensors[file->tensor_count++] = tensor;
    return ERR_OK;
}

static enum err add_info(struct onnx_file *file, int32_t graph, struct slice info,
                         struct error *why)
{
    int32_t value;
    enum err err = own_value(file, graph, wire_bytes(info, INFO_NAME), &value, why);
    if (!err)
        file->values[value].info = info;
    return err;
}

/* The outputs of a node are names of its graph.  Its inputs may belong to a graph around it: they are
 * resolved in the second pass. */
static enum err declare_outputs(struct onnx_file *file, int32_t graph, struct slice node,
                                struct error *why)
{
    struct wire wire = wire_of(node);
    struct wire_field field;
    int32_t value;
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.number != NODE_OUTPUT || field.type != WIRE_BYTES || field.bytes.length == 0)
            continue;
        err = own_value(file, graph, field.bytes, &value, why);
        if (!err && file->values[value].tensor != ONNX_NONE)
            err = bad_name(file, "name", field.bytes, "is both a tensor and the output of a node",
                           why);
    }
    return !err && wire.is_damaged ? damaged(file, wire.at, "a node", why) : err;
}

static enum err declare_parameter(struct onnx_file *file, int32_t graph, struct slice name,
                                  uint32_t index, struct error *why)
{
    const struct onnx_node *call = &file->nodes[file->graphs[graph].caller];
    bool is_omitted =
        index >= call->input_count || file->links[call->first_input + index] == ONNX_NONE;
    int32_t value;
    enum err err = own_value(file, graph, name, &value, why);
    if (!err)
        file->values[value].is_omitted = is_omitted;
    return err;
}

static enum err declare_function(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    uint32_t parameters = 0;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == FUNCTION_IN)
            err = declare_parameter(file, graph, field.bytes, parameters++, why);
        else if (field.number == FUNCTION_NODE)
            err = declare_outputs(file, graph, field.bytes, why);
    }
    return !err && wire.is_damaged ? damaged(file, wire.at, "a function", why) : err;
}

static enum err declare_graph(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == GRAPH_INITIALIZER || field.number == GRAPH_SPARSE_INITIALIZER)
            err = add_tensor(file, graph, &field, why);
        else if (field.number == GRAPH_IN || field.number == GRAPH_VALUE_INFO)
            err = add_info(file, graph, field.bytes, why);
        else if (field.number == GRAPH_NODE)
            err = declare_outputs(file, graph, field.bytes, why);
    }
    return !err && wire.is_damaged ? damaged(file, wire.at, "the graph", why) : err;
}

/* ---- graphs, and calls of functions ---- */

static enum err add_graph(struct onnx_file *file, int32_t parent, struct slice body,
                          struct error *why)
{
    int32_t depth = parent == ONNX_NONE ? 0 : file->graphs[parent].depth + 1;
    if (depth > MAX_DEPTH)
        return err_set(why, ERR_UNSUPPORTED, "%.160s: graphs nested too deeply (limit %d)",
                       file->path, MAX_DEPTH);
    RESERVE(file, graphs, graph_count, graph_capacity, MAX_GRAPHS, "graphs", why);
    file->graphs[file->graph_count++] = (struct onnx_graph){
        .body = body, .parent = parent, .depth = depth, .function = ONNX_NONE, .caller = ONNX_NONE};
    return ERR_OK;
}

static enum err add_function(struct onnx_file *file, struct slice body, struct error *why)
{
    RESERVE(file, functions, function_count, function_capacity, MAX_FUNCTIONS, "functions", why);
    file->functions[file->function_count++] =
        (struct onnx_function){.name = wire_bytes(body, FUNCTION_NAME),
                               .domain = wire_bytes(body, FUNCTION_DOMAIN),
                               .overload = wire_bytes(body, FUNCTION_OVERLOAD),
                               .body = body};
    return ERR_OK;
}

static int compare_slices(struct slice a, struct slice b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length ? memcmp(a.start, b.start, a.length) : 0;
}

static int compare_functions(const void *left, const void *right)
{
    const struct onnx_function *a = left, *b = right;
    int order = compare_slices(a->name, b->name);
    if (order == 0)
        order = compare_slices(a->domain, b->domain);
    return order ? order : compare_slices(a->overload, b->overload);
}

/* Adds a graph for the node if it calls a function of the file: each call has its own shapes. */
static enum err add_call(struct onnx_file *file, int32_t graph, struct onnx_node *node,
                         struct slice overload, struct error *why)
{
    struct onnx_function wanted = {node->domain, node->op, overload, {0}};
    const struct onnx_function *found =
        file->function_count ? bsearch(&wanted, file->functions, file->function_count,
                                       sizeof *file->functions, compare_functions)
                             : NULL;
    node->call = ONNX_NONE;
    if (!found)
        return ERR_OK;
    int32_t function = (int32_t)(found - file->functions);
    for (int32_t outer = graph; outer >= 0; outer = file->graphs[outer].parent)
        if (file->graphs[outer].function == function)
            return bad_name(file, "function", node->op, "calls itself", why);
    file->called_bytes += found->body.length;
    if (file->called_bytes > MAX_CALLED_BYTES)
        return too_many(file, "bytes in called functions", MAX_CALLED_BYTES, why);
    node->call = (int32_t)file->graph_count;
    enum err err = add_graph(file, graph, found->body, why);
    if (err)
        return err;
    file->graphs[node->call].function = function;
    file->graphs[node->call].caller = (int32_t)file->node_count;
    return ERR_OK;
}

/* ---- second pass: nodes ---- */

/* The default that a function has for an attribute; start is NULL: none. */
static struct slice function_default(struct slice body, struct slice name)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    while (wire_next(&wire, &field))
        if (field.number == FUNCTION_DEFAULT && field.type == WIRE_BYTES &&
            compare_slices(onnx_attribute_name(field.bytes), name) == 0)
            return field.bytes;
    return (struct slice){0};
}

/* The message of a function's attribute, from the call around a node or from the function's defaults; start
 * is NULL: neither.  Subgraphs are not passed on: no exporter writes that. */
static struct slice argument_of(const struct onnx_file *file, int32_t graph, struct slice name)
{
    while (graph >= 0 && !is_function_body(file, graph))
        graph = file->graphs[graph].parent;
    if (graph < 0)
        return (struct slice){0};
    const struct onnx_node *call = &file->nodes[file->graphs[graph].caller];
    for (uint32_t i = 0; i < call->attribute_count; i++) {
        const struct onnx_attribute *given = &file->attributes[call->first_attribute + i];
        if (compare_slices(given->name, name) == 0)
            return given->graph == ONNX_NONE ? given->message : (struct slice){0};
    }
    return function_default(file->graphs[graph].body, name);
}

static enum err add_attribute(struct onnx_file *file, int32_t graph, struct slice message,
                              struct error *why)
{
    struct slice name = onnx_attribute_name(message), body;
    struct slice reference = wire_bytes(message, ATTRIBUTE_REFERENCE);
    if (reference.length)
        message = argument_of(file, graph, reference);
    if (!message.start)
        return ERR_OK;
    struct onnx_attribute attribute;
    if (!onnx_attribute_decode(message, &attribute, &body))
        return bad_name(file, "attribute", name, "is damaged", why);
    attribute.name = name; /* an argument has the function's name for it */
    if (body.start) {
        attribute.graph = (int32_t)file->graph_count;
        enum err err = add_graph(file, graph, body, why);
        if (err)
            return err;
    }
    RESERVE(file, attributes, attribute_count, attribute_capacity, MAX_ATTRIBUTES, "attributes",
            why);
    file->attributes[file->attribute_count++] = attribute;
    return ERR_OK;
}

static enum err add_input(struct onnx_file *file, int32_t graph, struct slice name,
                          struct error *why)
{
    int32_t value = ONNX_NONE;
    enum err err = name.length ? visible_value(file, graph, name, &value, why) : ERR_OK;
    if (!err && value != ONNX_NONE && file->values[value].is_omitted)
        value = ONNX_NONE;
    return err ? err : add_link(file, value, why);
}

static enum err add_output(struct onnx_file *file, int32_t graph, struct slice name,
                           struct error *why)
{
    int32_t value = ONNX_NONE;
    enum err err = name.length ? own_value(file, graph, name, &value, why) : ERR_OK;
    if (err)
        return err;
    if (value != ONNX_NONE && file->values[value].producer != ONNX_NONE)
        return bad_name(file, "name", name, "is the output of two nodes", why);
    if (value != ONNX_NONE)
        file->values[value].producer = (int32_t)file->node_count;
    return add_link(file, value, why);
}

/* The inputs or outputs of a node, wherever their fields are in the message, as one run of links. */
static enum err add_links(struct onnx_file *file, int32_t graph, struct slice node, uint32_t number,
                          uint32_t *first, uint32_t *count, struct error *why)
{
    struct wire wire = wire_of(node);
    struct wire_field field;
    enum err err = ERR_OK;
    *first = (uint32_t)file->link_count;
    while (!err && wire_next(&wire, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            err = number == NODE_INPUT ? add_input(file, graph, field.bytes, why)
                                       : add_output(file, graph, field.bytes, why);
    *count = (uint32_t)file->link_count - *first;
    return err;
}

static enum err add_node(struct onnx_file *file, int32_t graph, struct slice message,
                         struct error *why)
{
    struct onnx_node node = {.op = {"", 0},
                             .domain = {"", 0},
                             .name = {"", 0},
                             .first_attribute = (uint32_t)file->attribute_count};
    struct slice overload = {"", 0};
    struct wire wire = wire_of(message);
    struct wire_field field;
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == NODE_NAME)
            node.name = field.bytes;
        else if (field.number == NODE_OP)
            node.op = field.bytes;
        else if (field.number == NODE_DOMAIN)
            node.domain = field.bytes;
        else if (field.number == NODE_OVERLOAD)
            overload = field.bytes;
        else if (field.number == NODE_ATTRIBUTE)
            err = add_attribute(file, graph, field.bytes, why);
    }
    node.attribute_count = (uint32_t)file->attribute_count - node.first_attribute;
    if (!err)
        err =
            add_links(file, graph, message, NODE_INPUT, &node.first_input, &node.input_count, why);
    if (!err)
        err = add_links(file, graph, message, NODE_OUTPUT, &node.first_output, &node.output_count,
                        why);
    if (!err)
        err = add_call(file, graph, &node, overload, why);
    if (err)
        return err;
    RESERVE(file, nodes, node_count, node_capacity, MAX_NODES, "nodes", why);
    file->nodes[file->node_count++] = node;
    return ERR_OK;
}

static enum err read_nodes(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    uint32_t number = is_function_body(file, graph) ? FUNCTION_NODE : GRAPH_NODE;
    file->graphs[graph].first_node = (uint32_t)file->node_count;
    while (!err && wire_next(&wire, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            err = add_node(file, graph, field.bytes, why);
    file->graphs[graph].node_count = (uint32_t)file->node_count - file->graphs[graph].first_node;
    return err;
}

/* ---- third pass: inputs and outputs of the graph ---- */

static enum err read_ends(struct onnx_file *file, int32_t graph, bool is_in, uint32_t *first,
                          uint32_t *count, struct error *why)
{
    bool is_function = is_function_body(file, graph);
    uint32_t number = is_function ? is_in ? FUNCTION_IN : FUNCTION_OUT
                      : is_in     ? GRAPH_IN
                                  : GRAPH_OUT;
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    *first = (uint32_t)file->link_count;
    while (!err && wire_next(&wire, &field)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        int32_t value;
        struct slice name = is_function ? field.bytes : wire_bytes(field.bytes, INFO_NAME);
        err = is_in ? own_value(file, graph, name, &value, why)
                    : visible_value(file, graph, name, &value, why);
        if (err)
            break;
        if (!file->values[value].info.start && !is_function)
            file->values[value].info = field.bytes;
        err = add_link(file, value, why);
    }
    *count = (uint32_t)file->link_count - *first;
    return err;
}

static enum err read_graph(struct onnx_file *file, int32_t graph, struct error *why)
{
    uint32_t first, count;
    enum err err = is_function_body(file, graph) ? declare_function(file, graph, why)
                                                 : declare_graph(file, graph, why);
    if (!err)
        err = read_nodes(file, graph, why);
    if (!err)
        err = read_ends(file, graph, true, &first, &count, why);
    if (err)
        return err;
    file->graphs[graph].first_input = first;
    file->graphs[graph].input_count = count;
    err = read_ends(file, graph, false, &first, &count, why);
    file->graphs[graph].first_output = first;
    file->graphs[graph].output_count = count;
    return err;
}

/* ---- the model ---- */

static enum err read_model(struct onnx_file *file, struct error *why)
{
    struct wire wire = wire_of(file->bytes);
    struct wire_field field;
    struct slice body = {0};
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.number == MODEL_GRAPH && field.type == WIRE_BYTES)
            body = field.bytes;
        else if (field.number == MODEL_FUNCTION && field.type == WIRE_BYTES)
            err = add_function(file, field.bytes, why);
    }
    if (err)
        return err;
    if (wire.is_damaged)
        return damaged(file, wire.at, "the model", why);
    if (!body.start)
        return err_set(why, ERR_BAD_VALUE, "%.160s: no graph found; is it an ONNX file?",
                       file->path);
    if (file->function_count > 1)
        qsort(file->functions, file->function_count, sizeof *file->functions, compare_functions);
    err = add_graph(file, ONNX_NONE, body, why);
    /* Subgraphs and calls are added while this runs. */
    for (size_t i = 0; i < file->graph_count && !err; i++)
        err = read_graph(file, (int32_t)i, why);
    return err;
}

enum err onnx_read(const char *path, struct slice bytes, struct onnx_file *out, struct error *why)
{
    struct onnx_file file = {.path = strdup(path), .bytes = bytes};
    enum err err = file.path ? read_model(&file, why) : no_memory(why);
    if (err)
        onnx_close(&file);
    else
        *out = file;
    return err;
}

void onnx_close(struct onnx_file *file)
{
    if (file->mapping)
        munmap(file->mapping, file->bytes.length);
    free(file->path);
    free(file->graphs);
    free(file->functions);
    free(file->nodes);
    free(file->attributes);
    free(file->values);
    free(file->tensors);
    free(file->links);
    free(file->table);
    *file = (struct onnx_file){0};
}

enum err onnx_open(const char *path, struct onnx_file *out, struct error *why)
{
    struct slice bytes;
    enum err err = model_file_map(path, &bytes, why);
    if (err)
        return err;
    /* Weights are skipped: reading ahead gains nothing. */
    posix_madvise((void *)bytes.start, bytes.length, POSIX_MADV_RANDOM);
    err = onnx_read(path, bytes, out, why);
    if (err)
        munmap((void *)bytes.start, bytes.length);
    else
        out->mapping = (void *)bytes.start;
    return err;
}
