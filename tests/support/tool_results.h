/* The result of an agent's tool, for tests. */
#ifndef TESTS_SUPPORT_TOOL_RESULTS_H
#define TESTS_SUPPORT_TOOL_RESULTS_H

#include "agent_tools/tool.h"
#include "support/unit.h"

/* Expects an error or not, with this text in the output. Takes ownership of the result. */
static inline void expect_result(struct tool_result result, bool is_error, const char *part)
{
    if (result.is_error != is_error)
        print_error("output: %s\n", text_get(&result.output));
    assert_int_equal(result.is_error, is_error);
    assert_contains(text_get(&result.output), part);
    tool_result_release(&result);
}

#endif
