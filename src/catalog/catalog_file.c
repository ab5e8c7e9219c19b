/* The files are embedded as they are.  Names are found in their text by the keys of the arrays that they are in: a key
 * in quotes cannot occur elsewhere, since a quote within a string is escaped, and names have neither quotes nor
 * escapes (read_names in catalog/hardware_json.c); tests compare what is found with what is parsed. */
#include "catalog/catalog_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/embed.h"
#include "core/json_bind.h"
#include "core/jv.h"
#include "core/log.h"
#include "core/memory.h"

#define CATALOG_FILE(folder, kind, symbol, id)                                                     \
    EMBED(catalog_##folder##_##symbol, IPW_CATALOG_DATA "/" #folder "/" id ".json");
#include "catalog/hardware_files.def"
#include "catalog/models_files.def"
#undef CATALOG_FILE

#define CATALOG_FILE(folder, kind, symbol, id)                                                     \
    {CATALOG_##kind, id, catalog_##folder##_##symbol, catalog_##folder##_##symbol##_end, NULL},

struct catalog_file HARDWARE_FILES[] = {
#include "catalog/hardware_files.def"
};
const size_t HARDWARE_FILE_COUNT = COUNT_OF(HARDWARE_FILES);

struct catalog_file MODEL_FILES[] = {
#include "catalog/models_files.def"
};
const size_t MODEL_FILE_COUNT = COUNT_OF(MODEL_FILES);
#undef CATALOG_FILE

/* ---- parsing ---- */

/* The build checks every file (data/check_catalog.c), so memory is all that can be missing; a file that an unchecked
 * build has wrong is not usable, and says so. */
static void *parse_now(struct catalog_file *file, const struct catalog_format *format)
{
    struct error why = {0};
    void *out = NULL;
    enum err err =
        format->parse(format, file->id, file->begin, (size_t)(file->end - file->begin), &out, &why);
    if (!err)
        return out;
    memory_failed();
    log_warn("catalog: %s", why.text);
    return NULL;
}

void *catalog_file_get(struct catalog_file *file, const struct catalog_format *format)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *parsed = atomic_load_explicit(&file->parsed, memory_order_acquire);
    if (parsed)
        return parsed;
    pthread_mutex_lock(&lock);
    parsed = atomic_load_explicit(&file->parsed, memory_order_relaxed);
    if (!parsed) {
        parsed = parse_now(file, format);
        atomic_store_explicit(&file->parsed, parsed, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return parsed;
}

enum err catalog_list_parse(const struct catalog_format *format, const char *name,
                            const char *bytes, size_t length, void **out, struct error *why)
{
    struct error reason = {0};
    struct jv **list = memory_zeroed(1, format->size);
    if (!list)
        return err_no_memory(why);
    enum err err = jv_parse(bytes, length, list, &reason);
    if (!err)
        err = json_fields_read_strict(*list, format->fields, list, "docs/formats.md", &reason);
    if (!err && format->check)
        err = format->check(list, &reason);
    if (err) {
        catalog_list_free(format, list);
        return err_set(why, err, "%s: %s", name, reason.text);
    }
    *out = list;
    return ERR_OK;
}

void catalog_list_free(const struct catalog_format *format, void *list)
{
    json_fields_release(format->fields, list);
    jv_free(*(struct jv **)list);
    free(list);
}

/* ---- names ---- */

#define PROCESSOR "\"processor\""

bool catalog_file_has(const struct catalog_file *file, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = file->begin; (at = strstr(at, key)); at += length)
        if (at > file->begin && at[-1] == '"' && at[length] == '"')
            return true;
    return false;
}

struct catalog_name catalog_names(const struct catalog_file *file, enum catalog_names of)
{
    struct catalog_name name = {.at = file->begin, .end = file->end, .of = of};
    const char *processor = file->kind == CATALOG_DEVICE ? strstr(file->begin, PROCESSOR) : NULL;
    if (of == CATALOG_PROCESSORS && processor)
        name.at = processor;
    bool has_none = (of == CATALOG_ALIASES && file->kind != CATALOG_DEVICE) ||
                    (of == CATALOG_PEAK_NAMES && (file->kind == CATALOG_POWER || processor)) ||
                    (of == CATALOG_PROCESSORS && file->kind != CATALOG_POWER && !processor);
    if (has_none)
        name.at = file->end;
    return name;
}

bool catalog_name_next(struct catalog_name *name)
{
    const char *key = name->of == CATALOG_ALIASES ? "\"aliases\"" : "\"match\"";
    for (;;) {
        if (!name->is_in_list) {
            const char *list = name->at < name->end ? strstr(name->at, key) : NULL;
            name->at = list ? list + strlen(key) : name->end;
        }
        const char *quote = strpbrk(name->at, "\"]");
        name->is_in_list = quote && *quote == '"';
        if (!quote)
            return false;
        name->at = quote + 1;
        if (name->is_in_list)
            break;
    }
    size_t length = strcspn(name->at, "\"");
    bool fits = length < sizeof name->text;
    memcpy(name->text, name->at, fits ? length : 0);
    name->text[fits ? length : 0] = '\0';
    name->at += length + 1;
    return true;
}
