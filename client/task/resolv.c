/* SPDX-License-Identifier: Apache-2.0 */
#include "client/task/resolv.h"

#include <string.h>

#include "api/plain.h"
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

/* The job's own, looked at again: it is only now known what they are. */
static int
own_words(const void *ctx, struct env *env, const struct str_list *own, bool addresses,
          struct str_list *out, struct err *e)
{
    for (size_t i = 0; i < own->n; i++) {
        const char *s = env_interpolate(ctx, env, own->v[i]);
        if (!plain_word(s))
            return err_set(e, -ERR_INVALID, "dns: \"%.100s\" is not one word, but \"%.100s\"",
                           own->v[i], s);
        if (addresses && !plain_address(s))
            return err_set(e, -ERR_INVALID, "dns: server \"%.100s\" is not an IP address", s);
        list_add(ctx, *out, s);
    }
    return 0;
}

/* One line of all words, or of each its own. */
static char *
resolv_add(const void *ctx, char *text, const char *keyword, const struct str_list *words,
           bool each)
{
    for (size_t i = 0; i < words->n; i++)
        text = mem_printf(ctx, "%s%s%s %s", text, i > 0 && each ? "\n" : "",
                          i == 0 || each ? keyword : "", words->v[i]);
    return words->n > 0 ? mem_printf(ctx, "%s\n", text) : text;
}

const char *
resolv_text(const void *ctx, struct env *env, const struct dns_config *dns, const char *host,
            struct err *e)
{
    const struct {
        const char *keyword;
        const struct str_list *own;
        bool each;
    } rows[] = {{"search", &dns->searches, false},
                {"nameserver", &dns->servers, true},
                {"options", &dns->options, false}};
    auto_mem void *tmp = mem_ctx("resolv");
    char *text = mem_strdup(tmp, "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str_list words = {0};
        if (own_words(tmp, env, rows[i].own, rows[i].each, &words, e) < 0)
            return NULL;
        if (words.n == 0)
            host_words(tmp, host, rows[i].keyword, i == 0, &words);
        text = resolv_add(tmp, text, rows[i].keyword, &words, rows[i].each);
    }
    return talloc_steal(ctx, text);
}
