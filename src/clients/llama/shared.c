#include "clients/llama/shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

struct shared_model {
    struct shared_model *next;
    struct engine_model *engine;
    struct engine_model_options options;
    unsigned users;
    char path[512];
};

/* The model used last is the first.  The lock is held while loading, so that two that ask for the same
 * file do not load it twice. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_model *loaded;

static bool is_same(const struct shared_model *model, const struct engine_model_options *options)
{
    return model->options.gpu_layers == options->gpu_layers &&
           model->options.no_map == options->no_map &&
           model->options.check_tensors == options->check_tensors;
}

/* Closes those that nobody uses; the first may stay for the next to come. */
static void close_unused(bool keep_first)
{
    for (struct shared_model **at = &loaded; *at;) {
        struct shared_model *model = *at;
        if (model->users > 0 || (keep_first && at == &loaded)) {
            at = &model->next;
            continue;
        }
        *at = model->next;
        engine_model_close(model->engine);
        free(model);
    }
}

static void move_to_front(struct shared_model *model)
{
    struct shared_model **at = &loaded;
    while (*at && *at != model)
        at = &(*at)->next;
    if (*at)
        *at = model->next;
    model->next = loaded;
    loaded = model;
}

/* NULL, with *why told, when it cannot be loaded. */
static struct shared_model *load(const char *path, const struct engine_model_options *options,
                                 struct error *why)
{
    struct shared_model *model = calloc(1, sizeof *model);
    if (!model) {
        err_set(why, ERR_NO_MEMORY, "out of memory for a model");
        return NULL;
    }
    close_unused(false); /* before: the two might not fit together */
    if (!str_copy(model->path, sizeof model->path, path))
        err_set(why, ERR_BAD_VALUE, "the path of the model is too long");
    else if (engine_model_open(path, options, &model->engine, why) == ERR_OK)
        model->options = *options;
    if (model->engine)
        return model;
    free(model);
    return NULL;
}

enum err shared_take(const char *path, const struct engine_model_options *options,
                     struct shared_model **out, double *load_s, struct error *why)
{
    pthread_mutex_lock(&lock);
    struct shared_model *model = loaded;
    while (model && (strcmp(model->path, path) != 0 || !is_same(model, options)))
        model = model->next;
    struct error because = {.code = ERR_OK};
    *load_s = 0;
    if (!model) {
        nanos began = clock_now();
        model = load(path, options, &because);
        *load_s = seconds(clock_now() - began);
    }
    if (model) {
        model->users++;
        move_to_front(model);
        *out = model;
    }
    pthread_mutex_unlock(&lock);
    return model ? ERR_OK : err_set(why, because.code, "%s", because.text);
}

struct shared_model *shared_take_last(const struct engine_model_options *options)
{
    pthread_mutex_lock(&lock);
    struct shared_model *model = loaded && is_same(loaded, options) ? loaded : NULL;
    if (model)
        model->users++;
    pthread_mutex_unlock(&lock);
    return model;
}

void shared_give(struct shared_model *model)
{
    if (!model)
        return;
    pthread_mutex_lock(&lock);
    model->users--;
    close_unused(true);
    pthread_mutex_unlock(&lock);
}

struct engine_model *shared_engine(struct shared_model *model)
{
    return model->engine;
}

const char *shared_path(const struct shared_model *model)
{
    return model->path;
}
