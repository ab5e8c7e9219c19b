#define _GNU_SOURCE
#include "support/drive.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct sensor_findings drive_probe(const struct sensor_driver *driver)
{
    struct sensor_findings findings = {0};
    const struct sensor_config config = {0};
    sensors_probe(&config, driver->name, &findings);
    return findings;
}

const struct sensor_finding *drive_find(const struct sensor_findings *findings, const char *id)
{
    for (size_t i = 0; i < findings->count; i++)
        if (!strcmp(findings->items[i].id, id))
            return &findings->items[i];
    return NULL;
}

bool drive_open(const struct sensor_driver *driver, const char *id, struct sensor *out)
{
    struct sensor_findings findings = drive_probe(driver);
    const struct sensor_finding *finding = drive_find(&findings, id);
    struct error why;
    bool ok = finding && sensor_open(finding, out, &why) == ERR_OK;
    sensor_findings_release(&findings);
    return ok;
}

int drive_channel(const struct sensor *sensor, const char *name)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (!strcmp(sensor->channels[i].name, name))
            return (int)i;
    return -1;
}

struct observation drive_read(struct sensor *sensor, const char *channel, enum err *err)
{
    struct observation items[64], none = {.missing = ERR_COUNT};
    struct observations out = {.items = items, .capacity = 64};
    int index = drive_channel(sensor, channel);
    if (index < 0)
        return none;
    enum err got = sensor->driver->read(sensor, sensor->channels[index].group, &out);
    if (err)
        *err = got;
    for (size_t i = 0; i < out.count; i++)
        if (items[i].channel == index)
            return items[i];
    return none;
}

int drive_as_nobody(int (*body)(void *), void *argument)
{
    enum { NOBODY = 65534 };
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 &&
            (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
            _exit(125);
        _exit(body(argument) & 0x7f);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}
