/* Shared by the tests of the dictionary: keys, values that identify their key,
 * and a dictionary of this process. */
#ifndef TESTS_DDICT_H
#define TESTS_DDICT_H

#include "test.h"

#include "base/rng.h"
#include "penstock.h"

#define MOST 4096

static inline struct pen_key num(uint64_t n)
{
	return (struct pen_key){ NULL, n };
}

static inline struct pen_key text(const char *s)
{
	return (struct pen_key){ s, strlen(s) };
}

static inline struct pen_value value(const void *p, uint64_t n)
{
	return (struct pen_value){ p, n };
}

/* Value number `turn` of a key: 16 + up to MOST bytes that identify it. */
static inline struct pen_value made(uint64_t key, uint64_t turn, uint8_t *buf)
{
	const uint64_t n = 16 + pen__rng_at(key, turn) % MOST;
	uint64_t head[2] = { key, turn };

	memcpy(buf, head, 16);
	memset(buf + 16, (int)(uint8_t)(key * 31 + turn), n - 16);
	return value(buf, n);
}

/* True if it is a complete value of that key; *turn: its number. */
static inline bool is_whole(struct pen_value v, uint64_t key, uint64_t *turn)
{
	uint64_t head[2];
	const uint8_t *p = v.data;

	*turn = 0;
	if (!p || v.len < 16)
		return false;
	memcpy(head, p, 16);
	*turn = head[1];
	if (head[0] != key || v.len != 16 + pen__rng_at(key, head[1]) % MOST)
		return false;
	for (uint64_t i = 16; i < v.len; i++)
		if (p[i] != (uint8_t)(key * 31 + head[1]))
			return false;
	return true;
}

static inline struct pen_ddict *open_with(const char *const *settings,
					  uint32_t n)
{
	struct pen_err err = { 0 };
	struct pen_ddict *d = NULL;

	if (!CHECK_EQ(pen_ddict_open(&d, NULL, settings, n, &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	return d;
}

static inline struct pen_ddict *open_sized(const char *memory)
{
	return open_with(&memory, 1);
}

static inline bool has(struct pen_ddict *d, struct pen_key k, const void *p,
		       uint64_t n)
{
	struct pen_got *g;
	bool same;

	if (pen_ddict_get_many(d, &k, 1, &g, NULL))
		return false;
	same = g->values[0].data && g->values[0].len == n &&
	       (!n || !memcmp(g->values[0].data, p, n));
	pen_got_free(g);
	return same;
}

static inline uint64_t length(struct pen_ddict *d)
{
	uint64_t n = 0;

	CHECK_EQ(pen_ddict_len(d, &n, NULL), 0);
	return n;
}

static inline struct pen_shard_stats stats_of(struct pen_ddict *d)
{
	struct pen_shard_stats s = { 0 };

	CHECK_EQ(pen_ddict_stats(d, 0, &s, sizeof(s), NULL), 0);
	return s;
}

#endif
