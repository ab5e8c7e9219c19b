/* The text of generated tokens: whole characters, and nothing from a stop string on. */
#include "engine/engine.h"

#include <stdlib.h>

#include "core/text.h"
#include "support/unit.h"

/* Appends the text that is ready; a caller must never see part of a character. */
static void take_ready(struct stop_filter *filter, struct text *content)
{
    for (size_t at = 0; at < filter->text.length;) {
        size_t whole = utf8_length(filter->text.bytes + at, filter->text.length - at);
        assert_true(whole > 0);
        at += whole;
    }
    text_add_bytes(content, text_get(&filter->text), filter->text.length);
    text_clear(&filter->text);
}

static void filter_text(const char *bytes, size_t length, size_t piece, char *const *stops,
                        struct text *content, bool *stopped)
{
    struct stop_filter filter = {.stops = stops};
    for (size_t at = 0; at < length && !filter.has_stopped; at += piece) {
        size_t part = length - at < piece ? length - at : piece;
        char *copy = malloc(part); /* nothing after it may be read */
        memcpy(copy, bytes + at, part);
        stop_filter_add(&filter, copy, part);
        free(copy);
        take_ready(&filter, content);
    }
    stop_filter_end(&filter);
    take_ready(&filter, content);
    *stopped = filter.has_stopped;
    stop_filter_release(&filter);
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
    {"a\xC3", {NULL}, "a" ODD, false}, /* an incomplete character at the end */
    {"\xF0\x9F\x8E", {NULL}, ODD ODD ODD, false},
    {"a\xFFz", {NULL}, "a" ODD "z", false},
    {"\xC3(", {NULL}, ODD "(", false},
    {"\x80\x80", {NULL}, ODD ODD, false},
    {"one\ntwo", {"\n"}, "one", true},
    {"one END two", {"END"}, "one ", true},
    {"one EN", {"END"}, "one EN", false}, /* an incomplete stop string */
    {"EEEND", {"END"}, "EE", true},
    {"ENENDx", {"END"}, "EN", true},
    {"abcXYZ", {"XYZ", "bc"}, "a", true}, /* the first in the text */
    {"abcab", {"cabX", "b"}, "a", true},
    {"END", {"END"}, "", true},
    {WORLD " stop", {"\xE2\x82\xAC"}, "w\xC3\xB6rld ", true},
    {"x\xC3STOP", {"STOP"}, "x" ODD, true},
};

static void chunk_size_does_not_change_the_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t piece = 1; piece <= 12; piece++) {
            struct text content = {0};
            char *stops[4] = {NULL};
            bool stopped;
            for (size_t s = 0; s < 3 && CASES[i].stops[s]; s++)
                stops[s] = strdup(CASES[i].stops[s]);
            filter_text(CASES[i].bytes, strlen(CASES[i].bytes), piece, stops, &content, &stopped);
            assert_string_equal(text_get(&content), CASES[i].content);
            assert_int_equal(stopped, CASES[i].stopped);
            for (size_t s = 0; s < 3; s++)
                free(stops[s]);
            text_release(&content);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chunk_size_does_not_change_the_text)};
    return RUN_TESTS(tests);
}
