#include "engine/llama/pool.h"

#include <string.h>

#include "engine/llama/api.h"

enum { MOST_THREADS = 512, DEVICE_CPU = 0 };

/* As the library declares it; whether it does is seen from what it fills in. */
struct pool_params {
    bool cpus[MOST_THREADS];
    int32_t threads;
    int32_t priority;
    uint32_t poll; /* 0 .. 100: how long threads look for work before they sleep */
    bool strict;
    bool paused;
    char room[256]; /* for what a later version may add */
};

typedef void (*procedure)(void);

/* These two are in the library of the CPU's code, which the other one finds. */
static procedure find(const char *name)
{
    const struct llama_api *api = llama_api();
    struct ggml_backend_device *device = api->ggml_backend_dev_by_type(DEVICE_CPU);
    struct ggml_backend_reg *reg = device ? api->ggml_backend_dev_backend_reg(device) : NULL;
    void *found = reg ? api->ggml_backend_reg_get_proc_address(reg, name) : NULL;
    procedure out;
    memcpy(&out, &found, sizeof out);
    return out;
}

struct ggml_threadpool *pool_new(int threads)
{
    struct pool_params params = {.threads = -1, .poll = UINT32_MAX};
    struct ggml_threadpool *(*make)(struct pool_params *) =
        (struct ggml_threadpool * (*)(struct pool_params *)) find("ggml_threadpool_new");
    if (!make)
        return NULL;
    llama_api()->ggml_threadpool_params_init(&params, threads);
    if (params.threads != threads || params.poll > 100)
        return NULL; /* not as declared */
    /* What is made keeps nothing of it. */
    /* cppcheck-suppress returnDanglingLifetime */
    return make(&params);
}

void pool_free(struct ggml_threadpool *pool)
{
    void (*unmake)(struct ggml_threadpool *) =
        (void (*)(struct ggml_threadpool *))find("ggml_threadpool_free");
    if (pool && unmake)
        unmake(pool);
}
