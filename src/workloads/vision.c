/* Images in, a tensor per image out: one inference for a batch, whose output its queries share. */
#include "workloads/vision.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/xalloc.h"
#include "media/image.h"
#include "workloads/model_files.h"
#include "workloads/workload.h"

enum { CHANNELS = 3 };

struct vision_output {
    struct onnx_tensor tensor;
    size_t batch;
    atomic_size_t users; /* queries, perhaps of several threads: the last one releases it */
};

/* ---- the model ---- */

static enum err check_input(const struct onnx_facts *facts, struct vision_model *out,
                            struct error *why)
{
    const struct onnx_port *input = &facts->inputs[0];
    if (facts->input_count != 1)
        return err_set(why, ERR_UNSUPPORTED, "%s: has %zu inputs: expected an image only",
                       facts->path, facts->input_count);
    if (input->type != ONNX_FLOAT && input->type != ONNX_FLOAT16)
        return err_set(why, ERR_UNSUPPORTED, "%s: input %s is %s: expected float or float16",
                       facts->path, input->name, onnx_type_name(input->type));
    if (input->rank != 4 || (input->shape[1] != CHANNELS && input->shape[1] >= 0))
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: input %s has the shape %s: expected batch x 3 x height x width",
                       facts->path, input->name, shape_text(input->shape, input->rank).text);
    if (input->shape[0] > 1)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: the batch size is fixed at %lld: export the model with a batch of 1 or "
                       "a free one",
                       facts->path, (long long)input->shape[0]);
    if (input->shape[2] > VISION_SIDE_MAX || input->shape[3] > VISION_SIDE_MAX)
        return err_set(why, ERR_UNSUPPORTED, "%s: input %s has the shape %s: more than %d pixels",
                       facts->path, input->name, shape_text(input->shape, input->rank).text,
                       VISION_SIDE_MAX);
    out->type = input->type;
    out->has_free_batch = input->shape[0] < 0;
    out->height = input->shape[2];
    out->width = input->shape[3];
    return ERR_OK;
}

enum err vision_open(const struct model_files *files, const char *const *names, const char *output,
                     struct vision_model *out, struct error *why)
{
    *out = (struct vision_model){0};
    enum err err = model_files_session(files, names, &out->session, why);
    if (!err)
        err = check_input(onnx_session_facts(out->session), out, why);
    if (err) {
        vision_close(out);
        return err;
    }
    int found = output ? onnx_output(out->session, output) : -1;
    out->output = found >= 0 ? found : 0;
    return ERR_OK;
}

void vision_close(struct vision_model *model)
{
    onnx_session_close(model->session);
    *model = (struct vision_model){0};
}

/* ---- a query ---- */

static size_t values_of(const struct vision_query *query)
{
    return (size_t)CHANNELS * query->width * query->height;
}

void vision_query_set(const struct vision_model *model, const struct image *image,
                      const struct image_norm *norm, struct vision_query *query)
{
    vision_query_release(query);
    query->width = image->width;
    query->height = image->height;
    size_t count = values_of(query);
    float *planes = xmalloc(count * sizeof *planes);
    image_to_planes(image, norm, planes);
    if (model->type == ONNX_FLOAT) {
        query->planes = planes;
        return;
    }
    uint16_t *halves = xmalloc(count * sizeof *halves);
    for (size_t i = 0; i < count; i++)
        halves[i] = half_from_float(planes[i]);
    free(planes);
    query->planes = halves;
}

static void release_output(struct vision_query *query)
{
    struct vision_output *output = query->output;
    query->output = NULL;
    if (!output || atomic_fetch_sub(&output->users, 1) > 1)
        return;
    onnx_tensor_release(&output->tensor);
    free(output);
}

void vision_query_release(struct vision_query *query)
{
    release_output(query);
    free(query->planes);
    query->planes = NULL;
}

/* ---- running ---- */

/* The planes of a batch, to be freed; those of a single query are used in place. */
static void *stack_planes(const struct vision_model *model, struct workload_query *const *queries,
                          size_t count)
{
    const struct vision_query *first = queries[0]->state;
    size_t bytes = values_of(first) * onnx_type_size(model->type);
    char *stacked = xmalloc(count * bytes);
    for (size_t i = 0; i < count; i++) {
        const struct vision_query *query = queries[i]->state;
        memcpy(stacked + i * bytes, query->planes, bytes);
    }
    return stacked;
}

static enum err run_once(const struct vision_model *model, void *planes,
                         struct workload_query *const *queries, size_t count,
                         struct onnx_tensor *out, struct error *why)
{
    const struct vision_query *first = queries[0]->state;
    const int64_t shape[] = {(int64_t)count, CHANNELS, first->height, first->width};
    struct onnx_tensor input = onnx_tensor_of(model->type, planes, COUNT_OF(shape), shape);
    struct onnx_tensor outputs[ONNX_PORTS_MAX] = {0};
    bool wanted[ONNX_PORTS_MAX] = {false};
    wanted[model->output] = true;
    enum err err = onnx_run(model->session, &input, outputs, wanted, queries[0]->cancel, why);
    *out = outputs[model->output];
    return err;
}

static void share_output(const struct onnx_tensor *tensor, struct workload_query *const *queries,
                         size_t count)
{
    struct vision_output *shared = XNEW(shared);
    shared->tensor = *tensor;
    shared->batch = count;
    atomic_init(&shared->users, count);
    for (size_t i = 0; i < count; i++) {
        struct vision_query *query = queries[i]->state;
        release_output(query);
        query->output = shared;
        query->index = i;
    }
}

static enum err run_batch(const struct vision_model *model, struct workload_query *const *queries,
                          size_t count, struct error *why)
{
    const struct vision_query *first = queries[0]->state;
    void *stacked = count > 1 ? stack_planes(model, queries, count) : NULL;
    struct onnx_tensor tensor = {0};
    enum err err = run_once(model, stacked ? stacked : first->planes, queries, count, &tensor, why);
    free(stacked);
    if (!err)
        share_output(&tensor, queries, count);
    return err;
}

static size_t same_size(const struct vision_model *model, struct workload_query *const *queries,
                        size_t count)
{
    const struct vision_query *first = queries[0]->state;
    size_t same = 1;
    for (; model->has_free_batch && same < count; same++) {
        const struct vision_query *query = queries[same]->state;
        if (query->width != first->width || query->height != first->height)
            break;
    }
    return same;
}

enum err vision_run(const struct vision_model *model, struct workload_query *const *queries,
                    size_t count, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t done = 0, batch; done < count && !err; done += batch) {
        batch = same_size(model, queries + done, count - done);
        err = run_batch(model, queries + done, batch, why);
    }
    return err;
}

/* ---- outputs ---- */

enum err vision_values(const struct vision_model *model, const struct vision_query *query,
                       size_t rank, struct vision_values *out, struct error *why)
{
    const struct onnx_tensor *tensor = &query->output->tensor;
    const struct onnx_facts *facts = onnx_session_facts(model->session);
    size_t batch = query->output->batch;
    *out = (struct vision_values){0};
    if (tensor->rank < 2 || tensor->shape[0] != (int64_t)batch)
        return err_set(why, ERR_BAD_VALUE, "%s: output %s has the shape %s for a batch of %zu",
                       facts->path, facts->outputs[model->output].name,
                       shape_text(tensor->shape, tensor->rank).text, batch);
    struct onnx_tensor part = *tensor;
    part.count = tensor->count / batch;
    part.data = (char *)tensor->data + query->index * part.count * onnx_type_size(tensor->type);
    enum err err = model_output_check(model->session, model->output, &part, rank, why);
    if (err)
        return err;
    out->count = part.count;
    out->rank = tensor->rank - 1;
    memcpy(out->shape, tensor->shape + 1, out->rank * sizeof *out->shape);
    out->values = xmalloc(out->count * sizeof *out->values);
    for (size_t i = 0; i < out->count; i++)
        out->values[i] = (float)onnx_tensor_at(&part, i);
    return ERR_OK;
}
