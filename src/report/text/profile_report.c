/* The report of `ipw profile` on a run, from its summary; and of several models side by side, for `ipw demo`. */
#include "report/text/reports.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "clients/client.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "rundir/summary.h"
#include "rundir/traces.h"
#include "runner/profile/profile.h"

/* A larger error is not rounding. */
#define CONSERVATION_MAX 1e-6
#define ROUNDING         1e-9

/* Prefix of figures that contain estimated energy. */
static const char *mark_of(const struct summary *run)
{
    return strcmp(text_or_empty(run->energy.method), "estimated") == 0 ? "~" : "";
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
    int decimals = value == floor(value) || size >= 999.95 ? 0
                   : size >= 99.995                        ? 1
                   : size >= 9.9995                        ? 2
                                                           : 3;
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
    else if (strcmp(unit, "s") == 0)
        table_add(table, format_duration(cell, value));
    else /* J or W */
        table_addf(table, "%s%s", mark, format_si(cell, value, unit));
}

/* Omits rows that would repeat another: a single kind of device, sequential requests. */
static bool has_own_row(const struct summary *run, int i)
{
    static const int KINDS[] = {STATISTIC_GPU_ENERGY, STATISTIC_CPU_ENERGY, STATISTIC_SOC_ENERGY};
    unsigned kinds = 0;
    bool is_kind = false;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        kinds += run->statistics[KINDS[k]].count > 0;
        is_kind = is_kind || i == KINDS[k];
    }
    if (is_kind)
        return kinds > 1;
    return i != STATISTIC_COMPANY || run->statistics[i].max > 1.0005;
}

static void write_statistics(const struct summary *run, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"per query", false}, {"mean", true}, {"median", true},
        {"min", true},        {"max", true},  {"std dev", true},
    };
    struct table table = TABLE(COLUMNS);

    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const struct record_field *field = record_statistic((enum record_statistic)i);
        const struct summary_statistic *row = &run->statistics[i];
        /* For equal values the sum of squares has a rounding residue, which is not a spread. */
        double std = row->std > ROUNDING * fabs(row->avg) ? row->std : 0;
        const double figures[] = {row->avg, row->median, row->min, row->max,
                                  is_known(row->std) ? std : UNKNOWN};
        if (row->count == 0 || !field->statistic_label[0] || !has_own_row(run, i))
            continue;
        table_add(&table, field->statistic_label);
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
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
    const char *mark = mark_of(run), *note = text_or_empty(energy->note);
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
    double joules = run->joules_per_output_token, rate = run->output_tokens_per_s;
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

/* Why figures per token are missing, how to get them, and what is known instead. */
static void write_tokens_unknown(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    int64_t unknown = run->completed - run->statistics[STATISTIC_OUTPUT].count;
    if (!run->tokens_note || run->completed <= 0 || unknown <= 0)
        return;
    text_addf(out, "   tokens unknown for %" PRId64 " of %" PRId64 " queries: %s", unknown,
              run->completed, run->tokens_note);
    if (strcmp(text_or_empty(run->config_client), "openai") == 0 &&
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

static void write_score(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    if (is_known(run->perplexity)) {
        write_perplexity(run, out);
        return;
    }
    if (!is_known(run->accuracy)) {
        text_addf(out, "   accuracy      unknown: no answer was graded%s%s\n",
                  run->ungraded_reason ? "; " : "",
                  run->ungraded_reason ? run->ungraded_reason : "");
        return;
    }
    text_addf(out, "   accuracy      %s, %" PRId64 " of %" PRId64 " correct",
              format_percent(cell, run->accuracy), run->correct, run->correct + run->incorrect);
    if (is_known(run->accuracy_interval.low))
        text_addf(out, " (95 %% CI %.1f to %.1f %%)", 100 * run->accuracy_interval.low,
                  100 * run->accuracy_interval.high);
    if (run->ungraded > 0)
        text_addf(out, ", %" PRId64 " not graded%s%s", run->ungraded,
                  run->ungraded_reason ? ": " : "",
                  run->ungraded_reason ? run->ungraded_reason : "");
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
                strcmp(span->type, "lm_inference") == 0 || strcmp(span->type, "submodel_call") == 0;
            if (is_request)
                inference += span->joules;
            else if (strcmp(span->type, "tool_call") == 0)
                tools += span->own_joules;
            else if (strcmp(span->type, "agent") == 0 || strcmp(span->type, "turn") == 0)
                gaps += span->own_joules;
        }
    }
    if (!traces || !traces->count)
        return;
    double count = (double)traces->count, all = inference + tools + gaps;
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
    const struct {
        double amount;
        const char *what;
    } parts[] = {
        [TOKENS] = {run->cost, "tokens"},
        [ELECTRICITY] = {run->electricity_cost, "electricity"},
        [DEVICES] = {tariff_devices(&run->tariff, summary_device_seconds(run)), "devices"}};
    char cell[FORMAT_MAX];
    const char *before = "   cost          ", *after = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
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
    const char *currency = text_or_empty(run->currency), *of, *unit = " per query";
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

/* An in-process client makes the model's CPU time ours. */
static bool has_model_inside(const struct summary *run)
{
    const struct client_driver *driver =
        client_driver_find(text_or_empty(run->config_client), NULL);
    return driver && driver->is_in_process;
}

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

static void write_notes(const struct summary *run, struct text *out)
{
    char cell[FORMAT_MAX];
    if (run->cut > 0)
        text_addf(out, "   %" PRId64 " answer%s truncated at the token limit\n", run->cut,
                  run->cut == 1 ? " was" : "s were");
    if (run->unrecorded_requests > 0)
        text_addf(out,
                  "   %" PRId64 " request%s not recorded: the disk was too slow; included only in "
                  "the unattributed energy\n",
                  run->unrecorded_requests, run->unrecorded_requests == 1 ? " was" : "s were");
    if (run->rows_left_out > 0)
        text_addf(out, "   %" PRId64 " row%s of the dataset skipped: %s\n", run->rows_left_out,
                  run->rows_left_out == 1 ? "" : "s",
                  plain_text(text_or_empty(run->first_row_left_out)).text);
    if (run->idle.known)
        text_addf(out, "   idle power measured for %s\n", format_duration(cell, run->idle.seconds));
    text_addf(out, "   %s: %s CPU",
              has_model_inside(run) ? "ipw and the model in it" : "ipw itself",
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

void profile_text(const struct summary *run, bool color, struct text *out)
{
    write_heading(run, out);
    write_failures(run, color, out);
    format_findings(&run->conditions, color, out);
    write_statistics(run, color, out);
    write_energy(run, out);
    format_activities(&run->conditions, out);
    write_tokens(run, out);
    write_tokens_unknown(run, out);
    write_agent(run, out);
    write_score(run, out);
    write_cost(run, out);
    write_operating(run, out);
    write_notes(run, out);
    text_addf(out, "\n %s\n\n", plain_text(text_or_empty(run->directory)).text);
}

/* ---- several models, as text ---- */

enum { FAMILY_COLUMNS = 80, FAMILY_LETTERS = 20 };

/* A shipped model by its --model name; files by what differs between them, "file" for "models/file.gguf". */
static enum err name_members(const struct profile_family *family, struct run_names *out)
{
    struct run_point *points = calloc(family->count + 1, sizeof *points);
    const struct run_point **list = calloc(family->count + 1, sizeof *list);
    for (size_t i = 0; points && list && i < family->count; i++) {
        const char *name = str_last_part(family->members[i].model), *end = strstr(name, ".gguf");
        size_t length = end && !end[5] ? (size_t)(end - name) : strlen(name);
        str_format(points[i].model, sizeof points[i].model, "%.*s", (int)length, name);
        str_copy(points[i].directory, sizeof points[i].directory, points[i].model);
        list[i] = &points[i];
    }
    *out = (struct run_names){0};
    enum err err =
        points && list ? run_names_of(list, family->count, FAMILY_LETTERS, out) : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < family->count; i++)
        if (strcmp(points[i].model, family->members[i].model) == 0)
            str_copy(out->names[i], sizeof out->names[i], points[i].model);
    free(points);
    free(list);
    return err;
}

/* Without its ±, which is common to all rows and stated once. */
static const char *member_figure(char *to, const struct profile_member *member, double value,
                                 const char *unit)
{
    bool estimated = member->energy.method == METHOD_ESTIMATED;
    char figure[FORMAT_MAX];
    if (estimated)
        format_rough(figure, value, unit);
    else
        format_figure(figure, value, UNKNOWN, unit);
    str_format(to, FORMAT_MAX, "%s%s", estimated && is_known(value) ? "~" : "", figure);
    return to;
}

static void add_member(struct table *table, const struct profile_member *member, const char *name,
                       unsigned columns)
{
    char cell[FORMAT_MAX];
    table_addf(table, "%s %s", member->on_frontier ? "*" : " ", name);
    table_add(table, format_percent(cell, member->accuracy));
    if (is_known(member->accuracy_low))
        table_addf(table, "%.0f-%.0f %%", 100 * member->accuracy_low, 100 * member->accuracy_high);
    else
        table_add(table, "");
    table_add(table, member_figure(cell, member, member->joules_per_query, "J"));
    table_add(table, member_figure(cell, member, member->joules_per_output_token, "J"));
    table_add(table, columns > 0 ? member_figure(cell, member, member->ipj, "1/J") : "");
    table_add(table, columns > 1 ? member_figure(cell, member, member->ipw, "1/W") : "");
    if (columns > 2)
        table_add_known(table, member->output_tokens_per_s, "%.0f", member->output_tokens_per_s);
    else
        table_add(table, "");
}

static size_t widest_line(const struct text *text)
{
    size_t widest = 0;
    for (const char *at = text_get(text); *at; at += *at == '\n') {
        char line[512];
        size_t length = strcspn(at, "\n");
        str_format(line, sizeof line, "%.*s", (int)length, at);
        widest = utf8_width(line) > widest ? utf8_width(line) : widest;
        at += length;
    }
    return widest;
}

/* With as many of the last columns as fit. */
static void write_members(const struct profile_family *family, const struct run_names *names,
                          bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"  model", false}, {"accuracy", true}, {"95 % CI", true}, {"J/query", true},
        {"J/token", true},  {"IPJ", true},      {"IPW", true},     {"tok/s", true},
    };
    for (unsigned columns = 4; columns-- > 0;) {
        struct table table = TABLE(COLUMNS);
        struct text text = {0};
        for (size_t i = 0; i < family->count; i++)
            add_member(&table, &family->members[i], names->names[i], columns);
        table_print(&table, " ", false, &text);
        bool fits = widest_line(&text) <= FAMILY_COLUMNS || !columns;
        size_t head = strcspn(text_get(&text), "\n");
        if (fits)
            text_addf(out, "%s%.*s%s%s", color ? "\033[1m" : "", (int)head, text_get(&text),
                      color ? "\033[0m" : "", text_get(&text) + head);
        text_release(&text);
        if (fits)
            break;
    }
}

/* The most accurate, and among equals the cheapest; or the cheapest.  NULL if the figure is unknown. */
static const struct profile_member *best_member(const struct profile_family *family, bool accurate)
{
    const struct profile_member *best = NULL;
    for (size_t i = 0; i < family->count; i++) {
        const struct profile_member *member = &family->members[i];
        double gain = best ? member->accuracy - best->accuracy : 1;
        double saved = best ? best->joules_per_query - member->joules_per_query : 1;
        if (!is_known(accurate ? member->accuracy : member->joules_per_query))
            continue;
        if (accurate ? gain > 0 || (gain == 0 && saved > 0) : saved > 0)
            best = member;
    }
    return best;
}

static void write_best(const struct profile_family *family, const struct run_names *names,
                       const struct profile_member *member, const char *what, struct text *out)
{
    char share[FORMAT_MAX], joules[FORMAT_MAX];
    text_addf(out, " %s: %s%s", plain_text(names->names[member - family->members]).text, what,
              format_percent(share, member->accuracy));
    if (is_known(member->joules_per_query))
        text_addf(out, ", %s per query",
                  member_figure(joules, member, member->joules_per_query, "J"));
    text_add(out, "\n");
}

/* The conclusion, before the table. */
static void write_answer(const struct profile_family *family, const struct run_names *names,
                         struct text *out)
{
    const struct profile_member *accurate = best_member(family, true),
                                *cheap = best_member(family, false);
    if (accurate && family->count > 1)
        write_best(family, names, accurate,
                   accurate == cheap ? "most accurate and cheapest, " : "most accurate, ", out);
    if (cheap && cheap != accurate && family->count > 1)
        write_best(family, names, cheap, "cheapest, ", out);
}

/* Wraps to 80 columns; releases the words. */
static void wrap(struct text *words, size_t indent, struct text *out)
{
    analysis_wrap(out, "", indent, SIZE_MAX, text_get(words));
    out->failed = out->failed || words->failed;
    text_release(words);
}

/* Evidence common to all energies. */
static void write_evidence(const struct profile_family *family, struct text *out)
{
    char method[FORMAT_MAX], coverage[FORMAT_MAX];
    for (size_t i = 0; i < family->count; i++) {
        const struct energy *energy = &family->members[i].energy;
        if (!is_known(energy->joules))
            continue;
        const char *name = method_name(energy->method);
        struct text words = {0};
        text_addf(&words, "energy %s by %s, ±%.2g %% common to all rows, coverage %s",
                  format_method(method, name ? name : ""), energy->source,
                  100 * energy->plus_minus / energy->joules,
                  format_percent(coverage, energy->coverage));
        wrap(&words, 1, out);
        if (energy->method == METHOD_ESTIMATED)
            text_add(out, " ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
        return;
    }
    text_add(out, " energy   unknown: no sensor\n");
}

static const struct summary_finding *find_finding(const struct profile_member *member,
                                                  const char *code)
{
    for (size_t f = 0; f < member->conditions.finding_count; f++)
        if (strcmp(member->conditions.findings[f].code, code) == 0)
            return &member->conditions.findings[f];
    return NULL;
}

/* Findings worse than a note, each kind once: the first, and how many models have one. */
static void write_family_findings(const struct profile_family *family, bool color, struct text *out)
{
    struct summary_conditions all = {.finding_count = 0};
    for (size_t i = 0; i < family->count; i++)
        for (size_t f = 0; f < family->members[i].conditions.finding_count; f++) {
            const struct summary_finding *finding = &family->members[i].conditions.findings[f];
            size_t before = 0, having = 0;
            for (size_t m = 0; m < family->count; m++) {
                bool has = find_finding(&family->members[m], finding->code) != NULL;
                having += has;
                before += has && m < i;
            }
            if (before || finding->severity == FINDING_NOTE ||
                all.finding_count == SUMMARY_FINDINGS_MAX)
                continue;
            struct summary_finding *kept = &all.findings[all.finding_count++];
            *kept = *finding;
            if (having > 1)
                str_format(kept->text, sizeof kept->text, "%.200s (%zu of %zu models)",
                           finding->text, having, family->count);
        }
    for (int severity = FINDING_BREAKS; severity > FINDING_NOTE; severity--)
        for (size_t i = 0; i < all.finding_count; i++) {
            bool red = color && severity == FINDING_BREAKS;
            struct text words = {0};
            if ((int)all.findings[i].severity != severity)
                continue;
            text_addf(&words, "warning: %s", all.findings[i].text);
            text_add(out, red ? "\033[31m" : "");
            wrap(&words, 3, out);
            text_add(out, red ? "\033[0m" : "");
        }
    text_add(out, all.finding_count ? "\n" : "");
}

void family_text(const struct profile_family *family, bool color, struct text *out)
{
    struct run_names names;
    if (name_members(family, &names) != ERR_OK) {
        out->failed = true;
        return;
    }
    write_answer(family, &names, out);
    write_evidence(family, out);
    text_add(out, "\n");
    write_family_findings(family, color, out);
    write_members(family, &names, color, out);
    text_add(out, "\n * Pareto-optimal: no other is as accurate for as little energy\n");
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].why[0])
            text_addf(out, " failed   %s: %s\n", plain_text(family->members[i].model).text,
                      family->members[i].why);
    text_add(out, "\n");
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].directory[0])
            text_addf(out, " %s\n", plain_text(family->members[i].directory).text);
    run_names_release(&names);
}

/* ---- several models, as JSON ---- */

static void member_json(struct json *json, const struct profile_member *member)
{
    json_object(json, NULL);
    json_string(json, "model", member->model);
    json_string(json, "output_dir", member->directory[0] ? member->directory : NULL);
    json_string(json, "error", member->why[0] ? member->why : NULL);
    summary_conditions_to_json(json, "conditions", &member->conditions);
    json_integer(json, "queries", member->queries);
    json_integer(json, "completed", member->completed);
    json_number(json, "accuracy", member->accuracy);
    json_array(json, "accuracy_interval_95");
    json_number(json, NULL, member->accuracy_low);
    json_number(json, NULL, member->accuracy_high);
    json_array_end(json);
    json_number(json, "joules_per_query", member->joules_per_query);
    json_number(json, "joules_per_query_plus_minus", member->joules_per_query_plus_minus);
    json_number(json, "joules_per_output_token", member->joules_per_output_token);
    json_number(json, "output_tokens_per_s", member->output_tokens_per_s);
    json_number(json, "ipj", member->ipj);
    json_number(json, "ipj_plus_minus", member->ipj_plus_minus);
    json_number(json, "ipw", member->ipw);
    json_number(json, "ipw_plus_minus", member->ipw_plus_minus);
    energy_to_json(json, "energy", &member->energy);
    json_bool(json, "on_frontier", member->on_frontier);
    json_object_end(json);
}

void family_json(const struct profile_family *family, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_array(&json, "models");
    for (size_t i = 0; i < family->count; i++)
        member_json(&json, &family->members[i]);
    json_array_end(&json);
    json_bool(&json, "interrupted", family->signal != 0);
    json_object_end(&json);
    text_add(out, "\n");
}
