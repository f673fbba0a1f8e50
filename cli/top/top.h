/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock top: the fleet in a terminal. top.c has the command and its keys, rows.c asks the agent
 * and makes rows of what it answers, screen.c is the terminal.
 */
#ifndef PADDOCK_CLI_TOP_TOP_H
#define PADDOCK_CLI_TOP_TOP_H

#include "cli/command.h"
#include "cli/limits.h"

/* --- rows --- */
enum top_view { TOP_JOBS, TOP_NODES, TOP_ALLOCS, TOP_LOGS };
enum { TOP_COLUMNS = 9 };

enum top_tone { TONE_NONE, TONE_GOOD, TONE_WAITS, TONE_BAD, TONE_SOFT };

struct top_column {
    const char *name;
    unsigned width; /* at least; 0: what is left of the line */
    bool number;    /* ordered by struct top_row's n, the largest first */
};

struct top_row {
    const char *id, *ns, *task; /* task: the first of an allocation's */
    const char *cell[TOP_COLUMNS];
    double n[TOP_COLUMNS];
    int rank; /* the order that nobody asked for: trouble first */
    enum top_tone tone;
};

/* Figures of a node or allocation that its agent was asked for, kept for a while. */
struct top_stat {
    char id[40];
    double cpu, memory, pressure; /* < 0: not known */
    int64_t at_ns;
};

/* All that is shown, of one answer; a talloc context. */
struct top_data {
    struct cmd *c; /* owns it: a copy of the command's own */
    struct top_row *rows;
    size_t n;
    const char *verdict, *line, *error;
    enum top_tone tone;
    uint64_t seen[3]; /* indexes of the lists of jobs, nodes, allocations */
};

struct top {
    struct cmd *c;
    enum top_view view;
    const char *of_job, *of_ns, *of_node, *of_name; /* what the allocations are of; NULL: all */
    const char *log_id, *log_task, *log_type;
    const char *filter;
    int sort; /* a column; -1: by rank */
    bool reverse;
    struct top_data *data;
    struct top_stat stats[TOP_STATS_MAX];
    size_t next_stat;
    size_t at, from; /* the row that is marked, the first in sight */
    bool follows;    /* of a log: the last line is in sight, also of what comes */
    const char *key; /* of the marked row, which stays marked where it goes */
};

const struct top_column *top_columns(enum top_view v); /* ended by a name that is NULL */
/* Asks for what the view shows, if it has changed; true: t->data is another one. */
bool top_load(struct top *t, bool always);
/* Adds figures of rows [from, from + n) of the view. */
void top_figures(struct top *t, size_t from, size_t n);
/* Orders and filters the rows in place. */
void top_order(struct top *t);

/* --- the screen --- */
enum top_key {
    KEY_NONE = 0,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_ESCAPE,
    KEY_RESIZE,
    KEY_GONE
};

struct screen {
    unsigned rows, columns;
    bool color;
    struct buf out; /* the picture that is being made */
};

/* The terminal as it is for the time between; false: it is none. */
bool screen_open(struct screen *s);
void screen_close(struct screen *s);
void screen_size(struct screen *s);
/* Waits for a key for so long. KEY_NONE: none came. */
int screen_key(int64_t wait_ms);
void screen_begin(struct screen *s);
/* A piece of a line in so many cells (0: as many as it takes), cut or filled with blanks; the text
 * is tamed. Returns the cells that it takes. */
unsigned screen_put(struct screen *s, const char *text, unsigned width, bool right);
void screen_tone(struct screen *s, enum top_tone t, bool marked);
void screen_end_line(struct screen *s);
void screen_end(struct screen *s);

#endif
