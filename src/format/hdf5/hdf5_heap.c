/*
 * Fractal heaps, which store the links of large groups and the attributes of
 * objects with many, and version 2 B-trees, which index them. A heap object is
 * found by walking the doubling table from its root; the direct block used last
 * is kept, because objects are read in order. Rejects heaps with filtered
 * blocks.
 */
#include "format/hdf5/hdf5_int.h"

#include "codec/lookup3.h"

#define SUMMED 0x02 /* direct blocks have a checksum */
#define DEEPEST 16

int pen__h5_heap_open(struct pen_h5 *h, uint64_t addr, struct pen_h5_heap *hp,
		      struct pen_err *err)
{
	const uint64_t n = 4 + 1 + 2 + 2 + 1 + 4 + 12 * (uint64_t)h->sl +
			   3 * (uint64_t)h->so + 2 + 2 + 2 + 2 + 4;
	unsigned filtered;
	struct pen_buf buf;
	struct pen_bytes b;
	uint32_t direct_bytes, managed_bytes;
	int rc;

	memset(hp, 0, sizeof(*hp));
	rc = pen__h5_load_as(h, (struct pen_h5_part){ addr, n, "FRHP", false },
			     &buf, &b, err);
	if (rc < 0)
		return rc;
	hp->addr = addr;
	pen__take_u8(&b);
	hp->id_len = pen__take_u16(&b);
	filtered = pen__take_u16(&b);
	hp->flags = pen__take_u8(&b);
	hp->managed = pen__take_u32(&b);
	pen__h5_len(h, &b); /* next huge ID */
	hp->huge = pen__h5_addr(h, &b);
	pen__h5_len(h, &b); /* free space */
	pen__h5_addr(h, &b);
	pen__take(&b, 8 * (uint64_t)h->sl); /* statistics */
	hp->width = pen__take_u16(&b);
	hp->start = pen__h5_len(h, &b);
	hp->most_direct = pen__h5_len(h, &b);
	hp->bits = pen__take_u16(&b);
	pen__take_u16(&b);
	hp->root = pen__h5_addr(h, &b);
	hp->rows = pen__take_u16(&b);
	if (filtered)
		rc = pen__h5_cannot(h, err,
				    "filtered fractal heaps are not supported");
	else if (b.bad || pen__lookup3(buf.p, buf.n - 4) != pen__take_u32(&b))
		rc = pen__h5_wrong_sum(h, err, "a heap");
	pen__buf_fini(&buf);
	if (rc < 0)
		return rc;
	if (!hp->start || hp->start & (hp->start - 1) || !hp->width ||
	    hp->width & (hp->width - 1) || hp->most_direct < hp->start ||
	    hp->most_direct & (hp->most_direct - 1) || hp->bits > 64 ||
	    hp->id_len < 2 || hp->rows > 64 || hp->most_direct > UINT32_MAX)
		return pen__h5_bad(h, err, "the geometry of a heap is invalid");
	hp->off_size = (hp->bits + 7) / 8;
	direct_bytes = pen__h5_enc(hp->most_direct);
	managed_bytes = pen__h5_enc(hp->managed);
	hp->len_size = direct_bytes < managed_bytes ? direct_bytes
						    : managed_bytes;
	return 0;
}

void pen__h5_heap_close(struct pen_h5_heap *hp)
{
	pen__buf_fini(&hp->block);
}

/* Size of the blocks of row r, and their first offset. */
static uint64_t row_size(const struct pen_h5_heap *hp, uint32_t r)
{
	return r < 2 ? hp->start : hp->start << (r - 1);
}

static uint64_t row_start(const struct pen_h5_heap *hp, uint32_t r)
{
	return r ? hp->start * hp->width << (r - 1) : 0;
}

/* Keeps the direct block at addr, which contains [off, off + size). */
static int keep_block(struct pen_h5 *h, struct pen_h5_heap *hp, uint64_t addr,
		      uint64_t off, uint64_t size, struct pen_err *err)
{
	const size_t sum_at = 5u + h->so + hp->off_size;
	struct pen_bytes b;
	uint32_t sum;
	int rc;

	pen__buf_fini(&hp->block);
	rc = pen__h5_load_as(h,
			     (struct pen_h5_part){ addr, size, "FHDB", false },
			     &hp->block, &b, err);
	if (rc < 0)
		return rc;
	hp->block_off = off;
	pen__take_u8(&b);
	if (pen__h5_addr(h, &b) != hp->addr)
		b.bad = true;
	if (pen__take_le(&b, hp->off_size) != off)
		b.bad = true;
	if (hp->flags & SUMMED) {
		sum = pen__take_u32(&b);
		if (!b.bad) /* it was computed with zeros in its place */
			memset(hp->block.p + sum_at, 0, 4);
		if (!b.bad && pen__lookup3(hp->block.p, hp->block.n) != sum)
			b.bad = true;
	}
	if (!b.bad)
		return 0;
	pen__buf_fini(&hp->block);
	return pen__h5_bad(h, err, "a heap block is not the expected one");
}

/*
 * Descends from an indirect block of `rows` rows at addr, which starts at heap
 * offset `base`, to the direct block that contains offset `off`.
 */
static int descend(struct pen_h5 *h, struct pen_h5_heap *hp, uint64_t off,
		   struct pen_err *err)
{
	const uint32_t direct =
		pen__h5_log2(hp->most_direct) - pen__h5_log2(hp->start) + 2;
	uint64_t addr = hp->root, base = 0;
	uint32_t rows = hp->rows;

	for (unsigned depth = 0; depth < DEEPEST; depth++) {
		uint64_t n = 5 + h->so + hp->off_size +
			     (uint64_t)rows * hp->width * h->so + 4;
		uint64_t rel = off - base, size, col;
		struct pen_buf buf;
		struct pen_bytes b;
		uint32_t r = 0;
		int rc;

		while (r < rows && r < 63 && row_start(hp, r + 1) <= rel)
			r++;
		if (r >= rows || pen__h5_log2(hp->start * hp->width) + r > 63)
			break;
		size = row_size(hp, r);
		col = (rel - row_start(hp, r)) / size;
		rc = pen__h5_load_as(
			h, (struct pen_h5_part){ addr, n, "FHIB", true }, &buf,
			&b, err);
		if (rc < 0)
			return rc;
		pen__take(&b, 1u + h->so + hp->off_size +
				      (r * hp->width + col) * h->so);
		addr = pen__h5_addr(h, &b);
		pen__buf_fini(&buf);
		base += row_start(hp, r) + col * size;
		if (r < direct)
			return keep_block(h, hp, addr, base, size, err);
		rows = pen__h5_log2(size) -
		       pen__h5_log2(hp->start * hp->width) + 1;
	}
	return pen__h5_bad(h, err, "an object is outside its heap");
}

struct huge {
	struct pen_h5 *h;
	uint64_t want, addr, len;
};

static int see_huge(void *arg, struct pen_bytes *b, struct pen_err *err)
{
	struct huge *g = arg;
	const uint64_t addr = pen__h5_addr(g->h, b);
	const uint64_t len = pen__h5_len(g->h, b);

	(void)err;
	if (pen__h5_len(g->h, b) != g->want || b->bad)
		return 0;
	g->addr = addr;
	g->len = len;
	return 1;
}

/* An object too large for a block is stored separately in the file. */
static int get_huge(struct pen_h5 *h, struct pen_h5_heap *hp,
		    struct pen_bytes *id, struct pen_buf *mem,
		    struct pen_span *out, struct pen_err *err)
{
	struct huge g = { .h = h, .addr = PEN_H5_NOWHERE };
	int rc;

	if (pen__bytes_left(id) >= (size_t)h->so + h->sl) {
		g.addr = pen__h5_addr(h, id);
		g.len = pen__h5_len(h, id);
	} else {
		const size_t n = pen__bytes_left(id);

		g.want = pen__take_le(id, n < h->sl ? (unsigned)n : h->sl);
		rc = pen__h5_btree2(h, hp->huge, 1, see_huge, &g, err);
		if (rc < 0)
			return rc;
	}
	rc = pen__h5_load(h, g.addr, g.len, mem, err);
	*out = (struct pen_span){ mem->p, mem->n };
	return rc;
}

int pen__h5_heap_get(struct pen_h5 *h, struct pen_h5_heap *hp,
		     const uint8_t *id, struct pen_buf *mem,
		     struct pen_span *out, struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(id, hp->id_len);
	const unsigned head = pen__take_u8(&b), kind = head >> 4 & 3;
	uint64_t off, len;
	int rc = 0;

	if (head >> 6 || kind == 3)
		return pen__h5_bad(h, err, "the type of a heap ID is unknown");
	if (kind == 1)
		return get_huge(h, hp, &b, mem, out, err);
	if (kind == 2) {
		len = head & 15;
		if (hp->id_len > 17)
			len = len << 8 | pen__take_u8(&b);
		*out = (struct pen_span){ pen__take(&b, len + 1),
					  (size_t)len + 1 };
		return b.bad ? pen__h5_bad(h, err, "a heap ID is truncated")
			     : 0;
	}
	off = pen__take_le(&b, hp->off_size);
	len = pen__take_le(&b, hp->len_size);
	if (b.bad)
		return pen__h5_bad(h, err, "a heap ID is truncated");
	if (!hp->block.p || off < hp->block_off ||
	    off - hp->block_off >= hp->block.n)
		rc = hp->rows ? descend(h, hp, off, err)
			      : keep_block(h, hp, hp->root, 0, hp->start, err);
	if (rc < 0)
		return rc;
	off -= hp->block_off;
	if (off > hp->block.n || len > hp->block.n - off)
		return pen__h5_bad(h, err, "an object is outside its heap");
	*out = (struct pen_span){ hp->block.p + off, (size_t)len };
	return 0;
}

/* ---- version 2 B-trees ---- */

struct tree {
	struct pen_h5 *h;
	pen_h5_record_fn *fn;
	void *arg;
	struct pen_err *err;
	uint32_t node_size, record;
	uint8_t type;
	unsigned nrec_size;	      /* bytes of the record count of a child */
	unsigned total_size[DEEPEST]; /* bytes of the total below, by level */
};

static int each_record(struct tree *t, const uint8_t *p)
{
	struct pen_bytes r = pen__bytes(p, t->record);

	return t->fn(t->arg, &r, t->err);
}

static int walk_node(struct tree *t, uint64_t addr, uint64_t nrec,
		     unsigned level)
{
	const unsigned ptr = t->h->so + t->nrec_size +
			     (level > 1 ? t->total_size[level - 1] : 0);
	const uint64_t n =
		6 + nrec * t->record + (level ? (nrec + 1) * ptr : 0) + 4;
	const uint8_t *rec;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	if (n > t->node_size)
		return pen__h5_bad(t->h, t->err,
				   "a B-tree node has too many records");
	rc = pen__h5_load_as(
		t->h,
		(struct pen_h5_part){ addr, n, level ? "BTIN" : "BTLF", true },
		&buf, &b, t->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2); /* version, type: as in the header */
	rec = pen__take(&b, nrec * t->record);
	for (uint64_t i = 0; !rc && i <= nrec; i++) {
		if (level) {
			uint64_t child = pen__h5_addr(t->h, &b);
			uint64_t k = pen__take_le(&b, t->nrec_size);

			pen__take(&b, level > 1 ? t->total_size[level - 1] : 0);
			/* b covers all pointers: see n above */
			rc = walk_node(t, child, k, level - 1);
		}
		if (!rc && i < nrec)
			rc = each_record(t, rec + i * t->record);
	}
	pen__buf_fini(&buf);
	return rc;
}

/* The maximum number of records per node defines the width of the counts. */
static bool size_levels(struct tree *t, unsigned depth)
{
	uint64_t most = (t->node_size - 10) / t->record, below = most;

	t->nrec_size = pen__h5_enc(most);
	t->total_size[0] = 0;
	for (unsigned u = 1; u <= depth; u++) {
		uint64_t ptr = t->h->so + t->nrec_size + t->total_size[u - 1];
		uint64_t here, total;

		if (t->node_size < 10 + ptr)
			return false;
		here = (t->node_size - (10 + ptr)) / (t->record + ptr);
		if (__builtin_mul_overflow(here + 1, below, &total) ||
		    __builtin_add_overflow(total, here, &total))
			return false;
		below = total;
		t->total_size[u] = pen__h5_enc(total);
	}
	return true;
}

int pen__h5_btree2(struct pen_h5 *h, uint64_t addr, uint8_t type,
		   pen_h5_record_fn *fn, void *arg, struct pen_err *err)
{
	struct tree t = { .h = h, .fn = fn, .arg = arg, .err = err };
	const uint64_t n = 4 + 1 + 1 + 4 + 2 + 2 + 2 + h->so + 2 + h->sl + 4;
	uint64_t root, nrec;
	struct pen_buf buf;
	struct pen_bytes b;
	unsigned depth;
	int rc;

	rc = pen__h5_load_as(h, (struct pen_h5_part){ addr, n, "BTHD", true },
			     &buf, &b, err);
	if (rc < 0)
		return rc;
	pen__take_u8(&b);
	t.type = pen__take_u8(&b);
	t.node_size = pen__take_u32(&b);
	t.record = pen__take_u16(&b);
	depth = pen__take_u16(&b);
	pen__take(&b, 2);
	root = pen__h5_addr(h, &b);
	nrec = pen__take_u16(&b);
	pen__buf_fini(&buf);
	if (b.bad || t.type != type || !t.record ||
	    t.node_size < 10 + t.record || depth >= DEEPEST ||
	    !size_levels(&t, depth))
		return pen__h5_bad(h, err, "the header of a B-tree is invalid");
	if (root == PEN_H5_NOWHERE || (!nrec && !depth))
		return 0;
	rc = walk_node(&t, root, nrec, depth);
	return rc > 0 ? 0 : rc;
}
