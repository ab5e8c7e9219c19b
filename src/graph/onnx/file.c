/* A graph is parsed in three passes over its bytes: declarations (so that a name can be used before the node that
 * produces it), nodes, then inputs and outputs.  Subgraphs and calls are queued when encountered. */
#include "graph/onnx/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/hash.h"
#include "core/xalloc.h"
#include "graph/model_files.h"
#include "graph/onnx/proto.h"

enum {
    /* Far above any model, so that a corrupt file cannot exhaust memory. */
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
       ATTRIBUTE_REFERENCE = 21, /* ref_attr_name: the function attribute that it refers to */
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

/* Checks that a message was parsed completely. */
static void check_end(struct onnx_file *file, const struct wire *wire, const char *what)
{
    if (!file->err && wire->is_damaged)
        file->err = err_set(file->why, ERR_BAD_VALUE,
                            "%.160s: byte %zu: invalid data in %s; the file is truncated, damaged "
                            "or not an ONNX file",
                            file->path, (size_t)(wire->at - file->bytes.start), what);
}

static void bad_name(struct onnx_file *file, const char *what, struct slice name, const char *wrong)
{
    if (!file->err)
        file->err = err_set(file->why, ERR_BAD_VALUE, "%.160s: %s '%s' %s", file->path, what,
                            model_label(name).text, wrong);
}

static void too_many(struct onnx_file *file, const char *what, int limit)
{
    if (!file->err)
        file->err = err_set(file->why, ERR_UNSUPPORTED, "%.160s: too many %s (limit %d)",
                            file->path, what, limit);
}

static void *reserve(struct onnx_file *file, void *list, size_t *capacity, size_t count,
                     size_t size, int limit, const char *what)
{
    if (count < (size_t)limit)
        return xgrow(list, capacity, count, size);
    too_many(file, what, limit);
    return list;
}

/* Ensures capacity for one more element of a list of the file; false after a failure. */
#define RESERVE(file, list, one, limit, what)                                                      \
    ((file)->list = reserve(file, (file)->list, &(file)->one##_capacity, (file)->one##_count,      \
                            sizeof *(file)->list, limit, what),                                    \
     !(file)->err)

/* ---- values by name ---- */

static size_t hash_of(int32_t graph, struct slice name)
{
    uint64_t hash = hash_bytes(HASH_START ^ (uint64_t)graph, name.start, name.length);
    return (size_t)(hash ^ (hash >> 29));
}

/* The slot of a name in the table: its own, or a free one. */
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

static void grow_table(struct onnx_file *file)
{
    size_t capacity = file->table_capacity ? 2 * file->table_capacity : FIRST_TABLE;
    int32_t *table = xreallocarray(NULL, capacity, sizeof *table);
    memset(table, 0xff, capacity * sizeof *table); /* ONNX_NONE everywhere */
    free(file->table);
    file->table = table;
    file->table_capacity = capacity;
    for (size_t i = 0; i < file->value_count; i++)
        table[slot_of(file, file->values[i].graph, file->values[i].name)] = (int32_t)i;
}

/* The value of that name in the graph itself, added if there is none; ONNX_NONE after a failure. */
static int32_t own_value(struct onnx_file *file, int32_t graph, struct slice name)
{
    bool is_full = !file->table || 2 * (file->value_count + 1) > file->table_capacity;
    if (file->err)
        return ONNX_NONE;
    if (is_full)
        grow_table(file);
    size_t slot = slot_of(file, graph, name);
    if (file->table[slot] == ONNX_NONE && RESERVE(file, values, value, MAX_VALUES, "names")) {
        file->table[slot] = (int32_t)file->value_count;
        file->values[file->value_count++] = (struct onnx_value){
            .name = name, .graph = graph, .tensor = ONNX_NONE, .producer = ONNX_NONE};
    }
    return file->table[slot];
}

static bool is_function_body(const struct onnx_file *file, int32_t graph)
{
    return file->graphs[graph].function != ONNX_NONE;
}

/* The value that a node of the graph refers to: that of the innermost graph that defines the name. */
static int32_t visible_value(struct onnx_file *file, int32_t graph, struct slice name)
{
    for (int32_t scope = graph; file->table && scope >= 0;
         scope = is_function_body(file, scope) ? ONNX_NONE : file->graphs[scope].parent) {
        int32_t value = file->table[slot_of(file, scope, name)];
        if (value != ONNX_NONE)
            return value;
    }
    return own_value(file, graph, name);
}

static void add_link(struct onnx_file *file, int32_t value)
{
    if (RESERVE(file, links, link, MAX_LINKS, "edges"))
        file->links[file->link_count++] = value;
}

/* ---- first pass: declarations ---- */

static void add_tensor(struct onnx_file *file, int32_t graph, const struct wire *field)
{
    struct proto_tensor tensor;
    const char *wrong = field->number == GRAPH_SPARSE_INITIALIZER
                            ? onnx_tensor_decode_sparse(field->bytes, &tensor)
                            : onnx_tensor_decode(field->bytes, &tensor);
    if (wrong)
        bad_name(file, "tensor", tensor.name, wrong);
    int32_t value = own_value(file, graph, tensor.name);
    if (value != ONNX_NONE && file->values[value].tensor != ONNX_NONE)
        bad_name(file, "tensor", tensor.name, "is defined more than once");
    if (!RESERVE(file, tensors, tensor, MAX_VALUES, "tensors"))
        return;
    file->values[value].tensor = (int32_t)file->tensor_count;
    file->tensors[file->tensor_count++] = tensor;
}

static void add_info(struct onnx_file *file, int32_t graph, struct slice info)
{
    int32_t value = own_value(file, graph, wire_bytes(info, INFO_NAME));
    if (value != ONNX_NONE)
        file->values[value].info = info;
}

/* The outputs of a node are names of its graph.  Its inputs may belong to an enclosing graph: they are resolved in the
 * second pass. */
static void declare_outputs(struct onnx_file *file, int32_t graph, struct slice node)
{
    struct wire wire = wire_of(node);
    while (!file->err && wire_next(&wire)) {
        if (wire.number != NODE_OUTPUT || wire.type != WIRE_BYTES || wire.bytes.length == 0)
            continue;
        int32_t value = own_value(file, graph, wire.bytes);
        if (value != ONNX_NONE && file->values[value].tensor != ONNX_NONE)
            bad_name(file, "name", wire.bytes, "is both a tensor and the output of a node");
    }
    check_end(file, &wire, "a node");
}

static void declare_parameter(struct onnx_file *file, int32_t graph, struct slice name,
                              uint32_t index)
{
    const struct onnx_node *call = &file->nodes[file->graphs[graph].caller];
    bool is_omitted =
        index >= call->input_count || file->links[call->first_input + index] == ONNX_NONE;
    int32_t value = own_value(file, graph, name);
    if (value != ONNX_NONE)
        file->values[value].is_omitted = is_omitted;
}

static void declare_function(struct onnx_file *file, int32_t graph)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    uint32_t parameters = 0;
    while (!file->err && wire_next(&wire)) {
        if (wire.type == WIRE_BYTES && wire.number == FUNCTION_IN)
            declare_parameter(file, graph, wire.bytes, parameters++);
        else if (wire.type == WIRE_BYTES && wire.number == FUNCTION_NODE)
            declare_outputs(file, graph, wire.bytes);
    }
    check_end(file, &wire, "a function");
}

static void declare_graph(struct onnx_file *file, int32_t graph)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    while (!file->err && wire_next(&wire)) {
        if (wire.type != WIRE_BYTES)
            continue;
        if (wire.number == GRAPH_INITIALIZER || wire.number == GRAPH_SPARSE_INITIALIZER)
            add_tensor(file, graph, &wire);
        else if (wire.number == GRAPH_IN || wire.number == GRAPH_VALUE_INFO)
            add_info(file, graph, wire.bytes);
        else if (wire.number == GRAPH_NODE)
            declare_outputs(file, graph, wire.bytes);
    }
    check_end(file, &wire, "the graph");
}

/* ---- graphs and function calls ---- */

/* Returns its index; ONNX_NONE after a failure. */
static int32_t add_graph(struct onnx_file *file, int32_t parent, struct slice body)
{
    int32_t depth = parent == ONNX_NONE ? 0 : file->graphs[parent].depth + 1;
    if (depth > MAX_DEPTH && !file->err)
        file->err = err_set(file->why, ERR_UNSUPPORTED,
                            "%.160s: graphs nested too deeply (limit %d)", file->path, MAX_DEPTH);
    if (!RESERVE(file, graphs, graph, MAX_GRAPHS, "graphs"))
        return ONNX_NONE;
    file->graphs[file->graph_count] = (struct onnx_graph){
        .body = body, .parent = parent, .depth = depth, .function = ONNX_NONE, .caller = ONNX_NONE};
    return (int32_t)file->graph_count++;
}

static void add_function(struct onnx_file *file, struct slice body)
{
    if (RESERVE(file, functions, function, MAX_FUNCTIONS, "functions"))
        file->functions[file->function_count++] =
            (struct onnx_function){.name = wire_bytes(body, FUNCTION_NAME),
                                   .domain = wire_bytes(body, FUNCTION_DOMAIN),
                                   .overload = wire_bytes(body, FUNCTION_OVERLOAD),
                                   .body = body};
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
static void add_call(struct onnx_file *file, int32_t graph, struct onnx_node *node,
                     struct slice overload)
{
    struct onnx_function wanted = {node->domain, node->op, overload, {0}};
    const struct onnx_function *found =
        file->function_count ? bsearch(&wanted, file->functions, file->function_count,
                                       sizeof *file->functions, compare_functions)
                             : NULL;
    node->call = ONNX_NONE;
    if (!found)
        return;
    int32_t function = (int32_t)(found - file->functions);
    for (int32_t outer = graph; outer >= 0; outer = file->graphs[outer].parent)
        if (file->graphs[outer].function == function)
            bad_name(file, "function", node->op, "calls itself");
    file->called_bytes += found->body.length;
    if (file->called_bytes > MAX_CALLED_BYTES)
        too_many(file, "bytes in called functions", MAX_CALLED_BYTES);
    node->call = add_graph(file, graph, found->body);
    if (node->call == ONNX_NONE)
        return;
    file->graphs[node->call].function = function;
    file->graphs[node->call].caller = (int32_t)file->node_count;
}

/* ---- second pass: nodes ---- */

/* The default of a function's attribute; start is NULL: none. */
static struct slice function_default(struct slice body, struct slice name)
{
    struct wire wire = wire_of(body);
    while (wire_next_bytes(&wire, FUNCTION_DEFAULT))
        if (compare_slices(onnx_attribute_name(wire.bytes), name) == 0)
            return wire.bytes;
    return (struct slice){0};
}

/* The message of a function's attribute, from the enclosing call or from the function's defaults; start is NULL:
 * neither.  Subgraphs are not passed on: no exporter writes that. */
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

static void add_attribute(struct onnx_file *file, int32_t graph, struct slice message)
{
    struct slice name = onnx_attribute_name(message), body;
    struct slice reference = wire_bytes(message, ATTRIBUTE_REFERENCE);
    if (reference.length)
        message = argument_of(file, graph, reference);
    if (!message.start)
        return;
    struct onnx_attribute attribute;
    if (!onnx_attribute_decode(message, &attribute, &body))
        bad_name(file, "attribute", name, "is damaged");
    attribute.name = name; /* an argument has the function's name for it */
    if (body.start)
        attribute.graph = add_graph(file, graph, body);
    if (RESERVE(file, attributes, attribute, MAX_ATTRIBUTES, "attributes"))
        file->attributes[file->attribute_count++] = attribute;
}

static void add_input(struct onnx_file *file, int32_t graph, struct slice name)
{
    int32_t value = name.length ? visible_value(file, graph, name) : ONNX_NONE;
    bool is_omitted = value != ONNX_NONE && file->values[value].is_omitted;
    add_link(file, is_omitted ? ONNX_NONE : value);
}

static void add_output(struct onnx_file *file, int32_t graph, struct slice name)
{
    int32_t value = name.length ? own_value(file, graph, name) : ONNX_NONE;
    if (value != ONNX_NONE && file->values[value].producer != ONNX_NONE)
        bad_name(file, "name", name, "is the output of two nodes");
    if (value != ONNX_NONE)
        file->values[value].producer = (int32_t)file->node_count;
    add_link(file, value);
}

/* The inputs or outputs of a node, wherever their fields are in the message, as one run of links. */
static void add_links(struct onnx_file *file, int32_t graph, struct slice node, uint32_t number,
                      uint32_t *first, uint32_t *count)
{
    struct wire wire = wire_of(node);
    *first = (uint32_t)file->link_count;
    while (!file->err && wire_next_bytes(&wire, number)) {
        if (number == NODE_INPUT)
            add_input(file, graph, wire.bytes);
        else
            add_output(file, graph, wire.bytes);
    }
    *count = (uint32_t)file->link_count - *first;
}

static void add_node(struct onnx_file *file, int32_t graph, struct slice message)
{
    struct onnx_node node = {.op = {"", 0},
                             .domain = {"", 0},
                             .name = {"", 0},
                             .first_attribute = (uint32_t)file->attribute_count};
    struct slice overload = {"", 0};
    struct wire wire = wire_of(message);
    while (!file->err && wire_next(&wire)) {
        if (wire.type != WIRE_BYTES)
            continue;
        if (wire.number == NODE_NAME)
            node.name = wire.bytes;
        else if (wire.number == NODE_OP)
            node.op = wire.bytes;
        else if (wire.number == NODE_DOMAIN)
            node.domain = wire.bytes;
        else if (wire.number == NODE_OVERLOAD)
            overload = wire.bytes;
        else if (wire.number == NODE_ATTRIBUTE)
            add_attribute(file, graph, wire.bytes);
    }
    node.attribute_count = (uint32_t)file->attribute_count - node.first_attribute;
    add_links(file, graph, message, NODE_INPUT, &node.first_input, &node.input_count);
    add_links(file, graph, message, NODE_OUTPUT, &node.first_output, &node.output_count);
    if (!file->err)
        add_call(file, graph, &node, overload);
    if (RESERVE(file, nodes, node, MAX_NODES, "nodes"))
        file->nodes[file->node_count++] = node;
}

static void read_nodes(struct onnx_file *file, int32_t graph)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    uint32_t number = is_function_body(file, graph) ? FUNCTION_NODE : GRAPH_NODE;
    file->graphs[graph].first_node = (uint32_t)file->node_count;
    while (!file->err && wire_next_bytes(&wire, number))
        add_node(file, graph, wire.bytes);
    file->graphs[graph].node_count = (uint32_t)file->node_count - file->graphs[graph].first_node;
}

/* ---- third pass: inputs and outputs of the graph ---- */

static void read_ends(struct onnx_file *file, int32_t graph, bool is_in, uint32_t *first,
                      uint32_t *count)
{
    bool is_function = is_function_body(file, graph);
    uint32_t number = is_in ? GRAPH_IN : GRAPH_OUT;
    if (is_function)
        number = is_in ? FUNCTION_IN : FUNCTION_OUT;
    struct wire wire = wire_of(file->graphs[graph].body);
    *first = (uint32_t)file->link_count;
    while (!file->err && wire_next_bytes(&wire, number)) {
        struct slice name = is_function ? wire.bytes : wire_bytes(wire.bytes, INFO_NAME);
        int32_t value = is_in ? own_value(file, graph, name) : visible_value(file, graph, name);
        if (value == ONNX_NONE)
            break;
        if (!file->values[value].info.start && !is_function)
            file->values[value].info = wire.bytes;
        add_link(file, value);
    }
    *count = (uint32_t)file->link_count - *first;
}

static void read_graph(struct onnx_file *file, int32_t graph)
{
    if (is_function_body(file, graph))
        declare_function(file, graph);
    else
        declare_graph(file, graph);
    read_nodes(file, graph);
    struct onnx_graph *read = &file->graphs[graph]; /* no graph is added from here on */
    read_ends(file, graph, true, &read->first_input, &read->input_count);
    read_ends(file, graph, false, &read->first_output, &read->output_count);
}

/* ---- the model ---- */

static void read_model(struct onnx_file *file)
{
    struct wire wire = wire_of(file->bytes);
    struct slice body = {0};
    while (!file->err && wire_next(&wire)) {
        if (wire.number == MODEL_GRAPH && wire.type == WIRE_BYTES)
            body = wire.bytes;
        else if (wire.number == MODEL_FUNCTION && wire.type == WIRE_BYTES)
            add_function(file, wire.bytes);
    }
    check_end(file, &wire, "the model");
    if (!file->err && !body.start)
        file->err = err_set(file->why, ERR_BAD_VALUE, "%.160s: no graph found; is it an ONNX file?",
                            file->path);
    if (file->err)
        return;
    if (file->function_count > 1)
        qsort(file->functions, file->function_count, sizeof *file->functions, compare_functions);
    add_graph(file, ONNX_NONE, body);
    /* Subgraphs and calls are added while this runs. */
    for (size_t i = 0; i < file->graph_count && !file->err; i++)
        read_graph(file, (int32_t)i);
}

enum err onnx_read(const char *path, struct slice bytes, struct onnx_file *out, struct error *why)
{
    struct onnx_file file = {.path = xstrdup(path), .bytes = bytes, .why = why};
    read_model(&file);
    enum err err = file.err;
    file.why = NULL;
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
    /* Weights are skipped: readahead is useless. */
    posix_madvise((void *)bytes.start, bytes.length, POSIX_MADV_RANDOM);
    err = onnx_read(path, bytes, out, why);
    if (err)
        munmap((void *)bytes.start, bytes.length);
    else
        out->mapping = (void *)bytes.start;
    return err;
}
