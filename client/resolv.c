/* SPDX-License-Identifier: Apache-2.0 */
#include "client/resolv.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* The host's words behind `keyword`. A later search line replaces the one before, as for libc;
 * servers and options add up. */
static void
host_words(const void *ctx, const char *host, const char *keyword, bool last, struct str_list *out)
{
    char *save = NULL, *text = mem_strdup(ctx, str_or(host, ""));
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *word = NULL, *key = strtok_r(line, " \t", &word);
        if (!key || !str_eq(key, keyword))
            continue;
        if (last)
            out->n = 0;
        for (char *v; (v = strtok_r(NULL, " \t", &word)) != NULL;)
            list_add(ctx, *out, v);
    }
}

static const struct str_list *
choose(const void *ctx, const struct env *env, const struct str_list *own, const char *host,
       const char *keyword)
{
    struct str_list *out = mem_new(ctx, struct str_list);
    for (size_t i = 0; i < own->n; i++)
        list_add(ctx, *out, env_interpolate(ctx, env, own->v[i]));
    if (out->n == 0)
        host_words(ctx, host, keyword, str_eq(keyword, "search"), out);
    return out;
}

/* One line of all words, or of each its own. */
static char *
add(const void *ctx, char *text, const char *keyword, const struct str_list *words, bool each)
{
    for (size_t i = 0; i < words->n; i++)
        text = mem_printf(ctx, "%s%s%s %s", text, i > 0 && each ? "\n" : "",
                          i == 0 || each ? keyword : "", words->v[i]);
    return words->n > 0 ? mem_printf(ctx, "%s\n", text) : text;
}

const char *
resolv_text(const void *ctx, const struct env *env, const struct dns_config *dns, const char *host)
{
    auto_mem void *tmp = mem_ctx("resolv");
    char *text = mem_strdup(tmp, "");
    text = add(tmp, text, "search", choose(tmp, env, &dns->searches, host, "search"), false);
    text = add(tmp, text, "nameserver", choose(tmp, env, &dns->servers, host, "nameserver"), true);
    text = add(tmp, text, "options", choose(tmp, env, &dns->options, host, "options"), false);
    return talloc_steal(ctx, text);
}
