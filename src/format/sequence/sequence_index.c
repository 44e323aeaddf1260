/*
 * Indexing: the text is scanned once, the format finds the records, and here
 * they are counted, cut into samples and stored in columns. Lines of equal
 * length, as in nearly all files, need only the number of their layout. For
 * others, the offset of every 4096th letter is stored.
 *
 * Refuses bytes that are not text, naming the line.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quote.h"
#include "format/sequence/sequence.h"

#define VERSION 3u

/* True inside a record. */
static bool in_record(const struct pen_seq_scan *s)
{
	return s->col[PEN_SEQ_START].n >
	       s->col[s->p->ops->quality ? PEN_SEQ_QLAYOUT : PEN_SEQ_LETTERS].n;
}

struct pen_seq_name pen__seq_record(const struct pen_seq_scan *s)
{
	const size_t n = s->id < sizeof(s->text64) ? (size_t)s->id
						   : sizeof(s->text64);
	struct pen_seq_name r;

	snprintf(r.s, sizeof(r.s), "record %" PRIu64 " (%s)",
		 s->col[PEN_SEQ_START].n, pen__quoted(s->text64, n).s);
	return r;
}

int pen__seq_fail(struct pen_seq_scan *s, int kind, const char *fmt, ...)
{
	char what[200], record[160] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (in_record(s))
		snprintf(record, sizeof(record), ", in %s",
			 pen__seq_record(s).s);
	return pen__fail(s->err, kind, s->pk->name, "line %" PRIu64 ": %s%s",
			 s->line, what, record);
}

int pen__seq_nomem(struct pen_seq_scan *s)
{
	return pen__fail_nomem(s->err, s->pk->name, s->col[0].n * 8);
}

int pen__seq_put(struct pen_seq_scan *s, enum pen_seq_column c, uint64_t v)
{
	return pen__list_add(&s->col[c], v) ? 0 : pen__seq_nomem(s);
}

/* ---- lines of letters ---- */

void pen__seq_lines_begin(struct pen_seq_lines *l, uint64_t at)
{
	*l = (struct pen_seq_lines){ .first = at, .line = at };
}

int pen__seq_record_begin(struct pen_seq_scan *s)
{
	int rc = 0;

	s->start = s->at++;
	s->id = s->word = 0;
	s->id_at = 1;
	if (s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->names.n);
	return rc ? rc : pen__seq_put(s, PEN_SEQ_START, s->start);
}

int pen__seq_record_put(struct pen_seq_scan *s,
			const uint64_t v[PEN_SEQ_ID_AT + 1])
{
	int rc = 0;

	for (unsigned i = 0; !rc && i <= PEN_SEQ_ID_AT; i++)
		rc = pen__seq_put(s, i, v[i]);
	return rc;
}

int pen__seq_heading_end(struct pen_seq_scan *s)
{
	int rc = pen__seq_put(s, PEN_SEQ_ID, s->id);

	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_ID_AT, s->id ? s->id_at : 1);
	pen__seq_lines_begin(&s->letters, s->at);
	s->cr = false;
	return rc;
}

/* Marks are kept for letters only, not for quality values. */
static bool is_marked(const struct pen_seq_scan *s,
		      const struct pen_seq_lines *l)
{
	return !s->p->ops->quality && l == &s->letters;
}

static int add_marks(struct pen_seq_scan *s, const struct pen_seq_lines *l,
		     uint64_t to)
{
	const struct pen_list *first = &s->col[PEN_SEQ_ODD_FIRST];
	const uint64_t had = s->col[PEN_SEQ_MARK].n - first->v[first->n - 1];
	int rc = 0;

	for (uint64_t j = had * PEN_SEQ_MARK_EVERY; !rc && j < to;
	     j += PEN_SEQ_MARK_EVERY)
		rc = pen__seq_put(s, PEN_SEQ_MARK,
				  j >= l->n
					  ? l->line + (j - l->n)
					  : l->first + j / l->bases * l->width +
						    j % l->bases);
	return rc;
}

/* From here on, letters are found by marks; adds those for the letters so
 * far. */
static int turn_irregular(struct pen_seq_scan *s, struct pen_seq_lines *l)
{
	int rc;

	if (l->irregular)
		return 0;
	l->irregular = true;
	if (!is_marked(s, l))
		return 0;
	rc = pen__seq_put(s, PEN_SEQ_ODD, s->col[PEN_SEQ_LETTERS].n);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_ODD_FIRST, s->col[PEN_SEQ_MARK].n);
	return rc ? rc : add_marks(s, l, l->n + l->now);
}

/* Takes `run` letters at the current byte. */
static int take_letters(struct pen_seq_scan *s, struct pen_seq_lines *l,
			uint64_t run)
{
	const uint64_t n = l->n + l->now;
	uint64_t next;
	int rc = 0;

	if (!run)
		return 0;
	if (l->blank)
		return pen__seq_fail(
			s, P_BAD_TEXT, "%s before %s %" PRIu64 " of the %s",
			l->blank == '\r' ? "carriage return" : "blank",
			l == &s->quality ? "quality value" : "letter", n + 1,
			l == &s->quality ? "quality line" : "sequence");
	if (!n)
		l->first = l->line = s->at;
	if (l->closed)
		rc = turn_irregular(s, l);
	if (!rc && l->irregular && is_marked(s, l)) {
		next = (n + PEN_SEQ_MARK_EVERY - 1) / PEN_SEQ_MARK_EVERY *
		       PEN_SEQ_MARK_EVERY;
		for (; !rc && next < n + run; next += PEN_SEQ_MARK_EVERY)
			rc = pen__seq_put(s, PEN_SEQ_MARK, s->at + next - n);
	}
	l->now += run;
	return rc;
}

/* Ends a line, at its '\n' or at the end of the text. */
static int end_line(struct pen_seq_scan *s, struct pen_seq_lines *l)
{
	const uint64_t width = s->at + 1 - l->line, now = l->now;
	int rc = 0;

	if (l->irregular || !(l->n + now)) {
		/* nothing to compare */
	} else if (!l->bases) {
		l->bases = now;
		l->width = width;
	} else if (now > l->bases) {
		rc = turn_irregular(s, l);
	} else if (now < l->bases || width != l->width) {
		l->closed = true;
	}
	l->n += now;
	l->now = 0;
	l->blank = 0;
	l->line = s->at + 1;
	return rc;
}

static int odd_byte(struct pen_seq_scan *s, struct pen_seq_lines *l, uint8_t c)
{
	if (c == ' ' || c == '\t' || c == '\r') {
		/* each quality value belongs to a letter: no blanks between */
		l->blank = s->p->ops->quality ? c : 0;
		return l->n + l->now ? turn_irregular(s, l) : 0;
	}
	if (!c)
		return pen__seq_fail(s, P_BAD_TEXT,
				     "NUL byte: this is not a text file");
	return pen__seq_fail(s, P_BAD_TEXT,
			     "byte 0x%02x where a letter is expected", c);
}

int pen__seq_lines_take(struct pen_seq_scan *s, struct pen_seq_lines *l,
			struct pen_span in, size_t *used, bool *ended)
{
	const uint8_t *p = in.p, *e = in.p + in.n;
	int rc = 0;

	*ended = false;
	while (!rc && p < e && !*ended) {
		const size_t run = pen__seq_odd(p, (size_t)(e - p));

		/* the CR was not part of a line end */
		if (s->cr && (run || *p != '\n'))
			rc = odd_byte(s, l, '\r');
		if (!rc)
			rc = take_letters(s, l, run);
		s->cr = false;
		p += run;
		s->at += run;
		if (rc || p == e)
			break;
		if (*p == '\n') {
			rc = end_line(s, l);
			s->line++;
			*ended = true;
		} else if (*p == '\r') {
			s->cr = true;
		} else {
			rc = odd_byte(s, l, *p);
		}
		p++;
		s->at++;
	}
	*used = (size_t)(p - in.p);
	return rc;
}

unsigned pen__seq_layout(struct pen_seq_scan *s, struct pen_seq_layout l)
{
	unsigned i = 1;

	s->nlayouts += !s->nlayouts;
	while (i < s->nlayouts &&
	       (s->layout[i].bases != l.bases || s->layout[i].width != l.width))
		i++;
	if (i == s->nlayouts && i < PEN_SEQ_IRREGULAR)
		s->layout[s->nlayouts++] = l;
	return i;
}

int pen__seq_lines_end(struct pen_seq_scan *s, struct pen_seq_lines *l,
		       uint64_t *layout)
{
	int rc = 0;

	if (l->now) /* no line end at the end of the text */
		rc = end_line(s, l);
	s->cr = false;
	if (l->irregular)
		*layout = PEN_SEQ_IRREGULAR;
	else
		*layout = l->n <= l->bases
				  ? 0
				  : pen__seq_layout(
					    s, (struct pen_seq_layout){
						       l->bases, l->width });
	if (!rc && !l->irregular && *layout == PEN_SEQ_IRREGULAR)
		rc = turn_irregular(s, l); /* too many different layouts */
	return rc;
}

int pen__seq_letters_end(struct pen_seq_scan *s)
{
	uint64_t layout;
	int rc = pen__seq_lines_end(s, &s->letters, &layout);

	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_HEAD, s->letters.first - s->start);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_LETTERS, s->letters.n);
	return rc ? rc : pen__seq_put(s, PEN_SEQ_LAYOUT, layout);
}

bool pen__seq_one_line(struct pen_seq_scan *s, const uint8_t *p, size_t n)
{
	const uint8_t *cr = n ? memchr(p, '\r', n) : NULL;
	size_t i = cr ? (size_t)(cr - p) : n;

	if (s->cr)
		i = 0;
	s->cr = s->cr || cr;
	while (i < n && p[i] == '\r')
		i++;
	return i == n;
}

/* Finds the first word, after any blanks, and keeps it if names are needed. */
static int take_id(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t *p = in.p, *e = in.p + in.n;

	if (in.n && memchr(p, 0, in.n))
		return pen__seq_fail(s, P_BAD_TEXT,
				     "NUL byte: this is not a text file");
	if (!pen__seq_one_line(s, p, in.n))
		return pen__seq_fail(s, P_BAD_TEXT,
				     "carriage return inside the header line; "
				     "end lines with LF or CRLF");
	for (; p < e && !s->word; p++) {
		s->word = *p != ' ' && *p != '\t' && *p != '\r';
		s->id_at += !s->word;
		p -= s->word;
	}
	for (; p < e && s->word == 1; p++) {
		if (*p == ' ' || *p == '\t' || *p == '\r') {
			s->word = 2;
			break;
		}
		if (s->id < sizeof(s->text64))
			s->text64[s->id] = *p;
		s->id++;
		if (s->keep_names)
			pen__buf_put(&s->names, p, 1);
	}
	return s->names.bad ? pen__seq_nomem(s) : 0;
}

int pen__seq_heading(struct pen_seq_scan *s, struct pen_span in, size_t *used,
		     bool *ended)
{
	const uint8_t *nl = memchr(in.p, '\n', in.n);
	int rc;

	*ended = nl != NULL;
	in.n = nl ? (size_t)(nl - in.p) : in.n;
	rc = take_id(s, in);
	*used = in.n + *ended;
	s->at += *used;
	s->line += *ended;
	return rc || !nl ? rc : pen__seq_heading_end(s);
}

/* ---- samples ---- */

static uint64_t windows_of(const struct pen_seqs *p, uint64_t letters)
{
	const uint64_t step = p->step ? p->step : p->window;
	uint64_t n;

	if (letters < p->window)
		return letters && p->last == PEN_SEQ_LAST_KEEP;
	n = (letters - p->window) / step + 1;
	/* with gaps between windows, the next may start after the end */
	if ((p->last == PEN_SEQ_LAST_BACK ||
	     (p->last == PEN_SEQ_LAST_KEEP && n * step < letters)) &&
	    (n - 1) * step + p->window < letters)
		n++;
	return n;
}

static int count_windows(struct pen_seq_scan *s, uint64_t *nsamples)
{
	const struct pen_list *l = &s->col[PEN_SEQ_LETTERS];
	uint64_t n = 0;
	int rc = pen__seq_put(s, PEN_SEQ_WINDOWS, 0);

	for (uint64_t i = 0; !rc && i < l->n; i++) {
		n += windows_of(s->p, l->v[i]);
		rc = pen__seq_put(s, PEN_SEQ_WINDOWS, n);
	}
	*nsamples = n;
	return rc;
}

static int outside(struct pen_seq_scan *s, uint64_t i, uint64_t letters)
{
	const struct pen_seq_interval *v = &s->p->bed.v[i];

	return pen__fail(
		s->err, P_BAD_DATA_VALUE, s->p->bed_path,
		"line %u: the interval %" PRIu64 "-%" PRIu64
		" is outside '%.*s', which has %" PRIu64 " letters in %s",
		v->line, v->from, v->to,
		v->name_len < 60 ? (int)v->name_len : 60,
		(const char *)s->p->bed.file.p + v->name, letters, s->pk->name);
}

struct match {
	uint64_t interval, record;
};

static int by_interval(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	return x->interval < y->interval ? -1 : x->interval > y->interval;
}

static int same_name(struct pen_seq_scan *s, uint64_t interval)
{
	const struct pen_seq_interval *v = &s->p->bed.v[interval];

	return pen__fail(s->err, P_BAD_DATA_VALUE, s->pk->name,
			 "two sequences are named '%.*s'; rename one, as "
			 "intervals refer to sequences by name",
			 v->name_len < 60 ? (int)v->name_len : 60,
			 (const char *)s->p->bed.file.p + v->name);
}

/* Finds all intervals that name a record of this object. */
static int find_intervals(struct pen_seq_scan *s)
{
	const struct pen_seq_bed *b = &s->p->bed;
	const struct pen_list *at = &s->col[PEN_SEQ_NAMES];
	int rc = 0;

	for (uint64_t r = 0; !rc && r + 1 < at->n; r++) {
		const uint8_t *name = s->names.n ? s->names.p + at->v[r] : NULL;
		uint32_t i = pen__seq_bed_find(
			b, name, (size_t)(at->v[r + 1] - at->v[r]));

		for (; !rc && i != UINT32_MAX; i = b->next[i]) {
			if (b->v[i].to > s->col[PEN_SEQ_LETTERS].v[r])
				return outside(s, i,
					       s->col[PEN_SEQ_LETTERS].v[r]);
			rc = pen__seq_put(s, PEN_SEQ_RECORD, r);
			if (!rc)
				rc = pen__seq_put(s, PEN_SEQ_INTERVAL, i);
		}
	}
	return rc;
}

/* Sorts the samples in the order of the intervals. */
static int match_intervals(struct pen_seq_scan *s, uint64_t *nsamples)
{
	struct pen_list *record = &s->col[PEN_SEQ_RECORD],
			*interval = &s->col[PEN_SEQ_INTERVAL];
	struct match *m;
	int rc = find_intervals(s);

	*nsamples = record->n;
	if (rc || !record->n)
		return rc;
	m = pen__alloc(record->n, sizeof(*m));
	if (!m)
		return pen__seq_nomem(s);
	for (uint64_t i = 0; i < record->n; i++)
		m[i] = (struct match){ interval->v[i], record->v[i] };
	qsort(m, record->n, sizeof(*m), by_interval);
	for (uint64_t i = 0; !rc && i < record->n; i++) {
		interval->v[i] = m[i].interval;
		record->v[i] = m[i].record;
		if (i && m[i].interval == m[i - 1].interval)
			rc = same_name(s, m[i].interval);
	}
	pen__free(m);
	return rc;
}

static int cut_samples(struct pen_seq_scan *s, uint64_t *nsamples)
{
	*nsamples = s->col[PEN_SEQ_LETTERS].n;
	if (s->p->bed_path)
		return match_intervals(s, nsamples);
	return s->p->window ? count_windows(s, nsamples) : 0;
}

/* ---- the blob ---- */

static void put_blob(const struct pen_seq_scan *s, uint64_t nsamples,
		     struct pen_buf *b)
{
	pen__buf_le(b, VERSION, 1);
	pen__buf_le(b, s->text.kind, 1);
	pen__buf_le(b, s->unproven, 1);
	pen__buf_le(b, s->floats, 1);
	pen__buf_le(b, !s->no_labels, 1);
	pen__buf_le(b, s->odd.line, 8);
	pen__buf_le(b, s->odd.others, 1);
	pen__buf_le(b, s->odd.n, 1);
	pen__buf_put(b, s->odd.text, s->odd.n);
	pen__buf_le(b, s->col[PEN_SEQ_LETTERS].n, 8);
	pen__buf_le(b, nsamples, 8);
	pen__buf_le(b, s->text.text, 8);
	pen__buf_le(b, s->p->bed.hash, 8);
	pen__buf_le(b, s->nlayouts ? s->nlayouts - 1 : 0, 1);
	for (unsigned i = 1; i < s->nlayouts; i++) {
		pen__buf_le(b, s->layout[i].bases, 8);
		pen__buf_le(b, s->layout[i].width, 8);
	}
	for (unsigned i = 0; i < PEN_SEQ_NCOLUMNS; i++)
		pen__column_put(b, i == PEN_SEQ_RAW	? &s->text.raw
				   : i == PEN_SEQ_BLOCK ? &s->text.blocks
							: &s->col[i]);
	pen__buf_le(b, s->names.n, 8);
	pen__buf_put(b, s->names.p, s->names.n);
}

static void take_odd(struct pen_bytes *b, struct pen_seq_odd *o)
{
	const uint8_t *text;

	o->line = pen__take_u64(b);
	o->others = pen__take_u8(b);
	o->n = pen__take_u8(b);
	text = pen__take(b, o->n);
	if (!text || o->n > sizeof(o->text))
		b->bad = true;
	else
		memcpy(o->text, text, o->n);
}

static bool take_head(struct pen_bytes *b, struct pen_seq_part *t,
		      uint64_t *hash)
{
	const unsigned version = pen__take_u8(b), kind = pen__take_u8(b);
	unsigned n;

	t->kind = (enum pen_seq_kind)kind;
	t->unproven = pen__take_u8(b);
	t->floats = pen__take_u8(b);
	t->labels = pen__take_u8(b);
	take_odd(b, &t->odd);
	t->nrecords = pen__take_u64(b);
	t->nsamples = pen__take_u64(b);
	t->text = pen__take_u64(b);
	*hash = pen__take_u64(b);
	n = pen__take_u8(b);
	if (version != VERSION || kind > PEN_SEQ_BGZF || n >= PEN_SEQ_IRREGULAR)
		return false;
	for (unsigned i = 1; i <= n; i++) {
		t->layout[i].bases = pen__take_u64(b);
		t->layout[i].width = pen__take_u64(b);
		if (!t->layout[i].bases ||
		    t->layout[i].width <= t->layout[i].bases)
			return false;
	}
	return !b->bad;
}

/* Whether a column has n entries, or computes them. */
static bool has(const struct pen_seq_part *t, enum pen_seq_column c, uint64_t n)
{
	return !t->col[c].width || t->col[c].n == n;
}

/* What is used as an index leads nowhere else, whoever wrote the blob. */
static bool columns_fit(const struct pen_seq_part *t)
{
	const struct pen_column *odd = &t->col[PEN_SEQ_ODD_FIRST];
	bool ok = has(t, PEN_SEQ_WINDOWS, t->nrecords + 1) &&
		  has(t, PEN_SEQ_NAMES, t->nrecords + 1) &&
		  has(t, PEN_SEQ_RECORD, t->nsamples) &&
		  has(t, PEN_SEQ_INTERVAL, t->nsamples) &&
		  odd->n == t->col[PEN_SEQ_ODD].n + (odd->n > 0) &&
		  t->col[PEN_SEQ_RAW].n == t->col[PEN_SEQ_BLOCK].n;

	for (unsigned c = PEN_SEQ_HEAD; c <= PEN_SEQ_LABEL; c++)
		ok &= has(t, c, t->nrecords);
	for (uint64_t i = 0; ok && i < odd->n; i++)
		ok = pen__column_at(odd, i) <= t->col[PEN_SEQ_MARK].n;
	for (uint64_t r = 0; ok && r < t->nrecords; r++)
		ok = pen__column_at(&t->col[PEN_SEQ_LAYOUT], r) <=
			     PEN_SEQ_IRREGULAR &&
		     pen__column_at(&t->col[PEN_SEQ_QLAYOUT], r) <=
			     PEN_SEQ_IRREGULAR;
	return ok;
}

bool pen__seq_part_take(struct pen_span blob, struct pen_seq_part *t,
			uint64_t *hash)
{
	struct pen_bytes b = pen__bytes(blob.p, blob.n);

	if (!take_head(&b, t, hash))
		return false;
	for (unsigned i = 0; i < PEN_SEQ_NCOLUMNS; i++)
		if (!pen__column_take(&b, &t->col[i]))
			return false;
	t->names.n = pen__take_u64(&b);
	t->names.p = pen__take(&b, t->names.n);
	return !b.bad &&
	       t->col[PEN_SEQ_START].n == t->nrecords + (t->nrecords > 0) &&
	       t->col[PEN_SEQ_LETTERS].n == t->nrecords && columns_fit(t);
}

static int scan_text(struct pen_seq_scan *s)
{
	struct pen_span piece;
	bool first = true;
	int rc;

	while ((rc = pen__seq_text_next(&s->text, &piece)) == 0) {
		/* skip a UTF-8 byte order mark */
		if (first && piece.n >= 3 &&
		    !memcmp(piece.p, "\xef\xbb\xbf", 3)) {
			piece.p += 3;
			piece.n -= 3;
			s->at = 3;
		}
		first = false;
		rc = s->p->ops->piece(s, piece);
		if (rc)
			return rc;
	}
	return rc == PEN_END ? s->p->ops->end(s) : rc;
}

static void scan_fini(struct pen_seq_scan *s)
{
	for (unsigned i = 0; i < PEN_SEQ_NCOLUMNS; i++)
		pen__list_fini(&s->col[i]);
	pen__buf_fini(&s->names);
	pen__seq_text_close(&s->text);
}

/* Tries to take the records from an index file. An index that is not valid is
 * ignored, as if there were none. */
static int look_aside(struct pen_seq_scan *s)
{
	struct pen_err own = { 0 }, *err = s->err;
	int rc;

	if (!s->p->ops->aside)
		return PEN_END;
	s->err = s->text.err = &own;
	rc = s->p->ops->aside(s);
	s->err = s->text.err = err;
	if (!rc || rc == PEN_END || rc == PEN_EDATA)
		return rc ? PEN_END : 0;
	*err = own;
	return rc;
}

static int find_records(struct pen_seq_scan *s)
{
	int rc = look_aside(s);

	if (rc != PEN_END)
		return rc;
	for (unsigned i = 0; i < PEN_SEQ_NCOLUMNS; i++)
		s->col[i].n = 0;
	s->names.n = s->text.at = s->text.text = 0;
	s->text.raw.n = s->text.blocks.n = 0;
	s->nlayouts = 0;
	s->unproven = false;
	return scan_text(s);
}

int pen__seq_index(const struct pen_format *f, struct pen_peek *pk,
		   struct pen_found *found, struct pen_err *err)
{
	const struct pen_seqs *p = f->priv;
	struct pen_err own = { 0 };
	struct pen_seq_scan s = {
		.p = p, .pk = pk, .err = err ? err : &own, .line = 1
	};
	const locale_t was = uselocale(p->c);
	int rc = pen__seq_text_open(&s.text, pk, p->gzip_limit, s.err);

	s.keep_names = p->bed_path || (p->window && p->want[PEN_SEQ_F_ID]);
	s.no_labels = !p->ops->lines;
	if (!rc)
		rc = find_records(&s);
	if (!rc && s.col[PEN_SEQ_LETTERS].n)
		rc = pen__seq_put(&s, PEN_SEQ_START, s.text.text);
	if (!rc && s.keep_names)
		rc = pen__seq_put(&s, PEN_SEQ_NAMES, s.names.n);
	if (!rc && s.col[PEN_SEQ_ODD].n)
		rc = pen__seq_put(&s, PEN_SEQ_ODD_FIRST, s.col[PEN_SEQ_MARK].n);
	if (!rc)
		rc = cut_samples(&s, &found->nsamples);
	if (!rc) {
		put_blob(&s, found->nsamples, &found->blob);
		if (found->blob.bad)
			rc = pen__seq_nomem(&s);
	}
	scan_fini(&s);
	uselocale(was);
	return rc;
}
