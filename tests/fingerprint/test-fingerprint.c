/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsers of kernel files on normal and hostile bytes; the readers on this host.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/links.h"
#include "isolation/cgroup/numa.h"
#include "tests/lib/test.h"

START_TEST(cpuinfo)
{
    struct fingerprint_cpuinfo i;
    fingerprint_parse_cpuinfo("processor\t: 0\nmodel name\t: Fast CPU @ 2GHz  \ncpu MHz\t\t: 2100.5\n\n"
                              "processor\t: 1\nmodel name\t: Other\ncpu MHz\t\t: 2400.1\n",
                              &i);
    ck_assert_int_eq(i.cores, 2);
    ck_assert_int_eq(i.mhz, 2400);
    ck_assert_str_eq(i.model, "Fast CPU @ 2GHz");
    static const char *const hostile[] = {
        "", "\n\n\n", "processor", "processor:", "model name", ":", "cpu MHz\t: 99999999999999999999999\n",
        "cpu MHz: -5\n", "model name: \x01\x02\xff\n", "processorx: 1\n",
    };
    for (size_t k = 0; k < ARRAY_LEN(hostile); k++) {
        fingerprint_parse_cpuinfo(hostile[k], &i);
        ck_assert_int_eq(i.mhz, 0);
    }
    char *longline = mem_strndup(NULL, "", 0);
    for (int k = 0; k < 8; k++) {
        char *twice = mem_printf(NULL, "%smodel name: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", longline);
        mem_free(longline);
        longline = twice;
    }
    fingerprint_parse_cpuinfo(longline, &i);
    ck_assert_uint_lt(strlen(i.model), sizeof(i.model));
    mem_free(longline);
}
END_TEST

START_TEST(meminfo)
{
    ck_assert_int_eq(fingerprint_parse_meminfo("MemFree: 1 kB\nMemTotal:    2048 kB\n", "MemTotal"),
                     2048 * 1024);
    ck_assert_int_eq(fingerprint_parse_meminfo("MemTotal", "MemTotal"), 0);
    ck_assert_int_eq(fingerprint_parse_meminfo("MemTotal:\n", "MemTotal"), 0);
    ck_assert_int_eq(fingerprint_parse_meminfo("MemTotal: -3\n", "MemTotal"), 0);
    ck_assert_int_eq(fingerprint_parse_meminfo("MemTotal: 99999999999999999999 kB", "MemTotal"), 0);
}
END_TEST

static const char *
made(void *ctx, const char *dir, const char *name, size_t before, const char *text)
{
    const char *path = mem_printf(ctx, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    for (size_t k = 0; k < before; k++)
        fputc('Q', f);
    fputs(text, f);
    fputc(0, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

START_TEST(java)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        const char *release, *version, *runtime, *vm;
    } rows[] = {
        {"IMPLEMENTOR=\"Debian\"\nJAVA_RUNTIME_VERSION=\"17.0.15+6-Debian\"\nJAVA_VERSION=\"17.0.15\"\n",
         "17.0.15", "OpenJDK Runtime Environment (build 17.0.15+6-Debian)",
         "OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian)"},
        {"JAVA_VERSION=\"21\"\nJAVA_RUNTIME_VERSION=\"21+35\"\nBUILD_TYPE=\"commercial\"\n", "21",
         "Java(TM) SE Runtime Environment (build 21+35)",
         "Java HotSpot(TM) 64-Bit Server VM (build 21+35)"},
        {"JAVA_VERSION=\"1.8.0_442\"", "1.8.0_442", NULL, NULL},
        {"JAVA_VERSION_DATE=\"x\"\nJAVA_VERSION=\n", NULL, NULL, NULL},
        {"", NULL, NULL, NULL},
    };
    char dir[] = "/tmp/test-fingerprint.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *bin = mem_printf(ctx, "%s/bin", dir);
    ck_assert_int_eq(mkdir(bin, 0755), 0);
    const char *program = made(ctx, bin, "java", 0, "");
    const char *release = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str_map m = {0};
        release = made(ctx, dir, "release", 0, rows[i].release);
        ck_assert(fingerprint_java(ctx, program, &m));
        ck_assert(str_eq(str_map_get(&m, "driver.java.version"), rows[i].version));
        ck_assert(str_eq(str_map_get(&m, "driver.java.runtime"), rows[i].runtime));
        ck_assert(str_eq(str_map_get(&m, "driver.java.vm"), rows[i].vm));
    }
    unlink(release);
    struct str_map none = {0};
    ck_assert(fingerprint_java(ctx, program, &none)); /* a program without such a file */
    unlink(program);
    ck_assert(!fingerprint_java(ctx, program, &none));
    ck_assert_uint_eq(none.n, 0);
    ck_assert_ptr_null(fingerprint_runtime(ctx, "exec"));
    rmdir(bin);
    rmdir(dir);
}
END_TEST

START_TEST(qemu)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        size_t before;
        const char *text, *version; /* NULL: none */
    } rows[] = {
        {0, "QEMU emulator version 7.2.22 (Debian)", "7.2.22"},
        {(256 << 10) - 30, "QEMU emulator version 8.0", "8.0"}, /* over the end of what is read at once */
        {(256 << 10) - 5, "QEMU emulator version 9.1.2", "9.1.2"},
        {(256 << 10) - 24, "QEMU emulator version 7.2.22", "7.2.22"},
        {700 << 10, "QEMU emulator version 1", "1"},
        {10, "QEMU emulator version", NULL},
        {10, "QEMU emulator version %s", NULL},
    };
    char dir[] = "/tmp/test-fingerprint.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *prefix = mem_printf(ctx, "%s/qemu-system-", dir), *arm = NULL;
    struct str_map none = {0}, two = {0};
    ck_assert(!fingerprint_qemu(ctx, prefix, &none));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str_map m = {0};
        arm = made(ctx, dir, "qemu-system-arm", rows[i].before, rows[i].text);
        ck_assert(fingerprint_qemu(ctx, prefix, &m));
        ck_assert(str_eq(str_map_get(&m, "driver.qemu.version"), rows[i].version));
        ck_assert_str_eq(str_map_get(&m, "driver.qemu.emulators"), "arm");
    }
    const char *other = made(ctx, dir, "qemu-system-aarch64", 0, "QEMU emulator version 5.");
    ck_assert(fingerprint_qemu(ctx, prefix, &two));
    ck_assert_str_eq(str_map_get(&two, "driver.qemu.emulators"), "aarch64,arm");
    unlink(arm);
    unlink(other);
    rmdir(dir);
    ck_assert(!fingerprint_qemu(ctx, "/nonexistent/qemu-system-", &none));
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

/* Held against what libc and the kernel's text say of the same. */
START_TEST(links_of_this_machine)
{
    auto_mem void *ctx = mem_ctx("t");
    struct links l;
    struct err e = ERR_INIT;
    struct ifaddrs *all = NULL;
    ck_assert_msg(links_read(ctx, LINKS_LINKS | LINKS_ADDRESSES | LINKS_ROUTE | LINKS_NEIGHBOURS, &l,
                             &e) == 0, "%s", e.text);
    const struct link *lo = links_by_name(&l, "lo");
    ck_assert(lo && lo->loopback && lo->index == (int)if_nametoindex("lo"));
    ck_assert(links_by_index(&l, lo->index) == lo && !links_by_name(&l, "no-such-link"));
    ck_assert_int_eq(getifaddrs(&all), 0);
    size_t n = 0;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        struct sockaddr_in6 a = {0};
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6)
            continue;
        memcpy(&a, i->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(a));
        const void *bytes = family == AF_INET ? (const void *)&((struct sockaddr_in *)(void *)&a)->sin_addr
                                              : (const void *)&a.sin6_addr;
        ck_assert_ptr_nonnull(inet_ntop(family, bytes, text, sizeof(text)));
        bool found = false;
        for (size_t k = 0; k < l.n_addresses; k++)
            found |= str_eq(l.addresses[k].text, text) &&
                     l.addresses[k].index == (int)if_nametoindex(i->ifa_name);
        ck_assert_msg(found, "%s of %s", text, i->ifa_name);
        n++;
    }
    freeifaddrs(all);
    ck_assert_uint_eq(l.n_addresses, n);
    char *routes = NULL;
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, "/proc/net/route", 1 << 20, &routes, NULL), 0);
    bool has_default = false; /* the second column is where a route leads, the third one by whom */
    for (char *save, *line = strtok_r(routes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *to = strchr(line, '\t');
        has_default |= to && str_prefix(to, "\t00000000\t");
    }
    ck_assert_int_eq(l.route.index != 0, has_default);
    for (size_t i = 0; i < l.n_links; i++) {
        char *mac = NULL;
        const char *path = mem_printf(ctx, "/sys/class/net/%s/address", l.links[i].name);
        if (file_read(ctx, AT_FDCWD, path, 64, &mac, NULL) == 0)
            ck_assert_msg(str_prefix(mac, l.links[i].mac), "%s: %s", path, l.links[i].mac);
        if (l.links[i].loopback)
            ck_assert_str_eq(l.links[i].mac, "");
    }
}
END_TEST

START_TEST(os_release)
{
    char v[16];
    static const char text[] = "PRETTY_NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\nEMPTY=\nQ='x y'\n"
                               "LONG=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nBAD=\x01\n";
    ck_assert(fingerprint_parse_os_release(text, "ID", v, sizeof(v)));
    ck_assert_str_eq(v, "debian");
    ck_assert(fingerprint_parse_os_release(text, "VERSION_ID", v, sizeof(v)));
    ck_assert_str_eq(v, "12");
    ck_assert(fingerprint_parse_os_release(text, "Q", v, sizeof(v)));
    ck_assert_str_eq(v, "x y");
    ck_assert(fingerprint_parse_os_release(text, "LONG", v, sizeof(v)));
    ck_assert_uint_eq(strlen(v), 15);
    ck_assert(fingerprint_parse_os_release(text, "BAD", v, sizeof(v)));
    ck_assert_str_eq(v, "?");
    ck_assert(!fingerprint_parse_os_release(text, "EMPTY", v, sizeof(v)));
    ck_assert(!fingerprint_parse_os_release(text, "NAME", v, sizeof(v)));
    ck_assert(!fingerprint_parse_os_release("ID=\"", "NAME", v, sizeof(v)));
    ck_assert(fingerprint_parse_os_release("ID=\"", "ID", v, sizeof(v)));
}
END_TEST

START_TEST(mounts)
{
    struct fingerprint_mounts m;
    auto_mem void *ctx = mem_ctx("mounts");
    fingerprint_parse_mounts(mem_strdup(ctx, "proc /proc proc rw 0 0\n"
                                             "cgroup /sys/fs/cgroup/memory cgroup rw 0 0\n"
                             "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"),
                             &m);
    ck_assert_str_eq(m.cgroup2, "/sys/fs/cgroup/unified");
    ck_assert_str_eq(m.cgroup1, "/sys/fs/cgroup");
    static const char *const bad[] = {"", " ", "   \n", "cgroup2 x", "cgroup2  cgroup2", "a b"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fingerprint_parse_mounts(mem_strdup(ctx, bad[i]), &m);
        ck_assert_str_eq(m.cgroup2, "");
    }
    char dev[64];
    static const char vols[] = "/dev/a / ext4 rw 0 0\n/dev/b /da xfs rw 0 0\n"
                               "/dev/c /data\\040x ext4 rw 0 0\n/dev/d /data ext4 rw 0 0\n";
    ck_assert(fingerprint_parse_volume(mem_strdup(ctx, vols), "/data/alloc", dev, sizeof(dev)));
    ck_assert_str_eq(dev, "/dev/d");
    ck_assert(fingerprint_parse_volume(mem_strdup(ctx, vols), "/data x/y", dev, sizeof(dev)));
    ck_assert_str_eq(dev, "/dev/c");
    ck_assert(fingerprint_parse_volume(mem_strdup(ctx, vols), "/dat", dev, sizeof(dev)));
    ck_assert_str_eq(dev, "/dev/a");
    ck_assert(!fingerprint_parse_volume(mem_strdup(ctx, ""), "/", dev, sizeof(dev)));
    ck_assert(!fingerprint_parse_volume(mem_strdup(ctx, "x\\9 y\n"), "/", dev, sizeof(dev)));
}
END_TEST

static void
put(const char *dir, const char *name, const char *text)
{
    auto_mem void *ctx = mem_ctx("put");
    const char *path = mem_printf(ctx, "%s/%s", dir, name);
    const char *above = mem_printf(ctx, "%.*s", (int)(strrchr(path, '/') - path), path);
    ck_assert_int_eq(dir_make(AT_FDCWD, above, 0755), 0);
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0644), 0);
}

/* Returns the nodes whose memory is for a task with these cores; NULL: it is not said. */
static const char *
near(const char *dir, const char *cores)
{
    static char text[CGROUP_CPUS_TEXT_MAX];
    struct numa_nodes all;
    struct cgroup_cpus c, nodes;
    numa_read(dir, &all);
    ck_assert(cgroup_cpus_parse(cores, &c));
    return numa_near(&all, &c, &nodes) ? cgroup_cpus_text(&nodes, text) : NULL;
}

START_TEST(memory_nodes)
{
    auto_mem void *ctx = mem_ctx("t");
    struct node *n = mem_new(ctx, struct node);
    char dir[] = "/tmp/paddock-numa-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    fingerprint_numa(n, dir); /* a kernel without */
    ck_assert_uint_eq(n->attributes.n, 0);
    put(dir, "online", "0\n");
    put(dir, "has_memory", "0\n");
    put(dir, "node0/cpulist", "0-3\n");
    fingerprint_numa(n, dir);
    ck_assert_str_eq(str_map_get(&n->attributes, "numa.node.count"), "1");
    ck_assert_str_eq(str_map_get(&n->attributes, "numa.node0.cores"), "0-3");
    ck_assert_ptr_null(near(dir, "1")); /* one node is all of it */
    /* two sockets, one with processors alone, one with memory alone */
    put(dir, "online", "0-2,4\n");
    put(dir, "has_memory", "0-1,4\n");
    put(dir, "node1/cpulist", "4-5,8\n");
    put(dir, "node2/cpulist", "6-7\n");
    put(dir, "node4/cpulist", "\n");
    fingerprint_numa(n, dir);
    ck_assert_str_eq(str_map_get(&n->attributes, "numa.node.count"), "4");
    ck_assert_str_eq(str_map_get(&n->attributes, "numa.node1.cores"), "4-5,8");
    ck_assert_str_eq(near(dir, "0,2"), "0");
    ck_assert_str_eq(near(dir, "3-4"), "0-1");
    ck_assert_str_eq(near(dir, "8"), "1");
    ck_assert_str_eq(near(dir, "5-6"), "1"); /* node 2 has none to give */
    ck_assert_ptr_null(near(dir, "7"));
    ck_assert_ptr_null(near(dir, "1000"));
    put(dir, "has_memory", "0-99999\n");
    ck_assert_ptr_null(near(dir, "8"));
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

START_TEST(this_host)
{
    auto_mem void *ctx = mem_ctx("t");
    struct node *n = mem_new(ctx, struct node);
    struct fingerprint_config cfg = {.alloc_dir = "/nowhere/at/all",
                                     .loopback = true,
                                     .version = "0.1",
                                     .signals = "SIGABRT"};
    fingerprint_run(n, &cfg);
    static const char *const names[] = {
        "cpu.arch", "cpu.numcores", "cpu.totalcompute", "cpu.frequency", "memory.totalbytes",
        "unique.storage.bytestotal", "unique.network.ip-address", "os.name", "kernel.name",
        "kernel.version", "unique.hostname", "nomad.version", "paddock.version", "os.signals"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_msg(str_map_get(&n->attributes, names[i]) != NULL, "%s", names[i]);
    ck_assert_str_eq(str_map_get(&n->attributes, "unique.network.ip-address"), "127.0.0.1");
    ck_assert_str_eq(n->node_resources->networks.v[0]->device, "lo");
    ck_assert_int_gt(n->node_resources->cpu->cpu_shares, 0);
    ck_assert_int_gt(n->node_resources->memory->memory_mb, 0);
    for (size_t i = 0; i < n->attributes.n; i++)
        ck_assert_msg(!str_prefix(n->attributes.v[i].k, "consul"), "%s", n->attributes.v[i].k);
    fingerprint_set(n, "os.name", NULL);
    ck_assert_ptr_null(str_map_get(&n->attributes, "os.name"));
}
END_TEST

START_TEST(overrides)
{
    auto_mem void *ctx = mem_ctx("t");
    struct node *n = mem_new(ctx, struct node);
    struct fingerprint_config cfg = {.cpu_total_compute = 5000, .memory_total_mb = 100,
                                     .disk_total_mb = 77, .network_speed = 42, .loopback = true};
    fingerprint_run(n, &cfg);
    ck_assert_int_eq(n->node_resources->cpu->cpu_shares, 5000);
    ck_assert_int_eq(n->node_resources->memory->memory_mb, 100);
    ck_assert_int_eq(n->node_resources->disk->disk_mb, 77);
    ck_assert_int_eq(n->node_resources->networks.v[0]->mbits, 42);
}
END_TEST

TEST_SUITE("fingerprint", cpuinfo, meminfo, java, qemu, links_of_this_machine,
           os_release, mounts, memory_nodes,
           this_host, overrides)
