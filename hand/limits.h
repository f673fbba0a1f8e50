/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of hand/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_HAND_LIMITS_H
#define PADDOCK_HAND_LIMITS_H

enum {
    /* --- the engine hand and its engine --- */
    HAND_CONNS_MAX = 16384, /* requests of the agent at the same time */
    HAND_ID_MAX = 128,      /* bytes of an engine's ids */
    HAND_ASK_MS = 60000,    /* a call of the engine's that makes or asks */
    HAND_IMAGES_MAX = 1024, /* images that the hand has pulled, and removes again */
    HAND_PULL_MS =
        300000, /* the pull of an image, unless its job says otherwise (image_pull_timeout) */
    HAND_PULL_IDLE_MS = 120000,  /* without a word of the engine's about it */
    HAND_PULL_TELL_MS = 120000,  /* between two events that say how it goes */
    HAND_PULL_LAYERS_MAX = 512,  /* layers of it that are counted */
    HAND_PULL_LINE_MAX = 65536,  /* bytes of such a word */
    HAND_CREDENTIALS_MAX = 65536, /* bytes of auth.config, and of what a credential helper says */
    HAND_HELPER_MS = 10000,       /* a credential helper; it is killed then */
    HAND_HELPER_NAME_MAX = 64,    /* bytes of its name, behind "docker-credential-" */
    HAND_SERVER_MAX = 512,        /* bytes of a registry's name that it is asked for */
    HAND_AGAIN_MS = 1000,        /* until an engine that does not answer is asked again */
    HAND_DOCUMENT_MAX = 8 << 20, /* bytes of memory of a decoded document of the engine's */
    HAND_FRAME_MAX = 1 << 20,    /* bytes of one message of a container's output */
    HAND_ORPHAN_MS = 10000, /* between two looks whether an ended container's allocation is there */
    HAND_LINGER_MS =
        3000, /* output after the end of its container, where something keeps it open */
};

#endif
