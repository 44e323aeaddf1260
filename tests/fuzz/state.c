/*
 * What processes of Penstock exchange and keep: messages between ranks, saved
 * dictionaries, cached indexes.
 */
#include "fuzz.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "codec/deflate.h"
#include "ddict/dictionary_int.h"
#include "ddict/wire_stream.h"
#include "engine/index.h"

/* --- messages --- */

static void no_kick(struct pen_wire *w, struct pen_wire_peer *p)
{
	(void)w, (void)p;
}

static const struct pen_transport nowhere = {
	.name = "nowhere",
	.defers = true,
	.kick = no_kick,
};

/* A dictionary with one shard, which has a few keys. */
static void dict_open(struct pen_ddict *d)
{
	const struct pen_key keys[] = { { NULL, 1 }, { "ab", 2 }, { NULL, 7 } };
	const struct pen_value values[] = { { "x", 1 },
					    { "0123456789abcdefg", 17 },
					    { "", 0 } };

	*d = (struct pen_ddict){ .size = 1, .width = 1 };
	FUZZ_MUST(!pen__seg_create(&d->mine, 1 << 20, NULL));
	FUZZ_MUST(!pen__shard_put(d->mine, keys, values, 3, NULL));
}

struct rank {
	struct pen_wire wire;
	struct pen_wire_peer peers[2];
	struct pen_ddict dict;
};

static void rank_open(struct rank *r)
{
	memset(r, 0, sizeof(*r));
	dict_open(&r->dict);
	r->wire.transport = &nowhere;
	r->wire.server = (struct pen_wire_server){ &r->dict, pen__ddict_serve,
						   pen__ddict_sent };
	r->wire.size = 2;
	r->wire.peers = r->peers;
	for (int i = 0; i < 2; i++) {
		r->peers[i].wire = &r->wire;
		r->peers[i].rank = i;
		r->peers[i].last = &r->peers[i].first;
		pthread_mutex_init(&r->peers[i].lock, NULL);
	}
}

static void rank_close(struct rank *r)
{
	pen__peer_gone(&r->peers[1], P_RANK_FAILED, "is gone");
	pen__wire_drain(&r->wire);
	for (int i = 0; i < 2; i++)
		pthread_mutex_destroy(&r->peers[i].lock);
	pen__seg_close(r->dict.mine);
}

/* As a transport would: everything queued has been sent. */
static void send_all(struct rank *r)
{
	struct pen_msg *done = NULL;

	while (r->peers[1].first) {
		struct pen_frame f = pen__msg_frame(r->peers[1].first);

		pen__msg_advance(r->peers[1].first, f.len);
		pen__msg_next(&r->peers[1], &done);
	}
	pen__answers_sent(&r->wire, done);
}

/* The input is what a peer sends, over a socket. The rank waits for the replies
 * to two calls. */
void fuzz_wire(const char *of, const uint8_t *p, size_t n)
{
	struct pen_call call[2] = { { .to = 1 }, { .to = 1 } };
	struct pen_stream c = { 0 };
	struct rank r;
	int s[2];

	(void)of;
	rank_open(&r);
	FUZZ_MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	if (send(s[0], p, n, 0) == (ssize_t)n) {
		for (int i = 0; i < 2; i++)
			pen__wire_call(&r.wire, &call[i]);
		send_all(&r);
		shutdown(s[0], SHUT_WR);
		c.peer = &r.peers[1];
		c.fd = s[1];
		c.buf = malloc(PEN_STREAM_BUF);
		while (!pen__stream_receive(&c))
			send_all(&r);
		send_all(&r);
		free(c.buf);
	} else {
		for (int i = 0; i < 2; i++)
			pen__wire_call(&r.wire, &call[i]);
	}
	rank_close(&r);
	for (int i = 0; i < 2; i++) {
		FUZZ_MUST(pen__call_done(&call[i]));
		FUZZ_MUST(!call[i].code || call[i].err.msg[0]);
		pen__free(call[i].reply);
		close(s[i]);
	}
}

/* A request to a shard. */
void fuzz_request(const char *of, const uint8_t *p, size_t n)
{
	struct pen_reply out = { 0 };
	struct pen_err err = { 0 };
	struct pen_ddict d;

	(void)of;
	dict_open(&d);
	if (pen__ddict_serve(&d, 1, p, n, &out, &err))
		FUZZ_MUST(err.msg[0]);
	for (uint32_t i = 0; i < out.n; i++) /* reads all of it */
		(void)pen__crc32(0, out.iov[i].iov_base, out.iov[i].iov_len);
	pen__ddict_sent(&d, &out);
	pen__free(out.iov);
	pen__free(out.room);
	pen__seg_close(d.mine);
}

static int see_key(void *arg, struct pen_key k)
{
	(void)arg;
	if (k.bytes && k.number)
		FUZZ_MUST(!memchr(k.bytes, 0, k.number) || k.number);
	return 0;
}

/* A reply to a request: a byte with the operation, one with the number of keys,
 * and the reply. */
void fuzz_reply(const char *of, const uint8_t *p, size_t n)
{
	struct pen_value v[32] = { { 0 } };
	struct pen_remote r = { 0 };
	struct pen_err err = { 0 };
	struct pen_put put;

	(void)of;
	if (n < 2)
		return;
	r.op = p[0] % 4;
	r.call.reply_len = n - 2;
	r.call.reply = pen__alloc(n, 1);
	memcpy(r.call.reply, p + 2, n - 2);
	if (p[0] & 4) {
		(void)pen__remote_each_key(&r, see_key, NULL, &err);
	} else if (r.op == PEN_OP_PUT) {
		(void)pen__remote_put_done(&r, p[1], &put, &err);
	} else {
		const struct pen_key_pick pick = { NULL, p[1] % 32 };

		if (!pen__remote_values(&r, &pick, v, &err))
			for (unsigned i = 0; i < 32 && r.op != PEN_OP_HAS; i++)
				if (v[i].len)
					(void)memchr(v[i].data, 0, v[i].len);
	}
	pen__remote_fini(&r);
}

/* --- saved dictionaries --- */

static int get_key(void *arg, struct pen_key k)
{
	struct pen_seg *s = arg;
	uint8_t buf[4096];
	uint64_t len = sizeof(buf);

	(void)pen__shard_get(s, k, buf, &len, NULL);
	return 0;
}

void fuzz_snapshot(const char *of, const uint8_t *p, size_t n)
{
	const struct pen_key absent = { NULL, 12345 };
	struct fuzz_file f = fuzz_file(p, n);
	struct pen_snapshot about;
	struct pen_err err = { 0 };
	struct pen_seg *s = NULL;

	(void)of;
	if (pen__image_open(&s, f.path, n & 1, &about, &err)) {
		FUZZ_MUST(err.msg[0]);
	} else {
		(void)pen__shard_keys(s, get_key, s, &err);
		(void)get_key(s, absent);
		pen__seg_close(s);
	}
	close(f.fd);
}

/* --- cached indexes --- */

/*
 * The cache compares directories and objects with the file system: here they
 * are always as the cache says. Its stat() calls are for all directories, then
 * for all objects.
 */
static struct {
	const uint8_t *p;
	size_t n;
	uint64_t ndir, at;
} told;

int __real_stat64(const char *path, struct stat *sb);
int __wrap_stat64(const char *path, struct stat *sb);

#define CACHE_HEAD 160u
#define CACHE_NDIR 40u

int __wrap_stat64(const char *path, struct stat *sb)
{
	const uint64_t i = told.at++;
	const bool dir = i < told.ndir;
	const size_t at =
		CACHE_HEAD +
		(dir ? i * sizeof(struct pen_dir)
		     : told.ndir * sizeof(struct pen_dir) +
				 (i - told.ndir) * sizeof(struct pen_object));
	struct pen_object o;
	struct pen_dir d;
	int64_t ns;

	if (!told.p || at + sizeof(o) > told.n)
		return __real_stat64(path, sb);
	memset(sb, 0, sizeof(*sb));
	memcpy(&o, told.p + at, sizeof(o));
	memcpy(&d, told.p + at, sizeof(d));
	ns = dir ? d.mtime_ns : o.mtime_ns;
	sb->st_ino = d.ino;
	sb->st_size = (off_t)o.size;
	sb->st_mtim.tv_sec = ns / 1000000000;
	sb->st_mtim.tv_nsec = ns % 1000000000;
	return 0;
}

/* bind() checks its blobs, whoever wrote them. */
static void use_blobs(const struct pen_index_data *ix)
{
	struct pen_format *f;
	struct pen_err err = { 0 };

	if (ix->pub.nsamples > 1 << 20 ||
	    pen__format_open(&f, ix->of, NULL, 0, &err))
		return;
	f->nobjects_hint = ix->pub.nobjects;
	if (f->ops->bind(f, &ix->pub, &err) < 0)
		FUZZ_MUST(err.msg[0]);
	pen__format_close(f);
}

static void use_index(const struct pen_index_data *ix)
{
	const struct pen_index *p = &ix->pub;
	char name[256];
	uint32_t o;
	uint64_t k;

	for (uint64_t i = 0; i < p->nblobs; i++) {
		const struct pen_span s = p->blob(p, i);

		(void)pen__crc32(0, s.p, s.n);
	}
	for (uint64_t i = 0; i < p->nobjects; i++) {
		FUZZ_MUST(p->blob_of(p, i) < p->nblobs);
		(void)p->size_of(p, i);
		p->name_of(p, i, name, sizeof(name));
	}
	for (uint64_t i = 0; i < 16 && i < p->nsamples; i++) {
		pen__index_find(p, i & 1 ? p->nsamples - 1 - i : i, &o, &k);
		FUZZ_MUST(o < p->nobjects);
	}
}

void fuzz_index(const char *of, const uint8_t *p, size_t n)
{
	const struct pen_index_key key = { 1, 2 };
	struct pen_index_data ix = { 0 };
	struct pen_objects objs = { 0 };
	char path[80];
	FILE *f;

	(void)of;
	snprintf(path, sizeof(path), "fuzz-cache/%016x%016x.idx", 1, 2);
	(void)mkdir("fuzz-cache", 0700);
	unlink(path); /* a truncated file would be flushed to disk */
	f = fopen(path, "w");
	FUZZ_MUST(f && fwrite(p, 1, n, f) == n);
	fclose(f);
	told.p = p;
	told.n = n;
	told.at = told.ndir = 0;
	if (n >= CACHE_HEAD)
		memcpy(&told.ndir, p + CACHE_NDIR, 8);
	if (told.ndir > n / sizeof(struct pen_dir))
		told.ndir = 0;
	if (!pen__cache_load(&ix, &objs, "fuzz-cache", &key)) {
		use_index(&ix);
		use_blobs(&ix);
	}
	told.p = NULL;
	pen__index_fini(&ix);
}
