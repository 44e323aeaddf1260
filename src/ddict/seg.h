/*
 * A shard: a memory segment that several processes map, with an arena of
 * records and an index of keys. All references within it are offsets.
 *
 * A record does not change once it can be found: an index slot is one word,
 * stored after the record is complete. A process can therefore die at any point
 * and leave unreachable bytes, but never half a value, and readers take no
 * lock. Writers take a robust mutex. A record that is overwritten or removed is
 * kept until no reader is left that could have found it: records store the
 * epoch in which they were made, and readers publish the epochs in which they
 * looked things up, so a value held for long delays only the reuse of what
 * could have been found with it. A killed reader is detected and dropped.
 *
 * Freed blocks go to lists by size and can be split. They are merged with their
 * neighbours when the arena is rebuilt from the index. That happens when
 * nothing else helps, and it is what makes the death of a writer harmless.
 * Records do not move.
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
#define PEN_SEG_MAX ((uint64_t)1 << 44) /* 40 bits in units of 16 bytes */
#define PEN_SEG_PROCESSES 256
#define PEN_SEG_RETIRED 4096
#define PEN_SEG_BINS 640 /* 40 powers of two, 16 each */
#define PEN_SEG_COPIES 4 /* large values a process writes concurrently */

/* Limits for a key and a value. */
#define PEN_SEG_MAX_KEY ((uint64_t)1 << 30)
#define PEN_SEG_MAX_VALUE ((uint64_t)1 << 43)

struct pen_seg_rec {
	uint64_t key; /* or the length of the key bytes that follow */
	/*
	 * length of the value (44 bits); epoch of creation (19 bits, 0: long
	 * ago); PEN_REC_BYTES: the key is bytes
	 */
	uint64_t len;
};
#define PEN_REC_BYTES ((uint64_t)1 << 63)
#define PEN_REC_LEN (((uint64_t)1 << 44) - 1)
#define PEN_BORN_BITS 19
#define PEN_BORN_MASK (((uint64_t)1 << PEN_BORN_BITS) - 1)

/* Eight slots per cache line: tag << 40 | offset / 16; 0: never used. */
#define PEN_SLOT_EMPTY 0
#define PEN_SLOT_GONE 1
#define PEN_BUCKET 8
struct pen_seg_table {
	uint64_t nbuckets;
	uint64_t unused[7];
	_Atomic uint64_t slot[];
};

/* A process that has mapped the shard. */
#define PEN_SEG_SINCE 16
struct pen_seg_proc {
	_Atomic uint64_t pid; /* 0: free */
	uint64_t born;	      /* start time, since process ids are reused */
	uint64_t ns;	      /* pid namespace */
	struct {
		_Atomic uint64_t off, size;
	} copy[PEN_SEG_COPIES]; /* blocks being filled, not in the index yet */
	_Atomic uint64_t nputs, ngets, nserved;
	/* It holds what was found in these epochs; begin 0: unused. */
	struct {
		_Atomic uint64_t begin, end;
	} since[PEN_SEG_SINCE];
	uint64_t unused[2];
};

struct pen_seg_retired {
	uint64_t off, size, born, died; /* born, died: epochs */
};

/* At offset 0. Written only with the lock held, except for a process's own
 * entry. */
struct pen_seg_head {
	char magic[8];
	uint32_t version, head_size;
	uint64_t id[2]; /* random */
	uint64_t size;
	uint64_t start; /* start of the arena */
	_Atomic uint64_t table;
	_Atomic uint64_t epoch;
	_Atomic uint32_t frozen;
	_Atomic uint32_t nprocs; /* entries of proc ever used */
	_Atomic uint64_t top;	 /* end of the space ever used */
	_Atomic uint64_t taken; /* end of the memory obtained from the system */
	_Atomic uint64_t nkeys, ngone, value_bytes, live_bytes;
	_Atomic uint64_t free_bytes; /* in free lists */
	/*
	 * If not 0: some dead blocks older than this epoch are in no list. Only
	 * a rebuild finds them, once all readers started after it.
	 */
	uint64_t lost_epoch;
	uint64_t nfreed; /* blocks freed since the last rebuild */
	_Atomic uint64_t nputs, ngets, nserved; /* of ended processes */
	pthread_mutex_t lock;
	/* reclaimed again at this number, or after this many more bytes */
	uint64_t nretired, reclaim_at, since_reclaim;
	struct pen_seg_retired retired[PEN_SEG_RETIRED];
	uint64_t bin_map[PEN_SEG_BINS / 64];
	uint64_t bin[PEN_SEG_BINS];
	struct pen_seg_proc proc[PEN_SEG_PROCESSES]
		__attribute__((aligned(64)));
};

/* Private to a process: readers per entry of since. */
struct pen_seg_self {
	_Atomic uint64_t pid; /* 0: not registered yet */
	uint32_t proc, newest;
	pthread_mutex_t lock;
	struct {
		uint64_t count, active; /* active: looking things up */
	} since[PEN_SEG_SINCE];
};

struct pen_seg {
	uint8_t *base;
	uint64_t size; /* mapped */
	int fd;
	struct pen_seg_head *head; /* NULL: a saved shard, read-only */
	/* private; the kernel clears it in a forked child */
	struct pen_seg_self *self;
	/* for a saved shard: */
	const struct pen_seg_table *table;
	uint64_t nkeys, value_bytes;
	_Atomic uint64_t ngets, nserved;
	uint64_t witness; /* offset of a byte that reveals truncation */
	uint8_t seen;	  /* its value */
	char where[64];	  /* the file name */
};

/* --- seg.c --- */
/* Creates a shard of at most `size` bytes, allocated on demand. */
int pen__seg_create(struct pen_seg **out, uint64_t size, struct pen_err *err);
/* Maps an existing or a saved shard; takes ownership of fd, even on failure. */
int pen__seg_map(struct pen_seg **out, int fd, const char *where,
		 struct pen_err *err);
void pen__seg_close(struct pen_seg *); /* NULL ok */
int pen__seg_lock(struct pen_seg *, struct pen_err *err);
void pen__seg_unlock(struct pen_seg *);
bool pen__seg_frozen(const struct pen_seg *);
/* Registers this process as a user. */
int pen__seg_join(struct pen_seg *, struct pen_err *err);

/* --- readers.c --- */
struct pen_pin {
	uint64_t pid;
	uint32_t entry; /* index + 1; 0: not needed */
	bool settled;
};
/* What this process finds while it has a pin is not reused. */
int pen__seg_pin(struct pen_seg *, struct pen_pin *out, struct pen_err *err);
void pen__seg_unpin(struct pen_seg *, struct pen_pin);
/* Ends lookups: only what was found stays held. */
void pen__seg_settle(struct pen_seg *, struct pen_pin *);
/* The oldest epoch of anything held, UINT64_MAX: nothing is. Lock held; `dead`:
 * first drops processes that have ended. */
uint64_t pen__seg_oldest(struct pen_seg *, bool dead);
void pen__seg_drop_dead(struct pen_seg *);
unsigned pen__seg_nprocs(struct pen_seg *);
int pen__proc_join(struct pen_seg *, struct pen_err *err);
void pen__proc_leave(struct pen_seg *);

/* --- arena.c; lock held --- */
/* Returns an offset, or 0: the shard is full (*full), or the system has no
 * memory. */
uint64_t pen__arena_alloc(struct pen_seg *, uint64_t size, bool *full);
void pen__arena_free(struct pen_seg *, uint64_t off, uint64_t size);
/* Number of free blocks, with the space never used; takes the lock. */
uint64_t pen__arena_nfree(struct pen_seg *);
/*
 * The same in two steps, for data written by a system call: peek returns where
 * size bytes at the end would be, or 0 if there is no room; extend makes them
 * part of the arena.
 */
uint64_t pen__arena_peek(const struct pen_seg *, uint64_t size);
void pen__arena_extend(struct pen_seg *, uint64_t size);
/* Frees a block once no reader can hold it; born: epoch of its creation. */
void pen__arena_retire(struct pen_seg *, uint64_t off, uint64_t size,
		       uint64_t born);
uint64_t pen__rec_born(const struct pen_seg *, const struct pen_seg_rec *);
/* The length word of a new record. */
uint64_t pen__rec_word(const struct pen_seg *, struct pen_key, uint64_t len);
void pen__arena_reclaim(struct pen_seg *);
/* After a writer has died, or all was cleared: what is not in the index is
 * dead. */
void pen__arena_forget(struct pen_seg *);
/* Finds all dead blocks; false: readers prevent it, or no memory. */
bool pen__arena_rebuild(struct pen_seg *);
uint64_t pen__rec_size(const struct pen_seg_rec *);
uint64_t pen__rec_size_of(struct pen_key, uint64_t len);

/* --- hash_table.c --- */
uint64_t pen__key_hash(struct pen_key);
/* The record, or NULL. For pinned readers, or with the lock held. */
const struct pen_seg_rec *pen__table_find(const struct pen_seg *,
					  struct pen_key, uint64_t hash);
/* The same for many keys, with overlapping cache misses; NULL: absent. */
void pen__table_find_many(const struct pen_seg *, const struct pen_key *,
			  const uint64_t *hash, uint32_t n,
			  const struct pen_seg_rec **out);
/* Lock held. Makes room for n more keys; 0 or PEN_ENOMEM. */
int pen__table_reserve(struct pen_seg *, uint64_t n, bool *full);
/* Lock held. Enters the record at off for its key, with a value of len bytes;
 * returns the offset of the record it replaces, or 0. There must be room. */
uint64_t pen__table_set(struct pen_seg *, uint64_t off, struct pen_key,
			uint64_t len);
/* Lock held. Returns the offset of the record removed, or 0. */
uint64_t pen__table_drop(struct pen_seg *, struct pen_key, uint64_t hash);
/* Lock held. Replaces the table by an empty one. */
int pen__table_reset(struct pen_seg *, bool *full);
const struct pen_seg_table *pen__table_of(const struct pen_seg *);
/* The record of a slot, or NULL: none, or out of bounds. */
const struct pen_seg_rec *pen__slot_rec(const struct pen_seg *, uint64_t slot);
uint64_t pen__slot_make(uint64_t off, uint64_t hash);
/* True if the slot may be that of a key with this hash. */
bool pen__slot_is(uint64_t slot, uint64_t hash);
uint64_t pen__slot_off(uint64_t slot);
uint64_t pen__table_bytes(uint64_t nbuckets);
uint64_t pen__table_buckets(uint64_t nkeys); /* for this many keys */
/* Inserts into a table that nobody reads yet. */
void pen__table_insert(struct pen_seg_table *, uint64_t slot, uint64_t hash);
/* Lock held. Empties the table in place, when there is no room for a new
 * one. */
void pen__table_empty(struct pen_seg *);

/* For counters written only with the lock held. */
static inline void pen__seg_add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(
		to, atomic_load_explicit(to, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* Atomic, because forget_births() may change the epoch at any time. */
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

/* --- shard.c: operations on a shard --- */
int pen__shard_put(struct pen_seg *, const struct pen_key *,
		   const struct pen_value *, uint64_t n, struct pen_err *err);
/* The same without waiting for readers: how many were stored, and whether it
 * failed only because readers hold memory. */
struct pen_put {
	uint64_t done;
	bool held;
};
int pen__shard_put_some(struct pen_seg *, const struct pen_key *,
			const struct pen_value *, uint64_t n, struct pen_put *,
			struct pen_err *err);
/* Then: sleeps briefly; returns whether to try again. */
bool pen__put_nap(struct pen_put *, uint64_t *naps);
/*
 * Pinned (or frozen) only. at: selects keys[at[i]] and values[at[i]]; NULL: all
 * in order. PEN_ESTALE, here and below: the file of a saved shard was truncated
 * while mapped.
 */
int pen__shard_find(struct pen_seg *, const struct pen_key *,
		    const uint32_t *at, uint64_t n, struct pen_value *out,
		    struct pen_err *err);
/* Copies one value to buf; as pen_ddict_get(). */
int pen__shard_get(struct pen_seg *, struct pen_key, void *buf, uint64_t *len,
		   struct pen_err *err);
/* Copies a value to a buffer of *len bytes; sets *len to its length. */
int pen__value_copy(struct pen_value, void *buf, uint64_t *len,
		    struct pen_err *err);
int pen__value_absent(struct pen_err *err); /* PEN_ENOTFOUND */
/* PEN_ENOTFOUND if absent; the value is valid while pinned. */
int pen__shard_pop(struct pen_seg *, struct pen_key, struct pen_value *out,
		   struct pen_err *err);
int pen__shard_clear(struct pen_seg *, struct pen_err *err);
/* Adds to a value of 8 bytes, or puts one. PEN_EINVAL: it has another size. */
int pen__shard_add(struct pen_seg *, struct pen_key, uint64_t n, uint64_t *old,
		   struct pen_err *err);
/* Frees what no reader holds, and returns memory after the last value. */
int pen__shard_compact(struct pen_seg *, struct pen_err *err);
int pen__shard_freeze(struct pen_seg *, struct pen_err *err);
int pen__shard_keys(struct pen_seg *, int (*fn)(void *, struct pen_key),
		    void *arg, struct pen_err *err);
uint64_t pen__shard_len(const struct pen_seg *);
void pen__shard_stats(struct pen_seg *, struct pen_shard_stats *);
/* Adds to the statistics of this process. */
void pen__shard_count(struct pen_seg *, uint64_t nputs, uint64_t ngets,
		      uint64_t nserved);

/* --- snapshot.c --- */
struct pen_snapshot {
	uint32_t shard, nshards;
	uint64_t spread; /* how keys are distributed; 0: any way */
};
/* Takes the lock itself. The file gets its name only when complete. */
int pen__image_save(struct pen_seg *, const char *path, struct pen_snapshot,
		    struct pen_err *err);
/* Maps a saved shard; verify: checks the checksum of all bytes. */
int pen__image_open(struct pen_seg **out, const char *path, bool verify,
		    struct pen_snapshot *about, struct pen_err *err);
int pen__image_map(struct pen_seg *, const char *where, bool verify,
		   struct pen_snapshot *about, struct pen_err *err);
/*
 * Runs fn(arg) on a shard that may be a saved one: if the file was truncated,
 * returns PEN_ESTALE instead of raising a signal. fn must not hold any
 * resource.
 */
int pen__image_touch(const struct pen_seg *, int (*fn)(void *), void *arg,
		     struct pen_err *err);
/* Lists up to n records from slot *at on, and advances it; fewer: the end. */
uint64_t pen__image_records(const struct pen_seg *, uint64_t *at,
			    const struct pen_seg_rec **out, uint64_t n);

#endif
