/* A machine with fake NVIDIA GPUs: the fake library through the real loading path, and a clock that
 * is set by the test. One at a time; nvml_fake_start begins it and nvml_fake_stop restores the
 * environment and the clock. */
#ifndef TESTS_SUPPORT_NVML_FAKE_H
#define TESTS_SUPPORT_NVML_FAKE_H

#include "core/err.h"
#include "core/units.h"
#include "support/sensing.h"

/* Set-up and teardown of a test; state is unused. */
int nvml_fake_start(void **state);
int nvml_fake_stop(void **state);

#define NVML_TEST(test) cmocka_unit_test_setup_teardown(test, nvml_fake_start, nvml_fake_stop)

/* Replaces the script; the time directives are added to it. */
void nvml_fake_script(const char *format, ...) PRINTF_LIKE(1, 2);

/* The settings of card 0, by this or another process: "0 graphics MIN MAX memory MIN MAX limit MW"
 * with 0 for what is not set; "" before the first. */
const char *nvml_fake_settings(void);

/* Sets the machine's clocks and the fake's to s seconds. */
void nvml_fake_time(double s);

/* Steps the wall clock by this much, now: ours, the driver's timestamps from now on, or both. */
void nvml_fake_set_wall(double ours_s, double drivers_s);

/* The monotonic time at s. */
nanos nvml_fake_nanos(double s);

/* Lets both clocks run with the kernel's. */
void nvml_fake_run_free(void);

/* Probes the nvml driver only; findings are valid until the next call. */
const struct sensor_findings *nvml_fake_probe(const char *devices);
const struct sensor_finding *nvml_fake_finding(const char *id); /* of the last probe, or NULL */

/* Probes and opens "nvml:0" ...; any failure is the returned error. */
enum err nvml_fake_open(const char *id, struct sensor *out);

/* Reads the group of a channel; the observations are valid until the next call. */
enum err nvml_fake_read(struct sensor *sensor, const char *channel);

/* The number of observations of a channel in the last read, and the i-th of them (NULL beyond). */
size_t nvml_fake_count(const struct sensor *sensor, const char *channel);
const struct observation *nvml_fake_get(const struct sensor *sensor, const char *channel, size_t i);

/* The capacity of reads; 0 for the default, which is ample. */
void nvml_fake_capacity(size_t observations);

#endif
