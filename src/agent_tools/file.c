/* file_read and file_write, inside the workspace of a query.  A path is resolved component by component from the
 * workspace's descriptor: "..", absolute paths and symbolic links are refused, also ones created meanwhile. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"

enum {
    PART_MAX = 255,
    WRITE_MAX = 16 << 20,
    ENTRIES_MAX = 1000,
};

/* ---- paths ---- */

/* The next path component, skipping "." and empty ones.  False at the end, and with *bad set for "..". */
static bool next_component(const char **path, char part[static PART_MAX + 1], bool *bad)
{
    const char *at = *path;
    for (;;) {
        at += strspn(at, "/");
        size_t length = strcspn(at, "/");
        if (length == 0 || length > PART_MAX) {
            *bad = length > 0;
            return false;
        }
        str_format(part, PART_MAX + 1, "%.*s", (int)length, at);
        at += length;
        if (!str_equal(part, "."))
            break;
    }
    *path = at;
    *bad = str_equal(part, "..");
    return !*bad;
}

static void refuse(struct tool_result *out, const char *path, int number)
{
    char shown[200];
    chars_copy(shown, plain_text(path).text);
    if (number == ELOOP)
        tool_fail(out, "%s: symbolic links are not followed", shown);
    else
        tool_fail(out, "%s: %s", shown, strerror(number));
}

/* O_PATH would open a symbolic link itself: O_DIRECTORY rejects everything that is not a directory. */
static int open_folder(int at, const char *part, bool create)
{
    static const int FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, part, FLAGS);
    if (fd < 0 && errno == ENOENT && create && (mkdirat(at, part, 0777) == 0 || errno == EEXIST))
        fd = openat(at, part, FLAGS);
    if (fd < 0 && errno == ENOTDIR) { /* a file or a symbolic link */
        struct stat found;
        bool is_link =
            fstatat(at, part, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
        errno = is_link ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Opens a path in the workspace; -1 after tool_fail.  `create` creates its parent directories. */
static int open_below(const struct tool_request *call, const char *path, int flags, bool create,
                      struct tool_result *out)
{
    char part[PART_MAX + 1], next[PART_MAX + 1];
    bool bad = false;
    const char *rest = path;
    if (*path == '/' || *path == '~') {
        tool_fail(out, "%.200s: paths are relative to the workspace", plain_text(path).text);
        return -1;
    }
    /* Not a dup(), which would share its directory offset with other listings. */
    int fd = openat(call->workspace->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool has_part = next_component(&rest, part, &bad);
    while (fd >= 0 && has_part && next_component(&rest, next, &bad)) {
        int deeper = open_folder(fd, part, create);
        int number = errno;
        close(fd);
        errno = number;
        fd = deeper;
        memcpy(part, next, sizeof part);
    }
    if (bad) {
        if (fd >= 0)
            close(fd);
        tool_fail(out, "%.200s: the path leaves the workspace", plain_text(path).text);
        return -1;
    }
    if (fd >= 0 && has_part) {
        int file = openat(fd, part, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
        int number = errno;
        close(fd);
        errno = number;
        fd = file;
    }
    if (fd < 0)
        refuse(out, path, errno);
    return fd;
}

/* ---- reading ---- */

/* Names in a directory, one per line, with a slash after subdirectories. */
static void list_directory(int fd, struct tool_result *out)
{
    char *names[ENTRIES_MAX];
    size_t count = 0;
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        tool_fail(out, "cannot list the directory: %s", strerror(errno));
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) && count < ENTRIES_MAX;) {
        bool is_folder = entry->d_type == DT_DIR;
        char name[PART_MAX + 2];
        if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
            continue;
        str_join(name, sizeof name, entry->d_name, is_folder ? "/" : "", "");
        names[count++] = xstrdup(name);
    }
    closedir(directory);
    qsort(names, count, sizeof *names, compare_strings);
    for (size_t i = 0; i < count; i++) {
        text_addf(&out->output, "%s\n", names[i]);
        free(names[i]);
    }
    if (!count)
        text_add(&out->output, "(an empty directory)");
}

/* Reads one byte more than the limit, to detect truncation. */
static void read_file(int fd, const char *path, size_t limit, struct tool_result *out)
{
    char bytes[8192];
    ssize_t n = 0;
    while (out->output.length <= limit && (n = read(fd, bytes, sizeof bytes)) > 0)
        text_add_bytes(&out->output, bytes, (size_t)n);
    if (n < 0)
        refuse(out, path, errno);
}

static enum err read_call(const struct tool_request *call, struct tool_result *out,
                          struct error *why)
{
    (void)why;
    struct stat found;
    const char *path = call->texts[0];
    int fd = open_below(call, path, O_RDONLY, false, out);
    if (fd < 0)
        return ERR_OK;
    if (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) {
        list_directory(fd, out);
        return ERR_OK;
    }
    if (S_ISREG(found.st_mode))
        read_file(fd, path, call->output_limit, out);
    else
        tool_fail(out, "%.200s: not a file", plain_text(path).text);
    close(fd);
    return ERR_OK;
}

const struct tool_driver tool_file_read = {
    .name = "file_read",
    .summary = "reads a file, or lists a directory, of the query's workspace",
    .spec = {"file_read",
             "Read a text file of the workspace, or list a directory of it (\".\" is the workspace "
             "itself).",
             "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":"
             "\"relative to the workspace\"}},\"required\":[\"path\"]}",
             false,
             {"path"}},
    .call = read_call,
};

/* ---- writing ---- */

static enum err write_call(const struct tool_request *call, struct tool_result *out,
                           struct error *why)
{
    (void)why;
    struct stat found;
    const char *path = call->texts[0], *content = call->texts[1];
    size_t length = strlen(content);
    bool append = jv_bool(jv_get(call->arguments, "append"), false);
    if (length > WRITE_MAX)
        return tool_fail(out, "more than %d MiB", WRITE_MAX >> 20);
    int fd = open_below(call, path, O_WRONLY | O_CREAT | (append ? O_APPEND : 0), true, out);
    if (fd < 0)
        return ERR_OK;
    /* Truncated only after checking that it is a regular file. */
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))
        tool_fail(out, "%.200s: not a file", plain_text(path).text);
    else if (append && found.st_size + (off_t)length > WRITE_MAX)
        tool_fail(out, "%.200s would have more than %d MiB", plain_text(path).text,
                  WRITE_MAX >> 20);
    else if ((!append && ftruncate(fd, 0) != 0) || file_write_all(fd, content, length))
        refuse(out, path, errno);
    else
        text_addf(&out->output, "Wrote %zu bytes.", length);
    close(fd);
    return ERR_OK;
}

const struct tool_driver tool_file_write = {
    .name = "file_write",
    .summary = "writes a file of the query's workspace",
    .spec =
        {"file_write",
         "Write a text file of the workspace, with the directories above it. An existing file "
         "is replaced, or extended with append.",
         "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":"
         "\"relative to the workspace\"},\"content\":{\"type\":\"string\"},\"append\":{\"type\":"
         "\"boolean\"}},\"required\":[\"path\",\"content\"]}",
         true,
         {"path", "content"}},
    .call = write_call,
};
