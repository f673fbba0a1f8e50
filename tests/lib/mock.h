/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver for tests; see mock.c. In a library of its own (libmock.a).
 */
#ifndef PADDOCK_TESTS_LIB_MOCK_H
#define PADDOCK_TESTS_LIB_MOCK_H

#include "drivers/driver.h"

#define MOCK_ADDRESS "192.0.2.1" /* of a group's network */

extern const struct driver driver_mock;

#endif
