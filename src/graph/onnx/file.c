#define _GNU_SOURCE
#include "graph/onnx/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/hash.h"
#include "core/text.h"
#include "graph/onnx/tensor.h"

enum {
    /* Far beyond any model: a huge file of rubbish must not fill the machine. */
    MOST_NODES = 1 << 20,
    MOST_VALUES = 1 << 21,
    MOST_ATTRIBUTES = 1 << 22,
    MOST_LINKS = 1 << 23,
    MOST_GRAPHS = 1 << 16,
    MOST_FUNCTIONS = 1 << 16,
    MOST_CALLED_BYTES = 1 << 28, /* of functions, each as often as it is called */
    DEEPEST_GRAPH = 16,
    FIRST_TABLE = 1 << 8,
};

enum { /* fields */
       MODEL_GRAPH = 7,
       MODEL_FUNCTION = 25,
       GRAPH_NODE = 1,
       GRAPH_NAME = 2,
       GRAPH_TENSOR = 5,
       GRAPH_IN = 11,
       GRAPH_OUT = 12,
       GRAPH_INFO = 13,
       GRAPH_SPARSE = 15,
       NODE_INPUT = 1,
       NODE_OUTPUT = 2,
       NODE_NAME = 3,
       NODE_OP = 4,
       NODE_ATTRIBUTE = 5,
       NODE_DOMAIN = 7,
       NODE_OVERLOAD = 8,
       ATTRIBUTE_TENSOR = 5,
       ATTRIBUTE_GRAPH = 6,
       ATTRIBUTE_OF_CALL = 21, /* the name of a setting of the function, whose value it has */
       INFO_NAME = 1,
};

struct onnx_words onnx_words(struct slice name)
{
    struct onnx_words words;
    size_t length = name.length < sizeof words.text - 1 ? name.length : sizeof words.text - 1;
    for (size_t i = 0; i < length; i++)
        words.text[i] = (char)(name.bytes[i] ? name.bytes[i] : '?');
    words.text[length] = '\0';
    str_plain(words.text);
    return words;
}

/* ---- failures ---- */

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

static enum err damaged(const struct onnx_file *file, const struct wire *wire, const char *what,
                        struct error *why)
{
    return err_set(
        why, ERR_BAD_VALUE,
        "%.160s: byte %zu, %s: it makes no sense here; the file is cut short, damaged or "
        "no ONNX file",
        file->path, (size_t)(wire->at - file->bytes.bytes), what);
}

static enum err wrong_name(const struct onnx_file *file, const char *what, struct slice name,
                           const char *wrong, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%.160s: %s '%s' %s", file->path, what,
                   onnx_words(name).text, wrong);
}

static enum err too_many(const struct onnx_file *file, const char *what, struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "%.160s: it has more %s than are read", file->path, what);
}

/* Room for one more of a list, which may have `most`. */
#define ROOM(file, list, counted, room, most, what, why)                                           \
    do {                                                                                           \
        if ((file)->counted >= (size_t)(most))                                                     \
            return too_many(file, what, why);                                                      \
        void *grown_ = grow((file)->list, &(file)->room, (file)->counted, sizeof *(file)->list);   \
        if (!grown_)                                                                               \
            return no_memory(why);                                                                 \
        (file)->list = grown_;                                                                     \
    } while (0)

/* ---- names ---- */

static size_t hash_of(int32_t graph, struct slice name)
{
    uint64_t hash = hash_bytes(HASH_START ^ (uint64_t)graph, name.bytes, name.length);
    return (size_t)(hash ^ (hash >> 29));
}

/* The place of a name in the table: taken by it, or free. */
static size_t place_of(const struct onnx_file *file, int32_t graph, struct slice name)
{
    size_t mask = file->table_room - 1, at = hash_of(graph, name) & mask;
    for (;; at = (at + 1) & mask) {
        if (file->table[at] == ONNX_NONE)
            return at;
        const struct onnx_value *value = &file->values[file->table[at]];
        if (value->graph == graph && value->name.length == name.length &&
            memcmp(value->name.bytes, name.bytes, name.length) == 0)
            return at;
    }
}

static bool grow_table(struct onnx_file *file)
{
    size_t room = file->table_room ? 2 * file->table_room : FIRST_TABLE;
    int32_t *table = malloc(room * sizeof *table);
    if (!table)
        return false;
    memset(table, 0xff, room * sizeof *table); /* ONNX_NONE everywhere */
    free(file->table);
    file->table = table;
    file->table_room = room;
    for (size_t i = 0; i < file->value_count; i++)
        table[place_of(file, file->values[i].graph, file->values[i].name)] = (int32_t)i;
    return true;
}

/* The value of that name in that graph itself, which is made if there is none. */
static enum err own_value(struct onnx_file *file, int32_t graph, struct slice name, int32_t *out,
                          struct error *why)
{
    bool is_full = !file->table || 2 * (file->value_count + 1) > file->table_room;
    if (is_full && !grow_table(file))
        return no_memory(why);
    size_t place = place_of(file, graph, name);
    if (file->table[place] == ONNX_NONE) {
        ROOM(file, values, value_count, value_room, MOST_VALUES, "names", why);
        file->table[place] = (int32_t)file->value_count;
        file->values[file->value_count++] = (struct onnx_value){
            .name = name, .graph = graph, .tensor = ONNX_NONE, .maker = ONNX_NONE};
    }
    *out = file->table[place];
    return ERR_OK;
}

static bool is_call(const struct onnx_file *file, int32_t graph)
{
    return file->graphs[graph].function != ONNX_NONE;
}

/* A function does not see the names of who calls it. */
static int32_t around(const struct onnx_file *file, int32_t graph)
{
    return is_call(file, graph) ? ONNX_NONE : file->graphs[graph].parent;
}

/* The value that a node of that graph means. */
static enum err seen_value(struct onnx_file *file, int32_t graph, struct slice name, int32_t *out,
                           struct error *why)
{
    for (int32_t scope = graph; file->table && scope >= 0; scope = around(file, scope)) {
        *out = file->table[place_of(file, scope, name)];
        if (*out != ONNX_NONE)
            return ERR_OK;
    }
    return own_value(file, graph, name, out, why);
}

static enum err add_link(struct onnx_file *file, int32_t value, struct error *why)
{
    ROOM(file, links, link_count, link_room, MOST_LINKS, "edges", why);
    file->links[file->link_count++] = value;
    return ERR_OK;
}

/* ---- what a graph declares ---- */

static enum err add_tensor(struct onnx_file *file, int32_t graph, const struct wire_field *field,
                           struct error *why)
{
    struct onnx_tensor tensor;
    const char *wrong = field->number == GRAPH_SPARSE ? tensor_read_sparse(field->bytes, &tensor)
                                                      : tensor_read(field->bytes, &tensor);
    if (wrong)
        return wrong_name(file, "tensor", tensor.name, wrong, why);
    int32_t value;
    enum err err = own_value(file, graph, tensor.name, &value, why);
    if (err)
        return err;
    if (file->values[value].tensor != ONNX_NONE)
        return wrong_name(file, "tensor", tensor.name, "is there twice", why);
    ROOM(file, tensors, tensor_count, tensor_room, MOST_VALUES, "tensors", why);
    file->values[value].tensor = (int32_t)file->tensor_count;
    file->tensors[file->tensor_count++] = tensor;
    return ERR_OK;
}

static struct slice field_bytes(struct slice message, uint32_t number)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    struct slice found = {"", 0};
    while (wire_next(&wire, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            found = field.bytes;
    return found;
}

static enum err add_info(struct onnx_file *file, int32_t graph, const struct wire_field *field,
                         int32_t *out, struct error *why)
{
    enum err err = own_value(file, graph, field_bytes(field->bytes, INFO_NAME), out, why);
    if (!err)
        file->values[*out].info = field->bytes;
    return err;
}

/* The outputs of a node are names of its graph; its inputs may be of one around it, and are looked at when
 * all names are known. */
static enum err declare_outputs(struct onnx_file *file, int32_t graph, struct slice body,
                                struct error *why)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    int32_t value;
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.number != NODE_OUTPUT || field.type != WIRE_BYTES || field.bytes.length == 0)
            continue;
        err = own_value(file, graph, field.bytes, &value, why);
        if (!err && file->values[value].tensor != ONNX_NONE)
            err = wrong_name(file, "name", field.bytes, "is both made by a node and a tensor", why);
    }
    return !err && wire.is_damaged ? damaged(file, &wire, "in a node", why) : err;
}

/* What a function takes, and the call may leave out. */
static enum err declare_argument(struct onnx_file *file, int32_t graph, struct slice name,
                                 uint32_t index, struct error *why)
{
    const struct onnx_node *call = &file->nodes[file->graphs[graph].caller];
    bool is_left_out =
        index >= call->input_count || file->links[call->first_input + index] == ONNX_NONE;
    int32_t value;
    enum err err = own_value(file, graph, name, &value, why);
    if (!err)
        file->values[value].is_left_out = is_left_out;
    return err;
}

static enum err declare_function(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    uint32_t arguments = 0;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == FUNCTION_IN)
            err = declare_argument(file, graph, field.bytes, arguments++, why);
        else if (field.number == FUNCTION_NODE)
            err = declare_outputs(file, graph, field.bytes, why);
    }
    return !err && wire.is_damaged ? damaged(file, &wire, "in a function", why) : err;
}

/* The first walk over a graph: names. */
static enum err declare(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    int32_t value;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == GRAPH_TENSOR || field.number == GRAPH_SPARSE)
            err = add_tensor(file, graph, &field, why);
        else if (field.number == GRAPH_IN || field.number == GRAPH_INFO)
            err = add_info(file, graph, &field, &value, why);
        else if (field.number == GRAPH_NODE)
            err = declare_outputs(file, graph, field.bytes, why);
        else if (field.number == GRAPH_NAME)
            file->graphs[graph].name = field.bytes;
    }
    return !err && wire.is_damaged ? damaged(file, &wire, "in the graph", why) : err;
}

/* ---- nodes ---- */

static enum err add_graph(struct onnx_file *file, int32_t parent, struct slice body,
                          struct error *why)
{
    int32_t depth = parent == ONNX_NONE ? 0 : file->graphs[parent].depth + 1;
    if (depth > DEEPEST_GRAPH)
        return err_set(why, ERR_UNSUPPORTED, "%.160s: graphs inside of graphs, deeper than %d",
                       file->path, DEEPEST_GRAPH);
    ROOM(file, graphs, graph_count, graph_room, MOST_GRAPHS, "graphs", why);
    file->graphs[file->graph_count++] = (struct onnx_graph){.body = body,
                                                            .parent = parent,
                                                            .depth = depth,
                                                            .name = {"", 0},
                                                            .function = ONNX_NONE,
                                                            .caller = ONNX_NONE};
    return ERR_OK;
}

/* A graph of its own for a call of one of the file's functions, which the node is if they have its name. */
static enum err add_call(struct onnx_file *file, int32_t graph, struct onnx_node *node,
                         struct slice overload, struct error *why)
{
    struct onnx_function wanted = {node->domain, node->op, overload, {0}};
    int32_t function = functions_find(file->functions, file->function_count, &wanted);
    node->called = ONNX_NONE;
    if (function < 0)
        return ERR_OK;
    for (int32_t outer = graph; outer >= 0; outer = file->graphs[outer].parent)
        if (file->graphs[outer].function == function)
            return wrong_name(file, "function", node->op, "calls itself", why);
    struct slice body = file->functions[function].body;
    file->called_bytes += body.length;
    if (file->called_bytes > MOST_CALLED_BYTES)
        return too_many(file, "bytes in functions that are called", why);
    node->called = (int32_t)file->graph_count;
    enum err err = add_graph(file, graph, body, why);
    if (err)
        return err;
    file->graphs[node->called].function = function;
    file->graphs[node->called].caller = (int32_t)file->node_count;
    return ERR_OK;
}

/* ---- settings ---- */

static bool is_same(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* What the call around a node of a function gives for one of the function's settings, or else the function
 * itself; no bytes: neither.  Graphs are not passed on: nobody writes such. */
static struct slice called_with(const struct onnx_file *file, int32_t graph, struct slice name)
{
    while (graph >= 0 && !is_call(file, graph))
        graph = file->graphs[graph].parent;
    if (graph < 0)
        return (struct slice){0};
    const struct onnx_node *call = &file->nodes[file->graphs[graph].caller];
    for (uint32_t i = 0; i < call->attribute_count; i++) {
        const struct onnx_attribute *given = &file->attributes[call->first_attribute + i];
        if (is_same(given->name, name))
            return given->graph == ONNX_NONE ? given->body : (struct slice){0};
    }
    return function_default(file->graphs[graph].body, name);
}

/* A setting of that name; one that the call gives has another there. */
static enum err keep_attribute(struct onnx_file *file, int32_t graph, struct slice name,
                               struct slice body, struct error *why)
{
    struct onnx_attribute attribute = {.body = body, .graph = ONNX_NONE, .name = name};
    struct wire wire = wire_of(body);
    struct wire_field field;
    enum err err = ERR_OK;
    while (!err && wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == ATTRIBUTE_TENSOR) {
            attribute.tensor = field.bytes;
        } else if (field.number == ATTRIBUTE_GRAPH) {
            attribute.graph = (int32_t)file->graph_count;
            err = add_graph(file, graph, field.bytes, why);
        }
    }
    if (err)
        return err;
    if (wire.is_damaged)
        return damaged(file, &wire, "in a setting of a node", why);
    ROOM(file, attributes, attribute_count, attribute_room, MOST_ATTRIBUTES, "settings", why);
    file->attributes[file->attribute_count++] = attribute;
    return ERR_OK;
}

static enum err add_attribute(struct onnx_file *file, int32_t graph, struct slice body,
                              struct error *why)
{
    struct slice name = attribute_name(body);
    struct slice of_call = field_bytes(body, ATTRIBUTE_OF_CALL);
    if (of_call.length == 0)
        return keep_attribute(file, graph, name, body, why);
    struct slice given = called_with(file, graph, of_call);
    return given.bytes ? keep_attribute(file, graph, name, given, why) : ERR_OK;
}

static enum err add_input(struct onnx_file *file, int32_t graph, struct slice name,
                          struct error *why)
{
    int32_t value = ONNX_NONE;
    enum err err = name.length ? seen_value(file, graph, name, &value, why) : ERR_OK;
    if (!err && value != ONNX_NONE && file->values[value].is_left_out)
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
    if (value != ONNX_NONE && file->values[value].maker != ONNX_NONE)
        return wrong_name(file, "name", name, "is made by two nodes", why);
    if (value != ONNX_NONE)
        file->values[value].maker = (int32_t)file->node_count;
    return add_link(file, value, why);
}

/* Fields of one number, wherever they stand in the message, as one run of links. */
static enum err add_links(struct onnx_file *file, int32_t graph, struct slice body, uint32_t number,
                          uint32_t *first, uint32_t *count, struct error *why)
{
    struct wire wire = wire_of(body);
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

static enum err add_node(struct onnx_file *file, int32_t graph, struct slice body,
                         struct error *why)
{
    struct onnx_node node = {.op = {"", 0},
                             .domain = {"", 0},
                             .name = {"", 0},
                             .first_attribute = (uint32_t)file->attribute_count};
    struct slice overload = {"", 0};
    struct wire wire = wire_of(body);
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
        err = add_links(file, graph, body, NODE_INPUT, &node.first_input, &node.input_count, why);
    if (!err)
        err =
            add_links(file, graph, body, NODE_OUTPUT, &node.first_output, &node.output_count, why);
    if (!err)
        err = add_call(file, graph, &node, overload, why);
    if (err)
        return err;
    ROOM(file, nodes, node_count, node_room, MOST_NODES, "nodes", why);
    file->nodes[file->node_count++] = node;
    return ERR_OK;
}

/* The second walk: nodes, with what they mean by their names. */
static enum err read_nodes(struct onnx_file *file, int32_t graph, struct error *why)
{
    struct wire wire = wire_of(file->graphs[graph].body);
    struct wire_field field;
    enum err err = ERR_OK;
    uint32_t number = is_call(file, graph) ? FUNCTION_NODE : GRAPH_NODE;
    file->graphs[graph].first_node = (uint32_t)file->node_count;
    while (!err && wire_next(&wire, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            err = add_node(file, graph, field.bytes, why);
    file->graphs[graph].node_count = (uint32_t)file->node_count - file->graphs[graph].first_node;
    return err;
}

/* The third: what comes in and goes out. */
static enum err read_ends(struct onnx_file *file, int32_t graph, bool is_in, uint32_t *first,
                          uint32_t *count, struct error *why)
{
    bool is_function = is_call(file, graph);
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
        struct slice name = is_function ? field.bytes : field_bytes(field.bytes, INFO_NAME);
        err = is_in ? own_value(file, graph, name, &value, why)
                    : seen_value(file, graph, name, &value, why);
        if (err)
            break;
        if (!file->values[value].info.bytes && !is_function)
            file->values[value].info = field.bytes;
        file->values[value].is_input |= is_in;
        file->values[value].is_output |= !is_in;
        err = add_link(file, value, why);
    }
    *count = (uint32_t)file->link_count - *first;
    return err;
}

static enum err read_graph(struct onnx_file *file, int32_t graph, struct error *why)
{
    uint32_t first, count;
    enum err err =
        is_call(file, graph) ? declare_function(file, graph, why) : declare(file, graph, why);
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

/* ---- the whole ---- */

static enum err add_function(struct onnx_file *file, struct slice body, struct error *why)
{
    ROOM(file, functions, function_count, function_room, MOST_FUNCTIONS, "functions", why);
    file->functions[file->function_count++] = function_of(body);
    return ERR_OK;
}

static enum err read_all(struct onnx_file *file, struct error *why)
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
        return damaged(file, &wire, "in the model", why);
    if (!body.bytes)
        return err_set(why, ERR_BAD_VALUE, "%.160s: there is no graph in it; is it an ONNX file?",
                       file->path);
    functions_sort(file->functions, file->function_count);
    err = add_graph(file, ONNX_NONE, body, why);
    /* Graphs inside of nodes, and of calls, are added while this goes on. */
    for (size_t i = 0; i < file->graph_count && !err; i++)
        err = read_graph(file, (int32_t)i, why);
    return err;
}

enum err onnx_read(const char *path, struct slice bytes, struct onnx_file *out, struct error *why)
{
    struct onnx_file file = {.path = strdup(path), .bytes = bytes};
    enum err err = file.path ? read_all(&file, why) : no_memory(why);
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

static enum err map_file(const char *path, int fd, struct slice *out, struct error *why)
{
    struct stat status;
    if (fstat(fd, &status))
        return err_set(why, err_from_errno(errno), "cannot read %.160s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(why, ERR_BAD_VALUE, "%.160s is not a file", path);
    if (status.st_size == 0)
        return err_set(why, ERR_BAD_VALUE, "%.160s is empty", path);
    void *mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED)
        return err_set(why, err_from_errno(errno), "cannot map %.160s: %s", path, strerror(errno));
    /* Weights are stepped over: nothing is gained by reading ahead. */
    posix_madvise(mapping, (size_t)status.st_size, POSIX_MADV_RANDOM);
    *out = (struct slice){mapping, (size_t)status.st_size};
    return ERR_OK;
}

enum err onnx_open(const char *path, struct onnx_file *out, struct error *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(why, err_from_errno(errno), "cannot open %.160s: %s", path, strerror(errno));
    struct slice bytes = {0};
    enum err err = map_file(path, fd, &bytes, why);
    close(fd);
    if (err)
        return err;
    err = onnx_read(path, bytes, out, why);
    if (err)
        munmap((void *)bytes.bytes, bytes.length);
    else
        out->mapping = (void *)bytes.bytes;
    return err;
}
