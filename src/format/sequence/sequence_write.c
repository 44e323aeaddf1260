/*
 * Writing sequences: the first field holds the letters as bytes; fields named
 * id, label and quality are written if the format supports them. Rows of a
 * table have one length, so trailing zero bytes are not part of a sequence. The
 * output is plain or bgzip, with index files next to FASTA on request.
 *
 * Refuses anything that a reader would misinterpret: bytes that are not
 * letters, and ids with blanks or separators.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/table/csv.h"
#include "format/sequence/sequence.h"

#define FULL 65280u /* bytes of text per block, as in bgzip */
#define LEVEL 6

enum { LETTERS, ID, LABEL, QUALITY, NPLACES };
enum kind { LINES, FASTA, FASTQ };

struct writer {
	const struct pen_seqs *p;
	const struct pen_table *t;
	struct pen_out *out;
	struct pen_err *err;
	enum kind kind;
	int field[NPLACES];	      /* or -1 */
	size_t row[NPLACES];	      /* bytes per row */
	uint8_t *mem[NPLACES];	      /* a generated row */
	struct pen_span now[NPLACES]; /* current row */
	struct pen_buf text;	      /* pending output */
	uint8_t *block;		      /* a compressed block */
	uint64_t raw, done; /* bytes written, and the text they hold */
	struct pen_buf fai, gzi;
	uint64_t nblocks;
};

/* ---- output ---- */

static int put_block(struct writer *w, const uint8_t *p, size_t n)
{
	static const uint8_t head[16] = { 0x1f, 0x8b, 8, 4, 0,	 0,   0, 0,
					  0,	0xff, 6, 0, 'B', 'C', 2, 0 };
	struct pen_buf b = { 0 };
	size_t len = pen__deflate(LEVEL, p, n, w->block, PEN_BGZF_MOST);
	int rc;

	if (!len || len > PEN_BGZF_MOST - 26)
		return pen__fail_nomem(w->err, "bgzip", n);
	pen__buf_put(&b, head, sizeof(head));
	pen__buf_le(&b, len + 25, 2);
	pen__buf_put(&b, w->block, len);
	pen__buf_le(&b, pen__crc32(0, p, n), 4);
	pen__buf_le(&b, n, 4);
	if (w->nblocks++ && n) {
		pen__buf_le(&w->gzi, w->raw, 8);
		pen__buf_le(&w->gzi, w->done, 8);
	}
	w->raw += b.n;
	w->done += n;
	rc = b.bad || w->gzi.bad ? pen__fail_nomem(w->err, "bgzip", b.n)
				 : w->out->write(w->out, b.p, b.n, w->err);
	pen__buf_fini(&b);
	return rc;
}

/* Writes pending output: complete blocks, or all of it. */
static int flush(struct writer *w, bool all)
{
	size_t at = 0;
	int rc = 0;

	if (w->text.bad)
		return pen__fail_nomem(w->err, "sequences", w->text.n);
	if (w->p->compress != PEN_SEQ_BGZIP) {
		if (w->text.n && (all || w->text.n >= ((size_t)1 << 20))) {
			rc = w->out->write(w->out, w->text.p, w->text.n,
					   w->err);
			w->done += w->text.n;
			w->text.n = 0;
		}
		return rc;
	}
	while (!rc && (w->text.n - at >= FULL || (all && w->text.n > at))) {
		const size_t n = w->text.n - at < FULL ? w->text.n - at : FULL;

		rc = put_block(w, w->text.p + at, n);
		at += n;
	}
	if (at)
		memmove(w->text.p, w->text.p + at, w->text.n - at);
	w->text.n -= at;
	return rc || !all ? rc : put_block(w, (const uint8_t *)"", 0);
}

static int put_side(struct writer *w, const char *suffix, struct pen_buf *b)
{
	struct pen_out *side;

	if (b->bad)
		return pen__fail_nomem(w->err, "index", b->n);
	if (!w->out->side)
		return pen__fail(
			w->err, P_CANNOT_WRITE_THIS, "index",
			"cannot write an index file next to this output");
	side = w->out->side(w->out, suffix, w->err);
	if (!side)
		return w->err ? w->err->code : PEN_EIO;
	return side->write(side, b->p, b->n, w->err);
}

/* ---- rows ---- */

static bool is_letter(uint8_t c)
{
	return ((c | 0x20u) >= 'a' && (c | 0x20u) <= 'z') || c == '*' ||
	       c == '-' || c == '.';
}

static int bad_byte(struct writer *w, uint64_t k, int what, uint8_t c)
{
	static const char *const names[] = { "a letter", "part of an id", "",
					     "quality" };

	return pen__fail(w->err, P_CANNOT_WRITE_THIS, "sequences",
			 "sample %" PRIu64
			 ": the byte 0x%02x cannot be written as %s",
			 k, c, names[what]);
}

static int check_row(struct writer *w, uint64_t k, int what)
{
	const struct pen_span s = w->now[what];

	for (size_t i = 0; i < s.n; i++) {
		const uint8_t c = s.p[i];
		const bool ok = what == LETTERS ? is_letter(c)
				: what == QUALITY
					? c <= '~' - '!'
					: c > ' ' && c < 0x7f && c != ',' &&
						  c != ';';

		if (!ok)
			return bad_byte(w, k, what, c);
	}
	return 0;
}

static int take_row(struct writer *w, uint64_t k, int what)
{
	const int f = w->field[what];
	struct pen_span *s = &w->now[what];
	int rc = 0;

	*s = (struct pen_span){ NULL, 0 };
	if (f < 0)
		return 0;
	*s = (struct pen_span){ w->mem[what], w->row[what] };
	if (w->t->data)
		s->p = (const uint8_t *)w->t->data[f] + k * s->n;
	else
		rc = pen__table_rows(w->t, (uint32_t)f, k, 1, w->mem[what],
				     w->err);
	if (rc || what == LABEL)
		return rc;
	if (what == QUALITY) {
		if (s->n < w->now[LETTERS].n)
			return pen__fail(w->err, P_CANNOT_WRITE_THIS, "quality",
					 "fewer quality values than letters");
		s->n = w->now[LETTERS].n;
	}
	while (what != QUALITY && s->n && !s->p[s->n - 1])
		s->n--;
	return check_row(w, k, what);
}

static void put_lines(struct writer *w, struct pen_span s)
{
	const uint64_t line = w->kind == FASTA && w->p->line_width
				      ? w->p->line_width
				      : UINT64_MAX;

	for (size_t at = 0, n; at < s.n; at += n) {
		n = s.n - at < line ? s.n - at : (size_t)line;
		pen__buf_put(&w->text, s.p + at, n);
		pen__buf_put(&w->text, "\n", 1);
	}
}

static void put_id(struct writer *w, uint64_t k, struct pen_buf *b)
{
	if (w->field[ID] >= 0)
		pen__buf_put(b, w->now[ID].p, w->now[ID].n);
	else
		pen__buf_printf(b, "seq%" PRIu64, k + 1);
}

static void put_line(struct writer *w)
{
	char text[40];

	pen__buf_put(&w->text, w->now[LETTERS].p, w->now[LETTERS].n);
	if (w->field[ID] >= 0) {
		pen__buf_put(&w->text, ",", 1);
		pen__buf_put(&w->text, w->now[ID].p, w->now[ID].n);
	} else if (w->field[LABEL] >= 0) {
		const unsigned n = pen__csv_print(
			w->now[LABEL].p, w->t->field[w->field[LABEL]].dtype,
			text);

		pen__buf_put(&w->text, ",", 1);
		pen__buf_put(&w->text, text, n);
	}
	pen__buf_put(&w->text, "\n", 1);
}

static void put_fasta(struct writer *w, uint64_t k)
{
	const size_t n = w->now[LETTERS].n;
	const uint64_t line =
		w->p->line_width && w->p->line_width < n ? w->p->line_width : n;

	pen__buf_put(&w->text, ">", 1);
	put_id(w, k, &w->text);
	pen__buf_put(&w->text, "\n", 1);
	if (w->p->index && n) { /* samtools omits empty records */
		put_id(w, k, &w->fai);
		pen__buf_printf(&w->fai,
				"\t%zu\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
				"\n",
				n, w->done + w->text.n, line, line + 1);
	}
	put_lines(w, w->now[LETTERS]);
}

static void put_fastq(struct writer *w, uint64_t k)
{
	const size_t n = w->now[LETTERS].n;

	pen__buf_put(&w->text, "@", 1);
	put_id(w, k, &w->text);
	pen__buf_put(&w->text, "\n", 1);
	pen__buf_put(&w->text, w->now[LETTERS].p, n);
	pen__buf_put(&w->text, "\n+\n", 3);
	for (size_t i = 0; i < n; i++) {
		const uint8_t q = w->field[QUALITY] >= 0
					  ? w->now[QUALITY].p[i] + '!'
					  : 'I';

		pen__buf_put(&w->text, &q, 1);
	}
	pen__buf_put(&w->text, "\n", 1);
}

static int put_sample(struct writer *w, uint64_t k)
{
	int rc = 0;

	for (int i = 0; !rc && i < NPLACES; i++)
		rc = take_row(w, k, i);
	if (rc)
		return rc;
	if (w->kind == LINES && !w->now[LETTERS].n && w->field[ID] < 0 &&
	    w->field[LABEL] < 0)
		return pen__fail(
			w->err, P_CANNOT_WRITE_THIS, "lines",
			"sample %" PRIu64
			" has no letters, and readers skip empty lines",
			k);
	if (w->kind == LINES)
		put_line(w);
	else if (w->kind == FASTA)
		put_fasta(w, k);
	else
		put_fastq(w, k);
	return flush(w, false);
}

/* ---- writing a file ---- */

static int take_field(struct writer *w, uint32_t i)
{
	static const char *const names[] = { "", "id", "label", "quality" };
	const struct pen_field *d = &w->t->field[i];
	int what = LETTERS;

	for (int k = 1; i && k < NPLACES; k++)
		if (!strcmp(d->name, names[k]))
			what = k;
	if ((i && what == LETTERS) || (what == LABEL && w->kind != LINES) ||
	    (what == QUALITY && w->kind != FASTQ) ||
	    (what == LABEL
		     ? d->ndim || (d->dtype != PEN_I64 && d->dtype != PEN_F64)
		     : d->ndim != 1 || d->dtype != PEN_U8))
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, d->name,
				 "this format cannot store the field; pass "
				 "letters as a list of uint8 first, then id%s",
				 w->kind == LINES   ? " or label"
				 : w->kind == FASTQ ? " and quality"
						    : "");
	w->field[what] = (int)i;
	if (w->kind == LINES && w->field[ID] >= 0 && w->field[LABEL] >= 0)
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, d->name,
				 "a line has only one column besides the "
				 "sequence; pass either id or label");
	if (!pen__shape_bytes(d->shape, d->ndim, d->dtype, &w->row[what]))
		return pen__fail(w->err, P_CANNOT_WRITE_THIS, d->name,
				 "the field is too large");
	w->mem[what] = w->t->data ? NULL : pen__alloc(w->row[what], 1);
	return w->t->data || w->mem[what]
		       ? 0
		       : pen__fail_nomem(w->err, d->name, w->row[what]);
}

static int put_sides(struct writer *w)
{
	struct pen_buf gzi = { 0 };
	int rc;

	if (!w->p->index || w->kind != FASTA)
		return 0;
	rc = put_side(w, ".fai", &w->fai);
	if (rc || w->p->compress != PEN_SEQ_BGZIP)
		return rc;
	pen__buf_le(&gzi, w->gzi.n / 16, 8);
	pen__buf_put(&gzi, w->gzi.p, w->gzi.n);
	rc = put_side(w, ".gzi", &gzi);
	pen__buf_fini(&gzi);
	return rc;
}

static int write_all(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err, enum kind kind)
{
	struct writer w = { .p = f->priv,
			    .t = t,
			    .out = out,
			    .err = err,
			    .kind = kind,
			    .field = { -1, -1, -1, -1 } };
	const locale_t was = uselocale(w.p->c);
	int rc = 0;

	if (w.p->compress == PEN_SEQ_BGZIP) {
		w.block = pen__alloc(PEN_BGZF_MOST, 1);
		if (!w.block)
			rc = pen__fail_nomem(err, "bgzip", PEN_BGZF_MOST);
	}
	for (uint32_t i = 0; !rc && i < t->nfields; i++)
		rc = take_field(&w, i);
	for (uint64_t k = 0; !rc && k < t->nsamples; k++)
		rc = put_sample(&w, k);
	if (!rc)
		rc = flush(&w, true);
	if (!rc)
		rc = put_sides(&w);
	for (int i = 0; i < NPLACES; i++)
		pen__free(w.mem[i]);
	pen__free(w.block);
	pen__buf_fini(&w.text);
	pen__buf_fini(&w.fai);
	pen__buf_fini(&w.gzi);
	uselocale(was);
	return rc;
}

int pen__lines_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	return write_all(f, t, out, err, LINES);
}

int pen__fasta_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	return write_all(f, t, out, err, FASTA);
}

int pen__fastq_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	return write_all(f, t, out, err, FASTQ);
}
