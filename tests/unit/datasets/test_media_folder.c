/* test: valgrind */
/* Folders of images and of sound: their order, where the answers come from, and what is wrong with one. */
#include "support/unit.h"

#include "core/log.h"
#include "core/text.h"
#include "support/conform.h"
#include "support/items.h"
#include "support/tree_fixture.h"

static struct items items;
static char warning[400];

static void keep_warning(enum log_level level, const char *line)
{
    (void)level;
    chars_copy(warning, line);
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    warning[0] = '\0';
    log_to(keep_warning, LOG_WARN);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    items_release(&items);
    tree_free(&tree);
    log_to(NULL, LOG_WARN);
    return 0;
}

/* Empty files: a dataset does not read them. */
static void add_files(const char *names)
{
    char name[64], path[80];
    while (names && str_next_item(&names, name, sizeof name)) {
        chars_format(path, "/d/%s", name);
        tree_write(&tree, path, "%s", "");
    }
}

/* The folder as a dataset, by the name of a driver or (NULL) by its path. */
static enum err open_folder(const char *driver, const char *words)
{
    items_release(&items);
    warning[0] = '\0';
    if (driver)
        return items_read(&items, driver, "path=%s/d,%s", tree.root, words);
    char path[256];
    chars_format(path, "%s/d", tree.root);
    return items_read(&items, path, "%s", words);
}

/* "ID=ANSWER" of each item, in order. */
static void assert_items(const char *expected)
{
    struct text all = {0};
    for (size_t i = 0; i < items.count; i++)
        text_addf(&all, "%s%s=%s", i ? ";" : "", items.all[i].id, items.all[i].answer);
    assert_string_equal(text_get(&all), expected);
    text_release(&all);
}

static void files_are_in_the_order_of_their_names(void **state)
{
    (void)state;
    add_files("c.png,a.JPG,b.jpeg,sub/a.png,.hidden.png,notes.txt,d.gif,z.wav");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("a.JPG=;b.jpeg=;c.png=;sub/a.png=sub");
    assert_int_equal(items.reported, 4);
    char path[256];
    chars_format(path, "%s/d/a.JPG", tree.root);
    assert_string_equal(items.all[0].problem, path);
}

static void subfolders_are_classes(void **state)
{
    (void)state;
    add_files("dog/1.png,cat/2.png,cat/more/3.png");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("cat/2.png=cat;cat/more/3.png=cat;dog/1.png=dog");
    assert_string_equal(items.all[0].subject, "cat");
    assert_string_equal(items.grader, "top_1");
    assert_string_equal(warning, "");
}

static void without_answers_nothing_is_graded(void **state)
{
    (void)state;
    add_files("1.png,2.png");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("1.png=;2.png=");
    assert_string_equal(items.grader, "");
    assert_string_equal(warning, "");
}

static void labels_are_found_by_name(void **state)
{
    (void)state;
    add_files("1.png,2.png,in/3.png,4.png");
    tree_write(&tree, "/d/labels.csv",
               "label,file,split\r\n\"a, b\",2.png,test\r\n"
               "c,in/3.png,\r\nd,1.png,train\r\ne,gone.png,x\r\n");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("1.png=d;2.png=a, b;4.png=;in/3.png=c");
    assert_string_equal(items.all[1].subject, "a, b");
    assert_string_equal(items.all[2].subject, "general");
    assert_string_equal(item_metadata_text(&items.all[1]), "{\"split\":\"test\"}");
    assert_string_equal(items.grader, "top_1");
    assert_contains(warning, "1 of 4 files have no label and are not graded, such as 4.png");
}

static void rows_are_limited_and_shuffled(void **state)
{
    (void)state;
    add_files("1.png,2.png,3.png,4.png,5.png,6.png");
    assert_int_equal(open_folder("images", "offset=1,limit=2"), ERR_OK);
    assert_items("2.png=;3.png=");
    assert_int_equal(items.reported, 2);
    assert_int_equal(open_folder("images", "shuffle=4"), ERR_OK);
    assert_int_equal(items.count, 6);
    bool moved = false;
    for (size_t i = 0; i + 1 < items.count; i++)
        moved = moved || strcmp(items.all[i].id, items.all[i + 1].id) > 0;
    assert_true(moved);
}

#define COCO                                                                                       \
    "{\"info\":{\"x\":[1,{\"y\":\"]}\"}]},\"images\":[{\"file_name\":\"1.png\",\"id\":70},"        \
    "{\"id\":3,\"file_name\":\"2.png\"}],\n \"annotations\":["                                     \
    "{\"id\":1,\"image_id\":70,\"category_id\":2,\"bbox\":[1,2,3.5,4],\"iscrowd\":0},"             \
    "{\"id\":2,\"image_id\":99,\"category_id\":1,\"bbox\":[0,0,1,1]},"                             \
    "{\"id\":3,\"image_id\":70,\"category_id\":1,\"bbox\":[0,0,9,9],\"iscrowd\":1,"                \
    "\"segmentation\":{\"counts\":[1,2]}}],"                                                       \
    "\"categories\":[{\"id\":2,\"name\":\"cat\"},{\"id\":1,\"name\":\"a \\\"dog\\\"\"}]}"

static void boxes_come_from_coco_annotations(void **state)
{
    (void)state;
    add_files("1.png,2.png,3.png");
    tree_write(&tree, "/d/annotations.json", "%s", COCO);
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("1.png=[{\"label\":\"cat\",\"box\":[1,2,3.5,4]},"
                 "{\"label\":\"a \\\"dog\\\"\",\"box\":[0,0,9,9],\"crowd\":true}];"
                 "2.png=[];3.png=");
    assert_string_equal(items.grader, "map");
    assert_string_equal(items.all[0].subject, "general");
    assert_contains(warning, "1 of 3 files have no label");
    tree_write(&tree, "/d/labels.csv", "file,label\n1.png,a\n"); /* labels go first */
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_string_equal(items.grader, "top_1");
    char words[300];
    chars_format(words, "annotations=%s/d/annotations.json", tree.root);
    assert_int_equal(open_folder("images", words), ERR_OK);
    assert_string_equal(items.grader, "map");
}

static void broken_annotations_are_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"", "not JSON at byte 0"},
        {"[]", "not JSON at byte 0"},
        {"{\"images\":[{\"id\":1", "not JSON at byte 11"},
        {"{\"images\":[]} x", "not JSON at byte 14"},
        {"{\"images\":{}}", "images is not a list"},
        {"{\"images\":[]}", "no member 'categories': not COCO annotations"},
        {"{\"images\":[{\"id\":1}]}", "images[0]: needs an integer id, and file_name"},
        {"{\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":1.5}]}",
         "categories[1]: needs an integer"},
        {"{\"annotations\":[{\"image_id\":1,\"category_id\":1}]}", "annotations[0]: needs bbox"},
        {"{\"annotations\":[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,2,-3,4]}]}",
         "annotations[0]: needs bbox"},
        {"{\"annotations\":[{\"image_id\":1,\"category_id\":8,\"bbox\":[1,2,3,4]}],\"images\":[],"
         "\"categories\":[]}",
         "annotations[0]: no category has the id 8"},
        {"{\"annotations\":[nonsense]}", "annotations[0]: "},
    };
    add_files("1.png");
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        tree_write(&tree, "/d/annotations.json", "%s", CASES[i][0]);
        assert_int_equal(open_folder("images", ""), ERR_BAD_VALUE);
        assert_contains(items.why.text, "annotations.json: ");
        assert_contains(items.why.text, CASES[i][1]);
    }
}

static void transcripts_are_beside_the_sound_or_in_a_table(void **state)
{
    (void)state;
    add_files("b.wav,a.wav,in/c.WAV");
    tree_write(&tree, "/d/a.txt", "Hello, world.\n");
    tree_write(&tree, "/d/in/c.txt", "two\nlines\n\n");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("a.wav=Hello, world.;b.wav=;in/c.WAV=two\nlines");
    assert_string_equal(items.grader, "wer");
    assert_string_equal(items.all[0].subject, "general");
    assert_contains(warning, "1 of 3 files have no transcript");
    tree_write(&tree, "/d/labels.csv", "file,text,speaker\nb.wav,seven,x\n");
    assert_int_equal(open_folder(NULL, ""), ERR_OK);
    assert_items("a.wav=;b.wav=seven;in/c.WAV=");
    assert_string_equal(item_metadata_text(&items.all[1]), "{\"speaker\":\"x\"}");
}

static void a_wrong_folder_or_table_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(open_folder("images", ""), ERR_NOT_FOUND);
    assert_contains(items.why.text, "no such folder");
    tree_write(&tree, "/d/readme.txt", "x");
    assert_int_equal(open_folder("images", ""), ERR_NO_DATA);
    assert_contains(items.why.text, "/d has no PNG or JPEG files");
    add_files("a.webp");
    assert_int_equal(open_folder("images", ""), ERR_NO_DATA);
    assert_contains(items.why.text, "it has others, such as a.webp");
    assert_int_equal(open_folder("audio", ""), ERR_NO_DATA);
    assert_contains(items.why.text, "/d has no WAV files");
    add_files("a.png");
    static const char *const CASES[][2] = {
        {"file,class\na.png,x\n", "needs the columns file and label; it has file, class"},
        {"file,label\na.png,x\na.png,y\n", "line 3: 'a.png' is listed twice"},
        {"file,label\nb.png,x\n", "has none of the files of "},
        {"file,label\na.png\n", "line 2: "},
        {"", "labels.csv is empty"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        tree_write(&tree, "/d/labels.csv", "%s", CASES[i][0]);
        assert_int_equal(open_folder("images", ""), ERR_BAD_VALUE);
        assert_contains(items.why.text, CASES[i][1]);
    }
    assert_int_equal(open_folder("images", "labels=a,annotations=b"), ERR_USAGE);
    assert_contains(items.why.text, "not both");
    assert_int_equal(open_folder("images", "labels=missing.csv"), ERR_NOT_FOUND);
    assert_contains(items.why.text, "missing.csv");
    assert_int_equal(items_read(&items, "audio", "%s", ""), ERR_USAGE);
    assert_contains(items.why.text, "needs path=DIR");
}

/* Of the files that are many and large, the names and sizes. */
static void the_hash_is_of_names_sizes_and_labels(void **state)
{
    (void)state;
    static const struct {
        const char *path, *content;
        bool changes;
    } STEPS[] = {
        {"/d/a.png", "other", false}, {"/d/a.png", "longer", true}, {"/d/b.png", "", true},
        {"/d/labels.csv", "A", true}, {"/d/labels.csv", "B", true}, {"/d/in/er/c.png", "", true},
    };
    char before[32], after[32], path[256];
    chars_format(path, "%s/d", tree.root);
    tree_write(&tree, "/d/a.png", "bytes");
    dataset_hash(path, NULL, before, sizeof before);
    for (size_t i = 0; i < COUNT_OF(STEPS); i++) {
        tree_write(&tree, STEPS[i].path, "%s", STEPS[i].content);
        dataset_hash(path, NULL, after, sizeof after);
        assert_int_equal(strcmp(before, after) != 0, STEPS[i].changes);
        memcpy(before, after, sizeof before);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(files_are_in_the_order_of_their_names),
        TEST(subfolders_are_classes),
        TEST(without_answers_nothing_is_graded),
        TEST(labels_are_found_by_name),
        TEST(rows_are_limited_and_shuffled),
        TEST(boxes_come_from_coco_annotations),
        TEST(broken_annotations_are_refused_with_the_place),
        TEST(transcripts_are_beside_the_sound_or_in_a_table),
        TEST(a_wrong_folder_or_table_is_an_error),
        TEST(the_hash_is_of_names_sizes_and_labels),
    };
    return RUN_TESTS(tests);
}
