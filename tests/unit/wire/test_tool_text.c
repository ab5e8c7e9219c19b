/* test: valgrind */
/* Tool calls in plain text: what a model is prompted with, and how its output is parsed. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"
#include "support/rng.h"
#include "wire/chat.h"

static const struct chat_tool TOOLS[] = {
    {"calculator", "Evaluates an expression.",
     "{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":\"string\"}},"
     "\"required\":[\"expression\"]}"},
    {"wait", "Waits.", "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"}}}"},
    {"think", NULL, NULL},
};
enum { TOOL_COUNT = sizeof TOOLS / sizeof *TOOLS };

/* ---- reading ---- */

/* "name{arguments};name{arguments}" */
static void format_calls(const struct tool_calls *calls, struct text *out)
{
    for (size_t i = 0; i < calls->count; i++)
        text_addf(out, "%s%s%s", i ? ";" : "", calls->items[i].name,
                  text_get(&calls->items[i].arguments));
}

struct reading {
    const char *text, *answer, *calls;
};

static void check_readings(const struct reading *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text answer = {0}, shown = {0};
        struct tool_calls calls = {0};
        assert_int_equal(tool_text_parse(cases[i].text, TOOLS, TOOL_COUNT, &answer, &calls),
                         ERR_OK);
        format_calls(&calls, &shown);
        if (strcmp(text_get(&answer), cases[i].answer) || strcmp(text_get(&shown), cases[i].calls))
            print_error("in: %s\n", cases[i].text);
        assert_string_equal(text_get(&shown), cases[i].calls);
        assert_string_equal(text_get(&answer), cases[i].answer);
        tool_calls_release(&calls);
        text_release(&answer);
        text_release(&shown);
    }
}

#define SUM "{\"expression\":\"2+2\"}"

static void hermes_calls_are_found(void **state)
{
    (void)state;
    static const struct reading CASES[] = {
        {"<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"expression\": \"2+2\"}}\n"
         "</tool_call>",
         "", "calculator" SUM},
        {"Let me see.\n<tool_call>{\"name\":\"calculator\",\"arguments\":" SUM "}</tool_call>\n"
         "<tool_call>{\"name\":\"think\",\"arguments\":{}}</tool_call>",
         "Let me see.", "calculator" SUM ";think{}"},
        /* SmolLM2 writes an array, and a stop token may replace the end tag */
        {"<tool_call>[{\"name\": \"calculator\", \"arguments\": {\"expression\": \"2+2\"}}, "
         "{\"name\": \"wait\", \"arguments\": {\"seconds\": 1}}]",
         "", "calculator" SUM ";wait{\"seconds\":1}"},
        {"<tool_call>\n```json\n{\"name\":\"calculator\",\"parameters\":" SUM
         "}\n```\n</tool_call>",
         "", "calculator" SUM},
        {"<tool_call>{\"name\":\"calculator\",\"arguments\":\"{\\\"expression\\\": \\\"2+2\\\"}\"}"
         "</tool_call>",
         "", "calculator" SUM},
        {"<tool_call>{\"name\":\"calculator\",\"arguments\":\"2+2\"}</tool_call>", "",
         "calculator" SUM},
        {"<tool_call>{\"function\":{\"name\":\"think\",\"arguments\":{}}}</tool_call>", "",
         "think{}"},
        {"<tool_call>{\"name\":\"think\"}</tool_call>", "", "think{}"},
        /* an unknown tool is left to the caller to reject */
        {"<tool_call>{\"name\":\"search\",\"arguments\":{\"q\":1}}</tool_call>", "",
         "search{\"q\":1}"},
        /* tags and braces inside JSON strings are not markup */
        {"<tool_call>{\"name\":\"think\",\"arguments\":{\"a\":\"}{\\\"\"}} and more</tool_call>",
         "", "think{\"a\":\"}{\\\"\"}"},
        /* a plan is not a call, and a result is not written by the model */
        {"<think>I could <tool_call>{\"name\":\"wait\"}</tool_call></think>"
         "<tool_call>{\"name\":\"think\"}</tool_call>\n<tool_response>\n7\n</tool_response>\nIt is "
         "7",
         "", "think{}"},
        {"<tool_call>oops</tool_call>", "<tool_call>oops</tool_call>", ""},
        {"<tool_call>{\"name\": \"calculator\", \"argu",
         "<tool_call>{\"name\": \"calculator\", "
         "\"argu",
         ""},
        {"<tool_call>", "<tool_call>", ""},
    };
    check_readings(CASES, sizeof CASES / sizeof *CASES);
}

static void react_steps_are_found(void **state)
{
    (void)state;
    static const struct reading CASES[] = {
        {"Thought: I must add.\nAction: calculator\nAction Input: {\"expression\": \"2+2\"}",
         "I must add.", "calculator" SUM},
        {"Thought: done\nFinal Answer: 4", "4", ""},
        {"Thought: I know the final answer\nFinal Answer: It is 4.\nReally.", "It is 4.\nReally.",
         ""},
        /* spellings of small models */
        {"**Thought:** add\n**Action:** `calculator`\n**Action Input:** `2+2`", "add",
         "calculator" SUM},
        {"### Thought 1: add\n### Action 1: Calculator\n### Action Input 1: 2+2", "add",
         "calculator" SUM},
        {"thought: add\naction: calculator\naction input: \"2+2\"", "add", "calculator" SUM},
        {"Action: use the calculator tool\nAction Input: expression = \"2+2\"", "",
         "calculator" SUM},
        {"I must add. Action: calculator Action Input: 2+2 Observation: 5", "I must add.",
         "calculator" SUM},
        {"Action: calculator[2+2]", "", "calculator" SUM},
        {"Action: calculator(expression=\"2+2\")", "", "calculator" SUM},
        {"Action: calculator\nAction Input: {'expression': '2+2'}", "", "calculator" SUM},
        {"Action: calculator\nAction Input:\n```json\n{\n  \"expression\": \"2+2\"\n}\n```", "",
         "calculator" SUM},
        {"Action:\n```json\n{\"action\": \"calculator\", \"action_input\": \"2+2\"}\n```", "",
         "calculator" SUM},
        {"Action: {\"name\": \"calculator\", \"arguments\": {\"expression\": \"2+2\"}}", "",
         "calculator" SUM},
        {"Action: wait\nAction Input: 2.5", "", "wait{\"seconds\":2.5}"},
        {"Action: think", "", "think{}"},
        {"Action: search\nAction Input: cats", "", "search{\"input\":\"cats\"}"},
        /* text after an action is hallucinated */
        {"Action: calculator\nAction Input: 2+2\nObservation: 5\nFinal Answer: 5", "",
         "calculator" SUM},
        {"Action: calculator\nAction Input: 2+2\nThought: it is 5\nFinal Answer: 5", "",
         "calculator" SUM},
        {"Final Answer: 4\nAction: think", "4", ""},
        /* several actions before any result are concurrent calls */
        {"Action: calculator\nAction Input: 2+2\nAction: think\nAction Input: {}", "",
         "calculator" SUM ";think{}"},
        /* "no action" is no call */
        {"Thought: simple\nAction: None\nFinal Answer: 4", "4", ""},
        {"Thought: It is 4.\nAction: N/A", "It is 4.", ""},
        {"Action: Finish[4]", "4", ""},
        {"It is 4. Final Answer: 4", "4", ""},
        {"<think>\nAction: wait\n</think>\nFinal Answer: 4", "4", ""},
    };
    check_readings(CASES, sizeof CASES / sizeof *CASES);
}

static void plain_text_is_an_answer_unless_it_is_a_call(void **state)
{
    (void)state;
    static const struct reading CASES[] = {
        {"It is 4.", "It is 4.", ""},
        {"  Line 1\n\nLine 2\n", "Line 1\n\nLine 2", ""},
        {"", "", ""},
        {"{\"name\": \"calculator\", \"parameters\": {\"expression\": \"2+2\"}}", "",
         "calculator" SUM},
        {"I'll add:\n```json\n{\"tool\":\"calculator\",\"args\":" SUM "}\n```\nDone.",
         "I'll add:", "calculator" SUM},
        /* JSON that names no known tool is text */
        {"{\"name\": \"Ada\", \"age\": 36}", "{\"name\": \"Ada\", \"age\": 36}", ""},
        {"The set {1, 2} and [3].", "The set {1, 2} and [3].", ""},
        {"Transaction: none. Reaction: {", "Transaction: none. Reaction: {", ""},
    };
    check_readings(CASES, sizeof CASES / sizeof *CASES);
}

/* Any output is parsed to its end, in time and memory bounded by its length. */
static void any_text_is_parsed_in_bounded_time(void **state)
{
    (void)state;
    static const char *const BITS[] = {"<tool_call>",
                                       "</tool_call>",
                                       "{",
                                       "}",
                                       "[",
                                       "\"",
                                       "\\",
                                       "Action:",
                                       "Action Input:",
                                       "\n",
                                       "Final Answer:",
                                       "Observation:",
                                       "```",
                                       "</think>",
                                       "'",
                                       "calculator",
                                       " ",
                                       "(",
                                       ")",
                                       "1"};
    enum { ROUNDS = 3000, LENGTH = 24 };
    uint64_t stream = 7;
    for (int round = 0; round < ROUNDS; round++) {
        struct text text = {0}, answer = {0};
        struct tool_calls calls = {0};
        for (int i = 0; i < LENGTH; i++)
            text_add(&text, BITS[rng_bits(&stream) % (sizeof BITS / sizeof *BITS)]);
        assert_int_equal(tool_text_parse(text_get(&text), TOOLS, TOOL_COUNT, &answer, &calls),
                         ERR_OK);
        for (size_t i = 0; i < calls.count; i++) {
            struct jv *tree;
            const struct text *arguments = &calls.items[i].arguments;
            assert_int_equal(jv_parse(text_get(arguments), arguments->length, &tree, NULL), ERR_OK);
            assert_true(jv_is_object(tree) && *calls.items[i].name);
            jv_free(tree);
        }
        assert_true(answer.length <= text.length + LENGTH);
        tool_calls_release(&calls);
        text_release(&answer);
        text_release(&text);
    }
    struct text many = {0}, answer = {0};
    struct tool_calls calls = {0};
    for (int i = 0; i < 200000; i++)
        text_add(&many, "{[\n");
    assert_int_equal(tool_text_parse(text_get(&many), TOOLS, TOOL_COUNT, &answer, &calls), ERR_OK);
    assert_int_equal(calls.count, 0);
    text_release(&many);
    text_release(&answer);
}

/* ---- writing ---- */

/* System, question, a call, its result and another one's, an answer. */
static void make_chat(struct chat *chat)
{
    struct tool_calls calls = {0};
    assert_int_equal(tool_calls_add(&calls, "c1", "calculator", SUM), ERR_OK);
    assert_int_equal(tool_calls_add(&calls, "c2", "think", ""), ERR_OK);
    chat_add(chat, CHAT_SYSTEM, "Be brief.");
    chat_add(chat, CHAT_USER, "2+2?");
    chat_add_reply(chat, "I add.", &calls);
    chat_add_result(chat, &calls.items[0], "4");
    chat_add_result(chat, &calls.items[1], "ok");
    chat_add_reply(chat, "Four.", NULL);
    tool_calls_release(&calls);
}

static void check_texts(enum tool_text form, const char *const *expected, const char *first)
{
    struct chat chat = {0}, out = {0};
    make_chat(&chat);
    tool_text_render(form, &chat, TOOLS, TOOL_COUNT, &out);
    static const enum chat_role ROLES[] = {CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_USER,
                                           CHAT_ASSISTANT};
    assert_int_equal(out.count, 5);
    for (size_t i = 0; i < out.count; i++) {
        assert_int_equal(out.messages[i].role, ROLES[i]);
        assert_int_equal(out.messages[i].calls.count, 0);
        if (i > 0)
            assert_string_equal(out.messages[i].text, expected[i]);
    }
    const char *system = out.messages[0].text;
    assert_true(str_starts(system, "Be brief.\n\n"));
    assert_contains(system, first);
    for (size_t i = 0; i < TOOL_COUNT; i++)
        assert_contains(system, TOOLS[i].name);
    assert_contains(system, TOOLS[0].parameters);
    chat_release(&chat);
    chat_release(&out);
}

static void a_conversation_is_formatted_as_text(void **state)
{
    (void)state;
    static const char *const HERMES[] = {
        NULL, "2+2?",
        ("I add.\n<tool_call>\n{\"name\":\"calculator\",\"arguments\":" SUM "}\n</tool_call>\n"
         "<tool_call>\n{\"name\":\"think\",\"arguments\":{}}\n</tool_call>"),
        "<tool_response>\n4\n</tool_response>\n<tool_response>\nok\n</tool_response>", "Four."};
    static const char *const REACT[] = {NULL, "2+2?",
                                        ("Thought: I add.\nAction: calculator\nAction Input: " SUM
                                         "\nAction: think\nAction Input: {}"),
                                        "Observation: 4\nObservation: ok", "Final Answer: Four."};
    check_texts(TOOL_TEXT_HERMES, HERMES, "<tools>\n{\"type\":\"function\",");
    check_texts(TOOL_TEXT_REACT, REACT, "Action Input:");
    assert_string_equal(tool_text_stop(TOOL_TEXT_REACT), "\nObservation:");
}

/* The text of a model's calls is parsed back as the same calls. */
static void written_calls_round_trip(void **state)
{
    (void)state;
    for (int form = TOOL_TEXT_HERMES; form <= TOOL_TEXT_REACT; form++) {
        struct chat chat = {0}, out = {0};
        make_chat(&chat);
        tool_text_render((enum tool_text)form, &chat, NULL, 0, &out);
        assert_string_equal(out.messages[0].text,
                            "Be brief."); /* without tools they are not mentioned */
        const struct reading reading = {out.messages[2].text, "I add.",
                                        "calculator" SUM ";think{}"};
        check_readings(&reading, 1);
        const struct reading answer = {out.messages[4].text, "Four.", ""};
        check_readings(&answer, 1);
        chat_release(&chat);
        chat_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hermes_calls_are_found),
        cmocka_unit_test(react_steps_are_found),
        cmocka_unit_test(plain_text_is_an_answer_unless_it_is_a_call),
        cmocka_unit_test(any_text_is_parsed_in_bounded_time),
        cmocka_unit_test(a_conversation_is_formatted_as_text),
        cmocka_unit_test(written_calls_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
