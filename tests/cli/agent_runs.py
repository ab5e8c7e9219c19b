"""Synthetic run directories of agents in the format of docs/formats.md: every figure in them is known."""

import json

from rundirs import MODEL, query, write_run

SPAN = {"method": "integral"}


def span(kind, begin, end, joules, own=None, parent=None, name=None, turn=None, **more):
    line = {"type": kind, "name": name, "parent": parent, "turn": turn, "from_s": begin, "to_s": end, "joules": joules,
            "plus_minus": 0.05 * joules, "idle_joules": 0.2 * joules,
            "own_joules": joules if own is None else own, "own_plus_minus": 0.1 * (joules if own is None else own),
            "own_idle_joules": 0.3 * (joules if own is None else own), "gpu_joules": 0.7 * joules,
            "cpu_joules": 0.3 * joules, **SPAN, **more}
    return {key: value for key, value in line.items() if value is not None}


def spans():
    """210 J in 0.7 s: a turn with an inference and two concurrent tools, followed by a gap."""
    return [span("agent", 0, 0.7, 210, own=30, name="react"),
            span("turn", 0, 0.6, 180, own=0, parent=0, turn=0),
            span("lm_inference", 0, 0.4, 120, own=0, parent=1, turn=0, name=MODEL, input_tokens=100, output_tokens=20),
            span("prefill", 0, 0.1, 30, parent=2, turn=0), span("decode", 0.1, 0.4, 90, parent=2, turn=0),
            span("tool_call", 0.4, 0.6, 26, parent=1, turn=0, name="calculator", share="cpu_time", cpu_share=0.25),
            span("tool_call", 0.45, 0.6, 34, parent=1, turn=0, name="<shell>", share="cpu_time", cpu_share=0.75, error="exit 1")]


def trace(index, resolved=True, **ours):
    """A line of traces.jsonl, with the keys that readers and analyses need."""
    turn = {"turn_index": 0, "input_tokens": 100, "output_tokens": 20, "tools_called": ["calculator", "<shell>"],
            "tool_latencies_s": {"calculator": 0.2, "<shell>": 0.15}, "wall_clock_s": 0.6, "error": "exit 1",
            "gpu_energy_joules": 126.0, "cpu_energy_joules": 54.0, "has_parallel_tools": True}
    return {"query_id": f"q{index:04d}", "workload_type": "agentic", "query_text": f"question {index}",
            "response_text": "42", "turns": [turn], "total_wall_clock_s": 0.7, "completed": True,
            "query_gpu_energy_joules": 147.0, "query_cpu_energy_joules": 63.0, "is_resolved": resolved,
            "ipw": {"key": f"q{index:06d}", "energy_joules": 210.0, "plus_minus": 10.5, "gap_joules": 30.0,
                    "method": "integral", "energy_split": "spans", "spans": spans(), **ours}}


def write_agent_run(path, count=3, **ours):
    queries = [query(i, joules=210.0, latency=0.7, correct=i != 1, turns=1, inferences=1, tool_calls=2,
                     inference_joules=120.0, tool_joules=60.0, gap_joules=30.0) for i in range(count)]
    write_run(path, queries)
    lines = (path / "records.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "run_kind": "agent"})
    (path / "records.jsonl").write_text("\n".join(lines) + "\n")
    (path / "traces.jsonl").write_text("".join(json.dumps(trace(i, i != 1, **ours)) + "\n" for i in range(count)))
    return path
