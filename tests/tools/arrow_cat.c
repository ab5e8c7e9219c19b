/* arrow_cat FILE: an Arrow stream as JSON lines on standard output, for tests that compare our
 * reader with others. Exit 1 with the reason when it cannot be read. */
#include <stdio.h>

#include "core/text.h"
#include "port/arrow.h"

int main(int argc, char **argv)
{
    struct arrow_reader *reader;
    struct text row = {0};
    struct error why = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: arrow_cat FILE\n");
        return 2;
    }
    bool end = false;
    enum err err = arrow_reader_open(argv[1], &reader, &why);
    while (!err && !end) {
        err = arrow_reader_next(reader, &row, &end, &why);
        if (!err && !end)
            puts(text_get(&row));
    }
    arrow_reader_close(reader);
    text_release(&row);
    if (err)
        fprintf(stderr, "arrow_cat: %s\n", why.text);
    return err ? 1 : 0;
}
