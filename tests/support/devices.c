#include "support/devices.h"

struct hardware_figure device_figure(double value)
{
    return (struct hardware_figure){.value = value,
                                    .evidence = EVIDENCE_MEASURED,
                                    .plus_minus = 0.05 * value,
                                    .source = "a test"};
}

const struct hardware *device_round(struct device *device)
{
    struct hardware *hardware = &device->hardware;
    *hardware = (struct hardware){.id = "round",
                                  .name = "a device of round figures",
                                  .class = HARDWARE_GPU,
                                  .memories = {{.name = "memory",
                                                .bytes_per_s = device_figure(1e12),
                                                .capacity_bytes = device_figure(16e9),
                                                .joules_per_byte = device_figure(10e-12)}},
                                  .memory_count = 1,
                                  .limit_w = device_figure(200),
                                  .idle_w = device_figure(20),
                                  .launch_s = device_figure(0),
                                  .units = device_figure(10),
                                  .compute_share = device_figure(1),
                                  .memory_share = device_figure(1),
                                  .link_bytes_per_s = device_figure(100e9),
                                  .link_latency_s = device_figure(0)};
    for (int i = 0; i < PRECISION_COUNT; i++)
        hardware->matrix_flops[i] = hardware->vector_flops[i] = hardware->matrix_joules[i] =
            hardware->vector_joules[i] = device_figure(UNKNOWN);
    hardware->matrix_flops[PRECISION_FP16] = device_figure(100e12);
    hardware->matrix_joules[PRECISION_FP16] = device_figure(0.5e-12);
    hardware->matrix_flops[PRECISION_FP32] = device_figure(50e12);
    hardware->matrix_joules[PRECISION_FP32] = device_figure(1e-12);
    hardware->vector_flops[PRECISION_FP32] = device_figure(10e12);
    hardware->vector_joules[PRECISION_FP32] = device_figure(2e-12);
    return hardware;
}
