/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of constraints and affinities. A new one is a row here and its case in
 * server/sched/compare/constraint.c; job files, validation and the scheduler read this list.
 */
#ifndef PADDOCK_API_OPERATORS_H
#define PADDOCK_API_OPERATORS_H

/* X(name, what it takes, its words...). Words of OPERATORS_KEYS may stand for "operator" in a job
 * file: constraint { version = ">= 2" }. */
#define OPERATORS_KEYS(X) \
    X(REGEXP, VALUE, "regexp") \
    X(VERSION, VALUE, "version") \
    X(SEMVER, VALUE, "semver") \
    X(SET_ALL, VALUE, "set_contains", "set_contains_all") \
    X(SET_ANY, VALUE, "set_contains_any") \
    X(DISTINCT_HOSTS, SWITCH, "distinct_hosts") \
    X(DISTINCT_PROPERTY, COUNT, "distinct_property")
#define OPERATORS_OTHERS(X) \
    X(EQ, VALUE, "=", "==", "is", "") \
    X(NE, VALUE, "!=", "not") \
    X(LT, VALUE, "<") \
    X(LE, VALUE, "<=") \
    X(GT, VALUE, ">") \
    X(GE, VALUE, ">=") \
    X(IS_SET, NOTHING, "is_set") \
    X(IS_NOT_SET, NOTHING, "is_not_set")

#define OPERATORS_ENUM(name, takes, ...) OP_##name,
enum operator_code { OPERATORS_KEYS(OPERATORS_ENUM) OPERATORS_OTHERS(OPERATORS_ENUM) OP_UNKNOWN };
#undef OPERATORS_ENUM

struct operator {
    enum operator_code code;
    enum {
        TAKES_VALUE,   /* an attribute and a value */
        TAKES_NOTHING, /* an attribute */
        TAKES_COUNT,   /* an attribute; the value may be a count of 1 or more */
        TAKES_SWITCH,  /* no attribute; the value may be true or false */
    } takes;
    const char *words[5]; /* up to a NULL */
};

/* NULL: unknown. No word at all is "=". */
const struct operator *operator_find(const char *word);
enum operator_code operator_code(const char *word);
/* The words of OPERATORS_KEYS, up to a NULL. */
extern const char *const operator_keys[];

#endif
