/* SPDX-License-Identifier: Apache-2.0
 *
 * Which function a name stands for, and the names that are refused with words: functions of
 * consul-template and sprig that ask Consul or Vault, the machine or chance.
 */
#include "template/funcs.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* No value has it: options of a library, which a template cannot make. */
static const struct gv_type option_type = {GV_ERROR, 0,    "func(*mergo.Config)", NULL, NULL,
                                           NULL,     false};

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
    case 'F':
        return &option_type;
    default:
        return &gv_value;
    }
}

static const struct function *const task_tables[] = {
    functions_go,         functions_text,       functions_math,        functions_ask,
    functions_data,       functions_sprig_text, functions_sprig_lists, functions_sprig_numbers,
    functions_sprig_case, functions_semver,     functions_url};

/* --- names that are refused --- */

#define VARIABLES "use nomadVar, with the values in a variable: \"paddock var put PATH KEY=VALUE\""
#define SERVICES "use nomadService, with services of provider \"nomad\""
#define CHANCE "gives another text each time"

static const struct {
    const char *name, *asks, *instead;
} refused[] = {
    {"key", "asks Consul", VARIABLES},
    {"keyExists", "asks Consul", "use nomadVarExists"},
    {"keyOrDefault", "asks Consul", VARIABLES},
    {"ls", "asks Consul", "use nomadVarList"},
    {"safeLs", "asks Consul", "use nomadVarListSafe"},
    {"tree", "asks Consul", "use nomadVarList"},
    {"safeTree", "asks Consul", "use nomadVarListSafe"},
    {"byKey", "asks Consul", VARIABLES},
    {"byMeta", "asks Consul", SERVICES},
    {"explode", "asks Consul", "use explodeMap"},
    {"service", "asks Consul", SERVICES},
    {"services", "asks Consul", "use nomadServices, with services of provider \"nomad\""},
    {"connect", "asks Consul", SERVICES},
    {"node", "asks Consul", SERVICES},
    {"nodes", "asks Consul", SERVICES},
    {"datacenters", "asks Consul", SERVICES},
    {"partitions", "asks Consul", SERVICES},
    {"peerings", "asks Consul", SERVICES},
    {"exportedServices", "asks Consul", SERVICES},
    {"caRoots", "asks Consul", VARIABLES},
    {"caLeaf", "asks Consul", VARIABLES},
    {"secret", "asks Vault", VARIABLES},
    {"secrets", "asks Vault", "use nomadVarList"},
    {"pkiCert", "asks Vault", VARIABLES},
    {"sockaddr", "asks the machine for its addresses", "use env \"NOMAD_IP_<label>\""},
    {"sprig_bcrypt", CHANCE, VARIABLES},
    {"sprig_encryptAES", CHANCE, VARIABLES},
    {"sprig_genCA", CHANCE, VARIABLES},
    {"sprig_genCAWithKey", CHANCE, VARIABLES},
    {"sprig_genPrivateKey", CHANCE, VARIABLES},
    {"sprig_genSelfSignedCert", CHANCE, VARIABLES},
    {"sprig_genSelfSignedCertWithKey", CHANCE, VARIABLES},
    {"sprig_genSignedCert", CHANCE, VARIABLES},
    {"sprig_genSignedCertWithKey", CHANCE, VARIABLES},
    {"sprig_htpasswd", CHANCE, VARIABLES},
    {"sprig_randInt", CHANCE, VARIABLES},
    {"sprig_shuffle", CHANCE, VARIABLES},
    {"sprig_ago", "works with times of the machine's zone", "use timestamp"},
    {"sprig_mustDateModify", "works with times of the machine's zone", "use timestamp"},
    {"sprig_must_date_modify", "works with times of the machine's zone", "use timestamp"},
    {"sprig_mustToDate", "works with times of the machine's zone", "use timestamp"},
    {"sprig_toDate", "works with times of the machine's zone", "use timestamp"},
    {"sprig_unixEpoch", "works with times of the machine's zone", "use timestamp"},
    {"sprig_buildCustomCert", "works with private keys", VARIABLES},
    {"sprig_decryptAES", "works with private keys", VARIABLES},
    {"sprig_derivePassword", "works with private keys", VARIABLES},
    {"spew_dump", "shows memory of Go's", "use printf \"%#v\""},
    {"spew_printf", "shows memory of Go's", "use printf \"%#v\""},
    {"spew_sdump", "shows memory of Go's", "use printf \"%#v\""},
    {"spew_sprintf", "shows memory of Go's", "use printf \"%#v\""},
};

static bool
is_refused(const char *name, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (strcmp(refused[i].name, name) == 0) {
            err_set(e, -ERR_UNSUPPORTED, "function \"%s\" %s: %s", name, refused[i].asks,
                    refused[i].instead);
            return true;
        }
    return false;
}

/* --- all names --- */

static const struct function *
table_find(const struct function *t, const char *name)
{
    for (; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

static const struct function *
deny_function(struct run *r, const char *name)
{
    struct function *f = run_alloc(r, sizeof(*f));
    *f = function_disabled;
    f->name = run_dup(r, name, strlen(name));
    return f;
}

const struct function *
function_find(struct run *r, const struct template_grammar *g, struct slice word, struct err *e)
{
    const char *name = run_dup(r, word.p, word.n);
    const struct function *f = NULL;
    if (g->table == TEMPLATE_CLI)
        return table_find(functions_go, name);
    for (size_t i = 0; g->denied && g->denied[i]; i++)
        if (str_glob(g->denied[i], name))
            return deny_function(r, name);
    for (size_t i = 0; i < ARRAY_LEN(task_tables) && !f; i++)
        f = table_find(task_tables[i], name);
    return f || is_refused(name, e) ? f : NULL;
}
