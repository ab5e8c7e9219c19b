/* The seed input of fuzz_replies, on standard output: tool calls as a stream of OpenAI's API, a
 * line of Ollama's, and the two text formats. */
#include <stdio.h>

int main(void)
{
    static const char SEED[] =
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":"
        "{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
        "\"1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
        "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"noop\","
        "\"arguments\":{}}}]},\"done\":true}\n"
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n"
        "Thought: t\nAction: add\nAction Input: 'a'\nAction: noop[x]\nObservation: o\n"
        "Final Answer: f\n";
    return fputs(SEED, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
