/* A build without libcurl: no URL can be read, and one with a login is not shown. */
#include <string.h>

#include "core/text.h"
#include "port/url.h"

enum err url_read(const char *given, struct url *out, struct error *why)
{
    (void)given;
    *out = (struct url){0};
    return err_set(why, ERR_UNSUPPORTED,
                   "built without libcurl: install libcurl4-openssl-dev and build again");
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    (void)a, (void)b;
    return false;
}

bool url_is_loopback(const struct url *url)
{
    (void)url;
    return false;
}

bool url_is_local(const struct url *url)
{
    (void)url;
    return false;
}

void url_hide_login(const char *given, char *to, size_t size)
{
    str_copy(to, size, strchr(given, '@') ? "(invalid URL)" : given);
}
