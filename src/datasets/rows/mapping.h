/* From a row of any dataset to an item: which field is which, how the problem is put together, and
 * which rows are wanted.  A struct mapping owns its copy of the parameters: mapping_init,
 * mapping_release. */
#ifndef IPW_DATASETS_ROWS_MAPPING_H
#define IPW_DATASETS_ROWS_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"
#include "datasets/rows/choices.h"

struct item;
struct jv;

/* The parameters of every driver that maps rows; for its list of param_spec. */
#define MAPPING_PARAMS                                                                             \
    {"problem", "FIELD", "what is asked (problem|question|prompt|input|instruction)"},             \
        {"answer", "FIELD", "the answer (answer|target|output|expected|reference_answer)"},        \
        {"subject", "FIELD", "the subject (subject|category|topic|domain|level)"},                 \
        {"id", "FIELD",                                                                            \
         "the row's name (id|uuid|question_id|unique_id|task_id), else its number"},               \
        {"grader", "FIELD", "the field that names the row's grader"},                              \
        {"metadata", "FIELD", "an object, or JSON text, that is the metadata (the whole rest)"},   \
        {"template", "TEXT", "the problem from several fields: {question}\\n{choices}"},           \
        {"choices", "FIELD", "a list of options, or FIELD|FIELD; they become lettered lines"},     \
        {"answer_is", "KIND", "with choices: letter, index (from 0), text or any (any)"},          \
        {"shuffle_choices", "SEED", "another order of the choices for each row"},                  \
        {"answer_after", "MARK", "the answer is what follows the last such mark: ####"},           \
        {"require", "FIELDS", "leave out rows in which one of FIELD|FIELD is empty"},              \
        {"without", "FIELDS", "leave out rows in which one of FIELD|FIELD is not empty"}

struct mapping {
    struct params params; /* what the pointers below point into */
    const char *problem, *answer, *subject, *id, *grader, *metadata; /* names, see rows/fields.h */
    const char *template, *choices, *answer_after, *require, *without; /* NULL: not given */
    enum answer_kind answer_is;
    bool shuffle_choices;
    uint64_t seed;
};

enum err mapping_init(struct mapping *out, const struct params *params, struct error *why) MUST_USE;
void mapping_release(struct mapping *mapping);

/* Does a row have the fields?  ERR_BAD_VALUE names the one it has not, and those it has. */
enum err mapping_check(const struct mapping *mapping, const struct jv *row, struct error *why)
    MUST_USE;

/* May rows be left out? */
bool mapping_filters(const struct mapping *mapping);

/* Fills a zeroed item from a row.  *wanted is false for a row that the parameters leave out; the item
 * is then empty. */
enum err mapping_apply(const struct mapping *mapping, const struct jv *row, uint64_t number,
                       struct item *out, bool *wanted, struct error *why) MUST_USE;

#endif
