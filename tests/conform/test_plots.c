/* Every plot in the registry against the contract of report/plot/plot.h: whatever a source lacks,
 * there is a non-empty figure, or "not enough data" with what is missing, and it is deterministic. */
#include "support/conform.h"

#include <math.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "rundir/layers_result.h"
#include "support/tables.h"
#include "support/tree.h"

/* ---- checks ---- */

static void check_panel(const struct figure_panel *panel, const char *name)
{
    size_t rows = 0;
    CHECK(panel->x.label[0] || panel->x.names || panel->x.hidden, name);
    CHECK(panel->y.label[0] || panel->y.names, name);
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct figure_series *series = panel->series[s];
        rows += series->count;
        for (size_t i = 0; i < series->count; i++)
            for (int v = 0; v < FIGURE_ROW; v++)
                CHECK(is_known(series->rows[i][v]), name);
    }
    CHECK(rows > 0, name);
}

static void check_figure(const struct figure *figure, const char *name)
{
    struct text first = {0}, again = {0};
    CHECK(figure->title[0], name);
    CHECK(figure->panel_count > 0, name);
    for (size_t p = 0; p < figure->panel_count; p++)
        check_panel(&figure->panels[p], name);
    for (int format = 0; format < FIGURE_FORMATS; format++) {
        text_clear(&first);
        text_clear(&again);
        figure_script(figure, (enum figure_format)format, false, NULL, &first);
        figure_script(figure, (enum figure_format)format, false, NULL, &again);
        CHECK(strcmp(text_get(&first), text_get(&again)) == 0, name);
        CHECK(!strstr(text_get(&first), "nan ") && !strstr(text_get(&first), "inf "), name);
        CHECK(!strstr(text_get(&first), ":nan") && !strstr(text_get(&first), ":inf"), name);
    }
    text_release(&first);
    text_release(&again);
}

static bool check_drawing(const struct plot_driver *driver, const struct plot_source *source)
{
    struct figure figure = {0};
    struct error why = {0};
    enum err err = plot_draw(driver, source, &figure, &why);
    CHECK(err == ERR_OK || err == ERR_NO_DATA, driver->name);
    if (err)
        CHECK(why.text[0], driver->name);
    else
        check_figure(&figure, driver->name);
    figure_release(&figure);
    return err == ERR_OK;
}

static size_t check_kind(unsigned kind, const struct plot_source *source)
{
    size_t drawn = 0;
    for (size_t i = 0; PLOT_DRIVERS[i]; i++)
        if (PLOT_DRIVERS[i]->of & kind)
            drawn += check_drawing(PLOT_DRIVERS[i], source);
    return drawn;
}

/* ---- sources ---- */

static size_t check_table(enum filling filling, size_t rows, bool all_failed)
{
    struct run_table table = table_of(filling, rows, all_failed);
    size_t drawn = check_kind(PLOT_OF_RUN, &(struct plot_source){.table = &table});
    table_free(&table);
    return drawn;
}

static void every_plot_handles_any_table(void **state)
{
    (void)state;
    const size_t ROWS[] = {1, 2, 3, 12, test_is_instrumented() ? 400 : 4000};
    for (int filling = FILL_NOTHING; filling <= FILL_EXTREME; filling++)
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
            check_table((enum filling)filling, ROWS[i], false);
    assert_int_equal(check_table(FILL_VARIED, 12, true), 0);
    assert_int_equal(check_table(FILL_NOTHING, 12, false), 0);
    assert_true(check_table(FILL_VARIED, 12, false) >= 7); /* without files and peaks */
}

static void every_plot_handles_any_runs(void **state)
{
    (void)state;
    struct run_figures runs[5];
    for (int one = FILL_NOTHING; one <= FILL_EXTREME; one++)
        for (int other = FILL_NOTHING; other <= FILL_EXTREME; other++) {
            struct run_table tables[] = {table_of((enum filling)one, 9, false),
                                         table_of((enum filling)other, 7, false)};
            for (int i = 0; i < 5; i++) {
                run_figures_of(&tables[i % 2], &runs[i]);
                runs[i].point.concurrency = i == 4 ? UNKNOWN : 1 << i;
            }
            size_t drawn =
                check_kind(PLOT_OF_RUNS, &(struct plot_source){.runs = runs, .run_count = 5});
            /* Accuracy is still known when no number is. */
            assert_true(one != FILL_NOTHING || other != FILL_NOTHING || drawn <= 1);
            table_free(&tables[0]);
            table_free(&tables[1]);
        }
}

static void every_plot_handles_any_layers_result(void **state)
{
    (void)state;
    static const char *const FILES[] = {
        "{\"settings\": []}",
        ("{\"models\": [{\"parameters\": 1, \"settings\": [{\"phase\": \"decode\", \"tokens\": 1, "
         "\"prompt_tokens\": 9, \"energy_j\": 1e-308}, {\"phase\": \"prefill\", \"tokens\": 1, "
         "\"prompt_tokens\": 1e300, \"energy_j\": 1}]}, {\"settings\": [{}]}, {\"parameters\": "
         "1e300, "
         "\"settings\": [{\"phase\": \"decode\", \"tokens\": 1e-300, \"prompt_tokens\": 9, "
         "\"energy_j\": 1, \"plus_minus\": 1e300}, {\"phase\": 7}]}]}"),
        "{\"layers\": [1, null, {}], \"components\": [[], 3]}",
        "{\"settings\": [{}], \"layers\": [{\"time_s\": 1, \"energy_j\": null}]}",
        "{\"settings\": [7], \"layers\": [{\"time_s\": 1, \"energy_j\": 2}]}",
        ("{\"layers\": [{\"time_s\": 1, \"energy_j\": 1e308, \"components\": [{\"name\": \"a\", "
         "\"phase\": \"decode\", \"energy_j\": 1e308}, {\"name\": \"a\", \"phase\": \"decode\", "
         "\"energy_j\": 1e308}]}], \"components\": [{\"name\": \"a\", \"phase\": \"decode\", "
         "\"energy_j\": 1, \"flops\": 1e300, \"bytes\": 1e-300, \"time_s\": 1e-300}]}"),
        ("{\"settings\": [], \"layers\": \"x\", \"components\": {\"a\": {\"name\": 7, "
         "\"energy_j\": "
         "1}}}"),
    };
    struct tree tree;
    tree_new(&tree);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        struct layers_results layers = {0};
        char path[300];
        tree_write(&tree, "/layers.json", "%s", FILES[i]);
        str_format(path, sizeof path, "%s/layers.json", tree.root);
        assert_int_equal(layers_results_load(path, &layers, NULL), ERR_OK);
        check_kind(PLOT_OF_LAYERS | PLOT_OF_ALL_LAYERS,
                   &(struct plot_source){.layers = layers.models, .layer_count = layers.count});
        layers_results_release(&layers);
    }
    tree_free(&tree);
}

static void drivers_are_well_formed_and_found_by_name(void **state)
{
    (void)state;
    struct error why = {0};
    for (size_t i = 0; PLOT_DRIVERS[i]; i++) {
        const struct plot_driver *driver = PLOT_DRIVERS[i];
        CHECK(driver->summary && driver->summary[0], driver->name);
        CHECK(driver->of, driver->name);
        CHECK(plot_driver_find(driver->name, &why) == driver, driver->name);
    }
    assert_null(plot_driver_find("enrgy", &why));
    assert_contains(why.text, "did you mean 'energy'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plot_handles_any_table),
        cmocka_unit_test(every_plot_handles_any_runs),
        cmocka_unit_test(every_plot_handles_any_layers_result),
        cmocka_unit_test(drivers_are_well_formed_and_found_by_name),
    };
    return RUN_TESTS(tests);
}
