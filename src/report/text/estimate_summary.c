/* The summary at the head of the page of one estimate: energy, latency, power, cost, memory, work and confidence. */
#include <math.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/page.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

bool page_is_request(const struct print_page *page)
{
    return str_equal(page_word(page, "setting.phase"), "request");
}

static bool exceeds_memory(const struct print_page *page)
{
    return page_number(page, "fits") == 0;
}

/* ---- the head ---- */

/* The result first: "resnet50 on NVIDIA H200 SXM 141GB, pytorch-graph (measured): ~131 ± 17 mJ per sample, 850 µs".
 * For a lower bound the interval is in the lines below. */
static void put_title(const struct print_page *page)
{
    char energy[WORDS_MAX], latency[FORMAT_MAX];
    double joules = page_number(page, "each.energy_j");
    if (page_flag(page, "view.is_exceeded_as_shipped"))
        chars_format(energy, "~%s", format_rough(latency, joules, "J"));
    else
        words_estimated(energy, joules, page_number(page, "each.plus_minus"), "J");
    text_addf(page->out, "%s%s%s on %s%s, %s: %s per %s, %s%s%s\n",
              page->is_markdown ? "### " : "\n ", page_style(page, PAGE_BOLD),
              page_word(page, "model"), page_word(page, "view.device"),
              page_style(page, PAGE_PLAIN), page_word(page, "view.runtime"),
              is_known(joules) ? energy : "-", page_word(page, "each.unit"),
              format_rough(latency, page_number(page, "latency_s"), "s"),
              page_is_request(page) ? " per request" : "",
              exceeds_memory(page) ? "; EXCEEDS DEVICE MEMORY" : "");
    text_addf(page->out, page->is_markdown ? "\n%s; " : "   %s\n", page_word(page, "view.basis"));
    if (page_word(page, "view.host")[0])
        text_addf(page->out, page->is_markdown ? "%s; " : "   %s\n", page_word(page, "view.host"));
    text_addf(page->out, page->is_markdown ? "%s\n\n| | |\n|---|---|\n" : "   %s\n\n",
              page_word(page, "view.setting"));
}

static void put_energy(const struct print_page *page)
{
    char total[WORDS_MAX], each[WORDS_MAX], request[WORDS_MAX];
    words_energy(each, page->result, "each", page_word(page, "each.unit"));
    if (page_is_request(page))
        page_line(page, "energy", "%s, %s",
                  words_energy(request, page->result, "request", "request"), each);
    else if (page_number(page, "each.count") == 1)
        page_line(page, "energy", "%s", each);
    else
        page_line(page, "energy", "%s, %s in total", each,
                  words_estimated(total, page_number(page, "energy_j.total"), UNKNOWN, "J"));
}

static void put_time(const struct print_page *page)
{
    char latency[WORDS_MAX], first[FORMAT_MAX], rate[WORDS_MAX];
    const char *unit = page_word(page, "each.unit");
    words_latency(latency, page->result);
    words_rate(rate, page_number(page, "each.per_s"));
    if (page_is_request(page))
        page_line(page, "latency", "%s; time to first token %s; %s %ss/s", latency,
                  format_si(first, page_number(page, "request.first_token_s"), "s"), rate, unit);
    else
        page_line(page, "latency", "%s; %s %ss/s", latency, rate, unit);
}

/* Per user: a decode step yields a token for each sequence of the batch. */
static void put_user(const struct print_page *page)
{
    char ttft[FORMAT_MAX], tpot[FORMAT_MAX], rate[WORDS_MAX];
    double steps = page_number(page, "request.phases.1.tokens");
    format_with_error(ttft, page_number(page, "request.first_token_s"),
                      page_number(page, "request.phases.0.latency_plus_minus"), "s");
    if (!is_known(steps)) {
        page_line(page, "per user", "TTFT %s", ttft);
        return;
    }
    format_with_error(tpot, page_number(page, "request.tpot_s"),
                      page_number(page, "request.phases.1.latency_plus_minus") / steps, "s");
    page_line(page, "per user", "TTFT %s, TPOT %s, %s tokens/s", ttft, tpot,
              words_rate(rate, page_number(page, "request.tokens_per_s_per_user")));
}

static void put_power(const struct print_page *page)
{
    char average[WORDS_MAX], peak[WORDS_MAX], limit[FORMAT_MAX], idle[FORMAT_MAX];
    words_estimated(average, page_number(page, "power_w.average"),
                    page_number(page, "power_w.plus_minus"), "W");
    page_line(page, "power", "%s average, %s peak; limit %s, idle %s", average,
              words_estimated(peak, page_number(page, "power_w.peak"), UNKNOWN, "W"),
              format_si(limit, page_number(page, "power_w.limit"), "W"),
              format_si(idle, page_number(page, "power_w.idle"), "W"));
}

/* ---- cost and emissions ---- */

static double charge_at(const struct print_page *page, const char *kind, const char *each,
                        const char *suffix)
{
    char path[96];
    chars_format(path, "operating.%s_per_%s%s", kind, each, suffix);
    return page_number(page, path);
}

/* If measured models take more than the estimate, the upper end instead of the ±, as for the energy. */
static void add_charge(const struct print_page *page, const char *each, bool emissions,
                       const char *unit, struct text *out)
{
    char cell[FORMAT_MAX];
    bool is_bound = page_flag(page, "view.is_exceeded_as_shipped");
    struct charge shown = {
        .cost = charge_at(page, "cost", each, ""),
        .cost_plus_minus = charge_at(page, "cost", each, "_plus_minus"),
        .gco2e = charge_at(page, "gco2e", each, ""),
        .gco2e_plus_minus = charge_at(page, "gco2e", each, "_plus_minus"),
    };
    struct charge max = {shown.cost + shown.cost_plus_minus, UNKNOWN,
                         shown.gco2e + shown.gco2e_plus_minus, UNKNOWN};
    if (!is_known(emissions ? shown.gco2e : shown.cost))
        return;
    if (is_bound)
        shown.cost_plus_minus = shown.gco2e_plus_minus = UNKNOWN;
    text_addf(out, "%s~%s per %s", out->length ? ", " : "",
              emissions ? format_emissions(cell, &shown) : format_cost(cell, &shown, ""), unit);
    if (is_bound)
        text_addf(out, " (up to %s as shipped)",
                  emissions ? format_emissions(cell, &max) : format_cost(cell, &max, ""));
}

/* "~0.0012 ± 0.0003 per request, ~1.20 per million output tokens"; or the emissions. */
static void put_charges(const struct print_page *page, const char *name, bool emissions)
{
    struct text words = {0};
    bool request = page_is_request(page);
    add_charge(page, "query", emissions, request ? "request" : page_word(page, "each.unit"),
               &words);
    add_charge(page, "million_output_tokens", emissions, "million output tokens", &words);
    add_charge(page, "million_input_tokens", emissions,
               request ? "million prompt tokens (prefill alone)" : "million prompt tokens", &words);
    if (words.length)
        page_line(page, name, "%s", text_get(&words));
    text_release(&words);
}

static void put_operating(const struct print_page *page)
{
    const struct result_item *operating = result_find(page->result, "operating");
    const struct tariff tariff = words_tariff(operating);
    struct text at = {0};
    if (!result_first(operating))
        return;
    put_charges(page, "cost", false);
    put_charges(page, "emissions", true);
    format_tariff(&tariff, "", &at);
    page_line(page, "", "%s", text_get(&at));
    if (format_scope(&tariff)[0])
        page_line(page, "", "%s", format_scope(&tariff));
    text_release(&at);
}

/* ---- memory and work ---- */

static void put_fit(const struct print_page *page)
{
    const char *each = page_number(page, "setting.devices") > 1 ? " per device" : "";
    char used[FORMAT_MAX], all[FORMAT_MAX], headroom[WORDS_MAX] = "";
    double capacity = page_number(page, "memory_bytes.capacity");
    double batch = page_number(page, "largest_batch");
    double devices = page_number(page, "view.devices_to_fit");
    bool fits = !exceeds_memory(page);
    format_bytes(used, page_number(page, "memory_bytes.total_peak"));
    if (!is_known(capacity)) {
        page_line(page, "memory", "%s%s; device memory unknown", used, each);
        return;
    }
    if (fits && batch >= 1)
        chars_format(headroom, ", up to batch %.0f", floor(batch));
    else if (!fits && devices > 1)
        chars_format(headroom, "; fits with --tensor-parallel %.0f", devices);
    page_line(page, "memory", "%s of %s%s: %s%s%s%s", used, format_bytes(all, capacity), each,
              page_style(page, fits ? PAGE_GREEN : PAGE_RED),
              fits ? "fits" : "EXCEEDS DEVICE MEMORY", page_style(page, PAGE_PLAIN), headroom);
}

/* Parts of it: "weights 2.3 GiB, activations 12.0 MiB, KV cache 20.0 MiB of 639 tokens". */
static void put_memory(const struct print_page *page)
{
    char words[WORDS_MAX] = "", bytes[FORMAT_MAX], sequences[FORMAT_MAX] = "";
    double workspace = page_number(page, "memory_bytes.workspace_peak");
    double cache = page_number(page, "memory_bytes.kv_cache");
    double tokens = page_number(page, "memory_bytes.kv_cache_tokens");
    double batch = page_number(page, "batch");
    put_fit(page);
    words_add(words, "weights %s", format_bytes(bytes, page_number(page, "memory_bytes.weights")));
    words_add(words, "activations %s",
              format_bytes(bytes, page_number(page, "memory_bytes.activations_peak")));
    if (workspace > 0)
        words_add(words, "workspace %s", format_bytes(bytes, workspace));
    if (batch > 1)
        chars_format(sequences, "%.0f x ", batch);
    if (cache > 0 && is_known(tokens))
        words_add(words, "KV cache %s of %s%.0f tokens", format_bytes(bytes, cache), sequences,
                  tokens);
    else if (cache > 0)
        words_add(words, "KV cache %s", format_bytes(bytes, cache));
    page_line(page, "", "%s", words);
}

static void put_work(const struct print_page *page)
{
    char params[FORMAT_MAX], macs[FORMAT_MAX], flops[FORMAT_MAX], bytes[FORMAT_MAX];
    char read[FORMAT_MAX], written[FORMAT_MAX], weights[FORMAT_MAX];
    double operations = page_number(page, "flops");
    double moved = page_number(page, "bytes");
    page_line(page, "work", "%s parameters, %s, %s; %.3g FLOP/B",
              str_trim(format_si(params, page_number(page, "params"), "")),
              format_si(macs, page_number(page, "macs"), "MAC"),
              format_si(flops, operations, "FLOP"), operations / moved);
    format_si(bytes, moved, "B");
    format_si(weights, page_number(page, "traffic_bytes.weights"), "B");
    if (page_number(page, "traffic_bytes.kv_read") > 0)
        page_line(page, "", "%s moved: %s weights, KV cache %s read, %s written", bytes, weights,
                  format_si(read, page_number(page, "traffic_bytes.kv_read"), "B"),
                  format_si(written, page_number(page, "traffic_bytes.kv_written"), "B"));
    else
        page_line(page, "", "%s moved, %s of it weights", bytes, weights);
}

/* "4 stages of 20 layers, 4 micro-batches; bubble 12 % of the time". */
static void put_pipeline(const struct print_page *page)
{
    const struct result_item *stages = result_find(page->result, "pipeline.stages");
    double batches = page_number(page, "pipeline.micro_batches");
    double min = INFINITY;
    double max = 0;
    char layers[FORMAT_MAX], waiting[WORDS_MAX];
    if (!stages)
        return;
    RESULT_EACH (stage, stages) {
        double count = result_number_at(stage, "layers");
        min = fmin(min, count);
        max = fmax(max, count);
    }
    if (min < max)
        chars_format(layers, "%.0f to %.0f", min, max);
    else
        chars_format(layers, "%.0f", min);
    page_line(page, "pipeline",
              "%zu stages of %s layers, %.0f micro-batch%s; bubble %s of the time",
              result_length(stages), layers, batches, batches == 1 ? "" : "es",
              words_share(waiting, page_number(page, "pipeline.bubble")));
}

static void put_devices(const struct print_page *page)
{
    char words[WORDS_MAX];
    if (words_divided(words, page->result->items))
        page_line(page, "devices", "%s", words);
    put_pipeline(page);
}

static void put_confidence(const struct print_page *page)
{
    const struct result_item *notes = result_find(page->result, "notes");
    const char *reason = page_word(page, "confidence_reason");
    const char *name = "notes";
    page_line(page, "confidence", "%s%s%s", page_word(page, "confidence"), reason[0] ? ": " : "",
              reason);
    RESULT_EACH (note, notes) {
        page_line(page, name, "%s", result_string(note));
        name = "";
    }
}

static void put_accuracies(const struct print_page *page)
{
    const char *name = "accuracy";
    RESULT_EACH (accuracy, result_find(page->result, "accuracies")) {
        page_line(page, name, "%.4g %% %s; published, not measured",
                  result_number_at(accuracy, "percent"), result_text_at(accuracy, "title"));
        name = "";
    }
}

void estimate_summary(const struct print_page *page)
{
    put_title(page);
    put_energy(page);
    put_time(page);
    if (page_is_request(page))
        put_user(page);
    put_power(page);
    put_operating(page);
    put_memory(page);
    put_work(page);
    put_devices(page);
    put_confidence(page);
    put_accuracies(page);
}
