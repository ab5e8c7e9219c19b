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

/* Closes those that nobody uses, but for `kept`. */
static void close_unused(const struct shared_model *kept)
{
    for (struct shared_model **at = &loaded; *at;) {
        struct shared_model *model = *at;
        if (model->users > 0 || model == kept) {
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

static enum err load(const char *path, const struct engine_model_options *options,
                     struct shared_model **out, struct error *why)
{
    struct shared_model *model = calloc(1, sizeof *model);
    if (!model)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a model");
    if (!str_copy(model->path, sizeof model->path, path)) {
        free(model);
        return err_set(why, ERR_BAD_VALUE, "the path of the model is too long");
    }
    close_unused(NULL); /* before: the two might not fit together */
    enum err err = engine_model_open(path, options, &model->engine, why);
    if (err) {
        free(model);
        return err;
    }
    model->options = *options;
    *out = model;
    return ERR_OK;
}

enum err shared_take(const char *path, const struct engine_model_options *options,
                     struct shared_model **out, double *load_s, struct error *why)
{
    pthread_mutex_lock(&lock);
    struct shared_model *model = loaded;
    while (model && (strcmp(model->path, path) != 0 || !is_same(model, options)))
        model = model->next;
    enum err err = ERR_OK;
    *load_s = 0;
    if (!model) {
        nanos began = clock_now();
        err = load(path, options, &model, why);
        *load_s = seconds(clock_now() - began);
    }
    if (!err) {
        model->users++;
        move_to_front(model);
        *out = model;
    }
    pthread_mutex_unlock(&lock);
    return err;
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
    close_unused(loaded);
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
