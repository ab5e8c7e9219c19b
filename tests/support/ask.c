#include "support/ask.h"

#include "support/inference.h"
#include "support/unit.h"

struct ask_result ask_client(struct client *client, const char *params)
{
    struct ask_result asked = {0};
    struct params given = {0};
    assert_int_equal(params_add(&given, params ? params : ""), ERR_OK);
    const struct client_request request = {
        .model = "tiny-1b", .prompt = "Say hello", .params = &given, .timeout = 60 * NS_PER_S};
    asked.err = client->driver->ask(client, &request, &asked.reply, &asked.why);
    params_release(&given);
    return asked;
}

struct ask_result ask_scenario(const char *driver, const char *scenario, const char *client_params,
                               const char *params)
{
    struct client client;
    inference_client(&client, driver, scenario, client_params);
    struct ask_result asked = ask_client(&client, params);
    client_close(&client);
    return asked;
}

void ask_result_release(struct ask_result *asked)
{
    completion_release(&asked->reply);
}
