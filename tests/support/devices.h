/* Devices with round figures, for the tests of estimates.  A struct hardware made here points to static
 * memory and into the struct device that it is of: nothing is released. */
#ifndef TESTS_SUPPORT_DEVICES_H
#define TESTS_SUPPORT_DEVICES_H

#include "catalog/hardware.h"

struct device {
    struct hardware hardware;
};

struct hardware_figure device_figure(double value);

/* 100 TFLOP/s of matmuls in fp16 (0.5 pJ) and fp32 (50 TFLOP/s, 1 pJ), 10 TFLOP/s elementwise (2
 * pJ), 1 TB/s (10 pJ per byte), 16 GB; 20 W idle, 200 W limit; no launch overhead, peaks are
 * attained, 10 units; 100 GB/s links, without latency. Every figure is measured, to 5 %. */
const struct hardware *device_round(struct device *device);

#endif
