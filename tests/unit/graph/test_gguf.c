/* test: valgrind */
/* GGUF headers: contents are read, and errors are reported with their position. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "graph/gguf.h"
#include "support/gguf_file.h"
#include "support/tree.h"
#include "support/unit.h"

static struct gguf_file file;
static struct gguf gguf;
static struct error why;

static int set_up(void **state)
{
    (void)state;
    file = (struct gguf_file){0};
    gguf = (struct gguf){0};
    why = (struct error){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gguf_close(&gguf);
    gguf_file_release(&file);
    return 0;
}

static enum err read_file(void)
{
    gguf_file_end(&file);
    return gguf_read("m.gguf", file.whole.bytes, file.whole.length, &gguf, &why);
}

static void assert_rejected(enum err code, const char *words)
{
    struct error said = {0};
    enum err err = gguf_read("m.gguf", file.whole.bytes, file.whole.length, &gguf, &said);
    if (err != code || !strstr(said.text, words))
        print_error("%d, expected %d with '%s': %s\n", err, code, words, said.text);
    assert_int_equal(err, code);
    assert_non_null(strstr(said.text, words));
    assert_non_null(strstr(said.text, "m.gguf: byte "));
    assert_null(strchr(said.text, '\n'));
}

/* ---- valid files ---- */

static void test_values_of_every_type_are_read(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        const char *bytes;
        size_t length;
        bool has_u64, has_i64;
        uint64_t as_u64;
        int64_t as_i64;
    } CASES[] = {
        {GGUF_U8, "\xff", 1, true, true, 255, 255},
        {GGUF_I8, "\xff", 1, false, true, 0, -1},
        {GGUF_U16, "\x01\x80", 2, true, true, 32769, 32769},
        {GGUF_I16, "\x01\x80", 2, false, true, 0, -32767},
        {GGUF_U32, "\xff\xff\xff\xff", 4, true, true, UINT32_MAX, UINT32_MAX},
        {GGUF_I32, "\x00\x00\x00\x80", 4, false, true, 0, INT32_MIN},
        {GGUF_U64, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, true, false, UINT64_MAX, 0},
        {GGUF_I64, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, false, true, 0, -2},
        {GGUF_F32, "\x00\x00\xc0\x3f", 4, false, false, 0, 0},
        {GGUF_F64, "\x00\x00\x00\x00\x00\x00\x04\xc0", 8, false, false, 0, 0},
    };
    enum { COUNT = sizeof CASES / sizeof *CASES };
    char key[COUNT][8];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(key[i], sizeof key[i], "k%zu", i);
        gguf_file_raw(&file, key[i], CASES[i].type, CASES[i].bytes, CASES[i].length);
    }
    gguf_file_raw(&file, "yes", GGUF_BOOL, "\1", 1);
    assert_int_equal(read_file(), ERR_OK);
    uint64_t natural;
    int64_t whole;
    for (size_t i = 0; i < COUNT; i++) {
        const struct gguf_value *value = gguf_find(&gguf, key[i]);
        assert_non_null(value);
        assert_int_equal(gguf_u64(&gguf, key[i], &natural), CASES[i].has_u64);
        if (CASES[i].has_u64)
            assert_true(natural == CASES[i].as_u64);
        assert_int_equal(gguf_item_i64(value, 0, &whole), CASES[i].has_i64);
        if (CASES[i].has_i64)
            assert_true(whole == CASES[i].as_i64);
        assert_memory_equal(value->data, CASES[i].bytes, CASES[i].length);
        assert_int_equal(value->data_bytes, CASES[i].length);
        assert_false(gguf_item_i64(value, 1, &whole)); /* there is one */
    }
    assert_true(gguf_item_i64(gguf_find(&gguf, "yes"), 0, &whole));
    assert_int_equal(whole, 1);
    assert_false(gguf_u64(&gguf, "yes", &natural));
    assert_null(gguf_find(&gguf, "k"));
    assert_false(gguf_u64(&gguf, "none", &natural));
}

static void test_strings_and_arrays_are_read(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"a", "", "\xc3\xa9t\xc3\xa9"};
    gguf_file_string(&file, "empty", "");
    gguf_file_string(&file, "word", "hello");
    gguf_file_strings(&file, "words", WORDS, 3);
    gguf_file_strings(&file, "no words", WORDS, 0);
    gguf_file_array(&file, "sizes", GGUF_U16, 3, "\1\0\2\0\3\1", 6);
    assert_int_equal(read_file(), ERR_OK);
    struct slice text;
    uint64_t natural = 0;
    assert_true(gguf_string(&gguf, "word", &text));
    assert_true(slice_is(text, "hello"));
    assert_false(slice_is(text, "hell"));
    assert_true(gguf_string(&gguf, "empty", &text));
    assert_int_equal(text.length, 0);
    assert_false(gguf_string(&gguf, "words", &text)); /* not one */
    assert_false(gguf_string(&gguf, "sizes", &text));
    text = (struct slice){0};
    for (size_t i = 0; i < 3; i++) {
        assert_true(gguf_next_string(gguf_find(&gguf, "words"), &text));
        assert_true(slice_is(text, WORDS[i]));
    }
    assert_false(gguf_next_string(gguf_find(&gguf, "words"), &text));
    text = (struct slice){0};
    assert_false(gguf_next_string(gguf_find(&gguf, "no words"), &text));
    const struct gguf_value *sizes = gguf_find(&gguf, "sizes");
    assert_true(sizes->is_array && sizes->type == GGUF_U16 && sizes->count == 3);
    assert_true(gguf_item_u64(sizes, 2, &natural));
    assert_int_equal(natural, 259);
    assert_false(gguf_item_u64(sizes, 3, &natural));
    assert_false(gguf_u64(&gguf, "sizes", &natural));
}

static void test_tensors_are_read(void **state)
{
    (void)state;
    file.alignment = 64;
    gguf_file_u32(&file, "general.alignment", 64);
    gguf_file_tensor(&file, "a", 0, 5, 0, 0);
    gguf_file_tensor(&file, "b", 12, 512, 3, 2); /* Q4_K: 144 bytes for 256 */
    gguf_file_tensor(&file, "c", 1, 1, 1, 0);
    assert_int_equal(read_file(), ERR_OK);
    assert_int_equal(gguf.alignment, 64);
    assert_int_equal(gguf.data_offset % 64, 0);
    const struct gguf_tensor *b = gguf_tensor_named(&gguf, "b");
    assert_non_null(b);
    assert_string_equal(b->type->name, "Q4_K");
    assert_int_equal(b->elements, 512 * 3 * 2);
    assert_int_equal(b->bytes, 512 / 256 * 144 * 3 * 2);
    assert_int_equal(b->offset, gguf.data_offset + 64);
    assert_int_equal(gguf_tensor_named(&gguf, "c")->offset, gguf.data_offset + 64 + 1728);
    assert_int_equal(gguf_tensor_named(&gguf, "a")->dims[1], 1);
    assert_null(gguf_tensor_named(&gguf, "d"));
}

static void test_supported_versions(void **state)
{
    (void)state;
    file.version = 2;
    gguf_file_model(&file);
    assert_int_equal(read_file(), ERR_OK);
    assert_int_equal(gguf.version, 2);
    gguf_close(&gguf);
    file.version = 1;
    gguf_file_end(&file);
    assert_rejected(ERR_UNSUPPORTED, "version 1; versions 2 and 3 are supported");
    file.version = 0x03000000;
    gguf_file_end(&file);
    assert_rejected(ERR_UNSUPPORTED, "big-endian");
}

/* ---- invalid files ---- */

static void test_truncated_files_are_rejected(void **state)
{
    (void)state;
    gguf_file_model(&file);
    for (size_t length = 0; length < file.whole.length; length += length < 3000 ? 1 : 97) {
        char *cut = malloc(
            length ? length : 1); /* exact size, so that a sanitizer detects a read past the end */
        assert_non_null(cut);
        memcpy(cut, file.whole.bytes, length);
        assert_int_equal(gguf_read("cut", cut, length, &gguf, &why), ERR_BAD_VALUE);
        assert_non_null(strstr(why.text, "cut: byte "));
        free(cut);
    }
    assert_int_equal(read_file(), ERR_OK);
}

static void put_integer(size_t at, uint64_t value, unsigned count)
{
    assert_true(at + count <= file.whole.length);
    for (unsigned i = 0; i < count; i++)
        file.whole.bytes[at + i] = (char)(value >> (8 * i));
}

/* The offset of a text in the file. */
static size_t offset_of(const char *text)
{
    char *at = memmem(file.whole.bytes, file.whole.length, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - file.whole.bytes);
}

static void test_sizes_beyond_the_file_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text; /* the offset, after this text */
        size_t skip;
        uint64_t value;
        unsigned count;
        const char *words;
    } CASES[] = {
        {"GGUF", 4, UINT64_MAX, 8, "claims 18446744073709551615 tensors"},
        {"GGUF", 12, UINT64_MAX / 13, 8, "keys, more than"},
        {"GGUF", 12, 70000, 8, "claims 70000 keys"},
        {"tokenizer.ggml.tokens", 8, UINT64_MAX / 2, 8, "key 'tokenizer.ggml.tokens': claims"},
        {"tokenizer.ggml.scores", 8, UINT64_MAX / 4, 8, "key 'tokenizer.ggml.scores': claims"},
        {"general.name", 4, UINT64_MAX, 8, "key 'general.name': needs 18446744073709551615 bytes"},
        {"general.name", 0, 99, 4, "key 'general.name': has the unknown value type 99"},
        {"tokenizer.ggml.scores", 4, 99, 4,
         "key 'tokenizer.ggml.scores': has the unknown value type 99"},
        {"token_embd.weight", 0, 5, 4, "tensor 'token_embd.weight': has 5 dimensions"},
        {"token_embd.weight", 4, UINT64_MAX, 8, "more elements than 64 bits"},
        {"token_embd.weight", 4, 33, 8,
         "rows of 33 elements, not a multiple of the Q8_0 block of 32"},
        {"token_embd.weight", 12, 1 << 30, 8, "tensor 'token_embd.weight': ends at byte"},
        {"token_embd.weight", 24, UINT64_MAX - 31, 8, "tensor 'token_embd.weight': ends at byte"},
        {"token_embd.weight", 24, 31, 8, "not a multiple of the alignment 32"},
        {"blk.0.attn_norm.weight", 16, 0, 8, "before the previous tensor ends"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        gguf_file_release(&file);
        gguf_file_model(&file);
        size_t at = offset_of(CASES[i].text) + strlen(CASES[i].text) + CASES[i].skip;
        put_integer(at, CASES[i].value, CASES[i].count);
        assert_rejected(ERR_BAD_VALUE, CASES[i].words);
    }
}

static void test_duplicate_names_are_rejected(void **state)
{
    (void)state;
    gguf_file_u32(&file, "twice", 1);
    gguf_file_u32(&file, "twice", 2);
    gguf_file_end(&file);
    assert_rejected(ERR_BAD_VALUE, "key 'twice': is defined more than once");
    gguf_file_release(&file);
    gguf_file_tensor(&file, "t", 0, 8, 0, 0);
    gguf_file_tensor(&file, "t", 0, 8, 0, 0);
    gguf_file_end(&file);
    assert_rejected(ERR_BAD_VALUE, "tensor 't': is defined more than once");
    gguf_file_release(&file);
    gguf_file_u32(&file, "", 1);
    gguf_file_end(&file);
    assert_rejected(ERR_BAD_VALUE, "key 0: has no name");
}

static void test_unsupported_files_are_rejected(void **state)
{
    (void)state;
    gguf_file_array(&file, "deep", GGUF_ARRAY, 1, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    gguf_file_end(&file);
    assert_rejected(ERR_UNSUPPORTED, "key 'deep': is an array of arrays");
    gguf_file_release(&file);
    gguf_file_tensor(&file, "old", 31, 32, 0, 0);
    gguf_file_end(&file);
    assert_rejected(ERR_UNSUPPORTED, "tensor 'old': has the unknown type 31");
    gguf_file_release(&file);
    gguf_file_u32(&file, "general.alignment", 24);
    gguf_file_end(&file);
    assert_rejected(ERR_BAD_VALUE, "key 'general.alignment': is not a power of two");
}

/* A name in the file cannot break the line of a message. */
static void test_names_are_escaped_in_messages(void **state)
{
    (void)state;
    gguf_file_raw(&file, "bad\n\x1b[31m\xff\xc3\xa9", 99, "", 0);
    gguf_file_end(&file);
    assert_rejected(ERR_BAD_VALUE, "key 'bad\\n\\x1b[31m\\xff\xc3\xa9'");
}

static void test_file_errors(void **state)
{
    (void)state;
    struct tree tree;
    char path[256];
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/m.gguf", tree.root);
    assert_int_equal(gguf_open(path, &gguf, &why), ERR_NOT_FOUND);
    assert_int_equal(gguf_open(tree.root, &gguf, &why), ERR_BAD_VALUE);
    tree_write(&tree, "/m.gguf", "%s", "");
    assert_int_equal(gguf_open(path, &gguf, &why), ERR_BAD_VALUE);
    assert_non_null(strstr(why.text, "is empty"));
    tree_write(&tree, "/m.gguf", "%s", "GGML and more");
    assert_int_equal(gguf_open(path, &gguf, &why), ERR_BAD_VALUE);
    assert_non_null(strstr(why.text, "is not a GGUF file"));
    gguf_file_model(&file);
    tree_write_bytes(&tree, "/m.gguf", 0, file.whole.bytes, file.whole.length);
    assert_int_equal(gguf_open(path, &gguf, &why), ERR_OK);
    assert_int_equal(gguf.file_bytes, file.whole.length);
    assert_int_equal(gguf.tensor_count, 2 + 9 * GGUF_MODEL_LAYERS);
    tree_free(&tree);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_values_of_every_type_are_read),
        TEST(test_strings_and_arrays_are_read),
        TEST(test_tensors_are_read),
        TEST(test_supported_versions),
        TEST(test_truncated_files_are_rejected),
        TEST(test_sizes_beyond_the_file_are_rejected),
        TEST(test_duplicate_names_are_rejected),
        TEST(test_unsupported_files_are_rejected),
        TEST(test_names_are_escaped_in_messages),
        TEST(test_file_errors),
    };
    return RUN_TESTS(tests);
}
