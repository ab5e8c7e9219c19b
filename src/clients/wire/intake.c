#include "clients/wire/intake.h"

#include <string.h>

#include "clients/wire/words.h"
#include "port/json_read.h"

static enum err add_piece(struct intake *intake, struct text *part, const char *piece, nanos t)
{
    size_t length = piece ? strlen(piece) : 0;
    struct client_reply *reply = intake->reply;
    if (length > CONTENT_LIMIT - reply->content.length - reply->reasoning.length)
        return err_set(intake->why, ERR_BAD_VALUE, "%s: the answer is longer than %d MiB",
                       intake->server, CONTENT_LIMIT >> 20);
    enum err err = client_reply_arrived(reply, part, piece, length, t);
    if (err)
        return err_set(intake->why, err, "out of memory for the answer");
    const struct client_request *request = intake->request;
    if (length > 0 && request->saw)
        request->saw(request->context, piece, length, t);
    return ERR_OK;
}

enum err intake_content(struct intake *intake, const char *piece, nanos t)
{
    return add_piece(intake, &intake->reply->content, piece, t);
}

enum err intake_reasoning(struct intake *intake, const char *piece, nanos t)
{
    return add_piece(intake, &intake->reply->reasoning, piece, t);
}

void intake_count(int64_t *count, const struct jv *value)
{
    int64_t number;
    if (jv_integer(value, &number) && number >= 0)
        *count = number;
}

void intake_seconds(double *s, const struct jv *value, double unit)
{
    double number = jv_number(value);
    if (is_known(number) && number >= 0)
        *s = number * unit;
}

enum err intake_malformed(struct intake *intake, const char *bytes, size_t length)
{
    char shown[80];
    words_shown(shown, sizeof shown, bytes, length);
    return err_set(intake->why, ERR_BAD_VALUE, "%s sent something that is not JSON: %s",
                   intake->server, shown);
}

enum err intake_cut_off(struct intake *intake)
{
    intake->reply->retryable = true;
    return err_set(intake->why, ERR_LOST,
                   "%s ended the answer before it was complete: look at its "
                   "log",
                   intake->server);
}
