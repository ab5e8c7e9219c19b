/* HTTP responses as they arrive: malformed ones are refused, wherever they are split. */
#include "support/unit.h"

#include <stdlib.h>

#include "port/http_plain.h"

/* The body of a response that arrives in pieces of `step` bytes; "(malformed)", or with "..." if it is incomplete. */
static const char *body_of(const char *bytes, size_t step)
{
    static char body[256];
    struct plain_response response = {0};
    struct text held = {0};
    size_t length = strlen(bytes), used = 0, at = 0;
    bool is_malformed = false;
    for (size_t from = 0; from < length && !is_malformed; from += step) {
        text_add_bytes(&held, bytes + from, length - from < step ? length - from : step);
        for (ssize_t taken = 1; taken > 0 && at < held.length;) {
            size_t some = plain_response_body(&response, held.length - at);
            if (some) {
                memcpy(body + used, held.bytes + at, some);
                used += some;
                plain_response_take(&response, some);
            }
            taken = some || plain_response_is_complete(&response)
                        ? (ssize_t)some
                        : plain_response_parse(&response, held.bytes + at, held.length - at);
            is_malformed = taken < 0;
            at += taken > 0 ? (size_t)taken : 0;
        }
    }
    str_copy(body + used, sizeof body - used, plain_response_is_complete(&response) ? "" : "...");
    text_release(&response.lines);
    text_release(&held);
    return is_malformed ? "(malformed)" : body;
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void responses_are_the_same_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *body;
    } CASES[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\nContent-Length: 2\n\nhi", "hi"},
        {CHUNKED "5;x=y\r\nhello\r\n0A \r\n0123456789\r\n0\r\nX: y\r\n\r\n", "hello0123456789"},
        {CHUNKED "5\nhello\n0\n\n", "hello"},
        {CHUNKED "5\r\nhel", "hel..."},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", "to the end..."},
        /* a number on another line */
        {CHUNKED "\n5\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED " \r\n5\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 \n\n200 OK\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 \r\n200: x\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
        /* numbers in other forms */
        {CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED "+5\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED "-5\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED "5\rx\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED "5g\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {CHUNKED "10000000000000000\r\nhello\r\n0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
        {"HTTP/1.1 20x OK\r\nContent-Length: 0\r\n\r\n", "(malformed)"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t step = 1; step <= strlen(CASES[i].bytes); step++)
            if (strcmp(body_of(CASES[i].bytes, step), CASES[i].body) != 0)
                fail_msg("%s in pieces of %zu: %s, expected %s", CASES[i].bytes, step,
                         body_of(CASES[i].bytes, step), CASES[i].body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_the_same_in_pieces_of_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
