#include "analysis/unmeasured.h"

#include <stddef.h>
#include <string.h>

const char *unmeasured_kind(const char *name)
{
    static const struct {
        const char *name, *answer;
    } KINDS[] = {
        {"agent", "this version runs no agents, so no data of that kind exist yet"},
        {"sweep", "this version makes no frequency sweeps, so no data of that kind exist yet"},
    };
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strstr(name, KINDS[i].name))
            return KINDS[i].answer;
    return NULL;
}
