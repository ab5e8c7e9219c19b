/* JSON values: what was parsed is printed and parsed again as the same text, also from bytes that are not text; values
 * skipped without a tree are those of the tree; and texts made safe to show are plain. */
#include "fuzz/fuzz.h"

#include "core/json.h"
#include "core/jv.h"
#include "core/secret.h"

static void check_tree(struct jv *tree)
{
    struct text once = {0}, twice = {0};
    struct jv *again = NULL;
    struct error why = {0};
    fuzz_check(!jv_print(tree, &once));
    if (jv_parse(once.bytes, once.length, &again, &why))
        fuzz_fail(why.text);
    fuzz_check(!jv_print(again, &twice));
    fuzz_check(!strcmp(once.bytes, twice.bytes));
    const char *end = once.bytes + once.length;
    fuzz_check(json_skip_value(once.bytes, end) == end);
    secret_hide_json(&once);
    jv_hide_secrets(tree);
    for (const struct jv *child = jv_first(tree); child; child = jv_next(child)) {
        int64_t number;
        struct text path = {0};
        if (jv_key(child))
            text_addf(&path, "%s.0", jv_key(child));
        (void)jv_path(tree, text_get(&path));
        (void)jv_integer(child, &number);
        text_release(&path);
    }
    jv_free(again);
    text_release(&once);
    text_release(&twice);
}

static void check_text(const char *bytes, size_t length)
{
    char *string = fuzz_string(bytes, length), line[40];
    struct text shown = {0};
    fuzz_check(str_is_plain(plain_text(string).text));
    text_add_repaired(&shown, bytes, length);
    fuzz_check(utf8_valid_prefix(text_get(&shown), shown.length) == shown.length);
    secret_one_line(line, sizeof line, bytes, length);
    fuzz_check(str_is_plain(line));
    str_percent_decode(string);
    text_release(&shown);
}

static void run(const char *bytes, size_t length)
{
    struct jv *tree = NULL;
    struct error why = {0};
    bool is_repaired = fuzz_choose(&bytes, &length, 2);
    enum err err = is_repaired ? jv_parse_repaired(bytes, length, &tree, &why)
                               : jv_parse(bytes, length, &tree, &why);
    fuzz_check_error(err, &why);
    if (!err)
        check_tree(tree);
    jv_free(tree);
    check_text(bytes, length);
}

static void seeds(void)
{
    static const char ALL[] = "{\"a\":[1,-2.5e3,18446744073709551615,0.1],\"b\":{\"c\":null,"
                              "\"d\":true},\"\\u00e9\\ud83d\\ude00\":\"\\\"\\\\\\/\\b\\n\\u0000\"}";
    fuzz_seed(0, ALL);
    fuzz_seed(1, ALL);
    fuzz_seed(1, "[\"\xff\xc3\", \"%41%zz\", \"Bearer sk-0123456789abcdef\"]");
}

static const char *const WORDS[] = {
    "null",   "true", "false", "\\u0000", "\\ud83d",          "\\udc00", "1e999",
    "[[[[[[", "{}",   "\\\\",  "-",       "9007199254740993", NULL};

const struct fuzz_target fuzz_json = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
