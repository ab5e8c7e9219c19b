/* The options by which commands read measurements at several clocks, and what is read by them. */
#ifndef IPW_CLI_POWER_OPTIONS_H
#define IPW_CLI_POWER_OPTIONS_H

#include "cli/options.h"
#include "core/err.h"

struct freq_data;
struct params;

struct power_options {
    struct option_list inputs, columns, where;
    const char *gpu, *clocks;
};

/* clang-format off */
#define POWER_OPTION_ROWS(o)                                                                       \
    {.name = "input", .type = OPTION_LIST, .target = &(o).inputs, .value = "FILE",                 \
     .help = "CSV, GPU logs (file or directory), or a sweep; may be repeated"},                    \
    {.name = "columns", .type = OPTION_LIST, .target = &(o).columns, .value = "OURS=THEIRS",       \
     .help = "names of columns that are not recognized, with commas"},                             \
    {.name = "where", .type = OPTION_LIST, .target = &(o).where, .value = "COLUMN=VALUE",          \
     .help = "select rows, with commas: gpu=A100,workload=llama"},                                 \
    {.name = "gpu", .type = OPTION_TEXT, .target = &(o).gpu, .value = "NAME",                      \
     .help = "GPU of a file without such a column"},                                               \
    {.name = "clocks", .type = OPTION_TEXT, .target = &(o).clocks, .value = "FILE",                \
     .help = "CSV of supported clocks (gpu, graphics_mhz); others are left out"}
/* clang-format on */

/* Reads and checks them; freq_data_release(out), also after an error. */
enum err power_options_read(const struct power_options *options, struct freq_data *out,
                            struct error *why) MUST_USE;
/* Arguments that are no options are inputs, too.  ERR_USAGE: too many. */
enum err power_options_add(struct power_options *options, const char **words, size_t count,
                           struct error *why) MUST_USE;
/* --columns and --where alone, into empty params. */
enum err power_options_pairs(const struct power_options *options, struct params *columns,
                             struct params *where, struct error *why) MUST_USE;

#endif
