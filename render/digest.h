/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests of templates by OpenSSL, which is loaded when the first template asks for one: to map it
 * takes longer than all else that the renderer does.
 */
#ifndef PADDOCK_RENDER_DIGEST_H
#define PADDOCK_RENDER_DIGEST_H

#include "template/template.h"

template_digest_fn render_digest;

#endif
