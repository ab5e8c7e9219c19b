/* libcurl, opened when it is first needed and never closed.  Private to port/: http.c, http_relay.c and url.c. */
#ifndef IPW_PORT_HTTP_LIBRARY_H
#define IPW_PORT_HTTP_LIBRARY_H

#include <stdbool.h>
#include <time.h>
#include <curl/curl.h>

#include "core/err.h"

/* The functions by their names without "curl_"; set once curl_load has returned ERR_OK. */
struct curl_library {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    void (*easy_reset)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    CURLcode (*easy_pause)(CURL *easy, int which);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *multi);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned count, int wait_ms,
                            int *ready);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_assign)(CURLM *multi, curl_socket_t fd, void *data);
    CURLMcode (*multi_socket_action)(CURLM *multi, curl_socket_t fd, int events, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *line);
    void (*slist_free_all)(struct curl_slist *list);
    time_t (*getdate)(const char *date, const time_t *unused);
    CURLU *(*url)(void);
    void (*url_cleanup)(CURLU *url);
    CURLUcode (*url_set)(CURLU *url, CURLUPart what, const char *part, unsigned flags);
    CURLUcode (*url_get)(const CURLU *url, CURLUPart what, char **part, unsigned flags);
    void (*release)(void *part);
};
extern struct curl_library curl;

/* ERR_UNSUPPORTED, with how to install it, when it cannot be opened.  Any thread. */
enum err curl_load(struct error *why) MUST_USE;

/* What every transfer needs to reach its peer: trusted certificates, and no proxy for this machine. */
void curl_set_peer(CURL *easy, bool is_local);

#endif
