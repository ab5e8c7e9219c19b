/* Access to one member by its table row: a switch over the types, and traversal of the objects on a path. */
#include "core/json_field.h"

#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"

/* ---- a member ---- */

static void *member_at(const struct json_field *field, void *object)
{
    return (char *)object + field->offset;
}

void json_field_copy(const struct json_field *field, const void *from, void *to)
{
    static const size_t SIZES[] = {
        [FIELD_TEXT] = sizeof(const char *),
        [FIELD_NUMBER] = sizeof(double),
        [FIELD_INTEGER] = sizeof(int64_t),
        [FIELD_INTEGRAL] = sizeof(double),
        [FIELD_BOOL] = sizeof(int8_t),
        [FIELD_JSON] = sizeof(struct json_any),
        [FIELD_METADATA] = sizeof(struct json_any),
    };
    memcpy(member_at(field, to), json_field_member(field, from), SIZES[field->type]);
}

const char *json_field_text(const struct json_field *field, const void *object)
{
    return field->type == FIELD_TEXT ? *(const char *const *)json_field_member(field, object)
                                     : NULL;
}

const struct jv *json_field_value(const struct json_field *field, const void *object)
{
    const struct json_any *any = json_field_member(field, object);
    return field->type == FIELD_JSON || field->type == FIELD_METADATA ? any->value : NULL;
}

bool json_field_is_known(const struct json_field *field, const void *object)
{
    if (field->type == FIELD_TEXT)
        return json_field_text(field, object);
    if (field->type == FIELD_JSON || field->type == FIELD_METADATA) {
        const struct json_any *json = json_field_member(field, object);
        return json->text || json->value;
    }
    return is_known(json_field_number(field, object));
}

/* ---- paths ---- */

static struct json_field_name name_of(const char *text)
{
    return (struct json_field_name){text, strlen(text)};
}

static bool is_same(const struct json_field_name *a, const struct json_field_name *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

size_t json_field_split(const char *path, struct json_base base,
                        struct json_field_name names[static FIELD_DEPTH_MAX])
{
    size_t count = 0;
    if (path[0] == '/')
        path++;
    else if (base.name) {
        names[count++] = name_of(base.group);
        names[count++] = name_of(base.name);
    }
    for (;;) {
        size_t length = strcspn(path, ".");
        if (count == FIELD_DEPTH_MAX)
            return 0;
        names[count] = (struct json_field_name){path, length};
        if (base.name && length == 1 && path[0] == '*')
            names[count] = name_of(base.name);
        count++;
        if (!path[length])
            return count;
        path += length + 1;
    }
}

/* Number of leading names shared with the open objects. */
static size_t shared(const struct json_field_name *open, size_t depth,
                     const struct json_field_name *names, size_t count)
{
    size_t same = 0;
    while (same < depth && same < count && is_same(&open[same], &names[same]))
        same++;
    return same;
}

/* The last name of a path if it is in the same object as the previous path, as most are; otherwise NULL, and *last and
 * *above are updated. */
static const char *sibling_name(const char **last, size_t *above, const char *path)
{
    if (*last && strncmp(path, *last, *above) == 0 && path[*above] != '/' && path[*above] != '*' &&
        !strchr(path + *above, '.'))
        return path + *above;
    const char *dot = strrchr(path, '.');
    *last = path;
    *above = dot ? (size_t)(dot - path) + 1 : path[0] == '/';
    return NULL;
}

const char *json_field_key(const struct json_field_name *name, char to[static FIELD_NAME_MAX])
{
    size_t length = name->length < FIELD_NAME_MAX ? name->length : FIELD_NAME_MAX - 1;
    if (name->bytes[name->length] == '\0')
        return name->bytes;
    memcpy(to, name->bytes, length);
    to[length] = '\0';
    return to;
}

/* ---- writing ---- */

const char *json_field_enter(struct json_field_writer *writer, const char *path)
{
    const char *sibling = sibling_name(&writer->last, &writer->above, path);
    struct json_field_name names[FIELD_DEPTH_MAX];
    if (sibling)
        return sibling;
    size_t count = json_field_split(path, writer->base, names);
    size_t above = count ? count - 1 : 0;
    size_t same = shared(writer->open, writer->depth, names, above);
    for (; writer->depth > same; writer->depth--)
        json_object_end(writer->json);
    for (; writer->depth < above; writer->depth++) {
        char key[FIELD_NAME_MAX];
        writer->open[writer->depth] = names[writer->depth];
        json_object(writer->json, json_field_key(&names[writer->depth], key));
    }
    return count ? names[above].bytes : path; /* the last name is the end of the path */
}

void json_field_writer_end(struct json_field_writer *writer)
{
    for (; writer->depth > 0; writer->depth--)
        json_object_end(writer->json);
}

enum err json_field_put(const struct json_field *field, struct json_base base, const void *object,
                        struct jv *tree)
{
    struct json_field_name names[FIELD_DEPTH_MAX];
    char key[FIELD_NAME_MAX];
    size_t count = json_field_split(field->path, base, names);
    for (size_t i = 0; tree && i + 1 < count; i++)
        tree = jv_put_object(tree, json_field_key(&names[i], key));
    if (!tree || !count)
        return ERR_NO_MEMORY;
    const char *last = names[count - 1].bytes;
    switch (field->type) {
    case FIELD_TEXT:
        return jv_put_text(tree, last, json_field_text(field, object));
    case FIELD_NUMBER:
    case FIELD_INTEGRAL:
    case FIELD_INTEGER:
        return jv_put_number(tree, last, json_field_number(field, object));
    case FIELD_BOOL:
        return json_field_is_known(field, object)
                   ? jv_put_bool(tree, last, json_field_number(field, object) == 1)
                   : jv_put_text(tree, last, NULL);
    default:
        break;
    }
    return ERR_OK;
}

/* ---- reading ---- */

static const struct jv *child_of(const struct jv *parent, const struct json_field_name *name)
{
    char key[FIELD_NAME_MAX];
    return jv_get(parent, json_field_key(name, key));
}

/* Values are mostly in the order of the fields: the next one is tried first. */
static const struct jv *find_sibling(struct json_field_reader *reader, const char *name)
{
    if (!reader->parent)
        return NULL;
    const struct jv *next = reader->found ? jv_next(reader->found) : jv_first(reader->parent);
    if (!next || !jv_key(next) || !str_equal(jv_key(next), name))
        next = jv_get(reader->parent, name);
    if (next)
        reader->found = next;
    return next;
}

static const struct jv *find_path(struct json_field_reader *reader, const char *path)
{
    const char *sibling = sibling_name(&reader->last, &reader->above, path);
    struct json_field_name names[FIELD_DEPTH_MAX];
    if (sibling)
        return find_sibling(reader, sibling);
    size_t count = json_field_split(path, reader->base, names);
    reader->parent = reader->found = NULL;
    if (!count)
        return NULL;
    size_t same = shared(reader->open, reader->depth, names, count - 1);
    for (reader->depth = same; reader->depth < count - 1; reader->depth++) {
        const struct jv *parent = reader->depth ? reader->values[reader->depth - 1] : reader->root;
        reader->open[reader->depth] = names[reader->depth];
        reader->values[reader->depth] = parent ? child_of(parent, &names[reader->depth]) : NULL;
    }
    reader->parent = count > 1 ? reader->values[count - 2] : reader->root;
    reader->found = reader->parent ? child_of(reader->parent, &names[count - 1]) : NULL;
    return reader->found;
}

const struct jv *json_field_find(struct json_field_reader *reader, const struct json_field *field)
{
    const struct jv *value = find_path(reader, field->path);
    return field->former && jv_is_null(value) ? find_path(reader, field->former) : value;
}

void json_field_take(const struct json_field *field, const struct jv *value, void *object)
{
    void *member = member_at(field, object);
    if (jv_is_null(value))
        return;
    int64_t integer;
    switch (field->type) {
    case FIELD_TEXT:
        *(const char **)member = jv_text(value);
        break;
    case FIELD_NUMBER:
    case FIELD_INTEGRAL:
        *(double *)member = jv_number(value);
        break;
    case FIELD_INTEGER:
        if (jv_integer(value, &integer))
            *(int64_t *)member = integer;
        break;
    case FIELD_BOOL:
        if (jv_is_bool(value))
            *(int8_t *)member = (int8_t)jv_bool(value, false);
        break;
    case FIELD_JSON:
    case FIELD_METADATA:
        *(struct json_any *)member = (struct json_any){NULL, value};
        break;
    default:
        break;
    }
}

void json_field_read(struct json_field_reader *reader, const struct json_field *field, void *object)
{
    json_field_take(field, json_field_find(reader, field), object);
}
