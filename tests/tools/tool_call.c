/* Calls tools of src/agent_tools: `tool_call FOLDER TOOLS [PARAM=VALUE ...]`; each input line is a
 * name, a tab and the arguments, each output line "ok" or "error", a tab and the result as JSON. */
#include <stdio.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "core/json.h"

int main(int argc, char **argv)
{
    struct params params = {0};
    struct error why = {0};
    struct toolset set;
    struct tool_session session;
    char line[65536];
    for (int i = 3; i < argc; i++)
        if (params_add(&params, argv[i]))
            return 1;
    struct toolset_options options = {.names = argc > 2 ? argv[2] : NULL, .params = &params};
    if (argc < 3 || toolset_open(&options, &set, &why) ||
        tool_session_open(&set, argv[1], &session, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        struct tool_result result;
        struct text quoted = {0};
        struct json json;
        line[strcspn(line, "\n")] = '\0';
        char *tab = strchr(line, '\t');
        if (!tab)
            break;
        *tab = '\0';
        if (tool_session_call(&session, line, tab + 1, NULL, &result, &why))
            return 1;
        json_init(&json, &quoted, false);
        json_string(&json, NULL, text_get(&result.output));
        printf("%s\t%s\n", result.is_error ? "error" : "ok", text_get(&quoted));
        fflush(stdout);
        text_release(&quoted);
        tool_result_release(&result);
    }
    tool_session_close(&session);
    toolset_close(&set);
    params_release(&params);
    return 0;
}
