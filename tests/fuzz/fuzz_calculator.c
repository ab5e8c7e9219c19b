/* The arguments of a model's tool calls: as JSON for any tool that starts no program, and as an expression for the
 * calculator.  Every call has a result that is valid text. */
#include "fuzz/fuzz.h"

#include "agent_tools/tool.h"
#include "core/json.h"

static struct toolset set;
static struct tool_session session;

static void open_session(void)
{
    struct error why = {0};
    if (toolset_open(&(struct toolset_options){.names = "calculator,think,file_read,file_write"},
                     &set, &why) ||
        tool_session_open(&set, fuzz_folder(), &session, &why))
        fuzz_fail(why.text);
}

static void run(const char *bytes, size_t length)
{
    static const char *const NAMES[] = {"calculator", "calculator", "think", "file_read",
                                        "file_write"};
    unsigned choice = fuzz_choose(&bytes, &length, 5);
    struct text arguments = {0};
    struct tool_result result;
    struct error why = {0};
    struct json json;
    if (!set.count)
        open_session();
    if (choice) {
        text_add(&arguments, fuzz_string(bytes, length));
    } else {
        json_init(&json, &arguments, false);
        json_object(&json, NULL);
        json_string_bytes(&json, "expression", bytes, length);
        json_object_end(&json);
    }
    enum err err =
        tool_session_call(&session, NAMES[choice], text_get(&arguments), NULL, &result, &why);
    fuzz_check(!err);
    fuzz_check(result.output.length ==
               utf8_valid_prefix(text_get(&result.output), result.output.length));
    tool_result_release(&result);
    text_release(&arguments);
}

static void seeds(void)
{
    fuzz_seed(0, "2*(3+4)^2 % 5 - -1.5e3/7");
    fuzz_seed(0, "sqrt(2) + sin(pi)*max(1,2,3) + factorial(20) // 3 ** 2");
    fuzz_seed(0, "round(log(10, 2), 3) + abs(-7) + 0x1F + floor(e) + 1_000");
    fuzz_seed(1, "{\"expression\": \"1+1\"}");
    fuzz_seed(2, "{\"thought\": \"\\u00e9\"}");
    fuzz_seed(3, "{\"path\": \"../a\"}");
    fuzz_seed(4, "{\"path\": \"a.txt\", \"content\": \"c\"}");
}

static const char *const WORDS[] = {
    "sqrt(", "log(", "max(", "min(",  "factorial(",          "round(",
    "**",    "//",   "pi",   "1e308", "9223372036854775807", "\"path\"",
    NULL};

const struct fuzz_target fuzz_calculator = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
