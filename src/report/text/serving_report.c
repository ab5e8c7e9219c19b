/* Views of `ipw estimate --serve` as text and Markdown: latencies, throughput, power and energy per token against load,
 * and the largest load that meets an SLO. */
#include <string.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/reports.h"

struct page {
    const struct result *result;
    struct text *out;
    bool color, is_markdown;
};

/* ---- the head ---- */

static void put_line(const struct page *page, const char *name, const char *words)
{
    if (page->is_markdown)
        text_addf(page->out, "- %s: %s\n", name, words);
    else
        text_addf(page->out, "   %-12s %s\n", name, words);
}

static void put_load(const struct page *page)
{
    const char *trace = result_text_at(page->result, NULL, "load.trace");
    char words[2 * WORDS_MAX];
    str_format(words, sizeof words,
               "%.0f requests %s%.120s; on average %.0f prompt and %.0f output tokens",
               result_number_at(page->result, NULL, "load.requests"),
               *trace ? "of " : "with Poisson arrivals", trace,
               result_number_at(page->result, NULL, "load.mean_prompt_tokens"),
               result_number_at(page->result, NULL, "load.mean_output_tokens"));
    put_line(page, "load", words);
}

static void put_server(const struct page *page)
{
    double kv_tokens = result_number_at(page->result, NULL, "server.kv_cache_tokens");
    double replicas = result_number_at(page->result, NULL, "server.replicas");
    char words[2 * WORDS_MAX], cache[WORDS_MAX], bytes[FORMAT_MAX];
    if (is_known(kv_tokens))
        str_format(
            cache, sizeof cache, "KV cache of %.0f tokens (%s%s)", kv_tokens,
            format_bytes(bytes, kv_tokens * result_number_at(page->result, NULL,
                                                             "server.kv_cache_bytes_per_token")),
            result_number_at(page->result, NULL, "devices") > 1 ? " per device" : "");
    else
        str_format(cache, sizeof cache, "KV cache without a limit");
    str_format(words, sizeof words, "%s: %.0f sequences and %.0f tokens per step, %s%s",
               result_text_at(page->result, NULL, "server.policy"),
               result_number_at(page->result, NULL, "server.max_num_seqs"),
               result_number_at(page->result, NULL, "server.max_num_batched_tokens"), cache,
               result_flag_at(page->result, NULL, "view.reserves") ? ", reserved on admission"
                                                                   : "");
    put_line(page, "server", words);
    if (replicas > 1) {
        str_format(words, sizeof words, "%.0f, a request goes to the one with the fewest in flight",
                   replicas);
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

static void put_steps(const struct page *page)
{
    const char *basis = result_text_at(page->result, NULL, "step_times.basis");
    char words[2 * WORDS_MAX], time[FORMAT_MAX], energy[FORMAT_MAX];
    relative_words(time,
                   result_number_at(page->result, NULL, "step_times.time_relative_plus_minus"));
    relative_words(energy,
                   result_number_at(page->result, NULL, "step_times.energy_relative_plus_minus"));
    if (strcmp(result_text_at(page->result, NULL, "step_times.method"), "measured") == 0)
        str_format(words, sizeof words, "times fitted to %.120s, %s; watts estimated, %s", basis,
                   time, energy);
    else
        str_format(words, sizeof words, "%s: time %s, energy %s", basis, time, energy);
    put_line(page, "steps", words);
}

static void put_head(const struct page *page)
{
    double devices = result_number_at(page->result, NULL, "devices");
    char setting[WORDS_MAX] = "";
    words_add(setting, "%s", result_text_at(page->result, NULL, "precision"));
    if (devices > 1)
        words_add(setting, "%.0f devices", devices);
    text_addf(page->out, "%s%s%s on %.100s under load%s, %s: %s\n\n",
              page->is_markdown ? "### " : "\n ", page->color ? "\033[1m" : "",
              result_text_at(page->result, NULL, "model"),
              result_text_at(page->result, NULL, "view.device"), page->color ? "\033[0m" : "",
              result_text_at(page->result, NULL, "view.runtime"), setting);
    put_load(page);
    put_server(page);
    put_steps(page);
}

/* ---- tables ---- */

static void print_table(const struct page *page, struct table *table)
{
    text_add(page->out, "\n");
    if (page->is_markdown)
        table_write_markdown(table, page->out);
    else
        table_write(table, "   ", page->color, page->out);
    table_release(table);
}

static void add_rate(const struct page *page, const struct result_item *point, struct table *table)
{
    table_addf(table, "%.4g", result_number_at(page->result, point, "request_rate"));
}

/* What a reader must know of a load. */
static const char *remark(const struct page *page, const struct result_item *point)
{
    const struct result *result = page->result;
    double rate = result_number_at(result, point, "request_rate");
    if (rate > result_number_at(page->result, NULL, "view.capacity_requests_per_s"))
        return "exceeds capacity";
    if (!result_flag_at(result, point, "meets_slo"))
        return "misses the SLO";
    return result_flag_at(result, point, "queue_grows") ? "queue grows" : "";
}

static void put_latencies(const struct page *page)
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
    RESULT_EACH (point, page->result, result_find(page->result, "points")) {
        char cell[WORDS_MAX];
        add_rate(page, point, &table);
        for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
            table_add(&table,
                      format_si(cell, result_number_at(page->result, point, PATHS[i]), "s"));
        table_add(&table, remark(page, point));
    }
    print_table(page, &table);
}

/* Per million output tokens; empty without prices. */
static void add_charge(const struct page *page, const struct result_item *point,
                       struct table *table)
{
    const struct result *result = page->result;
    const struct charge charge = {
        .cost = result_number_at(result, point, "cost_per_million_output_tokens"),
        .cost_plus_minus =
            result_number_at(result, point, "cost_per_million_output_tokens_plus_minus"),
        .gco2e = result_number_at(result, point, "gco2e_per_million_output_tokens"),
        .gco2e_plus_minus =
            result_number_at(result, point, "gco2e_per_million_output_tokens_plus_minus"),
    };
    char cell[WORDS_MAX];
    table_add(table, is_known(charge.cost) ? format_cost(cell, &charge, "") : "");
    table_add(table, is_known(charge.gco2e) ? format_emissions(cell, &charge) : "");
}

static char *energy_words(char to[WORDS_MAX], const struct page *page,
                          const struct result_item *point)
{
    const struct result_item *energy = result_at(page->result, point, "energy_per_token_j");
    return words_estimated(to, energy->number, energy->error, "J");
}

static void put_throughput(const struct page *page)
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
    double kv_tokens = result_number_at(page->result, NULL, "server.kv_cache_tokens");
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (point, result, result_find(result, "points")) {
        double full = result_number_at(result, point, "kv_cache_peak_tokens") / kv_tokens;
        char cell[WORDS_MAX];
        add_rate(page, point, &table);
        for (size_t i = 0; i < sizeof RATES / sizeof *RATES; i++)
            table_add(&table, words_rate(cell, result_number_at(result, point, RATES[i])));
        table_addf(&table, "%.1f", result_number_at(result, point, "batch"));
        table_add(&table, is_known(kv_tokens) ? words_share(cell, full) : "");
        table_addf(&table, "%.0f", result_number_at(result, point, "preemptions"));
        table_add(&table, words_share(cell, result_number_at(result, point, "busy")));
        table_add(&table,
                  words_estimated(cell, result_number_at(result, point, "power_w"), UNKNOWN, "W"));
        table_add(&table, energy_words(cell, page, point));
        add_charge(page, point, &table);
    }
    print_table(page, &table);
}

/* ---- the largest load ---- */

static void slo_words(const struct page *page, char words[WORDS_MAX])
{
    const char *name = result_text_at(page->result, NULL, "slo.percentile");
    double ttft_s = result_number_at(page->result, NULL, "slo.ttft_s");
    double itl_s = result_number_at(page->result, NULL, "slo.itl_s");
    char cell[FORMAT_MAX];
    words[0] = '\0';
    if (is_known(ttft_s))
        words_add(words, "%s TTFT of %s", name, format_si(cell, ttft_s, "s"));
    if (is_known(itl_s))
        words_add(words, "%s ITL of %s", name, format_si(cell, itl_s, "s"));
}

static void put_largest(const struct page *page)
{
    const struct result *result = page->result;
    const struct result_item *slo = result_find(result, "slo");
    const struct result_item *largest = result_at(result, slo, "largest_load");
    char words[WORDS_MAX], each[WORDS_MAX], rate[WORDS_MAX];
    if (!result_first(result, slo))
        return;
    slo_words(page, words);
    if (!result_first(result, largest)) {
        text_addf(page->out, "\n   No load meets a %s.\n", words);
        return;
    }
    bool is_capacity =
        strcmp(result_text_at(page->result, NULL, "slo.limited_by"), "capacity") == 0;
    text_addf(
        page->out,
        "\n   The largest load that meets a %s%s %.3g requests/s (%s tokens/s, %s per token)\n",
        words, is_capacity ? " is limited by capacity, about" : ":",
        result_number_at(result, largest, "request_rate"),
        words_rate(rate, result_number_at(result, largest, "tokens_per_s")),
        energy_words(each, page, largest));
}

static void put_all(const struct page *page)
{
    put_head(page);
    put_latencies(page);
    put_throughput(page);
    put_largest(page);
    text_addf(page->out, "\n%s~ simulated with a model of the device, not measured\n%s",
              page->is_markdown ? "\\" : "   ", page->is_markdown ? "" : "\n");
}

static void serving_text(const struct result *result, bool color, struct text *out)
{
    put_all(&(struct page){result, out, color, false});
}

static void serving_markdown(const struct result *result, bool color, struct text *out)
{
    (void)color;
    put_all(&(struct page){result, out, false, true});
}

const struct print_views SERVING_VIEWS = {serving_text, serving_markdown, true};
