#include "graph/reader.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "graph/zoo.h"

#define READER(name) extern const struct graph_reader graph_reader_##name;
#include "graph/readers.def"
#undef READER

static const struct graph_reader *const READERS[] = {
#define READER(name) &graph_reader_##name,
#include "graph/readers.def"
#undef READER
    NULL,
};

size_t graph_reader_count(void)
{
    return sizeof READERS / sizeof READERS[0] - 1;
}

const struct graph_reader *graph_reader_at(size_t index)
{
    return READERS[index];
}

/* The first bytes of a file; 0 where there is none of that name. */
static size_t read_head(const char *path, unsigned char *head, size_t room)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t length = fread(head, 1, room, file);
    fclose(file);
    return length;
}

static const struct graph_reader *reader_for(const char *word)
{
    unsigned char head[512];
    size_t length = read_head(word, head, sizeof head);
    const struct graph_reader *best = NULL;
    int most = 0;
    for (const struct graph_reader *const *reader = READERS; *reader; reader++) {
        int score = (*reader)->probe(word, length ? head : NULL, length);
        if (score > most) {
            most = score;
            best = *reader;
        }
    }
    return best;
}

static enum err refuse(const char *word, struct error *why)
{
    const char *near = zoo_nearest(word);
    if (near)
        return err_set(why, ERR_NOT_FOUND,
                       "%.120s is neither a model file that can be read nor the name of a model: "
                       "did you mean %s?",
                       word, near);
    return err_set(why, ERR_NOT_FOUND,
                   "%.120s is neither a model file that can be read nor the name of a model: "
                   "`ipw list models` names them",
                   word);
}

enum err model_open(const char *word, struct model *out, struct error *why)
{
    *out = (struct model){.reader = reader_for(word)};
    if (!out->reader)
        return refuse(word, why);
    str_copy(out->word, sizeof out->word, word);
    str_copy(out->name, sizeof out->name, word);
    enum err err = out->reader->open(word, out, why);
    str_plain(out->name);
    if (err)
        *out = (struct model){0};
    return err;
}

enum err model_graph(const struct model *model, struct graph_setting *setting, struct graph *out,
                     struct error *why)
{
    *out = (struct graph){0};
    enum err err = model->reader->build(model, setting, out, why);
    str_plain(out->name);
    if (err)
        graph_release(out);
    return err;
}

void model_close(struct model *model)
{
    if (model->reader)
        model->reader->close(model);
    *model = (struct model){0};
}
