/* SPDX-License-Identifier: Apache-2.0
 *
 * migrate check: which jobs and configuration of a Nomad run here unchanged, which differ and which
 * are refused. What is refused is what the parser, the canonical form and the validation of the
 * server say; what differs are the rows of differs.c.
 */
#ifndef PADDOCK_CLI_MIGRATE_H
#define PADDOCK_CLI_MIGRATE_H

#include "cli/command.h"
#include "cli/jobfile.h"

enum verdict { MIGRATE_UNCHANGED, MIGRATE_DIFFERS, MIGRATE_REFUSED };

struct finding {
    enum verdict verdict;
    const char *where; /* "web.nomad:12", "web.nomad", "job \"web\"" */
    const char *text, *fix;
};

struct checked {
    const char *kind; /* "job", "agent", "cluster" */
    const char *name; /* of the job; its file, where it has none */
    const char *where;
    const char *src; /* the text that positions are looked up in; NULL: there is none */
    struct finding *v;
    size_t n;
    enum verdict verdict; /* the worst of them */
};

struct checked_list {
    struct checked **v;
    size_t n;
    size_t skipped; /* files that are neither a job nor an agent's configuration */
};

struct checked *checked_new(struct cmd *c, struct checked_list *l, const char *kind,
                            const char *where);
/* `where` NULL: that of the whole. */
void checked_add(struct cmd *c, struct checked *k, enum verdict verdict, const char *where,
                 const char *text, const char *fix);
/* The first line of [from, to) whose first word is `word`, with `name` in quotes behind it if there
 * is one. */
const char *checked_line(const char *from, const char *to, const char *word, const char *name);
/* "file:line" of the block of a group, a task and a word in it, as far as they are found in k->src;
 * each may be NULL. */
const char *checked_place(struct cmd *c, const struct checked *k, const char *group,
                          const char *task, const char *word);

/* job.c: `job` as it was given; it is brought into canonical form. */
void check_job(struct cmd *c, struct checked *k, struct job *job);
/* differs.c */
void check_differences(struct cmd *c, struct checked *k, const struct job *job);

/* files.c: a directory, or one file. -1: it cannot be read, which was said. */
int check_files(struct cmd *c, const struct jobfile_opts *o, const char *path,
                struct checked_list *l);
/* cluster.c: the agent that c->address names. */
int check_cluster(struct cmd *c, struct checked_list *l);

#endif
