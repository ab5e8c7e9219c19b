/* Which files of a model are found, under which names, and shapes in messages. */
#include "support/unit.h"

#include <stdlib.h>

#include "core/jv.h"
#include "core/params.h"
#include "core/text.h"
#include "engine/shipped.h"
#include "support/tree.h"
#include "workloads/model_files.h"
#include "workloads/workload.h"

static struct tree tree;

static int make_tree(void **state)
{
    static const char *const FILES[] = {
        "/models/vision/scenes.onnx",
        "/models/vision/scenes.labels.txt",
        "/models/vision/scenes.config.json",
        "/models/vision/config.json",
        "/models/vision/other.onnx",
        "/models/speech/digits/model.onnx",
        "/models/text/.hidden/model.onnx",
        "/models/text/readme.txt",
        "/models/chat.gguf",
        "/models/scenes.onnx",
    };
    char path[160];
    (void)state;
    tree_new(&tree);
    for (size_t i = 0; i < COUNT_OF(FILES); i++)
        tree_write(&tree, FILES[i], "{\"path\": \"%s\"}", FILES[i]);
    chars_format(path, "%s/models", tree.root);
    return setenv("IPW_MODELS", path, 1);
}

static int remove_tree(void **state)
{
    (void)state;
    tree_free(&tree);
    return unsetenv("IPW_MODELS");
}

/* Checks a path below the tree's root, and frees it; NULL: none. */
static void check_path(char *path, const char *expected)
{
    if (expected) {
        assert_non_null(path);
        assert_string_equal(path + strlen(tree.root), expected);
    } else {
        assert_null(path);
    }
    free(path);
}

static void shipped_models_have_names(void **state)
{
    (void)state;
    static const char *const UNKNOWN[] = {"scene", "chat", "vision", "", "readme.txt"};
    struct error why = {0};
    struct shipped_names names;
    char *path;
    assert_int_equal(shipped_find_onnx("scenes", &path, &why), ERR_OK);
    check_path(path, "/models/vision/scenes.onnx");
    assert_int_equal(shipped_find_onnx("digits", &path, &why), ERR_OK);
    check_path(path, "/models/speech/digits");
    assert_int_equal(shipped_find("chat", &path, &why), ERR_OK);
    check_path(path, "/models/chat.gguf");
    assert_int_equal(shipped_find("scenes", &path, &why), ERR_NOT_FOUND);
    for (size_t i = 0; i < COUNT_OF(UNKNOWN); i++)
        assert_int_equal(shipped_find_onnx(UNKNOWN[i], &path, &why), ERR_NOT_FOUND);
    assert_int_equal(shipped_find_onnx("scene", &path, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "did you mean 'scenes'");
    shipped_list_onnx(&names);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.items[0], "digits");
    assert_string_equal(names.items[1], "other");
    assert_string_equal(names.items[2], "scenes");
    shipped_names_release(&names);
}

static enum err open_files(const char *model, const char *params, struct model_files *out,
                           struct error *why)
{
    struct params given = {0};
    assert_int_equal(params_add(&given, params), ERR_OK);
    const struct workload_config config = {model, &given};
    enum err err = model_files_open(&config, out, why);
    params_release(&given);
    return err;
}

static void check_json(const struct model_files *files, const char *name, const char *expected)
{
    struct jv *json;
    assert_int_equal(model_files_json(files, name, &json, NULL), ERR_OK);
    if (expected)
        assert_string_equal(jv_get_text(json, "path"), expected);
    else
        assert_null(json);
    jv_free(json);
}

static void files_of_a_file_are_beside_it(void **state)
{
    (void)state;
    struct model_files files;
    struct error why = {0};
    assert_int_equal(open_files("scenes", "threads=3,provider=cuda", &files, &why), ERR_OK);
    assert_true(files.is_file);
    assert_int_equal(files.options.threads, 3);
    assert_string_equal(files.options.provider, "cuda");
    check_path(model_files_beside(&files, "labels.txt"), "/models/vision/scenes.labels.txt");
    check_path(model_files_beside(&files, "vocab.txt"), NULL);
    check_path(model_files_find(&files, "other.onnx"), "/models/vision/other.onnx");
    check_json(&files, "config.json", "/models/vision/scenes.config.json");
    check_json(&files, "preprocessor_config.json", NULL);
    model_files_release(&files);
    assert_int_equal(open_files("other", "", &files, &why), ERR_OK);
    check_json(&files, "config.json", "/models/vision/config.json");
    model_files_release(&files);
}

static void files_of_a_directory_are_in_it(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a.onnx", "onnx/b.onnx", NULL};
    struct model_files files;
    struct onnx_session *session;
    struct error why = {0};
    assert_int_equal(open_files("digits", "", &files, &why), ERR_OK);
    assert_false(files.is_file);
    check_path(model_files_find(&files, "model.onnx"), "/models/speech/digits/model.onnx");
    check_path(model_files_beside(&files, "labels.txt"), NULL);
    assert_int_equal(model_files_session(&files, NAMES, &session, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "expected a.onnx or onnx/b.onnx");
    assert_contains(why.text, files.path);
    model_files_release(&files);
    assert_int_equal(open_files("", "", &files, &why), ERR_USAGE);
    assert_contains(why.text, "missing model");
}

static void damaged_json_is_named(void **state)
{
    (void)state;
    struct model_files files;
    struct error why = {0};
    struct jv *json;
    tree_write(&tree, "/models/speech/digits/config.json", "{\"a\": ");
    assert_int_equal(open_files("digits", "", &files, &why), ERR_OK);
    assert_int_equal(model_files_json(&files, "config.json", &json, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "digits/config.json");
    assert_null(json);
    tree_write(&tree, "/models/speech/digits/config.json", "[1]   ");
    assert_int_equal(model_files_json(&files, "config.json", &json, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "digits/config.json: expected a JSON object");
    assert_null(json);
    model_files_release(&files);
}

static void shapes_are_readable(void **state)
{
    (void)state;
    const int64_t shape[] = {-1, 3, 640, -1};
    assert_string_equal(shape_text(shape, 4).text, "?x3x640x?");
    assert_string_equal(shape_text(shape, 0).text, "scalar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_models_have_names),
        cmocka_unit_test(files_of_a_file_are_beside_it),
        cmocka_unit_test(files_of_a_directory_are_in_it),
        cmocka_unit_test(damaged_json_is_named),
        cmocka_unit_test(shapes_are_readable),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
