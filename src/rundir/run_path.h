/* Names of run directories: profile_<hardware>_<model>_<dataset>, as the Python IPW names them
 * (docs/formats.md); paths in them, and opening those.  The caller owns the buffers and descriptors. */
#ifndef IPW_RUNDIR_RUN_PATH_H
#define IPW_RUNDIR_RUN_PATH_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/err.h"

struct arrow_reader;
struct jv;
struct text;

/* The short hardware name that run directories carry ("H10080GB", "EPYC9654"), compatible with the runs of the Python
 * IPW: its rules are followed exactly, including odd results, so that old and new runs of one machine have the same
 * name.
 *
 * gpu_name is the aggregate name ("NVIDIA H200 x8"), cpu_brand the model name; either may be NULL or "".  Writes
 * "UNKNOWN_HW" if neither gives a label.  Truncates. */
void hardware_label(const char *gpu_name, const char *cpu_brand, char *to, size_t size);

/* Each character that is neither a letter nor a digit becomes "_" (not collapsed), leading and trailing ones are
 * removed; "model" if nothing is left.  Letters and digits may be non-ASCII UTF-8. */
void model_slug(const char *model, char *to, size_t size);

/* The directory's name, without its parent.  The dataset's name is unchanged, except for "/". */
void run_dir_name(const char *hardware, const char *model, const char *dataset, char *to,
                  size_t size);

/* ---- kinds of runs ---- */

/* The command that measured a run; "run_kind" in the header of records.jsonl, absent in version 0.1, whose runs are all
 * RUN_KIND_PROFILE. */
enum run_kind {
    RUN_KIND_PROFILE,
    RUN_KIND_RUN,
    RUN_KIND_LAYERS,
    RUN_KIND_SWEEP,
    RUN_KIND_AGENT,
    RUN_KIND_PROXY,
    RUN_KINDS
};

/* "profile", "run", "layers", "sweep", "agent", "proxy" */
const char *run_kind_name(enum run_kind kind);
enum run_kind run_kind_named(const char *name); /* RUN_KIND_PROFILE for NULL and unknown names */

/* Whether its records are queries of a dataset to a model. */
bool run_kind_has_queries(enum run_kind kind);

/* Whether they are requests to a model at all: these, and requests through a proxy. */
bool run_kind_has_requests(enum run_kind kind);

/* Name of a record of such a run: "query" and "queries", "run" and "runs", "window" and "windows", "point" and
 * "points", "request" and "requests". */
const char *run_kind_unit(enum run_kind kind, bool several);

/* run_<hardware>_<subject>_<UTC time>, or layers_...: unique names.  hardware: NULL if not known yet.  started_at is in
 * seconds since 1970. */
void run_path_name(enum run_kind kind, const char *hardware, const char *subject, double started_at,
                   char *to, size_t size);

/* ---- repeats ---- */

/* NAME_r1, NAME_r2 ...: the directories of a run that was repeated as a whole.  All have the same group in their header
 * and summary, by which readers identify them. */
enum { REPEAT_GROUP_MAX = 40 };
struct run_repeat {
    char group[REPEAT_GROUP_MAX]; /* "": not repeated */
    unsigned number;              /* from 1 */
    double began; /* start of the first one, after which all are named; seconds since 1970 */
    /* Of two settings whose runs alternate: */
    char series[REPEAT_GROUP_MAX]; /* the same for both; "": none */
    char side;                     /* 'a', the baseline, or 'b' */
    unsigned until_decided; /* the most pairs of a series that ends when it is decided; else 0 */
};

/* A new unique group. */
struct run_repeat run_repeat_new(void);

/* Appends _r<number>, in a series _<side>_r<number>; false if it does not fit, or if the run is not repeated. */
bool run_repeat_name(const struct run_repeat *repeat, char *name, size_t size);

/* The length of a path without the suffix that distinguishes repeats: "_r2", or a time as in run_path_name; the whole
 * length if there is none. */
size_t run_path_stem(const char *path);

/* ---- parts ---- */

/* Part `number` (from 1) of `of`; zeros: not a part. */
struct run_part {
    unsigned number, of;
};

/* As in options and the settings of a journal: "2/4"; "": not a part. */
enum { RUN_PART_MAX = 32, RUN_PARTS_MAX = 10000 };
#define RUN_PART_KEY "shard"
void run_part_name(const struct run_part *part, char *to, size_t size);
bool run_part_parse(const char *text, struct run_part *out);

/* Appends "_shard2of4" to the name of a directory; false if it does not fit.  And the length of a path without it. */
bool run_part_suffix(const struct run_part *part, char *name, size_t size);
size_t run_part_stem(const char *path);

/* FOLDER/NAME_shard2of4; the caller frees it. */
char *run_part_path(const char *folder, const char *name, const struct run_part *part);

/* ---- opening what is read of run directories: every reader does it here ---- */

/* Whether a path that a file of a run contains stays below its directory: relative, and without "." and "..". */
bool run_path_is_below(const char *path);

/* From now on, only paths below this folder can be opened in this process, and none through a symbolic link: a link
 * below the folder is as if it were not there.  The folder itself may be one.  NULL: no limit, and links are followed,
 * as for directories that a user names.  Call it while no other thread reads runs. */
void run_open_confine(const char *folder);

/* Opens for reading, of a confined folder only regular files; -1 with errno. */
int run_open(const char *path);
enum err run_open_file(const char *path, FILE **out, struct error *why) MUST_USE;
DIR *run_open_directory(const char *path); /* NULL with errno */

/* As scandir, sorted by name; -1 with errno. */
int run_scan(const char *path, struct dirent ***entries, int (*wants)(const struct dirent *entry));

bool run_stat(const char *path, struct stat *out);
bool run_has_file(const char *path); /* of any type */
bool run_has_regular(const char *path);
bool run_has_directory(const char *path);

/* As file_read, jv_read and arrow_reader_open. */
enum err run_read(const char *path, size_t limit, struct text *out, struct error *why) MUST_USE;
enum err run_read_json(const char *path, size_t limit, struct jv **out, struct error *why) MUST_USE;
enum err run_read_arrow(const char *path, struct arrow_reader **out, struct error *why) MUST_USE;

/* ---- files of a run directory ---- */

enum run_file {
    RUN_FILE_RECORDS,
    RUN_FILE_SPANS,
    RUN_FILE_TRACES, /* traces of agents */
    RUN_FILE_SUMMARY,
    RUN_FILE_LAYERS,   /* results of `ipw layers` */
    RUN_FILE_ESTIMATE, /* prediction of `ipw estimate` for the run; placed there by the user */
    RUN_FILES
};

/* The file that a query generated, by its name in the answer: DIR/outputs/NAME, which the caller frees; NULL: the answer
 * is no name of one. */
char *run_path_output(const char *directory, const char *name);

/* Its path, which the caller frees. */
char *run_path_file(const char *directory, enum run_file file);

/* samples.csv, and samples-2.csv for the second start ...; the caller frees the path. */
char *run_path_samples(const char *directory, unsigned start);

/* More starts than any run has: a larger number in a file or in its name is not that of a start. */
enum { RUN_STARTS_MAX = 100000 };

/* The start whose samples are in a file of that name; 0: not a samples file. */
unsigned run_path_start_of(const char *name);

/* The Arrow files of a run, in order: data-00000-of-00002.arrow ... */
struct run_shards {
    char **paths;
    size_t count;
    unsigned expected; /* according to their names; 0 without any */
};

/* ERR_NOT_FOUND: no such directory.  run_shards_release frees it, also after an error. */
enum err run_shards_find(const char *directory, struct run_shards *out, struct error *why) MUST_USE;
void run_shards_release(struct run_shards *shards);

/* The key of a query: "q000012", and "q000012.r1" for a repeat. */
enum { QUERY_KEY_MAX = 48 };
char *query_key(uint64_t index, unsigned repeat, char to[static QUERY_KEY_MAX]);
/* Parses a key into its numbers; false if invalid. */
bool query_key_parse(const char *key, uint64_t *index, unsigned *repeat);

#endif
