/* The result of `ipw demo`: the figures of several models. */
#include "core/json.h"
#include "core/result.h"
#include "runner/profile/profile.h"

/* A figure, and its ± under a key of its own. */
struct figure {
    const char *key, *error_key; /* NULL: without a ± */
    size_t value, error;
    const char *unit;
};

#define FIGURE(member, unit)                                                                       \
    {#member, #member "_plus_minus", offsetof(struct profile_member, member),                      \
     offsetof(struct profile_member, member##_plus_minus), unit}
#define BARE_FIGURE(member, unit) {#member, NULL, offsetof(struct profile_member, member), 0, unit}

static const struct figure FIGURES[] = {
    FIGURE(joules_per_query, "J"),
    BARE_FIGURE(joules_per_output_token, "J"),
    BARE_FIGURE(output_tokens_per_s, "1/s"),
    FIGURE(ipj, "1/J"),
    FIGURE(ipw, "1/W"),
};

static void put_figure(struct result *out, const struct figure *figure,
                       const struct profile_member *member)
{
    const char *at = (const char *)member;
    result_number(out, figure->key, *(const double *)(at + figure->value), figure->unit);
    if (!figure->error_key)
        return;
    double error = *(const double *)(at + figure->error);
    result_uncertain(out, figure->key, error);
    result_number(out, figure->error_key, error, figure->unit);
}

static void put_member(struct result *out, const struct profile_member *member)
{
    const double interval[] = {member->accuracy_low, member->accuracy_high};
    struct json json;
    result_writer(out, &json);
    result_group(out, NULL);
    result_text(out, "model", member->model);
    result_text(out, "output_dir", member->directory[0] ? member->directory : NULL);
    result_text(out, "error", member->why[0] ? member->why : NULL);
    summary_conditions_to_json(&json, "conditions", &member->conditions);
    result_integer(out, "queries", member->queries);
    result_integer(out, "completed", member->completed);
    result_number(out, "accuracy", member->accuracy, "%");
    result_between(out, "accuracy", interval[0], interval[1]);
    result_numbers(out, "accuracy_interval_95", interval, 2, "%");
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        put_figure(out, &FIGURES[i], member);
    energy_to_json(&json, "energy", &member->energy);
    result_flag(out, "on_frontier", member->on_frontier);
    result_end(out);
}

void profile_family_fill(const struct profile_family *family, struct result *out)
{
    result_begin(out, "demo");
    result_list(out, "models");
    for (size_t i = 0; i < family->count; i++)
        put_member(out, &family->members[i]);
    result_end(out);
    result_flag(out, "interrupted", family->signal != 0);
    result_end(out);
    result_table(out, "models", NULL);
}
