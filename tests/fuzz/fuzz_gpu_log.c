/* Logs of GPU profilers, line by line: fractions are between 0 and 1, nothing is negative, and a log with rows has
 * columns. */
#include "fuzz/fuzz.h"

#include "core/units.h"
#include "wire/gpu_log.h"

static void run(const char *bytes, size_t length)
{
    struct gpu_log log = {0};
    (void)gpu_log_is(bytes, length);
    for (char *at = fuzz_string(bytes, length), *next; at; at = next) {
        struct gpu_log_row row;
        if ((next = strchr(at, '\n')))
            *next++ = '\0';
        if (gpu_log_line(&log, at, &row) != GPU_LOG_ROW)
            continue;
        fuzz_check(log.count > 0);
        for (size_t v = 0; v < GPU_LOG_VALUES; v++)
            fuzz_check(!(row.values[v] < 0));
        for (size_t v = GPU_LOG_UTILIZATION; v < GPU_LOG_VALUES; v++)
            fuzz_check(!(row.values[v] > 1.01));
    }
}

static void seeds(void)
{
    static const char *const FILES[] = {"GV100-dvfs-LSTM-1380-0.45d9bf4",
                                        "results_a100_llama_job_7", "results_h100_vit",
                                        "sort_1380MHz.csv"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char path[512];
        str_format(path, sizeof path, IPW_FIXTURES "/gpu_logs/%s", FILES[i]);
        fuzz_seed_file(-1, path, 2048);
    }
    fuzz_seed(-1, "timestamp, index, name, power.draw [W], utilization.gpu [%]\n"
                  "2025/07/08 15:27:53.949, 0, Tesla V100, 33.13 W, [N/A]\n");
    fuzz_seed(-1, "#Entity   DVNAM         POWER   SMACT\nID                      W\n"
                  "GPU 0     Tesla V100    33.130  N/A\n");
}

static const char *const WORDS[] = {"#Entity",   "GPU 0", "[N/A]", "N/A",       " W",
                                    " MHz",      " %",    "POWER", "timestamp", "power.draw",
                                    "clocks.sm", "TENSO", NULL};

const struct fuzz_target fuzz_gpu_log = {.run = run, .seeds = seeds, .words = WORDS};
