/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of objects with a name (api/object.h): list, info, apply and delete of each kind, and
 * what commands of their own take from these.
 */
#ifndef PADDOCK_CLI_OBJECT_H
#define PADDOCK_CLI_OBJECT_H

#include "cli/command.h"
#include "cli/format.h"

/* The options of all lists. */
struct list_opts {
    const char *filter, *page_token;
    int64_t per_page;
    struct output out;
};
#define LIST_OPTS(o, what)                                                                         \
    {"filter", OPT_STRING, &(o).filter, "<expression>", "List only " what " that match."},         \
        {"per-page", OPT_INT, &(o).per_page, "<n>", "List so many per page."},                     \
        {"page-token", OPT_STRING, &(o).page_token, "<token>", "Where the page starts."},          \
        OUTPUT_OPTS((o).out)
/* Returns `path` with what the options say of a list; `name` takes the place of its "%", NULL: it
 * has none. */
char *object_list_target(struct cmd *c, const char *path, const char *name,
                         const struct list_opts *o);

/* Returns the object of that name, or the only one whose name begins so; NULL: what is wrong was
 * said. */
const void *object_find(struct cmd *c, const struct type *t, const char *prefix);

/* Prints it for people (cli/object/namespace.c). */
void namespace_print(struct cmd *c, const struct namespace *n);
/* The same, with what is used of its limits; the command's code (cli/object/quota.c). */
int quota_print(struct cmd *c, const struct quota *q);

#endif
