/* CSV tables: every cell can be read, and a stream that returns a few bytes at a time has as many rows as the table. */
#include "fuzz/fuzz.h"

#include "core/csv.h"

struct pieces {
    const char *bytes;
    size_t length, at;
};

static long read_piece(void *context, char *to, size_t size)
{
    struct pieces *pieces = context;
    size_t left = pieces->length - pieces->at, taken = left < 3 ? left : 3;
    taken = taken < size ? taken : size;
    memcpy(to, pieces->bytes + pieces->at, taken);
    pieces->at += taken;
    return (long)taken;
}

/* Valid rows, including the header. */
static size_t count_rows(const char *bytes, size_t length)
{
    struct pieces pieces = {bytes, length, 0};
    struct csv_reader reader;
    struct csv_row row;
    struct error why;
    bool end = false;
    size_t rows = 0;
    csv_reader_source(&reader, read_piece, &pieces);
    while (!end) {
        enum err err = csv_reader_next(&reader, &row, &end, &why);
        rows += !err && !end;
    }
    csv_reader_release(&reader);
    return rows;
}

static void run(const char *bytes, size_t length)
{
    struct text copy = {0};
    struct csv_grid grid;
    struct error why = {0};
    size_t letters = 0;
    text_add_bytes(&copy, bytes, length);
    text_add(&copy, "");
    enum err err = csv_grid_read(copy.bytes, length, &grid, &why);
    size_t rows = count_rows(bytes, length);
    fuzz_check_error(err, &why);
    if (!err) {
        for (size_t row = 0; row < grid.rows; row++)
            for (size_t column = 0; column < grid.columns; column++)
                letters += strlen(csv_grid_cell(&grid, row, (long)column));
        fuzz_check(letters <= length);
        fuzz_check(rows == grid.rows + 1);
        csv_grid_release(&grid);
    }
    text_release(&copy);
}

static void seeds(void)
{
    fuzz_seed(-1, "op,shape,dtype,latency_s,energy_j,notes\nmatmul,64x64x64,fp32,5.778e-06,0.0,\n"
                  "vector_add,256,fp32,1.8e-06,0.0032,\"a \"\"b\"\", c\"\r\n");
    fuzz_seed(-1, "\xEF\xBB\xBF\"a\",b\r\r\n\n\"line\nend\",2\r3,\"\"");
}

const struct fuzz_target fuzz_csv = {.run = run, .seeds = seeds};
