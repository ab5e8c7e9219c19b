/* Groups of options shared by several commands, and their functions: Slurm job arrays, listening for HTTP, and
 * measurements at several clocks.  The options borrow the command line's strings. */
#ifndef IPW_CLI_OPTION_GROUPS_H
#define IPW_CLI_OPTION_GROUPS_H

#include "cli/options.h"
#include "core/err.h"
#include "core/text.h"
#include "runner/slurm.h"

struct freq_data;
struct params;

/* ---- Slurm jobs, and their progress ---- */

struct slurm_command {
    bool on, script_only;
    struct option_list more;
    struct slurm_options options;
};

/* clang-format off */
#define SLURM_OPTION_ROWS(o, what)                                                                 \
    FLAG_ROW("slurm", (o).on, what " in a Slurm job array, and collect the results"),              \
    TEXT_ROW("partition", (o).options.partition, "NAME", "Slurm partition"),                       \
    TEXT_ROW("gres", (o).options.gres, "LIST", "Slurm resources per array element: gpu:1"),        \
    TEXT_ROW("time", (o).options.time, "LIMIT",                                                    \
             "Slurm time limit per array element: 30, 1:00:00"),                                   \
    TEXT_ROW("account", (o).options.account, "NAME", "Slurm account"),                             \
    COUNT_ROW("nodes", (o).options.nodes, "N",                                                     \
              "nodes per array element; the first one is measured", .min = 1, .max = 100000),      \
    COUNT_ROW("array-limit", (o).options.array_limit, "N",                                         \
              "maximum number of elements running at the same time", .min = 1, .max = 100000),     \
    LIST_ROW("sbatch", (o).more, "OPTION",                                                         \
             "another option of sbatch: qos=high; may be repeated"),                               \
    FLAG_ROW("slurm-script-only", (o).script_only,                                                 \
             "write the sbatch script, print its path, and submit nothing")
/* clang-format on */

/* Checks and completes `options`; 0, or the exit code after printing the error. */
int slurm_command_check(struct slurm_command *command);

/* slurm_submit with the options, printing a line for each script: its path on stdout if it is not submitted. */
enum err slurm_command_submit(const struct slurm_command *command, const struct slurm_work *work,
                              bool quiet, size_t *count, struct error *why) MUST_USE;

/* slurm_follow that prints changes of the queue, unless quiet.  unit: "settings". */
struct slurm_wait {
    const char *unit;
    bool quiet;
    enum err (*collect)(void *context, size_t *left, struct error *why);
    void *context;
};
enum err slurm_command_follow(const char *directory, const struct slurm_wait *wait, size_t *left,
                              int *signal, struct error *why) MUST_USE;

/* ---- listening for HTTP ---- */

/* clang-format off */
/* Of commands that listen for HTTP; may be repeated. */
#define ALLOW_HOST_OPTION_ROW(list)                                                                \
    LIST_ROW("allow-host", (list), "NAME", "also accept NAME in Host headers; may be repeated")
/* clang-format on */

/* --listen: "PORT", "ADDRESS", "ADDRESS:PORT", "[::1]:PORT"; NULL is 127.0.0.1.  read_listen returns 0, or EXIT_USAGE
 * after printing the error. */
struct listen_at {
    char address[256];
    unsigned port;
    bool is_tls; /* set by the command */
};
int read_listen(const char *given, unsigned default_port, struct listen_at *out);

/* --listen, --allow-host and --token-file of a server.  read_access returns 0, or the exit code after printing the error;
 * *out points into the options, whose token is released by the caller. */
struct listen_options {
    const char *listen, *token_file;
    struct option_list hosts;
    struct listen_at at;
    struct text token;
};
struct http_access_options;
int read_access(struct listen_options *options, unsigned default_port,
                struct http_access_options *out);

/* "http://127.0.0.1:80", as plain_text. */
struct plain_text listen_url(const struct listen_at *at);

/* ---- measurements at several clocks ---- */

/* The options for reading measurements at several clocks. */

struct power_options {
    struct option_list inputs, columns, where;
    const char *gpu, *clocks;
    const struct sweep_points *sweep; /* the only input, loaded by the command; or NULL */
};

/* clang-format off */
#define POWER_OPTION_ROWS(o)                                                                       \
    LIST_ROW("input", (o).inputs, "FILE",                                                          \
             "CSV, GPU logs (file or directory), or a sweep; may be repeated"),                    \
    LIST_ROW("columns", (o).columns, "OURS=THEIRS",                                                \
             "map unrecognized column names; comma-separated"),                                    \
    LIST_ROW("where", (o).where, "COLUMN=VALUE", "select rows: gpu=A100,workload=llama"),          \
    TEXT_ROW("gpu", (o).gpu, "NAME", "GPU, for a file without a GPU column"),                      \
    TEXT_ROW("clocks", (o).clocks, "FILE",                                                         \
             "CSV of supported clocks (gpu, graphics_mhz); drops other clocks")
/* clang-format on */

/* Reads and checks them; freq_data_release(out), also after an error. */
enum err power_options_read(const struct power_options *options, struct freq_data *out,
                            struct error *why) MUST_USE;
/* Positional arguments are inputs, too.  ERR_USAGE: too many. */
enum err power_options_add(struct power_options *options, const char **words, size_t count,
                           struct error *why) MUST_USE;
/* Parses only --columns and --where, into empty params. */
enum err power_options_pairs(const struct power_options *options, struct params *columns,
                             struct params *where, struct error *why) MUST_USE;

/* What to minimize: E T^n, by the names of n = 0, 1 and 2. */
extern const char *const OBJECTIVE_NAMES[];
double objective_exponent(const char *name);

#endif
