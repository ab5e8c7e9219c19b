/* Exclusive control of one GPU's clocks and power limit, which are restored however the process ends.
 *
 *     static char *const RESTORE[] = {"/proc/self/exe", "sweep", "--restore", NULL};
 *     err = gpu_control_begin("0", 1U << KNOB_GRAPHICS_CLOCK, RESTORE, &control, &why);
 *     for each point:
 *         err = gpu_control_set(control, KNOB_GRAPHICS_CLOCK, mhz, &why);
 *         ... start the load ...
 *         err = gpu_control_reached(control, 2 * NS_PER_S, &clock, &why);
 *     err = gpu_control_end(control, &why);
 *
 * Settings persist after the process exits.  The previous state is therefore saved in a file before the first change.
 * gpu_control_end restores it: call it on every exit path, including signals reported by child_wait or
 * proc_poll_signal.  After any other end (exit, a fatal signal, SIGKILL) a watchdog process runs the restore command,
 * which must call gpu_control_restore.  If the watchdog is killed as well, as by a cgroup, the file remains, and
 * running the command manually restores the GPU.
 *
 * The files are in /run/ipw, else $XDG_RUNTIME_DIR/ipw, else /tmp/ipw-UID, under the root prefix: UUID.lock, locked while
 * a GPU is controlled, and UUID.state. */
#ifndef IPW_RUNNER_GPU_CONTROL_H
#define IPW_RUNNER_GPU_CONTROL_H

#include "core/err.h"
#include "core/units.h"
#include "sensors/sensor.h"

struct gpu_control;

/* Opens the device without control, for queries alone: driver->control->clocks, limits.  sensor_close closes it. */
enum err gpu_control_query(const char *device, struct sensor *out, struct error *why) MUST_USE;

/* Takes control of the knobs (bits 1U << enum gpu_knob) of the device that --devices would select ("": the only
 * one); changes nothing.
 * The errors that mean "measure only":
 *   ERR_DENIED       needs root, or is refused in this container
 *   ERR_UNSUPPORTED  the device or its driver has no such knob, or it is in MIG mode
 *   ERR_ABSENT       no such device, or none that can be controlled
 * and those that mean "do not start":
 *   ERR_BUSY         another process controls it, its clocks or power limit are already constrained, or a killed run left
 *                    its state behind (restore it first)
 * why->text says which and what to do.  restore_command must stay valid; its first entry is a path.  Call before
 * proc_adopt_orphans. */
enum err gpu_control_begin(const char *device, unsigned knobs, char *const restore_command[],
                           struct gpu_control **out, struct error *why) MUST_USE;

/* A flag besides the knobs: the device is under load and may be throttled by its power limit. */
#define GPU_CONTROL_IN_USE (1U << KNOB_COUNT)

/* Opens the device of gpu_control_begin for queries only: it is not locked, and nothing may be set. */
enum err gpu_control_open(const char *device, struct gpu_control **out, struct error *why) MUST_USE;

/* Whether gpu_control_begin would succeed, as far as queries show; same errors. */
enum err gpu_control_is_free(struct gpu_control *control, struct error *why) MUST_USE;

/* Requests a clock (MHz) or power limit (W). */
enum err gpu_control_set(struct gpu_control *control, enum gpu_knob knob, double value,
                         struct error *why) MUST_USE;
/* Restores the initial value of one knob. */
enum err gpu_control_reset(struct gpu_control *control, enum gpu_knob knob, struct error *why)
    MUST_USE;

enum gpu_clock_state {
    GPU_CLOCK_REACHED,
    GPU_CLOCK_IDLE,      /* no load: the clock is not meaningful */
    GPU_CLOCK_THROTTLED, /* by temperature, power or the system */
    GPU_CLOCK_OFF_TARGET,
};

struct gpu_clock {
    enum gpu_clock_state state;
    double graphics_mhz; /* last reading; UNKNOWN if not reported */
};

/* Reads clocks and limits until the settings are reached, for at most `timeout`; call under load.  An error means that
 * nothing could be read. */
enum err gpu_control_reached(struct gpu_control *control, nanos timeout, struct gpu_clock *out,
                             struct error *why) MUST_USE;

/* The sensor used for control, for queries (driver->control->clocks, limits) in this thread. */
struct sensor *gpu_control_sensor(struct gpu_control *control);

/* Restores the previous state and frees *control (NULL does nothing).  After an error the state file remains, and the
 * watchdog retries once. */
enum err gpu_control_end(struct gpu_control *control, struct error *why) MUST_USE;

struct gpu_restored {
    unsigned restored; /* GPUs whose saved state was restored */
    unsigned held;     /* controlled by a running process: not changed */
    unsigned failed;   /* their state files remain */
};

/* Restores every saved state whose GPU no running process controls.  Returns the first failure; ERR_OK if there are
 * none. */
enum err gpu_control_restore(struct gpu_restored *out, struct error *why) MUST_USE;

#endif
