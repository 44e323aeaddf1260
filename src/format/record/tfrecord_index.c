/*
 * Indexing of tfrecord files. There is no table of contents: records are walked
 * by their lengths, each protected by a crc. The engine also needs the size of
 * every sample in advance. Records of equal length are assumed to be alike if
 * the first and the last are (emit() verifies it); otherwise all are parsed,
 * which reads the entire object once, and the result is kept in the index.
 *
 * A damaged payload is an error of that sample, not of the object: it is
 * assumed to have the size of its neighbour, and emit() detects the damage. A
 * damaged length ends indexing, since the following records cannot be found.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "base/quote.h"
#include "codec/crc32c.h"
#include "format/record/tfrecord.h"
#include "format/value.h"
#include "format/window.h"

#define SMALL (64u << 10) /* smaller records are read many at a time */

struct column {
	char name[sizeof(((struct pen_field *)0)->name)];
	enum pen_feature_kind kind;
	uint32_t count; /* of all records so far, unless counts is set */
	uint32_t *counts;
};

struct scan {
	const struct pen_format *f;
	const struct pen_tfr *p;
	struct pen_found *found;
	struct pen_peek *pk;
	struct pen_window win;
	struct pen_err *err;
	uint64_t *off; /* n + 1 */
	uint64_t n, cap;
	uint64_t before; /* leading damaged records */
	bool uniform;
	struct column column[PEN_MAX_FIELDS];
	uint32_t ncolumns;
	uint32_t now[PEN_MAX_FIELDS]; /* counts of the current record */
	struct pen_near near; /* among the features of the first record */
};

static uint64_t len_of(const struct scan *s, uint64_t k)
{
	return s->off[k + 1] - s->off[k] - PEN_TFR_FRAME;
}

static int add_record(struct scan *s, uint64_t next)
{
	if (s->n + 2 > s->cap) {
		const uint64_t cap = s->cap ? s->cap * 2 : 64;
		void *p = pen__realloc(s->off, cap, sizeof(*s->off));

		if (!p)
			return pen__fail_nomem(s->err, s->pk->name, cap * 8);
		s->off = p;
		s->cap = cap;
	}
	if (!s->n)
		s->off[0] = 0;
	s->off[++s->n] = next;
	s->uniform = s->uniform && next - s->off[s->n - 1] == s->off[1];
	return 0;
}

static int cut_off(const struct scan *s)
{
	return pen__fail(s->err, P_TRUNCATED, s->pk->name,
			 "truncated: the file ends within record %" PRIu64
			 "; write the file again",
			 s->n);
}

static int walk(struct scan *s)
{
	const uint64_t size = s->pk->size;
	uint64_t at = 0, len;
	int rc = 0;

	s->uniform = true;
	while (at < size && !rc) {
		const bool small = s->n && at / s->n < SMALL;
		const uint8_t *p;
		struct pen_bytes b;

		if (size - at < PEN_TFR_FRAME)
			return cut_off(s);
		p = pen__window_get(&s->win, at, PEN_TFR_HEAD,
				    small ? PEN_PIECE : 0, s->err);
		if (!p)
			return s->err ? s->err->code : PEN_EIO;
		b = pen__bytes(p, PEN_TFR_HEAD);
		len = pen__take_u64(&b);
		if (pen__take_u32(&b) != pen__crc32c_mask(pen__crc32c(0, p, 8)))
			return pen__fail(
				s->err, s->n ? P_CHECKSUM : P_NOT_THIS_FORMAT,
				s->pk->name,
				"no TFRecord at byte %" PRIu64
				", found %s: the crc of its length differs%s",
				at, pen__quoted(p, PEN_TFR_HEAD).s,
				s->n ? ""
				     : "; compressed files are not supported");
		if (len > size - at - PEN_TFR_FRAME)
			return cut_off(s);
		at += PEN_TFR_FRAME + len;
		rc = add_record(s, at);
	}
	return rc;
}

/* The column of this name, created if necessary; NULL: see *rc. */
static struct column *column_of(struct scan *s, const struct pen_feature *f,
				uint64_t k, int *rc)
{
	struct column *c = s->column;

	for (uint32_t i = 0; i < s->ncolumns; i++, c++)
		if (strlen(c->name) == f->name_len &&
		    memcmp(c->name, f->name, f->name_len) == 0)
			return c;
	if (!f->name_len || f->name_len >= sizeof(c->name) ||
	    memchr(f->name, 0, f->name_len)) {
		*rc = pen__fail(s->err, P_UNSUPPORTED_FEATURE, s->pk->name,
				"a feature name of %zu bytes is not a valid "
				"field name; list other features with fields=",
				f->name_len);
		return NULL;
	}
	if (s->ncolumns == PEN_MAX_FIELDS) {
		*rc = pen__fail(s->err, P_OVER_LIMIT, s->pk->name,
				"the file has more than %d features; list the "
				"features to read with fields=",
				PEN_MAX_FIELDS);
		return NULL;
	}
	*c = (struct column){ .kind = f->kind };
	memcpy(c->name, f->name, f->name_len);
	if (k > s->before) { /* earlier records lack it */
		c->counts = pen__calloc(s->n, sizeof(*c->counts));
		if (!c->counts) {
			*rc = pen__fail_nomem(s->err, s->pk->name, s->n * 4);
			return NULL;
		}
	}
	s->ncolumns++;
	return c;
}

/* A value that cannot be decoded is reported later, with its sample. */
static int show_value(struct scan *s, const struct column *c,
		      const struct pen_feature *f, uint64_t k)
{
	struct pen_peek_bytes value;
	struct pen_span bytes;
	int rc;

	if (!s->f->see || !s->f->see(s->f, c->name, k, NULL, s->found, NULL) ||
	    pen__feature_bytes(f, &bytes))
		return 0;
	value = pen__peek_bytes(bytes, s->pk->name);
	rc = s->f->see(s->f, c->name, k, &value.pk, s->found, s->err);
	if (rc == PEN_ENOMEM)
		return rc;
	pen__err_reset(s->err);
	return 0;
}

static int take_feature(struct scan *s, const struct pen_feature *f, uint64_t k)
{
	struct column *c;
	uint64_t count;
	int rc;

	if (f->kind == PEN_FEATURE_NONE)
		return 0;
	if (s->p->fields &&
	    pen__in_list(s->p->fields, f->name, f->name_len) < 0) {
		if (!k)
			pen__near_see(&s->near, f->name, f->name_len);
		return 0;
	}
	rc = pen__feature_count(f, &count);
	if (rc == PEN_EDATA)
		return rc;
	c = column_of(s, f, k, &rc);
	if (!c)
		return rc;
	if (rc || count > UINT32_MAX)
		return pen__fail(
			s->err, rc ? P_UNSUPPORTED_TYPE : P_OVER_LIMIT,
			s->pk->name,
			"record %" PRIu64
			": feature '%s' %s; list other features with fields=",
			k, c->name,
			rc ? "is a list of several strings" : "is too large");
	if (c->kind != f->kind)
		return pen__fail(
			s->err, P_FILES_DISAGREE, s->pk->name,
			"record %" PRIu64
			": feature '%s' has a different type in earlier "
			"records; list other features with fields=",
			k, c->name);
	s->now[c - s->column] = (uint32_t)count;
	return show_value(s, c, f, k);
}

/* Whether it is an undamaged Example: 0, or PEN_EDATA without a message. */
static int check_record(const struct scan *s, const uint8_t *p, uint64_t len)
{
	struct pen_example e = pen__example(p, len);
	struct pen_bytes tail = pen__bytes(p + len, PEN_TFR_TAIL);
	struct pen_feature f;
	uint64_t count;
	int rc;

	if (s->p->crc &&
	    pen__take_u32(&tail) != pen__crc32c_mask(pen__crc32c(0, p, len)))
		return PEN_EDATA;
	while ((rc = pen__example_next(&e, &f)) == 1)
		if (f.kind && pen__feature_count(&f, &count) == PEN_EDATA)
			return PEN_EDATA;
	return rc;
}

/*
 * Stores the counts of record k in s->now. Returns 0, PEN_END without changes
 * if the record is damaged, or an error of the object.
 */
static int parse_record(struct scan *s, uint64_t k)
{
	const uint64_t len = len_of(s, k);
	const uint8_t *p;
	struct pen_example e;
	struct pen_feature f;
	int rc = 0;

	p = pen__window_get(&s->win, s->off[k] + PEN_TFR_HEAD,
			    (size_t)(len + PEN_TFR_TAIL),
			    len < SMALL ? PEN_PIECE : 0, s->err);
	if (!p)
		return s->err ? s->err->code : PEN_EIO;
	if (check_record(s, p, len))
		return PEN_END;
	memset(s->now, 0, sizeof(s->now));
	e = pen__example(p, len);
	while (!rc && pen__example_next(&e, &f) == 1)
		rc = take_feature(s, &f, k);
	return rc;
}

static void drop_columns(struct scan *s)
{
	for (uint32_t i = 0; i < s->ncolumns; i++)
		pen__free(s->column[i].counts);
	s->ncolumns = 0;
}

/* Whether the first and the last record are alike. 0: yes, PEN_END: no. */
static int compare_ends(struct scan *s)
{
	uint32_t first[PEN_MAX_FIELDS], n;
	int rc = parse_record(s, 0);

	if (rc)
		return rc;
	n = s->ncolumns;
	memcpy(first, s->now, sizeof(first));
	rc = parse_record(s, s->n - 1);
	if (rc)
		return rc;
	if (n != s->ncolumns || memcmp(first, s->now, sizeof(first)) != 0)
		return PEN_END;
	for (uint32_t i = 0; i < n; i++)
		s->column[i].count = first[i];
	return 0;
}

/* Records the counts of record k, which are in s->now. */
static int note_counts(struct scan *s, uint64_t k)
{
	for (uint32_t i = 0; i < s->ncolumns; i++) {
		struct column *c = &s->column[i];

		if (!c->counts && k == s->before)
			c->count = s->now[i];
		if (!c->counts && c->count == s->now[i])
			continue;
		if (!c->counts) {
			c->counts = pen__alloc(s->n, sizeof(*c->counts));
			if (!c->counts)
				return pen__fail_nomem(s->err, s->pk->name,
						       s->n * 4);
			for (uint64_t j = 0; j < k; j++)
				c->counts[j] = c->count;
		}
		c->counts[k] = s->now[i];
	}
	return 0;
}

/* Leading damaged records get the size of their successor. */
static int parse_all(struct scan *s)
{
	int rc = 0;

	for (uint64_t k = 0; k < s->n && rc >= 0; k++) {
		rc = parse_record(s, k);
		if (rc == PEN_END && k == s->before) {
			s->before++;
			continue;
		}
		if (rc >= 0)
			rc = note_counts(s, k);
	}
	if (rc >= 0 && s->before == s->n)
		return pen__fail(s->err, P_CANNOT_DECODE, s->pk->name,
				 "none of the %" PRIu64
				 " records is an undamaged tf.train.Example; "
				 "set format.decode=false to read raw bytes",
				 s->n);
	return rc < 0 ? rc : 0;
}

static int find_columns(struct scan *s)
{
	int rc = PEN_END;

	if (!s->n || !s->p->decode)
		return 0;
	if (s->p->fields)
		s->near = pen__near(s->p->fields, strcspn(s->p->fields, ","));
	if (s->uniform && s->p->scan == PEN_TFR_SCAN_AUTO && !s->f->see)
		rc = compare_ends(s);
	if (rc == PEN_END) {
		drop_columns(s);
		rc = parse_all(s);
	}
	if (!rc && !s->ncolumns)
		rc = pen__fail(
			s->err, P_NO_SUCH_PART, s->pk->name,
			"the file has none of the requested features%s%.100s%s",
			s->p->fields ? ": " : "",
			s->p->fields ? s->p->fields : "",
			pen__near_text(&s->near).s);
	return rc;
}

static void put_column(const struct scan *s, const struct column *c,
		       struct pen_buf *b)
{
	uint32_t most = 0;

	pen__buf_le(b, strlen(c->name), 1);
	pen__buf_str(b, c->name);
	pen__buf_le(b, c->kind, 1);
	pen__buf_le(b, c->counts != NULL, 1);
	for (uint64_t k = 0; c->counts && k < s->n; k++)
		if (c->counts[k] > most)
			most = c->counts[k];
	pen__buf_le(b, c->counts ? most : c->count, 4);
	for (uint64_t k = 0; c->counts && k < s->n; k++)
		pen__buf_le(b, c->counts[k], 4);
}

static void put_blob(const struct scan *s, struct pen_buf *b)
{
	pen__buf_le(b, s->n, 8);
	pen__buf_le(b, s->uniform, 1);
	if (s->uniform)
		pen__buf_le(b, s->n ? len_of(s, 0) : 0, 8);
	else
		for (uint64_t k = 0; k <= s->n; k++)
			pen__buf_le(b, s->off[k], 8);
	pen__buf_le(b, s->ncolumns, 1);
	for (uint32_t i = 0; i < s->ncolumns; i++)
		put_column(s, &s->column[i], b);
}

int pen__tfr_index(const struct pen_format *f, struct pen_peek *pk,
		   struct pen_found *found, struct pen_err *err)
{
	struct pen_err own = { 0 };
	struct scan s = { .f = f,
			  .p = f->priv,
			  .found = found,
			  .pk = pk,
			  .win.pk = pk,
			  .err = err ? err : &own };
	int rc = walk(&s);

	if (!rc)
		rc = find_columns(&s);
	if (!rc) {
		found->nsamples = s.n;
		put_blob(&s, &found->blob);
		if (found->blob.bad)
			rc = pen__fail_nomem(s.err, pk->name, found->blob.n);
	}
	drop_columns(&s);
	pen__window_fini(&s.win);
	pen__free(s.off);
	return rc;
}
