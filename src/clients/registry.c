/* The list of client drivers, and opening one of them. */
#include <string.h>

#include "clients/client.h"

#define CLIENT(name) extern const struct client_driver client_##name;
#include "clients/clients.def"
#undef CLIENT

const struct client_driver *const CLIENT_DRIVERS[] = {
#define CLIENT(name) &client_##name,
#include "clients/clients.def"
#undef CLIENT
    NULL,
};

const struct client_driver *client_driver_find(const char *name, struct error *why)
{
    enum { MOST = 64 };
    const char *names[MOST] = {NULL};
    size_t count = 0;
    for (const struct client_driver *const *d = CLIENT_DRIVERS; *d; d++) {
        if (strcmp((*d)->name, name) == 0)
            return *d;
        if (count < MOST)
            names[count++] = (*d)->name;
    }
    const char *near = nearest_name(name, names, count);
    if (near) {
        err_set(why, ERR_NOT_FOUND, "there is no client '%s': did you mean '%s'?", name, near);
        return NULL;
    }
    struct text list = {0};
    for (size_t i = 0; i < count; i++)
        text_addf(&list, "%s%s", i ? ", " : "", names[i]);
    err_set(why, ERR_NOT_FOUND, "there is no client '%s'; there are: %s", name, text_get(&list));
    text_release(&list);
    return NULL;
}

enum err client_open(const struct client_driver *driver, const struct client_config *config,
                     struct client *out, struct error *why)
{
    *out = (struct client){0};
    char owner[64];
    str_format(owner, sizeof owner, "client %s", driver->name);
    enum err err = params_check(config->params, driver->params, owner, why);
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
