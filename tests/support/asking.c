#include "support/asking.h"

#include "support/inference.h"
#include "support/unit.h"

struct asked ask_client(struct client *client, const char *params)
{
    struct asked asked = {0};
    struct params given = {0};
    assert_int_equal(params_add(&given, params ? params : ""), ERR_OK);
    const struct client_request request = {
        .model = "tiny-1b", .prompt = "Say hello", .params = &given, .timeout = 60 * NS_PER_S};
    asked.err = client->driver->ask(client, &request, &asked.reply, &asked.why);
    params_release(&given);
    return asked;
}

struct asked ask_play(const char *driver, const char *play, const char *client_params,
                      const char *params)
{
    struct client client;
    inference_client(&client, driver, play, client_params);
    struct asked asked = ask_client(&client, params);
    client_close(&client);
    return asked;
}

void asked_release(struct asked *asked)
{
    completion_release(&asked->reply);
}
