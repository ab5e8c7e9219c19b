/* test: valgrind */
/* Files under the root prefix: strict numbers, distinct errors, names in numeric order. */
#include "port/fs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "port/file.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static void put(const char *bytes, size_t length)
{
    tree_remove(&tree, "/file");
    tree_write_bytes(&tree, "/file", 0, bytes, length);
}

/* ---- the root ---- */

static void test_paths_are_below_the_root_prefix(void **state)
{
    (void)state;
    char root[160], text[16];
    tree_write(&tree, "/sys/x", "here\n");
    snprintf(root, sizeof root, "%s///", tree.root);
    fs_set_root(root);
    assert_string_equal(fs_root(), tree.root);
    assert_int_equal(fs_read_text("/sys/x", text, sizeof text), ERR_OK);
    assert_string_equal(text, "here");
    assert_false(fs_exists("/proc/self/status"));

    fs_set_root("/");
    assert_string_equal(fs_root(), "");
    assert_true(fs_exists("/proc/self/status"));
    fs_set_root(NULL);
    assert_int_equal(fs_read_text("/proc/no/such", text, sizeof text), ERR_NOT_FOUND);
    fs_set_root(tree.root);
}

static void test_the_root_may_have_a_long_path(void **state)
{
    (void)state;
    char *deep = tree_deep(&tree, 1600), text[16], file[1700], root[5000];
    struct fs_names names;
    struct error why;
    snprintf(file, sizeof file, "%s/x", deep);
    assert_int_equal(output_put(file, "here\n", 5, &why), ERR_OK);
    snprintf(file, sizeof file, "%s/link", deep);
    assert_int_equal(symlink("x", file), 0);
    fs_set_root(deep);
    assert_true(fs_exists("/x"));
    assert_int_equal(fs_read_text("/x", text, sizeof text), ERR_OK);
    assert_string_equal(text, "here");
    assert_int_equal(fs_real("/link", text, sizeof text), ERR_OK);
    assert_string_equal(text, "/x");
    assert_int_equal(fs_read_link("/link", text, sizeof text), 1);
    assert_string_equal(text, "x");
    assert_int_equal(fs_list("/", &names), ERR_OK);
    assert_int_equal(names.count, 2);
    fs_names_release(&names);

    /* Longer than the kernel takes: no other directory is read. */
    memset(root, '/', sizeof root - 1);
    root[sizeof root - 1] = '\0';
    memcpy(root, deep, strlen(deep));
    root[sizeof root - 2] = '.';
    fs_set_root(root);
    assert_false(fs_exists("/x"));
    assert_int_equal(fs_list("/", &names), ERR_BAD_VALUE);
    fs_set_root(tree.root);
    free(deep);
}

static void test_too_long_a_path_is_rejected(void **state)
{
    (void)state;
    char path[FS_PATH_MAX + 8];
    struct fs_names names;
    int fd;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(fs_open(path, &fd), ERR_BAD_VALUE);
    assert_int_equal(fd, -1);
    assert_int_equal(fs_list(path, &names), ERR_BAD_VALUE);
    assert_false(fs_exists(path));
}

static void test_errors_are_distinguished(void **state)
{
    (void)state;
    int fd;
    char text[16];
    tree_write(&tree, "/plain", "x\n");
    tree_write(&tree, "/folder/file", "x\n");
    assert_int_equal(fs_open("/missing", &fd), ERR_NOT_FOUND);
    assert_int_equal(fs_open("/plain/below", &fd), ERR_NOT_FOUND);
    assert_int_equal(fs_read_text("/folder", text, sizeof text), ERR_IO);
    tree_mode(&tree, "/plain", 0);
    if (geteuid() != 0)
        assert_int_equal(fs_open("/plain", &fd), ERR_DENIED);
}

/* ---- text ---- */

static void test_text_is_read_and_trimmed(void **state)
{
    (void)state;
    char text[8];
    tree_write(&tree, "/file", " ab c\n");
    assert_int_equal(fs_read_text("/file", text, sizeof text), ERR_OK);
    assert_string_equal(text, "ab c");
    tree_write(&tree, "/file", "1234567"); /* truncated to the buffer */
    assert_int_equal(fs_read_text("/file", text, sizeof text), ERR_OK);
    assert_string_equal(text, "1234567");
    tree_write(&tree, "/file", "12345678");
    assert_int_equal(fs_read_text("/file", text, sizeof text), ERR_BAD_VALUE);
    put("", 0);
    assert_int_equal(fs_read_text("/file", text, sizeof text), ERR_OK);
    assert_string_equal(text, "");
}

/* ---- numbers ---- */

#define MANY_DIGITS "11111111111111111111111111111111111111111111111111\n"

static const struct {
    const char *bytes;
    bool is_u64, is_i64; /* by fs_pread_u64, which requires the newline */
    uint64_t u64;
    int64_t i64;
} NUMBERS[] = {
    {"0\n", true, true, 0, 0},
    {"5000000000\n", true, true, 5000000000, 5000000000},
    {"9223372036854775807\n", true, true, INT64_MAX, INT64_MAX},
    {"18446744073709551615\n", true, false, UINT64_MAX, 0},
    {"-5\n", false, true, 0, -5},
    {"-9223372036854775808\n", false, true, 0, INT64_MIN},
    {"18446744073709551616\n", false, false, 0, 0},
    {"9223372036854775808\n", true, false, UINT64_C(9223372036854775808), 0},
    {"-9223372036854775809\n", false, false, 0, 0},
    {MANY_DIGITS, false, false, 0, 0},
    {"12", false, false, 0, 0}, /* no newline: possibly a prefix of 1234 */
    {"", false, false, 0, 0},
    {"\n", false, false, 0, 0},
    {"-\n", false, false, 0, 0},
    {"+5\n", false, false, 0, 0},
    {"0x10\n", false, false, 0, 0},
    {"1.5\n", false, false, 0, 0},
    {"1e3\n", false, false, 0, 0},
    {"12 34\n", false, false, 0, 0},
    {"12a\n", false, false, 0, 0},
    {"nan\n", false, false, 0, 0},
    {"<unsupported>\n", false, false, 0, 0},
};

static void test_numbers_are_parsed_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        uint64_t u = 77;
        int64_t s = 77;
        int fd;
        put(NUMBERS[i].bytes, strlen(NUMBERS[i].bytes));
        assert_int_equal(fs_open("/file", &fd), ERR_OK);
        assert_int_equal(fs_pread_u64(fd, &u), NUMBERS[i].is_u64 ? ERR_OK : ERR_BAD_VALUE);
        assert_int_equal(u, NUMBERS[i].is_u64 ? NUMBERS[i].u64 : 77);
        assert_int_equal(fs_pread_i64(fd, &s), NUMBERS[i].is_i64 ? ERR_OK : ERR_BAD_VALUE);
        assert_int_equal(s, NUMBERS[i].is_i64 ? NUMBERS[i].i64 : 77);
        close(fd);
        if (NUMBERS[i].is_u64)
            assert_int_equal(fs_read_u64("/file", &u), ERR_OK);
        if (NUMBERS[i].is_i64)
            assert_int_equal(fs_read_i64("/file", &s), ERR_OK);
    }
}

static void test_bytes_after_a_nul_are_rejected(void **state)
{
    (void)state;
    uint64_t u;
    int64_t s;
    int fd;
    put("12\0"
        "34\n",
        6);
    assert_int_equal(fs_open("/file", &fd), ERR_OK);
    assert_int_equal(fs_pread_u64(fd, &u), ERR_BAD_VALUE);
    assert_int_equal(fs_pread_i64(fd, &s), ERR_BAD_VALUE);
    close(fd);
}

static void test_pread_sees_each_new_value(void **state)
{
    (void)state;
    uint64_t u;
    int fd;
    tree_write(&tree, "/file", "100\n");
    assert_int_equal(fs_open("/file", &fd), ERR_OK);
    assert_int_equal(fs_pread_u64(fd, &u), ERR_OK);
    tree_write(&tree, "/file", "7\n");
    assert_int_equal(fs_pread_u64(fd, &u), ERR_OK);
    assert_int_equal(u, 7);
    close(fd);
}

static void test_huge_file_is_not_a_number(void **state)
{
    (void)state;
    static char digits[1 << 16];
    uint64_t u;
    int fd;
    memset(digits, '0', sizeof digits);
    put(digits, sizeof digits);
    assert_int_equal(fs_read_u64("/file", &u), ERR_BAD_VALUE);
    assert_int_equal(fs_open("/file", &fd), ERR_OK);
    assert_int_equal(fs_pread_u64(fd, &u), ERR_BAD_VALUE);
    close(fd);
}

/* ---- names and links ---- */

static void test_names_in_numeric_order(void **state)
{
    (void)state;
    static const char *const EXPECTED[] = {"a", "hwmon1", "hwmon2", "hwmon10", "hwmon11", "z"};
    struct fs_names names;
    static const char *const MADE[] = {"hwmon10", "z", "hwmon2", "a", "hwmon11", "hwmon1"};
    for (size_t i = 0; i < 6; i++) {
        char path[32];
        snprintf(path, sizeof path, "/class/%s", MADE[i]);
        tree_write(&tree, path, "x\n");
    }
    assert_int_equal(fs_list("/class", &names), ERR_OK);
    assert_int_equal(names.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(names.items[i], EXPECTED[i]);
    fs_names_release(&names);
    assert_int_equal(fs_list("/none", &names), ERR_NOT_FOUND);
    assert_int_equal(names.count, 0);
    fs_names_release(&names);
}

static void test_many_names_are_listed(void **state)
{
    (void)state;
    struct fs_names names;
    for (int i = 0; i < 100; i++) {
        char path[32];
        snprintf(path, sizeof path, "/cpu/cpu%d", i);
        tree_write(&tree, path, "x\n");
    }
    assert_int_equal(fs_list("/cpu", &names), ERR_OK);
    assert_int_equal(names.count, 100);
    assert_string_equal(names.items[99], "cpu99");
    fs_names_release(&names);
}

static void test_real_path_omits_the_root(void **state)
{
    (void)state;
    char real[FS_PATH_MAX], outside[160];
    tree_write(&tree, "/sys/devices/pci0/hwmon/hwmon3/name", "k10temp\n");
    tree_write(&tree, "/sys/class/hwmon/placeholder", "\n");
    tree_link(&tree, "/sys/class/hwmon/hwmon3", "../../devices/pci0/hwmon/hwmon3");
    assert_int_equal(fs_real("/sys/class/hwmon/hwmon3", real, sizeof real), ERR_OK);
    assert_string_equal(real, "/sys/devices/pci0/hwmon/hwmon3");
    assert_int_equal(fs_real("/sys/class/hwmon/hwmon9", real, sizeof real), ERR_NOT_FOUND);
    assert_int_equal(fs_real("/sys/class/hwmon/hwmon3", real, 8), ERR_BAD_VALUE);

    /* A sibling of the root with the same prefix is not inside it. */
    snprintf(outside, sizeof outside, "%s-beside", tree.root);
    int fd = open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    tree_link(&tree, "/out", outside);
    assert_int_equal(fs_real("/out", real, sizeof real), ERR_OK);
    assert_string_equal(real, outside);
    unlink(outside);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_set_up, tree_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_paths_are_below_the_root_prefix), IN_TREE(test_too_long_a_path_is_rejected),
        IN_TREE(test_the_root_may_have_a_long_path),   IN_TREE(test_errors_are_distinguished),
        IN_TREE(test_text_is_read_and_trimmed),        IN_TREE(test_numbers_are_parsed_strictly),
        IN_TREE(test_bytes_after_a_nul_are_rejected),  IN_TREE(test_pread_sees_each_new_value),
        IN_TREE(test_huge_file_is_not_a_number),       IN_TREE(test_names_in_numeric_order),
        IN_TREE(test_many_names_are_listed),           IN_TREE(test_real_path_omits_the_root),
    };
    return RUN_TESTS(tests);
}
