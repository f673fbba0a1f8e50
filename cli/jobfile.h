/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading job files: path or standard input, HCL or JSON, variables, file functions.
 */
#ifndef PADDOCK_CLI_JOBFILE_H
#define PADDOCK_CLI_JOBFILE_H

#include "cli/command.h"
#include "cli/limits.h"
#include "jobspec/hcl.h"

struct jobfile_opts {
    bool json;
    bool strict; /* -hcl2-strict, default true */
    struct opt_list vars, var_files;
    const char *vault_namespace;
};

#define JOBFILE_OPTS_INIT {.strict = true}
#define JOBFILE_OPTS(o)                                                                           \
    {"json", OPT_BOOL, &(o).json, NULL,                                                          \
     "The file is a job in the API's JSON."},                                              \
    {"hcl2-strict", OPT_BOOL, &(o).strict, NULL,                                                 \
     "Variables that the file does not declare are an error (default true)."},             \
    {"var", OPT_LIST, &(o).vars, "<name=value>",                                                 \
     "Value of an input variable; may be repeated (also NOMAD_VAR_<name>)."},              \
    {"var-file", OPT_LIST, &(o).var_files, "<path>",                                             \
     "File with values of input variables; may be repeated."},                             \
    {"vault-namespace", OPT_STRING, &(o).vault_namespace, "<namespace>",                         \
     "Stored with the job; without effect here."}

struct jobfile {
    struct job *job;
    struct job_submission *submission; /* source and variables as given */
};

/* The text of a file, or of standard input ("-"). */
int jobfile_read(struct cmd *c, const char *path, char **ret, size_t *ret_n, struct err *e);
/* Writes an example into a file that is not there yet. `what`: "Job file". -1: why not was said. */
int jobfile_example(struct cmd *c, const char *what, const char *path, const char *text);

/* 0, or -1 when the mistakes were printed. Also sets c->namespace and c->region from the job. */
int jobfile_load(struct cmd *c, const struct jobfile_opts *o, const char *path,
                 struct jobfile *ret);
/* The HCL text of the file at `path`; what is wrong with it is in `d`. -1: a file of variables
 * cannot be read, which was said. */
int jobfile_parse(struct cmd *c, const struct jobfile_opts *o, const char *path, struct slice text,
                  struct job **ret, struct hcl_diags *d);

#endif
