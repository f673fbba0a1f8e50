/* SPDX-License-Identifier: Apache-2.0
 *
 * Job files: HCL2 or JSON text in, struct job out. Pure: variables, environment and file access are
 * arguments. The job is as written: job_canonicalize() (api/canonical.h) fills in defaults.
 */
#ifndef PADDOCK_JOBSPEC_JOBSPEC_H
#define PADDOCK_JOBSPEC_JOBSPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "common/err.h"
#include "jobspec/hcl.h"

/* A variable file: HCL (`name = value` lines), or JSON when the name ends in ".json". */
struct jobspec_file {
    const char *name;
    const char *s;
    size_t n;
};

/* The reach of the file functions (NULL: they are refused, as in /v1/jobs/parse). */
struct jobspec_fs {
    void *arg;
    const char *cwd;  /* for abspath() */
    const char *home; /* for pathexpand() */
    int (*read)(void *arg, const void *ctx, const char *path, char **ret, size_t *ret_n,
                struct err *e);
    bool (*exists)(void *arg, const char *path);
    /* Regular files below `dir` that match `pattern` (*, ?, **), relative to dir, sorted. */
    int (*glob)(void *arg, const void *ctx, const char *dir, const char *pattern,
                struct str_list *ret, struct err *e);
};

struct jobspec_input {
    const char *name; /* for positions: "web.hcl", "<stdin>" */
    const char *s;
    size_t n;
    /* Later wins: environment, files, arguments. */
    const struct str_map *env_vars; /* NOMAD_VAR_x as x; may be NULL; undeclared ones are ignored */
    const struct jobspec_file *var_files;
    size_t n_var_files;
    const struct str_list *vars; /* -var: "name=value"; may be NULL */
    bool lenient;                /* -hcl2-strict=false: undeclared variables are no error */
    const struct jobspec_fs *fs; /* may be NULL */
    void (*random)(void *p, size_t n); /* for uuidv4(), which is refused without */
};

/* The text is HCL, HCL in its JSON form, or the API's JSON, whichever it is.
 * 0, or -ERR_INVALID / -ERR_LIMIT with diagnostics. Source texts must live as long as ctx. */
int jobspec_parse(const void *ctx, const struct jobspec_input *in, struct job **ret,
                  struct hcl_diags *d);

/* The API's JSON: {"Job": {…}} or a bare job. Unknown fields are ignored, as the API does. */
int jobspec_parse_json(const void *ctx, const char *s, size_t n, struct job **ret, struct err *e);

#endif
