/* The table of a record's fields, generated from record.def, and records as JSON. */
#include "rundir/record.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/energy.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/run_table.h"

/* ---- the table ---- */

#define AT(member, type_, path_)                                                                   \
    .at.path = (path_), .at.type = FIELD_##type_, .at.offset = offsetof(struct record, member)

const struct record_field RECORD_FIELDS[] = {
#define FIELD(member, type_, path_, unit_, description_, ...)                                      \
    {AT(member, type_, path_), .role = ROLE_FIELD, .unit = (unit_), .description = (description_), \
     VIEWS(__VA_ARGS__)},
#define PART(member, type_, path_, unit_, description_, ...)                                       \
    {AT(member, type_, path_), .role = ROLE_PART, .unit = (unit_), .description = (description_),  \
     VIEWS(__VA_ARGS__)},
#define EXTRA(member, type_, path_, unit_, description_, ...)                                      \
    {AT(member, type_, path_), .role = ROLE_EXTRA, .unit = (unit_), .description = (description_), \
     VIEWS(__VA_ARGS__)},
#define STATS(member, path_, unit_, description_, avg_views, max_views)                            \
    {AT(member.avg, NUMBER, path_ ".avg"), .role = ROLE_FIELD, .unit = (unit_),                    \
     .description = (description_), VIEWS avg_views},                                              \
        {AT(member.max, NUMBER, path_ ".max"), .role = ROLE_FIELD, .unit = (unit_),                \
         .description = (description_), VIEWS max_views},                                          \
        {AT(member.median, NUMBER, path_ ".median"), .role = ROLE_FIELD, .unit = (unit_),          \
         .description = (description_)},                                                           \
        {AT(member.min, NUMBER, path_ ".min"), .role = ROLE_FIELD, .unit = (unit_),                \
         .description = (description_)},
#define GROUP(type_, member, path_) {AT(member, JSON, path_), .role = ROLE_GROUP},
#define NULLABLE(path_)             {.at = {.path = (path_)}, .role = ROLE_NULLABLE},
#define EMPTY(path_)                {.at = {.path = (path_)}, .role = ROLE_EMPTY},
#define DERIVED(type_, paths, unit_, description_, ...)                                            \
    {.at = {.path = (paths), .type = FIELD_##type_},                                               \
     .role = ROLE_DERIVED,                                                                         \
     .unit = (unit_),                                                                              \
     .description = (description_),                                                                \
     VIEWS(__VA_ARGS__)},
#define NUMBER_COLUMN(constant, name_, label_)                                                     \
    (.column_kind = COLUMN_NUMBER, .column = RUN_##constant, .name = (name_), .label = (label_), )
#define FLAG_COLUMN(constant, name_, label_)                                                       \
    (.column_kind = COLUMN_FLAG, .column = RUN_##constant, .name = (name_), .label = (label_), )
#define WORD_COLUMN(constant, name_, label_)                                                       \
    (.column_kind = COLUMN_WORD, .column = RUN_##constant, .name = (name_), .label = (label_), )
#define EXPORT(name_)      (.export_name = #name_, )
#define FORMER(path, name) (.at.former = (path), .former_export_name = #name, )
#define STATISTIC(constant, key, label_, unit_, scale)                                             \
    (.statistic_key = (key), .statistic_label = (label_), .statistic_unit = (unit_),               \
     .statistic_scale = (scale), )
#include "rundir/record.def"
    {.at = {.path = NULL}},
};
enum { ROWS = COUNT_OF(RECORD_FIELDS) - 1 };

/* ---- order ---- */

static const char *const EXPORT_NAMES[] = {
#define EXPORT(name) (#name, )
#include "rundir/record.def"
};
static const char *const STATISTIC_KEYS[] = {
#define STATISTIC(constant, key, label, unit, scale) (key, )
#include "rundir/record.def"
};
static const char *const FIRST_EXPORTS[] = {
#define FROZEN_EXPORTS(...) __VA_ARGS__
#include "rundir/record.def"
};
static const char *const FIRST_STATISTICS[] = {
#define FROZEN_STATISTICS(...) __VA_ARGS__
#include "rundir/record.def"
};

void record_order(const char *const *names, size_t count, const char *const *frozen,
                  size_t frozen_count, size_t *order)
{
    size_t places = 0;
    for (size_t i = 0; i < frozen_count; i++)
        for (size_t row = 0; row < count; row++)
            if (str_equal(names[row], frozen[i]))
                order[places++] = row;
    for (size_t row = 0; row < count; row++)
        if (!str_is_listed(names[row], frozen, frozen_count))
            order[places++] = row;
}

/* Rows by place, by statistic and by column; built once. */
static const struct record_field *EXPORTS[RECORD_EXPORTS];
static const struct record_field *STATISTICS[RECORD_STATISTICS];
static size_t STATISTIC_ORDER[RECORD_STATISTICS];
static const struct record_field *NUMBERS[RUN_NUMBERS], *FLAGS[RUN_FLAGS], *WORDS[RUN_WORDS];

static void find_views(void)
{
    const struct record_field *exports[RECORD_EXPORTS];
    size_t export_count = 0, statistics = 0, order[RECORD_EXPORTS];
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++) {
        if (field->export_name)
            exports[export_count++] = field;
        if (field->statistic_key)
            STATISTICS[statistics++] = field;
        if (field->column_kind == COLUMN_NUMBER)
            NUMBERS[field->column] = field;
        if (field->column_kind == COLUMN_FLAG)
            FLAGS[field->column] = field;
        if (field->column_kind == COLUMN_WORD)
            WORDS[field->column] = field;
    }
    record_order(EXPORT_NAMES, RECORD_EXPORTS, FIRST_EXPORTS, COUNT_OF(FIRST_EXPORTS), order);
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        EXPORTS[i] = exports[order[i]];
    record_order(STATISTIC_KEYS, RECORD_STATISTICS, FIRST_STATISTICS, COUNT_OF(FIRST_STATISTICS),
                 STATISTIC_ORDER);
}

static void init_views(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_views);
}

const struct record_field *record_export(size_t place)
{
    init_views();
    return EXPORTS[place];
}

const struct record_field *record_statistic(enum record_statistic statistic)
{
    init_views();
    return STATISTICS[statistic];
}

enum record_statistic record_statistic_at(size_t place)
{
    init_views();
    return (enum record_statistic)STATISTIC_ORDER[place];
}

const struct record_field *record_column(enum record_column_kind kind, int column)
{
    init_views();
    switch (kind) {
    case COLUMN_NUMBER:
        return NUMBERS[column];
    case COLUMN_FLAG:
        return FLAGS[column];
    case COLUMN_WORD:
        return WORDS[column];
    default:
        return NULL;
    }
}

/* ---- members ---- */

static bool is_member(const struct record_field *field)
{
    return field->role == ROLE_FIELD || field->role == ROLE_EXTRA || field->role == ROLE_PART;
}

/* A record with only unknown values, built once: a run has millions of records. */
static struct record BLANK;

static void init_blank(void)
{
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (is_member(field))
            json_field_clear(&field->at, &BLANK);
}

void record_init(struct record *record)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_blank);
    *record = BLANK;
}

/* ---- energy ---- */

struct record_energy record_energy_of(const struct energy *energy)
{
    return (struct record_energy){
        .joules = energy->joules,
        .plus_minus = energy->plus_minus,
        .statistical = energy->statistical,
        .coverage = energy->coverage,
        .idle_joules = energy->idle_joules,
        .active_joules = energy->active_joules,
        .method = method_name(energy->method),
        .source = energy->source[0] ? energy->source : NULL,
        .updates = energy->method == METHOD_NONE ? INTEGER_UNKNOWN : (int64_t)energy->updates,
        .low_confidence = (int8_t)energy->low_confidence,
        .note = energy->note[0] ? energy->note : NULL,
    };
}

void record_energy_get(const struct record_energy *from, struct energy *out)
{
    *out = energy_unknown(from->note ? from->note : "not recorded");
    for (enum method m = METHOD_COUNTER; from->method && m <= METHOD_ESTIMATED; m++)
        if (str_equal(method_name(m), from->method))
            out->method = m;
    if (out->method == METHOD_NONE)
        return;
    out->joules = from->joules;
    out->plus_minus = from->plus_minus;
    out->statistical = from->statistical;
    out->coverage = from->coverage;
    out->idle_joules = from->idle_joules;
    out->active_joules = from->active_joules;
    out->low_confidence = from->low_confidence == 1;
    out->updates = from->updates > 0 ? (unsigned long)from->updates : 0;
    chars_copy(out->source, from->source ? from->source : "");
    chars_copy(out->note, from->note ? from->note : "");
}

/* Order as in core/energy.c and all our files; Arrow has another. */
const struct json_field RECORD_ENERGY_FIELDS[] = {
#define ENERGY_FIELD(key, type_, member)                                                           \
    {.path = (key), .type = FIELD_##type_, .offset = offsetof(struct record_energy, member)}
    ENERGY_FIELD("joules", NUMBER, joules),
    ENERGY_FIELD("plus_minus", NUMBER, plus_minus),
    ENERGY_FIELD("plus_minus_statistical", NUMBER, statistical),
    ENERGY_FIELD("method", TEXT, method),
    ENERGY_FIELD("source", TEXT, source),
    ENERGY_FIELD("coverage", NUMBER, coverage),
    ENERGY_FIELD("idle_joules", NUMBER, idle_joules),
    ENERGY_FIELD("active_joules", NUMBER, active_joules),
    ENERGY_FIELD("updates", INTEGER, updates),
    ENERGY_FIELD("low_confidence", BOOL, low_confidence),
    ENERGY_FIELD("note", TEXT, note),
    {0},
};

void record_energy_from_json(const struct jv *value, struct record_energy *out)
{
    json_fields_clear(RECORD_ENERGY_FIELDS, out);
    (void)json_fields_read(value, RECORD_ENERGY_FIELDS, out);
}

/* ---- JSON ---- */

/* What deciding whether a value is written needs of its row: a line has few of the values, and the rows are so large
 * that reading them all took longer than writing the line. */
struct line_field {
    uint16_t row, offset;
    uint8_t type, role;
};
static struct line_field LINE_FIELDS[ROWS];
static size_t LINE_FIELD_COUNT;

static void find_line_fields(void)
{
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (is_member(field) || field->role == ROLE_GROUP)
            LINE_FIELDS[LINE_FIELD_COUNT++] = (struct line_field){
                .row = (uint16_t)(field - RECORD_FIELDS),
                .offset = (uint16_t)field->at.offset,
                .type = (uint8_t)field->at.type,
                .role = (uint8_t)field->role,
            };
}
static_assert(sizeof(struct record) <= UINT16_MAX, "offsets of line fields");

static bool is_line_field_known(const struct line_field *field, const struct record *record)
{
    const void *member = (const char *)record + field->offset;
    if (field->type == FIELD_NUMBER || field->type == FIELD_INTEGRAL)
        return is_known(*(const double *)member);
    if (field->type == FIELD_TEXT)
        return *(const char *const *)member;
    return json_field_is_known(&RECORD_FIELDS[field->row].at, record);
}

/* Whether any part of the group is known.  Its parts follow its row. */
static bool is_group_known(const struct line_field *group, const struct record *record)
{
    const struct line_field *end = LINE_FIELDS + LINE_FIELD_COUNT;
    for (const struct line_field *part = group + 1; part < end && part->role == ROLE_PART; part++)
        if (is_line_field_known(part, record))
            return true;
    return false;
}

void record_line(const struct record *record, const char *model, const char *kind, const char *key,
                 struct text *line)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct json json;
    struct json_field_writer writer = {.json = &json, .base = record_base(model)};
    pthread_once(&once, find_line_fields);
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", kind);
    json_string(&json, "key", key);
    for (size_t i = 0; i < LINE_FIELD_COUNT; i++) {
        const struct line_field *field = &LINE_FIELDS[i];
        const struct json_field *row = &RECORD_FIELDS[field->row].at;
        if (field->role == ROLE_GROUP && is_group_known(field, record))
            json_fields_write_object(&json, json_field_enter(&writer, row->path),
                                     RECORD_ENERGY_FIELDS, json_field_member(row, record));
        else if ((field->role == ROLE_FIELD || field->role == ROLE_EXTRA) &&
                 is_line_field_known(field, record))
            json_field_write(&writer, row, record);
    }
    json_field_writer_end(&writer);
    json_object_end(&json);
}

bool record_counts_board(const char *basis, const char *backend, bool is_board_known)
{
    bool board =
        basis && basis[0] ? str_equal(basis, "soc") : backend && str_equal(backend, "powermetrics");
    return board && is_board_known;
}

static void set_basis(struct record *record)
{
    bool has_board = is_known(record->soc_joules) || is_known(record->soc_watts.avg);
    if (record_counts_board(record->energy_basis, record->gpu_backend, has_board))
        record->energy_basis = "soc";
    else
        record->energy_basis =
            is_known(record->gpu_joules) || is_known(record->gpu_watts.avg) ? "gpu" : NULL;
}

void record_from_json(const struct jv *tree, const char *model, struct record *out)
{
    struct json_field_reader reader = {.root = tree, .base = record_base(model)};
    record_init(out);
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (is_member(field))
            json_field_read(&reader, &field->at, out);
    if (!jv_is_object(jv_get(tree, "ipw")))
        set_basis(out);
}

const struct jv *record_models(const struct jv *tree)
{
    return jv_get(tree, RECORD_MODELS);
}

const char *better_name(int better)
{
    static const char *const NAMES[] = {"lower", "neither", "higher"};
    return NAMES[better - BETTER_LOWER];
}

/* ---- fields that hold JSON ---- */

void record_put_evaluation(struct record *record, const struct evaluation *evaluation,
                           struct text *text)
{
    struct json json;
    text_clear(text);
    json_init(&json, text, false);
    json_object(&json, NULL);
    json_string(&json, "grader", evaluation->grader);
    json_optional_string(&json, "judge", str_or_null(evaluation->judge));
    json_optional_number(&json, "score", evaluation->score);
    json_optional_string(&json, "label", str_or_null(evaluation->label));
    json_optional_string(&json, "extracted", str_or_null(evaluation->extracted));
    json_optional_string(&json, "reason", str_or_null(evaluation->reason));
    json_integer(&json, "evaluation_attempts", evaluation->attempts ? evaluation->attempts : 1);
    if (evaluation->is_undecided) /* key of the Python IPW */
        json_bool(&json, "evaluation_failed", true);
    json_object_end(&json);
    record->evaluation = text_get(text);
}

void record_evaluation(const struct record *record, struct evaluation *out)
{
    struct jv *tree = NULL;
    *out = (struct evaluation){.score = UNKNOWN};
    if (!record->evaluation ||
        jv_parse(record->evaluation, strlen(record->evaluation), &tree, NULL) != ERR_OK)
        return;
    chars_copy(out->grader, text_or_empty(jv_get_text(tree, "grader")));
    chars_copy(out->reason, text_or_empty(jv_get_text(tree, "reason")));
    out->score = jv_get_number(tree, "score");
    jv_free(tree);
}

static const char GRADED[] = "graded", UNREAD[] = "unread", UNGRADED[] = "ungraded";

void record_put_verdict(struct record *record, int correct, bool is_unread)
{
    record->grading = is_unread ? UNREAD : correct >= 0 ? GRADED : UNGRADED;
    if (!is_unread)
        record->correct = (int8_t)correct;
    if (is_unread || correct >= 0)
        record->lm_correctness = (int8_t)(!is_unread && correct);
}

int grading_is_unread(const char *status)
{
    return status && status[0] ? str_equal(status, UNREAD) : -1;
}

void record_device_to_json(struct json *list, const struct record_device *device)
{
    const struct energy *energy = device->energy;
    json_object(list, NULL);
    json_string(list, "id", device->id);
    json_bool(list, "in_total", device->in_total);
    json_number(list, "joules", energy->joules);
    json_number(list, "plus_minus", energy->plus_minus);
    json_string(list, "method", method_name(energy->method));
    json_string(list, "source", energy->source);
    json_number(list, "coverage", energy->coverage);
    json_number(list, "idle_joules", energy->idle_joules);
    json_number(list, "prefill_joules", device->prefill_joules);
    json_number(list, "decode_joules", device->decode_joules);
    json_number(list, "window_joules", device->window_joules);
    json_object_end(list);
}

void record_put_failed_attempt(struct record *record, unsigned attempt, const struct energy *energy,
                               struct text *text)
{
    struct json json;
    char number[32];
    chars_format(number, "%u", attempt);
    text_clear(text);
    json_init(&json, text, false);
    json_object(&json, NULL);
    energy_to_json(&json, number, energy);
    json_object_end(&json);
    record->failed_attempts.text = text_get(text);
}

double record_failed_joules(const struct record *record)
{
    double sum = 0;
    JV_EACH (one, jv_first(record->failed_attempts.value)) {
        double joules = jv_get_number(one, "joules");
        sum += is_known(joules) ? joules : 0;
    }
    return sum;
}
