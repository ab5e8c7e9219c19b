#include "port/arrow/values.h"

#include <math.h>
#include <nanoarrow.h>

#include "core/units.h"
#include "port/arrow_read.h"

static const struct ArrowArrayView *column_at(const struct ArrowArrayView *batch,
                                              const struct arrow_place *place)
{
    for (unsigned depth = 0; depth < place->depth; depth++)
        batch = batch->children[place->child[depth]];
    return batch;
}

/* A struct that is null has children with values, which mean nothing.  The row itself is never null. */
static bool has_validity(const struct ArrowArrayView *view)
{
    return view->storage_type == NANOARROW_TYPE_NA || view->buffer_views[0].data.data;
}

/* The values, as if none were null. */
static void take_numbers(const struct ArrowArrayView *view, int64_t rows, double *out)
{
    if (view->storage_type == NANOARROW_TYPE_DOUBLE) {
        for (int64_t i = 0; i < rows; i++)
            out[i] = view->buffer_views[1].data.as_double[i];
    } else if (view->storage_type == NANOARROW_TYPE_INT64) {
        for (int64_t i = 0; i < rows; i++)
            out[i] = (double)view->buffer_views[1].data.as_int64[i];
    } else {
        for (int64_t i = 0; i < rows; i++)
            out[i] = ArrowArrayViewGetDoubleUnsafe(view, i);
    }
}

static bool is_float(enum ArrowType type)
{
    return type == NANOARROW_TYPE_DOUBLE || type == NANOARROW_TYPE_FLOAT ||
           type == NANOARROW_TYPE_HALF_FLOAT;
}

static bool is_null_above(const struct ArrowArrayView *batch, const struct arrow_place *place,
                          int64_t row)
{
    for (unsigned depth = 0; depth < place->depth; depth++) {
        batch = batch->children[place->child[depth]];
        if (ArrowArrayViewIsNull(batch, row))
            return true;
    }
    return false;
}

/* Most columns have no null struct above them: then only their own bits are looked at. */
static unsigned levels_with_nulls(const struct ArrowArrayView *batch,
                                  const struct arrow_place *place)
{
    unsigned levels = 0;
    for (unsigned depth = 0; depth < place->depth; depth++) {
        batch = batch->children[place->child[depth]];
        levels += has_validity(batch);
    }
    return levels;
}

void arrow_values_known(const struct ArrowArrayView *batch, const struct arrow_place *place,
                        bool *out)
{
    bool some_null = levels_with_nulls(batch, place) > 0;
    for (int64_t i = 0; i < batch->length; i++)
        out[i] = !some_null || !is_null_above(batch, place, i);
}

void arrow_values_numbers(const struct ArrowArrayView *batch, const struct arrow_place *place,
                          double *out, uint64_t *not_finite)
{
    const struct ArrowArrayView *view = column_at(batch, place);
    bool some_null = levels_with_nulls(batch, place) > 0;
    if (place->kind == ARROW_IS_NUMBER)
        take_numbers(view, batch->length, out);
    for (int64_t i = 0; i < batch->length; i++)
        if (place->kind != ARROW_IS_NUMBER || (some_null && is_null_above(batch, place, i))) {
            out[i] = UNKNOWN;
        } else if (!isfinite(out[i])) {
            *not_finite += is_float(view->storage_type);
            out[i] = UNKNOWN;
        }
}

void arrow_values_texts(const struct ArrowArrayView *batch, const struct arrow_place *place,
                        struct arrow_text *out)
{
    const struct ArrowArrayView *view = column_at(batch, place);
    bool some_null = levels_with_nulls(batch, place) > 0;
    for (int64_t i = 0; i < batch->length; i++) {
        out[i] = (struct arrow_text){0};
        if (place->kind != ARROW_IS_TEXT || (some_null && is_null_above(batch, place, i)))
            continue;
        struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(view, i);
        out[i] = (struct arrow_text){text.data ? text.data : "", (size_t)text.size_bytes};
    }
}
