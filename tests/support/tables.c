#include "support/tables.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "support/unit.h"

static double value_for(enum filling filling, size_t row, unsigned column)
{
    static const double EXTREMES[] = {0, -1, DBL_MAX, -DBL_MAX, DBL_MIN, 1e300, 1e-300};
    switch (filling) {
    case FILL_NOTHING:
        return UNKNOWN;
    case FILL_SAME:
        return 5;
    case FILL_HOLES:
        if ((row + column) % 3 == 0)
            return UNKNOWN;
        break;
    case FILL_EXTREME:
        return EXTREMES[(row * 5 + column) % (sizeof EXTREMES / sizeof *EXTREMES)];
    case FILL_VARIED:
        break;
    }
    return 1 + fmod((double)(row * 37 + (size_t)column * 11) * 0.618, 50);
}

static void fill_words(struct run_table *table)
{
    static char *texts[] = {(char *)"", (char *)"one", (char *)"two"};
    for (unsigned w = 0; w < RUN_WORDS; w++) {
        struct run_words *words = &table->words[w];
        *words = (struct run_words){calloc(table->rows, sizeof *words->ids), 0, texts, 3};
        assert_non_null(words->ids);
        for (size_t i = 0; i < table->rows; i++)
            words->ids[i] = (uint32_t)(i % 3);
    }
}

struct run_table table_of(enum filling filling, size_t rows, bool all_failed)
{
    struct run_table table = {
        .rows = rows, .directory = "nowhere", .model = "m.\"1\"", .format = UNKNOWN};
    summary_init(&table.summary);
    for (unsigned c = 0; c < RUN_NUMBERS && filling != FILL_NOTHING; c++) {
        table.numbers[c] = malloc(rows * sizeof(double));
        assert_non_null(table.numbers[c]);
        for (size_t i = 0; i < rows; i++)
            table.numbers[c][i] = value_for(filling, i, c);
    }
    for (unsigned f = 0; f < RUN_FLAGS; f++) {
        table.flags[f] = malloc(rows);
        assert_non_null(table.flags[f]);
        for (size_t i = 0; i < rows; i++)
            table.flags[f][i] = (int8_t)((int)(i % 3) - 1);
    }
    for (size_t i = 0; i < rows; i++) {
        table.flags[RUN_FAILED][i] = all_failed || i % 7 == 6;
        table.failed += all_failed || i % 7 == 6;
    }
    fill_words(&table);
    return table;
}

void table_free(struct run_table *table)
{
    for (unsigned c = 0; c < RUN_NUMBERS; c++)
        free(table->numbers[c]);
    for (unsigned f = 0; f < RUN_FLAGS; f++)
        free(table->flags[f]);
    for (unsigned w = 0; w < RUN_WORDS; w++)
        free(table->words[w].ids);
}
