"""Synthetic run directories of any size, like those of a server on a GPU."""

import heapq
import json
import math
import random
from pathlib import Path

SUBJECTS = ["algebra", "biology", "chemistry", "computer science", "economics", "history", "law",
            "logic", "physics", "psychology"]
BEGAN = 1_790_000_000.0
IDLE_W, BUSY_W, CPU_W = 95.0, 240.0, 55.0


def requests(count, concurrency, draw):
    """(index, start, first token, end, input tokens, output tokens), ordered by end."""
    free = [(0.2 + 0.01 * i, i) for i in range(concurrency)]
    found = []
    for index in range(count):
        begin, worker = heapq.heappop(free)
        tokens_in, tokens_out = int(draw.lognormvariate(5, 0.7)) + 8, int(draw.lognormvariate(4.6, 0.6)) + 1
        first = begin + 0.02 + 0.00035 * tokens_in * draw.uniform(0.9, 1.3)
        end = first + tokens_out * 0.011 * draw.uniform(0.9, 1.15) * (1 + 0.01 * concurrency)
        heapq.heappush(free, (end + 0.004, worker))
        found.append((index, begin, first, end, tokens_in, tokens_out))
    return sorted(found, key=lambda request: request[3])


def energies(tokens_in, tokens_out, draw):
    prefill = (0.02 * tokens_in + 1.5) * draw.lognormvariate(0, 0.08)
    return prefill, 0.42 * tokens_out * draw.lognormvariate(0, 0.1)


def question_text(place, index):
    """The text of a question; long for those that a page of very many queries shows."""
    return json.dumps(f"question {index} <i>&amp;</i> " + "wörd " * (400 if place % 64 == 0 else 2))


def write_records(folder, model, found, draw, subjects):
    """Writes records.jsonl and spans.jsonl; returns the totals for the summary."""
    sums = {"joules": 0.0, "prefill": 0.0, "decode": 0.0, "input": 0, "output": 0, "right": 0, "failed": 0}
    name = json.dumps(model)
    with open(folder / "records.jsonl", "w") as records, open(folder / "spans.jsonl", "w") as spans:
        records.write(json.dumps({"kind": "run", "format": 1, "ipw": "0.1.0", "start": 1, "started_at": BEGAN,
                                  "hardware_label": "H200x1", "settings": {"model": model}}) + "\n")
        for place, (index, begin, first, end, tokens_in, tokens_out) in enumerate(found):
            prefill, decode = energies(tokens_in, tokens_out, draw)
            joules, failed = prefill + decode, index % 500 == 7
            right = draw.random() < 0.9 - 0.03 * (index % len(subjects))
            key, subject = f"q{index:06d}", json.dumps(subjects[index % len(subjects)])
            status = '"failed","error":"the service closed the connection"' if failed else '"completed"'
            records.write(
                f'{{"kind":"query","key":"{key}","problem":{question_text(place, index)},"answer":"a",'
                f'"subject":{subject},"model_answers":{{{name}:{question_text(place, -index)}}},'
                f'"model_metrics":{{{name}:{{"energy_metrics":{{"per_query_joules":{0.85 * joules:.6g},"cpu_per_query_joules":{0.15 * joules:.6g},"basis":"gpu"}},'
                f'"latency_metrics":{{"time_to_first_token_seconds":{first - begin:.6g},"total_query_seconds":{end - begin:.6g}}},'
                f'"token_metrics":{{"input":{tokens_in},"output":{tokens_out},"total":{tokens_in + tokens_out}}},'
                f'"phase_metrics":{{"prefill_energy_j":{prefill:.6g},"decode_energy_j":{decode:.6g}}},'
                f'"evaluation":{"null" if failed else json.dumps({"is_correct": right})}}}}},'
                f'"ipw":{{"key":"{key}","index":{index},"repeat":0,"start":1,"status":{status},"started_at":{BEGAN + begin:.6f},'
                f'"energy":{{"joules":{joules:.6g},"plus_minus":{0.03 * joules:.4g},"method":"counter","source":"nvml:0 energy + rapl:0 package",'
                f'"coverage":1,"idle_joules":{0.3 * joules:.6g},"active_joules":{0.7 * joules:.6g},"low_confidence":false}}}}}}\n')
            spans.write(f'{{"key":"{key}","start":1,"span":"request","attempt":1,"from_s":{begin:.6f},"first_token_s":{first:.6f},'
                        f'"to_s":{end:.6f},"input_tokens":{tokens_in},"output_tokens":{tokens_out}}}\n')
            sums["failed"] += failed
            if not failed:
                for what, value in (("joules", joules), ("prefill", prefill), ("decode", decode), ("input", tokens_in),
                                    ("output", tokens_out), ("right", right)):
                    sums[what] += value
    return sums


def in_flight_at(found, step):
    """Number of requests in flight in each time step."""
    last = max(request[3] for request in found)
    change = [0] * (int(last / step) + 3)
    for _, begin, _, end, _, _ in found:
        change[int(begin / step)] += 1
        change[int(end / step) + 1] -= 1
    in_flight, now = [], 0
    for by in change:
        now += by
        in_flight.append(now)
    return in_flight


def write_samples(folder, found, concurrency, draw, step=0.1, idle_s=3.0):
    """Writes samples.csv with counters of a GPU and a package; returns the joules of each and the seconds."""
    in_flight = [0] * int(idle_s / step) + in_flight_at(found, step)
    rows, sums, before = {"gpu": [], "cpu": []}, {"gpu": 0.0, "cpu": 0.0}, {"gpu": IDLE_W, "cpu": CPU_W}
    channels = {"gpu": "nvml:0,gpu0,energy,gpu,energy,J", "cpu": "rapl:0,cpu0,package,package,energy,J"}
    for place, now in enumerate(in_flight):
        t = place * step - idle_s
        share = now / concurrency
        for device, watts in (("gpu", IDLE_W + (BUSY_W * (0.4 + 0.6 * share) if now else 0) + 12 * math.sin(t / 7)),
                              ("cpu", CPU_W + 30 * share)):
            watts = 0.5 * before[device] + 0.5 * watts * draw.uniform(0.94, 1.06)
            before[device] = watts
            sums[device] += watts * step if place else 0
            rows[device].append(f"{t:.6f},{channels[device]},{watts if place else '':.6},{sums[device]:.9g},{1 if place else 0},\n"
                                if place else f"{t:.6f},{channels[device]},,0,0,\n")
    with open(folder / "samples.csv", "w") as file:
        file.write("t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n")
        for device in rows:
            file.writelines(rows[device])
    return sums


def energy(joules, source):
    return {"joules": joules, "plus_minus": 0.027 * joules, "plus_minus_statistical": 0.001 * joules, "method": "counter",
            "source": source, "coverage": 0.998, "idle_joules": 0.4 * joules, "active_joules": 0.6 * joules,
            "updates": 5000, "low_confidence": False, "note": None}


def make_run(directory, queries=200, concurrency=8, model="llama-3.1-8b-instruct-q8_0", seed=1, subjects=None, hardware="H200x1"):
    """Writes the directory; returns its summary."""
    folder, draw = Path(directory), random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    found = requests(queries, concurrency, draw)
    sums = write_records(folder, model, found, draw, subjects or SUBJECTS)
    spent = write_samples(folder, found, concurrency, draw)
    total, seconds, done = spent["gpu"] + spent["cpu"], found[-1][3], queries - sums["failed"]
    accuracy, per_query = sums["right"] / done, sums["joules"] / done
    summary = {
        "model": model, "hardware_label": hardware, "dataset": "mmlu-pro", "dataset_name": "mmlu-pro", "generated_at": BEGAN + seconds,
        "total_queries": queries, "output_dir": str(folder), "versions": {"ipw": "0.1.0", "python": None},
        "profiler_config": {"client_id": "openai", "client_base_url": "http://127.0.0.1:8000", "model": model, "dataset_id": "mmlu-pro",
                            "dataset_params": {"shuffle": 7}, "client_params": {}, "additional_parameters": {"max_tokens": 512},
                            "max_queries": queries, "max_concurrency": concurrency, "warmup_queries": 3, "repeat": 1, "rate": None,
                            "seed": 0, "timeout_s": 600, "retries": 3, "idle_s": 3, "decode_weight": 64, "system": "Answer with one letter."},
        "system_info": {"os_name": "Debian GNU/Linux", "os_version": "12", "kernel_version": "6.1.0", "cpu_count": 64,
                        "cpu_brand": "Intel(R) Xeon(R) Platinum 8480+"},
        "gpu_info": {"name": "NVIDIA H200 x1", "vendor": "NVIDIA", "device_id": 0, "device_type": "GPU", "backend": "NVML"},
        "client_info": {"client": "openai", "base_url": "http://127.0.0.1:8000", "server": "vllm 0.6"},
        "ipw": {"queries": queries, "completed": done, "failed": sums["failed"], "accuracy": accuracy, "correct": sums["right"],
                "incorrect": done - sums["right"], "energy": energy(total, "nvml:0 energy + rapl:0 package"),
                "joules": {"queries": sums["joules"], "queries_idle_share": 0.3 * sums["joules"], "prefill": sums["prefill"],
                           "decode": sums["decode"], "failed": 0.002 * total, "idle": 0.06 * total,
                           "unattributed": max(0.0, 0.938 * total - sums["joules"]), "judge": None},
                "joules_per_query": per_query, "joules_per_output_token": sums["joules"] / sums["output"], "ipj": accuracy / per_query,
                "ipj_plus_minus": 0.04 * accuracy / per_query, "ipw": accuracy * seconds / total, "ipw_plus_minus": 0.04 * accuracy * seconds / total,
                "busy_watts": total / seconds, "energy_known": done, "seconds": seconds, "input_tokens": sums["input"],
                "output_tokens": sums["output"], "output_tokens_per_s": sums["output"] / seconds, "conservation_error": 0,
                "idle": {"seconds": 3, "devices": [{"id": "gpu0", "power_w": IDLE_W, "plus_minus": 1}, {"id": "cpu0", "power_w": CPU_W, "plus_minus": 1}]},
                "devices": [{"id": "gpu0", "in_total": True, "energy": energy(spent["gpu"], "nvml:0 energy"),
                             "power_mean_w": spent["gpu"] / seconds, "power_max_w": 350, "cross_check_residual": 0.004},
                            {"id": "cpu0", "in_total": True, "energy": energy(spent["cpu"], "rapl:0 package"),
                             "power_mean_w": spent["cpu"] / seconds, "power_max_w": 90, "cross_check_residual": None}],
                "started_at": BEGAN, "starts": 1, "interrupted": False, "own": {"cpu_s": 1.9, "rss_mb": 31.2, "reads": 24000}}}
    (folder / "summary.json").write_text(json.dumps(summary))
    return summary
