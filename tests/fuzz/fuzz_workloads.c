/* What exporters write beside a model: class names in its metadata, labels, vocabularies and tokenizers.  Tokens of a text
 * are checked against their limit. */
#include "fuzz/fuzz.h"

#include "workloads/labels.h"
#include "workloads/model_files.h"

enum { LITERAL, LABELS, VOCABULARY, TOKENIZER, READERS };

/* Neither a literal nor a line can have more labels than bytes, but a number of up to a million says which one it is. */
static void check_labels(enum err err, const struct error *why, struct labels *labels)
{
    fuzz_check_error(err, why);
    fuzz_check(!err || (labels->count == 0 && !labels->names));
    fuzz_check(labels->count <= 1 << 20);
    labels_release(labels);
}

static void run_literal(const char *bytes, size_t length)
{
    struct labels labels;
    struct error why = {0};
    check_labels(labels_parse(fuzz_string(bytes, length), &labels, &why), &why, &labels);
}

static void run_lines(const char *bytes, size_t length)
{
    char *path = (char *)fuzz_file("labels.txt", bytes, length), *folder = (char *)fuzz_folder();
    struct model_files files = {.path = path, .directory = folder};
    struct labels labels;
    struct error why = {0};
    check_labels(labels_load(&files, NULL, NULL, &labels, &why), &why, &labels);
}

/* The file's bytes are also a text.  The last part of its path names what is tested: each has a folder of its own. */
static void run_tokenizer(const char *name, const char *bytes, size_t length)
{
    enum { MAX = 9 };
    char path[256];
    chars_copy(path, fuzz_file(name, bytes, length));
    struct model_files files = {.path = path, .directory = path};
    struct wordpiece *tokenizer;
    struct error why = {0};
    *strrchr(path, '/') = '\0';
    enum err err = wordpiece_load(&files, &tokenizer, &why);
    fuzz_check_error(err, &why);
    fuzz_check(err ? !tokenizer : wordpiece_size(tokenizer) > 0);
    if (err)
        return;
    struct token_ids tokens = {0};
    wordpiece_encode(tokenizer, fuzz_string(bytes, length), MAX, &tokens);
    fuzz_check(tokens.count <= MAX);
    token_ids_release(&tokens);
    wordpiece_free(tokenizer);
}

static void run(const char *bytes, size_t length)
{
    switch (fuzz_choose(&bytes, &length, READERS)) {
    case LITERAL:
        run_literal(bytes, length);
        break;
    case LABELS:
        run_lines(bytes, length);
        break;
    case VOCABULARY:
        run_tokenizer("lines/vocab.txt", bytes, length);
        break;
    case TOKENIZER:
        run_tokenizer("json/tokenizer.json", bytes, length);
        break;
    }
}

static void seeds(void)
{
    fuzz_seed(LITERAL, "{0: 'person', 1: \"driver's seat\", 2: 'caf\\xe9 \\u00e9\\\\'}");
    fuzz_seed(LITERAL, "{\"0\": \"a\", \"12\": \"b\"}");
    fuzz_seed(LITERAL, "['a', 'b']");
    fuzz_seed(LABELS, "tench\ngoldfish\r\n\n shark \n");
    fuzz_seed(VOCABULARY, "[PAD]\n[UNK]\nthe\nmatch\nthe match won!");
    fuzz_seed(
        VOCABULARY,
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##want\n##ed\n,\nunwanted, Ünwanted\xff \xe6\x9d\xb1");
    fuzz_seed(
        TOKENIZER,
        "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"a\":3,"
        "\"##b\":4}},"
        "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\"}}");
    fuzz_seed(TOKENIZER, "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"<unk>\":0,\"a\":3}},"
                         "\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":"
                         "\"BertPreTokenizer\"}}");
    fuzz_seed(TOKENIZER, "{\"model\":{\"type\":\"BPE\"}}");
}

static const char *const WORDS[] = {"[UNK]", "[PAD]",     "[CLS]", "[SEP]", "##",
                                    "vocab", "WordPiece", "\\u",   "{0: '", NULL};

const struct fuzz_target fuzz_workloads = {.run = run, .seeds = seeds, .words = WORDS};
