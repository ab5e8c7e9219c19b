/* The null sensor: always present, measures nothing.  The conformance tests and the overhead benchmark need a driver
 * that always exists; it is also the smallest example of one.  Its probe reports unsupported, so no command uses it
 * as a source of joules. */
#include "core/clock.h"
#include "core/text.h"
#include "sensors/sensor.h"

static void null_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    struct sensor_finding *finding = sensor_found(out, "null", SENSOR_TEST, SENSOR_UNSUPPORTED);
    if (finding)
        chars_copy(finding->reason, "measures nothing, by design");
}

static enum err null_open(const struct sensor_finding *finding, struct sensor *out,
                          struct error *why)
{
    (void)finding;
    (void)why;
    struct sensor_channel *power = sensor_add_channel(out, "power", "null", QTY_POWER);
    power->watts_max = 1;
    out->groups[0] = (struct sensor_group){
        .period_default = 100 * NS_PER_MS,
        .period_min = NS_PER_MS,
    };
    out->group_count = 1;
    return ERR_OK;
}

static enum err null_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)sensor;
    (void)group;
    observe_missing(out, 0, clock_now(), ERR_UNSUPPORTED);
    return ERR_OK;
}

static void null_close(struct sensor *sensor)
{
    (void)sensor;
}

const struct sensor_driver sensor_null = {
    .name = "null",
    .summary = "measures nothing; for tests and for measuring overhead",
    .probe = null_probe,
    .open = null_open,
    .read = null_read,
    .close = null_close,
};
