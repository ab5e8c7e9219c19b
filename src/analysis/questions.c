#include "analysis/questions.h"

#include <stdlib.h>

struct entry {
    double index;
    uint32_t row;
};

static int by_index(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static bool has_repeats(const struct run_table *table)
{
    for (size_t i = 0; table->numbers[RUN_REPEAT] && i < table->rows; i++)
        if (table->numbers[RUN_REPEAT][i] > 0)
            return true;
    return false;
}

/* A query whose place is not known is a question of its own, below all others. */
static void number_rows(const struct run_table *table, struct entry *entries, uint32_t *of)
{
    uint32_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        double index = run_number(table, RUN_INDEX, i);
        entries[i] = (struct entry){is_known(index) ? index : -1 - (double)i, (uint32_t)i};
    }
    qsort(entries, table->rows, sizeof *entries, by_index);
    for (size_t i = 0; i < table->rows; i++) {
        count += i && entries[i].index != entries[i - 1].index;
        of[entries[i].row] = count;
    }
}

enum err questions_of(const struct run_table *table, struct questions *out)
{
    *out = (struct questions){.repeats = has_repeats(table)};
    if (!out->repeats)
        return ERR_OK;
    struct entry *entries = malloc(table->rows * sizeof *entries);
    out->of = malloc(table->rows * sizeof *out->of);
    out->place = calloc(table->rows, sizeof *out->place);
    enum err err = entries && out->of && out->place ? ERR_OK : ERR_NO_MEMORY;
    if (!err)
        number_rows(table, entries, out->of);
    free(entries);
    if (err)
        questions_release(out);
    return err;
}

void questions_release(struct questions *questions)
{
    free(questions->of);
    free(questions->place);
    *questions = (struct questions){0};
}

size_t questions_add_up(struct questions *questions, const uint32_t *rows, size_t count,
                        double *const *columns, size_t column_count)
{
    size_t kept = 0;
    if (!questions->repeats)
        return count;
    for (size_t i = 0; i < count; i++) {
        uint32_t *place = &questions->place[questions->of[rows[i]]];
        bool again = *place != 0;
        if (!again)
            *place = (uint32_t)++kept;
        for (size_t c = 0; c < column_count; c++)
            columns[c][*place - 1] = columns[c][i] + (again ? columns[c][*place - 1] : 0);
    }
    for (size_t i = 0; i < count; i++)
        questions->place[questions->of[rows[i]]] = 0;
    return kept;
}

void question_terms_of(const struct run_table *table, size_t row, double *terms)
{
    int verdict = run_flag(table, RUN_CORRECT, row);
    double joules = run_number(table, RUN_JOULES, row);
    terms[0] = verdict == 1;
    terms[1] = verdict >= 0;
    terms[2] = is_known(joules) ? joules : 0;
    terms[3] = is_known(joules);
}

enum err question_repeats(const struct questions *questions, double *const *columns, size_t count,
                          struct repeats *out)
{
    *out = (struct repeats){0};
    if (!questions->repeats || !count)
        return ERR_OK;
    struct question *all = malloc(count * sizeof *all);
    if (!all)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct question){(double)i, columns[0][i], columns[1][i], columns[2][i],
                                   columns[3][i]};
    *out = repeats_of(all, count);
    free(all);
    return ERR_OK;
}
