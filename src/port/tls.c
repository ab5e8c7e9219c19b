/* OpenSSL 3 with declarations of our own: a context for the listener, and a session per connection, which performs the
 * handshake with its first read.  A struct tls_server is an SSL_CTX, and a struct tls_session an SSL. */
#include "port/http_exchange.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "port/dl.h"

/* ---- the library ---- */

typedef int password_callback(char *to, int size, int writes, void *context);

/* Values of its headers. */
enum {
    SSL_ERROR_WANT_READ = 2,
    SSL_ERROR_WANT_WRITE = 3,
    SSL_ERROR_ZERO_RETURN = 6,
    SSL_CTRL_MODE = 33,
    SSL_CTRL_CHAIN_CERT = 89,
    SSL_CTRL_SET_MIN_PROTO_VERSION = 123,
    SSL_MODE_ENABLE_PARTIAL_WRITE = 1,
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2,
    SSL_MODE_RELEASE_BUFFERS = 16,
    TLS1_2_VERSION = 0x303,
};

/* Functions: result, our name, their name, parameters. */
#define OPENSSL(F)                                                                                 \
    F(const void *, server_method, TLS_server_method, (void))                                      \
    F(void *, ctx_new, SSL_CTX_new, (const void *method))                                          \
    F(void, ctx_free, SSL_CTX_free, (void *ctx))                                                   \
    F(long, ctx_ctrl, SSL_CTX_ctrl, (void *ctx, int command, long number, void *value))            \
    F(int, ctx_use_certificate, SSL_CTX_use_certificate, (void *ctx, void *cert))                  \
    F(int, ctx_use_key, SSL_CTX_use_PrivateKey, (void *ctx, void *key))                            \
    F(int, ctx_check_key, SSL_CTX_check_private_key, (const void *ctx))                            \
    F(void *, new, SSL_new, (void *ctx))                                                           \
    F(void, free, SSL_free, (void *ssl))                                                           \
    F(int, set_fd, SSL_set_fd, (void *ssl, int fd))                                                \
    F(void, set_accept_state, SSL_set_accept_state, (void *ssl))                                   \
    F(int, read, SSL_read, (void *ssl, void *to, int size))                                        \
    F(int, write, SSL_write, (void *ssl, const void *bytes, int length))                           \
    F(int, shutdown, SSL_shutdown, (void *ssl))                                                    \
    F(int, get_error, SSL_get_error, (const void *ssl, int result))                                \
    F(void, clear_errors, ERR_clear_error, (void))                                                 \
    F(void *, bio_of, BIO_new_mem_buf, (const void *bytes, int length))                            \
    F(int, bio_free, BIO_free, (void *bio))                                                        \
    F(void *, read_cert, PEM_read_bio_X509,                                                        \
      (void *bio, void **out, password_callback *password, void *context))                         \
    F(void *, read_key, PEM_read_bio_PrivateKey,                                                   \
      (void *bio, void **out, password_callback *password, void *context))                         \
    F(void, cert_free, X509_free, (void *cert))                                                    \
    F(void, key_free, EVP_PKEY_free, (void *key))

static struct {
#define MEMBER(result, name, symbol, parameters) result(*name) parameters;
    OPENSSL(MEMBER)
#undef MEMBER
} openssl;

static enum err load(struct error *why)
{
    static const char *const NAMES[] = {"libssl.so.3", NULL};
    static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(result, name, symbol, parameters) {#symbol, &openssl.name, true},
        OPENSSL(SYMBOL)
#undef SYMBOL
    };
    static struct dl_library library = {
        .names = NAMES,
        .symbols = SYMBOLS,
        .count = COUNT_OF(SYMBOLS),
        .absent = "OpenSSL is not installed, which TLS needs: apt install libssl3",
        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

/* ---- certificate and key ---- */

/* Without it, OpenSSL would ask on the terminal for the password of an encrypted key. */
static int no_password(char *to, int size, int writes, void *context)
{
    (void)to, (void)size, (void)writes, (void)context;
    return -1;
}

/* The certificate, then those of its chain. */
static bool use_certificates(void *ctx, const char *pem)
{
    void *bio = openssl.bio_of(pem, -1), *cert;
    size_t count = 0;
    bool ok = bio;
    while (ok && (cert = openssl.read_cert(bio, NULL, no_password, NULL))) {
        if (count++ == 0) {
            ok = openssl.ctx_use_certificate(ctx, cert) == 1;
            openssl.cert_free(cert);
        } else if (openssl.ctx_ctrl(ctx, SSL_CTRL_CHAIN_CERT, 0, cert) != 1) {
            ok = false;
            openssl.cert_free(cert);
        }
    }
    openssl.bio_free(bio);
    return ok && count;
}

static bool use_key(void *ctx, const char *pem)
{
    void *bio = openssl.bio_of(pem, -1);
    void *key = bio ? openssl.read_key(bio, NULL, no_password, NULL) : NULL;
    bool ok = key && openssl.ctx_use_key(ctx, key) == 1 && openssl.ctx_check_key(ctx) == 1;
    openssl.key_free(key);
    openssl.bio_free(bio);
    return ok;
}

enum err tls_server_new(const char *cert, const char *key, struct tls_server **out,
                        struct error *why)
{
    *out = NULL;
    enum err err = load(why);
    void *ctx = err ? NULL : openssl.ctx_new(openssl.server_method());
    if (!ctx)
        return err ? err : err_set(why, ERR_UNSUPPORTED, "OpenSSL offers no TLS for servers");
    openssl.ctx_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    openssl.ctx_ctrl(ctx, SSL_CTRL_MODE,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS,
                     NULL);
    bool ok = use_certificates(ctx, cert) && use_key(ctx, key);
    openssl.clear_errors();
    if (!ok) {
        openssl.ctx_free(ctx);
        return err_set(why, ERR_USAGE,
                       "the TLS certificate and key are not a matching pair in PEM format");
    }
    *out = ctx;
    return ERR_OK;
}

void tls_server_free(struct tls_server *server)
{
    if (server)
        openssl.ctx_free(server);
}

/* ---- a session ---- */

struct tls_session *tls_session_new(struct tls_server *server, int fd)
{
    void *ssl = openssl.new(server);
    if (ssl && openssl.set_fd(ssl, fd) != 1) {
        openssl.free(ssl);
        return NULL;
    }
    if (ssl)
        openssl.set_accept_state(ssl);
    return ssl;
}

void tls_session_free(struct tls_session *session)
{
    if (session)
        openssl.free(session);
}

/* The result of a call as that of recv or send. */
static ssize_t result_of(struct tls_session *session, int result)
{
    if (result > 0)
        return result;
    int failure = openssl.get_error(session, result);
    if (failure == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = failure == SSL_ERROR_WANT_READ || failure == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

ssize_t tls_read(struct tls_session *session, char *to, size_t size)
{
    openssl.clear_errors(); /* those of other sessions would be reported for this one */
    return result_of(session, openssl.read(session, to, size < INT_MAX ? (int)size : INT_MAX));
}

ssize_t tls_write(struct tls_session *session, const char *bytes, size_t length)
{
    openssl.clear_errors();
    return result_of(session,
                     openssl.write(session, bytes, length < INT_MAX ? (int)length : INT_MAX));
}

void tls_finish(struct tls_session *session)
{
    openssl.clear_errors();
    (void)openssl.shutdown(session);
}
