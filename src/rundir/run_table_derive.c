#include "rundir/run_table_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

/* An energy above idle that is smaller than this share of the energy is the rounding of a difference. */
#define RESIDUE 1e-9

static bool wants(struct run_wanted wanted, enum run_number column)
{
    return wanted.numbers >> column & 1;
}

struct run_wanted derive_needs(struct run_wanted wanted)
{
    const uint64_t basis = RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS);
    if (wants(wanted, RUN_WATTS))
        wanted.numbers |= RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_LATENCY) | basis;
    if (wants(wanted, RUN_ACTIVE_JOULES))
        wanted.numbers |= RUN_WANT(RUN_JOULES);
    if (wants(wanted, RUN_JOULES)) /* of a run that is not ours */
        wanted.numbers |= RUN_WANT(RUN_BASIS_JOULES);
    if (wanted.numbers & basis)
        wanted.numbers |= RUN_WANT(RUN_GPU_JOULES) | RUN_WANT(RUN_SOC_JOULES) |
                          RUN_WANT(RUN_GPU_WATTS) | RUN_WANT(RUN_SOC_WATTS);
    if (wants(wanted, RUN_TOTAL_TOKENS))
        wanted.numbers |= RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS);
    wanted.words |= RUN_WANT(RUN_STATUS) | RUN_WANT(RUN_BASIS) | RUN_WANT(RUN_GPU_BACKEND) |
                    RUN_WANT(RUN_METHOD);
    return wanted;
}

static void derive_failed(struct run_table *table)
{
    for (size_t i = 0; i < table->rows; i++) {
        bool failed = strcmp(run_word(table, RUN_STATUS, i), "failed") == 0;
        table->flags[RUN_FAILED][i] = (int8_t)failed;
        table->failed += failed;
    }
}

static enum err derive_index(struct run_table *table)
{
    if (table->numbers[RUN_INDEX])
        return ERR_OK;
    double *index = builder_new_column(table);
    if (!index)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++)
        index[i] = (double)i;
    table->numbers[RUN_INDEX] = index;
    return ERR_OK;
}

static enum err derive_total(struct run_table *table)
{
    double *total = table->numbers[RUN_TOTAL_TOKENS];
    if (!total && table->numbers[RUN_INPUT_TOKENS] && table->numbers[RUN_OUTPUT_TOKENS]) {
        total = table->numbers[RUN_TOTAL_TOKENS] = builder_new_column(table);
        if (!total)
            return ERR_NO_MEMORY;
    }
    for (size_t i = 0; total && i < table->rows; i++)
        if (!is_known(total[i]))
            total[i] =
                run_number(table, RUN_INPUT_TOKENS, i) + run_number(table, RUN_OUTPUT_TOKENS, i);
    return ERR_OK;
}

static bool takes_board(const struct run_table *table, size_t row)
{
    return record_counts_board(run_word(table, RUN_BASIS, row),
                               run_word(table, RUN_GPU_BACKEND, row),
                               is_known(run_number(table, RUN_SOC_JOULES, row)) ||
                                   is_known(run_number(table, RUN_SOC_WATTS, row)));
}

static enum err derive_basis(struct run_table *table, enum run_number out, enum run_number gpu,
                             enum run_number board)
{
    if (!table->numbers[gpu] && !table->numbers[board])
        return ERR_OK;
    double *column = table->numbers[out] = builder_new_column(table);
    if (!column)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        bool is_board = takes_board(table, i);
        column[i] = run_number(table, is_board ? board : gpu, i);
        if (is_known(column[i]))
            *(is_board ? &table->uses_board : &table->uses_gpu) = true;
    }
    return ERR_OK;
}

static enum err derive_joules(struct run_table *table)
{
    const double *basis = table->numbers[RUN_BASIS_JOULES];
    if (table->ours || table->numbers[RUN_JOULES] || !basis)
        return ERR_OK;
    double *joules = table->numbers[RUN_JOULES] = builder_new_column(table);
    if (!joules)
        return ERR_NO_MEMORY;
    /* The Python IPW writes exactly 0 for a query in which no sample fell: missing, not measured. */
    for (size_t i = 0; i < table->rows; i++)
        joules[i] = basis[i] == 0 ? UNKNOWN : basis[i];
    return ERR_OK;
}

static enum err derive_watts(struct run_table *table)
{
    if (!table->numbers[RUN_JOULES] && !table->numbers[RUN_BASIS_WATTS])
        return ERR_OK;
    double *watts = table->numbers[RUN_WATTS] = builder_new_column(table);
    if (!watts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        double joules = run_number(table, RUN_JOULES, i), s = run_number(table, RUN_LATENCY, i);
        watts[i] = is_known(joules) && s > 0 ? joules / s : run_number(table, RUN_BASIS_WATTS, i);
    }
    return ERR_OK;
}

/* ---- what is no energy ---- */

/* Nothing gives energy back by answering: a figure below 0 is a broken record's or a counter's that was
 * set back, and says nothing about what was spent. */
static void drop_negative(struct run_table *table)
{
    static const enum run_number ENERGIES[] = {
        RUN_JOULES,     RUN_IDLE_JOULES, RUN_WINDOW_JOULES, RUN_PREFILL_JOULES, RUN_DECODE_JOULES,
        RUN_GPU_JOULES, RUN_CPU_JOULES,  RUN_SOC_JOULES,    RUN_JUDGE_JOULES};
    for (size_t row = 0; row < table->rows; row++) {
        bool found = false;
        for (size_t i = 0; i < sizeof ENERGIES / sizeof *ENERGIES; i++) {
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

enum err derive_columns(struct run_table *table, struct run_wanted wanted)
{
    struct run_wanted all = derive_needs(wanted);
    enum err err = ERR_OK;
    derive_failed(table);
    drop_residues(table);
    drop_negative(table);
    if (wants(all, RUN_INDEX))
        err = derive_index(table);
    if (!err && wants(all, RUN_TOTAL_TOKENS))
        err = derive_total(table);
    if (!err && wants(all, RUN_BASIS_JOULES))
        err = derive_basis(table, RUN_BASIS_JOULES, RUN_GPU_JOULES, RUN_SOC_JOULES);
    if (!err && wants(all, RUN_BASIS_WATTS))
        err = derive_basis(table, RUN_BASIS_WATTS, RUN_GPU_WATTS, RUN_SOC_WATTS);
    if (!err && wants(all, RUN_JOULES))
        err = derive_joules(table);
    if (!err && wants(all, RUN_WATTS))
        err = derive_watts(table);
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        if (!wants(wanted, (enum run_number)i)) {
            free(table->numbers[i]);
            table->numbers[i] = NULL;
        }
    return err;
}
