#include <string.h>

#include "core/registry.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "graders/grader.h"

#define GRADER(name) extern const struct grader_driver grader_##name;
#include "graders/graders.def"
#undef GRADER

const struct grader_driver *const GRADER_DRIVERS[] = {
#define GRADER(name) &grader_##name,
#include "graders/graders.def"
#undef GRADER
    NULL,
};

static const char *name_at(size_t index)
{
    return GRADER_DRIVERS[index] ? GRADER_DRIVERS[index]->name : NULL;
}

const struct grader_driver *grader_driver_find(const char *name, struct error *why)
{
    const char *wanted = strcmp(name, "none") == 0 ? "null" : name; /* as users call it */
    long at = registry_find("grader", name_at, wanted, ERR_USAGE, why);
    return at < 0 ? NULL : GRADER_DRIVERS[at];
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
