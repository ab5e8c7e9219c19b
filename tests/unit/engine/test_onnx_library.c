/* Which libonnxruntime is used, its execution providers, and the errors for others.  A process opens one library, so that
 * each is opened in a child. */
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "engine/onnx.h"
#include "support/unit.h"

#define FAKE IPW_FAKES "/libfake_onnxruntime.so"

/* In a child: opens a session, and gives what the library was asked for, or the error. */
static enum err open_in_child(const struct onnx_options *options, char *said, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct onnx_session *session = NULL;
        struct error why = {0};
        enum err err = onnx_session_open("/etc/passwd", options, &session, &why);
        const char *text = err ? why.text : onnx_session_metadata(session, "requests");
        if (!err && !str_equal(onnx_session_facts(session)->provider, options->provider))
            text = "another provider";
        if (!err && !str_equal(onnx_session_facts(session)->version, "1.fake"))
            text = "another version";
        onnx_session_close(session);
        _exit(write(ends[1], text, strlen(text)) < 0 ? 99 : (int)err);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, size - 1);
    said[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum err)WEXITSTATUS(status);
}

static void options_reach_the_library(void **state)
{
    (void)state;
    char said[400];
    const struct onnx_options cuda = {.threads = 3, .provider = "cuda", .library = FAKE};
    assert_int_equal(open_in_child(&cuda, said, sizeof said), ERR_OK);
    assert_string_equal(said, "threads 3;inter 1;optimization 99;cuda 1;");
    const struct onnx_options cpu = {
        .threads = 1, .provider = "cpu", .library = FAKE, .is_optimized_basic = true};
    assert_int_equal(open_in_child(&cpu, said, sizeof said), ERR_OK);
    assert_string_equal(said, "threads 1;inter 1;optimization 1;");
}

static void a_provider_that_does_not_start_says_why(void **state)
{
    (void)state;
    char said[400];
    const struct onnx_options cuda = {.provider = "cuda", .library = FAKE};
    setenv("FAKE_ORT_CUDA", "libcublasLt.so.12: cannot open shared object file", 1);
    assert_int_equal(open_in_child(&cuda, said, sizeof said), ERR_UNSUPPORTED);
    unsetenv("FAKE_ORT_CUDA");
    assert_string_equal(said, "provider=cuda: libcublasLt.so.12: cannot open shared object file");
}

static void a_library_that_is_too_old_is_refused(void **state)
{
    (void)state;
    char said[400];
    const struct onnx_options options = {.provider = "cpu", .library = FAKE};
    setenv("FAKE_ORT_VERSION", "10", 1);
    assert_int_equal(open_in_child(&options, said, sizeof said), ERR_UNSUPPORTED);
    unsetenv("FAKE_ORT_VERSION");
    assert_contains(said, FAKE " is ONNX Runtime 1.fake, which is too old: 1.11 is needed");
}

static void the_variable_names_a_file_or_its_folder(void **state)
{
    (void)state;
    char said[400];
    const struct onnx_options options = {.provider = "cpu"};
    setenv("IPW_ONNXRUNTIME_LIB", FAKE, 1);
    assert_int_equal(open_in_child(&options, said, sizeof said), ERR_OK);
    setenv("IPW_ONNXRUNTIME_LIB", "/nowhere", 1);
    assert_int_equal(open_in_child(&options, said, sizeof said), ERR_UNSUPPORTED);
    assert_string_equal(said, "IPW_ONNXRUNTIME_LIB /nowhere: no libonnxruntime there");
    setenv("IPW_ONNXRUNTIME_LIB", "/proc/self", 1); /* a folder without a library */
    assert_int_equal(open_in_child(&options, said, sizeof said), ERR_UNSUPPORTED);
    assert_string_equal(said, "IPW_ONNXRUNTIME_LIB /proc/self: no libonnxruntime there");
    setenv("IPW_ONNXRUNTIME_LIB", IPW_FAKES "/libfake_llama_newer.so", 1);
    assert_int_equal(open_in_child(&options, said, sizeof said), ERR_UNSUPPORTED);
    assert_contains(said, "libfake_llama_newer.so has no OrtGetApiBase");
    unsetenv("IPW_ONNXRUNTIME_LIB");

    /* The shortest name in a folder, and not that of a provider. */
    char folder[] = "/tmp/ipw-ort-XXXXXX", link[64], other[80];
    assert_non_null(mkdtemp(folder));
    snprintf(link, sizeof link, "%s/libonnxruntime.so.1.99.0", folder);
    snprintf(other, sizeof other, "%s/libonnxruntime_providers_shared.so", folder);
    assert_int_equal(symlink(FAKE, link), 0);
    assert_int_equal(symlink("/etc/passwd", other), 0);
    const struct onnx_options in_folder = {.provider = "cpu", .library = folder};
    assert_int_equal(open_in_child(&in_folder, said, sizeof said), ERR_OK);
    unlink(link);
    unlink(other);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_library),
        cmocka_unit_test(a_provider_that_does_not_start_says_why),
        cmocka_unit_test(a_library_that_is_too_old_is_refused),
        cmocka_unit_test(the_variable_names_a_file_or_its_folder),
    };
    return RUN_TESTS(tests);
}
