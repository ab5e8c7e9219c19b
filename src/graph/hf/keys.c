#include "graph/hf/keys.h"

#include "core/text.h"
#include "port/json_read.h"

void hf_refuse(struct hf_keys *keys, enum err code, const char *key, const char *what)
{
    struct text value = {0};
    const struct jv *found = jv_get(keys->json, key);
    if (keys->err)
        return;
    if (found && jv_print(found, &value) == ERR_OK && !value.failed)
        keys->err = err_set(keys->why, code, "%s: '%s' is %.60s, %s", keys->file, key,
                            text_get(&value), what);
    else
        keys->err = err_set(keys->why, code, "%s: '%s' is missing, %s", keys->file, key, what);
    text_release(&value);
}

static void refuse_size(struct hf_keys *keys, const char *key, uint64_t least, uint64_t most)
{
    char what[96];
    str_format(what, sizeof what, "where a whole number from %llu to %llu belongs",
               (unsigned long long)least, (unsigned long long)most);
    hf_refuse(keys, ERR_BAD_VALUE, key, what);
}

uint64_t hf_size(struct hf_keys *keys, const char *key, uint64_t most, uint64_t otherwise)
{
    const struct jv *value = jv_get(keys->json, key);
    int64_t number;
    if (jv_is_null(value) && otherwise)
        return otherwise;
    if (jv_integer(value, &number) && number >= 1 && (uint64_t)number <= most)
        return (uint64_t)number;
    refuse_size(keys, key, 1, most);
    return 1; /* so that what is made of it meanwhile does no harm */
}

uint64_t hf_size_or_none(struct hf_keys *keys, const char *key, uint64_t most)
{
    const struct jv *value = jv_get(keys->json, key);
    int64_t number;
    if (jv_is_null(value))
        return 0;
    if (jv_integer(value, &number) && number >= 0 && (uint64_t)number <= most)
        return (uint64_t)number;
    refuse_size(keys, key, 0, most);
    return 0;
}

bool hf_truth(struct hf_keys *keys, const char *key, bool otherwise)
{
    const struct jv *value = jv_get(keys->json, key);
    if (!jv_is_null(value) && !jv_is_bool(value))
        hf_refuse(keys, ERR_BAD_VALUE, key, "where true or false belongs");
    return jv_truth(value, otherwise);
}

const char *hf_text(struct hf_keys *keys, const char *key)
{
    const struct jv *value = jv_get(keys->json, key);
    if (!jv_is_null(value) && !jv_text(value))
        hf_refuse(keys, ERR_BAD_VALUE, key, "where a text belongs");
    return jv_text(value);
}
