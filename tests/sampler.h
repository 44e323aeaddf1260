/* Samplers opened and asked for positions, checked. */
#ifndef SAMPLER_H
#define SAMPLER_H

#include "sampler/sampler.h"
#include "test.h"

#define MAX_N 6000

static inline struct pen_sampler *
open_ok(const char *name, const struct pen_population *pop, uint64_t seed,
	const struct pen_opts_kv *kv, size_t nkv)
{
	struct pen_sampler *s = NULL;
	struct pen_err e = { 0 };

	if (!CHECK(pen__sampler_open(&s, name, pop, seed,
				     (struct pen_opts){ kv, nkv }, &e) == 0))
		fprintf(stderr, "%s: %s: %s\n", name, e.where, e.msg);
	return s;
}

static inline void ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos,
		       size_t n, uint64_t *out)
{
	CHECK_EQ(s->ops->ids(s, epoch, pos, n, out, NULL), 0);
}

#endif
