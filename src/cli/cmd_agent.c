/* ipw agent: a dataset through an agent, with the energy of every query, turn and tool.
 *
 *   $ ipw agent --client openai --model qwen3:8b --dataset gsm8k --tools calculator,python
 *
 * Progress and the text report go to stderr; with --format the result goes to stdout. */

#include "cli/common.h"
#include "cli/profile_command.h"
#include "clients/client.h"
#include "core/text.h"
#include "core/units.h"
#include "port/proc.h"
#include "runner/agent/agent.h"

static struct {
    struct profile_command common;
    struct agent_options options;
    struct params tool_params;
    struct option_list servers;
    unsigned output_kb;
    double tool_timeout_s, query_timeout_s;
    const char *protocol;
    struct agent agent;
    struct profile_agent answerer;
} command = {
    .common = PROFILE_COMMAND_DEFAULTS("agent"),
    .options = {.max_turns = 10},
    .protocol = "auto",
    .tool_timeout_s = 30,
    .output_kb = 16,
};

static const struct option_row ROWS[] = {
    PROFILE_WHAT_OPTION_ROWS(command.common),
    TEXT_ROW("tools", command.options.tools.names, "LIST",
             "tools, or none (default: calculator,think,file_read,file_write)"),
    TEXT_ROW("exec", command.options.command, "COMMAND",
             "external agent: run COMMAND for each query; {problem} is replaced"),
    FLAG_ROW("no-inject-usage", command.options.no_inject_usage,
             "with --exec: do not request token counts in streams"),
    PARAMS_ROW("tool-param", command.tool_params, "T.K=V",
               "parameter of a tool: shell.memory_mb=512, http_get.allow=HOST ..."),
    LIST_ROW("mcp", command.servers, "COMMAND",
             "add the tools of an MCP server, a command or URL (PREFIX=... too)"),
    COUNT_ROW("max-turns", command.options.max_turns, "N",
              "maximum requests to the model per query (default: 10)", .min = 1, .max = 1000),
    CHOICE_ROW("protocol", command.protocol, "WORD", AGENT_PROTOCOLS,
               "how tools are called: auto (default), native, hermes, react"),
    NUMBER_ROW("tool-timeout", command.tool_timeout_s, "S", "seconds per tool call (default: 30)",
               .min = 0.001, .max = 86400),
    COUNT_ROW("tool-output", command.output_kb, "KB",
              "maximum tool output passed to the model (default: 16)", .min = 1, .max = 16384),
    NUMBER_ROW("query-timeout", command.query_timeout_s, "S",
               "seconds per query, over all turns (default: no limit)", .min = 0.001,
               .max = 604800),
    TEXT_ROW("workspaces", command.options.workspaces, "DIR",
             "keep the files of each query in DIR/QUERY (default: removed)"),
    FLAG_ROW("require-dedicated-hardware", command.common.profile.require_dedicated,
             "refuse to run if other processes use GPU (5 %) or CPU (10 %)"),
    PROFILE_LOAD_OPTION_ROWS(command.common),
    PROFILE_RUN_OPTION_ROWS(command.common),
    HINT_ROW("tool", "use --tools LIST"),
    HINT_ROW("max-steps", "use --max-turns N"),
    HINT_ROW("mcp-server", "use --mcp COMMAND or --mcp URL"),
    {0},
};

static enum err answer(void *context, const struct profile_question *question,
                       struct completion *out, struct error *why)
{
    const struct agent_query query = {.client = question->client,
                                      .request = question->request,
                                      .key = question->key,
                                      .recorder = question->recorder};
    return agent_answer(context, &query, out, why);
}

/* An MCP server may take long to start, or never do: the first signal ends it. */
static int open_agent(void)
{
    struct error why = {0};
    struct signal_listener listener;
    enum err err = signal_listener_start(&listener, &why);
    if (err)
        return print_err(err, &why);
    command.options.tools.cancel = &listener.cancel;
    err = agent_open(&command.agent, &command.options, &why);
    command.options.tools.cancel = NULL;
    int number = signal_listener_stop(&listener);
    if (number && !err)
        agent_close(&command.agent);
    if (number)
        return print_error(128 + number, "interrupted while the tools were being opened");
    if (err)
        return print_err(err, &why);
    command.answerer = (struct profile_agent){
        .settings = command.agent.settings, .answer = answer, .context = &command.agent};
    command.common.profile.agent = &command.answerer;
    return 0;
}

static void close_agent(void)
{
    agent_close(&command.agent);
}

static int agent_main(const char **words, size_t count)
{
    /* Of the built-in loop and its tools: they do not apply to an external agent. */
    static const char *const OF_LOOP[] = {"tools",    "mcp",          "tool-param",  "max-turns",
                                          "protocol", "tool-timeout", "tool-output", NULL};
    struct agent_options *options = &command.options;
    struct toolset_options *tools = &options->tools;
    (void)words, (void)count;
    int code = profile_command_complete(&command.common);
    if (code >= 0)
        return code;
    const char *of_loop = option_given(OF_LOOP);
    if (options->command && of_loop)
        return print_error(
            EXIT_USAGE,
            "--exec and --%s are mutually exclusive: an external agent has its own tools and turns",
            of_loop);
    if (options->no_inject_usage && !options->command)
        return print_error(EXIT_USAGE, "--no-inject-usage needs --exec");
    const struct client_driver *driver =
        options->command ? client_driver_find(command.common.profile.client, NULL) : NULL;
    if (driver && !driver->default_url)
        return print_error(EXIT_USAGE, "--exec needs the client anthropic, openai or ollama");
    if (options->command)
        tools->names = "none";
    while (!str_equal(AGENT_PROTOCOLS[options->protocol], command.protocol))
        options->protocol++; /* always found: the option was validated */
    options->retries = command.common.profile.retries;
    options->query_timeout = from_seconds(command.query_timeout_s);
    tools->params = &command.tool_params;
    tools->servers = command.servers.items;
    tools->server_count = command.servers.count;
    tools->timeout = from_seconds(command.tool_timeout_s);
    tools->output_limit = (size_t)command.output_kb << 10;
    command.common.begins = open_agent;
    command.common.ended = close_agent;
    return profile_command_measure(&command.common);
}

const struct command command_agent = {
    .name = "agent",
    .summary = "run a dataset through an agent with tools and measure every turn and tool call",
    .usage = "--client NAME --model NAME [OPTIONS]",
    .details =
        "Gives every question of a dataset to an agent: a model that may call tools, turn by\n"
        "turn, until it answers. Records energy, latency and tokens of each query, and of each\n"
        "turn, inference and tool call in it.\n\n"
        "Each query has its own workspace, an empty directory in which its tools work. The tools\n"
        "shell, python and http_get must be enabled by name: they run code written by the model,\n"
        "with limits and without network, or fetch URLs requested by the model, from hosts listed\n"
        "in --tool-param http_get.allow. --mcp 'CMD' starts an MCP server and adds its tools; if\n"
        "CMD contains {workspace}, each query has its own server. --mcp URL uses a server over\n"
        "HTTP; IPW_MCP_TOKEN is its bearer token.\n\n"
        "Tool calls of one turn run concurrently unless one of them has side effects. If the\n"
        "service or the model does not support tool calls, tools are described in the prompt and\n"
        "called in text (ReAct).\n\n"
        "--exec 'CMD {problem}' runs an external agent for each query instead, with\n"
        "OPENAI_BASE_URL, OLLAMA_HOST and ANTHROPIC_BASE_URL set to a recording proxy in front of\n"
        "the client's service; its stdout is the answer.\n\n"
        "`ipw list -v tools` shows the tools with their parameters; see docs/agents.md.",
    .rows = ROWS,
    .words = WORDS_NONE,
    .run = agent_main,
};
