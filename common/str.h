/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings: the few helpers that every room needs.
 */
#ifndef PADDOCK_COMMON_STR_H
#define PADDOCK_COMMON_STR_H

#include <stdbool.h>
#include <stddef.h>

bool str_eq(const char *a, const char *b); /* NULL equals NULL and "" */
bool str_empty(const char *s);             /* NULL or "" */
const char *str_or(const char *s, const char *dflt); /* s unless NULL or "" */
bool str_prefix(const char *s, const char *prefix);
bool str_suffix(const char *s, const char *suffix);
/* Copies at most size - 1 bytes and terminates; false when it was cut. */
bool str_copy(char *dst, size_t size, const char *src);
/* Valid UTF-8 of `n` bytes (no surrogates, no overlongs). */
bool utf8_valid(const char *s, size_t n);
/* Bytes of the longest beginning of `s` that is no longer than `max` and ends with a whole
 * character. */
size_t utf8_cut(const char *s, size_t max);
/* Makes a text from others safe to print on a terminal, in place: control characters (C0, DEL, C1),
 * what changes the direction of writing, and bytes that are no UTF-8 become '?'. `lines`: \n and \t
 * stay. */
void str_tame(char *s, bool lines);
/* Compares secrets: each byte is looked at, whatever came before. False if one is empty. */
bool str_same_secret(const char *a, const char *b);
/* Glob with * and ? (and \ quoting), as Nomad's datacenter patterns. */
bool str_glob(const char *pattern, const char *s);
bool str_stars(const char *pattern, const char *s); /* "*" alone means something */
/* Says whether it is one of the words, the last of which is followed by NULL; NULL is "". */
bool str_is_one(const char *s, const char *const *words);
#define STR_ONE_OF(s, ...) str_is_one((s), (const char *const[]){__VA_ARGS__, NULL})
/* Edit distance, capped: for "did you mean". */
size_t str_distance(const char *a, const char *b);
/* The nearest of `n` names within distance 3, or NULL. */
const char *str_nearest(const char *s, const char *const *names, size_t n);
/* qsort comparison for const char *. */
int str_cmp_qsort(const void *a, const void *b);

#endif
