/* test: valgrind */
#include "core/json_bind.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "support/unit.h"

/* ---- one member of each type ---- */

enum color { RED = 1, GREEN, BLUE };

static const char *color_name(int color)
{
    static const char *const NAMES[] = {"", "red", "green", "blue"};
    return NAMES[color];
}

struct point {
    double x;
    char label[8];
};

struct all {
    const char *line;
    double number, scaled, whole, positive;
    int64_t integer;
    int8_t known;
    struct json_any any;
    bool flag;
    int small;
    unsigned many;
    size_t size, ordinal;
    nanos t, wait;
    enum color color;
    char chars[8], name[8];
    char *owned, *word;
    char **words;
    size_t word_count;
    double *numbers;
    size_t number_count;
    double vector[2], matrix[2][2];
    double series[4];
    size_t series_count;
    struct point point;
    struct point *points;
    size_t point_count;
    struct point pair[2];
    size_t pair_count;
    double twice; /* of the custom type */
};

static void write_twice(struct json *json, const char *key, const struct json_field *field,
                        const void *object)
{
    json_number(json, key, 2 * *(const double *)json_field_member(field, object));
}

static enum err read_twice(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    struct all *all = object;
    double number = jv_number(value);
    if (!(number < 100))
        return json_refuse(at, field->path, "must be below %d", field->variant);
    all->twice = number / 2;
    return ERR_OK;
}

static const struct json_custom TWICE = {.write = write_twice, .read = read_twice};

static const struct json_field POINT_FIELDS[] = {
    BIND_NUMBER(point, x, "x", .flags = FIELD_REQUIRED, .min = -10, .max = 10),
    BIND_CHARS(point, label, "label", .flags = FIELD_NULL),
    {0},
};

static const struct json_field ALL_FIELDS[] = {
    BIND_CONSTANT("test.v1", "format", .flags = FIELD_REQUIRED),
    BIND_TEXT(all, line, "line", .least = 1, .most = 12),
    BIND_NUMBER(all, number, "nested.number"),
    BIND_NUMBER(all, scaled, "nested.deep.scaled_us", .factor = 1e-6, .max = 1e6),
    BIND_INTEGRAL(all, whole, "whole"),
    BIND_NUMBER(all, positive, "positive", .flags = FIELD_DEFAULT | FIELD_OMIT | FIELD_ABOVE,
                .max = 5, .otherwise = 1),
    BIND_INTEGER(all, integer, "integer"),
    BIND_BOOL(all, known, "known"),
    BIND_JSON(all, any, "any"),
    BIND_FLAG(all, flag, "flag"),
    BIND_INT(all, small, "small", .flags = FIELD_OMIT, .min = -1, .max = 99, .what = "level"),
    BIND_UNSIGNED(all, many, "many"),
    BIND_SIZE(all, size, "size"),
    BIND_ORDINAL(all, ordinal, "ordinal"),
    BIND_NANOS(all, t, "t_ns"),
    BIND_SECONDS(all, wait, "wait_s", .flags = FIELD_NULL),
    BIND_ENUM(all, color, color_name, RED, 3, "color"),
    BIND_CHARS(all, chars, "chars"),
    BIND_CHARS(all, name, "name", .flags = FIELD_NULL),
    BIND_STRING(all, owned, "owned", .flags = FIELD_ANY_TEXT),
    BIND_STRING(all, word, "word"),
    BIND_STRINGS(all, words, word_count, "words", .flags = FIELD_ANY_TEXT, .most = 3),
    BIND_NUMBERS(all, numbers, number_count, "numbers"),
    BIND_VECTOR(all, vector, "vector"),
    BIND_VECTOR(all, matrix, "matrix"),
    BIND_SERIES(all, series, series_count, "series"),
    BIND_OBJECT(all, point, POINT_FIELDS, "point"),
    BIND_LIST(all, points, point_count, POINT_FIELDS, "points", .most = 3),
    BIND_ARRAY(all, pair, pair_count, POINT_FIELDS, "pair", .flags = FIELD_OMIT),
    BIND_CUSTOM(all, twice, TWICE, "twice", .variant = 100),
    {0},
};

static const char FULL[] =
    "{\"format\":\"test.v1\",\"line\":\"a line\",\"nested\":{\"number\":0.1,\"deep\":"
    "{\"scaled_us\":0.3}},\"whole\":7,\"positive\":2.5,\"integer\":-9007199254740993,"
    "\"known\":true,\"any\":{\"a\":[1,null]},\"flag\":true,\"small\":-1,\"many\":4294967295,"
    "\"size\":12,\"ordinal\":3,\"t_ns\":1700000000123456789,\"wait_s\":1.5,\"color\":\"blue\","
    "\"chars\":\"\",\"name\":\"seven77\",\"owned\":\"two\\nlines\",\"word\":\"w\","
    "\"words\":[\"a\",\"\",\"b\\tc\"],\"numbers\":[1,null,2.5],\"vector\":[1,2],"
    "\"matrix\":[1,2,3,4],\"series\":[1,2,3],\"point\":{\"x\":1,\"label\":\"p\"},"
    "\"points\":[{\"x\":-10,\"label\":null},{\"x\":10,\"label\":\"q\"}],"
    "\"pair\":[{\"x\":0,\"label\":null}],\"twice\":8}";

static struct jv *parsed(const char *json)
{
    struct jv *tree = NULL;
    struct error why = {0};
    if (jv_parse(json, strlen(json), &tree, &why))
        fail_msg("%s: %s", json, why.text);
    return tree;
}

static void assert_written(const struct all *all, const char *expected)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_fields_write_object(&json, NULL, ALL_FIELDS, all);
    assert_string_equal(text_get(&text), expected);
    text_release(&text);
}

static void every_type_returns_from_json(void **state)
{
    (void)state;
    struct jv *tree = parsed(FULL);
    for (int strict = 0; strict < 2; strict++) {
        struct all all;
        struct error why = {0};
        json_fields_clear(ALL_FIELDS, &all);
        enum err err = strict ? json_fields_read_strict(tree, ALL_FIELDS, &all, "the test", &why)
                              : json_fields_read(tree, ALL_FIELDS, &all);
        if (err)
            fail_msg("%s", why.text);
        assert_true(all.scaled == 0.3 * 1e-6 && all.positive == 2.5 && all.twice == 4);
        assert_int_equal(all.ordinal, 2);
        assert_int_equal(all.t, 1700000000123456789);
        assert_int_equal(all.wait, 1500 * NS_PER_MS);
        assert_int_equal(all.color, BLUE);
        assert_int_equal(all.word_count, 3);
        assert_null(all.words[3]);
        assert_string_equal(all.words[2], "b\tc");
        assert_true(isnan(all.numbers[1]) && all.matrix[1][0] == 3 && all.series_count == 3);
        assert_int_equal(all.point_count, 2);
        assert_string_equal(all.points[1].label, "q");
        assert_written(&all, FULL);
        struct jv *value = json_fields_value(ALL_FIELDS, &all);
        struct text text = {0};
        assert_int_equal(jv_print(value, &text), ERR_OK);
        assert_string_equal(text_get(&text), FULL);
        text_release(&text);
        jv_free(value);
        json_fields_release(ALL_FIELDS, &all);
        assert_null(all.words);
        assert_null(all.points);
    }
    jv_free(tree);
}

/* What is unknown is null, and is left out only where the row says so. */
static void cleared_structs_are_null(void **state)
{
    (void)state;
    static const char EMPTY[] =
        "{\"format\":\"test.v1\",\"line\":null,\"nested\":{\"number\":null,\"deep\":"
        "{\"scaled_us\":null}},\"whole\":null,\"integer\":null,\"known\":null,\"any\":null,"
        "\"flag\":false,\"many\":0,\"size\":0,\"ordinal\":1,\"t_ns\":0,\"wait_s\":null,"
        "\"color\":\"red\",\"chars\":\"\",\"name\":null,\"owned\":null,\"word\":null,"
        "\"words\":[],\"numbers\":[],\"vector\":[null,null],\"matrix\":[null,null,null,null],"
        "\"series\":[],\"point\":{\"x\":null,\"label\":null},\"points\":[],\"twice\":0}";
    struct all all = {0};
    json_fields_clear(ALL_FIELDS, &all);
    assert_true(all.positive == 1); /* its default */
    assert_written(&all, EMPTY);
    struct jv *tree = parsed("{\"format\":\"test.v1\"}");
    struct error why = {0};
    assert_int_equal(json_fields_read_strict(tree, ALL_FIELDS, &all, "the test", &why), ERR_OK);
    assert_true(all.positive == 1);
    assert_written(&all, EMPTY);
    json_fields_release(ALL_FIELDS, &all);
    jv_free(tree);
}

/* ---- refusals ---- */

static const struct {
    const char *old, *new, *message;
} REFUSED[] = {
    {"\"format\":\"test.v1\",", "", "format: is missing"},
    {"test.v1", "test.v2", "format: must be \"test.v1\""},
    {"\"a line\"", "7", "line: must be one line of text without control characters, 1 to 12 bytes"},
    {"\"a line\"", "\"a\\nline\"", "line: must be one line of text"},
    {"\"a line\"", "\"\"", "line: must be one line of text"},
    {"\"a line\"", "\"more than 12 bytes\"", "line: must be one line of text"},
    {"\"number\":0.1", "\"number\":\"0.1\"", "nested.number: must be a finite number"},
    {"\"number\":0.1", "\"number\":1e999", "nested.number: must be a finite number"},
    {"\"scaled_us\":0.3", "\"scaled_us\":-1",
     "nested.deep.scaled_us: must be a number from 0, at most 1e+06"},
    {"\"scaled_us\":0.3", "\"scaled_us\":1000001", "nested.deep.scaled_us: must be a number"},
    {"\"positive\":2.5", "\"positive\":0", "positive: must be a number above 0, at most 5"},
    {"-9007199254740993", "0.5", "integer: must be a whole number"},
    {"\"known\":true", "\"known\":1", "known: must be true or false"},
    {"\"flag\":true", "\"flag\":0", "flag: must be true or false"},
    {"\"small\":-1", "\"small\":100", "small: must be a level, -1 to 99"},
    {"\"small\":-1", "\"small\":1.5", "small: must be a level, -1 to 99"},
    {"4294967295", "4294967296", "many: must be a whole number, 0 to 4294967295"},
    {"\"size\":12", "\"size\":-1", "size: must be a whole number, 0 to"},
    {"\"ordinal\":3", "\"ordinal\":0", "ordinal: must be a whole number, 1 to"},
    {"1700000000123456789", "-1", "t_ns: must be a whole number, 0 to"},
    {"\"wait_s\":1.5", "\"wait_s\":1e10", "wait_s: must be a number of seconds, at most 9e+09"},
    {"\"blue\"", "\"blu\"", "color: unknown color 'blu': did you mean 'blue'?"},
    {"\"blue\"", "3", "color: must be one line of text"},
    {"\"chars\":\"\"", "\"chars\":\"8 bytes!\"", "chars: must be shorter than 8 bytes"},
    {"\"chars\":\"\"", "\"chars\":\"\\u001b[1m\"", "chars: must be one line of text"},
    {"\"word\":\"w\"", "\"word\":\"w\\r\"", "word: must be one line of text"},
    {"\"words\":[", "\"words\":[\"d\",", "words: must be an array of 0 to 3"},
    {"\"words\":[\"a\"", "\"words\":[1", "words: must be text"},
    {"\"numbers\":[1,", "\"numbers\":[true,", "numbers: must be an array of numbers"},
    {"\"vector\":[1,2]", "\"vector\":[1]", "vector: must be an array of 2 numbers"},
    {"\"series\":[1,2,3]", "\"series\":[1,2,3,4,5]", "series: must be an array of 0 to 4"},
    {"\"point\":{\"x\":1", "\"point\":{\"y\":1", "point.y: unknown key: did you mean 'x'?"},
    {"{\"x\":1,\"label\":\"p\"}", "[1]", "point: must be an object"},
    {"{\"x\":10,", "{", "points.1.x: is missing"},
    {"{\"x\":10,", "{\"x\":11,", "points.1.x: must be a number from -10, at most 10"},
    {"{\"x\":10,\"label\":\"q\"}", "7", "points.1: must be an object"},
    {"\"points\":[", "\"points\":[{\"x\":1},{\"x\":1},", "points: must be an array of 0 to 3"},
    {"\"points\":[", "\"pair\":[], \"points\":[", "pair: given more than once"},
    {"\"twice\":8", "\"twice\":800", "twice: must be below 100"},
    {"\"number\":0.1,", "\"number\":0.1,\"numbr\":1,",
     "nested.numbr: unknown key: did you mean 'number'?"},
    {"\"number\":0.1,", "\"number\":0.1,\"zzz\":1,", "nested.zzz: unknown key: see the test"},
    {"{\"number\":0.1,\"deep\":{\"scaled_us\":0.3}}", "[]", "nested: must be an object"},
};

static void replace(struct text *out, const char *json, const char *old, const char *new)
{
    const char *at = strstr(json, old);
    if (!at)
        fail_msg("no %s", old);
    text_clear(out);
    text_add_bytes(out, json, (size_t)(at - json));
    text_add(out, new);
    text_add(out, at + strlen(old));
}

static void values_that_violate_their_row_are_refused(void **state)
{
    (void)state;
    struct text changed = {0};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct all all;
        struct error why = {0};
        replace(&changed, FULL, REFUSED[i].old, REFUSED[i].new);
        struct jv *tree = parsed(text_get(&changed));
        enum err err = json_fields_read_strict(tree, ALL_FIELDS, &all, "the test", &why);
        if (err != ERR_BAD_VALUE || !str_starts(why.text, REFUSED[i].message))
            fail_msg("%s: %d, expected '%s': %s", REFUSED[i].new, err, REFUSED[i].message,
                     why.text);
        assert_null(all.points); /* released */
        json_fields_clear(ALL_FIELDS, &all);
        assert_int_equal(json_fields_read(tree, ALL_FIELDS, &all), ERR_OK); /* ignores it */
        json_fields_release(ALL_FIELDS, &all);
        jv_free(tree);
    }
    text_release(&changed);
}

static void other_keys_are_ignored_without_a_manual(void **state)
{
    (void)state;
    struct all all;
    struct error why = {0};
    struct jv *tree = parsed("{\"format\":\"test.v1\",\"fmt\":1,\"nested\":{\"zzz\":2},"
                             "\"points\":[{\"x\":1,\"y\":2}]}");
    assert_int_equal(json_fields_read_strict(tree, ALL_FIELDS, &all, NULL, &why), ERR_OK);
    assert_int_equal(all.point_count, 1);
    json_fields_release(ALL_FIELDS, &all);
    jv_free(tree);
    static const char *const OTHERS[] = {"[]", "7", "null", "\"text\""};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        tree = parsed(OTHERS[i]);
        assert_int_equal(json_fields_read_strict(tree, ALL_FIELDS, &all, NULL, &why),
                         ERR_BAD_VALUE);
        assert_string_equal(why.text, "must be an object");
        jv_free(tree);
    }
}

/* Text that fits no char array is truncated, not lost, and made safe to display. */
/* A renamed key, and one that moved to another object. */
static void former_keys_are_read_and_never_written(void **state)
{
    static const struct json_field FIELDS[] = {
        BIND_NUMBER(point, x, "max", .former = "most", .flags = FIELD_REQUIRED),
        BIND_CHARS(point, label, "shown.label", .former = "text.label"),
        {0},
    };
    static const struct {
        const char *json, *problem;
        double x;
    } CASES[] = {
        {"{\"max\":3,\"shown\":{\"label\":\"a\"}}", NULL, 3},
        {"{\"most\":3,\"text\":{\"label\":\"a\"}}", NULL, 3},
        {"{\"text\":{\"label\":\"a\"},\"max\":null,\"most\":3}", NULL, 3},
        {"{\"most\":2,\"max\":3,\"shown\":{\"label\":\"a\"}}", NULL, 3},
        {"{\"least\":2}", "least: unknown key: see docs", 0},
        {"{\"text\":{\"label\":\"a\"}}", "max: is missing", 0},
        {"{\"most\":\"3\"}", "max: must be a finite number", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct jv *tree = NULL;
        struct point point;
        struct error why = {0};
        struct text out = {0};
        struct json json;
        assert_int_equal(jv_parse(CASES[i].json, strlen(CASES[i].json), &tree, NULL), ERR_OK);
        enum err err = json_fields_read_strict(tree, FIELDS, &point, "docs", &why);
        assert_int_equal(err, CASES[i].problem ? ERR_BAD_VALUE : ERR_OK);
        if (CASES[i].problem) {
            assert_string_equal(why.text, CASES[i].problem);
        } else {
            assert_near(point.x, CASES[i].x, 0);
            assert_string_equal(point.label, "a");
            json_init(&json, &out, false);
            json_fields_write_object(&json, NULL, FIELDS, &point);
            assert_string_equal(text_get(&out), "{\"max\":3,\"shown\":{\"label\":\"a\"}}");
        }
        text_release(&out);
        jv_free(tree);
    }
}

static void lenient_readers_keep_what_fits(void **state)
{
    (void)state;
    struct all all;
    struct jv *tree = parsed("{\"chars\":\"too long for it\",\"name\":\"a\\nb\",\"many\":-1,"
                             "\"small\":1000,\"series\":[1,2,3,4,5],\"vector\":[1,2,3],"
                             "\"points\":[7,{\"x\":99},{\"x\":1},{\"x\":2}],\"pair\":[{},{},{\"x\":"
                             "3}],\"color\":\"mauve\",\"nested\":7}");
    json_fields_clear(ALL_FIELDS, &all);
    assert_int_equal(json_fields_read(tree, ALL_FIELDS, &all), ERR_OK);
    assert_string_equal(all.chars, "too lon");
    assert_string_equal(all.name, "a\\nb");
    assert_int_equal(all.many, 0);
    assert_int_equal(all.small, 0);
    assert_int_equal(all.series_count, 0);
    assert_true(isnan(all.vector[0]));
    assert_int_equal(all.point_count, 3);
    assert_true(isnan(all.points[0].x) && isnan(all.points[1].x) && all.points[2].x == 1);
    assert_int_equal(all.pair_count, 2);
    assert_int_equal(all.color, RED);
    json_fields_release(ALL_FIELDS, &all);
    jv_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_returns_from_json),
        cmocka_unit_test(cleared_structs_are_null),
        cmocka_unit_test(values_that_violate_their_row_are_refused),
        cmocka_unit_test(other_keys_are_ignored_without_a_manual),
        cmocka_unit_test(former_keys_are_read_and_never_written),
        cmocka_unit_test(lenient_readers_keep_what_fits),
    };
    return RUN_TESTS(tests);
}
