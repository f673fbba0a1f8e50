/* SPDX-License-Identifier: Apache-2.0
 *
 * The block ui: what goes into headers and the page has no character with which a header's value,
 * or a rule of it, ends.
 */
#include <string.h>

#include "agent/config/config_int.h"
#include "common/str.h"

static bool
source_ok(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == ';' || *p == ',')
            return false;
    return *s != '\0';
}

int
config_ui_check(const struct agent_ui *ui, struct err *e)
{
    const struct agent_csp *c = ui != NULL ? ui->content_security_policy : NULL;

    if (c == NULL)
        return 0;
    const struct str_list *const lists[] = {&c->connect_src,     &c->default_src, &c->form_action,
                                            &c->frame_ancestors, &c->img_src,     &c->script_src,
                                            &c->style_src};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i]->n; k++)
            if (!source_ok(lists[i]->v[k]))
                return err_set(e, -ERR_INVALID,
                               "ui: \"%.64s\" is no source of a content_security_policy: one word, "
                               "without \";\" and \",\"",
                               lists[i]->v[k]);
    return 0;
}
