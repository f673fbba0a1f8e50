/* SPDX-License-Identifier: Apache-2.0 */
#include "api/operators.h"

#include "common/mem.h"
#include "common/str.h"

#define ROW(name, takes, ...) {OP_##name, TAKES_##takes, {__VA_ARGS__, NULL}},
#define WORDS(name, takes, ...) __VA_ARGS__,

static const struct operator operators[] = {OPERATORS_KEYS(ROW) OPERATORS_OTHERS(ROW)};
const char *const operator_keys[] = {OPERATORS_KEYS(WORDS) NULL};

const struct operator *
operator_find(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        for (const char *const *w = operators[i].words; *w; w++)
            if (str_eq(*w, word))
                return &operators[i];
    return NULL;
}

enum operator_code
operator_code(const char *word)
{
    const struct operator *o = operator_find(word);
    return o ? o->code : OP_UNKNOWN;
}
