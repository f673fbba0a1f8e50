/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests of templates by OpenSSL, for programs that are linked with it.
 */
#ifndef PADDOCK_TEMPLATE_DIGEST_H
#define PADDOCK_TEMPLATE_DIGEST_H

#include "template/template.h"

template_digest_fn template_digest;

#endif
