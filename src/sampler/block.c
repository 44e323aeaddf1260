/*
 * A shuffle that keeps reads long. Elements are cut into chunks of neighbours,
 * the chunks are shuffled, and each run of `chunks` of them is a block whose
 * rows are shuffled among themselves: what is planned together touches few,
 * entire chunks, yet neighbours in the order come from all over the data. Every
 * element comes exactly once per epoch.
 *
 * The last chunk may be short, and lands in any block. Where it lands is found
 * by inverting the permutation of chunks, so positions need no table; memory is
 * one number per chunk of a block.
 */
#include "sampler/blocks.h"

#include "base/mem.h"

static const struct pen_opt options[] = {
	PEN_BLOCKS_CHUNK("64"),
	PEN_BLOCKS_CHUNKS("256"),
	PEN_BLOCKS_MIX,
	{ .name = NULL },
};

/* Chunks per block: as set, or enough for the number of batches in `fetch`. */
static uint64_t chunks_of(const struct pen_sampler *s)
{
	const struct pen_blocks *b = s->priv;
	const uint64_t batch = s->pop.batch ? s->pop.batch : 1;
	uint64_t rows;

	if (b->opt_chunks)
		return b->opt_chunks;
	if (__builtin_mul_overflow(batch, b->opt_fetch, &rows))
		rows = UINT64_MAX;
	return rows > b->chunk ? (rows - 1) / b->chunk + 1 : 1;
}

int pen__blocks_open(struct pen_sampler *s, struct pen_err *err)
{
	struct pen_blocks *b = s->priv;
	const uint64_t n = s->pop.n;
	uint64_t most;

	/* clamped: chunk * per_block < 2n, so no product can overflow */
	b->chunk = b->opt_chunk < n ? b->opt_chunk : n;
	b->nchunks = (n - 1) / b->chunk + 1;
	most = chunks_of(s);
	b->per_block = most < b->nchunks ? most : b->nchunks;
	b->missing = b->nchunks * b->chunk - n;
	b->held = pen__alloc(b->per_block, sizeof(*b->held));
	if (!b->held)
		return pen__fail_nomem(err, "chunks",
				       b->per_block * sizeof(*b->held));
	s->chunk = b->chunk;
	s->window = b->chunk * b->per_block;
	return 0;
}

void pen__blocks_close(struct pen_sampler *s)
{
	struct pen_blocks *b = s->priv;

	pen__free(b->held);
}

static void enter_epoch(struct pen_sampler *s, uint64_t epoch)
{
	struct pen_blocks *b = s->priv;

	if (b->ready && b->epoch == epoch)
		return;
	pen__perm_init(&b->chunks, b->nchunks, pen__rng_key(s->seed, epoch), 0);
	b->short_slot = pen__perm_inverse(&b->chunks, b->nchunks - 1);
	b->epoch = epoch;
	b->ready = true;
	b->cur_ready = false;
}

/* Blocks after the one with the short chunk start earlier by what it lacks. */
static uint64_t start_of(const struct pen_blocks *b, uint64_t i)
{
	const uint64_t full = i * b->chunk * b->per_block;

	return i > b->short_slot / b->per_block ? full - b->missing : full;
}

static uint64_t block_at(const struct pen_blocks *b, uint64_t pos)
{
	const uint64_t size = b->chunk * b->per_block;
	const uint64_t with_short = b->short_slot / b->per_block;

	if (pos >= start_of(b, with_short + 1))
		return (pos + b->missing) / size;
	return pos / size;
}

static void enter_block(struct pen_sampler *s, uint64_t i)
{
	struct pen_blocks *b = s->priv;
	const uint64_t first = i * b->per_block;
	const uint64_t left = b->nchunks - first;
	const uint64_t held = left < b->per_block ? left : b->per_block;
	uint64_t rows = held * b->chunk;

	if (b->cur_ready && b->cur == i)
		return;
	b->short_row = UINT64_MAX;
	if (b->short_slot >= first && b->short_slot < first + held) {
		rows -= b->missing;
		b->short_row =
			(b->short_slot - first + 1) * b->chunk - b->missing;
	}
	pen__perm_range(&b->chunks, first, held, b->held);
	pen__perm_init(&b->rows, rows, pen__rng_key(s->seed, b->epoch), i + 1);
	b->start = start_of(b, i);
	b->cur = i;
	b->cur_ready = true;
}

/* Converts rows of the block to elements: rows count as if no chunk were
 * short. */
static void to_elements(const struct pen_blocks *b, uint64_t *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t row =
			rows[i] + (rows[i] >= b->short_row ? b->missing : 0);

		rows[i] = b->held[row / b->chunk] * b->chunk + row % b->chunk;
	}
}

int pen__blocks_ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos,
		    size_t n, uint64_t *out, struct pen_err *err)
{
	struct pen_blocks *b = s->priv;

	(void)err;
	enter_epoch(s, epoch);
	while (n) {
		uint64_t left;
		size_t now;

		enter_block(s, block_at(b, pos));
		left = b->start + b->rows.n - pos;
		now = left < n ? (size_t)left : n;
		if (b->mix)
			pen__perm_range(&b->rows, pos - b->start, now, out);
		for (size_t i = 0; !b->mix && i < now; i++)
			out[i] = pos - b->start + i;
		to_elements(b, out, now);
		out += now;
		pos += now;
		n -= now;
	}
	return 0;
}

uint64_t pen__blocks_end(struct pen_sampler *s, uint64_t epoch, uint64_t pos)
{
	const struct pen_blocks *b = s->priv;

	enter_epoch(s, epoch);
	enter_block(s, block_at(b, pos));
	return b->start + b->rows.n;
}

/* The tables of the current epoch belong to the planner: uses only what open()
 * set. */
bool pen__blocks_mixed(const struct pen_sampler *s, uint64_t epoch,
		       uint64_t pos, uint64_t *start, uint64_t *end)
{
	const struct pen_blocks *all = s->priv;
	struct pen_blocks b = { .chunk = all->chunk,
				.per_block = all->per_block,
				.missing = all->missing };
	uint64_t i;

	pen__perm_init(&b.chunks, all->nchunks, pen__rng_key(s->seed, epoch),
		       0);
	b.short_slot = pen__perm_inverse(&b.chunks, all->nchunks - 1);
	i = block_at(&b, pos);
	*start = start_of(&b, i);
	*end = start_of(&b, i + 1);
	if (*end > s->length)
		*end = s->length;
	return all->mix;
}

const struct pen_sampler_ops pen__sampler_block = {
	.name = "block",
	.help = "shuffled chunks of neighbouring samples, mixed within blocks",
	.opts = options,
	PEN_BLOCKS_OPS,
};
