#!/usr/bin/env python3
"""Accuracy of short windows on an NVIDIA GPU: regions of libipw under a square wave of power.

No second meter is needed: over whole periods of a steady wave the mean power of every region is that of the wave, which
the energy counter gives over its whole duration.  Prints, for each wave, the share of regions whose energy is within 1
and 2 of their standard uncertainties, and the median of that uncertainty.  Changes no clock, limit or mode of the GPU.
Usage: research/measure-windows.py [LIBRARY]
"""
import ctypes
import statistics
import sys
import time

import torch


class Result(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_double) for name in
                ("seconds", "joules", "plus_minus", "coverage", "watts")),
                ("method", ctypes.c_int), ("low_confidence", ctypes.c_int), ("updates", ctypes.c_ulong),
                ("source", ctypes.c_char * 320), ("note", ctypes.c_char * 160)]


library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "build/libipw.so")
library.ipw_open.restype = ctypes.c_void_p
library.ipw_begin.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
library.ipw_end.argtypes = [ctypes.c_void_p, ctypes.c_int]
library.ipw_read_device.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Result)]

matrix = torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16)


def wave(busy_s, idle_s, seconds):
    """Alternates matrix products for busy_s and sleep for idle_s; yields at the start of each period."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        until = time.monotonic() + busy_s
        while time.monotonic() < until:
            matrix @ matrix
            torch.cuda.synchronize()
        if idle_s:
            rest = until + idle_s - time.monotonic()
            time.sleep(max(rest, 0))


def read(session, region):
    result = Result(size=ctypes.sizeof(Result))
    status = library.ipw_read_device(session, region, b"gpu0", ctypes.byref(result))
    return result if status == 0 else None


def measure(session, busy_s, idle_s, periods, seconds=40):
    for _ in wave(busy_s, idle_s, 3):  # warm-up
        pass
    whole = library.ipw_begin(session, b"whole")
    regions, current, count = [], None, 0
    for _ in wave(busy_s, idle_s, seconds):
        if current is not None and count % (2 * periods) == periods:
            library.ipw_end(session, current)
            regions.append(current)
            current = None
        if count % (2 * periods) == 0:
            current = library.ipw_begin(session, b"window")
        count += 1
    library.ipw_end(session, whole)
    if current is not None:
        library.ipw_end(session, current)
    watts = read(session, whole).watts
    errors, widths, lengths = [], [], []
    for region in regions:
        found = read(session, region)
        if found is None or found.joules != found.joules:
            continue
        truth = watts * found.seconds
        errors.append((found.joules - truth) / found.plus_minus)
        widths.append(found.plus_minus / truth)
        lengths.append(found.seconds)
    inside = [100 * sum(abs(error) <= limit for error in errors) / len(errors) for limit in (1, 2)]
    print(f"{1e3 * busy_s:4.0f}/{1e3 * idle_s:3.0f} ms  {1e3 * statistics.median(lengths):5.0f} ms  {len(errors):4d} of "
          f"{len(regions):4d}  {watts:6.1f} W  {inside[0]:5.1f} %  {inside[1]:5.1f} %  "
          f"{100 * statistics.median(widths):5.1f} %", flush=True)


def main():
    session = library.ipw_open(None, None)
    print("busy/idle  window   regions      mean     1 sigma  2 sigma  median +-")
    for busy_s, idle_s, periods in ((0.03, 0.03, 2), (0.03, 0.03, 5), (0.1, 0.1, 1), (0.01, 0.02, 4), (0.12, 0, 1),
                                    (0.5, 0, 1)):
        measure(session, busy_s, idle_s, periods)


main()
