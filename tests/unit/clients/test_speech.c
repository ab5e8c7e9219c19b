/* What of an answer reaches the reply: whole characters, and nothing from a stop string on. */
#include "clients/llama/speech.h"
#include "core/utf8.h"

#include <stdlib.h>

#include "support/unit.h"

static void see(void *context, const char *bytes, size_t length, nanos t)
{
    (void)t;
    /* Whoever watches must never see half a character. */
    for (size_t at = 0; at < length;) {
        size_t whole = utf8_length(bytes + at, length - at);
        assert_true(whole > 0);
        at += whole;
    }
    text_add_bytes(context, bytes, length);
}

static void speak(const char *bytes, size_t length, size_t piece, char *const *stops,
                  struct text *content, struct text *seen, bool *stopped)
{
    struct client_reply reply;
    const struct client_request request = {.saw = see, .context = seen};
    client_reply_init(&reply);
    struct speech speech = {.request = &request, .reply = &reply, .stops = stops};
    for (size_t at = 0; at < length && !speech.has_stopped; at += piece) {
        struct text part = {0};
        text_add_bytes(&part, bytes + at, length - at < piece ? length - at : piece);
        assert_int_equal(speech_take(&speech, &part, (nanos)at + 1), ERR_OK);
        text_release(&part);
    }
    assert_int_equal(speech_end(&speech, (nanos)length + 1), ERR_OK);
    text_add_bytes(content, text_get(&reply.content), reply.content.length);
    *stopped = speech.has_stopped;
    assert_int_equal(reply.content.length > 0, reply.arrivals.count > 0);
    speech_release(&speech);
    client_reply_release(&reply);
}

#define WORLD "w\xC3\xB6rld \xE2\x82\xAC \xF0\x9F\x8E\x89!"
#define ODD   "\xEF\xBF\xBD"

static const struct {
    const char *bytes;
    const char *stops[3];
    const char *content;
    bool stopped;
} CASES[] = {
    {"plain", {NULL}, "plain", false},
    {WORLD, {NULL}, WORLD, false},
    {"a\xC3", {NULL}, "a" ODD, false}, /* the end of a character never came */
    {"\xF0\x9F\x8E", {NULL}, ODD ODD ODD, false},
    {"a\xFFz", {NULL}, "a" ODD "z", false},
    {"\xC3(", {NULL}, ODD "(", false},
    {"\x80\x80", {NULL}, ODD ODD, false},
    {"one\ntwo", {"\n"}, "one", true},
    {"one END two", {"END"}, "one ", true},
    {"one EN", {"END"}, "one EN", false}, /* it might have become one */
    {"EEEND", {"END"}, "EE", true},
    {"ENENDx", {"END"}, "EN", true},
    {"abcXYZ", {"XYZ", "bc"}, "a", true}, /* the first in the text */
    {"abcab", {"cabX", "b"}, "a", true},
    {"END", {"END"}, "", true},
    {WORLD " stop", {"\xE2\x82\xAC"}, "w\xC3\xB6rld ", true},
    {"x\xC3STOP", {"STOP"}, "x" ODD, true},
};

static void pieces_of_any_size_give_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t piece = 1; piece <= 12; piece++) {
            struct text content = {0}, seen = {0};
            char *stops[4] = {NULL};
            bool stopped;
            for (size_t s = 0; s < 3 && CASES[i].stops[s]; s++)
                stops[s] = strdup(CASES[i].stops[s]);
            speak(CASES[i].bytes, strlen(CASES[i].bytes), piece, stops, &content, &seen, &stopped);
            assert_string_equal(text_get(&content), CASES[i].content);
            assert_string_equal(text_get(&seen), CASES[i].content);
            assert_int_equal(stopped, CASES[i].stopped);
            for (size_t s = 0; s < 3; s++)
                free(stops[s]);
            text_release(&content);
            text_release(&seen);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_of_any_size_give_the_same)};
    return RUN_TESTS(tests);
}
