/* arrow_cat FILE: an Arrow stream as JSON lines on standard output, for tests that compare our
 * reader with others. Exit 1 with the reason when it cannot be read. */
#include <stdio.h>

#include "core/text.h"
#include "port/arrow.h"
#include "port/json_read.h"

int main(int argc, char **argv)
{
    struct arrow_reader *reader;
    struct text line = {0};
    struct jv *row = NULL;
    struct error why = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: arrow_cat FILE\n");
        return 2;
    }
    enum err err = arrow_reader_open(argv[1], &reader, &why);
    while (!err && !(err = arrow_reader_next(reader, &row, &why)) && row) {
        text_clear(&line);
        err = jv_print(row, &line);
        puts(text_get(&line));
        jv_free(row);
    }
    arrow_reader_close(reader);
    text_release(&line);
    if (err)
        fprintf(stderr, "arrow_cat: %s\n", why.text);
    return err ? 1 : 0;
}
