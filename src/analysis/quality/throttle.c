/* Throttling, as the devices reported it while the run went on: the samples have it among all else. */
#include <stdlib.h>
#include <string.h>

#include "analysis/quality/checks.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "rundir/run_table.h"
#include "rundir/samples.h"

/* Reading more would take longer than all other analyses: of a larger file pieces are read. */
#define BYTES_MOST (UINT64_C(64) << 20)

struct seen {
    size_t files, samples, held; /* held: some cause was reported */
    unsigned causes;
    bool in_part;
};

static enum err take_sample(void *context, const struct sample *sample)
{
    struct seen *seen = context;
    unsigned causes =
        sample->value >= 0 && sample->value <= UINT32_MAX ? (unsigned)sample->value : 0;
    seen->samples++;
    seen->held += causes != 0;
    seen->causes |= causes;
    return ERR_OK;
}

/* Files that cannot be read tell nothing. */
static struct seen look(const char *directory)
{
    const struct samples_query query = {.quantity = quantity_name(QTY_THROTTLE),
                                        .bytes_max = BYTES_MOST};
    struct seen seen = {0};
    for (unsigned start = 1, last = samples_starts(directory); start <= last; start++) {
        struct samples_found found;
        enum err err = samples_read(directory, start, &query, take_sample, &seen, &found, NULL);
        seen.files += err != ERR_NOT_FOUND;
        seen.in_part = seen.in_part || found.in_part;
    }
    return seen;
}

static void name_causes(unsigned causes, char *to, size_t size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } NAMES[] = {{THROTTLE_POWER, " power"},     {THROTTLE_THERMAL, " heat"},
                 {THROTTLE_BRAKE, " brake"},     {THROTTLE_LIMIT, " a setting"},
                 {THROTTLE_SYNC, " other GPUs"}, {THROTTLE_OTHER, " other"}};
    size_t length = 0;
    to[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (causes & NAMES[i].bit && str_copy(to + length, size - length, NAMES[i].name))
            length += strlen(NAMES[i].name);
}

enum err check_throttling(struct checks *checks)
{
    struct seen seen = look(checks->table->directory);
    char causes[128];
    const char *picked = seen.in_part ? ", evenly picked" : "";
    name_causes(seen.causes, causes, sizeof causes);
    if (seen.held)
        check_put(checks, "throttling", CHECK_WARNING,
                  "clocks were held down in %.1f %% of %zu samples%s, by%s",
                  100.0 * (double)seen.held / (double)seen.samples, seen.samples, picked, causes);
    else if (seen.samples)
        check_put(checks, "throttling", CHECK_GOOD, "none in %zu samples%s", seen.samples, picked);
    else
        check_put(checks, "throttling", CHECK_UNKNOWN,
                  seen.files ? "no device told of it" : "there are no samples");
    return ERR_OK;
}
