/* test: valgrind */
/* Arrow files: what is written is read back, and damage is reported. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "port/arrow.h"
#include "port/json_read.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static char path[256];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/file.arrow", tree.root);
    return 0;
}

/* text, double, int64, bool, and a struct of a text and of a struct that may be null */
static struct arrow_field *tree_of_fields(void)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    assert_non_null(arrow_field_add(root, "t", ARROW_TEXT));
    assert_non_null(arrow_field_add(root, "d", ARROW_DOUBLE));
    assert_non_null(arrow_field_add(root, "i", ARROW_INT64));
    assert_non_null(arrow_field_add(root, "b", ARROW_BOOL));
    struct arrow_field *group = arrow_field_add(root, "s", ARROW_STRUCT);
    assert_non_null(arrow_field_add(group, "x:y", ARROW_TEXT));
    struct arrow_field *maybe = arrow_field_add(group, "m", ARROW_STRUCT);
    maybe->may_be_null = true;
    assert_non_null(arrow_field_add(maybe, "z", ARROW_DOUBLE));
    assert_non_null(arrow_field_add(root, "e", ARROW_STRUCT));
    return root;
}

static void add_row(struct arrow_writer *writer, const char *json)
{
    struct jv *row;
    struct error why = {0};
    assert_int_equal(jv_parse(json, strlen(json), &row, &why), ERR_OK);
    assert_int_equal(arrow_writer_add(writer, row, &why), ERR_OK);
    jv_free(row);
}

static void write_rows(const char *const *rows, size_t count, uint64_t *fingerprint)
{
    struct arrow_field *root = tree_of_fields();
    struct arrow_writer *writer;
    struct error why = {0};
    assert_int_equal(
        arrow_writer_open(tree.root, "file.arrow", root, "key", "value", &writer, &why), ERR_OK);
    for (size_t i = 0; i < count; i++)
        add_row(writer, rows[i]);
    assert_int_equal(arrow_writer_finish(writer, fingerprint, &why), ERR_OK);
    arrow_writer_close(writer);
    arrow_field_free(root);
}

#define NOTHING "\"s\":{\"x:y\":null,\"m\":null},\"e\":{}}"

static const struct {
    const char *given, *read;
} ROWS[] = {
    {"{\"t\":\"a\",\"d\":0.1,\"i\":3,\"b\":true,\"s\":{\"x:y\":\"k\",\"m\":{\"z\":2}},\"e\":{\"q\":"
     "1}}",
     "{\"t\":\"a\",\"d\":0.1,\"i\":3,\"b\":true,\"s\":{\"x:y\":\"k\",\"m\":{\"z\":2}},\"e\":{}}"},
    {"{}", "{\"t\":null,\"d\":null,\"i\":null,\"b\":null," NOTHING},
    /* wrong types */
    {"{\"t\":null,\"d\":\"1\",\"i\":1.5,\"b\":1,\"s\":7,\"e\":[]}",
     "{\"t\":null,\"d\":null,\"i\":null,\"b\":null," NOTHING},
    {"{\"d\":true,\"i\":true,\"s\":{\"x:y\":null,\"m\":\"no\"}}",
     "{\"t\":null,\"d\":null,\"i\":null,\"b\":null," NOTHING},
    /* an int where a double is expected; the largest integers */
    {"{\"d\":7,\"i\":4611686018427387904,\"b\":false}",
     "{\"t\":null,\"d\":7,\"i\":4611686018427387904,\"b\":false," NOTHING},
    {"{\"d\":-0.0,\"i\":-9223372036854775808}",
     "{\"t\":null,\"d\":-0,\"i\":-9223372036854775808,\"b\":null," NOTHING},
    {"{\"i\":6917529027641081856}",
     "{\"t\":null,\"d\":null,\"i\":6917529027641081856,\"b\":null," NOTHING},
    {"{\"i\":9223372036854775808}", "{\"t\":null,\"d\":null,\"i\":null,\"b\":null," NOTHING},
    /* a text column accepts any type */
    {"{\"t\":[1,{\"a\":\"\xC3\xA9\"}]}",
     "{\"t\":\"[1,{\\\"a\\\":\\\"\xC3\xA9\\\"}]\",\"d\":null,\"i\":null,\"b\":null," NOTHING},
    {"{\"t\":12.5}", "{\"t\":\"12.5\",\"d\":null,\"i\":null,\"b\":null," NOTHING},
    {"{\"t\":\"\"}", "{\"t\":\"\",\"d\":null,\"i\":null,\"b\":null," NOTHING},
    {"{\"t\":\"\xF0\x9F\x98\x80\\n\\\"\"}",
     "{\"t\":\"\xF0\x9F\x98\x80\\n\\\"\",\"d\":null,\"i\":null,\"b\":null," NOTHING},
    /* invalid UTF-8 */
    {"{\"t\":\"a\xFF"
     "b\xC3\"}",
     "{\"t\":\"a\xEF\xBF\xBD"
     "b\xEF\xBF\xBD\",\"d\":null,\"i\":null,\"b\":null," NOTHING},
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

static void write_all_rows(uint64_t *fingerprint)
{
    const char *given[ROW_COUNT];
    for (size_t i = 0; i < ROW_COUNT; i++)
        given[i] = ROWS[i].given;
    write_rows(given, ROW_COUNT, fingerprint);
}

static void test_rows_round_trip(void **state)
{
    (void)state;
    struct arrow_reader *reader;
    struct jv *row;
    struct text text = {0};
    struct error why = {0};
    uint64_t fingerprint;
    write_all_rows(&fingerprint);
    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        assert_int_equal(arrow_reader_next(reader, &row, &why), ERR_OK);
        text_clear(&text);
        assert_int_equal(jv_print(row, &text), ERR_OK);
        assert_string_equal(text_get(&text), ROWS[i].read);
        jv_free(row);
    }
    for (int i = 0; i < 2; i++) { /* end of data is permanent */
        assert_int_equal(arrow_reader_next(reader, &row, &why), ERR_OK);
        assert_null(row);
    }
    arrow_reader_close(reader);
    text_release(&text);
}

static void test_the_fingerprint_follows_the_contents(void **state)
{
    (void)state;
    static const char *const ONE[] = {"{\"i\":1}"}, *const OTHER[] = {"{\"i\":2}"};
    uint64_t first, again, other;
    write_rows(ONE, 1, &first);
    write_rows(ONE, 1, &again);
    write_rows(OTHER, 1, &other);
    assert_int_equal(first, again);
    assert_int_not_equal(first, other);
}

/* Several batches: by rows, and by bytes when rows are large. */
static void test_many_and_large_rows_are_batched(void **state)
{
    (void)state;
    struct arrow_field *root = tree_of_fields();
    struct arrow_writer *writer;
    struct arrow_reader *reader;
    struct error why = {0};
    struct text row = {0};
    uint64_t fingerprint;
    const int small = 2500, large = 10;
    assert_int_equal(
        arrow_writer_open(tree.root, "file.arrow", root, "key", "value", &writer, &why), ERR_OK);
    for (int i = 0; i < small + large; i++) {
        text_clear(&row);
        text_addf(&row, "{\"i\":%d,\"t\":\"", i);
        for (int k = 0; i >= small && k < 1 << 18; k++)
            text_add(&row, "0123456789");
        text_add(&row, "\"}");
        add_row(writer, text_get(&row));
    }
    assert_int_equal(arrow_writer_finish(writer, &fingerprint, &why), ERR_OK);
    arrow_writer_close(writer);
    arrow_field_free(root);

    struct jv *read;
    int count = 0;
    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    while (!arrow_reader_next(reader, &read, &why) && read) {
        char expected[32];
        snprintf(expected, sizeof expected, "\"i\":%d,", count);
        text_clear(&row);
        assert_int_equal(jv_print(read, &row), ERR_OK);
        assert_contains(text_get(&row), expected);
        assert_true((row.length > 1 << 18) == (count >= small));
        jv_free(read);
        count++;
    }
    assert_null(read);
    assert_int_equal(count, small + large);
    arrow_reader_close(reader);
    text_release(&row);
}

static void test_a_file_without_rows(void **state)
{
    (void)state;
    struct arrow_reader *reader;
    struct jv *row;
    struct error why = {0};
    uint64_t fingerprint;
    write_rows(NULL, 0, &fingerprint);
    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    assert_int_equal(arrow_reader_next(reader, &row, &why), ERR_OK);
    assert_null(row);
    arrow_reader_close(reader);
}

/* ---- invalid files ---- */

static void test_invalid_streams_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *says;
    } FILES[] = {
        {"", "empty"},
        {"hello", "truncated"},
        {"hello world, this is text", "not an Arrow stream"},
        {"PAR1 and so on and so on", "not an Arrow stream"},
        {"\xFF\xFF\xFF\xFF\x10\x27\x00\x00", "truncated"},
        {"ARROW1", "truncated"},
    };
    struct arrow_reader *reader;
    struct error why = {0};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        size_t length = i == 4 ? 8 : strlen(FILES[i].bytes);
        tree_remove(&tree, "/file.arrow");
        tree_write_bytes(&tree, "/file.arrow", 0, FILES[i].bytes, length);
        assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_BAD_VALUE);
        assert_null(reader);
        assert_contains(why.text, FILES[i].says);
        assert_contains(why.text, "file.arrow");
    }
    assert_int_equal(arrow_reader_open("/no/such.arrow", &reader, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such.arrow");
    assert_int_equal(arrow_reader_open(tree.root, &reader, &why), ERR_BAD_VALUE);
}

/* Reads as many rows as possible; a failure must have a message. */
static void read_through(size_t *rows, enum err *err)
{
    struct arrow_reader *reader;
    struct jv *row;
    struct error why = {0};
    *rows = 0;
    *err = arrow_reader_open(path, &reader, &why);
    while (!*err && !(*err = arrow_reader_next(reader, &row, &why)) && row) {
        jv_free(row);
        ++*rows;
    }
    if (*err)
        assert_true(why.text[0]);
    arrow_reader_close(reader);
}

static size_t read_file(char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, to, size);
    close(fd);
    assert_true(n > 0 && (size_t)n < size);
    return (size_t)n;
}

static void test_truncated_files_are_reported(void **state)
{
    (void)state;
    static char bytes[1 << 16];
    uint64_t fingerprint;
    size_t rows;
    enum err err;
    write_all_rows(&fingerprint);
    size_t length = read_file(bytes, sizeof bytes), ends = 0;
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_equal(truncate(path, (off_t)(length - cut - 1)), 0);
        read_through(&rows, &err);
        if (err == ERR_OK)
            ends++; /* truncated between two messages: before the end marker, or before the only batch */
        else
            assert_int_equal(err, ERR_BAD_VALUE);
    }
    assert_int_equal(ends, 2);
}

/* Overwrites some bytes, reads, and restores them: any result but a crash is acceptable. */
static void read_with_bytes(const char *right, size_t at, const char *wrong, size_t length)
{
    size_t rows;
    enum err err;
    tree_write_bytes(&tree, "/file.arrow", (long)at, wrong, length);
    read_through(&rows, &err);
    assert_true(err == ERR_OK || err == ERR_BAD_VALUE || err == ERR_UNSUPPORTED ||
                err == ERR_NO_MEMORY);
    tree_write_bytes(&tree, "/file.arrow", (long)at, right + at, length);
}

static void test_corrupted_bytes_are_handled(void **state)
{
    (void)state;
    static const unsigned char CHANGES[] = {0x01, 0x80, 0xFF};
    static char bytes[1 << 16];
    uint64_t fingerprint;
    write_all_rows(&fingerprint);
    size_t length = read_file(bytes, sizeof bytes);
    size_t step = test_is_instrumented() ? 38 : 2; /* fuzz_arrow has the sanitized rounds */
    for (size_t at = 0; at + 2 <= length; at += step) {
        for (size_t i = 0; i < sizeof CHANGES; i++)
            for (size_t k = 0; k < 2; k++) {
                char changed = (char)((unsigned char)bytes[at + k] ^ CHANGES[i]);
                read_with_bytes(bytes, at + k, &changed, 1);
            }
        read_with_bytes(bytes, at, "\0\0", 2); /* the header's list of buffers: one is missing */
        if (at % 8 == 0 && at + 8 <= length) { /* a length of -1, and a huge one */
            read_with_bytes(bytes, at, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
            read_with_bytes(bytes, at, "\xF8\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8);
        }
    }
}

/* ---- writing to a full disk ---- */

static int write_until_full(void)
{
    struct rlimit limit = {.rlim_cur = 20000, .rlim_max = 20000};
    struct arrow_field *root = tree_of_fields();
    struct arrow_writer *writer;
    struct error why = {0};
    struct jv *row;
    uint64_t fingerprint;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) || jv_parse("{\"t\":\"text\"}", 12, &row, &why) ||
        arrow_writer_open(tree.root, "file.arrow", root, "k", "v", &writer, &why))
        return 2;
    enum err err = ERR_OK;
    for (int i = 0; i < 5000 && !err; i++)
        err = arrow_writer_add(writer, row, &why);
    if (err != ERR_NO_SPACE || !strstr(why.text, "file.arrow"))
        return 3;
    /* Later writes fail too, without a crash. */
    if (!arrow_writer_add(writer, row, &why) || !arrow_writer_finish(writer, &fingerprint, &why))
        return 4;
    arrow_writer_close(writer);
    arrow_field_free(root);
    jv_free(row);
    return 0;
}

/* A list of 2^24 nulls, which need no bytes of the file: not one is made that the file could not hold. */
static void test_a_row_of_more_values_than_the_file_can_hold_is_refused(void **state)
{
    (void)state;
    static const char NULLS[] = IPW_FIXTURES "/inputs/nulls.arrow";
    struct arrow_reader *reader;
    struct jv *row;
    struct error why = {0};
    struct stat status;
    char says[64];
    assert_int_equal(stat(NULLS, &status), 0);
    str_format(says, sizeof says, "a row has more than %lld values",
               8 * (long long)status.st_size); /* a value needs a bit */
    assert_int_equal(arrow_reader_open(NULLS, &reader, &why), ERR_OK);
    assert_int_equal(arrow_reader_next(reader, &row, &why), ERR_BAD_VALUE);
    assert_contains(why.text, says);
    assert_null(row);
    arrow_reader_close(reader);
}

/* Structs without fields need no bytes: the number of rows is only a claim. */
static void test_rows_without_bytes_are_refused(void **state)
{
    (void)state;
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    assert_non_null(arrow_field_add(root, "e", ARROW_STRUCT));
    struct arrow_writer *writer;
    struct arrow_reader *reader;
    struct jv *row;
    struct error why = {0};
    uint64_t fingerprint;
    size_t rows;
    assert_int_equal(
        arrow_writer_open(tree.root, "file.arrow", root, "key", "value", &writer, &why), ERR_OK);
    for (int i = 0; i < 100; i++)
        add_row(writer, "{}");
    assert_int_equal(arrow_writer_finish(writer, &fingerprint, &why), ERR_OK);
    arrow_writer_close(writer);
    arrow_field_free(root);

    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    assert_int_equal(arrow_reader_next(reader, &row, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "file.arrow is damaged: a batch of 100 rows in 0 bytes");
    arrow_reader_close(reader);
    assert_int_equal(arrow_reader_open(path, &reader, &why), ERR_OK);
    assert_int_equal(arrow_reader_batch(reader, &rows, &why), ERR_BAD_VALUE);
    assert_int_equal(rows, 0);
    arrow_reader_close(reader);
}

static void test_a_full_disk_is_reported(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_until_full());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);

    struct arrow_field *root = tree_of_fields();
    struct arrow_writer *writer;
    struct error why = {0};
    assert_int_equal(arrow_writer_open("/no/such/dir", "x", root, "k", "v", &writer, &why),
                     ERR_NOT_FOUND);
    assert_contains(why.text, "/no/such/dir/x");
    arrow_field_free(root);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tree_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_rows_round_trip),
        IN_TREE(test_the_fingerprint_follows_the_contents),
        IN_TREE(test_many_and_large_rows_are_batched),
        IN_TREE(test_a_file_without_rows),
        IN_TREE(test_invalid_streams_are_reported),
        IN_TREE(test_truncated_files_are_reported),
        IN_TREE(test_corrupted_bytes_are_handled),
        IN_TREE(test_a_row_of_more_values_than_the_file_can_hold_is_refused),
        IN_TREE(test_rows_without_bytes_are_refused),
        IN_TREE(test_a_full_disk_is_reported),
    };
    return RUN_TESTS(tests);
}
