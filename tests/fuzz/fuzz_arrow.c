/* Arrow files, read row by row and by columns: every row is JSON, and both ways have as many rows. */
#include "fuzz/fuzz.h"

#include <unistd.h>

#include "core/jv.h"
#include "port/arrow.h"

static size_t read_rows(const char *path)
{
    struct arrow_reader *reader;
    struct error why = {0};
    struct jv *row = NULL;
    size_t rows = 0;
    enum err err = arrow_reader_open(path, &reader, &why);
    while (!err && !(err = arrow_reader_next(reader, &row, &why)) && row) {
        struct text text = {0};
        fuzz_check(jv_is_object(row) && !jv_print(row, &text));
        jv_free(row);
        text_release(&text);
        rows++;
    }
    fuzz_check_error(err, &why);
    arrow_reader_close(reader);
    return err ? SIZE_MAX : rows;
}

static void read_column(const struct arrow_reader *reader, const struct arrow_path *path,
                        size_t rows)
{
    double *numbers = calloc(rows + 1, sizeof *numbers);
    struct arrow_text *texts = calloc(rows + 1, sizeof *texts);
    bool *known = calloc(rows + 1, sizeof *known);
    uint64_t not_finite = 0;
    size_t bytes = 0;
    if (path->kind == ARROW_IS_NUMBER)
        arrow_reader_numbers(reader, path, numbers, &not_finite);
    if (path->kind == ARROW_IS_TEXT)
        arrow_reader_texts(reader, path, texts);
    arrow_reader_known(reader, path, known);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; texts[i].bytes && k < texts[i].length; k++)
            bytes += (unsigned char)texts[i].bytes[k];
    fuzz_check(bytes != 1); /* uses the bytes */
    free(numbers);
    free(texts);
    free(known);
}

static size_t read_columns(const char *path)
{
    struct arrow_reader *reader;
    struct arrow_path root, column;
    struct error why = {0};
    size_t rows = 1, all = 0;
    enum err err = arrow_reader_open(path, &reader, &why);
    while (!err && rows && !(err = arrow_reader_batch(reader, &rows, &why))) {
        all += rows;
        fuzz_check(arrow_reader_find(reader, NULL, 0, &root));
        const char *name;
        for (size_t i = 0; rows && (name = arrow_reader_child(reader, &root, i)); i++)
            if (arrow_reader_find(reader, &name, 1, &column))
                read_column(reader, &column, rows);
    }
    fuzz_check_error(err, &why);
    arrow_reader_close(reader);
    return err ? SIZE_MAX : all;
}

static void run(const char *bytes, size_t length)
{
    const char *path = fuzz_file("file.arrow", bytes, length);
    size_t rows = read_rows(path), all = read_columns(path);
    fuzz_check(rows == SIZE_MAX || all == SIZE_MAX || rows == all);
}

static void seeds(void)
{
    static const char ROW[] = "{\"t\":\"a\",\"d\":0.1,\"i\":3,\"b\":true,\"s\":{\"x\":\"k\"}}";
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    struct arrow_writer *writer;
    struct jv *row = NULL;
    struct error why = {0};
    uint64_t fingerprint;
    static const char *const NAMES[] = {"t", "d", "i", "b"};
    for (int type = ARROW_TEXT; type <= ARROW_BOOL; type++)
        arrow_field_add(root, NAMES[type], (enum arrow_type)type);
    arrow_field_add(arrow_field_add(root, "s", ARROW_STRUCT), "x", ARROW_TEXT);
    if (arrow_writer_open(fuzz_folder(), "seed.arrow", root, "key", "value", &writer, &why) ||
        jv_parse(ROW, strlen(ROW), &row, &why) || arrow_writer_add(writer, row, &why) ||
        arrow_writer_add(writer, jv_get(row, "s"), &why) || /* with nulls */
        arrow_writer_finish(writer, &fingerprint, &why))
        fuzz_fail(why.text);
    arrow_writer_close(writer);
    arrow_field_free(root);
    jv_free(row);
    char path[256];
    str_format(path, sizeof path, "%s/seed.arrow", fuzz_folder());
    fuzz_seed_file(-1, path, 1 << 16);
}

const struct fuzz_target fuzz_arrow = {.run = run, .seeds = seeds};
