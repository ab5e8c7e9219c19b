#include "rundir/journal/skim.h"

#include <string.h>

#include "rundir/journal/lines.h"

/* Takes a fixed text from the front. */
static bool take(const char **at, const char *end, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(end - *at) < length || memcmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Takes a string without escapes, from after its first quote to past its last one. */
static bool take_string(const char **at, const char *end, const char **string, size_t *length)
{
    const char *quote = memchr(*at, '"', (size_t)(end - *at));
    if (!quote || memchr(*at, '\\', (size_t)(quote - *at)))
        return false;
    *string = *at;
    *length = (size_t)(quote - *at);
    *at = quote + 1;
    return true;
}

/* Past the string that begins at `at`; NULL when it is not closed. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        at += *at == '\\';
    }
    return at < end ? at + 1 : NULL;
}

/* A line that was torn, run into another or overwritten with zeros is not whole. */
static bool is_whole(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            if (!at)
                return false;
            continue;
        }
        if ((unsigned char)*at < 0x20)
            return false;
        if (*at == '{' || *at == '[')
            depth++;
        if (*at == '}' || *at == ']') {
            if (depth == 0 || (depth == 1 && at + 1 < end))
                return false;
            depth--;
        }
        at++;
    }
    return depth == 0;
}

bool journal_skim(const struct journal_line *line, struct skimmed *out)
{
    if (!line->bytes)
        return false;
    const char *at = line->bytes, *end = line->bytes + line->length;
    return take(&at, end, "{\"kind\":\"") && take_string(&at, end, &out->kind, &out->kind_length) &&
           take(&at, end, ",\"key\":\"") && take_string(&at, end, &out->key, &out->key_length) &&
           at < end && (*at == ',' || *at == '}') && is_whole(line->bytes, end);
}
