#include "sensors/nvml/api.h"

#include <math.h>
#include <pthread.h>

#include "port/dl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;      /* under lock, like the rest */
static bool kept;           /* one of the users is the reference kept by nvml_release_keep */
static struct dl library;   /* open while users > 0 */
static struct nvml_api api; /* filled while users > 0; written only when there are no users */

enum need { OPTIONAL = 0, REQUIRED = 1 };

static enum err load(struct error *why)
{
    static const struct dl_symbol SYMBOLS[] = {
#define NVML(need, member, symbol, parameters) {"nvml" #symbol, &api.member, need == REQUIRED},
#include "sensors/nvml/api.def"
#undef NVML
    };
    static const char *const NAMES[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    struct error detail;
    if (dl_open(&library, "IPW_NVML", NAMES, &detail) != ERR_OK)
        return err_set(why, ERR_ABSENT, "no NVIDIA management library: %s", detail.text);
    if (dl_load(&library, SYMBOLS, COUNT_OF(SYMBOLS), &detail) != ERR_OK) {
        err_set(why, ERR_UNSUPPORTED, "NVIDIA's management library is too old: %s", detail.text);
        dl_close(&library);
        return ERR_UNSUPPORTED;
    }
    return ERR_OK;
}

/* Maps a failed initialization to an error and a message for `ipw doctor`. */
static enum err init_failed(int code, struct error *why)
{
    switch (code) {
    case NVML_DRIVER_NOT_LOADED:
    case NVML_LIBRARY_NOT_FOUND:
        return err_set(why, ERR_ABSENT,
                       "NVIDIA's library is installed, but its kernel driver is not loaded");
    case NVML_VERSION_MISMATCH:
        return err_set(why, ERR_UNSUPPORTED,
                       "the NVIDIA kernel driver and library have different versions "
                       "(upgraded while the old driver was loaded)");
    case NVML_NO_PERMISSION:
        return err_set(why, ERR_DENIED, "no permission to open the NVIDIA device nodes");
    default:
        return err_set(why, nvml_err(code), "NVML initialization failed: %s (code %d)",
                       nvml_code_text(code), code);
    }
}

enum err nvml_acquire(const struct nvml_api **out, int *code, struct error *why)
{
    enum err err = ERR_OK;
    *code = NVML_OK;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        err = load(why);
        if (err == ERR_OK) {
            *code = api.init();
            if (*code != NVML_OK) {
                err = init_failed(*code, why);
                dl_close(&library);
            }
        }
    }
    if (err == ERR_OK) {
        users += kept ? 0 : 1;
        kept = false;
        *out = &api;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

/* Call with the lock held. */
static void drop_user(void)
{
    if (--users > 0)
        return;
    api.shutdown();
    dl_close(&library);
}

void nvml_release(void)
{
    pthread_mutex_lock(&lock);
    drop_user();
    pthread_mutex_unlock(&lock);
}

void nvml_release_keep(void)
{
    pthread_mutex_lock(&lock);
    if (users == 1)
        kept = true;
    else
        drop_user();
    pthread_mutex_unlock(&lock);
}

void nvml_release_kept(void)
{
    pthread_mutex_lock(&lock);
    if (kept)
        drop_user();
    kept = false;
    pthread_mutex_unlock(&lock);
}

enum err nvml_err(int code)
{
    switch (code) {
    case NVML_OK:
        return ERR_OK;
    case NVML_GPU_IS_LOST:
    case NVML_RESET_REQUIRED:
    case NVML_GPU_NOT_FOUND:
    case NVML_UNINITIALIZED:
    case NVML_DRIVER_NOT_LOADED: /* this and the next two: the driver was unloaded or replaced */
    case NVML_VERSION_MISMATCH:
    case NVML_UNKNOWN:
        return ERR_LOST;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
        return ERR_UNSUPPORTED;
    case NVML_NO_PERMISSION:
        return ERR_DENIED;
    case NVML_TIMEOUT:
        return ERR_TIMEOUT;
    case NVML_IN_USE:
        return ERR_BUSY;
    case NVML_MEMORY:
        return ERR_NO_MEMORY;
    default:
        return ERR_IO;
    }
}

bool nvml_is_final(int code)
{
    switch (code) {
    case NVML_NOT_SUPPORTED:
    case NVML_NO_PERMISSION:
    case NVML_FUNCTION_NOT_FOUND:
    case NVML_INVALID_ARGUMENT: /* a field or sample type this driver does not know */
    case NVML_ARGUMENT_VERSION_MISMATCH:
    case NVML_DEPRECATED:
        return true;
    default:
        return nvml_err(code) == ERR_LOST;
    }
}

const char *nvml_code_text(int code)
{
    switch (code) {
    case NVML_GPU_IS_LOST:
        return "the GPU fell off the bus";
    case NVML_RESET_REQUIRED:
        return "the GPU must be reset";
    case NVML_GPU_NOT_FOUND:
        return "no GPU found";
    case NVML_UNINITIALIZED:
        return "the library was shut down";
    case NVML_DRIVER_NOT_LOADED:
        return "the driver is not loaded";
    case NVML_VERSION_MISMATCH:
        return "driver and library have different versions";
    case NVML_UNKNOWN:
        return "unknown error inside the driver";
    default:
        return err_text(nvml_err(code));
    }
}

double nvml_number(unsigned type, const union nvml_value *value)
{
    switch (type) {
    case NVML_DOUBLE:
        return value->as_double;
    case NVML_UINT:
        return value->as_uint;
    case NVML_ULONG:
        return (double)value->as_ulong;
    case NVML_ULONGLONG:
        return (double)value->as_ulonglong;
    case NVML_LONGLONG:
        return (double)value->as_longlong;
    case NVML_INT:
        return value->as_int;
    case NVML_USHORT:
        return value->as_ushort;
    default:
        return NAN;
    }
}
