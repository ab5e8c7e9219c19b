/* Responses of Anthropic's Messages API, parsed without a server: streams and documents, every split, the dialects of
 * other servers, and faults. */
#include "support/unit.h"

#include <string.h>

#include "port/json_read.h"
#include "support/replies.h"

static enum err read_pieces(const char *body, size_t length, size_t cut, size_t piece,
                            enum err transport, struct completion *reply, struct error *why)
{
    return read_reply(RESPONSE_ANTHROPIC, body, length, cut, piece, transport, reply, why);
}

static enum err read_body(const char *body, enum err transport, struct completion *reply,
                          struct error *why)
{
    return read_pieces(body, strlen(body), 0, 0, transport, reply, why);
}

#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define START(usage)                                                                               \
    EVENT("message_start", ",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":"             \
                           "\"assistant\",\"content\":[],\"stop_reason\":null" usage "}")
#define BLOCK(index, block)                                                                        \
    EVENT("content_block_start", ",\"index\":" index ",\"content_block\":{" block "}")
#define DELTA(index, delta)                                                                        \
    EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{" delta "}")
#define BLOCK_STOP(index) EVENT("content_block_stop", ",\"index\":" index)
#define TEXT(text)                                                                                 \
    BLOCK("0", "\"type\":\"text\",\"text\":\"\"")                                                  \
    DELTA("0", "\"type\":\"text_delta\",\"text\":\"" text "\"") BLOCK_STOP("0")
#define END(reason, usage) EVENT("message_delta", ",\"delta\":{\"stop_reason\":" reason "}" usage)
#define STOP               EVENT("message_stop", "")

/* ---- every split ---- */

/* clang-format off */
static const char STREAM[] =
    START(",\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":20,"
          "\"cache_read_input_tokens\":300,\"output_tokens\":1}")
    EVENT("ping", "")
    BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
    DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"Let me \"")
    DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"see\"")
    DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"EqQBCgIYAhIM\"")
    BLOCK_STOP("0")
    BLOCK("1", "\"type\":\"text\",\"text\":\"\"")
    DELTA("1", "\"type\":\"text_delta\",\"text\":\"Hello, w\xC3\xB6rld \"")
    DELTA("1", "\"type\":\"text_delta\",\"text\":\"\\ud83c\\udf89 \\\"x\\\"\\n\"")
    BLOCK_STOP("1")
    BLOCK("2", "\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"add\",\"input\":{}")
    DELTA("2", "\"type\":\"input_json_delta\",\"partial_json\":\"\"")
    DELTA("2", "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": 1, \\\"b\\\"\"")
    DELTA("2", "\"type\":\"input_json_delta\",\"partial_json\":\": \\\"x}\\\"}\"")
    BLOCK_STOP("2")
    BLOCK("3", "\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"noop\",\"input\":{}")
    BLOCK_STOP("3")
    END("\"tool_use\",\"stop_sequence\":null", ",\"usage\":{\"output_tokens\":42,"
        "\"output_tokens_details\":{\"thinking_tokens\":7}}")
    STOP;
/* clang-format on */

static const char DOCUMENT[] =
    " {\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":["
    "{\"type\":\"thinking\",\"thinking\":\"Let me see\",\"signature\":\"EqQB\"},"
    "{\"type\":\"text\",\"text\":\"Hello, w\xC3\xB6rld \\ud83c\\udf89 \\\"x\\\"\\n\"},"
    "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"add\",\"input\":{\"a\": 1, \"b\": "
    "\"x}\"}},"
    "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"noop\",\"input\":{}}],"
    "\"model\":\"m\",\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{"
    "\"input_tokens\":5,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":300,"
    "\"output_tokens\":42,\"output_tokens_details\":{\"thinking_tokens\":7}}}\n";

static void check_reply(struct completion *reply, size_t chunks)
{
    struct jv *arguments;
    assert_string_equal(text_get(&reply->reasoning), "Let me see");
    assert_string_equal(text_get(&reply->content), "Hello, w\xC3\xB6rld \xF0\x9F\x8E\x89 \"x\"\n");
    assert_int_equal(reply->calls.count, 2);
    assert_string_equal(reply->calls.items[0].id, "toolu_1");
    assert_string_equal(reply->calls.items[0].name, "add");
    const struct text *text = &reply->calls.items[0].arguments;
    assert_int_equal(jv_parse(text_get(text), text->length, &arguments, NULL), ERR_OK);
    assert_string_equal(jv_text(jv_get(arguments, "b")), "x}");
    jv_free(arguments);
    assert_string_equal(reply->calls.items[1].name, "noop");
    assert_string_equal(text_get(&reply->calls.items[1].arguments), "{}");
    assert_string_equal(reply->finish_reason, "tool_calls");
    assert_int_equal(reply->prompt_tokens, 325);
    assert_int_equal(reply->cached_tokens, 300);
    assert_int_equal(reply->output_tokens, 42);
    assert_int_equal(reply->reasoning_tokens, 7);
    assert_int_equal(reply->arrivals.count, chunks);
    assert_int_equal(reply->first_token, reply->arrivals.times[0]);
    assert_int_equal(reply->last_token, reply->arrivals.times[chunks - 1]);
    completion_release(reply);
}

static void a_message_does_not_depend_on_how_bytes_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t length, chunks;
    } CASES[] = {{STREAM, sizeof STREAM - 1, 8}, {DOCUMENT, sizeof DOCUMENT - 1, 4}};
    for (size_t i = 0; i < 2; i++) {
        struct completion reply;
        struct error why;
        for (size_t cut = 0; cut <= CASES[i].length; cut++) {
            assert_int_equal(
                read_pieces(CASES[i].body, CASES[i].length, cut, 0, ERR_OK, &reply, &why), ERR_OK);
            check_reply(&reply, CASES[i].chunks);
        }
        for (size_t piece = 1; piece < 12; piece++) {
            assert_int_equal(
                read_pieces(CASES[i].body, CASES[i].length, 0, piece, ERR_OK, &reply, &why),
                ERR_OK);
            check_reply(&reply, CASES[i].chunks);
        }
    }
}

/* A truncated message is an error, and has no token counts: those of message_start are of the time before it. */
static void a_truncated_message_is_lost_not_short(void **state)
{
    (void)state;
    size_t end = (size_t)(strstr(STREAM, "\"stop_reason\":\"tool_use\"") - STREAM);
    for (size_t length = 0; length < end; length++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_pieces(STREAM, length, 0, 0, ERR_OK, &reply, &why), ERR_LOST);
        assert_true(reply.retryable);
        assert_contains(why.text, "http://s");
        assert_int_equal(reply.output_tokens, -1);
        assert_int_equal(reply.prompt_tokens, -1);
        completion_release(&reply);
    }
    for (size_t length = 2; length < sizeof DOCUMENT - 2; length++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_pieces(DOCUMENT, length, 0, 0, ERR_OK, &reply, &why), ERR_BAD_VALUE);
        completion_release(&reply);
    }
}

static void the_end_is_the_servers_stop_reason(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum err transport, expected;
        const char *reason;
    } CASES[] = {
        {START("") TEXT("a") END("\"end_turn\"", "") STOP, ERR_OK, ERR_OK, "stop"},
        {START("") TEXT("a") END("\"stop_sequence\"", "") STOP, ERR_OK, ERR_OK, "stop"},
        {START("") TEXT("a") END("\"max_tokens\"", "") STOP, ERR_OK, ERR_OK, "length"},
        {START("") TEXT("a") END("\"model_context_window_exceeded\"", "") STOP, ERR_OK, ERR_OK,
         "length"},
        {START("") TEXT("a") END("\"refusal\"", "") STOP, ERR_OK, ERR_OK, "refusal"},
        {START("") TEXT("a") END("\"pause_turn\"", "") STOP, ERR_OK, ERR_OK, "pause_turn"},
        {START("") TEXT("a") END("\"end_turn\"", ""), ERR_OK, ERR_OK, "stop"},
        {START("") TEXT("a") END("\"end_turn\"", ""), ERR_LOST, ERR_OK, "stop"},
        {START("") TEXT("a") END("\"end_turn\"", ""), ERR_TIMEOUT, ERR_TIMEOUT, "stop"},
        {START("") TEXT("a") END("\"end_turn\"", "") STOP, ERR_TIMEOUT, ERR_OK, "stop"},
        {START("") TEXT("a") END("null", "") STOP, ERR_OK, ERR_OK, ""}, /* vLLM, at times */
        {START("") TEXT("a") STOP TEXT("late"), ERR_OK, ERR_OK, ""},
        {START("") TEXT("a") STOP "data: [DONE]\n\n", ERR_OK, ERR_OK, ""},
        {START("") TEXT("a"), ERR_OK, ERR_LOST, ""},
        {START("") TEXT("a") "data: [DONE]\n\n", ERR_OK, ERR_LOST, ""},
        {START("") TEXT("a"), ERR_INTERRUPTED, ERR_INTERRUPTED, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_body(CASES[i].body, CASES[i].transport, &reply, &why),
                         CASES[i].expected);
        assert_string_equal(text_get(&reply.content), "a");
        assert_string_equal(reply.finish_reason, CASES[i].reason);
        completion_release(&reply);
    }
}

/* ---- dialects ---- */

#define USAGE(members) ",\"usage\":{" members "}"

static void counts_are_found_in_every_dialect(void **state)
{
    (void)state;
    static const struct {
        const char *start, *end; /* the usage of each */
        int64_t prompt, output, cached;
    } CASES[] = {
        {"", "", -1, -1, -1},
        {",\"usage\":null", ",\"usage\":null", -1, -1, -1},
        /* Anthropic's */
        {USAGE("\"input_tokens\":5,\"cache_creation_input_tokens\":20,"
               "\"cache_read_input_tokens\":300,\"output_tokens\":2"),
         USAGE("\"output_tokens\":9"), 325, 9, 300},
        {USAGE("\"input_tokens\":5,\"cache_creation_input_tokens\":null,"
               "\"cache_read_input_tokens\":0,\"output_tokens\":2"),
         USAGE("\"input_tokens\":8,\"cache_creation_input_tokens\":1,"
               "\"cache_read_input_tokens\":null,\"output_tokens\":9"),
         9, 9, 0},
        /* llama.cpp's: all of the prompt but one token was cached */
        {USAGE("\"cache_read_input_tokens\":20,\"input_tokens\":1,\"output_tokens\":0"),
         USAGE("\"output_tokens\":9"), 21, 9, 20},
        /* vLLM's, and one that knows the prompt only at the end */
        {USAGE("\"input_tokens\":5,\"output_tokens\":0"),
         USAGE("\"input_tokens\":5,\"output_tokens\":9"), 5, 9, -1},
        {USAGE("\"input_tokens\":0,\"output_tokens\":0"),
         USAGE("\"input_tokens\":0,\"output_tokens\":9"), -1, 9, -1},
        {"", USAGE("\"input_tokens\":5,\"output_tokens\":9"), 5, 9, -1},
        /* that of message_start is not the output's */
        {USAGE("\"input_tokens\":5,\"output_tokens\":3"), "", 5, -1, -1},
        {USAGE("\"input_tokens\":5"), USAGE("\"output_tokens\":0"), 5, 0, -1},
        /* all of it cached */
        {USAGE("\"input_tokens\":0,\"cache_read_input_tokens\":40"), USAGE("\"output_tokens\":9"),
         40, 9, 40},
        /* no counts */
        {USAGE("\"input_tokens\":-5,\"cache_read_input_tokens\":\"7\""),
         USAGE("\"output_tokens\":9.5"), -1, -1, -1},
        {USAGE("\"input_tokens\":9223372036854775807,\"cache_read_input_tokens\":"
               "9223372036854775807"),
         USAGE("\"output_tokens\":9223372036854775807"), -1, -1, -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[2048];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, START("%s") TEXT("a") END("\"end_turn\"", "%s") STOP,
                 CASES[i].start, CASES[i].end);
        assert_int_equal(read_body(body, ERR_OK, &reply, &why), ERR_OK);
        assert_int_equal(reply.prompt_tokens, CASES[i].prompt);
        assert_int_equal(reply.output_tokens, CASES[i].output);
        assert_int_equal(reply.cached_tokens, CASES[i].cached);
        completion_release(&reply);
    }
}

static void content_is_found_in_every_block(void **state)
{
    (void)state;
    static const struct {
        const char *events, *content, *reasoning;
        size_t calls, chunks;
    } CASES[] = {
        {TEXT("a"), "a", "", 0, 1},
        /* a block that begins with its content, and one without an index */
        {BLOCK("0", "\"type\":\"text\",\"text\":\"a\""), "a", "", 0, 1},
        {EVENT("content_block_delta", ",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}"), "a",
         "", 0, 1},
        {BLOCK("0", "\"type\":\"redacted_thinking\",\"data\":\"EmwKA\"") TEXT("a"), "a", "", 0, 1},
        {DELTA("0", "\"type\":\"citations_delta\",\"citation\":{\"cited_text\":\"c\"}"), "", "", 0,
         0},
        {DELTA("0", "\"type\":\"text_delta\",\"text\":null"), "", "", 0, 0},
        {DELTA("0", "\"type\":\"later_delta\",\"text\":\"x\""), "", "", 0, 0},
        {EVENT("later_event", ",\"text\":\"x\"") TEXT("a"), "a", "", 0, 1},
        /* run by the service itself: not a call for the client */
        {BLOCK("0", "\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":"
                    "{}") DELTA("0", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\"")
             BLOCK("1", "\"type\":\"web_search_tool_result\",\"content\":[]") TEXT("a"),
         "a", "", 0, 1},
        /* the whole input at once; two calls with one index, the second without an id */
        {BLOCK("0", "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"a\":1}"), "",
         "", 1, 1},
        {BLOCK("0", "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}")
             DELTA("0", "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"")
                 BLOCK("0", "\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}")
                     DELTA("0", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\""),
         "", "", 2, 4},
        /* events are recognized by their name if the data has no type */
        {"event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"thinking_delta\","
         "\"thinking\":\"r\"}}\n\n",
         "", "r", 0, 1},
        {"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
         "\"text\":\"a\"}}\r\n\r\n",
         "a", "", 0, 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[2048];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, START("") "%s" END("\"end_turn\"", "") STOP, CASES[i].events);
        assert_int_equal(read_body(body, ERR_OK, &reply, &why), ERR_OK);
        assert_string_equal(text_get(&reply.content), CASES[i].content);
        assert_string_equal(text_get(&reply.reasoning), CASES[i].reasoning);
        assert_int_equal(reply.calls.count, CASES[i].calls);
        assert_int_equal(reply.arrivals.count, CASES[i].chunks);
        for (size_t c = 0; c < reply.calls.count; c++) {
            assert_string_equal(reply.calls.items[c].name, "f");
            assert_true(*reply.calls.items[c].id);
            assert_string_equal(text_get(&reply.calls.items[c].arguments), c ? "{}" : "{\"a\":1}");
        }
        completion_release(&reply);
    }
}

/* ---- faults ---- */

static void errors_say_whether_a_retry_may_succeed(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool is_retryable;
    } CASES[] = {
        {"overloaded_error", true},       {"api_error", true},
        {"rate_limit_error", true},       {"timeout_error", true},
        {"not_found_error", false},       {"authentication_error", false},
        {"invalid_request_error", false}, {"billing_error", false},
    };
    static const char *const FORMS[][2] = {
        {START("") TEXT("a") "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"",
         "\",\"message\":\"the moon is\\nfull\"}}\n\n"},
        {START("") TEXT("a") "data: {\"error\":{\"type\":\"",
         "\",\"message\":\"the moon is full\"}}\n\n"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"",
         "\",\"message\":\"the moon is full\"},\"request_id\":\"r\"}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
            char body[1024];
            struct completion reply;
            struct error why;
            snprintf(body, sizeof body, "%s%s%s", FORMS[f][0], CASES[i].type, FORMS[f][1]);
            assert_int_equal(read_body(body, ERR_OK, &reply, &why), ERR_IO);
            assert_contains(why.text, "http://s failed: the moon is full");
            assert_int_equal(reply.retryable, CASES[i].is_retryable);
            assert_string_equal(text_get(&reply.content), f < 2 ? "a" : "");
            assert_int_equal(reply.output_tokens, -1);
            completion_release(&reply);
        }
}

static void malformed_responses_are_errors(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
        enum err err;
    } CASES[] = {
        {START("") TEXT("a") "event: content_block_delta\ndata: {\"type\": oops\n\n",
         "invalid JSON", ERR_BAD_VALUE},
        {START("") "data: [1]\n\n", "invalid JSON", ERR_BAD_VALUE},
        {START("") "data: \"text\"\n\n", "invalid JSON", ERR_BAD_VALUE},
        {"{\"type\":\"message\",\"content\":\"text\",\"stop_reason\":\"end_turn\"}",
         "without content", ERR_BAD_VALUE},
        {"{\"choices\":[]}", "without content", ERR_BAD_VALUE},
        {"[]", "invalid JSON", ERR_BAD_VALUE},
        {"<html></html>", "HTML page", ERR_BAD_VALUE},
        {"{\"type\":\"message\",\"content\":[", "invalid JSON", ERR_BAD_VALUE},
        {START("") BLOCK("0", "\"type\":\"tool_use\",\"id\":\"c\",\"input\":{}")
             END("\"tool_use\"", "") STOP,
         "without a name", ERR_BAD_VALUE},
        {EVENT("error", ""), "unspecified error", ERR_IO},
        {"", "before the completion was finished", ERR_LOST},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_body(CASES[i].body, ERR_OK, &reply, &why), CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        assert_null(strchr(why.text, '\n'));
        completion_release(&reply);
    }
}

/* Odd types and members in every place: no crash, and nothing is taken for content. */
static void members_of_wrong_types_are_ignored(void **state)
{
    (void)state;
    static const char *const EVENTS[] = {
        "data: {}\n\n",
        "data: {\"type\":7}\n\n",
        "data: {\"type\":\"message_start\"}\n\n",
        "data: {\"type\":\"message_start\",\"message\":[1]}\n\n",
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":\"many\"}}\n\n",
        "data: {\"type\":\"content_block_start\"}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":\"0\",\"content_block\":[]}\n\n",
        "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":{}}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":7}\n\n",
        DELTA("-1", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\""),
        DELTA("9223372036854775807", "\"type\":\"input_json_delta\",\"partial_json\":{}"),
        DELTA("0", "\"type\":\"text_delta\",\"text\":{\"a\":1}"),
        DELTA("0", "\"type\":\"text_delta\",\"thinking\":\"x\""),
        "data: {\"type\":\"message_delta\",\"delta\":[],\"usage\":[]}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":{}},\"usage\":7}\n\n",
    };
    for (size_t i = 0; i < sizeof EVENTS / sizeof *EVENTS; i++) {
        char body[1024];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, "%s" TEXT("a") END("\"end_turn\"", "") STOP, EVENTS[i]);
        assert_int_equal(read_body(body, ERR_OK, &reply, &why), ERR_OK);
        assert_string_equal(text_get(&reply.content), "a");
        assert_int_equal(reply.calls.count, 0);
        assert_int_equal(reply.prompt_tokens, -1);
        completion_release(&reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_does_not_depend_on_how_bytes_are_split),
        cmocka_unit_test(a_truncated_message_is_lost_not_short),
        cmocka_unit_test(the_end_is_the_servers_stop_reason),
        cmocka_unit_test(counts_are_found_in_every_dialect),
        cmocka_unit_test(content_is_found_in_every_block),
        cmocka_unit_test(errors_say_whether_a_retry_may_succeed),
        cmocka_unit_test(malformed_responses_are_errors),
        cmocka_unit_test(members_of_wrong_types_are_ignored),
    };
    return RUN_TESTS(tests);
}
