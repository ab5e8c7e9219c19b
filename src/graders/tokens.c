/* A tokenizer for prose with Markdown and LaTeX in it, and the vocabulary of answers: the words by which
 * models of several languages say that something is the answer, is not, or is only a check. */
#include "graders/tokens.h"

#include <ctype.h>

#include "graders/fold.h"

/* ---- tokens ---- */

/* Arrows, check marks, emoji and mathematical signs are marks. */
static bool is_word_character(uint32_t c)
{
    if (c < 0x80)
        return isalnum((int)c) != 0;
    bool symbol = (c >= 0x2190 && c <= 0x2BFF) || (c >= 0x1F000 && c <= 0x1FAFF) || c == 0xD7 ||
                  c == 0xF7 || c == 0xB0 || c == 0xB1 || c == 0xFE0F;
    return char_is_word(c) && !symbol;
}

static size_t word_length(struct slice text)
{
    size_t length, at = 0;
    bool cjk = char_is_cjk(char_at(text, &length));
    while (at < text.length) {
        struct slice rest = {text.start + at, text.length - at};
        uint32_t c = char_at(rest, &length);
        bool inside = is_word_character(c) && char_is_cjk(c) == cjk;
        if (!inside && at && (c == '\'' || c == 0x2019) && length < rest.length)
            inside = isalpha((unsigned char)rest.start[length]) != 0;
        if (!inside)
            break;
        at += length;
    }
    return at;
}

static size_t mark_length(struct slice text, size_t character)
{
    size_t length = 1;
    if (text.start[0] != '\\')
        return character;
    while (length < text.length && isalpha((unsigned char)text.start[length]))
        length++;
    return length;
}

bool token_next(struct tokens *tokens, struct token *out)
{
    bool spaced = false;
    size_t length = 0;
    uint32_t c = 0;
    for (; tokens->at < tokens->end; tokens->at += length, spaced = true) {
        c = char_at(slice_between(tokens->at, tokens->end), &length);
        if (c == '\n' || !char_is_space(c))
            break;
    }
    if (tokens->at >= tokens->end)
        return false;
    struct slice rest = slice_between(tokens->at, tokens->end);
    enum token_kind kind = c == '\n' ? TOKEN_LINE : is_word_character(c) ? TOKEN_WORD : TOKEN_MARK;
    if (kind != TOKEN_LINE)
        length = kind == TOKEN_WORD ? word_length(rest) : mark_length(rest, length);
    *out = (struct token){kind, spaced, {rest.start, length}};
    tokens->at += length;
    return true;
}

static bool token_equals(const struct token *token, struct slice wanted)
{
    struct slice text = token->text;
    while (text.length && wanted.length) {
        size_t length, wanted_length;
        uint32_t c = char_at(text, &length);
        if ((c == 0x2019 ? '\'' : char_lower(c)) != char_lower(char_at(wanted, &wanted_length)))
            return false;
        text = (struct slice){text.start + length, text.length - length};
        wanted = (struct slice){wanted.start + wanted_length, wanted.length - wanted_length};
    }
    return text.length == wanted.length;
}

bool token_same(const struct token *a, const struct token *b)
{
    return a->kind == b->kind && a->text.length && token_equals(a, b->text);
}

bool token_is(const struct token *token, const char *wanted)
{
    return token_equals(token, slice_of(wanted));
}

/* The token in lower case between two spaces, as in the word lists; false if it is too long, or not ASCII. */
static bool token_needle(const struct token *token, char needle[64])
{
    size_t length = token->text.length;
    if (length > 60)
        return false;
    needle[0] = ' ';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)token->text.start[i];
        if (c >= 0x80 || c == '\0')
            return false;
        needle[i + 1] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    needle[length + 1] = ' ';
    needle[length + 2] = '\0';
    return true;
}

int token_index(const struct token *token, const char *words)
{
    int index = 0;
    char needle[64];
    if (!token->text.length || token->kind == TOKEN_LINE)
        return -1;
    if (token_needle(token, needle)) {
        const char *found = strstr(words, needle);
        for (const char *c = words; found && c < found; c++)
            index += *c == ' ';
        return found ? index : -1;
    }
    int first = tolower((unsigned char)token->text.start[0]);
    for (const char *word = words + 1, *end; *word; word = end + 1, index++) {
        end = strchr(word, ' ');
        if ((first >= 0x80 || first == *word) && token_equals(token, slice_between(word, end)))
            return index;
    }
    return -1;
}

/* ---- vocabulary ---- */

bool token_is_mark(const struct token *token, const char *characters)
{
    return token->kind == TOKEN_MARK && token->text.length == 1 &&
           strchr(characters, token->text.start[0]);
}

bool token_ends_sentence(const struct token *token, const struct token *before)
{
    if (token->kind != TOKEN_MARK || !token_in(token, " . ! ? 。 ！ ？ "))
        return false;
    bool attached = before && before->kind == TOKEN_WORD && !token->spaced;
    return !(attached && token_is(token, ".") &&
             token_in(before, " ans e g i eq no vs approx ca "));
}

bool token_is_cjk(const struct token *token)
{
    size_t length;
    return token->kind == TOKEN_WORD && token->text.length &&
           char_is_cjk(char_at(token->text, &length));
}

bool token_has(const struct token *token, const char *part)
{
    for (size_t at = 0; at < token->text.length; at++)
        if (slice_starts((struct slice){token->text.start + at, token->text.length - at}, part))
            return true;
    return false;
}

bool token_is_answer(const struct token *token)
{
    static const char WORDS[] =
        " answer ans answers respuesta réponse antwort lösung risposta resposta ответ cevap "
        "odpowiedź antwoord svar jawaban jawabannya jawapan jawapannya odpověď odpoveď cevabı "
        "yanıt án lời उत्तर जवाब উত্তর vastaus απάντηση відповідь الإجابة התשובה răspunsul válasz ";
    static const char *const PARTS[] = {"答案",     "正解",   "答え",   "正确选项",
                                        "正確選項", "选项是", "选项为", "選項是",
                                        "選項為",   "정답",   "답은",   NULL};
    if (token->kind != TOKEN_WORD)
        return false;
    if (!token_is_cjk(token))
        return token_in(token, WORDS);
    for (const char *const *part = PARTS; *part; part++)
        if (token_has(token, *part))
            return true;
    return false;
}

bool token_is_link(const struct token *token)
{
    static const char LINKS[] =
        " is was are be equals : ： = es est ist sind lautet è é – — - → > been becomes son "
        "sont adalah ialah je är er là είναι है este ";
    return token_in(token, LINKS);
}

bool token_is_negation(const struct token *token)
{
    struct slice text = token->text;
    if (token->kind != TOKEN_WORD)
        return false;
    bool contracted = text.length > 3 && (slice_is((struct slice){slice_end(text) - 3, 3}, "n't") ||
                                          slice_is((struct slice){slice_end(text) - 4, 4}, "’t"));
    bool cjk = token_is_cjk(token) &&
               (token_has(token, "不") || token_has(token, "ない") || token_has(token, "아니") ||
                token_has(token, "无法") || token_has(token, "無法"));
    return contracted || cjk ||
           token_in(token, " not neither nor never cannot nicht kein не "
                           "bukan tidak není nie niet geen değil không नहीं ");
}

bool token_is_cjk_bound(const struct token *token)
{
    static const char *const PARTS[] = {"至少", "至多", "最多", "超过", "超過", "大于",
                                        "大於", "小于", "小於", "少于", "少於", "多于",
                                        "多於", "不到", "최소", "최대"};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (token_has(token, PARTS[i]))
            return true;
    return false;
}

bool token_is_opening(const struct token *token)
{
    return token->kind == TOKEN_MARK && token_in(token, " ( [ { * _ \" ' ` $ < “ ‘ « 「 ");
}

/* ---- sentences ---- */

bool sentence_next(struct slice *rest, struct slice *sentence)
{
    while (rest->length) {
        struct tokens tokens = tokens_of(*rest);
        struct token token, before = {0};
        /* A word directly after the mark continues the sentence, "3.14"; punctuation does not, "4.**" */
        const char *stop = slice_end(*rest);
        for (bool ends = false; token_next(&tokens, &token); before = token) {
            ends = token.kind != TOKEN_WORD && (ends || token_ends_sentence(&token, &before));
            bool apart =
                tokens.at >= tokens.end || slice_is_space(*tokens.at) || token.text.length > 1;
            if (token.kind == TOKEN_LINE || (ends && apart)) {
                stop = tokens.at;
                break;
            }
        }
        *sentence = slice_trim(slice_between(rest->start, stop));
        *rest = slice_between(stop, slice_end(*rest));
        if (sentence->length)
            return true;
    }
    return false;
}

/* "(not 13)", "(we reject x = 4)" */
static bool opens_remark(const struct token *token, struct tokens after)
{
    struct token next;
    return token_is(token, "(") && token->spaced && token_next(&after, &next) &&
           next.kind == TOKEN_WORD && next.text.length > 1 &&
           !isdigit((unsigned char)next.text.start[0]);
}

struct slice sentence_without_reason(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    static const char WORDS[] =
        " because since when where if while whereas though although verify assuming given attained "
        "achieved occurring about approximately roughly ≈ ";
    struct slice kept = sentence;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, " so therefore thus hence "))
            kept = sentence; /* a conclusion follows the reason */
        else if (kept.length == sentence.length && token.text.start > sentence.start &&
                 (token_in(&token, WORDS) || (token_is(&token, "as") && token_is(&before, ",")) ||
                  opens_remark(&token, tokens)))
            kept = slice_between(sentence.start, token.text.start);
        before = token;
    }
    kept = slice_trim(kept);
    if (kept.length < sentence.length && kept.length > 3 &&
        slice_is((struct slice){slice_end(kept) - 3, 3}, " or")) /* "12π, or about 37.7" */
        kept.length -= 3;
    kept.length -= kept.length && kept.start[kept.length - 1] == ',';
    return kept;
}

bool bold_next(struct slice *rest, struct slice *bold)
{
    const char *open = NULL, *end = slice_end(*rest);
    for (const char *c = rest->start; c + 1 < end; c++) {
        if (c[0] != '*' || c[1] != '*')
            continue;
        if (open) {
            *bold = slice_trim(slice_between(open, c));
            *rest = slice_between(c + 2, end);
            return true;
        }
        open = ++c + 1;
    }
    return false;
}

bool text_is_truncated(struct slice text)
{
    static const char UNFINISHED[] =
        " the a an of on to is and or because that with for in by as are was be which from leaves "
        "gives equals makes has have = so requires we i you he she they then ";
    struct tokens tokens = tokens_of(text);
    struct token token = {0};
    unsigned count = 0;
    while (token_next(&tokens, &token))
        count++;
    return count > 3 && token_in(&token, UNFINISHED); /* "7 in" */
}

bool text_declines(struct slice sentence)
{
    static const char UNABLE[] = " not cannot can't couldn't don't won't unable impossible "
                                 "insufficient no sorry unclear hard "
                                 "difficult tough refuse decline hesitate ";
    static const char ANSWERING[] =
        " know determine determined decide answer tell say sure certain choose pick identify "
        "provide information enough access missing clarify solve possible settle commit select "
        "conclude single definite definitive idea clue ";
    static const char OPEN[] =
        " unsure undecided undetermined indeterminate unanswerable torn stumped ";
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, earlier = {0};
    int left = 0; /* maximum distance in words between the two parts of a refusal */
    bool declines = false;
    while (token_next(&tokens, &token)) {
        declines = declines || (left > 0 && token_in(&token, ANSWERING)) ||
                   token_in(&token, OPEN) ||
                   (token_is(&before, "give") && token_is(&token, "up") &&
                    !token_in(&earlier, " you must they we ")) ||
                   (token_in(&before, " must i ") && token_is(&token, "decline")) ||
                   (token_is(&before, "need") && token_is(&token, "more"));
        if (token_in(&token, " but so still however yet maybe perhaps probably guess "))
            declines = false;
        left = token_in(&token, UNABLE) ? 7 : left - (token.kind == TOKEN_WORD);
        earlier = before;
        before = token;
    }
    return declines;
}

/* The first words of a sentence, without the punctuation around them; fewer at its end. */
static size_t leading_words(struct slice sentence, struct token *words, size_t wanted)
{
    struct tokens tokens = tokens_of(sentence);
    size_t count = 0;
    while (count < wanted && token_next(&tokens, &words[count]))
        count += words[count].kind == TOKEN_WORD;
    return count;
}

static bool has_check_mark(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    bool found = false;
    while (!found && token_next(&tokens, &token))
        found = token_in(&token, " ✓ ✔ ✅ ");
    return found;
}

/* "If he spent 80 again, he would have 140." */
static bool is_supposition(struct slice sentence, const struct token *first)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    bool found = false;
    while (token_is(first, "if") && !found && token_next(&tokens, &token))
        found = token_is(&token, "would") || token_has(&token, "'d");
    return found;
}

static bool is_aside(struct slice sentence)
{
    static const char CHECKS[] =
        " verification verify verifying check checking double sanity note notes proof "
        "explanation reasoning reason rationale remark justification comprobación "
        "vérification probe 检验 验证 解释 explicación explication ";
    static const char MORE[] = " check verify double like know hope confirm want free ";
    struct token words[5];
    size_t count = leading_words(sentence, words, 5);
    if (text_declines(sentence))
        return false;
    if (count > 2 && sentence.start[0] == '(' && slice_end(sentence)[-1] == ')')
        return true;
    if (count && token_in(&words[0], CHECKS))
        return true;
    if (count < 2)
        return false;
    if (count > 2 && token_is(&words[0], "to") && token_in(&words[1], " arrive get see ") &&
        (token_is(&words[2], "this") || (count > 3 && token_is(&words[3], "this"))))
        return true; /* "To arrive at this: ..." */
    if (token_in(&words[0], " substituting plugging ") && has_check_mark(sentence))
        return true; /* "Substituting back: 2(38 - 5) = 66 ✓" */
    if (is_supposition(sentence, &words[0]))
        return true;
    bool offers = token_in(&words[0], " would let hope feel do please ") &&
                  token_in(&words[1], " you me free it know ");
    if (token_in(&words[0], " please always ") && token_in(&words[1], " consult see seek note "))
        return true;
    bool checks = token_in(&words[0], " let let's to we i quick as you now ");
    for (size_t i = 1; i < count; i++)
        if (token_in(&words[i], MORE) && (offers || (checks && i < 4)))
            return true;
    return false;
}

bool sentence_concludes(struct slice sentence)
{
    static const char WORDS[] = " so therefore thus hence ";
    struct token words[2];
    size_t count = leading_words(sentence, words, 2);
    return (count && token_in(&words[0], WORDS)) ||
           (count > 1 && token_in(&words[0], " yes ok okay ") && token_in(&words[1], WORDS));
}

/* Whether a blank line follows the sentence. */
static bool ends_paragraph(struct slice sentence, const char *end)
{
    unsigned lines = 0;
    for (const char *c = slice_end(sentence); c < end && slice_is_space(*c); c++)
        lines += *c == '\n';
    return lines > 1;
}

struct slice text_without_asides(struct slice text)
{
    struct slice rest = text, sentence;
    const char *cut = NULL; /* where the asides at the end begin */
    bool inside = false;
    while (sentence_next(&rest, &sentence)) {
        inside = (inside && !sentence_concludes(sentence)) || is_aside(sentence);
        if (!inside)
            cut = NULL;
        else if (!cut)
            cut = sentence.start;
        if (inside && ends_paragraph(sentence, slice_end(text)))
            inside = false;
    }
    struct slice kept = cut ? slice_trim(slice_between(text.start, cut)) : text;
    return kept.length ? kept : text;
}

struct slice text_last_sentence(struct slice text)
{
    struct slice rest = text_without_asides(text), sentence = rest;
    while (sentence_next(&rest, &sentence))
        ;
    return sentence;
}

/* Whether the line begins another question or turn: "Question 2:", "**Q:**", "Next question", "The following are
 * multiple choice questions", "User:". */
static bool begins_question(struct slice line)
{
    static const char HEADINGS[] = " question q problem exercise user human instruction pregunta "
                                   "frage вопрос 问题 問題 ";
    struct tokens tokens = tokens_of(line);
    struct token token = {.kind = TOKEN_LINE}, words[4];
    size_t count = leading_words(line, words, 4);
    if (count > 1 && token_in(&words[0], " next another new ") &&
        token_in(&words[1], " question problem "))
        return true;
    if (count == 4 && token_is(&words[0], "the") && token_is(&words[1], "following") &&
        token_in(&words[2], " are is ") && token_in(&words[3], " multiple a "))
        return true;
    while (token_next(&tokens, &token) && token.kind == TOKEN_MARK)
        ;
    while (token.text.length > 1 && isdigit((unsigned char)slice_end(token.text)[-1]))
        token.text.length--; /* "Q2" */
    if (!token_in(&token, HEADINGS))
        return false;
    while (token_next(&tokens, &token))
        if (!token_in(&token, " * _ # ") && !isdigit((unsigned char)token.text.start[0]))
            return token_in(&token, " : ： ");
    return false;
}

/* Whether the text begins with the first option of a list: "A. ", "(A) ", "A) ". */
static bool begins_options(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token = {.kind = TOKEN_LINE};
    bool open = false;
    while (token_next(&tokens, &token) && (token.kind == TOKEN_LINE || token_is(&token, "(")))
        open = token_is(&token, "(");
    return token.kind == TOKEN_WORD && slice_equal(token.text, slice_of("A")) &&
           token_next(&tokens, &token) && token_in(&token, open ? " ) " : " . ) : ");
}

/* A word problem, with numbers and names of its subjects: "Mike has $50.  How many ...?" */
static bool is_word_problem(struct slice line)
{
    static const char GO_ON[] =
        " he she it they we i you so now then next finally therefore thus first since wait but and "
        "let let's hmm step after this that these those his her their how what which also however ";
    struct slice rest = line, sentence;
    struct token words[1], token, before = {0};
    if (!leading_words(line, words, 1) || token_in(&words[0], GO_ON) ||
        !sentence_next(&rest, &sentence))
        return false;
    bool told = slice_end(sentence)[-1] == '.', number = false;
    struct tokens tokens = tokens_of(sentence);
    while (token_next(&tokens, &token)) {
        number = number || isdigit((unsigned char)token.text.start[0]);
        told = told && !token_is(&token, "=");
    }
    while (told && number && sentence_next(&rest, &sentence)) {
        bool asks = false;
        for (tokens = tokens_of(sentence); token_next(&tokens, &token); before = token)
            asks = asks || (token_is(&before, "how") && token_in(&token, " many much long far "));
        if (asks && slice_end(sentence)[-1] == '?')
            return true;
    }
    return false;
}

/* Whether another question begins here without a heading, after a blank line: one with options, or a word problem. */
static bool begins_new_task(struct slice text, const char *line, const char *next)
{
    struct slice asked = slice_trim(slice_between(line, next)),
                 rest = slice_between(next, slice_end(text));
    if (line < text.start + 2 || line[-2] != '\n' || !asked.length)
        return false;
    return (slice_end(asked)[-1] == '?' && begins_options(rest)) || is_word_problem(asked);
}

struct slice text_before_question(struct slice text)
{
    const char *end = slice_end(text), *line = text.start;
    for (const char *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        struct slice before = slice_trim(slice_between(text.start, line));
        if (begins_question(slice_between(line, next)) || begins_new_task(text, line, next))
            return before.length ? before : text;
    }
    return text;
}
