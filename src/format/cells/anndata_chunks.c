/*
 * Arrays on their way to disk. Threads compress full chunks, and the calling
 * thread writes them in order: the sink needs no lock, and the output does not
 * depend on which thread was faster. A chunk that is not compressed is written
 * directly if none is pending before it.
 */
#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "codec/byte_shuffle.h"
#include "format/cells/anndata_write.h"

struct pen_ad_job {
	struct pen_ad *ad;
	struct pen_ad_array *a;
	struct pen_ad_chunk c;
	uint64_t serial;
	struct pen_buf raw, shuffled, packed;
	int code;
};

static bool reserve(struct pen_buf *b, size_t n)
{
	uint8_t *p;

	if (n <= b->cap)
		return true;
	p = pen__realloc(b->p, n, 1);
	if (!p)
		return false;
	b->p = p;
	b->cap = n;
	return true;
}

/* ---- compression, in the threads ---- */

static int pack(struct pen_ad_job *j, struct pen_scratch *s)
{
	const struct pen_ad *ad = j->ad;
	const struct pen_packer *by = ad->packer;
	const size_t bound = by->bound(j->raw.n), item = j->a->text ? 1 : 0;
	const size_t cap = bound ? bound : j->raw.n;
	struct pen_pack how = ad->how;
	const uint8_t *in = j->raw.p;

	how.item = item ? item : pen_dtype_size(j->a->dtype);
	if (ad->shuffle && how.item > 1) {
		if (!reserve(&j->shuffled, j->raw.n))
			return PEN_ENOMEM;
		pen__shuffle(how.item, in, j->raw.n, j->shuffled.p);
		in = j->shuffled.p;
	}
	if (!reserve(&j->packed, cap))
		return PEN_ENOMEM;
	j->c.p = j->packed.p;
	j->c.n = by->pack(s, &how, in, j->raw.n, j->packed.p,
			  bound ? cap : cap - 1);
	if (j->c.n)
		return 0;
	if (bound)
		return PEN_ENOMEM;
	j->c.p = in;
	j->c.n = j->raw.n;
	j->c.unpacked = true;
	return 0;
}

static void work(void *arg, unsigned i)
{
	struct pen_ad *ad = arg;
	struct pen_ad_job *j;

	while ((j = pen__ring_pop(ad->todo, NULL, true))) {
		j->code = pack(j, &ad->scratch[i]);
		pen__order_put(ad->done, j->serial, j);
	}
}

int pen__ad_team(struct pen_ad *ad, struct pen_err *err)
{
	const unsigned n = ad->threads ? (unsigned)ad->threads : pen__cpus();

	if (!ad->packer)
		return 0;
	ad->threads = n;
	ad->njobs = 2 * n + 2;
	ad->job = pen__calloc(ad->njobs, sizeof(*ad->job));
	ad->scratch = pen__calloc(n, sizeof(*ad->scratch));
	if (!ad->job || !ad->scratch ||
	    pen__ring_new(&ad->todo, ad->njobs, -1) < 0 ||
	    pen__order_new(&ad->done, ad->njobs) < 0)
		return pen__fail_nomem(err, ad->w->path,
				       ad->njobs * sizeof(*ad->job));
	for (unsigned i = 0; i < n; i++)
		if (pen__scratch_init(&ad->scratch[i], 0) < 0)
			return pen__fail_nomem(err, ad->w->path, 0);
	return pen__team_start(&ad->team, n, "pen-pack", work, ad, err);
}

void pen__ad_disband(struct pen_ad *ad)
{
	if (ad->todo)
		pen__ring_close(ad->todo);
	pen__team_join(ad->team);
	pen__ring_free(ad->todo);
	pen__order_free(ad->done);
	for (unsigned i = 0; ad->scratch && i < ad->threads; i++)
		pen__scratch_fini(&ad->scratch[i]);
	for (unsigned i = 0; ad->job && i < ad->njobs; i++) {
		pen__buf_fini(&ad->job[i].raw);
		pen__buf_fini(&ad->job[i].shuffled);
		pen__buf_fini(&ad->job[i].packed);
	}
	pen__free(ad->scratch);
	pen__free(ad->job);
}

/* ---- the writing thread ---- */

/* Writes the oldest chunk that is not yet on disk. */
static int write_one(struct pen_ad *ad, struct pen_err *err)
{
	struct pen_ad_job *j = pen__order_get(ad->done, NULL);

	ad->nwritten++;
	if (j->code)
		return pen__fail_nomem(err, ad->w->path, j->raw.n);
	return ad->sink->chunk(ad, j->a, &j->c, err);
}

int pen__ad_drain(struct pen_ad *ad, struct pen_err *err)
{
	int rc = 0;

	while (!rc && ad->nwritten < ad->nqueued)
		rc = write_one(ad, err);
	return rc;
}

static int submit(struct pen_ad *ad, struct pen_ad_array *a,
		  const struct pen_ad_chunk *c, struct pen_err *err)
{
	struct pen_ad_job *j;
	struct pen_buf b;
	int rc;

	if (ad->nqueued - ad->nwritten == ad->njobs) {
		rc = write_one(ad, err);
		if (rc)
			return rc;
	}
	j = &ad->job[ad->nqueued % ad->njobs];
	j->ad = ad;
	j->a = a;
	j->c = *c;
	j->serial = ad->nqueued++;
	j->code = 0;
	b = j->raw;
	j->raw = a->part;
	a->part = b;
	j->c.p = j->raw.p;
	j->c.n = j->raw.n;
	if (a->plain)
		pen__order_put(ad->done, j->serial, j);
	else
		pen__ring_push(ad->todo, 0, j);
	return 0;
}

/* Pads the chunk with zeros or empty strings. */
static bool fill_up(struct pen_ad_array *a)
{
	const size_t left = (size_t)(a->chunk - a->have);
	const size_t n = left * (a->text ? 4 : a->row);

	if (a->ragged || !left)
		return true;
	if (!reserve(&a->part, a->part.n + n))
		return false;
	memset(a->part.p + a->part.n, 0, n);
	a->part.n += n;
	return true;
}

int pen__ad_flush(struct pen_ad *ad, struct pen_ad_array *a,
		  struct pen_err *err)
{
	struct pen_ad_chunk c = { .number = a->ndone, .nrows = a->have };
	int rc;

	if (!a->have)
		return 0;
	if (a->part.bad || !fill_up(a))
		return pen__fail_nomem(err, a->path, a->part.n);
	c.p = a->part.p;
	c.n = a->part.n;
	/* chunks in progress go first, to keep the order */
	rc = a->plain && ad->nwritten == ad->nqueued
		     ? ad->sink->chunk(ad, a, &c, err)
		     : submit(ad, a, &c, err);
	a->ndone++;
	a->have = 0;
	a->part.n = 0;
	return rc;
}

void *pen__ad_room(struct pen_ad *ad, struct pen_ad_array *a, uint64_t *n,
		   struct pen_err *err)
{
	(void)ad;
	if (!reserve(&a->part, (size_t)a->chunk * a->row)) {
		pen__fail_nomem(err, a->path, (size_t)a->chunk * a->row);
		return NULL;
	}
	if (*n > a->chunk - a->have)
		*n = a->chunk - a->have;
	return a->part.p + a->have * a->row;
}

int pen__ad_added(struct pen_ad *ad, struct pen_ad_array *a, uint64_t n,
		  struct pen_err *err)
{
	a->have += n;
	a->part.n = (size_t)a->have * a->row;
	return a->have == a->chunk ? pen__ad_flush(ad, a, err) : 0;
}

int pen__ad_put(struct pen_ad *ad, struct pen_ad_array *a, const void *from,
		uint64_t n, struct pen_err *err)
{
	const uint8_t *p = from;
	int rc = 0;

	while (!rc && n) {
		uint64_t k = n;
		void *to = pen__ad_room(ad, a, &k, err);

		if (!to)
			return PEN_ENOMEM;
		memcpy(to, p, (size_t)k * a->row);
		p += k * a->row;
		n -= k;
		rc = pen__ad_added(ad, a, k, err);
	}
	return rc;
}

int pen__ad_put_text(struct pen_ad *ad, struct pen_ad_array *a, const char *s,
		     struct pen_err *err)
{
	const size_t n = strlen(s);

	if (n > INT32_MAX)
		return pen__fail(err, P_TOO_LONG, a->path,
				 "a string is longer than 2 GiB");
	if (!a->have) /* padded: always the full count */
		pen__buf_le(&a->part, a->chunk, 4);
	pen__buf_le(&a->part, n, 4);
	pen__buf_put(&a->part, s, n);
	return ++a->have == a->chunk ? pen__ad_flush(ad, a, err) : 0;
}
