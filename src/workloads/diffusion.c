/* Image generation by a latent or pixel diffusion model in the layout of diffusers' ONNX pipelines:
 *
 *   model_index.json                  "_class_name": "StableDiffusionPipeline", "DDIMPipeline" ...
 *   scheduler/scheduler_config.json   noise schedule and prediction type, as diffusers writes it
 *   unet/model.onnx                   inputs, in any order: sample [batch, channels, height, width];
 *                                     timestep, a scalar, [1] or [batch], int64 or float; and one of
 *                                     encoder_hidden_states [batch, tokens, width] for a text or class embedding,
 *                                     class_labels [batch] int64, or neither (unconditional).  Output 0 is the
 *                                     prediction, of the sample's shape.  Float32 or float16.
 *   unet/config.json                  optional: "sample_size", if the file leaves height and width free
 *   text_encoder/model.onnx           with tokenizer/: input_ids [1, 77] -> last_hidden_state
 *   vae_decoder/model.onnx            latent_sample -> sample in -1..1; with vae_decoder/config.json:
 *                                     "scaling_factor" (0.18215).  Without a VAE decoder the sample is the image, in
 *                                     -1..1, of 1 or 3 channels.
 *   class_embeddings.npy              instead of a text encoder: float32 [classes + 1, tokens, width]
 *
 * A class-conditional model lists its classes in model_index.json: "ipw_classes": ["circle", "square", ...].  A class is
 * its index there; the index after the last means "no class", for guidance.  "ipw_steps" and "ipw_guidance" are the
 * defaults of the model's steps and guidance (otherwise 50 steps, and a guidance of 7.5 for text, 1 for classes).
 *
 * A query is a prompt, or the name or index of a class.  It may end in " seed=N", which replaces the parameter: each of
 * several images of the same prompt needs a seed of its own.
 *
 * Noise: element i of the sample, in C order, is the i-th random_normal of random_from(seed, 0); that of step k, from 1
 * on, which DDIM adds with eta > 0, is of random_from(seed, k).
 *
 * This file has the driver, the parameters and the loop over steps; diffusion_model.c opens the files, diffusion_run.c
 * runs them, and scheduler.c has the schedulers. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "media/image.h"
#include "port/file.h"
#include "port/npy.h"
#include "wire/completion.h"
#include "graders/clip_tokens.h"
#include "workloads/diffusion_model.h"
#include "workloads/model_files.h"
#include "workloads/scheduler.h"
#include "workloads/workload.h"

enum {
    DEFAULT_STEPS = 50,
    SIDE_MAX = 4096, /* of an image */
    SIDE_UNIT = 8,   /* pixels: networks halve the sides a few times */
};
static const double DEFAULT_TEXT_GUIDANCE = 7.5;

/* Of the answer; .npy has the numbers before they are rounded to bytes. */
enum { FORMAT_PNG, FORMAT_NPY };
static const char *const FORMATS[] = {[FORMAT_PNG] = "png", [FORMAT_NPY] = "npy", NULL};

/* Index of the two predictions of guidance. */
enum { WITHOUT, WITH };

struct query {
    struct scheduler scheduler;
    struct diffusion_guide guide;
    uint64_t steps, seed;
    int format;
    int64_t *ids[2];                   /* of texts */
    struct diffusion_values states[2]; /* of texts, once they are encoded */
    size_t height, width, count;       /* of the sample */
    float *sample;
    struct diffusion_values image;
};

/* ---- the workload ---- */

static void close_diffusion(struct workload *workload)
{
    diffusion_model_close(workload->state);
    free(workload->state);
}

static enum err open_diffusion(const struct workload_config *config, struct workload *out,
                               struct error *why)
{
    struct model_files files;
    enum err err = model_files_open(config, &files, why);
    if (err)
        return err;
    struct diffusion_model *model = XNEW(model);
    err = diffusion_model_open(&files, model, why);
    model_files_release(&files);
    out->state = model;
    if (err)
        close_diffusion(out);
    return err;
}

static void describe(const struct workload *workload, struct json *json)
{
    diffusion_model_describe(workload->state, json);
}

/* ---- parameters of a query ---- */

/* "512" or "768x512", in pixels; ERR_USAGE with what was expected. */
static enum err parse_size(const char *text, size_t *width, size_t *height, struct error *why)
{
    uint64_t sides[2] = {0};
    char first[32];
    const char *cross = strchr(text, 'x');
    size_t length = cross ? (size_t)(cross - text) : strlen(text);
    bool is_valid = length < sizeof first;
    if (is_valid) {
        memcpy(first, text, length);
        first[length] = '\0';
        is_valid = !parse_u64(first, &sides[0]) && !parse_u64(cross ? cross + 1 : first, &sides[1]);
    }
    for (size_t i = 0; i < COUNT_OF(sides); i++)
        is_valid = is_valid && sides[i] > 0 && sides[i] <= SIDE_MAX && sides[i] % SIDE_UNIT == 0;
    if (!is_valid)
        return err_set(why, ERR_USAGE,
                       "size=%s: expected WIDTHxHEIGHT or a side, multiples of %d up to %d",
                       plain_text(text).text, SIDE_UNIT, SIDE_MAX);
    *width = sides[0];
    *height = sides[1];
    return ERR_OK;
}

/* The size of the sample: as asked for, else that of the model's files. */
static enum err read_size(const struct diffusion_model *model, const struct params *params,
                          struct query *query, struct error *why)
{
    const char *text = params_get(params, "size");
    size_t width = model->default_width * model->pixels;
    size_t height = model->default_height * model->pixels;
    enum err err = text ? parse_size(text, &width, &height, why) : ERR_OK;
    if (err)
        return err;
    if (!width || !height)
        return err_set(why, ERR_USAGE,
                       "the model has no size of its own (sample_size in unet/config.json): pass "
                       "size=WIDTHxHEIGHT");
    query->width = width / model->pixels;
    query->height = height / model->pixels;
    bool fits = width % model->pixels == 0 && height % model->pixels == 0 &&
                (model->width < 0 || model->width == (int64_t)query->width) &&
                (model->height < 0 || model->height == (int64_t)query->height);
    if (!fits)
        return err_set(why, ERR_USAGE, "size=%s: the model makes images of %zux%zu only",
                       text_or_empty(text), model->default_width * model->pixels,
                       model->default_height * model->pixels);
    query->count = model->channels * query->width * query->height;
    return ERR_OK;
}

static double default_guidance(const struct diffusion_model *model)
{
    double listed = jv_get_number(model->index, "ipw_guidance");
    if (listed >= 0)
        return listed;
    return model->condition == CONDITION_TEXT ? DEFAULT_TEXT_GUIDANCE : 1;
}

static enum err read_numbers(const struct diffusion_model *model, const struct params *params,
                             struct query *query, struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    double steps = jv_get_number(model->index, "ipw_steps");
    uint64_t otherwise =
        steps >= 1 && steps <= SCHEDULER_STEPS_MAX ? (uint64_t)steps : DEFAULT_STEPS;
    query->steps = params_count(&read, "steps", otherwise, 1, SCHEDULER_STEPS_MAX);
    query->format = params_word(&read, "format", FORMATS, FORMAT_PNG);
    query->seed = params_count(&read, "seed", 0, 0, UINT64_MAX);
    query->guide.scale = params_number(&read, "guidance", default_guidance(model), 0, 1000);
    if (!read.err && model->condition == CONDITION_NONE && params_get(params, "guidance"))
        return err_set(why, ERR_USAGE, "guidance: the model has neither a text nor classes");
    if (model->condition == CONDITION_NONE)
        query->guide.scale = 1;
    return read.err;
}

static enum err open_scheduler(const struct diffusion_model *model, const struct params *params,
                               struct query *query, struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    const char *name = params_get(params, "scheduler");
    const struct scheduler_driver *driver =
        name ? scheduler_find(name, why) : scheduler_of_config(model->scheduler, why);
    if (!driver)
        return name ? ERR_USAGE : ERR_UNSUPPORTED;
    enum err err = scheduler_open(driver, model->scheduler, &query->scheduler, why);
    if (err)
        return err;
    query->scheduler.eta = params_number(&read, "eta", 0, 0, 1);
    if (!read.err && query->scheduler.eta > 0 && !driver->has_eta)
        return err_set(why, ERR_USAGE, "eta: only the scheduler ddim adds noise, not %s",
                       driver->name);
    return read.err ? read.err
                    : scheduler_start(&query->scheduler, query->steps, query->count, why);
}

/* ---- the condition ---- */

/* The prompt or class, to be freed, without " seed=N" at its end, which sets the seed. */
static char *read_input(const char *input, uint64_t *seed)
{
    static const char WORD[] = " seed=";
    char *copy = xstrdup(input);
    char *last = NULL;
    for (char *at = copy; (at = strstr(at, WORD)); at++)
        last = at;
    if (last && parse_u64(last + sizeof WORD - 1, seed) == ERR_OK)
        *last = '\0';
    return copy;
}

static enum err find_class(const struct diffusion_model *model, const char *name, size_t *index,
                           struct error *why)
{
    uint64_t number;
    for (*index = 0; *index < model->class_count; ++*index)
        if (str_equal_nocase(model->classes[*index], name))
            return ERR_OK;
    if (parse_u64(name, &number) == ERR_OK && number < model->class_count) {
        *index = (size_t)number;
        return ERR_OK;
    }
    return registry_unknown("class", name, model->classes, model->class_count, ERR_BAD_VALUE, why);
}

static enum err set_class(const struct diffusion_model *model, const char *name,
                          struct query *query, struct error *why)
{
    size_t index;
    enum err err = find_class(model, name, &index, why);
    if (err)
        return err;
    query->guide.label[WITHOUT] = (int64_t)model->class_count;
    query->guide.label[WITH] = (int64_t)index;
    if (model->condition == CONDITION_CLASS)
        return ERR_OK;
    const struct npy *rows = &model->embeddings;
    query->guide.tokens = rows->shape[1];
    query->guide.width = rows->shape[2];
    for (size_t i = 0; i < COUNT_OF(query->guide.states); i++)
        query->guide.states[i] =
            rows->values + (size_t)query->guide.label[i] * (rows->count / (model->class_count + 1));
    return ERR_OK;
}

static void set_text(const struct diffusion_model *model, const char *prompt, const char *negative,
                     struct query *query, int64_t *count)
{
    const char *texts[] = {[WITHOUT] = negative, [WITH] = prompt};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        query->ids[i] = xcalloc(clip_tokenizer_length(model->tokenizer), sizeof *query->ids[i]);
        size_t tokens = clip_tokenize(model->tokenizer, texts[i], query->ids[i]);
        if (i == WITH)
            *count = (int64_t)tokens;
    }
}

static enum err set_condition(const struct diffusion_model *model, struct workload_query *query,
                              struct error *why)
{
    struct query *state = query->state;
    const char *negative = params_get(query->params, "negative");
    if (negative && model->condition != CONDITION_TEXT)
        return err_set(why, ERR_USAGE, "negative: the model takes no text");
    char *input = read_input(query->input, &state->seed);
    enum err err = ERR_OK;
    if (model->condition == CONDITION_TEXT)
        set_text(model, input, text_or_empty(negative), state, &query->input_tokens);
    else if (model->condition != CONDITION_NONE)
        err = set_class(model, str_trim(input), state, why);
    free(input);
    return err;
}

/* ---- noise ---- */

static void fill_noise(uint64_t seed, uint64_t stream, float *to, size_t count)
{
    struct random random = random_from(seed, stream);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)random_normal(&random);
}

static enum err read_noise(const struct diffusion_model *model, const char *path,
                           struct query *query, struct error *why)
{
    struct npy npy;
    const int64_t shape[] = {1, (int64_t)model->channels, (int64_t)query->height,
                             (int64_t)query->width};
    size_t limit = query->count * sizeof(double) + FILE_SMALL;
    enum err err = npy_read(path, limit, &npy, why);
    if (err)
        return err;
    if (npy.rank != COUNT_OF(shape) || memcmp(npy.shape, shape, sizeof shape) != 0) {
        struct text seen = {0};
        struct text expected = {0};
        npy_add_shape(npy.shape, npy.rank, &seen);
        npy_add_shape(shape, COUNT_OF(shape), &expected);
        err = err_set(why, ERR_USAGE, "noise=%s: has the shape %s: expected %s", path,
                      text_get(&seen), text_get(&expected));
        text_release(&seen);
        text_release(&expected);
    } else {
        memcpy(query->sample, npy.values, query->count * sizeof *query->sample);
    }
    npy_release(&npy);
    return err;
}

static enum err set_noise(const struct diffusion_model *model, const struct params *params,
                          struct query *query, struct error *why)
{
    const char *path = params_get(params, "noise");
    enum err err = ERR_OK;
    query->sample = xcalloc(query->count, sizeof *query->sample);
    if (path)
        err = read_noise(model, path, query, why);
    else
        fill_noise(query->seed, 0, query->sample, query->count);
    for (size_t i = 0; i < query->count; i++)
        query->sample[i] = (float)(query->sample[i] * query->scheduler.init_sigma);
    return err;
}

/* ---- a query ---- */

static enum err prepare(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct diffusion_model *model = workload->state;
    struct query *state = XNEW(state);
    query->state = state;
    enum err err = read_numbers(model, query->params, state, why);
    if (!err)
        err = read_size(model, query->params, state, why);
    if (!err)
        err = open_scheduler(model, query->params, state, why);
    if (!err)
        err = set_condition(model, query, why);
    if (!err)
        err = set_noise(model, query->params, state, why);
    if (!err) {
        query->images = 1;
        query->denoise_steps = (double)state->steps;
    }
    return err;
}

/* The states of the prompt, and of the negative prompt where the guidance needs it. */
static enum err encode_texts(const struct diffusion_model *model, struct workload_query *query,
                             struct error *why)
{
    struct query *state = query->state;
    size_t first = state->guide.scale > 1 || model->batch == 2 ? WITHOUT : WITH;
    enum err err = ERR_OK;
    for (size_t i = first; i <= WITH && !err; i++) {
        struct diffusion_values *states = &state->states[i];
        free(states->values);
        *states = (struct diffusion_values){0};
        err = diffusion_encode(model, state->ids[i], query->cancel, states, why);
        state->guide.states[i] = states->values;
        state->guide.tokens = states->shape[1];
        state->guide.width = states->shape[2];
    }
    return err;
}

/* The step that the scheduler is at; `input` and `prediction` are scratch space. */
static enum err run_step(const struct diffusion_model *model, struct workload_query *query,
                         float *input, float *prediction, struct error *why)
{
    struct query *state = query->state;
    struct scheduler *scheduler = &state->scheduler;
    float scale = (float)scheduler_input_scale(scheduler);
    for (size_t i = 0; i < state->count; i++)
        input[i] = state->sample[i] * scale;
    struct diffusion_sample sample = {input, state->height, state->width,
                                      scheduler->timesteps[scheduler->index]};
    enum err err = diffusion_predict(model, &sample, &state->guide, query->cancel, prediction, why);
    if (err)
        return err;
    bool wants_noise = scheduler_wants_noise(scheduler);
    if (wants_noise)
        fill_noise(state->seed, scheduler->index + 1, input, state->count);
    scheduler_step(scheduler, prediction, wants_noise ? input : NULL, state->sample);
    return ERR_OK;
}

static enum err denoise(const struct diffusion_model *model, struct workload_query *query,
                        struct error *why)
{
    struct query *state = query->state;
    struct scheduler *scheduler = &state->scheduler;
    float *scratch = xcalloc(2 * state->count, sizeof *scratch);
    enum err err = ERR_OK;
    while (!err && scheduler->index < scheduler->steps) {
        if (query->cancel && atomic_load(query->cancel))
            err = err_set(why, ERR_INTERRUPTED, "interrupted after %zu of %zu steps",
                          scheduler->index, scheduler->steps);
        else
            err = run_step(model, query, scratch, scratch + state->count, why);
    }
    free(scratch);
    return err;
}

static enum err run(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct diffusion_model *model = workload->state;
    struct query *state = query->state;
    enum err err = model->condition == CONDITION_TEXT ? encode_texts(model, query, why) : ERR_OK;
    if (!err)
        err = denoise(model, query, why);
    struct diffusion_sample sample = {state->sample, state->height, state->width, 0};
    return err ? err : diffusion_decode(model, &sample, query->cancel, &state->image, why);
}

static enum err encode_png(const struct diffusion_values *values, struct text *out,
                           struct error *why)
{
    enum { PLANES = 3 };
    uint32_t height = (uint32_t)values->shape[2];
    uint32_t width = (uint32_t)values->shape[3];
    size_t plane = (size_t)width * height;
    float *planes = xcalloc(PLANES * plane, sizeof *planes);
    for (size_t i = 0; i < PLANES; i++) { /* a gray image has one for all */
        size_t from = values->shape[1] == PLANES ? i * plane : 0;
        memcpy(planes + i * plane, values->values + from, plane * sizeof *planes);
    }
    struct image image = {0};
    image_from_planes(planes, width, height, -1, 1, &image);
    free(planes);
    enum err err = image_encode(&image, out, why);
    image_release(&image);
    return err;
}

static enum err finish(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why)
{
    (void)workload;
    const struct query *state = query->state;
    const struct diffusion_values *image = &state->image;
    text_clear(&out->artifact);
    chars_copy(out->artifact_extension, FORMATS[state->format]);
    if (state->format == FORMAT_PNG)
        return encode_png(image, &out->artifact, why);
    npy_write(image->values, image->shape, image->rank, &out->artifact);
    return ERR_OK;
}

static void discard(struct workload *workload, struct workload_query *query)
{
    (void)workload;
    struct query *state = query->state;
    if (!state)
        return;
    scheduler_release(&state->scheduler);
    for (size_t i = 0; i < COUNT_OF(state->ids); i++) {
        free(state->ids[i]);
        free(state->states[i].values);
    }
    free(state->sample);
    free(state->image.values);
    free(state);
    query->state = NULL;
}

/* ---- the driver ---- */

static const char *const GRADERS[] = {"fid", "clip_score", "lpips", "coherence", NULL};

static const struct param_spec PARAMS[] = {MODEL_PARAMS, {NULL, NULL, NULL}};

static const struct param_spec QUERY_PARAMS[] = {
    {"steps", "COUNT", "denoising steps (as the model's files, 50)"},
    {"scheduler", "ddim|euler|dpm++2m|unipc",
     "how a prediction changes the sample (that of scheduler_config.json)"},
    {"guidance", "SCALE",
     "classifier-free guidance; 1 is none (as the model's files, 7.5 for text, 1 for classes)"},
    {"negative", "TEXT", "what the guidance leads away from (\"\")"},
    {"size", "WIDTHxHEIGHT", "of the image in pixels, or one side of a square (as the model's)"},
    {"seed", "NUMBER", "of the noise; a query that ends in \" seed=N\" has its own (0)"},
    {"eta", "SHARE", "of the noise that ddim adds at each step, 0 to 1 (0)"},
    {"format", "png|npy", "of the file: 8-bit RGB, or the numbers from -1 to 1 (png)"},
    {"noise", "FILE.npy", "the initial noise instead of the seed's: 1 x channels x height x width"},
    {NULL, NULL, NULL},
};

const struct workload_driver workload_diffusion = {
    .name = "diffusion",
    .summary = "image generation with a diffusion model",
    .inputs = "a prompt, or the name of a class",
    .takes_text = true,
    .model_layout = "a directory as diffusers exports Stable Diffusion 1 and 2 to ONNX "
                    "(model_index.json, unet/model.onnx, ...), or of a class-conditional model",
    .default_model = "shapes-diffusion",
    .default_dataset = "shapes",
    .graders = GRADERS,
    .params = PARAMS,
    .query_params = QUERY_PARAMS,
    .open = open_diffusion,
    .close = close_diffusion,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .discard = discard,
    .describe = describe,
};
