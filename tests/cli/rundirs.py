"""Synthetic run directories in the format of docs/formats.md: every figure in them is known."""

import json

MODEL = "tiny.model:1b"  # a name with characters that are special in paths and labels


def query(index, joules=10.0, latency=1.0, tokens=20, correct=None, repeat=0, problem=None, failed=False,
          key=None, source="nvml energy", method="counter", **ipw):
    """A complete query line of the journal."""
    key = key or (f"q{index:06d}" + (f".r{repeat}" if repeat else ""))
    energy = None if joules is None else {
        "joules": joules, "plus_minus": 0.05 * abs(joules), "plus_minus_statistical": 0.0,
        "method": method, "source": source, "coverage": 1, "idle_joules": 0.2 * joules,
        "active_joules": 0.8 * joules, "updates": 40, "low_confidence": False, "note": None}
    metrics = {"token_metrics": {"input": 5, "output": tokens, "total": 5 + tokens}}
    if not failed:
        metrics["latency_metrics"] = {
            "total_query_seconds": latency, "time_to_first_token_seconds": 0.2 * latency,
            "median_itl_ms": 800 * latency / max(tokens, 1),
            "throughput_tokens_per_sec": tokens / latency}
    if correct is not None:
        metrics["evaluation"] = {"is_correct": bool(correct)}
    return {"kind": "query", "key": key, "problem": problem or f"question {index}", "answer": "42",
            "subject": "general", "dataset_metadata": {"level": index % 3},
            "model_answers": {MODEL: "the answer"}, "model_metrics": {MODEL: metrics},
            "ipw": {"key": key, "index": index, "repeat": repeat, "start": 1,
                    "status": "failed" if failed else "completed", "concurrency": 1,
                    "started_at": 1.7e9 + 2 * index, "prefill_s": 0.2 * latency,
                    "decode_s": 0.8 * latency, **({"energy": energy} if energy else {}), **ipw}}


def summary(queries, hardware="H100", host="node1", concurrency=1, dataset="builtin", model=MODEL,
            source="nvml energy", method="counter", calibration=0.03, busy=None, rate=None, **config):
    joules = sum(q["ipw"].get("energy", {}).get("joules", 0) for q in queries)
    return {"model": model, "hardware_label": hardware, "dataset": dataset, "dataset_name": dataset,
            "generated_at": 1.7e9 + 1000, "total_queries": len(queries),
            "system_info": {"host_name": host}, "gpu_info": None, "versions": {"ipw": "0.1.0"},
            "profiler_config": {"max_concurrency": concurrency, "client_id": "null", **config},
            "ipw": {"queries": len(queries), "completed": len(queries), "failed": 0,
                    "busy_watts": busy, "output_tokens_per_s": rate, "interrupted": False,
                    "energy": {"joules": joules, "plus_minus": calibration * joules,
                               "plus_minus_statistical": 0, "method": method, "source": source,
                               "coverage": 1}}}


def write_run(path, queries, whole=None, group=None, kind=None, **facts):
    """Writes a run directory; `whole` replaces the summary (False: none); `group` is its repeat group; `kind` its run
    kind."""
    path.mkdir(parents=True)
    repeat = {"repeat_group": group, "repeat_number": 1} if group else {}
    repeat |= {"run_kind": kind} if kind else {}
    begin = {"kind": "run", "format": 1, "ipw": "0.1.0", "start": 1, "started_at": 1.7e9,
             "hardware_label": "H100", **repeat, "settings": {}, "measuring": {}}
    lines = [begin, *queries, {"kind": "end", "start": 1}]
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if whole is None:
        whole = {**summary(queries, **facts), **repeat}
    if whole:
        (path / "summary.json").write_text(json.dumps(whole))
    return path


def texts_of(comparison):
    """The findings about a comparison."""
    return [finding["text"] for finding in comparison["findings"]]


def outcomes_of(quality):
    """{code: (severity, text) of a finding, or (verdict, detail) of a check that found nothing}."""
    return {**{check["check"]: (check["verdict"], check["detail"]) for check in quality["data"]["checks"]},
            **{finding["code"]: (finding["severity"], finding["text"]) for finding in quality["data"]["findings"]}}
