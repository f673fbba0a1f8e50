/* SPDX-License-Identifier: Apache-2.0
 *
 * How the commands print: column tables, key/value lists, ages, short ids, JSON and templates.
 */
#ifndef PADDOCK_CLI_FORMAT_H
#define PADDOCK_CLI_FORMAT_H

#include "cli/command.h"

/* --- tables --- */
struct table {
    size_t cols; /* of the first row */
    size_t rows;
    const char **cell;
    struct cmd *c;
};

void table_init(struct table *t, struct cmd *c, size_t cols);
/* Exactly `cols` strings follow; copied; NULL and "" print as <none> (header rows as they are). */
void table_row(struct table *t, ...);
/* The same from an array. */
void table_cells(struct table *t, const char *const *cell);
/* Columns padded to the widest, two blanks apart. */
void table_print(struct table *t);
/* The same, where empty cells stay empty. */
void table_print_blank(struct table *t);
/* Two columns: "Key   = value"; empty values stay empty ("<none>" where the caller says so). */
void table_print_kv(struct table *t);
/* A heading and the map below it, as table_print_kv. */
void print_titled_map(struct cmd *c, const char *title, const struct str_map *m);

/* --- texts, owned by c --- */
enum { ID_SHORT = 8 };
const char *fmt_id(struct cmd *c, const char *id, bool verbose);
const char *fmt_i64(struct cmd *c, int64_t v);
const char *fmt_u64(struct cmd *c, uint64_t v);
const char *fmt_bool(bool b);
/* Local time, RFC 3339 seconds; "<none>"-able: NULL for 0. */
const char *fmt_time(struct cmd *c, int64_t ns);
/* "3m20s ago", "25s from now" */
const char *fmt_ago(struct cmd *c, int64_t ns);
const char *fmt_join(struct cmd *c, const struct str_list *l, const char *sep);

/* --- -json and -t --- */
struct output {
    bool json;
    const char *tmpl;
};
#define OUTPUT_OPTS(o)                                                                          \
    {"json", OPT_BOOL, &(o).json, NULL, "Output in JSON format."},                        \
    {"t", OPT_STRING, &(o).tmpl, "<template>", "Format the JSON output by a Go template."}
/* True when asked for: `v` was printed (or the mistake), return *ret_code. */
bool output_value(struct cmd *c, const struct output *o, const struct value *v, int *ret_code);
/* The same, for a described object or list of them. */
bool output_object(struct cmd *c, const struct output *o, const struct type *t, const void *obj,
                   int *ret_code);
bool output_list(struct cmd *c, const struct output *o, const struct type *t,
                 const void *list, int *ret_code);

#endif
