/* Internals of the dictionary: settings, owners of keys, remote requests. */
#ifndef PEN_DDICT_DICTIONARY_INT_H
#define PEN_DDICT_DICTIONARY_INT_H

#include "base/opt.h"
#include "base/rng.h"
#include "ddict/dictionary.h"
#include "ddict/name_server.h"
#include "ddict/seg.h"
#include "ddict/wire.h"

enum { SPREAD_HASH, SPREAD_BLOCKS };
enum { DIRECT_AUTO, DIRECT_ALWAYS, DIRECT_NEVER };

struct ddict_opts {
	char *name;
	uint64_t memory;
	int64_t width;
	char *transport;
	bool share, create, writable, verify;
	int spread;
	uint64_t keys;
	char *restore;
	int direct;
};

struct pen_ddict {
	struct ddict_opts o;
	struct pen_comm *comm; /* NULL: this machine only */
	int rank, size;
	int width;	      /* ranks per group; a group holds one replica */
	int first;	      /* first rank of this rank's group */
	struct pen_seg **seg; /* one per rank; NULL: on another machine */
	struct pen_seg *mine;
	bool made;		   /* mine was created by this process */
	struct pen_wire *wire;	   /* NULL: all shards are mapped */
	struct pen_direct *direct; /* NULL: no one-sided reads */
	_Atomic uint64_t typical;  /* size of values lately received */
	struct pen_name_server *server;
	uint64_t pid; /* process that opened it; the wire works only there */
	_Atomic uint64_t wait_ns;
	char host[64];
	char how[768];
};

/* Owner of a key within its group, 0 .. width - 1. */
static inline int pen__ddict_owner(const struct pen_ddict *d, struct pen_key k)
{
	const uint64_t w = (uint64_t)d->width;

	if (w == 1)
		return 0;
	if (d->o.spread == SPREAD_BLOCKS && !k.bytes) {
		const uint64_t each = (d->o.keys + w - 1) / w;
		const uint64_t at = k.number / (each ? each : 1);

		return (int)(at < w ? at : w - 1);
	}
	/* not the bits that select the bucket */
	return (int)pen__mulhi(pen__mix64(pen__key_hash(k)), w);
}

/* Keys sorted by owner. */
struct pen_partition {
	uint32_t *at;	/* indices of keys, owner by owner */
	uint32_t *from; /* [width + 1] */
	uint32_t *owner;
};
int pen__partition_make(struct pen_partition *, const struct pen_ddict *,
			const struct pen_key *, uint64_t n,
			struct pen_err *err);
void pen__partition_fini(struct pen_partition *);

/* --- remote.c: requests over the wire --- */
enum pen_op {
	PEN_OP_GET,
	PEN_OP_HAS,
	PEN_OP_PUT,
	PEN_OP_POP,
	PEN_OP_CLEAR,
	PEN_OP_FREEZE,
	PEN_OP_STATS,
	PEN_OP_KEYS,
	PEN_OP_INDEX,
	PEN_OP_ADD,
	PEN_OP_COMPACT,
	PEN_OP_HEADS, /* GET, up to PEN_HEAD_BYTES of each value */
};
struct pen_key_pick {
	const uint32_t *at; /* indices into an array; NULL: all in order */
	uint64_t n;
};
struct pen_remote {
	struct pen_call call;
	enum pen_op op;
	void *buf; /* the message without the values */
	struct iovec *iov;
	struct pen_read *reads; /* NULL: a request; one per key */
	bool frozen; /* the reply said so: the shard's memory can be read */
};
/*
 * Prepares a request for n keys, those at at[i] (NULL: all in order), and for
 * PUT their values; the values must stay valid until it is done.
 */
int pen__remote_make(struct pen_remote *, enum pen_op, const struct pen_key *,
		     const struct pen_value *, const struct pen_key_pick *,
		     struct pen_err *err);
/* PEN_EINVAL in a forked child; otherwise pen__remote_wait() must follow. */
int pen__remote_send(struct pen_ddict *, struct pen_remote *, int to,
		     struct pen_err *err);
int pen__remote_wait(struct pen_ddict *, struct pen_remote *,
		     struct pen_err *err);
/* Checks the reply to GET, HAS and POP, and sets values[at[i]], which point
 * into the reply. */
int pen__remote_values(struct pen_remote *, const struct pen_key_pick *,
		       struct pen_value *values, struct pen_err *err);
/* Checks the reply to a PUT of n keys: how many were stored. */
int pen__remote_put_done(const struct pen_remote *, uint64_t n,
			 struct pen_put *, struct pen_err *err);
void pen__remote_fini(struct pen_remote *); /* frees the reply as well */
int pen__remote_each_key(const struct pen_remote *,
			 int (*fn)(void *, struct pen_key), void *arg,
			 struct pen_err *err);
/* The serving side. */
int pen__ddict_serve(void *d, int from, const void *req, size_t n,
		     struct pen_reply *out, struct pen_err *err);
void pen__ddict_sent(void *d, struct pen_reply *);

/* Writes back the keys of a request that was made; *keys is to be freed. */
int pen__remote_keys(const struct pen_remote *, struct pen_key **keys,
		     struct pen_err *err);

/* --- direct.c: one-sided reads of frozen shards --- */
/*
 * After the wire is open: 0 with d->direct NULL if there are no such reads, and
 * an error only with direct=always.
 */
int pen__direct_open(struct pen_ddict *, struct pen_err *err);
void pen__direct_close(struct pen_ddict *);
/* Notes what a reply has shown. */
void pen__direct_note(struct pen_ddict *, const struct pen_remote *,
		      const struct pen_value *, const struct pen_key_pick *);
/*
 * Chooses how a get of these keys is sent: fills r->reads for one-sided reads.
 * The first time that a rank's shard is known to be frozen, this fetches its
 * index.
 */
void pen__direct_plan(struct pen_ddict *, struct pen_remote *r, int to,
		      const struct pen_key *, const struct pen_key_pick *);
/* As pen__remote_values(), after reads. */
int pen__direct_values(struct pen_ddict *, struct pen_remote *,
		       const struct pen_key_pick *, struct pen_value *values,
		       struct pen_err *err);
/* Serves a part of this shard's index, from a bucket on. */
int pen__direct_serve(struct pen_ddict *, uint64_t bucket,
		      struct pen_reply *out, struct pen_err *err);

/* Does it to every shard: here(), or a request. (dictionary.c) */
int pen__for_all_shards(struct pen_ddict *, enum pen_op,
			int (*here)(struct pen_seg *, struct pen_err *),
			struct pen_err *err);

/* --- restore.c --- */
/* Without a shard: maps a saved one if it matches. With a shard: reads the
 * saved files into it. */
int pen__ddict_restore(struct pen_ddict *, struct pen_err *err);

#endif
