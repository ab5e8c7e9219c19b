#include "runner/sweep_dry_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/setting.h"
#include "runner/sweep.h"

/* ---- the table ---- */

static const struct json_field KNOB_FIELDS[] = {
    BIND_STRING(dry_run_knob, name, "name", .flags = FIELD_REQUIRED),
    BIND_STRING(dry_run_knob, unit, "unit"),
    {0},
};

static const struct json_field SETTING_FIELDS[] = {
    BIND_SIZE(dry_run_setting, number, "number"),
    BIND_STRING(dry_run_setting, setting, "setting", .flags = FIELD_ANY_TEXT),
    BIND_STRINGS(dry_run_setting, values, value_count, "values",
                 .flags = FIELD_REQUIRED | FIELD_ANY_TEXT),
    BIND_STRING(dry_run_setting, command, "command", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(dry_run_setting, expected_s, "expected_s"),
    {0},
};

static const struct json_field ROUND_FIELDS[] = {
    BIND_UNSIGNED(dry_run_round, repeat, "repeat"),
    BIND_NUMBERS(dry_run_round, settings, count, "settings"),
    {0},
};

static const struct json_field PLAN_FIELDS[] = {
    BIND_UNSIGNED(sweep_dry_run, seed, "seed"),
    BIND_SIZE(sweep_dry_run, attempts, "attempts"),
    BIND_FLAG(sweep_dry_run, sets_gpu, "sets_gpu"),
    BIND_STRING(sweep_dry_run, uncontrolled, "uncontrolled", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(sweep_dry_run, expected_s, "expected_s"),
    BIND_STRING(sweep_dry_run, expected_from, "expected_from", .flags = FIELD_ANY_TEXT),
    BIND_STRINGS(sweep_dry_run, not_expected, not_expected_count, "not_expected"),
    BIND_NUMBER(sweep_dry_run, pauses_s, "pauses_s"),
    BIND_LIST(sweep_dry_run, knobs, knob_count, KNOB_FIELDS, "knobs", .flags = FIELD_REQUIRED),
    BIND_LIST(sweep_dry_run, settings, setting_count, SETTING_FIELDS, "settings",
              .flags = FIELD_REQUIRED),
    BIND_LIST(sweep_dry_run, rounds, round_count, ROUND_FIELDS, "rounds"),
    {0},
};

void sweep_dry_run_release(struct sweep_dry_run *plan)
{
    json_fields_release(PLAN_FIELDS, plan);
}

void sweep_dry_run_fill(const struct sweep_dry_run *plan, struct result *result)
{
    struct json json;
    result_begin(result, "sweep plan");
    result_writer(result, &json);
    json_fields_write(&json, PLAN_FIELDS, plan);
    result_end(result);
    result_table(result, "settings", NULL);
}

enum err sweep_dry_run_read(const struct jv *tree, struct sweep_dry_run *out, struct error *why)
{
    *out = (struct sweep_dry_run){0};
    return json_fields_read_strict(tree, PLAN_FIELDS, out, NULL, why);
}

/* ---- making it ---- */

static void add_knobs(const struct sweep *sweep, struct sweep_dry_run *plan)
{
    plan->knobs = xcalloc(sweep->knob_count, sizeof *plan->knobs);
    plan->knob_count = sweep->knob_count;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        enum gpu_knob knob = knob_named(sweep->knobs[k]);
        bool is_set = sweep->control && knob != KNOB_COUNT;
        plan->knobs[k] = (struct dry_run_knob){
            .name = xstrdup(sweep->knobs[k]),
            .unit = is_set ? xstrdup(knob_of(knob)->unit) : NULL,
        };
    }
}

static char *command_at(const struct sweep *sweep, size_t point)
{
    struct text text = {0};
    char **words = sweep_words(sweep, point);
    for (size_t i = 0; words[i]; i++) {
        text_add(&text, i ? " " : "");
        text_add_shell(&text, words[i]);
    }
    char *command = xstrdup(text_get(&text));
    sweep_free_words(words);
    text_release(&text);
    return command;
}

static struct dry_run_setting setting_at(const struct sweep *sweep, size_t point)
{
    struct text name = {0};
    struct dry_run_setting out = {.number = point + 1,
                                  .command = command_at(sweep, point),
                                  .expected_s = sweep_expected(sweep, point)};
    sweep_setting(sweep, point, &name);
    out.setting = xstrdup(text_get(&name));
    for (size_t k = 0; k < sweep->knob_count; k++)
        sweep_word(&out.values, &out.value_count, sweep_point(sweep, point)[k].text);
    text_release(&name);
    return out;
}

static bool add_step(void *context, const struct sweep *sweep, const struct sweep_step *step)
{
    struct sweep_dry_run *plan = context;
    struct dry_run_round *round = plan->round_count ? &plan->rounds[plan->round_count - 1] : NULL;
    (void)sweep;
    if (!round || round->repeat != step->repeat) {
        round = XADD(plan->rounds, plan->round_count, plan->round_capacity);
        *round = (struct dry_run_round){.repeat = step->repeat};
    }
    *XADD(round->settings, round->count, round->capacity) = (double)(step->point + 1);
    return false;
}

static void add_expected(struct sweep *sweep, const char *parent, double pause_s,
                         struct sweep_dry_run *plan)
{
    struct text from = {0};
    if (!sweep->count)
        sweep_expect_from(sweep, parent, &from);
    plan->attempts = sweep_left(sweep, &plan->expected_s);
    plan->expected_from = from.length ? xstrdup(text_get(&from)) : NULL;
    text_release(&from);
    if (is_known(sweep->until_pct))
        sweep_word(&plan->not_expected, &plan->not_expected_count, "repeats of --until-pct");
    if (is_known(sweep->cooldown_c) && !sweep->count)
        sweep_word(&plan->not_expected, &plan->not_expected_count, "cooling down to --cooldown-c");
    pause_s += sweep->cooldown_s > 0 ? sweep->cooldown_s : 0;
    plan->pauses_s = pause_s > 0 ? pause_s * (double)plan->attempts : UNKNOWN;
}

void sweep_dry_run_make(struct sweep *sweep, const char *parent, double pause_s,
                        struct sweep_dry_run *out)
{
    struct sweep once = *sweep;
    *out = (struct sweep_dry_run){.seed = sweep->seed,
                                  .sets_gpu = sweep->control && !sweep->uncontrolled,
                                  .uncontrolled =
                                      sweep->uncontrolled ? xstrdup(sweep->uncontrolled) : NULL};
    add_expected(sweep, parent, pause_s, out);
    add_knobs(sweep, out);
    out->settings = xcalloc(sweep->point_count, sizeof *out->settings);
    out->setting_count = sweep->point_count;
    for (size_t p = 0; p < sweep->point_count; p++)
        out->settings[p] = setting_at(sweep, p);
    once.until_pct = UNKNOWN; /* the number of further repeats is unknown */
    sweep_each(&once, add_step, out);
}
