/* The overhead of the ONNX engine and of its client over ONNX Runtime itself.  The reference is the simplest loop over its
 * C API: a tensor for the input that is made once, a run, and the release of its output.  All use one session, in runs
 * that alternate, because the load of a busy machine changes from second to second; and CPU time, as one thread does all
 * of it.  The lower quartiles are compared. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/onnx_file.h"
#include "clients/client.h"
#include "engine/onnx_inputs.h"
#include "engine/onnx_state.h"
#include "graph/reader.h"
#include "port/thread.h"
#include "stats/descriptive.h"

enum { MODEL_SIDE = 64, RUNS = 500, WARM_UPS = 10 };
enum way { PLAIN, ENGINE, CLIENT, WAYS };

static char model_path[] = "/tmp/ipw-bench-XXXXXX";

static void die(const char *what)
{
    fprintf(stderr, "bench_onnx: %s\n", what);
    unlink(model_path);
    exit(1);
}

/* ResNet-18 on small images: a run takes some milliseconds in about fifty nodes. */
static void make_model(void)
{
    struct model model;
    struct graph graph;
    struct error why = {0};
    struct graph_options options = {.batch = 1, .image = MODEL_SIDE};
    int file = mkstemp(model_path);
    if (file < 0)
        die("no temporary file");
    close(file);
    if (model_open("resnet18", &model, &why) || model_graph(&model, &options, &graph, &why))
        die(why.text);
    onnx_file_write(&graph, model_path);
    graph_release(&graph);
    model_close(&model);
}

/* ---- the reference loop ---- */

struct plain {
    const struct ort_library *library;
    struct ort_session *session;
    struct ort_value *input;
    const char *input_name, *output_name;
};

static void check(struct ort_status *status)
{
    struct error why;
    if (ort_check(status, &why, "ONNX Runtime"))
        die(why.text);
}

static struct plain plain_open(const struct onnx_session *session, const struct onnx_tensor *input)
{
    struct plain plain = {.library = session->library,
                          .session = session->ort,
                          .input_name = session->input_names[0],
                          .output_name = session->output_names[0]};
    check(plain.library->api->create_tensor(plain.library->host, input->data,
                                            input->count * sizeof(float), input->shape, input->rank,
                                            ONNX_FLOAT, &plain.input));
    return plain;
}

static void run_plain(const struct plain *plain)
{
    const struct ort_api *api = plain->library->api;
    struct ort_value *output = NULL;
    check(api->run(plain->session, NULL, &plain->input_name,
                   (const struct ort_value *const *)&plain->input, 1, &plain->output_name, 1,
                   &output));
    api->release_value(output);
}

/* ---- the engine and its client ---- */

static void run_engine(struct onnx_session *session, const struct onnx_inputs *inputs)
{
    struct onnx_tensor outputs[ONNX_PORTS_MAX];
    struct error why;
    atomic_bool cancel = false;
    if (onnx_run(session, inputs->tensors, outputs, NULL, &cancel, &why))
        die(why.text);
    onnx_tensor_release(&outputs[0]);
}

/* All that a query costs besides its record. */
static void run_client(struct client *client)
{
    struct completion reply;
    struct error why = {0};
    atomic_bool cancel = false;
    const struct client_request request = {.model = model_path, .prompt = "", .cancel = &cancel};
    if (client->driver->ask(client, &request, &reply, &why))
        die(why.text);
    completion_release(&reply);
}

static void open_client(struct client *client)
{
    struct params params = {0};
    struct error why = {0};
    const struct client_driver *driver = client_driver_find("onnx", &why);
    const struct client_config config = {.params = &params};
    if (params_add(&params, "threads=1") || !driver || client_open(driver, &config, client, &why) ||
        client->driver->prepare(client, model_path, 0, &why))
        die(why.text);
    params_release(&params);
}

struct ways {
    struct plain plain;
    struct onnx_session *session;
    struct onnx_inputs inputs;
    struct client client;
};

static double run_seconds(struct ways *ways, enum way way)
{
    nanos from = thread_cpu();
    if (way == PLAIN)
        run_plain(&ways->plain);
    else if (way == ENGINE)
        run_engine(ways->session, &ways->inputs);
    else
        run_client(&ways->client);
    return seconds(thread_cpu() - from);
}

static void open_ways(struct ways *ways)
{
    static const struct onnx_input_options random = {.dim_option = "", .value_option = ""};
    struct error why = {0};
    if (onnx_session_open(model_path, &(struct onnx_options){.threads = 1}, &ways->session, &why) ||
        onnx_inputs_make(ways->session, &random, &ways->inputs, &why))
        die(why.text);
    ways->plain = plain_open(ways->session, &ways->inputs.tensors[0]);
    open_client(&ways->client);
}

int main(void)
{
    static double took[WAYS][RUNS];
    static struct ways ways;
    struct error why = {0};
    const char *version;
    if (onnx_available(&version, &why)) {
        printf("bench_onnx: skipped: %s\n", why.text);
        return 0;
    }
    make_model();
    open_ways(&ways);
    for (int i = -WARM_UPS; i < RUNS; i++)
        for (int k = 0; k < WAYS; k++) {
            enum way way = (enum way)((k + i + WARM_UPS) % WAYS);
            double s = run_seconds(&ways, way);
            if (i >= 0)
                took[way][i] = s;
        }
    double plain_s = quantile(took[PLAIN], RUNS, 0.25);
    bench_report("ONNX Runtime's plain loop, a run", 1e3 * plain_s, "ms");
    bench_at_most("ONNX engine against ONNX Runtime's plain loop",
                  quantile(took[ENGINE], RUNS, 0.25) / plain_s, "ratio", 1.03);
    bench_at_most("client onnx against ONNX Runtime's plain loop",
                  quantile(took[CLIENT], RUNS, 0.25) / plain_s, "ratio", 1.03);
    ways.plain.library->api->release_value(ways.plain.input);
    client_close(&ways.client);
    onnx_inputs_release(&ways.inputs);
    onnx_session_close(ways.session);
    unlink(model_path);
    return 0;
}
