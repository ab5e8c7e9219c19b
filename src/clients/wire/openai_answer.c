#include "clients/wire/openai_answer.h"

#include <string.h>

#include "clients/wire/openai_usage.h"
#include "clients/wire/words.h"
#include "port/json_read.h"

enum { WHOLE_LIMIT = CONTENT_LIMIT + LINE_LIMIT };

/* ---- what a document or an event holds ---- */

/* Is the error one of the moment?  Servers tell by a number or by a kind. */
static bool is_passing(const struct jv *error)
{
    static const char *const KINDS[] = {"overload", "rate_limit", "server_error",
                                        "internal", "timeout",    "unavailable"};
    double code = jv_number(jv_get(error, "code"));
    if (is_known(code))
        return code >= 500 || code == 429 || code == 408;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *type = jv_text(jv_get(error, "type"));
        const char *name = jv_text(jv_get(error, "code"));
        if ((type && str_contains_nocase(type, KINDS[i])) ||
            (name && str_contains_nocase(name, KINDS[i])))
            return true;
    }
    return false;
}

/* A failure that comes as content: {"error": ...}, {"object": "error", ...}, or an event of that
 * name. */
static enum err take_error(struct intake *in, const struct jv *root, const char *event)
{
    const struct jv *error = jv_get(root, "error");
    const char *object = jv_text(jv_get(root, "object"));
    if (jv_is_null(error) && strcmp(event, "error") != 0 && !(object && !strcmp(object, "error")))
        return ERR_OK;
    const char *said = words_of_error(root);
    char shown[160];
    if (!said)
        said = "an error that it does not name";
    words_shown(shown, sizeof shown, said, strlen(said));
    in->reply->retryable = is_passing(jv_is_object(error) ? error : root);
    return err_set(in->why, ERR_IO, "%s gave up: %s", in->server, shown);
}

typedef enum err (*piece_taker)(struct intake *in, const char *piece, nanos t);

/* Content in parts, [{"type":"text","text":...},{"type":"thinking","thinking":[...]}]. */
static enum err take_parts(struct intake *in, const struct jv *parts, piece_taker taker, nanos t)
{
    enum err err = ERR_OK;
    for (const struct jv *part = jv_first(parts); part && !err; part = jv_next(part)) {
        const struct jv *thinking = jv_get(part, "thinking");
        err = taker(in, jv_text(jv_get(part, "text")), t);
        for (const struct jv *p = jv_first(thinking); p && !err; p = jv_next(p))
            err = intake_reasoning(in, jv_text(jv_get(p, "text")), t);
    }
    return err;
}

/* A delta of a stream, or the message of a whole document. */
static enum err take_message(struct intake *in, const struct jv *message, nanos t)
{
    /* Some servers send the thinking under both names: it is the same text. */
    const char *thinking = jv_text(jv_get(message, "reasoning_content"));
    if (!thinking || !*thinking)
        thinking = jv_text(jv_get(message, "reasoning"));
    enum err err = intake_reasoning(in, thinking, t);
    const struct jv *content = jv_get(message, "content");
    if (!err && jv_is_array(content))
        err = take_parts(in, content, intake_content, t);
    else if (!err)
        err = intake_content(in, jv_text(content), t);
    if (!err)
        err = intake_content(in, jv_text(jv_get(message, "refusal")), t);
    return err;
}

static enum err take_root(struct openai_answer *answer, const struct jv *root, const char *event,
                          nanos t)
{
    struct intake *in = &answer->in;
    openai_usage_read(root, in->reply);
    enum err err = take_error(in, root, event);
    const struct jv *choice = jv_path(root, "choices.0");
    if (!err)
        err = take_message(in, jv_get(choice, "delta"), t);
    if (!err)
        err = take_message(in, jv_get(choice, "message"), t);
    if (!err)
        err = intake_content(in, jv_text(jv_get(choice, "text")), t);
    const char *reason = jv_text(jv_get(choice, "finish_reason"));
    if (reason && *reason)
        words_shown(in->reply->finish_reason, sizeof in->reply->finish_reason, reason,
                    strlen(reason));
    return err;
}

/* ---- the two forms ---- */

static enum err take_event(void *context, const struct sse_event *event)
{
    struct openai_answer *answer = context;
    if (answer->is_done || event->length == 0)
        return ERR_OK;
    if (strcmp(event->data, "[DONE]") == 0) {
        answer->is_done = true;
        return ERR_OK;
    }
    struct jv *root;
    if (jv_parse(event->data, event->length, &root, NULL))
        return intake_malformed(&answer->in, event->data, event->length);
    enum err err = jv_is_object(root) ? take_root(answer, root, event->name, event->t)
                                      : intake_malformed(&answer->in, event->data, event->length);
    jv_free(root);
    return err;
}

static enum err take_document(struct openai_answer *answer)
{
    struct jv *root;
    const struct text *whole = &answer->whole;
    if (jv_parse(text_get(whole), whole->length, &root, NULL))
        return intake_malformed(&answer->in, text_get(whole), whole->length);
    enum err err = take_root(answer, root, "", answer->last);
    if (!err && jv_is_null(jv_path(root, "choices.0")))
        err = err_set(answer->in.why, ERR_BAD_VALUE, "%s sent an answer without choices",
                      answer->in.server);
    answer->is_done = !err;
    jv_free(root);
    return err;
}

/* No event stream begins with a brace, and no document without one; the type that the server names
 * is not always right. */
static enum openai_form find_form(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r\n", bytes[i]) || !bytes[i])
            return bytes[i] == '{' ? OPENAI_WHOLE : bytes[i] == '<' ? OPENAI_PAGE : OPENAI_STREAM;
    return OPENAI_UNDECIDED;
}

void openai_answer_init(struct openai_answer *answer, const struct client_request *request,
                        struct client_reply *reply, const char *server, struct error *why)
{
    *answer = (struct openai_answer){
        .in = {.request = request, .reply = reply, .server = server, .why = why},
    };
    sse_init(&answer->sse, take_event, answer, why);
}

enum err openai_answer_take(void *context, const char *bytes, size_t length, nanos t)
{
    struct openai_answer *answer = context;
    answer->last = t;
    if (answer->form == OPENAI_UNDECIDED)
        answer->form = find_form(bytes, length);
    if (answer->form == OPENAI_PAGE)
        return err_set(answer->in.why, ERR_BAD_VALUE,
                       "%s sent a page for people, not an answer: check the address",
                       answer->in.server);
    if (answer->form == OPENAI_STREAM)
        return sse_feed(&answer->sse, bytes, length, t);
    if (length > WHOLE_LIMIT - answer->whole.length)
        return err_set(answer->in.why, ERR_BAD_VALUE, "%s: the answer is longer than %d MiB",
                       answer->in.server, WHOLE_LIMIT >> 20);
    if (answer->form == OPENAI_WHOLE)
        text_add_bytes(&answer->whole, bytes, length);
    return answer->whole.failed
               ? err_set(answer->in.why, ERR_NO_MEMORY, "out of memory for the answer")
               : ERR_OK;
}

/* The end of a stream whose transport did not fail.  Half an event at the end is a broken stream, not
 * a malformed one. */
static enum err end_stream(struct openai_answer *answer)
{
    bool is_partial = answer->sse.lines.held.length > 0;
    enum err err = sse_end(&answer->sse, answer->last);
    return err == ERR_BAD_VALUE && is_partial ? intake_cut_off(&answer->in) : err;
}

enum err openai_answer_end(struct openai_answer *answer, enum err transport)
{
    bool has_reason = answer->in.reply->finish_reason[0] != '\0';
    if (transport)
        return answer->is_done || (has_reason && transport == ERR_LOST) ? ERR_OK : transport;
    enum err err = ERR_OK;
    if (answer->form == OPENAI_WHOLE)
        err = take_document(answer);
    else if (answer->form == OPENAI_STREAM)
        err = end_stream(answer);
    if (err)
        return err;
    has_reason = answer->in.reply->finish_reason[0] != '\0';
    return answer->is_done || has_reason ? ERR_OK : intake_cut_off(&answer->in);
}

void openai_answer_release(struct openai_answer *answer)
{
    sse_release(&answer->sse);
    text_release(&answer->whole);
}
