"""Synthetic records and summaries in the layout of the Python IPW (docs/formats.md).  `rng` is a NumPy random
generator."""

STATS = ("avg", "max", "median", "min")
MODEL = "org/Model-7B"


def stats(value):
    return {key: None if value is None else float(value) for key in STATS}


def watts_of(value):
    return {"per_query_watts": stats(value), "total_watts": stats(value)}


def record(i, rng, model=MODEL, first=False, gpu=True):
    """One row of a later version; `first`: of its first release; without gpu: no energy."""
    tokens_in, tokens_out = int(rng.integers(5, 900)), int(rng.integers(1, 400))
    latency = 0.05 + 0.01 * tokens_out + 0.0005 * tokens_in + rng.normal(0, 0.01)
    watts = 180 + 0.05 * tokens_out + rng.normal(0, 5)
    joules = watts * latency
    energy = {"per_query_joules": joules if gpu else None, "total_joules": joules if gpu else None}
    latencies = {"per_token_ms": 1000 * latency / tokens_out,
                 "throughput_tokens_per_sec": tokens_out / latency,
                 "time_to_first_token_seconds": 0.01 + 0.0005 * tokens_in + rng.exponential(0.01),
                 "total_query_seconds": latency}
    metrics = {"compute_metrics": {"flops_per_request": 1e9, "macs_per_request": None},
               "energy_metrics": energy, "latency_metrics": latencies,
               "memory_metrics": {"cpu_mb": stats(900), "gpu_mb": stats(20000)},
               "power_metrics": {"gpu": watts_of(watts if gpu else None)},
               "temperature_metrics": stats(50 + 0.01 * i),
               "token_metrics": {"input": tokens_in, "output": tokens_out},
               "gpu_info": {"name": "GPU", "vendor": "NVIDIA", "device_id": 0, "device_type": "GPU",
                            "backend": "NVML"},
               "system_info": {"os_name": "linux", "host_name": "h", "cpu_count": 8},
               "lm_correctness": False, "lm_response": "text"}
    if not first:
        add_later(metrics, rng, joules, tokens_in, tokens_out, latency, watts)
    return {"problem": f"question {i}", "answer": "42",
            "dataset_metadata": {"level": int(i % 3), "source": "s"},
            "subject": ("law", "physics")[i % 2], "model_answers": {model: f"answer {i}"},
            "model_metrics": {model: metrics}}


def add_later(metrics, rng, joules, tokens_in, tokens_out, latency, watts):
    """Adds the fields of versions after the first release."""
    metrics["compute_metrics"].update(total_flops=int(2e9), flops_per_token=1.4e10)
    metrics["energy_metrics"].update(
        cpu_per_query_joules=0.1 * joules, cpu_total_joules=0.1 * joules, judge_gpu_joules=None,
        judge_cpu_joules=None, total_task_gpu_joules=joules, total_task_cpu_joules=0.1 * joules,
        ane_per_query_joules=None, ane_total_joules=None, soc_per_query_joules=None,
        soc_total_joules=None, energy_per_output_token_joules=joules / tokens_out,
        energy_per_total_token_joules=joules / (tokens_in + tokens_out), basis="gpu")
    metrics["latency_metrics"].update(median_itl_ms=10 + rng.normal(), p90_itl_ms=14.0, p95_itl_ms=16.0,
                                      p99_itl_ms=20.0, itl_std_ms=2.0)
    metrics["power_metrics"].update(cpu=watts_of(30), ane=watts_of(None), soc=watts_of(None))
    metrics["token_metrics"]["total"] = tokens_in + tokens_out
    metrics["phase_metrics"] = {
        "prefill_energy_j": 0.2 * joules, "decode_energy_j": 0.8 * joules, "prefill_duration_ms": 20.0,
        "decode_duration_ms": 1000 * latency - 20, "prefill_power_avg_w": watts,
        "decode_power_avg_w": watts, "prefill_energy_per_input_token_j": 0.2 * joules / tokens_in,
        "decode_energy_per_output_token_j": 0.8 * joules / tokens_out,
        "prefill_energy_components_j": None, "decode_energy_components_j": None}
    metrics["hardware_utilization"] = {
        "gpu": {"compute_utilization_pct": 80.0, "memory_bandwidth_utilization_pct": 40.0,
                "tensor_core_utilization_pct": None, "memory_used_gb": 20.0, "memory_total_gb": 80.0},
        "derived": {"mfu": 0.02, "mbu": None, "arithmetic_intensity": None}}
    metrics["efficiency"] = {"throughput_per_watt": tokens_out / latency / watts,
                             "flops_per_joule": 1e9 / joules, "flops_per_watt": 1e9 / latency / watts}
    metrics["cost"] = dict.fromkeys(("input_cost_usd", "output_cost_usd", "tool_cost_usd",
                                     "total_cost_usd"), 0.0)
    metrics["evaluation"] = {"is_correct": bool(rng.uniform() < 0.6),
                             "metadata": '{"evaluation_attempts": 1}', "config": None}


def summary(rows, model=MODEL, first=False, hardware="H10080GB"):
    """The content of summary.json; the first release had neither configuration nor versions."""
    whole = {"model": model, "dataset": "mmlu-pro", "dataset_name": "MMLU-Pro",
             "hardware_label": hardware, "generated_at": 1763000000.5, "total_queries": len(rows),
             "system_info": {"os_name": "linux", "host_name": "h", "cpu_count": 8},
             "gpu_info": {"name": "NVIDIA H100 80GB HBM3 x1", "vendor": "NVIDIA", "backend": "NVML"},
             "output_dir": "/somewhere/runs"}
    if not first:
        whole["profiler_config"] = {
            "dataset_id": "mmlu-pro", "client_id": "vllm", "client_base_url": "", "dataset_params": {},
            "client_params": {}, "model": model, "output_dir": "/somewhere", "max_concurrency": 1,
            "max_queries": len(rows), "phased_profiling": False, "run_hardware_benchmarks": False,
            "additional_parameters": {}, "warmup_queries": 3, "telemetry_buffer_seconds": 7200,
            "telemetry_max_samples": 150000}
        whole["versions"] = {"ipw": "0.3.0", "python": "3.13.1"}
        whole["client_info"] = {}
    return whole
