/* ipw agent: a dataset through an agent, with the energy of every query, turn and tool.
 *
 *   $ ipw agent --client openai --model qwen3:8b --dataset gsm8k --tools calculator,python
 *
 * Progress and the text report go to stderr; with --format the result goes to stdout. */
#include <string.h>

#include "cli/common.h"
#include "cli/profile_command.h"
#include "clients/client.h"
#include "core/text.h"
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
};

/* clang-format off */
static const struct option_row ROWS[] = {
    PROFILE_WHAT_OPTION_ROWS(command.common),
    {.name = "tools", .type = OPTION_TEXT, .target = &command.options.tools.names, .value = "LIST",
     .help = "tools, or none (default: calculator,think,file_read,file_write)"},
    {.name = "exec", .type = OPTION_TEXT, .target = &command.options.command, .value = "COMMAND",
     .help = "external agent: run COMMAND for each query; {problem} is replaced"},
    {.name = "no-inject-usage", .type = OPTION_FLAG, .target = &command.options.no_inject_usage,
     .help = "with --exec: do not request token counts in streams"},
    {.name = "tool-param", .type = OPTION_PARAMS, .target = &command.tool_params,
     .value = "T.K=V",
     .help = "parameter of a tool: shell.memory_mb=512, http_get.allow=HOST ..."},
    {.name = "mcp", .type = OPTION_LIST, .target = &command.servers, .value = "COMMAND",
     .help = "add the tools of an MCP server, a command or URL (PREFIX=... too)"},
    {.name = "max-turns", .type = OPTION_COUNT, .target = &command.options.max_turns,
     .value = "N",
     .help = "maximum requests to the model per query (default: 10)", .min = 1, .max = 1000},
    {.name = "protocol", .type = OPTION_CHOICE, .target = &command.protocol, .value = "WORD",
     .help = "how tools are called: auto (default), native, hermes, react",
     .choices = AGENT_PROTOCOLS},
    {.name = "tool-timeout", .type = OPTION_NUMBER, .target = &command.tool_timeout_s,
     .value = "S",
     .help = "seconds per tool call (default: 30)", .min = 0.001, .max = 86400},
    {.name = "tool-output", .type = OPTION_COUNT, .target = &command.output_kb, .value = "KB",
     .help = "maximum tool output passed to the model (default: 16)", .min = 1, .max = 16384},
    {.name = "query-timeout", .type = OPTION_NUMBER, .target = &command.query_timeout_s,
     .value = "S",
     .help = "seconds per query, over all turns (default: no limit)", .min = 0.001,
     .max = 604800},
    {.name = "workspaces", .type = OPTION_TEXT, .target = &command.options.workspaces,
     .value = "DIR",
     .help = "keep the files of each query in DIR/QUERY (default: removed)"},
    {.name = "require-dedicated-hardware", .type = OPTION_FLAG,
     .target = &command.common.profile.require_dedicated,
     .help = "refuse to run if other processes use GPU (5 %) or CPU (10 %)"},
    PROFILE_LOAD_OPTION_ROWS(command.common),
    PROFILE_RUN_OPTION_ROWS(command.common),
    {.name = "tool", .type = OPTION_HINT, .help = "use --tools LIST"},
    {.name = "max-steps", .type = OPTION_HINT, .help = "use --max-turns N"},
    {.name = "mcp-server", .type = OPTION_HINT, .help = "use --mcp COMMAND or --mcp URL"},
    {0},
};
/* clang-format on */

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

/* An option of the built-in loop and its tools, which does not apply to an external agent; NULL if none was given. */
static const char *find_loop_option(void)
{
    const struct {
        bool is_given;
        const char *name;
    } OPTIONS[] = {
        {command.options.tools.names, "--tools"},
        {command.servers.count, "--mcp"},
        {command.tool_params.count, "--tool-param"},
        {command.options.max_turns, "--max-turns"},
        {command.protocol, "--protocol"},
        {command.tool_timeout_s != 0, "--tool-timeout"},
        {command.output_kb, "--tool-output"},
    };
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        if (OPTIONS[i].is_given)
            return OPTIONS[i].name;
    return NULL;
}

static void set_defaults(void)
{
    if (!command.options.max_turns)
        command.options.max_turns = 10;
    if (!command.protocol)
        command.protocol = AGENT_PROTOCOLS[AGENT_AUTO];
    if (command.tool_timeout_s == 0)
        command.tool_timeout_s = 30;
    if (!command.output_kb)
        command.output_kb = 16;
}

static int agent_main(const char **words, size_t count)
{
    struct agent_options *options = &command.options;
    struct toolset_options *tools = &options->tools;
    (void)words, (void)count;
    int code = profile_command_complete(&command.common);
    if (code >= 0)
        return code;
    const char *of_loop = find_loop_option();
    if (options->command && of_loop)
        return print_error(
            EXIT_USAGE,
            "--exec and %s are mutually exclusive: an external agent has its own tools and turns",
            of_loop);
    if (options->no_inject_usage && !options->command)
        return print_error(EXIT_USAGE, "--no-inject-usage needs --exec");
    set_defaults();
    const struct client_driver *driver =
        options->command ? client_driver_find(command.common.profile.client, NULL) : NULL;
    if (driver && !driver->default_url)
        return print_error(EXIT_USAGE, "--exec needs the client anthropic, openai or ollama");
    if (options->command)
        tools->names = "none";
    while (strcmp(AGENT_PROTOCOLS[options->protocol], command.protocol) != 0)
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
