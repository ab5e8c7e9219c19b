#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "graders/grader.h"
#include "graders/slice.h"

#define GRADER(name) extern const struct grader_driver grader_##name;
#include "graders/graders.def"
#undef GRADER

const struct grader_driver *const GRADER_DRIVERS[] = {
#define GRADER(name) &grader_##name,
#include "graders/graders.def"
#undef GRADER
    NULL,
};

enum { DRIVER_COUNT = sizeof GRADER_DRIVERS / sizeof *GRADER_DRIVERS - 1 };

const struct grader_driver *grader_driver_find(const char *name, struct error *why)
{
    const char *names[DRIVER_COUNT];
    const char *wanted = strcmp(name, "none") == 0 ? "null" : name; /* what users call it */
    for (size_t i = 0; i < DRIVER_COUNT; i++) {
        names[i] = GRADER_DRIVERS[i]->name;
        if (strcmp(names[i], wanted) == 0)
            return GRADER_DRIVERS[i];
    }
    const char *near = nearest_name(name, names, DRIVER_COUNT);
    if (near)
        err_set(why, ERR_USAGE, "no grader is called '%s': did you mean '%s'?", name, near);
    else
        err_set(why, ERR_USAGE, "no grader is called '%s': see ipw list", name);
    return NULL;
}

enum err grader_open(const struct grader_driver *driver, const struct grader_config *config,
                     struct grader *out, struct error *why)
{
    *out = (struct grader){0};
    enum err err = driver->available ? driver->available(why) : ERR_OK;
    if (err)
        return err;
    char owner[64];
    str_format(owner, sizeof owner, "grader %s", driver->name);
    if ((err = params_check(config->params, driver->params, owner, why)))
        return err;
    if (driver->needs_judge && !config->judge)
        return err_set(why, ERR_USAGE, "grader %s needs a judge: a model to ask", driver->name);
    if ((err = driver->open(config, out, why)))
        return err;
    out->driver = driver;
    return ERR_OK;
}

void grader_close(struct grader *grader)
{
    if (grader->driver && grader->driver->close)
        grader->driver->close(grader);
    *grader = (struct grader){0};
}

enum err grader_grade(struct grader *grader, const struct grading *what, struct grade *out,
                      struct error *why)
{
    *out = (struct grade){.verdict = VERDICT_NULL, .score = UNKNOWN};
    if (slice_trim(slice_of(what->expected)).length == 0) {
        str_copy(out->reason, sizeof out->reason, "no expected answer is known");
        return ERR_OK;
    }
    return grader->driver->grade(grader, what, out, why);
}
