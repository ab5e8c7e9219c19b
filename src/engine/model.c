/* Models: a check of the GGUF header, a trial load in a child process, the load itself, the tokenizer and chat
 * template, and models shared within the process.
 *
 * The library validates much of a file by assertions that abort the process.  Therefore a forked child first loads the
 * metadata, vocabulary and graph without the weights: a file that aborts the child is corrupt. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/llama_api.h"

/* ---- the header of a GGUF file ---- */

struct gguf_header {
    char magic[4];
    uint32_t version;
    uint64_t tensors;
    uint64_t keys;
};

static enum err check_header(int file, const char *path, struct error *why)
{
    struct gguf_header header;
    ssize_t length = pread(file, &header, sizeof header, 0);
    if (length >= 4 && memcmp(header.magic, "GGUF", 4) != 0)
        return err_set(why, ERR_BAD_VALUE, "%s is not a GGUF file", path);
    if (length < (ssize_t)sizeof header)
        return err_set(why, ERR_BAD_VALUE, "%s is truncated: it ends within its header", path);
    if (header.version != 2 && header.version != 3)
        return err_set(why, ERR_BAD_VALUE, "%s has GGUF version %u, expected 2 or 3", path,
                       header.version);
    if (header.tensors == 0)
        return err_set(why, ERR_BAD_VALUE, "%s has no tensors: it is a vocabulary only", path);
    return ERR_OK;
}

static enum err check_file(const char *path, struct error *why)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        enum err err = err_from_errno(errno);
        return err_set(why, err, "cannot read the model %s: %s", path, err_text(err));
    }
    struct stat found;
    enum err err = ERR_OK;
    if (fstat(file, &found) || !S_ISREG(found.st_mode))
        err = err_set(why, ERR_BAD_VALUE, "the model %s is not a regular file", path);
    else
        err = check_header(file, path, why);
    close(file);
    return err;
}

/* ---- trial load ---- */

enum {
    TRIAL_CONTEXT = 64, /* tokens */
    TRIAL_STALL_S = 5,
    TRIAL_POLL_MS = 100,
    TRIAL_ATTEMPTS = 3
};

/* First byte of the child's report; no report means that it died. */
enum { TRIAL_FAILED = '-', TRIAL_PASSED = '+', TRIAL_ABORTED = '!' };

static int trial_report_fd; /* used in the child only */

static void trial_report(char result, const char *message)
{
    char line[256];
    chars_format(line, "%c%s", result, message);
    size_t length = strlen(line);
    while (write(trial_report_fd, line, length) < 0 && errno == EINTR)
        ;
}

/* "FILE:LINE: what failed", without the path. */
static void on_trial_abort(const char *message)
{
    const char *what = strstr(message, ": ");
    trial_report(TRIAL_ABORTED, what ? what + 2 : message);
    _exit(1);
}

/* Buffered output of the parent must not be written twice, and its locks must not be waited for. */
static void detach_trial(const struct llama_api *api)
{
    log_to(NULL, LOG_ERROR);
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard <= 2 && null_device >= 0; standard++)
        dup2(null_device, standard);
    api->ggml_set_abort_callback(on_trial_abort);
    engine_log_clear();
}

_Noreturn static void run_trial(const struct llama_api *api, const char *path, bool has_gpu)
{
    detach_trial(api);
    void *no_device = NULL;
    struct llama_model_params model_params = api->model_params;
    model_params.devices = &no_device;
    model_params.n_gpu_layers = 0;
    model_params.load_mode = LLAMA_LOAD_READ;
    model_params.no_alloc = !has_gpu;
    model_params.vocab_only = has_gpu;
    struct llama_model *model = api->llama_model_load_from_file(path, model_params);
    struct llama_context_params context_params = api->context_params;
    context_params.n_ctx = context_params.n_batch = context_params.n_ubatch = TRIAL_CONTEXT;
    bool passed = model && (has_gpu || api->llama_init_from_model(model, context_params));
    trial_report(passed ? TRIAL_PASSED : TRIAL_FAILED, passed ? "" : engine_log_error());
    _exit(0);
}

/* CPU time of the process, in ns; -1 if unknown. */
static int64_t cpu_time_of(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static bool is_canceled(const atomic_bool *cancel)
{
    return cancel && atomic_load(cancel);
}

/* Waits for data.  False: for TRIAL_STALL_S the child has neither reported nor used CPU time, or it was canceled. */
static bool wait_for_report(int from, pid_t child, const atomic_bool *cancel)
{
    int64_t used = -1;
    for (int still = 0; still < TRIAL_STALL_S * 1000 / TRIAL_POLL_MS && !is_canceled(cancel);) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int n = poll(&ready, 1, TRIAL_POLL_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
        int64_t now = cpu_time_of(child);
        still = now == used ? still + 1 : 0;
        used = now;
    }
    return false;
}

/* False: the child stalls, or was canceled. */
static bool read_report(int from, pid_t child, const atomic_bool *cancel, char *to, size_t size)
{
    size_t used = 0;
    bool alive = true;
    while ((alive = wait_for_report(from, child, cancel))) {
        /* The caller's lock serializes trials.
         * NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection) */
        ssize_t n = read(from, to + used, size - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    to[used] = '\0';
    return alive;
}

static const char *or_unspecified(const char *message)
{
    return message[0] ? message : "unspecified error";
}

/* "llama.cpp cannot load FILE: MESSAGE", with the error code implied by the library's message. */
static enum err load_error(const char *path, const char *message, struct error *why)
{
    enum err err = ERR_BAD_VALUE;
    if (strstr(message, "unknown model architecture") || strstr(message, "unsupported"))
        err = ERR_UNSUPPORTED;
    else if (strstr(message, "alloc"))
        err = ERR_NO_SPACE;
    return err_set(why, err, "llama.cpp cannot load %s: %s", path, or_unspecified(message));
}

static enum err trial_result(const char *report, int status, const char *path, struct error *why)
{
    if (report[0] == TRIAL_PASSED)
        return ERR_OK;
    if (report[0] == TRIAL_FAILED)
        return load_error(path, report + 1, why);
    if (report[0] == TRIAL_ABORTED)
        return err_set(why, ERR_BAD_VALUE, "%s is corrupt; llama.cpp aborts at: %s", path,
                       or_unspecified(report + 1));
    return err_set(why, ERR_BAD_VALUE, "%s is corrupt: llama.cpp crashes on it (signal %d)", path,
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* `has_gpu`: GPU libraries do not survive a fork, so only the vocabulary is tried then.  `stalled`: the child waited
 * for a lock that another of our threads held at the fork. */
static enum err try_once(const struct llama_api *api, const char *path, bool has_gpu,
                         const atomic_bool *cancel, bool *stalled, struct error *why)
{
    int pipe_ends[2];
    if (pipe(pipe_ends))
        return err_set(why, err_from_errno(errno), "cannot create a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(pipe_ends[0]);
        trial_report_fd = pipe_ends[1];
        run_trial(api, path, has_gpu);
    }
    close(pipe_ends[1]);
    if (child < 0) {
        enum err err = err_from_errno(errno);
        close(pipe_ends[0]);
        return err_set(why, err, "cannot fork to try the model: %s", err_text(err));
    }
    char report[256] = "";
    *stalled = !read_report(pipe_ends[0], child, cancel, report, sizeof report);
    close(pipe_ends[0]);
    if (*stalled)
        kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return *stalled ? ERR_OK : trial_result(report, status, path, why);
}

static enum err canceled(const char *path, struct error *why)
{
    return err_set(why, ERR_INTERRUPTED, "interrupted while %s was being loaded", path);
}

/* Other threads run at the fork, and not every allocator is fork-safe (the sanitizers' is not).  The trial only
 * protects this process: if it is not possible, the model is loaded without it. */
static enum err try_load(const struct llama_api *api, const char *path, bool has_gpu,
                         const atomic_bool *cancel, struct error *why)
{
    bool stalled = true;
    enum err err = ERR_OK;
    for (int attempt = 0; stalled && !err && attempt < TRIAL_ATTEMPTS; attempt++) {
        err = try_once(api, path, has_gpu, cancel, &stalled, why);
        if (!err && is_canceled(cancel))
            err = canceled(path, why);
    }
    if (stalled && !err)
        log_warn("%s: the trial load made no progress for %d s; loaded without it", path,
                 TRIAL_STALL_S);
    return err;
}

/* ---- threads that persist between graphs ---- */

/* Without a pool some builds start threads for every graph, and for every part of a stopped one.  As declared by the
 * library; its default values are checked. */
struct pool_params {
    bool cpus[512];
    int32_t threads;
    int32_t priority;
    uint32_t poll; /* 0 .. 100: how long threads spin before they sleep */
    bool strict;
    bool paused;
    char reserve[256]; /* for members of later versions */
};

engine_function engine_cpu_function(const char *name)
{
    enum { DEVICE_CPU = 0 };
    const struct llama_api *api = engine_api();
    struct ggml_backend_device *device = api->ggml_backend_dev_by_type(DEVICE_CPU);
    struct ggml_backend_reg *reg = device ? api->ggml_backend_dev_backend_reg(device) : NULL;
    void *found = reg ? api->ggml_backend_reg_get_proc_address(reg, name) : NULL;
    engine_function out;
    memcpy(&out, &found, sizeof out);
    return out;
}

struct ggml_threadpool *engine_pool_new(int threads)
{
    struct pool_params params = {.threads = -1, .poll = UINT32_MAX};
    struct ggml_threadpool *(*make)(struct pool_params *) =
        (struct ggml_threadpool * (*)(struct pool_params *))
            engine_cpu_function("ggml_threadpool_new");
    if (!make)
        return NULL;
    engine_api()->ggml_threadpool_params_init(&params, threads);
    if (params.threads != threads || params.poll > 100)
        return NULL; /* layout differs from our declaration */
    /* The pool keeps no pointer into params. */
    /* cppcheck-suppress returnDanglingLifetime */
    return make(&params);
}

void engine_pool_free(struct ggml_threadpool *pool)
{
    if (!pool)
        return;
    void (*free_pool)(struct ggml_threadpool *) =
        (void (*)(struct ggml_threadpool *))engine_cpu_function("ggml_threadpool_free");
    if (free_pool)
        free_pool(pool);
}

struct ggml_threadpool *engine_model_threads(struct engine_model *model, int threads)
{
    if (!model->threads)
        model->threads = engine_pool_new(threads);
    return model->threads;
}

/* ---- loading ---- */

static void read_facts(const struct llama_api *api, struct engine_model *model)
{
    struct engine_model_facts *facts = &model->facts;
    const struct llama_model *llama = model->llama;
    if (api->llama_model_desc(llama, facts->description, sizeof facts->description) < 0)
        facts->description[0] = '\0';
    facts->parameters = api->llama_model_n_params(llama);
    facts->tensor_bytes = api->llama_model_size(llama);
    facts->layers = api->llama_model_n_layer(llama);
    facts->embedding = api->llama_model_n_embd(llama);
    facts->heads = api->llama_model_n_head(llama);
    facts->heads_kv = api->llama_model_n_head_kv(llama);
    facts->trained_context = api->llama_model_n_ctx_train(llama);
    facts->vocabulary = api->llama_vocab_n_tokens(model->vocabulary);
    facts->has_chat_template = model->chat_template != NULL;
    facts->has_tool_call_tag =
        facts->has_chat_template && strstr(model->chat_template, "<tool_call>");
    facts->begin = api->llama_vocab_get_add_bos(model->vocabulary)
                       ? api->llama_vocab_bos(model->vocabulary)
                       : -1;
}

/* Properties for which the library would abort the process later. */
static enum err check_model(const struct llama_api *api, const struct engine_model *model,
                            const char *path, struct error *why)
{
    if (api->llama_vocab_type(model->vocabulary) == LLAMA_VOCAB_NONE)
        return err_set(why, ERR_UNSUPPORTED, "%s has no vocabulary", path);
    if (api->llama_model_has_encoder(model->llama) || !api->llama_model_has_decoder(model->llama))
        return err_set(why, ERR_UNSUPPORTED, "%s is not a decoder-only text model", path);
    const struct engine_model_facts *facts = &model->facts;
    if (facts->layers <= 0 || facts->embedding <= 0 || facts->vocabulary <= 0)
        return err_set(why, ERR_BAD_VALUE, "%s has no layers, or no vocabulary", path);
    return ERR_OK;
}

/* Called by the library as it loads tensors; false ends loading. */
static bool continue_loading(float progress, void *cancel)
{
    (void)progress;
    return !is_canceled(cancel);
}

static enum err load(const struct llama_api *api, const char *path,
                     const struct engine_model_options *options, struct engine_model *model,
                     struct error *why)
{
    struct llama_model_params params = api->model_params;
    params.n_gpu_layers = options->gpu_layers;
    params.load_mode = options->no_map ? LLAMA_LOAD_READ : LLAMA_LOAD_AUTO;
    params.check_tensors = options->check_tensors;
    params.progress_callback = continue_loading;
    params.progress_callback_user_data = (void *)options->cancel;
    engine_log_clear();
    model->llama = api->llama_model_load_from_file(path, params);
    if (!model->llama && is_canceled(options->cancel))
        return canceled(path, why);
    if (!model->llama)
        return load_error(path, engine_log_error(), why);
    model->vocabulary = api->llama_model_get_vocab(model->llama);
    model->chat_template = api->llama_model_chat_template(model->llama, NULL);
    read_facts(api, model);
    return check_model(api, model, path, why);
}

enum err engine_model_open(const char *path, const struct engine_model_options *options,
                           struct engine_model **out, struct error *why)
{
    const struct engine_library *library;
    enum err err = engine_library_open(&library, why);
    if (!err && options->gpu_layers != 0 && !library->has_gpu)
        return err_set(why, ERR_UNSUPPORTED, "gpu_layers: %s cannot use a GPU here", library->path);
    if (!err)
        err = check_file(path, why);
    if (!err)
        err = try_load(engine_api(), path, library->has_gpu, options->cancel, why);
    if (err)
        return err;
    struct engine_model *model = XNEW(model);
    model->options = *options;
    model->options.cancel = NULL; /* may not outlive this call */
    model->path = xstrdup(path);
    err = load(engine_api(), path, options, model, why);
    if (err) {
        engine_model_close(model);
        return err;
    }
    *out = model;
    return ERR_OK;
}

void engine_model_close(struct engine_model *model)
{
    if (!model)
        return;
    if (model->llama)
        engine_api()->llama_model_free(model->llama);
    engine_pool_free(model->threads);
    free(model->path);
    free(model);
}

const struct engine_model_facts *engine_model_facts(const struct engine_model *model)
{
    return &model->facts;
}

const char *engine_model_path(const struct engine_model *model)
{
    return model->path;
}

/* ---- shared models ---- */

/* Most recently used first.  The lock is held while loading, so that concurrent requests do not load a file twice. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine_model *shared_models;

static bool has_options(const struct engine_model *model,
                        const struct engine_model_options *options)
{
    return model->options.gpu_layers == options->gpu_layers &&
           model->options.no_map == options->no_map &&
           model->options.check_tensors == options->check_tensors;
}

static void close_unused(bool keep_first)
{
    for (struct engine_model **at = &shared_models; *at;) {
        struct engine_model *model = *at;
        if (model->users > 0 || (keep_first && at == &shared_models)) {
            at = &model->next;
            continue;
        }
        *at = model->next;
        engine_model_close(model);
    }
}

static void move_to_front(struct engine_model *model)
{
    struct engine_model **at = &shared_models;
    while (*at && *at != model)
        at = &(*at)->next;
    if (*at)
        *at = model->next;
    model->next = shared_models;
    shared_models = model;
}

enum err engine_model_acquire(const char *path, const struct engine_model_options *options,
                              struct engine_model **out, double *load_s, struct error *why)
{
    pthread_mutex_lock(&shared_lock);
    struct engine_model *model = shared_models;
    while (model && (!str_equal(model->path, path) || !has_options(model, options)))
        model = model->next;
    enum err err = ERR_OK;
    *load_s = 0;
    if (!model) {
        nanos began = clock_now();
        close_unused(false); /* first: both might not fit into memory */
        err = engine_model_open(path, options, &model, why);
        *load_s = seconds(clock_now() - began);
    }
    if (!err && model) {
        model->users++;
        move_to_front(model);
        *out = model;
    }
    pthread_mutex_unlock(&shared_lock);
    return err;
}

struct engine_model *engine_model_acquire_last(const struct engine_model_options *options)
{
    pthread_mutex_lock(&shared_lock);
    struct engine_model *model =
        shared_models && has_options(shared_models, options) ? shared_models : NULL;
    if (model)
        model->users++;
    pthread_mutex_unlock(&shared_lock);
    return model;
}

void engine_model_release(struct engine_model *model)
{
    if (!model)
        return;
    pthread_mutex_lock(&shared_lock);
    model->users--;
    close_unused(true);
    pthread_mutex_unlock(&shared_lock);
}

/* ---- text and tokens ---- */

void engine_tokens_release(struct engine_tokens *tokens)
{
    free(tokens->ids);
    *tokens = (struct engine_tokens){0};
}

static void reserve(struct engine_tokens *tokens, size_t more)
{
    if (tokens->capacity - tokens->count >= more)
        return;
    tokens->capacity = tokens->count + more;
    tokens->ids = xreallocarray(tokens->ids, tokens->capacity, sizeof *tokens->ids);
}

enum err engine_tokenize(const struct engine_model *model, const char *text, size_t length,
                         bool begin, bool special, struct engine_tokens *out, struct error *why)
{
    enum { LENGTH_MAX = 1 << 30 };
    if (length > LENGTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "a text of %zu bytes is too long to tokenize", length);
    size_t size = length + 16; /* at most one per byte, plus a few special ones */
    for (int attempt = 0; attempt < 2; attempt++) {
        reserve(out, size);
        int32_t count =
            engine_api()->llama_tokenize(model->vocabulary, text, (int32_t)length,
                                         out->ids + out->count, (int32_t)size, begin, special);
        if (count >= 0) {
            out->count += (size_t)count;
            return ERR_OK;
        }
        if (count == INT32_MIN)
            break;
        size = (size_t)-count;
    }
    return err_set(why, ERR_BAD_VALUE, "llama.cpp cannot tokenize this text");
}

enum err engine_detokenize(const struct engine_model *model, engine_token token, struct text *out)
{
    char small[64];
    if (token < 0 || token >= model->facts.vocabulary)
        return ERR_BAD_VALUE;
    int32_t length =
        engine_api()->llama_token_to_piece(model->vocabulary, token, small, sizeof small, 0, false);
    if (length >= 0) {
        text_add_bytes(out, small, (size_t)length);
        return ERR_OK;
    }
    char *large = xmalloc((size_t)-length);
    length = engine_api()->llama_token_to_piece(model->vocabulary, token, large, -length, 0, false);
    if (length >= 0)
        text_add_bytes(out, large, (size_t)length);
    free(large);
    return length < 0 ? ERR_BAD_VALUE : ERR_OK;
}

bool engine_is_end(const struct engine_model *model, engine_token token)
{
    return engine_api()->llama_vocab_is_eog(model->vocabulary, token);
}

/* Formats into a buffer that is large enough at the second attempt. */
static enum err format_chat(const struct engine_model *model,
                            const struct llama_chat_message *messages, size_t count, size_t size,
                            struct text *out, struct error *why)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (size > INT32_MAX)
            break;
        char *to = xmalloc(size);
        int32_t length = engine_api()->llama_chat_apply_template(model->chat_template, messages,
                                                                 count, true, to, (int32_t)size);
        bool fits = length >= 0 && (size_t)length <= size;
        if (fits)
            text_add_bytes(out, to, (size_t)length);
        free(to);
        if (fits)
            return ERR_OK;
        if (length < 0)
            break;
        size = (size_t)length + 1;
    }
    return err_set(why, ERR_UNSUPPORTED,
                   "llama.cpp cannot apply the model's chat template; set chat=off to send the "
                   "prompt unchanged");
}

enum err engine_apply_chat_template(const struct engine_model *model,
                                    const struct engine_message *messages, size_t count,
                                    struct text *out, struct error *why)
{
    size_t size = 1024;
    if (!model->chat_template)
        return err_set(why, ERR_UNSUPPORTED, "the model has no chat template");
    struct llama_chat_message *list = xcalloc(count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct llama_chat_message){messages[i].role, messages[i].text};
        size += strlen(messages[i].text) + 64;
    }
    enum err err = format_chat(model, list, count, size, out, why);
    free(list);
    return err;
}
