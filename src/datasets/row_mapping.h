/* From a row of any dataset to an item: which field is which, how the prompt is assembled, and which rows
 * are wanted.  A struct row_mapping owns its copy of the parameters: row_mapping_init,
 * row_mapping_release. */
#ifndef IPW_DATASETS_ROW_MAPPING_H
#define IPW_DATASETS_ROW_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct item;
struct jv;

/* The parameters of every driver that maps rows, for its list of param_spec. */
#define ROW_MAPPING_PARAMS                                                                         \
    {"problem", "FIELD", "the prompt (problem|question|prompt|input|instruction)"},                \
        {"answer", "FIELD",                                                                        \
         "the expected answer (answer|target|output|expected|reference_answer)"},                  \
        {"subject", "FIELD", "the subject (subject|category|topic|domain|level)"},                 \
        {"id", "FIELD",                                                                            \
         "the item id (id|uuid|question_id|unique_id|task_id), else the row number"},              \
        {"grader", "FIELD", "the field that names the grader of the row"},                         \
        {"metadata", "FIELD", "an object, or JSON text, that is the metadata (all other fields)"}, \
        {"template", "TEXT", "the prompt from several fields: {question}\\n{choices}"},            \
        {"choices", "FIELD", "a list of options, or FIELD|FIELD; shown as lettered lines"},        \
        {"answer_is", "KIND", "with choices: letter, index (from 0), text or any (any)"},          \
        {"shuffle_choices", "SEED", "random order of the choices of each row"},                    \
        {"answer_after", "MARK", "the answer follows the last occurrence of this marker: ####"},   \
        {"require", "FIELDS", "skip rows in which one of FIELD|FIELD is empty"},                   \
        {"without", "FIELDS", "skip rows in which one of FIELD|FIELD is not empty"}

/* What a dataset writes for the correct option.  ANSWER_ANY: any of them, if only one reading makes
 * sense. */
enum answer_kind { ANSWER_ANY, ANSWER_LETTER, ANSWER_INDEX, ANSWER_TEXT };

struct row_mapping {
    struct params params;                                              /* owns the strings below */
    const char *problem, *answer, *subject, *id, *grader, *metadata;   /* names of fields */
    const char *template, *choices, *answer_after, *require, *without; /* NULL: not given */
    enum answer_kind answer_is;
    bool shuffle_choices;
    uint64_t seed;
};

enum err row_mapping_init(struct row_mapping *out, const struct params *params, struct error *why)
    MUST_USE;
void row_mapping_release(struct row_mapping *mapping);

/* Does a row have the fields?  ERR_BAD_VALUE names the missing one, and those that exist. */
enum err row_mapping_check(const struct row_mapping *mapping, const struct jv *row,
                           struct error *why) MUST_USE;

/* May rows be skipped? */
bool row_mapping_filters(const struct row_mapping *mapping);

/* Fills a zeroed item from a row.  *wanted is false for a row that the parameters exclude; the item is
 * then empty. */
enum err row_mapping_apply(const struct row_mapping *mapping, const struct jv *row, uint64_t number,
                           struct item *out, bool *wanted, struct error *why) MUST_USE;

#endif
