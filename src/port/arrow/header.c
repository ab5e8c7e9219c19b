#include "port/arrow/header.h"

#include <stddef.h>

/* A flatbuffer's table begins with the distance back to its list of fields: two sizes, then the
 * position of each field within the table, 0 for one that is left out.  Everything is little-endian. */

/* The numbers that Arrow's schema files give to the fields we follow. */
enum {
    MESSAGE_KIND = 1,
    MESSAGE_CONTENT = 2,
    KIND_SCHEMA = 1,
    SCHEMA_FIELDS = 1,
    SCHEMA_METADATA = 2,
    FIELD_TYPE = 3,
    FIELD_CHILDREN = 5,
    FIELD_METADATA = 6,
    PAIR_KEY = 0,
    PAIR_VALUE = 1,
};

static uint32_t read_u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t read_u32(const uint8_t *at)
{
    return read_u16(at) | read_u16(at + 2) << 16;
}

/* Where field `number` of a table lies; NULL when it is left out. */
static const uint8_t *field(const uint8_t *table, unsigned number)
{
    const uint8_t *list = table - (int32_t)read_u32(table);
    size_t slot = 4 + 2 * (size_t)number;
    uint32_t position = slot + 2 <= read_u16(list) ? read_u16(list + slot) : 0;
    return position ? table + position : NULL;
}

/* What an offset at `at` leads to; NULL for a field that is left out. */
static const uint8_t *follow(const uint8_t *at)
{
    return at ? at + read_u32(at) : NULL;
}

static uint32_t count_of(const uint8_t *list)
{
    return list ? read_u32(list) : 0;
}

static const uint8_t *element(const uint8_t *list, uint32_t number)
{
    return follow(list + 4 + 4 * (size_t)number);
}

static bool pairs_are_whole(const uint8_t *list)
{
    for (uint32_t i = 0; i < count_of(list); i++)
        if (!field(element(list, i), PAIR_KEY) || !field(element(list, i), PAIR_VALUE))
            return false;
    return true;
}

/* Every field of a list has a type, and so have its children. */
static bool fields_are_whole(const uint8_t *list)
{
    for (uint32_t i = 0; i < count_of(list); i++) {
        const uint8_t *one = element(list, i);
        if (!field(one, FIELD_TYPE) || !pairs_are_whole(follow(field(one, FIELD_METADATA))) ||
            !fields_are_whole(follow(field(one, FIELD_CHILDREN))))
            return false;
    }
    return true;
}

bool arrow_header_is_complete(const uint8_t *header)
{
    const uint8_t *message = follow(header);
    const uint8_t *kind = field(message, MESSAGE_KIND);
    const uint8_t *content = follow(field(message, MESSAGE_CONTENT));
    if (!kind || !content)
        return false;
    return *kind != KIND_SCHEMA || (fields_are_whole(follow(field(content, SCHEMA_FIELDS))) &&
                                    pairs_are_whole(follow(field(content, SCHEMA_METADATA))));
}
