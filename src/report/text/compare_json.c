/* A comparison as JSON: docs/formats.md has the keys. */
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/compare_report.h"

static void put_figure(struct json *json, const char *key, const char *interval_key,
                       const struct contrast_figure *figure)
{
    json_number(json, key, figure->value);
    if (!is_known(figure->low) || !is_known(figure->high)) {
        json_null(json, interval_key);
        return;
    }
    json_array(json, interval_key);
    json_number(json, NULL, figure->low);
    json_number(json, NULL, figure->high);
    json_array_end(json);
}

static void put_side(struct json *json, const char *key, double value, double plus_minus,
                     double statistical, size_t queries)
{
    json_object(json, key);
    json_number(json, "value", value);
    json_number(json, "plus_minus", plus_minus);
    json_number(json, "plus_minus_statistical", statistical);
    json_integer(json, "queries", (int64_t)queries);
    json_object_end(json);
}

static void put_metric(struct json *json, const struct compared *compared,
                       const struct compare_metric_info *info)
{
    static const char *const BETTER[] = {"lower", "neither", "higher"};
    const struct contrast *found = &compared->found;
    json_object(json, info->name);
    json_string(json, "unit", info->unit);
    json_string(json, "better", BETTER[info->better - BETTER_LOWER]);
    put_side(json, "baseline", found->a, compared->a_plus_minus, found->a_error,
             compared->a_queries);
    put_side(json, "run", found->b, compared->b_plus_minus, found->b_error, compared->b_queries);
    put_figure(json, "difference", "difference_interval_95", &found->difference);
    put_figure(json, "relative", "relative_interval_95", &found->relative);
    json_string(json, "test", compared->test);
    json_number(json, "p_value", found->p_value);
    json_number(json, "p_holm", compared->p_holm);
    json_string(json, "verdict", compare_verdict_text(compared->verdict));
    json_object_end(json);
}

static void put_comparison(struct json *json, const struct comparison *comparison)
{
    json_object(json, NULL);
    json_string(json, "directory", comparison->directory);
    json_string(json, "model", comparison->model);
    json_string(json, "hardware_label", comparison->hardware);
    json_bool(json, "paired", comparison->paired);
    json_integer(json, "same_queries", (int64_t)comparison->same);
    json_integer(json, "pairs", (int64_t)comparison->pairs);
    json_integer(json, "baseline_only", (int64_t)comparison->a_only);
    json_integer(json, "run_only", (int64_t)comparison->b_only);
    json_integer(json, "changed_questions", (int64_t)comparison->changed);
    json_array(json, "warnings");
    for (size_t i = 0; i < comparison->warning_count; i++)
        json_string(json, NULL, comparison->warnings[i].text);
    json_array_end(json);
    json_object(json, "metrics");
    for (size_t m = 0; m < COMPARE_METRICS; m++)
        put_metric(json, &comparison->metrics[m], &COMPARE_METRIC_INFO[m]);
    json_object_end(json);
    json_object_end(json);
}

static void put_checks(struct json *json, const struct compare_report *report)
{
    static const char *const OUTCOMES[] = {"passed", "failed", "not known"};
    json_array(json, "checks");
    for (size_t i = 0; i < report->count; i++)
        for (size_t c = 0; c < report->check_count; c++) {
            const struct compare_check *check = &report->checks[c];
            json_object(json, NULL);
            json_string(json, "directory", report->comparisons[i].directory);
            json_string(json, "fail_if", check->text);
            json_string(json, "metric", COMPARE_METRIC_INFO[check->metric].name);
            json_string(
                json, "outcome",
                OUTCOMES[compare_check_judge(check, &report->comparisons[i], report->confident)]);
            json_object_end(json);
        }
    json_array_end(json);
}

void compare_json(const struct compare_report *report, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_object(&json, "baseline");
    json_string(&json, "directory", report->baseline);
    json_string(&json, "model", report->model);
    json_string(&json, "hardware_label", report->hardware);
    json_integer(&json, "queries", (int64_t)report->queries);
    json_object_end(&json);
    json_array(&json, "comparisons");
    for (size_t i = 0; i < report->count; i++)
        put_comparison(&json, &report->comparisons[i]);
    json_array_end(&json);
    put_checks(&json, report);
    json_bool(&json, "confident", report->confident);
    json_string(&json, "correction", "holm");
    json_number(&json, "alpha", COMPARE_ALPHA);
    json_integer(&json, "seed", (int64_t)report->seed);
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
    text_add(out, "\n");
}
