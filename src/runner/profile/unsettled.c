#include "runner/profile/unsettled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/start_sums.h"
#include "rundir/journal.h"

/* ---- sets of keys ---- */

static bool has(const struct unsettled *unsettled, const struct done_set *set, const char *key)
{
    uint64_t index;
    unsigned repeat;
    return query_key_parse(key, &index, &repeat) && repeat < unsettled->repeats &&
           done_has(set, index, repeat, unsettled->repeats);
}

/* A key that is none of ours is left out: it was damaged. */
static enum err add(const struct unsettled *unsettled, struct done_set *set, const char *key)
{
    uint64_t index;
    unsigned repeat;
    if (!query_key_parse(key, &index, &repeat) || repeat >= unsettled->repeats)
        return ERR_OK;
    return done_add(set, index, repeat, unsettled->repeats);
}

bool unsettled_has_query(const struct unsettled *unsettled, const char *key)
{
    return has(unsettled, &unsettled->queries, key);
}

bool unsettled_has_energy(const struct unsettled *unsettled, const char *key)
{
    return has(unsettled, &unsettled->energies, key);
}

bool unsettled_has_judge(const struct unsettled *unsettled, const char *key)
{
    return has(unsettled, &unsettled->judges, key);
}

bool unsettled_has_attempt(const struct unsettled *unsettled, const char *key, unsigned attempt,
                           bool cut_off)
{
    uint64_t index;
    unsigned repeat;
    if (!query_key_parse(key, &index, &repeat))
        return false;
    /* Failed attempts are few. */
    for (size_t i = 0; i < unsettled->attempt_count; i++) {
        const struct settled_attempt *one = &unsettled->attempts[i];
        if (one->index == index && one->repeat == repeat && one->attempt == attempt &&
            one->cut_off == cut_off)
            return true;
    }
    return false;
}

static bool next_key(const struct unsettled *unsettled, const struct done_set *set,
                     const struct done_set *without, struct unsettled_walk *walk, char *key,
                     size_t size)
{
    for (; walk->place / 8 < set->bytes; walk->place++) {
        uint64_t index = walk->place / unsettled->repeats;
        unsigned repeat = (unsigned)(walk->place % unsettled->repeats);
        if (!done_has(set, index, repeat, unsettled->repeats) ||
            done_has(without, index, repeat, unsettled->repeats))
            continue;
        query_key(index, repeat, key, size);
        walk->place++;
        return true;
    }
    return false;
}

bool unsettled_next_query(const struct unsettled *unsettled, struct unsettled_walk *walk, char *key,
                          size_t size)
{
    return next_key(unsettled, &unsettled->queries, &unsettled->energies, walk, key, size);
}

/* One that was judged before keeps what is known of that. */
bool unsettled_next_grade(const struct unsettled *unsettled, struct unsettled_walk *walk, char *key,
                          size_t size)
{
    while (next_key(unsettled, &unsettled->grades, &unsettled->judges, walk, key, size))
        if (!has(unsettled, &unsettled->judged_before, key))
            return true;
    return false;
}

/* ---- the journal ---- */

static enum err begin_start(struct unsettled *unsettled, const struct jv *line)
{
    struct text copy = {0};
    struct unsettled next = {
        .repeats = unsettled->repeats,
        .start = unsettled->start + 1,
        .started_at = jv_number(jv_get(line, "started_at")),
        .judge_from_s = UNKNOWN,
        .requests_joules = UNKNOWN,
        .judged_before = unsettled->judged_before,
    };
    unsettled->judged_before = (struct done_set){0};
    unsettled_release(unsettled);
    *unsettled = next;
    if (!jv_is_object(jv_get(line, "measuring")))
        return ERR_OK;
    enum err err = jv_print(jv_get(line, "measuring"), &copy);
    if (!err)
        err = jv_parse(text_get(&copy), copy.length, &unsettled->measuring, NULL);
    text_release(&copy);
    return err;
}

/* "2", or "1.2" of one that the kill of start 1 cut off. */
static enum err add_attempt(struct unsettled *unsettled, const char *key, const char *number)
{
    struct settled_attempt attempt = {0};
    const char *dot = strchr(number, '.');
    uint64_t value;
    if (!query_key_parse(key, &attempt.index, &attempt.repeat) ||
        parse_u64(dot ? dot + 1 : number, &value) != ERR_OK || value > UINT32_MAX)
        return ERR_OK;
    attempt.attempt = (unsigned)value;
    attempt.cut_off = dot != NULL;
    struct settled_attempt *attempts = grow(unsettled->attempts, &unsettled->attempt_capacity,
                                            unsettled->attempt_count, sizeof *attempts);
    if (!attempts)
        return ERR_NO_MEMORY;
    unsettled->attempts = attempts;
    attempts[unsettled->attempt_count++] = attempt;
    return ERR_OK;
}

static enum err take_energy(struct unsettled *unsettled, const char *key, const struct jv *own)
{
    const struct jv *energy = jv_get(own, "energy"), *attempts = jv_get(own, "failed_attempts");
    enum err err = ERR_OK;
    if (energy) {
        err = add(unsettled, &unsettled->energies, key);
        joules_add_known(&unsettled->requests_joules, jv_number(jv_get(energy, "joules")));
    }
    for (const struct jv *one = jv_first(attempts); one && !err; one = jv_next(one)) {
        err = add_attempt(unsettled, key, jv_key(one));
        joules_add_known(&unsettled->requests_joules, jv_number(jv_get(one, "joules")));
    }
    if (!err && jv_get(own, "judge_energy")) {
        err = add(unsettled, &unsettled->judges, key);
        if (!err)
            err = add(unsettled, &unsettled->judged_before, key);
    }
    return err;
}

static enum err take_line(void *context, const struct jv *line)
{
    struct unsettled *unsettled = context;
    const char *kind = jv_text(jv_get(line, "kind")), *key = jv_text(jv_get(line, "key"));
    if (!kind)
        return ERR_OK;
    if (strcmp(kind, "run") == 0)
        return begin_start(unsettled, line);
    if (strcmp(kind, "query") == 0 && key)
        return add(unsettled, &unsettled->queries, key);
    if (strcmp(kind, "grade") == 0 && key)
        return add(unsettled, &unsettled->grades, key);
    if (strcmp(kind, "energy") == 0 && key)
        return take_energy(unsettled, key, jv_get(line, "ipw"));
    if (strcmp(kind, "end") == 0)
        unsettled->ended = true;
    if (strcmp(kind, "judge") == 0)
        unsettled->judge_from_s = jv_number(jv_get(line, "at_s"));
    if (strcmp(kind, "judge") == 0 || strcmp(kind, "judged") == 0)
        unsettled->judging = strcmp(kind, "judge") == 0 && is_known(unsettled->judge_from_s);
    return ERR_OK;
}

enum err unsettled_read(const char *journal, unsigned repeats, struct unsettled *out,
                        struct error *why)
{
    uint64_t damaged;
    *out = (struct unsettled){.repeats = repeats};
    enum err err = journal_read(journal, take_line, out, &damaged, why);
    if (err == ERR_NO_MEMORY)
        err_set(why, err, "out of memory");
    return err;
}

void unsettled_release(struct unsettled *unsettled)
{
    jv_free(unsettled->measuring);
    done_release(&unsettled->queries);
    done_release(&unsettled->energies);
    done_release(&unsettled->grades);
    done_release(&unsettled->judges);
    done_release(&unsettled->judged_before);
    free(unsettled->attempts);
    *unsettled = (struct unsettled){0};
}
