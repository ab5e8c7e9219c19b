/* Parses an HTTP/1.1 response in place: the head, then a body that has a length, is chunked, or ends with the
 * connection. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "port/http_plain.h"

enum { HEAD_MAX = 256 * 1024, LINE_MAX_BYTES = 4096 };

const char *http_header_find(const struct text *lines, const char *name)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < lines->length; at += strlen(lines->bytes + at) + 1) {
        const char *line = lines->bytes + at;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

static bool value_has(const char *value, const char *word)
{
    return value && strcasestr(value, word);
}

/* Splits the head into lines, without the status line. */
static void split_head(struct text *lines, const char *head, size_t length)
{
    const char *end = head + length, *line = memchr(head, '\n', length);
    text_clear(lines);
    while (line && line + 1 < end) {
        line++;
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((next ? next : end) - line);
        while (size && (line[size - 1] == '\r' || line[size - 1] == '\n'))
            size--;
        if (size && !memchr(line, '\0', size)) {
            text_add_bytes(lines, line, size);
            text_add_bytes(lines, "", 1);
        }
        line = next;
    }
}

/* The part after the head. */
static enum plain_part body_part(struct plain_response *response)
{
    const char *given = http_header_find(&response->lines, "Content-Length");
    const char *coding = http_header_find(&response->lines, "Transfer-Encoding");
    response->left = 0;
    if (response->is_of_head || response->status == 204 || response->status == 304)
        return PLAIN_LENGTH;
    if (coding && value_has(coding, "chunked"))
        return PLAIN_CHUNK_SIZE;
    if (!coding && given && parse_u64(given, &response->left) == ERR_OK)
        return PLAIN_LENGTH;
    response->keeps = false;
    return PLAIN_UNTIL_CLOSE;
}

/* Three digits of a status line, -1: none.  strtol would skip line ends, and read what follows the head. */
static int read_status(const char *digits)
{
    if (strspn(digits, "0123456789") != 3 || !strchr(" \r\n", digits[3]))
        return -1;
    return (int)strtol(digits, NULL, 10);
}

static ssize_t parse_head(struct plain_response *response, const char *head, size_t length)
{
    const char *crlf = memmem(head, length, "\r\n\r\n", 4), *lf = memmem(head, length, "\n\n", 2);
    const char *end = crlf ? crlf + 4 : NULL;
    if (lf && (!end || lf + 2 < end))
        end = lf + 2;
    if (length >= 5 && memcmp(head, "HTTP/", 5) != 0)
        return -1;
    if (!end)
        return length > HEAD_MAX ? -1 : 0;
    const char *space = memchr(head, ' ', (size_t)(end - head));
    response->status = space ? read_status(space + 1) : -1;
    if (response->status < 100)
        return -1;
    if (response->status < 200)
        return end - head; /* "100 Continue": the next head follows */
    split_head(&response->lines, head, (size_t)(end - head));
    const char *connection = http_header_find(&response->lines, "Connection");
    response->keeps = memcmp(head, "HTTP/1.1", 8) == 0 ? !value_has(connection, "close")
                                                       : value_has(connection, "keep-alive");
    response->is_stream =
        value_has(http_header_find(&response->lines, "Content-Type"), "event-stream");
    response->part = body_part(response);
    return end - head;
}

/* Hexadecimal digits, up to an extension or the end of the line, and nothing before them: no white space, which may be
 * a line end, no sign and no 0x. */
static bool read_chunk_size(const char *line, uint64_t *out)
{
    size_t digits = strspn(line, "0123456789abcdefABCDEF");
    const char *after = line + digits;
    errno = 0;
    *out = strtoull(line, NULL, 16);
    bool is_end = *after == '\n' || (after[0] == '\r' && after[1] == '\n');
    return digits && !errno && (is_end || (*after && strchr(" \t;", *after)));
}

/* A line of the chunked coding. */
static ssize_t parse_line(struct plain_response *response, const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    if (!end)
        return length > LINE_MAX_BYTES ? -1 : 0;
    bool is_empty = end == bytes || (end == bytes + 1 && bytes[0] == '\r');
    if (response->part == PLAIN_CHUNK_SIZE) {
        if (!read_chunk_size(bytes, &response->left))
            return -1;
        response->part = response->left ? PLAIN_CHUNK : PLAIN_TRAILERS;
    } else if (response->part == PLAIN_CHUNK_END) {
        if (!is_empty)
            return -1;
        response->part = PLAIN_CHUNK_SIZE;
    } else if (is_empty) {
        response->part = PLAIN_LENGTH; /* empty */
        response->left = 0;
    }
    return end + 1 - bytes;
}

ssize_t plain_response_parse(struct plain_response *response, const char *bytes, size_t length)
{
    return (response->part == PLAIN_HEAD ? parse_head : parse_line)(response, bytes, length);
}

size_t plain_response_body(const struct plain_response *response, size_t length)
{
    if (response->part == PLAIN_UNTIL_CLOSE)
        return length;
    bool is_counted = response->part == PLAIN_LENGTH || response->part == PLAIN_CHUNK;
    uint64_t left = is_counted ? response->left : 0;
    return length < left ? length : (size_t)left;
}

void plain_response_take(struct plain_response *response, size_t length)
{
    if (response->part == PLAIN_UNTIL_CLOSE)
        return;
    response->left -= length;
    if (response->part == PLAIN_CHUNK && response->left == 0)
        response->part = PLAIN_CHUNK_END;
}

bool plain_response_is_complete(const struct plain_response *response)
{
    return response->part == PLAIN_LENGTH && response->left == 0;
}
