/* Models compared on one device (estimate/model_compare.h), as text or Markdown: a row per model, a column per
 * benchmark. */
#include "report/text/estimate_report.h"

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/page.h"

enum { BENCHMARKS_SHOWN = 4, FIXED_COLUMNS = 6 };

struct models_table {
    struct table_column columns[FIXED_COLUMNS + BENCHMARKS_SHOWN];
    const struct result_item *benchmarks[BENCHMARKS_SHOWN]; /* the axis first */
    size_t count;
};

static void choose(struct models_table *chosen, const struct result *result, bool is_axis)
{
    const char *axis = result_text_at(result->items, "accuracy_axis");
    RESULT_EACH (benchmark, result_find(result, "benchmarks")) {
        if (str_equal(result_text_at(benchmark, "name"), axis) != is_axis ||
            chosen->count == BENCHMARKS_SHOWN)
            continue;
        chosen->columns[FIXED_COLUMNS + chosen->count] =
            (struct table_column){result_text_at(benchmark, "title"), true};
        chosen->benchmarks[chosen->count++] = benchmark;
    }
}

static double percent_of(const struct result_item *model, const struct result_item *benchmark)
{
    RESULT_EACH (accuracy, result_at(model, "accuracies"))
        if (str_equal(result_text_at(accuracy, "benchmark"), result_text_at(benchmark, "name")))
            return result_number_at(accuracy, "percent");
    return UNKNOWN;
}

static void add_row(struct table *table, const struct models_table *chosen,
                    const struct result_item *model)
{
    char cell[WORDS_MAX];
    bool fits = result_flag_at(model, "fits");
    table_addf(table, "%s%s", result_flag_at(model, "frontier") ? "*" : "", fits ? "" : "!");
    table_add(table, result_text_at(model, "model"));
    table_add(table, result_text_at(model, "precision"));
    table_add(table, words_estimated(cell, result_number_at(model, "energy_j"),
                                     result_number_at(model, "plus_minus"), "J"));
    table_add(table, format_si(cell, result_number_at(model, "latency_s"), "s"));
    table_add(table, format_bytes(cell, result_number_at(model, "memory_bytes")));
    for (size_t i = 0; i < chosen->count; i++)
        table_add_known(table, percent_of(model, chosen->benchmarks[i]), "%.1f %%",
                        percent_of(model, chosen->benchmarks[i]));
}

static void put_table(const struct print_page *page, const struct models_table *chosen)
{
    struct table table;
    table_init(&table, chosen->columns, FIXED_COLUMNS + chosen->count);
    RESULT_EACH (model, result_find(page->result, "models"))
        add_row(&table, chosen, model);
    page_table(page, &table, "   ");
    text_add(page->out, "\n");
}

static void put_notes(const struct print_page *page, const struct models_table *chosen)
{
    size_t all = result_length(result_find(page->result, "models"));
    bool fit = true;
    RESULT_EACH (model, result_find(page->result, "models"))
        fit = fit && result_flag_at(model, "fits");
    if (chosen->count) {
        double with = result_number_at(chosen->benchmarks[0], "models");
        page_item(page, "* Pareto-optimal in energy, latency and %s (%.0f of %zu models have it)",
                  result_text_at(chosen->benchmarks[0], "title"), with, all);
        page_item(page, "accuracies are published ones (sources: --format json), not measured, at "
                        "the weights' own precision");
        if (page_flag(page, "view.has_phases"))
            page_item(page,
                      "the same tokens are assumed for each model; reasoning models use more");
    } else {
        page_item(page, "no published accuracy of these models is in the catalog");
    }
    if (result_length(result_find(page->result, "benchmarks")) > chosen->count)
        page_item(page, "%zu more benchmarks: --format json",
                  result_length(result_find(page->result, "benchmarks")) - chosen->count);
    if (!fit)
        page_item(page, "! exceeds device memory, or it is unknown");
}

static void put_models(struct print_page *page)
{
    char each[WORDS_MAX], title[WORDS_MAX];
    const struct result_item *first = result_first(result_find(page->result, "models"));
    chars_format(each, "%s", words_each(title, result_text_at(first, "unit")));
    struct models_table chosen = {.columns = {{"", false},
                                              {"model", false},
                                              {"precision", false},
                                              {each, true},
                                              {"latency", true},
                                              {"memory", true}}};
    choose(&chosen, page->result, true);
    choose(&chosen, page->result, false);
    chars_format(title, "models on %s, energy %s", page_word(page, "hardware"), each);
    page_heading(page, title);
    text_add(page->out, page->is_markdown ? "" : "\n");
    put_table(page, &chosen);
    put_notes(page, &chosen);
}

const struct print_views MODELS_VIEWS = {.page = put_models};
