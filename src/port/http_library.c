#include "port/http_library.h"

#include <stdlib.h>

#include "core/memory.h"
#include "port/dl.h"

struct curl_library curl;

static bool start(void)
{
    return curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

enum err curl_load(struct error *why)
{
    static const char *const NAMES[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
    static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(name, function) {#function, &curl.name, true},
        CURL_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    static struct dl_library library = {.names = NAMES,
                                        .symbols = SYMBOLS,
                                        .count = COUNT_OF(SYMBOLS),
                                        .absent = "libcurl is not installed: apt install libcurl4",
                                        .start = start,
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

enum err curl_add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = memory_need(curl.slist_append(*list, line));
    if (!longer)
        return ERR_NO_MEMORY;
    *list = longer;
    return ERR_OK;
}

void curl_set_peer(CURL *easy, bool is_local)
{
    const char *bundle = getenv("CURL_CA_BUNDLE");
    if (!bundle || !*bundle)
        bundle = getenv("SSL_CERT_FILE");
    if (bundle && *bundle)
        curl.easy_setopt(easy, CURLOPT_CAINFO, bundle);
    if (is_local)
        curl.easy_setopt(easy, CURLOPT_NOPROXY, "*");
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A canceled request does not wait for a name server that does not respond. */
    curl.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}
