/* Opens libllama: finds the file, checks that it is compatible, initializes its backends, and captures
 * its log.  All state is one struct per process behind a lock; the library is never closed. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/llama_api.h"
#include "engine/shipped.h"
#include "port/dl.h"

/* Directory of the library from tools/setup; set by the build for its source tree. */
#ifndef IPW_LLAMA_FOLDER
#define IPW_LLAMA_FOLDER ""
#endif
/* Relative to an installed program, PREFIX/bin/ipw. */
#define INSTALLED_FOLDER "../lib/ipw/llama"

static const char *const SYSTEM_NAMES[] = {"libllama.so.0", "libllama.so"};

static struct {
    pthread_mutex_t lock;
    bool is_open;
    char *requested; /* by engine_library_use; NULL if unset */
    char *path;      /* of facts */
    struct dl dl;
    struct llama_api api;
    struct engine_library facts;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct llama_api *engine_api(void)
{
    return &process.api;
}

enum err engine_load(const struct dl_symbol *symbols, size_t count, struct error *why)
{
    return dl_load(&process.dl, symbols, count, why);
}

/* ---- the library's log ---- */

/* Lines arrive in fragments; long ones are truncated. */
static _Thread_local struct {
    char line[240];
    bool is_error;
    char first_error[240];
} messages;

/* "load_tensors: tensor is missing" without the function name. */
static const char *skip_function_name(const char *line)
{
    const char *at = line;
    while (isalnum((unsigned char)*at) || *at == '_' || *at == ':' || *at == '~')
        at++;
    return at > line + 1 && at[-1] == ':' && *at == ' ' ? at + 1 : line;
}

static void end_line(void)
{
    char *line = str_trim(messages.line);
    if (*line) {
        log_debug("llama.cpp: %s", line);
        if (messages.is_error && !messages.first_error[0])
            chars_copy(messages.first_error, skip_function_name(line));
    }
    messages.line[0] = '\0';
    messages.is_error = false;
}

/* For llama_log_set. */
static void on_log(int level, const char *text, void *data)
{
    (void)data;
    if (level == LLAMA_LOG_DEBUG)
        return; /* one line per node of each graph */
    if (level != LLAMA_LOG_CONTINUED)
        end_line();
    messages.is_error |= level == LLAMA_LOG_ERROR;
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t used = strlen(messages.line);
        size_t left = sizeof messages.line - 1 - used;
        size_t take = length < left ? length : left;
        memcpy(messages.line + used, text, take);
        messages.line[used + take] = '\0';
        text += length;
        if (*text == '\n') {
            bool was_error = messages.is_error;
            end_line();
            messages.is_error = was_error && text[1];
            text++;
        }
    }
}

const char *engine_log_error(void)
{
    end_line();
    return messages.first_error;
}

void engine_log_clear(void)
{
    end_line();
    messages.first_error[0] = '\0';
}

/* For ggml_set_abort_callback: an assertion of the library failed, and the process ends after this.  One line replaces
 * the debugger that the library would start.  "FILE:LINE: what failed" is printed without the path; the reason was
 * logged before. */
static void on_abort(const char *message)
{
    const char *what = strstr(message, ": ");
    const char *reason = engine_log_error();
    log_error("llama.cpp aborts this process: %s%s%s", what ? what + 2 : message,
              reason[0] ? ": " : "", reason);
}

/* ---- compatibility ---- */

static enum err incompatible(const struct engine_library *facts, const char *reason,
                             struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "%s is llama.cpp %s (tested: %s): %s", facts->path,
                   facts->version[0] ? facts->version : "of unknown version",
                   engine_tested_versions(), reason);
}

/* Checks the structures before calling any function that takes one. */
static enum err load_functions(struct dl *dl, struct llama_api *api, struct engine_library *facts,
                               bool accept_untested, struct error *why)
{
    const char *(*get_version)(void) = NULL;
    llama_defaults model = NULL;
    llama_defaults context = NULL;
    const struct dl_symbol defaults[] = {
        {"llama_version", &get_version, false},
        {"llama_model_default_params", &model, true},
        {"llama_context_default_params", &context, true},
    };
    const struct dl_symbol all[] = {
#define SYMBOL(result, name, arguments) {#name, &api->name, true},
#include "engine/llama_api.def"
#undef SYMBOL
    };
    struct error reason;
    enum err err = dl_load(dl, defaults, COUNT_OF(defaults), &reason);
    chars_copy(facts->version, get_version ? get_version() : "");
    facts->is_tested = llama_abi_is_tested(facts->version);
    if (!err)
        err = llama_abi_read_defaults(model, context, api, &reason);
    if (!err)
        err = dl_load(dl, all, COUNT_OF(all), &reason);
    if (!err && !facts->is_tested && !accept_untested)
        err = err_set(&reason, ERR_UNSUPPORTED,
                      "untested version; set IPW_LLAMA_LIB to this file to use it anyway");
    return err ? incompatible(facts, reason.text, why) : ERR_OK;
}

/* ---- initialization ---- */

/* "haswell" of ".../libggml-cpu-haswell.so". */
static void find_cpu_variant(char *to, size_t size)
{
    static const char PART[] = "/libggml-cpu-";
    char *path = dl_loaded(PART);
    to[0] = '\0';
    if (!path)
        return;
    char *variant = strstr(path, PART) + sizeof PART - 1;
    char *suffix = strstr(variant, ".so");
    if (suffix)
        *suffix = '\0';
    str_copy(to, size, variant);
    free(path);
}

/* The CPU and GPU backends are separate files beside the library. */
static enum err load_backends(const struct llama_api *api, struct engine_library *facts,
                              struct error *why)
{
    api->llama_log_set(on_log, NULL);
    api->ggml_set_abort_callback(on_abort);
    engine_log_clear();
    const char *slash = strrchr(facts->path, '/');
    if (slash) {
        char *folder = xstrndup(facts->path, (size_t)(slash - facts->path));
        api->ggml_backend_load_all_from_path(folder);
        free(folder);
    }
    if (api->ggml_backend_reg_count() == 0)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s has no libggml-cpu-*.so next to it that this processor can run",
                       facts->path);
    api->llama_backend_init();
    facts->has_gpu = api->llama_supports_gpu_offload();
    find_cpu_variant(facts->cpu, sizeof facts->cpu);
    return ERR_OK;
}

static enum err open_file(const char *path, bool accept_untested, struct error *why)
{
    struct engine_library *facts = &process.facts;
    const char *const names[] = {path, NULL};
    *facts = (struct engine_library){0};
    enum err err = dl_open(&process.dl, NULL, names, why);
    if (err)
        return err;
    /* A system library has no directory in its name; the dynamic loader has its path. */
    char *found = strchr(path, '/') ? NULL : dl_loaded(path);
    free(process.path);
    process.path = found ? found : xstrdup(path);
    facts->path = process.dl.name = process.path;
    err = load_functions(&process.dl, &process.api, facts, accept_untested, why);
    if (!err)
        err = load_backends(&process.api, facts, why);
    if (err) {
        dl_close(&process.dl);
        return err;
    }
    if (!facts->is_tested)
        log_warn("%s is llama.cpp %s, which was not tested with this version of ipw (tested: %s)",
                 facts->path, facts->version[0] ? facts->version : "of unknown version",
                 engine_tested_versions());
    log_debug("in-process inference: llama.cpp %s, %s, CPU backend %s", facts->version, facts->path,
              facts->cpu[0] ? facts->cpu : "built in");
    return ERR_OK;
}

/* ---- searching ---- */

static enum err open_named(const char *path, const char *named_by, bool accept_untested,
                           struct error *why)
{
    char *file = shipped_library_at(path, "libllama");
    if (!file)
        return err_set(why, ERR_UNSUPPORTED, "%s %s: no libllama there", named_by, path);
    struct error reason;
    enum err err = open_file(file, accept_untested, &reason);
    free(file);
    if (err == ERR_ABSENT)
        return err_set(why, ERR_UNSUPPORTED, "%s: %s", named_by, reason.text);
    return err ? err_set(why, err, "%s", reason.text) : ERR_OK;
}

static enum err missing(const char *reason, struct error *why)
{
    return err_set(
        why, ERR_UNSUPPORTED,
        "%s%sin-process inference needs llama.cpp %s: install it with tools/setup build, "
        "or set IPW_LLAMA_LIB to its libllama",
        reason, *reason ? "; " : "", engine_tested_versions());
}

static enum err open_any(struct error *why)
{
    const char *from_environment = getenv("IPW_LLAMA_LIB");
    if (process.requested)
        return open_named(process.requested, "library", false, why);
    if (from_environment && *from_environment)
        return open_named(from_environment, "IPW_LLAMA_LIB", true, why);
    char *file = shipped_library(INSTALLED_FOLDER, IPW_LLAMA_FOLDER, "libllama");
    if (file) {
        struct error reason; /* it may be built for another architecture */
        enum err err = open_file(file, false, &reason);
        free(file);
        return err ? missing(reason.text, why) : ERR_OK;
    }
    for (size_t i = 0; i < COUNT_OF(SYSTEM_NAMES); i++) {
        enum err err = open_file(SYSTEM_NAMES[i], false, why);
        if (err != ERR_ABSENT)
            return err;
    }
    return missing("", why);
}

enum err engine_library_open(const struct engine_library **out, struct error *why)
{
    pthread_mutex_lock(&process.lock);
    enum err err = process.is_open ? ERR_OK : open_any(why);
    if (!err)
        process.is_open = true;
    pthread_mutex_unlock(&process.lock);
    if (!err)
        *out = &process.facts;
    return err;
}

enum err engine_library_use(const char *path, struct error *why)
{
    char *file = shipped_library_at(path, "libllama");
    if (!file)
        return err_set(why, ERR_NOT_FOUND, "library=%s: no libllama there", path);
    enum err err = ERR_OK;
    pthread_mutex_lock(&process.lock);
    if (process.is_open && !str_equal(process.facts.path, file))
        err = err_set(why, ERR_USAGE, "library=%s: this process already uses %s", path,
                      process.facts.path);
    else if (!process.is_open)
        str_set(&process.requested, file);
    pthread_mutex_unlock(&process.lock);
    free(file);
    return err;
}
