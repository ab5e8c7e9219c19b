/* ipw proxy: requests of any program to an inference service, with the energy of every one.
 *
 *   $ ipw proxy --upstream http://127.0.0.1:8000
 *   $ OPENAI_BASE_URL=http://127.0.0.1:8430/v1 python agent.py
 *
 * Messages and the text report go to stderr; with --format the result goes to stdout. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/result.h"
#include "core/text.h"
#include "core/secret.h"
#include "port/proc.h"
#include "proxy/proxy.h"
#include "report/text/reports.h"
#include "runner/host_report.h"
#include "runner/profile/profile.h"
#include "sampler/session.h"

enum { DEFAULT_PORT = 8430 };

/* ---- options ---- */

/* Static: threads left behind by a second signal use it until the process exits. */
static struct proxy_command {
    struct measure_options measure;
    struct profile_options profile;
    struct tariff tariff;
    struct proxy_options proxy;
    struct params key_names;
    struct option_list not_inference;
    struct listen_options http;
    unsigned max_body_mib;
    double client_timeout_s;
    struct format_options format;
    bool resume, overwrite, quiet;
    const char *output;
} command = {
    .measure = {.idle_s = UNKNOWN},
    .profile = {.client = "proxy",
                .model = "mixed",
                .dataset = "proxy",
                .repeat = 1,
                .idle_s = 2,
                .decode_weight = 64,
                .tariff = &command.tariff},
    .tariff = TARIFF_NONE,
    .max_body_mib = 64,
    .client_timeout_s = 30,
};

static const struct option_row ROWS[] = {
    TEXT_ROW("upstream", command.proxy.upstream, "URL", "server to forward requests to"),
    TEXT_ROW("listen", command.http.listen, "ADDRESS:PORT",
             "address to listen on (default: 127.0.0.1:8430; port 0: any)", .letter = 'l'),
    ALLOW_HOST_OPTION_ROW(command.http.hosts),
    TEXT_ROW("model", command.profile.model, "NAME",
             "model of the run, for its size and prices (default: mixed)"),
    FLAG_ROW("energy-header", command.proxy.energy_header,
             "return the energy to clients in a header; delays responses"),
    FLAG_ROW("inject-usage", command.proxy.inject_usage,
             "request token counts in streams, and remove them from responses"),
    FLAG_ROW("store-content", command.proxy.keep_content,
             "store prompts and responses in the run directory"),
    PARAMS_ROW("key-name", command.key_names, "LABEL=NAME",
               "name for the API key labeled key-XXXXXXXX; may be repeated"),
    LIST_ROW("not-inference", command.not_inference, "PATTERN",
             "paths that are not inference, such as '/jobs/*'; may be repeated"),
    COUNT_ROW("max-body", command.max_body_mib, "MIB",
              "maximum size of a request body (default: 64)", .min = 1, .max = 4096),
    NUMBER_ROW("client-timeout", command.client_timeout_s, "S",
               "time limit for receiving a request (default: 30)", .min = 0.1, .max = 86400),
    TEXT_ROW("prices", command.profile.price_file, "FILE",
             "JSON file with prices of tokens and electricity"),
    TARIFF_OPTION_ROWS(command.tariff),
    TEXT_ROW("parameters", command.profile.parameters, "N[,ACTIVE]",
             "parameter count, if the model is unknown to ipw: 8.03B, or 30B,3B"),
    NUMBER_ROW("decode-weight", command.profile.decode_weight, "W",
               "weight of an output token relative to a prompt token (default: 64)", .min = 1e-6,
               .max = 1e6),
    IDLE_OPTION_ROW(command.measure,
                    "measure idle power in S seconds without requests (default: 2; 0: no)", 0),
    TEXT_ROW("output-dir", command.profile.output_dir, "DIR",
             "parent of the run directory (default: runs)"),
    TEXT_ROW("name", command.profile.name, "NAME",
             "name of the run directory (default: hardware, model, time)"),
    FLAG_ROW("resume", command.resume,
             "continue the run in that directory; without --name: the latest"),
    FLAG_ROW("overwrite", command.overwrite, "replace the run in that directory"),
    RESULT_OPTION_ROWS(command, "no progress and no report on stderr"),
    MEASURE_OPTION_ROWS(command.measure, NULL),
    HINT_ROW("token", "set IPW_PROXY_TOKEN: command lines are visible to other users"),
    HINT_ROW("api-key", "set IPW_API_KEY: command lines are visible to other users"),
    HINT_ROW("port", "use --listen 127.0.0.1:PORT", .letter = 'p'),
    {0},
};

static void listening(unsigned port, const char *upstream, const char *directory)
{
    profile_view_clear();
    command.http.at.port = port;
    notify("ipw proxy: listening on %s, upstream %s, run directory %s\n",
           listen_url(&command.http.at).text, upstream, directory);
}

static int complete_options(void)
{
    struct profile_options *profile = &command.profile;
    const char *token = getenv("IPW_PROXY_TOKEN"), *key = getenv("IPW_API_KEY");
    if (!command.proxy.upstream)
        return usage_error("missing --upstream");
    if (read_access(&command.http, DEFAULT_PORT, &command.proxy.access))
        return EXIT_USAGE;
    if (is_known(command.measure.idle_s))
        profile->idle_s = command.measure.idle_s;
    if (command.resume && command.overwrite)
        return print_error(EXIT_USAGE, "--resume and --overwrite are mutually exclusive");
    if (command.resume || command.overwrite)
        profile->existing = command.resume ? EXISTING_RESUME : EXISTING_OVERWRITE;
    command.proxy.access.token = str_or_null(token);
    command.proxy.upstream_key = str_or_null(key);
    if (command.proxy.access.token)
        secret_add(token);
    command.proxy.key_names = &command.key_names;
    command.proxy.not_inference = command.not_inference.items;
    command.proxy.not_inference_count = command.not_inference.count;
    command.proxy.body_max = (size_t)command.max_body_mib << 20;
    command.proxy.request_limit = from_seconds(command.client_timeout_s);
    profile->proxy = &command.proxy;
    profile->listening = listening;
    profile->progress = profile_view_show;
    profile->warn = profile_view_warn;
    return -1;
}

/* ---- the command ---- */

static int outcome;

static void print_outcome(const void *context, enum print_format format, bool color,
                          struct text *out)
{
    const struct summary *summary = context;
    struct result result = {0};
    if (format == PRINT_TABLE) {
        profile_text(summary, false, color, out);
        return;
    }
    result_begin(&result, "proxy");
    summary_put_report(summary, &result);
    result_end(&result);
    result_print(&result, format, NULL, color, out);
    text_add(out, format == PRINT_JSON ? "\n" : "");
    result_release(&result);
}

static int deliver_outcome(const struct profile_result *result)
{
    struct text text = {0};
    if (!command.quiet) {
        profile_text(&result->summary, false, wants_color(STDERR_FILENO), &text);
        profile_view_put(&text);
    }
    text_release(&text);
    return deliver_result(command.output, &command.format, print_outcome, &result->summary, false);
}

static void take_end(const struct profile_result *result, enum err err, const struct error *why)
{
    profile_view_clear();
    if (err)
        outcome = print_error(err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s",
                              why->text[0] ? why->text : err_text(err));
    int code = result->has_summary ? deliver_outcome(result) : EXIT_DONE;
    if (!outcome)
        outcome = code;
    if (!outcome && result->summary.queries > 0)
        outcome = require_measured(&command.measure, &result->energy, &result->summary.conditions);
}

static int proxy_main(const char **words, size_t count)
{
    static struct session session; /* neither is released, as in cmd_profile.c */
    static struct host_report host;
    const struct profile_repeats repeats = {
        .profile = &command.profile, .runs = 1, .ended = take_end};
    struct error why = {0};
    (void)words, (void)count;
    int code = complete_options();
    if (code >= 0)
        return code;
    proc_block_signals();
    code = open_session(&command.measure, &session);
    if (code)
        return code;
    host_report_fill(&session.findings, &host);
    profile_view_start("proxy", command.quiet);
    enum err err = profile_repeats_run(&session, &host, &repeats, &why);
    if (err && !outcome)
        outcome = print_failure(&why);
    if (err == ERR_INTERRUPTED)
        _exit(outcome); /* threads still use what exit handlers would free */
    return outcome;
}

const struct command command_proxy = {
    .name = "proxy",
    .summary = "proxy for inference services that measures the energy of every request",
    .usage = "--upstream URL [OPTIONS]",
    .details =
        "Forwards requests to an inference service, unchanged in both directions, and records\n"
        "the energy of each with its uncertainty, its latency and its tokens: any program that\n"
        "accepts a base URL can be measured. It knows the APIs of OpenAI, Anthropic, Ollama,\n"
        "llama.cpp and TGI; other inference takes its share of the energy and is counted.\n\n"
        "  ipw proxy --upstream http://127.0.0.1:8000\n"
        "  OPENAI_BASE_URL=http://127.0.0.1:8430/v1 python agent.py\n\n"
        "The headers x-ipw-query and x-ipw-turn label a request; an API key is recorded as a\n"
        "short hash. http://127.0.0.1:8430/ipw/metrics serves Prometheus metrics, /ipw/requests\n"
        "the latest requests. Ctrl-C waits for the requests in flight and writes the run\n"
        "directory, runs/proxy_HARDWARE_MODEL_TIME; a second Ctrl-C aborts them. Prompts and\n"
        "responses are stored with --store-content only.\n\n"
        "Addresses other than loopback require a token in IPW_PROXY_TOKEN, which clients send as\n"
        "x-ipw-token or as their API key. IPW_API_KEY is sent upstream for clients without a key.",
    .rows = ROWS,
    .words = WORDS_NONE,
    .run = proxy_main,
};
