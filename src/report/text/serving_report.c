/* Views of `ipw estimate --serve` as text and Markdown: latencies, throughput, power and energy per token against load,
 * and the largest load that meets an SLO. */

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/page.h"
#include "report/text/reports.h"

/* ---- the head ---- */

static void put_line(const struct print_page *page, const char *name, const char *words)
{
    if (page->is_markdown)
        text_addf(page->out, "- %s: %s\n", name, words);
    else
        text_addf(page->out, "   %-12s %s\n", name, words);
}

static void put_load(const struct print_page *page)
{
    const char *trace = page_word(page, "load.trace");
    char words[2 * WORDS_MAX];
    chars_format(words, "%.0f requests %s%.120s; on average %.0f prompt and %.0f output tokens",
                 page_number(page, "load.requests"), *trace ? "of " : "with Poisson arrivals",
                 trace, page_number(page, "load.mean_prompt_tokens"),
                 page_number(page, "load.mean_output_tokens"));
    put_line(page, "load", words);
}

static void put_server(const struct print_page *page)
{
    double kv_tokens = page_number(page, "server.kv_cache_tokens");
    double replicas = page_number(page, "server.replicas");
    char words[2 * WORDS_MAX], cache[WORDS_MAX], bytes[FORMAT_MAX];
    if (is_known(kv_tokens))
        chars_format(
            cache, "KV cache of %.0f tokens (%s%s)", kv_tokens,
            format_bytes(bytes, kv_tokens * page_number(page, "server.kv_cache_bytes_per_token")),
            page_number(page, "devices") > 1 ? " per device" : "");
    else
        chars_format(cache, "KV cache without a limit");
    chars_format(words, "%s: %.0f sequences and %.0f tokens per step, %s%s",
                 page_word(page, "server.policy"), page_number(page, "server.max_num_seqs"),
                 page_number(page, "server.max_num_batched_tokens"), cache,
                 page_flag(page, "view.reserves") ? ", reserved on admission" : "");
    put_line(page, "server", words);
    if (replicas > 1) {
        chars_format(words, "%.0f, a request goes to the one with the fewest in flight", replicas);
        put_line(page, "replicas", words);
    }
}

static void relative_words(char words[FORMAT_MAX], double relative)
{
    if (is_known(relative))
        str_format(words, FORMAT_MAX, relative < 0.01 ? "±%.1g %%" : "±%.0f %%", 100 * relative);
    else
        str_copy(words, FORMAT_MAX, "± unknown");
}

static void put_steps(const struct print_page *page)
{
    const char *basis = page_word(page, "step_times.basis");
    char words[2 * WORDS_MAX], time[FORMAT_MAX], energy[FORMAT_MAX];
    relative_words(time, page_number(page, "step_times.time_relative_plus_minus"));
    relative_words(energy, page_number(page, "step_times.energy_relative_plus_minus"));
    if (str_equal(page_word(page, "step_times.method"), "measured"))
        chars_format(words, "times fitted to %.120s, %s; watts estimated, %s", basis, time, energy);
    else
        chars_format(words, "%s: time %s, energy %s", basis, time, energy);
    put_line(page, "steps", words);
}

static void put_head(const struct print_page *page)
{
    double devices = page_number(page, "devices");
    char setting[WORDS_MAX] = "";
    words_add(setting, "%s", page_word(page, "precision"));
    if (devices > 1)
        words_add(setting, "%.0f devices", devices);
    text_addf(page->out, "%s%s%s on %.100s under load%s, %s: %s\n\n",
              page->is_markdown ? "### " : "\n ", page->color ? "\033[1m" : "",
              page_word(page, "model"), page_word(page, "view.device"),
              page->color ? "\033[0m" : "", page_word(page, "view.runtime"), setting);
    put_load(page);
    put_server(page);
    put_steps(page);
}

/* ---- tables ---- */

static void print_table(const struct print_page *page, struct table *table)
{
    text_add(page->out, "\n");
    page_table(page, table, "   ");
}

static void add_rate(const struct result_item *point, struct table *table)
{
    table_addf(table, "%.4g", result_number_at(point, "request_rate"));
}

/* What a reader must know of a load. */
static const char *remark(const struct print_page *page, const struct result_item *point)
{
    double rate = result_number_at(point, "request_rate");
    if (rate > page_number(page, "view.capacity_requests_per_s"))
        return "exceeds capacity";
    if (!result_flag_at(point, "meets_slo"))
        return "misses the SLO";
    return result_flag_at(point, "queue_grows") ? "queue grows" : "";
}

static void put_latencies(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"requests/s", true}, {"TTFT p50", true}, {"p95", true}, {"p99", true},
        {"TPOT p50", true},   {"p95", true},      {"p99", true}, {"ITL p50", true},
        {"p95", true},        {"p99", true},      {"", false},
    };
    static const char *const PATHS[] = {
        "ttft_s.p50", "ttft_s.p95", "ttft_s.p99", "tpot_s.p50", "tpot_s.p95",
        "tpot_s.p99", "itl_s.p50",  "itl_s.p95",  "itl_s.p99",
    };
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (point, result_find(page->result, "points")) {
        char cell[WORDS_MAX];
        add_rate(point, &table);
        for (size_t i = 0; i < COUNT_OF(PATHS); i++)
            table_add(&table, format_si(cell, result_number_at(point, PATHS[i]), "s"));
        table_add(&table, remark(page, point));
    }
    print_table(page, &table);
}

/* Per million output tokens; empty without prices. */
static void add_charge(const struct result_item *point, struct table *table)
{
    const struct charge charge = {
        .cost = result_number_at(point, "cost_per_million_output_tokens"),
        .cost_plus_minus = result_number_at(point, "cost_per_million_output_tokens_plus_minus"),
        .gco2e = result_number_at(point, "gco2e_per_million_output_tokens"),
        .gco2e_plus_minus = result_number_at(point, "gco2e_per_million_output_tokens_plus_minus"),
    };
    char cell[WORDS_MAX];
    table_add(table, is_known(charge.cost) ? format_cost(cell, &charge, "") : "");
    table_add(table, is_known(charge.gco2e) ? format_emissions(cell, &charge) : "");
}

static char *energy_words(char to[WORDS_MAX], const struct result_item *point)
{
    const struct result_item *energy = result_at(point, "energy_per_token_j");
    return words_estimated(to, energy->number, energy->error, "J");
}

static void put_throughput(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"requests/s", true},
        {"tokens/s per user", true},
        {"tokens/s", true},
        {"± tokens/s", true},
        {"batch", true},
        {"KV cache", true},
        {"preempted", true},
        {"busy", true},
        {"power", true},
        {"energy per token", true},
        {"cost per M tokens", true},
        {"CO2 per M tokens", true},
    };
    static const char *const RATES[] = {"tokens_per_s_per_user", "tokens_per_s",
                                        "tokens_per_s_plus_minus"};
    const struct result *result = page->result;
    double kv_tokens = page_number(page, "server.kv_cache_tokens");
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (point, result_find(result, "points")) {
        double full = result_number_at(point, "kv_cache_peak_tokens") / kv_tokens;
        char cell[WORDS_MAX];
        add_rate(point, &table);
        for (size_t i = 0; i < COUNT_OF(RATES); i++)
            table_add(&table, words_rate(cell, result_number_at(point, RATES[i])));
        table_addf(&table, "%.1f", result_number_at(point, "batch"));
        table_add(&table, is_known(kv_tokens) ? words_share(cell, full) : "");
        table_addf(&table, "%.0f", result_number_at(point, "preemptions"));
        table_add(&table, words_share(cell, result_number_at(point, "busy")));
        table_add(&table, words_estimated(cell, result_number_at(point, "power_w"), UNKNOWN, "W"));
        table_add(&table, energy_words(cell, point));
        add_charge(point, &table);
    }
    print_table(page, &table);
}

/* ---- the largest load ---- */

static void slo_words(const struct print_page *page, char words[WORDS_MAX])
{
    const char *name = page_word(page, "slo.percentile");
    double ttft_s = page_number(page, "slo.ttft_s");
    double itl_s = page_number(page, "slo.itl_s");
    char cell[FORMAT_MAX];
    words[0] = '\0';
    if (is_known(ttft_s))
        words_add(words, "%s TTFT of %s", name, format_si(cell, ttft_s, "s"));
    if (is_known(itl_s))
        words_add(words, "%s ITL of %s", name, format_si(cell, itl_s, "s"));
}

static void put_largest(const struct print_page *page)
{
    const struct result *result = page->result;
    const struct result_item *slo = result_find(result, "slo");
    const struct result_item *largest = result_at(slo, "largest_load");
    char words[WORDS_MAX], each[WORDS_MAX], rate[WORDS_MAX];
    if (!result_first(slo))
        return;
    slo_words(page, words);
    if (!result_first(largest)) {
        text_addf(page->out, "\n   No load meets a %s.\n", words);
        return;
    }
    bool is_capacity = str_equal(page_word(page, "slo.limited_by"), "capacity");
    text_addf(
        page->out,
        "\n   The largest load that meets a %s%s %.3g requests/s (%s tokens/s, %s per token)\n",
        words, is_capacity ? " is limited by capacity, about" : ":",
        result_number_at(largest, "request_rate"),
        words_rate(rate, result_number_at(largest, "tokens_per_s")), energy_words(each, largest));
}

static void put_all(struct print_page *page)
{
    put_head(page);
    put_latencies(page);
    put_throughput(page);
    put_largest(page);
    text_addf(page->out, "\n%s~ simulated with a model of the device, not measured\n%s",
              page->is_markdown ? "\\" : "   ", page->is_markdown ? "" : "\n");
}

const struct print_views SERVING_VIEWS = {.page = put_all, .has_blank_line = true};
