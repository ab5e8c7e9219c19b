/* Opens libllama, looks whether it is one that we know, and makes it ready. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "engine/engine.h"
#include "engine/llama/api.h"
#include "engine/llama/find.h"
#include "engine/llama/shape.h"
#include "engine/llama/words.h"
#include "port/dl.h"

/* Functions change their arguments from version to version, which no look at a library shows: only
 * those that our declarations were written and tested for are taken. */
static const char *const VERSIONS[] = {"0.5.0", "0.5.0-dev"};
#define VERSIONS_SHOWN "0.5.0"
#define BRING_IT                                                                                   \
    "in-process inference needs llama.cpp " VERSIONS_SHOWN                                         \
    ": install it with tools/setup build, or set IPW_LLAMA_LIB to its libllama"

static const char *const SYSTEM_NAMES[] = {"libllama.so.0", "libllama.so"};

static struct {
    pthread_mutex_t lock;
    bool is_open;
    char asked[512]; /* for by engine_library_use; "" for nothing */
    struct dl dl;
    struct llama_api api;
    struct engine_library facts;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct llama_api *llama_api(void)
{
    return &process.api;
}

/* ---- is it one we know? ---- */

static bool is_known_version(const char *version)
{
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++)
        if (strcmp(VERSIONS[i], version) == 0)
            return true;
    return false;
}

static enum err unfit(const char *path, const char *version, const char *because, struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "%s is llama.cpp %s, where %s fits: %s", path,
                   version[0] ? version : "of an unknown version", VERSIONS_SHOWN, because);
}

static enum err look_at(struct dl *dl, struct llama_api *api, struct engine_library *facts,
                        struct error *why)
{
    const char *(*says_version)(void) = NULL;
    llama_defaults model = NULL;
    llama_defaults context = NULL;
    const struct dl_symbol shape[] = {
        {"llama_version", &says_version, false},
        {"llama_model_default_params", &model, true},
        {"llama_context_default_params", &context, true},
    };
    const struct dl_symbol all[] = {
#define SYMBOL(result, name, arguments) {#name, &api->name, true},
#include "engine/llama/api.def"
#undef SYMBOL
    };
    struct error because;
    enum err err = dl_load(dl, shape, sizeof shape / sizeof *shape, &because);
    str_copy(facts->version, sizeof facts->version, says_version ? says_version() : "");
    if (!err)
        err = llama_take_defaults(model, context, api, &because);
    if (!err)
        err = dl_load(dl, all, sizeof all / sizeof *all, &because);
    if (!err && !is_known_version(facts->version))
        err = err_set(&because, ERR_UNSUPPORTED, "its functions may take other arguments");
    return err ? unfit(facts->path, facts->version, because.text, why) : ERR_OK;
}

/* ---- making it ready ---- */

/* "haswell" of ".../libggml-cpu-haswell.so". */
static void find_cpu_variant(char *to, size_t size)
{
    static const char PART[] = "/libggml-cpu-";
    char path[512];
    to[0] = '\0';
    if (!dl_loaded(PART, path, sizeof path))
        return;
    char *variant = strstr(path, PART) + sizeof PART - 1;
    char *suffix = strstr(variant, ".so");
    if (suffix)
        *suffix = '\0';
    str_copy(to, size, variant);
}

/* The code for processors and GPUs lies beside the library, in files of its own. */
static enum err make_ready(const struct llama_api *api, struct engine_library *facts,
                           struct error *why)
{
    api->llama_log_set(words_take, NULL);
    api->ggml_set_abort_callback(words_last);
    words_forget();
    char folder[sizeof facts->path];
    str_copy(folder, sizeof folder, facts->path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
        api->ggml_backend_load_all_from_path(folder);
    }
    if (api->ggml_backend_reg_count() == 0)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s has no libggml-cpu-*.so beside it that this processor can run",
                       facts->path);
    api->llama_backend_init();
    facts->has_gpu = api->llama_supports_gpu_offload();
    find_cpu_variant(facts->cpu, sizeof facts->cpu);
    return ERR_OK;
}

static enum err open_at(const char *path, struct error *why)
{
    struct engine_library *facts = &process.facts;
    const char *const names[] = {path, NULL};
    *facts = (struct engine_library){0};
    enum err err = dl_open(&process.dl, names, why);
    if (err)
        return err;
    /* A system's name has no folder; the loader knows where it found it. */
    if (strchr(path, '/') || !dl_loaded(path, facts->path, sizeof facts->path))
        str_copy(facts->path, sizeof facts->path, path);
    err = look_at(&process.dl, &process.api, facts, why);
    if (!err)
        err = make_ready(&process.api, facts, why);
    if (err)
        dl_close(&process.dl);
    else
        log_debug("in-process inference: llama.cpp %s of %s, CPU code %s", facts->version,
                  facts->path, facts->cpu[0] ? facts->cpu : "built in");
    return err;
}

/* ---- which one ---- */

static enum err open_named(const char *path, const char *named_by, struct error *why)
{
    char file[512];
    if (!llama_find_at(path, file, sizeof file))
        return err_set(why, ERR_UNSUPPORTED, "%s %s: there is no libllama", named_by, path);
    struct error because;
    enum err err = open_at(file, &because);
    if (err == ERR_ABSENT)
        return err_set(why, ERR_UNSUPPORTED, "%s: %s", named_by, because.text);
    return err ? err_set(why, err, "%s", because.text) : ERR_OK;
}

static enum err open_any(struct error *why)
{
    const char *from_environment = getenv("IPW_LLAMA_LIB");
    if (process.asked[0])
        return open_named(process.asked, "library", why);
    if (from_environment && *from_environment)
        return open_named(from_environment, "IPW_LLAMA_LIB", why);
    char file[512];
    if (llama_find_brought(file, sizeof file)) {
        struct error because;
        enum err err = open_at(file, &because);
        /* What was brought may be of another machine's kind. */
        return err ? err_set(why, ERR_UNSUPPORTED, "%s; %s", because.text, BRING_IT) : ERR_OK;
    }
    for (size_t i = 0; i < sizeof SYSTEM_NAMES / sizeof *SYSTEM_NAMES; i++) {
        enum err err = open_at(SYSTEM_NAMES[i], why);
        if (err != ERR_ABSENT)
            return err;
    }
    return err_set(why, ERR_UNSUPPORTED, BRING_IT);
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
    char file[512];
    if (!llama_find_at(path, file, sizeof file))
        return err_set(why, ERR_NOT_FOUND, "library=%s: there is no libllama", path);
    enum err err = ERR_OK;
    pthread_mutex_lock(&process.lock);
    if (process.is_open && strcmp(process.facts.path, file) != 0)
        err = err_set(why, ERR_USAGE, "library=%s: this process already uses %s", path,
                      process.facts.path);
    else if (!process.is_open)
        str_copy(process.asked, sizeof process.asked, file);
    pthread_mutex_unlock(&process.lock);
    return err;
}
