/* One open vendor library for the process: opened for its first user, closed after its last. */
#include "sensors/amd/api.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/text.h"
#include "port/fs.h"

static struct {
    pthread_mutex_t calls; /* held around every call into the library */
    pthread_mutex_t users; /* guards the two below, and opening and closing */
    const struct amd_api *api;
    unsigned user_count;
} library = {.calls = PTHREAD_MUTEX_INITIALIZER, .users = PTHREAD_MUTEX_INITIALIZER};

void amd_lock(void)
{
    pthread_mutex_lock(&library.calls);
}

void amd_unlock(void)
{
    pthread_mutex_unlock(&library.calls);
}

/* Without the kernel driver there is nothing to ask, and asking costs: the libraries take tens of
 * milliseconds to load and ROCm SMI writes to stderr when it finds no driver.  A library that the
 * user names is always asked. */
static bool worth_asking(void)
{
    return getenv("IPW_AMDSMI") || getenv("IPW_ROCMSMI") || fs_exists("/sys/module/amdgpu") ||
           fs_exists("/dev/kfd");
}

static enum err open_first(struct error *why)
{
    static const struct amd_api *const APIS[] = {&amd_smi_api, &amd_rocm_api};
    if (!worth_asking())
        return err_set(why, ERR_ABSENT, "the amdgpu kernel driver is not loaded");
    struct error failures[2];
    for (size_t i = 0; i < 2; i++) {
        failures[i] = (struct error){0};
        enum err err = APIS[i]->open(&failures[i]);
        if (!err) {
            library.api = APIS[i];
            return ERR_OK;
        }
        failures[i].code = err;
    }
    if (failures[0].code == ERR_ABSENT && failures[1].code == ERR_ABSENT)
        return err_set(why, fs_exists("/sys/module/amdgpu") ? ERR_NOT_FOUND : ERR_ABSENT,
                       "neither AMD SMI nor ROCm SMI opens: %.75s; %.75s", failures[0].text,
                       failures[1].text);
    /* A library that opened and then refused says more than one that is not installed. */
    const struct error *told = &failures[failures[0].code == ERR_ABSENT];
    return err_set(why, told->code == ERR_LOST ? ERR_ABSENT : told->code, "%s", told->text);
}

enum err amd_acquire(const struct amd_api **api, struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&library.users);
    if (!library.user_count) {
        amd_lock();
        err = open_first(why);
        amd_unlock();
    }
    if (!err) {
        library.user_count++;
        *api = library.api;
    }
    pthread_mutex_unlock(&library.users);
    return err;
}

void amd_release(void)
{
    pthread_mutex_lock(&library.users);
    if (--library.user_count == 0) {
        amd_lock();
        library.api->close();
        library.api = NULL;
        amd_unlock();
    }
    pthread_mutex_unlock(&library.users);
}
