/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds in binary: one object of every described type, and what is made of such objects.
 */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "isolation/launch/proto.h"
#include "net/rpc_wire_int.h"
#include "net/http/ws_frame.h"
#include "server/raft/consensus.h"
#include "server/raft/segment.h"
#include "tests/codec/filler.h"
#include "tests/fuzz/corpus.h"

enum { ALLOC_KEY = 36, SNAPSHOT_HEAD = 36 };
static const char id[] = "12345678-aaaa-4bbb-8ccc-0123456789ab";

/* Writes the first of a series of random objects whose encoding is neither empty nor large, or the
 * smallest. */
static void
put_object(struct buf *b, const struct type *t, bool json, size_t max)
{
    auto_buf struct buf best = BUF_INIT(1 << 20);
    for (uint64_t i = 1; i < 60; i++) {
        auto_mem void *ctx = mem_ctx("object");
        struct filler f = {.state = i * 0x9e3779b97f4a7c15,
                           .depth_max = 2,
                           .list_max = 1,
                           .empty_percent = 60 + (unsigned)i / 2};
        struct buf x = BUF_INIT(1 << 20);
        void *obj = filler_object(ctx, &f, t);
        if (json)
            json_encode(&x, t, obj, 0);
        else
            mp_encode(&x, t, obj);
        bool fits = x.len <= max && x.len > max / 8;
        if (buf_error(&x) == 0 && (fits || best.len == 0 || x.len < best.len)) {
            buf_done(&best);
            best = x;
        } else {
            buf_done(&x);
        }
        if (fits)
            break;
    }
    buf_put(b, best.data, best.len);
}

static void
types(const char *fuzzer, bool json)
{
    char name[80];
    for (size_t i = 0; i < api_types_n; i++) {
        auto_buf struct buf b = BUF_INIT(1 << 20);
        uint8_t key[2];
        filler_type_key(api_types[i], key);
        buf_put(&b, key, sizeof(key));
        buf_put_u8(&b, 't');
        put_object(&b, api_types[i], json, 280);
        snprintf(name, sizeof(name), "%s", api_types[i]->name);
        seed(fuzzer, name, b.data, b.len);
    }
    seed_text(fuzzer, "mutated-job", -1, json ? "\1\1m01234567abcdefgh" : "\1\1m76543210hgfedcba");
    if (json)
        seed_text(
            fuzzer, "value", -1,
            "\1\1v{\"a\":[1,-2.5e3,null,true,\"\\u00e4\\ud83d\\ude00\\n\"],\"b\":{\"a\":{}}}");
}

static void
put_frame(struct buf *b, enum rpc_kind kind, const struct rpc_method *m, uint64_t call,
          const void *req)
{
    struct rpc_head h = {
        .kind = kind, .version = RPC_VERSION, .method = m->id, .id = call, .deadline_ms = 1000};
    struct rpc_envelope env = {.namespace = "default", .region = "global", .auth_token = "t"};
    size_t at = rpc_frame_begin(b, &h);
    if (req != NULL) {
        (void)rpc_put_envelope(b, call % 2 ? &env : NULL);
        mp_encode(b, m->req, req);
    }
    rpc_frame_end(b, at);
}

static void
put_bytes(struct buf *b, enum rpc_kind kind, uint64_t call, const char *body, size_t n)
{
    struct rpc_head h = {
        .kind = kind, .version = RPC_VERSION, .method = RPC_CLIENT_HTTP, .id = call};
    size_t at = rpc_frame_begin(b, &h);
    buf_put(b, body, n);
    rpc_frame_end(b, at);
}

static void
rpc(void)
{
    auto_mem void *ctx = mem_ctx("rpc");
    const struct rpc_method *get = rpc_method_by_id(RPC_JOB_GET_JOB),
                            *reg = rpc_method_by_id(RPC_JOB_REGISTER);
    struct list_options l = {.prefix = "w", .per_page = 10};
    struct id_request ask = {.id = "web", .list = &l}, all = {.id = "x", .all = true};
    struct job *job = mem_new(ctx, struct job);
    job->id = job->name = "web";
    struct job_register_request put = {.job = job};
    auto_buf struct buf b = BUF_INIT(1 << 16);
    buf_put_u8(&b, 0);
    put_frame(&b, RPC_KIND_CALL, get, 1, &ask);
    seed("fuzz-rpc", "get", b.data, b.len);
    put_frame(&b, RPC_KIND_CALL, reg, 2, &put);
    put_frame(&b, RPC_KIND_CALL, get, 3, &all);
    put_frame(&b, RPC_KIND_CANCEL, get, 2, NULL);
    b.data[0] = 128;
    seed("fuzz-rpc", "many", b.data, b.len);
    const struct rpc_method *http = rpc_method_by_id(RPC_CLIENT_HTTP);
    struct client_http_request way = {.peer = "10.0.0.1:4000"};
    buf_reset(&b);
    buf_put_u8(&b, 200);
    put_frame(&b, RPC_KIND_CALL, http, 1, &way);
    put_bytes(&b, RPC_KIND_DATA, 1, "what comes back", 15);
    put_bytes(&b, RPC_KIND_GRANT, 1, "\0\0\0\x0f", 4);
    put_bytes(&b, RPC_KIND_DATA, 1, "\xfe" "held", 5);
    put_bytes(&b, RPC_KIND_REPLY, 1, "\x80", 1); /* to the stream that it has open itself */
    put_bytes(&b, RPC_KIND_BACK_DATA, 1, "answer", 6);
    put_bytes(&b, RPC_KIND_BACK_GRANT, 1, "\0\0\0\6", 4);
    put_bytes(&b, RPC_KIND_BACK_END, 1, "", 0);
    put_frame(&b, RPC_KIND_CALL, http, 2, &way);
    put_bytes(&b, RPC_KIND_DATA, 2, "\xfd" "end", 4);
    put_bytes(&b, RPC_KIND_CANCEL, 1, "", 0);
    seed("fuzz-rpc", "streams", b.data, b.len);
    for (size_t i = 0; i < api_methods_n && i < 8; i++) { /* not served there: an error each */
        buf_reset(&b);
        buf_put_u8(&b, (uint8_t)(i * 30));
        struct rpc_head h = {.kind = RPC_KIND_CALL,
                             .version = i == 0 ? 0 : RPC_VERSION,
                             .method = api_methods[i].id,
                             .id = i + 1};
        size_t at = rpc_frame_begin(&b, &h);
        (void)rpc_put_envelope(&b, NULL);
        put_object(&b, api_methods[i].req, false, 400);
        rpc_frame_end(&b, at);
        seed("fuzz-rpc", api_methods[i].name, b.data, b.len);
    }
}

static void
request(const char *name, struct warden_request q)
{
    auto_buf struct buf b = BUF_INIT(1 << 16);
    q.seq = 7;
    mp_encode(&b, &type_warden_request, &q);
    seed("fuzz-warden", name, b.data, b.len);
}

static void
warden(void)
{
    static struct launch_mount mount = {
        .source = "/srv/data", .target = "local/data", .read_only = true};
    static struct launch_mount *mounts[] = {&mount};
    static const char *args[] = {"-c", "exit 0"}, *env[] = {"PATH=/bin", "A=b"},
                      *caps[] = {"net_bind_service"};
    struct launch_limits limits = {.cpu_shares = 100, .memory_max = 1 << 20};
    struct task_isolation isolation = {.pids_max = 9, .nofile = 64};
    struct launch_logs logs = {.dir = "alloc/logs", .max_files = 3, .max_file_bytes = 1 << 20};
    struct launch_spec spec = {.alloc_id = id,
                               .task_name = "web",
                               .driver = "exec",
                               .isolated = true,
                               .command = "/bin/sh",
                               .args = {args, 2},
                               .env = {env, 2},
                               .cap_add = {caps, 1},
                               .mounts = {mounts, 1},
                               .limits = &limits,
                               .isolation = &isolation,
                               .logs = &logs,
                               .user = "nobody",
                               .work_dir = "/local"};
    struct warden_task task = {.name = "web", .driver = "exec", .user = "nobody"},
                       *tasks[] = {&task};
    const char *argv[] = {"/bin/sh", "-c", "true"};
    struct exec_request exec = {.command = {argv, 3}, .env = {env, 1}, .tty = true, .rows = 24};
    request("exec", (struct warden_request){.op = WARDEN_EXEC,
                                            .alloc_id = "01234567-89ab-cdef-0123-456789abcdef",
                                            .task_name = "web",
                                            .exec = &exec});
    request("info", (struct warden_request){.op = WARDEN_INFO});
    request("alloc-make",
            (struct warden_request){
                .op = WARDEN_ALLOC_MAKE, .alloc_id = id, .tasks = {tasks, 1}, .disk_mb = 300});
    request("alloc-remove", (struct warden_request){.op = WARDEN_ALLOC_REMOVE, .alloc_id = id});
    request("launch-exec", (struct warden_request){.op = WARDEN_LAUNCH, .spec = &spec});
    spec.cap_add.n = 0;
    request("launch-plain", (struct warden_request){.op = WARDEN_LAUNCH, .spec = &spec});
    spec.driver = "raw_exec";
    spec.isolated = false;
    spec.mounts.n = 0;
    request("launch-raw", (struct warden_request){.op = WARDEN_LAUNCH, .spec = &spec});
    request("signal", (struct warden_request){
                          .op = WARDEN_SIGNAL, .alloc_id = id, .task_name = "web", .signal = 15});
    static const struct {
        const char *name;
        uint64_t op;
    } simple[] = {{"kill", WARDEN_KILL},
                  {"destroy", WARDEN_DESTROY},
                  {"adopt", WARDEN_ADOPT},
                  {"list", WARDEN_LIST}};
    for (size_t i = 0; i < ARRAY_LEN(simple); i++)
        request(simple[i].name,
                (struct warden_request){.op = simple[i].op, .alloc_id = id, .task_name = "web"});
    request("open",
            (struct warden_request){.op = WARDEN_OPEN, .alloc_id = id, .path = "web/local/a"});
    request("stat", (struct warden_request){.op = WARDEN_STAT, .alloc_id = id});
    request("readdir",
            (struct warden_request){
                .op = WARDEN_READDIR, .alloc_id = id, .path = "alloc/logs", .offset = 256});
    request("put", (struct warden_request){.op = WARDEN_PUT,
                                           .alloc_id = id,
                                           .task_name = "web",
                                           .path = "web/local/f",
                                           .data = {(uint8_t *)(uintptr_t) "hello", 5},
                                           .mode = 0600});
}

static void
raft_log(void)
{
    auto_mem void *ctx = mem_ctx("log");
    auto_buf struct buf b = BUF_INIT(1 << 16);
    uint8_t head[SEGMENT_HEAD];
    segment_head(head, 1, 1);
    buf_put_u8(&b, 1);
    buf_put(&b, head, sizeof(head));
    size_t group = SEGMENT_HEAD;
    for (uint64_t i = 1; i <= 6; i++) {
        struct record r = {.index = i,
                           .term = 1 + i / 4,
                           .data = "0123456789abcdef",
                           .n = (size_t)i * 2,
                           .type = i == 6   ? RECORD_TRUNCATE
                                   : i == 2 ? RECORD_BARRIER
                                            : RECORD_COMMAND};
        if (r.type != RECORD_COMMAND)
            r.n = 0;
        size_t at = b.len - 1;
        record_put(&b, &r);
        (void)record_seal(b.data + 1, at, (uint32_t)group);
        if (i % 2 == 0)
            group = b.len - 1;
    }
    seed("fuzz-log", "segment", b.data, b.len);
    static struct peer one = {.id = 1, .addr = "10.0.0.1:4647", .role = PEER_VOTER};
    struct peer_list l = {&one, 1};
    void *conf = NULL;
    size_t n = 0;
    if (consensus_conf_encode(ctx, &l, &conf, &n) == 0) {
        buf_reset(&b);
        buf_put_u8(&b, 1);
        buf_put(&b, conf, n);
        seed("fuzz-log", "members", b.data, b.len);
    }
    for (int i = 0; i < 8; i++) { /* a place to damage, then sizes of records */
        char text[] = "\2\1\1\1\x81\x05\x83\x3f....................................\x82";
        text[1] = (char)(' ' + i * 11);
        text[3] = (char)(1 << (i % 7));
        char name[16];
        snprintf(name, sizeof(name), "damaged-%d", i);
        seed("fuzz-log", name, text, sizeof(text) - 1);
    }
}

static void
put_row(struct buf *b, unsigned table, const char *key, size_t key_n, const struct type *t)
{
    auto_buf struct buf v = BUF_INIT(1 << 16);
    put_object(&v, t, false, 1500);
    buf_put_u8(b, (uint8_t)table);
    buf_put_u8(b, (uint8_t)key_n);
    buf_put_u16(b, (uint16_t)v.len);
    buf_put(b, key, key_n);
    buf_put(b, v.data, v.len);
}

static void
disk(void)
{
    auto_mem void *ctx = mem_ctx("disk");
    auto_buf struct buf b = BUF_INIT(1 << 16);
    buf_put_u8(&b, 0);
    put_row(&b, 0, id, ALLOC_KEY, &type_client_alloc);
    put_row(&b, 1, "12345678-aaaa-4bbb-8ccc-0123456789ab/web", ALLOC_KEY + 4, &type_client_task);
    seed("fuzz-disk", "rows", b.data, b.len);

    static struct peer one = {.id = 1, .addr = "10.0.0.1:4647", .role = PEER_VOTER};
    struct peer_list l = {&one, 1};
    void *conf = NULL;
    size_t n = 0;
    if (consensus_conf_encode(ctx, &l, &conf, &n) < 0)
        return;
    buf_reset(&b);
    buf_put_u8(&b, 1);
    buf_put(&b, "PDKSNAP1", 8);
    buf_put_u64(&b, 42);
    buf_put_u64(&b, 2);
    buf_put_u64(&b, 1);
    buf_put_u32(&b, (uint32_t)n);
    buf_put(&b, conf, n);
    buf_put_u32(&b, 0); /* the fuzzer makes it right */
    for (unsigned i = 0; i < 3; i++) {
        buf_put(&b, "\x93", 1);
        buf_put_u8(&b, (uint8_t)i);
        buf_put(&b, "\xc6\0\0\0\3key\xc6\0\0\0\5value", 18);
    }
    buf_put(&b, "\xc0", 1);
    buf_put_u64(&b, 3);
    seed("fuzz-disk", "snapshot", b.data, b.len);
}

/* Conversations of a client (masked) and of a server. */
static void
websocket(void)
{
    static const uint8_t key[4] = {1, 2, 3, 4};
    static const char text[] = "{\"stdin\":{\"data\":\"aGVsbG8K\"}}";
    static char large[300];

    for (unsigned masked = 0; masked < 2; masked++) {
        const uint8_t *mask = masked ? key : NULL;
        auto_buf struct buf b = BUF_INIT(4096);
        buf_put_u8(&b, (uint8_t)(masked | 3 << 1));
        ws_put(&b, WS_TEXT, text, sizeof(text) - 1, mask);
        ws_put(&b, WS_PING, "p", 1, mask);
        ws_put(&b, WS_BINARY, large, sizeof(large), mask);
        size_t at = b.len; /* a message in two frames, a pong between */
        ws_put(&b, WS_TEXT, "\xc3", 1, mask);
        b.data[at] &= 0x7f;
        ws_put(&b, WS_PONG, "", 0, mask);
        ws_put(&b, WS_CONTINUATION, "\xa4", 1, mask);
        ws_put_close(&b, WS_NORMAL, "bye", mask);
        seed("fuzz-ws", masked ? "client" : "server", b.data, b.len);
        buf_consume(&b, b.len);
        buf_put_u8(&b, (uint8_t)masked);
        ws_put_close(&b, WS_NO_CODE, "", mask);
        seed("fuzz-ws", masked ? "client-close" : "server-close", b.data, b.len);
    }
    static const uint8_t huge[] = {1, 0x82, 0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3, 4};
    seed("fuzz-ws", "huge", huge, sizeof(huge));
}

void
corpus_codec(void)
{
    types("fuzz-json", true);
    types("fuzz-msgpack", false);
    rpc();
    warden();
    raft_log();
    disk();
    websocket();
}
