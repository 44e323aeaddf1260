/*
 * Heads in the index. While the format below indexes an object it passes on the
 * values of its fields, and the heads that decoders find are appended to its
 * blob:
 *
 *   the format's own blob
 *   per field that is decoded by heads: u32 n, u8 axes, n heads
 *   u64 length of the format's own blob
 *
 * n is the number of samples, 1 if all have the same head, or 0 if the format
 * provided none. A value without a valid head takes the shape of a neighbour,
 * so that a batch has a place for it; decoding it fails.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "engine/decoded_int.h"

/* The heads of one field in one object. */
struct seen_field {
	struct pen_head first; /* most objects have one value */
	struct pen_head *head; /* NULL: use `first`; n is at most 1 */
	uint64_t n, cap, ngood;
};

struct seen {
	const struct pen_decoded *d;
	struct seen_field *field; /* one per d->coded */
	struct pen_err err;	  /* of the first value without a head */
};

/* ---- while an object is indexed ---- */

int pen__coded_look(const struct pen_coded *c, struct pen_peek *pk,
		    struct pen_head *out, struct pen_err *err)
{
	uint8_t b[8] = { 0 };
	const size_t n = pk->size < sizeof(b) ? (size_t)pk->size : sizeof(b);
	uint32_t i = 0;
	int rc = 0;

	if (c->nkinds > 1) {
		rc = n ? pk->read(pk, 0, b, n, err) : 0;
		while (!rc && i < c->nkinds &&
		       !pen__decoder_begins(c->decoder[i]->ops, b, n))
			i++;
		/* the first one reports what is wrong */
		i = i < c->nkinds ? i : 0;
	}
	if (!rc)
		rc = c->decoder[i]->ops->head(c->decoder[i], pk, out, err);
	for (unsigned j = 0; !rc && j < out->ndim; j++)
		if (out->shape[j] > UINT32_MAX)
			rc = pen__fail(err, P_OVER_LIMIT, pk->name,
				       "an axis has more than 2^32 elements");
	out->decoder = (uint8_t)i;
	return rc;
}

static bool grow(struct seen_field *s, uint64_t n)
{
	const uint64_t cap = n > 2 * s->cap ? n : 2 * s->cap;
	struct pen_head *p;

	if (n <= 1 || n <= s->cap)
		return true;
	p = pen__realloc(s->head, cap, sizeof(*p));
	if (!p)
		return false;
	if (!s->head && s->n)
		p[0] = s->first;
	s->head = p;
	s->cap = cap;
	return true;
}

static struct pen_head *head_of(struct seen_field *s, uint64_t k)
{
	return s->head ? &s->head[k] : &s->first;
}

/* Extends the list to n values; those not seen have no head. */
static bool see_up_to(struct seen_field *s, uint64_t n)
{
	if (!grow(s, n))
		return false;
	for (; s->n < n; s->n++)
		*head_of(s, s->n) =
			(struct pen_head){ .decoder = PEN_CODED_BAD };
	return true;
}

int pen__decoded_see(const struct pen_format *f, const char *field, uint64_t k,
		     struct pen_peek *pk, struct pen_found *found,
		     struct pen_err *err)
{
	struct seen *s = found->seen;
	const struct pen_decoded *d = s->d;
	struct pen_err own = { 0 };
	struct pen_head h;
	uint32_t j = 0;
	int rc;

	(void)f;
	while (j < d->ncoded &&
	       (!d->coded[j].by_head || strcmp(d->coded[j].name, field) != 0))
		j++;
	if (j == d->ncoded || !pk)
		return j < d->ncoded;
	if (!see_up_to(&s->field[j], k + 1))
		return pen__fail_nomem(err, pk->name, k * sizeof(h));
	rc = pen__coded_look(&d->coded[j], pk, &h, &own);
	if (rc) {
		if (err)
			*err = own;
		if (!s->err.code)
			s->err = own;
		return rc;
	}
	*head_of(&s->field[j], k) = h;
	s->field[j].ngood++;
	return 0;
}

/* Values without a head get the shape of a neighbour. */
static void borrow_shapes(struct seen_field *s)
{
	const struct pen_head *last = NULL;

	for (uint64_t k = 0; k < s->n && !last; k++)
		if (head_of(s, k)->decoder != PEN_CODED_BAD)
			last = head_of(s, k);
	for (uint64_t k = 0; last && k < s->n; k++) {
		struct pen_head *h = head_of(s, k);

		if (h->decoder == PEN_CODED_BAD) {
			*h = *last;
			h->decoder = PEN_CODED_BAD;
		} else {
			last = h;
		}
	}
}

static bool same_head(const struct pen_head *a, const struct pen_head *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim &&
	       a->kind == b->kind && a->decoder == b->decoder &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(*a->shape));
}

static void put_heads(struct seen_field *s, struct pen_buf *b)
{
	uint64_t n = s->ngood ? s->n : 0;
	unsigned axes = 0;
	bool same = true;

	for (uint64_t k = 0; k < n; k++) {
		const struct pen_head *h = head_of(s, k);

		axes = h->ndim > axes ? h->ndim : axes;
		same = same && same_head(h, head_of(s, 0));
	}
	n = n && same ? 1 : n;
	pen__buf_le(b, n, 4);
	pen__buf_le(b, axes, 1);
	for (uint64_t k = 0; k < n; k++) {
		const struct pen_head *h = head_of(s, k);

		pen__buf_le(b, h->dtype, 1);
		pen__buf_le(b, h->kind, 1);
		pen__buf_le(b, h->decoder, 1);
		pen__buf_le(b, h->ndim, 1);
		for (unsigned i = 0; i < axes; i++)
			pen__buf_le(b, i < h->ndim ? (uint64_t)h->shape[i] : 0,
				    4);
	}
}

/* Appends the heads to the blob, once the format has finished it. */
static int append_heads(struct seen *s, struct pen_peek *pk,
			struct pen_found *found, struct pen_err *err)
{
	const uint64_t own = found->blob.n, common = found->common.n;

	for (uint32_t j = 0; j < s->d->ncoded; j++) {
		struct seen_field *sf = &s->field[j];

		if (!s->d->coded[j].by_head)
			continue;
		if (sf->n && !sf->ngood) {
			if (err)
				*err = s->err;
			return s->err.code;
		}
		if (found->nsamples > UINT32_MAX)
			return pen__fail(err, P_OVER_LIMIT, pk->name,
					 "has more than 2^32 values to decode");
		if (sf->n && !see_up_to(sf, found->nsamples))
			return pen__fail_nomem(err, pk->name, sf->n);
		borrow_shapes(sf);
		put_heads(sf, &found->blob);
	}
	pen__buf_le(&found->blob, own, 8);
	if (common)
		pen__buf_le(&found->common, common, 8);
	return found->blob.bad || found->common.bad
		       ? pen__fail_nomem(err, pk->name, found->blob.n)
		       : 0;
}

int pen__decoded_index(const struct pen_format *f, struct pen_peek *pk,
		       struct pen_found *found, struct pen_err *err)
{
	const struct pen_decoded *d = f->priv;
	struct seen_field one = { .n = 0 };
	struct seen s = { .d = d, .field = &one };
	int rc;

	if (d->ncoded > 1)
		s.field = pen__calloc(d->ncoded, sizeof(*s.field));
	if (!s.field)
		return pen__fail_nomem(err, pk->name, sizeof(*s.field));
	found->seen = &s;
	rc = d->under->ops->index(d->under, pk, found, err);
	found->seen = NULL;
	if (!rc)
		rc = append_heads(&s, pk, found, err);
	for (uint32_t j = 0; j < d->ncoded; j++)
		pen__free(s.field[j].head);
	if (d->ncoded > 1)
		pen__free(s.field);
	return rc;
}

/* ---- the index, as the format below sees it ---- */

static const struct pen_index *whole(const struct pen_index *ix)
{
	return ((const struct pen_under_index *)ix)->of;
}

/* Length of the format's own part; 0 if the blob is damaged. */
static size_t own_len(struct pen_span s)
{
	struct pen_bytes b;
	uint64_t n;

	if (s.n < 8)
		return 0;
	b = pen__bytes(s.p + s.n - 8, 8);
	n = pen__take_u64(&b);
	return n <= s.n - 8 ? (size_t)n : 0;
}

static struct pen_span under_blob(const struct pen_index *ix, uint64_t id)
{
	struct pen_span s = whole(ix)->blob(whole(ix), id);

	s.n = own_len(s);
	return s;
}

static uint64_t under_blob_of(const struct pen_index *ix, uint64_t object)
{
	return whole(ix)->blob_of(whole(ix), object);
}

static uint64_t under_size(const struct pen_index *ix, uint64_t object)
{
	return whole(ix)->size_of(whole(ix), object);
}

static void under_name(const struct pen_index *ix, uint64_t object, char *buf,
		       size_t cap)
{
	whole(ix)->name_of(whole(ix), object, buf, cap);
}

void pen__under_index(struct pen_decoded *d, const struct pen_index *ix)
{
	d->ix.of = ix;
	d->ix.pub = *ix;
	d->ix.pub.blob = under_blob;
	d->ix.pub.blob_of = under_blob_of;
	d->ix.pub.size_of = under_size;
	d->ix.pub.name_of = under_name;
}

/* ---- heads from the index ---- */

void pen__head_get(const struct pen_heads *heads, uint64_t k,
		   struct pen_head *out)
{
	const size_t at = heads->n == 1 ? 0 : (size_t)k * heads->stride;
	struct pen_bytes b = pen__bytes(heads->p + at, heads->stride);

	*out = (struct pen_head){ .dtype = pen__take_u8(&b) };
	out->kind = pen__take_u8(&b);
	out->decoder = pen__take_u8(&b);
	out->ndim = pen__take_u8(&b);
	for (unsigned i = 0; i < out->ndim; i++)
		out->shape[i] = pen__take_u32(&b);
}

static bool heads_ok(const struct pen_coded *c, const struct pen_heads *heads,
		     unsigned axes)
{
	struct pen_head h;

	for (uint64_t k = 0; k < heads->n; k++) {
		const uint8_t *p = heads->p + k * heads->stride;

		if (p[3] > axes)
			return false;
		pen__head_get(heads, k, &h);
		if (h.dtype >= PEN_NDTYPES ||
		    (h.decoder >= c->nkinds && h.decoder != PEN_CODED_BAD))
			return false;
	}
	return true;
}

static bool take_heads(const struct pen_coded *c, struct pen_bytes *b,
		       struct pen_heads *out)
{
	unsigned axes;

	out->n = pen__take_u32(b);
	axes = pen__take_u8(b);
	out->stride = 4 + 4 * axes;
	out->p = pen__take(b, out->n * out->stride);
	return !b->bad && axes <= PEN_HEAD_DIMS && heads_ok(c, out, axes);
}

/* Blobs that belong to no object have no heads, which are not needed. */
int pen__heads_find(struct pen_decoded *d, struct pen_err *err)
{
	const struct pen_index *ix = d->ix.of;

	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_span s = ix->blob(ix, i);
		const size_t own = own_len(s);
		struct pen_bytes b;

		if (s.n < 8 || own == s.n - 8)
			continue; /* a skipped object, or a blob of no object */
		b = pen__bytes(s.p + own, s.n - 8 - own);
		for (uint32_t j = 0; j < d->ncoded; j++)
			if (d->coded[j].by_head &&
			    !take_heads(&d->coded[j], &b,
					&d->heads[i * d->ncoded + j]))
				return pen__fail(err, P_BAD_INDEX,
						 d->coded[j].name,
						 "damaged index entry");
	}
	return 0;
}
