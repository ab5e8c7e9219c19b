#include "clients/wire/ollama_answer.h"

#include <string.h>

#include "clients/wire/words.h"
#include "port/json_read.h"

static const double NANOSECOND = 1e-9;

static enum err take_error(struct intake *in, const struct jv *root)
{
    if (jv_is_null(jv_get(root, "error")))
        return ERR_OK;
    const char *said = words_of_error(root);
    char shown[160];
    words_shown(shown, sizeof shown, said, strlen(said));
    in->reply->retryable = true; /* the model's runner died, or the memory of the card ran out */
    return err_set(in->why, ERR_IO, "%s gave up: %s", in->server, shown);
}

/* The last line.  A count of 0 is left out by the server as an unknown one is: both stay unknown. */
static void take_counts(const struct jv *root, struct client_reply *reply)
{
    intake_count(&reply->prompt_tokens, jv_get(root, "prompt_eval_count"));
    intake_count(&reply->output_tokens, jv_get(root, "eval_count"));
    intake_seconds(&reply->server_load_s, jv_get(root, "load_duration"), NANOSECOND);
    intake_seconds(&reply->server_prefill_s, jv_get(root, "prompt_eval_duration"), NANOSECOND);
    intake_seconds(&reply->server_decode_s, jv_get(root, "eval_duration"), NANOSECOND);
    const char *reason = jv_text(jv_get(root, "done_reason"));
    if (reason)
        words_shown(reply->finish_reason, sizeof reply->finish_reason, reason, strlen(reason));
}

static enum err take_root(struct ollama_answer *answer, const struct jv *root, nanos t)
{
    struct intake *in = &answer->in;
    enum err err = take_error(in, root);
    const struct jv *message = jv_get(root, "message"); /* of /api/chat */
    if (!err)
        err = intake_reasoning(in, jv_text(jv_get(root, "thinking")), t);
    if (!err)
        err = intake_reasoning(in, jv_text(jv_get(message, "thinking")), t);
    if (!err)
        err = intake_content(in, jv_text(jv_get(root, "response")), t);
    if (!err)
        err = intake_content(in, jv_text(jv_get(message, "content")), t);
    if (!err && jv_truth(jv_get(root, "done"), false)) {
        answer->is_done = true;
        take_counts(root, in->reply);
    }
    return err;
}

static enum err take_line(void *context, const char *line, size_t length, nanos t)
{
    struct ollama_answer *answer = context;
    if (length == 0 || answer->is_done)
        return ERR_OK;
    struct jv *root;
    if (jv_parse(line, length, &root, NULL))
        return intake_malformed(&answer->in, line, length);
    enum err err = jv_is_object(root) ? take_root(answer, root, t)
                                      : intake_malformed(&answer->in, line, length);
    jv_free(root);
    return err;
}

void ollama_answer_init(struct ollama_answer *answer, const struct client_request *request,
                        struct client_reply *reply, const char *server, struct error *why)
{
    *answer = (struct ollama_answer){
        .in = {.request = request, .reply = reply, .server = server, .why = why},
    };
}

enum err ollama_answer_take(void *context, const char *bytes, size_t length, nanos t)
{
    struct ollama_answer *answer = context;
    answer->last = t;
    return lines_feed(&answer->lines, bytes, length, t, take_line, answer, answer->in.why);
}

enum err ollama_answer_end(struct ollama_answer *answer, enum err transport)
{
    if (transport)
        return answer->is_done ? ERR_OK : transport;
    enum err err = ERR_OK;
    if (answer->lines.held.length > 0) { /* the last line may lack its end */
        err = lines_feed(&answer->lines, "\n", 1, answer->last, take_line, answer, answer->in.why);
        if (err == ERR_BAD_VALUE)
            return intake_cut_off(&answer->in);
    }
    if (err)
        return err;
    return answer->is_done ? ERR_OK : intake_cut_off(&answer->in);
}

void ollama_answer_release(struct ollama_answer *answer)
{
    lines_release(&answer->lines);
}
