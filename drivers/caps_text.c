/* SPDX-License-Identifier: Apache-2.0 */
#include "drivers/caps_text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/capability.h>

#include "common/mem.h"

/* The library takes "chown =ep" for "chown": where a name ends for the library, none goes on here.
 */
static bool
caps_text_find(const char *name, cap_value_t *ret)
{
    char full[64];
    int n =
        snprintf(full, sizeof(full), "%s%s", strncasecmp(name, "cap_", 4) == 0 ? "" : "cap_", name);
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")])
        return false;
    return n > 0 && (size_t)n < sizeof(full) && cap_from_name(full, ret) == 0;
}

bool
caps_text_known(const char *name)
{
    cap_value_t bit;
    return caps_text_find(name, &bit);
}

const char *
caps_text_of(const void *ctx, const struct str_list *names)
{
    static const cap_flag_t flags[] = {CAP_PERMITTED, CAP_EFFECTIVE};
    cap_t set = cap_init();
    bool any = false, bad = set == NULL;
    for (size_t i = 0; i < names->n && !bad; i++) {
        cap_value_t bit;
        if (!caps_text_find(names->v[i], &bit))
            continue;
        any = true;
        for (size_t f = 0; f < ARRAY_LEN(flags); f++)
            bad |= cap_set_flag(set, flags[f], 1, &bit, CAP_SET) < 0;
    }
    char *text = any && !bad ? cap_to_text(set, NULL) : NULL;
    const char *ret = text ? mem_strdup(ctx, text) : NULL;
    (void)cap_free(text);
    (void)cap_free(set);
    return ret;
}
