/* The null driver: its answers, their timing in steps of the clock, and its failures. */
#include "support/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "port/json_read.h"
#include "support/ask.h"
#include "support/stepped_clock.h"

static enum err open_null(const char *params, struct client *client, struct error *why)
{
    struct params given = {0};
    assert_int_equal(params_add(&given, params), ERR_OK);
    const struct client_config config = {.params = &given};
    enum err err = client_open(client_driver_find("null", NULL), &config, client, why);
    params_release(&given);
    return err;
}

static struct ask_result ask_null(const char *params, const char *request_params)
{
    struct client client;
    assert_int_equal(open_null(params, &client, NULL), ERR_OK);
    struct ask_result asked = ask_client(&client, request_params);
    client_close(&client);
    return asked;
}

static void answers_as_configured(void **state)
{
    (void)state;
    static const struct {
        const char *params, *request_params, *content;
        int64_t pieces, prompt;
        const char *reason;
    } CASES[] = {
        {"", NULL, "ok", 1, 2, "stop"},
        {"answer=echo", NULL, "Say hello", 2, 2, "stop"},
        {"answer=one two  three", NULL, "one two  three", 3, 2, "stop"},
        {"answer=a b,tokens=5", NULL, "a b a b a", 5, 2, "stop"},
        {"answer=a b,tokens=1", NULL, "a", 1, 2, "stop"},
        {"tokens=0", NULL, "", 0, 2, "stop"},
        {"answer=,tokens=3", NULL, "", 0, 2, "stop"},
        {"prompt_tokens=77", NULL, "ok", 1, 77, "stop"},
        {"answer=a b c", "max_tokens=2", "a b", 2, 2, "length"},
        {"answer=a b c", "max_tokens=3,temperature=1", "a b c", 3, 2, "stop"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct ask_result a = ask_null(CASES[i].params, CASES[i].request_params);
        assert_int_equal(a.err, ERR_OK);
        assert_string_equal(text_get(&a.reply.content), CASES[i].content);
        assert_int_equal(a.reply.arrivals.count, CASES[i].pieces);
        assert_int_equal(a.reply.output_tokens, CASES[i].pieces);
        assert_int_equal(a.reply.prompt_tokens, CASES[i].prompt);
        assert_string_equal(a.reply.finish_reason, CASES[i].reason);
        ask_result_release(&a);
    }
}

static void chunks_arrive_at_their_time(void **state)
{
    (void)state;
    struct ask_result a = ask_null("ttft_ms=30,tokens=5,tokens_per_s=100", NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_int_equal(a.reply.arrivals.count, 5);
    for (int i = 0; i < 5; i++)
        assert_near(seconds(a.reply.arrivals.times[i] - a.reply.sent), 0.03 + 0.01 * i, 1e-5);
    assert_int_equal(a.reply.first_token, a.reply.arrivals.times[0]);
    assert_int_equal(a.reply.last_token, a.reply.arrivals.times[4]);
    assert_true(a.reply.done >= a.reply.last_token);
    ask_result_release(&a);
}

static void every_nth_request_fails(void **state)
{
    (void)state;
    struct client client;
    assert_int_equal(open_null("fail_every=3", &client, NULL), ERR_OK);
    for (int i = 1; i <= 9; i++) {
        struct ask_result a = ask_client(&client, NULL);
        assert_int_equal(a.err, i % 3 == 0 ? ERR_BUSY : ERR_OK);
        assert_int_equal(a.reply.retryable, i % 3 == 0);
        assert_int_equal(a.reply.status, i % 3 == 0 ? 503 : 0);
        assert_int_equal(a.reply.output_tokens, i % 3 == 0 ? -1 : 1);
        ask_result_release(&a);
    }
    client_close(&client);
}

static void a_timeout_ends_the_request_and_keeps_received_content(void **state)
{
    (void)state;
    struct client client;
    struct completion reply;
    struct error why;
    assert_int_equal(open_null("tokens=3,tokens_per_s=0.01", &client, NULL), ERR_OK);
    const struct client_request request = {.model = "m", .prompt = "Q", .timeout = 30 * NS_PER_S};
    assert_int_equal(client.driver->ask(&client, &request, &reply, &why), ERR_TIMEOUT);
    assert_true(reply.retryable);
    assert_near(seconds(reply.done - reply.sent), 30, 1e-5); /* the next chunk is due after 100 s */
    assert_string_equal(text_get(&reply.content), "ok");
    assert_int_equal(reply.output_tokens, 1);
    completion_release(&reply);
    client_close(&client);
}

static void invalid_parameters_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *params, *says;
    } CASES[] = {
        {"ttft_ms=-1", "ttft_ms"},           {"ttft_ms=soon", "ttft_ms=soon: expected a number"},
        {"tokens=-1", "tokens=-1"},          {"tokens=99999999999", "expected 0 to 1000000"},
        {"tokens_per_s=-5", "tokens_per_s"}, {"token=5", "did you mean 'tokens'?"},
        {"fail_every=x", "fail_every=x"},    {"tools=maybe", "expected unknown, yes or no"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct client client;
        struct error why;
        assert_int_equal(open_null(CASES[i].params, &client, &why), ERR_USAGE);
        assert_contains(why.text, CASES[i].says);
        assert_null(client.driver);
    }
}

static void append_bytes(void *context, const char *bytes, size_t length, nanos t)
{
    (void)t;
    text_add_bytes(context, bytes, length);
}

static void the_observer_gets_all_content(void **state)
{
    (void)state;
    struct client client;
    struct completion reply;
    struct text seen = {0};
    assert_int_equal(open_null("answer=a b,tokens=5", &client, NULL), ERR_OK);
    const struct client_request request = {
        .model = "m", .prompt = "Q", .observer = append_bytes, .context = &seen};
    assert_int_equal(client.driver->ask(&client, &request, &reply, NULL), ERR_OK);
    assert_string_equal(text_get(&seen), text_get(&reply.content));
    completion_release(&reply);
    client_close(&client);
    text_release(&seen);
}

/* ---- scripts ---- */

static char script_path[] = "/tmp/ipw-script-XXXXXX";

static const char *write_script(const char *lines)
{
    static char params[80];
    str_copy(script_path + strlen(script_path) - 6, 7, "XXXXXX");
    int fd = mkstemp(script_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
    close(fd);
    snprintf(params, sizeof params, "script=%s", script_path);
    return params;
}

/* Sends a request with tools, expects the content and these calls: "name{arguments}". */
static void expect_turn(struct client *client, struct chat *chat, const char *content,
                        const char *calls)
{
    static const struct chat_tool TOOL = {"add", NULL, NULL};
    const struct client_request request = {
        .model = "m", .chat = chat, .tools = &TOOL, .tool_count = 1};
    struct completion reply;
    struct text shown = {0};
    assert_int_equal(client->driver->ask(client, &request, &reply, NULL), ERR_OK);
    for (size_t i = 0; i < reply.calls.count; i++)
        text_addf(&shown, "%s%s", reply.calls.items[i].name,
                  text_get(&reply.calls.items[i].arguments));
    assert_string_equal(text_get(&reply.content), content);
    assert_string_equal(text_get(&shown), calls);
    assert_string_equal(reply.finish_reason, *calls ? "tool_calls" : "stop");
    assert_true(reply.output_tokens > 0 && reply.first_token > 0);
    chat_add_reply(chat, text_get(&reply.content), &reply.calls);
    for (size_t i = 0; i < reply.calls.count; i++)
        chat_add_result(chat, &reply.calls.items[i], "3");
    completion_release(&reply);
    text_release(&shown);
}

static void a_script_is_selected_by_turn_and_question(void **state)
{
    (void)state;
    struct client client;
    const char *params = write_script(
        "{\"when\":\"sum\",\"tool_calls\":[{\"function\":{\"name\":\"add\",\"arguments\":{\"a\":1}}"
        "},"
        "{\"function\":{\"name\":\"add\",\"arguments\":{}}}]}\n\n"
        "{\"when\":\"sum\",\"content\":\"It is 3.\",\"prompt_tokens\":70,\"output_tokens\":9}\n"
        "{\"content\":\"No idea.\"}");
    assert_int_equal(open_null(params, &client, NULL), ERR_OK);
    for (int round = 0; round < 2;
         round++) { /* the turn follows from the conversation, not from the number of calls */
        struct chat sum = {0}, other = {0};
        chat_add(&sum, CHAT_USER, "the sum?");
        chat_add(&other, CHAT_USER, "why?");
        expect_turn(&client, &sum, "", "add{\"a\":1}add{}");
        expect_turn(&client, &other, "No idea.", "");
        expect_turn(&client, &sum, "It is 3.", "");
        expect_turn(&client, &sum, "No idea.", "");
        expect_turn(&client, &sum, "No idea.", ""); /* the last line repeats */
        chat_release(&sum);
        chat_release(&other);
    }
    client_close(&client);
    unlink(script_path);
}

static void a_script_sets_token_counts_and_errors(void **state)
{
    (void)state;
    struct ask_result a = ask_null(
        write_script("{\"content\":\"a b\",\"prompt_tokens\":70,\"output_tokens\":9}"), NULL);
    assert_int_equal(a.err, ERR_OK);
    assert_int_equal(a.reply.prompt_tokens, 70);
    assert_int_equal(a.reply.output_tokens, 9);
    ask_result_release(&a);
    unlink(script_path);
    a = ask_null(write_script("{\"error\":\"out of moons\"}"), NULL);
    assert_int_equal(a.err, ERR_IO);
    assert_contains(a.why.text, "out of moons");
    assert_false(a.reply.retryable);
    ask_result_release(&a);
    unlink(script_path);
    static const char *const BAD[][2] = {{"", "no replies"},
                                         {"{\"content\":1", "line 1"},
                                         {"{}\n\n[1]", "line 3: expected an object"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct client client;
        struct error why;
        assert_int_equal(open_null(write_script(BAD[i][0]), &client, &why), ERR_USAGE);
        assert_contains(why.text, BAD[i][1]);
        unlink(script_path);
    }
}

int main(void)
{
    stepped_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_configured),
        cmocka_unit_test(chunks_arrive_at_their_time),
        cmocka_unit_test(every_nth_request_fails),
        cmocka_unit_test(a_timeout_ends_the_request_and_keeps_received_content),
        cmocka_unit_test(invalid_parameters_are_rejected),
        cmocka_unit_test(the_observer_gets_all_content),
        cmocka_unit_test(a_script_is_selected_by_turn_and_question),
        cmocka_unit_test(a_script_sets_token_counts_and_errors),
    };
    return RUN_TESTS(tests);
}
