/* SPDX-License-Identifier: Apache-2.0
 *
 * What docker's config.json and credential helpers say of a registry. Pure; both are the
 * operator's, and whatever they hold that is not understood says nothing.
 */
#include <string.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

#define HUB "https://index.docker.io/v1/"
#define TOKEN_USER "<token>" /* what a helper calls the user whose password is a token */

const char *
registry_name(const void *ctx, const char *image)
{
    size_t n = strcspn(image, "/");
    const char *first = mem_strndup(ctx, image, n);
    bool host =
        image[n] == '/' && (strchr(first, '.') || strchr(first, ':') || str_eq(first, "localhost"));
    return !host || str_eq(first, "docker.io") || str_eq(first, "index.docker.io") ? HUB : first;
}

/* --- what is said --- */

/* "https://host/v1/" is of "host". */
static bool
is_of(const char *key, const char *server)
{
    auto_mem void *tmp = mem_ctx("key");
    const char *at = strstr(key, "://");
    const char *host = at ? at + 3 : key;
    return str_eq(key, server) || str_eq(mem_strndup(tmp, host, strcspn(host, "/")), server);
}

static const struct value *
entry_of(const struct value *map, const char *server)
{
    const struct value *exact = value_get(map, server);
    for (size_t i = 0; !exact && map && map->kind == VALUE_MAP && i < map->map.n; i++)
        if (is_of(map->map.v[i].k, server))
            exact = map->map.v[i].v;
    return exact;
}

/* "user:password" in base64; what is none leaves both as they are. */
static void
split_auth(const void *ctx, const char *text, struct hand_auth *a)
{
    size_t n = strlen(text), len = 0;
    uint8_t *plain = mem_array(ctx, uint8_t, BASE64_DECODED(n) + 1);
    if (n == 0 || base64_decode(text, n, plain, &len) < 0)
        return;
    plain[len] = 0;
    const char *colon = strchr((const char *)plain, ':');
    if (!colon)
        return;
    a->username = mem_strndup(ctx, (const char *)plain, (size_t)(colon - (const char *)plain));
    a->password = mem_strdup(ctx, colon + 1);
}

const struct hand_auth *
registry_in_file(const void *ctx, const struct value *doc, const char *server,
                 const char **ret_helper)
{
    const struct value *entry = entry_of(value_get(doc, "auths"), server);
    const struct value *helper = entry_of(value_get(doc, "credHelpers"), server);
    struct hand_auth *a = mem_new(ctx, struct hand_auth);
    a->username = mem_strdup(a, document_text(entry, "username"));
    a->password = mem_strdup(a, document_text(entry, "password"));
    a->identity_token = mem_strdup(a, document_text(entry, "identitytoken"));
    a->server_address = mem_strdup(a, server);
    split_auth(a, document_text(entry, "auth"), a);
    *ret_helper =
        helper && helper->kind == VALUE_STRING ? helper->str.s : document_text(doc, "credsStore");
    return *a->username || *a->identity_token ? a : NULL;
}

const struct hand_auth *
registry_of_helper(const void *ctx, const struct value *doc, const char *server)
{
    struct hand_auth *a = mem_new(ctx, struct hand_auth);
    const char *user = document_text(doc, "Username"), *secret = document_text(doc, "Secret");
    bool token = str_eq(user, TOKEN_USER);
    a->username = mem_strdup(a, token ? "" : user);
    a->password = mem_strdup(a, token ? "" : secret);
    a->identity_token = mem_strdup(a, token ? secret : "");
    a->server_address = mem_strdup(a, server);
    return *user && *secret ? a : NULL;
}
