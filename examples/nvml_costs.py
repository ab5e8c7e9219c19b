"""Cost of each NVML call on GPU 0: wall time and CPU time per call, and the tick of the energy counter.

Calls the library directly, so that the figures do not depend on ipw.
"""
import ctypes
import time

nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
gpu = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
number, big = ctypes.c_uint(), ctypes.c_ulonglong()


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("stamp", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("type", ctypes.c_uint), ("code", ctypes.c_uint),
                ("value", ctypes.c_ulonglong)]


class Sample(ctypes.Structure):
    _fields_ = [("stamp", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


def field(ident, scope):
    asked = Field(id=ident, scope=scope)
    code = nvml.nvmlDeviceGetFieldValues(gpu, 1, ctypes.byref(asked))
    return code or asked.code


def samples():
    room, count, kind = (Sample * 256)(), ctypes.c_uint(256), ctypes.c_uint()
    return nvml.nvmlDeviceGetSamples(gpu, 0, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), room)


gpm = ctypes.c_void_p()
nvml.nvmlGpmSampleAlloc(ctypes.byref(gpm))
memory, utilization = (ctypes.c_ulonglong * 3)(), (ctypes.c_uint * 2)()
CALLS = {
    "total energy": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, ctypes.byref(big)),
    "field 186 (instant power)": lambda: field(186, 0),
    "field 185 (average power)": lambda: field(185, 0),
    "field 186, memory scope": lambda: field(186, 2),
    "field 185, memory scope": lambda: field(185, 2),
    "power samples (buffer)": samples,
    "temperature": lambda: nvml.nvmlDeviceGetTemperature(gpu, 0, ctypes.byref(number)),
    "memory": lambda: nvml.nvmlDeviceGetMemoryInfo(gpu, memory),
    "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu, utilization),
    "clock": lambda: nvml.nvmlDeviceGetClockInfo(gpu, 1, ctypes.byref(number)),
    "power limit": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu, ctypes.byref(number)),
    "throttle reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu, ctypes.byref(big)),
    "GPM sample": lambda: nvml.nvmlGpmSampleGet(gpu, gpm),
}
print(f"{'call':28s} {'code':>4s} {'wall median':>12s} {'p95':>10s} {'CPU a call':>12s}")
for name, call in CALLS.items():
    code, walls, cpu = call(), [], 0.0
    for _ in range(50):
        cpu_before, before = time.process_time(), time.perf_counter()
        call()
        walls.append(time.perf_counter() - before)
        cpu += time.process_time() - cpu_before
        time.sleep(0.011)
    walls.sort()
    print(f"{name:28s} {code:4d} {walls[25] * 1e6:9.1f} us {walls[47] * 1e6:7.1f} us {cpu / 50 * 1e6:9.1f} us")

changes, last, begun = [], None, time.perf_counter()
while time.perf_counter() - begun < 2:
    CALLS["total energy"]()
    if big.value != last:
        changes.append(time.perf_counter())
        last = big.value
gaps = sorted(b - a for a, b in zip(changes[1:], changes[2:]))
print(f"energy counter: {len(gaps)} updates, {gaps[len(gaps) // 2] * 1e3:.1f} ms apart (median)")
