/* A libonnxruntime with a CUDA provider, which records what is requested of it: the metadata of a session has the
 * requests of its options under the key "requests".  FAKE_ORT_VERSION: the version of its API (99).  FAKE_ORT_CUDA: the
 * message with which its provider fails to start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ort_api.h"

struct ort_status {
    char message[200];
};

struct ort_options {
    char requests[200];
};

struct ort_session {
    char requests[200];
};

static struct ort_status *fail(const char *message)
{
    struct ort_status *status = calloc(1, sizeof *status);
    snprintf(status->message, sizeof status->message, "%s", message);
    return status;
}

static int error_code(const struct ort_status *status)
{
    (void)status;
    return ORT_FAIL;
}

static const char *error_message(const struct ort_status *status)
{
    return status->message;
}

static void release_status(struct ort_status *status)
{
    free(status);
}

static struct ort_status *create_env(ort_logger log, void *context, int level, const char *name,
                                     struct ort_env **out)
{
    (void)level;
    log(context, ORT_LOG_WARNING, "", name, "", "the fake has started");
    *out = (struct ort_env *)"env";
    return NULL;
}

static struct ort_status *create_host_memory(int allocator, int type, struct ort_memory **out)
{
    (void)allocator;
    (void)type;
    *out = (struct ort_memory *)"memory";
    return NULL;
}

static struct ort_status *default_allocator(struct ort_allocator **out)
{
    *out = (struct ort_allocator *)"allocator";
    return NULL;
}

static struct ort_status *free_memory(struct ort_allocator *allocator, void *memory)
{
    (void)allocator;
    free(memory);
    return NULL;
}

/* ---- options ---- */

static void note(struct ort_options *options, const char *what, int value)
{
    size_t used = strlen(options->requests);
    snprintf(options->requests + used, sizeof options->requests - used, "%s %d;", what, value);
}

static struct ort_status *create_options(struct ort_options **out)
{
    *out = calloc(1, sizeof **out);
    return NULL;
}

static void release_options(struct ort_options *options)
{
    free(options);
}

static struct ort_status *set_optimization(struct ort_options *options, int level)
{
    note(options, "optimization", level);
    return NULL;
}

static struct ort_status *set_intra_threads(struct ort_options *options, int threads)
{
    note(options, "threads", threads);
    return NULL;
}

static struct ort_status *set_inter_threads(struct ort_options *options, int threads)
{
    note(options, "inter", threads);
    return NULL;
}

static char *names[] = {"CUDAExecutionProvider", "CPUExecutionProvider"};

static struct ort_status *providers(char ***out, int *count)
{
    *out = names;
    *count = 2;
    return NULL;
}

static struct ort_status *release_providers(char **list, int count)
{
    return list == names && count == 2 ? NULL : fail("another list was released");
}

static struct ort_status *create_cuda(struct ort_cuda **out)
{
    *out = malloc(1);
    return NULL;
}

static void release_cuda(struct ort_cuda *cuda)
{
    free(cuda);
}

static struct ort_status *append_cuda(struct ort_options *options, const struct ort_cuda *cuda)
{
    if (getenv("FAKE_ORT_CUDA"))
        return fail(getenv("FAKE_ORT_CUDA"));
    note(options, "cuda", cuda != NULL);
    return NULL;
}

/* ---- sessions: no inputs and outputs ---- */

static struct ort_status *open_session(const struct ort_env *env, const char *path,
                                       const struct ort_options *options, struct ort_session **out)
{
    (void)env;
    (void)path;
    *out = calloc(1, sizeof **out);
    memcpy((*out)->requests, options->requests, sizeof options->requests);
    return NULL;
}

static void release_session(struct ort_session *session)
{
    free(session);
}

static struct ort_status *count_none(const struct ort_session *session, size_t *out)
{
    (void)session;
    *out = 0;
    return NULL;
}

static struct ort_status *metadata(const struct ort_session *session, struct ort_metadata **out)
{
    *out = (struct ort_metadata *)session;
    return NULL;
}

static struct ort_status *metadata_value(const struct ort_metadata *of,
                                         struct ort_allocator *allocator, const char *key,
                                         char **out)
{
    (void)allocator;
    *out = strcmp(key, "requests") ? NULL : strdup(((const struct ort_session *)of)->requests);
    return NULL;
}

static void release_metadata(struct ort_metadata *of)
{
    (void)of;
}

static const struct ort_api API = {
    .error_code = error_code,
    .error_message = error_message,
    .create_env = create_env,
    .open_session = open_session,
    .create_options = create_options,
    .set_optimization = set_optimization,
    .set_intra_threads = set_intra_threads,
    .set_inter_threads = set_inter_threads,
    .input_count = count_none,
    .output_count = count_none,
    .create_host_memory = create_host_memory,
    .free_memory = free_memory,
    .default_allocator = default_allocator,
    .release_status = release_status,
    .release_session = release_session,
    .release_options = release_options,
    .metadata = metadata,
    .metadata_value = metadata_value,
    .release_metadata = release_metadata,
    .providers = providers,
    .release_providers = release_providers,
    .append_cuda = append_cuda,
    .create_cuda = create_cuda,
    .release_cuda = release_cuda,
};

static const struct ort_api *get_api(uint32_t version)
{
    const char *own = getenv("FAKE_ORT_VERSION");
    return version <= (uint32_t)(own ? atoi(own) : 99) ? &API : NULL;
}

static const char *get_version(void)
{
    return "1.fake";
}

const struct ort_base *OrtGetApiBase(void);
#pragma GCC visibility push(default)
const struct ort_base *OrtGetApiBase(void)
{
    static const struct ort_base BASE = {get_api, get_version};
    return &BASE;
}
#pragma GCC visibility pop
