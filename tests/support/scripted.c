#include "support/scripted.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "sampler/sampler.h"
#include "sensors/sensor.h"
#include "support/rng.h"

enum { SENSORS_MAX = 8 };
#define JOULES_PER_COUNT 1e-6

struct player {
    const struct scripted_channel *channels;
    unsigned next;       /* channel whose history the next read returns */
    bool second;         /* it is the part after the pause */
    unsigned reading;    /* of a load: number of the next one */
    uint64_t stream;     /* of random numbers: the global one belongs to the test's thread */
    atomic_int replayed; /* parts that are complete: a read followed the last of them */
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "scripted sensors: %s\n", what);
    abort();
}

/* Of the machine that is being started; each belongs to its sensor, so that the sensors of a failed
 * test do not replay the next one's script. */
static struct player *players[SENSORS_MAX];
static unsigned player_count;
static nanos start;
static nanos pause_at = SCRIPTED_LENGTH; /* later readings are replayed only when this is over */
static atomic_bool going;

nanos scripted_time(double s)
{
    return start + from_seconds(s);
}

static void scripted_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    (void)out;
}

static enum err scripted_open(const struct sensor_finding *finding, struct sensor *out,
                              struct error *why)
{
    (void)why;
    struct player *player = players[finding->key];
    for (const struct scripted_channel *row = player->channels; row->name; row++) {
        struct sensor_channel *channel =
            sensor_add_channel(out, row->name, row->device, row->quantity);
        must(channel != NULL, "too many channels");
        channel->scope = row->scope;
        channel->location = row->location;
        channel->estimated = row->estimated;
        channel->secondary = row->secondary;
        channel->relative_accuracy = row->relative_accuracy;
        channel->interval_mean = row->load && row->load->is_interval_mean;
        channel->averaging = row->load ? from_seconds(row->load->averaging_s) : 0;
        channel->joules_per_count = JOULES_PER_COUNT;
    }
    out->groups[0] = (struct sensor_group){.period_default = SCRIPTED_STEP, .period_min = 1};
    out->group_count = 1;
    out->state = player;
    return ERR_OK;
}

/* The integral of the row's value from 0 to s, which is an index of its profile where there is one. */
static double integral(const struct scripted_channel *row, double s)
{
    if (row->profile) {
        double sum = 0;
        for (nanos t = SCRIPTED_STEP; t <= from_seconds(s); t += SCRIPTED_STEP)
            sum += row->profile[t / SCRIPTED_STEP] * seconds(SCRIPTED_STEP);
        return sum;
    }
    bool stepped = row->step_s > 0 && s > row->step_s;
    return stepped ? row->value * row->step_s + row->step_value * (s - row->step_s)
                   : row->value * s;
}

static double value_at(const struct scripted_channel *row, nanos t)
{
    if (row->profile)
        return row->profile[t / SCRIPTED_STEP];
    return row->step_s > 0 && seconds(t) > row->step_s ? row->step_value : row->value;
}

static void play_channel(const struct scripted_channel *row, unsigned channel, bool second,
                         struct observations *out)
{
    for (nanos t = 0; t <= SCRIPTED_LENGTH; t += SCRIPTED_STEP) {
        double s = seconds(t);
        if ((t > pause_at) != second)
            continue;
        if (row->ends_s > 0 && s > row->ends_s)
            return;
        if (s > row->gap_from_s && s < row->gap_to_s)
            continue;
        double joules = integral(row, s);
        if (row->reset_s > 0 && s >= row->reset_s)
            joules -= integral(row, row->reset_s);
        if (row->missing)
            observe_missing(out, channel, start + t, ERR_IO);
        else if (row->quantity == QTY_ENERGY)
            observe_count(out, channel, start + t,
                          row->dead ? 7 : (uint64_t)llround(joules / JOULES_PER_COUNT) + 1);
        else
            observe_value(out, channel, start + t, value_at(row, t));
    }
}

static double gaussian(uint64_t *stream)
{
    return sqrt(-2 * log(1 - rng_uniform_of(stream))) * cos(2 * acos(-1) * rng_uniform_of(stream));
}

/* Momentary power is that of the ten microseconds before. */
static double load_watts(const struct scripted_load *load, double s)
{
    double length = load->mean_s > 0 ? load->mean_s : 1e-5, to = s - load->delay_s;
    return (load->joules(load->context, to) - load->joules(load->context, to - length)) / length;
}

/* Fills one read; false if there are more readings. */
static bool play_load(struct player *player, const struct scripted_channel *row,
                      struct observations *out)
{
    const struct scripted_load *load = row->load;
    unsigned channel = player->next;
    nanos sigma = from_seconds(load->sigma_s) + NS_PER_US;
    if (player->reading == 0) /* the noise differs from run to run as the offset does */
        player->stream ^= (uint64_t)(1e12 * load->offset_s);
    for (; out->count < out->capacity; player->reading++) {
        double s = load->offset_s + load->period_s * player->reading;
        if (from_seconds(s) > SCRIPTED_LENGTH)
            return true;
        if (row->quantity != QTY_ENERGY) {
            observe_value(out, channel, start + from_seconds(s), load_watts(load, s));
            continue;
        }
        double joules = load->joules(load->context, s);
        nanos t = start + from_seconds(s + load->sigma_s * gaussian(&player->stream));
        observe_timed(out, channel, t, sigma, (uint64_t)llround(joules / JOULES_PER_COUNT) + 1);
    }
    return false;
}

static enum err scripted_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)group;
    struct player *player = sensor->state;
    const struct scripted_channel *row = &player->channels[player->next];
    if (!row->name) {
        atomic_store(&player->replayed, player->second ? 2 : 1);
        if (!player->second && atomic_load(&going)) {
            player->second = true;
            player->next = 0;
        }
        return ERR_OK;
    }
    if (row->load) {
        if (play_load(player, row, out)) {
            player->reading = 0;
            player->next++;
        }
        return ERR_OK;
    }
    play_channel(row, player->next++, player->second, out);
    must(out->dropped == 0, "the script is too long for one read");
    return ERR_OK;
}

static void scripted_close(struct sensor *sensor)
{
    free(sensor->state);
    sensor->state = NULL;
}

static const struct sensor_driver DRIVER = {
    .name = "scripted",
    .summary = "replays a test's script",
    .probe = scripted_probe,
    .open = scripted_open,
    .read = scripted_read,
    .close = scripted_close,
};

static void await(struct player *player, int parts)
{
    while (atomic_load(&player->replayed) < parts) {
        struct timespec nap = {.tv_nsec = NS_PER_MS};
        nanosleep(&nap, NULL);
    }
}

static struct sampler *start_all(const struct scripted_channel *const *sensors)
{
    struct error why;
    struct sampler *sampler = sampler_new(NS_PER_MS);
    must(sampler != NULL, "no sampler");
    start = clock_now() - 2 * SCRIPTED_LENGTH;
    unsigned count = 0;
    for (; sensors[count]; count++) {
        must(count < SENSORS_MAX, "too many sensors");
        players[count] = calloc(1, sizeof *players[count]);
        must(players[count] != NULL, "out of memory");
        players[count]->channels = sensors[count];
        players[count]->stream = count;
        struct sensor_finding finding = {.driver = &DRIVER, .kind = SENSOR_TEST, .key = count};
        snprintf(finding.id, sizeof finding.id, "test:%u", count);
        must(sampler_add(sampler, &finding, &why) == ERR_OK, "a sensor does not open");
    }
    must(sampler_start(sampler, &why) == ERR_OK, "the sampler does not start");
    player_count = count;
    for (unsigned i = 0; i < count; i++)
        await(players[i], 1);
    return sampler;
}

struct sampler *scripted_start(const struct scripted_channel *const *sensors)
{
    pause_at = SCRIPTED_LENGTH;
    atomic_store(&going, false);
    return start_all(sensors);
}

struct sampler *scripted_start_until(const struct scripted_channel *const *sensors, double s)
{
    pause_at = from_seconds(s);
    atomic_store(&going, false);
    return start_all(sensors);
}

void scripted_resume(void)
{
    atomic_store(&going, true);
    for (unsigned i = 0; i < player_count; i++)
        await(players[i], 2);
}

void scripted_stop(struct sampler *sampler)
{
    sampler_free(sampler);
}
