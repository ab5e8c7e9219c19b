/* test: valgrind */
/* Responses of both APIs, parsed without a server: dialects, faults, every split. */
#include "support/unit.h"

#include <string.h>

#include "port/json_read.h"
#include "support/replies.h"
#include "wire/responses.h"

enum { STEP = REPLY_STEP };

static enum err read_openai(const char *body, size_t length, size_t cut, size_t piece,
                            enum err transport, struct completion *reply, struct error *why)
{
    return read_reply(RESPONSE_OPENAI, body, length, cut, piece, transport, reply, why);
}

static enum err read_ollama(const char *body, size_t length, size_t cut, size_t piece,
                            enum err transport, struct completion *reply, struct error *why)
{
    return read_reply(RESPONSE_OLLAMA, body, length, cut, piece, transport, reply, why);
}

#define CHUNK(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define REASON      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define DONE        "data: [DONE]\n\n"

/* ---- every split ---- */

static const char OPENAI_STREAM_BODY[] = ": hello\n\n" CHUNK("Hello, w\xC3\xB6rld ")
    CHUNK("\\ud83c\\udf89 \\\"x\\\"\\n") CHUNK("\xE2\x82\xAC") REASON
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n" DONE;
static const char OPENAI_WHOLE_BODY[] =
    " \n{\"choices\":[{\"message\":{\"content\":\"Hello, w\xC3\xB6rld \\ud83c\\udf89 "
    "\\\"x\\\"\\n\xE2\x82\xAC\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n";
static const char OLLAMA_BODY[] =
    "{\"response\":\"Hello, w\xC3\xB6rld \",\"done\":false}\n"
    "{\"response\":\"\\ud83c\\udf89 \\\"x\\\"\\n\"}\r\n"
    "{\"response\":\"\xE2\x82\xAC\"}\n"
    "{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":3,"
    "\"eval_count\":2}";
static const char EXPECTED[] = "Hello, w\xC3\xB6rld \xF0\x9F\x8E\x89 \"x\"\n\xE2\x82\xAC";

typedef enum err (*reader)(const char *body, size_t length, size_t cut, size_t piece,
                           enum err transport, struct completion *reply, struct error *why);

static void check_reply(struct completion *reply, size_t pieces)
{
    assert_string_equal(text_get(&reply->content), EXPECTED);
    assert_int_equal(reply->arrivals.count, pieces);
    assert_int_equal(reply->prompt_tokens, 3);
    assert_int_equal(reply->output_tokens, 2);
    assert_string_equal(reply->finish_reason, "stop");
    assert_int_equal(reply->first_token, reply->arrivals.times[0]);
    assert_int_equal(reply->last_token, reply->arrivals.times[pieces - 1]);
    completion_release(reply);
}

static void content_does_not_depend_on_how_bytes_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        reader read;
        size_t pieces;
    } CASES[] = {{OPENAI_STREAM_BODY, read_openai, 3},
                 {OPENAI_WHOLE_BODY, read_openai, 1},
                 {OLLAMA_BODY, read_ollama, 3}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t length = strlen(CASES[i].body);
        struct completion reply;
        struct error why;
        for (size_t cut = 0; cut <= length; cut++) {
            assert_int_equal(CASES[i].read(CASES[i].body, length, cut, 0, ERR_OK, &reply, &why),
                             ERR_OK);
            check_reply(&reply, CASES[i].pieces);
        }
        for (size_t piece = 1; piece < 12; piece++) {
            assert_int_equal(CASES[i].read(CASES[i].body, length, 0, piece, ERR_OK, &reply, &why),
                             ERR_OK);
            check_reply(&reply, CASES[i].pieces);
        }
    }
}

/* The body truncated after `length` bytes must be ERR_LOST, with the beginning of the content kept. */
static void check_cut_off(reader read, const char *body, size_t length)
{
    struct completion reply;
    struct error why;
    assert_int_equal(read(body, length, 0, 0, ERR_OK, &reply, &why), ERR_LOST);
    assert_true(reply.retryable);
    assert_contains(why.text, "http://s");
    assert_memory_equal(text_get(&reply.content), EXPECTED, reply.content.length);
    completion_release(&reply);
}

static void a_truncated_answer_is_lost_not_short(void **state)
{
    (void)state;
    const char *end = strstr(OPENAI_STREAM_BODY, "\"finish_reason\"");
    for (size_t length = 0; length < (size_t)(end - OPENAI_STREAM_BODY); length++)
        check_cut_off(read_openai, OPENAI_STREAM_BODY, length);
    for (size_t length = 0; length < sizeof OLLAMA_BODY - 1; length++)
        check_cut_off(read_ollama, OLLAMA_BODY, length);
}

/* ---- end of a response ---- */

static void the_end_is_the_servers_finish_reason(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum err transport, expected;
    } CASES[] = {
        {CHUNK("a") REASON DONE, ERR_OK, ERR_OK},
        {CHUNK("a") DONE, ERR_OK, ERR_LOST}, /* interrupted, as by llama-cpp-python */
        {CHUNK("a") REASON, ERR_OK, ERR_OK},
        {CHUNK("a") REASON DONE, ERR_LOST, ERR_OK}, /* the connection was closed after the end */
        {CHUNK("a") REASON DONE, ERR_TIMEOUT, ERR_OK},
        {CHUNK("a") DONE, ERR_TIMEOUT, ERR_LOST},
        {CHUNK("a") DONE, ERR_LOST, ERR_LOST}, /* and the connection is closed after it */
        {CHUNK("a") REASON, ERR_LOST, ERR_OK},
        {CHUNK("a") REASON, ERR_TIMEOUT, ERR_TIMEOUT},
        {CHUNK("a"), ERR_LOST, ERR_LOST},
        {CHUNK("a"), ERR_INTERRUPTED, ERR_INTERRUPTED},
        {CHUNK("a") REASON DONE CHUNK("late"), ERR_OK, ERR_OK},
        {CHUNK("a") REASON "data: [DONE]", ERR_OK, ERR_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_openai(CASES[i].body, strlen(CASES[i].body), 0, 0, CASES[i].transport,
                                     &reply, &why),
                         CASES[i].expected);
        assert_string_equal(text_get(&reply.content), "a");
        completion_release(&reply);
    }
}

#define CHOICE(index, text)                                                                        \
    "data: {\"choices\":[{\"index\":" #index ",\"delta\":{\"content\":\"" text "\"}}]}\n\n"

static void several_choices_are_rejected(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        CHOICE(0, "a") CHOICE(1, "b") CHOICE(0, "c") REASON DONE,
        "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"},"
        "{\"index\":1,\"message\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}",
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_openai(BODIES[i], strlen(BODIES[i]), 0, 0, ERR_OK, &reply, &why),
                         ERR_BAD_VALUE);
        assert_contains(why.text, "several answers");
        assert_string_equal(text_get(&reply.content), "a"); /* the choices are not mixed */
        completion_release(&reply);
    }
}

static void a_lone_surrogate_is_replaced(void **state)
{
    (void)state;
    static const char BODY[] = CHUNK("a\\ud83d") CHUNK("\\ude00b") REASON DONE;
    struct completion reply;
    struct error why;
    assert_int_equal(read_openai(BODY, sizeof BODY - 1, 0, 0, ERR_OK, &reply, &why), ERR_OK);
    assert_string_equal(text_get(&reply.content), "a\xEF\xBF\xBD\xEF\xBF\xBD"
                                                  "b");
    completion_release(&reply);
}

static void impossible_counts_are_dropped(void **state)
{
    (void)state;
    static const struct {
        int64_t prompt, output, prompt_kept, output_kept;
        const char *text, *says;
    } CASES[] = {
        {11, 3, 11, 3, "a b c", ""},
        {11, 1000000, 11, -1, "a b c", "1000000 output tokens"},
        {11, 0, 11, -1, "a b c", "0 output tokens"},
        {11, 0, 11, 0, "", ""},
        {900000, 3, -1, 3, "a b c", "900000 prompt tokens"},
        {-1, -1, -1, -1, "a b c", ""},
        {11, 50000, 11, 50000, "", ""}, /* hidden reasoning */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct completion reply;
        completion_init(&reply);
        reply.sent = NS_PER_S;
        reply.done = 2 * NS_PER_S;
        reply.prompt_tokens = CASES[i].prompt;
        reply.output_tokens = CASES[i].output;
        text_add(&reply.content, CASES[i].text);
        completion_check_counts(&reply, 40);
        assert_int_equal(reply.prompt_tokens, CASES[i].prompt_kept);
        assert_int_equal(reply.output_tokens, CASES[i].output_kept);
        if (CASES[i].says[0])
            assert_contains(reply.count_problem, CASES[i].says);
        else
            assert_string_equal(reply.count_problem, "");
        completion_release(&reply);
    }
}

/* ---- dialects ---- */

static void content_is_found_in_every_dialect(void **state)
{
    (void)state;
    static const struct {
        const char *choice, *content, *reasoning;
    } CASES[] = {
        {"{\"delta\":{\"content\":\"a\"}}", "a", ""},
        {"{\"text\":\"a\"}", "a", ""},
        {"{\"message\":{\"content\":\"a\"}}", "a", ""},
        {"{\"delta\":{\"role\":\"assistant\",\"content\":null}}", "", ""},
        {"{\"delta\":{\"content\":\"\"}}", "", ""},
        {"{\"delta\":{\"reasoning_content\":\"r\",\"content\":\"a\"}}", "a", "r"},
        {"{\"delta\":{\"reasoning\":\"r\"}}", "", "r"},
        {"{\"delta\":{\"reasoning_content\":\"r\",\"reasoning\":\"r\"}}", "", "r"},
        {"{\"delta\":{\"reasoning_content\":null,\"reasoning\":\"r\"}}", "", "r"},
        {"{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\","
         "\"text\":\"r\"}]},{\"type\":\"text\",\"text\":\"a\"}]}}",
         "a", "r"},
        {"{\"delta\":{\"refusal\":\"no\"}}", "no", ""},
        {"{\"delta\":{\"content\":\"a\\u0000b\"}}",
         "a\xEF\xBF\xBD"
         "b",
         ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, "data: {\"choices\":[%s]}\n\n" REASON DONE, CASES[i].choice);
        assert_int_equal(read_openai(body, strlen(body), 0, 0, ERR_OK, &reply, &why), ERR_OK);
        assert_string_equal(text_get(&reply.content), CASES[i].content);
        assert_string_equal(text_get(&reply.reasoning), CASES[i].reasoning);
        assert_int_equal(reply.arrivals.count,
                         (*CASES[i].content != 0) + (*CASES[i].reasoning != 0));
        assert_int_equal(reply.first_token != 0, reply.arrivals.count > 0);
        completion_release(&reply);
    }
}

static void counts_are_found_in_every_dialect(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        int64_t prompt, output, reasoning, cached;
        double prefill_s, decode_s;
    } CASES[] = {
        {"\"x\":1", -1, -1, -1, -1, UNKNOWN, UNKNOWN},
        {"\"usage\":null", -1, -1, -1, -1, UNKNOWN, UNKNOWN},
        {"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":0}", 5, 0, -1, -1, UNKNOWN, UNKNOWN},
        {"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9,\"total_tokens\":14,"
         "\"completion_tokens_details\":{\"reasoning_tokens\":4},"
         "\"prompt_tokens_details\":{\"cached_tokens\":2}}",
         5, 9, 4, 2, UNKNOWN, UNKNOWN},
        /* counts reasoning in addition to the output: 5 + 9 + 4 */
        {"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9,\"total_tokens\":18,"
         "\"completion_tokens_details\":{\"reasoning_tokens\":4}}",
         5, 13, 4, -1, UNKNOWN, UNKNOWN},
        {"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9,\"reasoning_tokens\":4,"
         "\"prompt_tokens_details\":null}",
         5, 9, 4, -1, UNKNOWN, UNKNOWN},
        {"\"usage\":{\"prompt_tokens\":5,\"prompt_cache_hit_tokens\":3}", 5, -1, -1, 3, UNKNOWN,
         UNKNOWN},
        {"\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":\"9\"}", -1, -1, -1, -1, UNKNOWN,
         UNKNOWN},
        {"\"x_groq\":{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9,\"prompt_time\":0.25,"
         "\"completion_time\":1.5}}",
         5, 9, -1, -1, 0.25, 1.5},
        {"\"timings\":{\"prompt_n\":5,\"cache_n\":2,\"prompt_ms\":125.5,\"predicted_n\":9,"
         "\"predicted_ms\":900}",
         7, 9, -1, 2, 0.1255, 0.9},
        /* the computed tokens are not the prompt's length if cached tokens are not reported */
        {"\"timings\":{\"prompt_n\":5,\"prompt_ms\":100,\"predicted_n\":9,\"predicted_ms\":900}",
         -1, 9, -1, -1, 0.1, 0.9},
        {"\"timings\":{\"prompt_n\":1,\"cache_n\":0,\"predicted_n\":1},"
         "\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9}",
         5, 9, -1, 0, UNKNOWN, UNKNOWN},
        {"\"stats\":{\"generation_time\":1.25}", -1, -1, -1, -1, UNKNOWN, 1.25},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, "data: {\"choices\":[],%s}\n\n" REASON DONE, CASES[i].members);
        assert_int_equal(read_openai(body, strlen(body), 0, 0, ERR_OK, &reply, &why), ERR_OK);
        assert_int_equal(reply.prompt_tokens, CASES[i].prompt);
        assert_int_equal(reply.output_tokens, CASES[i].output);
        assert_int_equal(reply.reasoning_tokens, CASES[i].reasoning);
        assert_int_equal(reply.cached_tokens, CASES[i].cached);
        assert_int_equal(is_known(reply.server_prefill_s), is_known(CASES[i].prefill_s));
        assert_int_equal(is_known(reply.server_decode_s), is_known(CASES[i].decode_s));
        if (is_known(CASES[i].prefill_s))
            assert_near(reply.server_prefill_s, CASES[i].prefill_s, 1e-9);
        if (is_known(CASES[i].decode_s))
            assert_near(reply.server_decode_s, CASES[i].decode_s, 1e-9);
        assert_false(is_known(reply.server_load_s));
        completion_release(&reply);
    }
}

static void the_last_running_count_is_used(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "data: {\"choices\":[],\"timings\":{\"predicted_n\":1}}\n\n"
        "data: {\"choices\":[],\"timings\":{\"predicted_n\":2}}\n\n" REASON DONE,
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n"
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n"
        "data: {\"choices\":[],\"usage\":null}\n\n" REASON DONE,
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(read_openai(BODIES[i], strlen(BODIES[i]), 0, 0, ERR_OK, &reply, &why),
                         ERR_OK);
        assert_int_equal(reply.output_tokens, 2);
        completion_release(&reply);
    }
}

/* ---- failures ---- */

static void failures_are_named_and_keep_received_content(void **state)
{
    (void)state;
    static const struct {
        reader read;
        const char *body; /* after a first chunk "a" */
        enum err err;
        bool retryable;
        const char *says;
    } CASES[] = {
        {read_openai, "data: {oops\n\n" DONE, ERR_BAD_VALUE, false, "invalid JSON: {oops"},
        {read_openai, "data: 7\n\n" DONE, ERR_BAD_VALUE, false, "invalid JSON: 7"},
        {read_openai, "data: {\"error\":{\"message\":\"no moon\",\"code\":500}}\n\n", ERR_IO, true,
         "http://s failed: no moon"},
        {read_openai, "data: {\"error\":{\"message\":\"no moon\",\"code\":400}}\n\n", ERR_IO, false,
         "no moon"},
        {read_openai, "data: {\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}\n\n",
         ERR_IO, true, "m"},
        {read_openai, "data: {\"error\":{\"message\":\"m\",\"code\":\"invalid_prompt\"}}\n\n",
         ERR_IO, false, "m"},
        {read_openai, "data: {\"object\":\"error\",\"message\":\"no moon\",\"code\":503}\n\n",
         ERR_IO, true, "no moon"},
        {read_openai, "event: error\ndata: {\"message\":\"no moon\"}\n\n", ERR_IO, false,
         "no moon"},
        {read_openai, "data: {\"error\":\"line\\nfeed\"}\n\n", ERR_IO, false, "line feed"},
        {read_openai, "data: {\"error\":{}}\n\n", ERR_IO, false, "unspecified error"},
        {read_ollama, "{oops\n", ERR_BAD_VALUE, false, "invalid JSON: {oops"},
        {read_ollama, "[1]\n", ERR_BAD_VALUE, false, "invalid JSON: [1]"},
        {read_ollama, "{\"error\":\"no moon\"}\n", ERR_IO, true, "http://s failed: no moon"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        struct completion reply;
        struct error why;
        snprintf(body, sizeof body, "%s%s",
                 CASES[i].read == read_openai ? CHUNK("a") : "{\"response\":\"a\"}\n",
                 CASES[i].body);
        assert_int_equal(CASES[i].read(body, strlen(body), 0, 0, ERR_OK, &reply, &why),
                         CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        assert_null(strchr(why.text, '\n'));
        assert_int_equal(reply.retryable, CASES[i].retryable);
        assert_string_equal(text_get(&reply.content), "a");
        completion_release(&reply);
    }
}

static void a_document_must_be_a_completion(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum err err;
        const char *says;
    } CASES[] = {
        {"{\"choices\":[]}", ERR_BAD_VALUE, "without choices"},
        {"{\"ok\":true}", ERR_BAD_VALUE, "without choices"},
        {"{\"choices\":[{", ERR_BAD_VALUE, "invalid JSON"},
        {"{\"error\":{\"message\":\"no moon\"}}", ERR_IO, "no moon"},
        {"\n<html>login</html>", ERR_BAD_VALUE, "check the address"},
        {"", ERR_LOST, "before the completion was finished"},
        {"  ", ERR_LOST, "before the completion was finished"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct completion reply;
        struct error why;
        assert_int_equal(
            read_openai(CASES[i].body, strlen(CASES[i].body), 0, 0, ERR_OK, &reply, &why),
            CASES[i].err);
        assert_contains(why.text, CASES[i].says);
        completion_release(&reply);
    }
}

/* ---- times and observers ---- */

static void a_chunk_is_dated_when_it_is_complete(void **state)
{
    (void)state;
    struct completion reply;
    struct error why;
    static const char BODY[] = CHUNK("a") CHUNK("b") REASON DONE;
    size_t first = strlen(CHUNK("a"));
    /* 10: the first chunk and half of the second, 20: the rest */
    assert_int_equal(read_openai(BODY, strlen(BODY), first + 9, 0, ERR_OK, &reply, &why), ERR_OK);
    assert_int_equal(reply.arrivals.count, 2);
    assert_int_equal(reply.first_token, STEP);
    assert_int_equal(reply.last_token, 2 * STEP);
    completion_release(&reply);
}

static void append_bytes(void *context, const char *bytes, size_t length, nanos t)
{
    text_add_bytes(context, bytes, length);
    text_addf(context, "@%d;", (int)t);
}

static void the_observer_gets_content_as_it_arrives(void **state)
{
    (void)state;
    struct text seen = {0};
    struct completion reply;
    struct event_response answer;
    const struct completion_sink sink = {
        .completion = &reply, .server = "http://s", .observer = append_bytes, .context = &seen};
    completion_init(&reply);
    openai_response_init(&answer, &sink);
    assert_int_equal(event_response_feed(&answer, CHUNK("a"), strlen(CHUNK("a")), 1), ERR_OK);
    assert_string_equal(text_get(&seen), "a@1;");
    assert_int_equal(event_response_feed(&answer, CHUNK(""), strlen(CHUNK("")), 2), ERR_OK);
    assert_int_equal(event_response_feed(&answer, CHUNK("b"), strlen(CHUNK("b")), 3), ERR_OK);
    assert_string_equal(text_get(&seen), "a@1;b@3;");
    event_response_release(&answer);
    completion_release(&reply);
    text_release(&seen);
}

static void ollama_reports_durations(void **state)
{
    (void)state;
    static const char BODY[] =
        "{\"message\":{\"thinking\":\"hm\",\"content\":\"\"}}\n"
        "{\"message\":{\"content\":\"a\"},\"done\":false}\n"
        "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"length\","
        "\"load_duration\":1500000000,\"prompt_eval_count\":7,\"prompt_eval_duration\":250000000,"
        "\"eval_count\":3,\"eval_duration\":2000000000}\n";
    struct completion reply;
    struct error why;
    assert_int_equal(read_ollama(BODY, strlen(BODY), 0, 0, ERR_OK, &reply, &why), ERR_OK);
    assert_string_equal(text_get(&reply.content), "a");
    assert_string_equal(text_get(&reply.reasoning), "hm");
    assert_string_equal(reply.finish_reason, "length");
    assert_int_equal(reply.arrivals.count, 2);
    assert_int_equal(reply.prompt_tokens, 7);
    assert_int_equal(reply.output_tokens, 3);
    assert_int_equal(reply.reasoning_tokens, -1);
    assert_near(reply.server_load_s, 1.5, 1e-12);
    assert_near(reply.server_prefill_s, 0.25, 1e-12);
    assert_near(reply.server_decode_s, 2, 1e-12);
    completion_release(&reply);
    static const char BARE[] = "{\"response\":\"a\",\"done\":true}\n";
    assert_int_equal(read_ollama(BARE, strlen(BARE), 0, 0, ERR_OK, &reply, &why), ERR_OK);
    assert_int_equal(reply.prompt_tokens, -1);
    assert_int_equal(reply.output_tokens, -1);
    assert_false(is_known(reply.server_prefill_s));
    completion_release(&reply);
}

/* ---- tool calls ---- */

#define DELTA(calls)          "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" calls "]}}]}\n\n"
#define CALL(head, arguments) "{" head "\"function\":{\"arguments\":\"" arguments "\"}}"
#define NAMED(head, name, arguments)                                                               \
    "{" head "\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}"
#define WHOLE(calls)                                                                               \
    "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[" calls                          \
    "]},\"finish_reason\":\"tool_calls\"}]}"
#define LINE(calls) "{\"message\":{\"content\":\"\",\"tool_calls\":[" calls "]}}\n"
#define END_LINE    "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n"

/* Two calls in each server's format: id, name and arguments of each, "?" for a generated id. */
static const struct {
    reader read;
    const char *body, *calls;
} CALL_CASES[] = {
    /* like OpenAI and vLLM: by index */
    {read_openai,
     DELTA(NAMED("\"index\":0,\"id\":\"x\",", "f", ""))
         DELTA(CALL("\"index\":0,", "{\\\"a\\\":") "," NAMED("\"index\":1,\"id\":\"y\",", "g", ""))
             DELTA(CALL("\"index\":0,", "1}")) REASON DONE,
     "x f{\"a\":1};y g{}"},
    /* name and id repeated in every chunk, null and "" in between */
    {read_openai,
     DELTA(NAMED("\"index\":0,\"id\":\"x\",", "f", "{"))
         DELTA(NAMED("\"index\":0,\"id\":\"x\",", "f", "}"))
             DELTA(NAMED("\"index\":1,\"id\":\"\",", "g", "{\\\"b\\\":")) DELTA(
                 "{\"index\":1,\"id\":null,\"function\":{\"name\":null,\"arguments\":\"2}\"}}")
                 REASON DONE,
     "x f{};? g{\"b\":2}"},
    /* every call has index 0; distinguished by id */
    {read_openai,
     DELTA(NAMED("\"index\":0,\"id\":\"x\",", "f", "{}"))
         DELTA(NAMED("\"index\":0,\"id\":\"y\",", "g", "{}")) REASON DONE,
     "x f{};y g{}"},
    /* without index */
    {read_openai,
     DELTA(NAMED("\"id\":\"x\",", "f", "{\\\"a\\\":")) DELTA(CALL("", "1}"))
         DELTA(NAMED("", "g", "{}")) REASON DONE,
     "x f{\"a\":1};? g{}"},
    /* arguments that are an object, and arguments that are not JSON */
    {read_openai,
     WHOLE("{\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},"
           "{\"id\":\"y\",\"function\":{\"name\":\"g\",\"arguments\":\"1+\"}}"),
     "x f{\"a\":1};y g{\"input\":\"1+\"}"},
    {read_openai, WHOLE(NAMED("", "f", "[1]") "," NAMED("", "f", "")),
     "? f{\"input\":\"[1]\"};? f{}"},
    /* Ollama: whole objects, in one line or several, with or without an index */
    {read_ollama,
     LINE("{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},"
          "{\"function\":{\"name\":\"g\",\"arguments\":{}}}") END_LINE,
     "? f{\"a\":1};? g{}"},
    {read_ollama,
     LINE("{\"id\":\"x\",\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{}}}")
         LINE("{\"id\":\"y\",\"function\":{\"index\":1,\"name\":\"f\",\"arguments\":{}}}") END_LINE,
     "x f{};y f{}"},
    {read_ollama,
     LINE("{\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{}}}")
         LINE("{\"function\":{\"index\":0,\"name\":\"g\",\"arguments\":{}}}") END_LINE,
     "? f{};? g{}"},
};

static void tool_calls_are_joined_in_every_dialect(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CALL_CASES / sizeof *CALL_CASES; i++) {
        size_t length = strlen(CALL_CASES[i].body);
        for (size_t cut = 0; cut < length; cut += 7) {
            struct completion reply;
            struct error why;
            struct text shown = {0};
            assert_int_equal(
                CALL_CASES[i].read(CALL_CASES[i].body, length, cut, 0, ERR_OK, &reply, &why),
                ERR_OK);
            for (size_t c = 0; c < reply.calls.count; c++) {
                const struct tool_call *call = &reply.calls.items[c];
                bool is_made = strlen(call->id) == 9;
                text_addf(&shown, "%s%s %s%s", c ? ";" : "", is_made ? "?" : call->id, call->name,
                          text_get(&call->arguments));
            }
            assert_string_equal(text_get(&shown), CALL_CASES[i].calls);
            assert_string_not_equal(reply.calls.items[0].id, reply.calls.items[1].id);
            /* tokens were generated for them */
            assert_true(reply.first_token > 0 && reply.arrivals.count > 0);
            assert_int_equal(reply.content.length, 0);
            completion_release(&reply);
            text_release(&shown);
        }
    }
}

static void invalid_tool_calls_are_rejected(void **state)
{
    (void)state;
    struct completion reply;
    struct error why;
    static const char NAMELESS[] = DELTA(CALL("\"index\":0,", "{}")) REASON DONE;
    assert_int_equal(read_openai(NAMELESS, strlen(NAMELESS), 0, 0, ERR_OK, &reply, &why),
                     ERR_BAD_VALUE);
    assert_contains(why.text, "without a name");
    completion_release(&reply);
    struct text many = {0};
    for (int i = 0; i < 2 * TOOL_CALLS_LIMIT; i++)
        text_add(&many, DELTA(NAMED("", "f", "{}")));
    assert_int_equal(read_openai(text_get(&many), many.length, 0, 0, ERR_OK, &reply, &why),
                     ERR_BAD_VALUE);
    assert_contains(why.text, "more than 256 tool calls");
    completion_release(&reply);
    text_release(&many);
    static const char ODD[] =
        DELTA("1,null,\"x\",[],{}") REASON DONE; /* {} starts a call that never gets a name */
    assert_int_equal(read_openai(ODD, strlen(ODD), 0, 0, ERR_OK, &reply, &why), ERR_BAD_VALUE);
    completion_release(&reply);
}

/* ---- other formats ---- */

#define NATIVE(text) "data: {\"index\":0,\"content\":\"" text "\",\"stop\":false}\n\n"
#define NATIVE_COUNTS                                                                              \
    "\"stop\":true,\"tokens_evaluated\":7,\"tokens_predicted\":3,\"tokens_cached\":9"
#define NATIVE_END(type)  "data: {\"content\":\"\"," NATIVE_COUNTS ",\"stop_type\":\"" type "\"}\n\n"
#define TGI_TOKEN(text)   "data:{\"token\":{\"id\":1,\"text\":\"" text "\",\"special\":false},"
#define TGI_NEXT(text)    TGI_TOKEN(text) "\"generated_text\":null,\"details\":null}\n\n"
#define TGI_LAST(details) TGI_TOKEN("b") "\"generated_text\":\"ab\",\"details\":" details "}\n\n"

static void other_formats_are_read(void **state)
{
    (void)state;
    static const struct {
        enum response_kind kind;
        const char *body;
        enum err transport, expected;
        const char *content, *reason;
        int64_t prompt, output, cached;
    } CASES[] = {
        {RESPONSE_OPENAI, NATIVE("a") NATIVE("b") NATIVE_END("eos"), ERR_OK, ERR_OK, "ab", "stop",
         7, 3, -1},
        {RESPONSE_OPENAI, NATIVE("a") NATIVE_END("limit"), ERR_INTERRUPTED, ERR_OK, "a", "length",
         7, 3, -1}, /* the client closed after the end */
        {RESPONSE_OPENAI, NATIVE("a") NATIVE("b"), ERR_OK, ERR_LOST, "ab", "", -1, -1, -1},
        {RESPONSE_OPENAI, NATIVE("a"), ERR_INTERRUPTED, ERR_INTERRUPTED, "a", "", -1, -1, -1},
        {RESPONSE_OPENAI,
         "{\"content\":\"ab\"," NATIVE_COUNTS ",\"stopped_limit\":true,\"timings\":{\"prompt_n\":2,"
         "\"cache_n\":5}}",
         ERR_OK, ERR_OK, "ab", "length", 7, 3, 5},
        /* several prompts: the first answer, and the tokens of all */
        {RESPONSE_OPENAI,
         "[{\"index\":0,\"content\":\"ab\"," NATIVE_COUNTS
         "},{\"index\":1,\"content\":\"c\"," NATIVE_COUNTS "}]",
         ERR_OK, ERR_OK, "ab", "stop", 14, 6, -1},
        {RESPONSE_OPENAI, "data: {\"error\":{\"code\":500,\"message\":\"no\"}}\n\n", ERR_OK, ERR_IO,
         "", "", -1, -1, -1},
        {RESPONSE_OPENAI, "[]", ERR_OK, ERR_BAD_VALUE, "", "", -1, -1, -1},
        {RESPONSE_TGI, TGI_NEXT("a") TGI_LAST("null"), ERR_OK, ERR_OK, "ab", "", -1, 2, -1},
        {RESPONSE_TGI,
         TGI_NEXT("a")
             TGI_LAST("{\"finish_reason\":\"length\",\"generated_tokens\":5,\"input_length\":7}"),
         ERR_INTERRUPTED, ERR_OK, "ab", "length", 7, 5, -1},
        {RESPONSE_TGI, TGI_NEXT("a"), ERR_OK, ERR_LOST, "a", "", -1, 1, -1},
        {RESPONSE_TGI, "[{\"generated_text\":\"ab\"}]", ERR_OK, ERR_OK, "ab", "", -1, -1, -1},
        {RESPONSE_TGI,
         "{\"generated_text\":\"ab\",\"details\":{\"finish_reason\":\"eos_token\",\"generated_"
         "tokens\":2,"
         "\"prefill\":[{\"id\":1},{\"id\":2}]}}",
         ERR_OK, ERR_OK, "ab", "stop", 2, 2, -1},
        {RESPONSE_TGI, "data:{\"error\":\"overloaded\",\"error_type\":\"overloaded\"}\n\n", ERR_OK,
         ERR_IO, "", "", -1, -1, -1},
        {RESPONSE_TGI, "{\"text\":\"ab\"}", ERR_OK, ERR_BAD_VALUE, "", "", -1, -1, -1},
        {RESPONSE_COUNTS, "{\"data\":[[1,2]],\"usage\":{\"prompt_tokens\":7,\"total_tokens\":9}}",
         ERR_OK, ERR_OK, "", "stop", 7, -1, -1},
        {RESPONSE_COUNTS, "{\"results\":[],\"usage\":{\"total_tokens\":9}}", ERR_OK, ERR_OK, "",
         "stop", 9, -1, -1},
        {RESPONSE_COUNTS, "[[1.0]]", ERR_OK, ERR_OK, "", "stop", -1, -1, -1},
        {RESPONSE_COUNTS, "{\"usage\":{\"prompt_tokens\":123456789012345678901234567}}", ERR_OK,
         ERR_OK, "", "stop", -1, -1, -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct response_format *format = &RESPONSE_FORMATS[CASES[i].kind];
        size_t length = strlen(CASES[i].body);
        for (size_t cut = 0; cut <= length;
             cut += cut < length && length - cut < 7 ? length - cut : 7) {
            struct completion reply;
            struct error why = {0};
            union response_state answer;
            completion_init(&reply);
            format->init(&answer, &(struct completion_sink){.completion = &reply,
                                                            .server = "http://s",
                                                            .why = &why,
                                                            .skips_choices = true});
            enum err err = format->feed(&answer, CASES[i].body, cut, STEP);
            if (!err)
                err = format->feed(&answer, CASES[i].body + cut, length - cut, 2 * STEP);
            err = format->end(&answer, err ? err : CASES[i].transport);
            assert_int_equal(err, CASES[i].expected);
            assert_string_equal(text_get(&reply.content), CASES[i].content);
            assert_string_equal(reply.finish_reason, CASES[i].reason);
            assert_int_equal(reply.prompt_tokens, CASES[i].prompt);
            assert_int_equal(reply.output_tokens, CASES[i].output);
            assert_int_equal(reply.cached_tokens, CASES[i].cached);
            format->release(&answer);
            completion_release(&reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_formats_are_read),
        cmocka_unit_test(content_does_not_depend_on_how_bytes_are_split),
        cmocka_unit_test(a_truncated_answer_is_lost_not_short),
        cmocka_unit_test(the_end_is_the_servers_finish_reason),
        cmocka_unit_test(several_choices_are_rejected),
        cmocka_unit_test(a_lone_surrogate_is_replaced),
        cmocka_unit_test(impossible_counts_are_dropped),
        cmocka_unit_test(content_is_found_in_every_dialect),
        cmocka_unit_test(counts_are_found_in_every_dialect),
        cmocka_unit_test(the_last_running_count_is_used),
        cmocka_unit_test(failures_are_named_and_keep_received_content),
        cmocka_unit_test(a_document_must_be_a_completion),
        cmocka_unit_test(a_chunk_is_dated_when_it_is_complete),
        cmocka_unit_test(the_observer_gets_content_as_it_arrives),
        cmocka_unit_test(ollama_reports_durations),
        cmocka_unit_test(tool_calls_are_joined_in_every_dialect),
        cmocka_unit_test(invalid_tool_calls_are_rejected),
    };
    return RUN_TESTS(tests);
}
