/* Tool calls in plain text: rendering a conversation, and parsing calls from a model's output. */
#include "wire/chat.h"

#include <ctype.h>
#include <string.h>

#include "core/json.h"
#include "core/slice.h"
#include "port/json_read.h"

static const char CALL_BEGIN[] = "<tool_call>", CALL_END[] = "</tool_call>";

const char *tool_text_stop(enum tool_text form)
{
    return form == TOOL_TEXT_REACT ? "\nObservation:" : "<tool_response>";
}

/* ---- writing: the system message ---- */

static void describe_hermes(const struct chat_tool *tools, size_t count, struct text *out)
{
    text_add(out, "# Tools\n\nYou can call functions to help with the question. Their signatures "
                  "are given in <tools></tools>:\n<tools>\n");
    for (size_t i = 0; i < count; i++) {
        struct json json;
        json_init(&json, out, false);
        chat_write_tool(&json, CHAT_OPENAI, &tools[i]);
        text_add(out, "\n");
    }
    text_addf(out,
              "</tools>\n\nTo call a function, write a JSON object with its name and arguments in "
              "%s%s:\n%s\n{\"name\": <function name>, \"arguments\": <object of "
              "arguments>}\n%s",
              CALL_BEGIN, CALL_END, CALL_BEGIN, CALL_END);
}

static void describe_react(const struct chat_tool *tools, size_t count, struct text *out)
{
    text_add(out, "Answer the question as well as you can. You can use these tools:\n\n");
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s: %s Arguments (JSON schema): %s\n", tools[i].name,
                  tools[i].description ? tools[i].description : "",
                  tools[i].parameters ? tools[i].parameters : "{}");
    text_add(out, "\nUse exactly this format, one step at a time:\n\n"
                  "Thought: what to do next\n"
                  "Action: the tool to use, one of: ");
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s%s", i ? ", " : "", tools[i].name);
    text_add(out, "\nAction Input: the arguments as a JSON object\n\n"
                  "Then stop. The result comes to you as:\n\n"
                  "Observation: the result\n\n"
                  "Repeat this as often as needed. When you know the answer, write:\n\n"
                  "Thought: I know the answer\n"
                  "Final Answer: the answer to the question");
}

/* The conversation's own system messages, then the tools. */
static void render_system(enum tool_text form, const struct chat *chat,
                          const struct chat_tool *tools, size_t count, struct chat *out)
{
    struct text text = {0};
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].role == CHAT_SYSTEM)
            text_addf(&text, "%s%s", text.length ? "\n\n" : "", chat->messages[i].text);
    if (count > 0 && text.length > 0)
        text_add(&text, "\n\n");
    if (count > 0)
        (form == TOOL_TEXT_REACT ? describe_react : describe_hermes)(tools, count, &text);
    if (text.length > 0)
        chat_add(out, CHAT_SYSTEM, text_get(&text));
    text_release(&text);
}

/* ---- writing: the other messages ---- */

static void write_call(enum tool_text form, const struct tool_call *call, struct text *out)
{
    const char *arguments = text_get(&call->arguments);
    if (form == TOOL_TEXT_REACT) {
        text_addf(out, "%sAction: %s\nAction Input: %s", out->length ? "\n" : "", call->name,
                  arguments);
        return;
    }
    struct json json;
    text_addf(out, "%s%s\n", out->length ? "\n" : "", CALL_BEGIN);
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_string(&json, "name", call->name);
    json_raw(&json, "arguments", arguments);
    json_object_end(&json);
    text_addf(out, "\n%s", CALL_END);
}

static void write_reply(enum tool_text form, const struct chat_message *message, struct text *out)
{
    bool is_react = form == TOOL_TEXT_REACT;
    if (is_react && *message->text)
        text_add(out, message->calls.count ? "Thought: " : "Final Answer: ");
    text_add(out, message->text);
    for (size_t i = 0; i < message->calls.count; i++)
        write_call(form, &message->calls.items[i], out);
}

static void write_result(enum tool_text form, const struct chat_message *message, struct text *out)
{
    const char *gap = out->length ? "\n" : "";
    if (form == TOOL_TEXT_REACT)
        text_addf(out, "%sObservation: %s", gap, message->text);
    else
        text_addf(out, "%s<tool_response>\n%s\n</tool_response>", gap, message->text);
}

void tool_text_render(enum tool_text form, const struct chat *chat, const struct chat_tool *tools,
                      size_t count, struct chat *out)
{
    struct text text = {0};
    render_system(form, chat, tools, count, out);
    for (size_t i = 0; i < chat->count; i++) {
        const struct chat_message *message = &chat->messages[i];
        enum chat_role role = message->role;
        if (role == CHAT_SYSTEM)
            continue;
        if (role == CHAT_ASSISTANT)
            write_reply(form, message, &text);
        else if (role == CHAT_TOOL)
            write_result(form, message, &text);
        else
            text_add(&text, message->text);
        bool goes_on = role == CHAT_TOOL && i + 1 < chat->count && /* results of one turn */
                       chat->messages[i + 1].role == CHAT_TOOL;
        if (goes_on)
            continue;
        chat_add(out, role == CHAT_TOOL ? CHAT_USER : role, text_get(&text));
        text_clear(&text);
    }
    text_release(&text);
}

/* ---- reading: JSON of a call ---- */

/* What is parsed: calls of these tools, and the answer beside them. */
struct reading {
    const struct chat_tool *tools;
    size_t tool_count;
    struct text *answer;
    struct tool_calls *calls;
};

static struct slice trim(const char *at, const char *end)
{
    return slice_trim(slice_between(at, end));
}

/* Removes a code fence around it: ```json ... ```, `...`. */
static struct slice unfence(struct slice s)
{
    const char *end = s.start + s.length;
    if (s.length >= 3 && strncmp(s.start, "```", 3) == 0) {
        const char *line = memchr(s.start, '\n', s.length);
        s.start = line ? line + 1 : s.start + 3;
        if (end - s.start >= 3 && strncmp(end - 3, "```", 3) == 0)
            end -= 3;
    } else if (s.length >= 2 && *s.start == '`' && end[-1] == '`') {
        s.start++, end--;
    }
    return trim(s.start, end);
}

/* The JSON object or array at the start, without its fence; NULL if there is none. */
static struct jv *read_json(struct slice s)
{
    struct jv *tree = NULL;
    s = unfence(s);
    if (s.length == 0 || (*s.start != '{' && *s.start != '['))
        return NULL;
    const char *end = json_skip_value(s.start, slice_end(s));
    return end && !jv_parse(s.start, (size_t)(end - s.start), &tree, NULL) ? tree : NULL;
}

static const struct chat_tool *find_tool(const struct reading *reading, const char *name)
{
    for (size_t i = 0; i < reading->tool_count; i++)
        if (str_equal(reading->tools[i].name, name))
            return &reading->tools[i];
    return NULL;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`' || c == '*';
}

/* Removes quotes and emphasis around it. */
static struct slice unquote(struct slice s)
{
    while (s.length >= 2 && is_quote(*s.start) && s.start[s.length - 1] == *s.start)
        s = trim(s.start + 1, s.start + s.length - 1);
    return s;
}

/* The value without a leading "NAME =" or "NAME:". */
static struct slice strip_name(const char *value, const char *name)
{
    const char *at = value;
    if (str_starts(at, name)) {
        at += strlen(name);
        at += strspn(at, " ");
        at = *at == '=' || *at == ':' ? at + 1 : value;
    }
    return unquote(trim(at, at + strlen(at)));
}

/* {"PARAMETER": value}, for a model that wrote only the value: the first required parameter, else the first. */
static void wrap(const struct chat_tool *tool, const char *value, struct text *out)
{
    struct jv *schema = NULL, *typed = NULL;
    struct json json;
    const char *given = tool && tool->parameters ? tool->parameters : "{}";
    if (jv_parse(given, strlen(given), &schema, NULL))
        schema = NULL;
    const struct jv *properties = jv_get(schema, "properties");
    const char *name = jv_text(jv_path(schema, "required.0"));
    if (!name)
        name = jv_key(jv_first_member(properties));
    if (!name)
        name = "input";
    const char *type = jv_get_text(jv_get(properties, name), "type");
    struct slice bare = strip_name(value, name);
    bool is_typed =
        type && !str_equal(type, "string") && !jv_parse(bare.start, bare.length, &typed, NULL);
    json_init(&json, out, false);
    json_object(&json, NULL);
    if (is_typed)
        jv_to_json(typed, name, &json);
    else
        json_string_bytes(&json, name, bare.start, bare.length);
    json_object_end(&json);
    jv_free(typed);
    jv_free(schema);
}

/* Arguments as JSON text; `plain` is the value if they are not JSON. */
static enum err add_call(struct reading *reading, const char *name, const struct jv *arguments,
                         const char *plain)
{
    struct text text = {0};
    struct jv *inner = NULL;
    const char *string = plain ? plain : jv_text(arguments);
    if (string && !jv_parse(string, strlen(string), &inner, NULL) && jv_is_object(inner)) {
        jv_print(inner, &text); /* an object in a string, as in OpenAI's API */
    } else if (jv_is_object(arguments)) {
        jv_print(arguments, &text);
    } else if (string ? *string : !jv_is_null(arguments)) {
        struct text value = {0};
        if (!string)
            jv_print(arguments, &value);
        wrap(find_tool(reading, name), string ? string : text_get(&value), &text);
        text_release(&value);
    }
    jv_free(inner);
    enum err err = tool_calls_add(reading->calls, NULL, name, text_get(&text));
    text_release(&text);
    return err;
}

/* {"name": ..., "arguments": {...}} and variants of these keys; *is_call: whether it was one. */
static enum err read_call(struct reading *reading, const struct jv *object, bool *is_call)
{
    static const char *const NAMES[] = {"name", "function.name", "function", "tool", "action"};
    static const char *const ARGUMENTS[] = {"arguments", "function.arguments", "parameters",
                                            "args",      "action_input",       "input"};
    const char *name = NULL;
    const struct jv *arguments = NULL;
    for (size_t i = 0; i < COUNT_OF(NAMES) && !name; i++)
        name = jv_text(jv_path(object, NAMES[i]));
    for (size_t i = 0; i < COUNT_OF(ARGUMENTS) && !arguments; i++)
        arguments = jv_path(object, ARGUMENTS[i]);
    *is_call = name && *name;
    return *is_call ? add_call(reading, name, arguments, NULL) : ERR_OK;
}

/* One call, or an array of them. */
static enum err read_calls(struct reading *reading, const struct jv *tree, bool *is_call)
{
    enum err err = ERR_OK;
    *is_call = false;
    if (jv_is_object(tree))
        return read_call(reading, tree, is_call);
    for (const struct jv *item = jv_is_array(tree) ? jv_first(tree) : NULL; item && !err;
         item = jv_next(item)) {
        bool is_one;
        err = read_call(reading, item, &is_one);
        *is_call = *is_call || is_one;
    }
    return err;
}

/* ---- reading: Hermes ---- */

static void add_part(struct text *answer, struct slice part)
{
    if (part.length > 0 && answer->length > 0)
        text_add(answer, "\n");
    text_add_bytes(answer, part.start, part.length);
}

/* Parses everything between the tags; the last closing tag may be missing, since it is often a stop token.  Text that
 * is not JSON of a call stays part of the answer. */
static enum err parse_hermes(struct reading *reading, const char *text)
{
    const char *at = text, *begin;
    enum err err = ERR_OK;
    while (!err && (begin = strstr(at, CALL_BEGIN))) {
        const char *body = begin + strlen(CALL_BEGIN), *end = strstr(body, CALL_END);
        const char *next = end ? end + strlen(CALL_END) : body + strlen(body);
        struct jv *tree = read_json(trim(body, end ? end : next));
        bool is_call;
        err = read_calls(reading, tree, &is_call);
        jv_free(tree);
        add_part(reading->answer, trim(at, is_call ? begin : next));
        at = next;
    }
    if (!err && !strstr(at, "<tool_response>"))
        add_part(reading->answer, trim(at, at + strlen(at)));
    return err;
}

/* ---- reading: ReAct ---- */

enum label { NO_LABEL, THOUGHT, ACTION_INPUT, ACTION, OBSERVATION, FINAL_ANSWER };

static const char *const LABELS[] = {
    [THOUGHT] = "thought",         [ACTION_INPUT] = "action input", [ACTION] = "action",
    [OBSERVATION] = "observation", [FINAL_ANSWER] = "final answer",
};

static bool starts_nocase(const char *string, const char *prefix)
{
    while (*prefix && tolower((unsigned char)*string) == *prefix)
        string++, prefix++;
    return !*prefix;
}

/* The label at the start of a line, and the start of its value: "Action:", "**Action 2:** ", "### Final Answer:". */
static enum label read_label(const char *line, const char **value)
{
    line += strspn(line, " \t*#>_-");
    for (size_t i = THOUGHT; i <= FINAL_ANSWER; i++) {
        if (!starts_nocase(line, LABELS[i]))
            continue;
        const char *at = line + strlen(LABELS[i]);
        at += strspn(at, " \t0123456789*_");
        if (*at != ':')
            continue;
        at++;
        *value = at + strspn(at, "*_");
        return (enum label)i;
    }
    return NO_LABEL;
}

/* A label at this position: at the start of a line in any spelling, within a line only exactly as requested. */
static enum label label_at(const char *text, const char *at, const char **value)
{
    static const char *const EXACT[] = {[ACTION_INPUT] = "Action Input:",
                                        [ACTION] = "Action:",
                                        [OBSERVATION] = "Observation:",
                                        [FINAL_ANSWER] = "Final Answer:"};
    if (at == text || at[-1] == '\n')
        return read_label(at, value);
    for (size_t i = ACTION_INPUT; i <= FINAL_ANSWER && at[-1] == ' '; i++)
        if (str_starts(at, EXACT[i])) {
            *value = at + strlen(EXACT[i]);
            return (enum label)i;
        }
    return NO_LABEL;
}

/* A label and its value, up to the next label. */
struct step {
    enum label label;
    struct slice value;
};

/* The step at *at, which advances to the next; false at the end.  Text before the first label has none. */
static bool next_step(const char *text, const char **at, struct step *out)
{
    const char *value = *at, *end = *at, *ignored;
    if (!*end)
        return false;
    out->label = label_at(text, *at, &value);
    do
        end++;
    while (*end && (end < value || label_at(text, end, &ignored) == NO_LABEL));
    out->value = trim(value, end);
    *at = end;
    return true;
}

/* Matches a tool name in the model's text: exactly, ignoring case, or within a sentence; else the text itself. */
static const char *known_name(const struct reading *reading, const char *written)
{
    const struct chat_tool *tools = reading->tools;
    for (size_t i = 0; i < reading->tool_count; i++)
        if (str_equal_nocase(tools[i].name, written))
            return tools[i].name;
    for (size_t i = 0; i < reading->tool_count; i++)
        if (str_contains_nocase(written, tools[i].name))
            return tools[i].name;
    return written;
}

static bool is_no_action(const char *name)
{
    static const char *const WORDS[] = {"", "none", "n/a", "no action", "no action needed"};
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        if (str_equal_nocase(name, WORDS[i]))
            return true;
    return false;
}

/* A Python dictionary as JSON, if its quotes are unambiguous. */
static struct jv *read_python(struct slice s)
{
    struct text json = {0};
    if (s.length == 0 || *s.start != '{' || memchr(s.start, '"', s.length))
        return NULL;
    text_add_bytes(&json, s.start, s.length);
    for (size_t i = 0; i < json.length; i++)
        if (json.bytes[i] == '\'')
            json.bytes[i] = '"';
    struct jv *tree = read_json((struct slice){json.bytes, json.length});
    text_release(&json);
    return tree;
}

static enum err add_action(struct reading *reading, const char *name, struct slice input)
{
    struct jv *tree = read_json(input);
    struct text plain = {0};
    if (!tree)
        tree = read_python(unfence(input));
    if (!jv_is_object(tree)) {
        input = unquote(unfence(input));
        text_add_bytes(&plain, input.start, input.length);
    }
    enum err err = add_call(reading, known_name(reading, name), tree,
                            jv_is_object(tree) ? NULL : text_get(&plain));
    jv_free(tree);
    text_release(&plain);
    return err;
}

/* The text after "Action:": JSON of a complete call, name[input] or name(input), or a name, whose input follows.
 * Finish[answer] is an answer. */
static enum err read_action(struct reading *reading, struct slice action, struct slice input)
{
    bool is_call = false;
    struct jv *tree = read_json(action);
    enum err err = read_calls(reading, tree, &is_call);
    jv_free(tree);
    if (err || is_call)
        return err;
    const char *end = memchr(action.start, '\n', action.length);
    struct slice line = trim(action.start, end ? end : slice_end(action));
    const char *bracket = line.start, *line_end = slice_end(line);
    while (bracket < line_end && *bracket != '[' && *bracket != '(')
        bracket++;
    bool has_input = bracket < line_end && (line_end[-1] == ']' || line_end[-1] == ')');
    if (has_input && input.length == 0)
        input = trim(bracket + 1, line_end - 1);
    struct slice name = unquote(trim(line.start, has_input ? bracket : line_end));
    struct text written = {0};
    text_add_bytes(&written, name.start, name.length);
    if (str_equal_nocase(text_get(&written), "finish"))
        add_part(reading->answer, input);
    else if (!is_no_action(text_get(&written)))
        err = add_action(reading, text_get(&written), input);
    text_release(&written);
    return err;
}

/* Steps in order, up to the first hallucinated one; *has_form: whether there was an action or an answer. */
static enum err parse_react(struct reading *reading, const char *text, bool *has_form)
{
    struct step step, next;
    const char *at = text;
    enum err err = ERR_OK;
    *has_form = false;
    while (!err && next_step(text, &at, &step) && step.label != OBSERVATION) {
        const char *after = at;
        struct slice input = {step.value.start, 0};
        *has_form = *has_form || step.label == ACTION || step.label == FINAL_ANSWER;
        if (reading->calls->count > 0 && step.label != ACTION)
            break; /* hallucinated: there is no result yet */
        if (step.label == FINAL_ANSWER)
            text_clear(reading->answer);
        if (step.label != ACTION) {
            add_part(reading->answer, step.value);
            if (step.label == FINAL_ANSWER)
                break;
            continue;
        }
        if (next_step(text, &after, &next) && next.label == ACTION_INPUT) {
            input = next.value;
            at = after;
        }
        err = read_action(reading, step.value, input);
    }
    return err;
}

/* ---- parsing: bare JSON ---- */

/* The first JSON in the text that is a call of a known tool; the text before it is the answer. */
static enum err parse_bare(const struct reading *reading, const char *text)
{
    enum { TRIES = 32 }; /* each may scan to the end */
    enum err err = ERR_OK;
    const char *at = text, *end = text + strlen(text);
    struct tool_calls *calls = reading->calls;
    for (int i = 0; i < TRIES && !err && calls->count == 0 && (at = strpbrk(at, "{[")); i++, at++) {
        struct tool_calls found = {0};
        struct reading inner = *reading;
        struct jv *tree = read_json((struct slice){at, (size_t)(end - at)});
        bool is_call;
        inner.calls = &found;
        err = read_calls(&inner, tree, &is_call);
        jv_free(tree);
        for (size_t c = 0; c < found.count && !err; c++)
            if (find_tool(reading, found.items[c].name))
                err = tool_calls_add(calls, NULL, found.items[c].name,
                                     text_get(&found.items[c].arguments));
        tool_calls_release(&found);
        if (calls->count > 0) {
            const char *fence = strstr(text, "```");
            text_clear(reading->answer);
            add_part(reading->answer, trim(text, fence && fence < at ? fence : at));
        }
    }
    return err;
}

enum err tool_text_parse(const char *text, const struct chat_tool *tools, size_t count,
                         struct text *answer, struct tool_calls *calls)
{
    struct reading reading = {tools, count, answer, calls};
    const char *end;
    bool has_form;
    while ((end = strstr(text, "</think>"))) /* a plan is not an action */
        text = end + strlen("</think>");
    if (strstr(text, CALL_BEGIN))
        return parse_hermes(&reading, text);
    enum err err = parse_react(&reading, text, &has_form);
    return err || has_form ? err : parse_bare(&reading, text);
}
