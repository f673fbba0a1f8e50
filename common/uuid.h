/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PADDOCK_COMMON_UUID_H
#define PADDOCK_COMMON_UUID_H

#include <stdbool.h>

#define UUID_TEXT 37
/* Random (version 4) UUID from getrandom(2), lower case. Returns `out`. */
const char *uuid_make(char out[UUID_TEXT]);
bool uuid_valid(const char *s);

#endif
