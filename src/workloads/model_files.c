/* Files and sessions of the ONNX models of a workload. */
#include "workloads/model_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "engine/shipped.h"
#include "port/file.h"
#include "port/json_read.h"
#include "workloads/workload.h"

/* ---- finding ---- */

static enum err read_options(const struct params *params, struct onnx_options *out,
                             struct error *why)
{
    enum { THREADS_MAX = 512 };
    static const char *const PROVIDERS[] = {"cpu", "cuda", NULL};
    struct params_reader read = {params, why, ERR_OK};
    *out = (struct onnx_options){
        .threads = (unsigned)params_count(&read, "threads", 0, 1, THREADS_MAX),
        .provider = PROVIDERS[params_word(&read, "provider", PROVIDERS, 0)],
        .library = params_get(params, "library"),
    };
    return read.err;
}

/* "" for a file of the current directory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup("");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

enum err model_files_open(const struct workload_config *config, struct model_files *out,
                          struct error *why)
{
    *out = (struct model_files){0};
    if (!config->model || !*config->model)
        return err_set(why, ERR_USAGE,
                       "missing model: expected an ONNX file, a directory of them or the name of a "
                       "shipped model");
    enum err err = read_options(config->params, &out->options, why);
    if (!err)
        err = shipped_find_onnx(config->model, &out->path, why);
    if (err)
        return err;
    out->is_file = !file_is_directory(out->path);
    out->directory = out->is_file ? directory_of(out->path) : xstrdup(out->path);
    return ERR_OK;
}

void model_files_release(struct model_files *files)
{
    free(files->path);
    free(files->directory);
    *files = (struct model_files){0};
}

enum err model_files_load(const struct workload_config *config, size_t size,
                          enum err (*load)(const struct model_files *files, void *state,
                                           struct error *why),
                          struct workload *out, struct error *why)
{
    struct model_files files;
    enum err err = model_files_open(config, &files, why);
    if (err)
        return err;
    out->state = xcalloc(1, size);
    err = load(&files, out->state, why);
    model_files_release(&files);
    if (err)
        out->driver->close(out);
    return err;
}

static char *existing(char *path)
{
    if (file_exists(path))
        return path;
    free(path);
    return NULL;
}

char *model_files_find(const struct model_files *files, const char *name)
{
    return existing(path_join(files->directory, name));
}

char *model_files_beside(const struct model_files *files, const char *ending)
{
    static const char SUFFIX[] = ".onnx";
    size_t length = strlen(files->path);
    if (!files->is_file)
        return NULL;
    if (str_ends(files->path, SUFFIX))
        length -= sizeof SUFFIX - 1;
    return existing(xformat("%.*s.%s", (int)length, files->path, ending));
}

/* ---- sessions ---- */

static enum err no_model(const struct model_files *files, const char *const *names,
                         struct error *why)
{
    struct text list = {0};
    for (const char *const *name = names; *name; name++)
        text_addf(&list, "%s%s", name == names ? "" : " or ", *name);
    enum err err =
        err_set(why, ERR_NOT_FOUND, "no model in %s: expected %s", files->path, text_get(&list));
    text_release(&list);
    return err;
}

enum err model_files_session(const struct model_files *files, const char *const *names,
                             struct onnx_session **out, struct error *why)
{
    char *path = files->is_file ? xstrdup(files->path) : NULL;
    *out = NULL;
    for (const char *const *name = names; *name && !path; name++)
        path = model_files_find(files, *name);
    if (!path)
        return no_model(files, names, why);
    enum err err = onnx_session_open(path, &files->options, out, why);
    free(path);
    return err;
}

enum err model_files_json(const struct model_files *files, const char *name, struct jv **out,
                          struct error *why)
{
    enum { JSON_MAX = 64 << 20 }; /* the largest are tokenizers */
    char *path = model_files_beside(files, name);
    *out = NULL;
    if (!path)
        path = model_files_find(files, name);
    if (!path)
        return ERR_OK;
    enum err err = jv_read(path, JSON_MAX, out, why);
    if (!err && !jv_is_object(*out)) {
        jv_free(*out);
        *out = NULL;
        err = err_set(why, ERR_BAD_VALUE, "%s: expected a JSON object", path);
    }
    free(path);
    return err;
}

/* ---- outputs ---- */

struct shape_text shape_text(const int64_t *shape, size_t rank)
{
    struct shape_text out = {""};
    struct text text = {0};
    for (size_t i = 0; i < rank; i++) {
        text_add(&text, i ? "x" : "");
        if (shape[i] < 0)
            text_add(&text, "?");
        else
            text_add_integer(&text, shape[i]);
    }
    chars_copy(out.text, rank ? text_get(&text) : "scalar");
    text_release(&text);
    return out;
}

static size_t first_not_finite(const struct onnx_tensor *tensor)
{
    size_t i = 0;
    if (tensor->type == ONNX_FLOAT) {
        const float *values = tensor->data;
        while (i < tensor->count && isfinite(values[i]))
            i++;
    } else {
        while (i < tensor->count && isfinite(onnx_tensor_at(tensor, i)))
            i++;
    }
    return i;
}

enum err model_output_check(const struct onnx_session *session, int output,
                            const struct onnx_tensor *tensor, size_t rank, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(session);
    const char *name = facts->outputs[output].name;
    struct shape_text shape = shape_text(tensor->shape, tensor->rank);
    if (tensor->count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s: output %s is empty (%s)", facts->path, name,
                       shape.text);
    if (rank > 0 && tensor->rank != rank)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: output %s has the shape %s: expected %zu dimensions", facts->path, name,
                       shape.text, rank);
    size_t bad = first_not_finite(tensor);
    if (bad < tensor->count)
        return err_set(why, ERR_BAD_VALUE, "%s: output %s (%s) has %s at element %zu", facts->path,
                       name, shape.text,
                       isnan(onnx_tensor_at(tensor, bad)) ? "NaN" : "an infinite value", bad);
    return ERR_OK;
}

/* ---- description ---- */

static double file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (double)status.st_size : UNKNOWN;
}

static void describe_ports(const char *key, const struct onnx_port *ports, size_t count,
                           struct json *json)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "name", ports[i].name);
        json_string(json, "type", onnx_type_name(ports[i].type));
        json_string(json, "shape", shape_text(ports[i].shape, ports[i].rank).text);
        json_object_end(json);
    }
    json_array_end(json);
}

void model_describe(const struct onnx_session *session, const char *key, struct json *json)
{
    const struct onnx_facts *facts = onnx_session_facts(session);
    json_object(json, key);
    json_string(json, "file", facts->path);
    json_number(json, "bytes", file_bytes(facts->path));
    describe_ports("inputs", facts->inputs, facts->input_count, json);
    describe_ports("outputs", facts->outputs, facts->output_count, json);
    json_object_end(json);
}

void model_describe_runtime(const struct onnx_session *session, struct json *json)
{
    const struct onnx_facts *facts = onnx_session_facts(session);
    json_object(json, "onnxruntime");
    json_string(json, "version", facts->version);
    json_string(json, "provider", facts->provider);
    json_integer(json, "threads", facts->threads);
    json_object_end(json);
}
