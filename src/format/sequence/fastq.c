/*
 * FASTQ: a header line that starts with '@', letters, a line that starts with
 * '+', and one quality value per letter. Letters and quality values each take
 * one line, as in nearly all files, or several. Quality values are delivered as
 * numbers: the byte minus '!'.
 *
 * Refuses truncated records, a different number of quality values than letters,
 * and blanks inside either, naming record and line. Blanks at the end of a line
 * are ignored.
 */
#include <inttypes.h>

#include "base/quote.h"
#include "base/show.h"
#include "format/sequence/sequence.h"

enum { RECORD, HEADING, LETTERS, PLUS, QUALITY };

static const struct pen_opt fastq_opts[] = {
	PEN_SEQ_OPTS,
	PEN_SEQ_WINDOW_OPTS,
	{ .name = NULL },
};

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
		return pen__seq_fail(
			s, P_BAD_TEXT,
			"more quality values than the %s (the first quality "
			"line has %" PRIu64 ")",
			pen__show_counted(s->letters.n, "letter").s, first);
	return pen__seq_fail(s, P_BAD_TEXT, "more quality values than the %s",
			     pen__show_counted(s->letters.n, "letter").s);
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
		return pen__seq_fail(
			s, P_NOT_THIS_FORMAT,
			"a record must start with '@', not with %s%s",
			pen__quoted(in.p, n).s,
			*in.p == '>' ? "; if it is FASTA, set format=fasta"
				     : "");
	return pen__seq_fail(s, P_BAD_TEXT,
			     "a record must start with '@', not with %s; check "
			     "whether %s has more quality values than letters",
			     pen__quoted(in.p, n).s, pen__seq_record(s).s);
}

/* Between records; skips blank lines. */
static int between(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t c = *in.p;

	if (c == '@') {
		s->mode = HEADING;
		return pen__seq_record_begin(s);
	}
	if (c != '\n' && c != '\r' && c != ' ' && c != '\t')
		return no_record(s, in);
	s->line += c == '\n';
	s->at++;
	return 0;
}

/* Skips the line with '+'. */
static int plus(struct pen_seq_scan *s, struct pen_span in, size_t *used)
{
	const uint8_t *nl = memchr(in.p, '\n', in.n);

	*used = nl ? (size_t)(nl - in.p) + 1 : in.n;
	s->at += *used;
	s->line += nl != NULL;
	return nl ? plus_end(s) : 0;
}

static int fastq_piece(struct pen_seq_scan *s, struct pen_span in)
{
	int rc = 0;

	while (!rc && in.n) {
		size_t used = 1;
		bool ended;

		if (s->mode == RECORD) {
			rc = between(s, in);
		} else if (s->mode == HEADING) {
			rc = pen__seq_heading(s, in, &used, &ended);
			s->mode = ended ? LETTERS : HEADING;
		} else if (s->mode == PLUS) {
			rc = plus(s, in, &used);
		} else if (s->mode == QUALITY) {
			rc = qualities(s, in, &used);
		} else if (*in.p == '+' && !s->letters.now && !s->cr &&
			   s->at == s->letters.line) {
			rc = pen__seq_letters_end(s);
			s->mode = PLUS;
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
			s, P_TRUNCATED,
			"truncated: the file ends after %s and %s",
			pen__show_counted(s->mode == HEADING
						  ? 0
						  : s->letters.n +
							    s->letters.now,
					  "letter")
				.s,
			pen__show_counted(s->mode == QUALITY
						  ? s->quality.n +
							    s->quality.now
						  : 0,
					  "quality value")
				.s);
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
	.help = "FASTQ, plain, gzip or bgzip: reads with quality values",
	.suffixes = fastq_suffixes,
	.opts = fastq_opts,
	.open = fastq_open,
	.write = pen__fastq_write,
	PEN_SEQ_FORMAT,
};
