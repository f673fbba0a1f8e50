/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-mock: paddock as it is, with mock_driver beside its drivers; for tests/system/test-mock.
 */
#include "tests/lib/mock.h"

__attribute__((constructor)) static void
add_mock(void)
{
    driver_add(&driver_mock);
}
