/* The list of client drivers, and opening one of them. */
#include <string.h>

#include "clients/client.h"
#include "core/registry.h"

#define CLIENT(name) extern const struct client_driver client_##name;
#include "clients/clients.def"
#undef CLIENT

const struct client_driver *const CLIENT_DRIVERS[] = {
#define CLIENT(name) &client_##name,
#include "clients/clients.def"
#undef CLIENT
    NULL,
};

/* Aliases for services that use a driver's protocol, at the driver's default address. */
static const char *const ALIASES[][2] = {{"vllm", "openai"}};

const struct client_driver *client_driver_find(const char *name, struct error *why)
{
    for (size_t i = 0; name && i < COUNT_OF(ALIASES); i++)
        if (str_equal(name, ALIASES[i][0]))
            name = ALIASES[i][1];
    return registry_find("client", CLIENT_DRIVERS, name, ERR_NOT_FOUND, why);
}

enum err client_open(const struct client_driver *driver, const struct client_config *config,
                     struct client *out, struct error *why)
{
    *out = (struct client){0};
    char owner[64];
    chars_format(owner, "client %s", driver->name);
    enum err err = config->workload /* which checks its own */
                       ? ERR_OK
                       : params_check(config->params, driver->params, owner, why);
    if (!err && driver->available)
        err = driver->available(config->params, why);
    if (err)
        return err;
    out->driver = driver;
    out->probe_timeout = config->probe_timeout;
    err = driver->open(config, out, why);
    if (err)
        *out = (struct client){0};
    return err;
}

void client_close(struct client *client)
{
    if (client->driver)
        client->driver->close(client);
    *client = (struct client){0};
}
