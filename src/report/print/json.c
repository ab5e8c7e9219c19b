/* A result as JSON: the keys are those of its items, in their order. */
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"

static void put_interval(struct json *json, const char *key, const struct result_item *of)
{
    if (!of || !is_known(of->low) || !is_known(of->high)) {
        json_null(json, key);
        return;
    }
    json_array(json, key);
    json_number(json, NULL, of->low);
    json_number(json, NULL, of->high);
    json_array_end(json);
}

/* A property of the figure, beside it in its group. */
static void put_property(const struct result_item *group, const struct result_item *item,
                         struct json *json)
{
    static const char *const SUFFIXES[] = {
        [RESULT_ERROR] = "_error",
        [RESULT_INTERVAL] = "_interval_95",
        [RESULT_QUERIES] = "_queries",
    };
    const char *of = item->key;
    char key[RESULT_KEY_MAX];
    chars_format(key, "%s%s", of, SUFFIXES[item->kind]);
    if (item->kind == RESULT_INTERVAL)
        put_interval(json, key, result_get(group, of));
    else if (item->kind == RESULT_QUERIES)
        json_integer(json, key, (int64_t)item->number);
    else
        json_number(json, key, item->number);
}

static void put_items(const struct result_item *group, struct json *json)
{
    RESULT_EACH (item, group) {
        const char *key = item->key;
        switch (item->kind) {
        case RESULT_GROUP:
            json_object(json, key);
            put_items(item, json);
            json_object_end(json);
            break;
        case RESULT_LIST:
            json_array(json, key);
            put_items(item, json);
            json_array_end(json);
            break;
        case RESULT_NUMBER:
            json_number(json, key, item->number);
            break;
        case RESULT_COUNT:
            json_integer(json, key, item->integer);
            break;
        case RESULT_TEXT:
            json_string(json, key, result_string(item));
            break;
        case RESULT_FLAG:
            json_bool(json, key, item->number != 0);
            break;
        case RESULT_NULL:
            json_null(json, key);
            break;
        case RESULT_ASIDE:
            break;
        case RESULT_JSON:
            json_raw_indented(json, key, result_string(item));
            break;
        case RESULT_ERROR:
        case RESULT_INTERVAL:
        case RESULT_QUERIES:
            put_property(group, item, json);
            break;
        }
    }
}

void result_to_json(const struct result *result, const char *key, struct json *json)
{
    bool is_list = result->items->kind == RESULT_LIST;
    if (is_list)
        json_array(json, key);
    else
        json_object(json, key);
    put_items(result->items, json);
    if (is_list)
        json_array_end(json);
    else
        json_object_end(json);
}

void result_members_to_json(const struct result *result, struct json *json)
{
    put_items(result->items, json);
}
