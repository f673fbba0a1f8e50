/* SPDX-License-Identifier: Apache-2.0
 *
 * Which function a name stands for, and the names that are refused: functions of consul-template
 * that ask Consul or Vault, start programs, or are made by chance.
 */
#include "template/funcs.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

const struct gv_type *
function_type(char letter)
{
    switch (letter) {
    case 's':
        return &gv_string;
    case 'i':
        return &gv_int;
    case 'I':
        return &gv_int64;
    case 'f':
        return &gv_float64;
    case 'b':
        return &gv_bool;
    case 'a':
        return &gv_any;
    case 'l':
        return &gv_anys;
    case 'S':
        return &gv_strings;
    case 'm':
        return &gv_map_any;
    case 't':
        return &gv_map_string;
    default:
        return &gv_value;
    }
}

static const struct function *
table_find(const struct function *t, const char *name)
{
    for (; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

const struct function *
function_find(const struct template_grammar *g, const char *name, size_t n, struct err *e)
{
    static const struct function *const task[] = {functions_go, functions_text, functions_math};
    char key[64];
    if (n >= sizeof(key))
        return NULL;
    memcpy(key, name, n);
    key[n] = 0;
    (void)e;
    const struct function *f = NULL;
    if (g->table == TEMPLATE_CLI)
        return table_find(functions_go, key);
    for (size_t i = 0; i < ARRAY_LEN(task) && !f; i++)
        f = table_find(task[i], key);
    return f;
}
