/* The report of `ipw profile` on a run, from its summary. */
#include "report/text/reports.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/energy.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "rundir/summary.h"
#include "rundir/traces.h"

/* A larger error is not rounding. */
#define CONSERVATION_MAX 1e-6
#define ROUNDING         1e-9

/* Prefix of figures that contain estimated energy. */
static const char *mark_of(const struct summary *run)
{
    return str_equal(text_or_empty(run->energy.method), "estimated") ? "~" : "";
}

/* Relative uncertainty of the run's energy, which its parts share. */
static double relative_error(const struct summary *run)
{
    return run->energy.joules > 0 ? run->energy.plus_minus / run->energy.joules : UNKNOWN;
}

/* ---- the table ---- */

/* Four significant digits and at most three decimals; integers as such. */
static char *format_plain(char *to, double value)
{
    double size = fabs(value);
    int decimals = 3;
    if (value == floor(value) || size >= 999.95)
        decimals = 0;
    else if (size >= 99.995)
        decimals = 1;
    else if (size >= 9.9995)
        decimals = 2;
    str_format(to, FORMAT_MAX, "%.*f", decimals, value);
    return to;
}

static void add_cell(struct table *table, double value, const char *unit, const char *mark)
{
    char cell[FORMAT_MAX];
    if (!is_known(value))
        table_add(table, "-");
    else if (unit[0] == '\0')
        table_add(table, format_plain(cell, value));
    else if (str_equal(unit, "s"))
        table_add(table, format_duration(cell, value));
    else /* J or W */
        table_addf(table, "%s%s", mark, format_si(cell, value, unit));
}

/* Omits rows that would repeat another: a single kind of device, sequential requests. */
static bool has_own_row(const struct summary *run, enum record_statistic i)
{
    static const enum record_statistic KINDS[] = {STATISTIC_GPU_ENERGY, STATISTIC_CPU_ENERGY,
                                                  STATISTIC_SOC_ENERGY};
    unsigned kinds = 0;
    bool is_kind = false;
    for (size_t k = 0; k < COUNT_OF(KINDS); k++) {
        kinds += run->statistics[KINDS[k]].count > 0;
        is_kind = is_kind || i == KINDS[k];
    }
    if (is_kind)
        return kinds > 1;
    return i != STATISTIC_CONCURRENCY || run->statistics[i].max > 1.0005;
}

static void write_statistics(const struct summary *run, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"per query", false}, {"mean", true}, {"median", true},
        {"min", true},        {"max", true},  {"std dev", true},
    };
    struct table table = TABLE(COLUMNS);

    for (size_t place = 0; place < RECORD_STATISTICS; place++) {
        enum record_statistic i = record_statistic_at(place);
        const struct record_field *field = record_statistic(i);
        const struct summary_statistic *row = &run->statistics[i];
        /* For equal values the sum of squares has a rounding residue, which is not a spread. */
        double std = row->std > ROUNDING * fabs(row->avg) ? row->std : 0;
        const double figures[] = {row->avg, row->median, row->min, row->max,
                                  is_known(row->std) ? std : UNKNOWN};
        if (row->count == 0 || !field->statistic_label[0] || !has_own_row(run, i))
            continue;
        table_add(&table, field->statistic_label);
        for (size_t f = 0; f < COUNT_OF(figures); f++)
            add_cell(&table, figures[f], field->statistic_unit, mark_of(run));
    }
    if (table.count) {
        table_write(&table, "   ", color, out);
        text_add(out, "\n");
    }
    table_release(&table);
}

/* ---- energy ---- */

/* Appends ", 12.3 J failed attempts" if there are any. */
static void add_part(struct text *out, double joules, const char *mark, const char *what)
{
    char cell[FORMAT_MAX];
    if (is_known(joules) && fabs(joules) >= 1e-9) /* smaller values are rounding */
        text_addf(out, ", %s%s %s", mark, format_si(cell, joules, "J"), what);
}

/* Energy breakdown; nothing if no query's energy is known. */
static void write_parts(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    const char *mark = mark_of(run);
    if (!is_known(run->queries_joules))
        return;
    text_addf(out, "   attributed    %s%s queries", mark,
              format_si(cell, run->queries_joules, "J"));
    if (is_known(run->queries_idle_joules))
        text_addf(out, " (%s%s of it idle)", mark, format_si(cell, run->queries_idle_joules, "J"));
    add_part(out, run->failed_joules, mark, "failed attempts");
    add_part(out, run->canceled_joules, mark, "canceled requests");
    add_part(out, run->idle_joules, mark, "idle between queries");
    add_part(out, run->unattributed_joules, mark, "unattributed");
    text_add(out, "\n");
    if (run->conservation_error > CONSERVATION_MAX)
        text_addf(out, "   warning: these differ from the energy by %s\n",
                  format_si(cell, 100 * run->conservation_error, "%"));
}

static void write_energy(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    const struct record_energy *energy = &run->energy;
    const char *mark = mark_of(run);
    const char *note = text_or_empty(energy->note);
    if (!energy->method) {
        text_addf(out, "   energy        unknown: %s; see `ipw doctor`\n",
                  note[0] ? note : "no sensor");
        return;
    }
    text_addf(out, "   energy        %s%s", mark,
              format_with_error(cell, energy->joules, energy->plus_minus, "J"));
    text_addf(out, ", %s (%s), ", energy->method, text_or_empty(energy->source));
    text_addf(out, "coverage %s\n", format_percent(cell, energy->coverage));
    write_parts(run, out);
    if (run->energy_known >= 0 && run->energy_known < run->completed)
        text_addf(out,
                  "   warning: the energy of %" PRId64 " of %" PRId64
                  " completed queries is unknown\n",
                  run->completed - run->energy_known, run->completed);
    if (energy->low_confidence == 1)
        text_add(out, "   low confidence: shorter than ten sensor updates\n");
    if (is_known(run->judge_joules))
        text_addf(out, "   judge         %s%s, not included above\n", mark,
                  format_si(cell, run->judge_joules, "J"));
    if (note[0])
        text_addf(out, "   note: %s\n", note);
    if (mark[0])
        text_add(out, "   ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
}

/* ---- throughput, accuracy, cost ---- */

static void write_tokens(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    double joules = run->joules_per_output_token;
    double rate = run->output_tokens_per_s;
    if ((!is_known(joules) && !is_known(rate)) || is_known(run->perplexity))
        return;
    text_add(out, "   tokens        ");
    if (is_known(joules))
        text_addf(out, "%s%s per output token%s", mark_of(run),
                  format_with_error(cell, joules, joules * relative_error(run), "J"),
                  is_known(rate) ? ", " : "");
    if (is_known(rate))
        text_addf(out, "%s output tokens/s", format_plain(cell, rate));
    text_add(out, "\n");
}

/* "J 0.0123 per image", of what a workload processed. */
static void write_per_unit(const struct summary *run, double joules, const char *unit,
                           const char **before, struct text *out)
{
    char cell[FORMAT_MAX];
    if (!is_known(joules))
        return;
    text_addf(out, "%s%s%s per %s", *before, mark_of(run),
              format_with_error(cell, joules, joules * relative_error(run), "J"), unit);
    *before = ", ";
}

static void write_media(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    const char *before = "   per unit      ";
    write_per_unit(run, run->joules_per_image, "image", &before, out);
    write_per_unit(run, run->joules_per_denoise_step, "denoising step", &before, out);
    write_per_unit(run, run->joules_per_audio_s, "second of audio", &before, out);
    if (is_known(run->images_per_s)) {
        text_addf(out, "%s%s images/s", before, format_plain(cell, run->images_per_s));
        before = ", ";
    }
    if (is_known(run->real_time_factor)) {
        text_addf(out, "%sreal-time factor %s", before, format_plain(cell, run->real_time_factor));
        before = ", ";
    }
    if (*before == ',')
        text_add(out, "\n");
}

/* Why figures per token are missing, how to get them, and chunks instead. */
static void write_tokens_unknown(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    int64_t unknown = run->completed - run->statistics[STATISTIC_OUTPUT].count;
    if (!run->tokens_note || run->completed <= 0 || unknown <= 0)
        return;
    text_addf(out, "   tokens unknown for %" PRId64 " of %" PRId64 " queries: %s", unknown,
              run->completed, run->tokens_note);
    if (str_equal(text_or_empty(run->config_client), "openai") &&
        strstr(run->tokens_note, "no usage"))
        text_add(out, " while streaming; --param stream=false gets it, without TTFT");
    text_add(out, "\n");
    if (!(run->chunks > 0))
        return;
    text_addf(out, "   chunks        %.0f, of one token or more each", run->chunks);
    if (is_known(run->joules_per_chunk))
        text_addf(out, ", %s%s per chunk", mark_of(run),
                  format_with_error(cell, run->joules_per_chunk,
                                    run->joules_per_chunk * relative_error(run), "J"));
    text_add(out, "\n");
}

static void write_perplexity(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    text_addf(out, "   perplexity    %s",
              format_figure(cell, run->perplexity, run->perplexity_plus_minus, ""));
    text_addf(out, " per token, %s bits per byte",
              format_figure(cell, run->bits_per_byte, run->bits_per_byte_plus_minus, ""));
    text_addf(out, " (%" PRId64 " tokens, %" PRId64 " bytes scored)\n", run->scored_tokens,
              run->scored_bytes);
    if (is_known(run->joules_per_input_token))
        text_addf(out, "   tokens        %s%s per token evaluated\n", mark_of(run),
                  format_with_error(cell, run->joules_per_input_token,
                                    run->joules_per_input_token * relative_error(run), "J"));
}

/* "; 5.0 % unread: at most 93.0 %", and the most frequent reason. */
static void write_unread(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    double graded = (double)(run->correct + run->incorrect + run->unread);
    if (run->unread <= 0)
        return;
    text_addf(out, "; %s",
              format_unread(cell, (double)run->unread / graded, run->accuracy_at_most));
    if (run->unread_reason)
        text_addf(out, " (%s)", plain_text(run->unread_reason).text);
}

/* "   wer           0.0412 ± 0.003, 200 answers; lower is better" */
static void write_qualities(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    for (size_t i = 0; i < run->quality_count; i++) {
        const struct summary_quality *quality = &run->qualities[i];
        text_addf(out, "   %-13s ", plain_text(quality->name).text);
        if (!is_known(quality->value)) {
            text_addf(out, "unknown: %s\n", plain_text(quality->reason).text);
            continue;
        }
        text_addf(out, "%s, %" PRId64 " answers%s%s%s\n",
                  format_figure(cell, quality->value, quality->plus_minus, ""), quality->count,
                  quality->better == BETTER_LOWER ? "; lower is better" : "",
                  quality->reason[0] ? "; " : "", plain_text(quality->reason).text);
    }
}

static void write_score(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    write_qualities(run, out);
    if (is_known(run->perplexity)) {
        write_perplexity(run, out);
        return;
    }
    if (!is_known(run->accuracy) && run->quality_count)
        return;
    if (!is_known(run->accuracy)) {
        text_addf(out, "   accuracy      unknown: no answer was graded%s%s\n",
                  run->ungraded_reason ? "; " : "", text_or_empty(run->ungraded_reason));
        return;
    }
    int64_t unread = run->unread > 0 ? run->unread : 0;
    text_addf(out, "   accuracy      %s, %" PRId64 " of %" PRId64 " correct",
              format_percent(cell, run->accuracy), run->correct,
              run->correct + run->incorrect + unread);
    if (is_known(run->accuracy_interval.low))
        text_addf(out, " (95 %% CI %.1f to %.1f %%)", 100 * run->accuracy_interval.low,
                  100 * run->accuracy_interval.high);
    write_unread(run, out);
    if (run->ungraded > 0)
        text_addf(out, ", %" PRId64 " not graded%s%s", run->ungraded,
                  run->ungraded_reason ? ": " : "", text_or_empty(run->ungraded_reason));
    text_add(out, "\n");
    if (!is_known(run->ipj) && !is_known(run->ipw))
        return;
    text_addf(out, "   intelligence  %s", mark_of(run));
    if (is_known(run->ipj))
        text_add(out, format_figure(cell, run->ipj, run->ipj_plus_minus, "1/J"));
    if (is_known(run->ipw)) {
        if (is_known(run->ipj))
            text_addf(out, " (IPJ), %s", mark_of(run));
        text_add(out, format_figure(cell, run->ipw, run->ipw_plus_minus, "1/W"));
        text_add(out, " (IPW)\n");
    } else {
        text_add(out, " (IPJ)\n");
    }
}

/* The work of an agent and its energy breakdown: inference, tools, and the time between them. */
static void write_agent(const struct summary *run, struct text *out)
{
    double turns = 0, calls = 0, inference = 0, tools = 0, gaps = 0;
    const struct traces *traces = run->traces;
    for (size_t i = 0; traces && i < traces->count; i++) {
        const struct query_trace *trace = &traces->items[i];
        turns += trace->num_turns;
        calls += trace->total_tool_calls;
        for (size_t k = 0; k < trace->span_count; k++) {
            const struct span_trace *span = &trace->spans[k];
            bool is_request =
                str_equal(span->type, "lm_inference") || str_equal(span->type, "submodel_call");
            if (is_request)
                inference += span->joules;
            else if (str_equal(span->type, "tool_call"))
                tools += span->own_joules;
            else if (str_equal(span->type, "agent") || str_equal(span->type, "turn"))
                gaps += span->own_joules;
        }
    }
    if (!traces || !traces->count)
        return;
    double count = (double)traces->count;
    double all = inference + tools + gaps;
    text_addf(out, "   agent         %.3g turn%s and %.3g tool call%s per query", turns / count,
              turns == count ? "" : "s", calls / count, calls == count ? "" : "s");
    if (is_known(all) && all > 0)
        text_addf(out, "; energy: %s%.0f %% inference, %.0f %% tools, %.0f %% between them",
                  mark_of(run), 100 * inference / all, 100 * tools / all, 100 * gaps / all);
    text_add(
        out,
        "\n                 by turn and tool: `ipw analyze --analysis agent -v`, `ipw report`\n");
}

/* Of the run: "12.34 USD for tokens, 0.000000202 USD for electricity". */
static void write_cost(const struct summary *run, struct text *out)
{
    enum { TOKENS, ELECTRICITY, DEVICES };
    bool is_agent = run->traces != NULL;
    const struct {
        double amount;
        const char *what;
    } parts[] = {
        [TOKENS] = {run->cost, is_agent ? "tokens and tools" : "tokens"},
        [ELECTRICITY] = {run->electricity_cost, "electricity"},
        [DEVICES] = {tariff_devices(&run->tariff, summary_device_seconds(run)), "devices"}};
    char cell[FORMAT_MAX];
    const char *before = "   cost          ";
    const char *after = "";
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!is_known(parts[i].amount))
            continue;
        format_amount(cell, parts[i].amount, UNKNOWN, text_or_empty(run->currency));
        text_addf(out, "%s%s%s for %s", before, i == ELECTRICITY ? mark_of(run) : "", cell,
                  parts[i].what);
        before = ", ";
        after = "\n";
    }
    text_add(out, after);
}

/* Figures per million tokens refer to output; a scored text has only input. */
static const struct charge *per_million(const struct summary *run, const char **of)
{
    bool is_input = !is_known(run->joules_per_output_token) && run->output_tokens <= 0;
    *of = is_input ? "input" : "output";
    return is_input ? &run->per_million_input : &run->per_million_output;
}

static void write_per_query(const struct summary *run, struct text *out)
{
    const char *currency = text_or_empty(run->currency);
    const char *of;
    const char *unit = " per query";
    const struct charge *million = per_million(run, &of);
    char cell[FORMAT_MAX];
    if (is_known(run->per_query.cost)) {
        const char *mark = is_known(run->tariff.price_per_kwh) ? mark_of(run) : "";
        text_addf(out, "   operating     %s%s%s", mark,
                  format_cost(cell, &run->per_query, currency), unit);
        if (is_known(million->cost))
            text_addf(out, ", %s%s per million %s tokens", mark,
                      format_cost(cell, million, currency), of);
        text_add(out, "\n");
    }
    if (is_known(run->per_query.gco2e)) {
        text_addf(out, "   emissions     %s%s%s", mark_of(run),
                  format_emissions(cell, &run->per_query), unit);
        if (is_known(million->gco2e))
            text_addf(out, ", %s%s per million %s tokens", mark_of(run),
                      format_emissions(cell, million), of);
        text_add(out, "\n");
    }
}

/* Which prices and carbon intensities were used, and the scope of the figures. */
static void write_operating(const struct summary *run, struct text *out)
{
    static const char INDENT[] = "                 ";
    const struct tariff *tariff = &run->tariff;
    if (!tariff_given(tariff))
        return;
    write_per_query(run, out);
    if (!is_known(run->energy.joules) &&
        (is_known(tariff->price_per_kwh) || is_known(tariff->gco2_per_kwh)))
        text_add(out, "   operating cost and emissions unknown: the energy is\n");
    text_addf(out, "%s", INDENT);
    format_tariff(tariff, text_or_empty(run->currency), out);
    text_add(out, "\n");
    if (format_scope(tariff)[0])
        text_addf(out, "%s%s\n", INDENT, format_scope(tariff));
}

/* ---- the report ---- */

static void write_failures(const struct summary *run, bool color, struct text *out)
{
    char cell[FORMAT_MAX];
    if (run->failed <= 0)
        return;
    text_addf(out,
              "   %s%" PRId64 " of %" PRId64
              " queries failed (%s), excluded from the means: %s%s\n\n",
              color ? "\033[31m" : "", run->failed, run->queries,
              format_percent(cell, (double)run->failed / (double)run->queries),
              run->failure_reason ? plain_text(run->failure_reason).text
                                  : "records.jsonl has the reasons",
              color ? "\033[0m" : "");
}

static void write_notes(const struct summary *run, bool has_model, struct text *out)
{
    char cell[FORMAT_MAX];
    if (run->cut > 0)
        text_addf(out, "   %" PRId64 " answer%s truncated at the token limit\n", run->cut,
                  run->cut == 1 ? " was" : "s were");
    if (run->canceled > 0)
        text_addf(out, "   %" PRId64 " of %" PRId64 " %s canceled by %s: excluded from the means\n",
                  run->canceled, run->queries,
                  run->canceled == 1 ? "requests was" : "requests were",
                  run->canceled == 1 ? "its client" : "their clients");
    if (run->unrecorded_requests > 0)
        text_addf(out,
                  "   %" PRId64 " request%s not recorded: the disk was too slow; included only in "
                  "the unattributed energy\n",
                  run->unrecorded_requests, run->unrecorded_requests == 1 ? " was" : "s were");
    if (run->rows_left_out > 0)
        text_addf(out, "   %" PRId64 " row%s of the dataset skipped: %s\n", run->rows_left_out,
                  str_plural(run->rows_left_out),
                  plain_text(text_or_empty(run->first_row_left_out)).text);
    if (run->idle.known)
        text_addf(out, "   idle power measured for %s\n", format_duration(cell, run->idle.seconds));
    text_addf(out, "   %s: %s CPU", has_model ? "ipw and the model in it" : "ipw itself",
              format_si(cell, run->own_cpu_s, "s"));
    text_addf(out, ", %.1f MB, %" PRId64 " reads\n", run->own_rss_mb, run->own_reads);
}

static void write_heading(const struct summary *run, struct text *out)
{
    text_addf(out, "\n energy of %" PRId64 " quer%s of %s to '%s' (%s)", run->queries,
              run->queries == 1 ? "y" : "ies", plain_text(text_or_empty(run->dataset_name)).text,
              plain_text(text_or_empty(run->model)).text, text_or_empty(run->config_client));
    if (run->config_rate > 0) {
        char cell[FORMAT_MAX];
        text_addf(out, ", %s per second", format_plain(cell, run->config_rate));
    } else if (run->config_concurrency > 1) {
        text_addf(out, ", concurrency %" PRId64, run->config_concurrency);
    }
    text_add(out, run->interrupted == 1 ? " (interrupted: --resume continues)\n\n" : "\n\n");
}

/* The lines on the conditions of a measurement read a result. */
static void fill_conditions(const struct summary *run, struct result *out)
{
    struct json json;
    result_begin(out, "conditions");
    result_writer(out, &json);
    summary_conditions_to_json(&json, "conditions", &run->conditions);
    result_end(out);
}

void profile_text(const struct summary *run, bool has_model, bool color, struct text *out)
{
    struct result result = {0};
    fill_conditions(run, &result);
    const struct result_item *conditions = result_find(&result, "conditions");
    write_heading(run, out);
    write_failures(run, color, out);
    findings_text(result_get(conditions, "findings"), color, out);
    write_statistics(run, color, out);
    write_energy(run, out);
    format_activities(conditions, out);
    write_tokens(run, out);
    write_media(run, out);
    write_tokens_unknown(run, out);
    write_agent(run, out);
    write_score(run, out);
    write_cost(run, out);
    write_operating(run, out);
    write_notes(run, has_model, out);
    text_add(out, "\n ");
    text_add_plain(out, text_or_empty(run->directory));
    text_add(out, "\n\n");
    result_release(&result);
}
