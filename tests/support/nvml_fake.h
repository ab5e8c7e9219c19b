/* A machine with NVIDIA GPUs that are not there: the fake library through the real loading path,
 * and a clock that stands still until told.  One at a time; nvml_fake_start begins it and
 * nvml_fake_stop puts the environment and the clock back. */
#ifndef TESTS_SUPPORT_NVML_FAKE_H
#define TESTS_SUPPORT_NVML_FAKE_H

#include "core/err.h"
#include "core/units.h"
#include "support/sensing.h"

/* Set-up and teardown of a test; state is left alone. */
int nvml_fake_start(void **state);
int nvml_fake_stop(void **state);

#define NVML_TEST(test) cmocka_unit_test_setup_teardown(test, nvml_fake_start, nvml_fake_stop)

/* Replaces the script; the time directives are added to it. */
void nvml_fake_script(const char *format, ...) PRINTF_LIKE(1, 2);

/* What has been set on card 0, by this process or another: "0 graphics MIN MAX memory MIN MAX limit MW" with 0 for what
 * is not; "" as long as nothing was. */
const char *nvml_fake_settings(void);

/* Moves the machine's clocks and the fake's to s seconds. */
void nvml_fake_time(double s);

/* Sets the wall clock by this much, now: ours, the stamps of the driver from now on, or both. */
void nvml_fake_set_wall(double ours_s, double drivers_s);

/* The monotonic time that stands for s. */
nanos nvml_fake_nanos(double s);

/* Lets both clocks run with the kernel's. */
void nvml_fake_run_free(void);

/* Probes the nvml driver alone; findings are valid until the next call. */
const struct sensor_findings *nvml_fake_probe(const char *devices);
const struct sensor_finding *nvml_fake_finding(const char *id); /* of the last probe, or NULL */

/* Probes and opens "nvml:0" ...; any failure is the returned error. */
enum err nvml_fake_open(const char *id, struct sensor *out);

/* Reads the group of a channel; the observations are valid until the next call. */
enum err nvml_fake_read(struct sensor *sensor, const char *channel);

/* How many observations of a channel the last read gave, and the i-th of them (NULL beyond). */
size_t nvml_fake_count(const struct sensor *sensor, const char *channel);
const struct observation *nvml_fake_get(const struct sensor *sensor, const char *channel, size_t i);

/* The room that reads find; 0 for the default, which is ample. */
void nvml_fake_room(size_t observations);

#endif
