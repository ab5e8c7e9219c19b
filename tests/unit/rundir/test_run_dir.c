/* test: valgrind */
/* The run directory: its name, what may be deleted in it, and its lock. */
#include "rundir/run_dir.h"
#include "rundir/run_path.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static char run[256]; /* the run directory in the tree */

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(run, sizeof run, "%s/runs/one", tree.root);
    return 0;
}

static bool exists(const char *path)
{
    char full[512];
    struct stat status;
    snprintf(full, sizeof full, "%s%s", tree.root, path);
    return lstat(full, &status) == 0;
}

/* ---- names ---- */

static const struct {
    const char *model, *slug;
} SLUGS[] = {
    {"llama3.2:1b", "llama3_2_1b"},
    {"org/a_b \"x\"", "org_a_b__x"},
    {"Qwen/Qwen3-30B-A3B", "Qwen_Qwen3_30B_A3B"},
    {"/srv/models/Tiny-1B.Q4_0.gguf", "Tiny_1B_Q4_0"},
    {"x.GGUF", "x"},
    {"/srv/.gguf", "model"},
    {"org/x-gguf", "org_x_gguf"},
    {"--gpt--", "gpt"},
    {"a..b", "a__b"},
    {"___", "model"},
    {"", "model"},
    {"/", "model"},
    {"modèle-été", "modèle_été"},
    {"模型:七b", "模型_七b"},
    {"x²½", "x²½"}, /* non-ASCII digits too, as in Python */
    {"a–b…c", "a_b_c"},
    {"😀smile", "smile"},
    {"a\xFF\xFE"
     "b",
     "a__b"},                        /* invalid bytes, one by one */
    {"a\xC3", "a"},                  /* truncated */
    {"a\xC0\xAF", "a"},              /* overlong */
    {"a\xED\xA0\x80z", "a___z"},     /* a surrogate is not a character */
    {"a\xF4\x90\x80\x80z", "a____z"} /* beyond U+10FFFF */
};

static void test_names_become_slugs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SLUGS / sizeof *SLUGS; i++) {
        char slug[64];
        model_slug(SLUGS[i].model, slug, sizeof slug);
        assert_string_equal(slug, SLUGS[i].slug);
    }
}

static void test_names_are_truncated_between_characters(void **state)
{
    (void)state;
    char slug[5];
    model_slug("abcé", slug, sizeof slug); /* five bytes */
    assert_string_equal(slug, "abc");
    model_slug("abc__d", slug, sizeof slug);
    assert_string_equal(slug, "abc");
    model_slug("_a", slug, 2);
    assert_string_equal(slug, "a");
}

static const struct {
    const char *hardware, *model, *dataset, *name;
} NAMES[] = {
    {"H200", "llama3.2:1b", "ipw", "profile_H200_llama3_2_1b_ipw"},
    {"APPLE_M3", "m", "my data set", "profile_APPLE_M3_m_my data set"},
    {"X", "m", "org/set", "profile_X_m_org_set"},
    {"X/Y", "m", "..", "profile_X_Y_m_.."},
    {"X", "m", "", "profile_X_m"},
    {"X", "", "set_", "profile_X_model_set"},
};

static void test_names_of_run_directories(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char name[64];
        run_dir_name(NAMES[i].hardware, NAMES[i].model, NAMES[i].dataset, name, sizeof name);
        assert_string_equal(name, NAMES[i].name);
    }
}

/* ---- inspecting and creating ---- */

static enum run_dir_state inspect(const char *path)
{
    enum run_dir_state state = RUN_DIR_NEW;
    struct error why = {0};
    assert_int_equal(run_dir_inspect(path, &state, &why), ERR_OK);
    return state;
}

static void test_inspect_classifies_a_directory(void **state)
{
    (void)state;
    struct error why = {0};
    char file[300];
    int lock;
    assert_int_equal(inspect(run), RUN_DIR_NEW);
    assert_int_equal(run_dir_make(run, &why), ERR_OK);
    assert_int_equal(inspect(run), RUN_DIR_EMPTY);
    assert_int_equal(run_dir_lock(run, &lock, &why), ERR_OK);
    close(lock);
    assert_int_equal(inspect(run), RUN_DIR_EMPTY); /* a stale lock file does not count */
    tree_write(&tree, "/runs/one/summary.json", "{}");
    assert_int_equal(inspect(run), RUN_DIR_FOREIGN); /* not specific to ipw */
    tree_write(&tree, "/runs/one/records.jsonl", "{}\n");
    assert_int_equal(inspect(run), RUN_DIR_HAS_RUN);
    tree_remove(&tree, "/runs/one/records.jsonl");
    tree_write(&tree, "/runs/one/dataset_info.json", "{}");
    assert_int_equal(inspect(run), RUN_DIR_FOREIGN);
    tree_write(&tree, "/runs/one/state.json", "{}");
    assert_int_equal(inspect(run), RUN_DIR_HAS_RUN); /* of the Python IPW */
    snprintf(file, sizeof file, "%s/state.json", run);
    assert_int_equal(inspect(file), RUN_DIR_FOREIGN);
    snprintf(file, sizeof file, "%s/state.json/below", run);
    assert_int_equal(inspect(file), RUN_DIR_FOREIGN);
}

static void test_make_creates_parents(void **state)
{
    (void)state;
    char path[512];
    struct error why = {0};
    snprintf(path, sizeof path, "%s/a/b//c/", tree.root);
    assert_int_equal(run_dir_make(path, &why), ERR_OK);
    assert_int_equal(run_dir_make(path, &why), ERR_OK); /* it exists already */
    assert_true(exists("/a/b/c"));
    assert_int_equal(run_dir_make("", &why), ERR_BAD_VALUE);

    tree_write(&tree, "/file", "x");
    snprintf(path, sizeof path, "%s/file/below", tree.root);
    assert_int_equal(run_dir_make(path, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "/file exists and is not a directory");

    assert_int_equal(run_dir_make("/proc/ipw-cannot", &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/proc/ipw-cannot");
    if (geteuid() != 0) {
        tree_mode(&tree, "/a/b", 0500);
        snprintf(path, sizeof path, "%s/a/b/d", tree.root);
        assert_int_equal(run_dir_make(path, &why), ERR_DENIED);
        snprintf(path, sizeof path, "%s/a/b", tree.root);
        assert_int_equal(run_dir_make(path, &why), ERR_DENIED);
        tree_mode(&tree, "/a/b", 0700);
    }
}

/* ---- clearing ---- */

static const char *const OURS[] = {
    "records.jsonl",
    "summary.json",
    "dataset_info.json",
    "state.json",
    "data-00000-of-00001.arrow",
    "data-00002-of-00003.arrow",
    "samples.csv",
    "samples-2.csv",
    "spans.jsonl",
    "traces.jsonl",
    "report.html",
    ".summary.json.123.tmp",
    "analysis/regression.json",
    "plots/energy.svg",
    "plots/energy.png",
};

static void write_run_files(void)
{
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        char path[128];
        snprintf(path, sizeof path, "/runs/one/%s", OURS[i]);
        tree_write(&tree, path, "x\n");
    }
}

static void test_clear_deletes_a_run(void **state)
{
    (void)state;
    struct error why = {0};
    write_run_files();
    assert_int_equal(run_dir_clear(run, &why), ERR_OK);
    assert_false(exists("/runs/one"));
    assert_true(exists("/runs"));
    assert_int_equal(run_dir_clear(run, &why), ERR_OK); /* does not exist: nothing to do */
}

static void test_clear_keeps_foreign_files(void **state)
{
    (void)state;
    static const char *const FOREIGN[] = {
        "notes.txt",         "data.arrow",
        "data-x-of-y.arrow", "summary.json.bak",
        "analysis/notes.md", "plots/mine/photo.png",
        "other/state.json",  "analysis/data-0-of-1.arrow",
    };
    struct error why = {0};
    char path[128];
    write_run_files();
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        snprintf(path, sizeof path, "/runs/one/%s", FOREIGN[i]);
        tree_write(&tree, path, "x\n");
    }
    tree_write(&tree, "/runs/one/traces.jsonl.d/x", "x\n");
    tree_write(&tree, "/runs/one/samples-7.csv/x", "a directory under a name of ours\n");
    assert_int_equal(run_dir_clear(run, &why), ERR_OK);
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        snprintf(path, sizeof path, "/runs/one/%s", FOREIGN[i]);
        assert_true(exists(path));
    }
    assert_true(exists("/runs/one/samples-7.csv/x"));
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        snprintf(path, sizeof path, "/runs/one/%s", OURS[i]);
        assert_false(exists(path));
    }
}

static void test_remove_empty_keeps_a_directory_with_files(void **state)
{
    (void)state;
    struct error why;
    int lock;
    char other[300];
    assert_int_equal(run_dir_make(run, &why), ERR_OK);
    assert_int_equal(run_dir_lock(run, &lock, &why), ERR_OK);
    snprintf(other, sizeof other, "%s/notes.txt", run);
    tree_write(&tree, "/runs/one/notes.txt", "mine\n");
    run_dir_remove_empty(run);
    assert_true(exists("/runs/one/notes.txt"));
    assert_int_equal(remove(other), 0);
    run_dir_remove_empty(run);
    assert_false(exists("/runs/one"));
    close(lock);
    run_dir_remove_empty(run); /* does not exist: nothing to do */
}

static void test_clear_follows_no_links(void **state)
{
    (void)state;
    struct error why = {0};
    tree_write(&tree, "/elsewhere/regression.json", "x\n");
    tree_write(&tree, "/elsewhere/precious.json", "x\n");
    tree_write(&tree, "/runs/one/records.jsonl", "x\n");
    tree_link(&tree, "/runs/one/analysis", "../../elsewhere");
    tree_link(&tree, "/runs/one/state.json", "../../elsewhere/precious.json");
    assert_int_equal(run_dir_clear(run, &why), ERR_OK);
    assert_true(exists("/elsewhere/regression.json"));
    assert_true(exists("/elsewhere/precious.json"));
    assert_false(exists("/runs/one/state.json")); /* the link itself */
    assert_true(exists("/runs/one/analysis"));
}

/* ---- the lock ---- */

/* A child that holds the lock until `release` is closed; it has reported that it does. */
static pid_t hold_lock(int release[2])
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(release), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd;
        close(release[1]);
        bool locked = run_dir_lock(run, &fd, NULL) == ERR_OK;
        bool said = locked && write(ready[1], "x", 1) == 1;
        _exit(said && read(release[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ready[1]);
    close(release[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void test_the_lock_allows_one_run_at_a_time(void **state)
{
    (void)state;
    struct error why = {0};
    int fd, release[2], status;
    char number[32];
    assert_int_equal(run_dir_make(run, &why), ERR_OK);
    pid_t child = hold_lock(release);
    snprintf(number, sizeof number, "process %ld", (long)child);
    assert_int_equal(run_dir_lock(run, &fd, &why), ERR_BUSY);
    assert_int_equal(fd, -1);
    assert_contains(why.text, number);
    tree_write(&tree, "/runs/one/records.jsonl", "x\n");
    assert_int_equal(run_dir_clear(run, &why), ERR_BUSY);
    assert_contains(why.text, number);
    assert_true(exists("/runs/one/records.jsonl"));
    kill(child, SIGKILL); /* the lock is released however the process ends */
    waitpid(child, &status, 0);
    close(release[1]);
    assert_int_equal(run_dir_lock(run, &fd, &why), ERR_OK);
    /* A process may clear under its own lock, which is kept. */
    assert_int_equal(run_dir_clear(run, &why), ERR_OK);
    assert_false(exists("/runs/one/records.jsonl"));
    assert_int_equal(inspect(run), RUN_DIR_EMPTY);
    int second;
    assert_int_equal(run_dir_lock(run, &second, &why), ERR_BUSY);
    close(fd);
    assert_int_equal(run_dir_lock("/no/such/run", &fd, &why), ERR_NOT_FOUND);
}

/* ---- small files ---- */

static void put(const char *name, const char *content, enum err expected, struct error *why)
{
    struct text text = {0};
    text_add(&text, content);
    assert_int_equal(run_dir_put(run, name, &text, why), expected);
    text_release(&text);
}

static void assert_file(const char *path, const char *content)
{
    char full[512], bytes[64] = "";
    snprintf(full, sizeof full, "%s%s", tree.root, path);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, bytes, sizeof bytes - 1) >= 0);
    close(fd);
    assert_string_equal(bytes, content);
}

static int put_when_full(void)
{
    struct rlimit limit = {.rlim_cur = 4, .rlim_max = 4};
    struct text text = {0};
    struct error why = {0};
    signal(SIGXFSZ, SIG_IGN);
    text_add(&text, "something longer");
    if (setrlimit(RLIMIT_FSIZE, &limit))
        return 2;
    return run_dir_put(run, "summary.json", &text, &why) == ERR_NO_SPACE ? 0 : 3;
}

static void test_put_is_atomic(void **state)
{
    (void)state;
    struct error why = {0};
    int status;
    put("summary.json", "x", ERR_NOT_FOUND, &why);
    assert_int_equal(run_dir_make(run, &why), ERR_OK);
    put("summary.json", "first", ERR_OK, &why);
    put("summary.json", "second", ERR_OK, &why);
    assert_file("/runs/one/summary.json", "second");
    put("analysis/x.json", "below", ERR_OK, &why); /* with its folder */
    assert_file("/runs/one/analysis/x.json", "below");

    pid_t child = fork();
    if (child == 0)
        _exit(put_when_full());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_file("/runs/one/summary.json", "second");
    /* No temporary file is left. */
    tree_remove(&tree, "/runs/one/summary.json");
    tree_remove(&tree, "/runs/one/analysis");
    assert_int_equal(inspect(run), RUN_DIR_EMPTY);
}

/* ---- listing and reading ---- */

static void add_name(void *context, const char *name, int64_t bytes)
{
    text_addf(context, "%s %d\n", name, (int)bytes);
}

static void test_files_are_listed_and_read(void **state)
{
    (void)state;
    struct text names = {0}, bytes = {0};
    struct error why = {0};
    char link[300], target[300];
    tree_write(&tree, "/runs/one/summary.json", "{}");
    tree_write(&tree, "/runs/one/samples-2.csv", "t_s\n");
    tree_write(&tree, "/runs/one/report.html", "page");
    tree_write(&tree, "/runs/one/mine.csv", "a");
    tree_write(&tree, "/runs/one/.lock", "1");
    tree_write(&tree, "/secret", "s");
    snprintf(link, sizeof link, "%s/spans.jsonl", run);
    snprintf(target, sizeof target, "%s/secret", tree.root);
    assert_int_equal(symlink(target, link), 0);
    run_dir_list(run, RUN_DIR_MEASURED, add_name, &names);
    assert_string_equal(text_get(&names), "samples-2.csv 4\nsummary.json 2\n");
    text_clear(&names);
    run_dir_list(run, RUN_DIR_DATA, add_name, &names);
    assert_string_equal(text_get(&names),
                        "mine.csv 1\nsamples-2.csv 4\nspans.jsonl 1\nsummary.json 2\n");
    assert_int_equal(run_dir_read(run, "summary.json", 100, &bytes, &why), ERR_OK);
    assert_string_equal(text_get(&bytes), "{}");
    for (const char *const *wrong =
             (const char *const[]){"mine.csv", "spans.jsonl", "report.html", ".lock",
                                   "../one/summary.json", "records.jsonl", NULL};
         *wrong; wrong++)
        assert_int_equal(run_dir_read(run, *wrong, 100, &bytes, &why), ERR_NOT_FOUND);
    text_release(&names);
    text_release(&bytes);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tree_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_become_slugs),
        cmocka_unit_test(test_names_are_truncated_between_characters),
        cmocka_unit_test(test_names_of_run_directories),
        IN_TREE(test_inspect_classifies_a_directory),
        IN_TREE(test_make_creates_parents),
        IN_TREE(test_clear_deletes_a_run),
        IN_TREE(test_clear_keeps_foreign_files),
        IN_TREE(test_remove_empty_keeps_a_directory_with_files),
        IN_TREE(test_clear_follows_no_links),
        IN_TREE(test_the_lock_allows_one_run_at_a_time),
        IN_TREE(test_put_is_atomic),
        IN_TREE(test_files_are_listed_and_read),
    };
    return RUN_TESTS(tests);
}
