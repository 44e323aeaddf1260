/*
 * From a sample to its bytes, and from these to its row. In lines of equal
 * length, letters are found by arithmetic and copied line by line; bytes from
 * several bgzip blocks are joined first.
 *
 * The line end is checked for every line copied, so a file that does not match
 * the index or its .fai is an error and never yields line ends among the
 * letters.
 */
#include <stdio.h>

#include "base/rng.h"
#include "codec/deflate.h"
#include "format/sequence/sequence.h"
#include "format/value.h"

static uint64_t at(const struct pen_seq_part *t, enum pen_seq_column c,
		   uint64_t k)
{
	return pen__column_at(&t->col[c], k);
}

/* ---- positions ---- */

static void where_window(const struct pen_seqs *p, const struct pen_seq_part *t,
			 uint64_t k, struct pen_seq_where *w)
{
	const uint64_t step = p->step ? p->step : p->window;

	w->record = t->nrecords == 1
			    ? 0
			    : pen__column_find(&t->col[PEN_SEQ_WINDOWS], k);
	w->letters = at(t, PEN_SEQ_LETTERS, w->record);
	w->from = (k - at(t, PEN_SEQ_WINDOWS, w->record)) * step;
	if (p->last == PEN_SEQ_LAST_BACK && w->from + p->window > w->letters)
		w->from = w->letters - p->window;
	w->to = w->letters - w->from < p->window ? w->letters
						 : w->from + p->window;
}

struct pen_seq_where pen__seq_where(const struct pen_seqs *p,
				    const struct pen_seq_part *t, uint64_t k)
{
	struct pen_seq_where w = { .record = k };

	if (p->bed_path) {
		const struct pen_seq_interval *v;

		w.interval = at(t, PEN_SEQ_INTERVAL, k);
		v = &p->bed.v[w.interval];
		w.record = at(t, PEN_SEQ_RECORD, k);
		w.letters = at(t, PEN_SEQ_LETTERS, w.record);
		w.from = v->from;
		w.to = v->to;
		w.minus = v->minus;
	} else if (p->window) {
		where_window(p, t, k, &w);
	} else {
		w.to = w.letters = at(t, PEN_SEQ_LETTERS, k);
	}
	return w;
}

/* Byte range of letters [from, to) in lines that start at `first`. */
static struct pen_seq_run run_of(struct pen_seq_layout l, uint64_t first,
				 uint64_t from, uint64_t to)
{
	struct pen_seq_run r = { .layout = l };
	const uint64_t last = to - 1;

	if (from == to) {
		r.in = (struct pen_seq_range){ first, first };
	} else if (l.bases == UINT64_MAX) { /* one line */
		r.in = (struct pen_seq_range){ first + from, first + to };
	} else {
		r.skip = from % l.bases;
		r.in.from = first + from / l.bases * l.width + r.skip;
		r.in.to = first + last / l.bases * l.width + last % l.bases + 1;
	}
	return r;
}

/* In irregular lines, by marks if the record has any. */
static struct pen_seq_run run_irregular(const struct pen_seq_part *t,
					uint64_t record, uint64_t from,
					uint64_t to)
{
	const struct pen_column *odd = &t->col[PEN_SEQ_ODD];
	const uint64_t end = at(t, PEN_SEQ_START, record + 1);
	struct pen_seq_run r = { .skip = from };
	uint64_t i, first, n, next;

	r.in.from = at(t, PEN_SEQ_START, record) + at(t, PEN_SEQ_HEAD, record);
	r.in.to = end;
	if (from == to)
		r.in.to = r.in.from;
	if (from == to || !odd->n || pen__column_at(odd, 0) > record)
		return r;
	i = pen__column_find(odd, record);
	if (pen__column_at(odd, i) != record)
		return r;
	first = at(t, PEN_SEQ_ODD_FIRST, i);
	n = at(t, PEN_SEQ_ODD_FIRST, i + 1) - first;
	next = (to - 1) / PEN_SEQ_MARK_EVERY + 1;
	r.in.from = at(t, PEN_SEQ_MARK, first + from / PEN_SEQ_MARK_EVERY);
	if (next < n)
		r.in.to = at(t, PEN_SEQ_MARK, first + next);
	r.skip = from % PEN_SEQ_MARK_EVERY;
	return r;
}

struct pen_seq_run pen__seq_letters(const struct pen_seq_part *t,
				    uint64_t record, uint64_t from, uint64_t to)
{
	const uint64_t l = at(t, PEN_SEQ_LAYOUT, record);
	struct pen_seq_run r;

	if (l != PEN_SEQ_IRREGULAR)
		return run_of(t->layout[l],
			      at(t, PEN_SEQ_START, record) +
				      at(t, PEN_SEQ_HEAD, record),
			      from, to);
	r = run_irregular(t, record, from, to);
	if (t->col[PEN_SEQ_QUALITY].n &&
	    from < to) /* up to the line with '+' */
		r.in.to = r.in.from + at(t, PEN_SEQ_QUALITY, record);
	return r;
}

struct pen_seq_run pen__seq_quality(const struct pen_seq_part *t,
				    uint64_t record, uint64_t from, uint64_t to)
{
	const uint64_t l = at(t, PEN_SEQ_QLAYOUT, record);
	const uint64_t first = at(t, PEN_SEQ_START, record) +
			       at(t, PEN_SEQ_HEAD, record) +
			       at(t, PEN_SEQ_QUALITY, record);
	struct pen_seq_run r = { .skip = from };

	if (l != PEN_SEQ_IRREGULAR)
		return run_of(t->layout[l], first, from, to);
	r.in.from = first;
	r.in.to = from == to ? first : at(t, PEN_SEQ_START, record + 1);
	return r;
}

/* Offset of a record's id in the text. */
static uint64_t id_at(const struct pen_seqs *p, const struct pen_seq_part *t,
		      uint64_t record)
{
	return at(t, PEN_SEQ_START, record) + at(t, PEN_SEQ_ID_AT, record) +
	       (p->ops->lines ? at(t, PEN_SEQ_LETTERS, record) : 0);
}

struct pen_seq_range pen__seq_range(const struct pen_seqs *p,
				    const struct pen_seq_part *t, uint64_t k)
{
	struct pen_seq_where w = pen__seq_where(p, t, k);
	struct pen_seq_range r, q;

	if (p->shift) {
		w.from -= w.from < p->shift ? w.from : p->shift;
		w.to += w.letters - w.to < p->shift ? w.letters - w.to
						    : p->shift;
	}
	r = pen__seq_letters(t, w.record, w.from, w.to).in;
	if (p->place[PEN_SEQ_F_QUALITY] >= 0) {
		q = pen__seq_quality(t, w.record, w.from, w.to).in;
		r.to = q.to > r.to ? q.to : r.to;
	}
	if (p->place[PEN_SEQ_F_ID] < 0 || p->window || p->bed_path)
		return r;
	if (!p->ops->lines) {
		r.from = at(t, PEN_SEQ_START, w.record);
		return r;
	}
	q.to = id_at(p, t, w.record) + at(t, PEN_SEQ_ID, w.record);
	r.to = q.to > r.to ? q.to : r.to;
	return r;
}

/* ---- units ---- */

static const struct pen_seq_part *part_of(const struct pen_format *f,
					  uint32_t object)
{
	const struct pen_seqs *p = f->priv;

	return &p->part[f->ix->blob_of(f->ix, object)];
}

/* Units of t->group blocks each. */
static void locate_blocks(const struct pen_format *f,
			  const struct pen_seq_part *t, uint32_t object,
			  struct pen_seq_range r, struct pen_unit *u)
{
	const struct pen_column *block = &t->col[PEN_SEQ_BLOCK];
	const uint64_t nblocks = block->n - 1;
	const uint64_t last = r.to > r.from ? r.to - 1 : r.from;
	const uint64_t to = pen__column_find(block, last) / t->group;
	uint64_t i = pen__column_find(block, r.from) / t->group;
	uint32_t n = 0;

	for (; i <= to && i * t->group < nblocks && r.to > r.from &&
	       n < f->units_per_sample;
	     i++, n++, u++) {
		const uint64_t first = i * t->group,
			       end = first + t->group < nblocks
					     ? first + t->group
					     : nblocks;

		*u = (struct pen_unit){
			.offset = at(t, PEN_SEQ_RAW, first),
			.len = at(t, PEN_SEQ_RAW, end) -
			       at(t, PEN_SEQ_RAW, first),
			.size = pen__column_at(block, end) -
				pen__column_at(block, first),
			.id = (uint64_t)object << 32 | i,
			.object = object,
			.flags = PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED,
		};
	}
	for (; n < f->units_per_sample; n++, u++)
		*u = (struct pen_unit){ .object = PEN_NO_OBJECT };
}

void pen__seq_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		     struct pen_unit *u)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_seq_part *t = part_of(f, object);
	uint64_t n = f->apart || f->all_plain ? 1 : t->run, first = k - k % n;
	struct pen_seq_range r;

	if (t->kind == PEN_SEQ_BGZF) {
		locate_blocks(f, t, object, pen__seq_range(p, t, k), u);
		return;
	}
	for (uint32_t i = 1; i < f->units_per_sample; i++)
		u[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	*u = (struct pen_unit){ .object = object,
				.flags = f->all_plain ? PEN_UNIT_PLAIN : 0 };
	if (t->kind == PEN_SEQ_GZIP) {
		u->len = f->ix->size_of(f->ix, object);
		u->size = t->text;
		u->id = (uint64_t)object << 32;
		u->flags = PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED;
		return;
	}
	/* neither starts nor ends decrease from sample to sample */
	r = pen__seq_range(p, t, first);
	if (n > 1) {
		u->id = (uint64_t)object << 32 | first / n;
		u->flags = PEN_UNIT_SHARED;
		n = n < t->nsamples - first ? n : t->nsamples - first;
		r.to = pen__seq_range(p, t, first + n - 1).to;
	}
	u->offset = r.from;
	u->len = r.to - r.from;
}

int pen__seq_unpack(const struct pen_format *f, const struct pen_unit *u,
		    struct pen_span raw, void *out, struct pen_scratch *s,
		    struct pen_err *err)
{
	const struct pen_seq_part *t = part_of(f, u->object);
	struct pen_gunzip g = {
		.in = raw.p, .n = raw.n, .out = out, .cap = u->size
	};
	char name[256];
	int rc = 0;

	if (t->kind == PEN_SEQ_BGZF)
		rc = pen__bgzf_unpack(s, raw, out, u->size);
	while (t->kind == PEN_SEQ_GZIP && !rc && g.n) {
		rc = pen__gunzip(s, &g);
		if (rc)
			break;
		g.in = (const uint8_t *)g.in + g.used;
		g.n -= g.used;
		g.out = (uint8_t *)g.out + g.got;
		g.cap -= g.got;
		if (pen__seq_zeros(g.in, g.n))
			g.n = 0;
		if (!g.n && g.cap)
			rc = PEN_EDATA;
	}
	if (!rc)
		return 0;
	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, name, 0);
	return pen__fail(err, P_DAMAGED, name,
			 "the compressed data at byte %llu is damaged or has "
			 "changed since it was indexed",
			 (unsigned long long)u->offset);
}

/* ---- rows ---- */

/* Returns the bytes of a sample from r.from on, in one piece; NULL: some are
 * missing. Bytes from several blocks are joined in room. */
static const uint8_t *bytes_of(const struct pen_seq_part *t,
			       const struct pen_row *row,
			       struct pen_seq_range r, uint8_t *room)
{
	const struct pen_column *block = &t->col[PEN_SEQ_BLOCK];
	uint64_t done = 0, n = r.to - r.from;

	if (t->kind != PEN_SEQ_BGZF) {
		const uint64_t base =
			t->kind == PEN_SEQ_GZIP ? 0 : row->units[0].offset;

		return r.from >= base && r.to - base <= row->data[0].n
			       ? row->data[0].p + (r.from - base)
			       : NULL;
	}
	for (uint32_t i = 0; i < row->nunits && done < n; i++) {
		const struct pen_unit *u = &row->units[i];
		const struct pen_span d = row->data[i];
		uint64_t base, in, take;

		if (u->object == PEN_NO_OBJECT)
			continue;
		base = pen__column_at(block, (u->id & UINT32_MAX) * t->group);
		if (r.from + done < base || r.from + done - base >= d.n)
			continue;
		in = r.from + done - base;
		take = d.n - in < n - done ? d.n - in : n - done;
		if (take == n)
			return d.p + in;
		memcpy(room + done, d.p + in, take);
		done += take;
	}
	return done == n ? room : NULL;
}

/* First byte of the line end. */
static uint8_t eol_of(struct pen_seq_layout l)
{
	return l.width - l.bases > 1 ? '\r' : '\n';
}

static bool copy_long(const uint8_t *p, const uint8_t *e, uint8_t *to,
		      struct pen_seq_layout l)
{
	const uint8_t eol = eol_of(l);
	bool ok = true;

	for (; (size_t)(e - p) > l.bases; p += l.width, to += l.bases) {
		memcpy(to, p, l.bases);
		ok &= p[l.bases] == eol;
		if ((size_t)(e - p) < l.width)
			return false;
	}
	memcpy(to, p, (size_t)(e - p));
	return ok;
}

/* Copies lines of up to 64 letters, 64 bytes at a time: the next line
 * overwrites the excess. */
static bool copy_short(const uint8_t *p, const uint8_t *e, uint8_t *to,
		       struct pen_seq_layout l)
{
	const uint8_t eol = eol_of(l);
	bool ok = true;

	for (; (size_t)(e - p) >= l.width + 64; p += l.width, to += l.bases) {
		memcpy(to, p, 64);
		ok &= p[l.bases] == eol;
	}
	return copy_long(p, e, to, l) && ok;
}

/* Returns the n letters of a run without line ends: in place, or copied to
 * `to`, which has room for 64 more. NULL: they do not match the layout. */
static const uint8_t *letters_of(const struct pen_seq_run *r, const uint8_t *p,
				 uint8_t *to, size_t n)
{
	const struct pen_seq_layout l = r->layout;
	const size_t len = (size_t)(r->in.to - r->in.from);
	size_t head;

	if (!l.bases)
		return pen__seq_squeeze((struct pen_span){ p, len }, to,
					r->skip, n) == n
			       ? to
			       : NULL;
	if (len == n) /* in one line */
		return p;
	head = (size_t)(l.bases - r->skip);
	memcpy(to, p, head);
	if (p[head] != eol_of(l))
		return NULL;
	p += head + (l.width - l.bases);
	return (l.bases <= 64 ? copy_short : copy_long)(
		       p, p + len - head - (l.width - l.bases), to + head, l)
		       ? to
		       : NULL;
}

static int lost(const struct pen_format *f, const struct pen_row *r,
		const struct pen_seq_part *t, struct pen_err *err)
{
	return pen__sample_fail(
		f, r->object, r->k,
		t->unproven ? "its lines do not match the .fai file; run "
			      "samtools faidx again, or set format.fai=never"
			    : "its lines do not match the index, so the file "
			      "has changed",
		err);
}

struct emit {
	const struct pen_format *f;
	const struct pen_seqs *p;
	const struct pen_seq_part *t;
	const struct pen_row *r;
	struct pen_seq_where w;
	struct pen_seq_range in;
	const uint8_t *bytes;
	uint8_t *room; /* for letters, reverse complement, tokeniser */
};

/* False if fields= hides all fields of the tokeniser. */
static bool has_tokens(const struct emit *e)
{
	size_t n = 0;

	for (uint32_t i = 0; i < e->p->ntokens; i++)
		n |= e->r->dst_len[i];
	return n > 0;
}

static int put_tokens(struct emit *e, struct pen_err *err)
{
	const struct pen_seqs *p = e->p;
	const struct pen_row *r = e->r;
	const size_t n = (size_t)(e->w.to - e->w.from);
	const struct pen_seq_run run =
		pen__seq_letters(e->t, e->w.record, e->w.from, e->w.to);
	struct pen_sequence q = { .n = n, .key = r->key };
	struct pen_token_row to = { r->dst, r->dst_len, r->used,
				    e->room + (p->turns ? 2 : 1) * p->room };
	const struct pen_index *ix = e->f->ix;

	q.number = r->k + (ix->per_object ? r->object * ix->per_object
			   : ix->first	  ? ix->first[r->object]
					  : 0);
	q.letters = letters_of(&run, e->bytes + (run.in.from - e->in.from),
			       e->room, n);
	if (!q.letters || (e->t->unproven && pen__seq_odd(q.letters, n) < n))
		return lost(e->f, r, e->t, err);
	if (e->w.minus) {
		const bool rna = p->complement == PEN_SEQ_AS_RNA ||
				 (p->complement == PEN_SEQ_AS_AUTO &&
				  pen__seq_is_rna(q.letters, n));

		pen__seq_reverse(q.letters, e->room + p->room, n, rna);
		q.letters = e->room + p->room;
	}
	return pen__tokens_emit(p->tokens, &q, &to, err);
}

static int put_quality(struct emit *e, uint32_t i, struct pen_err *err)
{
	const size_t n = (size_t)(e->w.to - e->w.from);
	const struct pen_seq_run run =
		pen__seq_quality(e->t, e->w.record, e->w.from, e->w.to);
	const uint8_t *q = letters_of(
		&run, e->bytes + (run.in.from - e->in.from), e->room, n);
	uint8_t *to = e->r->dst[i];

	if (!q)
		return lost(e->f, e->r, e->t, err);
	if (e->r->dst_len[i] != n) /* hidden */
		return 0;
	for (size_t k = 0; k < n; k++)
		to[k] = (uint8_t)(q[e->w.minus ? n - 1 - k : k] - '!');
	return 0;
}

static void put_number(struct emit *e, int what, uint32_t i)
{
	const struct pen_row *r = e->r;
	int64_t whole;
	double v;

	if (r->dst_len[i] != 8 || !pen__seq_value(e->f, r->object, r->k, i, &v))
		return;
	/* a double cannot represent every integer label */
	if (what == PEN_SEQ_F_LABEL && !e->p->bed_path)
		whole = (int64_t)(at(e->t, PEN_SEQ_LABEL, e->w.record) ^
				  PEN_SEQ_SIGN);
	else
		whole = e->f->field[i].dtype == PEN_I64 ? (int64_t)v : 0;
	memcpy(r->dst[i],
	       e->f->field[i].dtype == PEN_I64 ? (const void *)&whole : &v, 8);
}

static int put_id(struct emit *e, uint32_t i, struct pen_err *err)
{
	const struct pen_seq_part *t = e->t;
	const uint64_t n = at(t, PEN_SEQ_ID, e->w.record);
	const uint8_t *p;

	if (e->r->dst_len[i] != n || !n)
		return 0;
	if (e->p->window || e->p->bed_path) {
		const uint64_t from = at(t, PEN_SEQ_NAMES, e->w.record);

		if (from > t->names.n || n > t->names.n - from)
			return lost(e->f, e->r, t, err);
		p = t->names.p + from;
	} else {
		p = e->bytes + (id_at(e->p, t, e->w.record) - e->in.from);
	}
	memcpy(e->r->dst[i], p, n);
	return 0;
}

/* Applies the random shift and strand of this row. */
static void vary(struct emit *e)
{
	const uint64_t key = pen__rng_key(e->r->key, 0x5e90);
	const struct pen_seqs *p = e->p;
	const uint64_t n = e->w.to - e->w.from;

	if (p->shift) {
		const uint64_t d =
			pen__mulhi(pen__rng_at(key, 0), 2 * p->shift + 1);
		uint64_t from = e->w.from + d;

		from -= from < p->shift ? from : p->shift;
		if (from > e->w.letters - n)
			from = e->w.letters - n;
		e->w.from = from;
		e->w.to = from + n;
	}
	if (p->rc == PEN_SEQ_RC_ALWAYS ||
	    (p->rc == PEN_SEQ_RC_RANDOM && pen__rng_at(key, 1) >> 63))
		e->w.minus = !e->w.minus;
}

int pen__seq_emit(const struct pen_format *f, const struct pen_row *r,
		  struct pen_err *err)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_seq_part *t = part_of(f, r->object);
	struct emit e = { f, p, t, r, .w = pen__seq_where(p, t, r->k) };
	int rc;

	e.in = pen__seq_range(p, t, r->k);
	e.room = (uint8_t *)r->scratch->mem + p->longest_read;
	e.bytes = e.in.from == e.in.to ? e.room
				       : bytes_of(t, r, e.in, r->scratch->mem);
	if (!e.bytes)
		return pen__sample_fail(
			f, r->object, r->k,
			"its bytes are missing from the data that was read",
			err);
	vary(&e);
	rc = has_tokens(&e) ? put_tokens(&e, err) : 0;
	for (uint32_t i = 0; !rc && i < PEN_SEQ_NFIELDS; i++) {
		const int to = p->place[i];

		if (to < 0)
			continue;
		if (i == PEN_SEQ_F_ID)
			rc = put_id(&e, (uint32_t)to, err);
		else if (i == PEN_SEQ_F_QUALITY)
			rc = put_quality(&e, (uint32_t)to, err);
		else
			put_number(&e, (int)i, (uint32_t)to);
	}
	return rc;
}
