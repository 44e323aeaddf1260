/*
 * Blocks put together into one array, which is how replay buffers and caches
 * of samples are filled. Most of what that costs is the kernel's, for memory
 * that was never written before; so the same is done with memory that was.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "experiment/steps.h"

/* Block i is ones, but for its first value, which is i. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes)
{
	return length * (block_bytes / 4 - 1) + length * (length - 1) / 2;
}

static void fill(float *to, const float *blocks, uint64_t length, size_t bytes)
{
	for (uint64_t i = 0; i < length; i++)
		memcpy((char *)to + i * bytes, (const char *)blocks + i * bytes,
		       bytes);
}

static void sum_up(struct pen_blocks_job *q, const float *v)
{
	const size_t per = q->block_bytes / 4;

	q->tally.floats = true;
	for (uint64_t i = 0; i < q->length; i++) {
		q->tally.sum += (uint64_t)v[i * per];
		pen__tally_values(&q->tally, v + i * per + 1,
				  q->block_bytes - 4);
	}
	q->tally.samples = q->length;
}

int pen__blocks_fill(struct pen_blocks_job *q, struct pen_err *err)
{
	const size_t per = q->block_bytes / 4;
	float *from = pen__alloc(q->length, q->block_bytes), *to = NULL;
	uint64_t start;
	int rc = 0;

	if (!from)
		return pen__fail_nomem(err, "blocks",
				       q->length * q->block_bytes);
	for (uint64_t i = 0; i < q->length * per; i++)
		from[i] = i % per ? 1.0f : (float)(i / per);
	if (q->reuse) {
		to = pen__alloc(q->length, q->block_bytes);
		if (to)
			memset(to, 1, q->length * q->block_bytes);
	}
	start = pen__now_ns();
	if (!to)
		to = pen__alloc(q->length, q->block_bytes);
	if (to) {
		fill(to, from, q->length, q->block_bytes);
		q->seconds = (double)(pen__now_ns() - start) / 1e9;
		sum_up(q, to);
	} else {
		rc = pen__fail_nomem(err, "array", q->length * q->block_bytes);
	}
	pen__free(to);
	pen__free(from);
	return rc;
}
