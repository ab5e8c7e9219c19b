#include "sensors/registry.h"

#include <stdlib.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"

#define SENSOR(name) extern const struct sensor_driver sensor_##name;
#include "sensors/sensors.def"
#undef SENSOR

const struct sensor_driver *const SENSOR_DRIVERS[] = {
#define SENSOR(name) &sensor_##name,
#include "sensors/sensors.def"
#undef SENSOR
    NULL,
};

const struct sensor_driver *sensor_driver_find(const char *name, struct error *why)
{
    return registry_find("sensor driver", SENSOR_DRIVERS, name, ERR_USAGE, why);
}

void sensors_probe(const struct sensor_config *config, const char *only,
                   struct sensor_findings *out)
{
    for (const struct sensor_driver *const *d = SENSOR_DRIVERS; *d; d++) {
        if (only && !str_equal((*d)->name, only))
            continue;
        size_t first = out->count;
        (*d)->probe(config, out);
        for (size_t i = first; i < out->count; i++)
            out->items[i].driver = *d;
    }
}

void sensor_findings_release(struct sensor_findings *findings)
{
    free(findings->items);
    *findings = (struct sensor_findings){0};
}

enum err sensor_open(const struct sensor_finding *finding, struct sensor *out, struct error *why)
{
    *out = (struct sensor){
        .driver = finding->driver,
        .kind = finding->kind,
        .pin_cpu = -1,
    };
    chars_copy(out->id, finding->id);
    chars_copy(out->name, finding->name);
    return finding->driver->open(finding, out, why);
}

void sensor_close(struct sensor *sensor)
{
    if (sensor->driver)
        sensor->driver->close(sensor);
    sensor->state = NULL;
}
