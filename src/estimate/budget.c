/* Each kind of limit applies to a value of the estimate with its uncertainty, and gives a verdict. */
#include "estimate/budget.h"

#include "core/units.h"

static const struct {
    const char *name, *unit;
} KINDS[BUDGET_KINDS] = {
    [BUDGET_LATENCY] = {"latency", "s"}, [BUDGET_ENERGY] = {"energy", "J"},
    [BUDGET_MEMORY] = {"memory", "B"},   [BUDGET_POWER] = {"power", "W"},
    [BUDGET_FIT] = {"fit", "B"},
};

const char *budget_name(enum budget_kind kind)
{
    return KINDS[kind].name;
}

const char *budget_unit(enum budget_kind kind)
{
    return KINDS[kind].unit;
}

const char *budget_verdict_name(enum budget_verdict verdict)
{
    static const char *const NAMES[] = {"PASS", "FAIL", "UNKNOWN"};
    return NAMES[verdict];
}

struct budget budget_none(void)
{
    struct budget budget;
    for (size_t i = 0; i < BUDGET_KINDS; i++)
        budget.max[i] = UNKNOWN;
    return budget;
}

bool budget_has_any(const struct budget *budget)
{
    for (size_t i = 0; i < BUDGET_KINDS; i++)
        if (is_known(budget->max[i]))
            return true;
    return false;
}

/* The number of units of the energy limit: requests, of which a batch has several, or samples or tokens. */
static double energy_units(const struct workload_estimate *estimate)
{
    const struct estimate_workload *work = estimate->work;
    return work->spec.is_request ? work->batch : work->units;
}

const char *budget_energy_unit(const struct workload_estimate *estimate)
{
    return estimate->work->spec.is_request ? "request" : estimate->work->unit;
}

/* No interval for memory: it is counted, not modeled, and the overhead of the runtime is unknown. */
static double value_of(const struct workload_estimate *estimate, enum budget_kind kind,
                       struct estimate_interval *interval)
{
    const struct estimate_totals *all = &estimate->total;
    double parts = energy_units(estimate);
    *interval = (struct estimate_interval){UNKNOWN, UNKNOWN, UNKNOWN};
    switch (kind) {
    case BUDGET_LATENCY:
        *interval = workload_estimate_interval(estimate, all->latency_s, all->latency_plus_minus);
        return all->latency_s;
    case BUDGET_ENERGY:
        *interval = workload_estimate_interval(estimate, all->joules.total / parts,
                                               all->joules_plus_minus / parts);
        return all->joules.total / parts;
    case BUDGET_MEMORY:
    case BUDGET_FIT:
        return estimate->memory.total_peak;
    default:
        *interval = (struct estimate_interval){all->average_w - all->power_plus_minus,
                                               all->average_w + all->power_plus_minus,
                                               all->power_plus_minus};
        return all->average_w;
    }
}

static double limit_of(const struct budget *budget, const struct workload_estimate *estimate,
                       enum budget_kind kind)
{
    if (kind != BUDGET_FIT)
        return budget->max[kind];
    return budget_has_any(budget) && !estimate->memory.fits ? estimate->memory.capacity : UNKNOWN;
}

static enum budget_verdict verdict_of(double value, double max)
{
    if (!is_known(value))
        return BUDGET_UNKNOWN;
    return value <= max ? BUDGET_PASS : BUDGET_FAIL;
}

size_t budget_evaluate(const struct budget *budget, const struct workload_estimate *estimate,
                       struct budget_check checks[BUDGET_KINDS])
{
    size_t count = 0;
    for (size_t kind = 0; kind < BUDGET_KINDS; kind++) {
        double max = limit_of(budget, estimate, (enum budget_kind)kind);
        struct estimate_interval interval;
        if (!is_known(max))
            continue;
        double value = value_of(estimate, (enum budget_kind)kind, &interval);
        bool known = is_known(value);
        checks[count++] = (struct budget_check){
            .kind = (enum budget_kind)kind,
            .value = value,
            .plus_minus = interval.plus_minus,
            .max = max,
            .left = max - value,
            .margin = known ? (max - value) / max : UNKNOWN,
            .is_sure = known && !(max >= interval.low && max <= interval.high),
            .verdict = verdict_of(value, max),
        };
    }
    return count;
}

enum budget_verdict budget_verdict(const struct budget *budget,
                                   const struct workload_estimate *estimate)
{
    struct budget_check checks[BUDGET_KINDS];
    size_t count = budget_evaluate(budget, estimate, checks);
    enum budget_verdict all = BUDGET_PASS;
    for (size_t i = 0; i < count; i++) {
        if (checks[i].verdict == BUDGET_FAIL)
            return BUDGET_FAIL;
        if (checks[i].verdict == BUDGET_UNKNOWN)
            all = BUDGET_UNKNOWN;
    }
    return all;
}

bool budget_holds(const struct budget *budget, const struct workload_estimate *estimate)
{
    return budget_verdict(budget, estimate) == BUDGET_PASS;
}

bool budget_is_no_worse(const struct budget *budget, const struct workload_estimate *now,
                        const struct workload_estimate *then)
{
    struct budget_check before[BUDGET_KINDS], after[BUDGET_KINDS];
    size_t count = budget_evaluate(budget, now, before);
    budget_evaluate(budget, then,
                    after); /* the same limits in the same order, except for the last */
    if (count > 0 && before[count - 1].kind == BUDGET_FIT)
        count--;
    for (size_t i = 0; i < count; i++)
        if (after[i].verdict != BUDGET_PASS &&
            !(before[i].verdict == BUDGET_FAIL && after[i].value <= before[i].value))
            return false;
    return true;
}

void budget_sort(const struct budget *budget, struct estimate_grid *grid)
{
    static const int ORDER[] = {
        [BUDGET_PASS] = 0,
        [BUDGET_UNKNOWN] = 1,
        [BUDGET_FAIL] = 2,
    };
    if (!budget_has_any(budget))
        return;
    for (size_t i = 0; i < grid->able; i++)
        grid->items[i].limit_order = ORDER[budget_verdict(budget, &grid->items[i].estimate)];
    estimate_grid_sort(grid);
}

struct budget_count budget_count_within(const struct budget *budget,
                                        const struct estimate_grid *grid)
{
    struct budget_count count = {0};
    bool holds = false; /* for a point of this demand; they are adjacent */
    for (size_t i = 0; i < grid->able; i++) {
        const struct grid_point *point = &grid->items[i];
        bool is_within = budget_holds(budget, &point->estimate);
        holds = (holds && point->rank > 0) || is_within;
        bool is_last = i + 1 == grid->able || grid->items[i + 1].rank == 0;
        count.points += is_within;
        count.demands += is_last && holds;
    }
    return count;
}

bool budget_holds_for_all(const struct budget *budget, const struct estimate_grid *grid)
{
    return !budget_has_any(budget) ||
           budget_count_within(budget, grid).demands == grid->demand_count;
}
