"""An agent of the OpenAI Agents SDK with a calculator:  MODEL answer QUESTION

Prints the answer; the server is given by OPENAI_BASE_URL.  Without arguments it reads lines of JSON, [URL, MODEL,
one-by-one|at-once, QUESTION...], and prints for each question, as JSON, what the framework recorded: the answer, the
tool calls, and the requests with the token counts of the server.  Runs in the environment of tools/setup, whose
packages take seconds of CPU time to import."""

import asyncio
import json
import os
import re
import sys

import agents
import openai


def calculator(expression: str) -> str:
    """Evaluates arithmetic."""
    if not re.fullmatch(r"[-+* 0-9]+", expression):
        return "error"
    return str(eval(expression))


def client_of(query, sent):
    """Labels each request with its query and turn; `sent` collects the paths of the requests."""

    async def count(request):
        request.headers["x-ipw-turn"] = str(len(sent))
        sent.append(request.url.path)

    transport = openai.DefaultAsyncHttpxClient(event_hooks={"request": [count]}, trust_env=False)
    return openai.AsyncOpenAI(http_client=transport, max_retries=0, default_headers={"x-ipw-query": query})


async def ask(model, query, question, streams):
    sent = []
    async with client_of(query, sent) as client:
        agent = agents.Agent(
            name="Reckoner", tools=[agents.function_tool(calculator)],
            model=agents.OpenAIChatCompletionsModel(model=model, openai_client=client),
            model_settings=agents.ModelSettings(temperature=0, max_tokens=160, include_usage=streams or None))
        if streams:
            result = agents.Runner.run_streamed(agent, question)
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(agent, question)
    calls = [item.raw_item.arguments for item in result.new_items if item.type == "tool_call_item"]
    return {"query": query, "answer": result.final_output, "sent": sent,
            "calls": [json.loads(call)["expression"] for call in calls],
            "tokens": [[reply.usage.input_tokens, reply.usage.output_tokens] for reply in result.raw_responses]}


async def main(model, way, *questions):
    agents.set_tracing_disabled(True)  # traces would be sent to OpenAI
    if way == "at-once":
        return await asyncio.gather(*[ask(model, f"q{i}", each, True) for i, each in enumerate(questions)])
    return [await ask(model, f"q{i}", each, False) for i, each in enumerate(questions)]


if __name__ == "__main__":
    os.environ.setdefault("OPENAI_API_KEY", "sk-none-needed")
    if sys.argv[1:]:
        print(asyncio.run(main(*sys.argv[1:]))[0]["answer"])
    for line in sys.stdin if not sys.argv[1:] else ():
        os.environ["OPENAI_BASE_URL"], *words = json.loads(line)
        print(json.dumps(asyncio.run(main(*words))), flush=True)
