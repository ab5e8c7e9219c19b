#include "port/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "core/memory.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/http_library.h"

/* ---- parts ---- */

/* False when there is none, or it does not fit. */
static bool get_part(CURLU *parsed, CURLUPart what, unsigned flags, char *to, size_t size)
{
    char *part = NULL;
    bool fits = curl.url_get(parsed, what, &part, flags) == CURLUE_OK && str_copy(to, size, part);
    curl.release(part);
    return fits;
}

static void register_login(CURLU *parsed, struct url *out)
{
    char user[256] = "", password[512] = "", as_given[512] = "";
    bool has_user = get_part(parsed, CURLUPART_USER, CURLU_URLDECODE, user, sizeof user);
    bool has_password =
        get_part(parsed, CURLUPART_PASSWORD, CURLU_URLDECODE, password, sizeof password);
    out->has_login = has_user || has_password;
    if (!has_password)
        return;
    if (get_part(parsed, CURLUPART_PASSWORD, 0, as_given, sizeof as_given))
        secret_add(as_given);
    secret_add_login(user, password);
}

/* The complete URL without its login; libcurl adds the slash of an empty path. */
static bool show(CURLU *parsed, const char *given, struct url *out)
{
    static const CURLUPart LOGIN[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS};
    for (size_t i = 0; i < COUNT_OF(LOGIN); i++)
        curl.url_set(parsed, LOGIN[i], NULL, 0);
    if (!get_part(parsed, CURLUPART_URL, 0, out->shown, sizeof out->shown))
        return false;
    size_t length = strlen(out->shown), end = strlen(given);
    if (end && given[end - 1] != '/' && out->shown[length - 1] == '/')
        out->shown[length - 1] = '\0';
    chars_format(out->server, "%s://%s", out->scheme, out->host);
    char port[8];
    if (get_part(parsed, CURLUPART_PORT, 0, port, sizeof port))
        chars_format(out->server, "%s://%s:%s", out->scheme, out->host, port);
    return true;
}

static enum err invalid(const char *given, const char *what, struct error *why)
{
    return err_set(why, ERR_USAGE, "'%.80s' is not a URL: %s", strchr(given, '@') ? "it" : given,
                   what); /* there may be a password before an @ */
}

static enum err read_parts(CURLU *parsed, const char *given, struct url *out, struct error *why)
{
    CURLUcode code = curl.url_set(parsed, CURLUPART_URL, given, CURLU_NON_SUPPORT_SCHEME);
    bool has_scheme =
        code == CURLUE_OK && get_part(parsed, CURLUPART_SCHEME, 0, out->scheme, sizeof out->scheme);
    if (!has_scheme && !str_starts(given, "http://") && !str_starts(given, "https://"))
        return invalid(given, "expected http:// or https://", why);
    const char *after = strstr(given, "://");
    if (after && after[3] == '/') /* libcurl would parse the rest as a host */
        return invalid(given, "it has no host", why);
    if (code)
        return invalid(given, "its host or port is invalid", why);
    if (!str_equal(out->scheme, "http") && !str_equal(out->scheme, "https"))
        return invalid(given, "expected http:// or https://", why);
    if (!get_part(parsed, CURLUPART_HOST, 0, out->host, sizeof out->host) || !out->host[0])
        return invalid(given, "it has no host", why);
    for (char *c = out->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    register_login(parsed, out);
    if (!get_part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT, out->port, sizeof out->port) ||
        !show(parsed, given, out))
        return invalid(given, "it is too long", why);
    return ERR_OK;
}

enum err url_read(const char *given, struct url *out, struct error *why)
{
    *out = (struct url){0};
    enum err err = curl_load(why);
    if (err)
        return err;
    CURLU *parsed = memory_need(curl.url());
    if (!parsed)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a URL");
    err = read_parts(parsed, given, out, why);
    curl.url_cleanup(parsed);
    return err;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    return str_equal(a->scheme, b->scheme) && str_equal(a->host, b->host) &&
           str_equal(a->port, b->port);
}

bool url_is_loopback(const struct url *url)
{
    struct in_addr address;
    return str_equal(url->host, "[::1]") || (inet_pton(AF_INET, url->host, &address) == 1 &&
                                             ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

bool url_is_local(const struct url *url)
{
    static const char SUFFIX[] = ".localhost";
    size_t length = strlen(url->host);
    return url_is_loopback(url) || str_equal(url->host, "localhost") ||
           (length > strlen(SUFFIX) && str_equal(url->host + length - strlen(SUFFIX), SUFFIX));
}

void url_hide_login(const char *given, char *to, size_t size)
{
    struct url url;
    const char *scheme = strstr(given, "://");
    char whole[1024];
    chars_format(whole, "%s%s", scheme ? "" : "http://", given);
    if (!strchr(scheme ? scheme : given, '@'))
        str_copy(to, size, given);
    else if (url_read(whole, &url, NULL))
        str_copy(to, size, "(invalid URL)");
    else
        str_copy(to, size, url.shown + (scheme ? 0 : strlen("http://")));
}
