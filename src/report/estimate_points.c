#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/text.h"
#include "core/units.h"
#include "report/estimate_report.h"
#include "report/estimate_words.h"
#include "report/format.h"
#include "report/table.h"

/* ---- cells ---- */

enum { CELLS = 13, BATCH = 3, DEVICES = 4, EACH = 5, RATE = 7 };

static const char *verdict(const struct points_report *report, const struct point *point)
{
    if (!budget_has_any(report->budget))
        return "";
    return budget_holds(report->budget, &point->outcome) ? "PASS" : "FAIL";
}

/* Is the confidence of all the same?  It then stands below the table, not in every row. */
static bool is_of_one_mind(const struct points_report *report)
{
    const struct points *points = report->points;
    for (size_t i = 0; i < points->count; i++)
        if (!points->items[i].missing[0] &&
            points->items[i].outcome.confidence != points->items[0].outcome.confidence)
            return false;
    return true;
}

static const char *const SHORT_CONFIDENCE[] = {[CONFIDENCE_CALIBRATED] = "cal",
                                               [CONFIDENCE_INTERPOLATED] = "int",
                                               [CONFIDENCE_THEORETICAL] = "theo"};

static void fill_cells(const struct points_report *report, const struct point *point,
                       char cells[CELLS][WORDS_MAX])
{
    const struct outcome *outcome = &point->outcome;
    const struct outcome_sums *all = &outcome->all;
    double units = outcome->work->units;
    str_copy(cells[0], WORDS_MAX, point->on_frontier ? "*" : "");
    str_copy(cells[1], WORDS_MAX, report->hardware[point->device].id);
    str_copy(cells[2], WORDS_MAX,
             outcome->choice.keeps_stored ? "stored" : precision_name(outcome->choice.precision));
    str_format(cells[BATCH], WORDS_MAX, "%.0f", outcome->work->passes[0].graph.batch);
    str_format(cells[DEVICES], WORDS_MAX, "%d", outcome->choice.devices);
    words_joules(cells[EACH], all->joules.total / units, all->joules_plus_minus / units);
    format_si(cells[6], all->latency_s, "s");
    words_rate(cells[RATE], outcome_units_per_s(outcome));
    str_format(cells[8], WORDS_MAX, "~%.0f W", all->average_w);
    format_bytes(cells[9], outcome->memory.total_peak);
    str_copy(cells[10], WORDS_MAX, !outcome->memory.fits ? "!" : !outcome_fits(outcome) ? "?" : "");
    str_copy(cells[11], WORDS_MAX, verdict(report, point));
    str_copy(cells[12], WORDS_MAX,
             is_of_one_mind(report) ? "" : SHORT_CONFIDENCE[outcome->confidence]);
}

struct titles {
    char each[WORDS_MAX], rate[WORDS_MAX];
    struct table_column columns[CELLS];
};

static void fill_titles(const struct points_report *report, struct titles *titles)
{
    const char *unit = words_unit(&report->points->works[0]);
    const struct table_column columns[CELLS] = {
        {"", false},     {"hardware", false},  {"format", false}, {"batch", true},
        {"of", true},    {titles->each, true}, {"latency", true}, {titles->rate, true},
        {"power", true}, {"memory", true},     {"", false},       {"limits", false},
        {"conf", false},
    };
    words_each(titles->each, unit);
    str_format(titles->rate, sizeof titles->rate, "%ss/s", unit);
    memcpy(titles->columns, columns, sizeof columns);
}

/* ---- which rows people see ---- */

static bool is_shown(const struct points_report *report, size_t index)
{
    const struct point *point = &report->points->items[index];
    return !point->missing[0] && (!report->top || index < report->top || point->on_frontier);
}

/* What is the same in all rows stands above them. */
static bool shares_devices(const struct points_report *report)
{
    for (size_t i = 0; i < report->points->count; i++)
        if (report->points->items[i].outcome.choice.devices > 1)
            return true;
    return false;
}

static size_t frontier_size(const struct points *points)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++)
        count += points->items[i].on_frontier;
    return count;
}

/* Is there one that does not fit, or of which that is not known? */
static bool any_doubt(const struct points *points, bool is_known_to)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct outcome *outcome = &points->items[i].outcome;
        if (!points->items[i].missing[0] && !outcome_fits(outcome) &&
            outcome->memory.fits != is_known_to)
            return true;
    }
    return false;
}

/* Each reason once, with those that it holds for. */
static void put_missing(const struct points_report *report, const char *before, struct text *out)
{
    const struct points *points = report->points;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->items[i];
        bool is_new = point->missing[0];
        for (size_t k = 0; is_new && k < i; k++)
            is_new = points->items[k].device != point->device ||
                     strcmp(points->items[k].missing, point->missing) != 0;
        if (is_new)
            text_addf(out, "%s%s: %s\n", before, report->hardware[point->device].id,
                      point->missing);
    }
}

/* ---- for people ---- */

static void put_title(const struct points_report *report, bool colour, struct text *out)
{
    const struct workload *work = &report->points->works[0];
    const struct workload_question *question = &work->question;
    text_addf(out, "\n %s%s%s: %zu estimates", colour ? "\033[1m" : "", question->model->name,
              colour ? "\033[0m" : "", report->points->able);
    if (report->points->work_count == 1)
        text_addf(out, ", batch %.0f", work->passes[0].graph.batch);
    if (question->is_request)
        text_addf(out, ", a request of %" PRId64 " prompt and %" PRId64 " output tokens",
                  question->setting.tokens, question->output_tokens);
    text_add(out, "\n\n");
}

static void put_notes(const struct points_report *report, const char *indent, struct text *out)
{
    char each[WORDS_MAX];
    words_each(each, report->points->works[0].unit);
    if (frontier_size(report->points))
        text_addf(out,
                  "%s* frontier: no other costs as few joules %s and answers as soon (%zu of "
                  "%zu)\n",
                  indent, each, frontier_size(report->points), report->points->able);
    if (any_doubt(report->points, true))
        text_addf(out, "%s! more memory than the device has\n", indent);
    if (any_doubt(report->points, false))
        text_addf(out, "%s? how much memory the device has is not known\n", indent);
    text_addf(out, "%s~ estimated by models of the devices, not measured", indent);
    if (!is_of_one_mind(report))
        text_add(out, "; conf: calibrated, interpolated, theoretical");
    else
        text_addf(out, "; confidence: %s",
                  estimate_confidence_name(report->points->items[0].outcome.confidence));
    text_add(out, "\n");
}

/* A rate tells no more than the latency where all batches are the same. */
static bool is_column(size_t column, bool batches, bool shared)
{
    return column == BATCH || column == RATE ? batches : column != DEVICES || shared;
}

void points_text(const struct points_report *report, bool colour, struct text *out)
{
    const struct points *points = report->points;
    char cells[CELLS][WORDS_MAX];
    bool shared = shares_devices(report), batches = points->work_count > 1;
    struct titles titles;
    struct table table;
    size_t left = 0;
    fill_titles(report, &titles);
    put_title(report, colour, out);
    table_init(&table, titles.columns, CELLS);
    for (size_t i = 0; i < points->count; i++) {
        if (!is_shown(report, i)) {
            left += !points->items[i].missing[0];
            continue;
        }
        fill_cells(report, &points->items[i], cells);
        for (size_t c = 0; c < CELLS; c++)
            table_add(&table, is_column(c, batches, shared) ? cells[c] : "");
    }
    table_write(&table, "   ", colour, out);
    table_release(&table);
    if (left)
        text_addf(out, "   and %zu more (--top 0 shows all)\n", left);
    text_add(out, "\n");
    put_missing(report, "   ", out);
    put_notes(report, "   ", out);
    text_add(out, "\n");
}

/* ---- Markdown ---- */

void points_markdown(const struct points_report *report, struct text *out)
{
    const struct points *points = report->points;
    char cells[CELLS][WORDS_MAX];
    struct titles titles;
    fill_titles(report, &titles);
    text_addf(out, "### %s\n\n", points->works[0].question.model->name);
    for (size_t c = 0; c < CELLS; c++)
        text_addf(out, "| %s ", titles.columns[c].title);
    text_add(out, "|\n");
    for (size_t c = 0; c < CELLS; c++)
        text_addf(out, "|%s", titles.columns[c].right ? "---:" : "---");
    text_add(out, "|\n");
    for (size_t i = 0; i < points->count; i++) {
        if (!is_shown(report, i))
            continue;
        fill_cells(report, &points->items[i], cells);
        for (size_t c = 0; c < CELLS; c++)
            text_addf(out, "| %s ", c == 0 && cells[0][0] ? "\\*" : cells[c]);
        text_add(out, "|\n");
    }
    text_add(out, "\n");
    put_missing(report, "- ", out);
    put_notes(report, "\n\\", out);
}

/* ---- CSV ---- */

static void number(struct text *out, double value)
{
    if (is_known(value))
        text_addf(out, ",%.9g", value);
    else
        text_add(out, ",");
}

static void point_to_csv(const struct points_report *report, const struct point *point,
                         struct text *out)
{
    const struct outcome *outcome = &point->outcome;
    const struct outcome_sums *all = &outcome->all;
    const struct estimate_memory *memory = &outcome->memory;
    double units = outcome->work->units;
    number(out, units);
    text_add(out, ",");
    csv_add(out, outcome->work->unit);
    const double figures[] = {
        all->joules.total / units,
        all->joules_plus_minus / units,
        all->joules.total,
        all->joules.compute,
        all->joules.memory,
        all->joules.idle,
        all->joules.link,
        all->latency_s,
        all->latency_plus_minus,
        units / all->latency_s,
        all->average_w,
        all->peak_w,
        outcome->params,
        all->macs,
        all->flops,
        all->bytes,
        memory->weights,
        memory->activations_peak,
        memory->kv_cache,
        memory->total_peak,
        memory->capacity,
        all->mfu,
        all->mbu,
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        number(out, figures[i]);
    text_addf(out, ",%s,%s,%s,%s,", is_known(memory->capacity) ? memory->fits ? "1" : "0" : "",
              point->on_frontier ? "1" : "0", verdict(report, point),
              estimate_confidence_name(outcome->confidence));
}

void points_csv(const struct points_report *report, struct text *out)
{
    const struct points *points = report->points;
    text_add(out,
             "model,hardware,precision,batch,devices,count,unit,energy_each_j,plus_minus_each_j,"
             "energy_j,compute_j,memory_j,static_j,link_j,latency_s,latency_plus_minus,per_s,"
             "average_w,peak_w,params,macs,flops,bytes,weights_bytes,activations_peak_bytes,"
             "kv_cache_bytes,total_peak_bytes,capacity_bytes,mfu,mbu,fits,frontier,limits,"
             "confidence,missing\n");
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->items[i];
        const struct outcome_choice *choice = &point->outcome.choice;
        csv_add(out, points->works[0].question.model->name);
        text_add(out, ",");
        csv_add(out, report->hardware[point->device].id);
        text_addf(out, ",%s,%" PRId64 ",%d",
                  choice->keeps_stored ? "stored" : precision_name(choice->precision), point->batch,
                  choice->devices);
        if (point->missing[0]) {
            text_add(out, ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,");
            csv_add(out, point->missing);
        } else {
            point_to_csv(report, point, out);
        }
        text_add(out, "\n");
    }
}
