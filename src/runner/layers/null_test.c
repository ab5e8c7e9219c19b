#include "runner/layers/null_test.h"

#include <math.h>

#include "runner/layers/balance.h"
#include "stats/online.h"

/* With few windows the spread is itself uncertain; three sigmas leave one false alarm in a hundred or
 * so. */
#define SIGMAS 3

/* Joules of a pass in the rounds of one parity, over the mean of the setting. */
static struct online half_of(const struct layers_model *model, unsigned setting, unsigned parity)
{
    struct online half = {0};
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        if (window->setting == setting && !window->watched && window->round % 2 == parity &&
            window->passes && window->energy.updates >= BALANCE_UPDATES)
            online_add(&half, window->energy.joules / (double)window->passes /
                                  model->settings[setting].joules);
    }
    return half;
}

/* What the windows' own errors let expect, where there are too few of them to see a spread. */
static double own_error(const struct layers_model *model)
{
    struct online errors = {0};
    for (size_t i = 0; i < model->window_count; i++)
        if (!model->windows[i].watched && model->windows[i].setting < model->setting_count)
            online_add(&errors,
                       model->windows[i].energy.statistical / model->windows[i].energy.joules);
    return online_mean(&errors);
}

/* How far the difference of a setting's halves may be from 0 by chance: by the spread of its windows,
 * of the settings' differences, or by the windows' own errors, as there are enough of them. */
static double chance(const struct layers_model *model, double squares, long free_values,
                     double weights, const struct online *differences)
{
    double settings = (double)differences->count;
    if (free_values >= 3)
        return sqrt(squares / (double)free_values * weights) / settings;
    if (differences->count >= 3)
        return online_standard_error(differences);
    return own_error(model) * sqrt(weights) / settings;
}

void null_test(struct layers_model *model)
{
    struct online differences = {0};
    double squares = 0, weights = 0;
    long free_values = 0;
    model->null_difference = model->null_sigma = UNKNOWN;
    model->null_holds = false;
    for (unsigned s = 0; s < model->setting_count; s++) {
        struct online odd = half_of(model, s, 1), even = half_of(model, s, 0);
        if (!odd.count || !even.count)
            continue;
        online_add(&differences, online_mean(&odd) - online_mean(&even));
        squares += odd.squares + even.squares;
        free_values += (long)(odd.count + even.count) - 2;
        weights += 1 / (double)odd.count + 1 / (double)even.count;
    }
    if (differences.count == 0)
        return;
    model->null_difference = online_mean(&differences);
    model->null_sigma = chance(model, squares, free_values, weights, &differences);
    model->null_holds = fabs(model->null_difference) <= SIGMAS * model->null_sigma;
}
