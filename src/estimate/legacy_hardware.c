#include "core/text.h"
#include "estimate/legacy.h"
#include "port/json_read.h"

struct place {
    const char *file;
    struct error *why;
};

static enum err refuse(const struct place *at, const char *key, const char *problem)
{
    return err_set(at->why, ERR_BAD_VALUE, "%s: legacy.%s: %s", at->file, key, problem);
}

static enum err read_number(const struct place *at, const struct jv *object, const char *key,
                            double *out)
{
    *out = jv_number(jv_get(object, key));
    return is_known(*out) && *out > 0 ? ERR_OK : refuse(at, key, "must be a number above 0");
}

/* {"fp32": 1, ...}: at least one, and every key a precision. */
static enum err read_by_precision(const struct place *at, const struct jv *object, const char *key,
                                  double *out)
{
    const struct jv *values = jv_get(object, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        out[i] = UNKNOWN;
    if (!jv_is_object(values) || jv_count(values) == 0)
        return refuse(at, key, "must be an object with a number for each precision");
    for (const struct jv *child = jv_first(values); child; child = jv_next(child)) {
        enum precision precision;
        struct error reason = {0};
        if (precision_find(jv_key(child), &precision, &reason))
            return refuse(at, key, reason.text);
        out[precision] = jv_number(child);
        if (!is_known(out[precision]) || out[precision] <= 0)
            return refuse(at, key, "its values must be numbers above 0");
    }
    return ERR_OK;
}

static enum err read_legacy(const struct place *at, const struct jv *top,
                            struct legacy_hardware *out)
{
    const struct jv *legacy = jv_get(top, "legacy");
    const char *id = jv_text(jv_get(top, "id")), *name = jv_text(jv_get(top, "name"));
    if (!id || !id[0])
        return err_set(at->why, ERR_BAD_VALUE, "%s: id: is missing", at->file);
    if (!jv_is_object(legacy))
        return err_set(at->why, ERR_BAD_VALUE,
                       "%s: has no object \"legacy\": --model-compat needs one", at->file);
    str_copy(out->id, sizeof out->id, id);
    str_copy(out->name, sizeof out->name, name ? name : id);
    str_plain(out->id);
    str_plain(out->name);
    enum err err = read_by_precision(at, legacy, "flops", out->flops);
    if (!err)
        err = read_by_precision(at, legacy, "joules_per_flop", out->joules_per_flop);
    if (!err)
        err = read_number(at, legacy, "bytes_per_s", &out->bytes_per_s);
    if (!err)
        err = read_number(at, legacy, "joules_per_byte", &out->joules_per_byte);
    if (!err)
        err = read_number(at, legacy, "threads", &out->threads);
    if (!err)
        err = read_number(at, legacy, "launch_s", &out->launch_s);
    return err;
}

enum err legacy_hardware_parse(const char *name, const char *bytes, size_t length,
                               struct legacy_hardware *out, struct error *why)
{
    struct place at = {name, why};
    struct error reason = {0};
    struct jv *tree = NULL;
    *out = (struct legacy_hardware){0};
    enum err err = jv_parse(bytes, length, &tree, &reason);
    if (err)
        return err_set(why, err, "%s: %s", name, reason.text);
    err = read_legacy(&at, tree, out);
    jv_free(tree);
    return err;
}
