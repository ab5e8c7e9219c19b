/* test: valgrind */
/* Bytes to lines, events and values, without a server: every split, every line ending, the limits. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/json_read.h"
#include "support/inference.h"
#include "wire/chat.h"
#include "wire/completion.h"
#include "wire/sse.h"

/* ---- events ---- */

/* Appends each event as "name|data@t;" */
static enum err record_event(void *context, const struct sse_event *event)
{
    struct text *seen = context;
    text_addf(seen, "%s|", event->name);
    text_add_bytes(seen, event->data, event->length);
    text_addf(seen, ";");
    return ERR_OK;
}

/* Feeds in two pieces, split at `cut`. */
static void feed_split(const char *bytes, size_t length, size_t cut, struct text *seen)
{
    struct sse sse;
    sse_init(&sse, record_event, seen, NULL);
    assert_int_equal(sse_feed(&sse, bytes, cut, 1), ERR_OK);
    assert_int_equal(sse_feed(&sse, bytes + cut, length - cut, 2), ERR_OK);
    assert_int_equal(sse_end(&sse, 3), ERR_OK);
    sse_release(&sse);
}

static const struct {
    const char *stream, *expected;
} STREAMS[] = {
    {"data: a\n\ndata: b\n\n", "|a;|b;"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "|a;|b;"},
    {"data: a\r\rdata: b\r\r", "|a;|b;"},
    {"data: a\r\n\rdata: b\n\r\n", "|a;|b;"},
    {"data:a\n\n", "|a;"},
    {"data:  a\n\n", "| a;"},
    {"data: one\ndata: two\ndata\ndata: four\n\n", "|one\ntwo\n\nfour;"},
    {"data: one\r\ndata: two\r\n\r\n", "|one\ntwo;"},
    {": a comment\n\n:\ndata: a\n: another\n\n", "|a;"},
    {"event: error\ndata: a\n\ndata: b\n\n", "error|a;|b;"},
    {"event: lonely\n\ndata: b\n\n", "|b;"},
    {"id: 7\nretry: 100\nunknown\ndata: a\n\n", "|a;"},
    {"\xEF\xBB\xBF"
     "data: a\n\n\xEF\xBB\xBF"
     "data: b\n\n",
     "|a;"},
    {"data: \xC3\xB6\xF0\x9F\x8E\x89\n\n", "|\xC3\xB6\xF0\x9F\x8E\x89;"},
    {"data: a: b\n\n", "|a: b;"},
    {"data: no end", "|no end;"},
    {"data: a\n\ndata: one line end\n", "|a;|one line end;"},
    {"data\n\n", "|;"},
    {"\n\n\n", ""},
    {"", ""},
};

static void events_do_not_depend_on_how_bytes_are_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof STREAMS / sizeof *STREAMS; i++) {
        size_t length = strlen(STREAMS[i].stream);
        for (size_t cut = 0; cut <= length; cut++) {
            struct text seen = {0};
            feed_split(STREAMS[i].stream, length, cut, &seen);
            assert_string_equal(text_get(&seen), STREAMS[i].expected);
            text_release(&seen);
        }
    }
}

static void events_are_the_same_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof STREAMS / sizeof *STREAMS; i++) {
        struct text seen = {0};
        struct sse sse;
        sse_init(&sse, record_event, &seen, NULL);
        for (const char *c = STREAMS[i].stream; *c; c++) {
            char alone = *c; /* nothing after it may be read */
            assert_int_equal(sse_feed(&sse, &alone, 1, 1), ERR_OK);
        }
        assert_int_equal(sse_end(&sse, 2), ERR_OK);
        sse_release(&sse);
        assert_string_equal(text_get(&seen), STREAMS[i].expected);
        text_release(&seen);
    }
}

static enum err record_time(void *context, const struct sse_event *event)
{
    *(nanos *)context = event->t;
    return ERR_OK;
}

static void an_event_is_dated_by_its_data(void **state)
{
    (void)state;
    struct sse sse;
    nanos t = 0;
    sse_init(&sse, record_time, &t, NULL);
    assert_int_equal(sse_feed(&sse, "data: ", 6, 10), ERR_OK);
    assert_int_equal(sse_feed(&sse, "a\n", 2, 20), ERR_OK);
    assert_int_equal(sse_feed(&sse, ": a comment\n", 12, 30), ERR_OK);
    assert_int_equal(sse_feed(&sse, "\n", 1, 40), ERR_OK);
    assert_int_equal(t, 20);
    sse_release(&sse);
}

static void a_nul_is_an_ordinary_byte(void **state)
{
    (void)state;
    struct text seen = {0};
    feed_split("data: a\0b\n\n", 11, 8, &seen);
    assert_int_equal(seen.length, 5);
    assert_memory_equal(seen.bytes, "|a\0b;", 5);
    text_release(&seen);
}

static enum err reject_event(void *context, const struct sse_event *event)
{
    (void)event;
    ++*(int *)context;
    return ERR_IO;
}

static void an_error_of_the_handler_stops_the_feed(void **state)
{
    (void)state;
    struct sse sse;
    int events = 0;
    sse_init(&sse, reject_event, &events, NULL);
    assert_int_equal(sse_feed(&sse, "data: a\n\ndata: b\n\n", 18, 1), ERR_IO);
    assert_int_equal(events, 1);
    sse_release(&sse);
}

/* ---- lines ---- */

static enum err record_line(void *context, const char *line, size_t length, nanos t)
{
    (void)t;
    text_add_bytes(context, line, length);
    text_add(context, "|");
    return ERR_OK;
}

static void lines_end_at_lf_or_crlf(void **state)
{
    (void)state;
    static const char BYTES[] = "a\nb\r\n\rc\n\n\r\nd";
    for (size_t cut = 0; cut < sizeof BYTES; cut++) {
        struct line_reader lines = {0};
        struct text seen = {0};
        assert_int_equal(line_reader_feed(&lines, BYTES, cut, 1, record_line, &seen, NULL), ERR_OK);
        assert_int_equal(line_reader_feed(&lines, BYTES + cut, sizeof BYTES - 1 - cut, 1,
                                          record_line, &seen, NULL),
                         ERR_OK);
        assert_string_equal(text_get(&seen), "a|b|\rc|||");
        assert_string_equal(text_get(&lines.held), "d");
        line_reader_release(&lines);
        text_release(&seen);
    }
}

static void an_endless_line_is_an_error(void **state)
{
    (void)state;
    enum { STEP = 1 << 20 };
    char *block = malloc(STEP);
    memset(block, 'a', STEP);
    struct line_reader lines = {0};
    struct text seen = {0};
    struct error why;
    enum err err = ERR_OK;
    size_t fed = 0;
    for (; !err && fed <= 4 * (size_t)LINE_LIMIT; fed += STEP)
        err = line_reader_feed(&lines, block, STEP, 1, record_line, &seen, &why);
    assert_int_equal(err, ERR_BAD_VALUE);
    assert_contains(why.text, "a line of more than 16 MiB");
    assert_int_equal(fed, (size_t)LINE_LIMIT + STEP);
    assert_true(lines.held.capacity <= 2 * (size_t)LINE_LIMIT);
    line_reader_release(&lines);
    text_release(&seen);
    free(block);
}

static void an_event_of_many_lines_has_the_line_limit(void **state)
{
    (void)state;
    enum { STEP = 1 << 20 };
    struct text line = {0};
    text_add(&line, "data: ");
    while (line.length < STEP)
        text_add(&line, "aaaaaaaaaaaaaaaa");
    text_add(&line, "\n");
    struct sse sse;
    struct text seen = {0};
    struct error why;
    enum err err = ERR_OK;
    int fed = 0;
    sse_init(&sse, record_event, &seen, &why);
    for (; !err && fed < 64; fed++)
        err = sse_feed(&sse, line.bytes, line.length, 1);
    assert_int_equal(err, ERR_BAD_VALUE);
    assert_contains(why.text, "more than 16 MiB");
    assert_true(fed > 14 && fed < 18);
    sse_release(&sse);
    text_release(&seen);
    text_release(&line);
}

/* ---- values ---- */

static void parameters_become_typed_json(void **state)
{
    (void)state;
    static const struct {
        const char *value, *expected;
    } CASES[] = {
        {"1", "1"},
        {"-1.50", "-1.50"}, /* with its original digits */
        {"0.7", "0.7"},
        {"1e-3", "1e-3"},
        {"12345678901234567890", "12345678901234567890"}, /* not representable as a double */
        {"true", "true"},
        {"false", "false"},
        {"null", "null"},
        {"[1, \"a\"]", "[1,\"a\"]"},
        {"{\"type\": \"json_object\"}", "{\"type\":\"json_object\"}"},
        {"\"0.5\"", "\"0.5\""},
        {"word", "\"word\""},
        {"True", "\"True\""},
        {"", "\"\""},
        {"01", "\"01\""}, /* not a JSON number */
        {"+1", "\"+1\""},
        {".5", "\".5\""},
        {"1.", "\"1.\""},
        {"1e", "\"1e\""},
        {"-", "\"-\""},
        {"nan", "\"nan\""},
        {"0x10", "\"0x10\""},
        {"1 ", "\"1 \""},
        {"[1", "\"[1\""},
        {"{a:1}", "\"{a:1}\""},
        {"[1] [2]", "\"[1] [2]\""},
        {"say \"hi\"\n", "\"say \\\"hi\\\"\\n\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text out = {0};
        struct json json;
        char expected[128];
        json_init(&json, &out, false);
        json_object(&json, NULL);
        json_string(&json, "first", "x");
        message_write_param(&json, "k", CASES[i].value);
        json_object_end(&json);
        snprintf(expected, sizeof expected, "{\"first\":\"x\",\"k\":%s}", CASES[i].expected);
        assert_string_equal(text_get(&out), expected);
        text_release(&out);
    }
}

static void a_server_message_fits_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *expected;
    } CASES[] = {
        {"plain", 20, "plain"},
        {"two\nlines\r\n", 20, "two lines  "},
        {"\x1b[31mred", 20, " [31mred"},
        {"abcdef", 4, "abc"},
        {"ab\xC3\xB6", 4, "ab"}, /* part of a character is dropped */
        {"ab\xC3\xB6", 5, "ab\xC3\xB6"},
        {"a\xFF\x80z", 20, "a  z"},
        {"a\xE2\x82", 20, "a  "},
        {"", 20, ""},
        {"a\xC2\x9B"
         "31mz",
         20, "a 31mz"},
        {"a\xE2\x80\xAEz", 20, "a z"}, /* CSI as one character, bidi */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char shown[32];
        secret_one_line(shown, CASES[i].size, CASES[i].bytes, strlen(CASES[i].bytes));
        assert_string_equal(shown, CASES[i].expected);
    }
}

static void error_messages_are_found_in_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *json, *expected;
    } CASES[] = {
        {"{\"error\":{\"message\":\"m\"}}", "m"},
        {"{\"error\":\"m\"}", "m"},
        {"{\"message\":\"m\"}", "m"},
        {"{\"detail\":\"m\"}", "m"},
        {"{\"detail\":[{\"msg\":\"m\",\"loc\":[]}]}", "m"},
        {"{\"error\":{\"code\":5}}", "unspecified error"},
        {"{\"error\":null}", NULL},
        {"{\"choices\":[]}", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct jv *root;
        assert_int_equal(jv_parse(CASES[i].json, strlen(CASES[i].json), &root, NULL), ERR_OK);
        const char *said = message_error(root);
        if (CASES[i].expected)
            assert_string_equal(said, CASES[i].expected);
        else
            assert_null(said);
        jv_free(root);
    }
}

/* A conversation with everything in it, as each API documents it. */
static void a_conversation_is_written_for_each_api(void **state)
{
    (void)state;
    static const char *const EXPECTED[] = {
        [CHAT_OPENAI] =
            "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},"
            "{\"role\":\"user\",\"content\":\"Q \\\"1\\\"\"},"
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
            "\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"name\":\"add\",\"content\":\"R\"},"
            "{\"role\":\"assistant\",\"content\":\"A\"}],"
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":"
            "\"D\","
            "\"parameters\":{\"type\":\"object\"}}},{\"type\":\"function\",\"function\":{\"name\":"
            "\"noop\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]}",
        [CHAT_OLLAMA] =
            "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},"
            "{\"role\":\"user\",\"content\":\"Q \\\"1\\\"\"},"
            "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"function\":"
            "{\"name\":\"add\",\"arguments\":{\"a\":1}}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"tool_name\":\"add\",\"content\":\"R\"},"
            "{\"role\":\"assistant\",\"content\":\"A\"}],"
            "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":"
            "\"D\","
            "\"parameters\":{\"type\":\"object\"}}},{\"type\":\"function\",\"function\":{\"name\":"
            "\"noop\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]}",
        [CHAT_ANTHROPIC] =
            "{\"system\":\"S\",\"messages\":["
            "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Q \\\"1\\\"\"}]},"
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"
            "\"add\",\"input\":{\"a\":1}}]},"
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\","
            "\"content\":\"R\"}]},"
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}]}],"
            "\"tools\":[{\"name\":\"add\",\"description\":\"D\",\"input_schema\":{\"type\":"
            "\"object\"}},{\"name\":\"noop\",\"input_schema\":{\"type\":\"object\",\"properties\":"
            "{}}}]}",
    };
    static const struct chat_tool TOOLS[] = {{"add", "D", "{\"type\":\"object\"}"},
                                             {"noop", NULL, NULL}};
    struct chat chat = {0};
    struct tool_calls calls = {0};
    assert_int_equal(tool_calls_add(&calls, "c1", "add", "{\"a\":1}"), ERR_OK);
    chat_add(&chat, CHAT_SYSTEM, "S");
    chat_add(&chat, CHAT_USER, "Q \"1\"");
    chat_add_reply(&chat, NULL, &calls);
    chat_add_result(&chat, &calls.items[0], "R");
    chat_add_reply(&chat, "A", NULL);
    tool_calls_release(&calls); /* it was copied */
    for (int dialect = CHAT_OPENAI; dialect <= CHAT_ANTHROPIC; dialect++) {
        struct text out = {0};
        struct json json;
        json_init(&json, &out, false);
        json_object(&json, NULL);
        chat_write(&json, (enum chat_dialect)dialect, &chat);
        chat_write_tools(&json, (enum chat_dialect)dialect, TOOLS, 2);
        chat_write_tools(&json, (enum chat_dialect)dialect, NULL, 0);
        json_object_end(&json);
        assert_string_equal(text_get(&out), EXPECTED[dialect]);
        text_release(&out);
    }
    chat_release(&chat);
}

/* Its API accepts two roles, which alternate, and no empty text. */
static void turns_alternate_in_anthropics_api(void **state)
{
    (void)state;
    struct chat chat = {0};
    struct tool_calls calls = {0};
    assert_int_equal(tool_calls_add(&calls, "c1", "f", ""), ERR_OK);
    assert_int_equal(tool_calls_add(&calls, "c2", "g", "{\"a\":1}"), ERR_OK);
    chat_add(&chat, CHAT_SYSTEM, "S1");
    chat_add(&chat, CHAT_USER, "Q1");
    chat_add_reply(&chat, " \n", NULL); /* nothing to send back */
    chat_add(&chat, CHAT_USER, "Q2");
    chat_add_reply(&chat, "I call", &calls);
    chat_add_result(&chat, &calls.items[0], "");
    chat_add_result(&chat, &calls.items[1], "R2");
    chat_add(&chat, CHAT_SYSTEM, "S2");
    chat_add(&chat, CHAT_USER, "and?");
    struct text out = {0};
    struct json json;
    json_init(&json, &out, false);
    json_object(&json, NULL);
    chat_write(&json, CHAT_ANTHROPIC, &chat);
    json_object_end(&json);
    assert_string_equal(
        text_get(&out),
        "{\"system\":\"S1\\n\\nS2\",\"messages\":["
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Q1\"},"
        "{\"type\":\"text\",\"text\":\"Q2\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"I call\"},"
        "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{}},"
        "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"g\",\"input\":{\"a\":1}}]},"
        "{\"role\":\"user\",\"content\":["
        "{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"\"},"
        "{\"type\":\"tool_result\",\"tool_use_id\":\"c2\",\"content\":\"R2\"},"
        "{\"type\":\"text\",\"text\":\"and?\"}]}]}");
    text_release(&out);
    tool_calls_release(&calls);
    chat_release(&chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_do_not_depend_on_how_bytes_are_split),
        cmocka_unit_test(events_are_the_same_byte_by_byte),
        cmocka_unit_test(an_event_is_dated_by_its_data),
        cmocka_unit_test(a_nul_is_an_ordinary_byte),
        cmocka_unit_test(an_error_of_the_handler_stops_the_feed),
        cmocka_unit_test(lines_end_at_lf_or_crlf),
        cmocka_unit_test(an_endless_line_is_an_error),
        cmocka_unit_test(an_event_of_many_lines_has_the_line_limit),
        cmocka_unit_test(parameters_become_typed_json),
        cmocka_unit_test(a_server_message_fits_one_line),
        cmocka_unit_test(error_messages_are_found_in_every_form),
        cmocka_unit_test(a_conversation_is_written_for_each_api),
        cmocka_unit_test(turns_alternate_in_anthropics_api),
    };
    return RUN_TESTS(tests);
}
