/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "common/str.h"

static const struct {
    const char *word;
    enum acl_kind kind;
} words[] = {{"none", ACL_OPEN},
             {"any", ACL_ANY},
             {"management", ACL_MANAGEMENT},
             {"client", ACL_CLIENT},
             {"server", ACL_SERVER}};

static const struct {
    const char *prefix;
    enum acl_kind kind;
} levels[] = {{"agent:", ACL_AGENT},
              {"node:", ACL_NODE},
              {"operator:", ACL_OPERATOR},
              {"quota:", ACL_QUOTA},
              {"plugin:", ACL_PLUGIN}};

static const struct {
    const char *prefix;
    enum acl_kind kind;
    enum acl_caps_kind caps;
} sets[] = {{"namespace:", ACL_NAMESPACE, ACL_CAPS_NAMESPACE},
            {"node-pool:", ACL_NODE_POOL, ACL_CAPS_NODE_POOL},
            {"host-volume:", ACL_HOST_VOLUME, ACL_CAPS_HOST_VOLUME},
            {"operator-cap:", ACL_OPERATOR_CAP, ACL_CAPS_OPERATOR},
            {"variable:", ACL_VARIABLE, ACL_CAPS_VARIABLE},
            {"", ACL_NAMESPACE, ACL_CAPS_NAMESPACE}};

static int
parse_level(const char *word, const char *level, enum acl_kind kind, struct acl_need *ret,
            struct err *e)
{
    struct acl_need need = {.kind = (uint8_t)kind};
    if (strcmp(level, "write") == 0)
        need.level = ACL_LEVEL_WRITE;
    else if (strcmp(level, "read") == 0)
        need.level = ACL_LEVEL_READ;
    else if (strcmp(level, "list") == 0 && kind == ACL_PLUGIN)
        need.level = ACL_LEVEL_LIST;
    else
        return err_set(e, -ERR_INVALID, "no level of access: \"%.64s\"", word);
    *ret = need;
    return 0;
}

static int
parse_set(const char *word, unsigned row, struct acl_need *ret, struct err *e)
{
    struct acl_need need = {.kind = (uint8_t)sets[row].kind};
    const char *p = word + strlen(sets[row].prefix);
    if (p != word && strcmp(p, "any") == 0) {
        *ret = need;
        return 0;
    }
    for (;;) {
        size_t n = strcspn(p, "|");
        int bit = acl_cap_find(sets[row].caps, p, n);
        if (bit <= 0) /* "deny" is nothing that anybody needs */
            return err_set(e, -ERR_INVALID, "no capability: \"%.*s\" in \"%.128s\"",
                           (int)(n < 64 ? n : 64), p, word);
        need.caps |= UINT64_C(1) << bit;
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    *ret = need;
    return 0;
}

int
acl_need_parse(const char *word, struct acl_need *ret, struct err *e)
{
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(word, words[i].word) == 0) {
            *ret = (struct acl_need){.kind = (uint8_t)words[i].kind};
            return 0;
        }
    for (unsigned i = 0; i < ARRAY_LEN(levels); i++)
        if (str_prefix(word, levels[i].prefix))
            return parse_level(word, word + strlen(levels[i].prefix), levels[i].kind, ret, e);
    unsigned row = 0;
    while (!str_prefix(word, sets[row].prefix))
        row++;
    return parse_set(word, row, ret, e);
}
