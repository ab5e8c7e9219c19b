/* test: valgrind */
/* Arrow files by columns: each value and each null, also inside null structs. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "port/arrow.h"
#include "port/json_read.h"
#include "support/tree.h"

static void add_row(struct arrow_writer *writer, const char *json)
{
    struct jv *row;
    struct error why = {0};
    assert_int_equal(jv_parse(json, strlen(json), &row, &why), ERR_OK);
    assert_int_equal(arrow_writer_add(writer, row, &why), ERR_OK);
    jv_free(row);
}

/* i: integer; s: {d: double, m: {t: text, b: bool}}, of which m may be null */
static void write_file(const char *folder, unsigned times)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    struct arrow_writer *writer;
    struct error why = {0};
    uint64_t fingerprint;
    arrow_field_add(root, "i", ARROW_INT64);
    struct arrow_field *outer = arrow_field_add(root, "s", ARROW_STRUCT);
    arrow_field_add(outer, "d", ARROW_DOUBLE);
    struct arrow_field *inner = arrow_field_add(outer, "m", ARROW_STRUCT);
    inner->may_be_null = true;
    arrow_field_add(inner, "t", ARROW_TEXT);
    arrow_field_add(inner, "b", ARROW_BOOL);
    assert_int_equal(arrow_writer_open(folder, "file.arrow", root, "k", "v", &writer, &why),
                     ERR_OK);
    for (unsigned i = 0; i < times; i++) {
        add_row(writer, "{\"i\": 7, \"s\": {\"d\": 1.5, \"m\": {\"t\": \"abc\", \"b\": true}}}");
        add_row(writer, "{\"s\": {\"d\": -2}}");
        add_row(writer, "{\"i\": -3, \"s\": {\"m\": {\"t\": \"\", \"b\": false}}}");
    }
    assert_int_equal(arrow_writer_finish(writer, &fingerprint, &why), ERR_OK);
    arrow_writer_close(writer);
    arrow_field_free(root);
}

struct places {
    struct arrow_path i, d, m, t, b;
};

static struct places find_all(const struct arrow_reader *reader)
{
    static const char *const I[] = {"i"}, *const D[] = {"s", "d"}, *const M[] = {"s", "m"};
    static const char *const T[] = {"s", "m", "t"}, *const B[] = {"s", "m", "b"};
    static const char *const NONE[] = {"s", "m", "t", "deeper"}, *const OTHER[] = {"x"};
    struct places places;
    struct arrow_path nothing;
    assert_true(arrow_reader_find(reader, I, 1, &places.i));
    assert_true(arrow_reader_find(reader, D, 2, &places.d));
    assert_true(arrow_reader_find(reader, M, 2, &places.m));
    assert_true(arrow_reader_find(reader, T, 3, &places.t));
    assert_true(arrow_reader_find(reader, B, 3, &places.b));
    assert_false(arrow_reader_find(reader, NONE, 4, &nothing));
    assert_false(arrow_reader_find(reader, OTHER, 1, &nothing));
    assert_int_equal(places.i.kind, ARROW_IS_NUMBER);
    assert_int_equal(places.m.kind, ARROW_IS_STRUCT);
    assert_int_equal(places.t.kind, ARROW_IS_TEXT);
    assert_string_equal(arrow_reader_child(reader, &places.m, 1), "b");
    assert_null(arrow_reader_child(reader, &places.m, 2));
    assert_null(arrow_reader_child(reader, &places.t, 0));
    return places;
}

static void check_batch(const struct arrow_reader *reader, const struct places *places, size_t rows)
{
    double *numbers = malloc(rows * sizeof *numbers);
    struct arrow_text *texts = malloc(rows * sizeof *texts);
    bool *known = malloc(rows * sizeof *known);
    uint64_t not_finite = 0;
    assert_true(numbers && texts && known);
    arrow_reader_numbers(reader, &places->i, numbers, &not_finite);
    assert_true(numbers[0] == 7 && isnan(numbers[1]) && numbers[2] == -3);
    arrow_reader_numbers(reader, &places->d, numbers, &not_finite);
    assert_true(numbers[0] == 1.5 && numbers[1] == -2 && isnan(numbers[2]));
    arrow_reader_numbers(reader, &places->b, numbers, &not_finite);
    assert_true(numbers[0] == 1 && isnan(numbers[1]) && numbers[2] == 0);
    arrow_reader_numbers(reader, &places->t, numbers, &not_finite); /* text is not a number */
    assert_true(isnan(numbers[0]));
    arrow_reader_known(reader, &places->m, known);
    assert_true(known[0] && !known[1] && known[2]);
    arrow_reader_texts(reader, &places->t, texts);
    assert_int_equal(texts[0].length, 3);
    assert_memory_equal(texts[0].bytes, "abc", 3);
    assert_null(texts[1].bytes);
    assert_true(texts[2].bytes && texts[2].length == 0);
    arrow_reader_texts(reader, &places->i, texts); /* and a number is not text */
    assert_null(texts[0].bytes);
    assert_int_equal(not_finite, 0);
    free(numbers);
    free(texts);
    free(known);
}

static void columns_have_every_value_and_null(void **state)
{
    (void)state;
    struct tree tree;
    struct arrow_reader *reader;
    struct error why = {0};
    char path[300];
    size_t rows, all = 0;
    tree_new(&tree);
    str_format(path, sizeof path, "%s/file.arrow", tree.root);
    write_file(tree.root, 900); /* more than a batch */
    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    struct places places = find_all(reader);
    do {
        assert_int_equal(arrow_reader_batch(reader, &rows, &why), ERR_OK);
        if (rows && all % 3 == 0)
            check_batch(reader, &places, rows);
        all += rows;
    } while (rows);
    assert_int_equal(all, 2700);
    assert_int_equal(arrow_reader_batch(reader, &rows, &why),
                     ERR_OK); /* end of data is permanent */
    assert_int_equal(rows, 0);
    arrow_reader_close(reader);
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_have_every_value_and_null)};
    return RUN_TESTS(tests);
}
