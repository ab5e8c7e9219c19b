/* ipw load: a steady CPU load of known duration, to measure or to test sensors with. */
#include "cli/common.h"
#include "core/text.h"
#include "core/units.h"
#include "port/proc.h"
#include "runner/check.h"

static double length_s = 2;
static unsigned threads;

static const struct option_row ROWS[] = {
    NUMBER_ROW("seconds", length_s, "S", "duration (default: 2)", .min = 0.001, .max = 86400,
               .letter = 's'),
    COUNT_ROW("threads", threads, "N", "threads (default: one per CPU)", .min = 1, .max = 4096,
              .letter = 't'),
    {0},
};

static int load_run(const char **words, size_t count)
{
    (void)words, (void)count;
    proc_block_signals();
    struct load *load = load_start(threads);
    int signal_number = proc_poll_signal(from_seconds(length_s));
    double done = load_stop(load);
    struct text text = {0};
    text_addf(&text, "%.2f billion multiply-adds\n", done);
    int code = put_output(&text);
    text_release(&text);
    return signal_number ? 128 + signal_number : code;
}

const struct command command_load = {
    .name = "load",
    .summary = "run a CPU load of known duration, to try out measurements",
    .usage = "[--seconds S] [--threads N]",
    .details = "Runs floating-point multiply-adds on every CPU (or on N threads), without memory "
               "traffic,\n"
               "and prints how many it did. Try: ipw run -- ipw load --seconds 2",
    .rows = ROWS,
    .run = load_run,
};
