/* test: tsan, valgrind */
/* Every driver of agent_tools/tool.h against its contract: names that servers accept, a schema that
 * is JSON, unknown parameters rejected, and missing or wrong arguments answered with an error that
 * the model can read, never with a crash. */
#include "support/conform.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/text.h"
#include "port/json_read.h"

/* The parameters that a driver requires to open. */
static const struct {
    const char *driver, *params;
} NEEDED[] = {
    {"http_get", "http_get.allow=localhost"},
    {"mcp", "mcp.command=python3 " IPW_FIXTURES "/../fakes/mcp_server.py"},
};

static void add_required(const char *driver, struct params *params)
{
    for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++)
        if (!strcmp(NEEDED[i].driver, driver))
            assert_int_equal(params_add(params, NEEDED[i].params), ERR_OK);
}

/* False, with a message, where this machine lacks a dependency. */
static bool open_tool(const struct tool_driver *driver, struct toolset *set)
{
    struct params params = {0};
    struct error why = {0};
    if (driver->available && driver->available(&why) != ERR_OK) {
        print_message("%s: not available: %s\n", driver->name, why.text);
        return false;
    }
    add_required(driver->name, &params);
    struct toolset_options options = {.names = driver->name, .params = &params};
    enum err err = toolset_open(&options, set, &why);
    params_release(&params);
    if (err)
        print_error("%s: %s\n", driver->name, why.text);
    CHECK(err == ERR_OK, driver->name);
    return true;
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    assert_non_null(TOOL_DRIVERS[0]);
    for (const struct tool_driver *const *d = TOOL_DRIVERS; *d; d++) {
        check_driver_name((*d)->name);
        CHECK((*d)->summary && (*d)->summary[0], (*d)->name);
        CHECK((*d)->call, (*d)->name);
        CHECK(!(*d)->begin == !(*d)->end, (*d)->name);
        for (const struct param_spec *p = (*d)->params; p && p->name; p++)
            CHECK(p->name[0] && p->value[0] && p->help[0], (*d)->name);
    }
}

static void tools_have_names_and_schemas(void **state)
{
    (void)state;
    for (const struct tool_driver *const *d = TOOL_DRIVERS; *d; d++) {
        struct toolset set;
        if (!open_tool(*d, &set))
            continue;
        CHECK(set.count > 0, (*d)->name);
        for (size_t i = 0; i < set.count; i++) {
            struct tool_spec spec = set.tools[i].spec;
            struct jv *schema = NULL;
            CHECK(strlen(spec.name) <= TOOL_NAME_MAX, (*d)->name);
            for (const char *c = spec.name; *c; c++)
                CHECK(isalnum((unsigned char)*c) || *c == '_' || *c == '-', spec.name);
            CHECK(spec.description, spec.name);
            CHECK(!jv_parse(spec.parameters, strlen(spec.parameters), &schema, NULL), spec.name);
            const char *type = jv_text(jv_get(schema, "type"));
            CHECK(type && !strcmp(type, "object"), spec.name);
            jv_free(schema);
        }
        toolset_close(&set);
    }
}

static void parameters_are_checked(void **state)
{
    (void)state;
    for (const struct tool_driver *const *d = TOOL_DRIVERS; *d; d++) {
        struct params params = {0};
        struct error why = {0};
        struct toolset set;
        char key[80];
        if ((*d)->available && (*d)->available(&why) != ERR_OK)
            continue;
        add_required((*d)->name, &params);
        snprintf(key, sizeof key, "%s.no_such_parameter", (*d)->name);
        assert_int_equal(params_set(&params, key, "1"), ERR_OK);
        struct toolset_options options = {.names = (*d)->name, .params = &params};
        CHECK(toolset_open(&options, &set, &why) == ERR_USAGE, (*d)->name);
        CHECK(strstr(why.text, "no_such_parameter"), (*d)->name);
        CHECK(!set.count && !set.instances, (*d)->name);
        params_release(&params);
    }
}

static void check_result(const struct tool_result *result, const char *name, const char *arguments)
{
    const char *output = text_get(&result->output);
    CHECK(output[0], name);
    CHECK(utf8_valid_prefix(output, result->output.length) == result->output.length, name);
    CHECK(isnan(result->cpu_s) || result->cpu_s >= 0, name);
    if (arguments[0] != '{')
        CHECK(result->is_error, name);
}

static void wrong_arguments_are_answered_with_an_error(void **state)
{
    (void)state;
    static const char *const ARGUMENTS[] = {
        "",
        "{}",
        "[]",
        "null",
        "\"text\"",
        "{",
        "{\"path\":1,\"expression\":[],\"command\":{}}",
        "\xFF",
        "{\"thought\":null,\"url\":false,\"code\":7,\"content\":{},\"path\":\"x\"}",
    };
    char folder[] = "/tmp/ipw-tools-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (const struct tool_driver *const *d = TOOL_DRIVERS; *d; d++) {
        struct toolset set;
        struct tool_session session;
        if (!open_tool(*d, &set))
            continue;
        assert_int_equal(tool_session_open(&set, folder, &session, NULL), ERR_OK);
        for (size_t i = 0; i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++) {
            struct tool_result result;
            struct error why = {0};
            const char *given = ARGUMENTS[i][0] ? ARGUMENTS[i] : "{}";
            CHECK(tool_session_call(&session, set.tools[0].spec.name, ARGUMENTS[i], NULL, &result,
                                    &why) == ERR_OK,
                  (*d)->name);
            check_result(&result, (*d)->name, given);
            tool_result_release(&result);
        }
        tool_session_close(&session);
        toolset_close(&set);
    }
    rmdir(folder);
}

static void safe_tools_are_the_default(void **state)
{
    (void)state;
    struct toolset set;
    struct error why = {0};
    assert_int_equal(toolset_open(&(struct toolset_options){0}, &set, &why), ERR_OK);
    assert_true(set.count >= 4);
    for (size_t i = 0; i < set.count; i++) {
        assert_string_not_equal(set.tools[i].spec.name, "shell");
        assert_string_not_equal(set.tools[i].spec.name, "python");
        assert_string_not_equal(set.tools[i].spec.name, "http_get");
    }
    toolset_close(&set);
    assert_int_equal(toolset_open(&(struct toolset_options){.names = "none"}, &set, &why), ERR_OK);
    assert_int_equal(set.count, 0);
    toolset_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_well_formed),
        cmocka_unit_test(tools_have_names_and_schemas),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(wrong_arguments_are_answered_with_an_error),
        cmocka_unit_test(safe_tools_are_the_default),
    };
    return RUN_TESTS(tests);
}
