#include "engine/llama/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "engine/llama/api.h"

/* A line comes in pieces; what does not fit is cut. */
static _Thread_local struct {
    char line[240];
    bool is_complaint;
    char complaint[240];
} words;

/* "load_tensors: tensor is missing" without the function's name. */
static const char *without_function(const char *line)
{
    const char *at = line;
    while (isalnum((unsigned char)*at) || *at == '_' || *at == ':' || *at == '~')
        at++;
    return at > line + 1 && at[-1] == ':' && *at == ' ' ? at + 1 : line;
}

static void end_line(void)
{
    char *line = str_trim(words.line);
    if (*line) {
        log_debug("llama.cpp: %s", line);
        if (words.is_complaint && !words.complaint[0])
            str_copy(words.complaint, sizeof words.complaint, without_function(line));
    }
    words.line[0] = '\0';
    words.is_complaint = false;
}

void words_take(int level, const char *text, void *data)
{
    (void)data;
    if (level == LLAMA_LOG_DEBUG)
        return; /* a line for each node of each graph */
    if (level != LLAMA_LOG_CONTINUED)
        end_line();
    words.is_complaint |= level == LLAMA_LOG_ERROR;
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t used = strlen(words.line);
        size_t room = sizeof words.line - 1 - used;
        size_t take = length < room ? length : room;
        memcpy(words.line + used, text, take);
        words.line[used + take] = '\0';
        text += length;
        if (*text == '\n') {
            bool goes_on = words.is_complaint;
            end_line();
            words.is_complaint = goes_on && text[1];
            text++;
        }
    }
}

const char *words_complaint(void)
{
    end_line();
    return words.complaint;
}

/* "FILE:LINE: what failed", of which the path is nobody's business; the reason stood in a line before. */
void words_last(const char *message)
{
    const char *what = strstr(message, ": ");
    const char *because = words_complaint();
    log_error("llama.cpp ends this process: %s%s%s", what ? what + 2 : message,
              because[0] ? ": " : "", because);
}

void words_forget(void)
{
    end_line();
    words.complaint[0] = '\0';
}
