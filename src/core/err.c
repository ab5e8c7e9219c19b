#include "core/err.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/secret.h"
#include "core/text.h"

static const char *const TEXTS[ERR_COUNT] = {
#define ERR(name, text) [ERR_##name] = text,
#include "core/err.def"
#undef ERR
};

const char *err_text(enum err code)
{
    return (unsigned)code < ERR_COUNT ? TEXTS[code] : "unknown error";
}

/* The end of a message is often the reason, after a path of any length: a message that does not fit loses its middle. */
static void shorten(char *to, size_t size, const char *from)
{
    static const char GAP[] = "...";
    if (str_copy(to, size, from))
        return;
    size_t tail = size / 3, head = size - sizeof GAP - tail;
    const char *rest = from + strlen(from) - tail;
    while (head > 0 && utf8_is_continuation(from[head]))
        head--;
    while (utf8_is_continuation(*rest))
        rest++;
    str_format(to, size, "%.*s%s%s", (int)head, from, GAP, rest);
}

/* `reason` follows the message; "" for none. */
static PRINTF_LIKE(3, 0) enum err
    set(struct error *why, enum err code, const char *format, va_list args, const char *reason)
{
    if (!why)
        return code;
    why->code = code;
    /* Space for the longest path: secrets are replaced before truncation, since a truncated one would not be
     * recognized. */
    char whole[PATH_MAX + 4 * sizeof why->text];
    vsnprintf(whole, sizeof whole, format, args);
    size_t length = strlen(whole);
    str_copy(whole + length, sizeof whole - length, reason);
    secret_hide(whole);
    str_plain(whole, sizeof whole); /* the message may quote file contents */
    shorten(why->text, sizeof why->text, whole);
    return code;
}

enum err(err_set)(struct error *why, enum err code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)set(why, code, format, args, "");
    va_end(args);
    return code;
}

enum err(err_errno)(struct error *why, int number, const char *format, ...)
{
    char reason[128];
    va_list args;
    chars_format(reason, ": %s", strerror(number));
    va_start(args, format);
    enum err code = set(why, err_from_errno(number), format, args, reason);
    va_end(args);
    return code;
}

enum err err_explain(struct error *why, enum err code)
{
    return code ? err_set(why, code, "%s", err_text(code)) : ERR_OK;
}

enum err err_from_errno(int number)
{
    switch (number) {
    case 0:
        return ERR_OK;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case ENODEV:
    case ENXIO:
        return ERR_LOST;
    case ENOMEM:
        return ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE:
        return ERR_TOO_MANY_FILES;
    case EPIPE:
        return ERR_CLOSED_PIPE;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERR_NO_SPACE;
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
        return ERR_UNSUPPORTED;
    case ENAMETOOLONG:
        return ERR_BAD_VALUE;
    case EAGAIN:
    case EBUSY:
        return ERR_BUSY;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EINTR:
        return ERR_INTERRUPTED;
    default:
        return ERR_IO;
    }
}
