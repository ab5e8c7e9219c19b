/* Accessors and loading of a run's table: inspects a run directory and chooses the best source of its records.
 * run_table_arrow.c and run_table_journal.c read the two sources, run_table_builder.c collects columns; columns derived
 * from others are added here. */
#include "rundir/run_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/run_table_builder.h"

/* ---- derived columns ---- */

/* An active energy smaller than this share of the energy is a rounding residue. */
#define RESIDUE 1e-9

static bool wants(struct run_wanted wanted, enum run_number column)
{
    return wanted.numbers >> column & 1;
}

/* `wanted` plus the inputs of its derived columns. */
static struct run_wanted derive_needs(struct run_wanted wanted)
{
    const run_columns basis = RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS);
    if (wants(wanted, RUN_WATTS))
        wanted.numbers |= RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_LATENCY) | basis;
    if (wants(wanted, RUN_ACTIVE_JOULES))
        wanted.numbers |= RUN_WANT(RUN_JOULES);
    if (wants(wanted, RUN_JOULES)) /* for a run of the Python IPW */
        wanted.numbers |= RUN_WANT(RUN_BASIS_JOULES);
    if (wanted.numbers & basis)
        wanted.numbers |= RUN_WANT(RUN_GPU_JOULES) | RUN_WANT(RUN_SOC_JOULES) |
                          RUN_WANT(RUN_GPU_WATTS) | RUN_WANT(RUN_SOC_WATTS);
    if (wants(wanted, RUN_TOTAL_TOKENS))
        wanted.numbers |= RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS);
    wanted.words |= RUN_WANT(RUN_STATUS) | RUN_WANT(RUN_GRADING) | RUN_WANT(RUN_BASIS) |
                    RUN_WANT(RUN_GPU_BACKEND) | RUN_WANT(RUN_METHOD);
    return wanted;
}

static void derive_outcomes(struct run_table *table)
{
    for (size_t i = 0; i < table->rows; i++) {
        const char *status = run_word(table, RUN_STATUS, i);
        bool failed = str_equal(status, "failed"), canceled = str_equal(status, "canceled");
        table->flags[RUN_FAILED][i] = (int8_t)failed;
        table->flags[RUN_CANCELED][i] = (int8_t)canceled;
        table->flags[RUN_UNREAD][i] = (int8_t)grading_is_unread(run_word(table, RUN_GRADING, i));
        table->failed += failed;
        table->canceled += canceled;
    }
}

static void derive_index(struct run_table *table)
{
    if (table->numbers[RUN_INDEX])
        return;
    double *index = builder_new_column(table);
    for (size_t i = 0; i < table->rows; i++)
        index[i] = (double)i;
    table->numbers[RUN_INDEX] = index;
}

static void derive_total(struct run_table *table)
{
    double *total = table->numbers[RUN_TOTAL_TOKENS];
    if (!total && table->numbers[RUN_INPUT_TOKENS] && table->numbers[RUN_OUTPUT_TOKENS]) {
        total = table->numbers[RUN_TOTAL_TOKENS] = builder_new_column(table);
    }
    for (size_t i = 0; total && i < table->rows; i++)
        if (!is_known(total[i]))
            total[i] =
                run_number(table, RUN_INPUT_TOKENS, i) + run_number(table, RUN_OUTPUT_TOKENS, i);
}

static bool takes_board(const struct run_table *table, size_t row)
{
    return record_counts_board(run_word(table, RUN_BASIS, row),
                               run_word(table, RUN_GPU_BACKEND, row),
                               is_known(run_number(table, RUN_SOC_JOULES, row)) ||
                                   is_known(run_number(table, RUN_SOC_WATTS, row)));
}

static void derive_basis(struct run_table *table, enum run_number out, enum run_number gpu,
                         enum run_number board)
{
    if (!table->numbers[gpu] && !table->numbers[board])
        return;
    double *column = table->numbers[out] = builder_new_column(table);
    for (size_t i = 0; i < table->rows; i++) {
        bool is_board = takes_board(table, i);
        column[i] = run_number(table, is_board ? board : gpu, i);
        if (is_known(column[i]))
            *(is_board ? &table->uses_board : &table->uses_gpu) = true;
    }
}

static void derive_joules(struct run_table *table)
{
    const double *basis = table->numbers[RUN_BASIS_JOULES];
    if (table->ours || table->numbers[RUN_JOULES] || !basis)
        return;
    double *joules = table->numbers[RUN_JOULES] = builder_new_column(table);
    /* The Python IPW writes exactly 0 for a query without a sample: missing, not measured. */
    for (size_t i = 0; i < table->rows; i++)
        joules[i] = basis[i] == 0 ? UNKNOWN : basis[i];
}

static void derive_watts(struct run_table *table)
{
    if (!table->numbers[RUN_JOULES] && !table->numbers[RUN_BASIS_WATTS])
        return;
    double *watts = table->numbers[RUN_WATTS] = builder_new_column(table);
    for (size_t i = 0; i < table->rows; i++) {
        double joules = run_number(table, RUN_JOULES, i), s = run_number(table, RUN_LATENCY, i);
        watts[i] = is_known(joules) && s > 0 ? joules / s : run_number(table, RUN_BASIS_WATTS, i);
    }
}

/* ---- invalid energies ---- */

/* A negative energy comes from a corrupt record or a counter that was reset, and is treated as unknown. */
static void drop_negative(struct run_table *table)
{
    static const enum run_number ENERGIES[] = {
        RUN_JOULES,     RUN_IDLE_JOULES, RUN_WINDOW_JOULES, RUN_PREFILL_JOULES, RUN_DECODE_JOULES,
        RUN_GPU_JOULES, RUN_CPU_JOULES,  RUN_SOC_JOULES,    RUN_JUDGE_JOULES};
    for (size_t row = 0; row < table->rows; row++) {
        bool found = false;
        for (size_t i = 0; i < COUNT_OF(ENERGIES); i++) {
            double *column = table->numbers[ENERGIES[i]];
            if (!column || !(column[row] < 0))
                continue;
            found = true;
            column[row] = UNKNOWN;
        }
        if (found && table->numbers[RUN_ACTIVE_JOULES])
            table->numbers[RUN_ACTIVE_JOULES][row] = UNKNOWN;
        table->negative += found;
    }
}

static void drop_residues(struct run_table *table)
{
    double *active = table->numbers[RUN_ACTIVE_JOULES];
    for (size_t i = 0; active && i < table->rows; i++)
        if (fabs(active[i]) <= RESIDUE * run_number(table, RUN_JOULES, i))
            active[i] = 0;
}

/* Computes the derived columns, then frees inputs that were loaded only for them. */
static void derive_columns(struct run_table *table, struct run_wanted wanted)
{
    struct run_wanted all = derive_needs(wanted);
    derive_outcomes(table);
    drop_residues(table);
    drop_negative(table);
    if (wants(all, RUN_INDEX))
        derive_index(table);
    if (wants(all, RUN_TOTAL_TOKENS))
        derive_total(table);
    if (wants(all, RUN_BASIS_JOULES))
        derive_basis(table, RUN_BASIS_JOULES, RUN_GPU_JOULES, RUN_SOC_JOULES);
    if (wants(all, RUN_BASIS_WATTS))
        derive_basis(table, RUN_BASIS_WATTS, RUN_GPU_WATTS, RUN_SOC_WATTS);
    if (wants(all, RUN_JOULES))
        derive_joules(table);
    if (wants(all, RUN_WATTS))
        derive_watts(table);
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (!wants(wanted, (enum run_number)i)) {
            free(table->numbers[i]);
            table->numbers[i] = NULL;
        }
}

/* ---- rows ---- */

char *run_key(const struct run_table *table, size_t row, char *to)
{
    double index = run_number(table, RUN_INDEX, row), repeat = run_number(table, RUN_REPEAT, row);
    return query_key(index >= 0 && index < 1e15 ? (uint64_t)index : row,
                     repeat >= 1 && repeat < 1e9 ? (unsigned)repeat : 0, to);
}

/* data-00000-of-00003.arrow: there should be three. */
static void note_missing_shards(struct run_table *table, const struct run_shards *shards)
{
    if (shards->expected > shards->count)
        table_note(table, "only %zu of %u Arrow files found: the queries in the others are missing",
                   shards->count, shards->expected);
}

static void read_summary(struct run_table *table)
{
    struct error why = {0};
    enum err err = summary_load(table->directory, &table->summary, &why);
    table->has_summary = !err;
    table->damaged_summary = err && err != ERR_NOT_FOUND;
    if (table->damaged_summary)
        table_note(table, "ignored: %s", why.text);
}

/* A resumed run continues its journal; Arrow files are written at the end. */
static bool is_journal_newer(const char *directory, const struct run_shards *shards)
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    struct stat journal, arrow;
    bool has_journal = run_stat(path, &journal);
    free(path);
    if (!has_journal)
        return false;
    for (size_t i = 0; i < shards->count; i++)
        if (!run_stat(shards->paths[i], &arrow) || arrow.st_mtim.tv_sec < journal.st_mtim.tv_sec ||
            (arrow.st_mtim.tv_sec == journal.st_mtim.tv_sec &&
             arrow.st_mtim.tv_nsec < journal.st_mtim.tv_nsec))
            return true;
    return false;
}

/* ---- choosing the model ---- */

static void set_model(struct run_table *table, const char *model)
{
    table->model = xstrdup(model);
}

static bool has_model(const struct run_table *table, const char *model)
{
    return str_is_listed(model, (const char *const *)table->models, table->model_count);
}

static enum err no_model(const struct run_table *table, const char *model, struct error *why)
{
    struct text names = {0};
    for (size_t i = 0; i < table->model_count; i++)
        text_addf(&names, "%s%s", i ? ", " : "", table->models[i]);
    enum err err = err_set(why, ERR_NOT_FOUND, "%s has no model '%s': it has %.150s",
                           table->directory, model, names.length ? text_get(&names) : "none");
    text_release(&names);
    return err;
}

static enum err choose_model(struct run_table *table, const char *wanted, struct error *why)
{
    const char *named = text_or_empty(table->summary.model);
    if (wanted && !has_model(table, wanted))
        return no_model(table, wanted, why);
    if (!wanted && has_model(table, named))
        wanted = named;
    else if (!wanted && table->model_count)
        wanted = table->models[0];
    if (!wanted)
        return err_set(why, ERR_NO_DATA, "%s holds a dataset, but no metrics of any model",
                       table->directory);
    set_model(table, wanted);
    return ERR_OK;
}

/* ---- loading ---- */

struct load_request {
    struct run_wanted wanted;
    size_t excerpts;
};

static void release_columns(struct run_table *table)
{
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        free(table->numbers[i]);
    for (size_t i = 0; i < RUN_FLAGS; i++)
        free(table->flags[i]);
    for (size_t i = 0; i < RUN_WORDS; i++) {
        for (uint32_t id = 0; id < table->words[i].count; id++)
            free(table->words[i].texts[id]);
        free((void *)table->words[i].texts);
        free(table->words[i].ids);
    }
    for (size_t i = 0; i < table->model_count; i++)
        free(table->models[i]);
    free((void *)table->models);
    free((void *)table->model);
    excerpts_release(&table->excerpts);
}

void run_table_release(struct run_table *table)
{
    release_columns(table);
    summary_release(&table->summary);
    free(table->notes);
    *table = (struct run_table){0};
}

/* Resets to the state before the first row, to load from another source. */
static void clear_rows(struct run_table *table)
{
    struct run_table fresh = {.directory = table->directory,
                              .summary = table->summary,
                              .has_summary = table->has_summary,
                              .damaged_summary = table->damaged_summary,
                              .notes = table->notes,
                              .note_count = table->note_count,
                              .format = UNKNOWN};
    release_columns(table);
    *table = fresh;
}

static void begin_builder(struct builder *builder, struct run_table *table,
                          struct load_request request)
{
    builder_init(builder, table, derive_needs(request.wanted));
    builder->excerpts = request.excerpts;
}

static enum err from_arrow(struct run_table *table, const struct run_shards *shards,
                           const char *model, struct load_request request, struct error *why)
{
    struct builder builder;
    enum err err = ERR_OK;
    table->source = RUN_FROM_ARROW;
    for (size_t i = 0; !err && i < shards->count; i++)
        err = arrow_models(shards->paths[i], table, why);
    if (!err)
        err = choose_model(table, model, why);
    if (err)
        return err;
    begin_builder(&builder, table, request);
    for (size_t i = 0; !err && i < shards->count; i++)
        err = arrow_rows(shards->paths[i], table->model, &builder, why);
    builder_finish(&builder);
    builder_release(&builder);
    return err;
}

static enum err from_journal(struct run_table *table, const char *model,
                             struct load_request request, struct error *why)
{
    struct builder builder;
    table->source = RUN_FROM_JOURNAL;
    model = model ? model : table->summary.model;
    if (model)
        set_model(table, model);
    begin_builder(&builder, table, request);
    char *path = run_path_file(table->directory, RUN_FILE_RECORDS);
    enum err err = journal_rows(path, &builder, why);
    free(path);
    builder_finish(&builder);
    builder_release(&builder);
    if (!err && model && table->model_count && !has_model(table, model))
        err = no_model(table, model, why);
    return err;
}

/* SWEEP/points has runs two levels below. */
static bool is_of_sweep(const char *directory)
{
    static const char POINTS[] = "/points";
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        length--;
    if (length < sizeof POINTS || !str_starts(directory + length - strlen(POINTS), POINTS))
        return false;
    char *sweep = xstrndup(directory, length - strlen(POINTS));
    char *path = run_path_file(sweep, RUN_FILE_RECORDS);
    bool found = run_has_file(path);
    free(path);
    free(sweep);
    return found;
}

/* From the Arrow files, unless the journal is newer or they cannot be read. */
static enum err load_rows(struct run_table *table, const struct run_shards *shards,
                          const char *model, struct load_request request, struct error *why)
{
    char *journal = run_path_file(table->directory, RUN_FILE_RECORDS);
    bool has_journal = run_has_file(journal);
    free(journal);
    if (!shards->count && !has_journal)
        return err_set(why, ERR_NOT_FOUND,
                       "%s: not a run directory: neither data-*.arrow nor records.jsonl%s",
                       table->directory,
                       is_of_sweep(table->directory)
                           ? "; these are the points of a sweep, which is the directory above"
                           : "");
    if (!shards->count || is_journal_newer(table->directory, shards))
        return from_journal(table, model, request, why);
    note_missing_shards(table, shards);
    enum err err = from_arrow(table, shards, model, request, why);
    if ((err == ERR_BAD_VALUE || err == ERR_UNSUPPORTED || err == ERR_IO) && has_journal) {
        table_note(table, "the journal is read in place of the Arrow files: %s", why->text);
        clear_rows(table);
        err = from_journal(table, model, request, why);
    }
    return err;
}

static void add_notes(struct run_table *table)
{
    if (!table->has_summary && !table->damaged_summary)
        table_note(table, "no summary.json: the run is unfinished; %zu record%s", table->rows,
                   table->rows == 1 ? "" : "s");
    if (table->not_finite)
        table_note(table, "%llu values are not finite and count as unknown",
                   (unsigned long long)table->not_finite);
    if (table->negative)
        table_note(table, "the energy of %llu quer%s is negative: it counts as unknown",
                   (unsigned long long)table->negative, table->negative == 1 ? "y" : "ies");
    if (table->damaged)
        table_note(table, "%llu damaged line%s of records.jsonl skipped; the first is line %llu",
                   (unsigned long long)table->damaged, table->damaged == 1 ? "" : "s",
                   (unsigned long long)table->first_damaged);
    if (table->format > JOURNAL_FORMAT)
        table_note(table,
                   "records.jsonl has format %.0f, newer than %d of this version: some data may be "
                   "missing",
                   table->format, JOURNAL_FORMAT);
    for (uint32_t id = 1; id < table->words[RUN_METHOD].count; id++)
        if (str_equal(table->words[RUN_METHOD].texts[id], "estimated"))
            table_note(table, "energies are estimated by a model, not measured");
    if (table->model_count > 1)
        table_note(table, "the run has records of %zu models; these are of %s", table->model_count,
                   table->model);
}

static enum err load_into(struct run_table *table, const char *model, struct load_request request,
                          struct error *why)
{
    struct run_shards shards;
    enum err err = run_shards_find(table->directory, &shards, why);
    if (!err)
        err = run_dir_check_files(table->directory, why);
    if (!err) {
        read_summary(table);
        err = load_rows(table, &shards, model, request, why);
    }
    run_shards_release(&shards);
    if (!err && !table->rows && table->damaged)
        err = err_set(why, ERR_BAD_VALUE,
                      "no record in %s can be read: %llu lines are damaged, "
                      "the first is line %llu",
                      table->directory, (unsigned long long)table->damaged,
                      (unsigned long long)table->first_damaged);
    if (!err && !table->rows)
        err = err_set(why, ERR_NO_DATA, "no records in %s yet", table->directory);
    if (!err) {
        derive_columns(table, request.wanted);
        table->kind = run_kind_named(table->summary.run_kind);
        add_notes(table);
    }
    return err;
}

enum err run_table_load_texts(const char *directory, const char *model, struct run_wanted wanted,
                              size_t excerpts, struct run_table *out, struct error *why)
{
    struct error reason = {0};
    *out = (struct run_table){.directory = directory, .format = UNKNOWN};
    summary_init(&out->summary);
    enum err err = load_into(out, model, (struct load_request){wanted, excerpts}, &reason);
    if (err) {
        err_set(why, err, "%s", reason.text);
        run_table_release(out);
    }
    return err;
}

enum err run_table_load(const char *directory, const char *model, struct run_wanted wanted,
                        struct run_table *out, struct error *why)
{
    return run_table_load_texts(directory, model, wanted, 0, out, why);
}
