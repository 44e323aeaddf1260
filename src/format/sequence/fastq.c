/*
 * FASTQ: a heading after '@', letters, a line that begins with '+', and as
 * many qualities as letters; letters and qualities in one line each, as
 * nearly all files have them, or in several. Qualities come as numbers: what
 * a byte is above '!'.
 *
 * Refuses records that end early, more or fewer qualities than letters, and
 * blanks inside either, with the record and the line it shows on. Blanks at the
 * end of a line are no part of it.
 */
#include <inttypes.h>

#include "base/quote.h"
#include "format/sequence/sequence.h"

enum { RECORD, HEADING, LETTERS, PLUS, QUALITY };

static const struct pen_opt fastq_opts[] = {
	PEN_SEQ_OPTS,
	PEN_SEQ_WINDOW_OPTS,
	{ .name = NULL },
};

static int record_begin(struct pen_seq_scan *s)
{
	int rc = 0;

	s->start = s->at++;
	s->id = s->word = 0;
	s->id_at = 1;
	s->mode = HEADING;
	if (s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->names.n);
	return rc ? rc : pen__seq_put(s, PEN_SEQ_START, s->start);
}

static int heading_end(struct pen_seq_scan *s)
{
	s->mode = LETTERS;
	return pen__seq_heading_end(s);
}

static int letters_end(struct pen_seq_scan *s)
{
	uint64_t layout;
	int rc = pen__seq_lines_end(s, &s->letters, &layout);

	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_HEAD, s->letters.first - s->start);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_LETTERS, s->letters.n);
	s->mode = PLUS;
	return rc ? rc : pen__seq_put(s, PEN_SEQ_LAYOUT, layout);
}

static int record_end(struct pen_seq_scan *s)
{
	uint64_t layout;
	int rc = pen__seq_lines_end(s, &s->quality, &layout);

	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_QUALITY,
				  s->quality.first - s->letters.first);
	s->mode = RECORD;
	return rc ? rc : pen__seq_put(s, PEN_SEQ_QLAYOUT, layout);
}

static int plus_end(struct pen_seq_scan *s)
{
	pen__seq_lines_begin(&s->quality, s->at);
	s->mode = QUALITY;
	return s->letters.n ? 0 : record_end(s);
}

static int too_many(struct pen_seq_scan *s)
{
	const uint64_t first = s->quality.bases;

	if (first && first < s->letters.n)
		return pen__seq_fail(s,
				     "more qualities than the %" PRIu64
				     " letters, of which a line before has "
				     "%" PRIu64,
				     s->letters.n, first);
	return pen__seq_fail(s, "more qualities than the %" PRIu64 " letters",
			     s->letters.n);
}

static int qualities(struct pen_seq_scan *s, struct pen_span in, size_t *used)
{
	struct pen_seq_lines *q = &s->quality;
	bool ended;
	int rc = pen__seq_lines_take(s, q, in, used, &ended);

	if (rc)
		return rc;
	if (q->n + q->now > s->letters.n) {
		s->line -= ended;
		return too_many(s);
	}
	return ended && q->n == s->letters.n ? record_end(s) : 0;
}

static int no_record(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t *nl = memchr(in.p, '\n', in.n);
	const size_t n = nl ? (size_t)(nl - in.p) : in.n;

	if (!s->col[PEN_SEQ_START].n)
		return pen__seq_fail(s,
				     "a record begins with '@', not with %s%s",
				     pen__quoted(in.p, n).s,
				     *in.p == '>' ? ": is it fasta?" : "");
	return pen__seq_fail(s,
			     "a record begins with '@', not with %s; has %s "
			     "more qualities than letters?",
			     pen__quoted(in.p, n).s, pen__seq_record(s).s);
}

/* Between records; blank lines are passed over. */
static int between(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t c = *in.p;

	if (c == '@')
		return record_begin(s);
	if (c != '\n' && c != '\r' && c != ' ' && c != '\t')
		return no_record(s, in);
	s->line += c == '\n';
	s->at++;
	return 0;
}

static int line_of(struct pen_seq_scan *s, struct pen_span in, size_t *used)
{
	const uint8_t *nl = memchr(in.p, '\n', in.n);
	int rc = 0;

	*used = nl ? (size_t)(nl - in.p) : in.n;
	if (s->mode == HEADING)
		rc = pen__seq_heading(s, (struct pen_span){ in.p, *used });
	*used += nl != NULL;
	s->at += *used;
	s->line += nl != NULL;
	if (rc || !nl)
		return rc;
	return s->mode == HEADING ? heading_end(s) : plus_end(s);
}

static int fastq_piece(struct pen_seq_scan *s, struct pen_span in)
{
	int rc = 0;

	while (!rc && in.n) {
		size_t used = 1;
		bool ended;

		if (s->mode == RECORD) {
			rc = between(s, in);
		} else if (s->mode == HEADING || s->mode == PLUS) {
			rc = line_of(s, in, &used);
		} else if (s->mode == QUALITY) {
			rc = qualities(s, in, &used);
		} else if (*in.p == '+' && !s->letters.now && !s->cr &&
			   s->at == s->letters.line) {
			rc = letters_end(s);
			used = 0;
		} else {
			rc = pen__seq_lines_take(s, &s->letters, in, &used,
						 &ended);
		}
		in.p += used;
		in.n -= used;
	}
	return rc;
}

static int fastq_end(struct pen_seq_scan *s)
{
	int rc;

	if (s->mode == PLUS && !s->letters.n) {
		rc = plus_end(s);
		if (rc)
			return rc;
	}
	if (s->mode == RECORD)
		return 0;
	if (s->mode != QUALITY || s->quality.n + s->quality.now != s->letters.n)
		return pen__seq_fail(
			s,
			"the file ends within a record: it has "
			"%" PRIu64 " letters and %" PRIu64 " qualities",
			s->mode == HEADING ? 0 : s->letters.n + s->letters.now,
			s->mode == QUALITY ? s->quality.n + s->quality.now : 0);
	return record_end(s);
}

static const struct pen_seq_ops fastq_ops = {
	.piece = fastq_piece,
	.end = fastq_end,
	.quality = true,
};

static int fastq_open(struct pen_format *f, struct pen_err *err)
{
	return pen__seq_open(f, &fastq_ops, err);
}

static const char *const fastq_suffixes[] = { ".fq", ".fastq", ".fq.gz",
					      ".fastq.gz", NULL };

const struct pen_format_ops pen__format_fastq = {
	.name = "fastq",
	.help = "FASTQ, plain, gzip or bgzip: reads with qualities",
	.suffixes = fastq_suffixes,
	.opts = fastq_opts,
	.priv_size = sizeof(struct pen_seqs),
	.open = fastq_open,
	.close = pen__seq_close,
	.index = pen__seq_index,
	.bind = pen__seq_bind,
	.shape = pen__seq_shape,
	.locate = pen__seq_locate,
	.unpack = pen__seq_unpack,
	.emit = pen__seq_emit,
	.value = pen__seq_value,
	.nlabels = pen__seq_nlabels,
	.label = pen__seq_label,
	.describe = pen__seq_describe,
	.warn = pen__seq_warn,
	.write = pen__fastq_write,
};
