#include "clients/wire/warm.h"

#include "core/clock.h"

nanos warm_look_timeout(nanos timeout)
{
    return timeout > 0 && timeout < LOOK_TIMEOUT ? timeout : LOOK_TIMEOUT;
}

enum err warm_up(struct client *client, const char *model, const char *limit, nanos began,
                 nanos timeout, struct error *why)
{
    struct params params = {0};
    if (params_set(&params, limit, "1"))
        return err_set(why, ERR_NO_MEMORY, "out of memory for a request");
    nanos left = timeout > 0 ? timeout - (clock_now() - began) : 0;
    if (timeout > 0 && left < NS_PER_MS)
        left = NS_PER_MS; /* 0 would be no limit at all */
    const struct client_request request = {
        .model = model, .prompt = "Hello", .params = &params, .timeout = left};
    struct client_reply reply;
    enum err err = client->driver->ask(client, &request, &reply, why);
    client_reply_release(&reply);
    params_release(&params);
    return err;
}
