/* The head is copied once and parsed in place: its strings are parts of the copy.  A line ends with CRLF or LF; a NUL,
 * any other control character, a folded line, white space before a colon, or a length of the body that is invalid or
 * given more than once refuse the request. */
#define _GNU_SOURCE
#include "port/http_exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "core/xalloc.h"

size_t request_head_find_end(const char *bytes, size_t length, size_t searched)
{
    size_t at = searched > 3 ? searched - 3 : 0; /* the end may have begun there */
    for (const char *line; at < length && (line = memchr(bytes + at, '\n', length - at));) {
        size_t next = (size_t)(line - bytes) + 1;
        if (next < length && bytes[next] == '\n')
            return next + 1;
        if (next + 1 < length && bytes[next] == '\r' && bytes[next + 1] == '\n')
            return next + 2;
        at = next;
    }
    return 0;
}

/* RFC 9110, 5.6.2 */
static bool is_token_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static size_t token_length(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && is_token_byte(*at))
        at++;
    return (size_t)(at - from);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Visible bytes; within values also blanks between them. */
static bool is_text(const char *at, const char *end, bool with_blanks)
{
    for (; at < end; at++)
        if ((unsigned char)*at <= ' ' ? !with_blanks || !is_blank(*at) : *at == 0x7f)
            return false;
    return true;
}

/* Cuts off the line that begins here: its end, without the line end; *next is where the next one begins. */
static char *end_line(char *line, char *end, char **next)
{
    char *last = memchr(line, '\n', (size_t)(end - line));
    *next = last + 1;
    if (last > line && last[-1] == '\r')
        last--;
    *last = '\0';
    return last;
}

/* 0, or the status of the response. */
static int parse_request_line(struct request_head *request, char *line, char *end)
{
    size_t method = token_length(line, end);
    char *target = line + method + 1;
    if (!method || line[method] != ' ')
        return 400;
    char *version = memchr(target, ' ', (size_t)(end - target));
    if (!version || version == target || !is_text(target, version, false))
        return 400;
    line[method] = *version++ = '\0';
    request->method = line;
    request->target = target;
    if (end - version != 8 || memcmp(version, "HTTP/", 5) != 0 || version[6] != '.' ||
        !strchr("0123456789", version[5]) || !strchr("0123456789", version[7]))
        return 400;
    request->is_http_1_0 = version[7] == '0';
    return version[5] == '1' ? 0 : 505;
}

/* Moves "name: value" to `to`, as "name\0value\0", which is not longer; NULL: malformed. */
static char *take_header(char *to, char *line, char *end)
{
    size_t name = token_length(line, end);
    if (!name || line[name] != ':')
        return NULL;
    char *value = line + name + 1;
    while (value < end && is_blank(*value))
        value++;
    while (end > value && is_blank(end[-1]))
        end--;
    if (!is_text(value, end, true))
        return NULL;
    memmove(to, line, name);
    to[name] = '\0';
    to += name + 1;
    memmove(to, value, (size_t)(end - value));
    to += end - value;
    *to = '\0';
    return to + 1;
}

/* What the headers say about the connection and the body. */
struct facts {
    unsigned hosts, lengths, codings; /* headers of that name */
    bool is_valid_length, is_chunked, says_close, says_keep;
};

static void note_header(struct request_head *request, struct facts *facts, const char *name,
                        const char *value)
{
    switch (*name | 0x20) { /* few names are compared as a whole */
    case 'c':
        if (str_equal_nocase(name, "Connection")) {
            facts->says_close |= str_list_has(value, "close");
            facts->says_keep |= str_list_has(value, "keep-alive");
        } else if (str_equal_nocase(name, "Content-Length")) {
            facts->lengths++;
            facts->is_valid_length = value[strspn(value, "0123456789")] == '\0' &&
                                     parse_u64(value, &request->length) == ERR_OK;
        }
        break;
    case 'e':
        request->expects_continue |=
            str_equal_nocase(name, "Expect") && str_equal_nocase(value, "100-continue");
        break;
    case 'h':
        facts->hosts += str_equal_nocase(name, "Host");
        break;
    case 't':
        if (str_equal_nocase(name, "Transfer-Encoding")) {
            facts->codings++;
            facts->is_chunked = str_equal_nocase(value, "chunked");
        }
        break;
    default:
        break;
    }
}

static int check_facts(const struct request_head *request, const struct facts *facts,
                       const char **why)
{
    int status = 400;
    if (facts->hosts > 1) {
        *why = "the Host header is given more than once";
    } else if (!facts->hosts && !request->is_http_1_0) {
        *why = "the Host header is missing";
    } else if (facts->lengths + facts->codings > 1) {
        *why = "the length of the body is given more than once";
    } else if (facts->lengths && !facts->is_valid_length) {
        *why = "the length of the body is not a number";
    } else if (facts->codings && request->is_http_1_0) {
        *why = "HTTP/1.0 has no transfer codings";
    } else if (facts->codings && !facts->is_chunked) {
        *why = "the only supported transfer coding is chunked";
        status = 501;
    } else {
        status = 0;
    }
    return status;
}

int request_head_parse(struct request_head *request, const char *head, size_t length,
                       const char **why)
{
    request->head = xstrndup(head, length);
    struct facts facts = {0};
    char *next, *all_end = request->head + length;
    char *end = end_line(request->head, all_end, &next);
    int status = parse_request_line(request, request->head, end);
    *why = status == 505 ? "the only supported versions are HTTP/1.0 and HTTP/1.1"
                         : "malformed request line";
    if (status)
        return status;
    char *to = next;
    request->headers = to;
    for (char *line = next; (end = end_line(line, all_end, &next)) > line; line = next) {
        char *name = to;
        if (!(to = take_header(to, line, end))) {
            *why = "malformed header";
            return 400;
        }
        note_header(request, &facts, name, name + strlen(name) + 1);
    }
    request->headers_end = to;
    request->is_chunked = facts.is_chunked;
    request->keeps = !facts.says_close && (!request->is_http_1_0 || facts.says_keep);
    return check_facts(request, &facts, why);
}

void request_head_release(struct request_head *request)
{
    free(request->head);
    *request = (struct request_head){0};
}

const char *request_head_get(const struct request_head *request, const char *name)
{
    for (const char *at = request->headers; at < request->headers_end;) {
        const char *value = at + strlen(at) + 1;
        if (str_equal_nocase(at, name))
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}
