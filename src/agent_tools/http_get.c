/* http_get: fetches a page from an allowed host.  Redirects are checked against the same list: otherwise an allowed
 * host could redirect to any other. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent_tools/tool.h"
#include "core/xalloc.h"
#include "port/http.h"
#include "port/url.h"

struct http_get {
    char *allowed; /* allowed hosts, separated by white space or semicolons */
};

static const struct param_spec PARAMS[] = {
    {"allow", "HOSTS", "hosts that may be fetched, separated by ; (HOST, HOST:PORT or *.DOMAIN)"},
    {NULL, NULL, NULL},
};

static enum err get_open(const struct tool_config *config, void *state, struct error *why)
{
    struct http_get *get = state;
    const char *allowed = params_get(config->params, "allow");
    if (!allowed || !allowed[strspn(allowed, " ;")])
        return err_set(why, ERR_USAGE,
                       "http_get: no allowed hosts: --tool-param "
                       "http_get.allow='example.org;*.example.net'");
    get->allowed = xstrdup(allowed);
    return ERR_OK;
}

static void get_close(void *state)
{
    free(((struct http_get *)state)->allowed);
}

/* "*.example.org" does not match example.org itself, nor badexample.org. */
static bool matches(const char *pattern, size_t length, const struct url *url)
{
    char with_port[280];
    const char *host = url->host;
    const char *address_end = pattern[0] == '[' ? memchr(pattern, ']', length) : NULL;
    size_t name = address_end ? (size_t)(address_end - pattern) : 0; /* colons of "[::1]" */
    str_join(with_port, sizeof with_port, url->host, ":", url->port);
    if (memchr(pattern + name, ':', length - name))
        host = with_port;
    size_t host_length = strlen(host);
    if (length > 2 && pattern[0] == '*' && pattern[1] == '.')
        return host_length > length - 1 &&
               !strncasecmp(host + host_length - (length - 1), pattern + 1, length - 1);
    return host_length == length && !strncasecmp(host, pattern, length);
}

static bool is_allowed(const struct http_get *get, const struct url *url)
{
    for (const char *at = get->allowed; *at;) {
        at += strspn(at, " ;\t\n");
        size_t length = strcspn(at, " ;\t\n");
        if (length && matches(at, length, url))
            return true;
        at += length;
    }
    return false;
}

struct download {
    const struct http_get *get;
    struct tool_result *out;
    size_t limit;
};

static enum err may_follow(void *context, const struct url *next, struct error *why)
{
    const struct download *download = context;
    if (is_allowed(download->get, next))
        return ERR_OK;
    return err_set(why, ERR_DENIED, "redirected to %s, which is not an allowed host", next->server);
}

/* Reads one byte more than the limit, to detect truncation, and stops there. */
static enum err append_body(void *context, const char *bytes, size_t length, nanos t)
{
    struct download *download = context;
    struct text *output = &download->out->output;
    (void)t;
    size_t space = download->limit + 1 - output->length;
    text_add_bytes(output, bytes, length < space ? length : space);
    return output->length > download->limit ? ERR_BAD_VALUE : ERR_OK;
}

static enum err fetch(const struct http_get *get, const char *url, const struct tool_request *call,
                      struct tool_result *out, struct error *why)
{
    struct http *http;
    struct http_response response;
    struct download download = {get, out, call->output_limit};
    enum err err = http_open(&http, why);
    if (err)
        return err;
    const struct http_request request = {
        .method = "GET",
        .url = url,
        .timeout = call->timeout,
        .cancel = call->cancel,
        .take = append_body,
        .may_follow = may_follow,
        .context = &download,
    };
    err = http_perform(http, &request, &response, why);
    if (err == ERR_BAD_VALUE && out->output.length > call->output_limit)
        err = ERR_OK; /* the output is complete up to its limit */
    if (!err && (response.status < 200 || response.status > 299))
        tool_fail(out, "HTTP status %d", response.status);
    http_response_release(&response);
    http_close(http);
    return err;
}

static enum err get_call(const struct tool_request *call, struct tool_result *out,
                         struct error *why)
{
    const struct http_get *get = call->state;
    struct url url;
    struct error reason = {0};
    const char *given = call->texts[0];
    if (url_read(given, &url, &reason))
        return tool_fail(out, "%s", reason.text);
    if (!is_allowed(get, &url))
        return tool_fail(out, "%s is not an allowed host", url.server);
    enum err err = fetch(get, given, call, out, &reason);
    out->timed_out = err == ERR_TIMEOUT;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "%s", reason.text);
    return err ? tool_fail(out, "%s", reason.text) : ERR_OK;
}

const struct tool_driver tool_http_get = {
    .name = "http_get",
    .summary = "fetches a page over HTTP, of allowed hosts only",
    .params = PARAMS,
    .is_opt_in = true,
    .available = http_available,
    .state_size = sizeof(struct http_get),
    .open = get_open,
    .close = get_close,
    .spec = {"http_get",
             "Fetch a URL with GET and return the body of the response.",
             "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"}},"
             "\"required\":[\"url\"]}",
             false,
             {"url"}},
    .call = get_call,
};
