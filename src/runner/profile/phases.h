/* The functions of the phases of a profile, each over its state (state.h), which owns all that they allocate.  Internal to
 * this folder. */
#ifndef IPW_RUNNER_PROFILE_PHASES_H
#define IPW_RUNNER_PROFILE_PHASES_H

#include "datasets/dataset.h"
#include "runner/profile/state.h"

struct hardware;
struct predicted;

/* The windows that replace the dataset's items; NULL: none. */
static inline const struct client_windows *profile_windows(const struct profile_setup *setup)
{
    return setup->windows.count ? &setup->windows : NULL;
}

/* directory.c: chooses the name of the run directory, creates it or reads the state of earlier starts, and locks it;
 * sets result->was_done if nothing is left to do.  profile_close_unsettled completes the journal of a killed start,
 * before this one writes anything.  profile_close_directory unlocks it, and removes it if the run wrote nothing;
 * profile_release_paths frees its path and those in it. */
enum err profile_open_directory(struct profile *profile, struct error *why) MUST_USE;
enum err profile_close_unsettled(struct profile *profile, struct error *why) MUST_USE;
void profile_close_directory(struct profile *profile);
void profile_release_paths(struct profile_files *files);

/* setup.c: everything before the first query.  After an error the state holds what was opened so far. */
enum err profile_setup(struct profile *profile, struct error *why) MUST_USE;

/* proxied.c: a proxy instead of a dataset and workers.  proxied_check checks whether it can be started, before anything
 * is written, and fills base_url and client_info; call proxied_join when no thread is working any more, and free
 * profile->proxied after the last energy. */
enum err proxied_check(struct profile *profile, struct error *why) MUST_USE;
enum err proxied_start(struct profile *profile, struct error *why) MUST_USE;
/* Idle power is measured while the proxy runs; call this after the last request is settled, in case it is unknown until
 * then.  All energy is attributed again once it is known. */
enum err proxied_measure_idle_last(struct profile *profile, struct error *why) MUST_USE;
void proxied_join(struct profile *profile);
void proxied_free(struct proxied *proxied);

/* agents.c: the event recorder, and the data loaded for the summary. */
void agents_init(struct profile *profile);
void agents_release(struct profile *profile);
/* When an agent's query has ended: agents_take_tree builds the tree of its spans and fills answer->cost; agents_end,
 * once its record is in the journal, takes ownership of the tree, and of `pending` unless it fails.  Its energy is
 * settled later: agents_take_share is true for its shares.  agents_discard: the query does not count. */
struct answer;
struct pending;
struct trace_tree;
void agents_take_tree(struct profile *profile, struct answer *answer, struct trace_tree *out);
enum err agents_end(struct profile *profile, struct pending *pending, const struct answer *answer,
                    struct trace_tree *tree, struct error *why) MUST_USE;
bool agents_take_share(struct profile *profile, const struct share *share);
void agents_discard(struct profile_shared *shared, const char *key);
/* For the summary: the traces of all queries; what they add to a record; and a dataset of them. */
struct record;
enum err agents_load(struct profile *profile, struct error *why) MUST_USE;
enum err agents_update(struct profile *profile, const struct record *record) MUST_USE;
enum err agents_save(struct profile *profile, struct error *why) MUST_USE;

/* The command that runs the profile. */
static inline enum run_kind profile_kind(const struct profile_options *options)
{
    if (options->proxy)
        return RUN_KIND_PROXY;
    return options->agent ? RUN_KIND_AGENT : RUN_KIND_PROFILE;
}

/* How its prompts are made.  Only a dataset asks for a form of the answer: not the clients of a proxy. */
static inline struct prompt_form profile_prompts(const struct profile_options *options)
{
    bool asks = options->dataset && !options->proxy && !options->no_answer_format;
    return (struct prompt_form){options->template_text,
                                asks ? dataset_answer_format(options->dataset) : NULL};
}

/* judging.c: grades the answers that need a judge, after the queries; their energy is accounted separately.  No effect
 * if there are none. */
enum err profile_judge(struct profile *profile, struct error *why) MUST_USE;

/* quality.c: metrics of all answers together, after the queries and the judge, in *out. */
struct journal_index;
enum err profile_find_qualities(struct profile *profile, struct journal_index *index,
                                struct summary *out, struct error *why) MUST_USE;

/* summary.c: facts about the model, the machine and the prices, before a run. */
enum err profile_find_facts(struct profile *profile, struct error *why) MUST_USE;
void profile_release_facts(struct profile_setup *setup);

/* Reads the journal, writes the summary and the stores, and fills the result. */
enum err profile_summarize(struct profile *profile, struct error *why) MUST_USE;

/* The same, with `describe` for everything that is not a figure: it is called after the figures were filled in. */
typedef void profile_describe(struct profile *profile, struct summary *out);
enum err profile_summarize_as(struct profile *profile, profile_describe *describe,
                              struct error *why) MUST_USE;

/* ---- settling (settle.c) ---- */

/* Attributes the energy of the machine to requests, and writes each share to the journal as soon as it is settled; at
 * the end of a start, its account.  The sharing and the ledger belong to struct profile. */

/* Starts sharing the machine's energy among requests at `from`; an earlier sharing is freed.  take is called with each
 * settled share and the profile as its context, and journals it. */
void settle_begin(struct profile *profile, nanos from, sharing_take *take);

/* Settles the remaining requests when all have ended. */
enum err settle_rest(struct profile *profile, struct error *why) MUST_USE;

/* Writes the run line: the queries of a start begin at `from`. */
enum err settle_open_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Writes the end line, with the energy since `from`. */
enum err settle_close_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Totals of all starts. */
struct run_energy settle_totals(const struct resume *resume,
                                const struct profile_settling *settling);

/* ---- the main thread while queries run (settle.c) ---- */

/* Keeps the first error that ends the run; no new query is started after it.  Thread-safe. */
void profile_fail(struct profile *profile, enum err err, const struct error *why);
void profile_warn(const struct profile *profile, const char *line);

/* total is -1 if unknown. */
void profile_begin_phase(struct profile *profile, const char *phase, int64_t total);
void profile_show_progress(const struct profile *profile);

/* Appends new samples to their file.  After a failure the run continues without them. */
void profile_write_samples(struct profile *profile);

/* Handles signals, settles energies, writes samples and shows progress until every thread has ended or, with
 * ERR_INTERRUPTED, until the third signal, or until one while only the dataset is being waited for.  The first signal
 * waits for the queries in flight, the second aborts them. */
enum err profile_loop(struct profile *profile) MUST_USE;

/* Whether the run was stopped and all remaining threads have waited too long for the dataset: a FIFO without a writer.
 * Call repeatedly. */
bool profile_awaits_dataset(struct profile *profile);

/* The journals and the samples.  Closing also frees the sharing. */
enum err profile_open_files(struct profile *profile, struct error *why) MUST_USE;
void profile_close_files(struct profile *profile);

/* Syncs the journals to disk every few tens of milliseconds until stopped. */
struct committer {
    struct profile *profile;
    pthread_t thread;
    atomic_bool stop;
};
enum err committer_start(struct committer *committer, struct profile *profile) MUST_USE;
enum err committer_stop(struct committer *committer, struct error *why) MUST_USE;

/* ---- prediction.c: what the estimator says of a model that was measured, for the same work ---- */

/* The work of one query. */
struct predicted_work {
    const char *model; /* a file that the estimator reads */
    const char *image; /* size of its images, if the file leaves it free; or NULL */
    double prompt_tokens, output_tokens; /* of a text, and of its answer; else UNKNOWN */
    double passes;                       /* of the model; UNKNOWN: one */
};

/* This machine's entry of the catalog, or that of a common GPU.  The caller releases it. */
enum err prediction_device(struct hardware *out, struct error *why) MUST_USE;

/* ERR_UNSUPPORTED, with the reason, for what cannot be estimated. */
enum err prediction_make(const struct predicted_work *work, const struct hardware *device,
                         struct predicted *out, struct error *why) MUST_USE;

#endif
