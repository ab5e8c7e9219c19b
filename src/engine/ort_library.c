/* Opens libonnxruntime: finds the file, checks its version, and creates the environment of all sessions. */
#include "engine/ort_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "engine/shipped.h"
#include "port/dl.h"

/* Directory of the library from tools/setup; set by the build for its source tree. */
#ifndef IPW_ONNXRUNTIME_FOLDER
#define IPW_ONNXRUNTIME_FOLDER ""
#endif
/* Relative to an installed program, PREFIX/bin/ipw. */
#define INSTALLED_FOLDER "../lib/ipw/onnxruntime"
#define VARIABLE         "IPW_ONNXRUNTIME_LIB"

static const char *const SYSTEM_NAMES[] = {"libonnxruntime.so.1", "libonnxruntime.so"};

static struct {
    pthread_mutex_t lock;
    struct ort_library library; /* its api is NULL until it is open */
    struct dl dl;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct ort_library *ort_library(void)
{
    return process.library.api ? &process.library : NULL;
}

/* ---- messages ---- */

/* The end of "/onnxruntime_src/FILE:LINE function(arguments) const " at the start of a text; the text itself if it
 * is something else. */
static const char *skip_location(const char *at)
{
    const char *open = strchr(at, '(');
    int depth = 0;
    if (!str_starts(at, "/onnxruntime_src/") || !open)
        return at;
    for (; *open; open++) {
        if (*open == '(')
            depth++;
        if (*open == ')' && --depth == 0)
            break;
    }
    if (!*open)
        return at;
    const char *end = open + 1;
    end += str_starts(end, " const") ? strlen(" const") : 0;
    return end + strspn(end, " ");
}

/* A message in one line, without the places in the library's source that it names. */
static void add_message(struct text *to, const char *message)
{
    while (*message) {
        const char *rest = skip_location(message);
        if (rest == message) {
            text_add_bytes(to, strchr("\n\r\t", *message) ? " " : message, 1);
            rest++;
        }
        message = rest;
    }
}

static enum err err_of(int code, const char *message)
{
    bool is_operator = strstr(message, "No Op registered") || strstr(message, "not a registered");
    bool is_version = strstr(message, "max supported") || strstr(message, "support for domain");
    if (is_operator || is_version || code == ORT_NOT_IMPLEMENTED)
        return ERR_UNSUPPORTED;
    switch (code) {
    case ORT_INVALID_ARGUMENT:
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
        return ERR_BAD_VALUE;
    case ORT_NO_FILE:
        return ERR_NOT_FOUND;
    default:
        return ERR_UNSUPPORTED;
    }
}

enum err ort_check(struct ort_status *status, struct error *why, const char *what)
{
    if (!status)
        return ERR_OK;
    const struct ort_api *api = process.library.api;
    struct text message = {0};
    add_message(&message, api->error_message(status));
    char *copy = xstrdup(text_get(&message)), *line = str_trim(copy);
    enum err err = err_set(why, err_of(api->error_code(status), line), "%s: %s", what, line);
    free(copy);
    text_release(&message);
    api->release_status(status);
    return err;
}

static void on_log(void *context, int level, const char *category, const char *id,
                   const char *where, const char *message)
{
    (void)context;
    (void)level;
    (void)category;
    (void)id;
    (void)where;
    log_debug("ONNX Runtime: %s", message);
}

/* ---- opening ---- */

static enum err start(struct ort_library *library, struct error *why)
{
    const struct ort_api *api = library->api;
    enum err err = ort_check(api->create_env(on_log, NULL, ORT_LOG_WARNING, "ipw", &library->env),
                             why, library->path);
    if (!err)
        err = ort_check(
            api->create_host_memory(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &library->host), why,
            library->path);
    if (!err)
        err = ort_check(api->default_allocator(&library->allocator), why, library->path);
    return err;
}

static enum err open_file(const char *path, struct error *why)
{
    const char *const names[] = {path, NULL};
    const struct ort_base *(*get_base)(void) = NULL;
    const struct dl_symbol symbol = {"OrtGetApiBase", &get_base, true};
    struct ort_library *library = &process.library;
    enum err err = dl_open(&process.dl, NULL, names, why);
    if (err)
        return err;
    err = dl_load(&process.dl, &symbol, 1, why);
    if (err) {
        dl_close(&process.dl);
        return err;
    }
    const struct ort_base *base = get_base();
    library->api = base->get_api(ORT_API_VERSION);
    library->version = base->get_version();
    if (!library->api) {
        err =
            err_set(why, ERR_UNSUPPORTED, "%s is ONNX Runtime %s, which is too old: 1.%d is needed",
                    path, library->version, ORT_API_VERSION);
        dl_close(&process.dl);
        return err;
    }
    /* A system library has no directory in its name; the dynamic loader has its path. */
    char *found = strchr(path, '/') ? NULL : dl_loaded(path);
    library->path = found ? found : xstrdup(path);
    err = start(library, why);
    if (err) /* stays loaded, as its start may have created threads */
        library->api = NULL;
    else
        log_debug("in-process inference: ONNX Runtime %s, %s", library->version, library->path);
    return err;
}

static enum err open_named(const char *path, const char *named_by, struct error *why)
{
    char *file = shipped_library_at(path, "libonnxruntime");
    if (!file)
        return err_set(why, ERR_UNSUPPORTED, "%s %s: no libonnxruntime there", named_by, path);
    struct error reason;
    enum err err = open_file(file, &reason);
    free(file);
    if (err)
        return err_set(why, ERR_UNSUPPORTED, "%s: %s", named_by, reason.text);
    return ERR_OK;
}

static enum err open_any(struct error *why)
{
    const char *given = getenv(VARIABLE);
    if (given && *given)
        return open_named(given, VARIABLE, why);
    char *file = shipped_library(INSTALLED_FOLDER, IPW_ONNXRUNTIME_FOLDER, "libonnxruntime");
    if (file) {
        enum err err = open_file(file, why);
        free(file);
        return err;
    }
    for (size_t i = 0; i < COUNT_OF(SYSTEM_NAMES); i++) {
        struct error reason;
        enum err err = open_file(SYSTEM_NAMES[i], &reason);
        if (err != ERR_ABSENT)
            return err ? err_set(why, err, "%s", reason.text) : ERR_OK;
    }
    return err_set(why, ERR_UNSUPPORTED,
                   "libonnxruntime was not found: install it with tools/setup build, or "
                   "set " VARIABLE " to its path");
}

/* ERR_USAGE if the path names another file than the open one. */
static enum err check_same(const char *path, struct error *why)
{
    char *file = shipped_library_at(path, "libonnxruntime");
    struct stat wanted, used;
    bool is_other = !file || stat(file, &wanted) || stat(process.library.path, &used) ||
                    wanted.st_dev != used.st_dev || wanted.st_ino != used.st_ino;
    free(file);
    if (is_other)
        return err_set(why, ERR_USAGE, "library=%s: this process already uses %s", path,
                       process.library.path);
    return ERR_OK;
}

enum err ort_library_open(const char *path, const struct ort_library **out, struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&process.lock);
    if (process.library.api)
        err = path ? check_same(path, why) : ERR_OK;
    else
        err = path ? open_named(path, "library", why) : open_any(why);
    pthread_mutex_unlock(&process.lock);
    if (!err)
        *out = &process.library;
    return err;
}

enum err onnx_available(const char **version, struct error *why)
{
    const struct ort_library *library;
    enum err err = ort_library_open(NULL, &library, why);
    if (!err)
        *version = library->version;
    return err;
}
