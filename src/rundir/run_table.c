/* What a run's table says of a row, and of its columns. */
#include <inttypes.h>

#include "rundir/run_table.h"
#include "core/text.h"
#include "port/json_read.h"

uint32_t run_word_id(const struct run_table *table, enum run_word column, size_t row)
{
    const struct run_words *words = &table->words[column];
    return words->ids ? words->ids[row] : words->same;
}

const char *run_word(const struct run_table *table, enum run_word column, size_t row)
{
    return table->words[column].texts[run_word_id(table, column, row)];
}

char *run_key(const struct run_table *table, size_t row, char *to)
{
    double index = run_number(table, RUN_INDEX, row), repeat = run_number(table, RUN_REPEAT, row);
    uint64_t place = index >= 0 && index < 1e15 ? (uint64_t)index : row;
    if (repeat >= 1 && repeat < 1e9)
        str_format(to, RUN_KEY_MAX, "q%06" PRIu64 ".r%u", place, (unsigned)repeat);
    else
        str_format(to, RUN_KEY_MAX, "q%06" PRIu64, place);
    return to;
}

static const struct jv *fact_at(const struct run_table *table, const char *path)
{
    const struct jv *value = jv_path(table->summary, path);
    return jv_is_null(value) ? jv_path(table->begun, path) : value;
}

double run_fact(const struct run_table *table, const char *path)
{
    return jv_number(fact_at(table, path));
}

double run_calibration(const struct run_table *table)
{
    double joules = run_fact(table, "ipw.energy.joules");
    double all = run_fact(table, "ipw.energy.plus_minus");
    double statistical = run_fact(table, "ipw.energy.plus_minus_statistical");
    double square = all * all - (is_known(statistical) ? statistical * statistical : 0);
    return joules > 0 && is_known(square) ? sqrt(fmax(square, 0)) / joules : UNKNOWN;
}

const char *run_fact_text(const struct run_table *table, const char *path)
{
    const char *text = jv_text(fact_at(table, path));
    return text ? text : "";
}
