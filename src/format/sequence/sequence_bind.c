/*
 * A data set of sequences: settings, fields, and what is known about it without
 * reading.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/show.h"
#include "format/array.h"
#include "format/sequence/sequence.h"
#include "format/value.h"

#define RUN_BYTES (256u << 10)
#define LONG_SAMPLE (32u << 10) /* larger samples are fetched one by one */
#define SMALL_SAMPLE 4096u
#define MOST_UNITS 64u
#define SLACK 64u

const char *const pen__seq_rcs[] = { "none", "always", "random", NULL };
const char *const pen__seq_complements[] = { "auto", "dna", "rna", NULL };
const char *const pen__seq_lasts[] = { "keep", "drop", "back", NULL };
const char *const pen__seq_packs[] = { "none", "bgzip", NULL };

static const char *const names[] = { "id", "label", "quality", "length", NULL };

/* ---- settings ---- */

/* The tokeniser's fields are always delivered. */
static bool is_token_field(const struct pen_seqs *p, const char *s, size_t n)
{
	struct pen_field f;

	for (uint32_t i = 0; i < pen__tokens_nfields(p->tokens); i++)
		if (!pen__tokens_field(p->tokens, i, 0, 0, &f, NULL) &&
		    strlen(f.name) == n && !memcmp(f.name, s, n))
			return true;
	return false;
}

static int take_field(struct pen_seqs *p, const char *s, size_t n,
		      struct pen_err *err)
{
	const int i =
		n < 16 ? pen__in_list("id,label,quality,length,all,seq", s, n)
		       : -1;

	if (is_token_field(p, s, n))
		return 0;
	if (i < 0 || (i == PEN_SEQ_F_QUALITY && !p->ops->quality) ||
	    (i == PEN_SEQ_F_LABEL && !p->ops->lines && !p->bed_path))
		return pen__fail(
			err, P_NO_SUCH_FIELD, "fields",
			"no field '%.*s'; choose from id, length%s and all",
			n < 32 ? (int)n : 32, s,
			p->ops->quality ? ", quality"
			: p->ops->lines ? ", label"
					: "");
	for (int k = 0; k < PEN_SEQ_NFIELDS; k++)
		p->want[k] |= k == i || (i == 4 && k != PEN_SEQ_F_LABEL);
	p->want[PEN_SEQ_F_QUALITY] &= p->ops->quality;
	return 0;
}

static int take_fields(struct pen_seqs *p, struct pen_err *err)
{
	const char *s = p->fields;
	int rc = 0;

	while (!rc && s && *s) {
		const size_t n = strcspn(s, ",");

		rc = take_field(p, s, n, err);
		s += n + (s[n] == ',');
	}
	return rc;
}

int pen__seq_open(struct pen_format *f, const struct pen_seq_ops *ops,
		  struct pen_err *err)
{
	struct pen_seqs *p = f->priv;
	int rc;

	p->ops = ops;
	if (p->bed_path && p->window)
		return pen__fail(err, P_CONFLICT, "bed",
				 "cannot be combined with format.window=; set "
				 "only one of them");
	if (p->step && !p->window)
		return pen__fail(err, P_MISSING_SETTING, "step",
				 "has no effect without windows; set "
				 "format.window= as well");
	if (p->shift && !p->window && !p->bed_path)
		return pen__fail(err, P_MISSING_SETTING, "shift",
				 "entire records cannot be shifted; set "
				 "format.window= or format.bed=");
	p->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!p->c)
		return pen__fail_nomem(err, "sequences", 0);
	rc = pen__tokens_open(&p->tokens, &p->token, err);
	if (!rc)
		rc = take_fields(p, err);
	if (!rc && p->want[PEN_SEQ_F_LABEL] && !p->bed_path &&
	    (p->column == PEN_SEQ_COLUMN_ID ||
	     p->column == PEN_SEQ_COLUMN_NONE))
		rc = pen__fail(err, P_CONFLICT, "fields",
			       "label is requested, but format.column= is id "
			       "or none; remove one of the two");
	if (!rc && p->bed_path)
		rc = pen__seq_bed_read(&p->bed, p->bed_path, err);
	return rc;
}

void pen__seq_close(struct pen_format *f)
{
	struct pen_seqs *p = f->priv;

	pen__free(p->part);
	p->part = NULL;
	pen__seq_bed_fini(&p->bed);
	pen__tokens_close(p->tokens);
	p->tokens = NULL;
	if (p->c)
		freelocale(p->c);
	p->c = (locale_t)0;
}

/* ---- bind ---- */

static void widen(struct pen_seq_part *t, uint64_t n)
{
	t->shortest = n < t->shortest ? n : t->shortest;
	t->longest = n > t->longest ? n : t->longest;
}

/* Finds the numbers of letters of the shortest and the longest sample. */
static void measure(const struct pen_seqs *p, struct pen_seq_part *t)
{
	const struct pen_column *letters = &t->col[PEN_SEQ_LETTERS];

	t->shortest = UINT64_MAX;
	for (uint64_t k = 0; p->bed_path && k < t->nsamples; k++) {
		const struct pen_seq_where w = pen__seq_where(p, t, k);

		widen(t, w.to - w.from);
	}
	for (uint64_t r = 0; !p->bed_path && r < t->nrecords; r++) {
		const uint64_t n = pen__column_at(letters, r);

		if (!p->window) {
			widen(t, n);
			continue;
		}
		if (n >= p->window)
			widen(t, p->window);
		if (p->last == PEN_SEQ_LAST_KEEP && n) {
			const uint64_t k =
				pen__column_at(&t->col[PEN_SEQ_WINDOWS], r + 1);
			const struct pen_seq_where w =
				pen__seq_where(p, t, k - 1);

			widen(t, w.to - w.from);
		}
	}
}

/* Upper bound on the bytes of text that one sample takes. */
static uint64_t longest_range(const struct pen_seqs *p,
			      const struct pen_seq_part *t)
{
	uint64_t most = 0;

	for (uint64_t k = 0; p->bed_path && k < t->nsamples; k++) {
		const struct pen_seq_range r = pen__seq_range(p, t, k);

		most = r.to - r.from > most ? r.to - r.from : most;
	}
	for (uint64_t r = 0; !p->bed_path && r < t->nrecords; r++) {
		const struct pen_column *start = &t->col[PEN_SEQ_START];
		const uint64_t l = pen__column_at(&t->col[PEN_SEQ_LAYOUT], r);
		const struct pen_seq_layout y = t->layout[l];
		uint64_t n = pen__column_at(start, r + 1) -
			     pen__column_at(start, r),
			 of = p->window + 2 * p->shift;

		if (p->window && y.bases && !p->ops->quality) {
			of = y.bases == UINT64_MAX
				     ? of
				     : (of / y.bases + 2) * y.width;
			n = of < n ? of : n;
		}
		most = n > most ? n : most;
	}
	return most;
}

/* Largest number of blocks that a range of this size can touch. */
static uint64_t blocks_of(const struct pen_seq_part *t, uint64_t range)
{
	const struct pen_column *c = &t->col[PEN_SEQ_BLOCK];
	uint64_t most = 1;

	for (uint64_t i = 0, j = 0; range && i + 1 < c->n; i++) {
		const uint64_t last = pen__column_at(c, i + 1) - 1;

		while (j + 1 < c->n && pen__column_at(c, j) < last + range)
			j++;
		most = j - i + 1 > most ? j - i + 1 : most;
	}
	return most;
}

static int bind_part(struct pen_seqs *p, struct pen_seq_part *t,
		     struct pen_span blob)
{
	uint64_t hash, mean;

	if (!blob.n) /* skipped by on_error=skip */
		return 0;
	if (!pen__seq_part_take(blob, t, &hash) || hash != p->bed.hash)
		return PEN_EDATA;
	t->layout[0] = (struct pen_seq_layout){ UINT64_MAX, UINT64_MAX };
	t->group = 1;
	measure(p, t);
	mean = t->nsamples ? t->text / t->nsamples + 1 : 1;
	t->run = mean < LONG_SAMPLE && !p->bed_path ? RUN_BYTES / mean : 1;
	for (uint64_t r = 0; p->want[PEN_SEQ_F_ID] && r < t->nrecords; r++) {
		const uint64_t n = pen__column_at(&t->col[PEN_SEQ_ID], r);

		t->longest_id = n > t->longest_id ? n : t->longest_id;
	}
	return 0;
}

/* Sets the units per sample; blocks are grouped to keep them few. */
static void bind_blocks(struct pen_format *f, struct pen_seq_part *t)
{
	struct pen_seqs *p = f->priv;
	uint64_t n;

	if (t->kind == PEN_SEQ_PLAIN || !t->nsamples)
		return;
	f->shares = true;
	if (t->kind == PEN_SEQ_GZIP)
		return;
	t->longest_range = longest_range(p, t);
	if (t->longest_range > p->longest_read)
		p->longest_read = t->longest_range;
	n = blocks_of(t, t->longest_range);
	while ((n - 1) / t->group + 2 > MOST_UNITS)
		t->group *= 2;
	n = (n - 1) / t->group + 2;
	if (n > f->units_per_sample)
		f->units_per_sample = (uint32_t)n;
}

static int missing_interval(struct pen_format *f, const struct pen_index *ix,
			    struct pen_err *err)
{
	const struct pen_seqs *p = f->priv;
	uint8_t *seen = pen__calloc(p->bed.n, 1);
	uint64_t twice = UINT64_MAX, none = 0;

	if (!seen)
		return pen__fail_nomem(err, p->bed_path, p->bed.n);
	for (uint64_t o = 0; o < ix->nobjects; o++) {
		const struct pen_column *c =
			&p->part[ix->blob_of(ix, o)].col[PEN_SEQ_INTERVAL];

		for (uint64_t k = 0; k < c->n; k++) {
			const uint64_t i = pen__column_at(c, k);

			if (i < p->bed.n && seen[i])
				twice = i;
			if (i < p->bed.n)
				seen[i] = 1;
		}
	}
	while (none < p->bed.n && seen[none])
		none++;
	pen__free(seen);
	none = none < p->bed.n ? none : twice;
	if (none == UINT64_MAX)
		return 0;
	return pen__fail(
		err, P_FILES_DISAGREE, p->bed_path,
		"line %u: the sequence '%.*s' is %s", p->bed.v[none].line,
		p->bed.v[none].name_len < 80 ? (int)p->bed.v[none].name_len
					     : 80,
		(const char *)p->bed.file.p + p->bed.v[none].name,
		none == twice ? "in two files"
			      : "not in any file; check its name, for example "
				"chr1 or 1");
}

static void add_field(struct pen_format *f, int what, enum pen_dtype dtype,
		      int64_t shape, uint64_t most)
{
	struct pen_seqs *p = f->priv;
	struct pen_field *d = &f->field[f->nfields];

	*d = (struct pen_field){ .dtype = dtype,
				 .ndim = dtype == PEN_U8,
				 .shape = { shape },
				 .max_bytes = most };
	snprintf(d->name, sizeof(d->name), "%s", names[what]);
	p->place[what] = (int)f->nfields++;
}

/* Names the first line whose label is not a number. */
static int no_label(const struct pen_seqs *p, const struct pen_index *ix,
		    struct pen_err *err)
{
	char name[256] = "label";
	const struct pen_seq_odd *o = NULL;

	if (p->bed_path)
		return pen__fail(err, P_BAD_TEXT, p->bed_path,
				 "column 4 is not a number on every line, so "
				 "it cannot be the label");
	for (uint64_t i = 0; !o && i < ix->nblobs; i++) {
		if (!p->part[i].nsamples || !p->part[i].odd.line)
			continue;
		o = &p->part[i].odd;
		pen__blob_name(ix, i, name, sizeof(name));
	}
	if (!o)
		return pen__fail(err, P_BAD_TEXT, name,
				 "column 2 is not a number on every line, so "
				 "it cannot be the label");
	return pen__fail(err, P_BAD_TEXT, name,
			 "line %" PRIu64
			 ", column 2: %s%.*s%s is not a number; set "
			 "format.column=id to read text, or format.header=true "
			 "to skip a line of column names",
			 o->line, o->n ? "'" : "an empty value", (int)o->n,
			 (const char *)o->text, o->n ? "'" : "");
}

/* Labels are delivered if all objects have them. */
static int bind_label(struct pen_format *f, const struct pen_index *ix,
		      struct pen_err *err)
{
	const struct pen_seqs *p = f->priv;
	bool all = p->ops->lines, floats = false;

	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_seq_part *t = &p->part[i];

		if (!t->nsamples)
			continue;
		all = all && t->labels &&
		      t->col[PEN_SEQ_LABEL].n == t->nrecords;
		floats |= t->floats;
	}
	if (p->bed_path) {
		all = p->bed.labels;
		floats = !p->bed.whole;
	}
	if (!all &&
	    (p->column == PEN_SEQ_COLUMN_LABEL || p->want[PEN_SEQ_F_LABEL]))
		return no_label(p, ix, err);
	if (all && p->column != PEN_SEQ_COLUMN_ID &&
	    p->column != PEN_SEQ_COLUMN_NONE)
		add_field(f, PEN_SEQ_F_LABEL, floats ? PEN_F64 : PEN_I64, 0, 8);
	return 0;
}

static int bind_fields(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	struct pen_seqs *p = f->priv;
	uint64_t shortest = UINT64_MAX, id = 0;
	int rc = 0;

	p->longest = 0;
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_seq_part *t = &p->part[i];

		if (!t->nsamples)
			continue;
		shortest = t->shortest < shortest ? t->shortest : shortest;
		p->longest = t->longest > p->longest ? t->longest : p->longest;
		id = t->longest_id > id ? t->longest_id : id;
	}
	f->nfields = p->ntokens = pen__tokens_nfields(p->tokens);
	for (uint32_t i = 0; !rc && i < f->nfields; i++) {
		pen__tokens_pad(p->tokens, i, &f->pad[i].value,
				&f->pad[i].before);
		rc = pen__tokens_field(p->tokens, i, shortest, p->longest,
				       &f->field[i], err);
	}
	for (unsigned i = 0; i < PEN_SEQ_NFIELDS; i++)
		p->place[i] = -1;
	if (rc)
		return rc;
	if (p->want[PEN_SEQ_F_ID] && p->column != PEN_SEQ_COLUMN_NONE)
		add_field(f, PEN_SEQ_F_ID, PEN_U8, -1, id);
	rc = bind_label(f, ix, err);
	if (p->want[PEN_SEQ_F_QUALITY])
		add_field(f, PEN_SEQ_F_QUALITY, PEN_U8,
			  shortest == p->longest ? (int64_t)shortest : -1,
			  p->longest);
	if (p->want[PEN_SEQ_F_LENGTH])
		add_field(f, PEN_SEQ_F_LENGTH, PEN_I64, 0, 8);
	return rc;
}

/* True if rows can be read straight into the batch: letters as they are, each
 * sequence on one line. Short sequences are better fetched many at a time. */
static bool is_plain(const struct pen_format *f, const struct pen_index *ix)
{
	const struct pen_seqs *p = f->priv;

	if (f->nfields != 1 || !pen__tokens_plain(p->tokens) || p->rc ||
	    p->shift || p->bed_path)
		return false;
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_seq_part *t = &p->part[i];
		const struct pen_column *l = &t->col[PEN_SEQ_LAYOUT];

		if (!t->nsamples)
			continue;
		if (t->kind != PEN_SEQ_PLAIN || t->unproven || l->width ||
		    l->base || (l->step && l->n > 1) ||
		    t->text / t->nsamples < SMALL_SAMPLE)
			return false;
	}
	return true;
}

int pen__seq_bind(struct pen_format *f, const struct pen_index *ix,
		  struct pen_err *err)
{
	struct pen_seqs *p = f->priv;
	char name[256];
	int rc = 0;

	pen__free(p->part);
	f->ix = ix;
	f->units_per_sample = 1;
	f->uniform = f->shares = false;
	p->longest_read = 0;
	p->part = pen__calloc((size_t)ix->nblobs, sizeof(*p->part));
	if (!p->part)
		return pen__fail_nomem(err, "sequences", ix->nblobs);
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		rc = bind_part(p, &p->part[i], ix->blob(ix, i));
		if (!rc)
			continue;
		pen__blob_name(ix, i, name, sizeof(name));
		return pen__fail(err, P_BAD_INDEX, name,
				 "the index entry is damaged");
	}
	if (p->bed_path) /* a duplicate could hide a missing one */
		rc = missing_interval(f, ix, err);
	if (!rc && !ix->nsamples)
		rc = pen__fail(err, P_NO_SAMPLES, "sequences",
			       "the data has no samples");
	if (!rc)
		rc = bind_fields(f, ix, err);
	for (uint64_t i = 0; !rc && i < ix->nblobs; i++)
		bind_blocks(f, &p->part[i]);
	f->all_plain = !rc && is_plain(f, ix);
	f->decodes = !pen__tokens_plain(p->tokens);
	p->longest_read = (p->longest_read + 63) & ~(uint64_t)63;
	p->turns = p->rc || p->bed_path;
	p->room = ((p->longest + 63) & ~(uint64_t)63) + SLACK;
	f->scratch_size = 0;
	if (!rc && !f->all_plain)
		f->scratch_size = p->longest_read +
				  (p->turns ? 2 : 1) * p->room +
				  pen__tokens_scratch(p->tokens, p->longest);
	return rc;
}

/* ---- known without reading ---- */

void pen__seq_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		    uint32_t field, int64_t *shape)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_seq_part *t = &p->part[f->ix->blob_of(f->ix, object)];
	const struct pen_seq_where w = pen__seq_where(p, t, k);

	if ((int)field == p->place[PEN_SEQ_F_ID])
		shape[0] =
			(int64_t)pen__column_at(&t->col[PEN_SEQ_ID], w.record);
	else if ((int)field == p->place[PEN_SEQ_F_QUALITY])
		shape[0] = (int64_t)(w.to - w.from);
	else if (field < pen__tokens_nfields(p->tokens))
		pen__tokens_shape(p->tokens, field, w.to - w.from, shape);
}

static double label_of(const struct pen_seqs *p, const struct pen_seq_part *t,
		       const struct pen_seq_where *w)
{
	uint64_t bits;
	double v;

	if (p->bed_path)
		return p->bed.v[w->interval].label;
	bits = pen__column_at(&t->col[PEN_SEQ_LABEL], w->record);
	if (!t->floats)
		return (double)(int64_t)(bits ^ PEN_SEQ_SIGN);
	memcpy(&v, &bits, 8);
	return v;
}

bool pen__seq_value(const struct pen_format *f, uint32_t object, uint64_t k,
		    uint32_t field, double *out)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_seq_part *t = &p->part[f->ix->blob_of(f->ix, object)];
	const struct pen_seq_where w = pen__seq_where(p, t, k);

	if ((int)field == p->place[PEN_SEQ_F_LENGTH])
		*out = (double)(w.to - w.from);
	else if ((int)field == p->place[PEN_SEQ_F_LABEL])
		*out = label_of(p, t, &w);
	else
		return false;
	return true;
}

uint64_t pen__seq_nlabels(const struct pen_format *f, uint32_t field)
{
	const struct pen_seqs *p = f->priv;

	return field < pen__tokens_nfields(p->tokens)
		       ? pen__tokens_nwords(p->tokens)
		       : 0;
}

int pen__seq_label(const struct pen_format *f, uint32_t field, uint64_t code,
		   char *buf, size_t cap)
{
	const struct pen_seqs *p = f->priv;

	return field < pen__tokens_nfields(p->tokens)
		       ? pen__tokens_word(p->tokens, code, buf, cap)
		       : PEN_ENOTFOUND;
}

/* ---- warnings ---- */

typedef void see_fn(void *arg, const struct pen_err *);

/* Every bgzip file ends with an empty block; without it, the file was probably
 * truncated between two blocks. */
static bool is_ended(const struct pen_seq_part *t)
{
	const struct pen_column *c = &t->col[PEN_SEQ_BLOCK];

	return t->kind != PEN_SEQ_BGZF || c->n < 2 ||
	       pen__column_at(c, c->n - 1) == pen__column_at(c, c->n - 2);
}

/* Number of records that yield no samples. */
static uint64_t count_omitted(const struct pen_seqs *p,
			      const struct pen_seq_part *t)
{
	const struct pen_column *c = &t->col[PEN_SEQ_WINDOWS];
	uint64_t n = 0;

	for (uint64_t r = 0; p->window && r + 1 < c->n; r++)
		n += pen__column_at(c, r) == pen__column_at(c, r + 1);
	return n;
}

/* One warning for all objects; n: records omitted, records in total, objects
 * affected. */
static void warn_omitted(const struct pen_format *f, uint64_t first,
			 const uint64_t n[3], void *arg, see_fn *see)
{
	const struct pen_seqs *p = f->priv;
	char name[200], where[256], why[96] = "are empty";
	struct pen_err e;

	f->ix->name_of(f->ix, first, name, sizeof(name));
	snprintf(where, sizeof(where), "%s", name);
	if (n[2] > 1)
		snprintf(where, sizeof(where), "%s and %s", name,
			 pen__show_counted(n[2] - 1, "other file").s);
	if (p->last != PEN_SEQ_LAST_KEEP)
		snprintf(why, sizeof(why),
			 "are shorter than format.window=%" PRIu64
			 " (format.last=%s)",
			 p->window, pen__seq_lasts[p->last]);
	pen__fail(&e, PEN_OK, where, "%s of %s %s and yield no samples",
		  pen__show_grouped(n[0]).s,
		  pen__show_counted(n[1], "record").s, why);
	see(arg, &e);
}

void pen__seq_warn(const struct pen_format *f, void *arg, see_fn *see)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_index *ix = f->ix;
	uint64_t n[3] = { 0 }, first = 0; /* omitted, total, objects */
	struct pen_err e;
	char name[256];

	for (uint64_t o = 0; o < ix->nobjects; o++) {
		const struct pen_seq_part *t = &p->part[ix->blob_of(ix, o)];
		const uint64_t of = ix->per_object
					    ? ix->per_object
					    : ix->first[o + 1] - ix->first[o];
		const uint64_t out = count_omitted(p, t);

		if (t->nsamples != of) /* could not be indexed */
			continue;
		first = out && !n[0] ? o : first;
		n[0] += out;
		n[1] += t->nrecords;
		n[2] += out > 0;
		if (is_ended(t))
			continue;
		ix->name_of(ix, o, name, sizeof(name));
		pen__fail(&e, P_TRUNCATED, name,
			  "the bgzip end-of-file block is missing; the file is "
			  "truncated or still being written");
		see(arg, &e);
	}
	if (n[0])
		warn_omitted(f, first, n, arg, see);
}

/* Advice on a line without a number among lines with one, if format.column= is
 * not set. */
static void describe_odd(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_seqs *p = f->priv;
	const struct pen_seq_odd *odd = NULL;
	bool others = false;
	uint64_t of = 0;
	char name[160], text[512];

	for (uint64_t o = 0; o < f->ix->nobjects; o++) {
		const struct pen_seq_part *t =
			&p->part[f->ix->blob_of(f->ix, o)];

		others |= t->odd.others;
		if (!odd && t->odd.line) {
			odd = &t->odd;
			of = o;
		}
	}
	if (!odd || !others || p->bed_path)
		return;
	f->ix->name_of(f->ix, of, name, sizeof(name));
	snprintf(text, sizeof(text),
		 "line %" PRIu64
		 " of %s has %s%.*s%s in column 2, where other lines have a "
		 "number, so column 2 is read as an id, not as a label; if "
		 "that line is a header, set format.header=true",
		 odd->line, name, odd->n ? "'" : "nothing", (int)odd->n,
		 (const char *)odd->text, odd->n ? "'" : "");
	d->advice(d->arg, text);
}

void pen__seq_describe(const struct pen_format *f, struct pen_describe *d)
{
	static const char *const kinds[] = { "none", "gzip", "bgzip" };
	const struct pen_seqs *p = f->priv;
	uint64_t records = 0, letters = 0;
	unsigned kind = 0;
	char text[64];

	for (uint64_t o = 0; o < f->ix->nobjects; o++) {
		const struct pen_seq_part *t =
			&p->part[f->ix->blob_of(f->ix, o)];

		records += t->nrecords;
		kind = t->kind > kind ? t->kind : kind;
		for (uint64_t r = 0; r < t->nrecords; r++)
			letters += pen__column_at(&t->col[PEN_SEQ_LETTERS], r);
	}
	snprintf(text, sizeof(text), "%" PRIu64, records);
	d->fact(d->arg, "records", text);
	snprintf(text, sizeof(text), "%" PRIu64, letters);
	d->fact(d->arg, "letters", text);
	d->fact(d->arg, "compression", kinds[kind]);
	pen__tokens_describe(p->tokens, d->arg, d->fact);
	if (kind == PEN_SEQ_GZIP)
		d->advice(d->arg,
			  "a gzip file is decompressed as a whole; with bgzip, "
			  "all threads decompress only the blocks they need");
	if (kind == PEN_SEQ_BGZF)
		d->advice(d->arg,
			  "every read decompresses an entire bgzip block (64 "
			  "KiB); sampler=block or an uncompressed file costs "
			  "less than a full shuffle");
	if (!p->window && !p->bed_path && records &&
	    letters / records > 1000000)
		d->advice(d->arg, "records are long; format.window=1024 cuts "
				  "them into samples");
	describe_odd(f, d);
}
