#include "estimate/validate.h"

#include <math.h>
#include <stdlib.h>

#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"

enum err validation_add(struct validation *validation, const struct validate_row *row,
                        struct error *why)
{
    struct validate_row *rows =
        grow(validation->rows, &validation->capacity, validation->count, sizeof *rows);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    validation->rows = rows;
    struct validate_row *added = &rows[validation->count++];
    *added = *row;
    str_plain(added->label);
    double window = is_known(row->window_s) ? row->window_s : row->measured_s;
    if (is_known(row->measured_j) && !(window >= VALIDATE_ENERGY_LEAST_S)) {
        added->measured_j = UNKNOWN;
        validation->short_rows++;
    }
    return ERR_OK;
}

void validation_release(struct validation *validation)
{
    free(validation->rows);
    *validation = (struct validation){0};
}

static void add(struct validate_error *sum, double measured, double predicted)
{
    if (!is_known(measured) || !is_known(predicted) || !(measured > 0))
        return;
    double error = predicted / measured - 1;
    sum->rows++;
    sum->mape += fabs(error);
    sum->bias += error;
}

static void divide(struct validate_error *sum)
{
    sum->mape = sum->rows ? sum->mape / (double)sum->rows : UNKNOWN;
    sum->bias = sum->rows ? sum->bias / (double)sum->rows : UNKNOWN;
}

struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime)
{
    struct validate_sums sums = {0};
    for (size_t i = 0; i < validation->count; i++) {
        const struct validate_row *row = &validation->rows[i];
        if (regime != BOUND_COUNT && row->regime != regime)
            continue;
        sums.rows++;
        add(&sums.latency, row->measured_s, row->predicted_s);
        add(&sums.energy, row->measured_j, row->predicted_j);
    }
    divide(&sums.latency);
    divide(&sums.energy);
    return sums;
}

enum validate_verdict validate_verdict(const struct validation *validation, double most)
{
    struct validate_sums sums = validate_sum(validation, BOUND_COUNT);
    if (!is_known(most) || sums.latency.rows + sums.energy.rows == 0)
        return VALIDATE_UNKNOWN;
    return sums.latency.mape > most || sums.energy.mape > most ? VALIDATE_FAIL : VALIDATE_PASS;
}
