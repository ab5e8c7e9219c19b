/* libcurl, loaded when first needed and never unloaded.  Private to port/: http.c, http_relay.c and url.c. */
#ifndef IPW_PORT_HTTP_LIBRARY_H
#define IPW_PORT_HTTP_LIBRARY_H

#include <stdbool.h>
#include <time.h>
#include <curl/curl.h>

#include "core/err.h"

#define CURL_FUNCTIONS(F)                                                                          \
    F(global_init, curl_global_init)                                                               \
    F(easy_init, curl_easy_init)                                                                   \
    F(easy_cleanup, curl_easy_cleanup)                                                             \
    F(easy_reset, curl_easy_reset)                                                                 \
    F(easy_setopt, curl_easy_setopt)                                                               \
    F(easy_getinfo, curl_easy_getinfo)                                                             \
    F(easy_pause, curl_easy_pause)                                                                 \
    F(easy_strerror, curl_easy_strerror)                                                           \
    F(multi_init, curl_multi_init)                                                                 \
    F(multi_cleanup, curl_multi_cleanup)                                                           \
    F(multi_add_handle, curl_multi_add_handle)                                                     \
    F(multi_remove_handle, curl_multi_remove_handle)                                               \
    F(multi_perform, curl_multi_perform)                                                           \
    F(multi_poll, curl_multi_poll)                                                                 \
    F(multi_setopt, curl_multi_setopt)                                                             \
    F(multi_assign, curl_multi_assign)                                                             \
    F(multi_socket_action, curl_multi_socket_action)                                               \
    F(multi_info_read, curl_multi_info_read)                                                       \
    F(slist_append, curl_slist_append)                                                             \
    F(slist_free_all, curl_slist_free_all)                                                         \
    F(getdate, curl_getdate)                                                                       \
    F(url, curl_url)                                                                               \
    F(url_cleanup, curl_url_cleanup)                                                               \
    F(url_set, curl_url_set)                                                                       \
    F(url_get, curl_url_get)                                                                       \
    F(release, curl_free)

/* Set once curl_load has returned ERR_OK. */
struct curl_library {
#define MEMBER(name, function) __typeof__(function) *name;
    CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct curl_library curl;

/* ERR_UNSUPPORTED, with how to install it, when it cannot be opened.  Any thread. */
enum err curl_load(struct error *why) MUST_USE;

enum err curl_add_line(struct curl_slist **list,
                       const char *line); /* fails only in libipw, for lack of memory */

/* Options of every transfer: trusted certificates, and no proxy for this machine. */
void curl_set_peer(CURL *easy, bool is_local);

#endif
