/* Files of datasets: JSON lines, a JSON array, CSV, text, and the description of a folder of Arrow files.  Items are
 * valid text. */
#include "fuzz/fuzz.h"

#include "core/params.h"
#include "datasets/dataset.h"

enum { ITEMS_MAX = 200 };

static void check_text(const char *text)
{
    fuzz_check(text && utf8_valid_prefix(text, strlen(text)) == strlen(text));
}

static enum err read_items(struct dataset *dataset, struct error *why)
{
    bool end = false;
    enum err err = ERR_OK;
    for (int i = 0; i < ITEMS_MAX && !end && (!err || err == ERR_BAD_VALUE); i++) {
        struct item item = {0};
        struct text field = {0};
        *why = (struct error){0};
        err = dataset_next(dataset, &item, &end, why);
        fuzz_check_error(err, why);
        if (!err && !end) {
            check_text(item.problem);
            check_text(item.answer);
            check_text(item.id);
            item_field_names(&item, &field);
            (void)item_field(&item, "problem", &field);
        }
        text_release(&field);
        item_release(&item);
    }
    return err;
}

static const struct {
    const char *name, *file, *path, *params;
} KINDS[] = {
    {"jsonl", "d.jsonl", "d.jsonl", "skip_bad=true"},
    {"jsonl", "d.jsonl", "d.jsonl", "template={q}-{choices},choices=c,answer_is=any,answer=a"},
    {"csv", "d.csv", "d.csv", ""},
    {"csv", "d.csv", "d.csv", "choices=A|B,answer_after=####,shuffle_choices=1,problem=q"},
    {"text", "d.txt", "d.txt", "window=8"},
    {"hf", "hf/state.json", "hf", ""},
    {"hf", "dict/dataset_dict.json", "dict", "split=train"},
    {"images", "labeled/labels.csv", "labeled", ""},
    {"images", "boxes/annotations.json", "boxes", "skip_bad=true"},
    {"audio", "sound/a.txt", "sound", ""},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

/* Their content is not read. */
static void add_media(void)
{
    static const char *const FILES[] = {"labeled/a.png", "labeled/b.jpg", "boxes/a.png",
                                        "boxes/b.jpg", "sound/a.wav"};
    static bool is_done;
    for (size_t i = 0; i < COUNT_OF(FILES) && !is_done; i++)
        fuzz_file(FILES[i], "", 0);
    is_done = true;
}

static void run(const char *bytes, size_t length)
{
    unsigned kind = fuzz_choose(&bytes, &length, KIND_COUNT);
    struct params params = {0};
    struct dataset dataset;
    struct error why = {0};
    char words[256];
    add_media();
    fuzz_file(KINDS[kind].file, bytes, length);
    str_format(words, sizeof words, "path=%s/%s,%s", fuzz_folder(), KINDS[kind].path,
               KINDS[kind].params);
    fuzz_check(!params_add(&params, words));
    enum err err =
        dataset_open(KINDS[kind].name, &(struct dataset_config){&params}, &dataset, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        (void)!read_items(&dataset, &why);
        dataset_close(&dataset);
    }
    params_release(&params);
}

static void seeds(void)
{
    fuzz_seed(
        0, "{\"problem\":\"p\",\"answer\":\"a\",\"subject\":\"s\",\"id\":7,\"output_length\":3}\n"
           "\n{\"question\":\"q\",\"target\":4.5,\"x\":{\"y\":[1]}}\r\n");
    fuzz_seed(0,
              "\xEF\xBB\xBF[ {\"problem\":\"p\"},\n {\"problem\":\"q\",\"metadata\":\"{}\"} ]\n");
    fuzz_seed(
        1,
        "{\"q\":\"one\",\"c\":[\"x\",\"y\"],\"a\":1}\n{\"q\":\"two\",\"c\":\"['x', 'y']\",\"a\":"
        "\"B\"}\n{\"q\":\"t\",\"c\":{\"text\":[\"x\",\"y\"],\"label\":[\"A\",\"B\"]},\"a\":\"x\"}");
    fuzz_seed(2, "problem,answer,id\n\"a, \"\"b\"\"\",1,x\r\nq,2,y\n");
    fuzz_seed(3, "q,A,B,answer\nwhich?,x,y,why #### B\n");
    fuzz_seed(4, "A paragraph of text.\n\nAnother one, \xC3\xA9.\r\n\r\nThe last");
    fuzz_seed(4, "{\"text\":\"a\"}\n{\"text\":\"b\"}\n");
    fuzz_seed(5, "{\"_split\":\"train\",\"_data_files\":[{\"filename\":\"data-0.arrow\"}]}");
    fuzz_seed(6, "{\"splits\":[\"train\",\"test\"]}");
    fuzz_seed(7, "file,label,note\na.png,cat,x\nb.jpg,\"a dog\",\n");
    fuzz_seed(8, "{\"info\":{},\"images\":[{\"id\":1,\"file_name\":\"a.png\"},"
                 "{\"id\":2,\"file_name\":\"b.jpg\"}],\"categories\":[{\"id\":3,\"name\":\"cat\"}],"
                 "\"annotations\":[{\"image_id\":1,\"category_id\":3,\"bbox\":[1,2,3.5,4],"
                 "\"iscrowd\":1,\"segmentation\":[[1,2]]}]}");
    fuzz_seed(9, "a transcript\r\n");
}

static const char *const WORDS[] = {"\"problem\"", "\"answer\"", "\"choices\"", "null",
                                    "[]",          "{}",         "[1]",         "\"metadata\"",
                                    "####",        "\"\"",       "\r\n",        NULL};

const struct fuzz_target fuzz_datasets = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
