/* Texts through recurrent layers: an embedding of 25 002 words into 100 numbers, two layers of 256 in each
 * direction, and one number from the two last states (is this review a kind one?).  These are the sizes of
 * a tutorial on sentiment that many have followed, which says 4 810 857 parameters. */
#include <string.h>

#include "graph/blocks.h"
#include "graph/zoo/family.h"

enum { WORDS = 25002, EMBEDDING = 100, HIDDEN = 256, LAYERS = 2 };

enum err zoo_build_recurrent(const char *name, const struct graph_options *setting,
                             struct graph *out, struct error *why)
{
    static const char *const PLACES[LAYERS] = {"rnn.l0", "rnn.l1"};
    enum graph_op op = strstr(name, "gru") ? GRAPH_GRU : GRAPH_LSTM;
    tensor_id x;
    struct build b = block_text_begin(name, setting->batch, setting->tokens, out, why, &x);
    b.component = DECODER_EMBEDDING;
    x = build_embedding(&b, "embedding", x, WORDS, EMBEDDING);
    b.component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < LAYERS; i++) {
        b.layer = i;
        x = build_recurrent(&b, op, PLACES[i], x, HIDDEN, true);
    }
    b.layer = GRAPH_NONE;
    b.component = DECODER_HEAD;
    x = build_rearrange(&b, "last_states", x, 2, (int64_t[]){setting->batch, 2 * HIDDEN});
    x = zoo_dropout(&b, "dropout", x);
    build_output(&b, build_linear(&b, "fc", x, 1, true));
    return build_end(&b);
}
