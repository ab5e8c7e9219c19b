/* Requests to the dashboard: targets with their parameters through every route of the API, bodies that start a run, and
 * cookies.  Every answer to a JSON route is JSON. */
#include "fuzz/fuzz.h"

#include <stdio.h>

#include "core/jv.h"
#include "port/event_loop.h"
#include "serve/api.h"

enum { IN_LOOP, ROWS, FILES, STREAM };
static const struct {
    const char *path;
    api_function *function;
    int where;
    const char *params;
} ROUTES[] = {
#define ROUTE(path, function, where, params) {path, function, where, params},
#define ACTION(method, path, function)
#include "serve/routes.def"
#undef ROUTE
#undef ACTION
};

static struct api api;
static struct access *known;
static struct serve_options options = {.access = {.address = "127.0.0.1"}, .no_live = true};

static void copy_run(const char *file)
{
    char from[512], to[64];
    struct text bytes = {0};
    static char buffer[1 << 13];
    str_format(from, sizeof from, IPW_FIXTURES "/runs/gpu-concurrent/%s", file);
    str_format(to, sizeof to, "runs/r/%s", file);
    FILE *in = fopen(from, "r");
    fuzz_check(in);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in));)
        text_add_bytes(&bytes, buffer, n);
    fclose(in);
    fuzz_file(to, bytes.bytes, bytes.length);
    text_release(&bytes);
}

static void open_api(void)
{
    static char runs[128];
    struct event_loop *loop = NULL;
    struct error why = {0};
    copy_run("summary.json");
    copy_run("records.jsonl");
    str_format(runs, sizeof runs, "%s/runs", fuzz_folder());
    options.runs = runs;
    api.options = &options;
    known = access_new();
    if (!known || event_loop_new(&loop, &why) || runs_open(&options, &api.runs, &why))
        fuzz_fail(why.text);
    api.live = live_new(&options);
    api.launch = launch_new(&options, loop, api.runs);
    (void)live_tick(api.live, 1); /* the first sample */
}

static void check_answer(enum err err, const struct error *why, struct api_response *answer)
{
    struct jv *tree = NULL;
    fuzz_check_error(err, why);
    if (!err && answer->type && !strcmp(answer->type, "application/json"))
        fuzz_check(!jv_parse(text_get(&answer->body), answer->body.length, &tree, NULL));
    jv_free(tree);
    text_release(&answer->body);
}

static void read_target(const char *target)
{
    struct request request;
    struct error why = {0};
    enum err err = request_read(target, &request, &why);
    fuzz_check_error(err, &why);
    for (size_t i = 0; !err && i < sizeof ROUTES / sizeof *ROUTES; i++) {
        struct api_response answer = {0};
        if (ROUTES[i].where == STREAM || !request_matches(&request, ROUTES[i].path))
            continue;
        err = request_check(&request, ROUTES[i].params, &why);
        if (!err)
            (void)!runs_refresh(api.runs, &why);
        if (!err)
            err = ROUTES[i].function(&api, &request, &answer, &why);
        check_answer(err, &why, &answer);
        break;
    }
    request_release(&request);
}

static void run(const char *bytes, size_t length)
{
    unsigned choice = fuzz_choose(&bytes, &length, 4);
    if (!api.runs)
        open_api();
    if (choice < 2) {
        read_target(fuzz_string(bytes, length));
    } else if (choice == 2) {
        struct request request = {0};
        struct api_response answer = {0};
        struct error why = {0};
        text_add_bytes(&request.body, bytes, length);
        enum err err = api_start(&api, &request, &answer, &why);
        check_answer(err, &why, &answer);
        text_release(&request.body);
    } else {
        fuzz_check(!access_has_session(known, fuzz_string(bytes, length), 0));
    }
}

static void seeds(void)
{
    static const char *const TARGETS[] = {
        "/api/v1/runs?q=a+b&kind=profile&sort=created_at&order=desc&limit=5&cursor=1",
        "/api/v1/runs?sort=energy_j&order=asc&cursor=72.0000000000004440",
        "/api/v1/runs?sort=model&model=m&cursor=72.6d",
        "/api/v1/runs/r",
        "/api/v1/runs/r/report",
        "/api/v1/runs/%2e%2e%2fr/page",
        "/api/v1/runs/r/records?limit=2&cursor=1",
        "/api/v1/runs/r/records.csv",
        "/api/v1/runs/r/files/summary.json",
        "/api/v1/compare?run=r&run=r",
        "/api/v1/sweeps/r",
        "/api/v1/pareto?x=seconds_per_query&y=joules_per_query&group=model",
        "/api/v1/sweeps",
        "/api/v1/live/history?seconds=9",
        "/api/v1/status",
        "/api/v1/openapi.json",
        "/api/v1/estimate?model=llama-3.2-1b&hardware=h200&precision=bf16&batch=8&output_tokens=8",
        "/api/v1/estimate?model=resnet-50&hardware=epyc-7742&price_per_kwh=0.3&gco2_per_kwh=1e2"};
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        fuzz_seed(0, TARGETS[i]);
    fuzz_seed(2, "{\"client\":\"null\",\"model\":\"m\",\"dataset\":\"builtin\",\"max_queries\":3,"
                 "\"concurrency\":"
                 "1,\"max_tokens\":8,\"base_url\":\"http://127.0.0.1:1/v1\"}");
    fuzz_seed(3, "a=b; ipw_session=0123456789abcdef0123456789abcdef;c");
}

static const char *const WORDS[] = {"/api/v1/", "runs/",     "?",      "&",
                                    "=",        "%2F",       "%00",    "%",
                                    "limit=",   "cursor=",   "../",    "18446744073709551615",
                                    "model=",   "hardware=", "batch=", "ipw_session=",
                                    "[1]",      NULL};

const struct fuzz_target fuzz_serve = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
