#include "runner/profile/run.h"

void run_fail(struct profile_run *run, enum err err, const struct error *why)
{
    pthread_mutex_lock(&run->lock);
    if (!run->err) {
        run->err = err;
        if (why && why->text[0])
            run->why = *why;
        else
            err_set(&run->why, err, "%s", err_text(err));
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, true);
}
