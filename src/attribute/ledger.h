/* The ledger: the energy of each device and of the whole machine in a window, every figure with its evidence.  A
 * device's joules come from its best working channel (a counter before an integral, an estimate last); other
 * channels of the same scope become its cross-check, parts of it become components, and nothing is summed twice.  A
 * psys of one socket enters the total only where every measured socket has a working psys; elsewhere its coverage is
 * unknown, and the packages are summed.  ledger_take and ledger_mean fill a ledger that ledger_release frees. */
#ifndef IPW_ATTRIBUTE_LEDGER_H
#define IPW_ATTRIBUTE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/quantity.h"
#include "core/units.h"

struct json;
struct sampler;
struct sensor;

enum { LEDGER_PARTS_MAX = 8 };

struct ledger_part {
    char name[32]; /* "core", "power.memory" */
    struct energy energy;
};

struct ledger_gauge {
    bool present;
    double mean, max, last; /* in the quantity's base unit; UNKNOWN without a reading */
};

struct ledger_device {
    char id[DEVICE_NAME_SIZE];   /* "gpu0", "cpu0", "dram0" */
    const struct sensor *sensor; /* sensor of its main channel; owned by the sampler */
    size_t source;               /* index of that sensor in the sampler */
    size_t channel;              /* main channel: source of the joules, with has_energy */
    bool has_energy;             /* it has an energy or power channel, working or not */
    bool is_instance; /* MIG instance: its energy is a part of the GPU's and enters no sum */
    bool counted;     /* its joules are in the total */
    struct energy energy;
    double power_mean, power_max; /* W */
    struct energy cross_check; /* same energy by another method; METHOD_NONE when there is none */
    double residual;           /* mean power by cross_check / by energy - 1; UNKNOWN without */
    struct ledger_part parts[LEDGER_PARTS_MAX];
    size_t part_count;
    struct ledger_gauge gauges[QTY_COUNT];
};

struct ledger {
    nanos from, to;
    struct ledger_device *devices;
    size_t count;
    struct energy total;
};

/* Idle power of each device, from a window in which nothing ran. */
struct baseline_row {
    char device[DEVICE_NAME_SIZE];
    double watts;
    double sigma; /* standard uncertainty */
};
struct baseline {
    struct baseline_row *rows;
    size_t count;
    double seconds; /* how long it was measured */
};

/* idle may be NULL: the idle and active shares are then unknown.  Fails, by ERR_NO_MEMORY, in libipw alone. */
enum err ledger_take(struct sampler *sampler, nanos from, nanos to, const struct baseline *idle,
                     struct ledger *out);
void ledger_release(struct ledger *ledger);

/* Source of a GPU's activity figures: "gpm", "dcgmi", "utilization"; NULL without any. */
const char *ledger_activity_source(const struct ledger_device *device);

/* The mean of several ledgers of the same work, with its standard uncertainty.  All come from one sampler, so their
 * devices are the same in the same order.  Figures that some runs lack are means over the others, with a note; the
 * total is that of the runs that sum the same devices. */
void ledger_mean(const struct ledger *const *ledgers, size_t count, struct ledger *out);

/* The energy of a subset of a ledger's devices. */
struct ledger_selection {
    double joules;
    double updates; /* from the sensor with the fewest */
    bool is_estimated;
    char devices[96], source[192];
};

/* Selects one device or, with NULL, all processors and their memory.  ERR_NO_DATA when none of them has energy. */
enum err ledger_select(const struct ledger *ledger, const char *device,
                       struct ledger_selection *out, struct error *why) MUST_USE;

/* The baseline from the ledger of an idle window; baseline_release frees it.  Fails as ledger_take. */
enum err baseline_from(const struct ledger *ledger, struct baseline *out);
void baseline_release(struct baseline *baseline);

/* ---- as JSON, the same shape in every command: ledger_json.c ---- */

/* One element of "devices"; the fields alone let a caller add its own to the object it opened. */
void device_fields_to_json(struct json *json, const struct ledger_device *device);

/* The array "devices" of the ledger. */
void devices_to_json(struct json *json, const char *key, const struct ledger *ledger);

#endif
