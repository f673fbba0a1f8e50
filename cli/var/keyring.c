/* SPDX-License-Identifier: Apache-2.0
 *
 * operator root keyring list, rotate, remove.
 */
#include <inttypes.h>

#include "api/vars/vars.h"
#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"

static void
print_keys(struct cmd *c, struct root_key_meta *const *v, size_t n, bool verbose)
{
    struct table t;

    table_init(&t, c, 4);
    table_row(&t, "Key", "State", "Create Time", "Publish Time");
    for (size_t i = 0; i < n; i++)
        table_row(&t, fmt_id(c, v[i]->key_id, verbose), v[i]->state, fmt_time(c, v[i]->create_time),
                  fmt_time(c, v[i]->publish_time));
    table_print(&t);
}

static bool
read_keys(struct cmd *c, struct root_key_meta_list *ret)
{
    return api_read_list(c, api_target(c, "/v1/operator/keyring/keys", NULL), &type_root_key_meta,
                         ret, "error");
}

int
cmd_root_keyring_list(struct cmd *c)
{
    bool verbose = false;
    const struct opt opts[] = {{"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."}, {0}};
    struct root_key_meta_list l;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!read_keys(c, &l))
        return 1;
    print_keys(c, l.v, l.n, verbose);
    return 0;
}

int
cmd_root_keyring_rotate(struct cmd *c)
{
    bool full = false, now = false, verbose = false;
    const char *later = NULL, *when = NULL;
    const struct opt opts[] = {
        {"full", OPT_BOOL, &full, NULL, "Seal all variables anew with the new key."},
        {"now", OPT_BOOL, &now, NULL, "The new key is in use at once."},
        {"prepublish", OPT_STRING, &later, "<duration>",
         "Publish the new key, and use it when that time has passed."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {0}};
    int64_t after = 0;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (now == (later != NULL))
        return cmd_fail(c, "One of \"-now\" or \"-prepublish\" must be used.");
    if (later && (duration_parse(later, &after) < 0 || after <= 0))
        return cmd_fail(c, "error: invalid duration \"%s\"", later);
    if (later && full)
        return cmd_fail(c, "\"-full\" and \"-prepublish\" do not go together");
    if (later)
        when = fmt_i64(c, cmd_now(c) + after);
    const struct keyring_rotate_response *r = api_change(
        c, &(struct change){.target = api_target(c, "/v1/operator/keyring/rotate", "full",
                                                 full ? "true" : NULL, "publish_time", when, NULL),
                            .answer = &type_keyring_rotate_response,
                            .failed = "error"});
    if (!r)
        return 1;
    struct root_key_meta *key = r->key;
    print_keys(c, &key, key ? 1 : 0, verbose);
    return 0;
}

int
cmd_root_keyring_remove(struct cmd *c)
{
    bool force = false;
    const struct opt opts[] = {
        {"force", OPT_BOOL, &force, NULL, "Remove it though variables are sealed by it."}, {0}};
    struct root_key_meta_list l;
    const char *id = NULL;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!read_keys(c, &l))
        return 1;
    for (size_t i = 0; i < l.n; i++) {
        if (!str_prefix(l.v[i]->key_id, c->args[0]))
            continue;
        if (id)
            return cmd_fail(c, "Prefix \"%s\" matches several keys", c->args[0]);
        id = l.v[i]->key_id;
    }
    if (!id)
        return cmd_fail(c, "No encryption key(s) with prefix or ID \"%s\" found", c->args[0]);
    if (!api_change(c, &(struct change){.method = "DELETE",
                                        .target = api_target(c, "/v1/operator/keyring/key/%", id,
                                                             "force", force ? "true" : NULL, NULL),
                                        .failed = "error"}))
        return 1;
    cmd_say(c, "Removed encryption key %s", id);
    return 0;
}
