/* Messages of an MCP server: one line for each of our requests (initialize, tools/list, tools/call).  The server is a
 * script, so that a run takes milliseconds; it exits after 0.1 s without a request. */
#include "fuzz/fuzz.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "agent_tools/tool.h"

static const char SCRIPT[] = "#!/bin/bash\nmapfile -t answers <\"$1\"\n"
                             "while IFS= read -r -t 0.1 request; do\n"
                             "    case $request in\n"
                             "    *'\"initialize\"'*) printf '%s\\n' \"${answers[0]}\" ;;\n"
                             "    *'\"tools/list\"'*) printf '%s\\n' \"${answers[1]}\" ;;\n"
                             "    *'\"tools/call\"'*) printf '%s\\n' \"${answers[2]}\" ;;\n"
                             "    esac\ndone\n";

static void run(const char *bytes, size_t length)
{
    static char command[256];
    const char *const servers[] = {command};
    struct toolset set;
    struct tool_session session;
    struct error why = {0};
    if (!command[0]) {
        chmod(fuzz_file("server", SCRIPT, strlen(SCRIPT)), 0700);
        str_format(command, sizeof command, "%s/server %s/answers", fuzz_folder(), fuzz_folder());
    }
    fuzz_file("answers", bytes, length);
    enum err err = toolset_open(
        &(struct toolset_options){.names = "none", .servers = servers, .server_count = 1}, &set,
        &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    for (size_t i = 0; i < set.count; i++)
        fuzz_check(*set.tools[i].spec.name && strlen(set.tools[i].spec.name) <= TOOL_NAME_MAX);
    fuzz_file("space/empty", "", 0);
    char space[128];
    str_format(space, sizeof space, "%s/space", fuzz_folder());
    if (set.count && !tool_session_open(&set, space, &session, &why)) {
        struct tool_result result;
        err = tool_session_call(&session, set.tools[0].spec.name, "{}", NULL, &result, &why);
        fuzz_check_error(err, &why);
        tool_result_release(&result);
        tool_session_close(&session);
    }
    toolset_close(&set);
}

static void seeds(void)
{
    fuzz_seed(
        -1,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\","
        "\"capabilities\":{}}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"t\",\"description\":"
        "\"d\","
        "\"inputSchema\":{\"type\":\"object\",\"properties\":{}}}]}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"image\",\"data\":\"\"}],\"isError\":false}}\n");
    fuzz_seed(-1,
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,\"message\":\"no\"}}\n");
}

static const char *const WORDS[] = {"null",        "[]",        "[1]",       "{}",
                                    "\"result\"",  "\"error\"", "\"tools\"", "\"nextCursor\"",
                                    "\"content\"", "\"name\"",  NULL};

const struct fuzz_target fuzz_mcp = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
