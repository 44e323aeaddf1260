/*
 * A shard: one piece of memory that several processes map, with an arena of
 * records and an index of keys. All places in it are offsets.
 *
 * A record is never changed once it can be found: a slot of the index is one
 * word, stored after the record's bytes are there. So a process may die at any
 * point and leave bytes nobody finds, never half a value; readers take no lock.
 * Writers take a robust mutex. What is overwritten or taken out is kept until
 * no reader is left that could have found it: records know the epoch they were
 * made in, and readers announce in which they looked things up, so that a value
 * lent for long holds up only what could be lent with it. A reader that was
 * killed is recognised and dropped.
 *
 * Freed blocks go to lists by size, are split, and join with their neighbours
 * when the arena is rebuilt from the index, which is done when nothing else is
 * left, and is what makes a writer's death harmless. Records do not move.
 */
#ifndef PEN_DDICT_SEG_H
#define PEN_DDICT_SEG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

#define PEN_SEG_VERSION 1
#define PEN_SEG_ALIGN 16
#define PEN_SEG_MIN ((uint64_t)1 << 20)
#define PEN_SEG_MAX ((uint64_t)1 << 44) /* 40 bits of 16 bytes */
#define PEN_SEG_PROCESSES 256
#define PEN_SEG_RETIRED 4096
#define PEN_SEG_BINS 640 /* 40 powers of two, 16 in each */
#define PEN_SEG_COPIES 4 /* large values a process writes at a time */

/* What a key or value may take. */
#define PEN_SEG_MAX_KEY ((uint64_t)1 << 30)
#define PEN_SEG_MAX_VALUE ((uint64_t)1 << 43)

struct pen_seg_rec {
	uint64_t key; /* or the length of the bytes that follow */
	/*
	 * of the value: 44 bits; then 19 of the epoch it was made in, 0: long
	 * ago; PEN_REC_BYTES: the key is bytes
	 */
	uint64_t len;
};
#define PEN_REC_BYTES ((uint64_t)1 << 63)
#define PEN_REC_LEN (((uint64_t)1 << 44) - 1)
#define PEN_BORN_BITS 19
#define PEN_BORN_MASK (((uint64_t)1 << PEN_BORN_BITS) - 1)

/* Eight slots a cache line: tag << 40 | offset / 16; 0: never used. */
#define PEN_SLOT_EMPTY 0
#define PEN_SLOT_GONE 1
#define PEN_BUCKET 8
struct pen_seg_table {
	uint64_t nbuckets;
	uint64_t unused[7];
	_Atomic uint64_t slot[];
};

/* A process that has it mapped. */
#define PEN_SEG_SINCE 16
struct pen_seg_proc {
	_Atomic uint64_t pid; /* 0: free */
	uint64_t born;	      /* start time: numbers of processes come again */
	uint64_t ns;	      /* of these numbers */
	struct {
		_Atomic uint64_t off, size;
	} copy[PEN_SEG_COPIES]; /* blocks it fills, not in the index yet */
	_Atomic uint64_t nputs, ngets, nserved;
	/* It holds what was found in these epochs; begin 0: nothing. */
	struct {
		_Atomic uint64_t begin, end;
	} since[PEN_SEG_SINCE];
	uint64_t unused[2];
};

struct pen_seg_retired {
	uint64_t off, size, born, died; /* epochs */
};

/* At offset 0. All is written under the lock, but for processes' own. */
struct pen_seg_head {
	char magic[8];
	uint32_t version, head_size;
	uint64_t id[2]; /* random */
	uint64_t size;
	uint64_t start; /* of the arena */
	_Atomic uint64_t table;
	_Atomic uint64_t epoch;
	_Atomic uint32_t frozen;
	_Atomic uint32_t nprocs; /* entries of proc ever used */
	_Atomic uint64_t top;	 /* end of what was ever used */
	_Atomic uint64_t taken;	 /* end of what the system gave */
	_Atomic uint64_t nkeys, ngone, value_bytes, live_bytes;
	_Atomic uint64_t free_bytes; /* in bins */
	/*
	 * Not 0: below this epoch some dead blocks are in no list; only a
	 * rebuild finds them, when all readers began after it.
	 */
	uint64_t lost_epoch;
	uint64_t nfreed; /* blocks, since the last rebuild */
	_Atomic uint64_t nputs, ngets, nserved; /* of processes that are gone */
	pthread_mutex_t lock;
	/* looked at again when there are so many, or so many bytes more */
	uint64_t nretired, reclaim_at, since_reclaim;
	struct pen_seg_retired retired[PEN_SEG_RETIRED];
	uint64_t bin_map[PEN_SEG_BINS / 64];
	uint64_t bin[PEN_SEG_BINS];
	struct pen_seg_proc proc[PEN_SEG_PROCESSES]
		__attribute__((aligned(64)));
};

/* Reading under way in this process: how often, by entries of since. */
struct pen_seg_self {
	_Atomic uint64_t pid; /* 0: not among the processes yet */
	uint32_t proc, newest;
	pthread_mutex_t lock;
	struct {
		uint64_t count, active; /* of which: still looking things up */
	} since[PEN_SEG_SINCE];
};

struct pen_seg {
	uint8_t *base;
	uint64_t size; /* mapped */
	int fd;
	struct pen_seg_head *head; /* NULL: a saved shard, read-only */
	/* of this process; the kernel clears it in a forked child */
	struct pen_seg_self *self;
	/* a saved shard: */
	const struct pen_seg_table *table;
	uint64_t nkeys, value_bytes;
	_Atomic uint64_t ngets, nserved;
	uint64_t witness; /* a byte that tells whether the file is whole */
	uint8_t seen;	  /* what it was */
	char where[64];	  /* the file */
};

/* --- seg.c --- */
/* New, of `size` bytes at most, none of them taken yet. */
int pen__seg_create(struct pen_seg **out, uint64_t size, struct pen_err *err);
/* One that exists, or a saved one; takes fd over, also when it fails. */
int pen__seg_map(struct pen_seg **out, int fd, const char *where,
		 struct pen_err *err);
void pen__seg_close(struct pen_seg *); /* NULL ok */
int pen__seg_lock(struct pen_seg *, struct pen_err *err);
void pen__seg_unlock(struct pen_seg *);
bool pen__seg_frozen(const struct pen_seg *);
/* This process is one of those that use it. */
int pen__seg_join(struct pen_seg *, struct pen_err *err);

/* --- readers.c --- */
struct pen_pin {
	uint64_t pid;
	uint32_t entry; /* + 1; 0: none was needed */
	bool settled;
};
/* Between them nothing this process finds is reused. */
int pen__seg_pin(struct pen_seg *, struct pen_pin *out, struct pen_err *err);
void pen__seg_unpin(struct pen_seg *, struct pen_pin);
/* Nothing more will be looked up: only what was found is held. */
void pen__seg_settle(struct pen_seg *, struct pen_pin *);
/* The oldest epoch of something that is held, UINT64_MAX: nothing is. Under the
 * lock; `dead`: processes that are gone are looked for, and dropped. */
uint64_t pen__seg_oldest(struct pen_seg *, bool dead);
void pen__seg_drop_dead(struct pen_seg *);
unsigned pen__seg_nprocs(struct pen_seg *);
int pen__proc_join(struct pen_seg *, struct pen_err *err);
void pen__proc_leave(struct pen_seg *);

/* --- arena.c; all under the lock --- */
/* An offset, or 0: full (*full), or the system gives no memory. */
uint64_t pen__arena_alloc(struct pen_seg *, uint64_t size, bool *full);
void pen__arena_free(struct pen_seg *, uint64_t off, uint64_t size);
/*
 * The same in two steps, for what is written without being touched: where size
 * bytes at the end would be, 0: no room; and that they are there now.
 */
uint64_t pen__arena_peek(const struct pen_seg *, uint64_t size);
void pen__arena_extend(struct pen_seg *, uint64_t size);
/* To be freed once nobody can read it, who was born in an epoch. */
void pen__arena_retire(struct pen_seg *, uint64_t off, uint64_t size,
		       uint64_t born);
uint64_t pen__rec_born(const struct pen_seg *, const struct pen_seg_rec *);
/* The word a record begins with its length in. */
uint64_t pen__rec_word(const struct pen_seg *, struct pen_key, uint64_t len);
void pen__arena_reclaim(struct pen_seg *);
/* A writer died, or all was dropped: what is not in the index is dead. */
void pen__arena_forget(struct pen_seg *);
/* Finds all dead blocks; false: readers do not allow it, or no memory. */
bool pen__arena_rebuild(struct pen_seg *);
uint64_t pen__rec_size(const struct pen_seg_rec *);
uint64_t pen__rec_size_of(struct pen_key, uint64_t len);

/* --- hash_table.c --- */
uint64_t pen__key_hash(struct pen_key);
/* The record, or NULL. For pinned readers, or under the lock. */
const struct pen_seg_rec *pen__table_find(const struct pen_seg *,
					  struct pen_key, uint64_t hash);
/* Many: as find, with latencies overlapped; NULL where there is none. */
void pen__table_find_many(const struct pen_seg *, const struct pen_key *,
			  const uint64_t *hash, uint32_t n,
			  const struct pen_seg_rec **out);
/* Under the lock. Room for n more keys; 0, or PEN_ENOMEM */
int pen__table_reserve(struct pen_seg *, uint64_t n, bool *full);
/* Under the lock: the record at off, for its key, with a value of len bytes;
 * returns the one it replaced, or 0. There must be room. */
uint64_t pen__table_set(struct pen_seg *, uint64_t off, struct pen_key,
			uint64_t len);
/* Under the lock: the record that was taken out, or 0. */
uint64_t pen__table_drop(struct pen_seg *, struct pen_key, uint64_t hash);
/* Under the lock: a new, empty one. */
int pen__table_reset(struct pen_seg *, bool *full);
const struct pen_seg_table *pen__table_of(const struct pen_seg *);
/* The record a slot leads to, or NULL: none, or it lies outside. */
const struct pen_seg_rec *pen__slot_rec(const struct pen_seg *, uint64_t slot);
uint64_t pen__slot_make(uint64_t off, uint64_t hash);
uint64_t pen__table_bytes(uint64_t nbuckets);
uint64_t pen__table_buckets(uint64_t nkeys); /* for so many */
/* Into a table nobody reads yet. */
void pen__table_insert(struct pen_seg_table *, uint64_t slot, uint64_t hash);
/* Under the lock: without a new one, for which there is no room. */
void pen__table_empty(struct pen_seg *);

/* Counters have one writer at a time, who holds the lock. */
static inline void pen__seg_add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(
		to, atomic_load_explicit(to, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* Its epoch may be forgotten while others read it. */
static inline uint64_t pen__rec_load(const struct pen_seg_rec *r)
{
	return __atomic_load_n(&r->len, __ATOMIC_RELAXED);
}
static inline struct pen_key pen__rec_key(const struct pen_seg_rec *r)
{
	if (pen__rec_load(r) & PEN_REC_BYTES)
		return (struct pen_key){ r + 1, r->key };
	return (struct pen_key){ NULL, r->key };
}
static inline uint64_t pen__round16(uint64_t n)
{
	return (n + 15) & ~(uint64_t)15;
}
static inline struct pen_value pen__rec_value(const struct pen_seg_rec *r)
{
	const uint64_t word = pen__rec_load(r);
	const uint64_t key = word & PEN_REC_BYTES ? pen__round16(r->key) : 0;

	return (struct pen_value){ (const uint8_t *)(r + 1) + key,
				   word & PEN_REC_LEN };
}

/* --- shard.c: what is done with one --- */
int pen__shard_put(struct pen_seg *, const struct pen_key *,
		   const struct pen_value *, uint64_t n, struct pen_err *err);
/* The same without waiting for readers: how many there were room for, and
 * whether it fails only because of them. */
struct pen_put {
	uint64_t done;
	bool held;
};
int pen__shard_put_some(struct pen_seg *, const struct pen_key *,
			const struct pen_value *, uint64_t n, struct pen_put *,
			struct pen_err *err);
/* Then: a moment, and whether to try again. */
bool pen__put_nap(struct pen_put *, uint64_t *naps);
/*
 * Pinned (or frozen) only. *at: picks keys[at[i]] and values[at[i]], of n;
 * NULL: all in order. PEN_ESTALE, here and below: a saved shard whose file was
 * cut short, so that not all of what is mapped is there.
 */
int pen__shard_find(struct pen_seg *, const struct pen_key *,
		    const uint32_t *at, uint64_t n, struct pen_value *out,
		    struct pen_err *err);
/* One, copied to buf; as pen_ddict_get(). */
int pen__shard_get(struct pen_seg *, struct pen_key, void *buf, uint64_t *len,
		   struct pen_err *err);
/* Copies a value to where there is room for *len, which becomes its own. */
int pen__value_copy(struct pen_value, void *buf, uint64_t *len,
		    struct pen_err *err);
int pen__value_absent(struct pen_err *err); /* PEN_ENOTFOUND */
/* PEN_ENOTFOUND; the value stays while pinned. */
int pen__shard_pop(struct pen_seg *, struct pen_key, struct pen_value *out,
		   struct pen_err *err);
int pen__shard_clear(struct pen_seg *, struct pen_err *err);
int pen__shard_freeze(struct pen_seg *, struct pen_err *err);
int pen__shard_keys(struct pen_seg *, int (*fn)(void *, struct pen_key),
		    void *arg, struct pen_err *err);
uint64_t pen__shard_len(const struct pen_seg *);
void pen__shard_stats(struct pen_seg *, struct pen_shard_stats *);
/* Keys counted for statistics, of this process. */
void pen__shard_count(struct pen_seg *, uint64_t nputs, uint64_t ngets,
		      uint64_t nserved);

/* --- snapshot.c --- */
struct pen_snapshot {
	uint32_t shard, nshards;
	uint64_t spread; /* how keys were dealt; 0: any way */
};
/* Under no lock; takes it. The file has its name only when complete. */
int pen__image_save(struct pen_seg *, const char *path, struct pen_snapshot,
		    struct pen_err *err);
/* Maps a saved shard; verify: all of its bytes are looked at. */
int pen__image_open(struct pen_seg **out, const char *path, bool verify,
		    struct pen_snapshot *about, struct pen_err *err);
int pen__image_map(struct pen_seg *, const char *where, bool verify,
		   struct pen_snapshot *about, struct pen_err *err);
/*
 * fn(arg) touches a shard that may be a saved one: a file that was cut short is
 * PEN_ESTALE and not a signal. fn must hold nothing then.
 */
int pen__image_touch(const struct pen_seg *, int (*fn)(void *), void *arg,
		     struct pen_err *err);
/* n records from slot *at on, which moves; fewer: there are no more. */
uint64_t pen__image_records(const struct pen_seg *, uint64_t *at,
			    const struct pen_seg_rec **out, uint64_t n);

#endif
