/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters: their classes and cases, as Go's unicode has them, without a locale.
 */
#ifndef PADDOCK_TEMPLATE_RUNE_H
#define PADDOCK_TEMPLATE_RUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rune_form { RUNE_UPPER, RUNE_LOWER, RUNE_TITLE };

#define RUNE_BAD 0xfffdu

/* The first character of n > 0 bytes: its length; RUNE_BAD and 1 where there is none. */
size_t rune_take(const char *s, size_t n, uint32_t *c);
/* The last one, likewise. */
size_t rune_take_last(const char *s, size_t n, uint32_t *c);
size_t rune_count(const char *s, size_t n);
/* Its bytes, 1 to 4; RUNE_BAD for what is no character. */
size_t rune_write(uint32_t c, char to[4]);

bool rune_letter(uint32_t c);
bool rune_digit(uint32_t c);
bool rune_print(uint32_t c);
bool rune_space(uint32_t c);
uint32_t rune_to(enum rune_form f, uint32_t c);

#endif
