#include "port/http_library.h"

#include <pthread.h>
#include <stdlib.h>

#include "port/dl.h"

struct curl_library curl;

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static enum err load_result;
static struct error load_error;

/* Once, and never unloaded: the library may have started threads and registered handlers. */
static void load_library(void)
{
    static const char *const NAMES[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
    static const struct dl_symbol SYMBOLS[] = {
        {"curl_global_init", &curl.global_init, true},
        {"curl_easy_init", &curl.easy_init, true},
        {"curl_easy_cleanup", &curl.easy_cleanup, true},
        {"curl_easy_reset", &curl.easy_reset, true},
        {"curl_easy_setopt", &curl.easy_setopt, true},
        {"curl_easy_getinfo", &curl.easy_getinfo, true},
        {"curl_easy_pause", &curl.easy_pause, true},
        {"curl_easy_strerror", &curl.easy_strerror, true},
        {"curl_multi_init", &curl.multi_init, true},
        {"curl_multi_cleanup", &curl.multi_cleanup, true},
        {"curl_multi_add_handle", &curl.multi_add_handle, true},
        {"curl_multi_remove_handle", &curl.multi_remove_handle, true},
        {"curl_multi_perform", &curl.multi_perform, true},
        {"curl_multi_poll", &curl.multi_poll, true},
        {"curl_multi_setopt", &curl.multi_setopt, true},
        {"curl_multi_assign", &curl.multi_assign, true},
        {"curl_multi_socket_action", &curl.multi_socket_action, true},
        {"curl_multi_info_read", &curl.multi_info_read, true},
        {"curl_slist_append", &curl.slist_append, true},
        {"curl_slist_free_all", &curl.slist_free_all, true},
        {"curl_getdate", &curl.getdate, true},
        {"curl_url", &curl.url, true},
        {"curl_url_cleanup", &curl.url_cleanup, true},
        {"curl_url_set", &curl.url_set, true},
        {"curl_url_get", &curl.url_get, true},
        {"curl_free", &curl.release, true},
    };
    struct dl library;
    struct error absence;
    if (dl_open(&library, NAMES, &absence)) {
        load_result =
            err_set(&load_error, ERR_UNSUPPORTED, "libcurl is not installed: apt install libcurl4");
        return;
    }
    load_result = dl_load(&library, SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, &load_error);
    if (!load_result && curl.global_init(CURL_GLOBAL_DEFAULT))
        load_result = err_set(&load_error, ERR_UNSUPPORTED, "libcurl cannot be initialized");
}

enum err curl_load(struct error *why)
{
    pthread_once(&loaded_once, load_library);
    return load_result ? err_set(why, load_result, "%s", load_error.text) : ERR_OK;
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
    /* A canceled request does not wait for a name server that does not answer. */
    curl.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}
