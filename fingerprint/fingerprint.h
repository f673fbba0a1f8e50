/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about the host, into the attributes and resources of a node, under Nomad's names. Each
 * family is a parser, pure over the bytes of the kernel's files, and a thin reader. What cannot be
 * read is absent; nothing here fails.
 */
#ifndef PADDOCK_FINGERPRINT_FINGERPRINT_H
#define PADDOCK_FINGERPRINT_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/terms.h"

struct fingerprint_config { /* zeros and NULLs: detect */
    const char *alloc_dir;
    const char *network_interface;
    const char *version;   /* our own */
    const char *http_addr; /* advertised */
    const char *signals;   /* names of the signals that tasks can be sent, comma list */
    int64_t network_speed;
    int64_t cpu_total_compute;
    int64_t memory_total_mb;
    int64_t disk_total_mb;
    bool loopback; /* -dev: the interface is lo */
    bool no_services; /* it tells of none */
};

/* All families, into node->attributes and node->node_resources (made when NULL), owned by `node`.
 */
void fingerprint_run(struct node *node, const struct fingerprint_config *cfg);

/* --- the families --- */
void fingerprint_cpu(struct node *node, const struct fingerprint_config *cfg);
void fingerprint_memory(struct node *node, const struct fingerprint_config *cfg);
void fingerprint_storage(struct node *node, const struct fingerprint_config *cfg);
void fingerprint_network(struct node *node, const struct fingerprint_config *cfg);
void fingerprint_host(struct node *node, const struct fingerprint_config *cfg);
void fingerprint_cgroup(struct node *node, const struct fingerprint_config *cfg);

/* --- programs that drivers run --- */
/* Attributes of the one of a driver; NULL: none is here, or the driver needs none. */
const struct str_map *fingerprint_runtime(const void *ctx, const char *driver);
/* `program` is looked up; false: it is not there. What cannot be read of it is no attribute. */
bool fingerprint_java(const void *ctx, const char *program, struct str_map *ret);
/* `program`: how all emulators begin. */
bool fingerprint_qemu(const void *ctx, const char *program, struct str_map *ret);

/* --- helpers of the families --- */
/* NULL or "" deletes. */
void fingerprint_set(struct node *node, const char *name, const char *value);
void fingerprint_set_int(struct node *node, const char *name, int64_t value);
/* The memory nodes of sysfs, which tests have elsewhere. */
void fingerprint_numa(struct node *node, const char *dir);

/* --- parsers, pure --- */
struct fingerprint_cpuinfo {
    int64_t cores;
    int64_t mhz;          /* of the fastest core; 0: not told */
    char model[128];
};
void fingerprint_parse_cpuinfo(const char *text, struct fingerprint_cpuinfo *ret);
/* Bytes of MemTotal; 0: not there. */
int64_t fingerprint_parse_meminfo(const char *text, const char *key);
/* Value of KEY in os-release, unquoted; false: not there. */
bool fingerprint_parse_os_release(const char *text, const char *key, char *ret, size_t size);


struct fingerprint_mounts {
    char cgroup2[256]; /* where cgroup2 is mounted; "" none */
    char cgroup1[256]; /* parent of v1 controllers; "" none */
};
/* Both change the text (common/host/mounts.h). */
void fingerprint_parse_mounts(char *text, struct fingerprint_mounts *ret);
/* Device that holds `path`: the longest mount point that is a prefix of it. */
bool fingerprint_parse_volume(char *text, const char *path, char *ret, size_t size);

#endif
